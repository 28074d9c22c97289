"""Complete Bell polynomials: the coefficients of the exponential of a power series."""

from __future__ import annotations

from functools import cache
from math import comb

import sympy as sp

from symdp.arguments import whole

Monomial = tuple[int, ...]


@cache
def bell_coefficients(order: int) -> dict[Monomial, int]:
    """Return B_order as a map from the exponents of x₁, …, x_order to integer coefficients.

    exp(Σ_{j≥1} x_j s^j/j!) = Σ_n B_n(x₁, …, x_n) s^n/n!; differentiating both sides by s gives
    B_n = Σ_{j=1}^{n} C(n−1, j−1) x_j B_{n−j}, which is faster than expanding the exponential.

    Parameters
    ----------
    order
        the index n, a non-negative integer.

    Examples
    --------
    >>> bell_coefficients(2) == {(2, 0): 1, (0, 1): 1}
    True
    """
    if order == 0:
        return {(): 1}
    bell: dict[Monomial, int] = {}
    for j in range(1, order + 1):
        factor = comb(order - 1, j - 1)
        for exponents, coefficient in bell_coefficients(order - j).items():
            raised = [*exponents, *(0 for _ in range(j))]
            raised[j - 1] += 1
            key = tuple(raised)
            bell[key] = bell.get(key, 0) + factor * coefficient
    return bell


def complete_bell(order: int, arguments: tuple[sp.Expr, ...] | None = None) -> sp.Expr:
    """Return the complete Bell polynomial B_order.

    B_n(x₁, …, x_n) = n! [s^n] exp(Σ_j x_j s^j/j!), the polynomial by which moments follow from
    cumulants, as used in [SPA (55)].

    Parameters
    ----------
    order
        n, a non-negative integer.
    arguments
        x₁, …, x_n; the symbols x_1, …, x_n where left out.

    Examples
    --------
    >>> complete_bell(3)
    x_1**3 + 3*x_1*x_2 + x_3
    >>> complete_bell(4, (0, 0, sp.Symbol("F_3"), sp.Symbol("F_4")))
    F_4
    """
    whole(order, "order")
    if arguments is None:
        arguments = tuple(sp.Symbol(f"x_{j}") for j in range(1, order + 1))
    return sp.Add(
        *(
            coefficient * sp.Mul(*(x**power for x, power in zip(arguments, exponents, strict=True)))
            for exponents, coefficient in bell_coefficients(order).items()
        )
    )
