"""Proved numbers for tail bounds of one step's loss and of sums of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.balls.tilted import TiltedLaw
from symdp.emit.exact import BITS, real_ball
from symdp.errors import AccuracyError, InputError

if TYPE_CHECKING:
    from symdp.model.pair import Pair

Domain = tuple[sp.Expr, sp.Expr]

# Of neighbouring places of a grid: a constant then is within a fourth of the best.
_GRID_RATIO = sp.Rational(5, 4)
_SMALLEST_SHARE = 24  # the grid of tilts begins at this part of its end
_STEPS = 40  # doublings of a tilt, or halvings of its distance to the domain's end
_CLOSE = 1e-4  # of a tilt, which need not be the best one
_SECANTS, _FINE = 4, 48  # steps to the best tilt, and bits of the tilts they take


@lru_cache(maxsize=32)
def tilted_law(pair: Pair) -> TiltedLaw:
    """Return the tilted law of a pair, whose moments are kept."""
    return TiltedLaw(pair)


@dataclass(frozen=True)
class Side:
    """The loss under P (base tilt 0) or under Q (base tilt −1), of one step.

    Under Q the CGF of the loss is K(s − 1), where K is that under P.
    """

    law: TiltedLaw
    base: sp.Integer
    domain: Domain

    @classmethod
    def of(cls, pair: Pair, under: str, domain: Domain) -> Side:
        """Return the side named "P" or "Q"; the domain is that of K."""
        if under not in ("P", "Q"):
            raise InputError(f"under must be 'P' or 'Q', not {under!r}")
        return cls(tilted_law(pair), sp.Integer(0 if under == "P" else -1), domain)

    def cgf(self, s: sp.Rational) -> arb:
        """log E e^{sL}, unnormalised where mass is lost at infinity."""
        return self.law.cgf(self.base + s)

    def mean(self, s: sp.Rational = sp.S.Zero) -> arb:
        """The tilted mean; at s = 0 the mean of the finite loss."""
        return self.law.mean(self.base + s)

    def centred(self, s: sp.Rational) -> arb:
        """log E e^{s(L − E L)}, normalised."""
        with ctx.workprec(BITS):
            return self.cgf(s) - self.cgf(sp.S.Zero) - real_ball(s) * self.mean()

    def reach(self, direction: int) -> sp.Expr:
        """How far s may go to one side."""
        end = self.domain[1] if direction > 0 else self.domain[0]
        return sp.oo if end.is_infinite else abs(end - self.base)


def chernoff(side: Side, epsilon: sp.Rational, count: int) -> arb:
    """Return an upper bound of log P(L₁ + … + L_n ≥ ε): min over s ≥ 0 of nK(s) − sε [SPA (40)].

    Every s gives a valid bound, so only the value at the chosen one is proved.
    """
    s = _best_tilt(side, float(epsilon) / count)
    with ctx.workprec(BITS):
        return (count * side.cgf(s) - real_ball(s * epsilon)).upper()


def _best_tilt(side: Side, level: float) -> sp.Rational:
    """Return nearly the s ≥ 0 with tilted mean `level`: bisection, then the secants of the mean."""
    reach = side.reach(1)
    if reach == 0 or float(side.mean().mid()) >= level:
        return sp.S.Zero
    low, high = 0.0, 0.5 if reach is sp.oo else float(reach) / 2
    limit = math.inf if reach is sp.oo else float(reach)
    for _ in range(_STEPS):
        if float(side.mean(_short(high)).mid()) >= level:
            break
        low, high = high, 2 * high if limit == math.inf else (high + limit) / 2
        if high > 2**12:  # beyond the largest loss the best tilt is infinite
            return _short(low)
    while high - low > _CLOSE + 2**-6 * low:
        middle = (low + high) / 2
        if float(side.mean(_short(middle)).mid()) < level:
            low = middle
        else:
            high = middle
    return _sharpened(side, level, low, high)


def _sharpened(side: Side, level: float, low: float, high: float) -> sp.Rational:
    """Improve a bracket of the best tilt: the bound loses what is left to second order only.

    Every tilt gives a valid bound, so that steps that lead astray do no harm.
    """
    ends = [low, high]
    gaps = [float(side.mean(_short(end, _FINE)).mid()) - level for end in ends]
    for _ in range(_SECANTS):
        rise = gaps[-1] - gaps[-2]
        place = ends[-1] - gaps[-1] * (ends[-1] - ends[-2]) / rise if rise else math.nan
        if not low / 2 < place < 2 * high:
            break
        ends.append(place)
        gaps.append(float(side.mean(_short(place, _FINE)).mid()) - level)
    best = min(range(len(ends)), key=lambda i: abs(gaps[i]))
    return _short(ends[best], _FINE)


def _short(value: float, bits: int = 12) -> sp.Rational:
    """Return a rational of few digits near a number, never 0 for a positive one."""
    scale = 2 ** max(bits - math.frexp(value)[1], 0)
    return sp.Rational(round(value * scale), scale)


def quadratic_tail(side: Side, square: arb, epsilon: sp.Rational, count: int) -> arb:
    """Return −(ε − n·mean)²/(2ns²), the log of the bound of a sub-Gaussian sum; 0 below the mean.

    With s² = τ²/4 this is Hoeffding's bound, as in [EA Prop 4.5].
    """
    with ctx.workprec(BITS):
        lost = count * side.cgf(sp.S.Zero)  # log of the mass that the finite loss has
        excess = real_ball(epsilon) - count * side.mean()
        if not excess > 0:
            return lost.upper()
        return (lost - excess**2 / (2 * count * square)).upper()


def crossed_tail(side: Side, square: arb, epsilon: sp.Rational, count: int) -> arb:
    """Return the log of a bound under P from a sub-Gaussian constant s² under Q.

    K_P(s − 1) = K_Q(s) ≤ s·m + s²u²/2 makes P(ΣL ≥ ε) ≤ exp(n(um + u²s²/2) − (u − 1)ε) for every
    u ≥ 1; the best is u = (ε − nm)/(ns²), m the mean under Q.
    """
    with ctx.workprec(BITS):
        mean, level = side.mean(), real_ball(epsilon)
        u = ((level - count * mean) / (count * square)).mid()
        if not u > 1:
            return (count * side.cgf(sp.S.One)).upper()
        exponent = count * (u * mean + u**2 * square / 2 + side.cgf(sp.S.Zero)) - (u - 1) * level
        return exponent.min(count * side.cgf(sp.S.One)).upper()


def sub_gaussian_within(side: Side, low: sp.Rational, high: sp.Rational) -> arb:
    """Return s² with log E e^{u(L − EL)} ≤ s²u²/2 for all u in [low, high], proved.

    On [a, b] the convex left side lies below its chord α + βu with α ≤ 0, so that twice it over u²
    is at most β²/(−2α).  On [0, u₁] it is at most u²/2 times the larger of the variance and
    E(L − EL)²e^{u₁(L − EL)}, which is convex in u₁ and bounds K″.

    Parameters
    ----------
    side : Side
    low, high : sympy.Rational
        low ≤ 0 ≤ high, within the domain.

    Raises
    ------
    InputError
        Where the interval does not hold 0 or leaves the domain of K.
    """
    if not low <= 0 <= high or low == high:
        raise InputError(f"the interval of tilts must hold 0 and be no point, not [{low}, {high}]")
    if high >= side.reach(1) or -low >= side.reach(-1):
        raise InputError(
            f"the interval [{low}, {high}] leaves the domain of the CGF, "
            f"({-side.reach(-1)}, {side.reach(1)})"
        )
    with ctx.workprec(BITS):
        square = side.law.variance(side.base).upper()
        for end in (low, high):
            if end != 0:
                square = square.max(_one_side(side, end))
        return square.upper()


def _one_side(side: Side, end: sp.Rational) -> arb:
    grid = [sp.sign(end) * _short(float(abs(end)) / _SMALLEST_SHARE)]
    while abs(grid[-1]) * _GRID_RATIO < abs(end):
        grid.append(sp.sign(end) * _short(float(abs(grid[-1]) * _GRID_RATIO)))
    grid.append(end)
    first = grid[0]
    about = side.law.square_about(side.base + first, side.mean())
    square = (about * side.centred(first).exp()).upper()
    values = [side.centred(u) for u in grid]
    for k in range(len(grid) - 1):
        a, b = (abs(real_ball(u)) for u in grid[k : k + 2])
        upper = [value.upper() for value in values[k : k + 2]]
        square = square.max(_chord(a, b, upper[0], upper[1]))
    return square


def _chord(a: arb, b: arb, at_a: arb, at_b: arb) -> arb:
    """Bound 2(α + βu)/u² over [a, b] for the chord through two points."""
    beta = (at_b - at_a) / (b - a)
    alpha = at_a - beta * a
    ends = (2 * at_a / a**2).max(2 * at_b / b**2)
    if not alpha < 0:
        # Only roundings can make the chord of a convex function through 0 meet the axis above 0.
        return (2 * at_b.max(at_a) / a**2).upper()
    turn = -2 * alpha / beta if beta > 0 else b + 1
    if turn < a or turn > b:
        return ends.upper()
    return (beta**2 / (-2 * alpha)).max(ends).upper()


def berry_esseen(pair: Pair, tilt: sp.Rational) -> arb:
    """Enclose P_t/K″(t)^{3/2}, the ratio of [SPA Thm 5]."""
    law = tilted_law(pair)
    with ctx.workprec(BITS):
        variance = law.variance(tilt)
        if not variance > 0:
            raise AccuracyError("the loss is constant: its Berry-Esseen ratio does not exist")
        return law.third(tilt) / (variance * variance.sqrt())
