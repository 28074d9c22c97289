"""The interface of an emitted file in Python."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from symdp.emit.standalone.runtime.accountant import Law, epsilon_of, law_of, log_delta_of
from symdp.emit.standalone.runtime.primitives import NoAnswerError

REMOVE = 1
NAMES: list[str] = []
constants: Any = None
check: Any = None

# ---- emitted from here on ----

__all__ = ["NoAnswerError", "curve", "delta", "epsilon", "log_delta"]
_SIDES = {"remove": (1.0,), "add": (-1.0,), "both": (1.0, -1.0)}


def _need(given: dict[str, Any], names: Sequence[str]) -> None:
    for name in names:
        if name not in given:
            raise ValueError(f"a value is missing: {name}")


def _read(word: str) -> dict[str, float]:
    name, equals, text = word.partition("=")
    if not equals or name not in (*NAMES, "epsilon", "delta", "n"):
        raise ValueError(f"unknown: {word}")
    try:
        return {name: float(Fraction(text))}
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ValueError(f"no finite number: {word}") from None


def _laws(n: float, values: dict[str, Any], direction: str) -> list[Law]:
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
    return [law_of(c, REMOVE * side, float(n)) for side in _SIDES[direction]]


def _log_delta(laws: list[Law], epsilon: float) -> float:
    if not math.isfinite(epsilon):
        raise ValueError("epsilon must be a finite number")
    with np.errstate(all="ignore"):
        return float(max(log_delta_of(law, float(epsilon)) for law in laws))


def _from_log(value: float) -> float:
    # A delta below the least double is shown as that one, never as 0.
    return math.exp(value) or (5e-324 if value > -math.inf else 0.0)


def log_delta(epsilon: float, n: float, direction: str = "both", **values: float) -> float:
    """Return log delta(epsilon) of n steps."""
    return _log_delta(_laws(n, values, direction), epsilon)


def delta(epsilon: float, n: float, direction: str = "both", **values: float) -> float:
    """Return delta(epsilon) of n steps."""
    return _from_log(log_delta(epsilon, n, direction, **values))


def epsilon(delta: float, n: float, direction: str = "both", **values: float) -> float:
    """Return the least epsilon >= 0 with delta(epsilon) at most delta."""
    if not 0 < delta < 1:
        raise ValueError("delta must be above 0 and below 1")
    with np.errstate(all="ignore"):
        laws = _laws(n, values, direction)
        return float(max(epsilon_of(law, math.log(delta)) for law in laws))


def curve(epsilons: Any, n: float, direction: str = "both", **values: float) -> list[float]:
    """Return delta at each epsilon."""
    laws = _laws(n, values, direction)
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
                given.update(_read(word))
        asked = "delta" if "delta" in given else "epsilon"
        _need(given, (asked, "n"))
        first, n = given.pop(asked), given.pop("n")
        of = epsilon if asked == "delta" else log_delta
        sides = ["remove", "add"] if direction == "both" else [direction]
        values = [of(first, n, side, **given) for side in sides]
        larger = max(values)
        if asked == "delta":
            print(f"epsilon = {larger:.15g}")
        elif larger > -700 or larger == -math.inf:
            print(f"delta = {math.exp(larger):.15g}")
        else:
            print(f"delta = exp({larger:.15g})")
        if larger - min(values) > 1e-9 * max(1.0, abs(larger)):  # more than rounding
            direction = sides[values.index(larger)]
        print(f"direction = {direction}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except NoAnswerError as error:
        print(f"no answer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
