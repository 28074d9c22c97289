"""Paths beside the real axis along which e^{iyℓ} falls, and the bounds of ∫ e^{g + iyℓ} dx there.

Let ℓ rise between a and b, and let g and ℓ be holomorphic between that part of the axis and a path
that climbs from a to the height η and comes down to b again.  By Cauchy's theorem the integral over
[a, b] is the one over the path, and on it

    |e^{g + iyℓ}| = e^{Re g − y Im ℓ},    Im ℓ ≥ 0,

which falls as y grows: one bound for a y holds for every larger one.  Near the best η it is as
small as the integral itself, up to a factor, however often e^{iyℓ} turns on the real axis.  Where
ℓ falls, the path lies below the axis.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy as sp
from flint import acb, arb, ctx

from symdp.certify.work import spend
from symdp.emit.arb import compile_arb
from symdp.emit.enclose import between
from symdp.truth.variation import marks

if TYPE_CHECKING:
    from symdp.certify.moments import Stretch
    from symdp.numeric.step import Array

_BITS = 96
_COARSE = 53
_MOST_CELLS = 4000
_MOST_BOXES = 4000
_SETTLED = 0.9  # what halving a cell must leave of its bound for it to count as good
_HARDLY = 0.01  # the share of a bound that is not worth another cell
_SIDE_PROBES = 10
_HIGHEST = 2.0  # of the width between the ends
_LOWER = 2.0**-0.5
_MOST_HEIGHTS = 400
_ENOUGH = 6  # lower ones that were no better
_SMALLEST = 256  # of its distance from the ends: a box on which they must be holomorphic
_BESIDE = 1.001  # a path's corners are rounded
_STEEPEST = 4  # a side runs over at most this part of the width


class Segment(NamedTuple):
    """A straight part of a path, and whether the path runs along it from start to end or back."""

    start: acb
    end: acb
    sign: int


class Lifted:
    """The paths of one stretch between two places, at one tilt, and bounds along them.

    Parameters
    ----------
    part : Stretch
        With a loss that rises or falls on all of it.
    low, high : arb
        Exact numbers inside the stretch, or its regular ends.
    tilt, scale : arb
        g is log P + tℓ − scale.
    """

    def __init__(self, part: Stretch, low: arb, high: arb, tilt: arb, scale: arb) -> None:
        self.part, self._ends = part, (low, high)
        self._tilt, self._scale = tilt, scale
        self._side = 1 if part.piece.slope == "increasing" else -1
        self._paths: dict[float, _Path | None] = {}
        self._chosen: dict[int, _Path | None] = {}

    def at(self, y: arb) -> arb:
        """Return a bound of the modulus for all frequencies ≥ y, ∞ if none was found."""
        with ctx.workprec(_BITS):
            path = self._best(float(y))
            return arb.pos_inf() if path is None else path.at(y)

    def segments(self, y: float) -> tuple[Segment, ...] | None:
        """Return the path that promises most about a frequency, None if none was found."""
        with ctx.workprec(_BITS):
            path = self._best(y)
            return None if path is None else path.segments

    def values(self, place: acb) -> tuple[arb, arb]:
        """Return Re g and Im ℓ."""
        loss = self.part.loss(place)
        return self.part.exponent(place, self._tilt).real - self._scale, loss.imag

    def _best(self, y: float) -> _Path | None:
        octave = math.floor(math.log2(y))
        if octave not in self._chosen:
            height = self._height(2.0**octave)
            self._chosen[octave] = None if height is None else self._paths[height]
        return self._chosen[octave]

    def _segments(self, height: float) -> tuple[Segment, ...]:
        low, high = self._ends
        climb = acb(self._run(height), self._side * height)
        left, right = (low + climb).mid(), (high - climb.conjugate()).mid()
        return Segment(left, right, 1), Segment(acb(low), left, 1), Segment(acb(high), right, -1)

    def _run(self, height: float) -> arb:
        """Return how far a side of a path reaches along the axis."""
        low, high = self._ends
        return arb(height).min((high - low) / _STEEPEST).mid()

    def _height(self, y: float) -> float | None:
        """Return the height that promises most at a frequency, of those with a path."""
        best: tuple[float, float] | None = None
        since = 0
        height = _HIGHEST * float(self._ends[1] - self._ends[0])
        for _ in range(_MOST_HEIGHTS):
            height *= _LOWER
            path = self._path(height)
            if path is None:
                continue
            total = path.about(y)
            since = 0 if best is None or total < best[0] else since + 1
            if math.isfinite(total):
                best = (total, height) if best is None else min(best, (total, height))
            if since > _ENOUGH and best is not None:
                break
        return None if best is None else best[1]

    def _path(self, height: float) -> _Path | None:
        """Return the path at a height, or None where the functions are not holomorphic below it."""
        if height not in self._paths:
            holds = self._is_holomorphic(height)
            self._paths[height] = _Path(self, self._segments(height)) if holds else None
        return self._paths[height]

    def _is_holomorphic(self, height: float) -> bool:
        """Return whether the functions are holomorphic between the axis and the path."""
        low, high = self._ends
        steepness = _BESIDE * arb(height) / self._run(height)
        waiting = [(low, high, arb(0), arb(height))]
        for _ in range(_MOST_BOXES):
            if not waiting:
                return True
            left, right, lower, upper = waiting.pop()
            if lower > steepness * (right - low).min(high - left):
                continue  # beyond the path
            box = acb(between(left, right), self._side * between(lower, upper))
            spend(2.0)
            if all(f(box, analytic=True).is_finite() for f in (self.part.base, self.part.loss)):
                continue
            if right - left > upper - lower:
                middle = ((left + right) / 2).mid()
                waiting += [(left, middle, lower, upper), (middle, right, lower, upper)]
            else:
                if _SMALLEST * (upper - lower) < (left - low).min(high - right).min(arb(height)):
                    return False
                middle = ((lower + upper) / 2).mid()
                waiting += [(left, right, lower, middle), (left, right, middle, upper)]
        return False


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


class _Path:
    """One path, in cells that are halved where they matter and kept for the next frequency."""

    def __init__(self, lifted: Lifted, segments: tuple[Segment, ...]) -> None:
        self._lifted, self.segments = lifted, segments
        self._probes: tuple[Array, Array] | None = None
        part = lifted.part
        self._slope = compile_arb(sp.diff(part.piece.loss, part.x), [part.x])
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
        top, *sides = self.segments
        start, end, _ = top
        places = []
        for left, right in itertools.pairwise(marks(start.real, end.real)):
            middle = ((left + right) / 2).mid()
            places.append((acb(middle, start.imag), float(right - left)))
        for start, end, _ in sides:
            for k in range(_SIDE_PROBES):
                place = start + (end - start) / 2**k
                places.append((place, float(abs(end - start)) / 2 ** (k + 1)))
        found = [(self._lifted.values(place), length) for place, length in places]
        return (
            np.asarray([float(size.mid()) + math.log(length) for (size, _), length in found]),
            np.asarray([float(rise.mid()) for (_, rise), _ in found]),
        )

    def at(self, y: arb) -> arb:
        """Return the sum of the cells' bounds, halved until that no longer helps."""
        if not self._cells:
            self._cells = [self._cell(number, arb(0), arb(1)) for number in range(3)]
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
        least = self._rise(number, low, high, (self._slope(around) * step).imag)
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
            if number and least == 0:  # on the axis ℓ is real
                return arb(0)
            return arb(self._lifted.values(start + (end - start) * least)[1].lower())
        middle = ((low + high) / 2).mid()
        at_middle = self._lifted.values(start + (end - start) * middle)[1]
        return arb((at_middle - (high - low) / 2 * abs(slope)).lower())
