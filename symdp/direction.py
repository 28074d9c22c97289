"""The two directions of a pair, and which of two answers is the larger."""

from __future__ import annotations

import math

from symdp.errors import InputError

DIRECTIONS = ("remove", "add")
_ROUNDING = 1e-12  # relative: answers this close differ by rounding only


def sides(direction: str) -> tuple[str, ...]:
    """Return the directions that one word asks for.

    >>> sides("both"), sides("add")
    (('remove', 'add'), ('add',))
    """
    if direction == "both":
        return DIRECTIONS
    if direction in DIRECTIONS:
        return (direction,)
    raise InputError(f"direction '{direction}': it is 'remove', 'add' or 'both'")


def clearly_larger(values: dict[str, float]) -> str:
    """Return the direction of the largest value; the first one where they differ by rounding only.

    Symmetric noise gives the same in both directions, and the last bit must not decide which.

    >>> clearly_larger({"remove": 1.0, "add": 1.0 + 1e-15})
    'remove'
    """
    first = next(iter(values))
    side = max(values, key=values.__getitem__)
    if not math.isfinite(values[first]):
        return side
    close = values[side] - values[first] <= _ROUNDING * max(1.0, abs(values[first]))
    return first if close else side
