"""Where the contour's integrand is smallest on the real axis; a few digits suffice.

F(t) = K(t) − εt − log|t(1+t)| is convex between neighbouring poles, so Newton's method within a
bracket finds its minimum.  Its place changes the cost of an integral, never the value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb, ctx

from symdp.errors import AccuracyError
from symdp.oracle.law import StepLaw
from symdp.oracle.panels import DivergentError

Steps = Sequence[tuple[StepLaw, int]]

_DIGITS, _OF_SUM = 8.0, 4.0  # digits of K of one step, and of the sum of many
_BITS, _ORDER = 128, 12  # carried, and nodes of a panel: the saddle point decides about costs alone
_SETTLED = 0.2  # of the saddle point's own width
_MOST_TILTS = 200  # tried
_NEAR_END = 1e-4  # of the end of K's domain, relative: closer is not tried


@dataclass(frozen=True)
class Saddle:
    """F near its minimum between two poles."""

    tilt: float
    log_height: float
    curvature: float

    @property
    def log_size(self) -> float:
        """Logarithm of the integral by the first term of its expansion  [SPA (60)]."""
        return self.log_height - math.log(2 * math.pi * self.curvature) / 2


def cumulants(steps: Steps, tilt: float) -> tuple[float, float, float]:
    """K, K′ and K″ of the composition to a few digits."""
    total = [arb(0), arb(0), arb(0)]
    with ctx.workprec(_BITS):
        for law, count in steps:
            digits = max(_DIGITS, math.log10(count) + _OF_SUM)
            own = law.nodes(arb(tilt), digits, arb(0), _ORDER).cumulants()
            total = [sum_so_far + count * k for sum_so_far, k in zip(total, own, strict=True)]
    value, mean, variance = (float(k) for k in total)
    return value, mean, variance


def find_saddle(steps: Steps, epsilon: float, lower: float, upper: float) -> Saddle:
    """Minimise F on (lower, upper), one of (−∞, −1), (−1, 0), (0, ∞).

    Raises
    ------
    DivergentError
        If K is infinite on the whole interval.
    """
    low, high = lower, upper
    tilt = {0.0: 1.0, -1.0: -0.5}.get(lower, -2.0)
    best: Saddle | None = None
    for _ in range(_MOST_TILTS):
        try:
            value, mean, variance = cumulants(steps, tilt)
        except AccuracyError:  # outside the domain of K, which contains [−1, 0], or at its end
            low, high = (low, tilt) if tilt > 0 else (tilt, high)
            if high - low < _NEAR_END * max(abs(low), abs(high)):
                break
            tilt = _between(low, high)
            continue
        slope = mean - epsilon - 1 / tilt - 1 / (1 + tilt)
        curvature = variance + tilt**-2 + (1 + tilt) ** -2
        height = value - epsilon * tilt - math.log(abs(tilt * (1 + tilt)))
        best = Saddle(tilt, height, curvature)
        low, high = (low, tilt) if slope > 0 else (tilt, high)
        is_narrow = high - low < _NEAR_END * max(abs(low), abs(high))
        if is_narrow or abs(slope) < _SETTLED * math.sqrt(curvature):
            return best
        tilt -= slope / curvature
        if not low < tilt < high:
            tilt = _between(low, high)
    if best is None:
        raise DivergentError("the cumulant generating function is infinite at every tilt tried")
    return best


def _between(low: float, high: float) -> float:
    """A tilt inside a bracket, on the scale of the distance from the pole that it touches."""
    if low == 0.0:
        return high / 16
    if high == -1.0:
        return -1.0 + (low + 1.0) / 16
    return (low + high) / 2
