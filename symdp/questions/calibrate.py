"""Calibration: the value of one parameter at which a composition just meets a target.

The target is an (ε, δ), the advantage of an attack, or its hits at a false alarm rate. Values are
looked for on a decimal grid, and the answer is a pair of neighbours on it: one whose own upper
bound meets the target, and the next one, whose bound does not. Rounding therefore never costs
privacy, whatever the parameter.

A walk over a coarse list brackets the target, Φ⁻¹ of the bound, nearly linear in the logarithm of
most parameters, says about where it is met, and bisection ends at neighbours of the fine grid. That
the bound is monotone is checked at all values that were visited, one beyond the bracket among them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import sympy as sp

from symdp.arguments import MOST_STEPS, real, share
from symdp.errors import AccuracyError, InputError, suggestion
from symdp.model.mechanism import a_mechanism
from symdp.model.sampling import exact
from symdp.questions.composition import Composition, Direction
from symdp.questions.invert import bracketed_root, exceeded
from symdp.questions.tradeoff import membership_advantage, trade_off
from symdp.turns import in_turn

if TYPE_CHECKING:
    from symdp.arguments import MethodName
    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Number
    from symdp.questions.guarantee import Guarantee

COUNT = "n"
_DIGITS, _ATTACK_DIGITS = 10, 6  # significant, of the value: the search for a rate is dearer
_LEAST_DIGITS, _MOST_DIGITS = 4, 13
_NOISE = 1e-7  # of log δ: smaller differences against the trend are not held against it
_SATURATED = 2e3  # a normal quantile that stands for an infinite one
_LEAST_LOG = -1e300  # of a bound that stands for 0
_NEAR, _FINEST = 1.5, 1e-15  # of an index, absolute and relative: where a root is found
_EXPONENTS = range(-6, 10)  # decimal, of the coarse list


@dataclass(frozen=True)
class Calibrated:
    """A calibrated parameter: the value that meets a target, and the neighbour that does not."""

    parameter: str
    value: sp.Rational  # an exact decimal
    step: sp.Rational  # the grid's spacing
    neighbour: sp.Rational  # the next value, so far on the less private side

    def __float__(self) -> float:
        return float(self.value)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        numbers = {name: getattr(self, name) for name in ("value", "step")}
        plain = {name: int(n.p) if n.q == 1 else float(n) for name, n in numbers.items()}
        return {"parameter": self.parameter, **plain}


@dataclass(frozen=True)
class Calibration(Calibrated):
    """A parameter whose value meets an (ε, δ), and the neighbour whose upper bound does not.

    `guarantee` is δ(ε) at `value`, its upper bound at most `target_delta`; `missed` is the same at
    `neighbour`, its upper bound above that.
    """

    target_delta: float
    guarantee: Guarantee
    missed: Guarantee
    seconds: float = field(compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values: the guarantee's keys, and what was calibrated."""
        own = {**super().to_json(), "target_delta": self.target_delta}
        return {**own, **self.guarantee.to_json(), "seconds": round(self.seconds, 6)}

    def _repr_html_(self) -> str:
        value = f"{escape(self.parameter)} = <b>{decimal(self.value)}</b>"
        return f"<div>{value}</div>{self.guarantee._repr_html_()}"

    def __repr__(self) -> str:
        return f"<Calibration {self}>"

    def __str__(self) -> str:
        return f"{self.parameter} = {decimal(self.value)}: {self.guarantee}"


