"""Paths beside the real axis and the integrals of |e^{g + iyℓ}| along them (see `lifted`)."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from flint import acb, arb

from symdp.emit.enclose import between

if TYPE_CHECKING:
    from symdp.certify.lifted import Lifted
    from symdp.law.step import Array

_MOST_CELLS = 4000
_SETTLED = 0.9  # what halving a cell must leave of its bound for it to count as good
_HARDLY = 0.01  # the share of a bound that is not worth another cell
_ENOUGH = 3  # lower ones that were hardly better
_BETTER = 0.8


class Segment(NamedTuple):
    """A straight part of a path, and whether the path runs along it from start to end or back."""

    start: acb
    end: acb
    sign: int


class Promise(NamedTuple):
    """A path and about the integral of the modulus along it."""

    total: float
    path: Path


class Ladder:
    """Paths of one angle from the highest down to where lower ones are hardly better."""

    def __init__(self, paths: Iterator[Path], y: float, most: float) -> None:
        self._paths, self._y, self._most = paths, y, most
        self.promises: list[Promise] = []

    def extend(self) -> None:
        """Go down until it no longer pays."""
        while not self._is_settled():
            path = next(self._paths, None)
            if path is None:
                return
            self.promises.append(Promise(path.about(self._y), path))

    def drop(self, promise: Promise) -> None:
        """Forget a path and all higher ones, if it is one of these."""
        if promise in self.promises:
            del self.promises[: self.promises.index(promise) + 1]

    def _is_settled(self) -> bool:
        least, since = math.inf, 0
        for promise in self.promises:
            better = promise.total < _BETTER * least
            least, since = (promise.total, 0) if better else (least, since + 1)
        return since > _ENOUGH and self.promises[-1].total < self._most


@dataclass(order=True)
class _Cell:
    """A part of a segment: on it |e^g|·length ≤ size and Im ℓ ≥ rise."""

    key: float
    number: int
    segment: int = field(compare=False)
    low: arb = field(compare=False)
    high: arb = field(compare=False)
    size: arb = field(compare=False)
    rise: arb = field(compare=False)

    def at(self, y: arb) -> arb:
        return arb((self.size * (-y * self.rise).exp()).upper())


class Path:
    """One path, in cells that are halved where they matter and kept for the next frequency."""

    def __init__(self, lifted: Lifted, corners: list[acb]) -> None:
        self._lifted, self.corners = lifted, corners
        self.holds: bool | None = None  # whether it may be used, once that was asked
        pairs = list(itertools.pairwise(corners))
        start, end = pairs.pop()
        # Both lines that end on the axis start there.
        self.segments = (*(Segment(*pair, 1) for pair in pairs), Segment(end, start, -1))
        self._probes: tuple[Array, Array] | None = None
        self._number = itertools.count()
        self._cells: list[_Cell] = []

    def about(self, y: float) -> float:
        """Return about the integral of the modulus, ∞ where ℓ does not help."""
        if self._probes is None:
            self._probes = self._probed()
        log_sizes, rises = self._probes
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.sum(np.exp(log_sizes - y * rises))
        return float(total) if np.all(rises >= 0) and np.isfinite(total) else math.inf

    def _probed(self) -> tuple[Array, Array]:
        """Return log|e^g|·length and Im ℓ at places along the path."""
        places = []
        lines = iter(self.segments)
        start, end, _ = next(lines)
        for left, right in itertools.pairwise(self._lifted.probes):
            middle = ((left + right) / 2).mid()
            while not middle <= max(start.real, end.real, key=float):
                start, end, _ = next(lines)
            step = (end - start) / (end.real - start.real)
            places.append((start + step * (middle - start.real), float(abs(step) * (right - left))))
        found = [(self._lifted.values(place), length) for place, length in places]
        return (
            np.asarray([float(size.mid()) + math.log(length) for (size, _), length in found]),
            np.asarray([float(rise.mid()) for (_, rise), _ in found]),
        )

    def at(self, y: arb) -> arb:
        """Return the sum of the cells' bounds, halved until that no longer helps."""
        if not self._cells:
            count = len(self.segments)
            self._cells = [self._cell(number, arb(0), arb(1)) for number in range(count)]
        done: list[_Cell] = []
        heap: list[_Cell] = []
        for cell in self._cells:
            cell.key = -float(cell.at(y))
            heapq.heappush(heap, cell)
        total = before = math.inf
        while heap and len(heap) + len(done) < _MOST_CELLS:
            if not total > before / 2:  # what is left of a difference is mostly rounding
                total = before = -sum(cell.key for cell in itertools.chain(heap, done))
            whole = heapq.heappop(heap)
            if math.isfinite(total) and -whole.key <= _HARDLY * total / (len(heap) + 1):
                done.append(whole)
                break
            middle = ((whole.low + whole.high) / 2).mid()
            halves = [
                self._cell(whole.segment, a, b)
                for a, b in ((whole.low, middle), (middle, whole.high))
            ]
            for half in halves:
                half.key = -float(half.at(y))
            left = -sum(half.key for half in halves)
            total += left + whole.key
            for half in halves:
                if left > _SETTLED * -whole.key:
                    done.append(half)
                else:
                    heapq.heappush(heap, half)
        self._cells = heap + done
        return arb(sum((cell.at(y) for cell in self._cells), arb(0)).upper())

    def _cell(self, number: int, low: arb, high: arb) -> _Cell:
        start, end, _ = self.segments[number]
        step = end - start
        around = start + step * between(low, high)
        log_size, _ = self._lifted.values(around)
        size = (log_size.exp() * abs(step) * (high - low)).upper()
        least = self._rise(number, low, high, (self._lifted.slope(around) * step).imag)
        if not (size.is_finite() and least.is_finite() and least >= 0):
            size, least = arb.pos_inf(), arb(0)
        return _Cell(0.0, next(self._number), number, low, high, arb(size), arb(least))

    def _rise(self, number: int, low: arb, high: arb, slope: arb) -> arb:
        """Return a lower bound of Im ℓ between two places of a segment, from its slope there."""
        if not slope.is_finite():
            return arb.nan()
        start, end, _ = self.segments[number]
        if slope >= 0 or slope <= 0:
            least = low if slope >= 0 else high
            if start.imag == 0 and least == 0:  # on the axis ℓ is real
                return arb(0)
            return arb(self._lifted.values(start + (end - start) * least)[1].lower())
        middle = ((low + high) / 2).mid()
        at_middle = self._lifted.values(start + (end - start) * middle)[1]
        return arb((at_middle - (high - low) / 2 * abs(slope)).lower())
