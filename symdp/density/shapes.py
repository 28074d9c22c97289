"""Presentation of expressions so that the variable occurs as rarely as possible."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from symdp.density.signs import sign_of
from symdp.model import tidy

# Beyond this the completed square has lost more digits to cancellation than its shortness is worth.
_CONDITION = 256


def occurrences(expression: sp.Basic, variable: sp.Symbol) -> int:
    """Return how often `variable` stands in `expression`."""
    if expression == variable:
        return 1
    return sum(occurrences(argument, variable) for argument in expression.args)


def tidy_polynomial(coefficients: dict[int, sp.Expr], x: sp.Symbol) -> sp.Expr:
    """Write Σ cₖ xᵏ with few x: factored line, completed square, or Horner about the centre."""
    simple = {k: _short(c) for k, c in coefficients.items()}
    simple = {k: c for k, c in simple.items() if c != 0}
    degree = max(simple, default=0)
    constant = simple.get(0, sp.S.Zero)
    if degree == 0:
        return constant
    if degree == 1:
        return _line(simple[1], constant, x)
    centre = _short(-simple.get(degree - 1, sp.S.Zero) / (degree * simple[degree]))
    plain = _scaled_horner(simple, x)
    if centre == 0 or not _well_conditioned(simple, centre):
        return plain
    shifted = _scaled_horner(_shift(simple, centre), x - centre)
    return shifted if occurrences(shifted, x) < occurrences(plain, x) else plain


def _short(expression: sp.Expr) -> sp.Expr:
    """Cancel a parameter expression to its shortest quotient."""
    if expression.is_Rational or expression.is_Symbol:
        return expression
    if expression.has(sp.log):
        return sp.logcombine(expression, force=True)
    if not expression.free_symbols:
        return expression
    return sp.factor_terms(tidy.factor(expression))


def _line(slope: sp.Expr, constant: sp.Expr, x: sp.Symbol) -> sp.Expr:
    if constant == 0:
        return slope * x
    if slope.is_Rational and constant.is_Rational:
        return slope * x + constant
    if constant.has(sp.exp, sp.log) or slope.has(sp.exp, sp.log):
        return slope * x + constant
    factored = tidy.factor(slope * x + constant)
    return factored if occurrences(factored, x) == 1 else slope * x + constant


def _scaled_horner(coefficients: dict[int, sp.Expr], y: sp.Expr) -> sp.Expr:
    """Horner's rule; where parameters are in several coefficients the leading one is taken out."""
    leading = coefficients[max(coefficients)]
    several = len(coefficients) > 1 and max(coefficients) > 2
    if not several or not leading.free_symbols:
        return _horner(coefficients, y)
    monic = {k: _short(c / leading) for k, c in coefficients.items()}
    return leading * _horner(monic, y)


def _horner(coefficients: dict[int, sp.Expr], y: sp.Expr) -> sp.Expr:
    """Horner's rule in y that steps over vanishing coefficients."""
    powers = sorted(coefficients, reverse=True)
    total = sp.S.Zero
    for power, following in zip(powers, [*powers[1:], 0], strict=True):
        total = (total + coefficients[power]) * y ** (power - following)
    return total


def _shift(coefficients: dict[int, sp.Expr], centre: sp.Expr) -> dict[int, sp.Expr]:
    """Coefficients of the same polynomial in powers of x − centre."""
    degree = max(coefficients)
    shifted = {}
    for j in range(degree + 1):
        terms = (c * sp.binomial(k, j) * centre ** (k - j) for k, c in coefficients.items())
        value = _short(sp.expand(sp.Add(*terms)))
        if value != 0:
            shifted[j] = value
    return shifted


def _well_conditioned(coefficients: dict[int, sp.Expr], centre: sp.Expr) -> bool:
    """Whether moving the origin to `centre` loses at most a few digits (always for symbols)."""
    if centre.free_symbols or any(c.free_symbols for c in coefficients.values()):
        return True
    degree = max(coefficients)
    size = abs(coefficients[degree] * centre**degree).evalf(15)
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
    parts = []
    for coefficient, exponent in terms:
        constant, moving = sp.expand(exponent).as_independent(x, as_Add=True)
        parts.append((moving, coefficient * sp.exp(constant)))
    reference = next((moving for moving, _ in parts if moving != 0), None)
    if reference is None:
        return None
    ratios = [_ratio(moving, reference, x) for moving, _ in parts]
    if not all(ratio.is_Rational for ratio in ratios):
        return None
    denominator = sp.ilcm(*(ratio.q for ratio in ratios), 1)
    wholes = [int(ratio * denominator) for ratio in ratios]
    divisor = int(sp.igcd(*wholes, 0)) or 1
    powers = [whole // divisor for whole in wholes]
    generator = sp.expand(reference * divisor / denominator)
    if all(power <= 0 for power in powers):
        powers, generator = [-power for power in powers], sp.expand(-generator)
    if min(powers) < 0:
        return None
    polynomial: dict[int, sp.Expr] = {}
    for power, (_, coefficient) in zip(powers, parts, strict=True):
        polynomial[power] = polynomial.get(power, sp.S.Zero) + coefficient
    return generator, polynomial


def _ratio(moving: sp.Expr, reference: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return moving/reference where it is free of x, else nan."""
    if moving == 0:
        return sp.S.Zero
    first, second = sp.Add.make_args(moving)[0], sp.Add.make_args(reference)
    for candidate in second:
        quotient = tidy.cancel(first / candidate)
        if x not in quotient.free_symbols:
            return quotient if sp.expand(moving - quotient * reference) == 0 else sp.nan
    return sp.nan


def moebius(
    top: tuple[sp.Expr, sp.Expr], bottom: tuple[sp.Expr, sp.Expr], u: sp.Expr
) -> tuple[sp.Expr, int] | None:
    """Write (a + b·u)/(c + d·u), all constants positive, with one u and only positive terms.

    Both limits a/c and b/d are positive; the quotient is the smaller one plus a fraction of their
    gap, so nothing cancels.
    """
    (a, b), (c, d) = top, bottom
    if any(sign_of(value) != 1 for value in (a, b, c, d)):
        return None
    start, end = sp.powsimp(a / c), sp.powsimp(b / d)
    order = sign_of(end - start)
    if order is None:
        return None
    inverse = (start if order >= 0 else end) == 1 and start != end
    if inverse:
        (a, b), (c, d) = (c, d), (a, b)
        start, end, order = sp.powsimp(1 / start), sp.powsimp(1 / end), -order
    if order >= 0:
        value = start + (end - start) / (1 + sp.powsimp(c / d / u, combine="exp"))
    else:
        value = end + (start - end) / (1 + sp.powsimp(d / c * u, combine="exp"))
    return value, -1 if inverse else 1
