"""Interval arithmetic on concrete expressions, infinite ends included."""

from __future__ import annotations

from typing import Any

import mpmath
import sympy as sp
from mpmath import iv

# An exponent beyond this stands for infinity: mpmath would compute log 2 to as many bits.
_HUGE = mpmath.mpf(2) ** 40


# Functions that rise or fall everywhere, with their direction; their ends give their range.
_MONOTONE = {sp.erf: 1, sp.erfc: -1, sp.atan: 1, sp.tanh: 1, sp.asinh: 1}


class EnclosureError(ArithmeticError):
    """The expression holds a function that has no interval form here."""


class Enclosure:
    """The range of a concrete expression over an interval of its one variable.

    Rationals enter exactly, as quotients of intervals; every other constant is computed as an
    interval too, so that a range that excludes 0 is a proof.  The precision is that of
    `mpmath.iv` at the call.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> Enclosure(sp.exp(-x) - 1, x).sign(iv.mpf([1, "inf"]))
    -1
    """

    def __init__(self, expression: sp.Expr, x: sp.Symbol) -> None:
        self._expression, self._x = expression, x
        self._constants: dict[tuple[sp.Basic, int], Any] = {}
        self._values: dict[sp.Basic, Any] = {}
        self._moves: dict[sp.Basic, bool] = {}

    def __call__(self, interval: Any) -> Any:
        """Return an interval that holds every value over `interval`."""
        self._values = {self._x: interval}
        return self._value(self._expression)

    def sign(self, interval: Any) -> int:
        """Return 1 or −1 where the expression keeps that sign on the interval, else 0."""
        value = self(interval)
        return 1 if value.a > 0 else -1 if value.b < 0 else 0

    def _value(self, node: sp.Basic) -> Any:
        if node in self._values:
            return self._values[node]
        if node not in self._moves:
            self._moves[node] = self._x in node.free_symbols
        if self._moves[node]:
            value = self._values[node] = self._compute(node)
            return value
        key = (node, int(iv.prec))
        if key not in self._constants:
            self._constants[key] = self._compute(node)
        return self._constants[key]

    def _compute(self, node: sp.Basic) -> Any:
        if isinstance(node, sp.Rational):
            return iv.mpf(int(node.p)) / int(node.q)
        if isinstance(node, sp.Float):
            return iv.mpf(node._to_mpmath(node._prec))
        if node is sp.pi:
            return iv.mpf(iv.pi)
        if node is sp.E:
            return iv.exp(iv.mpf(1))
        if isinstance(node, sp.Add):
            total = iv.mpf(0)
            for argument in node.args:
                total += self._value(argument)
            return total
        if isinstance(node, sp.Mul):
            product = iv.mpf(1)
            for argument in node.args:
                product *= self._value(argument)
            return product
        if isinstance(node, sp.Pow):
            return self._power(node)
        if isinstance(node, sp.exp):
            return _exp(self._value(node.args[0]))
        if isinstance(node, sp.log):
            return _log(self._value(node.args[0]))
        if isinstance(node, sp.sin):
            return iv.sin(self._value(node.args[0]))
        if isinstance(node, sp.cos):
            return iv.cos(self._value(node.args[0]))
        if node.func in _MONOTONE:
            return _monotone(node.func, self._value(node.args[0]))
        if not node.free_symbols and isinstance(node, sp.Expr):
            return _constant(node)
        raise EnclosureError(f"{node.func.__name__} has no interval form")

    def _power(self, node: sp.Pow) -> Any:
        base, exponent = node.as_base_exp()
        value = self._value(base)
        if exponent.is_Integer:
            whole = int(exponent)
            return value**whole if whole > 0 else 1 / value ** (-whole)
        return _exp(self._value(exponent) * _log(value))


def _exp(value: Any) -> Any:
    low = value.a if value.a > -_HUGE else iv.mpf("-inf")
    high = value.b if value.b < _HUGE else iv.mpf("inf")
    if low.a > _HUGE:
        low = iv.mpf(_HUGE)
    if high.b < -_HUGE:
        high = iv.mpf(-_HUGE)
    return iv.mpf([iv.exp(low).a, iv.exp(high).b])


def _log(value: Any) -> Any:
    if value.b <= 0:
        raise EnclosureError("a logarithm meets negative numbers")
    low = value.a if value.a > 0 else iv.mpf(0)
    return iv.mpf([iv.log(low).a if low.a > 0 else iv.mpf("-inf"), iv.log(value.b).b])


def _monotone(function: type[sp.Function], value: Any) -> Any:
    """Enclose a monotone function by its values at the ends, each with its rounding."""
    evaluate = getattr(mpmath, function.__name__)
    ends = []
    with mpmath.workprec(int(iv.prec) + 20):
        for end in (value.a, value.b):
            point = mpmath.mpf(end.a)
            result = iv.mpf(evaluate(point))
            ends.append(result + abs(result) * iv.mpf([-1, 1]) * iv.mpf(2) ** (5 - int(iv.prec)))
    low, high = ends if _MONOTONE[function] > 0 else ends[::-1]
    return iv.mpf([low.a, high.b])


def _constant(node: sp.Expr) -> Any:
    """Enclose another constant (a gamma value, say) by its value at a higher precision."""
    digits = int(iv.prec) // 3 + 20
    number = node.evalf(digits)
    if not number.is_Float:
        raise EnclosureError(f"{node} has no interval form")
    value = iv.mpf(number._to_mpmath(number._prec))
    slack = abs(value) * iv.mpf(2) ** (-int(iv.prec))
    return value + iv.mpf([-1, 1]) * slack
