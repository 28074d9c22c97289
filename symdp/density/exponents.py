"""Densities that are sums of e^{ax² + bx + c}: their distribution functions are known."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from symdp.density.records import Piece

Exponent = tuple[sp.Expr, sp.Expr, sp.Expr]  # a, b and c, free of the variable
_MOST_OPERATIONS = 60  # of an exponent that is read


def exponents(piece: Piece, x: sp.Symbol) -> tuple[tuple[Exponent, ...], ...] | None:
    """Return the exponents of the terms of P and of Q, None where one is no quadratic of x."""
    if x.is_integer or piece.log_p is None or piece.log_q is None or piece.place is not None:
        return None
    sides = (
        _all_quadratics(piece.log_p, piece.log_p_terms, x),
        _all_quadratics(piece.log_q, piece.log_q_terms, x),
    )
    if sides[0] is None or sides[1] is None:
        return None
    return sides[0], sides[1]


def _all_quadratics(
    whole: sp.Expr, terms: Sequence[sp.Expr], x: sp.Symbol
) -> tuple[Exponent, ...] | None:
    read = [_quadratic_coefficients(term, x) for term in terms or (whole,)]
    quadratics = tuple(exponent for exponent in read if exponent is not None)
    if len(quadratics) == len(read):
        return quadratics
    return None


def _quadratic_coefficients(exponent: sp.Expr, x: sp.Symbol) -> Exponent | None:
    """Return the coefficients of an exponent."""
    if sp.count_ops(exponent) > _MOST_OPERATIONS:
        return None
    if not all(part.is_polynomial(x) for part in sp.Add.make_args(exponent)):
        return None
    slope = sp.diff(exponent, x)
    bend = sp.expand(sp.diff(slope, x))
    if x in bend.free_symbols:
        return None
    return bend / 2, slope.subs(x, 0), exponent.subs(x, 0)
