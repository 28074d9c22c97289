"""Tail constants for people and programs."""

from __future__ import annotations

from typing import Any

import sympy as sp

from symdp.derive.tails.records import Tails


def to_json(tails: Tails) -> list[dict[str, Any]]:
    """Return the constants as dicts of strings and None."""
    return [
        {
            "name": constant.name,
            "symbol": constant.symbol,
            "bounds": constant.bounds,
            "expression": None if constant.expression is None else str(constant.expression),
            "reason": constant.reason or None,
            "arguments": list(constant.arguments),
        }
        for constant in tails
    ]


def rows(tails: Tails) -> list[tuple[str, sp.Expr | str]]:
    """Return the constants that have a formula as symbols with their formulas.

    Examples
    --------
    >>> import symdp
    >>> from symdp.derive import derive
    >>> rows(derive(symdp.mechanisms.gaussian).tails)[-1]
    ('V_3', sqrt(2)*sigma**3*(4 + exp(3/2))*exp(-3/2)/sqrt(pi))
    """
    return [
        (constant.symbol, constant.expression)
        for constant in tails
        if constant.expression is not None
    ]
