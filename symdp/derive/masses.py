"""Probabilities under P of pieces and points: atoms of the loss and mass at infinity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sympy as sp

from symdp.derive.integrate import Integrand, definite
from symdp.derive.log_form import log_form
from symdp.derive.records import Atom, Piece, Point
from symdp.derive.signs import interior_point


def piece_mass(terms: Iterable[sp.Expr], x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """Return ∫ Σ exp(term) over a piece: exact where the table knows it, else left as it is.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> piece_mass([x - sp.log(2)], x, -sp.oo, sp.S.Zero)
    1/2
    """
    at = lower if lower == upper else interior_point(lower, upper)
    total = sp.S.Zero
    for term in terms:
        density = sp.exp(term)
        form = log_form(density, x, at)
        value = definite(Integrand(form, lower, upper, bool(x.is_integer)))
        if value is None:
            kind = sp.Sum if x.is_integer else sp.Integral
            total += kind(density, (x, lower, upper))
        else:
            total += sp.powsimp(value * sp.exp(form.constant), combine="exp")
    return sp.factor_terms(total)


def atoms(pieces: Iterable[Piece], points: Iterable[Point], x: sp.Symbol) -> tuple[Atom, ...]:
    """Return the finite values that the loss takes on flat pieces or single points, with P-masses.

    Equal values are joined.  A strictly monotone loss on integers, every value of which is an
    atom, is not listed value by value.
    """
    masses: dict[sp.Expr, sp.Expr] = {}
    for point in points:
        if not point.loss.is_infinite:
            masses[point.loss] = masses.get(point.loss, sp.S.Zero) + point.p
    for piece in pieces:
        if piece.slope == "constant" and not piece.loss.is_infinite:
            mass = piece_mass(piece.log_p_terms, x, piece.lower, piece.upper)
            masses[piece.loss] = masses.get(piece.loss, sp.S.Zero) + mass
    return tuple(Atom(loss, mass) for loss, mass in masses.items())


def mass_where(
    loss: sp.Expr, pieces: Sequence[Piece], points: Sequence[Point], x: sp.Symbol
) -> sp.Expr:
    """Return P(Q = 0) for the loss oo, or Q(P = 0) for −oo.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> piece = Piece(sp.S.Zero, sp.S.One, -sp.log(4), None, sp.oo, "constant", (-sp.log(4),))
    >>> mass_where(sp.oo, [piece], [], x)
    1/4
    """
    above = loss == sp.oo
    total = sp.S.Zero
    for point in points:
        if point.loss == loss:
            total += point.p if above else point.q
    for piece in pieces:
        if piece.loss == loss:
            terms = piece.log_p_terms if above else piece.log_q_terms
            total += piece_mass(terms, x, piece.lower, piece.upper)
    return sp.factor_terms(total)
