"""Bring the log of a moment generating function to a short form that stays real."""

from __future__ import annotations

import math
from collections.abc import Iterable

import sympy as sp

from symdp.density.normal_form import log_of_product
from symdp.density.signs import sign_of
from symdp.derive.child import compute
from symdp.interrupt import worked
from symdp.model import tidy
from symdp.model.tidy import Generators
from symdp.tolerances import MORE_TIME

_QUICK = 150  # operations that are factored here and now; more go to a child process


def log_of_total(total: sp.Expr, tilt: sp.Symbol, deadline: float = math.inf) -> sp.Expr:
    """Return log(total) in a short form that is real wherever total > 0.

    Exponentials, powers and positive constants leave the log.  Numerators and denominators that
    may turn negative stay together, since both do so at once.
    """
    total = sp.gammasimp(total) if total.has(sp.gamma) else total
    candidates = [_Log(tilt, products).expression() for products in _products(total, deadline)]
    return min(candidates, key=lambda e: (sp.count_ops(e), sp.default_sort_key(e)))


def _products(total: sp.Expr, deadline: float) -> Iterable[list[sp.Expr]]:
    """Ways to write the total as a product, each as its list of factors."""
    generators = Generators(total)
    plain = generators.reduced
    yield generators.factors(plain, with_hyperbolics=False)
    if sp.count_ops(plain) <= _QUICK:
        factored: sp.Expr | None = tidy.factor(tidy.together(plain))
    else:
        seconds = min(MORE_TIME, deadline - worked())
        factored = compute("factor", (plain,), seconds)
    if factored is not None:
        yield generators.factors(factored, with_hyperbolics=False)
        yield generators.factors(factored, with_hyperbolics=True)


class _Log:
    """The log of a product, sorted into exponents, constant logs and one log of the rest."""

    def __init__(self, tilt: sp.Symbol, factors: Iterable[sp.Expr]) -> None:
        self.tilt = tilt
        self.exponent: sp.Expr = sp.S.Zero
        self.logs: dict[sp.Expr, sp.Expr] = {}
        self.inside: sp.Expr = sp.S.One
        self.outside: sp.Expr = sp.S.Zero
        self.sign = 1
        for factor in factors:
            self._take(factor, sp.S.One)

    def expression(self) -> sp.Expr:
        """Put the parts together."""
        fixed = []
        moving = []
        for base, coefficient in self.logs.items():
            short = tidy.factor(sp.expand(coefficient))
            if self.tilt in short.free_symbols:
                moving.append(short * sp.log(base))
            else:
                fixed.append((base, short))
        expanded = sp.expand(self.exponent)
        exponent = min((expanded, tidy.factor(expanded)), key=sp.count_ops)
        return sp.Add(exponent, self._inside(), self.outside, log_of_product(fixed), *moving)

    def _inside(self) -> sp.Expr:
        """The log of what may not be taken apart."""
        numerator, denominator = sp.fraction(self.sign * self.inside)
        if denominator == 1 and numerator == 1:
            return sp.S.Zero
        if numerator == 1:
            return -sp.log(denominator)
        return sp.log(numerator / denominator)

    def _take(self, factor: sp.Expr, power: sp.Expr) -> None:
        if isinstance(factor, sp.Mul):
            for part in factor.args:
                self._take(part, power)
        elif isinstance(factor, sp.exp):
            self._exponent(factor.args[0], power)
        elif isinstance(factor, sp.Pow) and not isinstance(factor, sp.exp):
            whole = power * factor.exp
            if whole.is_Integer or self.tilt not in factor.base.free_symbols:
                self._take(factor.base, whole)
            else:
                self._root(factor.base, whole)
        elif factor == -1:
            self.sign = -self.sign
        elif self.tilt not in factor.free_symbols:
            self._constant(factor, power)
        elif not power.is_Integer:
            self._root(factor, power)
        else:
            self._keep(factor, power)

    def _keep(self, factor: sp.Expr, power: sp.Expr) -> None:
        """Leave a factor inside, turned so that it is positive at t = 0 where it can be."""
        if sign_of(factor.subs(self.tilt, 0)) == -1:
            factor = sp.expand(-factor) if isinstance(factor, sp.Add) else -factor
            self.sign *= -1 if power.is_odd else 1
        self.inside *= factor**power

    def _exponent(self, exponent: sp.Expr, power: sp.Expr) -> None:
        for term in sp.Add.make_args(sp.expand(exponent)):
            logs = [factor for factor in sp.Mul.make_args(term) if isinstance(factor, sp.log)]
            if len(logs) == 1 and self.tilt not in logs[0].free_symbols:
                self._constant(logs[0].args[0], power * term / logs[0])
            else:
                self.exponent += power * term

    def _constant(self, factor: sp.Expr, power: sp.Expr) -> None:
        if factor.is_Rational:
            for part, turn in ((abs(factor.p), 1), (factor.q, -1)):
                if part != 1:
                    self._add_factor(sp.Integer(part), turn * power)
            if factor < 0:
                self.sign *= -1 if power.is_odd else 1
            return
        sign = sign_of(factor)
        if sign is None and power.is_Integer:
            self._keep(factor, power)
            return
        if sign == -1:
            factor = -factor
            self.sign *= -1 if power.is_odd else 1
        self._add_factor(factor, power)

    def _add_factor(self, base: sp.Expr, power: sp.Expr) -> None:
        if base.is_Integer:
            primes = sp.factorint(base, limit=20)
            if max(primes, default=1) > 20:
                primes = {base: 1}
            for prime, multiplicity in primes.items():
                self._add_log(sp.Integer(prime), power * multiplicity)
        else:
            self._add_log(base, power)

    def _add_log(self, base: sp.Expr, power: sp.Expr) -> None:
        self.logs[base] = self.logs.get(base, sp.S.Zero) + power

    def _root(self, factor: sp.Expr, power: sp.Expr) -> None:
        """A power such as a square root, whose base is positive wherever K is finite."""
        numerator, denominator = sp.fraction(tidy.factor(tidy.together(factor)))
        for part, sign in ((numerator, 1), (denominator, -1)):
            constant, moving = part.as_independent(self.tilt, as_Add=False)
            if sign_of(constant) == -1:  # −t is positive where it matters, t is not
                constant = -constant
                moving = sp.expand(-moving)
            if constant != 1:
                self._constant(constant, sign * power)
            if moving != 1:
                if sign_of(moving.subs(self.tilt, 0)) == -1:
                    moving = sp.expand(-moving)  # the signs of the two parts cancel
                self.outside += sp.expand(sign * power) * sp.log(moving)
