"""A derivation for people and programs: text, LaTeX, MathML, HTML, JSON, and its sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

import sympy as sp

from symdp.derive import tails
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.derive.derivation import Derivation
    from symdp.derive.pld import LossLaw

SCHEMA = "symdp/derivation/1"
_DIGITS = 12
_LONG = 60
_BRIEF = 98  # columns of a line of three that stand for a derivation

# SymPy takes K^{(2)}(t), which is one name here, for a power.
_DERIVATIVE = re.compile(r"<mi>\{\((\d+)\)\}\((\w+)\)</mi></msup>")
_DERIVATIVE_NAME = (
    r"<mrow><mo>(</mo><mn>\1</mn><mo>)</mo></mrow></msup>"
    r"<mrow><mo>(</mo><mi>\2</mi><mo>)</mo></mrow>"
)

# The left side of a formula in LaTeX, or in parts of which some are expressions; and the right.
_Left: TypeAlias = str | tuple[str | sp.Basic, ...]
_Row: TypeAlias = tuple[_Left, sp.Basic | str]


def plain(expression: sp.Expr) -> str:
    """Return an expression as text; rationals that stand for irrational places are rounded.

    Examples
    --------
    >>> plain(sp.Rational(1, 3)), plain(sp.Rational(10**40 + 1, 3 * 10**40))
    ('1/3', '0.333333333333')
    """
    return str(_rounded(expression))


def _rounded(expression: sp.Basic) -> sp.Basic:
    return expression.xreplace(
        {
            number: sp.Float(number, _DIGITS)
            for number in expression.atoms(sp.Rational)
            if len(str(number)) > _LONG
        }
    )


def to_json(derivation: Derivation, order: int) -> dict[str, Any]:
    """Return everything that was derived as dicts, lists, strings and None.

    The texts are for people. "expressions" holds the same formulas for programs, each under the
    path of its text, so that `from_json` gives back equal expressions and symbols.
    """
    from symdp.emit.json import write_expressions

    d, cgf = derivation, derivation.cgf
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "name": d.mechanism.name,
        "direction": d.direction,
        "variable": d.variable.name,
        "parameters": {p.name: p.domain for p in d.mechanism.declared},
        "values": {name: str(value) for name, value in d.mechanism.values.items()},
        "assumptions": list(d.mechanism.assumptions),
        "loss": plain(d.loss),
        "pieces": [
            {
                "lower": plain(piece.lower),
                "upper": plain(piece.upper),
                "loss": plain(piece.loss),
                "slope": piece.slope,
            }
            for piece in d.pieces
        ],
        "points": [
            {"value": str(p.value), "p": str(p.p), "q": str(p.q), "loss": str(p.loss)}
            for p in d.points
        ],
        "loss_range": None if d.loss_range is None else [plain(end) for end in d.loss_range],
        "loss_range_seen": None
        if d.numeric_range is None
        else [str(end) for end in d.numeric_range],
        "atoms": [{"loss": plain(atom.loss), "mass": plain(atom.mass)} for atom in d.atoms],
        "mass_at_infinity": plain(d.mass_at_infinity),
        "dominating_direction": {
            "value": d.dominating_direction.value,
            "proof": d.dominating_direction.proof,
        },
        "inverse": [None if back is None else plain(back) for _, back in d.inverse],
        "pld_density": _law(d.pld_density),
        "pld_cdf": _law(d.pld_cdf),
        "cgf": {
            "tilt": cgf.tilt.name,
            "form": cgf.form,
            "expression": None if cgf.expression is None else plain(cgf.expression),
            "domain": None if cgf.domain is None else [plain(end) for end in cgf.domain],
            "domain_is_numeric": cgf.domain_is_numeric,
            "checked_at": [str(at) for at in cgf.checked_at],
            "removable": [str(at) for at in cgf.removable],
            "reason": cgf.reason or None,
        },
        "cumulants": {str(j): str(d.cumulant(j)) for j in range(1, order + 2)},
        "msd": {str(k): str(d.msd(k)) for k in range(order + 1)},
        "msd_terms": {str(f): str(own) for f, own in d.saddle_terms(order, substitute=False)},
        "edgeworth": {str(k): str(d.edgeworth(k)) for k in range(order + 1)},
        "tails": tails.to_json(d.tails),
    }
    return document | {"expressions": write_expressions(dict(_formulas(derivation, order)))}


def _law(law: LossLaw) -> dict[str, str | None]:
    return {
        "loss": law.loss.name,
        "expression": None if law.expression is None else plain(law.expression),
        "reason": law.reason or None,
    }


def _formulas(derivation: Derivation, order: int) -> Iterator[tuple[str, sp.Basic]]:
    """Every expression of the JSON with the path of its text."""
    d, cgf = derivation, derivation.cgf
    yield "variable", d.variable
    yield from ((f"parameters.{p.name}", p.symbol) for p in d.mechanism.declared)
    yield from ((f"values.{name}", value) for name, value in d.mechanism.values.items())
    yield "loss", d.loss
    for i, piece in enumerate(d.pieces):
        for name in ("lower", "upper", "loss"):
            yield f"pieces.{i}.{name}", getattr(piece, name)
    for i, point in enumerate(d.points):
        for name in ("value", "p", "q", "loss"):
            yield f"points.{i}.{name}", getattr(point, name)
    for i, end in enumerate(d.loss_range or ()):
        yield f"loss_range.{i}", end
    for i, atom in enumerate(d.atoms):
        yield f"atoms.{i}.loss", atom.loss
        yield f"atoms.{i}.mass", atom.mass
    yield "mass_at_infinity", d.mass_at_infinity
    for i, (_, back) in enumerate(d.inverse):
        if back is not None:
            yield f"inverse.{i}", back
    for name, law in (("pld_density", d.pld_density), ("pld_cdf", d.pld_cdf)):
        yield f"{name}.loss", law.loss
        if law.expression is not None:
            yield f"{name}.expression", law.expression
    yield "cgf.tilt", cgf.tilt
    if cgf.expression is not None:
        yield "cgf.expression", cgf.expression
    for name, several in (
        ("domain", cgf.domain or ()),
        ("checked_at", cgf.checked_at),
        ("removable", cgf.removable),
    ):
        yield from ((f"cgf.{name}.{i}", one) for i, one in enumerate(several))
    yield from ((f"cumulants.{j}", d.cumulant(j)) for j in range(1, order + 2))
    yield from ((f"msd.{k}", d.msd(k)) for k in range(order + 1))
    yield from ((f"msd_terms.{f}", own) for f, own in d.saddle_terms(order, substitute=False))
    yield from ((f"edgeworth.{k}", d.edgeworth(k)) for k in range(order + 1))


def from_json(document: object) -> dict[str, sp.Basic]:
    """Return the expressions of a document that `to_json` made, equal to those it was made from.

    The whitelisting reader of `symdp.emit.json` builds them; no text is parsed or run.

    Parameters
    ----------
    document : what `json.loads` gave

    Returns
    -------
    dict
        From the path of a text in the document, such as "cgf.expression" or "pieces.0.loss", to
        its expression.

    Raises
    ------
    InputError
        If the document is of another schema, or broken.

    Examples
    --------
    >>> import json, symdp
    >>> found = symdp.derive(symdp.mechanisms.gaussian)
    >>> read = from_json(json.loads(json.dumps(found.to_json(order=1))))
    >>> read["loss"] == found.loss, read["parameters.sigma"].is_positive
    (True, True)
    """
    from symdp.emit.json import read_expressions

    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or schema != SCHEMA:
        raise InputError(f"the document's schema is {schema!r:.40}, not {SCHEMA!r}")
    return read_expressions(document.get("expressions"))


def _rows(derivation: Derivation, order: int) -> list[tuple[str, list[_Row]]]:
    """Titles with their formulas: left side as LaTeX, right side as expression or words."""
    d, cgf = derivation, derivation.cgf
    x, t = sp.latex(d.variable), sp.latex(cgf.tilt)
    loss: list[_Row] = [(r"\mathrm{assumed}", text) for text in d.mechanism.assumptions]
    loss.append((rf"\ell({x})", d.loss))
    if d.loss_range is not None:
        loss += [(r"\inf \ell", d.loss_range[0]), (r"\sup \ell", d.loss_range[1])]
    elif d.numeric_range is not None:
        loss += [
            (r"\inf \ell", numeric_end(d.numeric_range[0])),
            (r"\sup \ell", numeric_end(d.numeric_range[1])),
        ]
    loss += [((r"P(\ell =", atom.loss, ")"), atom.mass) for atom in d.atoms]
    if d.mass_at_infinity != 0:
        loss.append((r"\delta_\infty = P(Q = 0)", d.mass_at_infinity))
    law = _law_rows(d)
    transform: list[_Row] = [
        (f"K({t})", f"numerically: {cgf.reason}" if cgf.expression is None else cgf.expression)
    ]
    if cgf.domain is not None:
        ends = [numeric_end(end) if cgf.domain_is_numeric else end for end in cgf.domain]
        transform += [(f"{t}_-", ends[0]), (f"{t}_+", ends[1])]
    transform += [(f"K^{{({j})}}({t})", d.cumulant(j)) for j in range(1, order + 2)]
    series: list[_Row] = [(rf"\mathrm{{MSD}}_{k}", d.msd(k)) for k in range(order + 1)]
    series += [
        (sp.latex(f), own.xreplace(_named(t, order)))
        for f, own in d.saddle_terms(order, substitute=False)
    ]
    series += [(f"E_{k}(x)", d.edgeworth(k)) for k in range(1, order + 1)]
    return [
        ("Privacy loss", loss),
        ("Law of the loss", law),
        ("Cumulant generating function", transform),
        ("Series", series),
        ("Tails", list(tails.rows(d.tails))),
    ]


def _named(tilt: str, order: int) -> dict[sp.Basic, sp.Basic]:
    """κ_j as K^(j)(t), the name that its own row has."""
    names = [f"K({tilt})", *(f"K^{{({j})}}({tilt})" for j in range(1, 2 * order + 3))]
    return {
        sp.Symbol(f"kappa_{j}", real=True): sp.Symbol(name, real=True)
        for j, name in enumerate(names)
    }


def numeric_end(end: sp.Expr) -> str:
    """Return an end that numbers show, in words.

    Examples
    --------
    >>> numeric_end(sp.Rational(3, 2)), numeric_end(-sp.oo)
    ('1.50000, as numbers show it', '-∞, as numbers show it')
    """
    number = end if end.is_infinite else sp.Float(end, 6)
    return f"{str(number).replace('oo', '∞')}, as numbers show it"


def _law_rows(d: Derivation) -> list[_Row]:
    """The inverse of the loss, its density and distribution function, the larger direction."""
    s = sp.latex(d.pld_density.loss)
    moving = [(piece, back) for piece, back in d.inverse if piece.slope != "constant"]
    rows: list[_Row] = []
    for piece, back in moving:
        left: _Left = rf"\ell^{{-1}}({s})"
        if len(moving) > 1:
            ends = (piece.lower, ",", piece.upper, ")")
            left = (rf"{left}, {sp.latex(d.variable)} \in (", *ends)
        rows.append((left, "no closed form" if back is None else back))
    for name, law in ((r"\omega", d.pld_density), (r"F", d.pld_cdf)):
        rows.append((f"{name}({s})", law.reason if law.expression is None else law.expression))
    larger = d.dominating_direction
    rows.append((r"\mathrm{larger}", f"{larger.value}: {larger.proof}"))
    return rows


_WORDS = str.maketrans("", "", "{}\\$")


def to_text(derivation: Derivation, order: int) -> str:
    """Return the derivation as lines of plain text."""
    lines = [f"{derivation.mechanism!r}, {derivation.direction} direction"]
    for title, rows in _rows(derivation, order):
        lines += ["", title]
        for left, right in rows:
            value = right if isinstance(right, str) else _text_value(right)
            lines.append(f"  {_text_name(left)} = {value}")
    return "\n".join(lines)


def in_brief(derivation: Derivation) -> str:
    """Return three lines: what was derived, the loss, and K if it was asked for already.

    Examples
    --------
    >>> import symdp
    >>> symdp.derive(symdp.mechanisms.gaussian)
    <Derivation of gaussian(sigma), remove direction
      ell(x) = (2*x - 1)/(2*sigma**2)
      K(t): ask for .cgf>
    """
    d = derivation
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


def _text_name(left: _Left) -> str:
    parts = (left,) if isinstance(left, str) else left
    words = []
    for part in parts:
        if isinstance(part, str):
            plain_letters = part.replace(r"\mathrm", "").replace(r"\ell^{-1}", "inverse")
            plain_letters = plain_letters.replace("varepsilon", "epsilon")  # as in the formulas
            words.append(plain_letters.replace("^", "").translate(_WORDS))
        else:
            words.append(plain(part))
    return _closed_up(words)


def _closed_up(parts: list[str]) -> str:
    return " ".join(parts).replace(" )", ")").replace(" ,", ",").replace("( ", "(")


def _latex_name(left: _Left) -> str:
    parts = (left,) if isinstance(left, str) else left
    return _closed_up([p if isinstance(p, str) else sp.latex(p) for p in parts])


def to_latex(derivation: Derivation, order: int) -> str:
    """Return the derivation as one aligned display."""
    lines = []
    for _, rows in _rows(derivation, order):
        for left, right in rows:
            formula = rf"\text{{{right}}}" if isinstance(right, str) else sp.latex(right)
            lines.append(f"{_latex_name(left)} &= {formula}")
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def to_mathml(derivation: Derivation, order: int) -> str:
    """Return the derivation as MathML elements, one formula a line."""
    return "\n".join(_mathml(row) for _, rows in _rows(derivation, order) for row in rows)


def _mathml(row: _Row) -> str:
    from symdp.emit.mathml import mathml, mathml_of_name

    left, right = row
    parts = (left,) if isinstance(left, str) else left
    name = "".join(mathml_of_name(p) if isinstance(p, str) else mathml(_rounded(p)) for p in parts)
    value = f"<mtext>{escape(right)}</mtext>" if isinstance(right, str) else mathml(_rounded(right))
    value = _DERIVATIVE.sub(_DERIVATIVE_NAME, value)
    return f'<math displaystyle="true"><mrow>{name}<mo>=</mo>{value}</mrow></math>'


def to_html(derivation: Derivation, order: int) -> str:
    """Return the derivation as a piece of HTML: headings, and formulas in MathML."""
    title = escape(f"{derivation.mechanism!r}, {derivation.direction} direction")
    parts = [f"<p><b>{title}</b></p>"]
    for heading, rows in _rows(derivation, order):
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


def citations(derivation: Derivation) -> tuple[str, ...]:
    """Return the sources of a derivation: its mechanism, its sampling, the two expansions."""
    mechanism = derivation.mechanism
    own = (mechanism.citation,) if mechanism.citation else ()
    scheme = _SCHEMES[mechanism.sampling.scheme] if mechanism.sampling else ()
    return (*own, *scheme, "SPA (28)", "SPA (59)", "EA Prop 3.2")
