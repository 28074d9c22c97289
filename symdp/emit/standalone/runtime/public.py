"""The interface of an emitted file in Python."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from symdp.emit.standalone.runtime.accountant import (
    epsilon_beside,
    log_delta_beside,
)
from symdp.emit.standalone.runtime.law import Law, law_of
from symdp.emit.standalone.runtime.primitives import NoAnswerError

REMOVE = 1
ONE_LAW = 0
NAMES: list[str] = []
constants: Any = None
check: Any = None

# ---- emitted from here on ----

__all__ = [
    "NoAnswerError", "curve", "delta", "epsilon", "epsilon_ends", "log_delta", "log_delta_ends"
]  # fmt: skip
_SIDES = {"remove": (1.0,), "add": (-1.0,), "both": (1.0, -1.0)}


def _need(given: dict[str, Any], names: Sequence[str]) -> None:
    for name in names:
        if name not in given:
            raise ValueError(f"a value is missing: {name}")


def _argument_of(word: str) -> dict[str, float]:
    name, equals, text = word.partition("=")
    if not equals or name not in (*NAMES, "epsilon", "delta", "n"):
        raise ValueError(f"unknown: {word}")
    try:
        return {name: float(Fraction(text))}
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ValueError(f"no finite number: {word}") from None


def _laws_of(n: float, values: dict[str, Any], direction: str) -> list[Law]:
    if direction not in _SIDES:
        raise ValueError("direction must be remove, add or both")
    if not (1 <= n < 1e15 and n == math.floor(n)):
        raise ValueError("n must be a whole number from 1 to 1e15")
    _need(values, NAMES)
    for name in values:
        if name not in NAMES:
            raise ValueError(f"unknown: {name}")
    p = np.array([float(values[name]) for name in NAMES])
    if not np.isfinite(p).all():
        raise ValueError("every parameter must be a finite number")
    with np.errstate(all="ignore"):
        if wrong := check(p):
            raise ValueError(wrong)
        c = constants(p)
    sides = _SIDES[direction][:1] if ONE_LAW else _SIDES[direction]
    return [law_of(c, REMOVE * side, float(n)) for side in sides]


def _largest(laws: list[Law], answer: Any, question: float, least: float) -> float:
    # A law is asked beside the lower end of those before it.
    largest = -math.inf
    for law in laws:
        largest = max(largest, answer(law, question, least))
        least = max(least, law.lower)
    return float(largest)


def _log_delta(laws: list[Law], epsilon: float) -> float:
    if not math.isfinite(epsilon):
        raise ValueError("epsilon must be a finite number")
    with np.errstate(all="ignore"):
        return _largest(laws, log_delta_beside, float(epsilon), -math.inf)


def _epsilon(laws: list[Law], delta: float) -> float:
    if not 0 < delta < 1:
        raise ValueError("delta must be above 0 and below 1")
    with np.errstate(all="ignore"):
        return _largest(laws, epsilon_beside, math.log(delta), 0.0)


def _ends_of_laws(laws: list[Law]) -> tuple[float, float]:
    # The larger law's: each end is at least that of the other.
    return float(max(law.lower for law in laws)), float(max(law.upper for law in laws))


def _from_log(value: float) -> float:
    # A delta below the least double is shown as that one, never as 0.
    return math.exp(value) or (5e-324 if value > -math.inf else 0.0)


def log_delta(epsilon: float, n: float, direction: str = "both", **values: float) -> float:
    """Return log delta(epsilon) of n steps."""
    return _log_delta(_laws_of(n, values, direction), epsilon)


def delta(epsilon: float, n: float, direction: str = "both", **values: float) -> float:
    """Return delta(epsilon) of n steps."""
    return _from_log(log_delta(epsilon, n, direction, **values))


def epsilon(delta: float, n: float, direction: str = "both", **values: float) -> float:
    """Return the least epsilon >= 0 with delta(epsilon) at most delta."""
    return _epsilon(_laws_of(n, values, direction), delta)


def log_delta_ends(
    epsilon: float, n: float, direction: str = "both", **values: float
) -> tuple[float, float]:
    """Return between which numbers log delta(epsilon) lies."""
    laws = _laws_of(n, values, direction)
    _log_delta(laws, epsilon)
    return _ends_of_laws(laws)


def epsilon_ends(
    delta: float, n: float, direction: str = "both", **values: float
) -> tuple[float, float]:
    """Return between which numbers the least epsilon lies."""
    laws = _laws_of(n, values, direction)
    _epsilon(laws, delta)
    return _ends_of_laws(laws)


def curve(epsilons: Any, n: float, direction: str = "both", **values: float) -> list[float]:
    """Return delta at each epsilon."""
    laws = _laws_of(n, values, direction)
    return [_from_log(_log_delta(laws, e)) for e in epsilons]


def main(words: list[str]) -> int:
    """Answer a command line."""
    given: dict[str, float] = {}
    direction = "both"
    try:
        for word in words:
            if word in _SIDES:
                direction = word
            else:
                given.update(_argument_of(word))
        asked = "delta" if "delta" in given else "epsilon"
        _need(given, (asked, "n"))
        first = given.pop(asked)
        n = given.pop("n")
        of = _epsilon if asked == "delta" else _log_delta
        sides = ["remove", "add"] if direction == "both" and not ONE_LAW else [direction]
        laws = [_laws_of(n, given, side) for side in sides]
        values = [of(law, first) for law in laws]
        larger = max(values)
        least, most = _ends_of_laws([law for side in laws for law in side])
        if asked == "delta":
            print(f"epsilon = {larger:.15g}")
        elif larger > -700 or larger == -math.inf:
            print(f"delta = {math.exp(larger):.15g}")
        else:
            print(f"delta = exp({larger:.15g})")
        # more than rounding, and than the width of what encloses them
        if larger - min(values) > max(1e-9 * max(1.0, abs(larger)), most - least):
            direction = sides[values.index(larger)]
        print(f"direction = {direction}")
        if most - least > 1e-6:
            shown = least if asked == "delta" or least < -700 else math.exp(least)
            word = f"exp({shown:.15g})" if asked != "delta" and least < -700 else f"{shown:.15g}"
            print(f"{'epsilon' if asked == 'delta' else 'delta'} >= {word}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except NoAnswerError as error:
        print(f"no answer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
