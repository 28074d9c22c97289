"""Edgeworth expansions of a standardised sum to every order."""

from __future__ import annotations

from functools import cache

import sympy as sp

from symdp.arguments import whole
from symdp.expansion.graded import graded_expression
from symdp.expansion.hermite import hermite

X = sp.Symbol("x", real=True)


@cache
def standardised_cumulant(j: int) -> sp.Symbol:
    """Return the symbol lambda_j = κ_j/κ₂^{j/2} of the whole sum [SPA (65)]."""
    return sp.Symbol(f"lambda_{j}", real=True)


@cache
def edgeworth_polynomials(order: int) -> tuple[sp.Expr, ...]:
    """Return the polynomials p₁, …, p_order of the Edgeworth expansion of a distribution function.

    E_k(x) = Φ(x) − φ(x) Σ_{j≤k} p_j(x), p_j of order n^{−j/2}: the sum over all partitions of j
    with He_{j+2r−1}(x), as in the expansion behind [EA Prop 3.2].

    Parameters
    ----------
    order
        k, a non-negative integer.

    Returns
    -------
    tuple
        p_1, …, p_k, expanded in x and the symbols lambda_3, …, lambda_{k+2}.

    Examples
    --------
    >>> edgeworth_polynomials(1)
    (lambda_3*x**2/6 - lambda_3/6,)
    """
    whole(order, "order")
    return _polynomials(order, shift=1)


@cache
def edgeworth_density_polynomials(order: int) -> tuple[sp.Expr, ...]:
    """Return the polynomials r₁, …, r_order of the Edgeworth expansion of a density.

    density ≈ φ(x)(1 + Σ_{j≤k} r_j(x)), each h^d of the graded series read as He_d(x) [SPA (64)].
    """
    whole(order, "order")
    return _polynomials(order, shift=0)


def _polynomials(order: int, shift: int) -> tuple[sp.Expr, ...]:
    # Integrating φ·He_d gives −φ·He_{d−1}: the distribution function shifts the degree by one.
    return tuple(
        sp.expand(
            graded_expression(
                grade, standardised_cumulant, lambda degree: hermite(degree - shift, X)
            )
        )
        for grade in range(1, order + 1)
    )
