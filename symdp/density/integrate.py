"""Definite integrals and sums of exp(normal form) by a table, and moments of a pair by them.

What no rule knows is tried once more in y = log|x − r|, r an end, which makes exponentials of
powers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import sympy as sp

from symdp.density.integral_rules import INTEGRAL_RULES, LAST_RULES, Rule
from symdp.density.mixture import mixture_form
from symdp.density.normal_form import Integrand, LogForm, log_form
from symdp.density.pieces import SmoothPair, points, smooth_pairs
from symdp.density.signs import interior_point
from symdp.density.sum_rules import SUM_RULES
from symdp.model import tidy

if TYPE_CHECKING:
    from symdp.model.pair import Pair


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
    rules = INTEGRAL_RULES
    if integrand.is_sum:
        rules = SUM_RULES
    entry = _first(rules, integrand)
    if entry is not None:
        return entry
    if integrand.is_sum or not integrand.is_line:
        return _substituted(integrand)
    left = _substituted(replace(integrand, upper=sp.S.Zero))
    right = _substituted(replace(integrand, lower=sp.S.Zero))
    if left is None or right is None:
        return None
    total = left.value + right.value
    if tidy.simplify(total) == 0:
        return None
    return Entry(total, left.rules + right.rules, left.moved + right.moved)


def _substituted(integrand: Integrand) -> Entry | None:
    for moved in logarithmic(integrand):
        entry = _first(INTEGRAL_RULES, moved)
        if entry is not None:
            value = entry.value * sp.exp(moved.form.constant)
            return Entry(value, entry.rules, (moved,))
    if integrand.is_sum:
        return None
    return _first(LAST_RULES, integrand)


def _first(rules: tuple[Rule, ...], integrand: Integrand) -> Entry | None:
    for rule in rules:
        value = rule(integrand)
        if value is not None:
            return Entry(value, (rule.__name__,))
    return None


def told(name: str) -> str:
    """Return what a rule knows: the first sentence of its docstring."""
    rules = {rule.__name__: rule for rule in (*INTEGRAL_RULES, *LAST_RULES, *SUM_RULES)}
    description = rules[name].__doc__ or name
    return description.strip().partition("\n\n")[0]


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
            body += coefficient * _in_logarithm(monomial, x, end, side, y)
        logs = sp.S.One
        is_plain = True
        for base, power in _with_joined_factors(integrand.form.moving_logs).items():
            moved = _in_logarithm(base, x, end, side, y)
            is_plain = is_plain and not moved.has(sp.log)
            logs *= sp.expand(moved, log=False) ** power
        if not is_plain or not _only_exponentials(body, logs, y):
            continue
        top = sp.oo
        inside = sp.S.Zero
        if not other.is_infinite:
            top = sp.log(tidy.factor(side * (other - end)))
            inside = interior_point(-sp.oo, top)
        integrand_in_y = sp.exp(sp.expand(body) + y) * logs
        yield Integrand(log_form(integrand_in_y, y, inside), -sp.oo, top, False)


def _with_joined_factors(logs: dict[sp.Expr, sp.Expr]) -> dict[sp.Expr, sp.Expr]:
    """Multiply factors of one power: (1 + x)(1 − x + x²) is 1 + x³ again."""
    products: dict[sp.Expr, sp.Expr] = {}
    for base, power in logs.items():
        products[power] = products.get(power, sp.S.One) * base
    joined = {}
    for power, product in products.items():
        joined[sp.expand(product)] = power
    return joined


def _in_logarithm(
    expression: sp.Expr, x: sp.Symbol, end: sp.Expr, side: int, y: sp.Symbol
) -> sp.Expr:
    """Put end ± e^y for x, with e^{py} for every power."""
    substituted = expression.subs(x, end + side * sp.exp(y))
    return sp.powsimp(sp.powdenest(substituted), combine="exp")


def _only_exponentials(body: sp.Expr, logs: sp.Expr, y: sp.Symbol) -> bool:
    """Whether y stands in exponents e^{py} and polynomials alone, not in e^{e^y}."""
    functions = body.atoms(sp.Function) | logs.atoms(sp.Function)
    for function in functions:
        if y not in function.free_symbols:
            continue
        if not isinstance(function, sp.exp) or not function.args[0].is_polynomial(y):
            return False
    return True


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
    symbols = set().union(*(part.free_symbols for part in pair.expressions()))
    names = {symbol.name for symbol in symbols}
    free = next(name for name in ("t", "tilt", "t_tilt", "tilt_of_K") if name not in names)
    return sp.Symbol(free, real=True)


def stretches_of(pair: Pair) -> Iterator[TiltedStretch]:
    """Yield the stretches between kinks on which both densities are positive."""
    for smooth in smooth_pairs(pair):
        if smooth.p_terms and smooth.q_terms:
            yield _stretch(smooth)


def _stretch(smooth: SmoothPair) -> TiltedStretch:
    x = smooth.variable
    at = smooth.lower
    if smooth.lower != smooth.upper:
        at = interior_point(smooth.lower, smooth.upper)
    log_p = mixture_form(smooth.p_terms, smooth.reference, x, at)
    log_q = mixture_form(smooth.q_terms, smooth.reference, x, at)
    is_sum = bool(x.is_integer)
    return TiltedStretch(smooth, log_p, log_q, smooth.lower, smooth.upper, is_sum)


def tabulated_moment(pair: Pair) -> tuple[sp.Symbol, sp.Expr] | None:
    """Return the tilt and M = ∫ P^{1+t} Q^{−t} as the table of integrals has it, not simplified.

    None where a stretch is not in the table; nothing is compared with an integral yet.
    """
    if pair.alternatives:
        return None
    tilt = tilt_symbol(pair)
    if pair.support.kind == "points":
        terms = []
        for point in points(pair):
            if not point.loss.is_infinite:
                terms.append(point.p * sp.exp(tilt * point.loss))
        return tilt, sp.Add(*terms)
    total = sp.S.Zero
    for stretch in stretches_of(pair):
        integrand = stretch.tilted(tilt)
        value = definite(integrand)
        if value is None:
            return None
        constant = sp.exp(sp.expand(integrand.form.constant))
        total += value * constant
    return tilt, total
