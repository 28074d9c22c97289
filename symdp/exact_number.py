"""Numbers that people write, read exactly: decimals, ratios of two and percentages."""

from __future__ import annotations

import re
from fractions import Fraction

from symdp.errors import InputError

MOST_DIGITS = 1_000  # of one number, written out
DIGITS = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_VALUE = re.compile(rf"([+-]?)({DIGITS})(?:\s*/\s*({DIGITS})|\s*(%))?", re.ASCII)


def exact_number(text: str) -> Fraction:
    """Return a number, a ratio of two numbers, or a percentage exactly."""
    match = _VALUE.fullmatch(text.strip())
    if not match:
        if text.strip().lower().lstrip("+-") in {"nan", "inf", "infinity", "oo"}:
            raise InputError(f"{shorten(text)} is not a finite number, as it must be")
        raise InputError(
            f"{shorten(text)} is not a number; write one such as 0.5 or 1e-5, or a ratio: 1/3"
        )
    sign, above, below, percent = match.groups()
    denominator = decimal_fraction(below) if below else Fraction(100 if percent else 1)
    if denominator == 0:
        raise InputError(f"{shorten(text)} divides by zero")
    return (-1 if sign == "-" else 1) * decimal_fraction(above) / denominator


def decimal_fraction(text: str) -> Fraction:
    """Return an unsigned decimal exactly."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0") or "0"
    power = MOST_DIGITS + 1
    exponent_length = len(exponent.lstrip("+-0"))
    if exponent_length <= len(str(MOST_DIGITS)):
        power = int(exponent or 0) - len(fraction)
    if max(len(digits), abs(power)) > MOST_DIGITS:
        raise InputError(f"the number {shorten(text, 20)} has over {MOST_DIGITS} digits")
    numerator = int(digits) * 10 ** max(power, 0)
    denominator = 10 ** max(-power, 0)
    return Fraction(numerator, denominator)


def shorten(text: str, length: int = 40) -> str:
    """Return `text` quoted on one line, cut to about `length` characters."""
    return repr(text if len(text) <= length else text[:length] + "...")
