"""Moments of the summands of a tilted total loss, as errors of limit theorems are proved by them.

Such bounds grow with the absolute moments, so these are never given too small: |x| has a kink that
a quadrature rule sees only roughly, and |x|, |x|³ are replaced by smooth functions that are larger,
by more than the rule can be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symdp.numeric.accuracy import ROUNDING

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

Array = NDArray[np.float64]

# In standard deviations, for nodes that lie up to g = 0.4 of them apart. Errors of a rule at a kink
# are those of Euler and Maclaurin, with f the density there. For |x|³ about f·g⁴/60, while
# (x² + h²)^{3/2} adds 1.5 h² E|x|. For |x|, which is E|x + sN| after blurring by a normal N, about
# f·g²/6 · e^{−2(πs/g)²}, while blurring adds f·s².
_ROUNDED_KINK = 0.05  # h
_BLUR = 0.12  # s
_LEAST_VARIANCE = 1e-80  # below this, powers of it leave the range of doubles
SUM_ROUNDING = 1e-12  # relative: more than sums over the nodes are rounded
_CLEAR = 1e10  # how far a variance must be above the square of their rounding

IDENTICAL_CONSTANT = 0.4690  # Shevtsova 2013, identically distributed terms
INDEPENDENT_CONSTANT = 0.56  # Shevtsova 2010, independent terms


@dataclass(frozen=True, slots=True)
class Summands:
    """Sums over all steps of moments of Xᵢ = Lᵢ − E_t Lᵢ, upper bounds where they are absolute.

    Attributes
    ----------
    count, identical
        the number of steps, and whether they all have one law.
    shift, uncertainty
        E_t Σ Lᵢ − E Σ Lᵢ, and how far off it may be.
    variance, third, fourth
        Σ E Xᵢ², Σ E Xᵢ³ and Σ E Xᵢ⁴ under the tilted law.
    absolute_third
        at least Σ E|Xᵢ|³.
    absolute_mixed
        at least Σ E|Xᵢ| E Xᵢ².
    """

    count: int
    identical: bool
    shift: float
    uncertainty: float
    variance: float
    third: float
    fourth: float
    absolute_third: float
    absolute_mixed: float

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
        constant = IDENTICAL_CONSTANT if self.identical else INDEPENDENT_CONSTANT
        return constant * self.absolute_third / (self.variance * math.sqrt(self.variance))


def summands(law: SumLaw, tilt: float) -> Summands:
    """Return the moments of the steps of a composition under P_t ∝ e^{tL}P.

    E|X|³ ≤ √(E X² E X⁴) and E|X| ≤ √(E X²) hold exactly and cap what the rounded kink gives.

    Parameters
    ----------
    law, tilt
        the total privacy loss, and a tilt of its domain.
    """
    total = np.zeros(7)
    noise, distinct = 0.0, 0
    for some in step_rows(law, tilt):
        weight, deviation, counts = some.weight, some.deviation, some.counts
        square = deviation * deviation
        second, fourth = some.variances, np.einsum("ij,ij->i", weight, square * square)
        # single values are summed, not integrated: their kinks are exact
        smooth = np.sqrt(square + _ROUNDED_KINK**2 * second[:, None] * some.spread)
        exact = weight * ~some.spread
        first = np.einsum("ij,ij->i", exact, np.abs(deviation))
        first += _blurred_mean(weight - exact, deviation, second)
        first = np.minimum(first, np.sqrt(second))
        third = np.minimum(np.einsum("ij,ij->i", weight, smooth**3), np.sqrt(second * fourth))
        noise += float(counts @ (np.abs(deviation).max(axis=1) * ROUNDING) ** 2)
        safety = 1.0 + SUM_ROUNDING + 4.0 * some.error
        sums = np.asarray(
            [
                some.shifts,
                np.abs(some.shifts) * (1e-15 + some.error),
                second,
                np.einsum("ij,ij->i", weight, square * deviation),
                fourth * safety,
                third * safety,
                first * second * safety,
            ]
        )
        total += sums @ counts
        distinct += counts.size
    if not total[2] > _CLEAR * noise:
        total[2] = 0.0  # a law that has all but collapsed on one loss: nothing is known of it
    return Summands(law.count, distinct == 1, *(float(x) for x in total))


@dataclass(frozen=True, slots=True)
class StepRows:
    """Some steps under P_t, one a row: weights, ℓ − E_t L, what is no atom, and sums of each."""

    weight: Array
    deviation: Array
    spread: NDArray[np.bool_]
    shifts: Array
    variances: Array
    counts: Array
    error: float


def step_rows(law: SumLaw, tilt: float) -> Iterator[StepRows]:
    """Yield all distinct steps under P_t, many of one formula as one array.

    Parameters
    ----------
    law, tilt
        the total privacy loss, and a tilt of its domain.
    """
    for tilted, count in law.tilted_terms(tilt):
        shift, variance, once = np.asarray([[tilted.shift], [tilted.variance], [count]])
        weight, deviation = tilted.weight[None], tilted.deviation[None]
        spread = ~tilted.nodes.atomic[None]
        yield StepRows(weight, deviation, spread, shift, variance, once, tilted.error)


def _blurred_mean(weight: Array, deviation: Array, variances: Array) -> Array:
    """Return E|X + s√v N| = E[x erf(x/√2c) + c√(2/π) e^{−x²/2c²}], c = s√v, of every row."""
    from scipy.special import erf

    blur = _BLUR * np.sqrt(np.maximum(variances, _LEAST_VARIANCE))[:, None]
    u = deviation / (math.sqrt(2.0) * blur)
    # beyond u = 27 the Gaussian is zero in doubles
    inner = np.exp(-(np.minimum(np.abs(u), 27.0) ** 2))
    blurred = deviation * erf(u) + blur * math.sqrt(2.0 / math.pi) * inner
    return np.asarray(np.einsum("ij,ij->i", weight, blurred))
