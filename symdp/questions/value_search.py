"""A search for the value of one parameter at which a bound just meets a limit.

Values lie on a decimal grid, and what is found are neighbours on it: one whose bound meets the
limit, and the next one, whose bound does not. A walk over a coarse list brackets the limit, Φ⁻¹ of
the bound, nearly linear in the logarithm of most parameters, says about where it is met, and
bisection ends at neighbours of the fine grid.

**Where a bound is dear** estimates of it say where to look: they stand for it at values whose
estimate is far from the limit, and where they meet it secants of the bound itself go on. At both
neighbours the bound itself is asked; if it tells otherwise than an estimate did, the search starts
again without them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy as sp

from symdp.arguments import MOST_STEPS
from symdp.errors import AccuracyError, InputError, refusal
from symdp.interrupt import limit as within
from symdp.interrupt import time_left, worked
from symdp.questions.invert import bracketed_root, exceeded

if TYPE_CHECKING:
    Progress = Callable[[sp.Rational, float, bool], None]

MOST_DIGITS = 13
FAR = 20.0  # e-folds below the target: there a bound says as much of a value as δ does
NOISE = 1e-7  # of log δ: smaller differences against the trend are not held against it
_TRUSTED = 0.05  # e-folds: an estimate is nearer than that to what it stands for
_SATURATED = 2e3  # a normal quantile that stands for an infinite one
_LEAST_LOG = -1e300  # of a bound that stands for 0
# of an index, absolute and relative: where a root is found
_NEAR = 1.5
_FINEST = 1e-15
_ROUGHLY = 1e-4  # relative, of a value: where an estimate is found to meet the limit
_SLOPES_DIFFER = 2.0  # a ratio beyond which rounding makes a slope
_SECANTS = 6
# decimal, of the coarse list; and of rates below it
_EXPONENTS = range(-6, 10)
_RARE = range(-11, -7)
_MOST_REFUSED = 6  # values next to each other that the search steps over
_MOST_REFUSED_IN_ALL = 16
_FROM_END = 2  # coarse values between an end of the domain and where the walk starts
_PARTS = 8  # of a range that has no coarse value
_NEAR_END = (2, 8, 64)  # parts of the way from an end of the domain to the nearest coarse value
_SPARE = 0.15  # of the time left, kept for the answer in both directions
_LAST_ANSWERS = 4  # as many of the dearest one are kept time for
_LONGEST_REASON = 200  # characters


@dataclass(frozen=True)
class ValueGrid:
    """Where values are looked for.

    The coarse values, decimals of one or two digits, are not round: at a round one ε may be the
    largest loss itself, where little can be computed.
    """

    coarse: tuple[sp.Rational, ...]  # increasing
    start: int  # the place in it where the walk begins
    digits: int  # significant, of the fine grid
    whole: bool  # only whole numbers are values
    probes: tuple[int, ...] = ()  # visited always: a parameter with two ends may turn between them
    walks: bool = True  # False where the caller fixed both ends

    def step(self, low: sp.Rational, high: sp.Rational) -> sp.Rational:
        """Return the spacing of the fine grid between two values."""
        if self.whole:
            return sp.Integer(1)
        largest = max(abs(low), abs(high))
        exponent = math.floor(math.log10(largest))
        if 10 ** sp.Integer(exponent + 1) <= largest:  # the logarithm of a power was rounded down
            exponent += 1
        return sp.Integer(10) ** (exponent + 1 - self.digits)

    def within(self, allows: Callable[[sp.Rational], bool]) -> ValueGrid | None:
        """Return the grid of the values that are allowed, those near an end of them added."""
        allowed = [allows(value) for value in self.coarse]
        if all(allowed):
            return self
        if not any(allowed):
            return None
        # At the end of what is allowed the noise may be at its limit, where answers are dear.
        far = [value for value, is_allowed in zip(self.coarse, allowed, strict=True) if is_allowed]
        start = self.coarse[self.start]
        if not allowed[self.start]:
            far.sort(key=lambda value: abs(value - start))
            start = far[min(_FROM_END, len(far) - 1)]
        values = set(far)
        for (left, takes_left), (right, takes_right) in pairwise(
            zip(self.coarse, allowed, strict=True)
        ):
            if takes_left != takes_right:
                inside, outside = (left, right) if takes_left else (right, left)
                values.update(self._near_end(inside, outside, allows))
        coarse = tuple(sorted(values))
        probes = tuple(coarse.index(self.coarse[k]) for k in self.probes if allowed[k])
        return replace(self, coarse=coarse, start=coarse.index(start), probes=probes)

    def inside(
        self, ends: Sequence[sp.Expr], allows: Callable[[sp.Rational], bool]
    ) -> ValueGrid | None:
        """Return the grid of values between two ends that lie nearer than coarse values do."""
        if len(ends) != 2:
            return None
        low, high = (sp.Rational(str(sp.N(end, MOST_DIGITS))) for end in ends)
        step = self.step(low, high)
        first, last = sp.ceiling(low / step), sp.floor(high / step)
        first += not allows(first * step)
        last -= not allows(last * step)
        indices = {first + (last - first) * part // _PARTS for part in range(_PARTS + 1)}
        coarse = [index * step for index in sorted(indices) if allows(index * step)]
        if len(coarse) < 2:
            return None
        return replace(self, coarse=tuple(coarse), start=len(coarse) // 2, probes=())

    def _near_end(
        self, inside: sp.Rational, outside: sp.Rational, allows: Callable[[sp.Rational], bool]
    ) -> list[sp.Rational]:
        """Return the last allowed value of the fine grid on the way out, and some before it."""
        step = self.step(*sorted((inside, outside)))
        last = int(inside / step)
        refused = int(outside / step)
        while abs(refused - last) > 1:
            middle = (last + refused) // 2
            if allows(middle * step):
                last = middle
            else:
                refused = middle
        way = int(inside / step) - last
        return [(last + int(way / part)) * step for part in _NEAR_END] + [last * step]

    def between(self, low: sp.Rational, high: sp.Rational) -> ValueGrid:
        """Return the grid whose walk has only these two ends, rounded inwards."""
        step = self.step(low, high)
        ends = sp.ceiling(low / step) * step, sp.floor(high / step) * step
        if not ends[0] < ends[1]:
            raise InputError(f"between {low} and {high} there are no two values to choose from")
        return replace(self, coarse=ends, start=0, walks=False)


def grid_of(domain: str, digits: int) -> ValueGrid:
    """Return the grid for a parameter's domain word; "count" is a number of steps."""
    whole = domain in {"count", "positive integer", "integer above 1", "natural", "integer"}
    ten = sp.Integer(10)
    exponents = range(15) if domain == "count" else _EXPONENTS
    # Far from the target an answer may cost seconds: the nearest values to either side suffice.
    leading = (11, 37) if whole else (11, 19, 37, 67)
    sizes = [k * ten ** (e - 1) for e in exponents for k in leading]
    if whole:
        sizes = [sp.Integer(1), sp.Integer(4), *(size for size in sizes if size.is_integer)]
    if domain == "count":
        sizes = [*(size for size in sizes if size < MOST_STEPS), sp.Integer(MOST_STEPS)]
    if "probability" in domain:
        rarest = [k * ten**e for e in _RARE for k in leading]
        low = [*rarest, *(size for size in sizes if size < sp.Rational(1, 2))]
        high = [1 - size for size in reversed(low)]
        # At 0 nothing is sampled and there is nothing to account for.
        ends = [] if domain.startswith("open") else [sp.Integer(1)]
        sizes = [*low, sp.Rational(1, 2), *high, *ends]
        start, other, far = (sizes.index(sp.Rational(k, 1000)) for k in (11, 630, 989))
        return ValueGrid(tuple(sizes), start, digits, whole, (other, far))
    values = sizes
    if domain in {"nonnegative", "natural", "real", "integer"}:
        values = [sp.Integer(0), *values]
    if domain in {"real", "integer"}:
        values = [*(-size for size in reversed(sizes)), *values]
    start = values.index(sp.Integer(1) if whole else sp.Rational(11, 10))
    return ValueGrid(tuple(values), start, digits, whole)


