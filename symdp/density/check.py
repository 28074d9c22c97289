"""Closed forms compared with integrals that know nothing of how they were found.

Moments of the loss are enclosed in balls, piece by piece, and a form is believed where it equals
them to 18 digits at random tilts, on the real axis and off it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import mpmath
import sympy as sp
from flint import acb, arb, ctx, fmpq

from symdp.density.pieces import pieces, points
from symdp.density.records import Piece, Point, mapped
from symdp.density.signs import DIGITS, interior_point, random_values
from symdp.emit.arb import ArbFunction, compile_arb
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import T, attempt

if TYPE_CHECKING:
    from symdp.model.pair import Pair

DIGITS_COMPARED = 18
_TOLERANCE = mpmath.mpf(10) ** -DIGITS_COMPARED  # relative: forms that are off are off by far more

_CHECK_ROUNDS = 2  # random values of parameters and tilts
BITS = 480  # carried: checks are to 30 digits
_DROP = 60.0  # integrals are cut where e^−60 of them is left
_FAR = 1000  # cuts are sought as far out as 2^1000
_MOST_EVALUATIONS = 50_000  # of an integrand: a few seconds
_MOST_TERMS = 20_000  # of a sum: a few seconds
_ZOOMS = 24  # halvings around a peak
_CLIMBS = 8  # grids, each around the last one's peak
# logs of sizes that do not count
_DEEP = -1e6
_NOTHING = -1e300

Height = Callable[[Fraction], float]


class CheckError(ArithmeticError):
    """The integral of a check could not be had."""


def moment(z: sp.Expr, pieces: Sequence[Piece], points: Sequence[Point], x: sp.Symbol) -> acb:
    """Return a ball around M(z) = Σ ∫ P^{1+z} Q^{−z} where both densities are positive.

    The cuts of infinite ranges are not part of the ball; they leave out about e^−60 of the whole.
    """
    infinite = (sp.oo, -sp.oo)
    with ctx.workprec(BITS):
        total = acb(0)
        for point in points:
            if point.loss in infinite:
                continue
            loss = compile_arb(point.loss, [])()
            mass = compile_arb(point.p, [])()
            exponent = _ball_of_point(z) * acb(loss)
            total += acb(mass) * exponent.exp()
        for piece in pieces:
            if piece.loss not in infinite and piece.log_p is not None:
                total += _PieceMoment(piece, z, x).value()
    return total


def _ball_of_point(z: sp.Expr) -> acb:
    parts = [sp.Rational(part) for part in z.as_real_imag()]
    return acb(*(fmpq(int(part.p), int(part.q)) for part in parts))


def exactly(point: Fraction) -> acb:
    """Return a fraction as a ball."""
    return acb(fmpq(point.numerator, point.denominator))


def as_fraction(end: sp.Expr) -> Fraction | None:
    """Return a number as a fraction, right to 150 digits; None where it is infinite."""
    if end in (sp.oo, -sp.oo):
        return None
    rational = end
    if not end.is_Rational:
        rational = sp.Rational(str(end.evalf(150)))
    return Fraction(int(rational.p), int(rational.q))


class _PieceMoment:
    """∫ exp(log P + z·loss) over one piece."""

    def __init__(self, piece: Piece, z: sp.Expr, x: sp.Symbol) -> None:
        assert piece.log_p is not None
        self.log_p = compile_arb(piece.log_p, [x])
        self.loss = compile_arb(piece.loss, [x])
        self.formulas = (piece.log_p, piece.loss, x)
        self.z = _ball_of_point(z)
        self.low = as_fraction(piece.lower)
        self.high = as_fraction(piece.upper)
        self.is_sum = bool(x.is_integer)

    @cached_property
    def slopes(self) -> tuple[ArbFunction, ArbFunction] | None:
        """The derivatives of log P and of the loss, None where they have no ball arithmetic."""
        log_p, loss, x = self.formulas
        try:
            return compile_arb(sp.diff(log_p, x), [x]), compile_arb(sp.diff(loss, x), [x])
        except InputError:
            return None

    def integrand(self, point: Any, analytic: bool) -> Any:
        log_p = self.log_p(point, analytic=analytic)
        loss = self.loss(point, analytic=analytic)
        exponent = log_p + self.z * loss
        is_narrow = bool(exponent.real.rad() < 1)
        if exponent.is_finite() and not is_narrow:
            exponent = self._centred(point, exponent, analytic)
        return exponent.exp()

    def _centred(self, point: acb, exponent: acb, analytic: bool) -> acb:
        """The exponent by the mean value theorem: log P and z·ℓ may be large and cancel."""
        if self.slopes is None:
            return exponent
        middle = acb(point.real.mid(), point.imag.mid())
        log_p_slope, loss_slope = self.slopes
        slope_of_log_p = log_p_slope(point, analytic=analytic)
        slope_of_loss = loss_slope(point, analytic=analytic)
        at_middle = self.log_p(middle) + self.z * self.loss(middle)
        slope = slope_of_log_p + self.z * slope_of_loss
        centred = at_middle + slope * (point - middle)
        if bool(centred.real.rad() < exponent.real.rad()):
            return acb(centred)
        return exponent

    def height(self, point: Fraction) -> float:
        """Log of the integrand's size, −∞ where balls overflow."""
        point_ball = exactly(point)
        ball = (self.log_p(point_ball) + self.z.real * self.loss(point_ball)).real
        if not ball.is_finite():
            return -math.inf
        if bool(ball.rad() < 1):
            return max(float(ball), _NOTHING)
        # Far down a bound is as good as the value, which may cancel below the precision.
        if bool(ball < _DEEP):
            return max(float(ball.upper()), _NOTHING)
        return -math.inf

    def value(self) -> acb:
        if self.is_sum:
            return self._sum_over_integers()
        marks, size = cut_marks(self.height, self.low, self.high)
        tolerance = arb(2) ** -100 * arb(size).exp()
        total = acb(0)
        for left, right in pairwise(marks):
            total += acb.integral(
                self.integrand,
                exactly(left),
                exactly(right),
                rel_tol=arb(2) ** -80,
                abs_tol=tolerance,
                eval_limit=_MOST_EVALUATIONS,
            )
            if not total.is_finite():
                raise CheckError("the integral of the check did not converge")
        return total

    def _sum_over_integers(self) -> acb:
        if self.low is not None and self.low == self.high:
            return acb(self.integrand(acb(int(self.low)), False))
        marks, _ = cut_marks(self.height, self.low, self.high)
        first = math.ceil(marks[0])
        last = math.floor(marks[-1])
        if last - first > _MOST_TERMS:
            raise CheckError("the terms of the check fall too slowly")
        total = acb(0)
        for k in range(first, last + 1):
            total += self.integrand(acb(k), False)
        return total


