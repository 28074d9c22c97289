"""Cutting a loss where it turns: by its structure, its terms, or the zeros of its slope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import sympy as sp
from sympy.core.evalf import PrecisionExhausted

from symdp.density.records import Slope
from symdp.density.roots import known_roots
from symdp.density.signs import compare, interior_point, sign_of, sorted_points
from symdp.errors import InputError
from symdp.model import tidy


def trend(
    expression: sp.Expr,
    x: sp.Symbol,
    lower: sp.Expr,
    upper: sp.Expr,
    known: Mapping[sp.Expr, int] | None = None,
) -> int | None:
    """Return 1, 0 or −1 where structure alone shows that the expression rises, stays or falls.

    Sums of rising terms rise, exp, log and odd powers keep the direction, negative powers of
    positive bases turn it.  None where this is not enough.
    """
    if x not in expression.free_symbols:
        return 0
    if expression == x:
        return 1
    if known and expression in known:
        return known[expression]
    if isinstance(expression, sp.Add):
        directions = {trend(term, x, lower, upper, known) for term in expression.args} - {0}
        if len(directions) == 1:
            return directions.pop()
        return None
    if isinstance(expression, sp.Mul):
        return _product_trend(expression, x, lower, upper, known)
    if isinstance(expression, sp.exp | sp.log):
        return trend(expression.args[0], x, lower, upper, known)
    if isinstance(expression, sp.Pow):
        return _power_trend(expression, x, lower, upper)
    return None


def _product_trend(
    product: sp.Mul,
    x: sp.Symbol,
    lower: sp.Expr,
    upper: sp.Expr,
    known: Mapping[sp.Expr, int] | None,
) -> int | None:
    constant, moving = product.as_independent(x, as_Add=False)
    # A rate q ≥ 0 keeps the direction: at q = 0 the term merely stops moving.
    sign = 1 if constant.is_nonnegative else sign_of(constant)
    if sign is None:
        return None
    total = 0
    for factor in sp.Mul.make_args(moving):
        direction = trend(factor, x, lower, upper, known)
        if direction is None:
            return None
        if moving is not factor:
            factor_sign = _sign_on(factor, x, lower, upper)
            if factor_sign != 1:
                return None
        if total and direction and total != direction:
            return None
        total = total or direction
    return sign * total


def _power_trend(power: sp.Pow, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> int | None:
    base, exponent = power.as_base_exp()
    if x in exponent.free_symbols:
        if x in base.free_symbols:
            return None
        direction = trend(exponent, x, lower, upper)
        rate = sign_of(sp.log(base))
        if direction is None or rate is None:
            return None
        return direction * rate
    direction = trend(base, x, lower, upper)
    sign = sign_of(exponent)
    if direction is None or sign is None:
        return None
    if exponent.is_integer and exponent.is_odd and sign > 0:
        return direction
    base_sign = _sign_on(base, x, lower, upper)
    if base_sign == 1:
        return direction * sign
    if base_sign == -1 and exponent.is_integer and exponent.is_even:
        return -direction * sign
    if base_sign == -1 and exponent.is_integer and exponent.is_odd:
        return direction * sign
    return None


def _sign_on(base: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> int | None:
    """Sign that an expression keeps on the whole interval, None where it changes or is open."""
    if base.is_positive:
        return 1
    if base.is_negative:
        return -1
    if base.is_polynomial(x) and sp.degree(base, x) == 1:
        slope = sign_of(base.coeff(x, 1) if base.is_Add else sp.diff(base, x))
        root = tidy.cancel(-base.subs(x, 0) / sp.diff(base, x))
        if slope:
            if (compare(root, lower) or 0) < 0 or root == lower:
                return slope
            if (compare(root, upper) or 0) > 0 or root == upper:
                return -slope
        return None
    return None


NAMES: dict[int | None, Slope] = {
    1: "increasing",
    0: "constant",
    -1: "decreasing",
    None: "unknown",
}
_DIRECTIONS: dict[Slope, int] = {"increasing": 1, "constant": 0, "decreasing": -1}
_MOST_TERMS = 12  # of a loss whose terms are looked at one by one
_MOST_CUTS = 24  # where terms of a loss turn: between any two it may take a second to search
_LONG = 120  # operations of a slope that is expanded

_Part = tuple[sp.Expr, sp.Expr, Slope]


def monotone_cuts(loss: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[_Part]:
    """Cut (lower, upper) at the stationary points of the loss; name the slope of each part."""
    direction = trend(loss, x, lower, upper)
    if direction is not None:
        return [(lower, upper, NAMES[direction])]
    parts = _by_terms(loss, x, lower, upper)
    if parts is None:
        parts = _by_derivative(loss, x, lower, upper)
    return _merged_parts(parts)


def _by_terms(loss: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[_Part] | None:
    """Cut where the single terms inside logs turn, if that settles what structure did not.

    log(1 − q + q e^a) turns exactly where a does, and a is much the shorter expression.
    """
    terms: set[sp.Expr] = set()
    for log in loss.atoms(sp.log):
        argument = log.args[0]
        if isinstance(argument, sp.Add):
            terms.update(t for t in argument.args if trend(t, x, lower, upper) is None)
    if not terms or len(terms) > _MOST_TERMS:
        return None
    cuts = {}
    turning_points: set[sp.Expr] = set()
    for term in terms:
        parts = monotone_cuts(_moving_part(term, x), x, lower, upper)
        if any(slope == "unknown" for _, _, slope in parts):
            return None
        cuts[term] = parts
        turning_points.update(high for _, high, _ in parts[:-1])
    ordered = _ordered(turning_points)
    if ordered is None or len(ordered) > _MOST_CUTS:
        return None
    cut_parts: list[_Part] = []
    for low, high in pairwise([lower, *ordered, upper]):
        directions = {}
        for term, parts in cuts.items():
            constant, _ = term.as_independent(x, as_Add=False)
            sign = sign_of(constant) or 0
            slope = next(s for _, end, s in parts if end == high or (compare(end, low) or 0) > 0)
            directions[term] = sign * _DIRECTIONS[slope]
        direction = trend(loss, x, low, high, directions)
        if direction is None:
            cut_parts.extend(_by_derivative(loss, x, low, high))
        else:
            cut_parts.append((low, high, NAMES[direction]))
    return cut_parts


def _moving_part(term: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return what moves in a product: its log where every factor is positive, else itself."""
    _, moving = term.as_independent(x, as_Add=False)
    bases = [factor.as_base_exp()[0] for factor in sp.Mul.make_args(moving)]
    # log x² is 2 log x on one side of 0 only, and would seem to rise on both.
    if all(base.is_positive for base in bases):
        return sp.expand_log(sp.log(moving), force=True)
    return moving


