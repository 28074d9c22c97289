"""Which method answers which question: one table, whose first row that applies answers.

A row's method returns δ(ε), or None where the row does not apply. No row is chosen for the width of
another one's bounds, and none for what was asked before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from symdp.decimal_text import SMALLEST_LOG
from symdp.errors import AccuracyError
from symdp.numeric.answer import (
    COUNTED,
    EXACT,
    OUTSIDE,
    ROUNDED,
    SAFETY,
    Answer,
    FloatAccountant,
    margin,
    outside_range,
)
from symdp.numeric.contour import contour_answer, own_lines
from symdp.numeric.saddle_point import log_moments_bound
from symdp.numeric.total import SumLaw


@dataclass(frozen=True)
class Route:
    """One way to δ.

    `answer`: returns δ(ε), None where the row does not apply. `concerns`: whether the row may apply
    to a law, known at once.
    """

    name: str  # as `Guarantee.route` has it
    laws: str  # for which sums of losses it applies
    how: str  # what it computes
    promise: str  # the relative half width of δ, where rounding of the losses allows it
    cost: str  # how the work grows
    answer: Callable[[SumLaw, float], Answer | None]
    concerns: Callable[[SumLaw], bool] = lambda law: True


# Where δ is bounded from below by nothing near it.
_ADVICE = (
    "too few values of the characteristic function tell what losses add up to; this is an "
    "upper bound, and the method tilted-prv may give a narrower interval"
)

_UNBOUNDED = (
    "the characteristic function was seen to die out, but what lies beyond the last of its "
    "values is not bounded"
)

# A row's files are loaded once a question gets there, as the one of a command does only one row.


def _listed_answer(law: SumLaw, epsilon: float) -> Answer | None:
    from symdp.numeric.sums import listed_answer

    return listed_answer(law, epsilon)


def _residue_answer(law: SumLaw, epsilon: float) -> Answer | None:
    from symdp.numeric.residues import residue_answer

    return residue_answer(law, epsilon)


def _single_answer(law: SumLaw, epsilon: float) -> Answer | None:
    from symdp.numeric.single import single_answer

    return single_answer(law, epsilon)


def _lattice_answer(law: SumLaw, epsilon: float) -> Answer | None:
    from symdp.numeric.sums import lattice_answer

    answer = lattice_answer(law, epsilon)
    return None if answer is None else _sharpened(law, epsilon, answer)


def _sharpened(law: SumLaw, epsilon: float, answer: Answer) -> Answer:
    """Return an answer, or the one in balls where it is wide by rounding and balls are narrower."""
    if margin(answer) <= COUNTED + SAFETY * ROUNDED * abs(answer.log_delta):
        return answer
    from symdp.methods.in_balls import in_balls  # and with it SymPy

    return in_balls(law, epsilon, answer)


def _line_answer(law: SumLaw, epsilon: float) -> Answer | None:
    return contour_answer(law, epsilon, _sharpened)


def _tiny_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return a line's wide interval where δ is below every double, or an upper bound; else None."""
    log_upper = log_moments_bound(law, epsilon)
    if not log_upper < SMALLEST_LOG:
        return None
    wide = contour_answer(law, epsilon, most=1.0)
    return _as_bound(log_upper) if wide is None else replace(wide, route="contour")


def _as_bound(log_upper: float) -> Answer:
    return Answer(log_upper, -math.inf, log_upper, "bound", _ADVICE)


def _mesh_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return what the mesh gives, or lines that end where values were seen to be small.

    Few steps with an infinite density have many nodes, so that a mesh ends too early to bound much.
    What lies beyond a line is not bounded then: its answer is an estimate, and not believed where
    the mesh excludes it. None where nothing bounds δ from below.
    """
    from symdp.numeric.cut_off import given_large_losses, mesh_answer

    law, mesh = law.singly(), None
    with suppress(AccuracyError):  # nor may a part of the losses have a line
        given = given_large_losses(law, epsilon)
        if given is not None and margin(given) <= EXACT:
            return given
    try:
        mesh = mesh_answer(law, epsilon)
    except AccuracyError:  # the nodes do not reach far beyond the tilt
        if not law.is_spread:
            return None
    if mesh is not None and (not law.is_spread or margin(mesh) <= EXACT):
        return mesh if _has_lower(mesh) else None
    own = own_lines(law, epsilon)
    if own is None or not (mesh is None or _holds(mesh, own[0])):
        return mesh if mesh is not None and _has_lower(mesh) else None
    answer, assured = own
    if assured:
        return replace(answer, route="contour")
    # Its ends are those that are proved, and none of its own.
    low, high = -math.inf, log_moments_bound(law, epsilon)
    if mesh is not None and mesh.log_lower is not None and mesh.log_upper is not None:
        low, high = mesh.log_lower, min(high, mesh.log_upper)
    log_delta, advice = answer.log_delta, _UNBOUNDED
    low, high = min(low, log_delta), max(high, log_delta)
    return Answer(log_delta, low, high, "estimate", advice, None, answer.slope, "contour")


def _has_lower(answer: Answer) -> bool:
    return answer.log_lower is not None and answer.log_lower > -math.inf


def _rounded_answer(law: SumLaw, epsilon: float) -> Answer:
    """Return the interval from losses rounded to a mesh, no wider than Chernoff's bound."""
    from symdp.methods.prv import Prv

    wide = Prv().inside_range(law, epsilon)
    assert wide.log_lower is not None
    assert wide.log_upper is not None
    upper = min(wide.log_upper, log_moments_bound(law, epsilon))
    lower = min(wide.log_lower, upper)
    is_useful = upper - lower <= math.log(2.0)
    return Answer(upper, lower, upper, "bound", "" if is_useful else _ADVICE)


