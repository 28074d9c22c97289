"""A privacy loss as weighted points, in NumPy: for mechanisms whose K has no closed form."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from symdp.emit.standalone.runtime.saddlepoint import _TooFar

# ---- emitted from here on ----


class _NodeLaw:
    """K(t) = log sum_j p_j exp(t l_j), the l_j given as distances from their mean.

    n steps multiply every rounding error, so n mean - epsilon is formed exactly and K - t mean is
    built from e^x - 1 - x, which is accurate relative to itself.
    """

    def __init__(
        self,
        count: int,
        centred: Any,
        log_weight: Any,
        mean: tuple[float, float],
        facts: tuple[float, tuple[float, float], tuple[float, float], tuple[float, float]],
    ) -> None:
        self.count = count
        self._centred, self._log_weight = centred, log_weight
        self._weight = np.exp(log_weight)
        self._mean = Fraction(mean[0]) + Fraction(mean[1])
        self.log_finite_mass, self.domain, self.loss_range, self._tilts = facts

    def exponent(self, tilt: float, order: int, epsilon: float) -> list[float]:
        if not self._tilts[0] <= tilt <= self._tilts[1]:
            raise _TooFar
        height = self._log_weight + tilt * self._centred
        weight = np.exp(height - height.max())
        weight /= weight.sum()
        shift = float(weight @ self._centred)
        deviation = self._centred - shift
        residue = float(weight @ deviation)
        deviation = deviation - residue
        moments, power = [1.0, 0.0], weight * deviation
        for _ in range(2, order + 1):
            power = power * deviation
            moments.append(float(power.sum()))
        cumulants = [0.0, shift + residue]
        for j in range(2, order + 1):
            lower = math.fsum(
                math.comb(j - 1, i - 1) * cumulants[i] * moments[j - i] for i in range(2, j - 1)
            )
            cumulants.append(moments[j] - lower)
        drift = float(self.count * self._mean - Fraction(epsilon))
        values = [self.count * cumulant for cumulant in cumulants]
        values[0] = tilt * drift + self.count * self._excess(tilt, height)
        values[1] += drift
        return values[: order + 1]

    def _excess(self, tilt: float, height: Any) -> float:
        """Return K(t) - t mean."""
        top = float(height.max())
        if top > 30.0:
            return top + math.log(float(np.exp(height - top).sum()))
        x = tilt * self._centred
        near = self._weight * _exponential_remainder(np.minimum(x, 1.0))
        far = np.exp(height) - self._weight * (1.0 + x)
        ratio = math.fsum(np.where(x < 1.0, near, far).tolist())
        return math.log1p(ratio / math.exp(self.log_finite_mass)) + self.log_finite_mass


def _exponential_remainder(x: Any) -> Any:
    """Return e^x - 1 - x = 2 sinh(x/2)^2 + (sinh x - x), the last part by its series near 0."""
    small = np.clip(x, -0.5, 0.5)
    square = small * small
    series = 1.0 + square / 210.0
    for divisor in (156.0, 110.0, 72.0, 42.0, 20.0):
        series = 1.0 + series * (square / divisor)
    half = np.sinh(0.5 * small)
    near = 2.0 * half * half + small * square * series / 6.0
    return np.where(np.abs(x) < 0.5, near, np.expm1(x) - x)
