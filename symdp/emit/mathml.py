"""Formulas as presentation MathML that a browser shows without help."""

from __future__ import annotations

import html
import re
from typing import Any

import sympy as sp
from sympy.printing.mathml import MathMLPresentationPrinter
from sympy.printing.precedence import PRECEDENCE

_ENTITY = re.compile(r"&([A-Za-z]\w*);")
_KEPT = {"lt", "gt", "amp", "quot"}  # what XML itself needs
_INDEXED = re.compile(r"<mi>([A-Za-z]+)_(\d+)</mi>")  # the name m_1 of a function
_TOWER = re.compile(r"<msub><msup>(<mi>\w+</mi>)(<mn>\d+</mn>)</msup>(<mi>\w+</mi>)</msub>")


def mathml(expression: sp.Basic) -> str:
    """Return the MathML of an expression, without the surrounding math element.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> mathml(x**2)
    '<msup><mi>x</mi><mn>2</mn></msup>'
    >>> mathml(sp.Function("m_1")(x))[:42]
    '<mrow><msub><mi>m</mi><mn>1</mn></msub><mr'
    """
    text = str(_Printer().doprint(expression))
    text = text.replace("<mo><</mo>", "<mo>&lt;</mo>").replace("<mo>></mo>", "<mo>&gt;</mo>")
    text = text.replace("<mo>-</mo>", "<mo>−</mo>")
    text = _INDEXED.sub(r"<msub><mi>\1</mi><mn>\2</mn></msub>", text)
    return _ENTITY.sub(_character, text)


_NAMES = {
    "ell": "ℓ", "delta": "δ", "epsilon": "ε", "tau": "τ", "eta": "η", "nu": "ν", "alpha": "α",
    "sigma": "σ", "lambda": "λ", "mu": "μ", "beta": "β", "infty": "∞", "inf": "inf", "sup": "sup",
    "min": "min", "max": "max", "Lambda": "Λ", "psi": "ψ", "phi": "φ", "rho": "ρ", "kappa": "κ",
    "pi": "π", "chi": "χ", "Phi": "Φ", "theta": "θ", "omega": "ω", "varepsilon": "ε",
    "varphi": "φ", "le": "≤", "leq": "≤", "ge": "≥", "in": "∈",
}  # fmt: skip
_NAME_TOKEN = re.compile(r"\\([A-Za-z]+)\*?|([A-Za-z]+|\d+(?:\.\d+)?)|(\S)|\s+")
_UPRIGHT = {"mathrm", "text", "operatorname"}


def mathml_of_name(latex: str) -> str:
    r"""Return the MathML of a formula's short left side that is written in LaTeX.

    Letters, numbers, signs, Greek letters, ^, _, braces and upright words are understood; another
    command appears as its own name.

    Examples
    --------
    >>> mathml_of_name(r"t_-")
    '<mrow><msub><mi>t</mi><mo>−</mo></msub></mrow>'
    >>> mathml_of_name(r"\mathrm{MSD}_1")
    '<mrow><msub><mrow><mi>MSD</mi></mrow><mn>1</mn></msub></mrow>'
    """
    # An exponent and an index stand one above the other.
    return _TOWER.sub(r"<msubsup>\1\3\2</msubsup>", _NameReader(latex).row())


class _NameReader:
    def __init__(self, latex: str) -> None:
        self._tokens = [found for found in _NAME_TOKEN.finditer(latex) if found.group().strip()]
        self._place = 0

    def row(self) -> str:
        parts: list[str] = []
        while self._place < len(self._tokens):
            token = self._tokens[self._place].group()
            if token == "}":
                break
            if token in "_^":
                self._place += 1
                base = parts.pop() if parts else "<mrow></mrow>"
                tag = "msub" if token == "_" else "msup"
                parts.append(f"<{tag}>{base}{self._atom()}</{tag}>")
            else:
                parts.append(self._atom())
        return f"<mrow>{''.join(parts)}</mrow>"

    def _atom(self) -> str:
        if self._place >= len(self._tokens):
            return "<mrow></mrow>"
        found = self._tokens[self._place]
        self._place += 1
        command, word, sign = found.groups()
        if command in _UPRIGHT:
            return self._atom()
        if command:
            return f"<mi>{_NAMES.get(command, command)}</mi>"
        if word:
            return f"<mn>{word}</mn>" if word[0].isdigit() else f"<mi>{word}</mi>"
        if sign == "{":
            inside = self.row()
            self._place += 1  # the closing brace
            return inside
        return f"<mo>{'−' if sign == '-' else html.escape(sign)}</mo>"


def _character(found: re.Match[str]) -> str:
    return found.group() if found.group(1) in _KEPT else html.unescape(found.group())


