"""A small table of definite integrals and sums of exp(normal form), parameters and tilt included.

Each rule reads the normal form of an integrand, recognises one family and returns its value, or
None.  The rules state no conditions of convergence: where the CGF is finite is found apart, and a
closed form is believed only after it was compared with a numerical integral.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

from symdp.derive.normal_form import LogForm, exponential_terms
from symdp.derive.shapes import exponential_polynomial
from symdp.derive.signs import compare, sign_of

_MOST_TERMS = 64

Rule = Callable[["Integrand"], sp.Expr | None]


@dataclass(frozen=True)
class Integrand:
    """exp(form) on (lower, upper); a sum over integers, ends included, where `is_sum`."""

    form: LogForm
    lower: sp.Expr
    upper: sp.Expr
    is_sum: bool

    @property
    def x(self) -> sp.Symbol:
        """The variable of integration."""
        return self.form.variable

    @property
    def is_line(self) -> bool:
        """Whether the range is the whole line."""
        return bool(self.lower is -sp.oo and self.upper is sp.oo)

    def powers(self) -> dict[int, sp.Expr] | None:
        """Coefficients of x, x², … where the smooth part is a polynomial without logs."""
        if self.form.moving_logs:
            return None
        return self.smooth_powers()

    def smooth_powers(self) -> dict[int, sp.Expr] | None:
        """Coefficients of x, x², … where the smooth part is a polynomial."""
        powers: dict[int, sp.Expr] = {}
        for monomial, coefficient in self.form.smooth.items():
            base, power = monomial.as_base_exp()
            if base != self.x or not (power.is_Integer and power > 0):
                return None
            powers[int(power)] = coefficient
        return powers


def definite(integrand: Integrand) -> sp.Expr | None:
    """Return ∫ exp(form) without the form's constant factor, None where no rule applies.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> a = sp.Symbol("a", positive=True)
    >>> definite(Integrand(LogForm(x, smooth={x**2: -a}), -sp.oo, sp.oo, False))
    sqrt(pi)/sqrt(a)
    """
    for rule in _SUM_RULES if integrand.is_sum else _INTEGRAL_RULES:
        value = rule(integrand)
        if value is not None:
            return value
    return None


def _line(integrand: Integrand) -> sp.Expr | None:
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


def _gaussian(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(−ax² + bx), with error functions where an end is finite."""
    powers = integrand.powers()
    if powers is None or set(powers) - {1, 2} or 2 not in powers:
        return None
    a, b = -powers[2], powers.get(1, sp.S.Zero)
    if not integrand.is_line and sign_of(a) != 1:
        return None  # a changes its sign with the tilt: no real formula serves everywhere
    peak = sp.sqrt(sp.pi / a) * sp.exp(sp.factor(b**2 / (4 * a)))
    if integrand.is_line:
        return peak
    ends = []
    for end in (integrand.upper, integrand.lower):
        if end.is_infinite:
            ends.append(sp.S.One if end is sp.oo else sp.S.NegativeOne)
        else:
            ends.append(sp.erf(sp.sqrt(a) * end - b / (2 * sp.sqrt(a))))
    return peak * (ends[0] - ends[1]) / 2


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


def _gamma(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx − c·e^{kx}) over the line, by y = e^{kx}."""
    form, x = integrand.form, integrand.x
    if form.moving_logs or not integrand.is_line or set(form.smooth) - {x} == set():
        return None
    (monomial, *others) = [m for m in form.smooth if m != x]
    rate = _rate(monomial, x)
    if others or rate is None:
        return None
    direction = sign_of(rate)
    if not direction:
        return None
    c = -form.smooth[monomial]
    a = sp.cancel(form.smooth.get(x, sp.S.Zero) / rate)
    return sp.gamma(a) * c ** (-a) / (direction * rate)


def _beta(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) Π (cᵢ + dᵢ e^{kx})^{βᵢ} over the line, one or two factors, by y = e^{kx}."""
    lines = _exponential_lines(integrand)
    if lines is None or not integrand.is_line:
        return None
    rate, factors = lines
    direction = sign_of(rate)
    if not direction or any(sign_of(v) != 1 for c, d, _ in factors for v in (c, d)):
        return None
    a = sp.cancel(integrand.form.smooth.get(integrand.x, sp.S.Zero) / rate)
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
    whole = sp.gamma(a) * sp.gamma(total - a) / sp.gamma(total)
    return front * whole * sp.hyper((-second, a), (total,), 1 - ratio)


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


def _incomplete_beta(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx) (c + d e^{kx})^β between finite ends: the antiderivative is a ₂F₁."""
    lines = _exponential_lines(integrand)
    if lines is None or integrand.lower.is_infinite or integrand.upper.is_infinite:
        return None
    rate, factors = lines
    if len(factors) != 1:
        return None
    ((c, d, power),) = factors
    rise = integrand.form.smooth.get(integrand.x, sp.S.Zero)
    a = sp.cancel(rise / rate)
    if a.is_integer is not False:  # the other way round: c + du = u(d + c/u)
        c, d, rate, rise = d, c, -rate, rise + power * rate
        a = sp.cancel(sp.expand(rise) / rate)
    if a.is_integer is not False or sign_of(c) == 0:
        return None

    def antiderivative(end: sp.Expr) -> sp.Expr:
        u = sp.exp(sp.expand(rate * end))
        inside = sp.powsimp(-d * u / c)
        return c**power * u**a / (a * rate) * sp.hyper((-power, a), (a + 1,), inside)

    return antiderivative(integrand.upper) - antiderivative(integrand.lower)


def _power_law(integrand: Integrand) -> sp.Expr | None:
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
            if other.is_infinite and not end.is_infinite and base.subs(x, end).equals(0):
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


def _log_line(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(Σ cⱼ logʲ x) x^β over (0, ∞), by y = log x."""
    form, x = integrand.form, integrand.x
    y = sp.Dummy("y", real=True)
    if integrand.lower != 0 or integrand.upper is not sp.oo or set(form.moving_logs) - {x}:
        return None
    smooth: dict[sp.Expr, sp.Expr] = {y: form.moving_logs.get(x, sp.S.Zero) + 1}
    for monomial, coefficient in form.smooth.items():
        base, power = monomial.as_base_exp()
        if base != sp.log(x) or not (power.is_Integer and power > 1):
            return None
        smooth[y**power] = coefficient
    return _gaussian(Integrand(LogForm(y, smooth=smooth), -sp.oo, sp.oo, False))


def _short_sum(integrand: Integrand) -> sp.Expr | None:
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


def _geometric(integrand: Integrand) -> sp.Expr | None:
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


def _exponential_series(integrand: Integrand) -> sp.Expr | None:
    """Σ exp(αk)/k! over the naturals."""
    form, x = integrand.form, integrand.x
    whole = compare(integrand.lower, sp.S.Zero) == 0 and integrand.upper is sp.oo
    if not whole or set(form.smooth) - {x} or form.moving_logs != {sp.factorial(x): -1}:
        return None
    return sp.exp(sp.exp(form.smooth.get(x, sp.S.Zero)))


_INTEGRAL_RULES: tuple[Rule, ...] = (
    _line,
    _gaussian,
    _gamma,
    _beta,
    _incomplete_beta,
    _power_law,
    _log_line,
)
_SUM_RULES: tuple[Rule, ...] = (_short_sum, _geometric, _exponential_series)
