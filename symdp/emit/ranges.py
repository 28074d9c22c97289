"""Ranges of an expression over intervals whose ends may be infinite, by values at the two ends.

An operation that rises or falls is told by its values, or its limits, at both ends of an interval;
others by balls. Ends are rounded outwards, so that a range that leaves out 0 is a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flint import acb, arb

from symdp.emit.arb import OPERATIONS, constant

if TYPE_CHECKING:
    import sympy as sp

Interval = tuple[arb, arb]  # of real numbers, its ends without radius, infinite or not

_INFINITE = arb.pos_inf()
_WHOLE: Interval = (-_INFINITE, _INFINITE)
_ZERO = arb(0)


@dataclass
class Seen:
    """What an interval met on its way through a program.

    `crossed` says that 0 may lie inside of what was divided by or had its logarithm taken,
    `touched` that 0 is an end of it, and `folded` that such an end may belong to a place inside, as
    that of an even power.
    """

    crossed: bool = False
    touched: bool = False
    folded: bool = False

    def is_smooth(self, *, at_end: bool) -> bool:
        """Return whether there is no pole, but perhaps at an end of the support."""
        return not self.crossed and (not self.touched or (at_end and not self.folded))


class Ranges:
    """An expression as a function from intervals to intervals that hold its values there."""

    def __init__(self, expression: sp.Expr, x: sp.Symbol) -> None:
        # SymPy is walked where a range is asked for, not where a shipped formula answers
        from symdp.emit.program import compile_program

        self._program = compile_program(expression, [x])
        self._constants = [_of_ball(constant(node)) for node in self._program.constants]

    def __call__(self, low: arb, high: arb, seen: Seen) -> Interval:
        """Return the ends of values between two places, which may be infinite."""
        values: list[Interval] = [(low, high), *self._constants]
        for step in self._program.steps:
            operands = [values[slot] for slot in step.operands]
            values.append(_range_of_step(step.operation, step.detail, operands, seen))
        return values[self._program.result]


def _range_of_step(name: str, detail: Any, operands: list[Interval], seen: Seen) -> Interval:
    special = _OWN.get(name)
    interval: Interval | None = None
    if special is not None:
        interval = special(seen, detail, *operands)
    elif name in _RISING or name in _FALLING:
        interval = _monotone(name, detail, operands, seen)
    elif all(low.is_finite() and high.is_finite() for low, high in operands):
        balls = [acb(low.union(high)) for low, high in operands]
        seen.folded = True
        interval = _of_ball(OPERATIONS[name](detail, False, *balls))
    seen.crossed |= interval is None
    if interval is None or interval[0].is_nan() or interval[1].is_nan():
        return _WHOLE
    return interval


def _of_ball(ball: Any) -> Interval:
    value = acb(ball)
    if value.imag.contains(0):
        return (value.real.lower(), value.real.upper())
    return _WHOLE


def _limit(name: str, detail: Any, end: arb) -> arb:
    """Return a function's value, or its limit, at one end."""
    if end.is_finite():
        return acb(OPERATIONS[name](detail, False, acb(end))).real
    limits = _RISING.get(name) or _FALLING[name]
    return arb(limits[int(end > 0)])


def _monotone(name: str, detail: Any, operands: list[Interval], seen: Seen) -> Interval | None:
    ((low, high),) = operands
    domain = _DOMAINS.get(name)
    if domain is not None:
        seen.crossed |= bool(low < domain)
        seen.touched |= bool(low == domain)
        low, high = max(low, arb(domain)), max(high, arb(domain))
        if low == domain:
            first = -_INFINITE if name in ("log", "log1p") else _ZERO
            return first, _limit(name, detail, high).upper() if high > domain else first
    if name in _FALLING:
        low, high = high, low
    return _limit(name, detail, low).lower(), _limit(name, detail, high).upper()


def _range_of_sum(_seen: Seen, _: Any, *terms: Interval) -> Interval:
    low, high = _ZERO, _ZERO
    for term in terms:
        low = -_INFINITE if -_INFINITE in (low, term[0]) else (low + term[0]).lower()
        high = _INFINITE if _INFINITE in (high, term[1]) else (high + term[1]).upper()
    return low, high


def _range_of_product(_seen: Seen, _: Any, *factors: Interval) -> Interval:
    low = high = arb(1)
    for factor in factors:
        ends = [_ZERO if 0 in (a, b) else a * b for a in (low, high) for b in factor]
        low, high = _least(e.lower() for e in ends), -_least((-e).lower() for e in ends)
    return low, high


def _least(values: Iterator[arb]) -> arb:
    balls = list(values)
    if any(value.is_nan() for value in balls):
        return -_INFINITE
    least = balls[0]
    for value in balls[1:]:
        least = value if value < least else least
    return least