def cut_marks(
    height: Height, low: Fraction | None, high: Fraction | None
) -> tuple[list[Fraction], float]:
    """Cut a range where nothing is left of the integrand, at its peak, and near singular ends."""
    finite_ends = [end for end in (low, high) if end is not None]
    heights: dict[Fraction, float] = {}
    for anchor in finite_ends or [Fraction(0)]:
        heights |= _heights(height, anchor, low, high)
    singular = [end for end in finite_ends if not math.isfinite(heights[end])]

    def mass(point: Fraction) -> float:
        """The height, less near a singular end, where what is high is narrow."""
        log_height = heights.get(point)
        if log_height is None:
            log_height = height(point)
        distances = [abs(point - end) for end in singular if point != end]
        log_width = min(map(_log_of_width, distances), default=0.0)
        return log_height + min(0.0, log_width)

    def highest() -> Fraction:
        return _zoomed(mass, {point: mass(point) for point in heights})

    peak = highest()
    for _ in range(_CLIMBS):  # from a slope so steep that the first grid saw its foot alone
        heights |= _heights(height, peak, low, high)
        higher = highest()
        if mass(higher) <= mass(peak):
            break
        peak = higher
    heights[peak] = height(peak)
    ordered = sorted(heights)
    size = _log_size(heights, ordered)
    floor = size - _DROP
    faint = []
    for point in ordered:
        if point != peak and heights[point] + _log_of_width(abs(peak - point)) < floor:
            faint.append(point)
    start = max((point for point in faint if point < peak), default=low)
    stop = min((point for point in faint if point > peak), default=high)
    if start is None or stop is None:
        raise CheckError("the integrand of the check falls too slowly")
    marks = {start, peak, stop, *_far_marks(peak, start, stop)}
    for end, other in ((start, min(marks - {start})), (stop, max(marks - {stop}))):
        if not math.isfinite(height(end)):
            marks.discard(end)
            marks.update(_shells(height, end, other, floor))
    return sorted(marks), size


