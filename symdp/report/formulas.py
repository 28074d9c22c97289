"""What was derived, as formulas with a left side that people read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from symdp.derive.present import numeric_end, range_ends
from symdp.emit.mathml import mathml_of_name
from symdp.report.mathml import mathml

if TYPE_CHECKING:
    from symdp.derive import Derivation
    from symdp.derive.pld import LossLaw

_LONG = 60  # characters of a rational beyond which it stands for an irrational place
_DIGITS = 12
_TOWER = re.compile(r"<msub><msup>(<mi>\w+</mi>)(<mn>\d+</mn>)</msup>(<mi>\w+</mi>)</msub>")
_MANY_OPERATIONS = 60  # from which on a formula is folded


@dataclass(frozen=True)
class Formula:
    """An equation, or words where there is none: the left side in LaTeX and in MathML.

    `words` say why there is no right side; `note` stands below in small letters.
    """

    latex_name: str
    mathml_name: str
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
        if self.right is None:
            return rf"{self.latex_name}: \text{{{_latex_words(self.words)}}}"
        return f"{self.latex_name} = {sp.latex(_rounded(self.right))}"

    def mathml(self) -> str:
        """Return the equation as a MathML element, the left side alone where there is none."""
        if self.right is None:
            return self.name()
        right = mathml(_rounded(self.right))
        return f'<math displaystyle="true"><mrow>{self.mathml_name}<mo>=</mo>{right}</mrow></math>'

    def name(self) -> str:
        """Return the left side as a MathML element."""
        return f"<math><mrow>{self.mathml_name}</mrow></math>"


def densities(derivation: Derivation) -> list[Formula]:
    """Return Q and P, the laws without and with the record; those of each pair of a choice."""
    pair, x = derivation.pair, derivation.variable
    rows = []
    for number, (weight, one) in enumerate(pair.alternatives or ((sp.Integer(1), pair),), start=1):
        index = f"_{{{number}}}" if pair.alternatives else ""
        if pair.alternatives:
            name = f"<mrow><mi>Pr</mi><mo>(</mo><mn>{number}</mn><mo>)</mo></mrow>"
            rows.append(Formula(rf"\Pr({number})", name, weight))
        for name, law in (("Q", one.Q), ("P", one.P)):
            right = sp.Tuple(*law) if isinstance(law, tuple) else law
            shown = f"<msub>{name}<mn>{number}</mn></msub>" if index else name
            rows.append(_of(name + index, shown, x, right))
    return rows


def loss(derivation: Derivation) -> list[Formula]:
    """Return the privacy loss, its range, its atoms and the mass at infinity."""
    d = derivation
    rows = [_of(r"\ell", "ℓ", d.variable, d.loss)]
    rows += [_bound(name, end) for name, end in zip(("inf", "sup"), range_ends(d), strict=True)]
    for atom in d.atoms:
        latex = rf"P(\ell = {sp.latex(_rounded(atom.loss))})"
        rows.append(Formula(latex, _probability("=", atom.loss), atom.mass))
    if d.mass_at_infinity != 0:
        name = "<msub><mi>δ</mi><mi>∞</mi></msub>"
        rows.append(Formula(r"\delta_\infty", name, d.mass_at_infinity))
    return rows


def law(derivation: Derivation) -> list[Formula]:
    """Return the inverse of the loss on each piece, and its density and distribution function."""
    d, s = derivation, derivation.pld_density.loss
    moving = [(piece, back) for piece, back in d.inverse if piece.slope != "constant"]
    rows = []
    name = f"<mrow><msup><mi>ℓ</mi><mrow><mo>−</mo><mn>1</mn></mrow></msup>{_arguments(s)}</mrow>"
    for piece, back in moving:
        note = f"where {d.variable} lies between {_shown(piece.lower)} and {_shown(piece.upper)}"
        words = "no closed form was found" if back is None else ""
        latex = rf"\ell^{{-1}}({sp.latex(s)})"
        rows.append(Formula(latex, name, back, words, note if len(moving) > 1 else ""))
    rows += [_density("ω", r"\omega", d.pld_density), _density("F", "F", d.pld_cdf)]
    for rule in d.mass_rules:
        between = f"where {d.variable} runs from {_shown(rule.lower)} to {_shown(rule.upper)}"
        rows += [
            Formula(rf"P(\ell {latex} {sp.latex(rule.loss)})", _probability(sign, rule.loss), own,
                    note=between)
            for sign, latex, own in (("=", "=", rule.mass), ("≤", r"\leq", rule.at_most))
            if own is not None
        ]  # fmt: skip
    return rows


def _probability(sign: str, loss: sp.Expr) -> str:
    relation = f"<mi>ℓ</mi><mo>{sign}</mo>{mathml(_rounded(loss))}"
    return f"<mrow><mi>P</mi><mo>(</mo>{relation}<mo>)</mo></mrow>"


def _density(letter: str, latex: str, found: LossLaw) -> Formula:
    name = f"<mrow><mi>{letter}</mi>{_arguments(found.loss)}</mrow>"
    return Formula(f"{latex}({sp.latex(found.loss)})", name, found.expression, found.reason)


def transform(derivation: Derivation) -> list[Formula]:
    """Return the CGF, or nothing where it is numeric."""
    cgf = derivation.cgf
    return [] if cgf.expression is None else [_of("K", "K", cgf.tilt, cgf.expression)]


def cumulants(derivation: Derivation, highest: int = 3) -> list[Formula]:
    """Return the tilted cumulants; in terms of tilted moments where the CGF is numeric."""
    cgf, rows = derivation.cgf, []
    for order in range(1, highest + 1):
        primes = "′" * order
        name = f"<mrow><msup><mi>K</mi><mo>{primes}</mo></msup>{_arguments(cgf.tilt)}</mrow>"
        latex = f"K{chr(39) * order}({sp.latex(cgf.tilt)})"
        rows.append(Formula(latex, name, derivation.cumulant(order)))
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
        rows.append(Formula(constant.symbol, _symbol(constant.symbol), right, words, note))
    return rows


def _symbol(latex: str) -> str:
    """The MathML of a constant's symbol, with exponent and index one above the other."""
    name = mathml_of_name(latex)
    return _TOWER.sub(r"<msubsup>\1\3\2</msubsup>", name)


