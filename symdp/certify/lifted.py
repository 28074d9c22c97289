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

import itertools
import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp
from flint import acb, arb, ctx

from symdp.balls.variation import marks
from symdp.certify.paths import Ladder, Path, Segment
from symdp.certify.work import spend
from symdp.emit.arb import compile_arb
from symdp.emit.enclose import between

if TYPE_CHECKING:
    from symdp.certify.moments import Stretch
    from symdp.emit.arb import ArbFunction

_BITS = 96
_MOST_BOXES = 12_000
_LOWER = 0.5
_MOST_HEIGHTS = 100
_ALIKE = 4.0  # integrals of paths of which the highest is taken
_NO_HELP = 2.0  # times as much as on the axis
_HIGHER = 1.5  # where all is still holomorphic
_ANGLES = (1.0, 0.5)  # by which ℓ′ may be turned
_STEEPEST = 2.0  # towards the ends
_CLOSER, _CLOSEST = 3, 72  # −log₂ of how much closer places come to the ends
_ALMOST, _TWICE = 8.0, 2.0  # how much log|e^g| and its size may differ from place to place
_MOST_PROBES = 400
_MOST_LOG = 700.0
_STRAIGHT = 1.25  # what a straight line may be off
_SMALLEST = 256  # of its distance from the ends: a box on which they must be holomorphic
_TURN_BITS = 40
_FAR = 8.0  # times as far from an end as another place
_BESIDE = 1.001  # corners are rounded


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
        self._paths: dict[tuple[float, float], Path | None] = {}
        self._chosen: dict[int, Path | None] = {}

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
        exponent, loss = self.part.terms(place, self._tilt)
        return exponent.real - self._scale, loss.imag

    def _best(self, y: float) -> Path | None:
        if not 0.0 < y < math.inf:  # nor any NaN: nothing is promised of a frequency unknown
            return None
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
    def probes(self) -> list[arb]:
        """Places close enough to each other for what lies between to be like both."""
        known = [(place, self._log_size(place)) for place in self.places]
        found, waiting = [known[0]], known[:0:-1]
        while waiting:
            (left, low), (right, high) = found[-1], waiting[-1]
            ratio = low / high if high else math.inf
            is_far = abs(low - high) > _ALMOST and not 1 / _TWICE < ratio < _TWICE
            if not is_far or not math.isfinite(low - high) or len(found) > _MOST_PROBES:
                found.append(waiting.pop())
            else:
                middle = ((left + right) / 2).mid()
                waiting.append((middle, self._log_size(middle)))
        return [place for place, _ in found]

    def _log_size(self, place: arb) -> float:
        return float((self.part.exponent(place, self._tilt) - self._scale).mid())

    @cached_property
    def _on_axis(self) -> float:
        """About the integral on the axis itself."""
        ends = itertools.pairwise(self.probes)
        sizes = [self._log_size(((a + b) / 2).mid()) + math.log(float(b - a)) for a, b in ends]
        return math.exp(min(max(sizes), _MOST_LOG)) * len(sizes)

    @cached_property
    def _limits(self) -> list[tuple[float, float]]:
        """What the slopes at the ends allow at each place, and about the least |ℓ′/ℓ″| near by.

        Where ℓ″ = 0 that is not infinite, but what it is further on and the distance.
        """
        low, high = self._ends
        near = acb(0, arb(2) ** -_TURN_BITS)
        rooms, flats = [], []
        for place in self.places[1:-1]:
            room = (place - low).min(high - place).mid()
            turn = abs(self.part.log_slope(place + near * room).imag) / (near.imag * room)
            flat = float((1 / turn).mid()) if turn > 0 else math.inf
            rooms.append(_STEEPEST * float(room))
            flats.append(flat if flat > 0 else math.inf)
        steps = [float(b - a) for a, b in itertools.pairwise(self.places[1:-1])]
        for _ in range(2):  # from the left, and from the right
            for k, step in enumerate(steps, 1):
                flats[k] = min(flats[k], flats[k - 1] + step)
            flats.reverse()
            steps.reverse()
        return list(zip(rooms, flats, strict=True))

    def _best_at(self, y: float) -> Path | None:
        """Return the path that promises most at a frequency."""
        most = _NO_HELP * self._on_axis
        ladders = [Ladder(self._paths_below(angle), y, most) for angle in _ANGLES]
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

    def _paths_below(self, angle: float) -> Iterator[Path]:
        """Yield paths from the highest down; where one is not to be used, no higher one is."""
        height = max((min(a, angle * b) for a, b in self._limits), default=0.0)
        for _ in range(_MOST_HEIGHTS):
            key = angle, height
            if key not in self._paths:
                corners = self._corners(angle, height)
                self._paths[key] = Path(self, corners) if len(corners) > 2 else None
            path = self._paths[key]
            if path is not None:
                yield path
            height *= _LOWER

    def _holds(self, path: Path) -> bool:
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
            if self.part.is_analytic(box):
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
