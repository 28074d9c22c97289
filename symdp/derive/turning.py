"""Cutting a loss at its turning points, so that it is monotone on every piece."""

from __future__ import annotations

from itertools import pairwise

import sympy as sp
from sympy.core.evalf import PrecisionExhausted

from symdp.derive import tidy
from symdp.derive.records import Slope
from symdp.derive.roots import RootsUnknownError, roots_between
from symdp.derive.signs import compare, interior_point, sign_of
from symdp.derive.trend import trend

_NAMES: dict[int | None, Slope] = {
    1: "increasing",
    0: "constant",
    -1: "decreasing",
    None: "unknown",
}
_DIRECTIONS: dict[Slope, int] = {"increasing": 1, "constant": 0, "decreasing": -1}
_MOST_TERMS = 12  # of a loss whose terms are looked at one by one
_LONG = 120  # operations of a slope that is expanded

_Part = tuple[sp.Expr, sp.Expr, Slope]


def monotone_cuts(loss: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[_Part]:
    """Cut (lower, upper) at the stationary points of the loss; name the slope of each part.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> monotone_cuts((x - 1) ** 2, x, -sp.oo, sp.oo)
    [(-oo, 1, 'decreasing'), (1, oo, 'increasing')]
    >>> monotone_cuts(sp.sin(x) ** 2 / sp.cos(x) ** 2, x, sp.S.Zero, sp.pi / 2)
    [(0, pi/2, 'increasing')]
    """
    direction = trend(loss, x, lower, upper)
    if direction is not None:
        return [(lower, upper, _NAMES[direction])]
    parts = _by_terms(loss, x, lower, upper)
    if parts is None:
        parts = _by_derivative(loss, x, lower, upper)
    return _merged(parts)


def _by_terms(loss: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[_Part] | None:
    """Cut where the single terms inside logs turn, if that settles what structure did not.

    log(1 − q + q e^a) turns exactly where a does, and a is much the shorter expression.
    """
    terms = {
        term
        for log in loss.atoms(sp.log)
        for term in sp.Add.make_args(log.args[0])
        if isinstance(log.args[0], sp.Add) and trend(term, x, lower, upper) is None
    }
    if not terms or len(terms) > _MOST_TERMS:
        return None
    cuts = {}
    for term in terms:
        cuts[term] = monotone_cuts(_moving_part(term, x), x, lower, upper)
        if any(slope == "unknown" for _, _, slope in cuts[term]):
            return None
    ordered = _ordered(tuple(high for parts in cuts.values() for _, high, _ in parts[:-1]))
    if ordered is None:
        return None
    found: list[_Part] = []
    for low, high in pairwise([lower, *ordered, upper]):
        known = {}
        for term, parts in cuts.items():
            sign = sign_of(term.as_independent(x, as_Add=False)[0])
            here = next(s for _, end, s in parts if end == high or (compare(end, low) or 0) > 0)
            known[term] = (sign or 0) * _DIRECTIONS[here]
        direction = trend(loss, x, low, high, known)
        if direction is None:
            found.extend(_by_derivative(loss, x, low, high))
        else:
            found.append((low, high, _NAMES[direction]))
    return found


def _moving_part(term: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return what moves in a product: its log where every factor is positive, else itself."""
    moving = term.as_independent(x, as_Add=False)[1]
    # log x² is 2 log x on one side of 0 only, and would seem to rise on both.
    if all(factor.as_base_exp()[0].is_positive for factor in sp.Mul.make_args(moving)):
        return sp.expand_log(sp.log(moving), force=True)
    return moving


def _by_derivative(loss: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[_Part]:
    """Cut at the zeros of the derivative."""
    derivative = slope_numerator(loss, x)
    try:
        turning = roots_between(derivative, x, lower, upper)
    except RootsUnknownError:
        return [(lower, upper, "unknown")]
    ordered = _ordered(turning)
    if ordered is None:
        return [(lower, upper, "unknown")]
    ends = [lower, *ordered, upper]
    signs = _signs_between(sp.diff(loss, x), x, ends)
    if derivative.is_polynomial(x) and sp.degree(derivative, x) == len(ordered):
        _alternate(signs)
    return [
        (low, high, _NAMES[sign or None])
        for (low, high), sign in zip(pairwise(ends), signs, strict=True)
    ]


def _merged(parts: list[_Part]) -> list[_Part]:
    """Join neighbours of one direction."""
    merged: list[_Part] = []
    for low, high, slope in parts:
        if merged and merged[-1][2] == slope != "unknown":
            merged[-1] = (merged[-1][0], high, slope)
        else:
            merged.append((low, high, slope))
    return merged


def _signs_between(derivative: sp.Expr, x: sp.Symbol, ends: list[sp.Expr]) -> list[int | None]:
    return [_sign_at(derivative, x, interior_point(low, high)) for low, high in pairwise(ends)]


def _sign_at(derivative: sp.Expr, x: sp.Symbol, place: sp.Expr) -> int | None:
    try:
        return sign_of(derivative.subs(x, place))
    except PrecisionExhausted:  # of numbers some hundreds of digits apart
        return None


def _alternate(signs: list[int | None]) -> None:
    """Fill open signs from a known one: all roots are simple, so that signs alternate."""
    known = next((i for i, sign in enumerate(signs) if sign), None)
    if known is None:
        return
    first = signs[known] or 0
    for i in range(len(signs)):
        signs[i] = first if (i - known) % 2 == 0 else -first


def _ordered(points: tuple[sp.Expr, ...]) -> list[sp.Expr] | None:
    ordered: list[sp.Expr] = []
    for point in points:
        place = 0
        for other in ordered:
            order = compare(point, other)
            if order is None:
                return None
            if order == 0:
                break
            place += order > 0
        else:
            ordered.insert(place, point)
    return ordered


def slope_numerator(loss: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return an expression with the zeros of dℓ/dx, expanded so that exponentials merge.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> slope_numerator(sp.log((1 + (x - 1) ** 2) / (1 + x**2)), x)
    x**2 - x - 1
    """
    slope = sp.diff(loss, x)
    if sp.count_ops(slope) > _LONG:
        return slope  # expanding it would take longer than its zeros are worth
    numerator, _ = sp.fraction(tidy.together(slope))
    expanded = sp.powsimp(sp.expand(numerator, log=False), combine="exp")
    expanded = expanded.xreplace(
        {node: sp.exp(sp.expand(node.args[0])) for node in expanded.atoms(sp.exp)}
    )
    merged = sp.expand(expanded, power_exp=False, log=False)
    if merged.is_polynomial(x):
        merged = tidy.factor(merged)
    if merged.has(sp.sin, sp.cos):  # where squares of both add up, few zeros are left
        return sp.factor(sp.trigsimp(merged))
    _, primitive = sp.factor_terms(merged).as_independent(x, as_Add=False)
    return sp.expand(primitive, power_exp=False, log=False)
