"""The normal form of a log density: constants, exponents and logs kept apart so that they cancel.

    log f(x) = shift + Σ aₖ mₖ(x) + Σ cⱼ log gⱼ

with monomials mₖ (powers of x, e^{kx}, …) and canonical positive bases gⱼ.  The difference of two
normal forms is taken term by term; what two densities share drops out, which is what makes a
Gaussian's loss a line and a Laplace's a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, pairwise

import sympy as sp
from sympy.functions.elementary.trigonometric import TrigonometricFunction

from symdp.density.gammas import COUNTING, reduced
from symdp.density.signs import sign_from_one_on, sign_of
from symdp.model import tidy

# Beyond this the completed square has lost more digits to cancellation than its shortness is worth.
_CONDITION = 256
_MOST_PARTS = 3  # of a polynomial, by what parameters multiply them


def occurrences(expression: sp.Basic, variable: sp.Symbol) -> int:
    """Return how often `variable` stands in `expression`."""
    if expression == variable:
        return 1
    return sum(occurrences(argument, variable) for argument in expression.args)


def tidy_polynomial(coefficients: dict[int, sp.Expr], x: sp.Symbol) -> sp.Expr:
    """Write Σ cₖ xᵏ with few x: factored line, completed square, or Horner about the centre."""
    simple = {}
    for k, coefficient in coefficients.items():
        shorter = _short_quotient(coefficient)
        if shorter != 0:
            simple[k] = shorter
    degree = max(simple, default=0)
    constant = simple.get(0, sp.S.Zero)
    if degree == 0:
        return constant
    if degree == 1:
        return _short_line(simple[1], constant, x)
    leading = simple[degree]
    if sign_of(leading) not in (1, -1):  # where it vanishes its quotients have poles
        return _by_parameters(coefficients, x) or _horner(simple, x)
    following = simple.get(degree - 1, sp.S.Zero)
    centre = _short_quotient(-following / (degree * leading))
    plain = _scaled_horner(simple, x)
    if centre == 0 or not _well_conditioned(simple, centre):
        return plain
    shifted = _scaled_horner(_shift(simple, centre), x - centre)
    if occurrences(shifted, x) < occurrences(plain, x):
        return shifted
    return plain


def _by_parameters(coefficients: dict[int, sp.Expr], x: sp.Symbol) -> sp.Expr | None:
    """Write a polynomial as a sum of few, each of rational coefficients times what parameters add.

    Thus x²/(2b²) − (x − 1)²/(2a²) has no pole at a = b. None where they are more than three.
    """
    parts: dict[sp.Expr, dict[int, sp.Expr]] = {}
    for power, coefficient in coefficients.items():
        for term in sp.Add.make_args(sp.expand(coefficient)):
            rational, symbols = term.as_coeff_Mul(rational=True)
            part = parts.setdefault(symbols, {})
            part[power] = part.get(power, sp.S.Zero) + rational
    if len(parts) > _MOST_PARTS:
        return None
    total = sp.S.Zero
    for symbols, part in parts.items():
        total += symbols * tidy_polynomial(part, x)
    return total


def _short_quotient(expression: sp.Expr) -> sp.Expr:
    """Cancel a parameter expression to its shortest quotient."""
    if expression.is_Rational or expression.is_Symbol:
        return expression
    if expression.has(sp.log):
        return sp.logcombine(expression, force=True)
    if not expression.free_symbols:
        return expression
    return sp.factor_terms(tidy.factor(expression))


def _short_line(slope: sp.Expr, constant: sp.Expr, x: sp.Symbol) -> sp.Expr:
    if constant == 0:
        return slope * x
    if slope.is_Rational and constant.is_Rational:
        return slope * x + constant
    if constant.has(sp.exp, sp.log) or slope.has(sp.exp, sp.log):
        return slope * x + constant
    factored = tidy.factor(slope * x + constant)
    if occurrences(factored, x) == 1:
        return factored
    return slope * x + constant


def _scaled_horner(coefficients: dict[int, sp.Expr], y: sp.Expr) -> sp.Expr:
    """Horner's rule; where parameters are in several coefficients the leading one is taken out."""
    degree = max(coefficients)
    leading = coefficients[degree]
    is_long = len(coefficients) > 1 and degree > 2
    if not is_long or not leading.free_symbols:
        return _horner(coefficients, y)
    monic = {}
    for k, coefficient in coefficients.items():
        monic[k] = _short_quotient(coefficient / leading)
    return leading * _horner(monic, y)


