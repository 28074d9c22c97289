"""A table of definite integrals of exp(normal form), parameters and tilt included.

Each rule reads the normal form of an integrand, recognises one family and returns its value, or
None.  The rules state no conditions of convergence: where the CGF is finite is found apart, and a
closed form is believed only after it was compared with a numerical integral.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import sympy as sp
from sympy.simplify.fu import TR8

from symdp.density.normal_form import Integrand, exponential_polynomial, exponential_terms
from symdp.density.signs import compare, sign_of
from symdp.emit.log_sum_exp import hyperu
from symdp.model import tidy

_MOST_POWERS = 12  # of a factor that is multiplied out
_MOST_TERMS = 64  # of a sum that is written out
_MOST_WRITTEN = 4  # powers whose closed form is written out

Rule = Callable[[Integrand], sp.Expr | None]
# α, the rate k > 0 of u = e^{kx}, and −f(u) as {power of u: coefficient}
_DoubleExponential = tuple[sp.Expr, sp.Expr, dict[int, sp.Expr]]
# k, and c, d and β of each (c + d e^{kx})^β
_ExponentialLines = tuple[sp.Expr, list[tuple[sp.Expr, sp.Expr, sp.Expr]]]


def line(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx)."""
    powers = integrand.powers()
    if powers is None or set(powers) - {1}:
        return None
    rate = powers.get(1, sp.S.Zero)
    if rate == 0:
        width = integrand.upper - integrand.lower
        return None if width.is_infinite else width
    if integrand.is_line:
        return None
    at_upper = _exponential_at(rate, integrand.upper)
    at_lower = _exponential_at(rate, integrand.lower)
    return (at_upper - at_lower) / rate


def _exponential_at(rate: sp.Expr, end: sp.Expr) -> sp.Expr:
    """Return e^{αx} at an end, which is 0 at an infinite one."""
    if end.is_infinite:
        return sp.S.Zero
    return sp.exp(sp.expand(rate * end))


