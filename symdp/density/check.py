"""Compare a closed-form CGF with integrals that know nothing of how it was found."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mpmath
import sympy as sp

from symdp.density.pieces import pieces, points
from symdp.density.records import Piece, Point
from symdp.density.signs import DIGITS, interior_point, random_values
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import T, attempt

if TYPE_CHECKING:
    from symdp.model.pair import Pair

DIGITS_COMPARED = 18
_TOLERANCE = mpmath.mpf(10) ** -DIGITS_COMPARED  # relative: forms that are off are off by far more

_CHECK_ROUNDS = 2  # random values of parameters and tilts


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

    Raises
    ------
    CheckError
        If the integral could not be computed to that accuracy.
    """
    from symdp.density.quadrature import CheckError, moment

    with mpmath.workdps(DIGITS):
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
    value = sp.exp(cgf).subs(tilt, at).evalf(DIGITS, maxn=1000)
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

    from symdp.density.quadrature import BITS, as_fraction, exactly
    from symdp.emit.arb import compile_arb

    x = pair.variable
    densities = [compile_arb(law, [x]) for law in (pair.P, pair.Q) if not isinstance(law, tuple)]
    masses = [dict(pair.atoms_under(weights)) for weights in (pair.p_weights, pair.q_weights)]
    with ctx.workprec(BITS):
        for piece in pieces:
            laws = densities
            if piece.place is not None:
                laws = [compile_arb(own[piece.place], [x]) for own in masses]
            single = piece.lower == piece.upper
            at = piece.lower if single else interior_point(piece.lower, piece.upper)
            end = as_fraction(sp.floor(at) if x.is_integer else at)
            assert end is not None
            for law, log in zip(laws, (piece.log_p, piece.log_q), strict=True):
                found = 0 if log is None else compile_arb(log, [x])(exactly(end)).exp()
                if not (law(exactly(end)) - found).contains(0):
                    return False
    return True


class NoClosedForm(Exception):  # noqa: N818  (it carries a reason, not an error)
    """Why the closed form was given up."""


def in_time(work: Callable[[], T], reason: str, seconds: float) -> T:
    """Return what the work returns; raise NoClosedForm with the reason where its time is up."""
    found = attempt(work, None, seconds)
    if found is None:
        raise NoClosedForm(reason)
    return found


def checked(
    expression: sp.Expr,
    pair: Pair,
    tilt: sp.Symbol,
    domain: tuple[sp.Expr, sp.Expr] | None,
    below_one: tuple[str, ...],
) -> tuple[tuple[sp.Expr, ...], tuple[tuple[tuple[str, sp.Expr], ...], ...]]:
    """Compare a closed form with integrals; return the tilts and the parameter values used."""
    symbols = (expression.free_symbols - {tilt}) | parameters_of(pair)
    done: list[sp.Expr] = []
    used: list[tuple[tuple[str, sp.Expr], ...]] = []
    for seed in range(_CHECK_ROUNDS if symbols else 1):
        values = random_values(symbols, seed, below_one)
        bound = expression.subs(values)
        tilts = tilts_of(domain, values, seed)
        real = tilts[seed : seed + 1] if symbols else tilts
        places = [at for t in real for at in (t, off_the_axis(bound, tilt, t, seed))]
        _compare(bound, tilt, with_values(pair, dict(values)), places)
        done += places
        used += [tuple((str(s.name), v) for s, v in values.items())] * len(places)
    return tuple(done), tuple(used)


def tilts_of(
    domain: tuple[sp.Expr, sp.Expr] | None, values: Mapping[sp.Symbol, sp.Expr], seed: int
) -> tuple[sp.Rational, ...]:
    """Return two tilts inside a domain at some values."""
    low, high = domain or (sp.S.NegativeOne, sp.S.Zero)
    return tilts_to_check((low.subs(values), high.subs(values)), seed)


def _compare(bound: sp.Expr, tilt: sp.Symbol, concrete: Pair, places: Iterable[sp.Expr]) -> None:
    """Compare a form without parameters with integrals; raise NoClosedForm where it differs."""
    from symdp.density.quadrature import CheckError

    try:
        found, listed = pieces(concrete), points(concrete)
        if not logs_agree(concrete, found):
            raise NoClosedForm("the log densities disagree with P and Q")
        for at in places:
            if not agrees(bound, tilt, at, (found, listed, concrete.variable)):
                raise NoClosedForm(
                    "the closed form that was found disagrees with a numerical integral "
                    f"at {tilt} = {at}"
                )
    except (CheckError, InputError, AccuracyError) as error:
        raise NoClosedForm(
            f"the closed form that was found could not be checked: {error}"
        ) from error


def parameters_of(pair: Pair) -> set[sp.Symbol]:
    """Return the symbols of a pair but its variable."""
    return {s for part in pair.expressions() for s in part.free_symbols} - {pair.variable}


def with_values(pair: Pair, values: dict[sp.Symbol, sp.Expr]) -> Pair:
    """Put values for the parameters of a pair."""
    from symdp.model.pair import Pair as PairRecord

    if not values:
        return pair

    def put(expression: sp.Expr) -> sp.Expr:
        return expression.subs(values)

    components = tuple(
        tuple(map(put, c)) if isinstance(c, tuple) else put(c) for c in pair.components
    )
    return PairRecord(
        pair.variable,
        pair.support.substitute(values),
        components,
        tuple(map(put, pair.p_weights)),
        tuple(map(put, pair.q_weights)),
        atoms=tuple((put(place), tuple(map(put, masses))) for place, masses in pair.atoms),
    )
