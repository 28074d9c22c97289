"""The options of methods: their names, ranges and defaults, and how given values are read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symdp.arguments import real
from symdp.errors import InputError, suggestion
from symdp.exact_number import exact_number

_OTHERS = ("method", "direction")  # of the same call: what a misspelt word may have meant


@dataclass(frozen=True)
class Option:
    """One option of a method."""

    name: str
    least: float
    most: float
    what: str
    is_whole: bool = False

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def rule(self) -> str:
        """The values that it takes, in words."""
        if self.is_whole:
            return f"a whole number from {self.least:.0f} to {self.most:.0f}"
        if math.isinf(self.most):
            return f"a finite number above {self.least:g}"
        return f"a number strictly between {self.least:g} and {self.most:g}"

    def read(self, method: str, value: object) -> float:
        """Return the number that a value or its text means; InputError where it breaks the rule."""
        culprit = f"method '{method}': {self.name} = {value!s:.40}"
        try:
            exact = exact_number(value) if isinstance(value, str) else value
            number = math.nan if isinstance(value, bool) else real(exact, self.name)
        except (InputError, OverflowError):
            raise InputError(f"{culprit} must be {self.rule}") from None
        if self.is_whole:
            inside = number % 1.0 == 0.0 and self.least <= number <= self.most
        else:
            inside = self.least < number < self.most
        if not inside:
            raise InputError(f"{culprit} must be {self.rule}")
        if self.is_whole:
            return int(number)
        return number


POINTS = Option("points", 1 << 10, 1 << 23, "points of the grid", is_whole=True)
REACH = Option("reach", 0.0, math.inf, "L in nats, the grid covers [-L, L)")
EPS_ERROR = Option("eps_error", 0.0, math.inf, "how far the sum may move by rounding, in nats")
DELTA_ERROR = Option("delta_error", 0.0, 1.0, "probability that the grid may miss")
TILT = Option("tilt", 0.0, math.inf, "t, in place of a search")
DIGITS = Option("digits", 1, 1000, "significant digits of the proof", is_whole=True)
OPTIONS = (POINTS, REACH, EPS_ERROR, DELTA_ERROR, TILT, DIGITS)


def read_options(
    method: str, options: tuple[Option, ...], values: Mapping[str, Any]
) -> dict[str, float]:
    """Return the options of a method as numbers."""
    by_name = {option.name: option for option in options}
    for name in values:
        if name not in by_name:
            hint = suggestion(name, [*by_name, *_OTHERS])
            hint = hint or f"; it takes {', '.join(by_name) or 'none'}"
            raise InputError(f"method '{method}' has no option '{name:.40}'{hint}")
    return {name: by_name[name].read(method, value) for name, value in values.items()}


def check_options(method: Any, *options: Option) -> None:
    """Check the options that a method's record holds, None where one is left to the method."""
    for option in options:
        value = getattr(method, option.name)
        if value is not None:
            option.read(method.name, value)