@dataclass(frozen=True)
class AttackCalibration(Calibrated):
    """A parameter whose value holds an attack down, and the neighbour that does not."""

    false_positive_rate: float | None  # where the hits are counted; None for the advantage
    target: float  # the largest advantage, or true positive rate, that was allowed
    rate: float  # what the best attack reaches at the value, at most the target
    missed: float  # and at the neighbour
    seconds: float = field(compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        names = ("false_positive_rate", "target", "rate", "missed")
        own = {name: getattr(self, name) for name in names}
        return {**super().to_json(), **own, "seconds": round(self.seconds, 6)}


@in_turn
def calibrate(
    mechanism: Mechanism,
    parameter: str,
    count: int | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    digits: int | None = None,
    between: tuple[Number, Number] | None = None,
    method: MethodName = "contour",
    direction: Direction = "both",
    progress: Callable[[sp.Rational, float, bool], None] = lambda *_: None,
) -> Calibration | AttackCalibration:
    """Return the least noisy value of a parameter that meets a target, rounded to the safe side.

    The returned value and its neighbour on the grid are adjacent decimals v and v′ with
    upper(δ_v(ε)) ≤ δ < upper(δ_{v′}(ε)), upper being the method's own bound, over the directions
    asked for. That v is the only such place rests on δ(ε) being monotone in the parameter; it is
    checked at every value that the search visits, on both sides of the answer. The advantage of
    the best attack on the presence of a record is δ(0), and its true positive rate at false
    positive rate α is 1 − f(α), f the trade-off of both directions together [IND].

    Parameters
    ----------
    mechanism
        With every parameter bound but the one to calibrate. A sampling rate is a parameter where
        the mechanism was sampled at a symbolic rate, as in `.subsample("poisson", "q")`.
    parameter
        The name of the free parameter, or "n" for the number of steps.
    count
        The number of steps, 1 or more; left out where `parameter` is "n".
    epsilon, delta
        The target: any real ε in nats, and 0 < δ < 1.
    advantage
        Or the largest advantage of an attack, its true less its false positive rate.
    tpr, fpr
        Or its largest true positive rate at a false positive rate below it.
    digits
        Significant digits of the grid, 4 to 13; 10, or 6 for an attack. A whole parameter always
        has step 1.
    between
        Search only between these two values. Needed where δ(ε) is not monotone in the parameter.
    method
        For (ε, δ): an accountant that bounds δ from above, such as contour or moments.
    direction
        For (ε, δ): "remove", "add", or "both".
    progress
        Called with each value that the search visits, the bound there, and whether it meets the
        target.

    Raises
    ------
    InputError
        If no value of the parameter meets the target or all do, or it is not monotone in it.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> found = calibrate(mechanisms.gaussian, "sigma", 10, epsilon=1, delta=1e-5, digits=6)
    >>> found.value, found.neighbour
    (117973/10000, 29493/2500)
    >>> calibrate(mechanisms.gaussian(sigma=20), "n", epsilon=1, delta=1e-5).value
    28
    >>> calibrate(mechanisms.gaussian, "sigma", 1, advantage=0.1).value
    79579/20000
    """
    start = time.perf_counter()
    kinds = (epsilon, delta), (advantage,), (tpr, fpr)
    named = [kind for kind in kinds if any(value is not None for value in kind)]
    if len(named) != 1 or None in named[0]:
        raise InputError("give epsilon and delta, or advantage, or tpr and fpr, one of the three")
    if digits is None:
        digits = _DIGITS if delta is not None else _ATTACK_DIGITS
    if isinstance(digits, bool) or not _LEAST_DIGITS <= digits <= _MOST_DIGITS:
        raise InputError(f"digits = {digits!r}: from {_LEAST_DIGITS} to {_MOST_DIGITS}")
    what, grid, composed = _task(mechanism, parameter, count, digits, between)
    if epsilon is not None and delta is not None:
        at, target = real(epsilon, "epsilon"), share(delta, "delta")
        met, answers = _met_delta(what, grid, composed, at, target, method, direction, progress)
        seconds = time.perf_counter() - start
        held, missed = answers[met[0]], answers[met[2]]
        return Calibration(parameter, *met, target, held, missed, seconds)
    if method != "contour" or direction != "both":
        raise InputError("attacks are counted in both directions, by the method contour")
    target, reached, words = _attack(advantage, tpr, fpr)
    rates: dict[sp.Rational, float] = {}

    def log_rate(value: sp.Rational) -> float:
        rates[value] = reached(composed(value))
        return math.log(rates[value]) if rates[value] > 0.0 else -math.inf

    aim = f"{words} ≤ {target:g}"
    met = _Search(grid, log_rate, _below(target), what, aim, progress).met()
    ends, seconds = (rates[met[0]], rates[met[2]]), time.perf_counter() - start
    return AttackCalibration(parameter, *met, fpr, target, *ends, seconds)


def _task(
    mechanism: Mechanism,
    parameter: str,
    count: int | None,
    digits: int,
    between: tuple[Number, Number] | None,
) -> tuple[str, _Grid, Callable[[sp.Rational], Composition]]:
    """Return what is calibrated in words, where it is looked for, and the composition there."""
    free = a_mechanism(mechanism).parameters
    domain = "count"
    if parameter in free:
        others = [name for name in free if name != parameter]
        if others:
            raise InputError(
                f"{mechanism.name} needs a value for {', '.join(others)} before {parameter} can be "
                "calibrated"
            )
        if count is None:
            raise InputError("the number of steps is missing: give a count")
        domain = next(p.domain for p in mechanism.declared if p.name == parameter)
    elif parameter == COUNT:
        if count is not None:
            raise InputError("the number of steps is what n calibrates; leave the count out")
        mechanism = mechanism.require_concrete()
    elif parameter in mechanism.values:
        raise InputError(
            f"{mechanism.name}: {parameter} is bound to {mechanism.values[parameter]}, so it "
            "cannot be calibrated; leave it free"
        )
    else:
        known = [*free, COUNT]
        hint = suggestion(parameter, known) or f"; there is {' or '.join(known)}"
        raise InputError(f"{mechanism.name} has no parameter {parameter!r:.60}{hint}")
    grid = _grid_of(domain, digits)
    if between is not None:
        low, high = (exact(end, parameter) for end in between)
        if not (low.is_Rational and high.is_Rational and low < high):
            raise InputError(
                f"{parameter} between {low} and {high}: two numbers, the lower one first"
            )
        grid = grid.between(low, high)

    def composed(value: sp.Rational) -> Composition:
        if count is None:
            return Composition([(mechanism, int(value))])
        return Composition([(mechanism(**{parameter: value}), count)])

    return f"{mechanism.name}: {parameter}", grid, composed


def _below(target: float) -> float:
    """Return log target less an ulp: the rounding of the logarithm is on the safe side too."""
    return math.nextafter(math.log(target), -math.inf)


def _met_delta(
    what: str,
    grid: _Grid,
    composed: Callable[[sp.Rational], Composition],
    epsilon: float,
    delta: float,
    method: MethodName,
    direction: Direction,
    progress: Callable[[sp.Rational, float, bool], None],
) -> tuple[_Met, dict[sp.Rational, Guarantee]]:
    """Return where the method's bound on δ(ε) crosses δ, and the answers that were asked for.

    Of two directions the search asks the one that was larger at its first value; the answer is
    asked in both, and where it does not hold there, so is every value.
    """
    answers: dict[sp.Rational, Guarantee] = {}
    limit, side = _below(delta), direction

    def log_upper(value: sp.Rational, *, keep: bool = False) -> float:
        nonlocal side
        answer = answers[value] = composed(value).delta(epsilon, method, side)
        if answer.log_upper is None:
            raise InputError(
                f"method '{method}' gives no upper bound on δ, and a calibration needs one; "
                "use contour or moments"
            )
        side = cast("Direction", answer.direction) if keep else direction
        return answer.log_upper

    target = f"δ({epsilon:g}) ≤ {delta:g}"
    met = _Search(grid, partial(log_upper, keep=True), limit, what, target, progress).met()
    if side != direction:
        side = direction
        if log_upper(met[0]) > limit:
            met = _Search(grid, log_upper, limit, what, target, progress).met()
    return met, answers


def _attack(
    advantage: float | None, tpr: float | None, fpr: float | None
) -> tuple[float, Callable[[Composition], float], str]:
    """Return the target, what a composition lets an attack reach, and its name."""
    if advantage is not None:
        return share(advantage, "advantage"), membership_advantage, "advantage"
    assert tpr is not None
    assert fpr is not None
    target, alpha = share(tpr, "tpr"), share(fpr, "fpr")
    if not alpha < target:
        raise InputError(
            f"tpr = {tpr!r}: guessing alone reaches the false positive rate, {fpr!r}; allow more"
        )

    def hits(steps: Composition) -> float:
        """Return the most that an attack hits, the subtraction rounded up."""
        return min(1.0, math.nextafter(1.0 - trade_off(steps, alpha), 2.0))

    return target, hits, f"true positive rate at {alpha:g}"


@dataclass(frozen=True)
class _Grid:
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

    def between(self, low: sp.Rational, high: sp.Rational) -> _Grid:
        """Return the grid whose walk has only these two ends, rounded inwards."""
        step = self.step(low, high)
        ends = sp.ceiling(low / step) * step, sp.floor(high / step) * step
        if not ends[0] < ends[1]:
            raise InputError(f"between {low} and {high} there are no two values to choose from")
        return replace(self, coarse=ends, start=0, walks=False)


def _grid_of(domain: str, digits: int) -> _Grid:
    """Return the grid for a parameter's domain word; "count" is a number of steps."""
    whole = domain in {"count", "positive integer", "natural", "integer"}
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
        low = [size for size in sizes if size < sp.Rational(1, 2)]
        high = [1 - size for size in reversed(low)]
        # At 0 nothing is sampled and there is nothing to account for.
        ends = [] if domain.startswith("open") else [sp.Integer(1)]
        sizes = [*low, sp.Rational(1, 2), *high, *ends]
        start, other, far = (sizes.index(sp.Rational(k, 1000)) for k in (11, 630, 989))
        return _Grid(tuple(sizes), start, digits, whole, (other, far))
    values = sizes
    if domain in {"nonnegative", "natural", "real", "integer"}:
        values = [sp.Integer(0), *values]
    if domain in {"real", "integer"}:
        values = [*(-size for size in reversed(sizes)), *values]
    start = values.index(sp.Integer(1) if whole else sp.Rational(11, 10))
    return _Grid(tuple(values), start, digits, whole)


# Two neighbours on the fine grid: a value that meets the target, the spacing, one that does not.
_Met = tuple[sp.Rational, sp.Rational, sp.Rational]


class _Search:
    """Every value that was visited, and the choice of the next; `limit` bounds log_upper."""

    def __init__(
        self,
        grid: _Grid,
        log_upper: Callable[[sp.Rational], float],
        limit: float,
        what: str,
        target: str,
        progress: Callable[[sp.Rational, float, bool], None],
    ) -> None:
        self._progress = progress
        self._known: dict[sp.Rational, float] = {}
        self._grid, self._ask, self._limit = grid, log_upper, limit
        self._coarse = list(grid.coarse)
        self._what, self._target, self._reason = what, target, ""

    def met(self) -> _Met:
        """Return the neighbours between which the upper bound crosses the limit, the safe first."""
        low, high = self._bracket()
        step = self._grid.step(low, high)
        # Exact: the coarse values are multiples of the step.
        first, last = int(low / step), int(high / step)
        guess, stride = self._root(first, last, step), 1
        while last - first > 1:
            middle = guess if first < guess < last else (first + last) // 2
            if self._is_safe(middle * step) == self._is_safe(first * step):
                first, guess = middle, middle + stride
            else:
                last, guess = middle, middle - stride
            stride *= 2
        self._check_trend()
        low, high = first * step, last * step
        return (low, step, high) if self._is_safe(low) else (high, step, low)

    def _log_upper(self, value: sp.Rational) -> float:
        if value not in self._known:
            found = self._known[value] = self._ask(value)
            self._progress(value, math.exp(min(found, 0.0)), found <= self._limit)
        return self._known[value]

    def _is_safe(self, value: sp.Rational) -> bool:
        return self._log_upper(value) <= self._limit

    def _said(self, values: list[sp.Rational]) -> list[str]:
        return [f"{decimal(v)} has {math.exp(self._known[v]):.6g}" for v in values]

    def _root(self, first: int, last: int, step: sp.Rational) -> int:
        """Return about the index at which the bound crosses the limit."""
        goal = exceeded(self._limit)
        with_log = first > 0

        def height(place: float) -> float:
            index = min(max(round(math.exp(place) if with_log else place), first), last)
            log_upper = self._log_upper(index * step)
            quantile = exceeded(max(log_upper, _LEAST_LOG)) if log_upper < 0.0 else -math.inf
            return max(min(quantile, _SATURATED), -_SATURATED) - goal

        ends = (math.log(first), math.log(last)) if with_log else (float(first), float(last))
        if height(ends[0]) * height(ends[1]) > 0.0:  # the bound is next to the limit at one of them
            return first
        near = _NEAR / last if with_log else _NEAR
        place = bracketed_root(height, *ends, absolute=near, relative=_FINEST)
        return math.floor(math.exp(place) if with_log else place)

    def _bracket(self) -> tuple[sp.Rational, sp.Rational]:
        """Return two neighbours of the coarse list, one of which is safe."""
        coarse, ends = self._coarse, [self._grid.start, self._grid.start]
        self._log_upper(coarse[ends[0]])  # an error here is the caller's, not one of a far value
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
            if self._is_safe(coarse[place]) != self._is_safe(coarse[inner]):
                self._probe(min(place, inner), max(place, inner))
                return coarse[min(place, inner)], coarse[max(place, inner)]
            if place in {0, len(coarse) - 1}:
                left.discard(side)
            self._check_trend()

    def _next_side(self, low: sp.Rational, high: sp.Rational, left: set[int], side: int) -> int:
        """Return the direction in which the bound approaches the target, of those that are left."""
        rise = self._log_upper(high) - self._log_upper(low) if low != high else 0.0
        if not abs(rise) > _NOISE:  # also where both are −∞
            wanted = -side if -side in left else side
        else:
            wanted = 1 if (rise < 0) == (not self._is_safe(low)) else -1
        if wanted in left:
            return wanted
        every = "every" if self._is_safe(low) else "no"
        seen = self._said(list(dict.fromkeys((low, high))))
        raise InputError(
            f"{self._what}: {every} value that can be reached meets {self._target}; "
            f"{' and '.join(seen)}{self._reason}"
        )

    def _reaches(self, place: int, inner: int | None = None) -> bool:
        """Whether a coarse value can be computed; one that cannot moves half-way in, once."""
        try:
            self._log_upper(self._coarse[place])
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
        if any(self._coarse[place] in self._known for place in beside):
            beside = []  # the walk came that way, and its trend is checked
        for place in (*beside[:1], *self._grid.probes):
            self._reaches(place)
        self._check_trend()

    def _check_trend(self) -> None:
        """Raise InputError where the visited bounds neither rise nor fall throughout."""
        values = sorted(self._known)
        heights = [self._log_upper(value) for value in values]
        # −∞ less −∞ is no number, and no rise.
        rises = [b - a if b != a else 0.0 for a, b in pairwise(heights)]
        ups = [place for place, rise in enumerate(rises) if rise > _NOISE]
        downs = [place for place, rise in enumerate(rises) if rise < -_NOISE]
        if not self._grid.walks or not ups or not downs:
            return
        later = max(ups[0], downs[0])
        places = ", ".join(self._said(values[later - 1 : later + 2]))
        raise InputError(
            f"{self._what}: δ is not monotone in it ({places}); search between two values that "
            "lie on one side of the turn"
        )


def decimal(value: sp.Rational) -> str:
    """Return an exact decimal fraction in digits, such as 1.00025."""
    from decimal import Context, Decimal

    context = Context(prec=60)
    quotient = context.divide(Decimal(int(value.p)), Decimal(int(value.q))).normalize(context)
    text = f"{quotient:f}"
    return text if abs(value) >= 1e-4 or value == 0 else f"{quotient:e}".replace("E", "e")
