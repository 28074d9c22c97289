"""The oracle: δ in arbitrary precision from the definition, which judges every other number.

Tests and the method `truth` use it, nothing else does.
"""

from __future__ import annotations

from symdp.oracle.evaluation import Profile, privacy_profile, profile

__all__ = ["Profile", "privacy_profile", "profile"]
