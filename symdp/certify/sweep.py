"""Bounds of |φ| of discrete losses over very long ranges of frequencies, by products in doubles.

Places are kΔ with k = a + Jb.  As e^{ikΔℓ} = e^{iaΔℓ} e^{ibJΔℓ}, the product of a matrix over a and
one over b has φ at all of them.  Its factors are balls that were rounded, and by the usual bound of
a sum of d complex products in any order (Higham, Accuracy and Stability of Numerical Algorithms,
section 3.6) no entry is off by more than (4d + 64)·2^−53 times Σ p.  Between places |φ| is at most
the larger of both and E(ℓ − c)²Δ²/8; where that is not enough, the nodes between are summed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from flint import acb, arb, ctx

from symdp.certify.work import spend
from symdp.errors import AccuracyError
from symdp.numeric.elementary import Complex
from symdp.numeric.panels import Index
from symdp.numeric.step import Array

if TYPE_CHECKING:
    from symdp.certify.nodes import Nodes

_Values = TypeVar("_Values", Array, Complex)

ROWS = 128
BITS = 128  # of the losses, which frequencies of up to 2^64 multiply
_COLUMNS = 1024
_INTERVALS_AT_ONCE, _NODES_AT_ONCE = 1 << 12, 1 << 18
_COST, _NODE = 1e-4, 1e-2  # of a place and a loss, and of a node, in values of a log-density
_EXACT = arb(2) ** -56
_UNIT = 2.0**-53
_ABOVE = 1.0 + 2.0**-40  # what a few roundings of positive numbers may lack
_LEAST = 1e-290  # more than powers that underflow


class Chunk(NamedTuple):
    """Nodes from one up to another, and what those add that are not shown to be small.

    `energy` is the sum of Π|φ_i|^{m_i} over them, m_i even and at most n_i.
    """

    first: int
    last: int
    total: float
    error: float
    energy: float


class _Phases:
    """e^{iyℓ} of some losses at nodes kh, k = ((b ROWS + a) parts + c) part + d."""

    def __init__(self, losses: Sequence[arb], spacing: arb, parts: int, part: int) -> None:
        self._losses, self._spacing, self._parts, self._part = losses, spacing, parts, part

    @property
    def size(self) -> int:
        return len(self._losses)

    def _at(self, nodes: Sequence[int]) -> Complex:
        """Return a row for each node."""
        phases = np.empty((len(nodes), self.size), dtype=np.complex128)
        for row, node in enumerate(nodes):
            y = node * self._spacing
            for column, loss in enumerate(self._losses):
                ball = (acb(0, y) * loss).exp()
                if not (ball.real.rad() < _EXACT and ball.imag.rad() < _EXACT):
                    raise AccuracyError("a frequency is too high to turn losses exactly")
                phases[row, column] = complex(float(ball.real.mid()), float(ball.imag.mid()))
        return phases

    @cached_property
    def rows(self) -> Complex:
        return self._at([a * self._parts * self._part for a in range(ROWS + 1)])

    @cached_property
    def parts(self) -> Complex:
        return self._at([c * self._part for c in range(self._parts + 1)])

    @cached_property
    def inner(self) -> Complex:
        """Those after the first node of a part, one column for each."""
        return self._at(range(1, self._part + 1)).T

    @cached_property
    def _few_columns(self) -> Complex:
        return self._at([b * ROWS * self._parts * self._part for b in range(_COLUMNS)])

    def columns(self, first: int, last: int) -> Complex:
        """Return a row for each b from the first up to, not including, the last, of one block."""
        block = first // _COLUMNS
        found = self._few_columns[first - block * _COLUMNS : last - block * _COLUMNS]
        if block:
            found = found * self._at([block * _COLUMNS * ROWS * self._parts * self._part])
        return np.asarray(found)


class _Law:
    """φ of one kind of step."""

    def __init__(self, nodes: Nodes, count: int, spacing: arb, parts: int, part: int) -> None:
        self.count, self.even = count, count - count % 2
        self.phases = _Phases(nodes.losses, spacing, parts, part)
        self._weights = np.asarray([float(weight.mid()) for weight in nodes.weights])
        rounding = (4 * self._weights.size + 64) * _UNIT * float(np.sum(np.abs(self._weights)))
        self.error = (_up(nodes.error) + rounding) * _ABOVE
        self._bend = _up(nodes.spread[1] * (parts * part * spacing) ** 2 / 8)

    def allowed(self, log_level: float, *, parts: int) -> float:
        """Return what |φ|² must be below at both places for a small power between them."""
        if not self.even:
            return 0.0
        most = math.exp(log_level / self.even) / _ABOVE - self.error - self._bend / parts**2
        return most * most / _ABOVE if most > 0.0 else 0.0

    @cached_property
    def _rows(self) -> Complex:
        return np.asarray(self.phases.rows * self._weights)

    def at_places(self, columns: Complex) -> Complex:
        """Return φ, one column for each of the columns."""
        return np.asarray(self._rows @ columns.T)

    def at_parts(self, columns: Complex, row: Index, column: Index) -> Complex:
        """Return φ between places, one row for each interval."""
        return np.asarray((self._rows[row] * columns[column]) @ self.phases.parts.T)

    def at_nodes(self, columns: Complex, row: Index, column: Index, part: Index) -> Complex:
        """Return φ at the nodes of parts, one row for each part."""
        phases = self._rows[row] * columns[column] * self.phases.parts[part]
        return np.asarray(phases @ self.phases.inner)


class Sweep:
    """Σ Re e^{−iyε} Π φ_i(y)^{n_i}/(z(1 + z)) over nodes y = kh where it is not shown to be small.

    Parameters
    ----------
    likely, whole : sequence of Nodes
        The tilted laws, real losses and masses of about 1, to `BITS` bits: what of each is likely,
        the rest being error, and all of it.
    counts : sequence of int
        The n_i.
    tilt, epsilon, spacing : arb
        Re z, ε and h.
    parts, part : int
        Of an interval between two places, which are looked at again, and nodes of each.
    """

    def __init__(
        self,
        likely: Sequence[Nodes],
        whole: Sequence[Nodes],
        counts: Sequence[int],
        *,
        tilt: arb,
        epsilon: arb,
        spacing: arb,
        parts: int,
        part: int,
    ) -> None:
        self._parts, self._part = parts, part
        self._tilt, self._spacing = float(tilt), float(spacing)
        self._likely, self._whole = (
            [_Law(nodes, n, spacing, parts, part) for nodes, n in zip(laws, counts, strict=True)]
            for laws in (likely, whole)
        )
        self._shift = _Phases([-epsilon], spacing, parts, part)

    def chunks(self, column: int, last: int, log_level: float) -> Iterator[Chunk]:
        """Yield what the nodes add from a column of places on until a last node is covered.

        Parameters
        ----------
        column : int
            1 or more; it begins at the node column·ROWS·parts·part.
        log_level : float
            What log(Π|φ_i|^{m_i}/k) is below at the k-th node counts as small.
        """
        nodes = ROWS * self._parts * self._part
        final = -(-last // nodes)
        while column < final:
            # Places of one chunk are no more than twice as far out as others.
            end = min(2 * column, column - column % _COLUMNS + _COLUMNS, final)
            with ctx.workprec(BITS):
                found = self._chunk(column, end, log_level + math.log(column * nodes))
            yield found
            column = end

    def _chunk(self, start: int, end: int, log_level: float) -> Chunk:
        spend(_COST * (end - start) * ROWS * sum(law.phases.size for law in self._likely))
        columns = [law.phases.columns(start, end) for law in self._likely]
        loud = np.ones((ROWS, end - start), dtype=np.bool_)
        for law, own in zip(self._likely, columns, strict=True):
            above = _squares(law.at_places(own)) >= law.allowed(log_level, parts=1)
            loud &= above[:-1] | above[1:]
        rows, places = np.nonzero(loud)
        sums = [np.zeros(3)]
        for some in _pieces(rows.size, _INTERVALS_AT_ONCE):
            row, column = rows[some], places[some]
            which, part = self._loud_parts(columns, row, column, log_level)
            for few in _pieces(which.size, max(_NODES_AT_ONCE // self._part, 1)):
                at = which[few]
                sums.append(self._sums(start, end, row[at], column[at], part[few]))
        total, error, energy = (math.fsum(each.tolist()) for each in np.transpose(sums))
        nodes = ROWS * self._parts * self._part
        return Chunk(start * nodes, end * nodes, total, error * _ABOVE, energy * _ABOVE)

    def _loud_parts(
        self, columns: Sequence[Complex], row: Index, column: Index, log_level: float
    ) -> tuple[Index, Index]:
        """Return intervals' numbers and their parts where the product is not shown to be small."""
        spend(_COST * self._parts * row.size * sum(law.phases.size for law in self._likely))
        loud = np.ones((row.size, self._parts), dtype=np.bool_)
        for law, own in zip(self._likely, columns, strict=True):
            above = _squares(law.at_parts(own, row, column)) >= law.allowed(
                log_level, parts=self._parts
            )
            loud &= above[:, :-1] | above[:, 1:]
        which, part = np.nonzero(loud)
        return which, part

    def _sums(self, start: int, end: int, row: Index, column: Index, part: Index) -> Array:
        """Return the sum over the nodes of some parts, its error and the energy."""
        each = _NODE + _COST * sum(law.phases.size for law in self._whole)
        spend(each * self._part * row.size)
        first = (((start + column) * ROWS + row) * self._parts + part) * self._part
        y = (first[:, None] + np.arange(1, self._part + 1)) * self._spacing
        z = self._tilt + 1j * y
        phase = self._shift.rows[row] * self._shift.columns(start, end)[column]
        value = (phase * self._shift.parts[part]) @ self._shift.inner / (z * (1.0 + z))
        size, even = 1.0 / (y * y), np.ones_like(y)
        wrong = np.full_like(y, 64.0 * _UNIT)  # relative to the size
        for law in self._whole:
            found = law.at_nodes(law.phases.columns(start, end), row, column, part)
            modulus = np.sqrt(_squares(found)) * _ABOVE + 2.0 * law.error
            value *= _power(found, law.count)
            size *= _power(modulus, law.count)
            even *= _power(modulus, law.even)
            wrong += law.count * (law.error / modulus + 16.0 * _UNIT)
        above = 1.0 + (self._part + 64 + 32 * sum(law.count for law in self._whole)) * _UNIT
        # A sum over a part, and two more of such sums.
        error = (size * (wrong + (self._part + 3) * _UNIT) + _LEAST) * above
        sums = value.real, error, (even + _LEAST) * above
        return np.asarray([math.fsum(each.sum(axis=1).tolist()) for each in sums])


def _pieces(size: int, most: int) -> Iterator[slice]:
    for first in range(0, size, most):
        yield slice(first, first + most)


def _power(base: _Values, exponent: int) -> _Values:
    """Return a power by squaring: relative rounding is at most that of so many products."""
    result, square = np.ones_like(base), base
    while exponent:
        if exponent & 1:
            result = result * square
        exponent >>= 1
        if exponent:
            square = square * square
    return result


def _squares(values: Complex) -> Array:
    return np.asarray(values.real**2 + values.imag**2)


def _up(value: arb) -> float:
    """Return a double above a ball."""
    return math.nextafter(float(value.upper()), math.inf)
