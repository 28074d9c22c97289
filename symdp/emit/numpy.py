"""Emit a SymPy expression as a vectorised double-precision function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symdp.emit.numpy_operations import OPERATIONS
from symdp.errors import InputError

if TYPE_CHECKING:
    import sympy as sp

    from symdp.emit.steps import Program

_Array = NDArray[Any]

_BITS = 136  # of constants, before they are rounded once
_MODERATE = 10**150  # coefficients within [1/this, this] multiply and divide without overflow
_SUMS_OF_EXPONENTIALS = ("log_sum_exp", "unit_log_sum_exp")


class NumpyFunction:
    """A compiled expression; call it with arrays, which broadcast against each other.

    `numbers`: the program's constants, where they depend on parameters that have values here alone.
    """

    def __init__(self, program: Program, numbers: Sequence[Any] | None = None) -> None:
        for step in program.steps:
            if step.operation not in OPERATIONS:
                raise InputError(f"the operation '{step.operation}' has no NumPy form")
        self._program, self._numbers = program, numbers
        extreme = _extreme_coefficients(program) if numbers is None else {}
        offset = len(program.symbols)
        self._constants = list(numbers or ()) or [
            1.0 if offset + i in extreme else _double(node)
            for i, node in enumerate(program.constants)
        ]
        self._steps = [
            (
                OPERATIONS[step.operation],
                [extreme.get(slot) for slot in step.operands[::2]]
                if step.operation in _SUMS_OF_EXPONENTIALS
                else step.detail,
                step.operands,
            )
            for step in program.steps
        ]

    def __reduce__(self) -> tuple[type[NumpyFunction], tuple[Any, ...]]:
        return type(self), (self._program, self._numbers)

    def __call__(self, *arguments: ArrayLike) -> _Array:
        """Return the values as float64, or complex128 where an argument is complex."""
        if len(arguments) != len(self._program.symbols):
            names = ", ".join(self._program.symbols)
            raise TypeError(f"expected the arguments ({names}), got {len(arguments)}")
        (result,) = self._run(arguments)
        return result

    def _run(self, arguments: Sequence[ArrayLike]) -> list[_Array]:
        inputs = [_numbers(argument) for argument in arguments]
        values: list[Any] = [*inputs, *self._constants]
        append = values.append
        with np.errstate(all="ignore"):
            for operation, detail, operands in self._steps:
                append(operation(detail, *[values[slot] for slot in operands]))
        shape = np.broadcast_shapes(*(array.shape for array in inputs))
        results = []
        for slot in self._program.results:
            result = np.asarray(values[slot])
            if result.dtype.kind != "c":
                result = result.astype(np.float64, copy=False)
            if result.shape != shape:
                result = np.broadcast_to(result, shape).copy()
            results.append(result)
        return results


class NumpyFunctions(NumpyFunction):
    """Several compiled expressions, what they have in common computed once."""

    def __call__(self, *arguments: ArrayLike) -> tuple[_Array, ...]:  # type: ignore[override]
        """Return the values of each, as `NumpyFunction` does of one."""
        return tuple(self._run(arguments))


def compile_numpy(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> NumpyFunction:
    """Compile an expression for arrays: a function that pickles and warns of nothing.

    Every part that is free of the symbols is evaluated once, to 40 digits, and rounded once, so
    exact rationals of any size, normalising sums and integrals arrive as the nearest double.
    InputError for an unknown function or a constant beyond the double range.

    >>> import sympy as sp
    >>> x = sp.Symbol("x", real=True)
    >>> f = compile_numpy(sp.log(sp.Rational(9, 10) + sp.exp(x) / 10), [x])
    >>> [float(value) for value in f([1e-20, 10000.0])]
    [1e-21, 9997.697414907007]
    """
    from symdp.emit.program import compile_program

    return NumpyFunction(compile_program(expression, symbols))


def _numbers(argument: ArrayLike) -> _Array:
    array = np.asarray(argument)
    return array if array.dtype.kind == "c" else array.astype(np.float64, copy=False)


def _double(node: sp.Expr) -> Any:
    """The nearest double (or complex, or bool) to a constant expression."""
    import sympy as sp

    if isinstance(node, sp.Rational):
        try:
            return node.p / node.q  # Python divides integers of any size with one rounding
        except OverflowError as error:
            raise InputError(f"the constant {sp.N(node, 5)} is beyond the double range") from error
    import mpmath

    from symdp.emit.constants import constant_value

    value = constant_value(node, _BITS)
    if isinstance(value, bool):
        return value
    if isinstance(value, mpmath.mpc):
        return complex(value)
    number = float(value)
    if np.isinf(number) and not mpmath.isinf(value):
        raise InputError(f"the constant {mpmath.nstr(value, 5)} is beyond the double range")
    return number


def _extreme_coefficients(program: Program) -> dict[int, float]:
    """Slots of rational coefficients that a double may not hold, with their logarithms.

    Binomial weights of a large batch are such; a slot counts if nothing but sums of exponentials
    reads it, which then add the logarithm to the exponent.
    """
    import sympy as sp

    offset = len(program.symbols)
    found = {
        offset + i: node
        for i, node in enumerate(program.constants)
        if isinstance(node, sp.Rational)
        and node.is_positive
        and not 1 <= node * _MODERATE <= _MODERATE**2
    }
    for step in program.steps:
        used = step.operands[1::2] if step.operation in _SUMS_OF_EXPONENTIALS else step.operands
        for slot in used:
            found.pop(slot, None)
    return {slot: _double(sp.log(node)) for slot, node in found.items()}
