"""The ways by which the default method answers, by name: when each is taken, and what it promises.

`Guarantee.route` names the one that gave an answer.
"""

from __future__ import annotations

from dataclasses import dataclass

OUTSIDE = "outside_range"
SINGLE_STEP = "single_step"
UPPER_TAIL = "upper_tail"
FINITE_SUM = "finite_sum"
LATTICE = "lattice"
SPLIT = "split_enumeration"
LARGE_JUMPS = "large_jumps"
CONDITIONING = "conditioning_on_atoms"
MEASURE = "measure"
CONTOUR = "contour"


@dataclass(frozen=True)
class Route:
    """One way to δ.

    Attributes
    ----------
    name
        As `Guarantee.route` has it.
    laws
        For which sums of losses it is tried.
    how
        What it computes.
    cost
        How the work grows.
    """

    name: str
    laws: str
    how: str
    cost: str


ROUTES = (
    Route(OUTSIDE, "ε beyond all finite losses", "δ = δ∞, or 1 − e^{ε+K(−1)}", "none"),
    Route(SINGLE_STEP, "n = 1", "P(L > ε) − e^ε Q(L > ε) at the roots of ℓ = ε", "one quadrature"),
    Route(UPPER_TAIL, "discrete losses, ε next to the largest sum", "the sums above ε", "few sums"),
    Route(FINITE_SUM, "discrete losses with few sums", "every sum", "the number of sums"),
    Route(LATTICE, "discrete losses on a lattice", "the trapezoid over one period", "not on n"),
    Route(SPLIT, "discrete losses off a lattice, few steps", "two lists of half sums", "√ of sums"),
    Route(
        LARGE_JUMPS,
        "discrete losses, one rare large loss carries δ",
        "δ of the small losses, for each number of large ones",
        "integrals for a few values",
    ),
    Route(
        CONDITIONING,
        "discrete losses beside losses with a density",
        "δ of the latter, for each sum of the former",
        "the number of sums",
    ),
    Route(MEASURE, "losses with a density, few steps", "atoms and density, step by step", "on n"),
    Route(CONTOUR, "losses with a density, many steps", "the trapezoid on one line", "not on n"),
)
