"""Derivation: from a dominating pair to its privacy loss, the loss's pieces and its CGF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symdp.density.pieces import pieces, points
from symdp.density.records import Piece, Point
from symdp.derive.records import CGF, Atom

if TYPE_CHECKING:
    from symdp.derive.derivation import Derivation, derive, derive_cases
    from symdp.derive.epoch import EpochDerivation, derive_epoch

__all__ = [
    "CGF",
    "Atom",
    "Derivation",
    "EpochDerivation",
    "Piece",
    "Point",
    "derive",
    "derive_cases",
    "derive_epoch",
    "pieces",
    "points",
]


def __getattr__(name: str) -> Any:
    # Numbers need the pieces alone; integration and its checks load with the first derivation.
    if name in {"Derivation", "derive", "derive_cases"}:
        from symdp.derive import derivation

        return getattr(derivation, name)
    if name in {"EpochDerivation", "derive_epoch"}:
        from symdp.derive import epoch

        return getattr(epoch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
