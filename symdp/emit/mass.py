"""The mass of a density as one symbol: what a normalised density is divided by."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import sympy as sp
from flint import ctx

from symdp.above import above
from symdp.emit.arb import ENCLOSERS, constant
from symdp.errors import AccuracyError
from symdp.tolerances import MASS_BITS

# What SymPy raises about expressions that it cannot settle.
_UNSETTLED = (TypeError, ValueError, ArithmeticError, LookupError, NotImplementedError)


class MassIntegral(sp.AtomicExpr):  # type: ignore[misc]
    """∫ f(x) dx of a density f: a constant whose integrand no rule of SymPy gets to see.

    An Integral would be rewritten with the density around it, and evaluated by a quadrature of
    SymPy's own whenever terms are sorted, for seconds. This one only takes values for the
    parameters of f; its own value is enclosed in balls.

    >>> x, s = sp.Symbol("x", real=True), sp.Symbol("s", positive=True)
    >>> mass = MassIntegral(sp.exp(-(x**2) / s), sp.Tuple(x, -sp.oo, sp.oo))
    >>> mass.free_symbols, mass.is_positive, mass.subs(s, 2).evalf(12)
    ({s}, True, 2.50662827463)
    >>> mass.xreplace({s: sp.Integer(2)})
    Integral(exp(-x**2/2), (x, -oo, oo))
    >>> sp.expand(mass * (1 + 1 / mass))
    Integral(exp(-x**2/s), (x, -oo, oo)) + 1
    """

    is_positive = True
    is_finite = True
    is_commutative = True
    is_number = False  # SymPy would ask for its value whenever it asks for the sign of a sum

    def __new__(cls, function: sp.Expr, limits: sp.Tuple, name: str = "C") -> MassIntegral:
        """Keep a density and (variable, lower, upper) as they are; people read the name."""
        node: MassIntegral = super().__new__(cls)
        node.function = function
        node.limits = (sp.Tuple(*limits),)
        node.name = name
        return node

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what makes it anew, for pickle."""
        return self.function, self.limits[0], self.name

    def _hashable_content(self) -> tuple[Any, ...]:
        return self.function, self.limits[0]

    @property
    def parts(self) -> tuple[sp.Expr, sp.Tuple]:
        """The density, and its variable with the ends of its support."""
        return self.function, self.limits[0]

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """The parameters that it depends on."""
        variable, *ends = self.limits[0]
        inner: set[sp.Symbol] = self.function.free_symbols - {variable}
        return inner.union(*(end.free_symbols for end in ends))

    def _with(self, function: sp.Expr, limits: sp.Tuple) -> tuple[sp.Expr, bool]:
        if (function, limits) == self.parts:
            return self, False
        return MassIntegral(function, limits, self.name), True

    def _eval_subs(self, old: sp.Basic, new: sp.Basic) -> sp.Expr:
        if old not in self.free_symbols:
            return self
        # SymPy tries 0 for a positive parameter, where it may stumble over the integrand.
        try:
            return self._with(*(part.subs(old, new) for part in self.parts))[0]
        except _UNSETTLED:
            return sp.nan

    def xreplace(self, rule: Any) -> sp.Expr:
        """Return it with values for its parameters, which SymPy gives to no other atom."""
        return self._xreplace(rule)[0]

    def _xreplace(self, rule: Any) -> tuple[sp.Expr, bool]:
        if self in rule:
            return rule[self], True
        return self._with(*(part.xreplace(rule) for part in self.parts))

    def _eval_derivative(self, s: sp.Symbol) -> sp.Expr:
        if s in self.free_symbols:
            return sp.Derivative(self, s, evaluate=False)
        return sp.S.Zero

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        if self.free_symbols:
            return None
        return _float(self, prec)

    def as_integral(self) -> sp.Integral:
        """Return it as SymPy's own integral, to be printed."""
        return sp.Integral(*self.parts)

    def _sympystr(self, printer: Any) -> Any:
        return printer._print(self.as_integral())

    _latex = _pretty = _mathml = _sympystr

    def _sympyrepr(self, printer: Any) -> str:
        return f"MassIntegral({', '.join(printer.doprint(part) for part in self.parts)})"


class MassSum(sp.Sum):  # type: ignore[misc]
    """The mass of masses on integers: a sum that stays as it is, and whose value is enclosed."""

    is_positive = True
    is_finite = True

    @property
    def parts(self) -> tuple[sp.Expr, sp.Tuple]:
        """The masses, and their variable with the ends of its support."""
        return self.function, self.limits[0]

    def doit(self, **_hints: object) -> MassSum:
        """Return the sum as it is."""
        return self

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        if self.free_symbols:
            return None
        return _float(self, prec)


def names_of_masses(expressions: Iterable[sp.Expr]) -> dict[sp.Expr, sp.Symbol]:
    """Return a positive symbol for each mass in expressions: SymPy works with that in its place."""
    masses = {
        mass for expression in expressions for mass in expression.atoms(MassIntegral, MassSum)
    }
    ordered = sorted(masses, key=lambda mass: str((mass.function, *mass.limits)))
    return {mass: sp.Symbol(f"C__{k}", positive=True) for k, mass in enumerate(ordered)}


def _float(mass: sp.Expr, prec: int) -> sp.Expr | None:
    """Return the value of a mass, None where it has none: the check of the density says so."""
    # Of a mass that is exactly 1, SymPy asks for ever more bits to tell it from 1.
    try:
        return sp.Float(_evaluated(mass), precision=min(prec, MASS_BITS))
    except AccuracyError:
        return None


@lru_cache(maxsize=64)
def _evaluated(mass: sp.Expr) -> sp.Expr:
    with ctx.workprec(MASS_BITS):
        value = constant(mass).real
        if not value.is_finite():
            raise AccuracyError(f"'{mass}' could not be enclosed")
        return sp.Float(value.mid().str(MASS_BITS // 3, radius=False), precision=MASS_BITS)


def _enclosed(mass: MassIntegral | MassSum) -> Any:  # one value, on a page as in numbers
    return above("balls").enclose_normalizer(mass)


ENCLOSERS[MassIntegral] = ENCLOSERS[MassSum] = _enclosed
