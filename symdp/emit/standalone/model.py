"""What a standalone accountant is emitted from: the densities of one step, piece by piece."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files

import sympy as sp

# Domain word -> condition, in which every language puts its own whole().
CONDITIONS = {
    "positive": "{0} > 0",
    "nonnegative": "{0} >= 0",
    "real": "{0} == {0}",
    "probability": "0 <= {0} and {0} <= 1",
    "open probability": "0 < {0} and {0} < 1",
    "integer": "floor({0}) == {0}",
    "integer above 1": "{0} > 1 and floor({0}) == {0}",
    "positive integer": "{0} > 0 and floor({0}) == {0}",
    "natural": "{0} >= 0 and floor({0}) == {0}",
}

# The line from which on a file of the runtime is emitted.
MARKER = "# ---- emitted from here on ----\n"

_WORDS_OF_THE_CODE = """
epsilon epsilons delta deltas n direction found given count answer int short long char float double
    signed unsigned void auto register static extern const volatile enum struct union typedef sizeof
    do switch case default goto inline restrict return break continue for while if else
"""
_TAKEN = frozenset(_WORDS_OF_THE_CODE.split())


def resource(name: str) -> str:
    """Return a file of the runtime as text, from its marker line on where it has one."""
    text = files("symdp.emit.standalone.runtime").joinpath(name).read_text("utf-8")
    return text.rpartition(MARKER)[2].strip("\n")


@dataclass(frozen=True)
class Argument:
    """A free parameter: its symbol, its domain word and rule."""

    symbol: sp.Symbol
    domain: str
    rule: str

    @property
    def name(self) -> str:
        """The name that people write."""
        return str(self.symbol.name)

    @property
    def identifier(self) -> str:
        """The name as an argument in C, with an underscore where C has the word for itself."""
        return f"{self.name}_" if self.name in _TAKEN or not self.name.isascii() else self.name


@dataclass(frozen=True)
class Piece:
    """A stretch of the support, or one point of a list, where a law may vanish.

    `lower, upper`: the ends; of a point, its probabilities under P and Q. `log_p, log_q`: None
    where the density vanishes, and for points. `loss`: ±oo where one of them vanishes.
    """

    lower: sp.Expr
    upper: sp.Expr
    log_p: sp.Expr | None
    log_q: sp.Expr | None
    loss: sp.Expr
    is_flat: bool = False


@dataclass(frozen=True)
class Model:
    """One mechanism, ready to be written out with its accountant.

    `arguments`: parameters that stay arguments. `pieces`: of the support; all points of a list.
    `loss_range`: ±oo where an end is not known. `is_remove`: whether P is the law with the record.
    """

    name: str
    heading: str
    notes: tuple[str, ...]
    arguments: tuple[Argument, ...]
    variable: sp.Symbol
    kind: str
    pieces: tuple[Piece, ...]
    loss_range: tuple[sp.Expr, sp.Expr]
    is_remove: bool

    @property
    def prefix(self) -> str:
        """The name as an identifier."""
        name = re.sub(r"\W", "_", self.name, flags=re.ASCII)
        return name if re.match(r"[A-Za-z]", name) else f"m_{name}"
