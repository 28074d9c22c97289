"""Paths beside the real axis along which e^{iyℓ} falls, and the bounds of ∫ e^{g + iyℓ} dx there.

Let ℓ rise between a and b, and let g and ℓ be holomorphic between that part of the axis and a path
that climbs from a and comes down to b again.  By Cauchy's theorem the integral over [a, b] is the
one over the path, and on it

    |e^{g + iyℓ}| = e^{Re g − y Im ℓ},    Im ℓ ≥ 0,

which falls as y grows: one bound for a y holds for every larger one.  On the best path it is as
small as the integral itself, up to a factor, however often e^{iyℓ} turns on the real axis.  Where
ℓ falls, the path lies below the axis.

At the height η ≪ |ℓ′/ℓ″| the direction of ℓ′ is turned by η|ℓ″/ℓ′|.  Paths on which that angle is
about one, and which a highest η may cut short, close in on the axis where ℓ turns, or comes closer
to a value the faster the further out, so that ℓ moves at a steep angle away from its value there.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
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
    from symdp.emit.arb import ArbFunction
    from symdp.numeric.step import Array

_BITS = 96
_COARSE = 53
_MOST_CELLS = 4000
_MOST_BOXES = 12_000
_SETTLED = 0.9  # what halving a cell must leave of its bound for it to count as good
_HARDLY = 0.01  # the share of a bound that is not worth another cell
_LOWER = 0.5
_MOST_HEIGHTS = 100
_ENOUGH = 3  # lower ones that were hardly better
_BETTER, _ALIKE = 0.8, 4.0
_HIGHER = 1.5  # where all is still holomorphic
_ANGLES = (1.0, 0.5)  # by which ℓ′ may be turned
_STEEPEST = 2.0  # towards the ends
_CLOSER, _CLOSEST = 3, 72  # −log₂ of how much closer places come to the ends
_STRAIGHT = 1.25  # what a straight line may be off
_SMALLEST = 256  # of its distance from the ends: a box on which they must be holomorphic
_TURN_BITS = 40
_FAR = 8.0  # times as far from an end as another place
_BESIDE = 1.001  # corners are rounded


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
        self._precision = _BITS + part.spare(low, high)
        self._tilt, self._scale = tilt, scale
        self.side = 1 if part.piece.slope == "increasing" else -1
        self._paths: dict[tuple[float, float], _Path | None] = {}
        self._chosen: dict[int, _Path | None] = {}

    def at(self, y: arb) -> arb:
        """Return a bound of the modulus for all frequencies ≥ y, ∞ if none was found."""
        with ctx.workprec(self._precision):
            path = self._best(float(y))
            return arb.pos_inf() if path is None else path.at(y)

    def segments(self, y: float) -> tuple[Segment, ...] | None:
        """Return the path that promises most about a frequency, None if none was found."""
        with ctx.workprec(self._precision):
            path = self._best(y)
            return None if path is None else path.segments

    def values(self, place: acb) -> tuple[arb, arb]:
        """Return Re g and Im ℓ."""
        loss = self.part.loss(place)
        return self.part.exponent(place, self._tilt).real - self._scale, loss.imag

    def _best(self, y: float) -> _Path | None:
        octave = math.floor(math.log2(y))
        if octave not in self._chosen:
            self._chosen[octave] = self._best_at(2.0**octave)
        return self._chosen[octave]

    @cached_property
    def slope(self) -> ArbFunction:
        """ℓ′ as a function of balls."""
        return compile_arb(sp.diff(self.part.piece.loss, self.part.x), [self.part.x])

    @cached_property
    def places(self) -> list[arb]:
        """Places between the ends, and the ends."""
        low, high = self._ends
        close = [(high - low) * arb(2) ** -k for k in range(_CLOSER, _CLOSEST, _CLOSER)]
        beside = [place.mid() for step in close for place in (low + step, high - step)]
        inside = {p.fmpq(): p for p in (*marks(low, high), *beside) if low < p < high}
        return [low, *(place for _, place in sorted(inside.items())), high]

    @cached_property
    def _limits(self) -> list[tuple[float, float]]:
        """What the slopes at the ends allow at each place, and |ℓ′/ℓ″| there."""
        low, high = self._ends
        near = acb(0, arb(2) ** -_TURN_BITS)
        found = []
        for place in self.places[1:-1]:
            room = (place - low).min(high - place).mid()
            turn = abs(self.part.log_slope(place + near * room).imag) / (near.imag * room)
            flat = float((1 / turn).mid()) if turn > 0 else math.inf
            found.append((_STEEPEST * float(room), flat if flat > 0 else math.inf))
        return found

    def _best_at(self, y: float) -> _Path | None:
        """Return the path that promises most at a frequency."""
        ladders = [_Ladder(self._paths_below(angle), y) for angle in _ANGLES]
        while True:
            for ladder in ladders:
                ladder.extend()
            promises = [p for ladder in ladders for p in ladder.promises if math.isfinite(p.total)]
            if not promises:
                return None
            # Higher paths need fewer nodes.
            least = min(promise.total for promise in promises)
            best = next(promise for promise in promises if promise.total <= _ALIKE * least)
            if self._holds(best.path):
                return best.path
            for ladder in ladders:
                ladder.drop(best)

    def _paths_below(self, angle: float) -> Iterator[_Path]:
        """Yield paths from the highest down; where one is not to be used, no higher one is."""
        height = max((min(a, angle * b) for a, b in self._limits), default=0.0)
        for _ in range(_MOST_HEIGHTS):
            key = angle, height
            if key not in self._paths:
                corners = self._corners(angle, height)
                self._paths[key] = _Path(self, corners) if len(corners) > 2 else None
            path = self._paths[key]
            if path is not None:
                yield path
            height *= _LOWER

    def _holds(self, path: _Path) -> bool:
        """Whether the functions are holomorphic below a path, and somewhat further."""
        if path.holds is None:
            higher = [acb(c.real, (_HIGHER * c.imag).mid()) for c in path.corners]
            path.holds = self._is_holomorphic(higher)
        return path.holds

    def _corners(self, angle: float, height: float) -> list[acb]:
        """Return the corners of a path that is about as high as is allowed."""
        heights = [0.0, *(min(height, a, angle * b) for a, b in self._limits), 0.0]
        kept = [0]
        for index in range(2, len(heights)):
            if not _is_straight(self.places, heights, kept[-1], index):
                kept.append(index - 1)
        kept.append(len(heights) - 1)
        return [acb(self.places[k], self.side * arb(heights[k])) for k in kept]

    def _is_holomorphic(self, corners: list[acb]) -> bool:
        """Return whether the functions are holomorphic between the axis and the path."""
        low, high = self._ends
        waiting = []
        for start, end in itertools.pairwise(corners):
            top = abs(start.imag).max(abs(end.imag)) * _BESIDE
            waiting.append((start.real, end.real, arb(0), top.mid(), start, end))
        for _ in range(_MOST_BOXES):
            if not waiting:
                return True
            left, right, lower, upper, start, end = waiting.pop()
            steepness = (abs(end.imag) - abs(start.imag)) / (end.real - start.real)
            path = abs(start.imag) + steepness * ((left if steepness < 0 else right) - start.real)
            if lower > _BESIDE * path:
                continue  # beyond the path
            upper = upper.min((_BESIDE * path).upper())
            box = acb(between(left, right), self.side * between(lower, upper))
            spend(2.0)
            if all(f(box, analytic=True).is_finite() for f in (self.part.base, self.part.loss)):
                continue
            if right - left > upper - lower:
                middle = self._middle(left, right)
                waiting.append((left, middle, lower, upper, start, end))
                waiting.append((middle, right, lower, upper, start, end))
            else:
                if _SMALLEST * (upper - lower) < (left - low).min(high - right).min(path):
                    return False
                middle = ((lower + upper) / 2).mid()
                waiting.append((left, right, lower, middle, start, end))
                waiting.append((left, right, middle, upper, start, end))
        return False

    def _middle(self, left: arb, right: arb) -> arb:
        """Return a place between two, many octaves from either where one is close to an end."""
        for end in self.part.ends:
            if end is not None:
                near, far = sorted((abs(left - end), abs(right - end)), key=float)
                if near > 0 and far > _FAR * near:
                    return (end + (near * far).sqrt() * (1 if left >= end else -1)).mid()
        return ((left + right) / 2).mid()


def _is_straight(places: list[arb], heights: list[float], start: int, end: int) -> bool:
    """Whether a straight line from one place to another is nowhere far from the heights between."""
    slope = (heights[end] - heights[start]) / float(places[end] - places[start])
    for k in range(start + 1, end):
        height = heights[start] + slope * float(places[k] - places[start])
        if not height / _STRAIGHT <= heights[k] <= height * _STRAIGHT:
            return False
    return True


class _Promise(NamedTuple):
    """A path and about the integral of the modulus along it."""

    total: float
    path: _Path


class _Ladder:
    """Paths of one angle from the highest down to where lower ones are hardly better."""

    def __init__(self, paths: Iterator[_Path], y: float) -> None:
        self._paths, self._y = paths, y
        self.promises: list[_Promise] = []

    def extend(self) -> None:
        """Go down until it no longer pays."""
        while not self._is_settled():
            path = next(self._paths, None)
            if path is None:
                return
            self.promises.append(_Promise(path.about(self._y), path))

    def drop(self, promise: _Promise) -> None:
        """Forget a path and all higher ones, if it is one of these."""
        if promise in self.promises:
            del self.promises[: self.promises.index(promise) + 1]

    def _is_settled(self) -> bool:
        least, since = math.inf, 0
        for promise in self.promises:
            better = promise.total < _BETTER * least
            least, since = (promise.total, 0) if better else (least, since + 1)
        return since > _ENOUGH and math.isfinite(least)


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
        for left, right in itertools.pairwise(self._lifted.places):
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
