"""Find where the contour's integrand is smallest on the real axis; low precision suffices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb, ctx

from symdp.errors import AccuracyError
from symdp.oracle.law import StepLaw
from symdp.oracle.panels import DivergentError

Steps = Sequence[tuple[StepLaw, int]]

_DIGITS, _BITS = 8.0, 128
_OF_SUM = 4.0  # digits of K of many steps
_INWARDS = 1 / 16  # of a tilt outside the domain of K, while none inside is known
_CLOSE = 0.2  # of the saddle's own width: its place changes cost, not value


@dataclass(frozen=True)
class Saddle:
    """F(t) = K(t) − εt − log|t(1+t)| near its minimum between two poles."""

    tilt: float
    log_height: float
    curvature: float

    @property
    def log_size(self) -> float:
        """Logarithm of the integral by the first term of its expansion  [SPA (60)]."""
        return self.log_height - math.log(2 * math.pi * self.curvature) / 2


@dataclass(frozen=True)
class _Local:
    """The nodes of all steps at one tilt, from which nearby tilts follow.

    Of each step: the scale, the logs of the weights relative to it, the losses and the count.
    """

    tilt: float
    laws: tuple[tuple[float, list[float], list[float], int], ...]

    def cumulants(self, tilt: float) -> tuple[float, float, float, float]:
        """K, K′, K″ of the composition and the largest deviation of one step."""
        shift = tilt - self.tilt
        totals, spread = [0.0, 0.0, 0.0], 0.0
        for height, weights, losses, count in self.laws:
            logs = [w + shift * x for w, x in zip(weights, losses, strict=True)]
            top = max(logs)
            turned = [math.exp(log - top) for log in logs]
            mass = math.fsum(turned)
            mean = math.fsum(w * x for w, x in zip(turned, losses, strict=True)) / mass
            square = (
                math.fsum(w * (x - mean) ** 2 for w, x in zip(turned, losses, strict=True)) / mass
            )
            totals[0] += count * (height + top + math.log(mass))
            totals[1] += count * mean
            totals[2] += count * square
            spread = max(spread, math.sqrt(square))
        return totals[0], totals[1], totals[2], spread

    def exponent(self, tilt: float, epsilon: float) -> tuple[float, float, float, float]:
        """F, F′, F″ and the largest deviation of one step."""
        value, mean, variance, spread = self.cumulants(tilt)
        return (
            value - epsilon * tilt - math.log(abs(tilt * (1 + tilt))),
            mean - epsilon - 1 / tilt - 1 / (1 + tilt),
            variance + tilt**-2 + (1 + tilt) ** -2,
            spread,
        )


def find_saddle(steps: Steps, epsilon: float, lower: float, upper: float) -> Saddle:
    """Minimise F on (lower, upper), one of (−∞, −1), (−1, 0), (0, ∞), on which it is convex.

    Raises
    ------
    DivergentError
        If K is infinite on the whole interval.
    """
    low, high = lower, upper
    tilt = {0.0: 1.0, -1.0: -0.5}.get(lower, -2.0)
    best: Saddle | None = None
    for _ in range(200):
        try:
            local = coarse(steps, tilt)
        except AccuracyError:
            # Outside the domain of K, which contains [−1, 0], or at its end: come back from there.
            low, high = (low, tilt) if tilt > 0 else (tilt, high)
            inner, outer = (low, high) if tilt > 0 else (high, low)
            if abs(outer - inner) < 1e-4 * abs(outer):
                break
            tilt = outer * _INWARDS if inner == 0 else inner + (outer - inner) / 2
            continue
        value, slope, curvature, spread = local.exponent(tilt, epsilon)
        best = Saddle(tilt, value, curvature)
        low, high = (low, tilt) if slope > 0 else (tilt, high)
        narrow = math.isfinite(high - low) and high - low < 1e-3 * min(abs(low), abs(high))
        if narrow or abs(slope) < _CLOSE * math.sqrt(curvature):
            return best
        tilt = _next(local, epsilon, slope=slope, spread=spread, low=low, high=high)
    if best is None:
        raise DivergentError("the cumulant generating function is infinite at every tilt tried")
    return best


def _next(
    local: _Local, epsilon: float, *, slope: float, spread: float, low: float, high: float
) -> float:
    """The zero of F′ if the nodes reach it, else the zero of the local normal model."""
    tilt = local.tilt
    edge = tilt - math.copysign(1 / spread if spread else math.inf, slope)
    edge = min(max(edge, low + (tilt - low) * 1e-3), high - (high - tilt) * 1e-3)
    if math.isfinite(edge) and local.exponent(edge, epsilon)[1] * slope <= 0:
        left, right = min(tilt, edge), max(tilt, edge)
        for _ in range(30):
            middle = (left + right) / 2
            if local.exponent(middle, epsilon)[1] > 0:
                right = middle
            else:
                left = middle
        return (left + right) / 2
    _, mean, variance, _ = local.cumulants(tilt)
    target = _model_root(tilt, mean - epsilon, variance, low, high)
    target = min(max(target, tilt - 4 * abs(tilt) - 1), tilt + 4 * abs(tilt) + 1)
    # Where K′ bends sharply the model overshoots: stay well inside the bracket.
    width = high - low
    return min(max(target, low + 0.1 * width), high - 0.1 * width) if width < math.inf else target


def coarse(steps: Steps, tilt: float) -> _Local:
    """Build cheap nodes of every step at one tilt."""
    laws = []
    with ctx.workprec(_BITS):
        for law, count in steps:
            nodes = law.rough_nodes(arb(tilt), max(_DIGITS, math.log10(count) + _OF_SUM))
            laws.append(
                (
                    float(nodes.height),
                    [_log(w) for w in nodes.weights],
                    [float(x) for x in nodes.losses],
                    count,
                )
            )
    return _Local(tilt, tuple(laws))


def _log(weight: arb) -> float:
    """Return the log of a weight, which may lie far outside the range of doubles."""
    middle = weight.mid()
    return float(middle.log()) if middle > 0 else -math.inf


def _model_root(tilt: float, mean: float, variance: float, low: float, high: float) -> float:
    """Solve mean + variance·(s − tilt) = 1/s + 1/(1+s) on (low, high): the local normal model."""
    low = max(low, min(-1e6, 4 * tilt)) if math.isinf(low) else low
    high = min(high, max(1e6, 4 * tilt)) if math.isinf(high) else high
    for _ in range(80):
        s = (low + high) / 2 if low < 0 else math.sqrt(max(low, high * 1e-30) * high)
        if s in (0.0, -1.0, low, high):
            break
        if mean + variance * (s - tilt) - 1 / s - 1 / (1 + s) > 0:
            high = s
        else:
            low = s
    return (low + high) / 2
