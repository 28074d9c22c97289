"""What a caller hands in: numbers, expressions and formulas, exact and in a mechanism's symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef

from symdp.errors import InputError, at, suggestion
from symdp.model.pair import Atoms, Component, Support, kind_of, plain_support
from symdp.model.reading.guarded import substitute
from symdp.model.reading.parser import parse
from symdp.model.sampling import (
    Parameter,
    declare,
    exact,
    infer,
    variable_symbol,
    without_floats,
)


class Intake:
    """What a caller hands in, with the mechanism's own symbols and exact numbers."""

    def __init__(
        self,
        variable: object,
        support: object,
        words: Mapping[str, str] | None,
        inherited: Iterable[Parameter] = (),
    ) -> None:
        support = plain_support(support)
        kind = kind_of(support)
        self._on_points = kind == "points"
        if not isinstance(variable, sp.Symbol | str):
            raise InputError(f"the variable must be a SymPy symbol, not {variable!r:.60}")
        if kind == "interval" and isinstance(variable, sp.Symbol) and variable.is_integer:
            raise InputError(
                f"the variable {variable} is an integer and the support an interval of reals: "
                "pass support='integers', or a real variable"
            )
        self.variable = variable_symbol(str(variable), kind)
        declared = (declare(name, word) for name, word in (words or {}).items())
        self._known = {parameter.name: parameter for parameter in (*inherited, *declared)}
        self._infers, self._inferred = words is None, set[str]()
        if self.variable.name in self._known:
            raise InputError(f"'{self.variable.name}' is both the variable and a parameter")
        self.support = self._read_support(support, kind)

    @property
    def declared(self) -> tuple[Parameter, ...]:
        """The parameters declared or inferred so far."""
        return tuple(self._known.values())

    @property
    def symbols(self) -> dict[str, sp.Symbol]:
        """Their symbols by name."""
        return {name: parameter.symbol for name, parameter in self._known.items()}

    def read(self, value: object, what: str) -> sp.Expr:
        """Return a number or an expression, exact and in the mechanism's own symbols."""
        if not isinstance(value, sp.Expr) or not value.free_symbols:
            if isinstance(value, str):
                raise InputError(f"{what} is text; pass a SymPy expression, or load a file")
            return exact(value, what)
        expr = without_floats(value)
        if expr.has(AppliedUndef, sp.DiracDelta, sp.I, sp.nan, sp.zoo) or expr.is_Matrix:
            raise InputError(f"{what} must be an ordinary real function, not {value!s:.60}")
        for power in expr.atoms(sp.Pow):
            if power.base.is_negative and power.exp.free_symbols and not self._on_points:
                raise InputError(
                    f"{what} holds {power}, whose sign changes from one integer to the next: it has"
                    " no logarithm; leave it out, or list the points of the support"
                )
        for inner in expr.atoms(ExprWithLimits):
            if self.variable.name in {symbol.name for symbol in inner.bound_symbols}:
                raise InputError(
                    f"{what} sums or integrates over the variable {self.variable} itself;"
                    " pass normalize=True, or use another symbol there"
                )
        # Where two symbols share a name, the one that carries assumptions speaks first.
        symbols = sorted(expr.free_symbols, key=lambda s: (str(s.name), s.is_real is None))
        return expr.xreplace({symbol: self._own(symbol, what) for symbol in symbols})

    def density(self, value: object, what: str) -> sp.Expr:
        """Return a density as `read` does, which holds the variable where the support has no end.

        A constant has no finite mass there: another symbol was meant as the variable.
        """
        expr, x = self.read(value, what), self.variable
        ends = self.support.lower, self.support.upper
        if x not in expr.free_symbols and expr != 0 and any(end.is_infinite for end in ends):
            others = sorted(symbol.name for symbol in expr.free_symbols)
            hint = f"; or is {others[0]} the variable?" if others else ""
            raise InputError(
                f"{what} does not hold its variable {x}, so that its mass is infinite{hint}"
            )
        return expr

    def formula(self, value: object, what: str) -> sp.Expr:
        """Return a number, an expression or a formula in text, free of the variable."""
        if not isinstance(value, str):
            return self.constant(value, what)
        with at(what):
            return parse(value, self.symbols)

    def law(self, law: object, name: str) -> Component:
        """Return a law: an expression, or on points one mass for every point."""
        points = self.support.points
        if isinstance(law, list | tuple):
            if not points:
                raise InputError(f"{name} is a list, but the support is no list of points")
            return tuple(self.constant(mass, f"a mass of {name}") for mass in law)
        if not points:
            return self.density(law, name)
        expr = self.read(law, name)
        return tuple(substitute(expr, {self.variable: point}) for point in points)

    def atoms(self, table: object) -> Atoms:
        """Return the atoms of P and Q, each a place with its two masses."""
        if not isinstance(table, Mapping):
            raise InputError("atoms must be a table of places, each with its masses under P and Q")
        atoms = []
        for value, masses in table.items():
            if not isinstance(masses, list | tuple) or len(masses) != 2:
                raise InputError(
                    f"the atom at {value!s:.40} needs a list of two masses, that of P and that of Q"
                )
            what = f"a mass of the atom at {value!s:.40}"
            both_masses = tuple(self.formula(mass, what) for mass in masses)
            atoms.append((self.formula(value, "the place of an atom"), both_masses))
        return tuple(atoms)

    def constant(self, value: object, what: str) -> sp.Expr:
        """Return a number or an expression free of the variable."""
        expr = self.read(value, what)
        if self.variable in expr.free_symbols:
            raise InputError(f"{what} must not depend on the variable {self.variable}")
        return expr

    def _own(self, symbol: sp.Symbol, what: str) -> sp.Symbol:
        name = str(symbol.name)
        if name == self.variable.name:
            return self.variable
        if name not in self._known:
            if not self._infers:
                names = [self.variable.name, *self._known]
                hint = suggestion(name, names) or f" (declared are {', '.join(names)})"
                raise InputError(f"{what}: '{name}' is not declared{hint}")
            self._known[name] = infer(symbol)
            self._inferred.add(name)
        elif name in self._inferred and symbol.is_real and symbol != self._known[name].symbol:
            raise InputError(f"two symbols are called '{name}'; give them the same assumptions")
        return self._known[name].symbol

    def _read_support(self, support: object, kind: str) -> Support:
        if isinstance(support, Support):
            ends = {"points": list(support.points), "interval": (support.lower, support.upper)}
            support = ends.get(kind, kind)
        if kind == "points":
            listed = support["points"] if isinstance(support, Mapping) else support
            if not isinstance(listed, list | tuple):
                raise InputError("the points of a support must be a list")
            points = tuple(self.end(point, "a point of the support") for point in listed)
            if any(point.is_infinite for point in points):
                raise InputError("a point of the support must be finite")
            return Support("points", -sp.oo, sp.oo, points).checked()
        if isinstance(support, list | tuple):
            lower, upper = (self.end(end, "an end of the support") for end in support)
            return Support("interval", lower, upper).checked()
        if kind == "naturals":
            return Support("naturals", sp.Integer(0), sp.oo)
        return Support("integers", -sp.oo, sp.oo)

    def end(self, end: object, what: str) -> sp.Expr:
        """Return an end of an interval: a number, an expression, or an infinity."""
        for infinity in (sp.oo, -sp.oo):
            if end == infinity:  # of SymPy or a float
                return infinity
        return self.constant(end, what)