class _Printer(MathMLPresentationPrinter):  # type: ignore[misc]
    """SymPy's printer, with cases in a table, exponentials above the line, and names escaped."""

    _in_exponent = False  # where a fraction is written a/b, since a stacked one is too small

    def _node(self, tag: str, *children: Any) -> Any:
        node = self.dom.createElement(tag)
        for child in children:
            node.appendChild(self.dom.createTextNode(child) if isinstance(child, str) else child)
        return node

    def _print_Symbol(self, sym: sp.Symbol, style: str = "plain") -> Any:
        return super()._print_Symbol(sp.Symbol(html.escape(sym.name)), style)

    def _print_Mul(self, expr: sp.Mul) -> Any:
        """Print a product: e^{−x} stays an exponential, where SymPy would divide by e^x."""
        if expr.could_extract_minus_sign():
            return self._node("mrow", self._node("mo", "−"), self.parenthesize(-expr, 0))
        above: list[sp.Expr] = []
        below: list[sp.Expr] = []
        for factor in sp.Mul.make_args(expr):
            base, power = factor.as_base_exp()
            if factor.is_Rational:
                above += [sp.Integer(factor.p)] if factor.p != 1 else []
                below += [sp.Integer(factor.q)] if factor.q != 1 else []
            elif power.could_extract_minus_sign() and base != sp.E:
                below.append(base**-power)
            else:
                above.append(factor)
        if not below:
            return self._product(above)
        if self._in_exponent:
            divisor = self._product(below)
            if len(below) > 1 or below[0].is_Add:
                divisor = self._node("mrow", self._l_paren(), divisor, self._r_paren())
            if len(above) == 1:
                dividend = self.parenthesize(above[0], PRECEDENCE["Mul"])
            else:
                dividend = self._product(above)
            return self._node("mrow", dividend, self._slash(), divisor)
        return self._node("mfrac", self._product(above), self._product(below))

    def _print_Rational(self, e: sp.Rational) -> Any:
        if not self._in_exponent or e.q == 1:
            return super()._print_Rational(e)
        sign = [self._node("mo", "−")] if e.p < 0 else []
        ends = (self._node("mn", str(number)) for number in (abs(e.p), e.q))
        return self._node("mrow", *sign, next(ends), self._slash(), next(ends))

    def _print_Pow(self, e: sp.Pow) -> Any:
        if not self._in_exponent or not e.exp.could_extract_minus_sign():
            return super()._print_Pow(e)
        divisor = self.parenthesize(e.base**-e.exp, PRECEDENCE["Mul"])
        return self._node("mrow", self._node("mn", "1"), self._slash(), divisor)

    def _slash(self) -> Any:
        slash = self._node("mo", "/")
        slash.setAttribute("lspace", "0")
        slash.setAttribute("rspace", "0")
        return slash

    def _print_exp(self, expr: sp.exp) -> Any:
        outer, self._in_exponent = self._in_exponent, True
        try:
            return self._node("msup", self._node("mi", "e"), self._print(expr.args[0]))
        finally:
            self._in_exponent = outer

    def _product(self, factors: list[sp.Expr]) -> Any:
        if len(factors) <= 1:
            return self._print(factors[0] if factors else sp.S.One)
        row = self._node("mrow")
        for place, factor in enumerate(sorted(factors, key=_reading_order)):
            if place:
                # 2·2ᵗ must not read as 22ᵗ.
                base, power = factor.as_base_exp()
                digit = base.is_Number and power != sp.S.Half
                row.appendChild(self._node("mo", "⋅" if digit else "\N{INVISIBLE TIMES}"))
            row.appendChild(self.parenthesize(factor, PRECEDENCE["Mul"]))
        return row

    def _print_Piecewise(self, expr: sp.Piecewise) -> Any:
        rows = []
        for value, condition in expr.args:
            case = (
                self._node("mtext", "otherwise") if condition == sp.true else self._print(condition)
            )
            rows.append(self._node("mtr", self._cell(self._print(value)), self._cell(case)))
        brace = self._l_brace()
        brace.setAttribute("stretchy", "true")
        brace.setAttribute("form", "prefix")
        return self._node("mrow", brace, self._node("mtable", *rows))

    def _cell(self, content: Any) -> Any:
        cell = self._node("mtd", content)
        cell.setAttribute("style", "text-align: left")
        return cell

    def _print_Tuple(self, expr: sp.Tuple) -> Any:
        return self._paren_comma_separated(*expr.args)

    def _print_besseli(self, expr: sp.besseli) -> Any:
        return self._bessel("I", expr)

    def _print_besselk(self, expr: sp.besselk) -> Any:
        return self._bessel("K", expr)

    def _bessel(self, letter: str, expr: sp.Function) -> Any:
        name = self._node("msub", self._node("mi", letter), self._print(expr.order))
        return self._node("mrow", name, self._paren_comma_separated(expr.argument))


def _reading_order(factor: sp.Expr) -> tuple[int, str]:
    """Numbers, roots, symbols, then sums, then functions."""
    if factor.is_number:
        return (0 if factor.is_Rational else 1), str(factor)
    base = factor.as_base_exp()[0]
    if base.is_Symbol:
        return 2, str(factor)
    return (3 if base.is_Add else 4), str(factor)
