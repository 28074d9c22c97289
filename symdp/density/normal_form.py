"""The normal form of a log density: constants, exponents and logs kept apart so that they cancel.

    log f(x) = shift + Σ aₖ mₖ(x) + Σ cⱼ log gⱼ

with monomials mₖ (powers of x, e^{kx}, …) and canonical positive bases gⱼ.  The difference of two
normal forms is taken term by term; what two densities share drops out, which is what makes a
Gaussian's loss a line and a Laplace's a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp

from symdp.density.gammas import COUNTING, reduced
from symdp.density.shapes import exponential_polynomial, log_of_product, moebius, tidy_polynomial
from symdp.model import tidy

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
        fixed = ((g, c) for g, c in self.logs.items() if self.variable not in g.free_symbols)
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
        rest = []
        for monomial, coefficient in self.smooth.items():
            base, power = monomial.as_base_exp()
            if base == x and power.is_Integer and power > 0:
                powers[int(power)] = coefficient
            else:
                rest.append(sp.factor_terms(coefficient) * monomial)
        powers[0] = self.shift
        logs = _logs_expression(self.moving_logs, x)
        return sp.Add(tidy_polynomial(powers, x), self.constant - self.shift, *rest, logs)


def combined(first: Coefficients, second: Coefficients, factor: sp.Expr) -> Coefficients:
    """Return first + factor·second, vanishing entries dropped."""
    total = dict(first)
    for key, coefficient in second.items():
        value = sp.expand(total.get(key, sp.S.Zero) + factor * coefficient)
        if value != 0 and value.free_symbols and not value.is_Symbol:
            value = tidy.cancel(value) if not value.has(sp.exp, sp.log) else value
        if value == 0:
            total.pop(key, None)
        else:
            total[key] = value
    return total


def _logs_expression(logs: dict[sp.Expr, sp.Expr], x: sp.Symbol) -> sp.Expr:
    """Write Σ cⱼ log gⱼ(x), quotients of like bases under one log."""
    remaining = dict(logs)
    total = []
    for base, coefficient in logs.items():
        if base not in remaining:
            continue
        del remaining[base]
        for other in [g for g, c in remaining.items() if c == -coefficient]:
            quotient = _quotient(base, other, x)
            if quotient is not None:
                del remaining[other]
                value, direction = quotient
                total.append(direction * sp.factor_terms(coefficient) * sp.log(value))
                break
        else:
            total.append(sp.factor_terms(coefficient) * sp.log(tidy_base(base, x)))
    return sp.Add(*total)


def _quotient(top: sp.Expr, bottom: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, int] | None:
    """Return top/bottom (or its inverse and −1) in a short form where both are of one kind."""
    if isinstance(top, COUNTING) and isinstance(bottom, COUNTING):
        ratio = reduced(top / bottom, x)
        return (ratio, 1) if ratio.is_rational_function(x) else None
    if top.is_polynomial(x) and bottom.is_polynomial(x):
        return tidy_base(top, x) / tidy_base(bottom, x), 1
    pair = [exponential_terms(base, x) for base in (top, bottom)]
    if pair[0] is None or pair[1] is None:
        return None
    shared = exponential_polynomial([*pair[0], *pair[1]], x)
    if shared is None or len(pair[0]) != 2 or len(pair[1]) != 2:
        return None
    generator, _ = shared
    lines = []
    for terms in (pair[0], pair[1]):
        read = exponential_polynomial(terms, x)
        if read is None or set(read[1]) != {0, 1}:
            return None
        if sp.expand(read[0] + generator) == 0:
            lines.append((read[1][1], read[1][0]))
        elif sp.expand(read[0] - generator) == 0:
            lines.append((read[1][0], read[1][1]))
        else:
            return None
    (a, b), (c, d) = lines
    return moebius((a, b), (c, d), sp.exp(generator))


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
        coefficient, exponent = sp.S.One, sp.S.Zero
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
    expanded = sp.expand(equation)
    if expanded.is_polynomial(x):
        if sp.degree(expanded, x) != 1:
            return None
        return tidy.factor(-expanded.coeff(x, 0) / expanded.coeff(x, 1))
    terms = exponential_terms(expanded, x)
    if terms is None:
        return None
    collected: dict[sp.Expr, sp.Expr] = {}
    for coefficient, exponent in terms:
        rate = sp.expand(exponent).coeff(x, 1)
        rest = tidy.simplify(exponent - rate * x)
        if x in rest.free_symbols:
            return None
        collected[rate] = collected.get(rate, sp.S.Zero) + coefficient * sp.exp(rest)
    if len(collected) != 2:
        return None
    (a, b), (c, e) = collected.items()
    return tidy.simplify(sp.log(tidy.simplify(-e / b)) / (a - c))
