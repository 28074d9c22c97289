"""Tails of what holds modified Bessel functions of integer orders, by the first term of the series.

As Iₘ(z) = Σⱼ (z/2)^{m+2j}/(j! Γ(m + j + 1)) [DLMF 10.25.2] and Γ(m + j + 1) ≥ Γ(m + 1),

    (z/2)^m/Γ(m + 1) ≤ Iₘ(z) ≤ e^{z²/4} (z/2)^m/Γ(m + 1)    for m ≥ 0, z > 0,

and with Γ(y + d + 1) = Γ(y + 1)·(y + 1)⋯(y + d) no gamma functions are left that nearly cancel.
"""

from __future__ import annotations

from typing import NamedTuple

import sympy as sp


class Bound(NamedTuple):
    """An upper bound of an exponent, from a least distance on."""

    exponent: sp.Expr
    least: int


def without_bessel(exponent: sp.Expr, x: sp.Symbol, direction: int) -> Bound | None:
    """Return an upper bound of an exponent that has no Bessel functions.

    Parameters
    ----------
    exponent, x
        g, and its variable, an integer.
    direction : {1, -1}
        The side on which the bound is wanted.

    Returns
    -------
    Bound or None
        None where g holds others, or a part of which no bound is known.

    Examples
    --------
    >>> k = sp.Symbol("k", integer=True)
    >>> without_bessel(sp.log(sp.besseli(k - 1, 2)), k, 1)
    Bound(exponent=log(k) - loggamma(k + 1) + 1, least=2)
    """
    y = sp.Symbol("y", positive=True)
    found, gammas, least = sp.S.Zero, sp.S.Zero, 1
    for term in sp.Add.make_args(sp.expand_log(exponent, force=True)):
        if not term.has(sp.besseli):
            found += term.xreplace({x: direction * y})
            continue
        power, logarithm = term.as_coeff_Mul()
        order, z = _order(logarithm, x)
        if order is None:
            return None
        turned = sp.expand(order.xreplace({x: direction * y}))
        sign, shift = turned.coeff(y, 1), turned.coeff(y, 0)
        if abs(sign) != 1 or not shift.is_Integer:
            return None
        shift = int(sign * shift)  # |order| = y + shift
        least = max(least, 1 - shift)
        found += power * ((y + shift) * sp.log(z / 2) + (z**2 / 4 if power > 0 else 0))
        gammas += power
        above = sum((sp.log(y + j) for j in range(1, shift + 1)), sp.S.Zero)
        below = sum((sp.log(y - j) for j in range(-shift)), sp.S.Zero)
        found += power * (below - above)
    bound = sp.expand(found) - gammas * sp.loggamma(y + 1)
    return Bound(bound.xreplace({y: direction * x}), least)


def _order(logarithm: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr | None, sp.Expr]:
    """Return the order and the argument of log I(z), the order None where it is anything else."""
    inner = logarithm.args[0] if isinstance(logarithm, sp.log) else sp.S.Zero
    if not isinstance(inner, sp.besseli) or not is_nonnegative(inner) or inner.args[1].has(x):
        return None, sp.S.Zero
    order, z = inner.args
    return order, z


def is_nonnegative(factor: sp.Expr) -> bool:
    """Return whether a factor is known not to be negative; I of an integer order is not."""
    base, exponent = factor.as_base_exp()
    if isinstance(base, sp.besseli) and exponent.is_real:
        order, z = base.args
        return bool(order.is_integer and z.is_positive)
    return bool(factor.is_nonnegative)
