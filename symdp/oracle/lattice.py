"""δ(ε) where every loss lies on one lattice a + kD: the contour's integrand is then periodic.

Summed over a lattice, exp(−εz)/(z(1+z)) becomes a difference of two geometric series,

    δ = (D/2π) ∫_{−π/D}^{π/D} M(z) [e^{−zs}/(1 − e^{−zD}) − e^{ε−(1+z)s}/(1 − e^{−(1+z)D})] dy

with z = t + iy and s the first lattice point not below ε; in the other strips the same integral
is what the contour's is there.  The trapezoidal rule over one period converges geometrically.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import acb, arb, ctx

from symdp.errors import AccuracyError
from symdp.oracle.contour import power_sums
from symdp.oracle.law import Nodes
from symdp.oracle.panels import as_float
from symdp.oracle.saddle import Saddle, Steps

_LN10 = math.log(10)
_MOST_SPACINGS = 10**6
_MOST_POINTS = 200_000
_WHOLE_PERIOD = 20_000


@dataclass(frozen=True)
class Lattice:
    """All sums of losses lie on origin + k·spacing."""

    origin: arb
    spacing: arb


def find_lattice(steps: Steps, tilt: float, digits: float) -> Lattice | None:
    """Return the coarsest lattice that holds every loss to the working precision, if any.

    Losses that count for so many digits at the tilt are looked at.  Agreement to two thirds of
    the working precision, at more than 40 digits, is taken for equality.
    """
    origin, spacing, scale = arb(0), arb(0), arb(1)
    for law, count in steps:
        losses = law.nodes(arb(tilt), digits, arb(0), 0).losses
        first = losses[0]
        origin += count * first
        for loss in losses[1:]:
            scale = scale.max(abs(loss - first))
            spacing = _common(spacing, abs(loss - first).mid(), scale)
            if spacing * _MOST_SPACINGS < scale:
                return None
    if not spacing > 0:
        spacing = arb(1)
    return Lattice(origin.mid(), spacing.mid())


def _common(one: arb, other: arb, scale: arb) -> arb:
    """Euclid's algorithm on reals, remainders below two thirds of the precision being zero."""
    small = scale * arb(2) ** (-(2 * ctx.prec) // 3)
    a, b = max(one, other), min(one, other)
    while b > small:
        quotient = (a / b).mid()
        nearest = (quotient + 0.5).floor()
        a, b = b, abs(a - nearest * b).mid()
        if a * _MOST_SPACINGS < scale:
            break
    return a


def sum_lattice(steps: Steps, lattice: Lattice, epsilon: arb, saddle: Saddle, digits: float) -> arb:
    """Return the contour's integral in the strip of the saddle, by the rule over one period.

    Raises
    ------
    AccuracyError
        If too many points would be needed.
    """
    tilt = arb(saddle.tilt)
    largest = math.log10(max(count for _, count in steps))
    nodes = [(law.nodes(tilt, digits + largest + 4, arb(0), 0), n) for law, n in steps]
    steps_up = ((epsilon - lattice.origin) / lattice.spacing).mid().ceil()
    start = lattice.origin + steps_up * lattice.spacing
    rule = _Rule(nodes, tilt, epsilon, lattice.spacing, start, digits)
    deviation = math.sqrt(saddle.curvature) / float(lattice.spacing)
    points = 2 * int(2 + deviation * math.sqrt(_LN10 * digits) + 1 / abs(rule.pole))
    before = rule.apply(points)
    for _ in range(40):
        points *= 2
        value = rule.apply(points)
        if abs(value - before) < abs(value) * arb(10) ** -arb(digits / 2 + 4):
            return value
        before = value
    raise AccuracyError("the sum over a lattice did not settle; ask for fewer digits")


@dataclass(frozen=True)
class _Rule:
    nodes: Sequence[tuple[Nodes, int]]
    tilt: arb
    epsilon: arb
    spacing: arb
    start: arb
    digits: float

    @property
    def pole(self) -> float:
        """Distance of the line from the nearer pole, in units of 1/D."""
        near = min(abs(float(self.tilt)), abs(1 + float(self.tilt)))
        return near * float(self.spacing)

    def apply(self, points: int) -> arb:
        """The mean of the integrand over `points` equidistant places of a period, times D/D."""
        step = 2 * arb.pi() / (self.spacing * points)
        small = arb(10) ** -arb(self.digits + 4)
        half, index, size, quiet = points // 2, 0, 8, 0
        total, largest = arb(0), arb(0)
        while index <= half:
            for value in self._block(index * step, step, size):
                if index > half:
                    break
                total += value.real if index in (0, points - index) else 2 * value.real
                modulus = abs(value).upper()
                largest = largest.max(modulus)
                quiet = quiet + 1 if modulus * (half + 1) < largest * small else 0
                index += 1
            if points > _WHOLE_PERIOD and quiet > 10 + index // 4:
                self._check_rest(largest * small)
                break
            if index > _MOST_POINTS:
                raise AccuracyError("a lattice sum needs too many points; ask for fewer digits")
            size = min(size + 4, 60)
        return total / points * self._size()

    def _size(self) -> arb:
        return sum(
            (n * (nodes.height + nodes.total.log()) for nodes, n in self.nodes), arb(0)
        ).exp()

    def _block(self, first: arb, step: arb, size: int) -> list[acb]:
        values = [self._kernel(acb(self.tilt, first + k * step)) for k in range(size * size)]
        for nodes, count in self.nodes:
            total = nodes.total
            sums = power_sums(nodes, first, step, size)
            values = [v * (m / total) ** count for v, m in zip(values, sums, strict=True)]
        return values

    def _kernel(self, z: acb) -> acb:
        first = (-z * self.start).exp() / -(-z * self.spacing).expm1()
        second = (self.epsilon - (1 + z) * self.start).exp() / -(-(1 + z) * self.spacing).expm1()
        return first - second

    def _check_rest(self, small: arb) -> None:
        """Look at simple fractions of the period, where an almost finer lattice would show."""
        places = sorted({p / q for q in range(2, 41) for p in range(1, q // 2 + 1)})
        for place in places:
            y = 2 * arb.pi() / self.spacing * arb(place)
            value = self._block(y, arb(0), 1)[0]
            if as_float(abs(value).upper().log()) > as_float(small.log()):
                raise AccuracyError("a lattice sum revives within its period; ask for fewer digits")
