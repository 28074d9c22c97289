"""Calibration: the value of one parameter at which a composition just meets a target.

The target is an (ε, δ), the advantage of an attack, or its hits at a false alarm rate. Values are
looked for on a decimal grid, and the answer is a pair of neighbours on it: one whose own upper
bound meets the target, and the next one, whose bound does not. Rounding therefore never costs
privacy, whatever the parameter.

A walk over a coarse list brackets the target, Φ⁻¹ of the bound, nearly linear in the logarithm of
most parameters, says about where it is met, and bisection ends at neighbours of the fine grid. The
search stays where the domain of the parameter and [assume] allow it and steps over values that are
refused; where time ends it the safe end of its last bracket is the answer. That the bound is
monotone is looked at at all values that were visited, one beyond the bracket among them. What fell
short is told in a note: the value meets the target, whatever others do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast, overload

import sympy as sp

from symdp.arguments import MOST_STEPS, real, share, silent
from symdp.errors import AccuracyError, InputError, refusal, suggestion
from symdp.interrupt import limit as within
from symdp.interrupt import time_left, worked
from symdp.model import assumption
from symdp.model.mechanism import a_mechanism
from symdp.model.relation import is_local
from symdp.model.sampling import exact
from symdp.questions.composition import Composition, Direction
from symdp.questions.design.scaled import ScaledSteps, SharedBudget
from symdp.questions.invert import bracketed_root, cheap_log_bound, exceeded, rounded_upper
from symdp.questions.steps.accounted import direction_of
from symdp.questions.tradeoff import membership_advantage, trade_off
from symdp.turns import in_turn

if TYPE_CHECKING:
    from symdp.arguments import MethodName
    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Number
    from symdp.numeric.total import SumLaw
    from symdp.questions.guarantee import Guarantee

    Progress = Callable[[sp.Rational, float, bool], None]

COUNT = "n"
# significant, of the value: the search for a rate is dearer
_DIGITS = 10
_ATTACK_DIGITS = 6
_LEAST_DIGITS = 4
_MOST_DIGITS = 13
_NOISE = 1e-7  # of log δ: smaller differences against the trend are not held against it
_SATURATED = 2e3  # a normal quantile that stands for an infinite one
_FAR = 20.0  # e-folds below the target: there a bound says as much of a value as δ does
_LEAST_LOG = -1e300  # of a bound that stands for 0
# of an index, absolute and relative: where a root is found
_NEAR = 1.5
_FINEST = 1e-15
_EXPONENTS = range(-6, 10)  # decimal, of the coarse list
_MOST_REFUSED = 6  # values next to each other that the search steps over
_MOST_REFUSED_IN_ALL = 16
_FROM_END = 2  # coarse values between an end of the domain and where the walk starts
_PARTS = 8  # of a range that has no coarse value
_NEAR_END = (2, 8, 64)  # parts of the way from an end of the domain to the nearest coarse value
_SPARE = 0.15  # of the time left, kept for the answer in both directions
_LAST_ANSWERS = 4  # as many of the dearest one are kept time for
_LONGEST_REASON = 200  # characters


@dataclass(frozen=True)
class Calibrated:
    """A calibrated parameter: the value that meets a target, and the neighbour that does not."""

    parameter: str
    value: sp.Rational  # an exact decimal
    step: sp.Rational  # the grid's spacing
    neighbour: sp.Rational  # the next value on the less private side, or the nearest answered one
    note: str = field(default="", kw_only=True)  # what the search stepped over or left open
    # of several steps: the parameters of each by its name
    steps: dict[str, dict[str, str]] = field(default_factory=dict, kw_only=True, compare=False)

    def __float__(self) -> float:
        return float(self.value)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        answer: dict[str, Any] = {"parameter": self.parameter}
        answer["value"] = _plain_number(self.value)
        answer["step"] = _plain_number(self.step)
        if self.note:
            answer["note"] = self.note
        if self.steps:
            answer["steps"] = self.steps
        return answer


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


@overload
def calibrate(
    mechanism: Mechanism | ScaledSteps | SharedBudget,
    parameter: str,
    n: int | None = ...,
    *,
    epsilon: float,
    delta: float,
    digits: int | None = ...,
    between: tuple[Number, Number] | None = ...,
    method: MethodName = ...,
    direction: Direction = ...,
    progress: Progress | None = ...,
) -> Calibration: ...
@overload
def calibrate(
    mechanism: Mechanism | ScaledSteps | SharedBudget,
    parameter: str,
    n: int | None = ...,
    *,
    advantage: float,
    digits: int | None = ...,
    between: tuple[Number, Number] | None = ...,
    progress: Progress | None = ...,
) -> AttackCalibration: ...
@overload
def calibrate(
    mechanism: Mechanism | ScaledSteps | SharedBudget,
    parameter: str,
    n: int | None = ...,
    *,
    tpr: float,
    fpr: float,
    digits: int | None = ...,
    between: tuple[Number, Number] | None = ...,
    progress: Progress | None = ...,
) -> AttackCalibration: ...
@in_turn
def calibrate(
    mechanism: Mechanism | ScaledSteps | SharedBudget,
    parameter: str,
    n: int | None = None,
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
    progress: Progress | None = None,
) -> Any:
    """Return the least noisy value of a parameter that meets a target, rounded to the safe side.

    The returned value and its neighbour on the grid are adjacent decimals v and v′ with
    upper(δ_v(ε)) ≤ δ < upper(δ_{v′}(ε)), upper being the method's own bound, over the directions
    asked for. That v is the only such place rests on δ(ε) being monotone in the parameter; it is
    looked at at every value that the search visits, on both sides of the answer, and `note` says
    where it is not. Values that are refused are stepped over, and where the time ends before the
    grid's neighbours are found v′ lies farther away; `note` says both. The advantage of
    the best attack on the presence of a record is δ(0), and its true positive rate at false
    positive rate α is 1 − f(α), f the trade-off of both directions together [IND].

    Parameters
    ----------
    mechanism
        With every parameter bound but the one to calibrate; or several steps with one unknown, see
        `symdp.questions.design.scaled`: `n` is then how often all of them run. A sampling
        rate is a parameter where the mechanism was sampled at a symbolic rate, as in
        `.subsample("poisson", "q")`.
    parameter
        The name of the free parameter, or "n" for the number of steps.
    n
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
        Search only between these two values, as where δ(ε) is not monotone in the parameter.
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
        If no value of the parameter that can be reached meets the target, or all do.

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
    if progress is None:
        progress = silent
    kinds = (epsilon, delta), (advantage,), (tpr, fpr)
    named = [kind for kind in kinds if any(value is not None for value in kind)]
    if len(named) != 1 or None in named[0]:
        raise InputError("give epsilon and delta, or advantage, or tpr and fpr, one of the three")
    if digits is None:
        digits = _DIGITS if delta is not None else _ATTACK_DIGITS
    if isinstance(digits, bool) or not _LEAST_DIGITS <= digits <= _MOST_DIGITS:
        raise InputError(f"digits = {digits!r}: from {_LEAST_DIGITS} to {_MOST_DIGITS}")
    if isinstance(mechanism, ScaledSteps | SharedBudget):
        what, grid, composed = _task_of_steps(mechanism, parameter, n, digits, between, delta)
    else:
        what, grid, composed = _task(mechanism, parameter, n, digits, between)
    if epsilon is not None and delta is not None:
        at = real(epsilon, "epsilon")
        target = share(delta, "delta")
        met, answers, note = _met_delta(
            what, grid, composed, at, target, method, direction, progress
        )
        seconds = time.perf_counter() - start
        held = answers[met[0]]
        missed = answers[met[2]]
        steps = {}
        if isinstance(mechanism, ScaledSteps):
            steps = mechanism.told(met[0])
        elif isinstance(mechanism, SharedBudget):
            steps = mechanism.told(met[0], target, _meets)
        return Calibration(parameter, *met, target, held, missed, seconds, note=note, steps=steps)
    if method != "contour" or direction != "both":
        raise InputError("attacks are counted in both directions, by the method contour")
    target, reached, words = _attack(advantage, tpr, fpr)
    rates: dict[sp.Rational, float] = {}

    def log_rate(value: sp.Rational) -> float:
        rates[value] = reached(composed(value))
        if rates[value] > 0.0:
            return math.log(rates[value])
        return -math.inf

    aim = f"{words} ≤ {target:g}"
    search = _Search(grid, log_rate, _below(target), what, aim, progress)
    met = search.met()
    ends = (rates[met[0]], rates[met[2]])
    seconds = time.perf_counter() - start
    return AttackCalibration(parameter, *met, fpr, target, *ends, seconds, note=search.note)


