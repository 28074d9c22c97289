"""A density known by its logarithm: Chebyshev series on adjoining panels, refined to fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.law.panels import Index
from symdp.law.step import Array

DEGREE = 15  # of a panel: 16 values, halved until the last coefficients are rounding
MAX_PANELS = 1500  # 24 000 values of a density
_MOST_NOISY = 64  # panels whose halves fit no better: those next to singular ends are few
_ROUNDS = 46  # halvings, down to 1e-14 of the range
_FIT = 2e-15  # of the last coefficients, for logarithms of ordinary size
_NOISIEST = 1e-11  # of the last coefficients, where halving panels does not help
_NOISY = 1e-13  # relative: more than this is not rounding alone
_CLOSE = 1e-3  # of the last coefficients: the series is the function's but for a small error
_VANISHING = 1500.0  # e-folds below the highest of the panels' mean heights
_MOST_CELLS = 1 << 20  # 8 MB
_ROW, _MOST_SPLIT = 8, 0.25  # columns, and the share of rows that may lie on several panels
_NEAR = 1 << 14  # values that stay in a processor's cache
_VARIATION = 6.0  # how far log f may move over an interval of one quadrature rule

_ANGLES = (np.arange(DEGREE + 1) + 0.5) * np.pi / (DEGREE + 1)
_POINTS = np.cos(_ANGLES)
_TRANSFORM = np.cos(np.outer(np.arange(DEGREE + 1), _ANGLES)) * 2.0 / (DEGREE + 1)
_TRANSFORM[0] *= 0.5
NODES, WEIGHTS = (a.astype(np.float64) for a in np.polynomial.legendre.leggauss(16))


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
        """Return log f; a place beyond the ends by rounding only counts as the end.

        A row of a matrix rises or falls; what lies on one panel is fetched once for all of it.
        """
        if s.ndim != 2 or s.shape[1] < _ROW:
            return self._in_blocks(s.ravel(), self._panel(s.ravel())).reshape(s.shape)
        panel, last = self._panel(s[:, 0]), self._panel(s[:, -1])
        split = np.flatnonzero(panel != last)
        if split.size > _MOST_SPLIT * panel.size:
            return self._in_blocks(s.ravel(), self._panel(s.ravel())).reshape(s.shape)
        value = self._in_blocks(s, panel[:, None])
        value[split] = self(s[split].ravel()).reshape(split.size, s.shape[1])
        return value

    def _panel(self, s: Array) -> Index:
        panel = np.searchsorted(self.edges, s, side="right") - 1
        return np.asarray(np.clip(panel, 0, self.edges.size - 2))

    def _in_blocks(self, s: Array, panel: Index) -> Array:
        """Return log f on known panels, which may be one for each row, in blocks that stay near."""
        value = np.empty_like(s)
        length = max(_NEAR // (s[:1].size or 1), 1)
        for start in range(0, s.shape[0], length):
            part = slice(start, start + length)
            low, high = self.edges[panel[part]], self.edges[panel[part] + 1]
            u = (2.0 * s[part] - low - high) / (high - low)
            found = self._clenshaw(np.clip(u, -1.0, 1.0), panel[part])
            value[part] = np.where(np.abs(u) <= 1.0 + 1e-9, found, -np.inf)
        return value

    def with_masses(self, mass: Callable[[Array, Array], Array]) -> LogDensity:
        """Return the density with known masses on the panels where rounding is seen.

        Noise that leaves the masses of panels as they are moves mass by less than a panel.
        """
        flat = 2.0 * np.abs(self.coefficients[1:]).sum(axis=0) < _VARIATION  # one rule will do
        noisy = np.flatnonzero((self.noise > _NOISY) & flat)
        lower, upper = self.edges[noisy], self.edges[noisy + 1]
        half = 0.5 * (upper - lower)
        s = (0.5 * (lower + upper))[:, None] + half[:, None] * NODES
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(np.exp(self(s.ravel())).reshape(s.shape) @ WEIGHTS * half)
            change = np.log(mass(lower, upper)) - found
        coefficients = self.coefficients.copy()
        coefficients[0, noisy] += np.where(np.isfinite(change), change, 0.0)
        return replace(self, coefficients=coefficients)

    def noise_at(self, s: Array) -> Array:
        """Return the noise of log f where it is known, and 0 elsewhere."""
        panel = np.searchsorted(self.edges, s, side="right") - 1
        inside = (panel >= 0) & (panel < self.noise.size)
        return np.where(inside, self.noise[np.clip(panel, 0, self.noise.size - 1)], 0.0)

    def _clenshaw(self, u: Array, panel: Index) -> Array:
        rows, double = self.coefficients, u + u
        second, first = np.zeros_like(u), np.zeros_like(u)
        first += rows[DEGREE].take(panel, mode="clip")
        here, spare = np.empty(panel.shape), np.empty_like(u)
        for k in range(DEGREE - 1, 0, -1):
            rows[k].take(panel, mode="clip", out=here)
            np.multiply(double, first, out=spare)
            spare -= second
            spare += here
            second, first, spare = first, spare, second
        return np.asarray(u * first - second + rows[0].take(panel, mode="clip"))

    @cached_property
    def fine_edges(self) -> Array:
        """Edges between which log f moves by no more than a rule of 16 points resolves."""
        return self.cells(0.0, self.edges[0], self.edges[-1])

    def cells(self, tilt: float, low: float, high: float, squared: float = 0.0) -> Array:
        """Return edges from `low` to `high` between which log f, tilt·s, squared·s² move little."""
        inner = self.edges[(self.edges > low) & (self.edges < high)]
        cuts = np.concatenate([[low], inner, [high]])
        lower, upper = cuts[:-1], cuts[1:]
        panel = np.searchsorted(self.edges, 0.5 * (lower + upper), side="right") - 1
        panel = np.clip(panel, 0, self.edges.size - 2)
        share = (upper - lower) / (self.edges[panel + 1] - self.edges[panel])
        # The sum of k²|coefficient| bounds the slope, that of their sizes half of the movement.
        sizes = np.abs(self.coefficients[1:])
        steep = np.arange(1, DEGREE + 1) ** 2 @ sizes
        movement = 2.0 * np.minimum(sizes.sum(axis=0)[panel], (steep[panel] * share))
        movement += (abs(tilt) + abs(squared) * (lower + upper)) * (upper - lower)
        # Where f is below the last digit that a double's exponent can hold, nothing is resolved.
        highest = self.coefficients[0] + sizes.sum(axis=0)
        movement[highest[panel] < self.coefficients[0].max() - _VANISHING] = 0.0
        parts = np.maximum(np.ceil(movement / _VARIATION), 1.0)
        if not parts.sum() < _MOST_CELLS:
            raise AccuracyError("the density of the loss falls too steeply to integrate")
        parts = parts.astype(int)
        which = np.repeat(np.arange(parts.size), parts)
        place = np.arange(which.size) - np.repeat(np.cumsum(parts) - parts, parts)
        return np.append(lower[which] + (upper - lower)[which] * place / parts[which], high)

    def rule(self, tilt: float, low: float, high: float) -> tuple[Array, Array]:
        """Return places and logs of weights that integrate f(s) e^{−tilt·s} from `low` to `high`.

        Other factors may move by a few units over a length of 1.
        """
        low, high = max(low, float(self.edges[0])), min(high, float(self.edges[-1]))
        if not low < high:
            return np.empty(0), np.empty(0)
        edges = np.unique(self.cells(max(abs(tilt), 1.0), low, high))
        half = 0.5 * np.diff(edges)
        s = ((0.5 * (edges[1:] + edges[:-1]))[:, None] + half[:, None] * NODES).ravel()
        return s, self(s) - tilt * s + np.log((half[:, None] * WEIGHTS).ravel())

    def mass_and_mean(self, tilt: float) -> tuple[float, float]:
        """Return log ∫ f(s) e^{−tilt·s} ds, and the mean of s under that."""
        return mass_and_mean(*self.rule(tilt, -np.inf, np.inf))

    @cached_property
    def narrowest(self) -> float:
        """Where the panels are finest, as f changes quickly there."""
        return float(self.edges[np.argmin(np.diff(self.edges))])

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        return float(self.edges[0]), float(self.edges[-1])

    def log_at_top(self) -> float:
        """Return log f at the largest value."""
        return float(self(self.edges[-1:])[0])

    def moved(self, distance: float) -> LogDensity:
        """Return the density of s + distance."""
        return replace(self, edges=self.edges + distance)

    @property
    def size(self) -> float:
        """The largest mean of |log f| over a panel where f is not 0."""
        means = np.abs(self.coefficients[0])
        return float(means[means < -0.5 * _NOTHING].max(initial=0.0))

    def scaled(self, constant: float) -> LogDensity:
        """Return the density times e^constant."""
        coefficients = self.coefficients.copy()
        coefficients[0] += constant
        return replace(self, coefficients=coefficients)


def mass_and_mean(s: Array, exponent: Array) -> tuple[float, float]:
    """Return the log of the sum of e^exponent, and the mean of s under these weights."""
    top = float(exponent.max())
    weight = np.exp(exponent - top)
    total = float(weight.sum())
    weight /= total
    guess = float(weight @ s)
    return top + float(np.log(total)), guess + float(weight @ (s - guess))


_SLIVER = 1e-13  # of the range: a panel so short carries no mass
_NOTHING = -1e9  # the logarithm of a density that is 0


def interpolate(
    function: Callable[[Array], Array],
    edges: Array,
    negligible: Callable[[Array, Array, Array], NDArray[np.bool_]],
    rounding: Callable[[Array], Array] | None = None,
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
    rounding
        How far rounding may move log f at given places, where that is more than usual and largest
        at the ends of panels.

    Raises
    ------
    AccuracyError
        If the panels do not settle.
    """
    lower, upper = edges[:-1], edges[1:]
    before = np.full(lower.size, np.inf)  # the tails of the panels that these are halves of
    found: list[tuple[Array, Array, Array, Array]] = []
    count = 0
    for depth in range(_ROUNDS):
        half, middle = 0.5 * (upper - lower), 0.5 * (upper + lower)
        values = function((middle[:, None] + half[:, None] * _POINTS).ravel())
        values = values.reshape(-1, DEGREE + 1)
        width = np.maximum(np.abs(lower), np.abs(upper))
        # Between single values and what surrounds others there may be nothing at all.
        nothing = values < 0.5 * _NOTHING
        empty = nothing.all(axis=1) | (nothing.any(axis=1) & (half < _SLIVER * width))
        partly = nothing.any(axis=1) & ~empty  # next to an end that rounding has moved
        values[empty | partly] = _NOTHING
        if not np.isfinite(values).all():
            raise AccuracyError("the density of the privacy loss has no finite logarithm")
        coefficients = _TRANSFORM @ values.T
        tail = np.abs(coefficients[-3:]).max(axis=0)
        size = np.abs(values).max(axis=1)
        slope = np.abs(coefficients[1:]).sum(axis=0) / half
        usual = _FIT * (4.0 + size)
        noise = usual + 4e-16 * slope * width
        if rounding is not None:
            outer = (middle + half * _POINTS[i] for i in (0, -1))
            noise = noise + np.max([rounding(s) for s in outer], axis=0)
        # What halving does not make smaller is noise: a place is often rounded like 1.
        noisiest = np.maximum(noise, np.maximum(_NOISIEST, 4e-16 * slope))
        noise = np.where(tail > 0.5 * before, noisiest, noise)
        good = (tail <= noise) | (half < _SLIVER * width)
        seen = np.where(good & (tail > usual), tail, 0.0)
        mass = values.max(axis=1) + np.log(upper - lower)
        with np.errstate(divide="ignore"):
            good |= (tail < _CLOSE) & negligible(lower, upper, mass + np.log(tail))
        # A polynomial that does not fit may swing far above what it stands for.
        faint = negligible(lower, upper, mass) & ~good
        coefficients[1:, faint] = 0.0
        coefficients[0, faint] = values[faint].max(axis=1)
        good = (good | faint) & ~partly
        if depth == _ROUNDS - 1:
            good[:] = True  # what is left are slivers next to a singular end
        found.append((lower[good], upper[good], coefficients[:, good], seen[good]))
        if good.all():
            break
        if (~good & (tail > 0.5 * before)).sum() > _MOST_NOISY:
            raise AccuracyError("the density of the privacy loss is too rough to convolve")
        count += int(good.sum())
        lower, upper, middle = lower[~good], upper[~good], middle[~good]
        lower, upper = np.concatenate([lower, middle]), np.concatenate([middle, upper])
        before = np.tile(tail[~good], 2)
        if count + lower.size > MAX_PANELS:
            raise AccuracyError("the density of the privacy loss is too rough to convolve")
    lower, upper, coefficients, seen = (
        np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True)
    )
    order = np.argsort(lower)
    edges = np.append(lower[order], upper.max())
    return LogDensity(edges, coefficients[:, order], seen[order])


