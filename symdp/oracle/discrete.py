"""δ(ε) of losses with atoms alone: every sum of a short list, or one period of a lattice.

A list's sums are enumerated in two halves, whose pairs are added by cumulative sums: exact but for
the atoms left out, whose share is below the digits asked.

On a lattice a + kD the contour's integrand has the period 2π/D, for e^{−εz}/(z(1+z)) summed over
the lattice is a difference of two geometric series,

    δ = (D/2π) ∫_{−π/D}^{π/D} M(z) [e^{−zs}/(1 − e^{−zD}) − e^{ε−(1+z)s}/(1 − e^{−(1+z)D})] dy

with z = t + iy and s the first lattice point not below ε; in the other strips the same integral is
what the contour's is there.  The trapezoidal rule of N points over one period adds terms that fall
geometrically in N, so doubling N shows them.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import acb, arb, ctx

from symdp.emit.exact import LN10
from symdp.errors import AccuracyError
from symdp.interrupt import T
from symdp.oracle.contour import Saddle, Set, Steps, power_sums

_MOST_SPACINGS = 10**6  # of a lattice, between the losses of one step
_MOST_POINTS = 200_000  # of the rule over one period
_MOST_SUMS = 150_000  # of one half of the steps
_BLOCK = 60  # places of the period are taken up to the square of this at a time
_MOST_DOUBLINGS = 40  # of the number of points in a period
_Atoms = list[tuple[arb, arb]]  # masses and losses


def weighted_atoms(steps: Steps, tilt: float, digits: float) -> Set:
    """Return the atoms of every step that count for so many digits at a tilt, with the counts."""
    return [(law.nodes(arb(tilt), digits + 4, arb(0), 0), count) for law, count in steps]


def has_few_sums(steps: Set) -> bool:
    """Whether the sums of each half of the steps are few enough to enumerate."""
    sizes = [(len(nodes.losses), count) for nodes, count in steps]
    return all(
        math.prod(math.comb(n + k - 1, k) for n, k in half) <= _MOST_SUMS for half in _halved(sizes)
    )


def enumerate_sums(steps: Set, epsilon: arb, tilt: float) -> arb:
    """Return Σ (1 − e^{ε−s})⁺ over all sums s of losses, with their exact probabilities.

    For a negative tilt, at which the atoms were chosen, Σ min(1, e^{ε−s}) is returned.
    """
    lists = [
        (
            [
                ((nodes.height - tilt * loss).exp() * weight, loss)
                for weight, loss in zip(nodes.weights, nodes.losses, strict=True)
            ],
            count,
        )
        for nodes, count in steps
    ]
    left, right = (_convolved(half) for half in _halved(lists))
    right.sort(key=lambda atom: atom[1].mid().fmpq())
    losses = [loss for _, loss in right]
    floats = [float(loss) for loss in losses]
    # Tails Σ w and Σ w e^{−loss} from each atom upwards, and Σ w below; all terms are positive.
    plain, shifted, below = [arb(0)], [arb(0)], [arb(0)]
    for mass, loss in reversed(right):
        plain.append(plain[-1] + mass)
        shifted.append(shifted[-1] + mass * (-loss).exp())
    for mass, _ in right:
        below.append(below[-1] + mass)
    total = arb(0)
    for mass, loss in left:
        threshold = epsilon - loss
        index = max(bisect.bisect_left(floats, float(threshold)) - 2, 0)
        while index < len(losses) and not losses[index].mid() > threshold.mid():
            index += 1
        above = len(losses) - index
        charged = threshold.exp() * shifted[above]
        total += mass * (below[index] + charged if tilt < 0 else plain[above] - charged)
    return total


def _halved(counted: Sequence[tuple[T, int]]) -> tuple[list[tuple[T, int]], ...]:
    return [(n, (k + 1) // 2) for n, k in counted], [(n, k // 2) for n, k in counted]


def _convolved(lists: Sequence[tuple[_Atoms, int]]) -> _Atoms:
    """All sums of the given numbers of atoms of each list, with their probabilities."""
    result: _Atoms = [(arb(1), arb(0))]
    for atoms, count in lists:
        own = _multinomial(atoms, count)
        result = [(p * q, a + b) for (p, a), (q, b) in itertools.product(result, own)]
    return result


def _multinomial(atoms: _Atoms, count: int) -> _Atoms:
    """The law of a sum of `count` draws, atom by atom."""
    partial = [(count, arb(math.factorial(count)), arb(0))]
    for index, (mass, loss) in enumerate(atoms):
        is_last = index == len(atoms) - 1
        shares = [mass**k / math.factorial(k) for k in range(count + 1)]
        partial = [
            (left - k, weight * shares[k], total + k * loss)
            for left, weight, total in partial
            for k in ((left,) if is_last else range(left + 1))
        ]
    return [(weight, total) for _, weight, total in partial]


@dataclass(frozen=True)
class SumGrid:
    """All sums of losses lie on origin + k·spacing."""

    origin: arb
    spacing: arb


def find_lattice(steps: Set) -> SumGrid | None:
    """Return the coarsest lattice that holds every loss to the working precision, if any.

    Agreement to two thirds of the working precision, at more than 40 digits, is taken for equality.
    """
    origin, spacing, scale = arb(0), arb(0), arb(1)
    for nodes, count in steps:
        first = nodes.losses[0]
        origin += count * first
        for loss in nodes.losses[1:]:
            scale = scale.max(abs(loss - first))
            spacing = _common(spacing, abs(loss - first).mid(), scale)
            if spacing * _MOST_SPACINGS < scale:
                return None
    return SumGrid(origin.mid(), spacing.mid() if spacing > 0 else arb(1))


def _common(one: arb, other: arb, scale: arb) -> arb:
    """Euclid's algorithm on reals, remainders below two thirds of the precision being zero."""
    small = scale * arb(2) ** (-(2 * ctx.prec) // 3)
    a, b = max(one, other), min(one, other)
    while b > small:
        nearest = ((a / b).mid() + 0.5).floor()
        a, b = b, abs(a - nearest * b).mid()
        if a * _MOST_SPACINGS < scale:
            break
    return a


def sum_lattice(steps: Set, lattice: SumGrid, epsilon: arb, saddle: Saddle, digits: float) -> arb:
    """Return the contour's integral in the strip of the saddle, by the rule over one period.

    Raises
    ------
    AccuracyError
        If too many points would be needed.
    """
    tilt, spacing = arb(saddle.tilt), lattice.spacing
    start = lattice.origin + ((epsilon - lattice.origin) / spacing).mid().ceil() * spacing
    exponent = sum((n * (nodes.height + nodes.total.log()) for nodes, n in steps), arb(0))

    def kernel(z: acb) -> acb:
        first = (-z * start).exp() / -(-z * spacing).expm1()
        second = (epsilon - (1 + z) * start).exp() / -(-(1 + z) * spacing).expm1()
        return first - second

    def mean(points: int) -> arb:
        """The mean of the integrand over so many equidistant places of a period."""
        step = 2 * arb.pi() / (spacing * points)
        total, index, half = arb(0), 0, points // 2
        while index <= half:
            size = min(_BLOCK, math.isqrt(half - index) + 1)
            values = [kernel(acb(tilt, (index + k) * step)) for k in range(size * size)]
            for nodes, count in steps:
                sums, own = power_sums(nodes, index * step, step, size), nodes.total
                values = [v * (m / own) ** count for v, m in zip(values, sums, strict=True)]
            for value in values[: half + 1 - index]:
                total += value.real if index in (0, points - index) else 2 * value.real
                index += 1
        return total / points * exponent.exp()

    deviation = math.sqrt(saddle.curvature) / float(spacing)
    pole = min(abs(saddle.tilt), abs(1 + saddle.tilt)) * float(spacing)
    points = 2 * int(2 + deviation * math.sqrt(LN10 * digits) + 1 / pole)
    before = arb(0)
    for _ in range(_MOST_DOUBLINGS):
        if points > _MOST_POINTS:
            raise AccuracyError("a lattice sum needs too many points; ask for fewer digits")
        value = mean(points)
        if abs(value - before) < abs(value) * arb(10) ** -arb(digits / 2 + 4):
            return value
        before, points = value, 2 * points
    raise AccuracyError("the sum over a lattice did not settle; ask for fewer digits")
