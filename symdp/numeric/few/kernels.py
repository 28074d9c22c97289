"""What is averaged over steps: the payoff of δ, and the mean of a kernel as series on panels.

With t the tilt, e^{tc} E[(1 − e^{c−L})⁺] / M(t) is E_t[g(c − L)], g(u) = e^{tu}(1 − e^{u}) for
u < 0 and 0 else, where t ≥ 0. For −1 < t < 0 the mean of g(u) = e^{tu} min(1, e^u) is that of 1 − δ.
A mean over one more step is a mean of means: nothing but the tilt has to fit all steps.

**Series.** A mean is smooth in c but where a kink of the kernel meets one of the loss's density,
such as an end of its range or a turn. There it may be a root of the distance. In s, with
c = c₀ + (c₁ − c₀) sin² πs/2 between two such places, it is smooth up to both ends: so it is a
Chebyshev series in s, and where that does not settle, as next to other singularities, halves are.
"""

from __future__ import annotations

import math

import numpy as np

from symdp.errors import AccuracyError
from symdp.numeric.elementary import distinct
from symdp.numeric.few.monotone import Kernel, TiltedStep
from symdp.numeric.step import Array

_DEGREE = 24
_LAST = 3  # coefficients that must be small
_SETTLED = 1e-14  # of the largest value: what the last coefficients may be
_ROUNDS = 50  # halvings of a panel
_MOST_PANELS = 1 << 11  # of a series: some seconds
_INSIDE = 1.0 - 1e-4  # of the way to an end: further out dc/ds vanishes, and a slope is rounded
_APART = 1e-13  # relative: kinks that lie closer are one, but for rounding

_POINTS: Array = np.cos(np.pi * (np.arange(_DEGREE) + 0.5) / _DEGREE)
_SHARES: Array = np.sin(0.25 * np.pi * (_POINTS + 1.0)) ** 2
_WEIGHTS: Array = np.full(_DEGREE, 2.0 / _DEGREE)
_WEIGHTS[0] = 1.0 / _DEGREE
_TO_SERIES: Array = np.polynomial.chebyshev.chebvander(_POINTS, _DEGREE - 1) * _WEIGHTS


class Payoff:
    """The payoff g of δ, or that of 1 − δ where the tilt is negative."""

    kinks: Array = np.zeros(1)
    has_roots = False

    def __init__(self, tilt: float) -> None:
        self._tilt = tilt

    def __call__(self, u: Array) -> Array:
        """Return its values."""
        if self._tilt < 0.0:
            exponent = self._tilt * u + np.minimum(u, 0.0)
            return np.asarray(np.exp(exponent))
        below = np.minimum(u, 0.0)
        return np.asarray(-np.exp(self._tilt * below) * np.expm1(below))

    def slope(self, u: Array) -> Array:
        """Return its derivative."""
        if self._tilt < 0.0:
            rate = np.where(u < 0.0, self._tilt + 1.0, self._tilt)
            return np.asarray(rate * self(u))
        below = np.minimum(u, 0.0)
        growth = np.exp(self._tilt * below)
        slope = -growth * (self._tilt * np.expm1(below) + np.exp(below))
        return np.where(u < 0.0, slope, 0.0)


