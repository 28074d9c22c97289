"""Derivation for people: from a dominating pair to its loss, the law of the loss and its CGF.

In comes a mechanism, out goes a `Derivation`, whose sections are made when asked for and checked
against numbers; one that has no formula says why. Read `kinds.py` first, then `derivation.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symdp.density.pieces import pieces, points
    from symdp.density.records import Piece, Point
    from symdp.derive.derivation import PairDerivation
    from symdp.derive.kinds import CasesDerivation, derive
    from symdp.derive.printed import Derivation
    from symdp.derive.records import CGF, Atom
    from symdp.derive.without_pair.epoch import EpochDerivation
    from symdp.derive.without_pair.local import LocalDerivation
    from symdp.derive.without_pair.vectors import VectorDerivation

__all__ = [
    "CGF",
    "Atom",
    "CasesDerivation",
    "Derivation",
    "EpochDerivation",
    "LocalDerivation",
    "PairDerivation",
    "Piece",
    "Point",
    "VectorDerivation",
    "derive",
    "pieces",
    "points",
]


# Nothing is loaded with the room, which `import symdp` opens.
_LATER = {
    "CGF": "records",
    "Atom": "records",
    "CasesDerivation": "kinds",
    "Derivation": "printed",
    "EpochDerivation": "without_pair.epoch",
    "LocalDerivation": "without_pair.local",
    "PairDerivation": "derivation",
    "Piece": "privacy_loss",
    "Point": "privacy_loss",
    "VectorDerivation": "without_pair.vectors",
    "derive": "kinds",
    "pieces": "privacy_loss",
    "points": "privacy_loss",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"symdp.derive.{_LATER[name]}"), name)
