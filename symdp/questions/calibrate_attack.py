"""Calibration to what an attack may reach: its advantage, or its hits at a false alarm rate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symdp.errors import InputError
from symdp.questions.calibrate import checked_digits, narrowed, task_of
from symdp.questions.calibration_grid import grid_of, search
from symdp.questions.tradeoff import membership_advantage, trade_off

if TYPE_CHECKING:
    import sympy as sp

    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Number
    from symdp.questions.composition import Composition


@dataclass(frozen=True)
class AttackCalibration:
    """A calibrated parameter: the value that holds an attack down, and the neighbour that does not.

    Attributes
    ----------
    parameter, value
        The name, and its value, an exact decimal.
    step, neighbour
        The grid's spacing, and the next value on the less private side.
    false_positive_rate
        Where the hits are counted; None for the advantage.
    target
        The largest advantage, or true positive rate, that was allowed.
    rate, missed
        What the best attack reaches at the value, at most the target; and at the neighbour.
    seconds
        The time that the search took.
    """

    parameter: str
    value: sp.Rational
    step: sp.Rational
    neighbour: sp.Rational
    false_positive_rate: float | None
    target: float
    rate: float
    missed: float
    seconds: float

    def __float__(self) -> float:
        return float(self.value)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        return {
            "parameter": self.parameter,
            "value": float(self.value),
            "step": float(self.step),
            "false_positive_rate": self.false_positive_rate,
            "target": self.target,
            "rate": self.rate,
            "missed": self.missed,
            "seconds": round(self.seconds, 6),
        }


@dataclass(frozen=True)
class _Reached:
    """What the best attack reaches, as the search compares it."""

    log_upper: float

    @property
    def delta(self) -> float:
        """The rate itself."""
        return math.exp(self.log_upper)


def calibrate_attack(
    mechanism: Mechanism,
    parameter: str,
    count: int | None = None,
    *,
    advantage: float | None = None,
    true_positive_rate: float | None = None,
    false_positive_rate: float | None = None,
    digits: int = 6,
    between: tuple[Number, Number] | None = None,
) -> AttackCalibration:
    """Return the least noisy value of a parameter at which no attack does better than is allowed.

    The advantage of the best attack on the presence of a record is δ(0), and its true positive
    rate at false positive rate α is 1 − f(α), f the trade-off of both directions together [IND].

    Parameters
    ----------
    mechanism, parameter, count, between
        As for `symdp.calibrate`.
    advantage
        The largest true positive rate less false positive rate, strictly between 0 and 1.
    true_positive_rate, false_positive_rate
        Or the largest true positive rate at a false positive rate below it.
    digits
        Significant digits of the value, 4 to 13.

    Raises
    ------
    InputError
        If an argument breaks a rule, no value meets the target or all do, or what an attack
        reaches is not monotone in the parameter.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> found = calibrate_attack(mechanisms.gaussian, "sigma", 1, advantage=0.1)
    >>> found.value, found.rate <= 0.1 < found.missed
    (3979/1000, True)
    """
    start = time.perf_counter()
    target, reached, what = _asked(advantage, true_positive_rate, false_positive_rate)
    checked_digits(digits)
    task = task_of(mechanism, parameter, count)
    grid = grid_of(task.domain, digits)
    if between is not None:
        grid = narrowed(grid, between, parameter)
    limit = math.nextafter(math.log(target), -math.inf)

    def at(value: sp.Rational) -> _Reached:
        rate = reached(task.compose(value))
        return _Reached(math.log(rate) if rate > 0.0 else -math.inf)

    found = search(grid, at, limit, f"{task.name}: {parameter}", f"{what} ≤ {target:g}")
    return AttackCalibration(
        parameter,
        found.safe,
        found.step,
        found.unsafe,
        false_positive_rate,
        target,
        found.guarantee.delta,
        found.missed.delta,
        time.perf_counter() - start,
    )


def _asked(
    advantage: float | None, hits: float | None, alarms: float | None
) -> tuple[float, Callable[[Composition], float], str]:
    """Return the target, what a composition lets an attack reach, and its name."""
    if (advantage is None) == (hits is None) or (hits is None) != (alarms is None):
        raise InputError(
            "give advantage, or true_positive_rate and false_positive_rate, one of the two"
        )
    if advantage is not None:
        return _inside(advantage, "advantage"), membership_advantage, "advantage"
    assert hits is not None
    assert alarms is not None
    target, alpha = _inside(hits, "true_positive_rate"), _inside(alarms, "false_positive_rate")
    if not alpha < target:
        raise InputError(
            f"true_positive_rate = {hits!r}: guessing alone reaches the false positive rate, "
            f"{alarms!r}; allow more"
        )
    return target, lambda steps: _hits(steps, alpha), f"true positive rate at {alpha:g}"


def _hits(steps: Composition, alpha: float) -> float:
    """Return the most that an attack hits, the subtraction rounded up."""
    return min(1.0, math.nextafter(1.0 - trade_off(steps, alpha), 2.0))


def _inside(value: float, name: str) -> float:
    from symdp.arguments import real

    number = real(value, name)
    if not 0.0 < number < 1.0:
        raise InputError(f"{name} = {value!r}: it must lie strictly between 0 and 1")
    return number