_SPARE = 44.0  # e^-44 of the largest part is below rounding
_BLOCK = 400_000  # values at a time, 3 MB


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
    a, b = first.fine_edges, second.fine_edges

    def cuts(s: Array) -> Array:
        low, high = np.maximum(a[0], s - b[-1]), np.minimum(a[-1], s - b[0])
        low = np.where(s < 0, np.maximum(low, 0.5 * s), low)
        high = np.where(s < 0, high, np.minimum(high, 0.5 * s))
        every = np.concatenate([np.broadcast_to(a, (s.size, a.size)), s - b], axis=1)
        return np.asarray(np.clip(every, low, np.maximum(low, high)))

    def log_product(x: Array, s: Array) -> Array:
        return first(x) + second(s - x)

    return log_integrals(cuts, log_product, s, a.size + b.size)


def log_integrals(
    cuts: Callable[[Array], Array],
    log_function: Callable[[Array, Array], Array],
    s: Array,
    length: int,
) -> Array:
    """Return log ∫ f(x, s) dx for every s, over cells in which log f moves little.

    Parameters
    ----------
    cuts
        Where the cells end, in any order: one row for each of a column of s.
    log_function
        log f at a matrix of x, with s a column as long.
    length
        About how many cuts a row has.
    """
    rows = max(1, _BLOCK // length)
    parts = [_log_integrals(cuts, log_function, s[i : i + rows]) for i in range(0, s.size, rows)]
    return np.concatenate(parts) if parts else np.empty(0)


def _log_integrals(
    cuts: Callable[[Array], Array], log_function: Callable[[Array, Array], Array], s: Array
) -> Array:
    column = s[:, None]
    edges = np.sort(cuts(column), axis=1)
    width = np.diff(edges, axis=1)
    middle = edges[:, :-1] + 0.5 * width
    with np.errstate(divide="ignore"):
        weight = log_function(middle, column) + np.log(width)
    top = weight.max(axis=1)
    # Where f is 0 in the middle of a cell it is so at its ends but for rounding.
    chosen = weight > np.maximum(top - _SPARE, 0.5 * _NOTHING)[:, None]
    row, place = np.nonzero(chosen)
    half = 0.5 * width[row, place]
    x = (edges[row, place] + half)[:, None] + half[:, None] * NODES
    values = log_function(x, column[row]) - top[row][:, None]
    sums = ((np.exp(values) * WEIGHTS).sum(axis=1)) * half
    total = np.bincount(row, weights=sums, minlength=s.size)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(total))
