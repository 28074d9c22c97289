"""Changes of the variable of a piece of the loss, after which its ends are regular.

Where a density is 0 at a finite end, or like a broken power, x = end ± sʳ may serve; where a piece
is infinite, x = ±s^{−r} suits algebraic tails and x = ∓r log s tails like e^{−x/r}: the density of
s and the loss are then often holomorphic at s = 0, as for noise whose loss comes ever closer to a
value.  What SymPy made of them is compared with what was put in, in ball arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp
from flint import arb, ctx

from symdp.certify.moments import Stretch, stretch
from symdp.derive.records import Piece, Slope
from symdp.derive.signs import sign_of
from symdp.emit.arb import ArbFunction, compile_arb, constant_ball
from symdp.errors import InputError
from symdp.truth.jets import Jet

FAR = 2**30
_MOST_OPERATIONS, _SHORT = 400, 80
_MOST_WAYS = 4
_MOST_POWER = 6
_BITS = 128
_SAMPLES = ("0.0625", "0.3125", "0.8125")  # of the room, where a change is checked


@dataclass(frozen=True)
class Change:
    """A piece in the distance s from one of its ends, whatever the tilt.

    Attributes
    ----------
    loss, slope, density
        ℓ, dℓ/ds and the density of s under P.
    jets
        Of loss and density.
    place
        x as a function of s.
    value
        ℓ₀, the loss at s = 0.
    power
        κ, where ℓ − ℓ₀ is like s^κ.
    room
        How large s may be at most.
    """

    loss: ArbFunction
    slope: ArbFunction
    density: ArbFunction  # of P
    jets: tuple[Jet, Jet]
    place: ArbFunction
    value: sp.Expr
    power: int
    room: arb


@lru_cache(maxsize=256)
def compactified(found: Stretch) -> Stretch:
    """Return a half-line's stretch in s = 1/(c ± x) where its tail is algebraic.

    Where the loss has a limit and P is like x⁻², no cut is then far out, and no path is long.
    """
    piece, x = found.piece, found.x
    if x.is_integer or piece.lower.is_finite == piece.upper.is_finite or _is_long(piece):
        return found
    assert piece.log_p is not None
    end, outwards = (piece.lower, 1) if piece.lower.is_finite else (piece.upper, -1)
    if (piece.log_p + piece.loss).has(sp.exp, sp.cosh, sp.sinh, sp.erf):
        return found
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


def _functions(expression: sp.Expr, s: sp.Symbol) -> bool:
    """Whether there is anything but powers of expressions in s."""
    return any(node.has(s) for node in expression.atoms(sp.Function))


@lru_cache(maxsize=64)
def straightened(found: Stretch) -> Stretch:
    """Return a half-line's stretch in s = |x − end|^r, where that leaves a density finite at 0."""
    piece, x = found.piece, found.x
    if piece.lower.is_finite == piece.upper.is_finite or _is_long(piece):
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
        if vanishing_order(loss, s, sp.S.Zero) != 1 or not sp.diff(log_p, s).subs(s, 0).is_finite:
            continue
        place = end + inwards * s**power
        given = piece.log_p.subs(x, place) + sp.log(abs(sp.diff(place, s)))
        if not _agree({log_p: given, loss: piece.loss.subs(x, place)}, s, sp.S.One):
            continue
        rises = (piece.slope == "increasing") == (inwards == 1)
        slope: Slope = "increasing" if rises else "decreasing"
        return stretch(Piece(sp.S.Zero, sp.oo, log_p, log_p - loss, loss, slope), s)
    return found


@lru_cache(maxsize=64)
def changes(stretch: Stretch, side: int) -> tuple[Change, ...]:
    """Return the changes that may serve at the lower end (side 0) or the upper one (side 1)."""
    return tuple(_found_changes(stretch, side))


def _found_changes(stretch: Stretch, side: int) -> Iterator[Change]:
    piece, x = stretch.piece, stretch.x
    assert piece.log_p is not None
    if _is_long(piece):
        return
    outwards = 1 if side == 1 else -1
    end, other = (piece.lower, piece.upper)[side], (piece.upper, piece.lower)[side]
    s = sp.Symbol("s", positive=True)
    powers = _powers(piece.log_p + piece.loss, x - end if end.is_finite else x)
    if end.is_finite:
        ways = [end - outwards * s**power for power in powers]
    else:
        ways = [outwards * s**-power for power in powers]
        ways += [-outwards * sp.log(s) / rate for rate in _rates(piece.log_p, x)]
    for place in ways:
        room = sp.Integer(FAR) if end.is_finite else sp.Rational(9, 10)
        if other.is_finite:
            inner = (end + other) / 2 if end.is_finite else other + outwards
            most = sp.solve(sp.Eq(place, inner), s)
            room = most[0] if most else room
        regular = _regular_pair(piece, x, place, s, room)
        if regular is None:
            continue
        ratio, density = regular
        loss = sp.log(ratio)
        value = loss.subs(s, 0)
        power = vanishing_order(loss, s, sp.S.Zero) if value.is_finite else None
        if power is None:
            continue
        try:
            yield Change(
                compile_arb(loss, [s]),
                compile_arb(sp.factor_terms(sp.together(sp.diff(loss, s))), [s]),
                compile_arb(density, [s]),
                (Jet(loss, s), Jet(density, s)),
                compile_arb(place, [s]),
                sp.simplify(value),
                power,
                constant_ball(room, 128).real,
            )
        except InputError:
            continue


def vanishing_order(loss: sp.Expr, x: sp.Symbol, at: sp.Expr) -> int | None:
    """Return the κ for which ℓ(x) − ℓ(at) is like (x − at)^κ, None where no exact test tells it.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> vanishing_order(sp.cos(x), x, sp.S.Zero)
    2
    """
    slope = loss
    for power in range(1, _MOST_POWER + 1):
        slope = sp.diff(slope, x)
        value = slope.subs(x, at)
        sign = 0 if value == 0 else sign_of(value) if value.is_finite else None
        if sign != 0:
            return None if sign is None else power
    return None


def _rates(expression: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """Return the rates c of the exponentials e^{cx} in e^expression, the smallest first."""
    exponents = list(sp.Add.make_args(sp.expand(expression)))
    exponents += [node.args[0] for node in expression.atoms(sp.exp)]
    slopes = {abs(sp.diff(exponent, x)) for exponent in exponents}
    slopes = {slope for slope in slopes if slope != 0 and slope.is_number}
    return list(itertools.islice(sorted(slopes, key=float), _MOST_WAYS))


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
    if not _agree(dict(zip((ratio, density), given, strict=True)), s, room):
        return None
    return ratio, density


def _agree(found: Mapping[sp.Expr, sp.Expr], s: sp.Symbol, room: sp.Expr) -> bool:
    """Whether expressions have the values of those that they were made from."""
    with ctx.workprec(_BITS):
        most = constant_ball(room, _BITS).real.min(arb(1))
        for one, other in found.items():
            try:
                functions = compile_arb(one, [s]), compile_arb(other, [s])
            except InputError:
                return False
            for share in _SAMPLES:
                first, second = (function(most * arb(share)) for function in functions)
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
