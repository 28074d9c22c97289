"""The decimal grid that a calibration searches: a coarse walk, then neighbours that differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

import sympy as sp

from symdp.arguments import MOST_STEPS
from symdp.errors import AccuracyError, InputError
from symdp.questions.bracketed_root import bracketed_root
from symdp.questions.invert import exceeded

_NOISE = 1e-7  # of log δ: smaller differences against the trend are not held against it
_SATURATED = 2e3  # a normal quantile that stands for an infinite one
_LEAST_LOG = -1e300  # of a bound that stands for 0
_NEAR, _FINEST = 1.5, 1e-15  # of an index, absolute and relative: where a root is found
_LEAST, _LARGEST = -6, 9  # decimal exponents of the coarse list


class Bounded(Protocol):
    """What a search compares with its limit: a logarithm from above."""

    @property
    def log_upper(self) -> float | None:
        """The upper bound's logarithm."""

    @property
    def delta(self) -> float:
        """The value itself, for messages."""


B = TypeVar("B", bound=Bounded)


@dataclass(frozen=True)
class Grid:
    """Where values are looked for.

    Attributes
    ----------
    coarse
        Increasing values that the walk visits, each a decimal of one or two digits. They are not
        round: at a round one ε may be the largest loss itself, where little can be computed.
    start
        The place in it where the walk begins.
    digits
        Significant digits of the fine grid.
    whole
        Whether only whole numbers are values.
    probes
        Places on the coarse list that are visited whatever the bracket: a parameter with two ends
        may turn between them.
    walks
        False where the caller fixed both ends.
    """

    coarse: tuple[sp.Rational, ...]
    start: int
    digits: int
    whole: bool
    probes: tuple[int, ...] = ()
    walks: bool = True

    def step(self, low: sp.Rational, high: sp.Rational) -> sp.Rational:
        """Return the spacing of the fine grid between two values."""
        if self.whole:
            return sp.Integer(1)
        largest = max(abs(low), abs(high))
        exponent = math.floor(math.log10(largest))
        if 10 ** sp.Integer(exponent + 1) <= largest:  # the logarithm of a power was rounded down
            exponent += 1
        return sp.Integer(10) ** (exponent + 1 - self.digits)

    def between(self, low: sp.Rational, high: sp.Rational) -> Grid:
        """Return the grid whose walk has only these two ends, rounded inwards."""
        step = self.step(low, high)
        ends = sp.ceiling(low / step) * step, sp.floor(high / step) * step
        if not ends[0] < ends[1]:
            raise InputError(f"between {low} and {high} there are no two values to choose from")
        return replace(self, coarse=ends, start=0, walks=False)


def grid_of(domain: str, digits: int) -> Grid:
    """Return the grid for a parameter's domain word; "count" is a number of steps.

    Examples
    --------
    >>> grid_of("count", 5).coarse[:5]
    (1, 4, 11, 37, 110)
    """
    whole = domain in {"count", "positive integer", "natural", "integer"}
    ten = sp.Integer(10)
    exponents = range(15) if domain == "count" else range(_LEAST, _LARGEST + 1)
    # Far from the target an answer may cost seconds: the nearest values to either side suffice.
    leading = (11, 37) if whole else (11, 19, 37, 67)
    sizes = [k * ten ** (e - 1) for e in exponents for k in leading]
    if whole:
        sizes = [sp.Integer(1), sp.Integer(4), *(size for size in sizes if size.is_integer)]
    if domain == "count":
        sizes = [*(size for size in sizes if size < MOST_STEPS), sp.Integer(MOST_STEPS)]
    if "probability" in domain:
        low = [size for size in sizes if size < sp.Rational(1, 2)]
        high = [1 - size for size in reversed(low)]
        # At 0 nothing is sampled and there is nothing to account for.
        ends = [] if domain.startswith("open") else [sp.Integer(1)]
        sizes = [*low, sp.Rational(1, 2), *high, *ends]
        start, other, far = (sizes.index(sp.Rational(k, 1000)) for k in (11, 630, 989))
        return Grid(tuple(sizes), start, digits, whole, (other, far))
    values = sizes
    if domain in {"nonnegative", "natural", "real", "integer"}:
        values = [sp.Integer(0), *values]
    if domain in {"real", "integer"}:
        values = [*(-size for size in reversed(sizes)), *values]
    start = values.index(sp.Integer(1) if whole else sp.Rational(11, 10))
    return Grid(tuple(values), start, digits, whole)


