"""Derivation for people: from a dominating pair to its loss, the law of the loss and its CGF.

In comes a mechanism, out goes a `Derivation`, whose sections are made when asked for and checked
against numbers; one that has no formula says why. Read `derivation.py` first, then `cgf.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from symdp.density.pieces import pieces, points
from symdp.density.records import Piece, Point
from symdp.derive.records import CGF, Atom

if TYPE_CHECKING:
    from symdp.derive.derivation import Derivation, derive, derive_cases
    from symdp.derive.without_pair.epoch import EpochDerivation, derive_epoch
    from symdp.derive.without_pair.local import LocalDerivation, derive_local
    from symdp.derive.without_pair.vectors import VectorDerivation, derive_vectors

__all__ = [
    "CGF",
    "Atom",
    "Derivation",
    "EpochDerivation",
    "LocalDerivation",
    "Piece",
    "Point",
    "VectorDerivation",
    "derive",
    "derive_cases",
    "derive_epoch",
    "derive_local",
    "derive_vectors",
    "pieces",
    "points",
]


# Numbers need the pieces alone; integration and its checks load with the first derivation.
_LATER = {"EpochDerivation": "without_pair.epoch", "derive_epoch": "without_pair.epoch"}
_LATER |= {"VectorDerivation": "without_pair.vectors", "derive_vectors": "without_pair.vectors"}
_LATER |= {"LocalDerivation": "without_pair.local", "derive_local": "without_pair.local"}
_LATER |= dict.fromkeys(("Derivation", "derive", "derive_cases"), "derivation")


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"symdp.derive.{_LATER[name]}"), name)