def _log_of_width(width: Fraction) -> float:
    return math.log(width.numerator) - math.log(width.denominator)


def _far_marks(peak: Fraction, start: Fraction, stop: Fraction) -> set[Fraction]:
    """Marks at geometric distances, for ranges far longer than the integrand's own scale."""
    marks = (peak + side * Fraction(2) ** k for side in (-1, 1) for k in range(8, _FAR, 8))
    return {mark for mark in marks if start < mark < stop}


def _heights(
    height: Height, anchor: Fraction, low: Fraction | None, high: Fraction | None
) -> dict[Fraction, float]:
    """Heights at geometric distances from an anchor, out to where nothing is left."""
    heights = {anchor: height(anchor)}
    for side in (-1, 1):
        end = high
        if side < 0:
            end = low
        last = heights[anchor]
        for k in range(-30, _FAR):
            point = anchor + side * Fraction(2) ** k
            if end is not None and (end - point) * side <= 0:
                break
            log_height = height(point)
            lowest = max(heights.values()) - 2 * _DROP
            if log_height == -math.inf and last == _NOTHING:
                break  # so far down that balls overflow
            if log_height == -math.inf and last >= lowest + _DROP:
                raise CheckError("the integrand of the check grows beyond all bounds")
            heights[point] = last = log_height
            if k > 30 and log_height + k * math.log(2) < lowest:
                break
    return heights


def _zoomed(height: Height, heights: dict[Fraction, float]) -> Fraction:
    """Return the place of the peak, sharpened between its neighbours on the grid."""
    ordered = sorted(heights)
    last = len(ordered) - 1
    best = max(range(last + 1), key=lambda i: heights[ordered[i]])
    low = ordered[max(best - 1, 0)]
    peak = ordered[best]
    high = ordered[min(best + 1, last)]
    if not math.isfinite(heights[peak]):
        raise CheckError("the integrand of the check vanishes on its grid")
    for _ in range(_ZOOMS):
        left = (low + peak) / 2
        right = (peak + high) / 2
        heights[left] = height(left)
        heights[right] = height(right)
        around = [low, left, peak, right, high]
        best = max(range(5), key=lambda i: heights[around[i]])
        low = around[max(best - 1, 0)]
        peak = around[best]
        high = around[min(best + 1, 4)]
    return peak


def _shells(height: Height, end: Fraction, other: Fraction, floor: float) -> list[Fraction]:
    """Marks that close in on an end where the integrand is singular; the end is not one."""
    length = other - end
    log_length = _log_of_width(abs(length))
    marks = []
    for k in range(1, BITS):
        marks.append(end + length / 2**k)
        ahead = (k, k + 3, k + 10, k + 30, k + 100)  # it may rise again towards the end
        heights = (height(end + length / 2**j) - j * math.log(2) + log_length for j in ahead)
        if all(log_mass < floor for log_mass in heights):
            return marks
    raise CheckError("the integrand of the check is too singular")


