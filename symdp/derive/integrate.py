"""A table of definite integrals and sums of exp(normal form), parameters and tilt included.

Each rule reads the normal form of an integrand, recognises one family and returns its value, or
None.  The rules state no conditions of convergence: where the CGF is finite is found apart, and a
closed form is believed only after it was compared with a numerical integral.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import sympy as sp

from symdp.derive import (
    rules_exponential,
    rules_gaussian,
    rules_power,
    rules_sum,
    rules_wave,
    tidy,
)
from symdp.derive.integrand import Integrand
from symdp.derive.substitution import logarithmic

__all__ = ["Integrand", "definite"]

Rule = Callable[[Integrand], sp.Expr | None]


def definite(integrand: Integrand) -> sp.Expr | None:
    """Return ∫ exp(form) without the form's constant factor, None where no rule applies.

    What no rule knows is tried once more after x = r ± e^y, which makes exponentials of powers.

    Examples
    --------
    >>> from symdp.derive.normal_form import LogForm
    >>> x = sp.Symbol("x", real=True)
    >>> a = sp.Symbol("a", positive=True)
    >>> definite(Integrand(LogForm(x, smooth={x**2: -a}), -sp.oo, sp.oo, False))
    sqrt(pi)/sqrt(a)
    """
    value = _first(_SUM_RULES if integrand.is_sum else _INTEGRAL_RULES, integrand)
    if value is not None:
        return value
    if integrand.is_line and not integrand.is_sum:
        halves = [
            _substituted(replace(integrand, **{end: sp.S.Zero})) for end in ("upper", "lower")
        ]
        total = None if None in halves else sp.Add(*halves)
        return None if total is None or tidy.simplify(total) == 0 else total
    return _substituted(integrand)


def _substituted(integrand: Integrand) -> sp.Expr | None:
    for moved in logarithmic(integrand):
        value = _first(_INTEGRAL_RULES, moved)
        if value is not None:
            return value * sp.exp(moved.form.constant)
    return None


def _first(rules: tuple[Rule, ...], integrand: Integrand) -> sp.Expr | None:
    for rule in rules:
        value = rule(integrand)
        if value is not None:
            return value
    return None


_INTEGRAL_RULES: tuple[Rule, ...] = (
    rules_gaussian.line,
    rules_gaussian.gaussian,
    rules_exponential.gamma,
    rules_exponential.bessel,
    rules_exponential.beta,
    rules_exponential.beta_from_zero,
    rules_exponential.line_power,
    rules_power.power_law,
    rules_power.polynomial,
    rules_power.inverse_sine,
    rules_power.one_quadratic,
    rules_power.two_quadratics,
    rules_wave.circle,
    rules_wave.wave_power,
)
_SUM_RULES: tuple[Rule, ...] = (
    rules_sum.short,
    rules_sum.geometric,
    rules_sum.exponential_series,
    rules_sum.binomial_series,
    rules_sum.polynomial_series,
    rules_sum.power_series,
)
