"""A table of sums of exp(normal form) over integers, parameters and tilt included.

As of the integrals, no rule states where its sum converges.
"""

from __future__ import annotations

import sympy as sp

from symdp.density.integral_rules import Rule
from symdp.density.normal_form import Integrand, LogForm
from symdp.density.signs import compare

_MOST_POWERS = 12  # of a polynomial that is summed
_MOST_TERMS = 64  # of a sum that is written out


def short(integrand: Integrand) -> sp.Expr | None:
    """A few terms, one by one."""
    x = integrand.x
    lower = integrand.lower
    if lower.is_infinite or integrand.upper.is_infinite:
        return None
    count = integrand.upper - lower + 1
    if not count.is_Integer or count > _MOST_TERMS or not lower.is_Integer:
        return None
    form = integrand.form
    moving = LogForm(x, smooth=form.smooth, logs=form.moving_logs)
    body = sp.exp(moving.to_expression())
    first = int(lower)
    integers = range(first, first + int(count))
    return sp.Add(*(body.subs(x, k) for k in integers))


def geometric(integrand: Integrand) -> sp.Expr | None:
    """Σ exp(αk)."""
    powers = integrand.powers()
    if powers is None or set(powers) != {1} or integrand.is_line:
        return None
    rate = powers[1]
    lower = integrand.lower
    upper = integrand.upper
    if lower is -sp.oo:
        last = sp.exp(sp.expand(rate * upper))
        return last / (1 - sp.exp(-rate))
    first = sp.exp(sp.expand(rate * lower))
    missing = 1 - sp.exp(rate)
    if upper is sp.oo:
        return first / missing
    beyond = sp.exp(sp.expand(rate * (upper + 1)))
    return (first - beyond) / missing


def _rate_from_zero(integrand: Integrand) -> sp.Expr | None:
    """Return α where the smooth part is αk and the sum runs over 0, 1, 2, …."""
    whole = compare(integrand.lower, sp.S.Zero) == 0 and integrand.upper is sp.oo
    if not whole or set(integrand.form.smooth) - {integrand.x}:
        return None
    return integrand.form.smooth.get(integrand.x, sp.S.Zero)


def exponential_series(integrand: Integrand) -> sp.Expr | None:
    """Σ exp(αk)/k! over the naturals."""
    rate = _rate_from_zero(integrand)
    if rate is None or integrand.form.moving_logs != {sp.factorial(integrand.x): -1}:
        return None
    return sp.exp(sp.exp(rate))


def binomial_series(integrand: Integrand) -> sp.Expr | None:
    """Σ u^k times C(n, k) up to n, C(k + m, k), or Γ(k + r)/k!: (1 + u)^n or (1 − u)^{−r}."""
    form = integrand.form
    k = integrand.x
    is_endless = integrand.upper is sp.oo
    if set(form.smooth) - {k} or compare(integrand.lower, sp.S.Zero) != 0:
        return None
    u = sp.exp(form.smooth.get(k, sp.S.Zero))
    logs = form.moving_logs
    if len(logs) == 2 and logs.get(sp.factorial(k)) == -1 and is_endless:
        (other,) = (base for base in logs if base != sp.factorial(k))
        if logs[other] != 1 or not isinstance(other, sp.gamma | sp.factorial):
            return None
        order = other.args[0] - k
        if isinstance(other, sp.factorial):
            order = order + 1
        if k in order.free_symbols:
            return None
        return sp.gamma(order) * (1 - u) ** (-order)
    if len(logs) != 1 or set(logs.values()) != {sp.S.One}:
        return None
    (base,) = logs
    if not isinstance(base, sp.binomial):
        return None
    above, below = base.args
    is_full_row = below == k and sp.expand(integrand.upper - above) == 0
    if k not in above.free_symbols and is_full_row:
        return (1 + u) ** above
    gap = sp.expand(above - k)
    if k not in gap.free_symbols and below in (k, gap) and is_endless:
        return (1 - u) ** (-gap - 1)
    return None


def polynomial_series(integrand: Integrand) -> sp.Expr | None:
    """Σ p(k) u^k over the naturals: p in binomial coefficients, Σ C(k, j) u^k = u^j/(1−u)^{j+1}."""
    rate = _rate_from_zero(integrand)
    k = integrand.x
    logs = integrand.form.moving_logs
    if rate is None or rate == 0 or not logs:
        return None
    for base, power in logs.items():
        is_whole = power.is_Integer and power > 0
        if not is_whole or not base.is_polynomial(k):
            return None
    product = sp.Mul(*(base**power for base, power in logs.items()))
    polynomial = sp.Poly(product, k)
    if polynomial.degree() > _MOST_POWERS:
        return None
    u = sp.exp(rate)
    total = sp.S.Zero
    differences = polynomial
    for j in range(polynomial.degree() + 1):
        # Newton's forward differences at 0 are the coefficients in the C(k, j).
        coefficient = differences.as_expr().subs(k, 0)
        total += coefficient * u**j / (1 - u) ** (j + 1)
        differences = differences.shift(1) - differences
    return total


def power_series(integrand: Integrand) -> sp.Expr | None:
    """Σ (k + m)^{−s} = ζ(s, m), and Σ u^k/(k + 1) = −log(1 − u)/u."""
    form = integrand.form
    k = integrand.x
    logs = form.moving_logs
    if integrand.upper is not sp.oo or len(logs) != 1 or set(form.smooth) - {k}:
        return None
    ((base, power),) = logs.items()
    is_line = base.is_polynomial(k) and sp.degree(base, k) == 1
    if not is_line or sp.diff(base, k) != 1:
        return None
    first = sp.expand(base.subs(k, integrand.lower))
    rate = form.smooth.get(k, sp.S.Zero)
    if rate == 0:
        return sp.zeta(-power, first)
    if power == -1 and first == 1:
        shift = sp.exp(sp.expand(rate * (integrand.lower - 1)))
        return -shift * sp.log(1 - sp.exp(rate))
    return None


SUM_RULES: tuple[Rule, ...] = (
    short,
    geometric,
    exponential_series,
    binomial_series,
    polynomial_series,
    power_series,
)
