"""The law of a composition's loss on an equidistant grid: FFT, powers, one inverse FFT."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symdp.law.elementary import Complex
from symdp.law.step import Array

_UNIT = 1.1e-16  # rounding of a double
_ROUNDED = 1e-6  # of a spacing: a point that lies on the end but for rounding is counted in
_STAGES = 16.0  # roundings of a mass and of a power, beside the log₂ N stages of the transform


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