def _log_size(heights: dict[Fraction, float], ordered: Sequence[Fraction]) -> float:
    """Log of the largest panel, width times its lower height, of a grid."""
    log_panels = []
    for left, right in pairwise(ordered):
        lower_height = min(heights[left], heights[right])
        log_panels.append(lower_height + _log_of_width(right - left))
    return max(log_panels)


def tilts_to_check(
    domain: tuple[sp.Expr, sp.Expr] | None, values: Mapping[sp.Symbol, sp.Expr], seed: int
) -> tuple[sp.Rational, ...]:
    """Return two random rational tilts, one in each half of the domain of K."""
    chance = random.Random(seed)
    lower, upper = domain or (sp.S.NegativeOne, sp.S.Zero)
    quarter = sp.Rational(1, 4)
    farthest = sp.Rational(7, 2)
    low = max(-farthest, _inner(lower.subs(values), quarter))
    high = min(farthest, _inner(upper.subs(values), -quarter))
    tilts: list[sp.Rational] = []
    for half in range(2):
        tilt = sp.S.Zero
        while tilt in (0, -1):  # K is known there
            within_half = sp.Rational(chance.randint(1, 22), 23)
            share = (half + within_half) / 2
            tilt = low + share * (high - low)
        tilts.append(tilt)
    return tuple(tilts)


def _inner(end: sp.Expr, fraction: sp.Rational) -> sp.Expr:
    """Move a finite end of the domain, which lies beyond [−1, 0], a little inwards."""
    if end in (sp.oo, -sp.oo):
        return end
    value = sp.Rational(sp.floor(sp.N(end, 30) * 64), 64)  # a short rational, at most 1/64 off
    span = sp.Rational(1, 4)
    if value not in (0, -1):
        span = max(sp.S.Half, abs(value))
    return value + fraction * span


def off_the_axis(cgf: sp.Expr, tilt: sp.Symbol, at: sp.Rational, seed: int) -> sp.Expr:
    """Return at + iy with y of the order of one over the tilted standard deviation of the loss.

    Much further out M(at + iy) would be too small, beside M(at), to check anything.
    """
    chance = random.Random(seed)
    second_derivative = sp.diff(cgf, tilt, 2).subs(tilt, at)
    variance = sp.re(second_derivative.evalf(10, maxn=400))
    spread = sp.S.One
    if variance.is_Float:
        deviation = sp.sqrt(abs(variance))
        spread = max(sp.S.One, deviation)
    size = sp.Rational(chance.randint(5, 20), 7) / spread
    y = sp.Rational(str(size.evalf(3)))
    return at + sp.I * y


def agrees(
    cgf: sp.Expr,
    tilt: sp.Symbol,
    at: sp.Expr,
    law: tuple[Sequence[Piece], Sequence[Point], sp.Symbol],
) -> bool:
    """Whether exp(K(z)) equals Σ ∫ exp(log P + z·loss) to 10⁻¹⁸ of exp(K(Re z))."""
    with mpmath.workdps(DIGITS):
        closed = _moment_at(cgf, tilt, at)
        size = _moment_at(cgf, tilt, sp.re(at))
        if closed is None or size is None:
            return False
        ball = moment(at, *law)
        allowed = _TOLERANCE * abs(size)
        real = _to_mpf(ball.real.mid())
        imaginary = _to_mpf(ball.imag.mid())
        radius = _to_mpf(ball.real.rad().mid()) + _to_mpf(ball.imag.rad().mid())
        if radius > allowed:
            raise CheckError("the integral of the check is not accurate enough")
        off = abs(closed - mpmath.mpc(real, imaginary))
        return bool(off <= allowed)


