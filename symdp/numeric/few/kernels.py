"""What is averaged over steps: the payoff of δ, and the mean of a kernel as series on panels.

With t the tilt, e^{tc} E[(1 − e^{c−L})⁺] / M(t) is E_t[g(c − L)], where g(u) = e^{tu}(1 − e^u) for
u < 0 and 0 else. For −1 < t < 0 it is 1 − δ whose g is e^{tu} min(1, e^u). A mean over one more
step is a mean of means: nothing but the tilt has to fit all steps.

**Series.** A mean is smooth in c but where a kink of the kernel meets one of the loss's density,
such as an end of its range or a turn. There it may be a root of the distance. In s, with
c = c₀ + (c₁ − c₀) sin² πs/2 between two such places, it is smooth up to both ends: so it is a
Chebyshev series in s, and where that does not settle, as next to other singularities, halves are.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from symdp.numeric.answer import MOST_WORK, SETTLED
from symdp.numeric.elementary import CHUNK, distinct
from symdp.numeric.few.monotone import Kernel, TiltedStep, UnsettledError
from symdp.numeric.step import Array, Index
from symdp.tolerances import NO_SHARE, ROUNDED, UNIT


@cache
def _chebyshev() -> tuple[Array, Array]:
    """Return places of a panel as shares of it, and from values there the series in 2s − 1."""
    degree = 24
    points = np.cos(np.pi * (np.arange(degree) + 0.5) / degree)
    shares = np.sin(0.25 * np.pi * (points + 1.0)) ** 2
    weights = np.full(degree, 2.0 / degree)
    weights[0] = 1.0 / degree
    return shares, np.polynomial.chebyshev.chebvander(points, degree - 1) * weights


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


class SlopeOf:
    """The derivative of a kernel, as one."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.kinks = kernel.kinks
        self.has_roots = kernel.has_roots

    def __call__(self, u: Array) -> Array:
        """Return its values."""
        return self._kernel.slope(u)

    def slope(self, u: Array) -> Array:
        """Refuse: nothing asks for a second derivative."""
        raise NotImplementedError


