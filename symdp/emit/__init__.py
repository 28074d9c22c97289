"""Expressions become programs: functions of arrays or of balls, JSON, files that stand alone.

In comes an expression of SymPy, `program.py` makes straight-line steps of it (read it first), and
`numpy.py` and `arb.py` run them; `standalone/` writes a whole accountant in Python, C or
JavaScript. Sums and integrals that a constant holds are enclosed by `enclose.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symdp.emit.arb import compile_arb
    from symdp.emit.numpy import compile_numpy

__all__ = ["compile_arb", "compile_numpy"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'symdp.emit' has no attribute {name!r}")
    return getattr(import_module(f"symdp.emit.{name.removeprefix('compile_')}"), name)
