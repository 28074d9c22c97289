"""Changes of the variable of a half-line's piece of the loss, after which its ends are regular.

Where a density is 0 at a finite end, or like a broken power, x = end ± sʳ may serve; x = ±1/s suits
algebraic tails: the density of s and the loss are then often holomorphic at s = 0.  What SymPy made
of them is compared with what was put in, in ball arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from functools import lru_cache

import sympy as sp
from flint import arb, ctx

from symdp.certify.piece_integrand import Part, stretch
from symdp.derive.records import TURNED, Piece
from symdp.derive.signs import sign_of
from symdp.emit.arb import compile_arb, constant_ball
from symdp.errors import InputError

# Operations that SymPy rewrites within seconds; that it simplifies.
_MOST_OPERATIONS, _SHORT = 400, 80
_MOST_WAYS = 4  # roots tried as the new variable; each costs a rewriting
_MOST_POWER = 6  # order of a zero of ℓ − ℓ(end) that is looked for by derivatives
BITS = 128  # carried when values before and after are compared
_SAMPLES = (sp.Rational(1, 16), sp.Rational(5, 16), sp.Rational(13, 16))  # where it is checked
_OUTSIDE = 64  # log₂ of a place in the tail, where powers are small beside the place itself


@lru_cache(maxsize=256)
def compactified(found: Part) -> Part:
    """Return a half-line's stretch in s = 1/(c ± x) where its tail is algebraic.

    Where the loss has a limit and P is like x⁻², no cut is then far out, and no path is long.
    """
    piece, x = found.piece, found.x
    if found.is_flat or x.is_integer or not has_algebraic_tail(found) or is_long(piece):
        return found
    end, outwards = (piece.lower, 1) if piece.lower.is_finite else (piece.upper, -1)
    s = sp.Symbol("s", positive=True)
    shift = sp.Max(0, 1 - sp.floor(outwards * end))
    place = outwards * (1 / s - shift)
    last = 1 / (outwards * end + shift)
    regular = _regular_pair(piece, x, place, s, last)
    if regular is None or any(_functions(e, s) for e in regular):
        return found
    ratio, density = regular
    if 0 in (ratio.subs(s, 0), *(density.subs(s, at) for at in (0, last))):
        return found  # a logarithm would be infinite there
    log_p, loss = (sp.expand_log(sp.log(e), force=True) for e in (density, ratio))
    slope = TURNED[piece.slope] if outwards == 1 else piece.slope
    return stretch(Piece(sp.S.Zero, last, log_p, log_p - loss, loss, slope), s)


def has_algebraic_tail(found: Part) -> bool:
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


def _functions(expression: sp.Expr, s: sp.Symbol) -> bool:
    """Whether there is anything but powers of expressions in s."""
    return any(node.has(s) for node in expression.atoms(sp.Function))


@lru_cache(maxsize=64)
def straightened(found: Part) -> Part:
    """Return a half-line's stretch in s = |x − end|^r, where that leaves a density finite at 0."""
    piece, x = found.piece, found.x
    if found.is_flat or piece.lower.is_finite == piece.upper.is_finite or is_long(piece):
        return found
    assert piece.log_p is not None
    end, inwards = (piece.lower, 1) if piece.lower.is_finite else (piece.upper, -1)
    s, t = sp.symbols("s t", positive=True)
    order = vanishing_order(piece.loss, x, end)
    also = set() if order is None else {sp.Rational(1, order)}
    for power in sorted({*_powers(piece.log_p + piece.loss, x - end), *also}):
        if power == 1:
            break
        # Ratios are cancelled before powers are broken.
        p, ratio = (
            _collected(sp.exp(e.subs(x, end + inwards * t)).rewrite(sp.exp)).subs(t, s**power)
            for e in (piece.log_p, piece.loss)
        )
        density = _regular(p * abs(sp.diff(s**power, s)), s)
        ratio = _regular(ratio, s)
        if density is None or ratio is None or 0 in (density.subs(s, 0), ratio.subs(s, 0)):
            continue
        log_p, loss = (sp.expand_log(sp.log(e), force=True) for e in (density, ratio))
        if vanishing_order(loss, s, sp.S.Zero) != 1:
            continue
        if not _is_finite(sp.diff(log_p, s).subs(s, 0)):
            continue
        place = end + inwards * s**power
        given = piece.log_p.subs(x, place) + sp.log(abs(sp.diff(place, s)))
        if not agree({log_p: given, loss: piece.loss.subs(x, place)}, s, _SAMPLES):
            continue
        slope = piece.slope if inwards == 1 else TURNED[piece.slope]
        return stretch(Piece(sp.S.Zero, sp.oo, log_p, log_p - loss, loss, slope), s)
    return found