def gaussian(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(−ax² + bx), with error functions where an end is finite."""
    powers = integrand.powers()
    if powers is None or set(powers) - {1, 2} or 2 not in powers:
        return None
    a = -powers[2]
    b = powers.get(1, sp.S.Zero)
    if _is_finite(integrand) and sign_of(a) != 1:
        return None  # a changes its sign with the tilt: no real formula serves everywhere
    root = sp.sqrt(a)
    exponent = tidy.factor(b**2 / (4 * a))
    peak = sp.sqrt(sp.pi) / root * sp.exp(exponent)
    if integrand.is_line:
        return peak
    ends = []
    for end in (integrand.upper, integrand.lower):
        if end is sp.oo:
            ends.append(sp.S.One)
        elif end is -sp.oo:
            ends.append(sp.S.NegativeOne)
        else:
            ends.append(sp.erf(root * end - b / (2 * root)))
    at_upper, at_lower = ends
    return peak * (at_upper - at_lower) / 2


def _is_finite(integrand: Integrand) -> bool:
    """Whether both ends of the range are finite."""
    return not (integrand.lower.is_infinite or integrand.upper.is_infinite)


def waves(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) Σ cᵢ cos(ωᵢx + φᵢ), and ∫ exp(−ax² + bx) Σ cᵢ cos(ωᵢx + φᵢ) over the line."""
    powers = integrand.smooth_powers()
    if powers is None or set(powers) - {1, 2}:
        return None
    if 2 in powers and not integrand.is_line:
        return None
    product = _short_product(integrand.form.moving_logs)
    if product is None:
        return None
    rate = powers.get(1, sp.S.Zero)
    a = -powers.get(2, sp.S.Zero)
    total = sp.S.Zero
    summed_waves = sp.expand(TR8(product))
    for term in sp.Add.make_args(summed_waves):
        scale, wave = term.as_independent(integrand.x, as_Add=False)
        frequency_and_phase = _frequency_and_phase(wave, integrand.x)
        if frequency_and_phase is None:
            return None
        omega, phase = frequency_and_phase
        if a != 0:
            area = _wave_under_a_gaussian(a, rate, omega, phase)
        elif rate == 0 or integrand.is_line:
            return None
        else:
            area = _wave_between(integrand, rate, omega, phase)
        total += scale * area
    return total


def _short_product(logs: dict[sp.Expr, sp.Expr]) -> sp.Expr | None:
    """Return Π g^c of a few whole powers c, multiplied out; None of none, and of other powers."""
    if not logs:
        return None
    for power in logs.values():
        if not power.is_Integer or not 1 <= power <= _MOST_WRITTEN:
            return None
    product = sp.Mul(*(base**power for base, power in logs.items()))
    return sp.expand(product)


def _frequency_and_phase(wave: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, sp.Expr] | None:
    """Return ω and φ of cos(ωx + φ), which a sine and 1 are too; None of what is no wave."""
    if wave == 1:
        return sp.S.Zero, sp.S.Zero
    if not isinstance(wave, sp.cos | sp.sin):
        return None
    angle = sp.expand(wave.args[0])
    if not angle.is_polynomial(x) or sp.degree(angle, x) != 1:
        return None
    phase = angle.coeff(x, 0)
    if isinstance(wave, sp.sin):
        phase -= sp.pi / 2
    return angle.coeff(x, 1), phase


def _wave_under_a_gaussian(a: sp.Expr, rate: sp.Expr, omega: sp.Expr, phase: sp.Expr) -> sp.Expr:
    """∫ exp(−ax² + αx) cos(ωx + φ) over the line."""
    squares = rate**2 - omega**2
    exponent = tidy.factor(squares / (4 * a))
    turn = rate * omega / (2 * a) + phase
    peak = sp.sqrt(sp.pi / a) * sp.exp(exponent)
    return peak * sp.cos(turn)


def _wave_between(integrand: Integrand, rate: sp.Expr, omega: sp.Expr, phase: sp.Expr) -> sp.Expr:
    """∫ exp(αx) cos(ωx + φ) between two ends, of which one may be infinite."""
    area = sp.S.Zero
    for end, sign in ((integrand.upper, 1), (integrand.lower, -1)):
        if end.is_finite is False:
            continue
        angle = sp.expand(omega * end + phase)
        slope = rate * sp.cos(angle) + omega * sp.sin(angle)
        exponent = sp.expand(rate * end)
        area += sign * sp.exp(exponent) * slope
    return area / (rate**2 + omega**2)


def gamma(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx − c·e^{kx}): a gamma function over the line, elementary where α/k is ½, 1, 2, …."""
    double_exponential = _double_exponential(integrand)
    if double_exponential is None:
        return None
    alpha, rate, coefficients = double_exponential
    if len(coefficients) != 1:
        return None
    ((power, c),) = coefficients.items()
    k = power * rate
    a = tidy.cancel(alpha / k)
    if integrand.is_line:
        return sp.gamma(a) * c ** (-a) / abs(power) / rate
    is_half = a == sp.S.Half and sign_of(c) == 1
    is_short = a.is_Integer and 1 <= a <= _MOST_WRITTEN
    if not is_half and not is_short:
        return None
    total = sp.S.Zero
    for end, sign in ((integrand.upper, 1), (integrand.lower, -1)):
        if not end.is_infinite:
            u = sp.exp(sp.expand(k * end))
        elif (end is sp.oo) == (power < 0):  # u = e^{kx} is 0 or ∞ there
            u = sp.S.Zero
        else:
            u = sp.oo
        if is_half:
            error_function = sp.erf(sp.sqrt(c) * sp.sqrt(u))
            total += sign * sp.sqrt(sp.pi) / sp.sqrt(c) * error_function
        elif u is not sp.oo:
            terms = (sp.ff(a - 1, j) * u ** (a - 1 - j) * c ** (-j - 1) for j in range(int(a)))
            total -= sign * sp.exp(-c * u) * sp.Add(*terms)
    return total / k


def bessel(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx − A·e^{kx} − B·e^{−kx}) over the line: 2/k (B/A)^{α/2k} K_{α/k}(2√(AB))."""
    double_exponential = _double_exponential(integrand)
    if double_exponential is None or not integrand.is_line:
        return None
    alpha, unit, coefficients = double_exponential
    if len(coefficients) != 2:
        return None
    (low, b), (high, a) = sorted(coefficients.items())
    if low != -high:
        return None
    rate = unit * high
    order = tidy.cancel(alpha / rate)
    product = tidy.factor(sp.expand(a * b))
    front = sp.S.One
    if order != 0:
        front = sp.sqrt(b) ** order / sp.sqrt(a) ** order
    return 2 / rate * front * _second_kind(order, 2 * sp.sqrt(product))


def _second_kind(order: sp.Expr, argument: sp.Expr) -> sp.Expr:
    """K_ν(z), elementary for ν = ±1/2, ±3/2, … by K_{n+1/2}(z) = √(π/2z) e^{−z} Σ …."""
    size = order
    if order.could_extract_minus_sign():
        size = -order
    is_half_of_odd = size.is_Rational and size.q == 2
    if not is_half_of_odd or size.p >= 2 * _MOST_WRITTEN:
        return sp.besselk(size, argument)
    n = int(size - sp.S.Half)
    twice = 2 * argument
    terms = []
    for j in range(n + 1):
        ways = sp.binomial(n + j, j) * sp.ff(n, j)
        terms.append(ways / twice**j)
    root = sp.sqrt(sp.pi / 2) / sp.sqrt(argument)
    decay = root * sp.exp(-argument)
    return decay * sp.Add(*terms)


def _double_exponential(integrand: Integrand) -> _DoubleExponential | None:
    alpha = sp.S.Zero
    exponentials = {}
    for monomial, coefficient in integrand.form.smooth.items():
        if monomial == integrand.x:
            alpha = coefficient
            continue
        rate = _rate(monomial, integrand.x)
        if rate is None:
            return None
        exponentials[rate] = -coefficient
    if integrand.form.moving_logs or not exponentials:
        return None
    unit = next(iter(exponentials))
    ratios = [tidy.cancel(rate / unit) for rate in exponentials]
    sign = sign_of(unit)
    if not sign or not all(ratio.is_Rational for ratio in ratios):
        return None
    divisor = sign * _common_divisor(ratios)
    coefficients = {}
    for ratio, coefficient in zip(ratios, exponentials.values(), strict=True):
        coefficients[int(ratio / divisor)] = coefficient
    return alpha, sp.expand(unit * divisor), coefficients


def _common_divisor(ratios: list[sp.Rational]) -> sp.Rational:
    """Return the largest number of which all these are multiples."""
    divisor = sp.S.Zero
    for ratio in ratios:
        numerator = sp.igcd(divisor.p * ratio.q, ratio.p * divisor.q)
        divisor = sp.Rational(numerator, divisor.q * ratio.q)
    return divisor


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
    if not direction:
        return None
    for c, d, _ in factors:
        if sign_of(c) != 1 or sign_of(d) != 1:
            return None
    slope = integrand.form.smooth.get(integrand.x, sp.S.Zero)
    a = tidy.cancel(slope / rate)
    scale = direction * rate
    if len(factors) == 1:
        ((c, d, power),) = factors
        whole = sp.beta(a, -power - a).rewrite(sp.gamma)
        return c ** (power + a) * d ** (-a) * whole / scale
    (c, d, first), (e, f, second) = factors
    cross_ratio = f * c / (e * d)
    ratio = sp.powsimp(sp.expand(cross_ratio))
    front = c**first * e**second * (d / c) ** (-a) / scale
    total = sp.expand(-first - second)
    if a == 1 and total == 2:
        order = first + 1
        rise = ratio ** (-first - 1) - 1
        return front * rise / (order * (1 - ratio))
    if (a, total) == (sp.S.Half, sp.S.One):
        # ₂F₁(−s, ½; 1; 1 − r) is a Legendre function, symmetric under r → 1/r.
        root = sp.sqrt(ratio)
        balanced = root**second * sp.pi
        middle = tidy.simplify((root + 1 / root) / 2)
        return front * balanced * sp.legendre(second, middle)
    whole = sp.gamma(a) * sp.gamma(total - a) / sp.gamma(total)
    series = sp.hyper((-second, a), (total,), 1 - ratio)
    return front * whole * series


def beta_from_zero(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) |c + d e^{kx}|^β from the zero of the factor to ±∞: a beta function."""
    lines = _exponential_lines(integrand)
    ends = (integrand.lower, integrand.upper)
    finite_ends = [end for end in ends if not end.is_infinite]
    if lines is None or len(finite_ends) != 1:
        return None
    rate, factors = lines
    if len(factors) != 1:
        return None
    ((c, d, power),) = factors
    (start,) = finite_ends
    direction = sign_of(rate)
    if not direction:
        return None
    height = c + d * sp.exp(rate * start)
    if tidy.simplify(height) != 0:
        return None
    alpha = integrand.form.smooth.get(integrand.x, sp.S.Zero)
    scale = direction * rate
    a = tidy.cancel(sp.expand(alpha / rate))
    # u = e^{k(x − start)} runs from 1 to 0 or to ∞.
    falls = (integrand.upper is sp.oo) == (direction < 0)
    if not falls:
        a = sp.expand(-a - power)
    whole = sp.beta(a, power + 1).rewrite(sp.gamma)
    at_start = sp.exp(sp.expand(alpha * start))
    size = sp.Abs(c) ** power
    return size * at_start * whole / scale


def line_power(integrand: Integrand) -> sp.Expr | None:
    """∫ e^{akx} (c + d e^{kx})^β with a = 1, 2, …: powers of c + du, between any ends."""
    lines = _exponential_lines(integrand)
    if lines is None or len(lines[1]) != 1 or integrand.is_line:
        return None
    rate, ((c, d, power),) = lines
    rise = integrand.form.smooth.get(integrand.x, sp.S.Zero)
    a = tidy.cancel(sp.expand(rise / rate))
    if not a.is_Integer:  # the other way round: c + du = u(d + c/u)
        (c, d) = (d, c)
        rise = rise + power * rate
        rate = -rate
        a = tidy.cancel(sp.expand(rise / rate))
    if not (a.is_Integer and 1 <= a <= _MOST_WRITTEN):
        return None
    total = sp.S.Zero
    for end, sign in ((integrand.upper, 1), (integrand.lower, -1)):
        if not end.is_infinite:
            base = c + d * sp.exp(sp.expand(rate * end))
        elif (end is sp.oo) == (sign_of(rate) == -1):
            base = c
        else:
            continue  # a power of ∞ vanishes wherever the integral converges
        if tidy.simplify(base) == 0:
            continue
        for j in range(int(a)):
            share = sp.binomial(a - 1, j) * (-c) ** (a - 1 - j)
            order = power + j + 1
            total += sign * share * base**order / order
    return total / (d**a * rate)


def _exponential_lines(integrand: Integrand) -> _ExponentialLines | None:
    """Read all logs as βᵢ·log(cᵢ + dᵢ e^{kx}) with one k."""
    x = integrand.x
    logs = integrand.form.moving_logs
    if set(integrand.form.smooth) - {x} or len(logs) not in (1, 2):
        return None
    rate: sp.Expr | None = None
    factors = []
    for base, power in logs.items():
        terms = exponential_terms(base, x)
        if terms is None:
            return None
        polynomial_of_exponential = exponential_polynomial(terms, x)
        if polynomial_of_exponential is None:
            return None
        generator, coefficients = polynomial_of_exponential
        if set(coefficients) != {0, 1}:
            return None
        line_rate = sp.expand(generator / x)
        if x in line_rate.free_symbols:
            return None
        if rate is None:
            rate = line_rate
        if sp.expand(line_rate - rate) != 0:
            return None
        factors.append((coefficients[0], coefficients[1], power))
    if rate is None:
        return None
    return rate, factors


def power_law(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) |x − r|^β …: powers of one or two linear factors that vanish at finite ends."""
    x = integrand.x
    logs = integrand.form.moving_logs
    if set(integrand.form.smooth) - {x} or not 1 <= len(logs) <= 2:
        return None
    if not _are_lines(logs, x):
        return None
    rate = integrand.form.smooth.get(x, sp.S.Zero)
    if len(logs) == 1 and rate == 0:
        return _power_of_a_line(integrand)
    if len(logs) == 1:
        return _gamma_from_zero(integrand, rate)
    if rate != 0 or not _is_finite(integrand):
        return None
    return _beta_between_zeros(integrand)


def _are_lines(bases: Iterable[sp.Expr], x: sp.Symbol) -> bool:
    """Whether these are polynomials of degree one."""
    return all(base.is_polynomial(x) and sp.degree(base, x) == 1 for base in bases)


def _power_of_a_line(integrand: Integrand) -> sp.Expr | None:
    """∫ |a + bx|^β between two ends, of which one may be infinite."""
    if integrand.is_line:
        return None
    ((base, power),) = integrand.form.moving_logs.items()
    order = power + 1
    ends = []
    for end in (integrand.upper, integrand.lower):
        height = sp.S.Zero
        if not end.is_infinite:
            height = sp.expand(base.subs(integrand.x, end))
        # A power of 0 or ∞ vanishes wherever the integral converges.
        ends.append(sp.S.Zero if height == 0 else height**order)
    at_upper, at_lower = ends
    slope = sp.diff(base, integrand.x)
    return (at_upper - at_lower) / (slope * order)


def _gamma_from_zero(integrand: Integrand, rate: sp.Expr) -> sp.Expr | None:
    """∫ e^{αx} |x − r|^β from r to ±∞."""
    ((base, power),) = integrand.form.moving_logs.items()
    lower = integrand.lower
    upper = integrand.upper
    for end, other, fall in ((lower, upper, -rate), (upper, lower, rate)):
        is_ray = other.is_infinite and not end.is_infinite
        if is_ray and tidy.vanishes(base.subs(integrand.x, end)):
            order = power + 1
            return sp.exp(rate * end) * sp.gamma(order) * fall ** (-power - 1)
    return None


def _beta_between_zeros(integrand: Integrand) -> sp.Expr | None:
    """∫ |x − r|^p |x − s|^q from r to s."""
    x = integrand.x
    lower = integrand.lower
    upper = integrand.upper
    (first, p), (second, q) = integrand.form.moving_logs.items()
    if sp.expand(first.subs(x, lower)) != 0:
        (first, p), (second, q) = (second, q), (first, p)
    at_lower = sp.expand(first.subs(x, lower))
    at_upper = sp.expand(second.subs(x, upper))
    if at_lower != 0 or at_upper != 0:
        return None
    first_slope = abs(sp.diff(first, x))
    second_slope = abs(sp.diff(second, x))
    slopes = first_slope**p * second_slope**q
    gammas = sp.gamma(p + 1) * sp.gamma(q + 1)
    whole = gammas / sp.gamma(p + q + 2)
    order = p + q + 1
    return slopes * whole * (upper - lower) ** order


def two_powers(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) |x − r|^p |x − s|^q from r to s or to ∞, or between finite ends where α = 0.

    With y = |x − r|, s at y = d and m = p + q + 1 the first two are
    e^{αr} B(p+1, q+1) d^m ₁F₁(p+1; m+1; ±αd) and e^{αr} Γ(p+1) |d|^m U(p+1, m+1, |αd|).  Without α
    it is the rise between the ends of y^{p+1} (d−y)^{q+1}/d ₂F₁(1, m+1; p+2; y/d)/(p+1) where
    y < d, and where d < 0, with w = y/(y + |d|), of w^{p+1} |d|^m ₂F₁(m+1, p+1; p+2; w)/(p+1).
    """
    x = integrand.x
    logs = integrand.form.moving_logs
    if set(integrand.form.smooth) - {x} or len(logs) != 2 or integrand.is_line:
        return None
    if not _are_lines(logs, x):
        return None
    scale = sp.S.One
    factors = []
    for base, power in logs.items():
        slope = sp.diff(base, x)
        scale *= sp.Abs(slope) ** power
        factors.append((tidy.cancel(x - base / slope), power))
    first, second = factors
    integrals = [_from_root(integrand, first, second), _from_root(integrand, second, first)]
    solved = [scale * value for value in integrals if value is not None]
    return min(solved, key=sp.count_ops, default=None)


def _from_root(
    integrand: Integrand, root_and_power: tuple[sp.Expr, sp.Expr], other: tuple[sp.Expr, sp.Expr]
) -> sp.Expr | None:
    """∫ exp(αx) |x − r|^p |x − s|^q by y = |x − r|, None where y = |x − s| may serve."""
    (root, p) = root_and_power
    (other_root, q) = other
    side = 1
    nearest = integrand.lower
    farthest = integrand.upper
    if compare(root, integrand.lower) == 1:
        side = -1
        nearest = integrand.upper
        farthest = integrand.lower

    def distance(point: sp.Expr) -> sp.Expr:
        if point.is_infinite:
            return sp.oo
        return tidy.factor(side * (point - root))

    low = distance(nearest)
    high = distance(farthest)
    d = distance(other_root)
    where = sign_of(d)
    m = tidy.factor(sp.expand(p + q + 1))
    rate = side * integrand.form.smooth.get(integrand.x, sp.S.Zero)
    if rate != 0:
        front = sp.exp(sp.expand(side * rate * root)) * sp.gamma(p + 1)
        if low != 0:
            return None
        if high is sp.oo and where == -1:
            tricomi = hyperu(p + 1, m + 1, tidy.factor(rate * d))
            return front * (-d) ** m * tricomi
        if tidy.vanishes(high - d):
            whole = sp.gamma(q + 1) / sp.gamma(m + 1)
            kummer = hypergeometric((p + 1,), (m + 1,), tidy.factor(rate * d))
            return front * whole * d**m * kummer
        return None
    is_beyond = where == -1 or compare(d, high) == 1
    if high is sp.oo or not is_beyond:
        return None
    total = sp.S.Zero
    for y, sign in ((high, 1), (low, -1)):
        if y == 0:
            continue
        if where == 1:
            series = hypergeometric((1, m + 1), (p + 2,), tidy.factor(y / d))
            powers = y ** (p + 1) * tidy.factor(d - y) ** (q + 1)
            total += sign * powers / d * series
        else:
            w = tidy.factor(tidy.cancel(y / (y - d)))
            series = hypergeometric((m + 1, p + 1), (p + 2,), w)
            total += sign * w ** (p + 1) * (-d) ** m * series
    return total / (p + 1)


def polynomial(integrand: Integrand) -> sp.Expr | None:
    """∫ of a product of whole powers of polynomials between finite ends."""
    x = integrand.x
    logs = integrand.form.moving_logs
    if integrand.form.smooth or not _is_finite(integrand):
        return None
    for base, power in logs.items():
        is_whole = power.is_Integer and 0 < power <= _MOST_POWERS
        if not is_whole or not base.is_polynomial(x):
            return None
    product = sp.Mul(*(base**power for base, power in logs.items()))
    primitive = sp.Poly(sp.expand(product), x).integrate().as_expr()
    rise = primitive.subs(x, integrand.upper) - primitive.subs(x, integrand.lower)
    return sp.expand(rise)


def inverse_sine(integrand: Integrand) -> sp.Expr | None:
    """∫ (c − (x − m)²)^{−1/2} between finite ends: asin((x − m)/√c)."""
    x = integrand.x
    logs = integrand.form.moving_logs
    if integrand.form.smooth or not _is_finite(integrand):
        return None
    if set(logs.values()) != {-sp.S.Half}:
        return None
    base = sp.expand(sp.Mul(*logs))
    if not _is_quadratic(base, x):
        return None
    a, b, c = sp.Poly(base, x).all_coeffs()
    discriminant = b**2 - 4 * a * c
    square = tidy.factor(tidy.cancel(discriminant / (4 * a**2)))
    if sign_of(a) != -1 or sign_of(square) != 1:
        return None
    radius = sp.sqrt(square)
    angles = []
    for end in (integrand.upper, integrand.lower):
        from_centre = end + b / (2 * a)
        sine = tidy.cancel(from_centre / radius)
        angles.append(sp.asin(sine))
    at_upper, at_lower = angles
    return (at_upper - at_lower) / sp.sqrt(-a)


def _is_quadratic(base: sp.Expr, x: sp.Symbol) -> bool:
    return bool(base.is_polynomial(x) and sp.degree(base, x) == 2)


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
    logs = integrand.form.moving_logs
    if integrand.form.smooth or not integrand.is_line or len(logs) not in (1, 2):
        return None
    squares = []
    for base, power in logs.items():
        square = _completed_square(base, power, integrand.x)
        if square is None:
            return None
        squares.append(square)
    first = squares[0]
    second = squares[-1]
    g = sp.sqrt(first.height)
    h = sp.sqrt(second.height)
    total = -first.power
    if len(squares) > 1:
        total = tidy.factor(sp.expand(-first.power - second.power))
    half_below = total - sp.S.Half
    gammas = sp.gamma(half_below) / sp.gamma(total)
    whole = sp.sqrt(sp.pi) * gammas * h ** (1 - 2 * total)
    if len(squares) == 1:
        return first.scale**first.power * whole
    scale = first.scale**first.power * second.scale**second.power
    apart = first.centre - second.centre
    if total == 1:
        distances = apart**2 + (g - h) ** 2
        argument = tidy.factor(tidy.cancel(distances / (-4 * g * h)))
        front = sp.pi * scale * g**first.power * h**second.power
        legendre = hypergeometric((1 + second.power, -second.power), (1,), argument)
        return front * legendre
    if tidy.vanishes(sp.expand(first.height - second.height)):
        argument = -tidy.factor(tidy.cancel(apart**2 / (4 * second.height)))
        above = (-first.power, -second.power, half_below)
        below = (total / 2, (total + 1) / 2)
        return scale * whole * hypergeometric(above, below, argument)
    if tidy.vanishes(sp.expand(apart)):
        argument = 1 - tidy.factor(tidy.cancel(first.height / second.height))
        series = hypergeometric((half_below, -first.power), (total,), argument)
        return scale * whole * series
    return None


class _CompletedSquare(NamedTuple):
    """(scale ((x − centre)² + height))^power."""

    scale: sp.Expr
    centre: sp.Expr
    height: sp.Expr
    power: sp.Expr


def _completed_square(base: sp.Expr, power: sp.Expr, x: sp.Symbol) -> _CompletedSquare | None:
    """Return a quadratic without real zero about its centre, None for anything else."""
    if not _is_quadratic(base, x):
        return None
    a, b, c = sp.Poly(base, x).all_coeffs()
    height = tidy.factor(tidy.cancel((4 * a * c - b**2) / (4 * a**2)))
    if sign_of(height) != 1 or sign_of(a) != 1:
        return None
    return _CompletedSquare(a, -b / (2 * a), height, power)


def hypergeometric(above: Sequence[sp.Expr], below: Sequence[sp.Expr], z: sp.Expr) -> sp.Expr:
    """Return a pFq without what stands above and below, as a sum where it ends.

    ₂F₁(−s, s+1; 1; z) is the Legendre function P_s(1 − 2z), ₁F₀(a; z) is (1 − z)^{−a}.
    """
    uppers = [tidy.factor(sp.expand(parameter)) for parameter in above]
    lowers = [tidy.factor(sp.expand(parameter)) for parameter in below]
    shared = [parameter for parameter in lowers if parameter in uppers]
    for parameter in shared:
        uppers.remove(parameter)
        lowers.remove(parameter)
    last = _last_term(uppers, lowers)
    if last is not None:
        terms = []
        for k in range(last + 1):
            rising = sp.Mul(*(sp.rf(parameter, k) for parameter in uppers))
            divisor = sp.Mul(*(sp.rf(parameter, k) for parameter in lowers))
            power = z**k / sp.factorial(k)
            terms.append(rising / divisor * power)
        return sp.Add(*terms)
    if len(uppers) == 1 and not lowers:
        return (1 - z) ** -uppers[0]
    if lowers == [1] and len(uppers) == 2 and tidy.vanishes(sp.expand(sum(uppers) - 1)):
        negative = min(uppers, key=lambda parameter: not parameter.could_extract_minus_sign())
        return sp.legendre(-negative, tidy.factor(1 - 2 * z))
    return sp.hyper(uppers, lowers, z)


def _last_term(uppers: Sequence[sp.Expr], lowers: Sequence[sp.Expr]) -> int | None:
    """Return the number of the last term of a pFq that ends soon, None of another one."""
    lasts = []
    for parameter in uppers:
        if parameter.is_Integer and -_MOST_TERMS <= parameter <= 0:
            lasts.append(int(-parameter))
    has_poles = any(parameter.is_Integer and parameter <= 0 for parameter in lowers)
    if has_poles:
        return None
    return min(lasts, default=None)


def circle(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(a·cos kx + b·sin kx) over m periods: m·period·I₀(√(a² + b²))."""
    form = integrand.form
    x = integrand.x
    width = integrand.upper - integrand.lower
    if form.moving_logs or not form.smooth or width.is_infinite:
        return None
    exponent = sp.Add(*(c * m for m, c in form.smooth.items()))
    total = sp.expand(sp.expand_trig(exponent))
    waves_of_x = [wave for wave in total.atoms(sp.cos, sp.sin) if x in wave.free_symbols]
    rates = {tidy.cancel(wave.args[0] / x) for wave in waves_of_x}
    if len(rates) != 1:
        return None
    (rate,) = rates
    periods = tidy.cancel(width * rate / (2 * sp.pi))
    if x in rate.free_symbols or not periods.is_Integer or periods == 0:
        return None
    cosine = sp.cos(rate * x)
    sine = sp.sin(rate * x)
    even, odd = (sp.expand(total.coeff(wave)) for wave in (cosine, sine))
    remaining = total - even * cosine - odd * sine
    if sp.expand(remaining) != 0:
        return None
    if x in even.free_symbols or x in odd.free_symbols:
        return None
    expanded = sp.expand(even**2 + odd**2)
    square = tidy.factor(tidy.bounded(sp.trigsimp, expanded))
    return width * sp.besseli(0, sp.sqrt(square))


def wave_power(integrand: Integrand) -> sp.Expr | None:
    """∫ |cos(kx + c)|^β between neighbouring zeros, sin alike: √π Γ((β+1)/2) / (k Γ(β/2 + 1))."""
    x = integrand.x
    logs = integrand.form.moving_logs
    if integrand.form.smooth or len(logs) != 1:
        return None
    ((wave, power),) = logs.items()
    if not isinstance(wave, sp.cos | sp.sin):
        return None
    rate = sp.diff(wave.args[0], x)
    if x in rate.free_symbols:
        return None
    turn = rate * (integrand.upper - integrand.lower)
    if tidy.simplify(turn) != sp.pi:
        return None
    for end in (integrand.lower, integrand.upper):
        if tidy.simplify(wave.subs(x, end)) != 0:
            return None
    half_order = sp.gamma((power + 1) / 2)
    return sp.sqrt(sp.pi) * half_order / (rate * sp.gamma(power / 2 + 1))


INTEGRAL_RULES: tuple[Rule, ...] = (
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
LAST_RULES: tuple[Rule, ...] = (two_powers,)  # of what no substitution makes elementary
