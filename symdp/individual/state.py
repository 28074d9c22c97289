"""Exact numbers of filters, and the kind of file in which their state is kept.

A commit writes the charged state to a neighbour, flushes it to the disk and renames it over the
file; only then does it return.  A crash before that leaves the step unreleased, a crash after it
leaves it charged: it may be charged in vain, never released in vain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from symdp.durable import Kept, locked
from symdp.errors import InputError

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


def exact_square(value: float) -> Fraction:
    """Return the square of a double without rounding.

    Examples
    --------
    >>> exact_square(0.5)
    Fraction(1, 4)
    """
    return Fraction(value) * Fraction(value)


def root_up(value: Fraction) -> float:
    """Return a double that is no smaller than the square root, and next to it.

    Examples
    --------
    >>> root_up(Fraction(9, 4)), exact_square(root_up(Fraction(2))) >= 2
    (1.5, True)
    """
    guess = math.sqrt(float(value))
    while exact_square(guess) < value:
        guess = math.nextafter(guess, math.inf)
    while guess > 0 and exact_square(math.nextafter(guess, 0.0)) >= value:
        guess = math.nextafter(guess, 0.0)
    return guess


def number(value: object, name: str, positive: bool = False) -> float:
    """Return a finite number ≥ 0 (or > 0), or refuse it by name."""
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
        rule = "above 0" if positive else "0 or more"
        raise InputError(f"{name} = {value!r}: it must be a finite number, {rule}")
    return given
