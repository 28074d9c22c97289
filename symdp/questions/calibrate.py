"""Calibration: the value of one parameter at which a composition just meets an (ε, δ).

Values are looked for on a decimal grid, and the answer is a pair of neighbours on it: one whose own
upper bound on δ(ε) meets the target, and the next one, whose bound does not. Rounding therefore
never costs privacy, whatever the parameter.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from symdp.errors import InputError, suggestion
from symdp.model.taken import a_mechanism
from symdp.questions.calibration_grid import Grid, decimal, grid_of, search
from symdp.questions.composition import Composition, Direction

if TYPE_CHECKING:
    import sympy as sp

    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Number
    from symdp.questions.guarantee import Guarantee

COUNT = "n"
_LEAST_DIGITS, _MOST_DIGITS = 4, 13


@dataclass(frozen=True)
class Calibration:
    """A calibrated parameter: the value that meets the target, and the neighbour that does not.

    Attributes
    ----------
    parameter, value
        The name, and its value, an exact decimal.
    step
        The grid's spacing: the neighbour lies this far on the less private side.
    neighbour
        That next value; its upper bound on δ(ε) exceeds the target.
    target_delta
        The δ that was asked for.
    guarantee
        What holds at `value`: δ(ε) with its bounds, the upper one at most the target.
    missed
        The same at `neighbour`, its upper bound above the target.
    seconds
        The time that the whole search took.
    """

    parameter: str
    value: sp.Rational
    step: sp.Rational
    neighbour: sp.Rational
    target_delta: float
    guarantee: Guarantee
    missed: Guarantee
    seconds: float

    def __float__(self) -> float:
        return float(self.value)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values: the guarantee's keys, and what was calibrated."""
        return {
            "parameter": self.parameter,
            "value": _plain(self.value),
            "step": _plain(self.step),
            "target_delta": self.target_delta,
            **self.guarantee.to_json(),
            "seconds": round(self.seconds, 6),
        }

    def _repr_html_(self) -> str:
        from symdp.questions.notebook import calibration_html

        return calibration_html(self.parameter, decimal(self.value), self.guarantee)

    def __str__(self) -> str:
        return f"{self.parameter} = {decimal(self.value)}: {self.guarantee}"


def calibrate(
    mechanism: Mechanism,
    parameter: str,
    count: int | None = None,
    *,
    epsilon: float,
    delta: float,
    digits: int = 10,
    between: tuple[Number, Number] | None = None,
    method: str = "contour",
    direction: Direction = "both",
) -> Calibration:
    """Return the least noisy value of a parameter with δ(ε) ≤ `delta`, rounded to the safe side.

    The returned value and its neighbour on the grid are adjacent decimals v and v′ with
    upper(δ_v(ε)) ≤ δ < upper(δ_{v′}(ε)), upper being the method's own bound, over the directions
    asked for. That v is the only such place rests on δ(ε) being monotone in the parameter; it is
    checked at every value that the search visits, on both sides of the answer.

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
    digits
        Significant digits of the grid, 4 to 13; a whole parameter always has step 1.
    between
        Search only between these two values. Needed where δ(ε) is not monotone in the parameter.
    method
        An accountant that bounds δ from above, such as contour or moments.
    direction
        "remove", "add", or "both".

    Raises
    ------
    InputError
        If an argument breaks a rule, no value of the parameter meets the target or all do, or
        δ(ε) is not monotone in the parameter.
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
    """
    start = time.perf_counter()
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta = {delta!r}: it must lie strictly between 0 and 1")
    checked_digits(digits)
    task = task_of(mechanism, parameter, count)
    # One ulp below, so that the rounding of the logarithm is on the safe side too.
    limit = math.nextafter(math.log(delta), -math.inf)

    def worst(value: sp.Rational) -> Guarantee:
        return _bounded(task.compose(value).delta(epsilon, method, direction), method)

    grid = grid_of(task.domain, digits)
    if between is not None:
        grid = narrowed(grid, between, parameter)
    target = f"δ({epsilon:g}) ≤ {delta:g}"
    what = f"{task.name}: {parameter}"
    leading = _Leading(task, epsilon, method, direction)
    found = search(grid, leading.guarantee, limit, what, target)
    if leading.side is not None:
        # Both directions count: what the search saw in one of them is asked in both.
        safe = worst(found.safe)
        if safe.log_upper is not None and safe.log_upper <= limit:
            found = replace(found, guarantee=safe)
        else:
            found = search(grid, worst, limit, what, target)
    return Calibration(
        parameter,
        found.safe,
        found.step,
        found.unsafe,
        delta,
        found.guarantee,
        found.missed,
        time.perf_counter() - start,
    )


