"""What a set of quadrature nodes serves: frequencies, tilts and moments at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flint import arb

_ZERO, _ONE = arb(0), arb(1)


@dataclass(frozen=True)
class Scope:
    """What a set of nodes serves beside e^g: its products with e^{(d + iy)ℓ} ((ℓ − c)/u)^k.

    Attributes
    ----------
    frequencies
        The ends of y.
    shifts
        The ends of d.
    power, centre, unit
        The largest k, c and u.
    """

    frequencies: tuple[float, float] = (0.0, 0.0)
    shifts: tuple[arb, ...] = (_ZERO,)
    power: int = 0
    centre: arb = _ZERO
    unit: arb = _ONE

    def largest(self, log_size: arb, loss: Any, rise: arb | None = None) -> arb:
        """Bound all products from log|e^g|, ℓ and what |e^{iyℓ}| falls by with y, if it does."""
        power = (abs(loss - self.centre) / self.unit).max(arb(1)) ** self.power
        sizes = [
            log_size + shift * loss.real - (0 if rise is None else y * rise)
            for y in (set(self.frequencies) if rise is not None else (0.0,))
            for shift in self.shifts
        ]
        largest = arb(0)
        for size in sizes:
            largest = largest.max((size.exp() * power).upper())
        return largest if largest.is_finite() else arb.pos_inf()


PLAIN = Scope()
