"""Certificates: enclosures of δ(ε) in which every error is bounded, floating point included."""

from __future__ import annotations

from symdp.certify.enclosure import enclose_delta
from symdp.certify.inverse import enclose_epsilon

__all__ = ["enclose_delta", "enclose_epsilon"]
