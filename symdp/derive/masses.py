"""Probabilities under P of pieces and points: atoms of the loss and mass at infinity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import sympy as sp

from symdp.derive import tidy
from symdp.derive.check import random_values
from symdp.derive.child import compute
from symdp.derive.integrate import Integrand, definite
from symdp.derive.log_form import log_form
from symdp.derive.records import Atom, Piece, Point
from symdp.derive.signs import compare, interior_point
from symdp.interrupt import attempt

_SECONDS = 4.0  # for one integral
_DIGITS = 20  # to which two forms of a mass are compared
_MANY = 64  # values of a loss on integers from which on they are not listed


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
        integrand = Integrand(form, lower, upper, bool(x.is_integer))
        value = attempt(partial(definite, integrand), None, _SECONDS)
        if value is None:
            total += _by_search(density, x, lower, upper)
        else:
            total += sp.powsimp(value * sp.exp(form.constant), combine="exp")
    if total.free_symbols and total.is_rational_function(*total.free_symbols):
        return tidy.factor(tidy.together(total))
    return sp.factor_terms(total)


def _by_search(density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """The integral as SymPy finds it and numbers confirm it, else as it is; sums as they are."""
    if x.is_integer:
        return sp.Sum(density, (x, lower, upper))
    whole = sp.Integral(density, (x, lower, upper))
    found = compute("integrate", (density, x, lower, upper), _SECONDS)
    if found is None or found.has(sp.I, sp.Piecewise, sp.hyper, sp.meijerg):
        return whole
    values = random_values(whole.free_symbols, 2, [str(s.name) for s in whole.free_symbols])

    def gap() -> sp.Expr:
        return abs(sp.N(whole.subs(values), _DIGITS) - sp.N(found.subs(values), _DIGITS))

    size = attempt(gap, sp.oo, _SECONDS)
    return found if size.is_comparable and size < sp.Float(10) ** (5 - _DIGITS) else whole


def atoms(pieces: Iterable[Piece], points: Iterable[Point], x: sp.Symbol) -> tuple[Atom, ...]:
    """Return the finite values that the loss takes on flat pieces or single points, with P-masses.

    Equal values are joined.  On integers every value is an atom: those of a strictly monotone loss
    are listed one by one where they are few, otherwise only as far as they meet a flat piece.
    """
    masses: dict[sp.Expr, sp.Expr] = {}
    for point in points:
        if not point.loss.is_infinite:
            masses[point.loss] = masses.get(point.loss, sp.S.Zero) + point.p
    finite = [piece for piece in pieces if not piece.loss.is_infinite and piece.log_p is not None]
    flat = [piece for piece in finite if piece.slope == "constant"]
    for piece in flat:
        mass = piece_mass(piece.log_p_terms, x, piece.lower, piece.upper)
        masses[piece.loss] = masses.get(piece.loss, sp.S.Zero) + mass
    for piece in finite:
        if x.is_integer and piece.slope != "constant":
            places, is_whole = few_places(piece)
            for place in places:
                value = _value(piece.loss.subs(x, place), masses)
                if is_whole or value in masses:
                    mass = piece_mass(piece.log_p_terms, x, place, place)
                    masses[value] = masses.get(value, sp.S.Zero) + mass
    return tuple(Atom(loss, mass) for loss, mass in masses.items())


def few_places(piece: Piece) -> tuple[list[sp.Expr], bool]:
    """The integers of a piece, and whether they are all of them; otherwise those at its ends."""
    width = piece.upper - piece.lower
    if width.is_Integer and width < _MANY:
        return [piece.lower + k for k in range(int(width) + 1)], True
    ends = [end for end in (piece.lower, piece.upper) if not end.is_infinite]
    return ends, False


def _value(loss: sp.Expr, known: Iterable[sp.Expr]) -> sp.Expr:
    """The loss, or the known value that it equals in another form."""
    same = (value for value in known if value == loss or compare(value, loss) == 0)
    return next(same, sp.expand(loss))


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
