"""A proved interval in the record that every answer has, its decimals rounded outwards."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from flint import arb, ctx

from symdp.balls.proper import with_mass_one
from symdp.decimal_text import nearest_scientific, scientific
from symdp.emit.exact import middle_of
from symdp.errors import AccuracyError, InputError
from symdp.model.allocation import (
    MOST_FORMULAS,
    AllocatedPair,
    allocated_steps,
    outcomes,
)
from symdp.model.family import Family
from symdp.numeric.laws.of_mechanism import known_law
from symdp.prove.inverse import larger_delta, larger_epsilon
from symdp.questions.guarantee import Guarantee
from symdp.questions.steps.accounted import direction_of

if TYPE_CHECKING:
    from symdp.arguments import Direction
    from symdp.model.mechanism import Mechanism
    from symdp.questions.steps.accounted import Accounted, Composed

CITATIONS = ("SPA (28)", "SPA (43)")
_MORE_DIGITS = 3  # of the printed ends than are asked for
_LEAST_DOUBLE = 2.3e-308  # below it, doubles lose digits


@dataclass(frozen=True, repr=False)
class Certificate(Guarantee):
    """A guarantee whose δ (or ε) is proved to lie between two decimals, floating point included.

    Attributes
    ----------
    lower_decimal, upper_decimal
        The ends, the lower one rounded down and the upper one up.
    value_decimal
        The middle, rounded to nearest.
    digits_asked
        The digits that were asked for; fewer may be proved.
    sum_digits
        Of an upper end alone: to how many digits it is that of the sum which bounds.
    """

    lower_decimal: str = "0"
    upper_decimal: str = "1"
    value_decimal: str = ""
    digits_asked: int = 0
    sum_digits: int | None = None

    @property
    def delta(self) -> float:
        """δ as a double: the one next to the middle, or what was given."""
        if self.quantity == "epsilon":
            return super().delta
        return float(self.value_decimal)

    @property
    def lower(self) -> float | None:
        """The lower end as a double, rounded down."""
        return _double(Fraction(self.lower_decimal), -1)

    @property
    def upper(self) -> float | None:
        """The upper end as a double, rounded up."""
        return _double(Fraction(self.upper_decimal), 1)

    @property
    def digits(self) -> int:
        """The digits that are proved: their relative width is below 10^(−digits).

        As many as were asked for, or fewer.
        """
        if self.sum_digits is not None:
            return self.sum_digits
        low, high = Fraction(self.lower_decimal), Fraction(self.upper_decimal)
        return _proved(low, high, self.digits_asked)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values, both ends as decimal strings.

        The value is a decimal string as well where no double lies between the ends.
        """
        answer = super().to_json()
        low, high = Fraction(self.lower_decimal), Fraction(self.upper_decimal)
        inside = [
            value
            for value in (self.value, math.nextafter(self.value, math.inf))
            if low <= min(Fraction(repr(value)), Fraction(value))
            and max(Fraction(repr(value)), Fraction(value)) <= high
        ]
        if abs(self.value) < _LEAST_DOUBLE or not inside:
            answer[self.quantity] = self.value_decimal if high > 0 else 0.0
        else:
            answer[self.quantity] = inside[0]
        ends = {"lower": self.lower_decimal, "upper": self.upper_decimal}
        return answer | ends | {"digits": self.digits}


def certificate(
    ball: arb, epsilon: float, direction: str, count: int, digits: int, seconds: float
) -> Certificate:
    """Return the record of an enclosure of δ."""
    with ctx.workprec(4 * digits + 128):
        lower, upper = ball.lower(), ball.upper()
    low, high = max(middle_of(lower), Fraction(0)), min(middle_of(upper), Fraction(1))
    return Certificate(
        epsilon,
        log_double(ball.mid(), 0),
        direction=direction,
        n=count,
        quantity="delta",
        log_lower=log_double(lower, -1),
        log_upper=log_double(upper, 1),
        seconds=seconds,
        **_decimals(low, min(max(middle_of(ball.mid()), low), high), high, digits),
    )