def _holds(wide: Answer, narrow: Answer) -> bool:
    """Return whether an interval lies within another one."""
    assert wide.log_lower is not None
    assert wide.log_upper is not None
    assert narrow.log_lower is not None
    assert narrow.log_upper is not None
    return wide.log_lower <= narrow.log_lower and narrow.log_upper <= wide.log_upper


# The first row that applies answers.
ROUTES = (
    Route(
        OUTSIDE,
        "ε beyond all finite losses",
        "δ = δ∞, or 1 − e^{ε+K(−1)}",
        "1e-14",
        "none",
        outside_range,
    ),
    Route(
        "finite_sum",
        "atoms with at most 2·10⁶ sums, or few above ε",
        "every sum",
        "1e-13",
        "the number of sums",
        _listed_answer,
        lambda law: not law.is_spread,
    ),
    Route(
        "residues",
        "densities with M a short sum of rational functions times exponentials, n ≤ 1000",
        "the residues of each term, in balls",
        "1e-14",
        "the number of terms, on n²",
        _residue_answer,
        lambda law: law.is_spread,
    ),
    Route(
        "single",
        "n = 1",
        "∫ (P − e^ε Q)⁺ between the roots of ℓ = ε, in balls",
        "1e-14",
        "one quadrature",
        _single_answer,
        lambda law: law.count == 1,
    ),
    Route(
        "lattice",
        "atoms on a lattice",
        "the trapezoid over one period",
        "1e-13",
        "not on n",
        _lattice_answer,
        lambda law: not law.is_spread,
    ),
    Route(
        "contour",
        "losses with a density whose characteristic function dies out",
        "the trapezoid on one line, in balls where rounding counts",
        "1e-12",
        "not on n",
        _line_answer,
        lambda law: law.is_spread,
    ),
    Route(
        "moments",
        "no such line, and δ below every double",
        "Chernoff's bound at the best tilt",
        "an upper bound",
        "a search in t",
        _tiny_answer,
        lambda law: law.is_spread,
    ),
    Route(
        "mesh",
        "atoms off any lattice, mixed losses, a rare large loss",
        "the trapezoid, cut off smoothly with a bound, or the sum over the number of large losses",
        "mostly 1e-8",
        "one FFT, not on n",
        _mesh_answer,
    ),
    Route(
        "prv",
        "losses without moments, anything left",
        "the convolution of losses rounded to a mesh",
        "mostly 1e-3; an upper bound at worst",
        "one FFT, on √n",
        _rounded_answer,
    ),
)


@dataclass(frozen=True)
class Contour(FloatAccountant):
    """The default method: the first row of `ROUTES` that applies answers.

    The answer is an exact formula evaluated in double precision; its bounds count quadrature,
    truncation and rounding, what is estimated of them widened by a factor of four.
    """

    name: str = "contour"
    citations: tuple[str, ...] = ("SPA",)

    @property
    def is_exact(self) -> bool:
        """True: it is the profile, but for rounding."""
        return True

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε), and log(1 − δ(ε)) where δ is not small."""
        heavy = law.count > 1 and not law.domain[1] > 0
        if not heavy:
            return _first_answer(law, epsilon)
        from symdp.methods.far_losses import without_far_losses

        answer = without_far_losses(law, epsilon, _first_answer)
        if answer is not None and answer.kind == "estimate":  # a bound tells more, where it is near
            rounded = _rounded_answer(law, epsilon)
            if _has_lower(rounded) and margin(rounded) < 0.1:
                return replace(rounded, route="prv")
        return answer or _first_answer(law, epsilon)


def _first_answer(law: SumLaw, epsilon: float) -> Answer:
    """Return what the first row gives that applies."""
    for route in ROUTES:
        answer = route.answer(law, epsilon) if route.concerns(law) else None
        if answer is not None:
            return replace(answer, route=answer.route or route.name)
    raise AssertionError("the last row of the table always answers")
