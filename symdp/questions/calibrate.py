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
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from html import escape
from typing import TYPE_CHECKING, Any, cast, overload

import sympy as sp

from symdp.arguments import real, share, silent
from symdp.errors import InputError, suggestion
from symdp.methods.route import is_dear
from symdp.model import assumption
from symdp.model.mechanism import a_mechanism
from symdp.model.relation import is_local
from symdp.model.sampling import exact
from symdp.questions.composition import Composition, Direction
from symdp.questions.design.scaled import ScaledSteps, SharedBudget
from symdp.questions.invert import cheap_log_bound, rounded_upper
from symdp.questions.rough_delta import rough_log_deltas
from symdp.questions.steps.accounted import direction_of
from symdp.questions.tradeoff import membership_advantage, trade_off
from symdp.questions.value_search import (
    FAR,
    MOST_DIGITS,
    NOISE,
    Met,
    ValueGrid,
    ValueSearch,
    decimal,
    grid_of,
)
from symdp.turns import in_turn

if TYPE_CHECKING:
    from symdp.arguments import MethodName
    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Number
    from symdp.numeric.total import SumLaw
    from symdp.questions.guarantee import Guarantee
    from symdp.questions.value_search import Progress

COUNT = "n"
# significant, of the value: the search for a rate is dearer
_DIGITS = 10
_ATTACK_DIGITS = 6
_LEAST_DIGITS = 4
_FEW = 8  # compositions that are kept: their lines serve again


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
    if isinstance(digits, bool) or not _LEAST_DIGITS <= digits <= MOST_DIGITS:
        raise InputError(f"digits = {digits!r}: from {_LEAST_DIGITS} to {MOST_DIGITS}")
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
    search = ValueSearch(grid, log_rate, _below(target), what, aim, progress)
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
) -> tuple[str, ValueGrid, Callable[[sp.Rational], Composition]]:
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
    grid = grid_of(domain, digits)
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
) -> tuple[str, ValueGrid, Callable[[sp.Rational], Composition]]:
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
    grid = grid_of(unknown.domain, digits)
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
    grid: ValueGrid,
    composed: Callable[[sp.Rational], Composition],
    epsilon: float,
    delta: float,
    method: MethodName,
    direction: Direction,
    progress: Progress,
) -> tuple[Met, dict[sp.Rational, Guarantee], str]:
    """Return where the method's bound on δ(ε) crosses δ, the answers on the way, and a note.

    Of two directions the search asks the one that was larger at its first value; the answer is
    asked in both, and where it does not hold there, so is every value.
    """
    limit = _below(delta)
    target = f"δ({epsilon:g}) ≤ {delta:g}"
    bounds = _Bounds(lru_cache(_FEW)(composed), epsilon, limit, method, direction)

    def met_by_search() -> tuple[Met, str]:
        search = ValueSearch(
            grid, bounds.log_upper, limit, what, target, progress, bounds.bounded, bounds.estimate
        )
        return search.met(), search.note

    met, note = met_by_search()
    if bounds.asked != direction:
        bounds.ask_all()
        if bounds.log_upper(met[0]) > limit:
            met, note = met_by_search()
    for value in {met[0], met[2]} - bounds.answers.keys():
        bounds.answers[value] = bounds.composed(value).delta(epsilon, method, direction)
    return met, bounds.answers, note


class _Bounds:
    """The method's bound on δ(ε) at values of a parameter, and estimates of it."""

    def __init__(
        self,
        composed: Callable[[sp.Rational], Composition],
        epsilon: float,
        limit: float,
        method: MethodName,
        direction: Direction,
    ) -> None:
        self.composed = composed
        self.answers: dict[sp.Rational, Guarantee] = {}
        self.bounded: set[sp.Rational] = set()  # values of which an upper bound is known alone
        self.asked = direction  # the one that was larger at the first value, or all
        self._keeps_larger = True
        self._question = direction, epsilon, method
        self._limit = limit
        self._is_far = True
        self._is_dear: bool | None = None  # whether δ costs more than an estimate
        self._larger_first: list[str] = []  # sides, by the last estimate

    def ask_all(self) -> None:
        """Ask in all directions from here on."""
        self.asked, _, _ = self._question
        self._keeps_larger = False

    def log_upper(self, value: sp.Rational) -> float:
        """Return log of the upper bound on δ(ε), or of a larger one far below the limit."""
        _, epsilon, method = self._question
        steps = self.composed(value)
        laws = self._laws_in_order(steps)
        if laws and self._is_far:
            least = self._limit - FAR
            log_bound = cheap_log_bound(laws.values(), epsilon, least)
            if log_bound < least:
                self.bounded.add(value)
                return log_bound
        is_formula = all(law.is_closed for law in laws.values())  # which is not asked twice
        if not (is_formula or self._is_dear):
            larger, rounded = rounded_upper(steps.accountant(), laws, epsilon)
            if abs(rounded - self._limit) > 1e4 * NOISE:  # farther than rounding may move it
                self._keep(direction_of(larger), rounded)
                return rounded
        answer = self.answers[value] = steps.delta(epsilon, method, self.asked)
        if answer.log_upper is None:
            raise InputError(
                f"method '{method}' gives no upper bound on δ, and a calibration needs one; "
                "use contour or moments"
            )
        self._keep(answer.direction, answer.log_upper)
        return answer.log_upper

    def estimate(self, value: sp.Rational) -> float:
        """Return about log δ(ε), nan where that is unknown or costs as much as δ does."""
        _, epsilon, _ = self._question
        steps = self.composed(value)
        if self._is_dear is None:
            laws = self._laws_in_order(steps)
            self._is_dear = any(is_dear(law, epsilon) for law in laws.values())
        if not self._is_dear:
            return math.nan
        estimates = rough_log_deltas(steps.accounted, steps.sides(self.asked), epsilon)
        if any(map(math.isnan, estimates.values())):
            return math.nan
        self._larger_first = sorted(estimates, key=lambda side: -estimates[side])
        largest = max(estimates.values())
        self._is_far = self._is_far and not abs(largest - self._limit) < FAR
        return largest

    def _laws_in_order(self, steps: Composition) -> dict[str, SumLaw]:
        """Return the laws of the sides, the one of the largest estimate first; or none."""
        _, _, method = self._question
        if method != "contour":
            return {}
        laws = _laws_of_losses(steps, self.asked)
        order = [side for side in self._larger_first if side in laws]
        return {side: laws[side] for side in order} | laws

    def _keep(self, direction: str, log_upper: float) -> None:
        """Keep what an answer tells of those that follow."""
        if self._keeps_larger:
            self.asked = cast("Direction", direction)
        self._is_far = self._is_far and abs(log_upper - self._limit) > FAR


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
