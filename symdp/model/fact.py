"""A fact about a density: its value, and how it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

RULE = "rule"
BALLS = "balls"
VALUES = "values"
AUTHOR = "author"
OPEN = "open"


@dataclass(frozen=True)
class Fact:
    """A value that a rule, balls, values of the density or the author give, or that is open.

    >>> bool(Fact(True, RULE, "products of log-concave functions are log-concave"))
    True
    >>> bool(Fact(None, OPEN, "no rule applies")), bool(Fact(False, BALLS, "it rises again"))
    (False, False)
    """

    value: Any
    by: str
    reason: str

    def __bool__(self) -> bool:
        """Whether it is known to be true; what is open is not."""
        return bool(self.value)
