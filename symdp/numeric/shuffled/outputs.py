r"""Nodes of the answers of a randomizer: the laws of all inputs at them, and the least of all.

Smooth stretches of the output, between the kinks of all laws, are cut where another input has the
least density, and halved until 16 Gauss nodes agree with twice 16 on each for every law and for
the least of them, and no ratio of a law to the least changes by more than a factor of e on a panel.
An end at infinity is reached by panels that double in length. A list of outcomes is a table with a
panel for each, of one node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from symdp.errors import AccuracyError
from symdp.numeric.answer import LONG_LINE, SETTLED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    # densities of inputs by their numbers, a row each, at a vector of outputs
    Densities = Callable[[Array, Sequence[int]], Array]


@dataclass(frozen=True)
class Outputs:
    """Panels of the output, with the laws of all inputs at their nodes."""

    # densities by input, panel and node; of a list the masses themselves
    densities: Array
    # weights of the nodes, by panel and node; of a list 1
    weights: Array
    # lower and upper ends of the panels, none of a list
    low: Array
    high: Array
    # the densities at any output, none of a list
    function: Densities | None = None

    @cached_property
    def deciding(self) -> list[int]:
        """The inputs that have the least density somewhere."""
        deciding: list[int] = np.unique(self.densities.argmin(axis=0)).tolist()
        return deciding

    @property
    def is_list(self) -> bool:
        """Whether the outputs are a list."""
        return self.function is None

    @cached_property
    def least(self) -> Array:
        """The least density of all inputs, by panel and node."""
        least: Array = self.densities.min(axis=0)
        return least

    def off(self, count: int) -> float:
        """Return by how much the masses of so many laws differ from 1 at most."""
        masses = np.einsum("ipk,pk->i", self.densities[:count], self.weights)
        return float(np.abs(masses - 1.0).max())

    def only(self, kept: NDArray[np.bool_]) -> Outputs:
        """Return some of the panels."""
        low, high = self.low, self.high
        if not self.is_list:
            low, high = low[kept], high[kept]
        return Outputs(self.densities[:, kept], self.weights[kept], low, high, self.function)

    def halved(self, chosen: NDArray[np.bool_] | None = None) -> Outputs:
        """Return the same with panels of half the length, all or those that are chosen."""
        assert self.function is not None
        if chosen is None:
            chosen = np.ones(self.low.size, dtype=bool)
        middle = self.low + 0.5 * (self.high - self.low)
        low = np.stack((self.low, middle), axis=1)
        high = np.stack((np.where(chosen, middle, self.high), self.high), axis=1)
        is_used = np.stack((np.ones_like(chosen), chosen), axis=1)
        inputs = range(self.densities.shape[0])
        return _on_panels(self.function, inputs, low[is_used], high[is_used])


def listed_outputs(masses: Array) -> Outputs:
    """Return a list of outcomes, of each input a row of masses."""
    none = np.empty(0)
    return Outputs(masses[:, :, None], np.ones((masses.shape[1], 1)), none, none)


def smooth_outputs(
    function: Densities,
    count: int,
    edges: Sequence[float],
    ends: tuple[float, float],
    scale: float,
) -> Outputs:
    """Return panels of so many inputs between two ends, cut at all kinks of their laws.

    Raises
    ------
    AccuracyError
        If the densities are not resolved.
    """
    inputs = range(count)
    grid = _first_edges(edges, ends, scale)
    low = grid[:-1]
    high = grid[1:]
    kept = []
    for _ in range(60):
        panels = _on_panels(function, inputs, low, high)
        cuts = _crossings(panels)
        is_fine = _is_resolved(panels) & np.isnan(cuts)
        kept.append((low[is_fine], high[is_fine]))
        low = low[~is_fine]
        high = high[~is_fine]
        middle = np.where(np.isnan(cuts), panels.low + 0.5 * (panels.high - panels.low), cuts)
        middle = middle[~is_fine]
        low = np.concatenate((low, middle))
        high = np.concatenate((middle, high))
        if not 0 < low.size < LONG_LINE // 32:
            break
    if low.size:
        raise AccuracyError(
            "the laws of the answers are not resolved: their densities change too fast, or have a "
            "pole; give smoother densities, or a list of outcomes"
        )
    order = np.argsort(np.concatenate([part[0] for part in kept]))
    ends_of = [np.concatenate([part[side] for part in kept])[order] for side in (0, 1)]
    panels = _on_panels(function, inputs, *ends_of)
    is_seen = panels.densities.max(axis=(0, 2)) > np.finfo(float).tiny
    return _on_panels(function, inputs, ends_of[0][is_seen], ends_of[1][is_seen])


def _first_edges(edges: Sequence[float], ends: tuple[float, float], scale: float) -> Array:
    """Return edges of panels: eight between neighbours of those that are known, tails doubling."""
    lower, upper = ends
    inner = sorted({edge for edge in edges if lower < edge < upper})
    inner = inner or [max(min(0.0, upper), lower)]
    if np.isfinite(lower):
        inner.insert(0, lower)
    if np.isfinite(upper):
        inner.append(upper)
    parts = [np.linspace(inner[k], inner[k + 1], 9) for k in range(len(inner) - 1)]
    doubling = scale * (np.exp2(np.arange(0.0, 900.0)) - 1.0)
    doubling = doubling[doubling < 1e290]
    if not np.isfinite(lower):
        parts.append(inner[0] - doubling)
    if not np.isfinite(upper):
        parts.append(inner[-1] + doubling)
    return np.unique(np.concatenate(parts))


def _on_panels(function: Densities, inputs: Sequence[int], low: Array, high: Array) -> Outputs:
    places, shares = np.polynomial.legendre.leggauss(16)
    half = 0.5 * (high - low)[:, None]
    outputs = low[:, None] + half * (1.0 + places)
    values = function(outputs.ravel(), inputs)
    densities = values.reshape(values.shape[0], *outputs.shape)
    return Outputs(densities, half * shares, low, high, function)


def _is_resolved(panels: Outputs) -> NDArray[np.bool_]:
    """Return which panels agree with their halves, and have ratios that change little."""
    halves = panels.halved()
    count = panels.low.size
    whole = _integrals(panels)
    parts = _integrals(halves).reshape(-1, count, 2).sum(axis=2)
    is_settled = np.abs(whole - parts).max(axis=0) <= 0.1 * SETTLED * (1e-3 + parts.max(axis=0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.log(panels.densities / panels.least)
    ratios = np.where(np.isfinite(ratios), ratios, 0.0)
    change = ratios.max(axis=2) - ratios.min(axis=2)
    is_slow = change.max(axis=0) <= 1.0
    is_empty = parts.max(axis=0) <= 1e-290
    # A law that leaves the doubles on a panel of hardly any mass: that is counted apart.
    is_left = (panels.least.min(axis=1) <= 1e-290) & (parts.max(axis=0) <= 1e-30)
    is_slow |= is_left
    resolved: NDArray[np.bool_] = is_empty | (is_settled & is_slow)
    return resolved


def _integrals(panels: Outputs) -> Array:
    """Return the mass of every law and of the least on the panels."""
    values = np.concatenate((panels.densities, panels.least[None]))
    integrals: Array = np.einsum("ipk,pk->ip", values, panels.weights)
    return integrals


def _crossings(panels: Outputs) -> Array:
    """Return where on a panel another input becomes the one of the least density, NaN for none."""
    densities = panels.densities
    number = np.arange(panels.low.size)
    cuts = np.full(number.size, np.nan)
    first = densities[:, :, 0].argmin(axis=0)
    last = densities[:, :, -1].argmin(axis=0)
    gaps = densities[first, number] - densities[last, number]
    sizes = densities[first, number] + densities[last, number]
    far = np.abs(gaps) > 1e-10 * sizes
    crossed = np.flatnonzero((first != last) & far[:, 0] & far[:, -1])
    if not crossed.size or panels.function is None:
        return cuts
    low = panels.low[crossed].copy()
    high = panels.high[crossed].copy()
    column = np.arange(crossed.size)
    for _ in range(60):
        middle = low + 0.5 * (high - low)
        values = panels.function(middle, range(densities.shape[0]))
        is_before = values[first[crossed], column] < values[last[crossed], column]
        low = np.where(is_before, middle, low)
        high = np.where(is_before, high, middle)
    width = panels.high[crossed] - panels.low[crossed]
    inside = np.minimum(low - panels.low[crossed], panels.high[crossed] - low) > 1e-9 * width
    cuts[crossed] = np.where(inside, low, np.nan)
    return cuts
