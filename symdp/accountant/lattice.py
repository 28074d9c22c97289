"""Losses that live on a lattice a + Δℤ: the characteristic function repeats, so one period does.

Two-point lists, integer noise with a linear loss, and every sum of copies of one of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from symdp.accountant.line import Kernel
from symdp.numeric.elementary import Complex
from symdp.numeric.law import LossLaw
from symdp.numeric.step import Array
from symdp.numeric.total import SumLaw

MAX_POINTS = 1 << 16
_TOLERANCE = 1e-11


@dataclass(frozen=True)
class Lattice:
    """The set offset + spacing·ℤ that the total loss is certain to lie in.

    Both are kept beyond double precision: n steps multiply their rounding by n, and ε lies between
    two points of the lattice at a distance that has to be right.
    """

    offset: Fraction
    spacing: Fraction


def find_lattice(law: SumLaw) -> Lattice | None:
    """Return the lattice of a sum of purely atomic losses, or None where there is none."""
    spacing, offset, widest = math.inf, Fraction(0), Fraction(0)
    for part, count in law.parts:
        points = _points(part)
        if points is None:
            return None
        low, high = part.precise_ends
        offset += count * low
        widest = max(widest, high - low)
        gaps = np.diff(points)
        scale = float(np.abs(points).max())
        for gap in gaps[gaps > _TOLERANCE * max(scale, 1e-300)]:
            spacing = _common_measure(spacing, float(gap))
            if spacing < 1e-6 * scale:
                return None
    if not math.isfinite(spacing):
        return None
    # Differences of neighbours are rounded as much as the longest one, which counts many of them.
    return Lattice(offset, widest / round(float(widest) / spacing))


def _points(law: LossLaw) -> Array | None:
    """Return the loss's values, sorted, if it has no continuous part and not too many of them."""
    pieces = law.step.pieces
    if any(not (p.flat or p.integer) for p in pieces):
        return None
    loss = np.unique(law.base.loss)
    return loss if 0 < loss.size <= MAX_POINTS else None


def _common_measure(a: float, b: float) -> float:
    """Return the largest number that divides both, by Euclid's algorithm with a tolerance."""
    if math.isinf(a):
        return b
    large, small = max(a, b), min(a, b)
    floor = 1e-7 * small
    while small > floor:
        rest = math.remainder(large, small)
        large, small = small, abs(rest)
    return large


def lattice_kernel(lattice: Lattice, epsilon: float) -> Kernel:
    """Return G(z) = Δ Σ_{λ>ε} e^{−z(λ−ε)}(1 − e^{ε−λ}) over the lattice, in closed form.

    The factor Δ makes the integral over one period 2π/Δ of e^{F(z)} G(z), divided by 2π, equal δ.

    With r the distance from ε up to the next point, the two geometric series combine to
    e^{−zr}[(1 − e^{−r}) + e^{−zΔ}(e^{−r} − e^{−Δ})]/((1 − e^{−zΔ})(1 − e^{−(z+1)Δ})).
    """
    spacing = float(lattice.spacing)
    distance = float((lattice.offset - Fraction(epsilon)) % lattice.spacing)

    def kernel(z: Complex) -> Complex:
        first = -math.expm1(-distance)
        second = -math.exp(-distance) * math.expm1(distance - spacing)
        numerator = np.exp(-z * distance) * (first + second * np.exp(-z * spacing))
        return np.asarray(
            spacing * numerator / (np.expm1(-z * spacing) * np.expm1(-(z + 1.0) * spacing))
        )

    return kernel
