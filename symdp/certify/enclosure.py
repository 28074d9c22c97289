"""δ(ε) of a composition as a ball: which way it is enclosed, and how far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx, fmpq

from symdp.balls.enclosure import cgf_ball
from symdp.certify.alias import Height, cheapest_tilt, heights
from symdp.certify.bracket import bracket_delta
from symdp.certify.estimate import Saddle, find_saddle, largest_loss
from symdp.certify.infinity import is_beyond, mass_at_infinity
from symdp.certify.lattice import find_lattice, sum_lattice
from symdp.certify.line import Goal, sum_line
from symdp.certify.lists import enumerate_sums
from symdp.certify.middle import enclose_middle
from symdp.certify.parts import parts_of
from symdp.certify.single import enclose_single
from symdp.certify.step import tilted_step
from symdp.certify.two import enclose_two
from symdp.certify.work import limited
from symdp.errors import AccuracyError, InputError
from symdp.law.tilts import Strip

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_LN10 = math.log(10)
_SPARE = 2.0  # digits beyond those asked, at first
_TRIES = 4
_MIRRORED_TRIES = 3
_MOST_DIGITS = 1000
_BITS = 128
_SMALLER = 5
_NEAR_TOP = 1e-3
_ROUNDED = (6, 8, 10)  # digits of an ε that close ones share
_CLOSE = 0.05  # what it may change log δ by
_TILT_BITS = 3
_SMALLEST = 1e6  # −log δ, as so many bits are carried
_MESH_DIGITS = 7
_MESH_STEPS = 100
_MESH_BITS = 192
_QUARTERS = (2, 1, 3, 0)
_LITTLE, _LEAST_TILT = 1 / 16, 1e-9


def enclose_delta(
    pairs: Iterable[tuple[Pair, int]], epsilon: float | Fraction, digits: int = 15
) -> arb:
    """Enclose δ(ε) of a composition to a relative width of 10^(−digits), every error bounded.

    Parameters
    ----------
    pairs : iterable of (Pair, count)
        All parameters bound, and densities of mass 1, as those of a `Composition` are.
    epsilon : float or Fraction
        Any real number, taken exactly.
    digits : int
        1 to 1000.

    Returns
    -------
    arb
        A ball that contains δ(ε), floating point included.

    Raises
    ------
    InputError
        For an ε or a number of digits out of range.
    AccuracyError
        If no proof was found that narrow.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> ball = enclose_delta([(mechanisms.gaussian(sigma=2).pair(), 3)], Fraction(3, 2), 10)
    >>> bool(0.02888224555 < ball < 0.02888224556)
    True
    """
    steps = list(pairs)
    if not isinstance(digits, int) or not 1 <= digits <= _MOST_DIGITS:
        raise InputError(f"digits must be a whole number from 1 to 1000, not {digits!r}")
    if not math.isfinite(epsilon):
        raise InputError(f"epsilon = {epsilon!r}: it must be a finite number")
    try:
        with limited(digits):
            return _enclose(steps, Fraction(epsilon), digits)
    except AccuracyError as refusal:
        # From the other direction it takes as many digits more as e^ε has.
        is_large = epsilon > _LN10 * digits
        turned = (enclose_middle, _mirrored) if is_large else (_mirrored, enclose_middle)
        for way in (_nearly_one, *turned):
            found = way(steps, Fraction(epsilon), digits)
            if found is not None:
                return found
        found = _on_mesh(steps, Fraction(epsilon), digits, refusal)
        if found is None:
            raise
        return found


def estimate_log_delta(
    pairs: Iterable[tuple[Pair, int]], epsilon: float | Fraction
) -> float | None:
    """Return about log δ(ε) by the first term of its expansion, None where no saddle point serves.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> estimate = estimate_log_delta([(mechanisms.gaussian(sigma=2).pair(), 3)], 1.5)
    >>> bool(abs(estimate - math.log(0.02888)) < 0.05)
    True
    """
    steps = tuple(pairs)
    with suppress(AccuracyError):
        top = largest_loss(steps)
        found = _nearby(steps, top, float(epsilon)) if top > epsilon else None
        return None if found is None else found[1].log_size
    return None


def _nearly_one(steps: Sequence[tuple[Pair, int]], exact: Fraction, digits: int) -> arb | None:
    """Enclose δ(ε) where 1 − δ is small beside it, else None.

    1 − δ is what min(1, e^{ε−L}) ≤ e^{s(ε−L)} is on average over finite L, for any s from 0 to 1.
    """
    with ctx.workprec(_MESH_BITS + 4 * digits):
        at = arb(fmpq(exact.numerator, exact.denominator))
        limit = arb(10) ** -(digits + 1)
        for quarters in _QUARTERS:
            exponent = at * quarters / 4
            try:
                for pair, count in steps:
                    exponent += count * cgf_ball(pair, -sp.Rational(quarters, 4)).real
            except AccuracyError:
                continue
            rest = exponent.exp().upper()
            if rest < limit:
                return 1 - arb(0).union(rest)
    return None


def _mirrored(steps: Sequence[tuple[Pair, int]], exact: Fraction, digits: int) -> arb | None:
    """Enclose δ(ε) from δ′(−ε) of the other direction, None where that is refused as well.

    Of any event E and its complement, P(E) − e^ε Q(E) = 1 − e^ε + e^ε (Q(Eᶜ) − e^{−ε} P(Eᶜ)).
    """
    if all(pair.is_discrete for pair, _ in steps):
        return None
    turned = [(pair.reversed(), n) for pair, n in steps]
    more = digits + _SPARE + max(float(exact), 0.0) / _LN10
    with suppress(AccuracyError), limited(digits):
        for _ in range(_MIRRORED_TRIES):
            other = _enclose(turned, -exact, math.ceil(more))
            with ctx.workprec(int(3.33 * more) + _BITS):
                price = arb(fmpq(exact.numerator, exact.denominator)).exp()
                ball = (1 - price + price * other).min(arb(1))
                if ball > 0 and 2 * ball.rad() < ball.lower() * arb(10) ** -digits:
                    return ball
                size = abs(ball).upper()
            more += max(_SPARE - float(size.log()) / _LN10, _SPARE) if size > 0 else digits
            if more > _MOST_DIGITS:
                break
    return None


def _on_mesh(
    steps: Sequence[tuple[Pair, int]], exact: Fraction, digits: int, refusal: AccuracyError
) -> arb | None:
    """Enclose δ(ε) of few steps to few digits where the other ways refuse, None where none can."""
    if digits > _MESH_DIGITS or sum(n for _, n in steps) > _MESH_STEPS:
        return None
    if all(pair.is_discrete for pair, _ in steps):
        return None
    # Where K is infinite at every t > 0 a small tilt will do, for δ is not small there.
    tilt, log_size = _LITTLE, -_LN10 * digits
    saddle = _saddle(tuple(steps), float(exact))
    if saddle is not None and saddle.tilt > _LEAST_TILT:
        tilt, log_size = saddle.tilt, saddle.log_size
    with ctx.workprec(_MESH_BITS):
        at = arb(fmpq(exact.numerator, exact.denominator))
        try:
            ball = mass_at_infinity(steps, arb(2) ** -_MESH_BITS)
            ball += bracket_delta(steps, at, tilt, log_size, digits)
        except AccuracyError as error:
            raise AccuracyError(f"{refusal}; on a mesh: {error}") from None
        ball = ball.max(arb(0)).min(arb(1))
        return ball if 2 * ball.rad() < ball.lower() * arb(10) ** -digits else None


def _enclose(steps: Sequence[tuple[Pair, int]], exact: Fraction, digits: int) -> arb:
    size = math.log10(1 + sum(n for _, n in steps))
    spare = _SPARE
    for _ in range(_TRIES):
        with ctx.workprec(int(3.33 * (digits + spare + size)) + _BITS):
            at = arb(fmpq(exact.numerator, exact.denominator))
            ball = mass_at_infinity(steps, arb(10) ** -int(digits + spare + 4))
            if 1 - ball < arb(10) ** -(digits + 1):  # whatever the rest adds
                return ball.union(arb(1)).min(arb(1))
            ball += _finite(steps, exact, at, digits + spare)
            if ball.is_zero():
                return ball
            ball = ball.max(arb(0)).min(arb(1))
            width = 2 * ball.rad() / ball.lower() if ball.lower() > 0 else arb.pos_inf()
            if width.is_finite() and width < arb(10) ** -digits:
                return ball
            lost = float(width.log()) / _LN10 + digits if width.is_finite() else digits
        spare += max(lost, 0.0) + _SPARE
    raise AccuracyError("the enclosure stays too wide; ask for fewer digits")


def _finite(steps: Sequence[tuple[Pair, int]], exact: Fraction, epsilon: arb, digits: float) -> arb:
    """Enclose δ(ε) less the mass at infinity, whichever way its loss allows."""
    top = largest_loss(steps)
    if not top - float(epsilon) > 1e-9 * abs(top) and is_beyond(
        steps, sp.Rational(exact.numerator, exact.denominator)
    ):
        return arb(0)
    if len(steps) == 1 and steps[0][1] == 1:
        return _single(steps[0][0], epsilon, digits)
    is_discrete = all(parts_of(pair).is_discrete for pair, _ in steps)
    lattice = find_lattice(steps) if is_discrete else None
    if is_discrete and lattice is None:
        with suppress(AccuracyError):  # too many sums
            return enumerate_sums(steps, epsilon, digits)
    if lattice is None and sum(n for _, n in steps) == 2:
        with suppress(AccuracyError):
            return enclose_two([pair for pair, n in steps for _ in range(n)], epsilon, digits)
    found = _nearby(tuple(steps), top, float(epsilon))
    if found is None:
        raise AccuracyError("no t > 0 was found at which the CGF of the loss is finite")
    about, saddle = found
    if -saddle.log_size > _SMALLEST:
        raise AccuracyError(f"log δ is about {saddle.log_size:.3g}: too small a δ to certify")
    # Tilt and width are rounded coarsely, so that close ε share nodes.
    step = 2.0 ** math.floor(-0.5 * math.log2(saddle.curvature) - 1.0)
    tilt = _rounded(saddle.tilt, step)
    if lattice is None:
        log_goal = saddle.log_size - _LN10 * digits
        tilt = _rounded(cheapest_tilt(_profile(tuple(steps), about), saddle.tilt, log_goal), step)
    tilted = [(tilted_step(pair, tilt), n) for pair, n in steps]
    width = step * 2.0 ** round(2 + math.log2(_LN10 * digits) / 2)
    goal = Goal(saddle.log_size, width, digits)
    with ctx.workprec(ctx.prec + int(max(0.0, -saddle.log_size) / math.log(2))):
        if lattice is not None:
            try:
                return sum_lattice(tilted, lattice, tilt, epsilon, goal)
            except AccuracyError:  # few steps, on a lattice that is fine for them
                with suppress(AccuracyError):
                    return enumerate_sums(steps, epsilon, digits)
                raise
        return sum_line(tilted, tilt, epsilon, goal)


def _nearby(
    steps: tuple[tuple[Pair, int], ...], top: float, epsilon: float
) -> tuple[float, Saddle] | None:
    """Return an ε near by, which close ones share unless the largest loss is near, and its saddle.

    Of very many steps the deviation of the sum is small beside its mean.
    """
    if top - epsilon > _NEAR_TOP * abs(epsilon):
        for digits in _ROUNDED:
            about = float(f"{epsilon:.{digits}g}")
            saddle = _saddle(steps, about)
            if saddle is not None and saddle.tilt * abs(epsilon - about) < _CLOSE:
                return about, saddle
    exact = _saddle(steps, epsilon)
    return None if exact is None else (epsilon, exact)


def _single(pair: Pair, epsilon: arb, digits: float) -> arb:
    bits = 64 * math.ceil((3.33 * digits + 40) / 64)
    ball = arb(0)
    for _ in range(_SMALLER):
        with ctx.workprec(bits + _BITS):
            ball = enclose_single(pair, epsilon, bits)
        if ball > 0 and ball.rad() < ball * arb(10) ** -int(digits):
            break
        bits *= 2  # what is cut off must be small beside δ
    return ball


def _rounded(tilt: float, step: float) -> sp.Rational:
    """Return a multiple of a step, or of so few bits of a smaller tilt."""
    step = min(step, 2.0 ** (math.floor(math.log2(tilt)) - _TILT_BITS))
    return sp.Rational(max(math.floor(tilt / step), 1)) * sp.Rational(step)


@lru_cache(maxsize=128)
def _profile(steps: tuple[tuple[Pair, int], ...], epsilon: float) -> tuple[Height, ...]:
    """Return K(s) − sε about the saddle point, which decides about costs alone."""
    saddle = _saddle(steps, epsilon)
    return () if saddle is None else heights(steps, epsilon, saddle.tilt)


@lru_cache(maxsize=128)
def _saddle(steps: tuple[tuple[Pair, int], ...], epsilon: float) -> Saddle | None:
    """Return the saddle point, which decides about costs alone."""
    return find_saddle(steps, epsilon, Strip.RIGHT)