def _plain(value: sp.Rational) -> int | float:
    return int(value.p) if value.q == 1 else float(value)


def checked_digits(digits: int) -> int:
    """Return a number of significant digits of a grid; InputError outside 4 to 13."""
    if isinstance(digits, bool) or not _LEAST_DIGITS <= digits <= _MOST_DIGITS:
        raise InputError(f"digits = {digits!r}: from {_LEAST_DIGITS} to {_MOST_DIGITS}")
    return digits


@dataclass(frozen=True)
class _Task:
    """What is calibrated: the domain of its values, and the composition at one of them."""

    mechanism: Mechanism
    parameter: str
    domain: str
    count: int

    @property
    def name(self) -> str:
        return self.mechanism.name

    def compose(self, value: sp.Rational) -> Composition:
        if self.parameter == COUNT and COUNT not in self.mechanism.parameters:
            return Composition([(self.mechanism, int(value))])
        return Composition([(self.mechanism(**{self.parameter: value}), self.count)])


def task_of(mechanism: Mechanism, parameter: str, count: int | None) -> _Task:
    """Return the task; raise InputError where the mechanism leaves too much or nothing free."""
    free = a_mechanism(mechanism).parameters
    if parameter not in free:
        if parameter == COUNT:
            if count is not None:
                raise InputError("the number of steps is what n calibrates; leave the count out")
            return _Task(mechanism.require_concrete(), COUNT, "count", 0)
        if parameter in mechanism.values:
            raise InputError(
                f"{mechanism.name}: {parameter} is bound to {mechanism.values[parameter]}, so it "
                "cannot be calibrated; leave it free"
            )
        known = [*free, COUNT]
        hint = suggestion(parameter, known) or f"; there is {' or '.join(known)}"
        raise InputError(f"{mechanism.name} has no parameter {parameter!r:.60}{hint}")
    others = [name for name in free if name != parameter]
    if others:
        raise InputError(
            f"{mechanism.name} needs a value for {', '.join(others)} before {parameter} can be "
            "calibrated"
        )
    if count is None:
        raise InputError("the number of steps is missing: give a count")
    domain = next(p.domain for p in mechanism.declared if p.name == parameter)
    return _Task(mechanism, parameter, domain, count)


def narrowed(grid: Grid, between: tuple[Number, Number], parameter: str) -> Grid:
    """Return the grid between two values; InputError where they are not two numbers in order."""
    from symdp.model.sampling import exact

    low, high = (exact(end, parameter) for end in between)
    if not (low.is_Rational and high.is_Rational and low < high):
        raise InputError(f"{parameter} between {low} and {high}: two numbers, the lower one first")
    return grid.between(low, high)


class _Leading:
    """δ(ε) in the direction that was the larger one at the first value, where both are asked for.

    Parameters
    ----------
    task, epsilon, method, direction
        As for `calibrate`.
    """

    def __init__(self, task: _Task, epsilon: float, method: str, direction: Direction) -> None:
        self._task, self._epsilon, self._method = task, epsilon, method
        self._direction = direction
        self.side: Direction | None = None

    def guarantee(self, value: sp.Rational) -> Guarantee:
        """Return δ(ε) with its bounds at a value."""
        asked = self.side or self._direction
        answer = self._task.compose(value).delta(self._epsilon, self._method, asked)
        if asked == "both":
            self.side = cast("Direction", answer.direction)
        return _bounded(answer, self._method)


def _bounded(answer: Guarantee, method: str) -> Guarantee:
    if answer.log_upper is None:
        raise InputError(
            f"method '{method}' gives no upper bound on δ, and a calibration needs one; "
            "use contour or moments"
        )
    return answer
