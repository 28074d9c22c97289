"""Whether a density has one mode: it does not rise away from it, on either side.

Then the largest shift is the worst of all smaller ones, whatever the density's symmetry and tails:
for A = {f(x − d) > αf(x)}, which lies above the mode, and d′ ≥ d, the test A + (d′ − d) has at
least the divergence of A.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.density.breakpoints import Stretch, smooth_stretches
from symdp.density.gammas import COUNTING, is_log_concave, reduced, with_ends
from symdp.density.roots import RootsUnknownError, roots_between
from symdp.density.signs import sign_of
from symdp.density.turning import monotone_cuts, trend
from symdp.emit import compile_arb
from symdp.errors import InputError
from symdp.interrupt import attempt
from symdp.model import tidy
from symdp.model.pair import Support
from symdp.model.sampling import Noise

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

_SECONDS = 3.0  # for each density: what takes longer counts as not shown
_MOST_MASSES, _BITS = 4_000, 256  # of a law on integers that is looked at value by value
_HYPERBOLIC = (sp.cosh, sp.sinh, sp.tanh, sp.sech, sp.csch, sp.coth)
_PLACE, _UNEVEN = sp.Rational(7, 9), 1e-6  # where a density is compared with its mirror image
_SIGNS = {"increasing": 1, "constant": 0, "decreasing": -1}


@lru_cache(maxsize=1024)
def has_one_law(mechanism: Mechanism) -> bool:
    """Return whether both directions are seen at once to have one law of the loss.

    Where noise of density f on a support around 0 is even, x → D − x exchanges P(x) = f(x − D) and
    Q(x) = f(x), and with them the law of ℓ under P and that of −ℓ under Q. False proves nothing,
    nor does it for values that alone make it even.
    """
    if mechanism.is_mirrored:
        return True
    if mechanism.sampling is not None:
        return False
    own = mechanism.template or mechanism  # what holds for all values is told without them
    return isinstance(own.source, Noise) and _is_even(own.source.density, own.variable, own.support)


@lru_cache(maxsize=1024)
def _is_even(density: sp.Expr, x: sp.Symbol, support: Support) -> bool:
    """Return whether a density is seen to be that of −x, too."""
    if support.kind not in {"interval", "integers"} or support.lower != -support.upper:
        return False  # half of an even density is not even
    mirrored = density.xreplace({x: -x})
    if mirrored == density:
        return True
    if not density.free_symbols - {x}:
        gap = (mirrored / density - 1).subs(x, _PLACE).evalf(9, maxn=30)
        if gap.is_comparable and abs(gap) > _UNEVEN:
            return False
    try:
        return bool(tidy.cancel(mirrored / density) == 1)
    except (sp.PolynomialError, NotImplementedError):  # Piecewise is no rational function
        return False


def has_one_mode_always(mechanism: Mechanism) -> bool:
    """Return whether it is proved for all values of the parameters."""
    return _of(mechanism.template or mechanism)


def _of(mechanism: Mechanism) -> bool:
    density = mechanism.source.density  # type: ignore[union-attr]
    return is_unimodal(density, mechanism.variable, mechanism.support)


@lru_cache(maxsize=512)
def is_unimodal(density: sp.Expr, x: sp.Symbol, support: Support) -> bool:
    """Return whether algebra shows that a density has one mode; False proves nothing."""
    if not density.free_symbols - {x} and has_valley(density, x, support):
        return False
    return attempt(
        lambda: _rises_once(density, x, support) or _values_rise_once(density, x, support),
        False, _SECONDS,
    )  # fmt: skip


def has_valley(density: sp.Expr, x: sp.Symbol, support: Support) -> bool:
    """Whether values at some places fall and rise again: to look for a proof is in vain."""
    ends = [end for end in (support.lower, support.upper) if end.is_finite]
    try:
        value = compile_arb(density, [x])
        low, high = (float(end) for end in (support.lower, support.upper))
    except (InputError, TypeError):
        return False
    offsets = [2.0 ** (k / 4) for k in range(-24, 41)] + [k / 8 for k in range(1, 120)]
    if len(ends) == 2:
        offsets = [(high - low) * k / 256 for k in range(1, 256)]
    origins = [float(end) for end in ends] or [0.0]
    places = {side * o + origin for o in offsets for side in (-1, 1) for origin in origins}
    top, least = arb(0), None
    for place in sorted({float(round(p)) for p in places} if x.is_integer else places):
        height = value(arb(place)) if low < place < high else None
        if height is None or not height.is_finite():
            continue
        if least is not None and least < height:
            return True
        top = height if height > top else top
        least = height if height < top and (least is None or height < least) else least
    return False


def _rises_once(density: sp.Expr, x: sp.Symbol, support: Support) -> bool:
    """Whether no stretch or jump on which f falls lies left of one on which it rises."""
    if x.is_integer and _is_log_concave(density, x):
        return True
    if any(x in power.exp.free_symbols and not power.base.is_positive
           for power in density.atoms(sp.Pow)):  # fmt: skip
        return False  # (−1)^k is real at whole numbers alone
    y = sp.Symbol(x.name, real=True)
    if x.is_integer:
        density = with_ends(density, x, support.lower, support.upper)
    try:
        stretches = smooth_stretches((density.xreplace({x: y}),), y, support.lower, support.upper)
        turns: list[int] = []
        for place, stretch in enumerate(stretches):
            if place:
                turns += jumps(density, x, y, stretches[place - 1], stretch)
            turns += _slopes(stretch, y, is_alone=len(stretches) == 1)
    except (InputError, RootsUnknownError, UnknownError):
        return False
    moving = [turn for turn in turns if turn]
    return moving == sorted(moving, reverse=True)


def _values_rise_once(density: sp.Expr, x: sp.Symbol, support: Support) -> bool:
    """Whether balls around all masses of finitely many integers rise, then fall; ties are exact."""
    if not x.is_integer or density.free_symbols - {x}:
        return False
    masses: dict[int, sp.Expr] = {}
    try:
        for stretch in smooth_stretches((density,), x, support.lower, support.upper):
            (own,) = stretch.expressions
            if own != 0 and not (stretch.lower.is_finite and stretch.upper.is_finite):
                return False
            if stretch.is_point:
                masses[int(stretch.lower)] = own
            elif own != 0:
                ends = int(sp.ceiling(stretch.lower)), int(sp.floor(stretch.upper))
                for k in range(ends[0], min(ends[1], ends[0] + _MOST_MASSES) + 1):
                    if stretch.lower < k < stretch.upper or k not in masses:
                        masses[k] = own
        if not 0 < len(masses) < _MOST_MASSES:
            return False
        functions = {own: compile_arb(own, [x]) for own in set(masses.values())}
    except (InputError, ValueError):
        return False
    places = range(min(masses), max(masses) + 1)
    with ctx.workprec(_BITS):
        balls = [functions[masses[k]](arb(k)) if k in masses else arb(0) for k in places]
        gaps = [right - left for left, right in pairwise(balls)]
    turns = []
    for k, gap in zip(places, gaps, strict=False):
        if not (gap > 0 or gap < 0):
            low, high = (masses.get(j, sp.S.Zero).subs(x, j) for j in (k, k + 1))
            if low != high:
                return False
        turns.append(1 if gap > 0 else -1 if gap < 0 else 0)
    moving = [turn for turn in turns if turn]
    return moving == sorted(moving, reverse=True)


def _is_log_concave(masses: sp.Expr, k: sp.Symbol) -> bool:
    """Whether f(k + 1)/f(k) is seen not to rise, as a ratio of gamma functions often is."""
    if masses.has(sp.Abs, sp.Piecewise, sp.Min, sp.Max, sp.sign) or not k.is_nonnegative:
        return False
    ratio = reduced(sp.powsimp(masses.subs(k, k + 1) / masses), k)
    y = sp.Symbol(k.name, positive=True)
    real = ratio.xreplace({k: y})
    slopes = {slope for _, _, slope in monotone_cuts(real, y, sp.S.Zero, sp.oo)}
    return slopes <= {"decreasing", "constant"}


class UnknownError(Exception):
    """A sign is open."""


def _slopes(stretch: Stretch, x: sp.Symbol, *, is_alone: bool) -> list[int]:
    """Return the signs of f′ from left to right on a smooth stretch."""
    f = stretch.expressions[0].rewrite(_HYPERBOLIC, sp.exp)
    if x not in f.free_symbols:
        return [0]
    moving = f.as_independent(x, as_Add=False)[1]
    if _has_concave_logarithm(moving, x, stretch):
        return [1, -1]  # it rises, then it falls
    if isinstance(moving, sp.besseli) and x not in moving.args[1].free_symbols:
        return [_order_slope(moving, stretch, x)]
    try:
        height = _logarithm(f, x, stretch)
    except (RootsUnknownError, UnknownError):  # as where f vanishes at an end twice
        height = moving
    slope = sp.diff(height, x)
    _refuse_poles(slope, x, stretch)
    if is_alone and height.has(sp.log) and height is not moving:
        bend = attempt(lambda: tidy.factor(sp.expand(sp.diff(slope, x))), sp.S.NaN, _SECONDS / 3)
        if bend.is_nonpositive:  # concave: it rises, then it falls
            return [1, -1]
    cuts = monotone_cuts(height, x, stretch.lower, stretch.upper)
    if any(name == "unknown" for _, _, name in cuts):
        raise UnknownError
    return [_SIGNS[name] for _, _, name in cuts]


def _has_concave_logarithm(f: sp.Expr, x: sp.Symbol, stretch: Stretch) -> bool:
    """Whether every factor is a 1/Γ as `is_log_concave` has it, or an exponential of a line."""
    return f.has(*COUNTING) and all(
        is_log_concave(factor, x, stretch.lower, stretch.upper)
        or _is_exponential_of_a_line(factor, x)
        for factor in sp.Mul.make_args(f)
    )


def _is_exponential_of_a_line(factor: sp.Expr, x: sp.Symbol) -> bool:
    base, power = factor.as_base_exp()
    known = x not in base.free_symbols and base.is_positive
    return bool(known and power.is_polynomial(x) and sp.degree(power, x) == 1)


def _refuse_poles(slope: sp.Expr, x: sp.Symbol, stretch: Stretch) -> None:
    """Raise UnknownError where the slope may change its sign without a zero."""
    below = sp.fraction(tidy.together(slope))[1]
    for factor in sp.Mul.make_args(below):
        base = factor.as_base_exp()[0]
        known = x not in base.free_symbols or base.is_positive or isinstance(factor, sp.exp)
        if not known and roots_between(base, x, stretch.lower, stretch.upper):
            raise UnknownError


def _order_slope(bessel: sp.Expr, stretch: Stretch, x: sp.Symbol) -> int:
    """Return the sign of the slope of I_ν(z) in ν ≥ 0, z > 0: it falls [DLMF 10.37]."""
    order, place = bessel.args
    direction = trend(order, x, stretch.lower, stretch.upper)
    least = order.subs(x, stretch.lower if direction == 1 else stretch.upper)
    if direction is None or not place.is_positive or (sign_of(least) or 0) < 0:
        raise UnknownError
    return -direction


def _logarithm(f: sp.Expr, x: sp.Symbol, stretch: Stretch) -> sp.Expr:
    """Return log f up to a constant, every factor made positive on the stretch."""
    total = sp.S.Zero
    for factor in sp.Mul.make_args(f):
        base, power = factor.as_base_exp()
        if x not in factor.free_symbols:
            continue
        if isinstance(factor, sp.exp):
            total += factor.args[0]
        elif isinstance(base, sp.Mul):
            total += power * _logarithm(base, x, stretch)
        else:
            total += power * sp.log(_positive(base, x, stretch))
    return total


def _positive(base: sp.Expr, x: sp.Symbol, stretch: Stretch) -> sp.Expr:
    if base.is_positive:
        return base
    if x in base.free_symbols and roots_between(base, x, stretch.lower, stretch.upper):
        raise UnknownError
    sign = sign_of(base.subs(x, stretch.inside))
    if not sign:
        raise UnknownError
    return sign * base


def jumps(
    density: sp.Expr, x: sp.Symbol, y: sp.Symbol, before: Stretch, after: Stretch
) -> list[int]:
    """Return the signs of the jumps at a kink; that of an integer has a value of its own."""
    place = after.lower
    heights = [before.expressions[0].subs(y, place), after.expressions[0].subs(y, place)]
    if x.is_integer and place.is_integer is not False:
        heights.insert(1, density.subs(x, place))
    return [_step(low, high) for low, high in pairwise(heights)]


def _step(low: sp.Expr, high: sp.Expr) -> int:
    infinite = [bool(height.has(sp.oo, -sp.oo, sp.zoo)) for height in (low, high)]
    if any(infinite):
        return int(infinite[1]) - int(infinite[0])
    if 0 in (low, high):  # no density is below 0
        return int(high != 0) - int(low != 0)
    gap = high - low
    sign = 0 if gap == 0 else sign_of(gap)
    if sign is None and tidy.simplify(gap) != 0:
        raise UnknownError
    return sign or 0
