"""Truth: arbitrary precision and ball arithmetic, which judge every other number of the package."""

from __future__ import annotations

from symdp.truth.density import check_densities
from symdp.truth.enclosure import cgf_ball
from symdp.truth.quadrature import Profile, privacy_profile, profile

__all__ = ["Profile", "cgf_ball", "check_densities", "privacy_profile", "profile"]
