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
    entry = _first(SUM_RULES if integrand.is_sum else INTEGRAL_RULES, integrand)
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
        entry = _first(INTEGRAL_RULES, moved)
        if entry is not None:
            return Entry(entry.value * sp.exp(moved.form.constant), entry.rules, (moved,))
    return None if integrand.is_sum else _first(LAST_RULES, integrand)


def _first(rules: tuple[Rule, ...], integrand: Integrand) -> Entry | None:
    for rule in rules:
        value = rule(integrand)
        if value is not None:
            return Entry(value, (rule.__name__,))
    return None


def told(name: str) -> str:
    """Return what a rule knows: the first sentence of its docstring."""
    rule = next(
        rule for rule in (*INTEGRAL_RULES, *LAST_RULES, *SUM_RULES) if rule.__name__ == name
    )
    return (rule.__doc__ or name).strip().partition("\n\n")[0]


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
