"""The mass of a density: proved where its tails are bounded, else seen by two quadratures.

**Proved.**  Each smooth part is integrated by Arb between two places, its tails are bounded beyond
them (see `cuts`).  Next to a finite end at which the density has no value, x = end ± e^{−s} puts
that end at infinity.  The logarithm is tried, too: no factor overflows in it.

**Seen.**  Where no tail is bounded the integral is enclosed on shells that grow geometrically away
from the ends, the kinks or 0, and the partial sums are extrapolated by Wynn's ε-algorithm, which is
exact for tails that are sums of powers.  Two quadratures, over other shells each, must agree.

Emitted formulas hold what a density is divided by as a constant; `emit` alone integrates less than
this room, and loading this file hands it the ways of here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import mpmath
import sympy as sp
from flint import acb, arb, ctx

from symdp.density.breakpoints import Stretch, cut_at, singular_points, smooth_stretches
from symdp.density.gammas import with_fewer_gammas
from symdp.density.normal_form import log_form
from symdp.density.pieces import pieces
from symdp.density.records import DISTANCE, Piece
from symdp.density.signs import interior_point
from symdp.emit import compile_arb
from symdp.emit.arb import ENCLOSERS, UNKNOWN
from symdp.emit.enclose import between, enclose_sum
from symdp.emit.exact import end_ball, real_ball
from symdp.emit.mass import MassIntegral, MassSum
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import Deadline, worked
from symdp.model import tidy
from symdp.model.pair import Pair
from symdp.tolerances import MASS_BITS, SHORT_TIME, SOME_TIME, SUMS_ROUNDED

_MOST_TERMS = 64  # of a density multiplied out
_ENOUGH = arb(2) ** -90  # absolute accuracy, where no more can be had: 27 digits
_NARROW = arb(2) ** -60  # relative: far below the rounding of doubles
_PROOF_EVALUATIONS = 60_000  # of an integrand: more than the seconds of one proof allow
_UNIT = sp.Symbol("u", real=True)  # between −1 and 1
_REACH = 2.0**44  # how far the shells go
_BITS = 80  # carried by the balls of a quadrature
_CUT = 2.0**-52  # of a shell
_NOTHING = 1e-20  # a mass of a shell that is none
_EVALUATIONS = 300_000  # of an integrand: more than those seconds allow
_TOO_MUCH = 1e3  # of a mass: more will not come down to 1
# partial sums that are extrapolated
_FEWEST = 11
_SUMMED = 14
# of distances from 0 at which a density's scale is looked for
_OCTAVES = 200
_OCTAVE_STEP = 4
# octaves below 1, and above, within which a scale needs no change
_NEAR_ONE = 10
_FAR_OUT = 60
_MOST_INTEGERS = 2**17  # of a shell that is summed

_Part = tuple[sp.Expr, sp.Symbol, sp.Expr, sp.Expr]  # a density, its variable and its ends


@dataclass(frozen=True)
class MassCheck:
    """Whether masses may be 1 (else they are off by a rounded constant), and whether by a proof."""

    is_one: bool
    is_proved: bool


def enclose_mass(
    density: sp.Expr,
    x: sp.Symbol,
    lower: sp.Expr,
    upper: sp.Expr,
    tolerance: arb,
    deadline: Deadline,
) -> arb:
    """Enclose the integral of a density, or its sum over integers, to an absolute accuracy."""
    constant, moving = density.as_independent(x, as_Add=False)
    if constant == 0:
        return arb(0)
    scale = sp.S.One if x.is_integer else _scale(moving, x, lower, upper)
    if scale != 1:
        moving = sp.powsimp(moving.xreplace({x: scale * x}), combine="exp")
        constant, lower, upper = constant * scale, lower / scale, upper / scale
    factor = real_ball(constant)  # a normaliser, perhaps, that SymPy would work on without end
    # A wide ball that serves a power tail holds a pole of 1/cosh: positive addends go one by one.
    addends = [moving]
    if moving.is_Add and all(a.is_positive for a in moving.args):
        addends = moving.args
    parts = (part for addend in addends for part in _parts(addend, x, lower, upper))
    enough = tolerance / (len(addends) * abs(factor))
    return factor * sum((_part_mass(part, enough, deadline) for part in parts), arb(0))


def _scale(density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    """Return the power of two at which most mass of a density on a line is, 1 where it is near.

    Cuts of tails begin at 1, and Arb halves what lies between them: a peak far narrower takes too
    long, and is better made 1 wide.
    """
    if lower.is_finite and upper.is_finite:
        return sp.S.One
    ball = compile_arb(density, [x])
    largest = arb(0)
    scale = 0
    with ctx.workprec(_BITS):
        for octave in range(-_OCTAVES, _OCTAVES, _OCTAVE_STEP):
            for side in (end for end in (-1, 1) if lower < end * sp.Integer(2) ** octave < upper):
                shell = abs(ball(side * arb(2) ** octave)) * arb(2) ** octave
                if shell.is_finite() and shell > largest:
                    largest = shell
                    scale = octave
    if -_NEAR_ONE < scale < _FAR_OUT:
        return sp.S.One
    return sp.Integer(2) ** scale


def _parts(density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> Iterator[_Part]:
    """Yield smooth parts, those next to an end at which there is no value in another variable."""
    half = sp.S.Half if x.is_integer else sp.S.Zero  # kinks at the ends lie inside
    stretches = smooth_stretches((density,), x, lower - half, upper + half)
    if not x.is_integer:
        stretches = [part for stretch in stretches for part in _without_poles(stretch, x)]
    for stretch in stretches:
        (expression,) = stretch.expressions
        low = stretch.lower
        high = stretch.upper
        if expression == 0:
            continue
        if x.is_integer:
            if not stretch.is_point:
                low = low if low.is_infinite else sp.floor(low) + 1
                high = high if high.is_infinite else sp.ceiling(high) - 1
            if low <= high:  # else no integer lies between two kinks
                yield with_fewer_gammas(expression, x), x, low, high
        elif all(end.is_infinite or _is_finite_at(expression, x, end) for end in (low, high)):
            yield expression, x, low, high
        else:
            for x_of_v, v, first, last in _halves(x, low, high):
                if v == x:
                    yield expression, v, first, last
                    continue
                moved = sp.powsimp(expression.subs(x, x_of_v) * sp.exp(-v))
                yield moved, v, first, last


def _without_poles(stretch: Stretch, x: sp.Symbol) -> list[Stretch]:
    """Cut a stretch where its density is infinite."""
    (density,) = stretch.expressions
    ball = compile_arb(density, [x])
    points = singular_points(density, x, stretch.lower, stretch.upper)
    infinite = [point for point in points if not ball(real_ball(point)).is_finite()]
    return cut_at(stretch, infinite, is_integer=False)


def _is_finite_at(density: sp.Expr, x: sp.Symbol, end: sp.Expr) -> bool:
    return bool(compile_arb(density, [x])(real_ball(end)).is_finite())


def _part_mass(part: _Part, tolerance: arb, deadline: Deadline) -> arb:
    density, x, *ends = part
    if not all(end.is_infinite or x.is_integer or _is_finite_at(density, x, end) for end in ends):
        raise AccuracyError("a density has no value inside its support")
    balls = [end_ball(end) for end in ends]
    tails = arb(0)
    if not x.is_integer and density.has(sp.cos, sp.sin):
        balls, tails = _cut_waves(density, x, balls, tolerance, deadline)
    ball = arb.nan()
    for inside, exponents in _readings(*part):
        with suppress(AccuracyError):
            ball = _between_cuts(inside, exponents, x, balls, tolerance, deadline)
            if ball.rad() < 1e3 * tolerance:
                break
        deadline.check()
    return ball + tails


def _cut_waves(
    density: sp.Expr, x: sp.Symbol, ends: list[arb | None], tolerance: arb, deadline: Deadline
) -> tuple[list[arb | None], arb]:
    """Return the ends, finite ones where waves under a power tail go on, and the mass beyond."""
    from symdp.balls.wave_tails import wave_tail  # few densities have any

    cut = list(ends)
    beyond = arb(0)
    for side, direction in ((0, -1), (1, 1)):
        if ends[side] is not None:
            continue
        other = ends[1 - side]
        begin = arb(1)
        if other is not None:
            begin = (abs(other).upper() + 1).ceil()
        tail = wave_tail(density.xreplace({x: direction * DISTANCE}), begin, tolerance, deadline)
        if tail is not None:
            cut[side] = direction * tail[0]
            beyond += tail[1]
    return cut, beyond


def _between_cuts(
    inside: Callable[..., Any],
    exponents: Callable[[int], list[sp.Expr]],
    x: sp.Symbol,
    ends: list[arb | None],
    tolerance: arb,
    deadline: Deadline,
) -> arb:
    from symdp.balls.cuts import cut_tail  # masses of built-in densities are known

    def height(point: arb) -> Any:
        deadline.check()
        return inside(point)

    places = [arb(0) if end is None else end for end in ends]
    tails = arb(0)
    for side, direction in ((0, -1), (1, 1)):
        if ends[side] is None:
            places[side], mass = cut_tail(
                exponents(direction), height, direction, ends[1 - side], tolerance,
                whole=x.is_integer,
            )  # fmt: skip
            tails += mass
    spread = between(-tails, tails)
    if x.is_integer:
        return _partial_sum(inside, places[0].floor(), places[1].ceil(), deadline) + spread
    integral = _arb_integral(inside, places[0], places[1], tolerance, _PROOF_EVALUATIONS, deadline)
    return integral + spread


def _arb_integral(
    function: Callable[..., Any],
    lower: arb,
    upper: arb,
    tolerance: arb,
    evaluations: int,
    deadline: Deadline,
) -> arb:
    """Return Arb's integral of a function of a ball and of `analytic` between finite ends."""
    is_over = False

    def values(point: acb, analytic: bool = False) -> Any:
        nonlocal is_over
        if is_over or deadline.is_past:
            is_over = True  # an error raised here would not stop Arb
            return UNKNOWN
        return function(point, analytic=analytic)

    ball = acb.integral(
        values,
        acb(lower),
        acb(upper),
        abs_tol=tolerance,
        rel_tol=arb(2) ** (4 - ctx.prec),
        eval_limit=evaluations,
    )
    if is_over:
        deadline.check()
    return arb(ball.real)


