"""The law of a composition's loss on an equidistant grid, and how far a loss reaches for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.law.elementary import Complex
from symdp.law.step import Array

if TYPE_CHECKING:
    from symdp.law.loss import LossLaw
    from symdp.law.total import SumLaw

_UNIT = 1.1e-16  # rounding of a double
_ROUNDED = 1e-6  # of a spacing: a point that lies on the end but for rounding is counted in
_STAGES = 16.0  # roundings of a mass and of a power, beside the log₂ N stages of the transform
_INSIDE = 0.98  # of the way to the end of the domain
_FIRST = 1.0 / 64.0  # of the tilt that is best for a Gaussian loss: far tilts cost new nodes
_NEAR = 0.25  # a tilt that every law with moments can be asked for
_GROWTH, _REFINED = 2.0, (0.6, 0.75, 0.87, 1.15, 1.3, 1.6)  # of tilts tried, and of the best
_TRIALS = 40  # tilts, a factor apart: enough for 12 orders of magnitude


@dataclass(frozen=True)
class Lumps:
    """One step's loss on a mesh: mass[j] at (first + j)·spacing + offset."""

    mass: Array
    first: int
    offset: float


@dataclass(frozen=True)
class GridSum:
    """The total loss: mass[j] at start + j·spacing.

    `floor` bounds what rounding can have changed in any sum of masses with weights at most 1.
    """

    mass: Array
    start: float
    spacing: float
    floor: float

    def payoff(self, epsilon: float, tilt: float, shift: float) -> float:
        """Return Σ c(s) e^{−t(s−ε)} (1 − e^{ε+shift−s})⁺ over the grid."""
        first = math.floor((epsilon + shift - self.start) / self.spacing)
        first = min(max(first, 0), self.mass.size)
        gap = self.start - epsilon + self.spacing * np.arange(first, self.mass.size)
        weight = -np.expm1(np.minimum(shift - gap, 0.0))
        if tilt:
            weight *= np.exp(-tilt * gap)
        return float(self.mass[first:] @ weight)


def grid_sum(
    steps: Sequence[tuple[Lumps, int]], spacing: float, points: int, lowest: float
) -> GridSum:
    """Return the convolution power modulo points·spacing, read from `lowest` upwards.

    The transform only knows values modulo the grid's length, so that the grid may lie anywhere;
    what falls outside of it appears inside, on the other end.
    """
    product: Complex | None = None
    shift, count = 0.0, 0
    for lumps, copies in steps:
        place = (lumps.first + np.arange(lumps.mass.size)) % points
        folded = np.bincount(place, lumps.mass, points)
        power = _power(np.fft.rfft(folded), copies)
        product = power if product is None else product * power
        shift += copies * lumps.offset
        count += copies
    assert product is not None
    mass = np.fft.irfft(product, points)
    # A grid that is meant to begin at `lowest` must not miss it by rounding.
    first = math.ceil((lowest - shift) / spacing - _ROUNDED)
    mass = np.roll(mass, -(first % points))
    # |error of F^k| ≤ k|F|^{k−1}·rounding at every frequency; Parseval and Cauchy sum it up.
    size = math.sqrt(points * float(mass @ mass))
    floor = _UNIT * (_STAGES + math.log2(points)) * (count + 1.0) * size
    return GridSum(mass, shift + first * spacing, spacing, floor)


def _power(base: NDArray[np.complex128], exponent: int) -> Complex:
    """Return the elementwise power by squaring, whose rounding grows like the exponent."""
    result: Complex | None = None
    while True:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        base = base * base


def reach(law: SumLaw, tilt: float, log_share: float, upper: bool) -> float:
    """Return b with P_t(L > b) ≤ e^log_share, or P_t(L < b) where `upper` is false.

    b = min_s (K(t + s) − K(t) − log_share)/s over a few s > 0, every one of which is proved
    [FA 7.2]; the range of the loss bounds it too.

    Raises
    ------
    AccuracyError
        If neither moments nor a range bound the loss on that side.
    """
    sign = 1.0 if upper else -1.0
    base = law.cgf(tilt)
    best = _least(
        law, tilt, log_share, sign, lambda s: (_cgf(law, tilt + sign * s) - base - log_share) / s
    )
    best = min(best, sign * law.loss_bounds[1 if upper else 0])
    if not math.isfinite(best):
        raise AccuracyError(
            "no moment that bounds the tail of the privacy loss was found, so no grid is chosen; "
            "use the method contour"
        )
    return sign * best


def log_beyond(law: SumLaw, tilt: float, place: float, upper: bool) -> float:
    """Return a bound on log P_t(L > place), or log P_t(L < place), by Chernoff's inequality."""
    sign = 1.0 if upper else -1.0
    if sign * place >= sign * law.loss_bounds[1 if upper else 0]:
        return -math.inf
    base = law.cgf(tilt)
    mean, variance = (float(v) for v in law.cumulants(tilt, 2))
    gap = sign * (place - mean)
    if gap <= 0 or variance <= 0:
        return 0.0
    likely = -0.5 * gap * gap / variance
    return min(
        _least(
            law,
            tilt,
            likely,
            sign,
            lambda s: _cgf(law, tilt + sign * s) - base - s * sign * place,
        ),
        0.0,
    )


def step_beyond(part: LossLaw, place: float) -> float:
    """Return P(|L| > place) of one step's finite loss."""
    nodes = part.base
    return float(nodes.weight[np.abs(nodes.loss) > place].sum())


def _cgf(law: SumLaw, tilt: float) -> float:
    """Return K(t), ∞ where it cannot be evaluated: farther tilts have even fewer moments."""
    try:
        return law.cgf(tilt)
    except AccuracyError:
        return math.inf


def _least(
    law: SumLaw, tilt: float, log_share: float, sign: float, bound: Callable[[float], float]
) -> float:
    """Return the least value of a bound that falls and then rises with the tilt's distance."""
    variance = float(law.cumulants(tilt, 2)[1])
    if variance <= 0:
        return math.inf
    end = law.domain[1] - tilt if sign > 0 else tilt - law.domain[0]
    if not end > 0:
        return math.inf
    s = min(_FIRST * math.sqrt(-2.0 * log_share / variance), 0.01 * end, _NEAR)
    best, place = math.inf, s
    for _ in range(_TRIALS):
        value = bound(s)
        if value >= best:
            break
        best, place = value, s
        if s >= _INSIDE * end:
            break
        s = min(_GROWTH * s, _INSIDE * end)
    tilts = (factor * place for factor in _REFINED)
    return min([best, *(bound(s) for s in tilts if s < _INSIDE * end)])
