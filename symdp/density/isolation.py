"""Isolation of the real roots of a concrete function, by interval arithmetic with infinite ends."""

from __future__ import annotations

from typing import Any

import mpmath
import sympy as sp
from flint import arb, ctx
from mpmath import iv

from symdp.density.normal_form import exponential_terms, tidy_base
from symdp.density.signs import exponential_part, sign_of

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
    """Enclose a monotone function by balls around its values at the ends."""
    low, high = (value.a, value.b) if _MONOTONE[function] > 0 else (value.b, value.a)
    return iv.mpf([_value_at(function, low)[0], _value_at(function, high)[1]])


def _value_at(function: type[sp.Function], end: Any) -> tuple[Any, Any]:
    """Bounds of a function at a point, its limit at an infinite one."""
    point, name = mpmath.mpf(end.a), function.__name__
    if mpmath.isinf(point):
        limit = iv.mpf(getattr(mpmath, name)(point))
        return limit.a, limit.b
    with ctx.workprec(int(iv.prec) + 20):
        ball = getattr(arb(point), name)()
        ends = ((int(m), int(e)) for m, e in (ball.lower().man_exp(), ball.upper().man_exp()))
        low, high = (iv.mpf(m) * iv.mpf(2) ** e for m, e in ends)
    return low.a, high.b


def _constant(node: sp.Expr) -> Any:
    """Enclose another constant (a gamma value, say) by its value at a higher precision."""
    digits = int(iv.prec) // 3 + 20
    number = node.evalf(digits)
    if not number.is_Float:
        raise EnclosureError(f"{node} has no interval form")
    value = iv.mpf(number._to_mpmath(number._prec))
    slack = abs(value) * iv.mpf(2) ** (-int(iv.prec))
    return value + iv.mpf([-1, 1]) * slack


_BITS = 64  # of intervals while roots are looked for
_FINE_BITS = 320  # while they are refined
_FINE = 2**200  # denominator of a root's bracket
_REACH = 40  # octaves of a ray looked at; beyond, the leading term decides
_MOST_ROOTS = 128  # of one expression
_MOST_WORK = 60_000  # steps times nodes of the expression: a second or two
_LEAST_STEPS = 200  # for an expression however long
_DEPTH = 60  # halvings of an interval


class IsolationError(ArithmeticError):
    """The roots could not all be isolated."""


