"""Compare a closed-form CGF with integrals that know nothing of how it was found."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mpmath
import sympy as sp

from symdp.derive.records import Piece, Point
from symdp.derive.signs import interior_point
from symdp.model.assumption import AssumedSymbol

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_DIGITS = 40  # carried
_TOLERANCE = mpmath.mpf(10) ** -18  # relative: forms that are off are off by far more


def tilts_to_check(domain: tuple[sp.Expr, sp.Expr], seed: int) -> tuple[sp.Rational, ...]:
    """Return two random rational tilts, one in each half of the domain of K.

    Examples
    --------
    >>> tilts_to_check((-sp.oo, sp.oo), seed=1)
    (-63/23, 133/46)
    """
    chance = random.Random(seed)
    low = max(sp.Rational(-7, 2), _inner(domain[0], sp.Rational(1, 4)))
    high = min(sp.Rational(7, 2), _inner(domain[1], -sp.Rational(1, 4)))
    tilts: list[sp.Rational] = []
    for half in range(2):
        tilt = sp.S.Zero
        while tilt in (0, -1):  # K is known there
            share = (half + sp.Rational(chance.randint(1, 22), 23)) / 2
            tilt = low + share * (high - low)
        tilts.append(tilt)
    return tuple(tilts)


def _inner(end: sp.Expr, fraction: sp.Rational) -> sp.Expr:
    """Move a finite end of the domain, which lies beyond [−1, 0], a little inwards."""
    if end in (sp.oo, -sp.oo):
        return end
    value = sp.Rational(sp.floor(sp.N(end, 30) * 64), 64)  # a short rational, at most 1/64 off
    span = max(sp.S.Half, abs(value)) if value not in (0, -1) else sp.Rational(1, 4)
    return value + fraction * span


def off_the_axis(cgf: sp.Expr, tilt: sp.Symbol, at: sp.Rational, seed: int) -> sp.Expr:
    """Return at + iy with y of the order of one over the tilted standard deviation of the loss.

    Much further out M(at + iy) would be too small, beside M(at), to check anything.
    """
    chance = random.Random(seed)
    variance = sp.re(sp.diff(cgf, tilt, 2).subs(tilt, at).evalf(10, maxn=400))
    spread = max(sp.S.One, sp.sqrt(abs(variance))) if variance.is_Float else sp.S.One
    size = sp.Rational(chance.randint(5, 20), 7) / spread
    return at + sp.I * sp.Rational(str(size.evalf(3)))


def agrees(
    cgf: sp.Expr,
    tilt: sp.Symbol,
    at: sp.Expr,
    law: tuple[Sequence[Piece], Sequence[Point], sp.Symbol],
) -> bool:
    """Whether exp(K(z)) equals Σ ∫ exp(log P + z·loss) to 10⁻¹⁸ of exp(K(Re z)).

    Parameters
    ----------
    cgf, tilt : K and its symbol, no parameter free
    at : the complex tilt z, its parts rational
    law : pieces, points and variable of the loss

    Raises
    ------
    CheckError
        If the integral could not be computed to that accuracy.
    """
    from symdp.derive.quadrature import CheckError, moment

    with mpmath.workdps(_DIGITS):
        closed, size = (_value(cgf, tilt, place) for place in (at, sp.re(at)))
        if closed is None or size is None:
            return False
        ball = moment(at, *law)
        allowed = _TOLERANCE * abs(size)
        direct = mpmath.mpc(_to_mpf(ball.real.mid()), _to_mpf(ball.imag.mid()))
        radius = _to_mpf(ball.real.rad().mid()) + _to_mpf(ball.imag.rad().mid())
        if radius > allowed:
            raise CheckError("the integral of the check is not accurate enough")
        return bool(abs(closed - direct) <= allowed)


def _value(cgf: sp.Expr, tilt: sp.Symbol, at: sp.Expr) -> Any:
    value = sp.exp(cgf).subs(tilt, at).evalf(_DIGITS, maxn=1000)
    real, imaginary = value.as_real_imag()
    if not (real.is_Float or real.is_Rational) or not (imaginary.is_Float or imaginary.is_Rational):
        return None
    return mpmath.mpc(mpmath.mpmathify(real), mpmath.mpmathify(imaginary))


def _to_mpf(number: Any) -> Any:
    mantissa, exponent = number.man_exp()
    return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))


def logs_agree(pair: Pair, pieces: Sequence[Piece]) -> bool:
    """Whether the log densities of the pieces are those of P and Q, at one point of each."""
    from flint import ctx

    from symdp.derive.quadrature import BITS, as_fraction, exactly
    from symdp.emit.arb import compile_arb

    x = pair.variable
    laws = [compile_arb(law, [x]) for law in (pair.P, pair.Q) if not isinstance(law, tuple)]
    with ctx.workprec(BITS):
        for piece in pieces:
            single = piece.lower == piece.upper
            at = piece.lower if single else interior_point(piece.lower, piece.upper)
            end = as_fraction(sp.floor(at) if x.is_integer else at)
            assert end is not None
            for law, log in zip(laws, (piece.log_p, piece.log_q), strict=True):
                found = 0 if log is None else compile_arb(log, [x])(exactly(end)).exp()
                if not (law(exactly(end)) - found).contains(0):
                    return False
    return True


def random_values(
    symbols: Iterable[sp.Symbol], seed: int, below_one: Iterable[str] = ()
) -> Mapping[sp.Symbol, sp.Expr]:
    """Return random rational values that respect the assumptions of parameters.

    Examples
    --------
    >>> s, n = sp.Symbol("s", positive=True), sp.Symbol("n", integer=True, positive=True)
    >>> sorted(random_values([s, n], seed=3).values())
    [1, 48/23]
    """
    chance, below = random.Random(seed), set(below_one)
    values: dict[sp.Symbol, sp.Expr] = {}
    wanted = set(symbols)
    assumed = [symbol for symbol in wanted if isinstance(symbol, AssumedSymbol)]
    depending = {symbol for symbol in assumed if symbol.compared_with}
    wanted.update(*(symbol.compared_with for symbol in assumed))
    # Those whose ends hold other parameters come last.
    for symbol in sorted(wanted, key=lambda s: (s in depending, str(s.name))):
        if isinstance(symbol, AssumedSymbol):
            value: sp.Expr = _between(symbol.moved(values), chance, symbol.name in below)
        elif symbol.is_integer:
            value = sp.Integer(chance.randint(1, 3))
        elif symbol.name in below:
            value = sp.Rational(chance.randint(2, 21), 23)
        else:
            value = sp.Rational(chance.randint(14, 50), 23)
        turns = symbol.is_negative and not isinstance(symbol, AssumedSymbol)
        values[symbol] = -value if turns else value
    return values


def _between(symbol: AssumedSymbol, chance: random.Random, is_below_one: bool) -> sp.Expr:
    """Return a random value between the ends of a symbol, which are numbers."""
    lower, upper = symbol.both_ends
    if lower is not None:
        low = lower.value
    else:
        low = sp.S.Zero if symbol.is_nonnegative or upper is None else upper.value - 2
    high = upper.value if upper else sp.S.One if is_below_one and low < 1 else low + 2
    value = low + (high - low) * sp.Rational(chance.randint(2, 21), 23)
    if not symbol.is_integer:
        return value
    near = (sp.floor(value), sp.ceiling(value), sp.floor(low) + 1)
    return next((at for at in near if symbol.allows(at)), sp.ceiling(low))