def _plain_number(value: sp.Rational) -> int | float:
    return int(value.p) if value.q == 1 else float(value)


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
            raise InputError("the number of steps is missing: give n")
        domain = next(p.domain for p in mechanism.declared if p.name == parameter)
    elif parameter == COUNT:
        if count is not None:
            raise InputError("the number of steps is what is calibrated; leave n out")
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
    if between is None and parameter in free:
        allows = partial(assumption.allows, mechanism, parameter)
        inside = grid.within(allows) or grid.inside(
            assumption.numeric_ends(mechanism, parameter), allows
        )
        if inside is None:
            limits = " and ".join(mechanism.assumptions)
            raise InputError(
                f"{mechanism.name}: few values of {parameter} are allowed ({limits}); give two "
                "between which it is looked for"
            )
        grid = inside
    if between is not None:
        grid = grid.between(*_two_ends(parameter, between))

    def composed(value: sp.Rational) -> Composition:
        if count is None:
            return Composition([(mechanism, int(value))])
        return Composition([(mechanism(**{parameter: value}), count)])

    return f"{mechanism.name}: {parameter}", grid, composed


def _task_of_steps(
    steps: ScaledSteps | SharedBudget,
    parameter: str,
    count: int | None,
    digits: int,
    between: tuple[Number, Number] | None,
    delta: float | None,
) -> tuple[str, _Grid, Callable[[sp.Rational], Composition]]:
    """Return what `_task` does, of several steps with one unknown."""
    if parameter not in steps.names:
        hint = suggestion(parameter, steps.names)
        if not steps.names:
            hint = f'; write it in the parameters of steps, as in b = "2*{parameter}"'
        hint = hint or f"; there is {' or '.join(steps.names)}"
        raise InputError(f"the composition has no name {parameter!r:.60} without a value{hint}")
    if len(steps.names) > 1:
        others = ", ".join(name for name in steps.names if name != parameter)
        raise InputError(f"give a value for {others} before {parameter} can be calibrated")
    if isinstance(steps, SharedBudget) and delta is None:
        raise InputError("shares of a budget are those of an (ε, δ): give epsilon and delta")
    times = 1 if count is None else count
    (unknown,) = steps.declared
    grid = _grid_of(unknown.domain, digits)
    if between is not None:
        grid = grid.between(*_two_ends(parameter, between))

    def composed(value: sp.Rational) -> Composition:
        if isinstance(steps, SharedBudget):
            assert delta is not None
            listed = steps.at_delta(value, delta, _meets)
        else:
            listed = steps.at(**{parameter: value})
        return Composition([(mechanism, times * repeats) for mechanism, repeats in listed])

    return f"the composition: {parameter}", grid, composed


