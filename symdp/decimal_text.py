"""Numbers as decimal text, rounded to the side on which they stay true: the only place for it.

An upper bound is rounded up and a lower bound down, however few digits are shown; what is neither
is rounded to nearest. Rounding to one side never turns an order around, so that a lower end, a
value and an upper end that are in order stay so as texts, as long as the ends have no more digits
than the value.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from numbers import Rational
from typing import Literal

Side = Literal["down", "nearest", "up"]

SMALLEST_LOG = math.log(2.3e-308)  # below this, doubles lose digits
_ROUNDING = {"down": ROUND_FLOOR, "nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING}
_DIGITS = 17  # of a double
_WORKING = 40  # digits of an exponential before it is rounded to one side
_KEPT = 15  # significant digits that a double always keeps
_FIXED = -4  # the least exponent that is written without one, as in C's %g
_SPECIFICATION = re.compile(r"(?P<layout>.*?)(?:\.(?P<digits>\d+))?(?P<kind>[eEfFgG%]?)", re.DOTALL)
_LARGE = 10**15  # exponents that no arithmetic of this module leaves


def rounded(value: float | Rational | Decimal, digits: int = 12, side: Side = "nearest") -> str:
    """Return a number to some significant digits, rounded to a side; no zeros at its end."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value}"
    return _general(_to_digits(value, digits, side), digits)


def given(value: float) -> str:
    """Return a number that a caller gave: as it was given, never shortened to another number."""
    short = f"{value:.12g}"
    if float(short) == value:
        return short
    return repr(value)


def rounded_exponential(log_value: float, digits: int = 12, side: Side = "nearest") -> str:
    """Return e^x to some significant digits, rounded to a side, below the double range too."""
    if log_value == -math.inf:
        return "0"
    digits = min(digits, digits_of(log_value)) if log_value <= SMALLEST_LOG else digits
    return rounded(_exponential(log_value, side), digits, side)


def exponential(log_value: float, side: Side = "nearest", digits: int = 0) -> float | str:
    """Return e^x as a double, or as decimal text where it lies below the double range."""
    if log_value == -math.inf or log_value > SMALLEST_LOG:
        return as_double(log_value, side)
    return rounded_exponential(log_value, digits or digits_of(log_value), side)


def as_double(log_value: float, side: Side = "nearest") -> float:
    """Return e^x as a double of [0, 1], one unit in the last place further to the side."""
    nearest = math.exp(log_value)
    if side == "nearest" or log_value == -math.inf:
        return nearest
    if side == "down":
        return math.nextafter(nearest, 0.0)
    return math.nextafter(nearest, max(1.0, nearest))


def digits_of(log_value: float) -> int:
    """Return how many digits of e^x a double x < 0 holds: 16 less those of its integer part."""
    return max(3, _DIGITS - len(str(int(-log_value))))


def scientific(value: Fraction, digits: int, *, up: bool) -> str:
    """Return a number ≥ 0 in scientific notation, rounded up or down, all its digits shown."""
    return _scientific(value, digits, "up" if up else "down")


def nearest_scientific(value: Fraction, digits: int) -> str:
    """Return a number ≥ 0 in scientific notation, rounded to nearest."""
    return _scientific(value, digits, "nearest")


def formatted(value: float | Decimal, specification: str, side: Side) -> str:
    """Return a number by a format specification of floats, its last digit rounded to a side."""
    if isinstance(value, float):
        format(value, specification)  # whatever is wrong with it is said in Python's own words
    match = _SPECIFICATION.fullmatch(specification)
    number = Decimal(value)
    if match is None or (not match["kind"] and match["digits"] is None):
        return format(value, specification)
    kind = match["kind"] or "g"
    layout = match["layout"]
    digits = 6 if match["digits"] is None else int(match["digits"])
    first = number.adjusted() if number else 0
    shown = {"e": digits + 1, "g": max(digits, 1), "%": first + digits + 3}
    many = shown.get(kind.lower(), first + digits + 1)
    if isinstance(value, float) and 0 < many <= _KEPT:
        return format(float(_to_digits(number, many, side)), specification)
    with localcontext(_context(max(many, 1) + _WORKING, side)):
        return format(number, f"{layout}.{digits}{kind}")


def _to_digits(value: float | Rational | Decimal, digits: int, side: Side) -> Decimal:
    context = _context(digits, side)
    if isinstance(value, Rational):  # of Python's own, or of SymPy
        return context.divide(Decimal(int(value.numerator)), Decimal(int(value.denominator)))
    return context.plus(Decimal(value))


def _context(digits: int, side: Side) -> Context:
    return Context(prec=digits, rounding=_ROUNDING[side], Emin=-_LARGE, Emax=_LARGE)


def _exponential(log_value: float, side: Side) -> Decimal:
    """Return e^x to many digits, its own rounding on the side asked for."""
    context = _context(_WORKING, "nearest")
    value = context.exp(Decimal(log_value))
    if log_value == 0.0 or side == "nearest":
        return value
    if side == "up":
        return context.next_plus(value)
    return context.next_minus(value)


def _general(number: Decimal, digits: int) -> str:
    """Return a decimal as C's %g writes it."""
    number = number.normalize(_context(max(digits, len(number.as_tuple().digits)), "nearest"))
    if number == 0:
        return "0"
    first = number.adjusted()
    if _FIXED <= first < digits:
        return f"{number:f}"
    text = f"{number.scaleb(-first, _context(digits + 1, 'nearest')):f}"
    return f"{text}e{'-' if first < 0 else '+'}{abs(first):02d}"


def _scientific(value: Fraction, digits: int, side: Side) -> str:
    if value == 0:
        return "0"
    number = _to_digits(value, digits, side)
    text = "".join(map(str, number.as_tuple().digits)).ljust(digits, "0")
    fraction = f".{text[1:]}" if digits > 1 else ""
    return f"{text[0]}{fraction}e{number.adjusted()}"
