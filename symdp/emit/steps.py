"""Straight-line programs as plain data: they pickle, and nothing is ever compiled from text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """One operation: its name, the slots it reads, and what else it needs (a number, a node)."""

    operation: str
    operands: tuple[int, ...]
    detail: object = None


@dataclass(frozen=True, slots=True)
class Program:
    """Slots hold the arguments, then the constants, then the result of each step in turn."""

    symbols: tuple[str, ...]
    constants: tuple[Any, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    @property
    def result(self) -> int:
        """The slot of the only result."""
        (only,) = self.results
        return only