def _moment_at(cgf: sp.Expr, tilt: sp.Symbol, at: sp.Expr) -> Any:
    value = sp.exp(cgf).subs(tilt, at).evalf(DIGITS, maxn=1000)
    numbers = []
    for part in value.as_real_imag():
        if not (part.is_Float or part.is_Rational):
            return None
        numbers.append(mpmath.mpmathify(part))
    return mpmath.mpc(*numbers)


def _to_mpf(number: Any) -> Any:
    mantissa, exponent = number.man_exp()
    return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))


def logs_agree(pair: Pair, pieces: Sequence[Piece]) -> bool:
    """Whether the log densities of the pieces are those of P and Q, at one point of each."""
    x = pair.variable
    densities = [compile_arb(law, [x]) for law in (pair.P, pair.Q) if not isinstance(law, tuple)]
    masses = [dict(pair.atoms_under(weights)) for weights in (pair.p_weights, pair.q_weights)]
    with ctx.workprec(BITS):
        for piece in pieces:
            laws = densities
            if piece.place is not None:
                laws = [compile_arb(atom_masses[piece.place], [x]) for atom_masses in masses]
            at = piece.lower
            if piece.lower != piece.upper:
                at = interior_point(piece.lower, piece.upper)
            if x.is_integer:
                at = sp.floor(at)
            fraction = as_fraction(at)
            assert fraction is not None
            point = exactly(fraction)
            for law, log in zip(laws, (piece.log_p, piece.log_q), strict=True):
                from_log = 0
                if log is not None:
                    from_log = compile_arb(log, [x])(point).exp()
                gap = law(point) - from_log
                if not gap.contains(0):
                    return False
    return True


class NoClosedForm(Exception):  # noqa: N818  (it carries a reason, not an error)
    """Why the closed form was given up."""


def in_time(work: Callable[[], T], reason: str, seconds: float) -> T:
    """Return what the work returns; raise NoClosedForm with the reason where its time is up."""
    answer = attempt(work, None, seconds)
    if answer is None:
        raise NoClosedForm(reason)
    return answer


def checked(
    expression: sp.Expr,
    pair: Pair,
    tilt: sp.Symbol,
    domain: tuple[sp.Expr, sp.Expr] | None,
    below_one: tuple[str, ...],
) -> tuple[tuple[sp.Expr, ...], tuple[tuple[tuple[str, sp.Expr], ...], ...]]:
    """Compare a closed form with integrals; return the tilts and the parameter values used."""
    symbols = (expression.free_symbols - {tilt}) | parameters_of(pair)
    rounds = 1
    if symbols:
        rounds = _CHECK_ROUNDS
    done: list[sp.Expr] = []
    used: list[tuple[tuple[str, sp.Expr], ...]] = []
    for seed in range(rounds):
        values = random_values(symbols, seed, below_one)
        bound = expression.subs(values)
        tilts = tilts_to_check(domain, values, seed)
        if symbols:
            tilts = tilts[seed : seed + 1]
        places = []
        for real in tilts:
            places += [real, off_the_axis(bound, tilt, real, seed)]
        _compare(bound, tilt, with_values(pair, dict(values)), places)
        named_values = tuple((str(s.name), v) for s, v in values.items())
        done += places
        used += [named_values] * len(places)
    return tuple(done), tuple(used)


def _compare(bound: sp.Expr, tilt: sp.Symbol, concrete: Pair, places: Iterable[sp.Expr]) -> None:
    """Compare a form without parameters with integrals; raise NoClosedForm where it differs."""
    try:
        smooth_pieces = pieces(concrete)
        listed = points(concrete)
        if not logs_agree(concrete, smooth_pieces):
            raise NoClosedForm("the log densities disagree with P and Q")
        for at in places:
            if not agrees(bound, tilt, at, (smooth_pieces, listed, concrete.variable)):
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
    if not values:
        return pair
    substituted = replace(pair, support=pair.support.substitute(values))
    return mapped(substituted, lambda part: part.subs(values))
