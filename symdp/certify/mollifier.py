"""What a smooth cut-off of the line changes, whatever the characteristic function does beyond it.

The terms times c(y/T), c smooth and 0 from 1 on, add up to E (g ∗ κ)(X), X = S − ε, of the payoff g
whose transform is 1/(z(1 + z)), z = t + iy, and the transform κ of c(y/T).  As that is the integral
of 1/(z + s)² over 0 < s < 1, its m-th derivative is at most (m + 1)!/|y|^{m+2} for every t.  With
c = 1 up to ½, integrals over |y| > T/2 of (c(y/T) − 1)/(z(1 + z)), and by parts of its fourth
derivative, bound

    |(g ∗ κ − g)(x)| ≤ (A/T) min(1, (b/T|x|)⁴) ≤ (A/T) m(Tx/b),    A = 0.44, b = 9.1,

with m(u) = Σ aⱼ (sin(u − jπ/3)/(u − jπ/3))⁴ over |j| ≤ 2, whose transform is 0 from 4 on.  So the
mean of the right hand side is a sum over the same nodes: about how much lies within b/T of ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import arb

from symdp.law.step import Array

_HEIGHT, _WIDTH = 0.44, 9.1  # A and b
_MIDDLE, _NEXT, _OUTER = 0.9, 0.6, 0.3  # the aⱼ
LARGEST = 5.7  # of the window: 2π/3 times the sum of the aⱼ is 5.65…
ROUNDED = 1e-11  # what doubles may be off by, relative to these and to 1


@dataclass(frozen=True)
class Mollifier:
    """A cut-off at T.

    Attributes
    ----------
    reach
        T, exactly.
    """

    reach: float

    def weights(self, y: Array) -> tuple[Array, Array]:
        """Return c(y/T), and the transform of m at by/T, to `ROUNDED`/4."""
        s = np.clip(2.0 - 2.0 * (y / self.reach), 0.0, 1.0)
        cut = s**4 * (35.0 - 84.0 * s + 70.0 * s**2 - 20.0 * s**3)
        v = _WIDTH * (y / self.reach)
        x = 0.5 * v
        spline = np.where(
            x < 1.0, 1.0 - 1.5 * x**2 + 0.75 * x**3, 0.25 * np.maximum(2.0 - x, 0.0) ** 3
        )
        turned = (math.pi / 3.0) * v
        waves = _MIDDLE + 2.0 * (_NEXT * np.cos(turned) + _OUTER * np.cos(2.0 * turned))
        return np.asarray(cut), np.asarray((2.0 * math.pi / 3.0) * spline * waves)

    def weights_at(self, y: arb) -> tuple[arb, arb]:
        """Enclose both at one y ≥ 0."""
        s = (2 - 2 * (y / self.reach)).max(arb(0)).min(arb(1))
        cut = s**4 * (35 - 84 * s + 70 * s**2 - 20 * s**3)
        v = arb(_WIDTH) * (y / self.reach)
        x = v / 2
        if x < 1:
            spline = 1 - 3 * x**2 / 2 + 3 * x**3 / 4
        elif x >= 1:
            spline = (2 - x).max(arb(0)) ** 3 / 4
        else:
            spline = (1 - 3 * x**2 / 2 + 3 * x**3 / 4).union((2 - x).max(arb(0)) ** 3 / 4)
        turned = arb.pi() / 3 * v
        waves = arb(_MIDDLE) + 2 * (_NEXT * turned.cos() + _OUTER * (2 * turned).cos())
        return cut, 2 * arb.pi() / 3 * spline * waves

    def bound(self, mass: arb) -> arb:
        """Bound what the cut-off changed, given the sum of Re Φ times the window."""
        return arb((arb(_HEIGHT) * arb(_WIDTH) / arb(self.reach) ** 2 * mass.max(arb(0))).upper())


def enough(mass: float, allowed: float) -> float:
    """Return how far to go, given about the sum of |Φ| near 0."""
    return math.sqrt(_HEIGHT * _WIDTH * LARGEST * mass / allowed)
