"""The moments accountant: Chernoff bounds on δ, plain, tightened, and with the variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.saddle_point import (
    Strip,
    golden_section,
    log_add_exp,
    log_moments_bound,
    saddle_point,
)
from symdp.tolerances import SUMS_ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_NEAR = 0.05  # standard deviations: the saddle point only begins the search
_WIDTHS = (0.25, 3.0)  # of the saddle point's tilt, where the best one is looked for
# sections of the two searches: any place gives a bound
_OUTER = 16
_INNER = 20


@dataclass(frozen=True)
class Moments(FloatAccountant):
    """δ ≤ min_t e^{K(t) − εt} t^t/(1+t)^{1+t} [SPA (43)], or without the factor [SPA (40)].

    The factor is the largest value of (1 − e^{−x})e^{−tx} on x > 0; without it the bound is the
    moments accountant's first form, `plain`. Both are proved for every tilt, and both also bound
    the integral left of the pole at −1, so that δ near 1 − e^ε is bounded as tightly for ε < 0.

    Parameters
    ----------
    plain
        leave the factor out.

    Examples
    --------
    >>> Moments().name, Moments(plain=True).name
    ('moments', 'moments-plain')
    """

    plain: bool = False

    @property
    def name(self) -> str:
        """The method's name."""
        if self.plain:
            return "moments-plain"
        return "moments"

    @property
    def citations(self) -> tuple[str, ...]:
        """What the method rests on."""
        if self.plain:
            return ("SPA (40)",)
        return ("SPA (43)",)

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the bound at one ε, of kind "bound"; it never exceeds δ = 1."""
        best = log_moments_bound(law, epsilon, plain=self.plain)
        return Answer(best, None, best, "bound")


def log_of(value: float) -> float:
    """Return the logarithm of a number, −∞ where it is not above 0."""
    if value > 0:
        return math.log(value)
    return -math.inf


def log_with_escaped(law: SumLaw, finite: float) -> float:
    """Return log δ where that of the finite losses is given, and infinite ones add to it."""
    return log_of(law.mass_at_infinity + math.exp(law.log_finite_mass) * finite)


def proved_instead(law: SumLaw, epsilon: float, reason: str) -> Answer:
    """Return the interval [0, moments bound] where an estimate, below 0 or above 1, is no δ."""
    bound = Moments().log_delta(law, epsilon)
    if bound.kind == "exact":
        return bound
    return Answer(
        bound.log_delta, -math.inf, bound.log_upper, "bound", f"{reason}; this is the moments bound"
    )


@dataclass(frozen=True)
class VarianceBound(FloatAccountant):
    """δ ≤ min_{t,a} e^{K(t)−εt} (v + (m + a)²) max_{x>0} (1 − e^{−x})e^{−tx}/(x + a)², a > 0.

    m = K′(t) − ε and v = K″(t) are mean and variance of L − ε under P_t. The parabola
    c(x + a)² with the smallest c that keeps it above (1 − e^{−x})⁺e^{−tx} for x > 0 is above it
    everywhere, and its mean is c(v + (m + a)²). It touches at the x < log(1 + 1/t) with
    1/(eˣ − 1) = t + 2/(x + a), which is unique, so that a follows from x. a → ∞ gives the tightened
    moments bound [SPA (43)]; this one, in the place of [SPA (46)], is never above it.

    Examples
    --------
    >>> VarianceBound().name
    'moments-variance'
    """

    name: str = "moments-variance"
    citations: tuple[str, ...] = ("SPA (43)", "SPA (46)")

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the bound at one ε, of kind "bound"; it never exceeds the moments bound."""
        best = Moments().log_delta(law, epsilon).log_delta
        saddle = saddle_point(law, epsilon, Strip.RIGHT, settled=_NEAR)
        if saddle is not None:
            _, least = golden_section(
                lambda u: _log_parabola_bound(law, epsilon, math.exp(u)),
                math.log(_WIDTHS[0] * saddle.tilt),
                math.log(_WIDTHS[1] * saddle.tilt),
                _OUTER,
            )
            best = min(best, log_add_exp(law.log_mass_at_infinity, least))
        return Answer(best, None, best, "bound")


def _log_parabola_bound(law: SumLaw, epsilon: float, tilt: float) -> float:
    """Return the log of the least bound by a parabola at one tilt, inf where none is evaluated."""
    if not tilt < law.domain[1]:
        return math.inf
    try:
        value = law.cgf(tilt)
        mean, variance = (float(c) for c in law.cumulants(tilt, 2))
    except AccuracyError:
        return math.inf  # too far out to be evaluated: as good as outside
    gap = mean - epsilon
    top = math.log1p(1.0 / tilt)

    def above(share: float) -> float:
        x = top * share
        # where the parabola touches, (x + a)/2
        half = 1.0 / (1.0 / math.expm1(x) - tilt)
        a = 2.0 * half - x
        if not a > 0:
            return math.inf
        payoff = math.log(-math.expm1(-x)) - tilt * x
        return payoff - 2.0 * math.log(2.0 * half) + math.log(variance + (gap + a) ** 2)

    _, least = golden_section(above, 0.0, 1.0, _INNER)
    return least + value - epsilon * tilt + SUMS_ROUNDED * (1.0 + abs(value) + abs(epsilon * tilt))
