"""Reading a density: its normal form from products, powers, exponentials and sums."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from symdp.density.normal_form import (
    Coefficients,
    LogForm,
    combined,
    expanded,
    exponential_terms,
)
from symdp.density.signs import sign_of
from symdp.model import tidy


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
    builder.add(_without_turns(_without_hyperbolics(expression, x), x), sp.S.One)
    return builder.form()


class _PointNeeded(Exception):  # noqa: N818  (a signal between two functions of this file)
    """A base changes its sign somewhere."""


def _without_hyperbolics(expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
    hyperbolic = sp.functions.elementary.hyperbolic.HyperbolicFunction
    return expression.replace(
        lambda node: isinstance(node, hyperbolic) and x in node.free_symbols,
        lambda node: node.rewrite(sp.exp),
    )


def _without_turns(expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Write cos(2π(x − 1)) as cos(2πx), so that what two shifted waves share cancels.

    Whole periods go, of parameters that are whole numbers too; SymPy takes out quarter periods.
    """
    waves = sp.functions.elementary.trigonometric.TrigonometricFunction

    def reduced(wave: sp.Expr) -> sp.Expr:
        terms = sp.Add.make_args(expanded(wave.args[0], x))
        quarters = {term: tidy.cancel(2 * term / sp.pi) for term in terms if not term.has(x)}
        if not any(count.is_integer for count in quarters.values()):
            return wave
        period = sp.pi if isinstance(wave, sp.tan | sp.cot) else 2 * sp.pi
        turns = [t for t in quarters if tidy.cancel(t / period).is_integer]
        return wave.func(sp.Add(*(term for term in terms if term not in turns)))

    return expression.replace(
        lambda node: isinstance(node, waves) and x in node.free_symbols, reduced
    )


class _Builder:
    """Collects the parts of one normal form."""

    def __init__(self, x: sp.Symbol, at: sp.Expr | None) -> None:
        self.x, self.at = x, at
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
            for part, turn in ((abs(constant.p), 1), (constant.q, -1)):
                if part != 1:
                    self.add_base(sp.Integer(part), turn * power)
            return
        if isinstance(constant, sp.Add):
            constant = sp.factor_terms(constant)
            if not isinstance(constant, sp.Add):
                self.add(constant, power)
                return
        sign = sign_of(constant)
        self.add_base(-constant if sign == -1 else constant, power)

    def add_exponent(self, exponent: sp.Expr, power: sp.Expr) -> None:
        """Add power·exponent, term by term; a quotient of polynomials in partial fractions."""
        if exponent.is_rational_function(self.x) and not exponent.is_polynomial(self.x):
            exponent = tidy.apart(exponent, self.x)
        for term in sp.Add.make_args(expanded(exponent, self.x)):
            constant, moving = _scaled_apart(term, self.x).as_independent(self.x, as_Add=False)
            if moving == 1:
                self.add_shift(constant, power)
            elif isinstance(moving, sp.log):
                self.add(moving.args[0], power * constant)
            else:
                self.smooth[moving] = self.smooth.get(moving, sp.S.Zero) + power * constant

    def add_shift(self, constant: sp.Expr, power: sp.Expr) -> None:
        """Add power·constant, a constant c·log(b) among the logs."""
        factors = sp.Mul.make_args(constant)
        logs = [factor for factor in factors if isinstance(factor, sp.log)]
        if len(logs) == 1 and sign_of(logs[0].args[0]) == 1:
            self.add(logs[0].args[0], power * constant / logs[0])
        else:
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
        if polynomial.domain.is_QQ or polynomial.domain.is_ZZ:
            content, factors = polynomial.factor_list()
        else:
            content, factors = sp.S.One, [(polynomial, 1)]
        self.add(sp.sympify(content, strict=True), power)
        for factor, multiplicity in factors:
            leading = factor.LC()
            self.add(leading, power * multiplicity)
            if leading != 1:
                quotients = {m: tidy.cancel(c / leading) for m, c in factor.terms()}
                monic = sp.Add(*(c * self.x ** m[0] for m, c in quotients.items()))
            else:
                monic = factor.as_expr()
            self.add_base(self.positive(monic), power * multiplicity)

    def add_exponentials(self, terms: list[tuple[sp.Expr, sp.Expr]], power: sp.Expr) -> None:
        """Pull the term that dominates at +∞ out of Σ cᵢ exp(aᵢ)."""
        merged: dict[sp.Expr, sp.Expr] = {}
        for coefficient, exponent in terms:
            constant, moving = exponent.as_independent(self.x, as_Add=True)
            merged[moving] = merged.get(moving, sp.S.Zero) + coefficient * sp.exp(constant)
        merged = {moving: c for moving, c in merged.items() if c != 0}
        leader = _dominating(list(merged), self.x)
        mirrored = [moving.subs(self.x, -self.x) for moving in merged]
        other = _dominating(mirrored, self.x).subs(self.x, -self.x)
        if not sp.expand(other - leader).is_polynomial(self.x):
            # What is pulled out of two towers e^{−e^x} and e^{−e^{−x}} would cancel at one end.
            total = sp.Add(*(c * sp.exp(moving) for moving, c in merged.items()))
            self.add_base(self.positive(total), power)
            return
        scale = merged.pop(leader)
        self.add_exponent(leader, power)
        self.add(scale, power)
        if not merged:
            return
        base = sp.S.One
        for moving, coefficient in merged.items():
            ratio = sp.powsimp(sp.expand(coefficient / scale))
            base += ratio * sp.exp(expanded(moving - leader, self.x))
        self.add_base(self.positive(base), power)

    def positive(self, base: sp.Expr) -> sp.Expr:
        """Return ±base, whichever is positive at the test point (base itself where unclear)."""
        if base.is_positive:
            return base
        if self.at is None:
            raise _PointNeeded
        sign = sign_of(base.subs(self.x, self.at))
        return sp.expand(-base) if sign == -1 else base


