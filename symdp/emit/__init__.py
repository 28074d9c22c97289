"""Emit SymPy expressions as functions: double precision, proved balls."""

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