def _horner(coefficients: dict[int, sp.Expr], y: sp.Expr) -> sp.Expr:
    """Horner's rule in y that steps over vanishing coefficients."""
    powers = sorted(coefficients, reverse=True)
    total = sp.S.Zero
    for power, following in pairwise([*powers, 0]):
        step = power - following
        total = (total + coefficients[power]) * y**step
    return total


def _shift(coefficients: dict[int, sp.Expr], centre: sp.Expr) -> dict[int, sp.Expr]:
    """Coefficients of the same polynomial in powers of x − centre."""
    degree = max(coefficients)
    shifted = {}
    for j in range(degree + 1):
        terms = []
        for k, coefficient in coefficients.items():
            terms.append(coefficient * sp.binomial(k, j) * centre ** (k - j))
        value = _short_quotient(sp.expand(sp.Add(*terms)))
        if value != 0:
            shifted[j] = value
    return shifted


def _well_conditioned(coefficients: dict[int, sp.Expr], centre: sp.Expr) -> bool:
    """Whether moving the origin to `centre` loses at most a few digits (always for symbols)."""
    has_symbols = any(c.free_symbols for c in coefficients.values())
    if centre.free_symbols or has_symbols:
        return True
    degree = max(coefficients)
    leading_term = coefficients[degree] * centre**degree
    size = abs(leading_term).evalf(15)
    largest = max(abs(c).evalf(15) for c in coefficients.values())
    return bool(size <= _CONDITION * (1 + largest))


def log_of_product(factors: Iterable[tuple[sp.Expr, sp.Expr]]) -> sp.Expr:
    """Return Σ cᵢ log gᵢ for constants gᵢ, one log for each size of coefficient."""
    groups: dict[sp.Expr, sp.Expr] = {}
    for base, coefficient in factors:
        if coefficient == 0:
            continue
        if -coefficient in groups and coefficient not in groups:
            groups[-coefficient] /= base
        else:
            groups[coefficient] = groups.get(coefficient, sp.S.One) * base
    return sp.Add(*(coefficient * sp.log(base) for coefficient, base in groups.items()))