def _reciprocal(seen: Seen, values: Interval) -> Interval:
    low, high = values
    seen.touched |= bool(low == 0 or high == 0)
    if low >= 0:
        return _inverse(high, _ZERO).lower(), _inverse(low, _INFINITE).upper()
    if high <= 0:
        return _inverse(high, -_INFINITE).lower(), _inverse(low, _ZERO).upper()
    seen.crossed = True
    return _WHOLE


def _inverse(end: arb, otherwise: arb) -> arb:
    """Return 1/end; of an infinite end 0, of 0 the infinity of its side."""
    if not end.is_finite():
        return _ZERO
    if end == 0:
        return otherwise
    return 1 / end


def _integer_power(seen: Seen, exponent: int, base: Interval) -> Interval:
    if exponent < 0:
        return _reciprocal(seen, _integer_power(seen, -exponent, base))
    low, high = base
    if exponent % 2 == 0:
        low, high = _absolute(seen, None, base)
    return (low**exponent).lower() if low.is_finite() else low, (
        (high**exponent).upper() if high.is_finite() else high
    )


def _range_of_power(seen: Seen, _: Any, base: Interval, exponent: Interval) -> Interval:
    low, high = exponent
    if base[0] < 0 or not (low.is_finite() and high.is_finite()):
        seen.crossed = True
        return _WHOLE
    logarithm = _range_of_step("log", None, [base], seen)
    return _range_of_step("exp", None, [_range_of_product(seen, None, exponent, logarithm)], seen)


def _absolute(seen: Seen, _: Any, values: Interval) -> Interval:
    low, high = values
    if low >= 0:
        return low, high
    if high <= 0:
        return -high, -low
    return _ZERO, high if high > -low else -low


def _even(name: str) -> Callable[..., Interval]:
    """Return the ranges of a function that is even and rises in |x|."""

    def function(seen: Seen, detail: Any, values: Interval) -> Interval:
        low, high = _absolute(seen, None, values)
        ends = [
            acb(OPERATIONS[name](detail, False, acb(end))).real if end.is_finite() else _INFINITE
            for end in (low, high)
        ]
        return ends[0].lower(), ends[1].upper()

    return function


def _wave(name: str) -> Callable[..., Interval]:
    def function(seen: Seen, detail: Any, values: Interval) -> Interval:
        low, high = values
        seen.folded = True
        if not (low.is_finite() and high.is_finite()) or high - low > 4:
            return arb(-1), arb(1)
        return _of_ball(OPERATIONS[name](detail, False, acb(low.union(high))))

    return function


def _log_sum(name: str) -> Callable[..., Interval | None]:
    """Log Σ c e^a rises with every a, and with every c, where no c is negative."""

    def function(_seen: Seen, detail: Any, *arguments: Interval) -> Interval | None:
        if any(low < 0 for low, _ in arguments[::2]):
            return None
        ends = []
        for which in (0, 1):
            chosen = [interval[which] for interval in arguments]
            if any(not end.is_finite() for end in chosen):
                ends.append(_INFINITE if _INFINITE in chosen else None)
                continue
            ends.append(acb(OPERATIONS[name](detail, False, *map(acb, chosen))).real)
        low = -_INFINITE if ends[0] is None else ends[0].lower()
        if ends[1] is None:
            return None
        return (low, ends[1].upper())

    return function


# Functions that rise, and those that fall, with limits at −∞ and ∞ on the safe side.
_RISING = {
    "exp": (0.0, float("inf")),
    "expm1": (-1.0, float("inf")),
    "log": (float("-inf"), float("inf")),
    "log1p": (float("-inf"), float("inf")),
    "sqrt": (0.0, float("inf")),
    "erf": (-1.0, 1.0),
    "erfi": (float("-inf"), float("inf")),
    "tanh": (-1.0, 1.0),
    "atan": (-1.5707963267948968, 1.5707963267948968),
    "sinh": (float("-inf"), float("inf")),
    "asinh": (float("-inf"), float("inf")),
}
_FALLING = {"erfc": (2.0, 0.0), "log_erfc": (0.6931471805599454, float("-inf"))}
_DOMAINS = {"log": 0, "sqrt": 0, "log1p": -1}
_OWN: dict[str, Callable[..., Interval | None]] = {
    "add": _range_of_sum,
    "mul": _range_of_product,
    "integer_power": _integer_power,
    "power": _range_of_power,
    "abs": _absolute,
    "cosh": _even("cosh"),
    "sin": _wave("sin"),
    "cos": _wave("cos"),
    "log_sum_exp": _log_sum("log_sum_exp"),
    "unit_log_sum_exp": _log_sum("unit_log_sum_exp"),
}
