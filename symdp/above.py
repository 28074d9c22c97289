"""Rooms that a lower one asks without knowing them: `symdp`, which knows all, says where they are.

A mechanism has a mean and a figure, a derivation a page, which rooms above them make.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

HOMES: dict[str, str] = {}  # what is asked -> its module; the street fills it


def above(name: str) -> Any:
    """Return the module of a higher room."""
    return import_module(HOMES[name])