def exponential_polynomial(
    terms: Iterable[tuple[sp.Expr, sp.Expr]], x: sp.Symbol
) -> tuple[sp.Expr, dict[int, sp.Expr]] | None:
    """Read Σ cᵢ exp(aᵢ) as a polynomial in one u = exp(g(x))."""
    moving_parts = []
    scales = []
    for coefficient, exponent in terms:
        expanded_exponent = sp.expand(exponent)
        constant, moving = expanded_exponent.as_independent(x, as_Add=True)
        moving_parts.append(moving)
        scales.append(coefficient * sp.exp(constant))
    reference = next((moving for moving in moving_parts if moving != 0), None)
    if reference is None:
        return None
    ratios = []
    for moving in moving_parts:
        ratio = _ratio(moving, reference, x)
        if not ratio.is_Rational:
            return None
        ratios.append(ratio)
    denominator = sp.ilcm(*(ratio.q for ratio in ratios), 1)
    wholes = [int(ratio * denominator) for ratio in ratios]
    divisor = int(sp.igcd(*wholes, 0)) or 1
    powers = [whole // divisor for whole in wholes]
    generator = sp.expand(reference * divisor / denominator)
    if min(powers) < 0:
        return None
    polynomial: dict[int, sp.Expr] = {}
    for power, scale in zip(powers, scales, strict=True):
        polynomial[power] = polynomial.get(power, sp.S.Zero) + scale
    return generator, polynomial


def _ratio(moving: sp.Expr, reference: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return moving/reference where it is free of x, else nan."""
    if moving == 0:
        return sp.S.Zero
    first = sp.Add.make_args(moving)[0]
    second = sp.Add.make_args(reference)
    for candidate in second:
        quotient = tidy.cancel(first / candidate)
        if x not in quotient.free_symbols:
            if sp.expand(moving - quotient * reference) == 0:
                return quotient
            return sp.nan
    return sp.nan


def moebius(
    top: tuple[sp.Expr, sp.Expr], bottom: tuple[sp.Expr, sp.Expr], u: sp.Expr
) -> tuple[sp.Expr, int] | None:
    """Write (a + b·u)/(c + d·u), all constants positive, with one u and only positive terms.

    Both limits a/c and b/d are positive; the quotient is the smaller one plus a fraction of their
    gap, so nothing cancels.
    """
    (a, b) = top
    (c, d) = bottom
    if any(sign_of(value) != 1 for value in (a, b, c, d)):
        return None
    start = sp.powsimp(a / c)
    end = sp.powsimp(b / d)
    order = sign_of(end - start)
    if order is None:
        return None
    smaller = end
    if order >= 0:
        smaller = start
    sign = 1
    if smaller == 1 and start != end:
        sign = -1
        (a, b), (c, d) = (c, d), (a, b)
        start = sp.powsimp(1 / start)
        end = sp.powsimp(1 / end)
        order = -order
    if order >= 0:
        falling = sp.powsimp(c / d / u, combine="exp")
        value = start + (end - start) / (1 + falling)
    else:
        rising = sp.powsimp(d / c * u, combine="exp")
        value = end + (start - end) / (1 + rising)
    return value, sign


Coefficients = Mapping[sp.Expr, sp.Expr]


@dataclass(frozen=True)
class LogForm:
    """log |f| as shift + Σ smooth[m]·m + Σ logs[g]·log(g); bases may be free of the variable."""

    variable: sp.Symbol
    shift: sp.Expr = sp.S.Zero
    smooth: Coefficients = field(default_factory=dict)
    logs: Coefficients = field(default_factory=dict)

    def plus(self, other: LogForm, factor: sp.Expr = sp.S.One) -> LogForm:
        """Return self + factor·other; with `factor` free of the variable."""
        if factor == 0:
            return self
        return LogForm(
            self.variable,
            sp.expand(self.shift + factor * other.shift),
            combined(self.smooth, other.smooth, factor),
            combined(self.logs, other.logs, factor),
        )

    def times(self, factor: sp.Expr) -> LogForm:
        """Return factor·self."""
        return LogForm(self.variable).plus(self, factor)

    def minus(self, other: LogForm) -> LogForm:
        """Return self − other."""
        return self.plus(other, sp.S.NegativeOne)

    @property
    def moving_logs(self) -> dict[sp.Expr, sp.Expr]:
        """The logs whose base depends on the variable."""
        return {g: c for g, c in self.logs.items() if self.variable in g.free_symbols}

    @property
    def constant(self) -> sp.Expr:
        """The part free of the variable."""
        x = self.variable
        fixed = [(g, c) for g, c in self.logs.items() if x not in g.free_symbols]
        return self.shift + log_of_product(fixed)

    @property
    def is_constant(self) -> bool:
        """Whether the variable is absent."""
        return not self.smooth and not self.moving_logs

    def moving_key(self) -> frozenset[tuple[sp.Expr, sp.Expr]]:
        """Identify the part that depends on the variable."""
        return frozenset((*self.smooth.items(), *self.moving_logs.items()))

    def to_expression(self) -> sp.Expr:
        """Return the form as an expression with few occurrences of the variable."""
        x = self.variable
        powers: dict[int, sp.Expr] = {}
        other_terms = []
        for monomial, coefficient in self.smooth.items():
            base, power = monomial.as_base_exp()
            if base == x and power.is_Integer and power > 0:
                powers[int(power)] = coefficient
            else:
                other_terms.append(sp.factor_terms(coefficient) * monomial)
        powers[0] = self.shift
        polynomial = tidy_polynomial(powers, x)
        fixed_logs = self.constant - self.shift
        logs = _logs_expression(self.moving_logs, x)
        return sp.Add(polynomial, fixed_logs, *other_terms, logs)


def combined(first: Coefficients, second: Coefficients, factor: sp.Expr) -> Coefficients:
    """Return first + factor·second, vanishing entries dropped."""
    total = dict(first)
    for key, coefficient in second.items():
        value = sp.expand(total.get(key, sp.S.Zero) + factor * coefficient)
        is_rational = not value.has(sp.exp, sp.log)
        if is_rational and value.free_symbols and not value.is_Symbol:
            value = tidy.cancel(value)
        if value == 0:
            total.pop(key, None)
        else:
            total[key] = value
    return total


def _logs_expression(logs: dict[sp.Expr, sp.Expr], x: sp.Symbol) -> sp.Expr:
    """Write Σ cⱼ log gⱼ(x), quotients of like bases under one log."""
    remaining = _with_shorter_gammas(logs, x)
    total = []
    for base, coefficient in list(remaining.items()):
        if base not in remaining:
            continue
        del remaining[base]
        factor = sp.factor_terms(coefficient)
        opposite = [g for g, c in remaining.items() if c == -coefficient]
        for other in opposite:
            quotient = _quotient(base, other, x)
            if quotient is not None:
                del remaining[other]
                value, direction = quotient
                total.append(direction * factor * sp.log(value))
                break
        else:
            total.append(factor * sp.log(tidy_base(base, x)))
    return sp.Add(*total)


def _with_shorter_gammas(logs: Coefficients, x: sp.Symbol) -> dict[sp.Expr, sp.Expr]:
    """Return Σ cⱼ log gⱼ with the factors of quotients of gamma functions that are rational."""
    shorter = dict(logs)
    counted = [base for base in logs if isinstance(base, COUNTING)]
    for top, bottom in combinations(counted, 2):
        if top not in shorter or bottom not in shorter:
            continue
        if shorter[top] != -shorter[bottom]:
            continue
        ratio = reduced(top / bottom, x)
        if not ratio.is_rational_function(x):
            continue
        times = -shorter.pop(bottom)
        del shorter[top]
        above, below = sp.fraction(ratio)
        ratio_logs = {g: c for g, c in ((above, times), (below, -times)) if g != 1}
        shorter = dict(combined(shorter, ratio_logs, sp.S.One))
    return shorter


def _quotient(top: sp.Expr, bottom: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, int] | None:
    """Return top/bottom (or its inverse and −1) in a short form where both are of one kind."""
    if top.is_polynomial(x) and bottom.is_polynomial(x):
        return tidy_base(top, x) / tidy_base(bottom, x), 1
    top_terms = exponential_terms(top, x)
    bottom_terms = exponential_terms(bottom, x)
    if top_terms is None or bottom_terms is None:
        return None
    shared = exponential_polynomial([*top_terms, *bottom_terms], x)
    if shared is None or len(top_terms) != 2 or len(bottom_terms) != 2:
        return None
    generator, _ = shared
    lines = []
    for terms in (top_terms, bottom_terms):
        polynomial = exponential_polynomial(terms, x)
        if polynomial is None:
            return None
        own_generator, coefficients = polynomial
        if set(coefficients) != {0, 1}:
            return None
        constant = coefficients[0]
        slope = coefficients[1]
        if sp.expand(own_generator + generator) == 0:
            lines.append((slope, constant))
        elif sp.expand(own_generator - generator) == 0:
            lines.append((constant, slope))
        else:
            return None
    first, second = lines
    return moebius(first, second, sp.exp(generator))


def tidy_base(base: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Write a base with few x: polynomials, also in exponents, by completed square or Horner."""
    if not isinstance(base, sp.Add):
        return base
    if base.is_polynomial(x):
        return _tidy(base, x)
    terms = exponential_terms(base, x)
    if terms is None or not all(exponent.is_polynomial(x) for _, exponent in terms):
        return base
    total = sp.S.Zero
    for coefficient, exponent in terms:
        total += coefficient * sp.exp(_tidy(exponent, x))
    return total


def _tidy(polynomial: sp.Expr, x: sp.Symbol) -> sp.Expr:
    if x not in polynomial.free_symbols:
        return polynomial
    terms = sp.Poly(polynomial, x).terms()
    return tidy_polynomial({int(monomial[0]): c for monomial, c in terms}, x)


def exponential_terms(base: sp.Expr, x: sp.Symbol) -> list[tuple[sp.Expr, sp.Expr]] | None:
    """Split Σ cᵢ exp(aᵢ) into its (cᵢ, aᵢ), or None where a term is something else."""
    terms = []
    for term in sp.Add.make_args(base):
        coefficient = sp.S.One
        exponent = sp.S.Zero
        for factor in sp.Mul.make_args(term):
            power = as_exponent(factor, x)
            if power is not None:
                exponent += power
            elif x in factor.free_symbols:
                return None
            else:
                coefficient *= factor
        terms.append((coefficient, expanded(exponent, x)))
    return terms


def expanded(exponent: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Expand, but leave (1 + x²)^{1/2} and |x − 1|^{3/2} whole."""
    radicals = {
        node: sp.Dummy()
        for node in exponent.atoms(sp.Pow)
        if x in node.base.free_symbols and not node.exp.is_Integer
    }
    plain = sp.expand(exponent.xreplace(radicals), log=False, power_base=False)
    return plain.xreplace({symbol: node for node, symbol in radicals.items()})


def as_exponent(factor: sp.Expr, x: sp.Symbol) -> sp.Expr | None:
    """Return a with factor = exp(a) where the factor is an exponential, else None."""
    if isinstance(factor, sp.exp):
        return factor.args[0]
    base, power = factor.as_base_exp()
    if x in power.free_symbols and x not in base.free_symbols:
        return power * sp.log(base)
    return None


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


def linear_root(equation: sp.Expr, x: sp.Symbol) -> sp.Expr | None:
    """Solve an equation that is linear in x, or in one exponential of x; None for another."""
    expanded_equation = sp.expand(equation)
    if expanded_equation.is_polynomial(x):
        if sp.degree(expanded_equation, x) != 1:
            return None
        constant = expanded_equation.coeff(x, 0)
        slope = expanded_equation.coeff(x, 1)
        return tidy.factor(-constant / slope)
    terms = exponential_terms(expanded_equation, x)
    if terms is None:
        return None
    collected: dict[sp.Expr, sp.Expr] = {}
    for coefficient, exponent in terms:
        rate = sp.expand(exponent).coeff(x, 1)
        intercept = tidy.simplify(exponent - rate * x)
        if x in intercept.free_symbols:
            return None
        scale = coefficient * sp.exp(intercept)
        collected[rate] = collected.get(rate, sp.S.Zero) + scale
    if len(collected) != 2:
        return None
    (a, b), (c, e) = collected.items()
    log_ratio = sp.log(tidy.simplify(-e / b))
    return tidy.simplify(log_ratio / (a - c))


def log_form(expression: sp.Expr, x: sp.Symbol, at: sp.Expr) -> LogForm:
    """Return the normal form of log |expression| around the point `at`."""
    return _form_anywhere(expression, x) or _form_at(expression, x, at)


@lru_cache(maxsize=4096)
def _form_anywhere(expression: sp.Expr, x: sp.Symbol) -> LogForm | None:
    """The normal form where no sign has to be looked up at a point, else None."""
    try:
        return _form_at(expression, x, None)
    except _PointNeeded:
        return None


def _form_at(expression: sp.Expr, x: sp.Symbol, at: sp.Expr | None) -> LogForm:
    builder = _Builder(x, at)
    builder.add(_without_turns(tidy.without_hyperbolics(expression, x), x), sp.S.One)
    return builder.form()


class _PointNeeded(Exception):  # noqa: N818  (a signal between two functions of this file)
    """A base changes its sign somewhere."""


def _without_turns(expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Write cos(2π(x − 1)) as cos(2πx), so that what two shifted waves share cancels.

    Whole periods go, of parameters that are whole numbers too; SymPy takes out quarter periods.
    """
    waves = sp.functions.elementary.trigonometric.TrigonometricFunction

    def is_wave(node: sp.Basic) -> bool:
        return isinstance(node, waves) and x in node.free_symbols

    def reduced_wave(wave: sp.Expr) -> sp.Expr:
        angle = expanded(wave.args[0], x)
        terms = sp.Add.make_args(angle)
        fixed_terms = [term for term in terms if not term.has(x)]
        quarters = [tidy.cancel(2 * term / sp.pi) for term in fixed_terms]
        if not any(count.is_integer for count in quarters):
            return wave
        period = 2 * sp.pi
        if isinstance(wave, sp.tan | sp.cot):
            period = sp.pi
        remaining_terms = []
        for term in terms:
            is_turn = term in fixed_terms and tidy.cancel(term / period).is_integer
            if not is_turn:
                remaining_terms.append(term)
        return wave.func(sp.Add(*remaining_terms))

    return expression.replace(is_wave, reduced_wave)


class _Builder:
    """Collects the parts of one normal form."""

    def __init__(self, x: sp.Symbol, at: sp.Expr | None) -> None:
        self.x = x
        self.at = at
        self.shift: sp.Expr = sp.S.Zero
        self.smooth: dict[sp.Expr, sp.Expr] = {}
        self.logs: dict[sp.Expr, sp.Expr] = {}

    def form(self) -> LogForm:
        empty: Coefficients = {}
        return LogForm(
            self.x,
            sp.expand(self.shift),
            combined(empty, self.smooth, sp.S.One),
            combined(empty, self.logs, sp.S.One),
        )

    def add(self, factor: sp.Expr, power: sp.Expr) -> None:
        """Add power·log|factor|."""
        if isinstance(factor, sp.Mul):
            for part in factor.args:
                self.add(part, power)
        elif isinstance(factor, sp.exp):
            self.add_exponent(factor.args[0], power)
        elif isinstance(factor, sp.Pow):
            base, exponent = factor.as_base_exp()
            if self.x not in exponent.free_symbols:
                self.add(base, power * exponent)
            elif self.x not in base.free_symbols:
                self.add_exponent(exponent * sp.log(base), power)
            else:
                self.add_exponent(exponent * sp.log(self.positive(base)), power)
        elif self.x not in factor.free_symbols:
            self.add_constant(factor, power)
        elif isinstance(factor, sp.Add):
            self.add_sum(factor, power)
        else:
            self.add_base(self.positive(factor), power)

    def add_base(self, base: sp.Expr, power: sp.Expr) -> None:
        self.logs[base] = self.logs.get(base, sp.S.Zero) + power

    def add_constant(self, constant: sp.Expr, power: sp.Expr) -> None:
        if constant.is_Rational:
            numerator = sp.Integer(abs(constant.p))
            denominator = sp.Integer(constant.q)
            if numerator != 1:
                self.add_base(numerator, power)
            if denominator != 1:
                self.add_base(denominator, -1 * power)
            return
        if isinstance(constant, sp.Add):
            constant = sp.factor_terms(constant)
            if not isinstance(constant, sp.Add):
                self.add(constant, power)
                return
        if sign_of(constant) == -1:
            self.add_base(-constant, power)
        else:
            self.add_base(constant, power)

    def add_exponent(self, exponent: sp.Expr, power: sp.Expr) -> None:
        """Add power·exponent, term by term; a quotient of polynomials in partial fractions."""
        x = self.x
        if exponent.is_rational_function(x) and not exponent.is_polynomial(x):
            exponent = tidy.apart(exponent, x)
        for term in sp.Add.make_args(expanded(exponent, x)):
            scaled = _scaled_apart(term, x)
            constant, moving = scaled.as_independent(x, as_Add=False)
            coefficient = power * constant
            if moving == 1:
                self.add_shift(constant, power)
            elif isinstance(moving, sp.log):
                self.add(moving.args[0], coefficient)
            else:
                self.smooth[moving] = self.smooth.get(moving, sp.S.Zero) + coefficient

    def add_shift(self, constant: sp.Expr, power: sp.Expr) -> None:
        """Add power·constant, a constant c·log(b) among the logs."""
        factors = sp.Mul.make_args(constant)
        logs = [factor for factor in factors if isinstance(factor, sp.log)]
        if len(logs) == 1:
            (logarithm,) = logs
            base = logarithm.args[0]
            if sign_of(base) == 1:
                self.add(base, power * constant / logarithm)
                return
        self.shift += power * constant

    def add_sum(self, total: sp.Add, power: sp.Expr) -> None:
        """Add power·log|total| for a sum that depends on x."""
        if total.is_polynomial(self.x):
            self.add_polynomial(total, power)
            return
        halved = _by_half_angle(total, self.x)
        if halved is not None:
            self.add(halved, power)
            return
        terms = exponential_terms(total, self.x)
        if terms is not None:
            self.add_exponentials(terms, power)
            return
        if _have_unlike_tails(total, self.x):
            self.add_base(self.positive(total), power)
            return
        numerator, denominator = sp.fraction(tidy.together(total))
        short = sp.expand(numerator)
        if denominator != 1 and exponential_terms(short, self.x) is not None:
            self.add(short, power)  # 1 − tanh², say, as exponentials over one denominator
            self.add(denominator, -power)
            return
        together = sp.factor_terms(tidy.together(total))
        if isinstance(together, sp.Mul | sp.Pow):
            self.add(together, power)
        else:
            self.add_base(self.positive(total), power)

    def add_polynomial(self, total: sp.Expr, power: sp.Expr) -> None:
        polynomial = sp.Poly(total, self.x)
        content = sp.S.One
        factors = [(polynomial, 1)]
        if polynomial.domain.is_QQ or polynomial.domain.is_ZZ:
            content, factors = polynomial.factor_list()
        self.add(sp.sympify(content, strict=True), power)
        for factor, multiplicity in factors:
            times = power * multiplicity
            leading = factor.LC()
            self.add(leading, times)
            if leading == 1:
                monic = factor.as_expr()
            else:
                terms = []
                for monomial, coefficient in factor.terms():
                    quotient = tidy.cancel(coefficient / leading)
                    terms.append(quotient * self.x ** monomial[0])
                monic = sp.Add(*terms)
            self.add_base(self.positive(monic), times)

    def add_exponentials(self, terms: list[tuple[sp.Expr, sp.Expr]], power: sp.Expr) -> None:
        """Pull the term that dominates at +∞ out of Σ cᵢ exp(aᵢ)."""
        x = self.x
        merged: dict[sp.Expr, sp.Expr] = {}
        for coefficient, exponent in terms:
            constant, moving = exponent.as_independent(x, as_Add=True)
            weight = coefficient * sp.exp(constant)
            merged[moving] = merged.get(moving, sp.S.Zero) + weight
        merged = {moving: weight for moving, weight in merged.items() if weight != 0}
        leader = _dominating(list(merged), x)
        mirrored = [moving.subs(x, -x) for moving in merged]
        other = _dominating(mirrored, x).subs(x, -x)
        gap = sp.expand(other - leader)
        if not gap.is_polynomial(x) or sp.degree(gap, x) > 1:
            # What is pulled out of two towers e^{−e^x} and e^{−e^{−x}} would cancel at one end, and
            # so would x³ of e^{x³} + e^x.
            total = sp.Add(*(weight * sp.exp(moving) for moving, weight in merged.items()))
            self.add_base(self.positive(total), power)
            return
        scale = merged.pop(leader)
        self.add_exponent(leader, power)
        self.add(scale, power)
        if not merged:
            return
        base = sp.S.One
        for moving, weight in merged.items():
            ratio = sp.powsimp(sp.expand(weight / scale))
            below_leader = expanded(moving - leader, x)
            base += ratio * sp.exp(below_leader)
        self.add_base(self.positive(base), power)

    def positive(self, base: sp.Expr) -> sp.Expr:
        """Return ±base, whichever is positive at the test point (base itself where unclear)."""
        if base.is_positive:
            return base
        if self.at is None:
            raise _PointNeeded
        at = self.at
        if base.has(sp.gamma, sp.polygamma):
            # SymPy multiplies out the factorial of an integer however large it is.
            at = at.evalf(30)
        value = base.subs(self.x, at)
        sign = sign_of(value) or sign_from_one_on(value)
        if sign == -1:
            return sp.expand(-base)
        return base


def _have_unlike_tails(total: sp.Add, x: sp.Symbol) -> bool:
    """Whether terms fall by different exponentials and some hold more than these.

    Over one denominator e^{−x²} + 1/(1 + x²) is e^{−x²}·(1 + x² + e^{x²})/(1 + x²), of whose
    logarithm nothing is left in doubles far out.
    """
    exponents = set()
    whole = set()
    has_more = False
    is_mixed = False
    for term in total.args:
        exponent = sp.S.Zero
        others = sp.S.One
        for factor in sp.Mul.make_args(term):
            if isinstance(factor, sp.exp):
                exponent += factor.args[0]
            elif factor.has(x):
                has_more = True
                is_mixed |= not factor.has(sp.exp)
                if factor.has(sp.exp):  # such as 1/cosh x
                    others *= factor
        _, moving_exponent = exponent.as_independent(x, as_Add=True)
        exponents.add(sp.expand(moving_exponent))
        whole.add((exponent, others))
    several_exponents = len(exponents) > 1
    several_terms = len(whole) > 1
    return (has_more and several_exponents) or (is_mixed and several_terms)


def _by_half_angle(total: sp.Add, x: sp.Symbol) -> sp.Expr | None:
    """Write c(1 ± cos u) as 2c cos²(u/2) or 2c sin²(u/2), which do not cancel at their zeros."""
    constant, moving = total.as_independent(x, as_Add=True)
    scale, wave = moving.as_independent(x, as_Add=False)
    if not isinstance(wave, sp.cos | sp.sin):
        return None
    if sp.expand(scale**2 - constant**2) != 0:
        return None
    angle = wave.args[0] / 2
    if isinstance(wave, sp.sin):
        angle -= sp.pi / 4
    half_angle = sp.expand(angle)
    if sp.expand(scale - constant) == 0:
        return 2 * constant * sp.cos(half_angle) ** 2
    return 2 * constant * sp.sin(half_angle) ** 2


def _scaled_apart(term: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Write (x/a)^p as a^{−p} x^p, so that equal powers of x meet."""
    factors = []
    for factor in sp.Mul.make_args(term):
        base, power = factor.as_base_exp()
        is_power = isinstance(base, sp.Mul) and not isinstance(factor, sp.exp)
        if is_power and x in base.free_symbols:
            scale, moving = base.as_independent(x, as_Add=False)
            size = scale
            if sign_of(scale) == -1:
                size = -scale
            if sign_of(size) == 1 and not power.is_Integer:
                unscaled = scale / size * moving
                factors += [size**power, unscaled**power]
                continue
        factors.append(factor)
    return sp.Mul(*factors)


def waves_are_plain(expression: sp.Expr, x: sp.Symbol) -> bool:
    """Whether sin, tan and the like are of polynomials alone."""
    return all(wave.args[0].is_polynomial(x) for wave in expression.atoms(TrigonometricFunction))


_FAR_POINTS = (10**6, 10**9, 10**12)  # at which the larger of two exponents is seen
_LESS_FAR_POINTS = (10, 30, 100)


def _dominating(exponents: list[sp.Expr], x: sp.Symbol) -> sp.Expr:
    """Return the exponent that is largest as x → ∞, as far as that is certain, or seen far out.

    Any choice is right; with a smaller one, little is left of the sum's logarithm in doubles.
    """
    leader = exponents[0]
    for exponent in exponents[1:]:
        gap = sp.expand(exponent - leader)
        if gap.is_polynomial(x):
            is_larger = sign_of(sp.Poly(gap, x).LC()) == 1
        else:
            far_points = _FAR_POINTS
            if not waves_are_plain(gap, x):  # tan e^{−x}, of which mpmath takes e^x digits of π
                far_points = _LESS_FAR_POINTS
            far_gaps = [gap.subs(x, point).evalf(15) for point in far_points]
            is_larger = all(far_gap.is_comparable and far_gap > 0 for far_gap in far_gaps)
        if is_larger:
            leader = exponent
    return leader
