"""Integrals of waves over whole periods, and of powers of a cosine between its zeros."""

from __future__ import annotations

import sympy as sp

from symdp.derive import tidy
from symdp.derive.integrand import Integrand


def circle(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(a·cos kx + b·sin kx) over m periods: m·period·I₀(√(a² + b²))."""
    form, x = integrand.form, integrand.x
    width = integrand.upper - integrand.lower
    if form.moving_logs or not form.smooth or width.is_infinite:
        return None
    total = sp.expand_trig(sp.Add(*(c * m for m, c in form.smooth.items())))
    total = sp.expand(total)
    waves = {w for w in total.atoms(sp.cos, sp.sin) if x in w.free_symbols}
    rates = {tidy.cancel(wave.args[0] / x) for wave in waves}
    if len(rates) != 1:
        return None
    (rate,) = rates
    periods = tidy.cancel(width * rate / (2 * sp.pi))
    if x in rate.free_symbols or not periods.is_Integer or periods == 0:
        return None
    even, odd = (sp.expand(total.coeff(wave(rate * x))) for wave in (sp.cos, sp.sin))
    if sp.expand(total - even * sp.cos(rate * x) - odd * sp.sin(rate * x)) != 0:
        return None
    if x in (even.free_symbols | odd.free_symbols):
        return None
    square = tidy.factor(sp.trigsimp(sp.expand(even**2 + odd**2)))
    return width * sp.besseli(0, sp.sqrt(square))


def wave_power(integrand: Integrand) -> sp.Expr | None:
    """∫ |cos(kx + c)|^β between neighbouring zeros, sin alike: √π Γ((β+1)/2) / (k Γ(β/2 + 1))."""
    form, x = integrand.form, integrand.x
    logs = form.moving_logs
    if form.smooth or len(logs) != 1:
        return None
    ((base, power),) = logs.items()
    if not isinstance(base, sp.cos | sp.sin):
        return None
    wave, phase = base, base.args[0]
    rate = sp.diff(phase, x)
    if x in rate.free_symbols or tidy.simplify(rate * (integrand.upper - integrand.lower)) != sp.pi:
        return None
    if any(tidy.simplify(wave.subs(x, end)) != 0 for end in (integrand.lower, integrand.upper)):
        return None
    return sp.sqrt(sp.pi) * sp.gamma((power + 1) / 2) / (rate * sp.gamma(power / 2 + 1))
