"""δ(ε) by mpmath alone, from the definition or along a line: what tests hold proofs against.

One step is a quadrature of P and Q (`symdp.page.independent`, which shares no code with what it
judges).  Of several, the integral of M(z)ⁿe^{−εz}/(z(1 + z)) over Re z = t is a trapezoidal sum of
M by Gauss's rule between marks; with a K in closed form that sum is all there is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import mpmath

from symdp.page.independent import cgf, delta

__all__ = ["cgf", "composed", "delta", "moment", "of_lists"]


def composed(
    moments: Sequence[tuple[Callable[[Any], Any], int]], epsilon: Any, tilt: Any, digits: int = 20
) -> Any:
    """Return δ(ε) for M at complex z of each step, with counts, for a tilt > 0 of the domain."""
    with mpmath.workdps(digits + 15):
        e, t, goal = mpmath.mpf(epsilon), mpmath.mpf(tilt), mpmath.mpf(10) ** -(digits + 5)

        def term(z: Any) -> Any:
            value = mpmath.exp(-e * z) / (z * (1 + z))
            for own, count in moments:
                value *= own(z) ** count
            return value.real

        def total(step: Any) -> Any:
            whole, k, quiet = term(t), 1, 0
            while quiet < 12:
                value = 2 * term(mpmath.mpc(t, k * step))
                quiet = quiet + 1 if abs(value) < goal * abs(whole) else 0
                whole, k = whole + value, k + 1
            return whole * step / (2 * mpmath.pi)

        # Aliases fall as e^{−2πt/h} and by Chernoff's bound beyond the mean: halving h shows them.
        step, before = t / 2, mpmath.mpf(0)
        while True:
            value = total(step)
            if abs(value - before) < mpmath.mpf(10) ** -digits * abs(value):
                return value
            step, before = step / 2, value


def moment(
    p: Callable[[Any], Any], loss: Callable[[Any], Any], marks: Sequence[float], order: int = 60
) -> Callable[[Any], Any]:
    """Return z ↦ ∫ p e^{zℓ} by Gauss–Legendre's rule between marks, at the digits in force."""
    nodes = _rule(order, mpmath.mp.prec)
    places = []
    for low, high in itertools.pairwise(marks):
        centre, half = (mpmath.mpf(low) + high) / 2, (mpmath.mpf(high) - low) / 2
        places += [(half * w * p(centre + half * x), loss(centre + half * x)) for x, w in nodes]
    return lambda z: mpmath.fsum(w * mpmath.exp(z * value) for w, value in places)


@lru_cache(maxsize=8)
def _rule(order: int, _: int) -> list[tuple[Any, Any]]:
    """Gauss–Legendre nodes and weights by Newton's method on the three-term recurrence."""
    nodes = []
    for number in range(order):
        x, slope = (
            mpmath.cos(mpmath.pi * (number + mpmath.mpf(3) / 4) / (order + mpmath.mpf(1) / 2)),
            0,
        )
        for _ in range(8):
            before, value = mpmath.mpf(1), x
            for n in range(2, order + 1):
                before, value = value, ((2 * n - 1) * x * value - (n - 1) * before) / n
            slope = order * (x * value - before) / (x**2 - 1)
            x -= value / slope
        nodes.append((x, 2 / ((1 - x**2) * slope**2)))
    return nodes


def of_lists(p: Sequence[Any], q: Sequence[Any], count: int, epsilon: Any, digits: int = 20) -> Any:
    """Return δ(ε) of a finite mechanism by adding up all sums of its losses."""
    with mpmath.workdps(digits + 15):
        laws = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(p, q, strict=True)]
        sums = [(count, mpmath.mpf(mpmath.factorial(count)), mpmath.mpf(1))]
        for index, (a, b) in enumerate(laws):
            last = index == len(laws) - 1
            sums = [
                (left - k, weight * a**k / mpmath.factorial(k), other * (b / a) ** k)
                for left, weight, other in sums
                for k in ((left,) if last else range(left + 1))
            ]
        growth = mpmath.exp(mpmath.mpf(epsilon))
        return mpmath.fsum(w * max(1 - growth * ratio, 0) for _, w, ratio in sums)
