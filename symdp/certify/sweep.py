"""Bounds of |φ| of discrete losses over very long ranges of frequencies, by products in doubles.

Places are kΔ with k = a + Jb.  As e^{ikΔℓ} = e^{iaΔℓ} e^{ibJΔℓ}, the product of a matrix over a and
one over b has φ at all of them.  Its factors are balls that were rounded, and by the usual bound of
a sum of d complex products in any order (Higham, Accuracy and Stability of Numerical Algorithms,
section 3.6) no entry is off by more than (4d + 128)·2^−53 times Σ p.  Between places |φ| is at most
the larger of both and E(ℓ − c)²Δ²/8; where that is not enough, ever smaller parts are looked at,
and at last nodes are summed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from flint import acb, arb, ctx

from symdp.certify.mollifier import LARGEST, ROUNDED, Mollifier
from symdp.certify.work import spend
from symdp.errors import AccuracyError
from symdp.law.elementary import Complex
from symdp.law.panels import Index
from symdp.law.step import Array

if TYPE_CHECKING:
    from symdp.certify.nodes import Nodes

_Values = TypeVar("_Values", Array, Complex)

ROWS = 128
BITS = 128  # of the losses, which frequencies of up to 2^64 multiply
_COLUMNS = 1024
_INTERVALS_AT_ONCE, _NODES_AT_ONCE = 1 << 12, 1 << 18
_COST, _NODE = 3e-5, 3e-3  # of a place and a loss, and of a node, in values of a log-density
_EXACT = arb(2) ** -56
_UNIT = 2.0**-53
_ABOVE = 1.0 + 2.0**-40  # what a few roundings of positive numbers may lack
_LEAST = 1e-290  # more than powers that underflow


class Chunk(NamedTuple):
    """Nodes from one up to another, and what those add that are not shown to be small.

    `mass` is above the sum of Re e^{−iyε} Π φ_i^{n_i} times the window of the cut-off.  `unsure`
    nodes are not known well enough in doubles, and in none of the sums.
    """

    first: int
    last: int
    total: float
    error: float
    mass: float
    unsure: list[int]


class _Phases:
    """e^{iyℓ} of some losses at nodes kh."""

    def __init__(self, losses: Sequence[arb], spacing: arb, lengths: Sequence[int]) -> None:
        self._losses, self._spacing, self._lengths = losses, spacing, lengths
        self._parts: dict[int, Complex] = {}

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
        return self._at([a * self._lengths[0] for a in range(ROWS + 1)])

    def parts(self, level: int) -> Complex:
        """Return a row for each end of the parts of an interval of one of the lengths."""
        if level not in self._parts:
            whole, part = self._lengths[level : level + 2]
            self._parts[level] = self._at(range(0, whole + part, part))
        return self._parts[level]

    @cached_property
    def inner(self) -> Complex:
        """Those after the first node of the shortest parts, one column for each."""
        return self._at(range(1, self._lengths[-1] + 1)).T

    @cached_property
    def _few_columns(self) -> Complex:
        return self._at([b * ROWS * self._lengths[0] for b in range(_COLUMNS)])

    def columns(self, first: int, last: int) -> Complex:
        """Return a row for each b from the first up to, not including, the last, of one block."""
        block = first // _COLUMNS
        found = self._few_columns[first - block * _COLUMNS : last - block * _COLUMNS]
        if block:
            found = found * self._at([block * _COLUMNS * ROWS * self._lengths[0]])
        return np.asarray(found)

    def beginnings(self, first: int, last: int, nodes: Index) -> Complex:
        """Return a row for each of some nodes where the shortest parts of such columns begin."""
        interval, rest = np.divmod(nodes, self._lengths[0])
        column, row = np.divmod(interval, ROWS)
        found = self.rows[row] * self.columns(first, last)[column - first]
        for level, part in enumerate(self._lengths[1:]):
            number, rest = np.divmod(rest, part)
            found *= self.parts(level)[number]
        return np.asarray(found)


class _Law:
    """φ of one kind of step."""

    def __init__(self, nodes: Nodes, count: int, spacing: arb, lengths: Sequence[int]) -> None:
        self.count = count
        self.phases = _Phases(nodes.losses, spacing, lengths)
        self.weights = np.asarray([float(weight.mid()) for weight in nodes.weights])
        rounding = (4 * self.weights.size + 128) * _UNIT * float(np.sum(np.abs(self.weights)))
        self.error = (_up(nodes.error) + rounding) * _ABOVE
        self._bends = [_up(nodes.spread[1] * (length * spacing) ** 2 / 8) for length in lengths]

    def allowed(self, log_level: float, level: int) -> float:
        """Return what |φ|² must be below at both places for a small power between them."""
        most = math.exp(log_level / self.count) / _ABOVE - self.error - self._bends[level]
        return most * most / _ABOVE if most > 0.0 else 0.0

    @cached_property
    def _rows(self) -> Complex:
        return np.asarray(self.phases.rows * self.weights)

    def at_places(self, first: int, last: int) -> Complex:
        """Return φ, one column for each of some columns."""
        return np.asarray(self._rows @ self.phases.columns(first, last).T)


class Sweep:
    """Σ c Re e^{−iyε} Π φ_i(y)^{n_i}/(z(1 + z)) over nodes y = kh that are not shown to be small.

    Parameters
    ----------
    likely, whole : sequence of Nodes
        The tilted laws, real losses and masses of about 1, to `BITS` bits: what of each is likely,
        the rest being error, and all of it.
    counts : sequence of int
        The n_i.
    tilt, epsilon, spacing : arb
        Re z, ε and h.
    lengths : sequence of int
        Of intervals between two places and of ever smaller parts of them, in nodes: each divides
        the one before.
    tolerance : float
        The error of the k-th node may be this share of 1/k.
    mollifier : Mollifier
        The cut-off c.
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
        lengths: Sequence[int],
        tolerance: float,
        mollifier: Mollifier,
    ) -> None:
        self._lengths, self._tolerance, self._mollifier = lengths, tolerance, mollifier
        self._tilt, self._spacing = float(tilt), float(spacing)
        self._likely, self._whole = (
            [_Law(nodes, n, spacing, lengths) for nodes, n in zip(laws, counts, strict=True)]
            for laws in (likely, whole)
        )
        self._shift = _Phases([-epsilon], spacing, lengths)

    def chunks(self, column: int, last: int, log_level: float) -> Iterator[Chunk]:
        """Yield what the nodes add from a column of places on until a last node is covered.

        Parameters
        ----------
        column : int
            1 or more; it begins at the node column·ROWS·lengths[0].
        log_level : float
            What log(Π|φ_i|^{n_i}/k) is below at the k-th node counts as small.
        """
        nodes = ROWS * self._lengths[0]
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
        loud = np.ones((ROWS, end - start), dtype=np.bool_)
        for law in self._likely:
            above = _squares(law.at_places(start, end)) >= law.allowed(log_level, 0)
            loud &= above[:-1] | above[1:]
        row, column = np.nonzero(loud)
        intervals = self._lengths[0] * ((start + column) * ROWS + row)
        sums, unsure = [(0.0, 0.0, 0.0)], [np.empty(0, dtype=np.intp)]
        for some in _pieces(intervals.size, _INTERVALS_AT_ONCE):
            first = intervals[some]
            terms = [law.weights * law.phases.beginnings(start, end, first) for law in self._likely]
            for parts in self._loud_parts(first, terms, 0, log_level):
                for few in _pieces(parts.size, max(_NODES_AT_ONCE // self._lengths[-1], 1)):
                    found, nodes = self._sums(start, end, parts[few])
                    sums.append(found)
                    unsure.append(nodes)
        total, error, mass = (math.fsum(each) for each in zip(*sums, strict=True))
        size, left = ROWS * self._lengths[0], np.concatenate(unsure).tolist()
        return Chunk(start * size, end * size, total, error * _ABOVE, mass, left)

    def _loud_parts(
        self, first: Index, terms: Sequence[Complex], level: int, log_level: float
    ) -> Iterator[Index]:
        """Yield where the shortest parts begin in which the product is not shown to be small."""
        if level == len(self._lengths) - 1:
            yield first
            return
        part = self._lengths[level + 1]
        parts = self._lengths[level] // part
        spend(_COST * parts * first.size * sum(law.phases.size for law in self._likely))
        loud = np.ones((first.size, parts), dtype=np.bool_)
        for law, own in zip(self._likely, terms, strict=True):
            found = _squares(own @ law.phases.parts(level).T)
            above = found >= law.allowed(log_level, level + 1)
            loud &= above[:, :-1] | above[:, 1:]
        which, number = np.nonzero(loud)
        for some in _pieces(which.size, _INTERVALS_AT_ONCE):
            of, at = which[some], number[some]
            finer = [
                np.asarray(own[of] * law.phases.parts(level)[at])
                for law, own in zip(self._likely, terms, strict=True)
            ]
            yield from self._loud_parts(first[of] + part * at, finer, level + 1, log_level)

    def _sums(self, start: int, end: int, first: Index) -> tuple[tuple[float, float, float], Index]:
        """Return the sum over nodes of some parts, its error and the mass; and what is left."""
        part = self._lengths[-1]
        spend((_NODE + _COST * sum(law.phases.size for law in self._whole)) * part * first.size)
        nodes = first[:, None] + np.arange(1, part + 1)
        y: Array = nodes.astype(np.float64) * self._spacing
        z = self._tilt + 1j * y
        value = self._shift.beginnings(start, end, first) @ self._shift.inner
        size = np.ones_like(y)
        wrong = np.full_like(y, 128.0 * _UNIT)  # relative to the size
        for law in self._whole:
            terms = law.weights * law.phases.beginnings(start, end, first)
            found = terms @ law.phases.inner
            modulus = np.sqrt(_squares(found)) * _ABOVE + 2.0 * law.error
            value *= _power(found, law.count)
            size *= _power(modulus, law.count)
            wrong += law.count * (law.error / modulus + 16.0 * _UNIT)
        above = 1.0 + (part + 128 + 32 * sum(law.count for law in self._whole)) * _UNIT
        cut, window = self._mollifier.weights(y)
        # Weights are off by a quarter of this, and sums of so few by less.
        mass = value.real * window + size * (LARGEST * wrong + ROUNDED) * above
        wrong += np.where(y < 0.49 * self._mollifier.reach, 0.0, ROUNDED)
        value *= cut
        value /= z * (1.0 + z)
        # A sum over a part, and two more of such sums.
        error = (size / (y * y) * (wrong + (part + 3) * _UNIT) + _LEAST) * above
        sure = error * nodes <= self._tolerance
        total, missing, weight = (
            math.fsum(np.where(sure, each, 0.0).sum(axis=1).tolist())
            for each in (value.real, error, mass)
        )
        return (total, missing, weight), nodes[~sure]


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
