"""Quotients of gamma functions in masses on the integers."""

from __future__ import annotations

import sympy as sp
from sympy.utilities.iterables import sift

COUNTING = (sp.gamma, sp.binomial, sp.factorial, sp.RisingFactorial, sp.FallingFactorial)
_MOST_FACTORS = 32  # of a polynomial that a quotient is: each is worked on again and again


def with_fewer_gammas(component: sp.Expr, k: sp.Symbol) -> sp.Expr:
    """Return a mass function whose quotients of gamma functions are polynomials where they can be.

    Those of binomial(k + 4, k) or Γ(k + 1)/Γ(k + 4) are: no two large logarithms cancel then.
    Polynomials of a high degree stay quotients.

    Examples
    --------
    >>> k = sp.Symbol("k", integer=True, nonnegative=True)
    >>> with_fewer_gammas(sp.gamma(k + 3) / sp.factorial(k), k)
    (k + 1)*(k + 2)
    >>> with_fewer_gammas(sp.gamma(k + 300) / sp.factorial(k), k)
    gamma(k + 300)/factorial(k)
    """

    def is_quotient(node: sp.Basic) -> bool:
        return isinstance(node, sp.Mul | sp.binomial) and _gammas(node, k) > 0

    def simplified(node: sp.Expr) -> sp.Expr:
        special, rest = sift(sp.Mul.make_args(node), lambda part: _gammas(part, k) > 0, binary=True)
        product = sp.Mul(*special)
        if has_many_factors(product, k):
            return node
        found = sp.gammasimp(product)
        return sp.Mul(found, *rest) if _gammas(found, k) < _gammas(product, k) else node

    return component.replace(is_quotient, simplified)


def has_many_factors(product: sp.Expr, k: sp.Symbol) -> bool:
    """Return whether a quotient of gamma functions may be a polynomial of a high degree."""
    places = {
        argument.xreplace({k: sp.S.Zero})
        for node in product.atoms(*COUNTING)
        for argument in node.args
        if argument.has(k)
    }
    known = [place for place in places if place.is_Rational]
    return bool(known) and bool(max(known) - min(known) > _MOST_FACTORS)


def _gammas(expression: sp.Expr, k: sp.Symbol) -> int:
    return sum(node.has(k) for node in expression.atoms(*COUNTING))
