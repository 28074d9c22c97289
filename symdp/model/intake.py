"""What a caller writes of a mechanism, read with its own symbols and exact numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef

from symdp.errors import InputError, at, suggestion
from symdp.model.guarded import substitute
from symdp.model.pair import Atoms, Component, Support, kind_of, plain_support
from symdp.model.parser import parse
from symdp.model.sampling import (
    Number,
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
        known: Iterable[Parameter] = (),
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
        self._known = {parameter.name: parameter for parameter in (*known, *declared)}
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
        expr = self.read(law, name)
        if not points:
            return expr
        return tuple(substitute(expr, {self.variable: point}) for point in points)

    def atoms(self, table: object) -> Atoms:
        """Return the atoms of P and Q, each a place with its two masses."""
        if not isinstance(table, Mapping):
            raise InputError("atoms must be a table of places, each with its masses under P and Q")
        found = []
        for place, masses in table.items():
            if not isinstance(masses, list | tuple) or len(masses) != 2:
                raise InputError(
                    f"the atom at {place!s:.40} needs a list of two masses, that of P and that of Q"
                )
            what = f"a mass of the atom at {place!s:.40}"
            own = tuple(self.formula(mass, what) for mass in masses)
            found.append((self.formula(place, "the place of an atom"), own))
        return tuple(found)

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
            points = tuple(self._end(point, "a point of the support") for point in listed)
            if any(point.is_infinite for point in points):
                raise InputError("a point of the support must be finite")
            return Support("points", -sp.oo, sp.oo, points).checked()
        if isinstance(support, list | tuple):
            lower, upper = (self._end(end, "an end of the support") for end in support)
            return Support("interval", lower, upper).checked()
        if kind == "naturals":
            return Support("naturals", sp.Integer(0), sp.oo)
        return Support("integers", -sp.oo, sp.oo)

    def _end(self, end: object, what: str) -> sp.Expr:
        for infinity in (sp.oo, -sp.oo):
            if end == infinity:  # of SymPy or a float
                return infinity
        return self.constant(end, what)


_LARGEST = sp.Integer(10) ** 308  # about the largest double


def readings(
    values: Mapping[str, Number],
    known: Mapping[str, Parameter],
    bound: Mapping[str, sp.Expr],
    owner: str,
) -> list[tuple[str, sp.Expr]]:
    """Return values for parameters, exact and within their domains; InputError otherwise."""
    new = []
    for name, value in values.items():
        if name not in known:
            hint = suggestion(name, known) or f"; it has {', '.join(known) or 'none'}"
            raise InputError(f"{owner} has no parameter '{name}'{hint}")
        if name in bound:
            raise InputError(f"{owner}: {name} is already bound to {bound[name]}")
        read = known[name].checked(exact(value, name))
        if read.is_Rational and read != 0 and not 1 / _LARGEST < abs(read) < _LARGEST:
            size = "large" if abs(read) > 1 else "small"
            raise InputError(
                f"{owner}: {name} = {sp.N(read, 3)} is too {size}: the loss is computed in doubles,"
                " which end at 1e308 and 1e-308"
            )
        new.append((name, read))
    return new
