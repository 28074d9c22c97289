r"""The cheapest parameters at an (ε, δ): a formula of the parameters is made least by gradients.

.. math:: \min_θ c(θ) \quad\text{where}\quad ε_δ(θ) ≤ ε, \quad a_i ≤ θ_i ≤ b_i

Among the θ are a mechanism's parameters, a sampling rate and the number of steps n. The search is
sequential quadratic programming in log θ with the derivatives of `gradient.py`; n is a real number
to its steps, and a whole one to its answers. What it ends at is a local optimum. Then n is made
whole, and one parameter is calibrated anew on the safe side, so that the plan that is told meets
(ε, δ) by the accountant's own upper bound. A trial value that is refused is stepped over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from symdp.arguments import MOST_STEPS, checked_count, real, share, silent
from symdp.emit.numpy import compile_numpy
from symdp.errors import AccuracyError, InputError, at, suggestion
from symdp.interrupt import limit, time_left
from symdp.model.mechanism import Mechanism, a_mechanism
from symdp.model.reading.parser import parse
from symdp.model.sampling import exact
from symdp.questions.calibrate import COUNT, calibrate
from symdp.questions.composition import Composition
from symdp.questions.design import gradient as slopes_of
from symdp.turns import in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.model.sampling import Number
    from symdp.questions.guarantee import Guarantee

    Array = NDArray[Any]

_DIGITS = 10  # of a value that a trial takes
_ITERATIONS = 60
_ENDED = 1e-7  # of the logarithm of the cost
_REFUSED = 10.0  # of log ε over its target, where a trial has no answer
_FOR_SEARCH = 0.6  # of the time left


@dataclass(frozen=True)
class Plan:
    """Parameters that meet an (ε, δ) at the least cost that was found."""

    values: dict[str, float]  # of all parameters that were looked for
    cost: float
    formula: str
    guarantee: Guarantee
    at_ends: tuple[str, ...]  # those at an end of their range
    tried: int  # values that were answered
    is_late: bool
    seconds: float = field(compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "values": self.values,
            "cost": self.cost,
            "formula": self.formula,
            "at_ends": list(self.at_ends),
            "tried": self.tried,
            "incomplete": self.is_late,
            **self.guarantee.to_json(),
            "seconds": round(self.seconds, 6),
        }

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}={value:.6g}" for name, value in self.values.items())
        return f"<Plan {listed}: {self.formula} = {self.cost:.6g}, {self.guarantee}>"


@in_turn
def plan(
    mechanism: Mechanism,
    cost: str,
    ranges: Mapping[str, tuple[Number, Number]],
    *,
    epsilon: float,
    delta: float,
    n: int | None = None,
    progress: Callable[[Mapping[str, float], float], None] | None = None,
) -> Plan:
    """Return the parameters in their ranges that meet (ε, δ) at the least cost: a local optimum.

    Parameters
    ----------
    mechanism : with every parameter bound but those that have a range
    cost : a formula of these names, among them n, the number of steps; positive
    ranges : name -> the least and the largest value, above 0. The first is the one that is
        calibrated in the end: ε must move with it
    epsilon, delta : the target
    n : the number of steps, where it has no range
    progress : called with values and the cost of each trial that has an answer

    Raises
    ------
    InputError : names or numbers that do not fit, or no plan in the ranges.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> ranges = {"sigma": (9, 15)}
    >>> best = plan(mechanisms.gaussian, "sigma", ranges, epsilon=1, delta=1e-5, n=10)
    >>> print(f"{best.values['sigma']:.4f}")
    11.7973
    """
    start = time.perf_counter()
    task = _task(a_mechanism(mechanism), cost, ranges, epsilon, delta, n)
    if progress is None:
        progress = silent
    left = time_left()
    with limit(_FOR_SEARCH * left, of_work=True) as outcome:
        _search(task, progress)
    if not task.met:
        raise InputError(
            f"no values in their ranges were found at which ε is at most {epsilon:g}: the least "
            f"that was seen is {task.least:.6g}; give wider ranges"
        )
    values = dict(min(task.met, key=lambda pair: pair[0])[1])
    answer = _calibrated(task, values)
    ends = tuple(
        name
        for name, (low, high) in task.ranges.items()
        if min(abs(values[name] / low - 1.0), abs(values[name] / high - 1.0)) < 1e-6
    )
    least = task.cost_at([values[name] for name in task.names])
    seconds = time.perf_counter() - start
    return Plan(values, least, cost, answer, ends, task.answered, outcome.late, seconds)


class _Task:
    """What is made least, where, and what was answered so far."""

    def __init__(
        self,
        mechanism: Mechanism,
        formula: sp.Expr,
        symbols: Mapping[str, sp.Symbol],
        ranges: Mapping[str, tuple[float, float]],
        target: tuple[float, float],
        count: int | None,
    ) -> None:
        self.mechanism = mechanism
        self.ranges = dict(ranges)
        self.names = list(ranges)
        self.epsilon, self.delta = target
        self.count = count
        listed = [symbols[name] for name in self.names]
        self._cost = compile_numpy(formula, listed)
        self._slopes = [compile_numpy(sp.diff(formula, symbol), listed) for symbol in listed]
        self.met: list[tuple[float, dict[str, float]]] = []
        self.least = math.inf
        self.answered = 0
        self._answers: dict[tuple[float, ...], tuple[float, Array]] = {}

    def cost_at(self, values: list[float]) -> float:
        """Return the cost."""
        return float(self._cost(*values))

    def log_cost(self, logs: Array) -> tuple[float, Array]:
        """Return the logarithm of the cost, and its slopes in the logarithms of the values."""
        values = [math.exp(log) for log in logs]
        cost = self.cost_at(values)
        if not cost > 0.0:
            raise InputError(f"the cost is {cost:.6g} at {values}: it must be positive")
        slopes = [float(slope(*values)) for slope in self._slopes]
        return math.log(cost), np.asarray(slopes) * np.asarray(values) / cost

    def at(self, values: Mapping[str, float]) -> tuple[Mechanism, int]:
        """Return the step and the count at values."""
        bound = {
            name: exact(f"{value:.{_DIGITS}g}") for name, value in values.items() if name != COUNT
        }
        steps = self.count if self.count is not None else max(round(values[COUNT]), 1)
        return self.mechanism(**bound), steps

    def log_epsilon(self, logs: Array) -> tuple[float, Array]:
        """Return log ε over its target, and its slopes in the logarithms of the values."""
        key = tuple(round(float(log), 12) for log in logs)
        if key not in self._answers:
            self._answers[key] = self._asked(logs)
        return self._answers[key]

    def _asked(self, logs: Array) -> tuple[float, Array]:
        values = {name: math.exp(log) for name, log in zip(self.names, logs, strict=True)}
        answers: slopes_of.Gradient | None = None
        step, count = self.at(values)
        with suppress(InputError, AccuracyError):  # a trial's refusal is stepped over
            answers = slopes_of.gradient(Composition([(step, count)]), delta=self.delta)
        if answers is None:
            return _REFUSED, np.zeros(len(self.names))
        self.answered += 1
        epsilon = answers.answer.epsilon
        if COUNT in values:  # to first order between whole numbers
            epsilon += answers[slopes_of.COUNT].derivative * (values[COUNT] - count)
        self.least = min(self.least, epsilon)
        if epsilon <= self.epsilon * (1.0 + 1e-6):
            self.met.append((self.cost_at(list(values.values())), values))
        slopes = []
        for name in self.names:
            slopes.append(self._slope(answers, step, name) * values[name] / epsilon)
        return math.log(epsilon / self.epsilon), np.asarray(slopes)

    def _slope(self, answers: slopes_of.Gradient, step: Mechanism, name: str) -> float:
        """Return ∂ε in one name: a parameter, a rate that is a formula of it, or the count."""
        if name == COUNT and COUNT not in self.mechanism.parameters:
            return answers[slopes_of.COUNT].derivative
        total = 0.0
        for slope in answers.slopes:
            if slope.parameter == name:
                total += slope.derivative
        sampling = self.mechanism.sampling
        symbol = self.mechanism.parameters[name]
        if sampling is not None and symbol in sampling.rate.free_symbols:
            bound = {self.mechanism.parameters[key]: value for key, value in step.bound
                     if key in self.mechanism.parameters}  # fmt: skip
            chain = float(sp.diff(sampling.rate, symbol).subs(bound))
            total += chain * answers[slopes_of.RATE].derivative
        return total


def _task(
    mechanism: Mechanism,
    cost: str,
    ranges: Mapping[str, tuple[Number, Number]],
    epsilon: float,
    delta: float,
    count: int | None,
) -> _Task:
    """Return what is asked, checked."""
    target = real(epsilon, "epsilon"), share(delta, "delta")
    if not target[0] > 0.0:
        raise InputError("a plan is made for an ε above 0")
    free = dict(mechanism.parameters)
    names = [*free, *([COUNT] if count is None else [])]
    for name in ranges:
        if name not in names:
            hint = suggestion(name, names) or f"; there are {', '.join(names)}"
            raise InputError(f"{name!r:.60} is nothing that is open{hint}")
    for name in names:
        if name not in ranges:
            raise InputError(f"{name} has neither a value nor a range")
    if not ranges or next(iter(ranges)) == COUNT:
        raise InputError("the first range is that of a parameter, calibrated in the end; n later")
    bounds = {}
    for name, ends in ranges.items():
        low, high = (real(end, name) for end in ends)
        if not 0.0 < low < high:
            raise InputError(f"{name} from {low:g} to {high:g}: two numbers above 0, rising")
        if name == COUNT and high > MOST_STEPS:
            raise InputError(f"n is at most {MOST_STEPS:g}")
        bounds[name] = (low, high)
    symbols = {name: sp.Symbol(name, positive=True) for name in ranges}
    with at("cost"):
        formula = parse(cost, symbols)
    if count is not None:
        checked_count(count)
    return _Task(mechanism, formula, symbols, bounds, target, count)


def _search(task: _Task, progress: Callable[[Mapping[str, float], float], None]) -> None:
    """Go down the cost along the bound on ε, from the middle of the ranges."""
    from scipy.optimize import minimize

    bounds = [(math.log(low), math.log(high)) for low, high in task.ranges.values()]
    first = np.asarray([0.5 * (low + high) for low, high in bounds])

    def objective(logs: Array) -> tuple[float, Array]:
        log_cost, slopes = task.log_cost(logs)
        values = dict(zip(task.names, np.exp(logs).tolist(), strict=True))
        progress(values, math.exp(log_cost))
        return log_cost, slopes

    constraint = {
        "type": "ineq",
        "fun": lambda logs: -task.log_epsilon(logs)[0],
        "jac": lambda logs: -task.log_epsilon(logs)[1],
    }
    minimize(
        objective, first, jac=True, bounds=bounds, constraints=[constraint], method="SLSQP",
        options={"maxiter": _ITERATIONS, "ftol": _ENDED},
    )  # fmt: skip


def _calibrated(task: _Task, values: dict[str, float]) -> Guarantee:
    """Make n whole and the first parameter safe, in place; return what then holds."""
    pivot = task.names[0]
    if COUNT in values:
        values[COUNT] = float(max(round(values[COUNT]), 1))
    others = {
        name: exact(f"{value:.{_DIGITS}g}")
        for name, value in values.items()
        if name not in (pivot, COUNT)
    }
    count = task.count if task.count is not None else int(values[COUNT])
    answer = calibrate(
        task.mechanism(**others), pivot, count, epsilon=task.epsilon, delta=task.delta
    )
    low, high = task.ranges[pivot]
    values.update({name: float(value) for name, value in others.items()})
    values[pivot] = float(answer.value)
    if low <= values[pivot] <= high:
        return answer.guarantee
    # The range ends before (ε, δ) is met exactly: at its end it is met with room, or not at all.
    values[pivot] = min(max(values[pivot], low), high)
    step, _ = task.at(values)
    guarantee = Composition([(step, count)]).delta(task.epsilon)
    if guarantee.upper is None or guarantee.upper > task.delta:
        raise InputError(
            f"{pivot} = {values[pivot]:g}, the end of its range, does not meet (ε, δ) with the "
            "other values that were found; give a wider range"
        )
    return guarantee
