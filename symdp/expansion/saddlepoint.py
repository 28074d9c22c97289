"""The method of steepest descent to every order, in the derivatives of the exponent."""

from __future__ import annotations

from functools import cache

import sympy as sp

from symdp.arguments import whole
from symdp.expansion.graded import graded_expression


@cache
def F(j: int) -> sp.Symbol:
    """Return the symbol F_j of the j-th derivative of the exponent at the saddle point.

    F(z) = K(z) − εz − log z − log(1+z) [SPA (49)]; F_2 is positive at the saddle point, the other
    derivatives are real.
    """
    if j == 2:
        return sp.Symbol(f"F_{j}", positive=True)
    return sp.Symbol(f"F_{j}", real=True)


def gaussian_images(count: int) -> list[int]:
    """Return what h⁰, …, h^{count−1} become along the line: moments of i·N(0, 1).

    E[(iY)^{2m}] = (−1)^m (2m−1)!! and zero at odd powers, the factors of [SPA (59)].
    """
    images = [1, 0]
    for d in range(2, count):
        images.append(-(d - 1) * images[d - 2])
    return images[:count]


@cache
def saddlepoint_corrections(order: int) -> tuple[sp.Expr, ...]:
    """Return the corrections of steepest descent at n⁻¹, …, n^{−order}.

    With Y ~ N(0, 1/F₂), δ = e^F/√(2πF₂) · E[exp(Σ_{j≥3} F_j (iY)^j/j!)]; the k-th correction holds
    every term of relative order n^{−k}, that is all products of r derivatives whose Gaussian moment
    is of order 2m with m − r = k [SPA (55)-(59), sorted by order].

    Parameters
    ----------
    order
        how many orders, a non-negative integer.

    Returns
    -------
    tuple
        `order` expressions in the symbols `F(j)`, j up to 2·order + 2.

    Examples
    --------
    >>> saddlepoint_corrections(1)
    (F_4/(8*F_2**2) - 5*F_3**2/(24*F_2**3),)
    """
    whole(order, "order")
    images = gaussian_images(6 * order + 1)

    def image(degree: int) -> sp.Expr:
        return sp.Integer(images[degree]) / F(2) ** sp.Rational(degree, 2)

    return tuple(graded_expression(2 * k, F, image) for k in range(1, order + 1))


def saddlepoint_series(order: int) -> sp.Expr:
    """Return the factor 1 + corrections that turns MSD₀ into MSD_order.

    MSD_k = e^F/√(2πF₂) · (1 + Σ_{i≤k} correction_i); k = 0 is [SPA (60)], k = 1 is [SPA (61)].

    Parameters
    ----------
    order
        k, a non-negative integer.

    Examples
    --------
    >>> saddlepoint_series(0), len(saddlepoint_series(2).args)
    (1, 8)
    """
    whole(order, "order")
    return sp.Integer(1) + sp.Add(*saddlepoint_corrections(order))