class MeanSeries:
    """E_t[g(c − L)] for all c between two ends, as Chebyshev series on panels.

    To within `enough` of the largest value of each panel if that is given, or rounding of all.
    """

    has_roots = True

    def __init__(
        self, step: TiltedStep, kernel: Kernel, low: float, high: float, enough: float = 0.0
    ) -> None:
        self._step = step
        self._enough = enough
        self._kernel = kernel
        met = step.kinks[:, None] + kernel.kinks
        is_inside = (met > low) & (met < high)
        edges = distinct(np.append(met[is_inside], [low, high]))
        size = np.maximum(np.abs(edges[1:]), np.abs(edges[:-1]))
        is_apart = np.diff(edges) > SETTLED * size  # others are one, but for rounding
        self.kinks = edges[np.append(True, is_apart)]
        self._lower, self._upper, self._series = self._settled_series()
        slopes = np.polynomial.chebyshev.chebder(self._series, axis=1)
        self._slopes = np.asarray(slopes, dtype=np.float64)
        self._error = _last_coefficients(self._series) + self._changes()
        self._error += self._lacking(self._lower, self._upper)

    def _settled_series(self) -> tuple[Array, Array, Array]:
        """Return panels in rising order, and the coefficients of each."""
        lower = self.kinks[:-1]
        upper = self.kinks[1:]
        lowers: list[Array] = []
        uppers: list[Array] = []
        all_series: list[Array] = []
        shares, to_series = _chebyshev()
        node_count = 1 + sum(panels.loss.size for panels in self._step.panels)
        most_panels = MOST_WORK // (node_count * shares.size)
        # The weights are exponentials of the tilt times losses, whose rounding no panel removes.
        exponent = abs(self._step.tilt) * float(np.abs(self._step.kinks).max())
        tolerance = 10.0 * ROUNDED + 2.0 * UNIT * exponent
        count = 0
        size = 0.0
        most: Array | float
        while count + lower.size <= most_panels:
            count += lower.size
            places = lower[:, None] + (upper - lower)[:, None] * shares
            values = self._step.means(self._kernel, places.ravel()).reshape(places.shape)
            largest = np.abs(values).max(axis=1, initial=0.0)
            size = max(size, float(largest.max(initial=0.0)))
            most = tolerance * size
            if self._enough > 0.0:
                most = np.maximum(self._enough * largest, NO_SHARE * size)
                most = np.maximum(most, tolerance * largest)
                most = np.maximum(most, 4.0 * self._lacking(lower, upper))
            series = values @ to_series
            middle = 0.5 * (lower + upper)
            is_shortest = upper - lower <= SETTLED * np.abs(middle)
            is_good = (_last_coefficients(series) <= most) | is_shortest
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
        raise UnsettledError("a mean of the loss is no short series")

    def _lacking(self, lower: Array, upper: Array) -> Array:
        """Return about what the kernel's own errors are in the middle of panels."""
        kernel = self._kernel
        if not isinstance(kernel, MeanSeries):
            return np.zeros(lower.size)
        middles = (0.5 * (lower + upper)).tolist()
        return np.asarray([self._step.rough_mean(kernel.error, middle) for middle in middles])

    def error(self, u: Array) -> Array:
        """Return how far the series of each place is off."""
        panel, _ = self._positions(np.ravel(u))
        return np.asarray(self._error[panel].reshape(np.shape(u)))

    def _changes(self) -> Array:
        """Return how far each series is from the mean on finer panels, at two places of it."""
        length = self._upper - self._lower
        shares = np.asarray([0.317, 0.883])
        places = self._lower[:, None] + length[:, None] * shares
        exact = self._step.halved().means(self._kernel, places.ravel())
        changes = np.abs(self(places) - exact.reshape(places.shape))
        return np.asarray(changes.max(axis=1))

    def _positions(self, c: Array) -> tuple[Index, Array]:
        """Return the panel of each place, and 2s − 1 there."""
        index = np.searchsorted(self._lower, c, side="right") - 1
        panel = np.clip(index, 0, self._lower.size - 1)
        lower = self._lower[panel]
        share = (c - lower) / (self._upper[panel] - lower)
        sine = np.sqrt(np.clip(share, 0.0, 1.0))
        position = np.arcsin(sine) * (4.0 / math.pi) - 1.0
        return panel, np.asarray(position, dtype=np.float64)

    def __call__(self, u: Array) -> Array:
        """Return its values."""
        flat = np.ravel(u)
        panel, position = self._positions(flat)
        values = _series_values(self._series, panel, position)
        return np.asarray(values.reshape(np.shape(u)))

    def slope(self, u: Array) -> Array:
        """Return its derivative, which is that by s over dc/ds."""
        flat = np.ravel(u)
        panel, position = self._positions(flat)
        farthest = 1.0 - 1e-4  # nearer to an end dc/ds vanishes, and a quotient is rounded
        inside = np.asarray(np.clip(position, -farthest, farthest))
        by_position = _series_values(self._slopes, panel, inside)
        length = self._upper[panel] - self._lower[panel]
        # c − c₀ = length · (1 − cos πs)/2, and 2s − 1 is the position.
        change = 0.25 * math.pi * length * np.cos(0.5 * math.pi * inside)
        slopes = by_position / change
        return np.asarray(slopes.reshape(np.shape(u)))


def _last_coefficients(series: Array) -> Array:
    """Return the size of the last coefficients of each series, which tells what it lacks."""
    return np.asarray(np.abs(series[:, -3:]).max(axis=1))


def _series_values(series: Array, panel: Index, position: Array) -> Array:
    """Return Chebyshev series, each of its own panel, by Clenshaw's recurrence."""
    by_degree = np.ascontiguousarray(series.T)
    values = np.empty(position.size)
    at_once = CHUNK // 4
    for first in range(0, position.size, at_once):
        chunk = slice(first, first + at_once)
        values[chunk] = _clenshaw(by_degree[:, panel[chunk]], position[chunk])
    return values


def _clenshaw(coefficients: Array, position: Array) -> Array:
    """Return Σ cₖ Tₖ at each place, a row of coefficients for each degree."""
    doubled = 2.0 * position
    value = np.zeros(position.size)
    before = np.zeros(position.size)
    following = np.empty(position.size)
    for coefficient in coefficients[:0:-1]:
        np.multiply(doubled, value, out=following)
        following -= before
        following += coefficient
        before, value, following = value, following, before
    return np.asarray(position * value - before + coefficients[0])
