"""Exact numbers of filters, and the kind of file in which their state is kept.

A commit writes the charged state to a neighbour, flushes it to the disk and renames it over the
file; only then does it return.  A crash before that leaves the step unreleased, a crash after it
leaves it charged: it may be charged in vain, never released in vain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from symdp.durable import Kept, locked
from symdp.errors import InputError, at
from symdp.exact_number import exact_number

FILTER = Kept("symdp-filter", 1, "the filter's state", "make one with 'symdp filter new'")


def replace_state(path: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Put a filter's state in the place of the one before, which the file must still hold.

    Raises
    ------
    InputError
        If the file holds another one, or cannot be written: no step and no budget is forgotten.
    """
    with locked(path):
        held = FILTER.read(path) if path.exists() else before
        if any(held.get(name) != value for name, value in before.items()):
            raise InputError(
                f"{path}: another writer has committed steps meanwhile, or it is another filter's; "
                "load the filter again"
            )
        FILTER.write(path, after)


def written(value: Fraction) -> str:
    """Return an exact number as a state file holds it.

    >>> written(Fraction(1, 10)), read(written(Fraction(1, 10)))
    ('1/10', Fraction(1, 10))
    """
    return str(value)


def read(text: str) -> Fraction:
    """Return the exact number that a state file holds; earlier versions wrote doubles in base 16.

    >>> read((0.5).hex())
    Fraction(1, 2)
    """
    return Fraction(float.fromhex(text)) if "0x" in text else exact_number(text)


def root_up(value: Fraction) -> float:
    """Return a double that is no smaller than the square root, and next to it.

    Examples
    --------
    >>> root_up(Fraction(9, 4)), Fraction(root_up(Fraction(2))) ** 2 >= 2
    (1.5, True)
    """
    guess = math.sqrt(float(value))
    while Fraction(guess) ** 2 < value:
        guess = math.nextafter(guess, math.inf)
    while guess > 0 and Fraction(math.nextafter(guess, 0.0)) ** 2 >= value:
        guess = math.nextafter(guess, 0.0)
    return guess


def double_up(value: Fraction) -> float:
    """Return the smallest double that is no smaller.

    >>> Fraction(double_up(Fraction(1, 3))) >= Fraction(1, 3), double_up(Fraction(1, 2))
    (True, 0.5)
    """
    found = float(value)
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


def largest_that_fits(guess: float, fits: Callable[[Fraction], bool]) -> float:
    """Return the largest double near a guess whose decimal, as it prints, still fits; 0 if none.

    >>> largest_that_fits(0.10000000000000002, lambda x: x * x <= Fraction(1, 100))
    0.1
    """
    value = math.nextafter(math.nextafter(guess, math.inf), math.inf)
    while value > 0.0 and not fits(exactly(value, "the bound")):
        value = math.nextafter(value, 0.0)
    return value


def exactly(value: object, name: str, positive: bool = False) -> Fraction:
    """Return a number ≥ 0 (or > 0) exactly, or refuse it by name.

    A double means the decimal that it prints, text a number or a ratio, as everywhere.

    >>> exactly(0.1, "mu"), exactly("1/3", "mu")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, Fraction):
        found = value
    elif isinstance(value, str):
        with at(name):
            found = exact_number(value)
    else:
        found = exact_number(repr(number(value, name, positive)))
    if found < 0 or (positive and found == 0):
        raise InputError(f"{name} = {value!r}: it must be {_RULE[positive]}")
    return found


_RULE = {True: "above 0", False: "0 or more"}


def number(value: object, name: str, positive: bool = False) -> float:
    """Return a finite number ≥ 0 (or > 0) as a double, or refuse it by name."""
    if isinstance(value, str):
        return float(exactly(value, name, positive))
    try:
        given = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: it must be a number") from None
    if (
        isinstance(value, bool)
        or not math.isfinite(given)
        or given < 0
        or (positive and given == 0)
    ):
        raise InputError(f"{name} = {value!r}: it must be a finite number, {_RULE[positive]}")
    return given
