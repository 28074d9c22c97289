"""Losses that live on a lattice a + Δℤ: the characteristic function repeats, so one period does.

Two-point lists, integer noise with a linear loss, and every sum of copies of one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from symdp.law.elementary import distinct
from symdp.law.exact_losses import EXTENDED
from symdp.law.loss import LossLaw
from symdp.law.step import Array
from symdp.law.total import SumLaw, kept_with_law

_MOST_POINTS = 1 << 20  # of a step, and of a period
_MISFIT = 1e-13  # of the largest loss, by which a loss may miss its point: rounding


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
            if 0 < spacing < scale / _MOST_POINTS:  # too long a period
                return None
    if not spacing:
        return None
    # Differences of neighbours are rounded as much as the longest one, which counts many of them.
    spacing = widest / round(widest / spacing)
    if any(_misfit(part, float(spacing)) > _MISFIT * float(scale) for part, _ in law.parts):
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
    return loss if 0 < loss.size <= _MOST_POINTS else None


def _common_measure(one: Fraction, other: Fraction, smallest: Fraction) -> Fraction:
    """Return the largest number that divides both, where what is smaller counts as nothing."""
    large, small = max(one, other), min(one, other)
    while small > smallest:
        rest = large % small
        large, small = small, min(rest, small - rest)
    return large if large > smallest else Fraction(0)