def _halves(
    x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> list[tuple[sp.Expr, sp.Symbol, sp.Expr, sp.Expr]]:
    """Return x in each half with its variable and ends: end ± e^{−s} beside a finite end."""
    half_length = sp.Integer(1)
    if lower.is_finite and upper.is_finite:
        half_length = (upper - lower) / 2
    s = sp.Dummy("s", real=True)
    nearest = -sp.log(half_length)
    first = (x, x, lower, upper - 1)
    if lower.is_finite:
        first = (lower + sp.exp(-s), s, nearest, sp.oo)
    second = (x, x, lower + 1, upper)
    if upper.is_finite:
        second = (upper - sp.exp(-s), s, nearest, sp.oo)
    return [first, second]


def _partial_sum(term: Callable[..., Any], lower: arb, upper: arb, deadline: Deadline) -> arb:
    """Enclose a sum over the integers between two."""

    def checked(k: Any, analytic: bool = False) -> Any:
        deadline.check()
        return term(k, analytic=analytic)

    return enclose_sum(checked, lower, upper)


def _readings(
    density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> Iterator[tuple[Callable[..., Any], Callable[[int], list[sp.Expr]]]]:
    """Yield a density as it stands and by its logarithm, with what bounds it on either side."""
    yield compile_arb(density, [x]), lambda side: _exponents(density.xreplace({x: side * DISTANCE}))
    interior = lower if lower == upper else interior_point(lower, upper)
    log = log_form(density, x, interior).to_expression()
    height = compile_arb(log, [x])
    yield (
        lambda at, analytic=False: height(at, analytic=analytic).exp(),
        lambda side: [log.xreplace({x: side * DISTANCE})],
    )


def _exponents(far: sp.Expr) -> list[sp.Expr]:
    """Return gᵢ with |f| ≤ Σ e^{gᵢ}, the logarithms of its terms; none if they are too many."""
    if far.has(sp.Sum):
        return []
    far = tidy.without_hyperbolics(far)
    if far.has(sp.erf):  # 1 − erf(z) is no difference then
        far = far.rewrite(sp.erfc)
    spread = sp.expand(far, power_base=False, power_exp=False, log=False, basic=False)
    forms = [form for form in (spread, far) if len(sp.Add.make_args(form)) <= _MOST_TERMS]
    exponents = []
    for term in sp.Add.make_args(forms[0]) if forms else ():
        exponent = sp.S.Zero
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            size = base if base.is_positive else sp.Abs(base)  # which SymPy would work on
            exponent += factor.args[0] if isinstance(factor, sp.exp) else power * sp.log(size)
        exponents.append(exponent)
    return exponents


def enclose_normalizer(mass: MassIntegral | MassSum) -> arb | None:
    """Return a ball around what a density is divided by, None where nothing gives one.

    Two quadratures that agree are believed, with a wider ball, where nothing proves one.
    """
    density, (x, lower, upper) = mass.parts
    scale = sp.S.One
    if not (x.is_integer or lower.is_infinite or upper.is_infinite):
        # Quadratures look for masses of about 1, and a density of any width is looked at once.
        middle = (lower + upper) / 2
        scale = (upper - lower) / 2
        if middle != 0 or scale != 1:
            moved = density.subs(x, middle + scale * _UNIT)
            mass = MassIntegral(moved, sp.Tuple(_UNIT, sp.Integer(-1), sp.Integer(1)))
    ball = _proved(mass)
    if not ball:
        ball = None if x.is_integer else _seen(mass)
    if ball is None or scale == 1:
        return ball
    with ctx.workprec(MASS_BITS):
        return ball * real_ball(scale)


@lru_cache(maxsize=256)
def _proved(mass: MassIntegral | MassSum) -> arb | None:
    density, (x, lower, upper) = mass.parts
    for tolerance in (arb(2) ** (20 - MASS_BITS), _ENOUGH):
        # SymPy's TypeError: it asks in the middle of a question about a sign, and gets NaN.
        with suppress(AccuracyError, InputError, TypeError), ctx.workprec(MASS_BITS):
            deadline = Deadline(SHORT_TIME, worked)
            ball = enclose_mass(density, x, lower, upper, tolerance, deadline)
            if ball.is_finite() and is_proved(ball):
                return ball
    return None


@lru_cache(maxsize=256)
def _seen(mass: MassIntegral) -> arb | None:
    first, second = two_masses(mass.function, *mass.limits[0])
    apart = SUMS_ROUNDED * min(first, second)
    if abs(first - second) <= apart:
        return arb(first, apart)
    return None


def is_proved(mass: arb) -> bool:
    """Return whether the ball around a mass was proved."""
    return bool(mass.rad() < _NARROW * abs(mass))


def with_numbers(density: sp.Expr) -> sp.Expr:
    """Return a density in which masses that two quadratures found are the numbers they found."""
    return density.xreplace(_numbers_of_seen([density]))


def pieces_in_numbers(pair: Pair) -> tuple[Piece, ...]:
    """Return the pieces of a pair with the same numbers."""
    seen = _numbers_of_seen(pair.expressions())
    return tuple(piece.replaced(seen) for piece in pieces(pair))


def _numbers_of_seen(expressions: Iterable[sp.Expr]) -> dict[sp.Expr, sp.Expr]:
    """Return the masses in expressions that two quadratures found, with the numbers they found."""
    masses = {mass for expression in expressions for mass in expression.atoms(MassIntegral)}
    balls = {mass: enclose_normalizer(mass) for mass in masses}
    return {
        mass: sp.Rational(*float(ball.mid()).as_integer_ratio())
        for mass, ball in balls.items()
        if ball is not None and not is_proved(ball)
    }


def two_masses(
    density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> tuple[float, float]:
    """Return the integral of a density, or its sum over integers, as two quadratures find it.

    NaN stands for one that did not settle.
    """
    totals = []
    for start in (1.0, 3.0):
        deadline = Deadline(SOME_TIME, worked)
        with suppress(AccuracyError, OverflowError, ZeroDivisionError):
            parts = _parts(density, x, lower, upper)
            sides = [_sides(part, start, part[1] != x, deadline) for part in parts]
            totals.append(math.fsum(mass for pair in sides for mass in pair))
            continue
        totals.append(math.nan)
    return totals[0], totals[1]


def _sides(part: _Part, start: float, is_near_end: bool, deadline: Deadline) -> Iterator[float]:
    """Yield what a part has on both sides of a place in it, and of integers at that place."""
    density, x, *ends = part
    low, high = map(float, ends)
    cell = _cell(density, x, deadline)
    whole = bool(x.is_integer)
    middle = min(max(low, 0.0), high)
    if math.isfinite(low) and math.isfinite(high):
        middle = 0.5 * (low + high)
        if whole:
            middle = math.floor(middle)
    if whole:
        yield cell(middle, middle)
    for end in {low, high}:
        length = end - middle
        edges = [middle]
        step = start
        while step < min(_REACH, abs(length)):
            edges.append(middle + math.copysign(step, length))
            step *= 2.0
        if not math.isinf(end):
            edges.append(end)
        yield _side(cell, edges, end, whole, is_near_end)


def _side(
    cell: Callable[[float, float], float],
    edges: list[float],
    end: float,
    whole: bool,
    is_near_end: bool,
) -> float:
    """Add up shells and what is beyond the last one; of integers, the middle is left out."""
    sums: list[float] = []
    total = 0.0
    is_endless = math.isinf(end)
    step = math.copysign(1.0, edges[-1] - edges[0]) if whole else 0.0

    def has_ended(share: float, shells: int) -> bool:
        """Whether the last shells had next to nothing."""
        return len(sums) >= shells and abs(sums[-1] - sums[-shells]) <= share * SUMS_ROUNDED

    for inner, outer in pairwise(edges):
        is_long = abs(outer - inner) > _MOST_INTEGERS or (
            len(sums) >= _SUMMED and has_ended(1e-6, 4)
        )
        if inner == outer or (whole and is_endless and is_long):
            break
        if is_near_end and has_ended(1e-3, 2):  # nothing is far out there
            break
        try:
            total += cell(*sorted((inner + step, outer)))
        except AccuracyError:
            if len(sums) < _FEWEST and not has_ended(1e-3, 2):
                raise
            break  # waves far out: what came before them tells the rest, or does not settle
        if not abs(total) < _TOO_MUCH:
            raise AccuracyError("the mass of a density is far above 1")
        sums.append(total)
    if not sums and is_endless:
        raise AccuracyError("next to an end so far out doubles have no room for shells")
    if not is_endless or has_ended(1e-3, 2):
        return total
    return _limit(sums)


def _limit(sums: list[float]) -> float:
    """Extrapolate partial sums, NaN where the last values differ, or shells hold ever more."""
    steps = [abs(after - before) for before, after in pairwise(sums[-4:])]
    if len(steps) < 3:
        return math.nan
    first_step, *further_steps = steps
    if max(further_steps) > first_step:
        return math.nan
    last = _wynn(sums[-_SUMMED:])
    before = _wynn(sums[-_SUMMED - 1 : -1])
    if abs(last - before) < 0.1 * SUMS_ROUNDED:
        return last
    return math.nan


def _wynn(sums: list[float]) -> float:
    with mpmath.workdps(40):
        previous = [mpmath.mpf(0)] * (len(sums) + 1)
        row = [mpmath.mpf(s) for s in sums]
        best = row[-1]
        level = 0
        while len(row) > 1:
            gaps = [b - a for a, b in pairwise(row)]
            has_settled = any(abs(gap) < 1e-17 * abs(best) for gap in gaps)
            if has_settled and level % 2 == 0:
                return float(row[-1])
            following = []
            for value, gap in zip(previous[1:], gaps, strict=False):
                following.append(value + 1 / gap)
            previous = row
            row = following
            level += 1
            if level % 2 == 0:
                best = row[-1]
        return float(best)


def _cell(density: sp.Expr, x: sp.Symbol, deadline: Deadline) -> Callable[[float, float], float]:
    """Return what integrates a density between two places with proved error, or sums it."""
    compiled = compile_arb(density, [x])

    def cell(low: float, high: float) -> float:
        with ctx.workprec(_BITS):
            first = arb(low)
            last = arb(high)
            highest = abs(compiled(between(first, last)))
            if highest * (high - low + 1) < _NOTHING:
                return 0.0
            if x.is_integer:
                total = _partial_sum(compiled, first, last, deadline)
            else:
                close = arb(SUMS_ROUNDED) / 4096
                is_finite = compiled(first).is_finite() and compiled(last).is_finite()
                if not is_finite:  # as of (1 − cos x)/x² at 0
                    ctx.prec = 4 * _BITS
                    cut = (last - first) * _CUT
                    first = first + cut
                    last = last - cut
                total = _arb_integral(compiled, first, last, close, _EVALUATIONS, deadline)
            if not total.rad() < SUMS_ROUNDED / 256:
                raise AccuracyError("a shell of the mass could not be enclosed")
            return float(total.mid())

    return cell


ENCLOSERS[MassIntegral] = ENCLOSERS[MassSum] = enclose_normalizer
