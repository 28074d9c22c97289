"""Tails of what holds modified Bessel functions of integer orders, by bounds without them.

As e^{z cosh u} = Σₘ Iₘ(z) e^{mu} with positive terms [DLMF 10.35.1], at the best u = asinh(m/z)

    Iₘ(z) ≤ exp(w − m asinh(m/z)), w = √(m² + z²),    and Iₘ(z) ≥ (z/2)^m/Γ(m + 1) [DLMF 10.25.2];

a neighbour's is known from ratios [Amos 1974, (9) and (11)], for m ≥ 0,

    z/(m + 1 + √((m + 1)² + z²)) ≤ I_{m+1}(z)/Iₘ(z) ≤ z/(m + ½ + √((m + ½)² + z²)).
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
    >>> bound = without_bessel(sp.log(sp.besseli(k - 1, 2)), k, 1)
    >>> tuple(sp.N(e.subs(k, 9), 5) for e in (bound.exponent, sp.log(sp.besseli(8, 2))))
    (-8.4552, -10.494)
    """
    y = sp.Symbol("y", positive=True)
    found, least = sp.S.Zero, 1
    powers: dict[sp.Expr, sp.Expr] = {}
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
        found += _from_neighbours(y, shift, z, power)
        powers[z] = powers.get(z, sp.S.Zero) + power
    for z, power in powers.items():
        w = sp.sqrt(y**2 + z**2)
        if power.is_negative:
            found += power * (y * sp.log(z / 2) - sp.loggamma(y + 1))
        else:
            found += power * (w - y * sp.log((y + w) / z))
    return Bound(found.xreplace({y: direction * x}), least)


def _from_neighbours(y: sp.Symbol, shift: int, z: sp.Expr, power: sp.Expr) -> sp.Expr:
    """Return an upper bound of c log(I_{y + d}(z)/I_y(z))."""
    total = sp.S.Zero
    for j in range(abs(shift)):
        m = y + j if shift > 0 else y - 1 - j
        rising = sp.S.Half if (power > 0) == (shift > 0) else sp.S.One
        ratio = sp.log(z / (m + rising + sp.sqrt((m + rising) ** 2 + z**2)))
        total += ratio if shift > 0 else -ratio
    return power * total


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
