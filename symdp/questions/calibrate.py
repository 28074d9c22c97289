"""Calibration: the value of one parameter at which a composition just meets a target.

The target is an (ε, δ), the advantage of an attack, or its hits at a false alarm rate. Values are
looked for on a decimal grid, and the answer is a pair of neighbours on it: one whose own upper
bound meets the target, and the next one, whose bound does not. Rounding therefore never costs
privacy, whatever the parameter.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, cast

from symdp.arguments import real
from symdp.errors import InputError, suggestion
from symdp.model.taken import a_mechanism
from symdp.questions.calibration_grid import Found, Grid, decimal, grid_of, search
from symdp.questions.composition import Composition, Direction
from symdp.questions.tradeoff import membership_advantage, trade_off
from symdp.turns import in_turn

if TYPE_CHECKING:
    import sympy as sp

    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Number
    from symdp.questions.guarantee import Guarantee

COUNT = "n"
_DIGITS, _ATTACK_DIGITS = 10, 6  # significant, of the value: the search for a rate is dearer
_LEAST_DIGITS, _MOST_DIGITS = 4, 13


@dataclass(frozen=True)
class Calibrated:
    """A calibrated parameter: the value that meets a target, and the neighbour that does not.

    Attributes
    ----------
    parameter, value
        The name, and its value, an exact decimal.
    step, neighbour
        The grid's spacing, and the next value, so far on the less private side.
    """

    parameter: str
    value: sp.Rational
    step: sp.Rational
    neighbour: sp.Rational

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

    Attributes
    ----------
    target_delta
        The δ that was asked for.
    guarantee
        What holds at `value`: δ(ε) with its bounds, the upper one at most the target.
    missed
        The same at `neighbour`, its upper bound above the target.
    seconds
        The time that the whole search took.
    """

    target_delta: float
    guarantee: Guarantee
    missed: Guarantee
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values: the guarantee's keys, and what was calibrated."""
        own = {**super().to_json(), "target_delta": self.target_delta}
        return {**own, **self.guarantee.to_json(), "seconds": round(self.seconds, 6)}

    def _repr_html_(self) -> str:
        value = f"{escape(self.parameter)} = <b>{decimal(self.value)}</b>"
        return f"<div>{value}</div>{self.guarantee._repr_html_()}"

    def __str__(self) -> str:
        return f"{self.parameter} = {decimal(self.value)}: {self.guarantee}"


@dataclass(frozen=True)
class AttackCalibration(Calibrated):
    """A parameter whose value holds an attack down, and the neighbour that does not.

    Attributes
    ----------
    false_positive_rate
        Where the hits are counted; None for the advantage.
    target
        The largest advantage, or true positive rate, that was allowed.
    rate, missed
        What the best attack reaches at the value, at most the target; and at the neighbour.
    seconds
        The time that the search took.
    """

    false_positive_rate: float | None
    target: float
    rate: float
    missed: float
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        names = ("false_positive_rate", "target", "rate", "missed")
        own = {name: getattr(self, name) for name in names}
        return {**super().to_json(), **own, "seconds": round(self.seconds, 6)}


@dataclass(frozen=True)
class _Reached:
    """What the best attack reaches, as the search compares it."""

    log_upper: float

    @property
    def delta(self) -> float:
        """The rate itself."""
        return math.exp(self.log_upper)


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
    method: str = "contour",
    direction: Direction = "both",
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

    Raises
    ------
    InputError
        If an argument breaks a rule, no value of the parameter meets the target or all do, or
        what is met is not monotone in the parameter.
    AccuracyError
        If the method fails near the answer.

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
        digits = _DIGITS if advantage is None and tpr is None else _ATTACK_DIGITS
    if isinstance(digits, bool) or not _LEAST_DIGITS <= digits <= _MOST_DIGITS:
        raise InputError(f"digits = {digits!r}: from {_LEAST_DIGITS} to {_MOST_DIGITS}")
    task = _task_of(mechanism, parameter, count, digits, between)
    if epsilon is not None and delta is not None:
        target = _inside(delta, "delta")
        met = _meets_delta(task, real(epsilon, "epsilon"), target, method, direction)
        seconds = time.perf_counter() - start
        return Calibration(
            parameter, met.safe, met.step, met.unsafe, target, met.guarantee, met.missed, seconds
        )
    if method != "contour" or direction != "both":
        raise InputError("attacks are counted in both directions, by the method contour")
    target, reached, what = _attack(advantage, tpr, fpr)

    def at(value: sp.Rational) -> _Reached:
        rate = reached(task.compose(value))
        return _Reached(math.log(rate) if rate > 0.0 else -math.inf)

    held = search(task.grid, at, _below(target), task.subject, f"{what} ≤ {target:g}")
    return AttackCalibration(
        parameter,
        held.safe,
        held.step,
        held.unsafe,
        fpr,
        target,
        held.guarantee.delta,
        held.missed.delta,
        time.perf_counter() - start,
    )