@dataclass(frozen=True)
class Found(Generic[B]):
    """Two neighbours on the fine grid: one meets the target, the other does not."""

    safe: sp.Rational
    unsafe: sp.Rational
    step: sp.Rational
    guarantee: B
    missed: B


def search(
    grid: Grid,
    guarantee: Callable[[sp.Rational], B],
    limit: float,
    what: str,
    target: str,
) -> Found[B]:
    """Return the neighbours between which the upper bound on log δ crosses `limit`.

    Parameters
    ----------
    grid
        Where to look.
    guarantee
        δ(ε) with its bounds at a value.
    limit
        What the logarithm of the upper bound must not exceed.
    what, target
        The parameter and the target in words, for messages.

    Raises
    ------
    InputError
        If nothing or everything meets the target, or the visited values are not monotone.
    """
    walk = _Walk(grid, guarantee, limit, what, target)
    low, high = walk.bracket()
    step = grid.step(low, high)
    # Exact: the coarse values are multiples of the step.
    first, last = int(low / step), int(high / step)
    guess, stride = walk.root(first, last, step), 1
    while last - first > 1:
        middle = guess if first < guess < last else (first + last) // 2
        if walk.is_safe(middle * step) == walk.is_safe(first * step):
            first, guess = middle, middle + stride
        else:
            last, guess = middle, middle - stride
        stride *= 2
    walk.check_trend()
    safe, unsafe = first * step, last * step
    if not walk.is_safe(safe):
        safe, unsafe = unsafe, safe
    return Found(safe, unsafe, step, walk.known[safe], walk.known[unsafe])


