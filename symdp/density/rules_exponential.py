"""Integrals over x of exponentials: of polynomials of degree one or two, and of e^{kx}."""

from __future__ import annotations

import sympy as sp
from sympy.simplify.fu import TR8

from symdp.density.normal_form import Integrand, exponential_terms
from symdp.density.shapes import exponential_polynomial
from symdp.density.signs import sign_of
from symdp.model import tidy


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
    a, b = -powers[2], powers.get(1, sp.S.Zero)
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
    powers, logs = integrand.smooth_powers(), form.moving_logs
    whole = all(power.is_Integer and 1 <= power <= _MOST_POWERS for power in logs.values())
    if powers is None or set(powers) - {1, 2} or not logs or not whole:
        return None
    if 2 in powers and not integrand.is_line:
        return None
    rate, a = powers.get(1, sp.S.Zero), -powers.get(2, sp.S.Zero)
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


_MOST_POWERS = 4  # whose closed form is written out

# αx, the rate k > 0, and −f(u) as {power of u: coefficient}
_Read = tuple[sp.Expr, sp.Expr, dict[int, sp.Expr]]


def gamma(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx − c·e^{kx}): a gamma function over the line, elementary where α/k is ½, 1, 2, …."""
    read = _double_exponential(integrand)
    if read is None or len(read[2]) != 1:
        return None
    alpha, rate, ((power, c),) = read[0], read[1], tuple(read[2].items())
    k = power * rate
    a = tidy.cancel(alpha / k)
    if integrand.is_line:
        return sp.gamma(a) * c ** (-a) / abs(power) / rate
    is_half = a == sp.S.Half and sign_of(c) == 1
    if not is_half and not (a.is_Integer and 1 <= a <= _MOST_POWERS):
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
    if not (order.is_Rational and order.q == 2 and order.p < 2 * _MOST_POWERS):
        return sp.besselk(order, argument)
    n = int(order - sp.S.Half)
    terms = (sp.binomial(n + j, j) * sp.ff(n, j) / (2 * argument) ** j for j in range(n + 1))
    return sp.sqrt(sp.pi / 2) / sp.sqrt(argument) * sp.exp(-argument) * sp.Add(*terms)


def _double_exponential(integrand: Integrand) -> _Read | None:
    form, x = integrand.form, integrand.x
    alpha, rest = sp.S.Zero, {}
    for monomial, coefficient in form.smooth.items():
        if monomial == x:
            alpha = coefficient
        else:
            rate = _rate(monomial, x)
            if rate is None:
                return None
            rest[rate] = -coefficient
    if form.moving_logs or not rest:
        return None
    terms = [(sp.S.One, rate * x) for rate in rest]
    unit = next(iter(rest))
    ratios = [tidy.cancel(rate / unit) for rate in rest]
    sign = sign_of(unit)
    if not terms or not sign or not all(ratio.is_Rational for ratio in ratios):
        return None
    divisor = sp.S.Zero
    for ratio in ratios:
        divisor = sp.Rational(
            sp.igcd(divisor.p * ratio.q, ratio.p * divisor.q), divisor.q * ratio.q
        )
    divisor *= sign
    powers = {int(ratio / divisor): c for ratio, c in zip(ratios, rest.values(), strict=True)}
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
    if not (a.is_Integer and 1 <= a <= _MOST_POWERS):
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
        generator, (c, d) = read[0], (read[1][0], read[1][1])
        own = sp.expand(generator / x)
        if x in own.free_symbols:
            return None
        if rate is None:
            rate = own
        if sp.expand(own - rate) != 0:
            return None
        factors.append((c, d, power))
    return None if rate is None else (rate, factors)