def _decimals(low: Fraction, middle: Fraction, high: Fraction, digits: int) -> dict[str, Any]:
    """Return what both kinds of certificates say of two ends and the middle."""
    shown = _proved(low, high, digits) + _MORE_DIGITS
    return {
        "kind": "exact",
        "method": "certified",
        "citations": CITATIONS,
        "lower_decimal": scientific(low, shown, up=False),
        "upper_decimal": scientific(high, shown, up=True),
        "value_decimal": nearest_scientific(middle, shown),
        "digits_asked": digits,
    }


def certify_delta(
    steps: Accounted,
    epsilon: float | Fraction,
    digits: int,
    sides_asked: Sequence[str],
) -> Certificate:
    """Enclose δ(ε) on each side and return the record of the larger one."""
    start = time.perf_counter()
    pairs = {side: _proved_pairs(steps, side) for side in sides_asked}
    side, largest = larger_delta(pairs, epsilon, digits)
    count = sum(n for _, n in steps.given)
    return certificate(largest, float(epsilon), side, count, digits, time.perf_counter() - start)


def _proved_pairs(steps: Accounted, side: str) -> list[tuple[Any, int]]:
    """Return the pairs of all steps on a side, their masses proved to be one."""
    proved = with_mass_one(dict(steps.steps_of(side)), for_proof=True)
    direction = direction_of(side)
    return [(_proved_pair(mechanism, direction), count) for mechanism, count in proved.items()]


def _proved_pair(mechanism: Mechanism, side: str) -> Any:
    """Return the pair of a step, that of an epoch of random allocation by its step."""
    if isinstance(mechanism.source, Family):
        return known_law(mechanism, mechanism.source, side)
    steps = allocated_steps(mechanism)
    if steps is None or steps == 1:
        return mechanism.pair(side)
    base = replace(mechanism, sampling=None).pair("remove")
    if base.support.kind == "points" and outcomes(base, steps) <= MOST_FORMULAS:
        return mechanism.pair(side)
    return AllocatedPair(base, steps, side)


def certify_epsilon(
    composition: Composed, delta: float | Fraction, digits: int, sides_asked: Sequence[str]
) -> Certificate:
    """Enclose ε(δ) on each side and return the record of the larger one.

    The contour says where to begin; what is returned does not rest on it.
    """
    start = time.perf_counter()
    pairs = {side: _proved_pairs(composition.accounted, side) for side in sides_asked}
    about = {side: _estimate(composition, delta, side) for side in sides_asked}
    side, (low, high) = larger_epsilon(pairs, delta, digits, about)
    delta_given = float(delta)
    middle = (low + high) / 2
    return Certificate(
        float(middle),
        math.log(delta_given) if delta_given > 0 else -math.inf,
        direction=side,
        n=composition.n,
        quantity="epsilon",
        epsilon_lower=_double(low, -1),
        epsilon_upper=_double(high, 1),
        seconds=time.perf_counter() - start,
        target_delta=delta_given,
        **_decimals(low, middle, high, digits),
    )


def _estimate(composition: Composed, delta: float | Fraction, side: str) -> float | None:
    direction = cast("Direction", direction_of(side))
    with suppress(AccuracyError, InputError):  # or below all doubles
        return composition.epsilon(float(delta), direction=direction).epsilon
    return None


def _proved(low: Fraction, high: Fraction, digits: int) -> int:
    """Return to how many digits two ends agree, at most those asked for.

    What rounding them outwards adds does not count.
    """
    allowed = Fraction(11, 10) * low
    for proved in range(digits, 0, -1):
        if (high - low) * 10**proved <= allowed:
            return proved
    if low == high:
        return digits
    return 0


def _double(end: Fraction, side: int) -> float:
    """Return a fraction as a double, rounded outwards to the side given."""
    value = float(end)
    if (Fraction(value) - end) * side < 0:
        value = math.nextafter(value, side * math.inf)
    return value


def log_double(end: arb, side: int) -> float:
    """Return log as a double, rounded outwards to the side given, never above 0."""
    if not end > 0:
        return -math.inf
    with ctx.workprec(100):
        value = float(end.log().mid())
    if side:
        # Two steps: one for the rounding of the log, one for that of the conversion.
        for _ in range(2):
            value = math.nextafter(value, side * math.inf)
    return min(value, 0.0)