def vanishing_order(loss: sp.Expr, x: sp.Symbol, at: sp.Expr) -> int | None:
    """Return the κ for which ℓ(x) − ℓ(at) is like (x − at)^κ, None where no exact test tells it.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> vanishing_order(sp.cos(x), x, sp.S.Zero)
    2
    """
    slope = _inside(loss, x, at)
    for power in range(1, _MOST_POWER + 1):
        slope = sp.diff(slope, x)
        value = slope.subs(x, at)
        sign = sign_of(value) if _is_finite(value) else None
        if sign != 0:
            return None if sign is None else power
    return None


def _inside(loss: sp.Expr, x: sp.Symbol, at: sp.Expr) -> sp.Expr:
    """Return log r for a sampled loss log(c + r), where that is finite: it turns where ℓ does."""
    if isinstance(loss, sp.log) and isinstance(loss.args[0], sp.Add):
        constant, rest = loss.args[0].as_independent(x, as_Add=True)
        if constant.is_positive and not isinstance(rest, sp.Add):
            inner = sp.expand_log(sp.log(rest), force=True)
            if _is_finite(inner.subs(x, at)):
                return inner
    return loss


def _is_finite(value: sp.Expr) -> bool:
    """Whether a number is finite, by a ball: SymPy's own answer may take minutes of radicals."""
    if value.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
        return False
    return bool(constant_ball(value, BITS).is_finite())


def _powers(expression: sp.Expr, base: sp.Expr) -> list[sp.Expr]:
    """Return 1, 1/r for the powers base^r in an expression, and denominators of any, sorted."""
    powers = {node for node in expression.atoms(sp.Pow) if node.exp.is_Rational}
    own = {node.exp for node in powers if sp.expand(node.base - base) == 0}
    found = {sp.S.One, *(1 / power for power in own if power > 0)}
    found |= {sp.Integer(node.exp.q) for node in powers if node.has(*base.free_symbols)}
    return list(itertools.islice(sorted(found), _MOST_WAYS))


def _regular_pair(
    piece: Piece, x: sp.Symbol, place: sp.Expr, s: sp.Symbol, room: sp.Expr
) -> tuple[sp.Expr, sp.Expr] | None:
    """Return dP/dQ and the density of s under P for an x that s moves, finite at 0, or None."""
    assert piece.log_p is not None
    given = (
        sp.exp(piece.loss.subs(x, place)),
        sp.exp(piece.log_p.subs(x, place)) * abs(sp.diff(place, s)),
    )
    ratio, density = (_regular(expression, s) for expression in given)
    if ratio is None or density is None:
        return None
    places = [sp.Min(room, 1) * share for share in _SAMPLES]
    if not agree(dict(zip((ratio, density), given, strict=True)), s, places):
        return None
    return ratio, density


def agree(
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


def _regular(expression: sp.Expr, s: sp.Symbol) -> sp.Expr | None:
    """Return an expression that is finite at s = 0 as it is written, or None."""
    written = expression.rewrite(sp.exp)
    for simplify in (_collected, sp.simplify):
        if simplify is sp.simplify and sp.count_ops(written) > _SHORT:
            break  # it may take many seconds
        found = simplify(written)
        at = found.subs(s, 0)
        if at.is_finite and not at.has(sp.nan, sp.zoo):
            return found
    return None


def _collected(expression: sp.Expr) -> sp.Expr:
    """Return a product of powers over one denominator, powers of one base together."""
    together = sp.together(sp.powsimp(sp.expand_power_base(sp.powdenest(expression))))
    if together.is_rational_function():
        together = sp.cancel(together)
    return sp.powsimp(sp.expand_power_base(sp.factor_terms(together)))


def is_long(piece: Piece) -> bool:
    """Whether a piece is too long for SymPy to rewrite it soon."""
    return bool(sp.count_ops(piece.log_p) + sp.count_ops(piece.loss) > _MOST_OPERATIONS)
