"""Sums over many points of a smooth function, from its values at a few Chebyshev points.

With x_j = cos(πj/N) the polynomial that agrees with f at all x_j has the coefficients
a_k = (2/(N c_k)) Σ_j f(x_j) T_k(x_j)/c_j, c = 2 at both ends and 1 between, and Σᵢ nᵢ f(xᵢ) becomes
Σ_j w_j f(x_j). Of an analytic f the coefficients fall geometrically, so that the last ones show
what is missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symdp.law.elementary import Complex
from symdp.law.step import Array

_LAST = 3  # coefficients that show what is missing
_OFF = 4.0  # how much more than they show may be missing


def lobatto_points(degree: int) -> Array:
    """Return cos(πj/N), j = 0, …, N: from 1 down to −1."""
    half = np.cos(np.pi * np.arange(degree // 2 + 1) / degree)
    points = np.concatenate([half, -half[::-1][1 if degree % 2 == 0 else 0 :]])
    if degree % 2 == 0:
        points[degree // 2] = 0.0
    return np.asarray(points, dtype=np.float64)


def _coefficients(degree: int) -> Array:
    """Return the matrix from values at the points to Chebyshev coefficients."""
    ends = np.ones(degree + 1)
    ends[[0, -1]] = 2.0
    polynomials = np.polynomial.chebyshev.chebvander(lobatto_points(degree), degree).T
    return np.asarray(2.0 / degree * polynomials / np.multiply.outer(ends, ends), np.float64)


@dataclass(frozen=True, eq=False)
class Grid:
    """Chebyshev points of a box, one degree for each axis, and points of it with counts.

    Parameters
    ----------
    places
        The points, one row each, in [−1, 1] along every axis.
    counts
        How often each of them is taken.
    degrees
        Even, one for each axis.

    Examples
    --------
    >>> x = np.linspace(-1.0, 1.0, 1000)[:, None]
    >>> grid = Grid(x, np.ones(1000), (16,))
    >>> values = np.exp(grid.nodes[:, 0])
    >>> bool(abs(grid.weights @ values - np.exp(x).sum()) < 1e-11)
    True
    >>> bool(grid.missing(list(values))[0] < 1e-9)
    True
    """

    places: Array
    counts: Array
    degrees: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes along each axis."""
        return tuple(degree + 1 for degree in self.degrees)

    @cached_property
    def nodes(self) -> Array:
        """The Chebyshev points, one row each, the last axis running fastest."""
        return np.asarray(list(itertools.product(*(lobatto_points(d) for d in self.degrees))))

    @cached_property
    def weights(self) -> Array:
        """What Σ nᵢ f(xᵢ) weighs the values at the nodes with."""
        chebyshev = np.polynomial.chebyshev
        rows = self.counts[:, None]
        for axis, degree in enumerate(self.degrees):
            here = chebyshev.chebvander(self.places[:, axis], degree) @ _coefficients(degree)
            rows = (rows[:, :, None] * here[:, None, :]).reshape(rows.shape[0], -1)
        return np.asarray(rows.sum(axis=0))

    def missing(self, values: Sequence[Array] | Sequence[Complex]) -> list[Array]:
        """Return, for each axis, how far off the sum of all points may be for too low a degree.

        Parameters
        ----------
        values
            At every node, arrays of one shape.
        """
        cube = np.asarray(values).reshape(*self.shape, *np.shape(values[0]))
        axes = tuple(range(len(self.degrees)))
        found = []
        for axis, degree in enumerate(self.degrees):
            high = _coefficients(degree)[-_LAST:]
            size = np.abs(np.tensordot(high, cube, axes=(1, axis))).max(axis=axes)
            found.append(np.asarray(_OFF * float(self.counts.sum()) * size))
        return found

    def upper_sum(self, values: Sequence[Array]) -> Array:
        """Return Σ nᵢ maxᵢ, the largest value at the nodes around each point."""
        cube = np.asarray(values).reshape(*self.shape, *np.shape(values[0]))
        for axis in range(len(self.degrees)):
            cube = np.moveaxis(cube, axis, 0)
            cube = np.moveaxis(np.maximum(cube[:-1], cube[1:]), 0, axis)
        return np.asarray(np.tensordot(self._cells, cube, axes=len(self.degrees)))

    @cached_property
    def _cells(self) -> Array:
        """How many of the points lie between each node and the next."""
        index = []
        for axis, degree in enumerate(self.degrees):
            rising = -lobatto_points(degree)
            place = np.searchsorted(rising, -self.places[:, axis], side="right") - 1
            index.append(np.clip(place, 0, degree - 1))
        cells = np.zeros(self.degrees)
        np.add.at(cells, tuple(index), self.counts)
        return cells