def _by_derivative(loss: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[_Part]:
    """Cut at the zeros of the derivative."""
    derivative = slope_numerator(loss, x)
    turning = known_roots(derivative, x, lower, upper)
    ordered = None
    if turning is not None:
        ordered = _ordered(turning)
    if ordered is None:
        return [(lower, upper, "unknown")]
    ends = [lower, *ordered, upper]
    cuts = list(pairwise(ends))
    slope = sp.diff(loss, x)
    slope_signs = (_sign_between(slope, x, cut, (lower, upper)) for cut in cuts)
    if _are_simple(derivative, x, len(ordered)):
        signs = _alternating(slope_signs, ends)
    else:
        signs = list(slope_signs)
    parts: list[_Part] = []
    for (low, high), sign in zip(cuts, signs, strict=True):
        parts.append((low, high, NAMES[sign or None]))
    return parts


def _are_simple(derivative: sp.Expr, x: sp.Symbol, roots: int) -> bool:
    """Return whether the roots of a derivative, so many of them found, are certainly simple."""
    if not derivative.is_polynomial(x):
        return False
    degree = sp.degree(derivative, x)
    if degree == roots:
        return True
    if degree != 2:
        return False
    discriminant = tidy.bounded(sp.factor, sp.discriminant(derivative, x))
    return sign_of(discriminant) == 1


def _merged_parts(parts: list[_Part]) -> list[_Part]:
    """Join neighbours of one direction."""
    merged: list[_Part] = []
    for low, high, slope in parts:
        if merged and merged[-1][2] == slope != "unknown":
            merged[-1] = (merged[-1][0], high, slope)
        else:
            merged.append((low, high, slope))
    return merged


def _sign_between(
    slope: sp.Expr, x: sp.Symbol, cut: tuple[sp.Expr, sp.Expr], ends: tuple[sp.Expr, sp.Expr]
) -> int | None:
    """Return the sign of a slope between two of its zeros, or a zero and an end of the piece.

    At an end of the piece, where it is no zero, the expression is shorter than between them.
    """
    for edge in cut:
        if edge in ends and not edge.is_infinite:
            sign = _sign_at(slope, x, edge)
            if sign:
                return sign
    return _sign_at(slope, x, interior_point(*cut))


def _sign_at(derivative: sp.Expr, x: sp.Symbol, x_value: sp.Expr) -> int | None:
    slope = derivative.subs(x, x_value)
    if slope.has(sp.nan, sp.zoo, sp.oo):
        return None
    try:
        return sign_of(slope)
    except PrecisionExhausted:  # of numbers some hundreds of digits apart
        return None


def _alternating(signs: Iterable[int | None], ends: list[sp.Expr]) -> list[int | None]:
    """Return the signs between the ends from the first that is known: they change at each."""
    stretches = range(len(ends) - 1)
    for first, sign in enumerate(signs):
        if sign:
            alternating: list[int | None] = []
            for index in stretches:
                is_same = (index - first) % 2 == 0
                alternating.append(sign if is_same else -sign)
            return alternating
    return [None for _ in stretches]


def _ordered(points: Iterable[sp.Expr]) -> list[sp.Expr] | None:
    try:
        return sorted_points(set(points), "the turning points")
    except InputError:
        return None


def _less_waves(factor: sp.Expr) -> sp.Expr:
    """Return a factor with fewer sines and cosines, if it has several: each of them takes long."""
    if len(factor.atoms(sp.sin, sp.cos)) < 2:
        return factor
    return tidy.bounded(sp.factor, tidy.bounded(sp.trigsimp, factor))


def slope_numerator(loss: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return an expression with the zeros of dℓ/dx, expanded so that exponentials merge."""
    slope = sp.diff(loss, x)
    if sp.count_ops(slope) > _LONG:
        return slope  # expanding it would take longer than its zeros are worth
    numerator, _ = sp.fraction(tidy.together(slope))
    expanded = sp.expand(numerator, log=False)
    joined_powers = sp.powsimp(expanded, combine="exp")
    rules = {}
    for node in joined_powers.atoms(sp.exp):
        rules[node] = sp.exp(sp.expand(node.args[0]))
    merged = sp.expand(joined_powers.xreplace(rules), power_exp=False, log=False)
    if merged.is_polynomial(x):
        merged = tidy.factor(merged)
    if merged.has(sp.sin, sp.cos):  # where squares of both add up, few zeros are left
        factored = tidy.bounded(sp.factor, merged)
        factors = sp.Mul.make_args(factored)
        return sp.Mul(*map(_less_waves, factors))
    _, primitive = sp.factor_terms(merged).as_independent(x, as_Add=False)
    return sp.expand(primitive, power_exp=False, log=False)
