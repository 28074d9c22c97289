"""Moments of one step's loss under P in closed form, where its CGF has none.

On a piece where ℓ is a polynomial, E ℓʲ is made of ∫ xᵏP dx, the k-th derivative by β of
∫ e^{βx}P dx, which the table of integrals knows of normal and exponential pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import mpmath
import sympy as sp

from symdp.density.check import parameters_of, with_values
from symdp.density.integrate import definite
from symdp.density.normal_form import Integrand, log_form
from symdp.density.pieces import pieces
from symdp.density.signs import interior_point, random_values
from symdp.model import tidy

if TYPE_CHECKING:
    from symdp.density.records import Piece
    from symdp.model.pair import Pair

_LONGEST = 130  # operations of a moment that a person reads
_MOST_DEGREE = 2  # of a loss, whose j-th power is integrated
_ROUNDS = 2  # random values of parameters
_DIGITS = 25
_TOLERANCE = mpmath.mpf(10) ** -15  # of a moment and of one of |ℓ|ʲ, relative


@lru_cache(maxsize=64)
def moment_at_zero(pair: Pair, order: int, below_one: tuple[str, ...] = ()) -> sp.Expr | None:
    """Return E_P ℓʲ where every loss is finite and a short formula gives it, else None.

    It is compared with a quadrature at random values of the parameters.
    """
    if pair.support.kind != "interval" or pair.alternatives:
        return None
    total = sp.S.Zero
    for piece in pieces(pair):
        if piece.log_p is None:
            continue
        part = _of_piece(piece, order, pair.variable)
        if part is None:
            return None
        total += part
    formula = _collected(total)
    if sp.count_ops(formula) > _LONGEST or not _is_checked(formula, pair, order, below_one):
        return None
    return formula


def _of_piece(piece: Piece, order: int, x: sp.Symbol) -> sp.Expr | None:
    """Return ∫ ℓʲ P over a piece."""
    assert piece.log_p is not None
    if piece.log_q is None or not piece.loss.is_polynomial(x):
        return None
    if piece.place is not None:  # an atom
        return sp.exp(piece.log_p) * piece.loss**order
    loss = sp.Poly(piece.loss, x)
    if loss.degree() > _MOST_DEGREE:
        return None
    # Analytic at 0, where it is put to 0; of a sign with which an infinite piece has an integral.
    beta = (
        sp.Dummy("beta", negative=True) if piece.upper == sp.oo else sp.Dummy("beta", positive=True)
    )
    generating = _tilted_mass(piece, x, beta)
    if generating is None:
        return None
    total = sp.S.Zero
    for (power,), coefficient in (loss**order).terms():
        total += coefficient * sp.diff(generating, beta, power).subs(beta, 0)
    return None if total.has(sp.nan, sp.zoo) else total


def _tilted_mass(piece: Piece, x: sp.Symbol, beta: sp.Symbol) -> sp.Expr | None:
    """Return ∫ e^{βx} P(x) dx over a piece, None where the table does not know it."""
    inside = interior_point(piece.lower, piece.upper)
    total = sp.S.Zero
    for term in piece.log_p_terms:
        form = log_form(sp.exp(term + beta * x), x, inside)
        value = definite(Integrand(form, piece.lower, piece.upper, False))
        if value is None:
            return None
        total += value * sp.exp(form.constant)
    return total


def _collected(total: sp.Expr) -> sp.Expr:
    """Return a sum by its exponentials and error functions, each with one factor.

    What several exponentials and error functions are divided by, as a mass is, stays one symbol.
    """
    masses: dict[sp.Expr, sp.Dummy] = {}

    def named(power: sp.Pow) -> sp.Expr:
        if power.exp.is_negative and power.base.has(sp.erf, sp.erfc):
            return masses.setdefault(1 / power.base, sp.Dummy()) ** (-power.exp)
        return power

    total = total.replace(lambda node: isinstance(node, sp.Pow), named)
    names = {node: sp.Dummy() for node in total.atoms(sp.exp, sp.erf, sp.erfc)}
    meanings = {name: node for node, name in names.items()}
    by_function: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(tidy.bounded(sp.expand, total.xreplace(names))):
        plain, function, exponent = sp.S.One, sp.S.One, sp.S.Zero
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            meaning = meanings.get(base)
            if meaning is None:
                plain *= factor
            elif isinstance(meaning, sp.exp):
                exponent += power * meaning.args[0]
            else:
                function *= meaning.func(tidy.factor(sp.expand(meaning.args[0]))) ** power
        sign, kind = (function * sp.exp(tidy.factor(sp.expand(exponent)))).as_coeff_Mul()
        by_function[kind] = by_function.get(kind, sp.S.Zero) + sign * plain
    written = sp.Add(*(tidy.factor(part) * kind for kind, part in by_function.items()))
    if len(masses) == 1:
        (mass,) = masses.values()
        written = sp.factor_terms(sp.collect(written, mass))
    return written.xreplace({name: mass for mass, name in masses.items()})


def _is_checked(formula: sp.Expr, pair: Pair, order: int, below_one: Sequence[str]) -> bool:
    """Return whether a moment is what a quadrature gives at random values of the parameters."""
    symbols = formula.free_symbols | parameters_of(pair)
    for seed in range(_ROUNDS if symbols else 1):
        values = dict(random_values(symbols, seed, below_one))
        truth, size = _quadrature(with_values(pair, values), order)
        value = formula.subs(values).evalf(_DIGITS, maxn=400)
        if not value.is_Float or abs(mpmath.mpmathify(value) - truth) > _TOLERANCE * size:
            return False
    return True


def _quadrature(pair: Pair, order: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return E ℓʲ and E |ℓ|ʲ of a pair without parameters."""
    x, total, size = pair.variable, mpmath.mpf(0), mpmath.mpf(0)
    with mpmath.workdps(_DIGITS):
        for piece in pieces(pair):
            if piece.log_p is None:
                continue
            inside = sp.exp(piece.log_p) * piece.loss**order
            if piece.place is not None:
                total += mpmath.mpmathify(inside.evalf(_DIGITS))
                continue
            function = sp.lambdify(x, inside, "mpmath")
            part = mpmath.quad(function, [_end(piece.lower), _end(piece.upper)])
            total += part
            size += abs(part)
    return total, max(size, abs(total))


def _end(place: sp.Expr) -> mpmath.mpf:
    """Return an end of a piece, infinite ones too."""
    if place.is_infinite:
        return mpmath.inf if place == sp.oo else -mpmath.inf
    return mpmath.mpmathify(place.evalf(_DIGITS))
