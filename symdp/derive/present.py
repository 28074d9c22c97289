"""A derivation for people and programs: text, LaTeX, JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy as sp

if TYPE_CHECKING:
    from symdp.derive.derivation import Derivation

SCHEMA = "symdp/derivation/1"
_DIGITS = 12
_LONG = 60


def plain(expression: sp.Expr) -> str:
    """Return an expression as text; rationals that stand for irrational places are rounded.

    Examples
    --------
    >>> plain(sp.Rational(1, 3)), plain(sp.Rational(10**40 + 1, 3 * 10**40))
    ('1/3', '0.333333333333')
    """
    rounded = {
        number: sp.Float(number, _DIGITS)
        for number in expression.atoms(sp.Rational)
        if len(str(number)) > _LONG
    }
    return str(expression.xreplace(rounded))


def to_json(derivation: Derivation, order: int) -> dict[str, Any]:
    """Return everything that was derived as dicts, lists, strings and None."""
    d, cgf = derivation, derivation.cgf
    return {
        "schema": SCHEMA,
        "name": d.mechanism.name,
        "direction": d.direction,
        "variable": d.variable.name,
        "parameters": {p.name: p.domain for p in d.mechanism.declared},
        "values": {name: str(value) for name, value in d.mechanism.values.items()},
        "loss": str(d.loss),
        "pieces": [
            {
                "lower": str(piece.lower),
                "upper": str(piece.upper),
                "loss": str(piece.loss),
                "slope": piece.slope,
            }
            for piece in d.pieces
        ],
        "points": [
            {"value": str(p.value), "p": str(p.p), "q": str(p.q), "loss": str(p.loss)}
            for p in d.points
        ],
        "loss_range": None if d.loss_range is None else [str(end) for end in d.loss_range],
        "atoms": [{"loss": str(atom.loss), "mass": str(atom.mass)} for atom in d.atoms],
        "mass_at_infinity": str(d.mass_at_infinity),
        "cgf": {
            "tilt": cgf.tilt.name,
            "form": cgf.form,
            "expression": None if cgf.expression is None else str(cgf.expression),
            "domain": None if cgf.domain is None else [str(end) for end in cgf.domain],
            "checked_at": [str(at) for at in cgf.checked_at],
            "removable": [str(at) for at in cgf.removable],
            "reason": cgf.reason or None,
        },
        "cumulants": {str(j): str(d.cumulant(j)) for j in range(1, order + 2)},
        "msd": {str(k): str(d.msd(k)) for k in range(order + 1)},
        "edgeworth": {str(k): str(d.edgeworth(k)) for k in range(order + 1)},
    }


def _rows(derivation: Derivation, order: int) -> list[tuple[str, list[tuple[str, sp.Basic | str]]]]:
    """Titles with their formulas: left side as LaTeX, right side as expression or words."""
    d, cgf = derivation, derivation.cgf
    x, t = sp.latex(d.variable), sp.latex(cgf.tilt)
    loss: list[tuple[str, sp.Basic | str]] = [(rf"\ell({x})", d.loss)]
    if d.loss_range is not None:
        loss += [(r"\inf \ell", d.loss_range[0]), (r"\sup \ell", d.loss_range[1])]
    loss += [(rf"P(\ell = {sp.latex(atom.loss)})", atom.mass) for atom in d.atoms]
    if d.mass_at_infinity != 0:
        loss.append((r"\delta_\infty = P(Q = 0)", d.mass_at_infinity))
    transform: list[tuple[str, sp.Basic | str]] = [
        (f"K({t})", f"numerically: {cgf.reason}" if cgf.expression is None else cgf.expression)
    ]
    if cgf.domain is not None:
        transform += [(f"{t}_-", cgf.domain[0]), (f"{t}_+", cgf.domain[1])]
    transform += [(f"K^{{({j})}}({t})", d.cumulant(j)) for j in range(1, order + 2)]
    series: list[tuple[str, sp.Basic | str]] = [
        (rf"\mathrm{{MSD}}_{k}", d.msd(k)) for k in range(order + 1)
    ]
    series += [(f"E_{k}(x)", d.edgeworth(k)) for k in range(1, order + 1)]
    return [("Privacy loss", loss), ("Cumulant generating function", transform), ("Series", series)]


_WORDS = str.maketrans("", "", "{}\\$")


def to_text(derivation: Derivation, order: int) -> str:
    """Return the derivation as lines of plain text."""
    lines = [f"{derivation.mechanism!r}, {derivation.direction} direction"]
    for title, rows in _rows(derivation, order):
        lines += ["", title]
        for left, right in rows:
            name = left.replace(r"\mathrm", "").replace("^", "").translate(_WORDS)
            lines.append(f"  {name} = {right if isinstance(right, str) else plain(right)}")
    return "\n".join(lines)


def to_latex(derivation: Derivation, order: int) -> str:
    """Return the derivation as one aligned display."""
    lines = []
    for _, rows in _rows(derivation, order):
        for left, right in rows:
            formula = rf"\text{{{right}}}" if isinstance(right, str) else sp.latex(right)
            lines.append(f"{left} &= {formula}")
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"
