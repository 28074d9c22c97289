"""Changes of the variable of a piece of the loss, after which its finite ends are regular.

Where a density is 0 at a finite end, or like a broken power, x = end ± sʳ may serve; x = ±1/s suits
algebraic tails: the density of s and the loss are then often holomorphic at s = 0.  An end that is
singular still is put at infinity by x = end ± e^{−s}, and powers of the distance from it become
exponentials: to resolve many octaves beside such an end takes a node set each, of s but few.  What
SymPy made of them is compared with what was put in, in ball arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import sympy as sp
from flint import arb, ctx

from symdp.certify.moments import Stretch, stretch
from symdp.derive.records import Piece, Slope
from symdp.derive.signs import sign_of
from symdp.emit.arb import compile_arb, constant_ball
from symdp.emit.enclose import between
from symdp.errors import InputError

_MOST_OPERATIONS, _SHORT = 400, 80
_MOST_WAYS = 4
_MOST_POWER = 6
_BITS = 128
_SAMPLES = (sp.Rational(1, 16), sp.Rational(5, 16), sp.Rational(13, 16))  # where it is checked
_AROUND = (-9, sp.Rational(-5, 4), sp.Rational(1, 16), sp.Rational(5, 4), 9)
_FAR = (100, 400)  # where no digits may be lost
_LOST_BITS = 32
_TURNED: dict[Slope, Slope] = {
    "increasing": "decreasing",
    "decreasing": "increasing",
    "unknown": "unknown",
    "constant": "constant",
}


@lru_cache(maxsize=256)
def compactified(found: Stretch) -> Stretch:
    """Return a half-line's stretch in s = 1/(c ± x) where its tail is algebraic.

    Where the loss has a limit and P is like x⁻², no cut is then far out, and no path is long.
    """
    piece, x = found.piece, found.x
    if found.is_flat or x.is_integer or not _has_algebraic_tail(piece) or _is_long(piece):
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
    falls = (piece.slope == "increasing") == (outwards == 1)
    slope: Slope = "decreasing" if falls else "increasing"
    return stretch(Piece(sp.S.Zero, last, log_p, log_p - loss, loss, slope), s)


def _has_algebraic_tail(piece: Piece) -> bool:
    """Whether a piece lies on a half-line with tails that seem to be algebraic."""
    assert piece.log_p is not None
    is_half = piece.lower.is_finite != piece.upper.is_finite
    return is_half and not (piece.log_p + piece.loss).has(sp.exp, sp.cosh, sp.sinh, sp.erf)


class _Far(NamedTuple):
    """An x that puts singular ends at infinity, as a function of s from `start` to ∞."""

    place: sp.Expr
    start: sp.Expr
    rises: bool
    log_jacobian: sp.Expr
    log_distances: dict[sp.Expr, sp.Expr]  # by the distances from singular ends, in x


def _far(piece: Piece, x: sp.Symbol, s: sp.Symbol, singular: Sequence[bool]) -> _Far:
    if not any(singular):  # but the tail of a half-line is algebraic
        end, outwards = (piece.lower, 1) if piece.lower.is_finite else (piece.upper, -1)
        return _Far(end + outwards * (sp.exp(s) - 1), sp.S.Zero, outwards > 0, s, {})
    length = piece.upper - piece.lower
    if all(singular):
        logs = [sp.log(length) - sp.log(1 + sp.exp(-s)), sp.log(length) - sp.log(1 + sp.exp(s))]
        place = piece.lower + length / (1 + sp.exp(-s))
        distances = dict(zip((x - piece.lower, piece.upper - x), logs, strict=True))
        return _Far(place, -sp.oo, True, sum(logs) - sp.log(length), distances)
    end, inwards = (piece.lower, 1) if singular[0] else (piece.upper, -1)
    place = end + inwards * sp.exp(-s)
    return _Far(place, -sp.log(length), inwards < 0, -s, {inwards * (x - end): -s})


@lru_cache(maxsize=256)
def lengthened(found: Stretch) -> Stretch:
    """Return a stretch with its singular finite ends at infinity, itself where that fails."""
    piece, x = found.piece, found.x
    if found.is_flat or x.is_integer or _is_long(piece):
        return found
    singular = [end is not None and not found.is_regular(end) for end in found.ends]
    if not any(singular) and not _has_algebraic_tail(piece):
        return found
    assert piece.log_p is not None
    assert piece.log_q is not None
    s = sp.Symbol("s", real=True)
    far = _far(piece, x, s, singular)
    given = (piece.log_p, piece.log_q, piece.loss)
    log_p, log_q, loss = (_by_distances(e, x, far) for e in given)
    raw = [e.subs(x, far.place) for e in given]
    places = _AROUND if far.start.is_infinite else [far.start + k for k in _AROUND if k > 0]
    if not _agree(dict(zip((log_p, log_q, loss), raw, strict=True)), s, places):
        return found
    if not all(_is_sharp(e, s, both=all(singular)) for e in (log_p, log_q, loss)):
        return found
    log_p, log_q = log_p + far.log_jacobian, log_q + far.log_jacobian
    slope = piece.slope if far.rises else _TURNED[piece.slope]
    return stretch(Piece(far.start, sp.oo, log_p, log_q, loss, slope), s)


def _by_distances(expression: sp.Expr, x: sp.Symbol, far: _Far) -> sp.Expr:
    """Return an expression of s, distances from ends written through their logarithms."""
    known: dict[sp.Basic, sp.Expr] = {}
    for node in expression.atoms(sp.log, sp.Pow):
        base = node.args[0]
        if not (base.has(x) and base.is_polynomial(x)) or (node.is_Pow and node.exp.has(x)):
            continue
        rest, log_zeros = base, sp.S.Zero
        for distance, log_distance in far.log_distances.items():
            while rest.has(x) and sp.rem(rest, distance, x) == 0:
                rest, log_zeros = sp.quo(rest, distance, x), log_zeros + log_distance
        if log_zeros == 0:
            continue
        rest = rest.subs(x, far.place)
        if isinstance(node, sp.log):
            known[node] = log_zeros + sp.log(rest)
        else:
            known[node] = sp.exp(sp.expand(node.exp * log_zeros)) * rest**node.exp
    return sp.expand_log(expression.xreplace(known).subs(x, far.place), force=True)


def _is_sharp(expression: sp.Expr, s: sp.Symbol, *, both: bool) -> bool:
    """Whether an expression of s keeps its digits far out, and has values on wide balls there."""
    with ctx.workprec(_BITS):
        function = compile_arb(expression, [s])
        lost = arb(2) ** (_LOST_BITS - _BITS)
        for sign in (1, -1) if both else (1,):
            places = [sign * arb(far) for far in _FAR]
            if not all(value.rad() < lost * (1 + abs(value)) for value in map(function, places)):
                return False
            if not function(between(*places)).is_finite():
                return False
    return True


def _functions(expression: sp.Expr, s: sp.Symbol) -> bool:
    """Whether there is anything but powers of expressions in s."""
    return any(node.has(s) for node in expression.atoms(sp.Function))


@lru_cache(maxsize=64)
def straightened(found: Stretch) -> Stretch:
    """Return a half-line's stretch in s = |x − end|^r, where that leaves a density finite at 0."""
    piece, x = found.piece, found.x
    if found.is_flat or piece.lower.is_finite == piece.upper.is_finite or _is_long(piece):
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
        if not _agree({log_p: given, loss: piece.loss.subs(x, place)}, s, _SAMPLES):
            continue
        rises = (piece.slope == "increasing") == (inwards == 1)
        slope: Slope = "increasing" if rises else "decreasing"
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
    return bool(constant_ball(value, _BITS).is_finite())


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
    if not _agree(dict(zip((ratio, density), given, strict=True)), s, places):
        return None
    return ratio, density


def _agree(
    found: Mapping[sp.Expr, sp.Expr], s: sp.Symbol, places: Iterable[sp.Expr | float]
) -> bool:
    """Whether expressions have the values of those that they were made from."""
    with ctx.workprec(_BITS):
        balls = [constant_ball(place, _BITS).real for place in places]
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


def _is_long(piece: Piece) -> bool:
    return bool(sp.count_ops(piece.log_p) + sp.count_ops(piece.loss) > _MOST_OPERATIONS)