# Two neighbours on the fine grid: a value that meets the target, the spacing, one that does not.
Met = tuple[sp.Rational, sp.Rational, sp.Rational]


class ValueSearch:
    """Every value that was visited, and the choice of the next; `limit` bounds log_upper.

    `estimate` gives about what log_upper does, nan where it does not know.
    """

    def __init__(
        self,
        grid: ValueGrid,
        log_upper: Callable[[sp.Rational], float],
        limit: float,
        what: str,
        target: str,
        progress: Progress,
        bounded: AbstractSet[sp.Rational] = frozenset(),
        estimate: Callable[[sp.Rational], float] | None = None,
    ) -> None:
        self._estimate = estimate
        self._estimates: dict[sp.Rational, float] = {}
        self._rough: set[sp.Rational] = set()  # values of which an estimate is known alone
        self._progress = progress
        self._bounded = bounded  # values of which an upper bound is known alone
        self._known: dict[sp.Rational, float] = {}
        self._grid = grid
        self._ask = log_upper
        self._limit = limit
        self._coarse = list(grid.coarse)
        self._what = what
        self._target = target
        self._refused: dict[sp.Rational, str] = {}
        self._step = sp.S.One  # of the fine grid, once there is a bracket
        self._ends = 0, 0  # of the bracket, in steps
        self._is_late = False
        self._dearest = 0.0  # seconds of work, of one answer

    def met(self) -> Met:
        """Return the ends of the last bracket, the one that meets the limit first."""
        while True:
            self._find_neighbours()
            low, high = (end * self._step for end in self._ends)
            if self._proves(low) != self._proves(high):
                break
            self._estimate = None  # it told otherwise
            for value in self._rough:
                del self._known[value]
            self._rough.clear()
        if self._proves(low):
            return (low, self._step, high)
        return (high, self._step, low)

    def _find_neighbours(self) -> None:
        """Set `_ends` to neighbours of the grid, or to what is left of a bracket in the time."""
        low, high = self._bracket()
        self._step = step = self._grid.step(low, high)
        # Exact: the coarse values are multiples of the step.
        self._ends = int(low / step), int(high / step)
        left = time_left()
        if math.isinf(left):
            self._narrow()
            return
        spare = max(_SPARE * left, _LAST_ANSWERS * self._dearest)
        with within(left - spare, of_work=True) as outcome:
            self._narrow()
        self._is_late = outcome.late
        if outcome.late:
            self._take_nearest()

    @property
    def note(self) -> str:
        """What was stepped over, left open, or is not monotone, in words; empty for nothing."""
        notes = []
        first, last = self._ends
        if last - first > 1:
            why = "in the time given" if self._is_late else "as what lies between is refused"
            ends = " and ".join(decimal(end * self._step) for end in self._ends)
            notes.append(f"not narrowed further than {ends}, {why}")
        if self._refused:
            values = ", ".join(decimal(value) for value in list(self._refused)[:_MOST_REFUSED])
            reason = next(iter(self._refused.values()))
            notes.append(f"stepped over {values}: {reason:.{_LONGEST_REASON}}")
        if turn := self._turn():
            notes.append(f"not monotone ({turn}): values beyond the turn may meet it too")
        return "; ".join(notes)

    def _narrow(self) -> None:
        """Bring the ends of the bracket together, to neighbours of the fine grid if they answer."""
        first, last = self._ends
        guess = self._root(first, last, self._step)
        stride = 1
        while last - first > 1:
            middle = self._middle(first, last, guess)
            if middle is None:
                return
            if middle not in (guess, (first + last) // 2):  # both are refused: go on from an end
                stride = 1
            if self._is_safe(middle * self._step) == self._is_safe(first * self._step):
                first = middle
                guess = middle + stride
            else:
                last = middle
                guess = middle - stride
            self._ends = first, last
            stride *= 2

    def _take_nearest(self) -> None:
        """Take the nearest values that were visited in the bracket, one of which is safe."""
        low, high = (end * self._step for end in self._ends)
        inside = {value for value in self._known if low < value < high}
        visited = sorted({low, high} | inside - self._rough)
        for left, right in pairwise(visited):
            if self._is_safe(left) != self._is_safe(right):
                self._ends = int(left / self._step), int(right / self._step)

    def _middle(self, first: int, last: int, guess: int) -> int | None:
        """Return an index between two at which there is an answer, None where none is found."""
        half = (first + last) // 2
        quarter = (last - first) // 4
        for index in (guess, half, half - quarter, half + quarter, first + 1, last - 1):
            if len(self._refused) > _MOST_REFUSED_IN_ALL:
                return None
            if first < index < last and self._answers(index * self._step):
                return index
        return None

    def _answers(self, value: sp.Rational) -> bool:
        """Whether there is an answer at a value; what refuses it is kept."""
        if value not in self._refused:
            reason = refusal(lambda: self._log_upper(value))
            if reason:
                self._refused[value] = reason
        return value not in self._refused

    def _log_upper(self, value: sp.Rational) -> float:
        """Return the bound at a value, or an estimate of it that is far from the limit."""
        if value in self._known:
            return self._known[value]
        estimate = self._estimated(value)
        distance = estimate - self._limit
        if distance > _TRUSTED or -FAR < distance < -_TRUSTED:
            self._rough.add(value)
            self._keep(value, estimate)
            return estimate
        return self._proved(value)

    def _proved(self, value: sp.Rational) -> float:
        """Return the bound itself at a value."""
        if value not in self._known or value in self._rough:
            start = worked()
            log_upper = self._ask(value)
            self._dearest = max(self._dearest, worked() - start)
            self._rough.discard(value)
            self._keep(value, log_upper)
        return self._known[value]

    def _keep(self, value: sp.Rational, log_upper: float) -> None:
        self._known[value] = log_upper
        self._progress(value, math.exp(min(log_upper, 0.0)), log_upper <= self._limit)

    def _estimated(self, value: sp.Rational) -> float:
        """Return the estimate at a value, nan where there is none."""
        if self._estimate is None:
            return math.nan
        if value not in self._estimates:
            self._estimates[value] = self._estimate(value)
        return self._estimates[value]

    def _is_safe(self, value: sp.Rational) -> bool:
        return self._log_upper(value) <= self._limit

    def _proves(self, value: sp.Rational) -> bool:
        """Return whether the bound itself meets the limit."""
        return self._proved(value) <= self._limit

    def _said(self, values: list[sp.Rational]) -> list[str]:
        return [f"{decimal(v)} has {math.exp(self._proved(v)):.6g}" for v in values]

    def _root(self, first: int, last: int, step: sp.Rational) -> int:
        """Return about the index at which the bound crosses the limit."""
        axis = _Axis(first, last)

        def height(coordinate: float) -> float:
            return self._height(self._log_upper(axis.index(coordinate) * step))

        if height(axis.start) * height(axis.end) > 0.0:  # the bound is next to the limit at one
            return first
        try:
            coordinate = self._root_of_estimates(axis, step)
            if math.isnan(coordinate):
                coordinate = bracketed_root(
                    height, axis.start, axis.end, absolute=axis.near, relative=_FINEST
                )
        except (InputError, AccuracyError):  # bisection steps over what is refused
            return (first + last) // 2
        return axis.index(coordinate, down=True)

    def _height(self, log_upper: float) -> float:
        """Return Φ⁻¹ of a bound, less that of the limit."""
        quantile = -math.inf
        if log_upper < 0.0:
            quantile = exceeded(max(log_upper, _LEAST_LOG))
        return max(min(quantile, _SATURATED), -_SATURATED) - exceeded(self._limit)

    def _root_of_estimates(self, axis: _Axis, step: sp.Rational) -> float:
        """Return where an estimate meets the limit, then secants of the bound; nan if none does."""
        if not self._rough:
            return math.nan

        def rough_height(coordinate: float) -> float:
            estimate = self._estimated(axis.index(coordinate) * step)
            return math.nan if math.isnan(estimate) else self._height(estimate)

        def height(coordinate: float) -> float:
            return self._height(self._proved(axis.index(coordinate) * step))

        if not rough_height(axis.start) * rough_height(axis.end) < 0.0:
            return math.nan
        apart = axis.part(_ROUGHLY)
        coordinate = bracketed_root(rough_height, axis.start, axis.end, absolute=apart)
        beside = axis.clipped(coordinate - 4.0 * apart)
        rough_slope = slope = (rough_height(coordinate) - rough_height(beside)) / (
            coordinate - beside
        )
        value = height(coordinate)
        for _ in range(_SECANTS):
            if slope == 0.0:
                break
            fresh = axis.clipped(coordinate - value / slope)
            move = fresh - coordinate
            if abs(move) <= axis.near:
                return fresh
            new_value = height(fresh)
            secant = (new_value - value) / move
            if 1.0 / _SLOPES_DIFFER < secant / rough_slope < _SLOPES_DIFFER:
                slope = secant
            coordinate = fresh
            value = new_value
        return coordinate

    def _bracket(self) -> tuple[sp.Rational, sp.Rational]:
        """Return two values of the coarse list, one of which is safe, with none between them."""
        coarse = self._coarse
        start = self._start()
        walked = [start, start]
        answered = [start, start]
        skipped = [0, 0]
        left = {side for side, last in ((-1, 0), (1, len(coarse) - 1)) if start != last}
        side = -1
        while True:
            side = self._next_side(coarse[answered[0]], coarse[answered[1]], left, side)
            upwards = int(side > 0)
            walked[upwards] += side
            place = walked[upwards]
            inner = answered[upwards]
            if place in {0, len(coarse) - 1}:
                left.discard(side)
            if not self._reaches(place, inner):
                skipped[upwards] += 1
                if skipped[upwards] >= _MOST_REFUSED:
                    left.discard(side)
                continue
            answered[upwards] = place
            skipped[upwards] = 0
            if self._is_safe(coarse[place]) != self._is_safe(coarse[inner]):
                self._probe(min(place, inner), max(place, inner))
                return coarse[min(place, inner)], coarse[max(place, inner)]

    def _start(self) -> int:
        """Return the place of the coarse list nearest to the usual start that has an answer."""
        usual = self._grid.start
        places = range(len(self._coarse))
        nearest = sorted(places, key=lambda place: abs(place - usual))[:_MOST_REFUSED]
        for place in nearest:
            if self._answers(self._coarse[place]):
                return place
        # None of them has one: what is asked is refused, whatever the value.
        self._log_upper(self._coarse[usual])
        return usual

    def _next_side(self, low: sp.Rational, high: sp.Rational, left: set[int], side: int) -> int:
        """Return the direction in which the bound approaches the target, of those that are left."""
        rise = self._log_upper(high) - self._log_upper(low) if low != high else 0.0
        if not abs(rise) > NOISE:  # also where both are −∞
            wanted = -side if -side in left else side
        else:
            wanted = 1 if (rise < 0) == (not self._is_safe(low)) else -1
        if wanted in left:
            return wanted
        if left and self._turn():
            return -wanted
        seen = self._said(list(dict.fromkeys((low, high))))
        every = "every" if self._is_safe(low) else "no"
        raise InputError(
            f"{self._what}: {every} value that can be reached meets {self._target}; "
            f"{' and '.join(seen)}{self._beyond()}"
        )

    def _beyond(self) -> str:
        """Return the last refusal in words, as a reason why the search went no further."""
        if not self._refused:
            return ""
        value, reason = list(self._refused.items())[-1]
        return f" (no answer at {decimal(value)}: {reason:.{_LONGEST_REASON}})"

    def _reaches(self, place: int, inner: int | None = None) -> bool:
        """Whether a coarse value can be computed; one that cannot moves half-way in, once."""
        if self._answers(self._coarse[place]):
            return True
        if inner is None:
            return False
        middle = (self._coarse[inner] + self._coarse[place]) / 2
        if self._grid.whole:
            middle = sp.floor(middle)
        if middle == self._coarse[inner] or not self._answers(middle):
            return False
        self._coarse[place] = middle
        return True

    def _probe(self, low: int, high: int) -> None:
        """Visit a value beyond the bracket and those of the grid: answers may leave its trend."""
        if not self._grid.walks:
            return
        beside = [place for place in (low - 1, high + 1) if 0 <= place < len(self._coarse)]
        if any(self._coarse[place] in self._known for place in beside):
            beside = []  # the walk came that way, and its trend is checked
        for place in (*beside[:1], *self._grid.probes):
            self._reaches(place)

    def _turn(self) -> str:
        """Return values between which the bound turns, in words; empty where it has one trend."""
        if not self._grid.walks:
            return ""
        values = sorted(value for value in self._known if value not in self._bounded)
        trends: dict[bool, int] = {}  # whether it rises, and the first place where it does or not
        for place, (left, right) in enumerate(pairwise(values)):
            heights = self._log_upper(left), self._log_upper(right)
            noise = _TRUSTED if {left, right} & self._rough else NOISE
            # −∞ less −∞ is no number, and no rise.
            if heights[0] != heights[1] and abs(heights[1] - heights[0]) > noise:
                trends.setdefault(heights[1] > heights[0], place)
        if len(trends) < 2:
            return ""
        later = max(trends.values())
        return ", ".join(self._said(values[later - 1 : later + 2]))


class _Axis:
    """Indices from one to another as numbers on which a bound is nearly linear: their logs."""

    def __init__(self, first: int, last: int) -> None:
        self._ends = first, last
        self._has_log = first > 0
        self.start = float(first)
        self.end = float(last)
        self.near = _NEAR
        if self._has_log:
            self.start = math.log(first)
            self.end = math.log(last)
            self.near = _NEAR / last

    def index(self, coordinate: float, down: bool = False) -> int:
        """Return the index next to a coordinate, or the one below it."""
        number = math.exp(coordinate) if self._has_log else coordinate
        if down:
            return math.floor(number)
        first, last = self._ends
        return min(max(round(number), first), last)

    def clipped(self, coordinate: float) -> float:
        """Return the coordinate between the ends that is next to one."""
        return min(max(coordinate, self.start), self.end)

    def part(self, share: float) -> float:
        """Return a share of a value, or of the whole axis."""
        if self._has_log:
            return share
        return share * (self.end - self.start)


def decimal(value: sp.Rational) -> str:
    """Return an exact decimal fraction in digits, such as 1.00025."""
    from decimal import Context, Decimal

    context = Context(prec=60)
    quotient = context.divide(Decimal(int(value.p)), Decimal(int(value.q))).normalize(context)
    text = f"{quotient:f}"
    if abs(value) >= 1e-4 or value == 0:
        return text
    return f"{quotient:e}".replace("E", "e")