def domain(derivation: Derivation) -> list[Formula]:
    """Return the ends of the interval on which K is finite, or nothing where it was not found."""
    if derivation.cgf.domain is None:
        return []
    signs = (("-", "−"), ("+", "+"))
    numeric = derivation.cgf.domain_is_numeric
    return [
        Formula(
            f"t_{latex}",
            f"<msub><mi>t</mi><mo>{sign}</mo></msub>",
            None if numeric else end,
            numeric_end(end) if numeric else "",
        )
        for (latex, sign), end in zip(signs, derivation.cgf.domain, strict=True)
    ]


def series(derivation: Derivation, order: int) -> list[Formula]:
    """Return the saddle-point and Edgeworth series up to an order."""
    rows = []
    for k in range(order + 1):
        name = f"<msub><mtext>MSD</mtext><mn>{k}</mn></msub>"
        rows.append(Formula(rf"\mathrm{{MSD}}_{k}", name, derivation.msd(k)))
    x = sp.Symbol("x")
    for k in range(1, order + 1):
        name = f"<mrow><msub><mi>E</mi><mn>{k}</mn></msub>{_arguments(x)}</mrow>"
        rows.append(Formula(f"E_{k}(x)", name, derivation.edgeworth(k)))
    return rows


def _of(latex: str, letter: str, argument: sp.Symbol, right: sp.Basic) -> Formula:
    return Formula(
        f"{latex}({sp.latex(argument)})",
        f"<mrow><mi>{letter}</mi>{_arguments(argument)}</mrow>",
        right,
    )


def _bound(word: str, end: sp.Expr | str) -> Formula:
    value, words = (None, end) if isinstance(end, str) else (end, "")
    name = f"<mrow><mo>{word}</mo><mspace width='0.2em'/><mi>ℓ</mi></mrow>"
    return Formula(rf"\{word} \ell", name, value, words)


def _shown(end: sp.Expr) -> str:
    return str(_rounded(end)).replace("oo", "∞").replace("-", "−")


def _latex_words(text: str) -> str:
    return re.sub(r"([\\{}_^#%&$])", r"\\\1", text)


def _arguments(symbol: sp.Symbol) -> str:
    return f"<mo>(</mo>{mathml(symbol)}<mo>)</mo>"


def _rounded(expression: sp.Basic) -> sp.Basic:
    """Round the many-digit rationals that stand for irrational places."""
    return expression.xreplace(
        {
            number: sp.Float(number, _DIGITS)
            for number in expression.atoms(sp.Rational)
            if len(str(number)) > _LONG
        }
    )