def _have_unlike_tails(total: sp.Add, x: sp.Symbol) -> bool:
    """Whether terms fall by different exponentials and some hold more than these.

    Over one denominator e^{−x²} + 1/(1 + x²) is e^{−x²}·(1 + x² + e^{x²})/(1 + x²), of whose
    logarithm nothing is left in doubles far out.
    """
    exponents, has_more = set(), False
    for term in total.args:
        exponent = sp.S.Zero
        for factor in sp.Mul.make_args(term):
            if isinstance(factor, sp.exp):
                exponent += factor.args[0]
            elif factor.has(x):
                has_more = True
        exponents.add(sp.expand(exponent.as_independent(x, as_Add=True)[1]))
    return has_more and len(exponents) > 1


def _by_half_angle(total: sp.Add, x: sp.Symbol) -> sp.Expr | None:
    """Write c(1 ± cos u) as 2c cos²(u/2) or 2c sin²(u/2), which do not cancel at their zeros."""
    constant, moving = total.as_independent(x, as_Add=True)
    scale, wave = moving.as_independent(x, as_Add=False)
    if not isinstance(wave, sp.cos | sp.sin) or sp.expand(scale**2 - constant**2) != 0:
        return None
    angle = wave.args[0] / 2 - (sp.pi / 4 if isinstance(wave, sp.sin) else 0)
    half = sp.cos if sp.expand(scale - constant) == 0 else sp.sin
    return 2 * constant * half(sp.expand(angle)) ** 2


def _scaled_apart(term: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Write (x/a)^p as a^{−p} x^p, so that equal powers of x meet."""
    factors = []
    for factor in sp.Mul.make_args(term):
        base, power = factor.as_base_exp()
        if isinstance(base, sp.Mul) and x in base.free_symbols and not isinstance(factor, sp.exp):
            scale, rest = base.as_independent(x, as_Add=False)
            size = -scale if sign_of(scale) == -1 else scale
            if sign_of(size) == 1 and not power.is_Integer:
                factors += [size**power, (scale / size * rest) ** power]
                continue
        factors.append(factor)
    return sp.Mul(*factors)


def _dominating(exponents: list[sp.Expr], x: sp.Symbol) -> sp.Expr:
    """Return the exponent that is largest as x → ∞, as far as that is certain, or seen far out.

    Any choice is right; with a smaller one, little is left of the sum's logarithm in doubles.
    """
    leader = exponents[0]
    for exponent in exponents[1:]:
        gap = sp.expand(exponent - leader)
        if gap.is_polynomial(x):
            larger = sign_of(sp.Poly(gap, x).LC()) == 1
        else:
            far = [gap.subs(x, sp.Integer(10) ** power).evalf(15) for power in (6, 9, 12)]
            larger = all(value.is_comparable and value > 0 for value in far)
        if larger:
            leader = exponent
    return leader