def _meets(mechanism: Mechanism, name: str, count: int, epsilon: float, delta: float) -> sp.Expr:
    """Return the value of a mechanism's one parameter at which so many steps meet (ε, δ)."""
    return calibrate(mechanism, name, count, epsilon=epsilon, delta=delta).value


def _two_ends(parameter: str, between: tuple[Number, Number]) -> tuple[sp.Rational, sp.Rational]:
    """Return the two values between which a parameter is looked for."""
    low, high = (exact(end, parameter) for end in between)
    if not (low.is_Rational and high.is_Rational and low < high):
        raise InputError(f"{parameter} between {low} and {high}: two numbers, the lower one first")
    return low, high


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
    progress: Progress,
) -> tuple[_Met, dict[sp.Rational, Guarantee], str]:
    """Return where the method's bound on δ(ε) crosses δ, the answers on the way, and a note.

    Of two directions the search asks the one that was larger at its first value; the answer is
    asked in both, and where it does not hold there, so is every value.
    """
    answers: dict[sp.Rational, Guarantee] = {}
    limit = _below(delta)
    side = direction
    bounded: set[sp.Rational] = set()
    is_far = True

    def log_upper(value: sp.Rational, *, keep: bool = False) -> float:
        nonlocal side, is_far
        steps = composed(value)
        laws = _laws_of_losses(steps, side) if method == "contour" else {}
        if laws and is_far:
            log_bound = cheap_log_bound(laws.values(), epsilon, limit - _FAR)
            if log_bound < limit - _FAR:
                bounded.add(value)
                return log_bound
        if not all(law.is_closed for law in laws.values()):  # a formula is not asked twice
            larger, rounded = rounded_upper(steps.accountant(), laws, epsilon)
            if abs(rounded - limit) > 1e4 * _NOISE:  # farther than rounding may move it
                side = cast("Direction", direction_of(larger)) if keep else direction
                is_far = is_far and abs(rounded - limit) > _FAR
                return rounded
        answer = answers[value] = steps.delta(epsilon, method, side)
        if answer.log_upper is None:
            raise InputError(
                f"method '{method}' gives no upper bound on δ, and a calibration needs one; "
                "use contour or moments"
            )
        side = cast("Direction", answer.direction) if keep else direction
        is_far = is_far and abs(answer.log_upper - limit) > _FAR
        return answer.log_upper

    target = f"δ({epsilon:g}) ≤ {delta:g}"
    ask = partial(log_upper, keep=True)
    search = _Search(grid, ask, limit, what, target, progress, bounded)
    met = search.met()
    if side != direction:
        side = direction
        if log_upper(met[0]) > limit:
            search = _Search(grid, log_upper, limit, what, target, progress, bounded)
            met = search.met()
    for value in {met[0], met[2]} - answers.keys():
        answers[value] = composed(value).delta(epsilon, method, direction)
    return met, answers, search.note


