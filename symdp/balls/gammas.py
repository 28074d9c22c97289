"""Tails of quotients of gamma functions, whose large logarithms nearly cancel on no ball.

For y > 0 and s ≥ 0, y^s·min(1, (y/(y + s))^{1−s}) ≤ Γ(y + s)/Γ(y) ≤ (y + s)^s [Wendel 1948, and
Γ(y + 1) = yΓ(y)].
"""

from __future__ import annotations

import sympy as sp

from symdp.balls.bessel import Bound

_KINDS = (sp.gamma, sp.loggamma, sp.factorial, sp.binomial)


def without_gammas(exponent: sp.Expr, x: sp.Symbol, direction: int) -> Bound | None:
    """Return an upper bound of an exponent in which no two logarithms of gammas cancel.

    Parameters
    ----------
    exponent, x
        g, and its variable.
    direction : {1, -1}
        The side on which the bound is wanted.

    Returns
    -------
    Bound or None
        None where g holds no quotient of gamma functions of ±x + a number.

    Examples
    --------
    >>> k = sp.Symbol("k", integer=True)
    >>> without_gammas(sp.log(sp.gamma(k + 9)) - sp.log(sp.factorial(k)) - k, k, 1)
    Bound(exponent=-k + 8*log(k + 9), least=1)
    """
    y = sp.Symbol("y", positive=True)
    plain = sp.expand_log(exponent.xreplace({x: direction * y}).rewrite(sp.gamma), force=True)
    found, powers = sp.S.Zero, dict[sp.Expr, sp.Expr]()
    for term in sp.Add.make_args(sp.expand(plain, func=False, gamma=False)):
        if not term.has(*_KINDS):
            found += term
            continue
        power, logarithm = term.as_independent(y, as_Add=False)
        inner = logarithm.args[0] if isinstance(logarithm, sp.log) else None
        shift = inner.args[0] - y if isinstance(inner, sp.gamma) else y
        if not (shift.is_Rational and power.is_number):
            return None
        powers[shift] = powers.get(shift, sp.S.Zero) + power
    rising = [(a, c) for a, c in powers.items() if c > 0]
    falling = {b: -c for b, c in powers.items() if c < 0}
    if not rising:
        return None
    for a, whole in rising:
        c = whole
        for b in sorted(falling, key=lambda b: abs(a - b)):
            taken = sp.Min(c, falling[b])
            falling[b] -= taken
            c -= taken
            found += taken * _log_quotient(y, a, b)
        if c != 0:
            return None
    found -= sum((c * sp.loggamma(y + b) for b, c in falling.items()), sp.S.Zero)
    least = max(1, *(1 - sp.floor(shift) for shift in powers))
    return Bound(found.xreplace({y: direction * x}), int(least))


def _log_quotient(y: sp.Symbol, a: sp.Expr, b: sp.Expr) -> sp.Expr:
    """Return an upper bound of log(Γ(y + a)/Γ(y + b))."""
    s = a - b
    if -1 < s < 0:
        return (1 + s) * sp.log(y + b) - sp.log(y + a)
    return s * sp.log(y + a)
