"""Emit SymPy expressions as functions: double precision, arbitrary precision, proved balls."""

from __future__ import annotations

from symdp.emit.arb import compile_arb
from symdp.emit.mpmath import compile_mpmath
from symdp.emit.numpy import compile_numpy

__all__ = ["compile_arb", "compile_mpmath", "compile_numpy"]