def _laws_of_losses(steps: Composition, direction: Direction) -> dict[str, SumLaw]:
    """Return the laws of the sides of a direction, none where no law of a loss is known."""
    if steps.protection.by_curve or any(is_local(step) for step, _ in steps.steps):
        return {}
    return {side: steps.law(side) for side in steps.sides(direction)}


def _attack(
    advantage: float | None, tpr: float | None, fpr: float | None
) -> tuple[float, Callable[[Composition], float], str]:
    """Return the target, what a composition lets an attack reach, and its name."""
    if advantage is not None:
        return share(advantage, "advantage"), membership_advantage, "advantage"
    assert tpr is not None
    assert fpr is not None
    target = share(tpr, "tpr")
    alpha = share(fpr, "fpr")
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

    def within(self, allows: Callable[[sp.Rational], bool]) -> _Grid | None:
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
    ) -> _Grid | None:
        """Return the grid of values between two ends that lie nearer than coarse values do."""
        if len(ends) != 2:
            return None
        low, high = (sp.Rational(str(sp.N(end, _MOST_DIGITS))) for end in ends)
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

    def between(self, low: sp.Rational, high: sp.Rational) -> _Grid:
        """Return the grid whose walk has only these two ends, rounded inwards."""
        step = self.step(low, high)
        ends = sp.ceiling(low / step) * step, sp.floor(high / step) * step
        if not ends[0] < ends[1]:
            raise InputError(f"between {low} and {high} there are no two values to choose from")
        return replace(self, coarse=ends, start=0, walks=False)


def _grid_of(domain: str, digits: int) -> _Grid:
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
        progress: Progress,
        bounded: AbstractSet[sp.Rational] = frozenset(),
    ) -> None:
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

    def met(self) -> _Met:
        """Return the ends of the last bracket, the one that meets the limit first."""
        low, high = self._bracket()
        self._step = step = self._grid.step(low, high)
        # Exact: the coarse values are multiples of the step.
        self._ends = int(low / step), int(high / step)
        left = time_left()
        if math.isfinite(left):
            spare = max(_SPARE * left, _LAST_ANSWERS * self._dearest)
            with within(left - spare, of_work=True) as outcome:
                self._narrow()
            self._is_late = outcome.late
            if outcome.late:
                self._take_nearest()
        else:
            self._narrow()
        low, high = (end * step for end in self._ends)
        if self._is_safe(low):
            return (low, step, high)
        return (high, step, low)

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
        visited = sorted(value for value in self._known if low <= value <= high)
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
        if value not in self._known:
            start = worked()
            found = self._known[value] = self._ask(value)
            self._dearest = max(self._dearest, worked() - start)
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
        try:
            place = bracketed_root(height, *ends, absolute=near, relative=_FINEST)
        except (InputError, AccuracyError):  # bisection steps over what is refused
            return (first + last) // 2
        return math.floor(math.exp(place) if with_log else place)

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
        if not abs(rise) > _NOISE:  # also where both are −∞
            wanted = -side if -side in left else side
        else:
            wanted = 1 if (rise < 0) == (not self._is_safe(low)) else -1
        if wanted in left:
            return wanted
        if left and self._turn():
            return -wanted
        every = "every" if self._is_safe(low) else "no"
        seen = self._said(list(dict.fromkeys((low, high))))
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
        values = sorted(value for value in self._known if value not in self._bounded)
        heights = [self._log_upper(value) for value in values]
        # −∞ less −∞ is no number, and no rise.
        rises = [b - a if b != a else 0.0 for a, b in pairwise(heights)]
        ups = [place for place, rise in enumerate(rises) if rise > _NOISE]
        downs = [place for place, rise in enumerate(rises) if rise < -_NOISE]
        if not self._grid.walks or not ups or not downs:
            return ""
        later = max(ups[0], downs[0])
        return ", ".join(self._said(values[later - 1 : later + 2]))


def decimal(value: sp.Rational) -> str:
    """Return an exact decimal fraction in digits, such as 1.00025."""
    from decimal import Context, Decimal

    context = Context(prec=60)
    quotient = context.divide(Decimal(int(value.p)), Decimal(int(value.q))).normalize(context)
    text = f"{quotient:f}"
    if abs(value) >= 1e-4 or value == 0:
        return text
    return f"{quotient:e}".replace("E", "e")
