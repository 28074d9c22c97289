"""A log density as Chebyshev series on panels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from symdp.law.step import Array

_NODES = 40  # of a panel's rule: e^{40u} on [−1, 1] to 1e-16, more than a panel's density grows


@dataclass(frozen=True)
class LogDensityTable:
    """log of the density of λ = log(Y/t) under Q: a Chebyshev series on every panel.

    `error` is that of the density on each panel, relative to itself.
    """

    edges: Array
    coefficients: Array
    error: Array

    def panel(self, place: Array) -> NDArray[np.intp]:
        """Return the number of the panel, or of the nearest one."""
        number = np.searchsorted(self.edges, place.real, side="right") - 1
        return np.asarray(np.clip(number, 0, self.edges.size - 2))

    def __call__(self, place: Array) -> Array:
        """Return the log density, −∞ outside the panels; places may be complex."""
        x = np.asarray(place)
        panel = self.panel(x)
        low, high = self.edges[panel], self.edges[panel + 1]
        u = (2.0 * x - low - high) / (high - low)
        first, second = np.zeros_like(u), np.zeros_like(u)
        for row in self.coefficients.T[:0:-1]:
            first, second = row[panel] + 2.0 * u * first - second, first
        value = self.coefficients.T[0][panel] + u * first - second
        inside = (x.real >= self.edges[0]) & (x.real <= self.edges[-1])
        return np.asarray(np.where(inside, value, -np.inf))

    def rule(self, cut: float) -> tuple[Array, Array, Array]:
        """Return nodes, logs of density times weight and errors of a rule for kinks at `cut`."""
        x, log_weight, error = self._whole
        if not self.edges[0] < cut < self.edges[-1]:
            return x.ravel(), log_weight.ravel(), error.ravel()
        panel = int(self.panel(np.asarray(cut)))
        ends = np.asarray([self.edges[panel], cut, self.edges[panel + 1]])
        parts = [*self._rule(ends), np.full((2, _NODES), self.error[panel])]
        kept = [np.delete(one, panel, axis=0) for one in (x, log_weight, error)]
        joined = [np.concatenate(both).ravel() for both in zip(kept, parts, strict=True)]
        return joined[0], joined[1], joined[2]

    @cached_property
    def _whole(self) -> tuple[Array, Array, Array]:
        x, log_weight = self._rule(self.edges)
        return x, log_weight, np.broadcast_to(self.error[:, None], x.shape)

    def _rule(self, edges: Array) -> tuple[Array, Array]:
        """Return Gauss nodes between the edges, and logs of density times weight."""
        half = 0.5 * np.diff(edges)[:, None]
        nodes, weights = _gauss()
        x = edges[:-1, None] + half * (1.0 + nodes)
        with np.errstate(divide="ignore"):
            return x, self(x) + np.log(half * weights)


@cache
def _gauss() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return np.asarray(nodes), np.asarray(weights)