class _Walk(Generic[B]):
    """Every value that was visited, and the choice of the next."""

    def __init__(
        self,
        grid: Grid,
        guarantee: Callable[[sp.Rational], B],
        limit: float,
        what: str,
        target: str,
    ) -> None:
        self.known: dict[sp.Rational, B] = {}
        self._grid, self._guarantee, self._limit = grid, guarantee, limit
        self._coarse = list(grid.coarse)
        self._what, self._target = what, target
        self._reason = ""

    def log_upper(self, value: sp.Rational) -> float:
        if value not in self.known:
            self.known[value] = self._guarantee(value)
        upper = self.known[value].log_upper
        assert upper is not None
        return upper

    def is_safe(self, value: sp.Rational) -> bool:
        return self.log_upper(value) <= self._limit

    def root(self, first: int, last: int, step: sp.Rational) -> int:
        """Return about the index at which the bound crosses the limit.

        Φ⁻¹ of the bound is nearly linear in the logarithm of most parameters.
        """
        goal = exceeded(self._limit)
        with_log = first > 0

        def height(place: float) -> float:
            index = min(max(round(math.exp(place) if with_log else place), first), last)
            log_upper = self.log_upper(index * step)
            quantile = exceeded(max(log_upper, _LEAST_LOG)) if log_upper < 0.0 else -math.inf
            return max(min(quantile, _SATURATED), -_SATURATED) - goal

        ends = (math.log(first), math.log(last)) if with_log else (float(first), float(last))
        if height(ends[0]) * height(ends[1]) > 0.0:  # the bound is next to the limit at one of them
            return first
        near = _NEAR / last if with_log else _NEAR
        place = bracketed_root(height, *ends, absolute=near, relative=_FINEST)
        return math.floor(math.exp(place) if with_log else place)

    def bracket(self) -> tuple[sp.Rational, sp.Rational]:
        """Return two neighbours of the coarse list, one of which is safe."""
        coarse, ends = self._coarse, [self._grid.start, self._grid.start]
        self.log_upper(coarse[ends[0]])  # an error here is the caller's, not one of a far value
        left = {side for side, last in ((-1, 0), (1, len(coarse) - 1)) if ends[0] != last}
        side = -1
        while True:
            side = self._next_side(coarse[ends[0]], coarse[ends[1]], left, side)
            inner = ends[side > 0]
            place = inner + side
            if not self._reaches(place, inner):
                left.discard(side)
                continue
            ends[side > 0] = place
            if self.is_safe(coarse[place]) != self.is_safe(coarse[inner]):
                self._probe(min(place, inner), max(place, inner))
                return coarse[min(place, inner)], coarse[max(place, inner)]
            if place in {0, len(coarse) - 1}:
                left.discard(side)
            self.check_trend()

    def _next_side(self, low: sp.Rational, high: sp.Rational, left: set[int], side: int) -> int:
        """Return the direction in which the bound approaches the target, of those that are left."""
        rise = self.log_upper(high) - self.log_upper(low) if low != high else 0.0
        if not abs(rise) > _NOISE:  # also where both are −∞
            wanted = -side if -side in left else side
        else:
            wanted = 1 if (rise < 0) == (not self.is_safe(low)) else -1
        if wanted in left:
            return wanted
        every = "every" if self.is_safe(low) else "no"
        seen = [f"{decimal(v)} has {self.known[v].delta:.6g}" for v in dict.fromkeys((low, high))]
        raise InputError(
            f"{self._what}: {every} value that can be reached meets {self._target}; "
            f"{' and '.join(seen)}{self._reason}"
        )

    def _reaches(self, place: int, inner: int | None = None) -> bool:
        """Whether a coarse value can be computed; one that cannot moves half-way in, once."""
        try:
            self.log_upper(self._coarse[place])
        except (InputError, AccuracyError) as error:
            self._reason = f" (beyond: {error})"
            if inner is None:
                return False
            middle = (self._coarse[inner] + self._coarse[place]) / 2
            self._coarse[place] = sp.floor(middle) if self._grid.whole else middle
            return self._coarse[place] != self._coarse[inner] and self._reaches(place)
        return True

    def _probe(self, low: int, high: int) -> None:
        """Visit a value beyond the bracket and those of the grid: answers must follow its trend."""
        if not self._grid.walks:
            return
        beside = [place for place in (low - 1, high + 1) if 0 <= place < len(self._coarse)]
        if any(self._coarse[place] in self.known for place in beside):
            beside = []  # the walk came that way, and its trend is checked
        for place in (*beside[:1], *self._grid.probes):
            self._reaches(place)
        self.check_trend()

    def check_trend(self) -> None:
        """Raise InputError where the visited bounds neither rise nor fall throughout."""
        values = sorted(self.known)
        heights = [self.log_upper(value) for value in values]
        # −∞ less −∞ is no number, and no rise.
        rises = [b - a if b != a else 0.0 for a, b in pairwise(heights)]
        ups = [place for place, rise in enumerate(rises) if rise > _NOISE]
        downs = [place for place, rise in enumerate(rises) if rise < -_NOISE]
        if not self._grid.walks or not ups or not downs:
            return
        later = max(ups[0], downs[0])
        places = ", ".join(
            f"{decimal(v)} has {self.known[v].delta:.6g}" for v in values[later - 1 : later + 2]
        )
        raise InputError(
            f"{self._what}: δ is not monotone in it ({places}); search between two values that "
            "lie on one side of the turn"
        )


def decimal(value: sp.Rational) -> str:
    """Return an exact decimal fraction in digits, such as 1.00025.

    Examples
    --------
    >>> import sympy as sp
    >>> decimal(sp.Rational(1, 8)), decimal(sp.Integer(10) ** 6), decimal(sp.Rational(-3, 10**8))
    ('0.125', '1000000', '-3e-8')
    """
    from decimal import Context, Decimal

    context = Context(prec=60)
    quotient = context.divide(Decimal(int(value.p)), Decimal(int(value.q))).normalize(context)
    text = f"{quotient:f}"
    return text if abs(value) >= 1e-4 or value == 0 else f"{quotient:e}".replace("E", "e")
