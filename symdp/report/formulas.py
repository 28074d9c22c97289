"""What was derived, as formulas with a left side that people read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from symdp.report.mathml import mathml

if TYPE_CHECKING:
    from symdp.derive import Derivation

_LONG = 60  # characters of a rational beyond which it stands for an irrational place
_DIGITS = 12


@dataclass(frozen=True)
class Formula:
    """An equation, or words where there is none: the left side in LaTeX and in MathML."""

    latex_name: str
    mathml_name: str
    right: sp.Basic | None
    words: str = ""

    def latex(self) -> str:
        """Return the equation in LaTeX."""
        right = rf"\text{{{self.words}}}" if self.right is None else sp.latex(_rounded(self.right))
        return f"{self.latex_name} = {right}"

    def mathml(self) -> str:
        """Return the equation as a MathML element."""
        right = "<mtext>?</mtext>" if self.right is None else mathml(_rounded(self.right))
        return f'<math displaystyle="true"><mrow>{self.mathml_name}<mo>=</mo>{right}</mrow></math>'


def densities(derivation: Derivation) -> list[Formula]:
    """Return Q and P, the laws without and with the record."""
    pair, x = derivation.pair, derivation.variable
    rows = []
    for name, law in (("Q", pair.Q), ("P", pair.P)):
        right = sp.Tuple(*law) if isinstance(law, tuple) else law
        rows.append(_of(name, name, x, right))
    return rows


def loss(derivation: Derivation) -> list[Formula]:
    """Return the privacy loss, its range, its atoms and the mass at infinity."""
    d = derivation
    rows = [_of(r"\ell", "ℓ", d.variable, d.loss)]
    if d.loss_range is not None:
        low, high = d.loss_range
        rows.append(_bound("inf", low))
        rows.append(_bound("sup", high))
    for atom in d.atoms:
        value = _rounded(atom.loss)
        rows.append(
            Formula(
                rf"P(\ell = {sp.latex(value)})",
                f"<mrow><mi>P</mi><mo>(</mo><mi>ℓ</mi><mo>=</mo>{mathml(value)}<mo>)</mo></mrow>",
                atom.mass,
            )
        )
    if d.mass_at_infinity != 0:
        name = "<msub><mi>δ</mi><mi>∞</mi></msub>"
        rows.append(Formula(r"\delta_\infty", name, d.mass_at_infinity))
    return rows


def transform(derivation: Derivation, cumulants: int = 2) -> list[Formula]:
    """Return the CGF and the first tilted cumulants, or nothing where it is numeric."""
    cgf = derivation.cgf
    if cgf.expression is None:
        return []
    rows = [_of("K", "K", cgf.tilt, cgf.expression)]
    for order in range(1, cumulants + 1):
        primes = "′" * order
        name = f"<mrow><msup><mi>K</mi><mo>{primes}</mo></msup>{_arguments(cgf.tilt)}</mrow>"
        latex = f"K{chr(39) * order}({sp.latex(cgf.tilt)})"
        rows.append(Formula(latex, name, derivation.cumulant(order)))
    return rows


def domain(derivation: Derivation) -> list[Formula]:
    """Return the ends of the interval on which K is finite, or nothing where it was not found."""
    if derivation.cgf.domain is None:
        return []
    signs = (("-", "−"), ("+", "+"))
    return [
        Formula(f"t_{latex}", f"<msub><mi>t</mi><mo>{sign}</mo></msub>", end)
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


def _bound(word: str, value: sp.Expr) -> Formula:
    name = f"<mrow><mo>{word}</mo><mspace width='0.2em'/><mi>ℓ</mi></mrow>"
    return Formula(rf"\{word} \ell", name, value)


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
