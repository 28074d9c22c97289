"""Accountants that stand alone: one mechanism written out in Python or C."""

from __future__ import annotations

from symdp.emit.standalone.c import to_c
from symdp.emit.standalone.exact import ExactModel, ExactPiece, to_exact_c, to_exact_python
from symdp.emit.standalone.model import Argument, ClosedForm, Model, Points
from symdp.emit.standalone.python import to_python
from symdp.emit.standalone.tape import NoTapeError

__all__ = [
    "Argument",
    "ClosedForm",
    "ExactModel",
    "ExactPiece",
    "Model",
    "NoTapeError",
    "Points",
    "to_c",
    "to_exact_c",
    "to_exact_python",
    "to_python",
]
