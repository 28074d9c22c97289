"""A log density as Chebyshev series on panels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symdp.law.step import Array


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