class MeanSeries:
    """E_t[g(c − L)] for all c between two ends, as Chebyshev series on panels."""

    has_roots = True

    def __init__(self, step: TiltedStep, kernel: Kernel, low: float, high: float) -> None:
        self._step = step
        self._kernel = kernel
        met = step.kinks[:, None] + kernel.kinks
        is_inside = (met > low) & (met < high)
        edges = distinct(np.append(met[is_inside], [low, high]))
        size = np.maximum(np.abs(edges[1:]), np.abs(edges[:-1]))
        is_apart = np.diff(edges) > _APART * size
        self.kinks = edges[np.append(True, is_apart)]
        self._lower, self._upper, self._series = self._settled()
        self._last = np.abs(self._series[:, -_LAST:]).max(axis=1)
        self._slopes = np.polynomial.chebyshev.chebder(self._series, axis=1)

    def _settled(self) -> tuple[Array, Array, Array]:
        """Return panels in rising order, and the coefficients of each."""
        lower = self.kinks[:-1]
        upper = self.kinks[1:]
        lowers: list[Array] = []
        uppers: list[Array] = []
        all_series: list[Array] = []
        count = 0
        size = 0.0
        for _ in range(_ROUNDS):
            count += lower.size
            if count > _MOST_PANELS:
                break
            places = lower[:, None] + (upper - lower)[:, None] * _SHARES
            values = self._step.means(self._kernel, places.ravel()).reshape(places.shape)
            size = max(size, float(np.abs(values).max(initial=0.0)))
            series = values @ _TO_SERIES
            last = np.abs(series[:, -_LAST:]).max(axis=1)
            middle = 0.5 * (lower + upper)
            is_shortest = upper - lower <= _APART * np.abs(middle)
            is_good = (last <= _SETTLED * size) | is_shortest
            lowers.append(lower[is_good])
            uppers.append(upper[is_good])
            all_series.append(series[is_good])
            if is_good.all():
                order = np.argsort(np.concatenate(lowers))
                rising = np.concatenate(lowers)[order]
                return rising, np.concatenate(uppers)[order], np.concatenate(all_series)[order]
            bad = ~is_good
            lower = np.concatenate([lower[bad], middle[bad]])
            upper = np.concatenate([middle[bad], upper[bad]])
        raise AccuracyError("a mean of the loss is no short series")

    def error(self, places: Array) -> float:
        """Return how far series are off, relative to themselves, at the worst of several places."""
        values = self(places)
        worst = 0.0
        for place, value in zip(places.tolist(), values.tolist(), strict=True):
            mean = self._step.mean(self._kernel, place)
            if mean.value > 0.0:
                worst = max(worst, (abs(mean.value - value) + mean.error) / mean.value)
        return worst

    def last_coefficients(self, u: Array) -> Array:
        """Return the size of the last coefficients of each place's series."""
        panel, _ = self._positions(np.ravel(u))
        return self._last[panel].reshape(np.shape(u))

    def _positions(self, c: Array) -> tuple[Array, Array]:
        """Return the panel of each place, and 2s − 1 there."""
        index = np.searchsorted(self._lower, c, side="right") - 1
        panel = np.clip(index, 0, self._lower.size - 1)
        lower = self._lower[panel]
        share = (c - lower) / (self._upper[panel] - lower)
        sine = np.sqrt(np.clip(share, 0.0, 1.0))
        return panel, np.arcsin(sine) * (4.0 / math.pi) - 1.0

    def __call__(self, u: Array) -> Array:
        """Return its values."""
        flat = np.ravel(u)
        panel, position = self._positions(flat)
        return _series_values(self._series, panel, position).reshape(np.shape(u))

    def slope(self, u: Array) -> Array:
        """Return its derivative, which is that by s over dc/ds."""
        flat = np.ravel(u)
        panel, position = self._positions(flat)
        position = np.clip(position, -_INSIDE, _INSIDE)
        by_position = _series_values(self._slopes, panel, position)
        length = self._upper[panel] - self._lower[panel]
        # c − c₀ = length · (1 − cos πs)/2, and 2s − 1 is the position.
        change = 0.25 * math.pi * length * np.cos(0.5 * math.pi * position)
        slopes = by_position / change
        return slopes.reshape(np.shape(u))


def _series_values(series: Array, panel: Array, position: Array) -> Array:
    """Return Chebyshev series, each of its own panel, by Clenshaw's recurrence."""
    chosen = series[panel].T
    doubled = 2.0 * position
    value = np.zeros(position.size)
    before = np.zeros(position.size)
    for coefficient in chosen[:0:-1]:
        value, before = doubled * value - before + coefficient, value
    return position * value - before + chosen[0]
