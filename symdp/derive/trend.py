"""Which way an expression moves with the variable, as its structure alone shows."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from symdp.derive import tidy
from symdp.derive.signs import compare, sign_of


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

    Parameters
    ----------
    expression, x
    lower, upper : ends of the interval
    known : directions of subexpressions that were found otherwise

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> q = sp.Symbol("q", positive=True)
    >>> trend(sp.log(1 - q + q * sp.exp(2 * x)), x, -sp.oo, sp.oo)
    1
    """
    if x not in expression.free_symbols:
        return 0
    if expression == x:
        return 1
    if known and expression in known:
        return known[expression]
    if isinstance(expression, sp.Add):
        directions = {trend(term, x, lower, upper, known) for term in expression.args} - {0}
        return directions.pop() if len(directions) == 1 else None
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
            held = _sign_on(factor, x, lower, upper)
            if held != 1:
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
        direction, rate = trend(exponent, x, lower, upper), sign_of(sp.log(base))
        return None if direction is None or rate is None else direction * rate
    direction, sign = trend(base, x, lower, upper), sign_of(exponent)
    if direction is None or sign is None:
        return None
    if exponent.is_integer and exponent.is_odd and sign > 0:
        return direction
    held = _sign_on(base, x, lower, upper)
    if held == 1:
        return direction * sign
    if held == -1 and exponent.is_integer and exponent.is_even:
        return -direction * sign
    if held == -1 and exponent.is_integer and exponent.is_odd:
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
