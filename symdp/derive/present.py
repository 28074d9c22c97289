"""A derivation for people: text, LaTeX, MathML, HTML, and its sources."""

from __future__ import annotations

import re
from functools import partial
from html import escape
from typing import TYPE_CHECKING, TypeAlias

import sympy as sp

from symdp.derive import series, tails
from symdp.derive.asymptotics import kappa
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.derive.privacy_loss import PrivacyLoss
    from symdp.derive.records import HasCGF
    from symdp.model.mechanism import Mechanism

_DIGITS = 12  # shown of a long number
_LONG = 60  # characters of a ratio that nobody reads
_SHARE, _LEAST = 0.3, 0.5  # of the clock, and seconds, for ε of many steps
_BRIEF = 98  # columns of a line of three that stand for a derivation

# SymPy takes K^{(2)}(t), which is one name here, for a power.
_DERIVATIVE = re.compile(r"<mi>\{\((\d+)\)\}\((\w+)\)</mi></msup>")
_DERIVATIVE_NAME = (
    r"<mrow><mo>(</mo><mn>\1</mn><mo>)</mo></mrow></msup>"
    r"<mrow><mo>(</mo><mi>\2</mi><mo>)</mo></mrow>"
)

# The left side of a formula in LaTeX, or in parts of which some are expressions; and the right.
Left: TypeAlias = str | tuple[str | sp.Basic, ...]
Row: TypeAlias = tuple[Left, sp.Basic | str]


def plain(expression: sp.Expr) -> str:
    """Return an expression as text; rationals that stand for irrational places are rounded.

    Examples
    --------
    >>> plain(sp.Rational(1, 3)), plain(sp.Rational(10**40 + 1, 3 * 10**40))
    ('1/3', '0.333333333333')
    """
    return str(rounded(expression))


def rounded(expression: sp.Basic) -> sp.Basic:
    """Return an expression with short decimals for the long rationals of irrational places."""
    return expression.xreplace(
        {
            number: sp.Float(number, _DIGITS)
            for number in expression.atoms(sp.Rational)
            if len(str(number)) > _LONG
        }
    )


def sections(d: PrivacyLoss, constants: tails.Tails, order: int) -> list[tuple[str, list[Row]]]:
    """Return titles with their formulas: left side as LaTeX, right side as expression or words."""
    cgf = d.cgf
    assumed: list[Row] = [(r"\mathrm{assumed}", text) for text in d.mechanism.assumptions]
    larger = d.dominating_direction
    transform: Row = (
        f"K({sp.latex(cgf.tilt)})",
        f"numerically: {cgf.reason}" if cgf.expression is None else cgf.expression,
    )
    return [
        ("Privacy loss", assumed + loss_rows(d)),
        (
            "Law of the loss",
            [*law_rows(d), (r"\mathrm{larger}", f"{larger.value}: {larger.proof}")],
        ),
        (
            "Cumulant generating function",
            [transform, *domain_rows(d), *cumulant_rows(d, order + 1)],
        ),
        ("Series", [*series_rows(d, order), (r"\varepsilon(n, z_\delta)", many_steps(d))]),
        ("Tails", list(tails.rows(constants))),
    ]


def loss_rows(d: PrivacyLoss) -> list[Row]:
    """Return the privacy loss, its range, its atoms and the mass at infinity."""
    rows: list[Row] = [(rf"\ell({sp.latex(d.variable)})", d.loss)]
    rows += range_rows(d)
    rows += [((r"P(\ell =", atom.loss, ")"), atom.mass) for atom in d.atoms]
    if d.mass_at_infinity != 0:
        rows.append((r"\delta_\infty = P(Q = 0)", d.mass_at_infinity))
    return rows


def range_rows(d: PrivacyLoss) -> list[Row]:
    """Return the infimum and the supremum of the loss, of each case where there are several."""
    names = r"\inf \ell", r"\sup \ell"
    if not d.range_cases:
        return list(zip(names, range_ends(d), strict=True))
    rows: list[Row] = []
    for case in d.range_cases:
        held = [part for condition in case.conditions for part in (",", *condition)][1:]
        ends = case.ends or (f"not found: {case.reason}",) * 2
        rows += [((f"{name} (", *held, ")"), end) for name, end in zip(names, ends, strict=True)]
    return rows


def domain_rows(d: PrivacyLoss) -> list[Row]:
    """Return the ends of the interval on which K is finite, nothing where they were not found."""
    if d.cgf.domain is None:
        return []
    t, numeric = sp.latex(d.cgf.tilt), d.cgf.domain_is_numeric
    return [
        (f"{t}_{sign}", numeric_end(end) if numeric else end)
        for sign, end in zip("-+", d.cgf.domain, strict=True)
    ]


