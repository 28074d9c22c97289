"""An expression written in the distance from a finite end, so that tiny distances stay accurate.

Next to an end e the variable x = e ± u has no digits left for u, and 1 + cos πx cancels at x = 1
even where u is known. Here x is replaced exactly; and every sum or function that vanishes at the
end is rebuilt from parts that vanish one by one, such as 2 sin²(πu/2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import sympy as sp

from symdp.density.signs import is_nearly_zero
from symdp.emit.log_sum_exp import ExpMinusOne, LogOnePlus
from symdp.emit.mass import names_of_masses

DISTANCE = sp.Symbol("u", positive=True)

_MOST_FACTORS = 12  # of a power that is multiplied out
_NONE = (sp.nan, sp.zoo, sp.oo, -sp.oo, sp.AccumBounds)
_BRANCHED = (sp.asin, sp.acos, sp.acosh)


@dataclass(frozen=True)
class NearEnd:
    """What an expression is at a distance u > 0 inside an end."""

    expression: sp.Expr  # the same function, of `DISTANCE`
    is_regular: bool  # whether it is seen to continue smoothly beyond the end


def near_end(expression: sp.Expr, x: sp.Symbol, end: sp.Expr, inward: int) -> NearEnd:
    """Return the expression in terms of the distance u from a finite end, x = end ± u."""
    walk, names = _Walk(x, end + inward * DISTANCE, end), names_of_masses([expression])
    found = walk.visit(expression.xreplace(names)).whole
    return NearEnd(found.xreplace({name: mass for mass, name in names.items()}), walk.is_regular)


@dataclass(frozen=True)
class _Part:
    """A subexpression: its value at the end (None: none), and itself, free of known cancellation.

    `change` returns whole − value in a form that vanishes at the end without cancelling.
    """

    value: sp.Expr | None
    whole: sp.Expr
    change: Callable[[], sp.Expr]


def _part(value: sp.Expr | None, whole: sp.Expr, change: Callable[[], sp.Expr]) -> _Part:
    """Return a part that is its own change where its value is zero."""
    if value is None or value.has(*_NONE):
        return _Part(None, whole, lambda: whole)
    if is_nearly_zero(value):
        whole = change()
        return _Part(sp.S.Zero, whole, lambda: whole)
    return _Part(value, whole, change)


class _Walk:
    """One bottom-up walk; equal subexpressions are visited once."""

    def __init__(self, x: sp.Symbol, place: sp.Expr, end: sp.Expr) -> None:
        self.x, self.place, self.end = x, place, end
        self.is_regular = True
        self._seen: dict[sp.Basic, _Part] = {}

    def visit(self, node: sp.Expr) -> _Part:
        if node not in self._seen:
            self._seen[node] = self._visit(node)
        return self._seen[node]

    def _visit(self, node: sp.Expr) -> _Part:
        if self.x not in node.free_symbols:
            return _Part(node, node, lambda: sp.S.Zero)
        if node == self.x or (node.is_Add and node.is_polynomial(self.x)):
            return self._polynomial(node)
        if isinstance(node, sp.Add):
            return self._sum([self.visit(term) for term in node.args])
        if isinstance(node, sp.Mul):
            return self._product([self.visit(factor) for factor in node.args])
        if isinstance(node, sp.exp):
            return self._exp(self.visit(node.args[0]))
        if isinstance(node, sp.Pow):
            return self._power(node)
        if isinstance(node, sp.log):
            return self._log(self.visit(node.args[0]))
        return self._function(node)

    def _singular(self, whole: sp.Expr) -> _Part:
        self.is_regular = False
        return _Part(None, whole, lambda: whole)

    def _polynomial(self, node: sp.Expr) -> _Part:
        value = node.subs(self.x, self.end)
        moved = sp.expand(node.subs(self.x, self.place))
        change = moved - moved.as_coeff_Add()[0] if value.is_Rational else _moving(moved)
        return _part(value, moved, lambda: _by_powers(change))

    def _sum(self, parts: list[_Part]) -> _Part:
        whole = sp.Add(*(part.whole for part in parts))
        if any(part.value is None for part in parts):
            return _Part(None, whole, lambda: whole)
        value = sp.Add(*(part.value for part in parts))
        return _part(value, whole, lambda: _by_powers(sp.Add(*(part.change() for part in parts))))

    def _product(self, parts: list[_Part]) -> _Part:
        whole = sp.Mul(*(part.whole for part in parts))
        if any(part.value is None for part in parts):
            return _Part(None, whole, lambda: whole)
        return reduce(_times, parts)

    def _exp(self, exponent: _Part) -> _Part:
        whole = sp.exp(exponent.whole)
        if exponent.value is None:
            return self._singular(whole)
        value = sp.exp(exponent.value)
        return _part(value, whole, lambda: value * ExpMinusOne(exponent.change()))

    def _log(self, argument: _Part) -> _Part:
        whole = sp.log(argument.whole, evaluate=not argument.whole.is_Add)
        if argument.value is None or argument.value == 0:
            return self._singular(whole)
        value = argument.value
        return _part(sp.log(value), whole, lambda: LogOnePlus(argument.change() / value))

    def _power(self, node: sp.Pow) -> _Part:
        base, exponent = self.visit(node.base), self.visit(node.exp)
        whole = base.whole**exponent.whole
        power = exponent.whole
        if base.value is None or self.x in node.exp.free_symbols:
            return self._singular(whole)
        if base.value == 0:
            if power.is_Integer and power > 0:
                return _part(sp.S.Zero, whole, lambda: whole)
            return self._singular(whole)
        value = base.value**power

        def change() -> sp.Expr:
            assert base.value is not None
            share = base.change() / base.value
            if power.is_Integer and abs(power) <= _MOST_FACTORS:
                grown = _by_powers(sp.expand((1 + share) ** abs(power) - 1))
                return value * (grown if power > 0 else -grown / (1 + share) ** abs(power))
            return value * ExpMinusOne(power * LogOnePlus(share))

        return _part(value, whole, change)

    def _function(self, node: sp.Expr) -> _Part:
        parts = [self.visit(argument) for argument in node.args]
        whole = node.func(*(part.whole for part in parts))
        values = [part.value for part in parts if part.value is not None]
        if len(values) < len(parts):
            return self._singular(whole)
        value = node.func(*values)
        if value.has(*_NONE) or self._is_branch_point(node, values[0]):
            return self._singular(whole)
        rule = _CHANGES.get(node.func)
        if rule is None:
            return _part(value, whole, lambda: whole - value)
        return _part(value, whole, lambda: rule(values[0], parts[0].change()))

    def _is_branch_point(self, node: sp.Expr, value: sp.Expr) -> bool:
        return isinstance(node, _BRANCHED) and is_nearly_zero(1 - value**2)


def _moving(total: sp.Expr) -> sp.Expr:
    """Return the terms of a sum that depend on the distance."""
    return sp.Add(*(t for t in sp.Add.make_args(total) if DISTANCE in t.free_symbols))


def _by_powers(change: sp.Expr) -> sp.Expr:
    """Return a polynomial of the distance with its lowest power taken out; others as they are."""
    if not change.is_polynomial(DISTANCE):
        return change
    moved = _moving(sp.expand(change))
    if moved == 0:
        return moved
    lowest = min(monomial[0] for monomial in sp.Poly(moved, DISTANCE).monoms())
    return DISTANCE**lowest * sp.expand(moved / DISTANCE**lowest)


def _times(first: _Part, second: _Part) -> _Part:
    assert first.value is not None
    assert second.value is not None
    a, b = first.value, second.value
    whole = first.whole * second.whole
    if a == 0 or b == 0:
        return _part(sp.S.Zero, whole, lambda: whole)
    return _part(a * b, whole, lambda: a * second.change() + first.change() * second.whole)


def _versine(angle: sp.Expr) -> sp.Expr:
    """Return 1 − cos."""
    return 2 * sp.sin(angle / 2) ** 2


def _hyperbolic_versine(angle: sp.Expr) -> sp.Expr:
    """Return cosh − 1."""
    return 2 * sp.sinh(angle / 2) ** 2


# f(a + b) − f(a) for functions of a + b that have it without cancellation.
_CHANGES: dict[type[sp.Basic], Callable[[sp.Expr, sp.Expr], sp.Expr]] = {
    sp.sin: lambda at, by: sp.cos(at) * sp.sin(by) - sp.sin(at) * _versine(by),
    sp.cos: lambda at, by: -sp.sin(at) * sp.sin(by) - sp.cos(at) * _versine(by),
    sp.tan: lambda at, by: sp.sin(by) / (sp.cos(at) * sp.cos(at + by)),
    sp.sinh: lambda at, by: sp.cosh(at) * sp.sinh(by) + sp.sinh(at) * _hyperbolic_versine(by),
    sp.cosh: lambda at, by: sp.sinh(at) * sp.sinh(by) + sp.cosh(at) * _hyperbolic_versine(by),
    sp.tanh: lambda at, by: sp.sinh(by) / (sp.cosh(at) * sp.cosh(at + by)),
}
