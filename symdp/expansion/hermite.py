"""Probabilists' Hermite polynomials by their recursion, for symbols and numbers alike.

Integrals of an exponential against Hermite functions over a half-line are closed forms: for the
standardised tilted sum, u = (x − c)/√v, the tilted Edgeworth series needs

    J_m = ∫₀^∞ e^{−s x} φ(u) He_m(u) dx/√v,

which depends on b = s√v and on the standardised end point u₀ = −c/√v alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb
from typing import Any

import sympy as sp

from symdp.arguments import whole


def hermite_values(count: int, x: Any) -> list[Any]:
    """Return He₀(x), …, He_{count−1}(x) for a number, an array or an expression x.

    He_{m+1}(x) = x He_m(x) − m He_{m−1}(x), the polynomials of [SPA (64)]:
    (−d/dx)^m φ(x) = φ(x) He_m(x) with φ the standard normal density.
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


def hermite_integrals_from_moments(end_point: float, moments: Sequence[float]) -> list[float]:
    """Return J_m/φ(u₀) for m below the number of moments, from the M_j(b + u₀).

    J_m/φ(u₀) = Σ_j C(m, j) He_{m−j}(u₀) M_j(b + u₀), M_j(a) = ∫₀^∞ w^j e^{−aw − w²/2} dw: by the
    Taylor expansion of He_m(u₀ + w), without the cancellation between powers of b that an
    integration by parts has where b is large [SPA (62)-(64)]. Linear in the moments, so that
    differences of two tilts may be passed as differences of moments.
    """
    count = len(moments)
    hermites = hermite_values(count, end_point)
    return [
        sum(comb(m, j) * hermites[m - j] * moments[j] for j in range(m + 1)) for m in range(count)
    ]
