"""A table of definite integrals and sums of exp(normal form), parameters and tilt included.

Each rule reads the normal form of an integrand, recognises one family and returns its value, or
None.  The rules state no conditions of convergence: where the CGF is finite is found apart, and a
closed form is believed only after it was compared with a numerical integral.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import sympy as sp

from symdp.derive import rules_exponential, rules_power, rules_sum
from symdp.derive.log_form import log_form
from symdp.derive.normal_form import Integrand
from symdp.derive.signs import interior_point
from symdp.model import tidy

__all__ = ["Integrand", "definite"]

Rule = Callable[[Integrand], sp.Expr | None]


def definite(integrand: Integrand) -> sp.Expr | None:
    """Return ∫ exp(form) without the form's constant factor, None where no rule applies.

    What no rule knows is tried once more after x = r ± e^y, which makes exponentials of powers.

    Examples
    --------
    >>> from symdp.derive.normal_form import LogForm
    >>> x = sp.Symbol("x", real=True)
    >>> a = sp.Symbol("a", positive=True)
    >>> definite(Integrand(LogForm(x, smooth={x**2: -a}), -sp.oo, sp.oo, False))
    sqrt(pi)/sqrt(a)
    """
    value = _first(_SUM_RULES if integrand.is_sum else _INTEGRAL_RULES, integrand)
    if value is not None:
        return value
    if integrand.is_line and not integrand.is_sum:
        halves = [
            _substituted(replace(integrand, **{end: sp.S.Zero})) for end in ("upper", "lower")
        ]
        total = None if None in halves else sp.Add(*halves)
        return None if total is None or tidy.simplify(total) == 0 else total
    return _substituted(integrand)


def _substituted(integrand: Integrand) -> sp.Expr | None:
    for moved in logarithmic(integrand):
        value = _first(_INTEGRAL_RULES, moved)
        if value is not None:
            return value * sp.exp(moved.form.constant)
    return None


def _first(rules: tuple[Rule, ...], integrand: Integrand) -> sp.Expr | None:
    for rule in rules:
        value = rule(integrand)
        if value is not None:
            return value
    return None


_INTEGRAL_RULES: tuple[Rule, ...] = (
    rules_exponential.line,
    rules_exponential.gaussian,
    rules_exponential.waves,
    rules_exponential.gamma,
    rules_exponential.bessel,
    rules_exponential.beta,
    rules_exponential.beta_from_zero,
    rules_exponential.line_power,
    rules_power.power_law,
    rules_power.polynomial,
    rules_power.inverse_sine,
    rules_power.quadratics,
    rules_power.circle,
    rules_power.wave_power,
)
_SUM_RULES: tuple[Rule, ...] = (
    rules_sum.short,
    rules_sum.geometric,
    rules_sum.exponential_series,
    rules_sum.binomial_series,
    rules_sum.polynomial_series,
    rules_sum.power_series,
)


def logarithmic(integrand: Integrand) -> Iterator[Integrand]:
    """Yield the integrand in y = log(x − r) or log(r − x), r an end of its range.

    The factor dx/dy = e^y is part of what is yielded.  A finite range from r to b becomes
    (−∞, log|b − r|), a ray the whole line.  Nothing is yielded where no power or log of x − r
    is there to gain from it.

    Examples
    --------
    >>> from symdp.derive.normal_form import LogForm
    >>> x = sp.Symbol("x", real=True)
    >>> weibull = Integrand(LogForm(x, smooth={x**3: -sp.S.One}, logs={x: sp.S(2)}), sp.S.Zero,
    ...                     sp.oo, False)
    >>> moved = next(logarithmic(weibull))
    >>> moved.lower, moved.upper, sorted(moved.form.smooth.values())
    (-oo, oo, [-1, 3])
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
