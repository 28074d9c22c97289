"""Accountants that stand alone: one mechanism written out in Python, C or JavaScript."""

from __future__ import annotations

from symdp.emit.standalone.lines import NoLinesError
from symdp.emit.standalone.write import (
    LANGUAGES,
    Argument,
    Case,
    Condition,
    Model,
    Piece,
    to_code,
)

__all__ = [
    "LANGUAGES",
    "Argument",
    "Case",
    "Condition",
    "Model",
    "NoLinesError",
    "Piece",
    "to_code",
]
