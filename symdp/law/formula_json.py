"""A formula's law as plain data, so that another process evaluates it without deriving it.

A formula consists of straight-line programs. Its constants are expressions: those without symbols
become programs, too, those that depend on parameters become numbers of a table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from symdp.emit.arb import ArbFunction, ArbFunctions
from symdp.emit.steps import Program, Step
from symdp.errors import InputError
from symdp.law.formula import Formula, MomentFormula, PieceFormula

_FUNCTIONS = {one.__name__: one for one in (ArbFunction, ArbFunctions)}
_RECORDS = {one.__name__: one for one in (Formula, MomentFormula, PieceFormula)}
_DERIVED_FROM = {"source"}  # what a formula was derived from, which no one who reads it needs


@dataclass(frozen=True, slots=True)
class _Constant:
    """A constant of a formula: the number of an entry in its table, or infinity."""

    number: int
    infinity: int = 0

    @property
    def is_infinite(self) -> bool:
        return self.infinity != 0

    def __float__(self) -> float:
        return self.infinity * math.inf


def encode(formula: Formula) -> Any:
    """Return a formula as JSON values.

    Raises
    ------
    InputError
        If a part of it, such as a sum or an integral, is no plain data.
    """
    assert formula.moment is None or formula.moment  # looked for before it is written down
    return _Encoder().any(formula)


def decode(data: Any) -> Formula:
    """Return the formula of JSON values.

    Raises
    ------
    ValueError, KeyError, TypeError, IndexError, AttributeError
        If they are no formula.
    """
    found = _decoded(data)
    if not isinstance(found, Formula):
        raise TypeError("no formula")
    return found


class _Encoder:
    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def any(self, value: Any) -> Any:
        """Return any part of a formula."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.any(one) for one in value]}
        if isinstance(value, Program):
            return {"program": self._program(value, [self.any(c) for c in value.constants])}
        name = type(value).__name__
        if name in _FUNCTIONS:
            (program,) = value.__reduce__()[1]
            constants = [self._closed(c) for c in program.constants]
            return {name: self._program(program, constants)}
        if name in _RECORDS:
            parts = {key: part for key, part in vars(value).items() if key not in _DERIVED_FROM}
            return {name: {key: self.any(part) for key, part in parts.items()}}
        if getattr(value, "is_infinite", False):
            return {"constant": [-1, 1 if value.is_extended_positive else -1]}
        if hasattr(value, "free_symbols"):
            return {"constant": [self._numbers.setdefault(value, len(self._numbers)), 0]}
        raise InputError(f"{name} is no plain data")

    def _closed(self, constant: Any) -> Any:
        """Return a constant without symbols as a program."""
        from symdp.emit.program import compile_constant

        return {"program": self._program(compile_constant(constant), [])}

    def _program(self, program: Program, constants: list[Any]) -> list[Any]:
        steps = []
        for step in program.steps:
            if not isinstance(step.detail, int | tuple | None):
                raise InputError(f"the operation {step.operation} is no plain data")
            detail = list(step.detail) if isinstance(step.detail, tuple) else step.detail
            steps.append([step.operation, list(step.operands), detail])
        return [list(program.symbols), constants, steps, list(program.results)]


def _decoded(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    ((kind, held),) = data.items()
    if kind == "constant":
        return _Constant(*held)
    if kind in {"list", "tuple"}:
        parts = [_decoded(one) for one in held]
        return parts if kind == "list" else tuple(parts)
    if kind == "program":
        return _program(held)
    if kind in _FUNCTIONS:
        return _FUNCTIONS[kind](_program(held))
    made = object.__new__(_RECORDS[kind])
    vars(made).update({key: _decoded(part) for key, part in held.items()})
    return made


def _program(held: list[Any]) -> Program:
    symbols, constants, steps, results = held
    return Program(
        tuple(symbols),
        tuple(_decoded(one) for one in constants),
        tuple(
            Step(name, tuple(operands), tuple(detail) if isinstance(detail, list) else detail)
            for name, operands, detail in steps
        ),
        tuple(results),
    )
