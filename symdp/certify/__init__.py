"""Certificates: enclosures of δ(ε) in which every error is bounded, floating point included."""

from __future__ import annotations

from symdp.certify.enclosure import enclose_delta
from symdp.certify.record import Certificate, certify_delta

__all__ = ["Certificate", "certify_delta", "enclose_delta"]
