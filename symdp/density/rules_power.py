"""Integrals of powers of linear and quadratic factors, and of waves over whole periods."""

from __future__ import annotations

import sympy as sp

from symdp.density.normal_form import Integrand
from symdp.density.signs import sign_of
from symdp.model import tidy

_MOST_POWERS = 12  # of one factor that is multiplied out


def power_law(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) |x − r|^β …: powers of one or two linear factors that vanish at finite ends."""
    form, x = integrand.form, integrand.x
    logs = form.moving_logs
    if set(form.smooth) - {x} or not 1 <= len(logs) <= 2:
        return None
    if not all(base.is_polynomial(x) and sp.degree(base, x) == 1 for base in logs):
        return None
    lower, upper = integrand.lower, integrand.upper
    rate = form.smooth.get(x, sp.S.Zero)
    if len(logs) == 1:
        ((base, power),) = logs.items()
        slope = sp.diff(base, x)
        if rate == 0:
            ends = []
            for end in (upper, lower):
                at = None if end.is_infinite else sp.expand(base.subs(x, end))
                # A power of 0 or ∞ vanishes wherever the integral converges.
                ends.append(sp.S.Zero if at is None or at == 0 else at ** (power + 1))
            return None if integrand.is_line else (ends[0] - ends[1]) / (slope * (power + 1))
        for end, other in ((lower, upper), (upper, lower)):
            if other.is_infinite and not end.is_infinite and tidy.vanishes(base.subs(x, end)):
                steep = rate if end is upper else -rate
                return sp.exp(rate * end) * sp.gamma(power + 1) * steep ** (-power - 1)
        return None
    if rate != 0 or lower.is_infinite or upper.is_infinite:
        return None
    (first, p), (second, q) = logs.items()
    if sp.expand(first.subs(x, lower)) != 0:
        (first, p), (second, q) = (second, q), (first, p)
    if sp.expand(first.subs(x, lower)) != 0 or sp.expand(second.subs(x, upper)) != 0:
        return None
    slopes = abs(sp.diff(first, x)) ** p * abs(sp.diff(second, x)) ** q
    beta = sp.gamma(p + 1) * sp.gamma(q + 1) / sp.gamma(p + q + 2)
    return slopes * beta * (upper - lower) ** (p + q + 1)


def polynomial(integrand: Integrand) -> sp.Expr | None:
    """∫ of a product of whole powers of polynomials between finite ends."""
    form, x = integrand.form, integrand.x
    logs, ends = form.moving_logs, (integrand.lower, integrand.upper)
    whole = all(p.is_Integer and 0 < p <= _MOST_POWERS for p in logs.values())
    if form.smooth or not whole or any(end.is_infinite for end in ends):
        return None
    if not all(base.is_polynomial(x) for base in logs):
        return None
    whole_form = sp.Poly(sp.expand(sp.Mul(*(base**p for base, p in logs.items()))), x).integrate()
    low, high = (whole_form.as_expr().subs(x, end) for end in ends)
    return sp.expand(high - low)


def inverse_sine(integrand: Integrand) -> sp.Expr | None:
    """∫ (c − (x − m)²)^{−1/2} between finite ends: asin((x − m)/√c)."""
    form, x = integrand.form, integrand.x
    logs, ends = form.moving_logs, (integrand.lower, integrand.upper)
    if form.smooth or set(logs.values()) != {-sp.S.Half} or any(end.is_infinite for end in ends):
        return None
    base = sp.expand(sp.Mul(*logs))
    if not base.is_polynomial(x) or sp.degree(base, x) != 2:
        return None
    a, b, c = sp.Poly(base, x).all_coeffs()
    square = tidy.factor(tidy.cancel((b**2 - 4 * a * c) / (4 * a**2)))
    if sign_of(a) != -1 or sign_of(square) != 1:
        return None
    low, high = (sp.asin(tidy.cancel((end + b / (2 * a)) / sp.sqrt(square))) for end in ends)
    return (high - low) / sp.sqrt(-a)


def quadratics(integrand: Integrand) -> sp.Expr | None:
    """∫ q₁^{−1−s} q₂^{s} over the line, both quadratics without real zero: a Legendre function.

    For qᵢ = (x − mᵢ)² + gᵢ² it is π g₁^{−1−s} g₂^{s} P_s(1 + ((m₁−m₂)² + (g₁−g₂)²)/(2g₁g₂)): moving
    q₂ to 1 + x² by a Möbius map and x = tan(φ/2) make it Laplace's integral of P_s.  Of one
    quadratic ∫ q^{−s} = √π Γ(s − ½)/Γ(s) g^{1−2s}.
    """
    form, x = integrand.form, integrand.x
    logs = form.moving_logs
    if form.smooth or not integrand.is_line or len(logs) not in (1, 2):
        return None
    found = []
    for base, power in logs.items():
        if not base.is_polynomial(x) or sp.degree(base, x) != 2:
            return None
        a, b, c = sp.Poly(base, x).all_coeffs()
        square = tidy.factor(tidy.cancel((4 * a * c - b**2) / (4 * a**2)))
        if sign_of(square) != 1 or sign_of(a) != 1:
            return None
        found.append((a, -b / (2 * a), sp.sqrt(square), power))
    (a, m, g, first) = found[0]
    if len(found) == 1:
        ratio = sp.gamma(-first - sp.S.Half) / sp.gamma(-first)
        return sp.sqrt(sp.pi) * ratio * a**first * g ** (1 + 2 * first)
    (c, n, h, second) = found[1]
    if sp.expand(first + second) != -1:
        return None
    place = tidy.factor(tidy.cancel(1 + ((m - n) ** 2 + (g - h) ** 2) / (2 * g * h)))
    scale = a**first * c**second * g**first * h**second
    return sp.pi * scale * sp.legendre(second, place)


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