def cumulant_rows(d: PrivacyLoss, highest: int) -> list[Row]:
    """Return the tilted cumulants up to an order."""
    t = sp.latex(d.cgf.tilt)
    return [(f"K^{{({j})}}({t})", series.cumulant(d, j)) for j in range(1, highest + 1)]


def series_rows(d: HasCGF, order: int) -> list[Row]:
    """Return the terms of steepest descent and of Edgeworth, in K^(j)(t)."""
    t = sp.latex(d.cgf.tilt)
    rows: list[Row] = [(rf"\mathrm{{MSD}}_{k}", series.msd(d, k)) for k in range(order + 1)]
    rows += [
        (sp.latex(f), own.xreplace(_named(t, order)))
        for f, own in series.saddle_terms(d, order, substitute=False)
    ]
    return rows + [(f"E_{k}(x)", series.edgeworth(d, k)) for k in range(1, order + 1)]


def _named(tilt: str, order: int) -> dict[sp.Basic, sp.Basic]:
    """κ_j as K^(j)(t), the name that its own row has."""
    names = [f"K({tilt})", *(f"K^{{({j})}}({tilt})" for j in range(1, 2 * order + 3))]
    return {
        sp.Symbol(f"kappa_{j}", real=True): sp.Symbol(name, real=True)
        for j, name in enumerate(names)
    }


def many_steps(d: PrivacyLoss) -> sp.Expr | str:
    """Return ε of many steps in n and z_delta = Φ̄⁻¹(δ), the terms down to n⁰, or why there is none.

    A loss on a lattice has no more than the first two; cumulants without a formula are K^(j)(0).
    """
    reason = "it was not found within the time limit"
    names = {kappa(j): sp.Symbol(f"K^{{({j})}}(0)", real=True) for j in (1, 2, 3)}
    # Series in a sampling rate hold for small rates alone: no formula for people.
    for substitute in (True, False) if d.cgf.expression is not None else (False,):
        try:
            found = d.clock.attempt(
                partial(series.epsilon_asymptotics, d, int(not d.pair.is_discrete), substitute),
                None, _SHARE, _LEAST,
            )  # fmt: skip
        except InputError as error:
            reason = str(error)
        else:
            if found is not None:
                return found.epsilon.xreplace(names)
    return reason


def numeric_end(end: sp.Expr) -> str:
    """Return an end that numbers show, in words.

    Examples
    --------
    >>> numeric_end(sp.Rational(3, 2)), numeric_end(-sp.oo)
    ('1.50000, as numbers show it', '-∞, as numbers show it')
    """
    number = end if end.is_infinite else sp.Float(end, 6)
    return f"{str(number).replace('oo', '∞')}, as numbers show it"


def range_ends(d: PrivacyLoss) -> tuple[sp.Expr | str, sp.Expr | str]:
    """Return the infimum and the supremum of the loss: formulas, what numbers show, or why not."""
    if d.loss_range is not None:
        return d.loss_range
    if d.numeric_range is not None:
        low, high = map(numeric_end, d.numeric_range)
        return low, high
    return (f"not found: {d.range_reason}",) * 2


def law_rows(d: PrivacyLoss) -> list[Row]:
    """Return the inverse of the loss on its pieces, its density and distribution function."""
    s = sp.latex(d.pld_density.loss)
    moving = [(piece, back) for piece, back in d.inverse if piece.slope != "constant"]
    rows: list[Row] = []
    for piece, back in moving:
        left: Left = rf"\ell^{{-1}}({s})"
        if len(moving) > 1:
            ends = (piece.lower, ",", piece.upper, ")")
            left = (rf"{left}, {sp.latex(d.variable)} \in (", *ends)
        rows.append((left, "no closed form" if back is None else back))
    for name, law in ((r"\omega", d.pld_density), (r"F", d.pld_cdf)):
        rows.append((f"{name}({s})", law.reason if law.expression is None else law.expression))
    for rule in d.mass_rules:
        place: tuple[str | sp.Basic, ...] = (
            rf"), {sp.latex(d.variable)} \in [",
            rule.lower,
            ",",
            rule.upper,
            "]",
        )
        rows.append(((r"P(\ell =", rule.loss, *place), rule.mass))
        if rule.at_most is not None:
            rows.append(((r"P(\ell \leq", rule.loss, *place), rule.at_most))
    return rows


_WORDS = str.maketrans("", "", "{}\\$")


def in_brief(d: PrivacyLoss) -> str:
    """Return three lines: what was derived, the loss, and K if it was asked for already.

    Examples
    --------
    >>> import symdp
    >>> symdp.derive(symdp.mechanisms.gaussian)
    <Derivation of gaussian(sigma), remove direction
      ell(x) = (2*x - 1)/(2*sigma**2)
      K(t): ask for .cgf>
    """
    loss = f"  ell({d.variable}) = {plain(d.loss)}"
    last = "  K(t): ask for .cgf"
    if "cgf" in vars(d):
        form = d.cgf.expression
        last = f"  K({d.cgf.tilt}) = {d.cgf.form if form is None else plain(form)}"
    first = f"<Derivation of {d.mechanism.summary}, {d.direction} direction"
    return "\n".join([first, *(_cut(line) for line in (loss, last))]) + ">"


