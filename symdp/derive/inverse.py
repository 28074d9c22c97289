"""The inverse of the privacy loss on each monotone piece, where elementary functions give it."""

from __future__ import annotations

from collections.abc import Sequence

import mpmath
import sympy as sp

from symdp.derive import tidy
from symdp.derive.check import random_values
from symdp.derive.normal_form import exponential_terms
from symdp.derive.records import Piece
from symdp.derive.shapes import exponential_polynomial
from symdp.derive.signs import interior_point

_DIGITS = 30  # to which an inverse is tried
_ROUNDS = 3  # random values of parameters


def loss_symbol(taken: set[str]) -> sp.Symbol:
    """Return the symbol of a loss value: s, or another name where parameters have taken it."""
    name = next(n for n in ("s", "loss", "s_loss", "loss_value") if n not in taken)
    return sp.Symbol(name, real=True)


def inverse_on(piece: Piece, x: sp.Symbol, s: sp.Symbol) -> sp.Expr | None:
    """Return ℓ⁻¹(s) on a monotone piece, None where there is none in closed form.

    Solved by undoing logs, exponentials, odd powers, Möbius maps and squares one by one; the
    branch is the one that lies in the piece, found at random parameter values and checked there
    at nine points.

    Examples
    --------
    >>> x, s = sp.symbols("x s", real=True)
    >>> piece = Piece(-sp.oo, sp.oo, x, x, sp.log(sp.Rational(1, 2) + sp.exp(x) / 2), "increasing")
    >>> inverse_on(piece, x, s)
    log(2*exp(s) - 1)
    """
    if piece.slope not in {"increasing", "decreasing"} or piece.loss.is_infinite or x.is_integer:
        return None
    for candidate in _solutions(piece.loss, s, x, 0):
        if _inverts(candidate, piece, x, s):
            return candidate
    return None


def inverses(pieces: Sequence[Piece], x: sp.Symbol, s: sp.Symbol) -> tuple[sp.Expr | None, ...]:
    """Return the inverse of every piece, in their order."""
    return tuple(inverse_on(piece, x, s) for piece in pieces)


def _solutions(node: sp.Expr, value: sp.Expr, x: sp.Symbol, depth: int) -> list[sp.Expr]:
    """All candidates for x with node(x) = value."""
    if node == x:
        return [value]
    if depth > 12:
        return []
    if isinstance(node, sp.log):
        return _solutions(node.args[0], sp.exp(value), x, depth + 1)
    if isinstance(node, sp.exp):
        return _solutions(node.args[0], sp.log(value), x, depth + 1)
    if isinstance(node, sp.Pow):
        base, power = node.as_base_exp()
        if x in power.free_symbols:
            exponent = sp.log(value) / sp.log(base)
            return [] if x in base.free_symbols else _solutions(power, exponent, x, depth + 1)
        root = value ** (1 / power)
        both = [root, -root] if power.is_even else [root]
        return [found for r in both for found in _solutions(base, r, x, depth + 1)]
    if isinstance(node, sp.Mul):
        constant, moving = node.as_independent(x, as_Add=False)
        if constant != 1:
            return _solutions(moving, value / constant, x, depth + 1)
    if isinstance(node, sp.Add):
        constant, moving = node.as_independent(x, as_Add=True)
        if constant != 0 and not isinstance(moving, sp.Add):
            return _solutions(moving, value - constant, x, depth + 1)
    return _rational(node, value, x, depth)


def _rational(node: sp.Expr, value: sp.Expr, x: sp.Symbol, depth: int) -> list[sp.Expr]:
    """Solve node = value where both are rational of degree 1 or 2 in x, or in one e^{kx}."""
    numerator, denominator = sp.fraction(tidy.together(node))
    gap = sp.expand(numerator - value * denominator)
    if gap.is_polynomial(x):
        return _quadratic(sp.Poly(gap, x))
    terms = exponential_terms(sp.powsimp(gap, combine="exp"), x)
    read = None if terms is None else exponential_polynomial(terms, x)
    if read is None:
        return []
    generator, coefficients = read
    u = sp.Dummy("u")
    polynomial = sp.Poly(sp.Add(*(c * u**n for n, c in coefficients.items())), u)
    return [
        found
        for root in _quadratic(polynomial)
        for found in _solutions(generator, sp.log(root), x, depth + 1)
    ]


def _quadratic(polynomial: sp.Poly) -> list[sp.Expr]:
    if polynomial.degree() == 1:
        a, b = polynomial.all_coeffs()
        return [tidy.cancel(-b / a)]
    if polynomial.degree() != 2:
        return []
    a, b, c = polynomial.all_coeffs()
    root = sp.sqrt(tidy.factor(sp.expand(b**2 - 4 * a * c)))
    return [(-b + root) / (2 * a), (-b - root) / (2 * a)]


def _inverts(candidate: sp.Expr, piece: Piece, x: sp.Symbol, s: sp.Symbol) -> bool:
    """Whether ℓ⁻¹(ℓ(x)) = x at random points of the piece, for random parameters."""
    symbols = (piece.loss.free_symbols | piece.lower.free_symbols | piece.upper.free_symbols) - {x}
    for seed in range(_ROUNDS):
        values = dict(random_values(symbols, seed, [str(y.name) for y in symbols]))
        low, high = (end.subs(values) for end in (piece.lower, piece.upper))
        middle = interior_point(low, high)
        for share in (sp.Rational(1, 7), sp.Rational(5, 11), sp.Rational(9, 10)):
            at = middle if low.is_infinite or high.is_infinite else low + share * (high - low)
            if high.is_infinite:
                at = at + 3 * share
            elif low.is_infinite:
                at = at - 3 * share
            loss = piece.loss.subs(values).subs(x, at)
            back = candidate.subs(values).subs(s, loss).evalf(_DIGITS, maxn=400)
            gap = abs(sp.N(back - at, _DIGITS))
            if not gap.is_number or not gap.is_comparable or gap > mpmath.mpf(10) ** -18:
                return False
    return True
