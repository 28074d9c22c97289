"""A table of definite integrals and sums of exp(normal form), parameters and tilt included.

Each rule reads the normal form of an integrand, recognises one family and returns its value, or
None.  The rules state no conditions of convergence: where the CGF is finite is found apart, and a
closed form is believed only after it was compared with a numerical integral.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import sympy as sp
from sympy.simplify.fu import TR8

from symdp.density.mixture import mixture_form
from symdp.density.normal_form import (
    Integrand,
    LogForm,
    exponential_polynomial,
    exponential_terms,
    log_form,
)
from symdp.density.pieces import SmoothPair, points, smooth_pairs
from symdp.density.signs import compare, interior_point, sign_of
from symdp.emit.log_sum_exp import hyperu
from symdp.model import tidy

if TYPE_CHECKING:
    from symdp.model.pair import Pair


def line(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx)."""
    powers = integrand.powers()
    if powers is None or set(powers) - {1}:
        return None
    rate, lower, upper = powers.get(1, sp.S.Zero), integrand.lower, integrand.upper
    if rate == 0:
        width = upper - lower
        return None if width.is_infinite else width
    if integrand.is_line:
        return None
    ends = [
        sp.S.Zero if end.is_infinite else sp.exp(sp.expand(rate * end)) for end in (upper, lower)
    ]
    return (ends[0] - ends[1]) / rate


