"""Ball arithmetic with Arb: integrals, tails, Taylor series, density checks, errors bounded."""

from __future__ import annotations

from symdp.balls.density import check_densities
from symdp.balls.enclosure import cgf_ball

__all__ = ["cgf_ball", "check_densities"]
