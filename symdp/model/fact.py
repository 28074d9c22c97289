"""A fact about a density: its value, and how it is known; and the shape of noise in such facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symdp import shipped

if TYPE_CHECKING:
    import sympy as sp

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


@dataclass(frozen=True)
class Shape:
    """What is proved of a density f by rules."""

    even: Fact  # its value is the c with f(c + y) = f(c − y)
    log_concave: Fact
    one_mode: Fact

    @property
    def centre(self) -> sp.Expr | None:
        """The c with f(c + y) = f(c − y), None where no such c was found."""
        return self.even.value

    @property
    def is_log_concave(self) -> bool:
        """Whether log f is shown to be concave on the whole support, which has no gap then."""
        return bool(self.log_concave)

    @property
    def falls(self) -> bool:
        """Whether f(c + y) is shown not to rise in y > 0, c the centre."""
        return self.centre is not None and bool(self.one_mode)

    @property
    def data(self) -> list[list[Any]]:
        """The three facts as plain data, of which `shipped_shape` makes them again."""
        facts = (self.even, self.log_concave, self.one_mode)
        centre = None if self.centre is None else str(self.centre)
        values = (centre, self.log_concave.value, self.one_mode.value)
        return [[value, fact.by, fact.reason] for value, fact in zip(values, facts, strict=True)]


def shipped_shape(name: str, key: object) -> Shape | None:
    """Return the shape of a built-in mechanism's noise for all values of its parameters, or None.

    It comes with the package; a test derives it from the density.
    """
    data = shipped.fact(name, "shapes", key)
    if data is None:
        return None
    even, log_concave, one_mode = (Fact(*entries) for entries in data)
    if even.value is not None:
        import sympy as sp  # what answers without a mechanism does without it

        even = Fact(sp.Rational(even.value), even.by, even.reason)
    return Shape(even, log_concave, one_mode)
