"""The noise itself: quantiles and samples from its density, in doubles.

The line is cut into cells at geometric distances from the ends, the modes and zero, so that heavy
tails and singular ends are cells like others. In a cell the density is a polynomial through
Chebyshev places; where the integral of a cell and those of its halves differ, it is halved. The
distribution function of a cell is the polynomial's integral, and is inverted by bisection. On
integers the probabilities are summed. What all cells hold besides 1 is the error that is known.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import chebyshev

from symdp.arguments import whole
from symdp.emit.numpy import compile_numpy
from symdp.errors import AccuracyError, InputError
from symdp.model.mechanism import Mechanism, a_mechanism
from symdp.model.sampling import Noise
from symdp.numeric.compile import loss_law
from symdp.questions.utility import noise_of
from symdp.turns import in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_DEGREE = 15  # of a cell's polynomial
_FARTHEST = 1000  # binary digits between the nearest and the farthest cell, and 1
_AGREE = 1e-13  # relative, by which the mass of a cell and that of its halves may differ
_LEAST = 1e-40  # of a mass that is resolved
_HALVINGS, _MOST_CELLS = 48, 1 << 16  # of one cell, and of all at a time
_BISECTIONS = 60  # of a place in its cell
_DRAWN = [0.005, 0.995]  # the shares below the ends of a figure
_LEAST_SHARE = 1e-30  # the least p: cells of less mass are not resolved
_ROUNDED = 1e-15  # of a sum of probabilities
_LACKING = 1e-9  # of the mass, that the cells may not see
_MOST_WHOLE = 1 << 22  # integers whose probabilities are summed
_PLACES = np.cos(np.pi * np.arange(_DEGREE + 1) / _DEGREE)
_TO_SERIES = np.linalg.inv(chebyshev.chebvander(_PLACES, _DEGREE))


class NoiseLaw:
    """Cells of a noise's density, and how much of its mass lies below each.

    `error` bounds no more than what is seen: by how much all cells differ from mass 1.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        noise = noise_of(mechanism.require_concrete())
        self._density = compile_numpy(noise.density, [mechanism.variable])
        alone = replace(mechanism, sampling=None, relation=None)
        law = loss_law(alone, "remove")
        ends = [float(mechanism.support.lower), float(mechanism.support.upper)]
        seen = [place for outline in law.outlines for place in outline.anchors]
        known = {0.0, *(one for one in (*seen, *ends) if math.isfinite(one))}
        anchors = np.asarray(sorted(one for one in known if ends[0] <= one <= ends[1]))
        self.is_whole = mechanism.support.kind != "interval"
        if self.is_whole:
            self._sum(ends, float(anchors[0]), float(anchors[-1]))
        else:
            self._cut(ends, anchors)
        total = float(self.mass.sum())
        self.error = abs(total - 1.0)
        if not self.error < _LACKING:
            raise AccuracyError(
                f"{mechanism.summary}: the mass of its noise was not found (1 - {1 - total:.3g}), "
                "as where its tail is too heavy for doubles"
            )
        self.mass /= total
        self._below = np.concatenate([[0.0], np.cumsum(self.mass)])
        self._above = np.concatenate([[0.0], np.cumsum(self.mass[::-1])])  # cells from the last

    def _at(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            found = np.asarray(self._density(x), dtype=np.float64)
        return np.where(np.isfinite(found) & (found > 0.0), found, 0.0)

    def _sum(self, ends: list[float], low: float, high: float) -> None:
        """Take integers around the modes until what is beyond does not count."""
        reach = 64.0
        while True:
            first, last = max(ends[0], math.floor(low) - reach), min(ends[1], high + reach)
            self.left = np.arange(first, last + 1.0)
            self.mass = self._at(self.left)
            if self.mass.sum() > 1.0 - _ROUNDED or self.left.size > _MOST_WHOLE:
                return
            reach *= 4.0

    def _cut(self, ends: list[float], anchors: Array) -> None:
        """Take cells around the anchors, halved until they are known."""
        away = np.exp2(np.arange(-_FARTHEST, _FARTHEST + 1.0))
        apart = np.concatenate([-away, [0.0], away])
        places = np.add.outer(apart, anchors).ravel()
        edges = np.unique(places[(places >= ends[0]) & (places <= ends[1])])
        low, high = edges[:-1], edges[1:]
        kept: list[tuple[Array, ...]] = []
        for depth in range(_HALVINGS):
            middle = 0.5 * low + 0.5 * high
            whole_cell, series = self._integral(low, high)
            halves = self._integral(low, middle)[0] + self._integral(middle, high)[0]
            apart = np.abs(whole_cell - halves) > _AGREE * np.maximum(halves, _LEAST)
            done = ~apart | (middle <= low) | (middle >= high)
            done |= depth == _HALVINGS - 1 or low.size > _MOST_CELLS
            kept.append((low[done], high[done], whole_cell[done], series[done]))
            low, middle, high = low[~done], middle[~done], high[~done]
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
            if not low.size:
                break
        columns = [np.concatenate(column) for column in zip(*kept, strict=True)]
        order = np.argsort(columns[0])
        order = order[columns[2][order] > 0.0]
        self.left, self.right, self.mass, self._series = (one[order] for one in columns)

    def _integral(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the mass of cells, and the series of the mass below each of their places."""
        half = 0.5 * high - 0.5 * low
        x = (0.5 * low + 0.5 * high)[:, None] + half[:, None] * _PLACES
        series = (self._at(x) * half[:, None]) @ _TO_SERIES.T
        below = chebyshev.chebint(series, lbnd=-1.0, axis=1)
        return np.maximum(np.asarray(below.sum(axis=1), dtype=np.float64), 0.0), below

    def quantile(self, p: Array) -> Array:
        """Return the least x with P(X ≤ x) ≥ p."""
        last, rest = self.mass.size - 1, 1.0 - p
        low = np.clip(np.searchsorted(self._below, p, side="left") - 1, 0, last)
        high = np.clip(np.searchsorted(self._above, rest, side="right") - 1, 0, last)
        from_low = (p - self._below[low]) / self.mass[low]
        from_high = 1.0 - (rest - self._above[high]) / self.mass[last - high]
        is_low = p <= 0.5
        cell = np.where(is_low, low, last - high)
        if self.is_whole:
            return self.left[cell]
        share = np.clip(np.where(is_low, from_low, from_high), 0.0, 1.0)
        series, low, high = self._series[cell].T, np.full(p.size, -1.0), np.full(p.size, 1.0)
        aim = share * series.sum(axis=0)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            is_below = chebyshev.chebval(middle, series, tensor=False) < aim
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        left, right = self.left[cell], self.right[cell]
        return np.asarray(left * (0.5 - 0.5 * high) + right * (0.5 + 0.5 * high))


@lru_cache(maxsize=16)
def _law(mechanism: Mechanism) -> NoiseLaw:
    return NoiseLaw(mechanism)


@in_turn
def quantile(mechanism: Mechanism, p: Any) -> Any:
    """Return the least x with P(noise ≤ x) ≥ p, an array of them for an array.

    Parameters
    ----------
    mechanism : additive noise on the line or on integers, a value for every parameter
    p : from 1e-30 to below 1; x is where a p that differs by 1e-12, relatively, is reached

    Raises
    ------
    InputError : no noise of a density, a parameter without a value, or p out of range.
    AccuracyError : a density whose mass quadrature does not find.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> print(f"{quantile(mechanisms.laplace(b=3), 0.75):.12f}")
    2.079441541680
    """
    asked = np.asarray(p, dtype=np.float64)
    if not ((asked >= _LEAST_SHARE) & (asked < 1.0)).all():
        raise InputError(f"p = {p!r:.40}: it must lie between {_LEAST_SHARE:g} and 1")
    found = _law(a_mechanism(mechanism)).quantile(asked.ravel()).reshape(asked.shape)
    return float(found) if asked.ndim == 0 else found


@in_turn
def sample(mechanism: Mechanism, size: int, rng: np.random.Generator | int | None = None) -> Array:
    """Return independent values of the noise, for simulations and figures.

    No release may use them: the rounding of doubles tells of what they are added to.

    Parameters
    ----------
    mechanism : as for `quantile`
    size : how many
    rng : a NumPy generator, or the seed of one

    Raises
    ------
    As `quantile`.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> sample(mechanisms.discrete_laplace(b=2), 4, rng=1).tolist()
    [0.0, 5.0, -2.0, 4.0]
    """
    generator = np.random.default_rng(rng)
    uniform = generator.random(whole(size, "size"))
    return _law(a_mechanism(mechanism)).quantile(np.maximum(uniform, _LEAST_SHARE))


def shown_range(mechanism: Mechanism) -> tuple[float, float]:
    """Return between which places a figure of one step's pair is drawn.

    Of noise from a half percent below to as much above, moved by its shift; of other pairs a finite
    support. InputError where there is neither.
    """
    source, support = mechanism.source, mechanism.support
    ends = float(support.lower), float(support.upper)
    if isinstance(source, Noise):
        low, high = quantile(mechanism, _DRAWN)
        return max(low, ends[0]), high + float(source.sensitivity)
    if support.points or all(map(math.isfinite, ends)):
        return ends
    raise InputError(f"{mechanism.name} is no noise, and its support has no ends to draw between")
