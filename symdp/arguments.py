"""What callers hand in, checked."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from symdp.errors import InputError
from symdp.exact_number import exact_number

_T = TypeVar("_T")
Direction = Literal["remove", "add", "both"]
# The accountants by name, a series with its usual orders: for who checks types or completes names.
MethodName = Literal[
    "contour", "truth", "certified", "clones", "prv", "tilted-prv", "spa-bounds", "eeai", "renyi",
    "moments", "moments-plain", "moments-variance", "clt", "lugannani-rice", "berry-esseen",
    "buckets", "fourier", "gaussian", "gdp-e", "msd:0", "msd:1", "msd:2", "msd:3", "msd:4",
    "edgeworth:1",
    "edgeworth:2", "edgeworth:3", "edgeworth:4", "tilted-edgeworth:2", "tilted-edgeworth:3",
    "tilted-edgeworth:4",
]  # fmt: skip
# How far a record moves the output, of its sensitivity D: |shift| ≤ D, with one sign at all steps
# or with any; shift = D; from 0 to D, or to −D.
AT_MOST = "at most"
EITHER = "either way"
EXACTLY = "exactly"
UP = "up"
DOWN = "down"
DIRECTIONS = ("remove", "add")
MOST_STEPS = 10**15
_SPELLING = str.maketrans("- ", "__")


def checked_count(count: object) -> int:
    """Return a number of steps as an integer."""
    if isinstance(count, str):
        exact = exact_number(count)
        count = int(exact) if exact.denominator == 1 else count
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    if isinstance(count, bool) or not isinstance(count, numbers.Integral) or int(count) < 1:
        raise InputError(f"n = {count!r:.40}: the number of steps must be a positive integer")
    if int(count) > MOST_STEPS:
        raise InputError(f"n = {count!r:.40}: at most {MOST_STEPS} steps are accounted for")
    return int(count)


def sides(direction: str) -> tuple[str, ...]:
    """Return the directions that a direction's name stands for; InputError for another name."""
    if direction == "both":
        return DIRECTIONS
    if direction in DIRECTIONS:
        return (direction,)
    raise InputError(f"direction '{direction}': it is 'remove', 'add' or 'both'")


def spelled(word: Any, words: Iterable[str]) -> Any:
    """Return the word among some that differs in capitals, hyphens, spaces or `_`, else itself."""
    plain = str(word).lower().translate(_SPELLING)
    return next((known for known in words if known.translate(_SPELLING) == plain), word)


def silent(*_: object) -> None:
    """Report nothing."""


def is_array(value: object) -> bool:
    """Whether a value is an array, and not a text."""
    if isinstance(value, str | type):
        return False
    return hasattr(value, "__len__") or getattr(value, "ndim", 0) > 0


def flat(value: Any) -> list[float]:
    """Return the numbers of an array of one dimension; InputError for more dimensions."""
    import numpy as np

    if isinstance(value, Sequence) and any(isinstance(number, str) for number in value):
        return [real(number, "a number of the array") for number in value]
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{value!r:.60}: an array of numbers is needed") from None
    if array.ndim != 1:
        raise InputError(f"an array of {array.ndim} dimensions: one dimension is needed")
    return [float(v) for v in array]


def real(value: Any, name: str) -> float:
    """Return a finite double; text is a number or a ratio. InputError where the value is none."""
    try:
        number = float(exact_number(value) if isinstance(value, str) else value)
    except OverflowError:
        raise InputError(f"{name} = {value!r:.60}: it is beyond the range of doubles") from None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r:.60}: it must be a real number") from None
    if not math.isfinite(number):
        raise InputError(f"{name} = {value!r}: it must be a finite number")
    return number


def share(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1, as δ is; InputError for any other."""
    number = real(value, name)
    if not 0.0 < number < 1.0:
        remedy = ""
        if number == 0.0 and name == "delta":
            remedy = "; at 0, ε is the largest loss: renyi(math.inf)"
        raise InputError(f"{name} = {value!r}: it must lie strictly between 0 and 1{remedy}")
    return number


def instance(value: Any, kind: type[_T], what: str) -> _T:
    """Return the value if it is of a kind; else InputError, which says what to pass instead."""
    if not isinstance(value, kind):
        raise InputError(f"{value!r:.60}: {what}")
    return value


def listed(value: Any, what: str) -> list[Any]:
    """Return what a value lists; InputError for text and for what lists nothing."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"{value!r:.60}: {what}")
    return list(value)


def counted_pairs(value: Any, what: str) -> list[tuple[Any, int]]:
    """Return pairs of something and a count, at least one; InputError for anything else."""
    pairs = []
    for index, pair in enumerate(listed(value, f"give a list of ({what}, count)"), start=1):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"step {index}: ({what}, count) is needed, not {pair!r:.60}")
        pairs.append((pair[0], whole(pair[1], f"step {index}: the count", 1)))
    if not pairs:
        raise InputError("a composition needs at least one step")
    return pairs


def a_path(value: Any, what: str) -> Path:
    """Return a path; InputError for what is none, which says what it should lead to."""
    if not isinstance(value, str | Path):
        raise InputError(f"{value!r:.60}: give the path of {what}")
    return Path(value)


def whole(value: Any, name: str, least: int = 0) -> int:
    """Return a whole number from `least` up; InputError for anything else."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise InputError(f"{name} = {value!r:.40}: it must be a whole number from {least} up")
    return int(value)
