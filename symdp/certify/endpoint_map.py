"""Singular ends and algebraic tails of a piece of the loss, moved to where few nodes are enough.

By x = end ± e^{−s} powers of the distance from an end become exponentials: to resolve many octaves
beside such an end takes a node set each, of s but few.  What a logarithm of the distance would make
of a wide ball is written out before: zeros of polynomials, of sines and of cosines.  An algebraic
tail becomes exponential by x = end ± c(e^s − 1).  What SymPy made of a piece is compared with what
was put in, in ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import sympy as sp
from flint import arb, ctx

from symdp.certify.piece_integrand import Part, stretch
from symdp.derive.records import TURNED, Piece
from symdp.emit.arb import compile_arb, constant_ball
from symdp.emit.enclose import between
from symdp.emit.exact import BITS
from symdp.errors import InputError

# Places that no ends of common pieces take, on all scales.
_AROUND = (-9, sp.Rational(-5, 4), sp.Rational(1, 16), sp.Rational(5, 4), 9)
_FAR = (100, 400)  # where no digits may be lost
_MOST_OPERATIONS = 400  # that SymPy rewrites within seconds
_OUTSIDE = 64  # log₂ of a place in the tail, where powers are small beside the place itself
_LOST_BITS = 32  # that a rewritten formula may lose to cancelling


class _Distance(NamedTuple):
    """A distance from an end: its logarithm, and itself to an absolute accuracy."""

    log: sp.Expr
    value: sp.Expr


class _Far(NamedTuple):
    """An x that puts singular ends at infinity, as a function of s from `start` to ∞."""

    place: sp.Expr
    start: sp.Expr
    rises: bool
    log_jacobian: sp.Expr
    distances: dict[sp.Expr, _Distance]  # from singular ends, by what they are in x


def _far(piece: Piece, x: sp.Symbol, s: sp.Symbol, singular: Sequence[bool]) -> _Far:
    if not any(singular):  # but the tail of a half-line is algebraic
        end, outwards = (piece.lower, 1) if piece.lower.is_finite else (piece.upper, -1)
        scale = sp.Integer(2) ** max(math.frexp(float(end))[1], 0)  # on which such a tail begins
        place = end + outwards * scale * (sp.exp(s) - 1)
        return _Far(place, sp.S.Zero, outwards > 0, s + sp.log(scale), {})
    length = piece.upper - piece.lower
    if all(singular):
        first, second = (
            _Distance(sp.log(length) - sp.log(1 + sp.exp(-t)), length * (1 + sp.tanh(t / 2)) / 2)
            for t in (s, -s)
        )
        distances = {x - piece.lower: first, piece.upper - x: second}
        log_jacobian = first.log + second.log - sp.log(length)
        return _Far(piece.lower + first.value, -sp.oo, True, log_jacobian, distances)
    end, inwards = (piece.lower, 1) if singular[0] else (piece.upper, -1)
    value = sp.exp(-s)
    distances = {inwards * (x - end): _Distance(-s, value)}
    return _Far(end + inwards * value, -sp.log(length), inwards < 0, -s, distances)


@lru_cache(maxsize=256)
def lengthened(found: Part) -> Part:
    """Return a stretch with its singular finite ends at infinity, itself where that fails."""
    piece, x = found.piece, found.x
    if found.is_flat or x.is_integer or _is_long(piece):
        return found
    singular = [end is not None and not found.is_regular(end) for end in found.ends]
    if not any(singular) and not _has_algebraic_tail(found):
        return found
    assert piece.log_p is not None
    assert piece.log_q is not None
    s = sp.Symbol("s", real=True)
    far = _far(piece, x, s, singular)
    given = (piece.log_p, piece.log_q, piece.loss)
    log_p, log_q, loss = (_by_distances(e, x, s, far) for e in given)
    raw = [e.subs(x, far.place) for e in given]
    places = _AROUND if far.start.is_infinite else [far.start + k for k in _AROUND if k > 0]
    if not _agree(dict(zip((log_p, log_q, loss), raw, strict=True)), s, places):
        return found
    if not all(_is_sharp(e, s, both=all(singular)) for e in (log_p, log_q, loss)):
        return found
    log_p, log_q = log_p + far.log_jacobian, log_q + far.log_jacobian
    slope = piece.slope if far.rises else TURNED[piece.slope]
    return stretch(Piece(far.start, sp.oo, log_p, log_q, loss, slope), s)


def _is_long(piece: Piece) -> bool:
    """Whether a piece is too long for SymPy to rewrite it soon."""
    return bool(sp.count_ops(piece.log_p) + sp.count_ops(piece.loss) > _MOST_OPERATIONS)


def _has_algebraic_tail(found: Part) -> bool:
    """Whether a piece lies on a half-line and its densities seem to fall like powers there."""
    piece = found.piece
    if piece.lower.is_finite == piece.upper.is_finite:
        return False
    assert piece.log_p is not None
    if (piece.log_p + piece.loss).has(sp.exp, sp.cosh, sp.sinh, sp.erf):
        return False
    outwards = 1 if piece.lower.is_finite else -1
    with ctx.workprec(BITS):
        log_density = found.base(outwards * arb(2) ** _OUTSIDE)
    return bool(abs(log_density) < _OUTSIDE**2)


def _agree(
    found: Mapping[sp.Expr, sp.Expr], s: sp.Symbol, places: Iterable[sp.Expr | float]
) -> bool:
    """Whether expressions of s have the values of those that they were made from, at places."""
    with ctx.workprec(BITS):
        balls = [constant_ball(place, BITS).real for place in places]
        for one, other in found.items():
            try:
                functions = compile_arb(one, [s]), compile_arb(other, [s])
            except InputError:
                return False
            for place in balls:
                first, second = (function(place) for function in functions)
                if not (first.is_finite() and second.is_finite() and first.overlaps(second)):
                    return False
    return True


def _by_distances(expression: sp.Expr, x: sp.Symbol, s: sp.Symbol, far: _Far) -> sp.Expr:
    """Return an expression of s, distances from ends written through their logarithms."""
    expression = sp.expand_log(expression, force=True)  # quotients of polynomials
    known: dict[sp.Basic, sp.Expr] = {}
    sums = {f for product in expression.atoms(sp.Mul) for f in product.args if f.is_Add}
    for node in sums | expression.atoms(sp.log, sp.Pow, sp.sin, sp.cos):
        if node.is_Pow and node.exp.has(x):
            continue
        base = node.args[0] if isinstance(node, sp.log | sp.Pow) else node
        log_zeros, rest = _zeros(base, x, s, far)
        if log_zeros == 0:
            continue
        if isinstance(node, sp.log):
            known[node] = log_zeros + sp.log(rest)
        else:
            power = node.exp if node.is_Pow else sp.S.One
            known[node] = sp.exp(sp.expand(power * log_zeros)) * rest**power
    return sp.expand_log(expression.xreplace(known).subs(x, far.place), force=True)


def _zeros(base: sp.Expr, x: sp.Symbol, s: sp.Symbol, far: _Far) -> tuple[sp.Expr, sp.Expr]:
    """Return the logarithm of the distances that divide an expression, and what they leave, of s.

    sin αd = αd ₀F₁(; 3/2; −(αd)²/4) (DLMF 10.16.1, 10.16.9), whose derivatives are ₀F₁ as well.
    """
    log_zeros = sp.S.Zero
    if base.is_polynomial(x) and base.has(x):
        if not far.distances:
            return _leading(base, x, s, far)
        for distance, known in far.distances.items():
            while base.has(x) and sp.rem(base, distance, x) == 0:
                base, log_zeros = sp.quo(base, distance, x), log_zeros + known.log
    elif isinstance(base, sp.sin | sp.cos) and sp.degree(base.args[0], x) == 1:
        for distance, known in far.distances.items():
            end = x - distance / sp.diff(distance, x)
            if base.subs(x, end) == 0:
                slope = (sp.diff(base, x) / sp.diff(distance, x)).subs(x, end)
                turn = -((slope * known.value) ** 2) / 4
                return known.log, slope * sp.hyper((), (sp.Rational(3, 2),), turn)
    return log_zeros, base.subs(x, far.place)


def _leading(base: sp.Expr, x: sp.Symbol, s: sp.Symbol, far: _Far) -> tuple[sp.Expr, sp.Expr]:
    """Return log e^{ns} and what it leaves of a polynomial of degree n in x, and so in e^s."""
    growth = sp.Dummy("w", positive=True)
    terms = sp.Poly(base.subs(x, far.place.subs(sp.exp(s), growth)), growth).terms()
    (degree,) = terms[0][0]
    return degree * s, sp.Add(*(c * sp.exp((k - degree) * s) for (k,), c in terms))


def _is_sharp(expression: sp.Expr, s: sp.Symbol, *, both: bool) -> bool:
    """Whether an expression of s keeps its digits far out, and has values on wide balls there."""
    with ctx.workprec(BITS):
        function = compile_arb(expression, [s])
        lost = arb(2) ** (_LOST_BITS - BITS)
        for sign in (1, -1) if both else (1,):
            places = [sign * arb(far) for far in _FAR]
            if not all(value.rad() < lost * (1 + abs(value)) for value in map(function, places)):
                return False
            if not function(between(*places)).is_finite():
                return False
    return True
