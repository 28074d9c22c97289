"""Piecewise polynomials with known kinks, and a quadrature that bears kinks at both ends."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from flint import arb, arb_mat, arb_poly, ctx, fmpq, fmpq_poly

from symdp.errors import AccuracyError
from symdp.oracle.panels import gauss_rule

Function = Callable[[arb], arb]

_MOST_VALUES = 40_000
_SMOOTH_SHARE = 0.25
_GAUSS_HALVINGS = 2


class _Part:
    """A polynomial in (x − centre)·rate on [left, right]."""

    def __init__(self, left: arb, right: arb, polynomial: arb_poly) -> None:
        self.left, self.right, self.polynomial = left, right, polynomial
        self.centre = ((left + right) / 2).mid()
        self.rate = (2 / (right - left)).mid()
        self.width = float(right - left)


class Piecewise:
    """A function that is analytic between its breaks: polynomials on panels, or a formula.

    Parameters
    ----------
    breaks : sequence of arb
        Where kinks may lie.
    parts : sequence of _Part
        Adjacent panels from left to right; empty for a formula.
    formula : callable, optional
        Evaluates the function where there are no panels.
    """

    def __init__(
        self, breaks: Sequence[arb], parts: Sequence[_Part], formula: Function | None = None
    ) -> None:
        self.breaks = list(breaks)
        self._parts = list(parts)
        self._formula = formula
        self._ends = [float(part.right) for part in self._parts]
        self._start = float(self._parts[0].left) if self._parts else 0.0
        self._break_floats = [float(b) for b in self.breaks]

    def __call__(self, x: arb) -> arb:
        """Return the value; beyond the panels, that at the nearest end."""
        if self._formula is not None:
            return self._formula(x)
        near = float(x)
        index = bisect.bisect_left(self._ends, near)
        if index >= len(self._parts) or near < self._start:
            part = self._parts[-1 if index else 0]
            x = part.right if index else part.left
        else:
            part = self._parts[index]
            # A double may have rounded over an end.
            if index > 0 and x < part.left:
                part = self._parts[index - 1]
            elif index + 1 < len(self._parts) and x > part.right:
                part = self._parts[index + 1]
        return part.polynomial((x - part.centre) * part.rate)

    def breaks_between(self, low: arb, high: arb) -> list[arb]:
        """Breaks strictly inside."""
        first = max(bisect.bisect_left(self._break_floats, float(low)) - 1, 0)
        last = bisect.bisect_right(self._break_floats, float(high)) + 1
        return [b for b in self.breaks[first:last] if low < b < high]

    def is_smooth(self, low: arb, high: arb) -> bool:
        """Whether there is neither a break between two points nor a panel far narrower."""
        if self.breaks_between(low, high):
            return False
        if not self._parts:
            return True
        first = bisect.bisect_left(self._ends, float(low))
        last = min(bisect.bisect_left(self._ends, float(high)), len(self._parts) - 1)
        span = float(high - low)
        return all(part.width >= _SMOOTH_SHARE * span for part in self._parts[first : last + 1])


def interpolate(
    function: Function,
    span: tuple[arb, arb],
    breaks: Sequence[arb],
    tolerance: Callable[[arb, arb], arb],
    *,
    order: int,
    unit: float,
) -> Piecewise:
    """Approximate a function on a span to an absolute tolerance, halving panels as needed.

    Parameters
    ----------
    function : callable
        Analytic between the breaks.
    span : (arb, arb)
    breaks : sequence of arb
        Sorted, strictly inside.
    tolerance : callable
        (left, right) → the absolute error that a panel may have.
    order : int
        Coefficients of each polynomial.
    unit : float
        The widest panel to begin with.

    Raises
    ------
    AccuracyError
        If too many values would be needed.
    """
    rule = gauss_rule(order, ctx.prec)
    to_legendre, to_monomial = _transforms(order, ctx.prec)
    waiting: list[tuple[arb, arb]] = []
    for left, right in itertools.pairwise([span[0], *breaks, span[1]]):
        count = max(1, math.ceil(float(right - left) / unit))
        ends = [
            left,
            *(((left + (right - left) * k / count).mid()) for k in range(1, count)),
            right,
        ]
        waiting += itertools.pairwise(ends)
    parts, values = [], 0
    while waiting:
        left, right = waiting.pop()
        values += order
        if values > _MOST_VALUES:
            raise AccuracyError("a convolution needs too many values; ask for fewer digits")
        centre, half = (left + right) / 2, (right - left) / 2
        sampled = arb_mat(order, 1, [function((centre + half * root).mid()) for root, _ in rule])
        coefficients = to_legendre * sampled
        tail = sum((abs(coefficients[k, 0]) for k in range(order - 3, order)), arb(0))
        if tail < tolerance(left, right) or half < abs(centre) * arb(2) ** (12 - ctx.prec):
            monomials = to_monomial * coefficients
            polynomial = arb_poly([monomials[k, 0].mid() for k in range(order)])
            parts.append(_Part(left, right, polynomial))
        else:
            middle = centre.mid()
            waiting += [(left, middle), (middle, right)]
    parts.sort(key=lambda part: part.left.fmpq())
    return Piecewise(breaks, parts)


def integrate_between(
    function: Function, ends: tuple[arb, arb], order: int, digits: float, tolerance: arb
) -> arb:
    """Integrate over an interval, kinks and roots at its ends allowed, to an absolute tolerance.

    Gauss–Legendre on halved intervals where the last Legendre coefficients say that it does,
    else tanh-sinh.
    """
    rule = gauss_rule(order, ctx.prec)
    to_legendre = _transforms(order, ctx.prec)[0]
    total, waiting = arb(0), [(*ends, 0)]
    while waiting:
        a, b, depth = waiting.pop()
        centre, half = (a + b) / 2, (b - a) / 2
        values = [function((centre + half * root).mid()) for root, _ in rule]
        coefficients = to_legendre * arb_mat(order, 1, values)
        # The rule is exact to twice the degree, so the square of the tail would be enough.
        tail = sum((abs(coefficients[k, 0]) for k in range(order - 3, order)), arb(0))
        if tail * half < tolerance:
            total += half * sum((w * v for (_, w), v in zip(rule, values, strict=True)), arb(0))
        elif depth < _GAUSS_HALVINGS:
            middle = centre.mid()
            waiting += [(a, middle, depth + 1), (middle, b, depth + 1)]
        else:
            total += _tanh_sinh(function, a, b, digits, tolerance)
    return total


def _tanh_sinh(function: Function, a: arb, b: arb, digits: float, tolerance: arb) -> arb:
    """The rule with every second node is the yardstick: its error is the root, taken as ^(2/3)."""
    total, waiting = arb(0), [(a, b, 0)]
    while waiting:
        a, b, depth = waiting.pop()
        whole, coarse = arb(0), arb(0)
        width = b - a
        for index, (left, right, weight) in enumerate(_nodes(round(digits), ctx.prec)):
            x = a + width * left if left < right else b - width * right
            term = weight * function(x.mid())
            whole += term
            if index % 2 == 0:
                coarse += 2 * term
        whole, coarse = whole * width, coarse * width
        scale = abs(whole).max(tolerance)
        if (abs(whole - coarse) / scale) ** 1.5 < tolerance / scale or depth > 40:
            total += whole
        else:
            middle = ((a + b) / 2).mid()
            waiting += [(a, middle, depth + 1), (middle, b, depth + 1)]
    return total


@lru_cache(maxsize=16)
def _nodes(digits: int, precision: int) -> tuple[tuple[arb, arb, arb], ...]:
    """Tanh-sinh nodes on [0, 1] as distances from both ends, with weights."""
    with ctx.workprec(precision):
        reach = math.asinh((digits * math.log(10) + 2) / math.pi)
        half_count = int(2 * digits**0.95) + 6
        half_count += half_count % 2
        step = arb(reach) / half_count
        nodes = []
        for k in range(-half_count, half_count + 1):
            u = k * step
            s = arb.pi() * u.sinh()
            left, right = 1 / (1 + (-s).exp()), 1 / (1 + s.exp())
            nodes.append(
                (left.mid(), right.mid(), (step * arb.pi() * u.cosh() * left * right).mid())
            )
        return tuple(nodes)


@lru_cache(maxsize=16)
def _transforms(order: int, precision: int) -> tuple[arb_mat, arb_mat]:
    """Values at Gauss–Legendre nodes → Legendre coefficients → monomial coefficients."""
    rule = gauss_rule(order, precision)
    legendre = [fmpq_poly([1]), fmpq_poly([0, 1])]
    for k in range(1, order - 1):
        step = fmpq_poly([0, fmpq(2 * k + 1, k + 1)]) * legendre[k]
        legendre.append(step - fmpq(k, k + 1) * legendre[k - 1])
    with ctx.workprec(precision + 2 * order):
        polynomials = [arb_poly(polynomial) for polynomial in legendre]
        to_legendre = arb_mat(
            [
                [arb(2 * k + 1) / 2 * weight * polynomials[k](root) for root, weight in rule]
                for k in range(order)
            ]
        )
        to_monomial = arb_mat(
            [
                [
                    arb(legendre[k][power]) if power < legendre[k].length() else arb(0)
                    for k in range(order)
                ]
                for power in range(order)
            ]
        )
    return to_legendre, to_monomial
