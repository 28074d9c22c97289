"""Probabilists' Hermite polynomials by their recursion, for symbols and numbers alike."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sp

from symdp.arguments import whole


def hermite_values(count: int, x: Any) -> list[Any]:
    """Return He₀(x), …, He_{count−1}(x) for a number, an array or an expression x.

    He_{m+1}(x) = x He_m(x) − m He_{m−1}(x), the polynomials of [SPA (64)]:
    (−d/dx)^m φ(x) = φ(x) He_m(x) with φ the standard normal density.

    Parameters
    ----------
    count
        how many, a positive integer.
    x
        where: anything that can be multiplied and subtracted.

    Examples
    --------
    >>> hermite_values(5, 2.0)
    [1.0, 2.0, 3.0, 2.0, -5.0]
    """
    values = [x * 0 + 1, x]
    for m in range(1, count - 1):
        values.append(x * values[m] - m * values[m - 1])
    return values[:count]


@cache
def hermite(degree: int, x: sp.Symbol) -> sp.Expr:
    """Return the expanded Hermite polynomial He_degree(x).

    Parameters
    ----------
    degree
        a non-negative integer.
    x
        the variable, a symbol.

    Examples
    --------
    >>> hermite(4, sp.Symbol("x"))
    x**4 - 6*x**2 + 3
    """
    whole(degree, "degree")
    return hermite_values(degree + 1, sp.Poly(x, x))[degree].as_expr()
