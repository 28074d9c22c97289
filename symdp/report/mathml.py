"""Formulas of a page as MathML; the printer is shared with derivations."""

from __future__ import annotations

import re

import sympy as sp

from symdp.emit.mathml import mathml as _mathml

__all__ = ["mathml"]

_INDEXED = re.compile(r"<mi>([A-Za-z]+)_(\d+)</mi>")


def mathml(expression: sp.Basic) -> str:
    """Return the MathML of an expression, names such as m_1 of functions with their index below.

    >>> mathml(sp.Function("m_1")(sp.Symbol("t")))[:42]
    '<mrow><msub><mi>m</mi><mn>1</mn></msub><mr'
    """
    return _INDEXED.sub(r"<msub><mi>\1</mi><mn>\2</mn></msub>", _mathml(expression))