def _below(target: float) -> float:
    """Return log target less an ulp: the rounding of the logarithm is on the safe side too."""
    return math.nextafter(math.log(target), -math.inf)


def _meets_delta(
    task: _Task, epsilon: float, delta: float, method: str, direction: Direction
) -> Found[Guarantee]:
    """Return the neighbours between which the method's bound on δ(ε) crosses δ.

    Where both directions are asked for, the search asks the one that was larger at its first value;
    the answer is asked in both.
    """
    side = direction

    def bounded(value: sp.Rational) -> Guarantee:
        nonlocal side
        answer = task.compose(value).delta(epsilon, method, side)
        if answer.log_upper is None:
            raise InputError(
                f"method '{method}' gives no upper bound on δ, and a calibration needs one; "
                "use contour or moments"
            )
        side = cast("Direction", answer.direction)
        return answer

    words = _below(delta), task.subject, f"δ({epsilon:g}) ≤ {delta:g}"
    found = search(task.grid, bounded, *words)
    if side == direction:
        return found
    side = direction
    safe = bounded(found.safe)
    if safe.log_upper is not None and safe.log_upper <= words[0]:
        return replace(found, guarantee=safe)

    def worst(value: sp.Rational) -> Guarantee:
        nonlocal side
        side = direction
        return bounded(value)

    return search(task.grid, worst, *words)


@dataclass(frozen=True)
class _Task:
    """What is calibrated: where its values are looked for, and the composition at one of them."""

    mechanism: Mechanism
    parameter: str
    grid: Grid
    count: int | None

    @property
    def subject(self) -> str:
        return f"{self.mechanism.name}: {self.parameter}"

    def compose(self, value: sp.Rational) -> Composition:
        if self.count is None:
            return Composition([(self.mechanism, int(value))])
        return Composition([(self.mechanism(**{self.parameter: value}), self.count)])


def _task_of(
    mechanism: Mechanism,
    parameter: str,
    count: int | None,
    digits: int,
    between: tuple[Number, Number] | None,
) -> _Task:
    """Return the task; raise InputError where the mechanism leaves too much or nothing free."""
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
    grid = grid_of(domain, digits)
    return _Task(
        mechanism,
        parameter,
        grid if between is None else _narrowed(grid, between, parameter),
        count,
    )


def _narrowed(grid: Grid, between: tuple[Number, Number], parameter: str) -> Grid:
    """Return the grid between two values; InputError where they are not two numbers in order."""
    from symdp.model.sampling import exact

    low, high = (exact(end, parameter) for end in between)
    if not (low.is_Rational and high.is_Rational and low < high):
        raise InputError(f"{parameter} between {low} and {high}: two numbers, the lower one first")
    return grid.between(low, high)


def _attack(
    advantage: float | None, tpr: float | None, fpr: float | None
) -> tuple[float, Callable[[Composition], float], str]:
    """Return the target, what a composition lets an attack reach, and its name."""
    if advantage is not None:
        return _inside(advantage, "advantage"), membership_advantage, "advantage"
    assert tpr is not None
    assert fpr is not None
    target, alpha = _inside(tpr, "tpr"), _inside(fpr, "fpr")
    if not alpha < target:
        raise InputError(
            f"tpr = {tpr!r}: guessing alone reaches the false positive rate, {fpr!r}; allow more"
        )

    def hits(steps: Composition) -> float:
        """Return the most that an attack hits, the subtraction rounded up."""
        return min(1.0, math.nextafter(1.0 - trade_off(steps, alpha), 2.0))

    return target, hits, f"true positive rate at {alpha:g}"


def _inside(value: float, name: str) -> float:
    number = real(value, name)
    if not 0.0 < number < 1.0:
        raise InputError(f"{name} = {value!r}: it must lie strictly between 0 and 1")
    return number
