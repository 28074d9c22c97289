"""A second way to evaluate an emitted program: at any precision, with mpmath's own functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import sympy as sp
from mpmath import mp

from symdp.emit.exact import constant_value
from symdp.emit.program import compile_constant, compile_program
from symdp.emit.steps import Program
from symdp.errors import AccuracyError, InputError

_GUARD_BITS = 20

_Operation = Callable[..., Any]


class MpmathFunction:
    """A compiled expression; call it with numbers, at whatever precision mpmath then works."""

    def __init__(self, program: Program) -> None:
        _check_supported(program)
        self._program = program
        self._constants: dict[int, tuple[Any, ...]] = {}

    def __reduce__(self) -> tuple[type[MpmathFunction], tuple[Program]]:
        return MpmathFunction, (self._program,)

    def __call__(self, *arguments: Any) -> Any:
        """Return the value at `arguments` (mpf, mpc or Python numbers) at the current precision."""
        if len(arguments) != len(self._program.symbols):
            names = ", ".join(self._program.symbols)
            raise TypeError(f"expected the arguments ({names}), got {len(arguments)}")
        constants = self._constants.get(mp.prec)
        if constants is None:
            constants = tuple(own_constant(node) for node in self._program.constants)
            self._constants[mp.prec] = constants
        values = [*(mpmath.mpmathify(argument) for argument in arguments), *constants]
        return _run(self._program, values)


def compile_mpmath(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> MpmathFunction:
    """Compile `expression` for mpmath; exact rationals become numbers at the precision of the call.

    Parameters
    ----------
    expression : sympy.Expr
        All its free symbols are in `symbols`.
    symbols : sequence of sympy.Symbol
        The arguments, in order.

    Returns
    -------
    callable
        f(*numbers) → mpf or mpc at `mpmath.mp.prec`; it pickles.

    Raises
    ------
    InputError
        For an unbound symbol or an unknown function.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> f = compile_mpmath(sp.log(sp.Rational(9, 10) + sp.exp(x) / 10), [x])
    >>> with mpmath.workdps(30):
    ...     print(f(mpmath.mpf(10) ** -20))
    1.0000000000000000000045e-21
    """
    return MpmathFunction(compile_program(expression, symbols))


def own_constant(node: sp.Expr) -> Any:
    """Return a variable-free expression as mpf, mpc or bool at the current precision."""
    program = compile_constant(node)
    _check_supported(program)
    with mpmath.workprec(mp.prec + _GUARD_BITS):
        value = _run(program, [])
    return value if isinstance(value, bool) else +value


def _check_supported(program: Program) -> None:
    for step in program.steps:
        if step.operation not in _OPERATIONS:
            raise InputError(f"the operation '{step.operation}' has no mpmath form")


def _run(program: Program, values: list[Any]) -> Any:
    for step in program.steps:
        operation = _OPERATIONS[step.operation]
        values.append(operation(step.detail, *(values[slot] for slot in step.operands)))
    return values[program.result]


def _log_sum_exp(_detail: object, *arguments: Any) -> Any:
    """Log Σ c exp(a) around the largest term with a positive coefficient."""
    terms = list(zip(arguments[::2], arguments[1::2], strict=True))
    positive = [(c, a) for c, a in terms if mpmath.re(c) > 0 and mpmath.re(a) != -mpmath.inf]
    if not positive:
        return mpmath.log(mpmath.fsum(c * mpmath.exp(a) for c, a in terms))
    top, peak = max(positive, key=lambda term: mpmath.log(abs(term[0])) + mpmath.re(term[1]))
    if mpmath.re(peak) == mpmath.inf:
        return peak
    rest = [c * mpmath.exp(a - peak) for c, a in terms]
    rest.remove(top)
    return peak + mpmath.log(top) + mpmath.log1p(mpmath.fsum(rest) / top)


def _unit_log_sum_exp(detail: object, *arguments: Any) -> Any:
    """Log Σ c exp(a) where Σ c = 1: log1p(Σ c expm1(a)) near 0."""
    exponents = arguments[1::2]
    if all(mpmath.re(a) < 1 for a in exponents):
        terms = zip(arguments[::2], exponents, strict=True)
        total = mpmath.fsum(c * mpmath.expm1(a) for c, a in terms)
        if mpmath.re(total) > -0.5:
            return mpmath.log1p(total)
    return _log_sum_exp(detail, *arguments)


def _log_ratio(_detail: object, difference: Any, a: Any, b: Any) -> Any:
    if abs(difference) < abs(b) / 2:
        return mpmath.log1p(difference / b)
    return mpmath.log(a) - mpmath.log(b)


def _piecewise(_detail: object, *branches: Any) -> Any:
    for value, condition in zip(branches[::2], branches[1::2], strict=True):
        if condition:
            return value
    raise AccuracyError("a piecewise expression has no branch at the given point")


def _sum_or_integral(node: object, *_operands: Any) -> Any:
    """Read the ball around the constant, once it is as sharp as the working precision."""
    return constant_value(node, mp.prec)


def _plain(function: Callable[..., Any]) -> _Operation:
    return lambda _detail, *operands: function(*operands)


_OPERATIONS: dict[str, _Operation] = {
    "rational": lambda detail: mpmath.mpf(detail[0]) / detail[1],
    "pi": lambda _: +mpmath.pi,
    "e": lambda _: +mpmath.e,
    "euler": lambda _: +mpmath.euler,
    "catalan": lambda _: +mpmath.catalan,
    "imaginary": lambda _: mpmath.mpc(0, 1),
    "infinity": lambda _: mpmath.inf,
    "minus_infinity": lambda _: -mpmath.inf,
    "true": lambda _: True,
    "false": lambda _: False,
    "add": lambda _, *terms: mpmath.fsum(terms),
    "mul": lambda _, *factors: mpmath.fprod(factors),
    "integer_power": lambda exponent, base: base**exponent,
    "power": lambda _, base, exponent: mpmath.power(base, exponent),
    "log_sum_exp": _log_sum_exp,
    "unit_log_sum_exp": _unit_log_sum_exp,
    "log_ratio": _log_ratio,
    "sum": _sum_or_integral,
    "integral": _sum_or_integral,
    "piecewise": _piecewise,
    "abs": lambda _, value: abs(value),
    "lt": lambda _, left, right: bool(left < right),
    "le": lambda _, left, right: bool(left <= right),
    "gt": lambda _, left, right: bool(left > right),
    "ge": lambda _, left, right: bool(left >= right),
    "eq": lambda _, left, right: bool(left == right),
    "ne": lambda _, left, right: bool(left != right),
    "and": lambda _, *parts: all(parts),
    "or": lambda _, *parts: any(parts),
    "not": lambda _, part: not part,
    "max": lambda _, *parts: max(parts),
    "min": lambda _, *parts: min(parts),
    "heaviside": lambda _, value: (1 + mpmath.sign(value)) / 2,
    "uppergamma": lambda _, s, x: mpmath.gammainc(s, x),
    "lowergamma": lambda _, s, x: mpmath.gammainc(s, 0, x),
    "hyper": lambda above, *parts: mpmath.hyper(parts[:above], parts[above:-1], parts[-1]),
    "hyperu": lambda _, a, b, z: mpmath.hyperu(a, b, z),
    "log_besselk": lambda _, order, x: mpmath.log(mpmath.besselk(order, x) * mpmath.exp(x)) - x,
    "log_besseli": lambda _, order, x: mpmath.log(mpmath.besseli(order, x) * mpmath.exp(-x)) + x,
    "ceiling": _plain(mpmath.ceil),
    "polygamma": _plain(mpmath.polygamma),
    **{
        name: _plain(getattr(mpmath, name))
        for name in (
            "exp", "log", "log1p", "expm1", "sqrt", "sign", "floor", "sin", "cos", "tan",
            "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
            "erf", "erfc", "erfi", "gamma", "loggamma", "besseli", "besselk", "besselj", "bessely",
        )
    },
}  # fmt: skip