def isolated_roots(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> tuple[sp.Expr, ...]:
    """Return rationals within 2^−200 (relative) of every simple root of a concrete function.

    Each interval is bisected until its range, or that of the derivative, excludes 0.  Towards an
    infinite end stretches double in length until the rest of the line as a whole is seen to hold
    no root; where even |x| > 2^40 stays undecided, no root is assumed there.
    """
    balanced = _balanced(expression, x)
    precision = iv.prec
    try:
        iv.prec = _BITS
        search = _Search(balanced, x)
        search.cover(lower, upper)
        iv.prec = _FINE_BITS
        return tuple(_refine(search, low, high) for low, high in search.brackets)
    except EnclosureError as error:
        raise IsolationError(str(error)) from error
    finally:
        iv.prec = precision


def _balanced(expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Divide Σ rᵢ(x) exp(aᵢ(x)) by one of its exponentials, and write it with few x.

    Otherwise all terms of a sum of Gaussians shrink together far out, and hide the sign.
    """
    terms: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(expression):
        rest, exponent = exponential_part(term)
        exponent = sp.expand(exponent)
        terms[exponent] = terms.get(exponent, sp.S.Zero) + rest
    leader = None
    for exponent in terms:
        gap = sp.S.Zero if leader is None else sp.expand(exponent - leader)
        rises = gap.is_polynomial(x) and sp.degree(gap, x) > 0 and sign_of(sp.LC(gap, x)) == 1
        if leader is None or rises:
            leader = exponent
    total = sp.S.Zero
    for exponent, rest in terms.items():
        parts = exponential_terms(sp.exp(sp.expand(exponent - leader)), x)
        factor = tidy_base(sp.exp(exponent - leader) + 1, x) - 1 if parts else sp.S.One
        total += sp.factor_terms(rest) * factor
    return total


def _ball(low: sp.Rational, high: sp.Rational) -> Any:
    left, right = (iv.mpf(int(end.p)) / int(end.q) for end in (low, high))
    return iv.mpf([left.a, right.b])


def _rational(end: sp.Expr) -> sp.Rational:
    if end.is_Rational:
        return end
    return sp.Rational(sp.floor(end.evalf(90) * _FINE), _FINE)


class _Search:
    """Bisection that keeps a bracket around every simple root."""

    def __init__(self, expression: sp.Expr, x: sp.Symbol) -> None:
        self.function = Enclosure(expression, x)
        self.slope = Enclosure(sp.diff(expression, x), x)
        self.brackets: list[tuple[sp.Rational, sp.Rational]] = []
        self.steps = 0
        size = sum(1 for _ in sp.preorder_traversal(expression))
        self.most_steps = max(_MOST_WORK // size, _LEAST_STEPS)

    def cover(self, lower: sp.Expr, upper: sp.Expr) -> None:
        """Examine the whole of (lower, upper)."""
        if lower is not -sp.oo and upper is not sp.oo:
            self.examine(_rational(lower), _rational(upper), 0)
            return
        # An odd start keeps roots at 0 or at whole numbers off the ends of the stretches.
        start = sp.Rational(-377, 1024)
        if upper is sp.oo:
            self.cover_ray(start if lower is -sp.oo else _rational(lower), 1)
        if lower is -sp.oo:
            self.cover_ray(start if upper is sp.oo else _rational(upper), -1)

    def cover_ray(self, start: sp.Rational, direction: int) -> None:
        """Examine start + direction·(0, ∞) in stretches that double."""
        near = sp.S.Zero
        for k in range(-2, _REACH):
            end = _ball(start + direction * near, start + direction * near)
            rest = [end.a, iv.inf] if direction > 0 else [-iv.inf, end.b]
            if self.function.sign(iv.mpf(rest)):
                return
            far = sp.Rational(4099, 4096) * sp.Integer(2) ** k
            low, high = sorted((start + direction * near, start + direction * far))
            self.examine(low, high, 0)
            near = far

    def examine(self, low: sp.Rational, high: sp.Rational, depth: int) -> None:
        """Find the roots in (low, high)."""
        self.steps += 1
        if self.steps > self.most_steps or len(self.brackets) > _MOST_ROOTS:
            raise IsolationError("there are too many, perhaps infinitely many")
        ball = _ball(low, high)
        if self.function.sign(ball):
            return
        if self.slope.sign(ball):
            ends = [self.function.sign(_ball(end, end)) for end in (low, high)]
            if ends[0] and ends[1]:
                if ends[0] != ends[1]:
                    self.brackets.append((low, high))
                return
        if depth > _DEPTH:
            raise IsolationError(f"near {sp.N(low, 6)} intervals cannot tell whether there is one")
        # An uneven cut keeps simple rationals, where symmetric functions vanish, off the ends.
        cut = low + (high - low) * sp.Rational(503, 1024)
        self.examine(low, cut, depth + 1)
        self.examine(cut, high, depth + 1)


def _refine(search: _Search, low: sp.Rational, high: sp.Rational) -> sp.Rational:
    """Shrink a bracket to 2^−200 of its size: interval Newton steps, bisection where they stall."""
    left = search.function.sign(_ball(low, low))
    scale = max(abs(low), abs(high))
    while high - low > scale / _FINE:
        middle = _dyadic((low + high) / 2)
        value = search.function(_ball(middle, middle))
        if value.a <= 0 <= value.b:
            return middle
        step = _ball(middle, middle) - value / search.slope(_ball(low, high))
        near, far = (_exact(end) for end in step._mpi_)
        if near is not None and far is not None and 4 * (far - near) < high - low:
            low, high = max(low, near), min(high, far)
        elif (value.a > 0) == (left > 0):
            low = middle
        else:
            high = middle
    return _dyadic((low + high) / 2)


def _dyadic(value: sp.Rational) -> sp.Rational:
    return sp.Rational(sp.floor(value * _FINE**2), _FINE**2)


def _exact(number: Any) -> sp.Rational | None:
    """Return a raw mpmath number as a rational, None where it is infinite."""
    sign, mantissa, exponent, _ = number
    if not mantissa and exponent:
        return None
    signed = -int(mantissa) if sign else int(mantissa)
    return sp.Rational(signed) * sp.Integer(2) ** int(exponent)
