"""Formulas as presentation MathML that a browser shows without help."""

from __future__ import annotations

from html import escape

import sympy as sp

from symdp.page.layout import layout
from symdp.page.node import EMPTY, Node

_LARGE = "∫∑∏"


def mathml(expression: sp.Basic | Node) -> str:
    """Return the MathML of a formula, without the surrounding math element.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> mathml(x**2)
    '<msup><mi>x</mi><mn>2</mn></msup>'
    >>> mathml(sp.Symbol("lambda_3"))
    '<msub><mi>λ</mi><mn>3</mn></msub>'
    """
    return _written(expression if isinstance(expression, Node) else layout(expression), False)


def _written(node: Node, is_small: bool) -> str:
    """Write a node; in a small one, an exponent, a fraction stands on the line."""
    match node.kind:
        case "row":
            return f"<mrow>{_parts(node.parts, is_small)}</mrow>"
        case "fraction":
            above, below = (_written(part, is_small) for part in node.parts)
            if not is_small:
                return f"<mfrac>{above}{below}</mfrac>"
            if node.parts[0].level == 1:
                above = _bracketed(above)
            below = below if node.parts[1].level == 3 else _bracketed(below)
            slash = '<mo lspace="0" rspace="0">/</mo>'
            return f"<mrow>{above}{slash}{below}</mrow>"
        case "root":
            return f"<msqrt>{_written(node.parts[0], is_small)}</msqrt>"
        case "binomial":
            parts = "".join(_written(part, is_small) for part in node.parts)
            return f'<mrow><mo>(</mo><mfrac linethickness="0">{parts}</mfrac><mo>)</mo></mrow>'
        case "script":
            return _script(node, is_small)
        case "fence":
            left, inside, right = node.parts
            return (
                f"<mrow>{_operator(left.text, 'fence')}{_written(inside, is_small)}"
                f"{_operator(right.text, 'fence')}</mrow>"
            )
        case "cases":
            rows = "".join(
                f"<mtr>{_cell(v)}{_cell(c)}</mtr>" for v, c in (case.parts for case in node.parts)
            )
            brace = '<mo stretchy="true" form="prefix">{</mo>'
            return f"<mrow>{brace}<mtable>{rows}</mtable></mrow>"
        case "words":
            return f"<mtext>{escape(node.text)}</mtext>"
        case "number":
            return f"<mn>{escape(node.text)}</mn>"
        case "name":
            return f"<mi>{escape(node.text)}</mi>"
    return _operator(node.text)


def _parts(parts: tuple[Node, ...], is_small: bool) -> str:
    found = []
    for place, part in enumerate(parts):
        before = parts[place - 1] if place else None
        if before is not None and "words" in (before.kind, part.kind):
            found.append('<mspace width="0.4em"/>')
        word = before.text if before is not None and before.kind == "name" else ""
        if len(word) > 1 and "̄" not in word and part.kind not in {"fence", "operator"}:
            found.append('<mspace width="0.17em"/>')
        is_argument = before is not None and before.kind in {"name", "script"}
        if part.kind == "fence" and is_argument:
            found.append("<mo>\N{FUNCTION APPLICATION}</mo>")
        found.append(_written(part, is_small))
    return "".join(found)


def _script(node: Node, is_small: bool) -> str:
    base, below, above = node.parts
    own = _written(base, is_small)
    parts = [_written(part, True) for part in (below, above) if part != EMPTY]
    if len(parts) == 2:
        tag = "munderover" if base.text in ("∑", "∏") else "msubsup"
    else:
        tag = "msub" if above == EMPTY else "msup"
    return f"<{tag}>{own}{''.join(parts)}</{tag}>"


def _operator(text: str, kind: str = "") -> str:
    text = text.replace(r"\bigl", "").replace(r"\bigr", "")
    if kind == "fence":
        return f'<mo stretchy="true" lspace="0" rspace="0">{escape(text)}</mo>'
    if text == "d":
        return '<mspace width="0.2em"/><mi mathvariant="normal">d</mi>'
    if text in ("(", ")", "[", "]", "|"):
        return f'<mo stretchy="false">{escape(text)}</mo>'
    return f"<mo>{escape(text)}</mo>"


def _bracketed(inside: str) -> str:
    return f"<mrow><mo>(</mo>{inside}<mo>)</mo></mrow>"


def _cell(node: Node) -> str:
    return f'<mtd style="text-align: left">{_written(node, False)}</mtd>'
