"""Upper bounds of e^g by sums of simpler exponentials, for tails that ball arithmetic loses.

Where g holds c log Σ sᵢ with sᵢ ≥ 0, as the loss of every sampled mechanism does,

    (Σ kᵢ rᵢ)^c ≤ (Σ kᵢ)^{c−1} Σ kᵢ rᵢ^c    for c ≥ 1 (Jensen),
    (Σ sᵢ)^c ≤ Σ sᵢ^c                       for 0 ≤ c ≤ 1,
    (Σ sᵢ)^c ≤ s_j^c                        for c ≤ 0 and any j,

and no sum is left in which terms of opposite signs could cancel.
"""

from __future__ import annotations

import sympy as sp

from symdp.balls.bessel import is_nonnegative

_MOST = 16  # summands of a product multiplied out
_FAR = 1000  # a place that orders summands by size


def majorants(exponent: sp.Expr, x: sp.Symbol, direction: int) -> list[sp.Expr] | None:
    """Return exponents gᵢ with e^g ≤ Σ e^{gᵢ} wherever g is real, None where nothing is gained.

    Parameters
    ----------
    exponent, x
        g and its variable.
    direction : {1, -1}
        The side on which the bound is wanted; it holds on both.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> majorants(3 * sp.log(sp.exp(x) / 2 + sp.Rational(1, 2)) - x**2, x, 1)
    [-x**2 - log(2), -x**2 + 3*x - log(2)]
    """
    waiting: list[sp.Expr] = [exponent]
    found: list[sp.Expr] = []
    while waiting:
        if len(waiting) + len(found) > _MOST:
            return None
        whole = waiting.pop()
        parts = _split(sp.expand_log(whole, force=True), x, direction)
        if parts is None:
            found.append(whole)
        else:
            waiting += parts
    return None if found == [exponent] else sorted(found, key=sp.default_sort_key)


def _split(exponent: sp.Expr, x: sp.Symbol, direction: int) -> list[sp.Expr] | None:
    """Take one logarithm of a sum apart, None if there is none."""
    for term in sp.Add.make_args(exponent):
        power, logarithm = term.as_coeff_Mul()
        if not (isinstance(logarithm, sp.log) and logarithm.has(x) and power.is_number):
            continue
        summands = sp.Add.make_args(logarithm.args[0])
        if len(summands) < 2 or not all(map(_is_nonnegative, summands)):
            continue
        rest = exponent - term
        if power <= 0:
            largest = max(summands, key=lambda s: _log_size(s, x, direction))
            return [rest + power * sp.log(largest)]
        if power < 1:
            return [rest + power * sp.log(summand) for summand in summands]
        factors = [summand.as_independent(x, as_Add=False) for summand in summands]
        total = sum(constant for constant, _ in factors)
        return [
            rest + (power - 1) * sp.log(total) + sp.log(constant) + power * sp.log(moving)
            for constant, moving in factors
        ]
    return None


def _is_nonnegative(summand: sp.Expr) -> bool:
    factors = sp.Mul.make_args(summand)
    return bool(summand.is_nonnegative) or all(map(is_nonnegative, factors))


def _log_size(summand: sp.Expr, x: sp.Symbol, direction: int) -> float:
    """Return about the logarithm of a summand far out, which decides about sharpness alone."""
    value = sp.expand_log(sp.log(summand), force=True).subs(x, direction * _FAR).evalf(15)
    return float(value) if value.is_real and value.is_finite else -1e300
