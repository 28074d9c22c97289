"""What is proved of δ and of one tail without any limit theorem, and the interval that it gives.

Errors of limit theorems are proved by moments of the summands of a tilted total loss. Such bounds
grow with the absolute moments, so these are never given too small: |x| has a kink that
a quadrature rule sees only roughly, and |x|, |x|³ are replaced by smooth functions that are larger,
by more than the rule can be wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symdp.methods.moments import Moments
from symdp.methods.series import REMEDY
from symdp.numeric.answer import ROUNDING, Answer
from symdp.numeric.saddle_point import (
    Probe,
    complement_rounding,
    increasing_root,
    log_add_exp,
    log_one_minus_exp,
)
from symdp.tolerances import SUMS_ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_CLOSE = 1e-4  # standard deviations of the best tilt, where the bound is flat
Array = NDArray[np.float64]
# In standard deviations, for nodes that lie up to g = 0.4 of them apart. Errors of a rule at a kink
# are those of Euler and Maclaurin, with f the density there. For |x|³ about f·g⁴/60, while
# (x² + h²)^{3/2} adds 1.5 h² E|x|. For |x|, which is E|x + sN| after blurring by a normal N, about
# f·g²/6 · e^{−2(πs/g)²}, while blurring adds f·s².
_ROUNDED_KINK = 0.05  # h
_BLUR = 0.12  # s
_LEAST_VARIANCE = 1e-80  # below this, powers of it leave the range of doubles
_CLEAR = 1e10  # how far a variance must be above the square of their rounding
_IDENTICAL_CONSTANT = 0.4690  # Shevtsova 2013, identically distributed terms
_INDEPENDENT_CONSTANT = 0.56  # Shevtsova 2010, independent terms


def least_log_delta(law: SumLaw, epsilon: float) -> float:
    """Return a lower bound on log δ that every mechanism has: δ ≥ max(δ∞, 1 − e^{ε+K(−1)})."""
    escaped = law.mass_at_infinity
    bounds = [-math.inf]
    if escaped > 0:
        bounds.append(math.log(escaped) - SUMS_ROUNDED)
    complement = epsilon + min(law.cgf(-1.0), 0.0) + complement_rounding(law)
    bounds.append(log_one_minus_exp(complement))
    return max(bounds)


def proved_answer(law: SumLaw, epsilon: float, low: float, high: float, name: str) -> Answer:
    """Return the answer for log δ in [low, high], within the bounds that need no such method."""
    most = Moments().log_delta(law, epsilon).log_delta
    least = least_log_delta(law, epsilon)
    upper = high
    lower = max(low, least)
    if epsilon < 0:
        # the strip left of the pole adds to 1 − e^{ε+K(−1)}, whose rounding grows with the steps
        log_rounding = epsilon + math.log(complement_rounding(law))
        upper = log_add_exp(upper, log_rounding)
        # as logarithms: next to δ = 1 a difference of the two would lose what 1 − δ is
        share = log_rounding - lower
        lower = lower + math.log1p(-math.exp(share)) if share < 0 else -math.inf
    upper = min(upper, most, 0.0)
    advice = ""
    if high >= most and low <= least:
        advice = (
            f"{name} is out of its regime: its error is larger than delta, which leaves the "
            f"moments bound; {REMEDY}"
        )
    return Answer(upper, min(lower, upper), upper, "bound", advice)


def log_tail(law: SumLaw, epsilon: float, origin: float, *, upper: bool) -> float:
    """Return a bound on log P_t{L > ε}, or for the lower tail on log P_t{L ≤ ε}, at most 0.

    The least of e^{K(t+s) − K(t) − sε} over s > 0 (or s < 0), and of e^{−2(ε − m)²/Σ nᵢτᵢ²} where
    the loss of step i lies in an interval of length τᵢ and m is the mean [EA Thm 1, Prop 4.5].
    """
    lowest_tilt, highest_tilt = law.domain
    sign = 1.0
    end = highest_tilt - origin
    if not upper:
        sign = -1.0
        end = sign * (lowest_tilt - origin)
    mean, variance = (float(x) for x in law.cumulants(origin, 2))
    gap = sign * (epsilon - mean)
    if not (gap > 0 and variance > 0):
        return 0.0
    best = min(0.0, log_hoeffding(law, gap))
    if not end > 0:
        return best
    start = float(law.log_transform(np.asarray([origin]), epsilon)[0])

    def probe(s: float) -> Probe:
        nonlocal best
        t = origin + sign * s
        value = float(law.log_transform(np.asarray([t]), epsilon)[0])
        slack = SUMS_ROUNDED * (1.0 + abs(value) + abs(start))
        best = min(best, value - start + slack)
        first, second = (float(x) for x in law.cumulants(t, 2))
        slope = sign * (first - epsilon)
        newton = -1.0
        if second > 0:
            newton = s - slope / second
        return Probe(slope, _CLOSE * math.sqrt(second), newton)

    first_step = min(gap / variance, 1.0, 0.5 * end)
    increasing_root(probe, end, first_step)
    return best


def log_hoeffding(law: SumLaw, gap: float) -> float:
    """Return −2 gap²/Σ nᵢτᵢ², a bound on the log probability of exceeding the mean by gap > 0."""
    square = law.square_length
    if square > 0:
        return -2.0 * gap * gap / square
    return 0.0


@dataclass(frozen=True, slots=True)
class Summands:
    """Sums over all steps of moments of Xᵢ = Lᵢ − E_t Lᵢ, upper bounds where they are absolute."""

    count: int  # the number of steps, and whether they all have one law
    identical: bool
    shift: float  # e_t Σ Lᵢ − E Σ Lᵢ, and how far off it may be
    uncertainty: float
    variance: float  # Σ E Xᵢ², Σ E Xᵢ³ and Σ E Xᵢ⁴ under the tilted law
    third: float
    fourth: float
    absolute_third: float  # at least Σ E|Xᵢ|³
    absolute_mixed: float  # at least Σ E|Xᵢ| E Xᵢ²

    @property
    def is_spread(self) -> bool:
        """Whether the sum has a variance that its moments can be measured by."""
        return self.variance > _LEAST_VARIANCE

    @property
    def skewness(self) -> float:
        """The third cumulant of the standardised sum."""
        return self.third / (self.variance * math.sqrt(self.variance))

    @property
    def berry_esseen(self) -> float:
        """A proved bound on sup|F − Φ| of the standardised sum (Shevtsova)."""
        if not self.is_spread:
            return math.inf
        constant = _IDENTICAL_CONSTANT if self.identical else _INDEPENDENT_CONSTANT
        return constant * self.absolute_third / (self.variance * math.sqrt(self.variance))


def summands(law: SumLaw, tilt: float) -> Summands:
    """Return the moments of the steps of a composition under P_t ∝ e^{tL}P.

    E|X|³ ≤ √(E X² E X⁴) and E|X| ≤ √(E X²) hold exactly and cap what the rounded kink gives.
    """
    total = np.zeros(7)
    noise = 0.0
    terms = list(law.tilted_terms(tilt))
    for tilted, count in terms:
        weight = tilted.weight
        deviation = tilted.deviation
        spread = ~tilted.nodes.atomic
        square = deviation * deviation
        second = tilted.variance
        fourth = float(np.einsum("i,i->", weight, square * square))
        # single values are summed, not integrated: their kinks are exact
        smooth = np.sqrt(square + _ROUNDED_KINK**2 * second * spread)
        exact = weight * ~spread
        first = float(np.einsum("i,i->", exact, np.abs(deviation)))
        first += _blurred_mean(weight - exact, deviation, second)
        first = min(first, math.sqrt(second))
        third = min(float(np.einsum("i,i->", weight, smooth**3)), math.sqrt(second * fourth))
        noise += count * (float(np.abs(deviation).max()) * ROUNDING) ** 2
        safety = 1.0 + SUMS_ROUNDED + 4.0 * tilted.error
        sums = (
            tilted.shift,
            abs(tilted.shift) * (1e-15 + tilted.error),
            second,
            float(np.einsum("i,i->", weight, square * deviation)),
            fourth * safety,
            third * safety,
            first * second * safety,
        )
        total += count * np.asarray(sums)
    if not total[2] > _CLEAR * noise:
        total[2] = 0.0  # a law that has all but collapsed on one loss: nothing is known of it
    return Summands(law.count, len(terms) == 1, *(float(x) for x in total))


def _blurred_mean(weight: Array, deviation: Array, variance: float) -> float:
    """Return E|X + s√v N| = E[x erf(x/√2c) + c√(2/π) e^{−x²/2c²}], c = s√v."""
    from scipy.special import erf

    blur = _BLUR * math.sqrt(max(variance, _LEAST_VARIANCE))
    u = deviation / (math.sqrt(2.0) * blur)
    # beyond u = 27 the Gaussian is zero in doubles
    inner = np.exp(-(np.minimum(np.abs(u), 27.0) ** 2))
    blurred = deviation * erf(u) + blur * math.sqrt(2.0 / math.pi) * inner
    return float(np.einsum("i,i->", weight, blurred))
