"""A density known by its logarithm: Chebyshev series on adjoining panels, refined to fit.

A panel holds log f at 16 Chebyshev points and is halved until the last coefficients of its series
are rounding: a series that decays like ρ^{−k} then errs by about its last coefficient. What halving
does not make smaller is noise of log f itself, which is kept with the panel. Integrals are sums of
Gauss rules of 16 nodes over cells in which log f moves by at most 6: such a rule errs by less
than 1e-15 for e^{6u}, |u| ≤ ½, and hardly more for anything as smooth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.exact.accuracy import FEW_NODES, MOST_NODES, NEGLIGIBLE, ROUNDED, ROUNDING, SETTLED
from symdp.law.probe import NODES, WEIGHTS
from symdp.law.step import Array, Index

_DEGREE = 15  # of a panel's series
_MOST_PANELS = 1500  # 24 000 values of a density
_NOISIEST = 1e-11  # absolute, of log f: more than this is no noise but a series that does not fit
_VARIATION = 6.0  # of log f over one cell of a quadrature rule
_NOTHING = -1e9  # the logarithm of a density that is 0

# Chebyshev points are cosines of these, and a cosine transform makes values coefficients.
_ANGLES = (np.arange(_DEGREE + 1) + 0.5) * np.pi / (_DEGREE + 1)
_TRANSFORM = np.cos(np.outer(np.arange(_DEGREE + 1), _ANGLES)) * 2.0 / (_DEGREE + 1)  # of a panel
_TRANSFORM[0] *= 0.5


@dataclass(frozen=True)
class LogDensity:
    """log f between edges[0] and edges[-1]; f vanishes outside.

    `coefficients` has one column of Chebyshev coefficients for each panel, and `noise` is what
    rounding was seen to add to log f there beyond what it adds to any logarithm.
    """

    edges: Array
    coefficients: Array
    noise: Array

    def __call__(self, s: Array) -> Array:
        """Return log f; a place beyond the ends by rounding only counts as the end."""
        every = s.ravel()
        return self.within(self.panel(every), every[:, None]).reshape(s.shape)

    def panel(self, s: Array) -> Index:
        """Return the panels of some places, the nearest one of those beyond the ends."""
        panel = np.searchsorted(self.edges, s, side="right") - 1
        return np.asarray(np.clip(panel, 0, self.edges.size - 2))

    def within(self, panel: Index, s: Array) -> Array:
        """Return log f at rows of places, each row in a panel that is known."""
        value = np.empty_like(s)
        rows = max(1, 4 * FEW_NODES // s.shape[1])  # what a processor's cache holds
        for start in range(0, panel.size, rows):
            part = slice(start, start + rows)
            here, places = panel[part], s[part]
            low, high = self.edges[here, None], self.edges[here + 1, None]
            u = (2.0 * places - low - high) / (high - low)
            found = self._clenshaw(np.clip(u, -1.0, 1.0), here)
            value[part] = np.where(np.abs(u) <= 1.0 + 1e-9, found, -np.inf)
        return value

    def _clenshaw(self, u: Array, panel: Index) -> Array:
        coefficients = self.coefficients[:, panel, None]
        double, second = u + u, np.zeros_like(u)
        first = np.broadcast_to(coefficients[_DEGREE], u.shape).copy()
        product = np.empty_like(u)
        for k in range(_DEGREE - 1, 0, -1):  # in place: a temporary costs as much as a sum
            np.multiply(double, first, out=product)
            product -= second
            product += coefficients[k]
            second, first, product = first, product, second
        return np.asarray(u * first - second + coefficients[0])

    def noise_at(self, s: Array) -> Array:
        """Return the noise of log f at places within the ends."""
        return np.asarray(self.noise[self.panel(s)])

    @cached_property
    def fine_edges(self) -> Array:
        """Edges between which log f moves by no more than a rule of 16 points resolves."""
        return self._cells(0.0, self.edges[0], self.edges[-1])

    def _cells(self, tilt: float, low: float, high: float) -> Array:
        """Return edges from `low` to `high` between which log f and tilt·s move little."""
        inner = self.edges[(self.edges > low) & (self.edges < high)]
        cuts = np.concatenate([[low], inner, [high]])
        lower, upper = cuts[:-1], cuts[1:]
        panel = self.panel(0.5 * (lower + upper))
        share = (upper - lower) / (self.edges[panel + 1] - self.edges[panel])
        # The sum of k²|coefficient| bounds the slope, that of their sizes half of the movement.
        sizes = np.abs(self.coefficients[1:])
        steep = np.arange(1, _DEGREE + 1) ** 2 @ sizes
        movement = 2.0 * np.minimum(sizes.sum(axis=0)[panel], (steep[panel] * share))
        movement += abs(tilt) * (upper - lower)
        parts = np.maximum(np.ceil(movement / _VARIATION), 1.0)
        if not parts.sum() < MOST_NODES:
            raise AccuracyError("the density of the loss falls too steeply to integrate")
        parts = parts.astype(int)
        which = np.repeat(np.arange(parts.size), parts)
        place = np.arange(which.size) - np.repeat(np.cumsum(parts) - parts, parts)
        return np.append(lower[which] + (upper - lower)[which] * place / parts[which], high)

    def rule(self, low: float, high: float) -> tuple[Array, Array]:
        """Return places and logs of weights that integrate f from `low` to `high`.

        Other factors may move by a few units over a length of 1.
        """
        low, high = max(low, float(self.edges[0])), min(high, float(self.edges[-1]))
        if not low < high:
            return np.empty(0), np.empty(0)
        edges = np.unique(self._cells(1.0, low, high))
        half = 0.5 * np.diff(edges)
        s = ((0.5 * (edges[1:] + edges[:-1]))[:, None] + half[:, None] * NODES).ravel()
        return s, self(s) + np.log((half[:, None] * WEIGHTS).ravel())

    def mass_and_mean(self) -> tuple[float, float]:
        """Return ∫ f(s) ds, and the mean of s."""
        s, log_weight = self.rule(-np.inf, np.inf)
        weight = np.exp(log_weight)
        mass = float(weight.sum())
        guess = float(weight @ s) / mass
        return mass, guess + float(weight @ (s - guess)) / mass

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        return float(self.edges[0]), float(self.edges[-1])

    @property
    def size(self) -> float:
        """The largest mean of |log f| over a panel where f is not 0."""
        means = np.abs(self.coefficients[0])
        return float(means[means < -0.5 * _NOTHING].max(initial=0.0))

    def mended(self, constant: float, distance: float) -> LogDensity:
        """Return the density of s + distance, times e^constant."""
        coefficients = self.coefficients.copy()
        coefficients[0] += constant
        return replace(self, edges=self.edges + distance, coefficients=coefficients)


def interpolate(
    function: Callable[[Array], Array],
    edges: Array,
    negligible: Callable[[Array, Array, Array], NDArray[np.bool_]],
) -> LogDensity:
    """Return log f from samples, panels halved until their series end in rounding noise.

    Parameters
    ----------
    function
        log f at given places.
    edges
        First panels; f must be smooth between the places where it is not, which must be edges, and
        so must the ends of stretches where it is 0.
    negligible
        Tells from lower ends, upper ends and the logs of their masses, or more, which panels
        matter so little that any fit will do.

    Raises
    ------
    AccuracyError
        If the panels do not settle.
    """
    lower, upper = edges[:-1], edges[1:]
    before = np.full(lower.size, np.inf)  # the tails of the panels that these are halves of
    found: list[tuple[Array, Array, Array, Array]] = []
    count, span = 0, float(edges[-1] - edges[0])
    while lower.size:
        half, middle = 0.5 * (upper - lower), 0.5 * (upper + lower)
        values = function((middle[:, None] + half[:, None] * np.cos(_ANGLES)).ravel())
        values = values.reshape(-1, _DEGREE + 1)
        width = np.maximum(np.abs(lower), np.abs(upper))
        sliver = half < SETTLED * np.maximum(width, 0.1 * span)  # so short it carries no mass
        # Between single values and what surrounds others there may be nothing at all.
        nothing = values < 0.5 * _NOTHING
        empty = nothing.all(axis=1) | (nothing.any(axis=1) & sliver)
        partly = nothing.any(axis=1) & ~empty  # next to an end that rounding has moved
        values[empty | partly] = _NOTHING
        if not np.isfinite(values).all():
            raise AccuracyError("the density of the privacy loss has no finite logarithm")
        coefficients = _TRANSFORM @ values.T
        tail = np.abs(coefficients[-3:]).max(axis=0)
        slope = np.abs(coefficients[1:]).sum(axis=0) / half
        usual = 2.0 * ROUNDED * (4.0 + np.abs(values).max(axis=1)) + 2.0 * ROUNDING * slope * width
        # What halving does not make smaller is noise.
        noise = np.where(tail > 0.5 * before, np.maximum(usual, _NOISIEST), usual)
        good = (tail <= noise) | sliver
        seen = np.where(good & (tail > usual), tail, 0.0)
        mass = values.max(axis=1) + np.log(upper - lower)
        with np.errstate(divide="ignore"):  # a share of a panel's mass may be negligible
            good |= negligible(lower, upper, mass + np.log(np.minimum(tail, 1.0)))
        # A polynomial that does not fit may swing far above what it stands for.
        faint = negligible(lower, upper, mass) & ~(tail <= noise)
        coefficients[1:, faint] = 0.0
        coefficients[0, faint] = values[faint].max(axis=1)
        good = (good | faint) & ~partly
        found.append((lower[good], upper[good], coefficients[:, good], seen[good]))
        count += int(good.sum())
        lower, upper, middle = lower[~good], upper[~good], middle[~good]
        lower, upper = np.concatenate([lower, middle]), np.concatenate([middle, upper])
        before = np.tile(tail[~good], 2)
        if count + lower.size > _MOST_PANELS:
            raise AccuracyError("the density of the privacy loss is too rough to convolve")
    lower, upper, coefficients, seen = (
        np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True)
    )
    order = np.argsort(lower)
    edges = np.append(lower[order], upper.max())
    return LogDensity(edges, coefficients[:, order], seen[order])


def convolve(first: LogDensity, second: LogDensity, s: Array) -> Array:
    """Return log ∫ f(x) g(s − x) dx for every s: sums of positive terms only.

    The integral is cut where either factor's panels end, and what is negligible left out.  It is
    taken over whichever of x and s − x is closer to 0: the other one is rounded, and a density may
    change quickly next to a small loss.
    """
    half = _over_smaller(first, second, s)
    if first is second:
        return np.asarray(half + np.log(2.0))
    return np.asarray(np.logaddexp(half, _over_smaller(second, first, s)))


def _over_smaller(first: LogDensity, second: LogDensity, s: Array) -> Array:
    """Return log ∫ f(x) g(s − x) dx over the x that are closer to 0 than s − x."""
    rows = max(1, MOST_NODES // (2 * (first.fine_edges.size + second.fine_edges.size)))
    parts = [_integrated(first, second, s[i : i + rows, None]) for i in range(0, s.size, rows)]
    return np.concatenate(parts) if parts else np.empty(0)


def _integrated(first: LogDensity, second: LogDensity, s: Array) -> Array:
    """Return the same for a column of s."""
    a, b = first.fine_edges, second.fine_edges
    low, high = np.maximum(a[0], s - b[-1]), np.minimum(a[-1], s - b[0])
    low = np.where(s < 0, np.maximum(low, 0.5 * s), low)
    high = np.where(s < 0, high, np.minimum(high, 0.5 * s))
    every = np.concatenate([np.broadcast_to(a, (s.size, a.size)), s - b], axis=1)
    edges = np.sort(np.clip(every, low, np.maximum(low, high)), axis=1)
    width = np.diff(edges, axis=1)
    middle = edges[:, :-1] + 0.5 * width
    # A cell lies within one panel of either factor.
    panels, others = first.panel(middle), second.panel(s - middle)
    inner = first.within(panels.ravel(), middle.reshape(-1, 1))
    inner += second.within(others.ravel(), (s - middle).reshape(-1, 1))
    with np.errstate(divide="ignore"):
        weight = inner.reshape(middle.shape) + np.log(width)
    top = weight.max(axis=1)
    # Where f is 0 in the middle of a cell it is so at its ends but for rounding.
    row, place = np.nonzero(weight > np.maximum(top - NEGLIGIBLE, 0.5 * _NOTHING)[:, None])
    half = 0.5 * width[row, place]
    x = (edges[row, place] + half)[:, None] + half[:, None] * NODES
    values = first.within(panels[row, place], x) + second.within(others[row, place], s[row] - x)
    values -= top[row][:, None]
    sums = (np.exp(values) @ WEIGHTS) * half
    total = np.bincount(row, weights=sums, minlength=s.size)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(total))
