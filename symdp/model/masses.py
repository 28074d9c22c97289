"""Noise on the integers that is given by a list of its masses, even and with one mode.

The masses p₀ ≥ p₁ ≥ … ≥ p_K of 0, ±1, …, ±K are rationals that add up to exactly one,
p₀ + 2(p₁ + … + p_K) = 1. Even and falling away from 0, so that the pair at the largest shift D
dominates every shift of at most D, either way, as a half-line shifts with it; under substitution a
record moves the output by at most 2D, and the same holds of the pair at 2D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import sympy as sp

from symdp.errors import InputError
from symdp.model.pair import Support
from symdp.model.sampling import Laws

_MOST_MASSES = 5_000  # of 0, 1, 2, …: twice as many losses are summed, each by itself
_LARGEST_SHIFT = 5_000


@dataclass(frozen=True)
class MassNoise(Laws):
    """The pair of such noise and its shift by D, on the points −K, …, K + D."""

    @property
    def reach(self) -> int:
        """K, the largest value that the noise takes."""
        charged = [mass for mass in self.Q if mass != 0]
        return (len(charged) - 1) // 2

    @property
    def sensitivity(self) -> sp.Integer:
        """D, what adding or removing one record moves the output by."""
        return sp.Integer(len(self.Q) - 2 * self.reach - 1)

    @property
    def masses(self) -> tuple[sp.Expr, ...]:
        """The masses of 0, 1, 2, …, K."""
        return tuple(self.Q[self.reach : 2 * self.reach + 1])

    def moved(self, sensitivity: sp.Expr) -> tuple[MassNoise, Support]:
        """Return the same noise beside its shift by another D, and the points of both."""
        return mass_noise(self.masses, sensitivity)


def mass_noise(masses: Sequence[sp.Expr], sensitivity: sp.Expr) -> tuple[MassNoise, Support]:
    """Return the noise of masses of 0, 1, 2, …, and the points of it and of its shift."""
    masses = tuple(masses)
    _check(masses)
    if not (sensitivity.is_Integer and 1 <= sensitivity <= _LARGEST_SHIFT):
        raise InputError(
            f"sensitivity {sensitivity}: noise of listed masses moves by a whole number from 1 to "
            f"{_LARGEST_SHIFT}"
        )
    shift = int(sensitivity)
    reach = len(masses) - 1
    law = (*masses[:0:-1], *masses)
    beyond = (sp.S.Zero,) * shift
    points = tuple(sp.Integer(k) for k in range(-reach, reach + shift + 1))
    support = Support("points", -sp.oo, sp.oo, points)
    return MassNoise((*beyond, *law), (*law, *beyond)), support


def _check(masses: tuple[sp.Expr, ...]) -> None:
    """Raise InputError where masses are not those of even noise with one mode."""
    if not 2 <= len(masses) <= _MOST_MASSES:
        raise InputError(
            f"masses: {len(masses)} of them; give those of 0, 1, 2, …, from 2 to {_MOST_MASSES}"
        )
    for k, mass in enumerate(masses):
        if not (mass.is_Rational and mass > 0):
            raise InputError(f"masses: that of {k} is {mass!s:.40}; each is a ratio above 0")
    for k, (inner, outer) in enumerate(pairwise(masses)):
        if outer > inner:
            raise InputError(
                f"masses: that of {k + 1} is above that of {k}; they are those of 0, 1, 2, … and "
                "must not rise; of other noise give the two laws under [pair]"
            )
    total = masses[0] + 2 * sp.Add(*masses[1:])
    if total != 1:
        raise InputError(
            f"masses: those of 0 and of ±1, ±2, … add up to {total.evalf(20)}, which is not 1; "
            "each but the first counts twice"
        )
