"""Ball arithmetic with Arb: bounds of tails, masses of densities, errors bounded."""

from __future__ import annotations

from symdp.balls.density import check_densities

__all__ = ["check_densities"]
