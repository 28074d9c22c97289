"""Losses that live on a lattice a + Δℤ: the characteristic function repeats, so one period does.

Two-point lists, integer noise with a linear loss, and every sum of copies of one of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from symdp.exact.accuracy import EXTENDED, MOST_NODES, SETTLED
from symdp.exact.line import Kernel
from symdp.law.elementary import Complex, distinct
from symdp.law.loss import LossLaw
from symdp.law.step import Array
from symdp.law.total import SumLaw, kept_with_law


@dataclass(frozen=True)
class Lattice:
    """The set offset + spacing·ℤ that the total loss is certain to lie in.

    Both are kept beyond double precision: n steps multiply their rounding by n, and ε lies between
    two points of the lattice at a distance that has to be right.
    """

    offset: Fraction
    spacing: Fraction


@kept_with_law
def find_lattice(law: SumLaw) -> Lattice | None:
    """Return the lattice of a sum of purely atomic losses, or None where there is none."""
    if law.is_spread or any(_points(part) is None for part, _ in law.parts):
        return None
    spacing, offset, widest, scale = Fraction(0), Fraction(0), Fraction(0), Fraction(0)
    for part, count in law.parts:
        losses = part.precise_losses
        offset += count * losses[0]
        scale = max(scale, abs(losses[0]), abs(losses[-1]))
        widest = max(widest, losses[-1] - losses[0])
        for low, high in pairwise(losses):
            spacing = _common_measure(high - low, spacing, Fraction(EXTENDED) * scale)
            if 0 < spacing < scale / MOST_NODES:  # too long a period
                return None
    if not spacing:
        return None
    # Differences of neighbours are rounded as much as the longest one, which counts many of them.
    spacing = widest / round(widest / spacing)
    if any(_misfit(part, float(spacing)) > SETTLED * float(scale) for part, _ in law.parts):
        return None
    return Lattice(offset, spacing)


def _misfit(part: LossLaw, spacing: float) -> float:
    """Return how far from the lattice a loss lies, in doubles."""
    points = part.base.loss - float(part.precise_losses[0])
    return float(np.abs(points - spacing * np.round(points / spacing)).max())


def _points(law: LossLaw) -> Array | None:
    """Return the loss's values, sorted, if it has no continuous part and not too many of them."""
    pieces = law.step.pieces
    if any(not (p.flat or p.integer) for p in pieces):
        return None
    loss = distinct(law.base.loss)
    return loss if 0 < loss.size <= MOST_NODES else None


def _common_measure(one: Fraction, other: Fraction, smallest: Fraction) -> Fraction:
    """Return the largest number that divides both, where what is smaller counts as nothing."""
    large, small = max(one, other), min(one, other)
    while small > smallest:
        rest = large % small
        large, small = small, min(rest, small - rest)
    return large if large > smallest else Fraction(0)


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
        with np.errstate(all="ignore"):  # what is no double is refused where the line begins
            numerator = np.exp(-z * distance) * (first + second * np.exp(-z * spacing))
            below = np.expm1(-z * spacing) * np.expm1(-(z + 1.0) * spacing)
            return np.asarray(spacing * numerator / below)

    return kernel
