"""Derivatives of a CGF that stay short, and cumulants in terms of moments."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from symdp.derive import tidy

_SHORT = 60  # operations up to which a cumulant is factored


@lru_cache(maxsize=1024)
def derivative_of(cgf: sp.Expr, tilt: sp.Symbol, order: int) -> sp.Expr:
    """Return K^(order), each log differentiated factor by factor so that quotients stay short.

    Examples
    --------
    >>> t = sp.Symbol("t", real=True)
    >>> derivative_of(sp.log(sp.sinh(t) / t), t, 1)
    coth(t) - 1/t
    """
    if order > 1:
        derivative = sp.diff(derivative_of(cgf, tilt, order - 1), tilt)
    else:
        derivative = sp.Add(*(_slope(term, tilt) for term in sp.Add.make_args(cgf)))
    if sp.count_ops(derivative) > _SHORT:
        return derivative
    candidates = (derivative, tidy.factor(derivative))
    return min(candidates, key=lambda e: (sp.count_ops(e), sp.default_sort_key(e)))


def _slope(term: sp.Expr, tilt: sp.Symbol) -> sp.Expr:
    if not isinstance(term, sp.log):
        return sp.diff(term, tilt)
    total = sp.S.Zero
    for factor in sp.Mul.make_args(term.args[0]):
        base, power = factor.as_base_exp()
        if tilt in power.free_symbols or isinstance(factor, sp.exp):
            total += sp.diff(power * sp.log(base), tilt)
        elif isinstance(base, sp.sinh):
            total += power * sp.diff(base.args[0], tilt) * sp.coth(base.args[0])
        elif isinstance(base, sp.cosh):
            total += power * sp.diff(base.args[0], tilt) * sp.tanh(base.args[0])
        else:
            total += power * sp.diff(base, tilt) / base
    return total


def cumulant_in_moments(order: int, tilt: sp.Symbol) -> sp.Expr:
    """Return κ_n in raw moments, κ_n = m_n − Σ_{k<n} C(n−1, k−1) κ_k m_{n−k}.

    Examples
    --------
    >>> cumulant_in_moments(2, sp.Symbol("t"))
    -m_1(t)**2 + m_2(t)
    """
    moment = [sp.S.One, *(sp.Function(f"m_{k}")(tilt) for k in range(1, order + 1))]
    cumulants: list[sp.Expr] = [sp.S.Zero]
    for n in range(1, order + 1):
        lower = (sp.binomial(n - 1, k - 1) * cumulants[k] * moment[n - k] for k in range(1, n))
        cumulants.append(sp.expand(moment[n] - sp.Add(*lower)))
    return cumulants[order]
