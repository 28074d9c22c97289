"""Derivatives by ball arithmetic: a compiled expression evaluated over truncated Taylor series."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sympy as sp
from flint import arb, arb_series, ctx

from symdp.emit.exact import real_ball
from symdp.emit.program import compile_program
from symdp.errors import InputError

_Series = Any


@contextmanager
def at_length(length: int) -> Iterator[None]:
    """Let series have so many terms: the library drops what lies beyond a cap, and says nothing."""
    cap = ctx.cap
    ctx.cap = max(cap, length)
    try:
        yield
    finally:
        ctx.cap = cap


class Jet:
    """An expression of one variable that returns its Taylor coefficients around a point or ball.

    Parameters
    ----------
    expression : sympy.Expr
        Smooth where it is evaluated, and free of all symbols but the variable.
    variable : sympy.Symbol

    Raises
    ------
    InputError
        For a function that has no series in ball arithmetic.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> [int(c.unique_fmpz()) for c in Jet(x**3, x)(arb(2), 4)]
    [8, 12, 6, 1]
    """

    def __init__(self, expression: sp.Expr, variable: sp.Symbol) -> None:
        self._program = compile_program(expression, [variable])
        for step in self._program.steps:
            if step.operation not in _OPERATIONS:
                raise InputError(f"the operation '{step.operation}' has no series form")
        self._constants: dict[int, list[arb]] = {}

    def __call__(self, at: arb, length: int) -> list[arb]:
        """Return f(x), f′(x), f″(x)/2, … over all x of the ball; NaN where they do not exist."""
        with at_length(length):
            return self._series(at, length)

    def _series(self, at: arb, length: int) -> list[arb]:
        constants = self._constants.get(ctx.prec)
        if constants is None:
            constants = [real_ball(node) for node in self._program.constants]
            self._constants[ctx.prec] = constants
        values = [arb_series([arb(at), 1], length)]
        values += [arb_series([constant], length) for constant in constants]
        try:
            for step in self._program.steps:
                operands = [values[slot] for slot in step.operands]
                values.append(_OPERATIONS[step.operation](step.detail, *operands))
        except (ZeroDivisionError, ValueError):  # a pole, or a branch point, within the ball
            return [arb.nan()] * length
        series = values[self._program.result]
        return [arb(series[k]) for k in range(length)]


def _add(_detail: object, *terms: _Series) -> _Series:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _mul(_detail: object, *factors: _Series) -> _Series:
    total = factors[0]
    for factor in factors[1:]:
        total = total * factor
    return total


def _integer_power(exponent: Any, base: _Series) -> _Series:
    power = base
    for bit in bin(abs(exponent))[3:]:
        power = power * power
        if bit == "1":
            power = power * base
    if exponent == 0:
        return base * 0 + 1
    return power.inv() if exponent < 0 else power


def _power(_detail: object, base: _Series, exponent: _Series) -> _Series:
    return (exponent * base.log()).exp()


def _log_sum_exp(_detail: object, *arguments: _Series) -> _Series:
    """Log Σ c exp(a) with the largest exponent taken out, so that nothing overflows."""
    coefficients, exponents = arguments[::2], arguments[1::2]
    middles = [float(exponent[0].mid()) for exponent in exponents]
    peak = exponents[max(range(len(middles)), key=middles.__getitem__)]
    total = _add(
        None,
        *(
            c if a is peak else c * (a - peak).exp()
            for c, a in zip(coefficients, exponents, strict=True)
        ),
    )
    return peak + total.log()


def _sinh(_detail: object, value: _Series) -> _Series:
    return (value.exp() - (-value).exp()) / 2


def _cosh(_detail: object, value: _Series) -> _Series:
    return (value.exp() + (-value).exp()) / 2


def _tanh(_detail: object, value: _Series) -> _Series:
    return 1 - 2 * (1 + (2 * value).exp()).inv()


def _hyper_0f1(_detail: object, order: _Series, value: _Series) -> _Series:
    """₀F₁(; b; z) by its derivatives ₀F₁(; b + k; z)/(b)ₖ at one place (DLMF 16.3.1)."""
    parameter, place = order[0], value[0]
    coefficients = [
        arb(place).hypgeom_0f1(parameter + k) / (parameter.rising(k) * arb(k + 1).gamma())
        for k in range(value.prec)
    ]
    total, step = value * 0, value - place
    for coefficient in reversed(coefficients):
        total = total * step + coefficient
    return total


def _method(name: str) -> Callable[..., _Series]:
    return lambda _detail, value: getattr(value, name)()


_OPERATIONS: dict[str, Callable[..., _Series]] = {
    "add": _add,
    "mul": _mul,
    "integer_power": _integer_power,
    "power": _power,
    "log_sum_exp": _log_sum_exp,
    "unit_log_sum_exp": _log_sum_exp,
    "log1p": lambda _, value: (1 + value).log(),
    "expm1": lambda _, value: value.exp() - 1,
    "log_ratio": lambda _, difference, _a, b: (1 + difference / b).log(),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "loggamma": _method("lgamma"),
    "hyper_0f1": _hyper_0f1,
    **{
        name: _method(name)
        for name in (
            "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan",
            "erf", "erfc", "erfi", "gamma",
        )
    },
}  # fmt: skip