def _cut(line: str) -> str:
    return line if len(line) < _BRIEF else f"{line[: _BRIEF - 1]}…"


def _text_value(right: sp.Basic) -> str:
    return plain(right).replace("^{(", "(").replace(")}", ")")  # K^{(2)}(t) as on the left


def _text_name(left: Left) -> str:
    parts = (left,) if isinstance(left, str) else left
    words = []
    for part in parts:
        if isinstance(part, str):
            plain_letters = part.replace(r"\mathrm", "").replace(r"\ell^{-1}", "inverse")
            plain_letters = (
                plain_letters.replace("varepsilon", "epsilon")
                .replace("varphi", "phi")
                .replace(r"\leq", "<=")
            )  # as in the formulas
            words.append(plain_letters.replace("^", "").translate(_WORDS))
        else:
            words.append(plain(part))
    return _closed_up(words)


def _closed_up(parts: list[str]) -> str:
    return " ".join(parts).replace(" )", ")").replace(" ,", ",").replace("( ", "(")


def latex_name(left: Left) -> str:
    """Return a left side in LaTeX."""
    parts = (left,) if isinstance(left, str) else left
    return _closed_up([p if isinstance(p, str) else sp.latex(p) for p in parts])


def _mathml(row: Row) -> str:
    from symdp.emit.mathml import mathml

    left, right = row
    value = f"<mtext>{escape(right)}</mtext>" if isinstance(right, str) else mathml(rounded(right))
    value = _DERIVATIVE.sub(_DERIVATIVE_NAME, value)
    name = mathml_name(left)
    return f'<math displaystyle="true"><mrow>{name}<mo>=</mo>{value}</mrow></math>'


def mathml_name(left: Left) -> str:
    """Return a left side in MathML."""
    from symdp.emit.mathml import mathml, mathml_of_name

    parts = (left,) if isinstance(left, str) else left
    return "".join(mathml_of_name(p) if isinstance(p, str) else mathml(rounded(p)) for p in parts)


class Presented:
    """What has sections of formulas, and so a text, LaTeX, MathML and HTML."""

    mechanism: Mechanism
    direction: str

    def sections(self, order: int = 2) -> list[tuple[str, list[Row]]]:
        """Return titles with their formulas, for people."""
        raise NotImplementedError

    def to_text(self, order: int = 2) -> str:
        """Return the derivation as plain text, expansions up to `order`."""
        lines = [f"{self.mechanism!r}, {self.direction} direction"]
        for title, rows in self.sections(order):
            lines += ["", title]
            for left, right in rows:
                value = right if isinstance(right, str) else _text_value(right)
                lines.append(f"  {_text_name(left)} = {value}")
        return "\n".join(lines)

    def to_latex(self, order: int = 2) -> str:
        """Return the derivation as LaTeX, an aligned display."""
        lines = []
        for _, rows in self.sections(order):
            for left, right in rows:
                formula = rf"\text{{{right}}}" if isinstance(right, str) else sp.latex(right)
                lines.append(f"{latex_name(left)} &= {formula}")
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def to_mathml(self, order: int = 2) -> str:
        """Return the derivation as MathML, one formula a line."""
        return "\n".join(_mathml(row) for _, rows in self.sections(order) for row in rows)

    def _repr_latex_(self) -> str:
        return f"$$\n{self.to_latex(order=1)}\n$$"

    def _repr_html_(self) -> str:
        title = escape(f"{self.mechanism!r}, {self.direction} direction")
        parts = [f"<p><b>{title}</b></p>"]
        for heading, rows in self.sections(1):
            lines = "".join(f"<div>{_mathml(row)}</div>" for row in rows)
            parts.append(f"<p>{escape(heading)}</p>{lines}" if rows else "")
        return f'<div class="symdp-derivation">{"".join(parts)}</div>'


# What the dominating pair of a sampling scheme rests on.
_SCHEMES = {
    "poisson": ("SPA Lemma 3", "IND Lemma 8"),
    "without_replacement": ("BBG Thm 8", "ZDW"),
    "with_replacement": ("BBG Thm 10", "ZDW"),
    "truncated_poisson": ("ZDW",),
    "random_allocation": ("FS", "BB"),
}


def citations(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the sources of a derivation: its mechanism, its sampling, the two expansions."""
    own = (mechanism.citation,) if mechanism.citation else ()
    scheme = _SCHEMES[mechanism.sampling.scheme] if mechanism.sampling else ()
    return (*own, *scheme, "SPA (28)", "SPA (59)", "EA Prop 3.2")
