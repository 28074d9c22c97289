"""Accountants: rules from the law of a composition's privacy loss to δ(ε), each in a file.

In come the law of a total loss and ε, out goes log δ between its ends, and whether it is exact, a
bound or an estimate. Read `table.py` first, where all have their names, then `route.py`, the
default.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["METHODS", "Accountant", "Answer", "Method", "accountant", "names", "options_of"]


def __getattr__(name: str) -> Any:
    """Return a name of the table, which loads the files of all methods, once it is asked for."""
    if name in __all__:
        return getattr(import_module("symdp.methods.table"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
