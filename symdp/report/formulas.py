"""What was derived, as formulas with a left side that people read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from symdp.derive import present
from symdp.emit.mathml import mathml

if TYPE_CHECKING:
    from symdp.derive import Derivation

_MANY_OPERATIONS = 60  # from which on a formula is folded


@dataclass(frozen=True)
class Formula:
    """An equation, or words where there is none; the left side as in a row of a derivation.

    `words` say why there is no right side; `note` stands below in small letters.
    """

    left: present.Left
    right: sp.Basic | None
    words: str = ""
    note: str = ""

    @property
    def operations(self) -> int:
        """How many operations the right side has."""
        return 0 if self.right is None else int(sp.count_ops(self.right))

    @property
    def is_long(self) -> bool:
        """Whether a page folds it."""
        return self.operations > _MANY_OPERATIONS

    def latex(self) -> str:
        """Return the equation in LaTeX, or its left side and the words."""
        name = present.latex_name(self.left)
        if self.right is None:
            return rf"{name}: \text{{{_latex_words(self.words)}}}"
        return f"{name} = {sp.latex(present.rounded(self.right))}"

    def mathml(self) -> str:
        """Return the equation as a MathML element, the left side alone where there is none."""
        if self.right is None:
            return self.name()
        name, right = present.mathml_name(self.left), mathml(present.rounded(self.right))
        return f'<math displaystyle="true"><mrow>{name}<mo>=</mo>{right}</mrow></math>'

    def name(self) -> str:
        """Return the left side as a MathML element."""
        return f"<math><mrow>{present.mathml_name(self.left)}</mrow></math>"


def of_rows(rows: Iterable[present.Row]) -> list[Formula]:
    """Return rows of a derivation as formulas; what is said in words has no right side."""
    return [
        Formula(left, None, right) if isinstance(right, str) else Formula(left, right)
        for left, right in rows
    ]


def densities(derivation: Derivation) -> list[Formula]:
    """Return Q and P, the laws without and with the record; those of each pair of a choice."""
    pair, x = derivation.pair, sp.latex(derivation.variable)
    rows = []
    for number, (weight, one) in enumerate(pair.alternatives or ((sp.Integer(1), pair),), start=1):
        index = f"_{{{number}}}" if pair.alternatives else ""
        if pair.alternatives:
            rows.append(Formula(rf"\Pr({number})", weight))
        for name, law in (("Q", one.Q), ("P", one.P)):
            right = sp.Tuple(*law) if isinstance(law, tuple) else law
            rows.append(Formula(f"{name}{index}({x})", right))
    return rows


def tails(derivation: Derivation, values: Mapping[str, str]) -> list[Formula]:
    """Return the tail constants: their formulas, what they bound, and values that were proved.

    Parameters
    ----------
    derivation
        What the constants belong to.
    values
        From the name of a constant to its value or the reason why it has none, in words.
    """
    rows = []
    for constant in derivation.tails:
        right, known = constant.expression, values.get(constant.name, "")
        if right is not None and right.has(sp.zoo, sp.nan):
            right = None  # a formula that divides by a width of zero
        words = "" if right is not None else (constant.reason or "the formula divides by zero")
        note = f"{constant.bounds}; {known}" if known else constant.bounds
        rows.append(Formula(constant.symbol, right, words, note))
    return rows


def series(derivation: Derivation, order: int) -> list[Formula]:
    """Return the saddle-point and Edgeworth series up to an order."""
    rows = [Formula(rf"\mathrm{{MSD}}_{k}", derivation.msd(k)) for k in range(order + 1)]
    return rows + [Formula(f"E_{k}(x)", derivation.edgeworth(k)) for k in range(1, order + 1)]


def _latex_words(text: str) -> str:
    return re.sub(r"([\\{}_^#%&$])", r"\\\1", text)
