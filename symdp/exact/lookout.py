"""Where a sum of single-valued losses may be heard far out, and Φ there.

|φ(y − y′)| is the cosine of the angle between the lines of e^{iyL} and e^{iy′L}, and angles obey
the triangle inequality [Krein]. So |φ(y + s)|ⁿ ≥ e^{−λ} asks for

    arccos |φ(y)| ≤ arccos e^{−λ/n} + 2 arcsin(σ|s|/2),

and one value rules out a whole cell of nodes around it, about as long as a step's loss is narrow,
whatever the number of steps. The cells left are split again and again. Values in the middles of
very many cells are one product of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from symdp.errors import AccuracyError
from symdp.law.elementary import Complex
from symdp.law.loss import Tilted
from symdp.law.panels import Index
from symdp.law.step import Array

_SIDE = 256  # a block is a square of so many cells each way, or less
_SPLIT = 8
_WIDE = 0.75  # a cell, in deviations⁻¹ of one step
_FEW = 16  # nodes of a cell that are all looked at
_AT_ONCE = 1 << 12
_RARE = 2.0**-12  # what single losses weigh that the first look leaves out
_ROUNDED = 1e-14
_CROWDED = 0.25  # of the nodes of a block, from which on all of them cost less
_GATHERED = 4.0  # what a value costs next to a value of all nodes of a block
_RIGHT = 0.5 * math.pi


class Lookout:
    """Φ at those nodes at which it may not be negligible.

    Parameters
    ----------
    tilted, counts
        The steps, all of single-valued losses, and how often each is taken.
    step
        The distance of the nodes.

    Raises
    ------
    AccuracyError
        If one value of each loss is all that is left at the tilt.
    """

    def __init__(self, tilted: Sequence[Tilted], counts: Sequence[float], step: float) -> None:
        if not any(part.variance > 0.0 for part in tilted):
            raise AccuracyError("all but one value of the loss vanish at the tilt of the line")
        self._counts = counts
        self._kinds = [_Kind(part, step) for part in tilted]
        self._atoms = sum(part.weight.size for part in tilted)
        narrow = _WIDE / (step * max(math.sqrt(part.variance) for part in tilted))
        self._largest = int(min(narrow, 2.0**40))
        self._crowded_up_to = 0
        self.work = 0.0  # values so far, times losses

    def block(self, first: int, level: float) -> tuple[int, Array, Complex]:
        """Return where a block of nodes ends, those that may be heard, and Φ there.

        Parameters
        ----------
        first
            The first node of the block.
        level
            −log of the |Φ| that all others are below.
        """
        size = self._size(first)
        rows = min(max(first // (_SIDE * size), 1), _SIDE)
        end = first + rows * _SIDE * size
        turns = [kind.turns(first, rows, size) for kind in self._kinds]
        if size == 1:
            self.work += rows * _SIDE * self._atoms
            found = [kind.all_of(own) for kind, own in zip(self._kinds, turns, strict=True)]
            return end, np.arange(first, end, dtype=np.float64), self._product(found)
        self.work += rows * _SIDE * sum(kind.likely for kind in self._kinds)
        loud = np.ones((rows, _SIDE), dtype=np.bool_)
        for kind, own, count in zip(self._kinds, turns, self._counts, strict=True):
            loud &= kind.places(own, size) > kind.least(level / count, size)
        row, column = np.nonzero(loud)
        starts = first + size * (_SIDE * row + column)
        heard: list[Array] = [np.empty(0)]
        values: list[Complex] = [np.empty(0, dtype=np.complex128)]
        for here in _pieces(row.size):
            cells = [
                kind.cells(own, size, row[here], column[here])
                for kind, own in zip(self._kinds, turns, strict=True)
            ]
            for nodes, product in self._inside(starts[here], cells, size, level):
                heard.append(nodes)
                values.append(product)
        nodes = np.concatenate(heard)
        if nodes.size > _CROWDED * (end - first):
            self._crowded_up_to = 2 * end
        return end, nodes, np.concatenate(values)

    def _size(self, first: int) -> int:
        """Return how many nodes a cell has from some node on."""
        most = self._largest if first >= self._crowded_up_to else 1
        size = 1
        while size * _SPLIT <= most and size * _SPLIT * _SIDE <= first:
            size *= _SPLIT
        return size

    def _inside(
        self, starts: Index, cells: Sequence[Complex], size: int, level: float
    ) -> Iterator[tuple[Array, Complex]]:
        """Yield nodes that may be heard in some cells of one size, and Φ there."""
        smaller = size // _SPLIT if size > _FEW else 1
        self.work += _GATHERED * starts.size * (size // smaller) * self._atoms
        parts = starts[:, None] + smaller * np.arange(size // smaller)
        if smaller == 1:
            values = [k.split(own, size, 1) for k, own in zip(self._kinds, cells, strict=True)]
            yield parts.ravel().astype(np.float64), self._product(values)
            return
        loud = np.ones(parts.shape, dtype=np.bool_)
        for kind, own, count in zip(self._kinds, cells, self._counts, strict=True):
            found = kind.split(own, size, smaller)
            loud &= found.real**2 + found.imag**2 > kind.least(level / count, smaller, rare=0.0)
        row, part = np.nonzero(loud)
        for here in _pieces(row.size):
            finer = [
                kind.finer(own, size, smaller, row[here], part[here])
                for kind, own in zip(self._kinds, cells, strict=True)
            ]
            yield from self._inside(parts[row[here], part[here]], finer, smaller, level)

    def _product(self, values: Sequence[Complex]) -> Complex:
        product = np.ones(values[0].size, dtype=np.complex128)
        for own, count in zip(values, self._counts, strict=True):
            product *= _power(own.ravel(), round(count))
        return product


class _Kind:
    """e^{iyL} of one kind of step in the middles of cells, times its weights."""

    def __init__(self, part: Tilted, step: float) -> None:
        order = np.argsort(-part.weight, kind="stable")
        self._weight, self._deviation = part.weight[order], part.deviation[order]
        self._step, self._width = step, math.sqrt(part.variance)
        rest = 1.0 - np.cumsum(self._weight)
        self.likely = int(np.argmax(rest < _RARE)) + 1
        self._rare = max(float(rest[self.likely - 1]), 0.0)
        self._kept: dict[tuple[str, int, int], Complex] = {}

    def least(self, level: float, size: int, rare: float | None = None) -> float:
        """Return what |φ|² is at least in the middle of a cell in which |φ| is e^{−level}."""
        reach = self._width * self._step * (size - 1) / 2.0
        angle = math.acos(math.exp(-level)) + 2.0 * math.asin(min(0.5 * reach, math.sqrt(0.5)))
        unseen = (self._rare if rare is None else rare) + _ROUNDED
        return max(math.cos(min(angle, _RIGHT)) - unseen, 0.0) ** 2

    def turns(self, first: int, rows: int, size: int) -> Complex:
        """Return a row for each row of cells of a block."""
        start = self._weight * np.exp(1j * (self._step * first) * self._deviation)
        return np.asarray(self._rows(size)[:rows] * start)

    def all_of(self, turns: Complex) -> Complex:
        """Return φ at all nodes of a block."""
        return np.asarray(turns @ self._columns(1))

    def places(self, turns: Complex, size: int) -> Array:
        """Return about |φ|² in the middle of every cell of a block."""
        found = turns[:, : self.likely] @ self._columns(size)[: self.likely]
        return np.asarray(found.real**2 + found.imag**2)

    def cells(self, turns: Complex, size: int, row: Index, column: Index) -> Complex:
        """Return a row for each of some cells of a block."""
        return np.asarray(turns[row] * self._columns(size).T[column])

    def split(self, cells: Complex, size: int, smaller: int) -> Complex:
        """Return φ in the middles of smaller cells, a row for each cell."""
        return np.asarray(cells @ self._inner(size, smaller))

    def finer(self, cells: Complex, size: int, smaller: int, row: Index, part: Index) -> Complex:
        """Return a row for each of some smaller cells."""
        return np.asarray(cells[row] * self._inner(size, smaller).T[part])

    def _columns(self, size: int) -> Complex:
        """Return a column for the middle of every cell of a row, from its first node on."""
        places: Array = size * np.arange(_SIDE, dtype=np.float64) + 0.5 * (size - 1)
        return self._keep(("columns", size, 0), self._deviation, places)

    def _inner(self, size: int, smaller: int) -> Complex:
        """Return a column for the middle of every smaller cell, from that of a cell on."""
        places: Array = smaller * np.arange(size // smaller, dtype=np.float64)
        places += 0.5 * (smaller - size)
        return self._keep(("inner", size, smaller), self._deviation, places)

    def _rows(self, size: int) -> Complex:
        places: Array = size * _SIDE * np.arange(_SIDE, dtype=np.float64)
        return self._keep(("rows", size, 0), places, self._deviation)

    def _keep(self, key: tuple[str, int, int], one: Array, other: Array) -> Complex:
        if key not in self._kept:
            self._kept[key] = np.exp(1j * np.multiply.outer(one, self._step * other))
        return self._kept[key]


def _pieces(size: int) -> Iterator[slice]:
    for first in range(0, size, _AT_ONCE):
        yield slice(first, first + _AT_ONCE)


def _power(values: Complex, count: int) -> Complex:
    """Return the values to a whole power, by squaring."""
    result = np.ones(values.size, dtype=np.complex128)
    while count:
        if count & 1:
            result *= values
        count >>= 1
        if count:
            values = values * values
    return result