def gaussian(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(−ax² + bx), with error functions where an end is finite."""
    powers = integrand.powers()
    if powers is None or set(powers) - {1, 2} or 2 not in powers:
        return None
    a = -powers[2]
    b = powers.get(1, sp.S.Zero)
    finite = not (integrand.lower.is_infinite or integrand.upper.is_infinite)
    if finite and sign_of(a) != 1:
        return None  # a changes its sign with the tilt: no real formula serves everywhere
    peak = sp.sqrt(sp.pi) / sp.sqrt(a) * sp.exp(tidy.factor(b**2 / (4 * a)))
    if integrand.is_line:
        return peak
    ends = []
    for end in (integrand.upper, integrand.lower):
        if end.is_infinite:
            ends.append(sp.S.One if end is sp.oo else sp.S.NegativeOne)
        else:
            ends.append(sp.erf(sp.sqrt(a) * end - b / (2 * sp.sqrt(a))))
    return peak * (ends[0] - ends[1]) / 2


def waves(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) Σ cᵢ cos(ωᵢx + φᵢ), and ∫ exp(−ax² + bx) Σ cᵢ cos(ωᵢx + φᵢ) over the line."""
    form, x = integrand.form, integrand.x
    powers = integrand.smooth_powers()
    logs = form.moving_logs
    whole = all(power.is_Integer and 1 <= power <= _MOST_WRITTEN for power in logs.values())
    if powers is None or set(powers) - {1, 2} or not logs or not whole:
        return None
    if 2 in powers and not integrand.is_line:
        return None
    rate = powers.get(1, sp.S.Zero)
    a = -powers.get(2, sp.S.Zero)
    total = sp.S.Zero
    product = sp.expand(sp.Mul(*(base**power for base, power in logs.items())))
    for term in sp.Add.make_args(sp.expand(TR8(product))):
        scale, wave = term.as_independent(x, as_Add=False)
        angle = sp.expand(wave.args[0]) if isinstance(wave, sp.cos | sp.sin) else sp.S.Zero
        if not (wave == 1 or (angle.is_polynomial(x) and sp.degree(angle, x) == 1)):
            return None
        omega = angle.coeff(x, 1)
        shift = angle.coeff(x, 0) - (sp.pi / 2 if isinstance(wave, sp.sin) else 0)
        if a != 0:
            height = sp.exp(tidy.factor((rate**2 - omega**2) / (4 * a)))
            area = sp.sqrt(sp.pi / a) * height * sp.cos(rate * omega / (2 * a) + shift)
        elif rate == 0 or integrand.is_line:
            return None
        else:
            area = sp.S.Zero
            for end, sign in ((integrand.upper, 1), (integrand.lower, -1)):
                if end.is_finite is not False:
                    at = sp.expand(omega * end + shift)
                    slope = rate * sp.cos(at) + omega * sp.sin(at)
                    area += sign * sp.exp(sp.expand(rate * end)) * slope
            area /= rate**2 + omega**2
        total += scale * area
    return total


_MOST_POWERS = 12  # of a factor that is multiplied out, or of a polynomial that is summed
_MOST_WRITTEN = 4  # powers whose closed form is written out

# αx, the rate k > 0, and −f(u) as {power of u: coefficient}
_Read = tuple[sp.Expr, sp.Expr, dict[int, sp.Expr]]


def gamma(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx − c·e^{kx}): a gamma function over the line, elementary where α/k is ½, 1, 2, …."""
    read = _double_exponential(integrand)
    if read is None or len(read[2]) != 1:
        return None
    alpha = read[0]
    rate = read[1]
    ((power, c),) = tuple(read[2].items())
    k = power * rate
    a = tidy.cancel(alpha / k)
    if integrand.is_line:
        return sp.gamma(a) * c ** (-a) / abs(power) / rate
    is_half = a == sp.S.Half and sign_of(c) == 1
    if not is_half and not (a.is_Integer and 1 <= a <= _MOST_WRITTEN):
        return None
    total = sp.S.Zero
    for end, sign in ((integrand.upper, 1), (integrand.lower, -1)):
        if end.is_infinite:  # u = e^{kx} is 0 or ∞ there
            u = sp.S.Zero if (end is sp.oo) == (power < 0) else sp.oo
        else:
            u = sp.exp(sp.expand(k * end))
        if is_half:
            total += sign * sp.sqrt(sp.pi) / sp.sqrt(c) * sp.erf(sp.sqrt(c) * sp.sqrt(u))
        elif u is not sp.oo:
            terms = (sp.ff(a - 1, j) * u ** (a - 1 - j) * c ** (-j - 1) for j in range(int(a)))
            total -= sign * sp.exp(-c * u) * sp.Add(*terms)
    return total / k


def bessel(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx − A·e^{kx} − B·e^{−kx}) over the line: 2/k (B/A)^{α/2k} K_{α/k}(2√(AB))."""
    read = _double_exponential(integrand)
    if read is None or not integrand.is_line or len(read[2]) != 2:
        return None
    alpha, rate, powers = read
    (low, b), (high, a) = sorted(powers.items())
    if low != -high:
        return None
    rate *= high
    order = tidy.cancel(alpha / rate)
    argument = 2 * sp.sqrt(tidy.factor(sp.expand(a * b)))
    front = 1 if order == 0 else sp.sqrt(b) ** order / sp.sqrt(a) ** order
    return 2 / rate * front * _second_kind(order, argument)


def _second_kind(order: sp.Expr, argument: sp.Expr) -> sp.Expr:
    """K_ν(z), elementary for ν = ±1/2, ±3/2, … by K_{n+1/2}(z) = √(π/2z) e^{−z} Σ …."""
    order = -order if order.could_extract_minus_sign() else order
    if not (order.is_Rational and order.q == 2 and order.p < 2 * _MOST_WRITTEN):
        return sp.besselk(order, argument)
    n = int(order - sp.S.Half)
    terms = (sp.binomial(n + j, j) * sp.ff(n, j) / (2 * argument) ** j for j in range(n + 1))
    return sp.sqrt(sp.pi / 2) / sp.sqrt(argument) * sp.exp(-argument) * sp.Add(*terms)


def _double_exponential(integrand: Integrand) -> _Read | None:
    form, x = integrand.form, integrand.x
    alpha = sp.S.Zero
    exponentials = {}
    for monomial, coefficient in form.smooth.items():
        if monomial == x:
            alpha = coefficient
        else:
            rate = _rate(monomial, x)
            if rate is None:
                return None
            exponentials[rate] = -coefficient
    if form.moving_logs or not exponentials:
        return None
    terms = [(sp.S.One, rate * x) for rate in exponentials]
    unit = next(iter(exponentials))
    ratios = [tidy.cancel(rate / unit) for rate in exponentials]
    sign = sign_of(unit)
    if not terms or not sign or not all(ratio.is_Rational for ratio in ratios):
        return None
    divisor = sp.S.Zero
    for ratio in ratios:
        divisor = sp.Rational(
            sp.igcd(divisor.p * ratio.q, ratio.p * divisor.q), divisor.q * ratio.q
        )
    divisor *= sign
    pairs = zip(ratios, exponentials.values(), strict=True)
    powers = {int(ratio / divisor): c for ratio, c in pairs}
    return alpha, sp.expand(unit * divisor), powers


def _rate(monomial: sp.Expr, x: sp.Symbol) -> sp.Expr | None:
    """Return k where the monomial is exp(k·x)."""
    if isinstance(monomial, sp.exp):
        rate = sp.expand(monomial.args[0] / x)
        return None if x in rate.free_symbols else rate
    base, power = monomial.as_base_exp()
    if x in base.free_symbols or x not in power.free_symbols:
        return None
    rate = sp.expand(power / x)
    return None if x in rate.free_symbols else rate * sp.log(base)


def beta(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) Π (cᵢ + dᵢ e^{kx})^{βᵢ} over the line, one or two factors, by u = e^{kx}."""
    lines = _exponential_lines(integrand)
    if lines is None or not integrand.is_line:
        return None
    rate, factors = lines
    direction = sign_of(rate)
    if not direction or any(sign_of(v) != 1 for c, d, _ in factors for v in (c, d)):
        return None
    a = tidy.cancel(integrand.form.smooth.get(integrand.x, sp.S.Zero) / rate)
    scale = direction * rate
    if len(factors) == 1:
        ((c, d, power),) = factors
        return c ** (power + a) * d ** (-a) * sp.beta(a, -power - a).rewrite(sp.gamma) / scale
    (c, d, first), (e, f, second) = factors
    ratio = sp.powsimp(sp.expand(f * c / (e * d)))
    front = c**first * e**second * (d / c) ** (-a) / scale
    total = sp.expand(-first - second)
    if a == 1 and total == 2:
        return front * (ratio ** (-first - 1) - 1) / ((first + 1) * (1 - ratio))
    if (a, total) == (sp.S.Half, sp.S.One):
        # ₂F₁(−s, ½; 1; 1 − r) is a Legendre function, symmetric under r → 1/r.
        balanced = sp.sqrt(ratio) ** second * sp.pi
        middle = (sp.sqrt(ratio) + 1 / sp.sqrt(ratio)) / 2
        return front * balanced * sp.legendre(second, tidy.simplify(middle))
    whole = sp.gamma(a) * sp.gamma(total - a) / sp.gamma(total)
    return front * whole * sp.hyper((-second, a), (total,), 1 - ratio)


def beta_from_zero(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) |c + d e^{kx}|^β from the zero of the factor to ±∞: a beta function."""
    lines = _exponential_lines(integrand)
    ends = (integrand.lower, integrand.upper)
    if lines is None or len(lines[1]) != 1 or sum(bool(end.is_infinite) for end in ends) != 1:
        return None
    rate, ((c, d, power),) = lines
    (start,) = (end for end in ends if not end.is_infinite)
    direction = sign_of(rate)
    if not direction or tidy.simplify(c + d * sp.exp(rate * start)) != 0:
        return None
    alpha = integrand.form.smooth.get(integrand.x, sp.S.Zero)
    scale = direction * rate
    # u = e^{k(x − start)} runs from 1 to 0 or to ∞.
    falls = (integrand.upper is sp.oo) == (direction < 0)
    a = tidy.cancel(sp.expand(alpha / rate))
    a = a if falls else sp.expand(-a - power)
    whole = sp.beta(a, power + 1).rewrite(sp.gamma)
    return sp.Abs(c) ** power * sp.exp(sp.expand(alpha * start)) * whole / scale


def line_power(integrand: Integrand) -> sp.Expr | None:
    """∫ e^{akx} (c + d e^{kx})^β with a = 1, 2, …: powers of c + du, between any ends."""
    lines = _exponential_lines(integrand)
    if lines is None or len(lines[1]) != 1 or integrand.is_line:
        return None
    rate, ((c, d, power),) = lines
    rise = integrand.form.smooth.get(integrand.x, sp.S.Zero)
    a = tidy.cancel(sp.expand(rise / rate))
    if not a.is_Integer:  # the other way round: c + du = u(d + c/u)
        c, d, rate, rise = d, c, -rate, rise + power * rate
        a = tidy.cancel(sp.expand(rise / rate))
    if not (a.is_Integer and 1 <= a <= _MOST_WRITTEN):
        return None
    total = sp.S.Zero
    for end, sign in ((integrand.upper, 1), (integrand.lower, -1)):
        falls = end.is_infinite and (end is sp.oo) == (sign_of(rate) == -1)
        if end.is_infinite and not falls:
            continue  # a power of ∞ vanishes wherever the integral converges
        base = c if falls else c + d * sp.exp(sp.expand(rate * end))
        if tidy.simplify(base) == 0:
            continue
        for j in range(int(a)):
            share = sp.binomial(a - 1, j) * (-c) ** (a - 1 - j)
            total += sign * share * base ** (power + j + 1) / (power + j + 1)
    return total / (d**a * rate)


def _exponential_lines(
    integrand: Integrand,
) -> tuple[sp.Expr, list[tuple[sp.Expr, sp.Expr, sp.Expr]]] | None:
    """Read all logs as βᵢ·log(cᵢ + dᵢ e^{kx}) with one k."""
    form, x = integrand.form, integrand.x
    logs = form.moving_logs
    if set(form.smooth) - {x} or len(logs) not in (1, 2):
        return None
    rate: sp.Expr | None = None
    factors = []
    for base, power in logs.items():
        terms = exponential_terms(base, x)
        read = None if terms is None else exponential_polynomial(terms, x)
        if read is None or set(read[1]) != {0, 1}:
            return None
        generator, coefficients = read
        c = coefficients[0]
        d = coefficients[1]
        line_rate = sp.expand(generator / x)
        if x in line_rate.free_symbols:
            return None
        if rate is None:
            rate = line_rate
        if sp.expand(line_rate - rate) != 0:
            return None
        factors.append((c, d, power))
    return None if rate is None else (rate, factors)


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


def two_powers(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) |x − r|^p |x − s|^q from r to s or to ∞, or between finite ends where α = 0.

    With y = |x − r|, s at y = d and m = p + q + 1 the first two are
    e^{αr} B(p+1, q+1) d^m ₁F₁(p+1; m+1; ±αd) and e^{αr} Γ(p+1) |d|^m U(p+1, m+1, |αd|).  Without α
    it is the rise between the ends of y^{p+1} (d−y)^{q+1}/d ₂F₁(1, m+1; p+2; y/d)/(p+1) where
    y < d, and where d < 0, with w = y/(y + |d|), of w^{p+1} |d|^m ₂F₁(m+1, p+1; p+2; w)/(p+1).
    """
    form, x = integrand.form, integrand.x
    logs = form.moving_logs
    linear = all(base.is_polynomial(x) and sp.degree(base, x) == 1 for base in logs)
    if set(form.smooth) - {x} or len(logs) != 2 or not linear or integrand.is_line:
        return None
    scale = sp.S.One
    factors = []
    for base, power in logs.items():
        scale *= sp.Abs(sp.diff(base, x)) ** power
        factors.append((tidy.cancel(x - base / sp.diff(base, x)), power))
    integrals = [_from_root(integrand, *roots) for roots in (factors, factors[::-1])]
    solved = [scale * value for value in integrals if value is not None]
    return min(solved, key=sp.count_ops) if solved else None


def _from_root(
    integrand: Integrand, root_and_power: tuple[sp.Expr, sp.Expr], other: tuple[sp.Expr, sp.Expr]
) -> sp.Expr | None:
    """∫ exp(αx) |x − r|^p |x − s|^q by y = |x − r|, None where y = |x − s| may serve."""
    (root, p) = root_and_power
    (other_root, q) = other
    side = -1 if compare(root, integrand.lower) == 1 else 1
    ends = (integrand.lower, integrand.upper)[::side]

    def distance(point: sp.Expr) -> sp.Expr:
        return sp.oo if point.is_infinite else tidy.factor(side * (point - root))

    low, high, d = map(distance, (*ends, other_root))
    where = sign_of(d)
    m = tidy.factor(sp.expand(p + q + 1))
    rate = side * integrand.form.smooth.get(integrand.x, sp.S.Zero)
    if rate != 0:
        front = sp.exp(sp.expand(side * rate * root)) * sp.gamma(p + 1)
        if low == 0 and high is sp.oo and where == -1:
            return front * (-d) ** m * hyperu(p + 1, m + 1, tidy.factor(rate * d))
        if low == 0 and tidy.vanishes(high - d):
            whole = sp.gamma(q + 1) / sp.gamma(m + 1)
            return front * whole * d**m * hypergeometric((p + 1,), (m + 1,), tidy.factor(rate * d))
        return None
    if high is sp.oo or not (where == -1 or compare(d, high) == 1):
        return None
    total = sp.S.Zero
    for y, sign in ((high, 1), (low, -1)):
        if y != 0 and where == 1:
            series = hypergeometric((1, m + 1), (p + 2,), tidy.factor(y / d))
            total += sign * y ** (p + 1) * tidy.factor(d - y) ** (q + 1) / d * series
        elif y != 0:
            w = tidy.factor(tidy.cancel(y / (y - d)))
            total += sign * w ** (p + 1) * (-d) ** m * hypergeometric((m + 1, p + 1), (p + 2,), w)
    return total / (p + 1)


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
    logs = form.moving_logs
    ends = integrand.lower, integrand.upper
    if form.smooth or any(end.is_infinite for end in ends):
        return None
    if set(logs.values()) != {-sp.S.Half}:
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
    """∫ q₁^{−a} q₂^{−b} over the line, both quadratics without real zero: Legendre, ₃F₂ or ₂F₁.

    For qᵢ = (x − mᵢ)² + gᵢ² and a + b = 1 it is π g₁^{−a} g₂^{−b} P_{−b}(z) with
    z = 1 + ((m₁−m₂)² + (g₁−g₂)²)/(2g₁g₂): moving q₂ to 1 + x² by a Möbius map and x = tan(φ/2)
    make it Laplace's integral of P_s.  Of one quadratic ∫ q^{−ν} = √π Γ(ν − ½)/Γ(ν) g^{1−2ν}.  For
    any ν = a + b, q₁^{−a} q₂^{−b} is the mean of (w q₁ + (1−w) q₂)^{−ν} under a beta law of w, and
    w q₁ + (1−w) q₂ = (x − m)² + w(1−w)(m₁−m₂)² + w g₁² + (1−w) g₂².  Term by term that gives
    ₃F₂(a, b, ν−½; ν/2, (ν+1)/2; −((m₁−m₂)/2g)²) where g₁ = g₂, and ₂F₁(ν−½, a; ν; 1 − g₁²/g₂²)
    where m₁ = m₂.
    """
    form, x = integrand.form, integrand.x
    logs = form.moving_logs
    if form.smooth or not integrand.is_line or len(logs) not in (1, 2):
        return None
    monic = []
    for base, power in logs.items():
        if not base.is_polynomial(x) or sp.degree(base, x) != 2:
            return None
        a, b, c = sp.Poly(base, x).all_coeffs()
        square = tidy.factor(tidy.cancel((4 * a * c - b**2) / (4 * a**2)))
        if sign_of(square) != 1 or sign_of(a) != 1:
            return None
        monic.append((a, -b / (2 * a), square, power))
    (a, m, first_square, first) = monic[0]
    (c, n, square, second) = monic[-1]
    g = sp.sqrt(first_square)
    h = sp.sqrt(square)
    total = tidy.factor(sp.expand(-first - second)) if len(monic) > 1 else -first
    whole = sp.sqrt(sp.pi) * sp.gamma(total - sp.S.Half) / sp.gamma(total) * h ** (1 - 2 * total)
    if len(monic) == 1:
        return a**first * whole
    scale = a**first * c**second
    if total == 1:
        argument = tidy.factor(tidy.cancel(((m - n) ** 2 + (g - h) ** 2) / (-4 * g * h)))
        front = sp.pi * scale * g**first * h**second
        return front * hypergeometric((1 + second, -second), (1,), argument)
    above: tuple[sp.Expr, ...]
    below: tuple[sp.Expr, ...]
    if tidy.vanishes(sp.expand(first_square - square)):
        argument = -tidy.factor(tidy.cancel((m - n) ** 2 / (4 * square)))
        above = (-first, -second, total - sp.S.Half)
        below = (total / 2, (total + 1) / 2)
    elif tidy.vanishes(sp.expand(m - n)):
        argument = 1 - tidy.factor(tidy.cancel(first_square / square))
        above = (total - sp.S.Half, -first)
        below = (total,)
    else:
        return None
    return scale * whole * hypergeometric(above, below, argument)


def hypergeometric(above: Sequence[sp.Expr], below: Sequence[sp.Expr], z: sp.Expr) -> sp.Expr:
    """Return a pFq without what stands above and below, as a sum where it ends.

    ₂F₁(−s, s+1; 1; z) is the Legendre function P_s(1 − 2z), ₁F₀(a; z) is (1 − z)^{−a}.
    """
    uppers = [tidy.factor(sp.expand(parameter)) for parameter in above]
    lowers = [tidy.factor(sp.expand(parameter)) for parameter in below]
    for parameter in [parameter for parameter in lowers if parameter in uppers]:
        uppers.remove(parameter)
        lowers.remove(parameter)
    integers = [parameter for parameter in uppers if parameter.is_Integer]
    last = [-parameter for parameter in integers if -_MOST_TERMS <= parameter <= 0]
    if last and not any(parameter.is_Integer and parameter <= 0 for parameter in lowers):
        terms = (
            sp.Mul(*(sp.rf(u, k) for u in uppers)) / sp.Mul(*(sp.rf(u, k) for u in lowers))
            * z**k / sp.factorial(k)
            for k in range(int(min(last)) + 1)
        )  # fmt: skip
        return sp.Add(*terms)
    if (len(uppers), len(lowers)) == (1, 0):
        return (1 - z) ** -uppers[0]
    if lowers == [1] and len(uppers) == 2 and tidy.vanishes(sp.expand(sum(uppers) - 1)):
        negative = min(uppers, key=lambda parameter: not parameter.could_extract_minus_sign())
        return sp.legendre(-negative, tidy.factor(1 - 2 * z))
    return sp.hyper(uppers, lowers, z)


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
    square = tidy.factor(tidy.bounded(sp.trigsimp, sp.expand(even**2 + odd**2)))
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
    wave = base
    phase = base.args[0]
    rate = sp.diff(phase, x)
    if x in rate.free_symbols or tidy.simplify(rate * (integrand.upper - integrand.lower)) != sp.pi:
        return None
    if any(tidy.simplify(wave.subs(x, end)) != 0 for end in (integrand.lower, integrand.upper)):
        return None
    return sp.sqrt(sp.pi) * sp.gamma((power + 1) / 2) / (rate * sp.gamma(power / 2 + 1))


_MOST_TERMS = 64  # of a sum that is written out


def short(integrand: Integrand) -> sp.Expr | None:
    """A few terms, one by one."""
    if integrand.lower.is_infinite or integrand.upper.is_infinite:
        return None
    count = integrand.upper - integrand.lower + 1
    if not count.is_Integer or count > _MOST_TERMS or not integrand.lower.is_Integer:
        return None
    moving = LogForm(integrand.x, smooth=integrand.form.smooth, logs=integrand.form.moving_logs)
    body = sp.exp(moving.to_expression())
    first = int(integrand.lower)
    return sp.Add(*(body.subs(integrand.x, first + j) for j in range(int(count))))


def geometric(integrand: Integrand) -> sp.Expr | None:
    """Σ exp(αk)."""
    powers = integrand.powers()
    if powers is None or set(powers) != {1} or integrand.is_line:
        return None
    rate, lower, upper = powers[1], integrand.lower, integrand.upper
    if lower is -sp.oo:
        return sp.exp(sp.expand(rate * upper)) / (1 - sp.exp(-rate))
    first = sp.exp(sp.expand(rate * lower))
    if upper is sp.oo:
        return first / (1 - sp.exp(rate))
    return (first - sp.exp(sp.expand(rate * (upper + 1)))) / (1 - sp.exp(rate))


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
    form, k = integrand.form, integrand.x
    if set(form.smooth) - {k} or compare(integrand.lower, sp.S.Zero) != 0:
        return None
    u = sp.exp(form.smooth.get(k, sp.S.Zero))
    logs = form.moving_logs
    if len(logs) == 2 and logs.get(sp.factorial(k)) == -1 and integrand.upper is sp.oo:
        (other,) = (base for base in logs if base != sp.factorial(k))
        if logs[other] != 1 or not isinstance(other, sp.gamma | sp.factorial):
            return None
        order = other.args[0] - k + (1 if isinstance(other, sp.factorial) else 0)
        return None if k in order.free_symbols else sp.gamma(order) * (1 - u) ** (-order)
    if len(logs) != 1 or set(logs.values()) != {sp.S.One}:
        return None
    (base,) = logs
    if not isinstance(base, sp.binomial):
        return None
    above, below = base.args
    if k not in above.free_symbols and below == k and sp.expand(integrand.upper - above) == 0:
        return (1 + u) ** above
    gap = sp.expand(above - k)
    if k not in gap.free_symbols and below in (k, gap) and integrand.upper is sp.oo:
        return (1 - u) ** (-gap - 1)
    return None


def polynomial_series(integrand: Integrand) -> sp.Expr | None:
    """Σ p(k) u^k over the naturals: p in binomial coefficients, Σ C(k, j) u^k = u^j/(1−u)^{j+1}."""
    rate = _rate_from_zero(integrand)
    k = integrand.x
    logs = integrand.form.moving_logs
    if rate is None or rate == 0 or not logs:
        return None
    whole = all(p.is_Integer and p > 0 and b.is_polynomial(k) for b, p in logs.items())
    if not whole:
        return None
    polynomial = sp.Poly(sp.Mul(*(base**power for base, power in logs.items())), k)
    if polynomial.degree() > _MOST_POWERS:
        return None
    u = sp.exp(rate)
    total = sp.S.Zero
    differences = polynomial
    for j in range(polynomial.degree() + 1):
        # Newton's forward differences at 0 are the coefficients in the C(k, j).
        total += differences.as_expr().subs(k, 0) * u**j / (1 - u) ** (j + 1)
        differences = differences.shift(1) - differences
    return total


def power_series(integrand: Integrand) -> sp.Expr | None:
    """Σ (k + m)^{−s} = ζ(s, m), and Σ u^k/(k + 1) = −log(1 − u)/u."""
    form, k = integrand.form, integrand.x
    logs = form.moving_logs
    if integrand.upper is not sp.oo or len(logs) != 1 or set(form.smooth) - {k}:
        return None
    ((base, power),) = logs.items()
    if not base.is_polynomial(k) or sp.degree(base, k) != 1 or sp.diff(base, k) != 1:
        return None
    first = sp.expand(base.subs(k, integrand.lower))
    rate = form.smooth.get(k, sp.S.Zero)
    if rate == 0:
        return sp.zeta(-power, first)
    if power == -1 and first == 1:
        u = sp.exp(rate)
        return -sp.exp(sp.expand(rate * (integrand.lower - 1))) * sp.log(1 - u)
    return None


Rule = Callable[[Integrand], sp.Expr | None]


def definite(integrand: Integrand) -> sp.Expr | None:
    """Return ∫ exp(form) without the form's constant factor, None where no rule applies.

    What no rule knows is tried once more after x = r ± e^y, which makes exponentials of powers.
    """
    entry = entry_of(integrand)
    return None if entry is None else entry.value


class Entry(NamedTuple):
    """The value of an integral, and how it was found."""

    value: sp.Expr  # without the form's constant factor
    rules: tuple[str, ...]  # that know it, by name: one, or one for each half of the line
    moved: tuple[Integrand, ...] = ()  # exponents in y, and ends, where x = r ± e^y was put in


def entry_of(integrand: Integrand) -> Entry | None:
    """Return what `definite` does, with the rules and substitutions that it is due to."""
    entry = _first(_SUM_RULES if integrand.is_sum else _INTEGRAL_RULES, integrand)
    if entry is not None:
        return entry
    if integrand.is_line and not integrand.is_sum:
        left, right = (
            _substituted(replace(integrand, **{end: sp.S.Zero})) for end in ("upper", "lower")
        )
        if left is None or right is None:
            return None
        total = left.value + right.value
        if tidy.simplify(total) == 0:
            return None
        return Entry(total, left.rules + right.rules, left.moved + right.moved)
    return _substituted(integrand)


def _substituted(integrand: Integrand) -> Entry | None:
    for moved in logarithmic(integrand):
        entry = _first(_INTEGRAL_RULES, moved)
        if entry is not None:
            return Entry(entry.value * sp.exp(moved.form.constant), entry.rules, (moved,))
    return None if integrand.is_sum else _first(_LAST_RULES, integrand)


def _first(rules: tuple[Rule, ...], integrand: Integrand) -> Entry | None:
    for rule in rules:
        value = rule(integrand)
        if value is not None:
            return Entry(value, (rule.__name__,))
    return None


def told(name: str) -> str:
    """Return what a rule knows: the first sentence of its docstring."""
    rule = next(
        rule for rule in (*_INTEGRAL_RULES, *_LAST_RULES, *_SUM_RULES) if rule.__name__ == name
    )
    return (rule.__doc__ or name).strip().partition("\n\n")[0]


_INTEGRAL_RULES: tuple[Rule, ...] = (
    line,
    gaussian,
    waves,
    gamma,
    bessel,
    beta,
    beta_from_zero,
    line_power,
    power_law,
    polynomial,
    inverse_sine,
    quadratics,
    circle,
    wave_power,
)
_LAST_RULES: tuple[Rule, ...] = (two_powers,)  # of what no substitution makes elementary
_SUM_RULES: tuple[Rule, ...] = (
    short,
    geometric,
    exponential_series,
    binomial_series,
    polynomial_series,
    power_series,
)


def logarithmic(integrand: Integrand) -> Iterator[Integrand]:
    """Yield the integrand in y = log(x − r) or log(r − x), r an end of its range.

    The factor dx/dy = e^y is part of what is yielded.  A finite range from r to b becomes
    (−∞, log|b − r|), a ray the whole line.  Nothing is yielded where no power or log of x − r
    is there to gain from it.
    """
    x = integrand.x
    if integrand.is_sum or integrand.is_line:
        return
    y = sp.Dummy("y", real=True)
    for end, other, side in (
        (integrand.lower, integrand.upper, 1),
        (integrand.upper, integrand.lower, -1),
    ):
        if end.is_infinite:
            continue
        body = sp.S.Zero
        for monomial, coefficient in integrand.form.smooth.items():
            body += coefficient * _moved(monomial, x, end, side, y)
        logs = sp.S.One
        plain = True
        for base, power in _joined(integrand.form.moving_logs).items():
            moved = _moved(base, x, end, side, y)
            plain = plain and not moved.has(sp.log)
            logs *= sp.expand(moved, log=False) ** power
        if not plain or not _only_exponentials(body, logs, y):
            continue
        top = sp.oo if other.is_infinite else sp.log(tidy.factor(side * (other - end)))
        inside = sp.S.Zero if top is sp.oo else interior_point(-sp.oo, top)
        form = log_form(sp.exp(sp.expand(body) + y) * logs, y, inside)
        yield Integrand(form, -sp.oo, top, False)


def _joined(logs: dict[sp.Expr, sp.Expr]) -> dict[sp.Expr, sp.Expr]:
    """Multiply factors of one power: (1 + x)(1 − x + x²) is 1 + x³ again."""
    groups: dict[sp.Expr, sp.Expr] = {}
    for base, power in logs.items():
        groups[power] = groups.get(power, sp.S.One) * base
    return {sp.expand(product): power for power, product in groups.items()}


def _moved(expression: sp.Expr, x: sp.Symbol, end: sp.Expr, side: int, y: sp.Symbol) -> sp.Expr:
    """Put end ± e^y for x, with e^{py} for every power."""
    return sp.powsimp(sp.powdenest(expression.subs(x, end + side * sp.exp(y))), combine="exp")


def _only_exponentials(body: sp.Expr, logs: sp.Expr, y: sp.Symbol) -> bool:
    """Whether y stands in exponents e^{py} and polynomials alone, not in e^{e^y}."""
    for node in (*body.atoms(sp.exp), *logs.atoms(sp.exp)):
        if y in node.free_symbols and not node.args[0].is_polynomial(y):
            return False
    others = body.atoms(sp.Function) | logs.atoms(sp.Function)
    return all(isinstance(f, sp.exp) or y not in f.free_symbols for f in others)


@dataclass(frozen=True)
class TiltedStretch:
    """log P and log Q as one normal form each, where both densities are positive."""

    smooth: SmoothPair
    log_p: LogForm
    log_q: LogForm
    lower: sp.Expr
    upper: sp.Expr
    is_sum: bool

    def tilted(self, tilt: sp.Symbol) -> Integrand:
        """P^{1+t} Q^{−t}."""
        form = self.log_p.plus(self.log_p.minus(self.log_q), tilt)
        return Integrand(form, self.lower, self.upper, self.is_sum)


def tilt_symbol(pair: Pair) -> sp.Symbol:
    """Return the symbol of the tilt: t, or another name where the pair has a t of its own.

    Real, since simplification relies on it; complex values may be put in afterwards.
    """
    names = {symbol.name for part in pair.expressions() for symbol in part.free_symbols}
    free = next(name for name in ("t", "tilt", "t_tilt", "tilt_of_K") if name not in names)
    return sp.Symbol(free, real=True)


def stretches_of(pair: Pair) -> Iterator[TiltedStretch]:
    """Yield the stretches between kinks on which both densities are positive."""
    for smooth in smooth_pairs(pair):
        if smooth.p_terms and smooth.q_terms:
            yield _stretch(smooth)


def _stretch(smooth: SmoothPair) -> TiltedStretch:
    x, ends = smooth.variable, (smooth.lower, smooth.upper)
    at = ends[0] if ends[0] == ends[1] else interior_point(*ends)
    log_p, log_q = (
        mixture_form(terms, smooth.reference, x, at) for terms in (smooth.p_terms, smooth.q_terms)
    )
    return TiltedStretch(smooth, log_p, log_q, *ends, is_sum=bool(x.is_integer))


def tabulated_moment(pair: Pair) -> tuple[sp.Symbol, sp.Expr] | None:
    """Return the tilt and M = ∫ P^{1+t} Q^{−t} as the table of integrals has it, not simplified.

    None where a stretch is not in the table; nothing is compared with an integral yet.
    """
    if pair.alternatives:
        return None
    tilt = tilt_symbol(pair)
    if pair.support.kind == "points":
        finite = (point for point in points(pair) if not point.loss.is_infinite)
        return tilt, sp.Add(*(point.p * sp.exp(tilt * point.loss) for point in finite))
    total = sp.S.Zero
    for stretch in stretches_of(pair):
        integrand = stretch.tilted(tilt)
        value = definite(integrand)
        if value is None:
            return None
        total += value * sp.exp(sp.expand(integrand.form.constant))
    return tilt, total
