"""What a standalone accountant is emitted from: a mechanism's K in one of two forms."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import sympy as sp

from symdp.errors import InputError

# Domain word -> condition, in which Python and C put their own whole().
CONDITIONS = {
    "positive": "{0} > 0",
    "nonnegative": "{0} >= 0",
    "real": "{0} == {0}",
    "probability": "0 <= {0} and {0} <= 1",
    "open probability": "0 < {0} and {0} < 1",
    "integer": "whole({0})",
    "integer above 1": "{0} > 1 and whole({0})",
    "positive integer": "{0} > 0 and whole({0})",
    "natural": "{0} >= 0 and whole({0})",
}

# The line from which on a file of the runtime is emitted.
MARKER = "# ---- emitted from here on ----\n"

_WORDS_OF_THE_CODE = """
epsilon delta count order tilt law self out message int long short char float double signed
    unsigned void auto register static extern const volatile enum struct union typedef sizeof do
    switch case default goto inline restrict exp log log1p expm1 sinh cosh tanh sqrt fabs pow fma
    ldexp frexp gamma lgamma erf main bool true false math np series print float list
"""
_TAKEN = frozenset(_WORDS_OF_THE_CODE.split())


def resource(name: str) -> str:
    """Return a file of the runtime as text."""
    return files("symdp.emit.standalone.runtime").joinpath(name).read_text("utf-8")


def c_comment(lines: Sequence[str]) -> str:
    """Return lines as the comment that begins a file in C."""
    text = "\n".join(f" * {line}".rstrip() for line in lines).replace("*/", "* /")
    return f"/*\n{text}\n */"


@dataclass(frozen=True)
class Argument:
    """A free parameter: its symbol, its domain word and rule, and the name that it has in code."""

    symbol: sp.Symbol
    domain: str
    rule: str

    @property
    def name(self) -> str:
        """Return the name, with an underscore where the target keeps the word for itself."""
        name = str(self.symbol.name)
        return f"{name}_" if name in _TAKEN or keyword.iskeyword(name) else name


@dataclass(frozen=True)
class ClosedForm:
    """K in closed form: its tilt, what is free in it, and what else is known of one step.

    `facts` are 1 − δ∞, the ends of the domain of K and those of the loss.
    """

    cgf: sp.Expr
    tilt: sp.Symbol
    facts: tuple[sp.Expr, sp.Expr, sp.Expr, sp.Expr, sp.Expr]
    removable: tuple[sp.Expr, ...] = ()


@dataclass(frozen=True)
class Points:
    """The loss as weighted points that serve the tilts from `tilts[0]` to `tilts[1]`.

    `mean` is the mean of the loss as the sum of two doubles, `centred` the distances from it.
    """

    centred: tuple[float, ...]
    log_weight: tuple[float, ...]
    mean: tuple[float, float]
    log_finite_mass: float
    domain: tuple[float, float]
    loss_range: tuple[float, float]
    tilts: tuple[float, float]


@dataclass(frozen=True)
class Model:
    """One mechanism in one direction, ready to be written out.

    Attributes
    ----------
    name, heading, notes
        The mechanism's name, a line saying what it is, and lines for the file's header.
    arguments
        Parameters that stay arguments of the functions; none with `Points`.
    law
        K in closed form, or as points.
    order
        The highest order of the series that the file offers.
    """

    name: str
    heading: str
    notes: tuple[str, ...]
    arguments: tuple[Argument, ...]
    law: ClosedForm | Points
    order: int

    def __post_init__(self) -> None:
        if isinstance(self.law, Points) and self.arguments:
            raise InputError("an accountant from points has no free parameters")

    @property
    def prefix(self) -> str:
        """The name as an identifier."""
        name = re.sub(r"\W", "_", self.name, flags=re.ASCII)
        return name if re.match(r"[A-Za-z]", name) else f"m_{name}"
