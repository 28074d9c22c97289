"""Emit a SymPy expression as a vectorised double-precision function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symdp.errors import InputError
from symdp.tolerances import NO_SHARE

if TYPE_CHECKING:
    import sympy as sp

    from symdp.emit.steps import Program

_UNDERFLOW = -660.0  # of e^{−x} I_ν(x)
_MOST_TERMS = 256.0
_DIGITS = 30  # that mpmath carries for a double
# Of a rule on [m − h, m + h], exact to degree 39: ∫ e^{−2mt − t²} to 1e-17 within the two limits.
_NODES = 20
_MOST_TURN = 4.0
_MOST_HALF = 1.5


def log_erf_difference(middle: Any, half: Any) -> Any:
    """Return log(erf(m + h) − erf(m − h)) of doubles, h > 0, without cancellation.

    As ∫ e^{−t²} over [m − h, m + h] by Gauss's rule where the integrand changes little on it; else
    by e^{z²} erfc(z) [DLMF 7.2.3], or where m < h as a sum of two positive values of erf.
    """
    from scipy import special

    if np.iscomplexobj(middle) or np.iscomplexobj(half):
        return np.log(special.erf(middle + half) - special.erf(middle - half))
    distance = np.abs(np.asarray(middle, dtype=np.float64))
    m, h = np.broadcast_arrays(distance, half)
    value = np.full(m.shape, np.nan)
    with np.errstate(all="ignore"):
        is_positive = h > 0.0
        near = is_positive & (h <= _MOST_HALF) & (m * h <= _MOST_TURN)
        is_wide = is_positive & ~near & (m < h)
        is_tail = is_positive & ~near & (m >= h)
        value[near] = _log_near_difference(m[near], h[near])
        middles = m[is_wide]
        halves = h[is_wide]
        upper = special.erf(middles + halves)
        lower = special.erf(halves - middles)
        value[is_wide] = np.log(upper + lower)
        middles = m[is_tail]
        halves = h[is_tail]
        nearest = middles - halves
        first = special.erfcx(nearest)
        last = special.erfcx(middles + halves)
        ratio = last / first * np.exp(-4.0 * middles * halves)
        value[is_tail] = np.log(first) + np.log1p(-ratio) - nearest**2
    return value


def _log_near_difference(middle: Any, half: Any) -> Any:
    """Return log(erf(m + h) − erf(m − h)) by Gauss's rule, of exponents of ten or so at most."""
    nodes, weights = _rule()
    turn = half[:, None] * nodes
    exponent = -turn * (2.0 * middle[:, None] + turn)
    integral = np.exp(exponent) @ weights
    log_integral = np.log(2.0 / np.sqrt(np.pi) * half * integral)
    return log_integral - middle * middle


@lru_cache(maxsize=1)
def _rule() -> tuple[Any, Any]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


def log_erfc(value: Any) -> Any:
    """Return log erfc z in doubles, by e^{z²} erfc z [DLMF 7.2.3] where erfc z is small."""
    from scipy import special

    z = np.asarray(value)
    far = np.real(z) > 0.5
    with np.errstate(all="ignore"):
        scaled = np.where(far, z, 0.5)
        near = np.where(far, 0.5, z)
        return np.where(
            far, np.log(special.erfcx(scaled)) - scaled * scaled, np.log1p(-special.erf(near))
        )


def _integer_power(exponent: int, base: Any) -> Any:
    if exponent == 2:
        return base * base
    if exponent == -1:
        return 1.0 / base
    return np.power(base, float(exponent))


def _phase(value: Any) -> Any:
    """exp(−i Im x): SciPy's scaled I carries exp(−|Re x|), and the branch wants exp(−x)."""
    if np.iscomplexobj(value):
        return np.exp(-1j * value.imag)
    return 1.0


def _log_bessel_i(order: Any, x: Any) -> Any:
    """Log I_ν(x), by its series of positive terms where a large order leaves no double of I."""
    from scipy import special

    with np.errstate(divide="ignore"):
        value = np.log(special.ive(order, x) * _phase(x)) + x
    if np.iscomplexobj(x):
        return value
    order, x, value = np.broadcast_arrays(order, x, value)
    square = 0.25 * x * x
    tiny = (value - x < _UNDERFLOW) & (square < _MOST_TERMS * (order + 1.0))
    if not tiny.any():
        return value
    nu = order[tiny]
    square = square[tiny]
    term = np.ones(nu.size)
    total = np.ones(nu.size)
    k = 1
    while (term > NO_SHARE * total).any():
        term = term * square / (k * (nu + k))
        total = total + term
        k = k + 1
    filled = np.array(value)
    filled[tiny] = nu * np.log(0.5 * x[tiny]) - special.gammaln(nu + 1.0) + np.log(total)
    return filled


def _log1p(_detail: object, value: Any) -> Any:
    # NumPy's own complex log1p loses small arguments; SciPy's does not.
    if np.iscomplexobj(value):
        return _of_scipy("log1p")(None, value)
    return np.log1p(value)


def _expm1(_detail: object, value: Any) -> Any:
    if np.iscomplexobj(value):
        return _of_scipy("expm1")(None, value)
    return np.expm1(value)


def _log(_detail: object, value: Any) -> Any:
    return np.log(value)


def _log_sum_exp(logs: list[float | None], *arguments: Any) -> Any:
    """Log Σ c exp(a) around its largest term with a positive coefficient."""
    factors = arguments[::2]
    exponents = []
    for exponent, log in zip(arguments[1::2], logs, strict=True):
        exponents.append(exponent if log is None else exponent + log)
    if len(logs) == 2:
        are_positive = all(np.ndim(c) == 0 and np.isreal(c) and c > 0 for c in factors)
        if are_positive:
            first = np.log(factors[0]) + exponents[0]
            second = np.log(factors[1]) + exponents[1]
            if not (np.iscomplexobj(first) or np.iscomplexobj(second)):
                return np.logaddexp(first, second)
    spread = np.broadcast_arrays(*factors, *exponents)
    c = np.stack(spread[: len(logs)])
    a = np.stack(spread[len(logs) :])
    weights = np.where(c.real > 0, np.log(np.abs(c)) + a.real, -np.inf)
    pivot = np.argmax(weights, axis=0)[np.newaxis]
    top = np.take_along_axis(c, pivot, 0)
    peak = np.take_along_axis(a, pivot, 0)
    shares = c * np.exp(a - peak) / top
    np.put_along_axis(shares, pivot, 0.0, 0)
    log_largest = (peak + np.log(top))[0]
    value = log_largest + _log1p(None, shares.sum(axis=0))
    # An infinite peak leaves inf − inf in the shares, though the answer is plain.
    is_finite = np.isfinite(peak[0].real)
    return np.where(is_finite, value, peak[0])


def _unit_log_sum_exp(logs: list[float | None], *arguments: Any) -> Any:
    """Log Σ c exp(a) where Σ c = 1: log1p(Σ c expm1(a)) unless that sum is near −1 or overflows."""
    total: Any = 0.0
    for c, a, log in zip(arguments[::2], arguments[1::2], logs, strict=True):
        is_zero = isinstance(a, float) and a == 0.0
        if log is not None:
            total = total + (np.exp(a + log) - np.exp(log))
        elif not is_zero:
            total = total + c * _expm1(None, a)
    value = _log1p(None, total)
    is_near = (np.real(total) > -0.5) & np.isfinite(total)
    far = ~is_near
    if not np.any(far):
        return value
    if np.ndim(value) and all(np.shape(x) in ((), value.shape) for x in arguments):
        far_arguments = [x[far] if np.ndim(x) else x for x in arguments]
        value[far] = _log_sum_exp(logs, *far_arguments)
        return value
    return np.where(far, _log_sum_exp(logs, *arguments), value)


def _log_ratio(_detail: object, difference: Any, a: Any, b: Any) -> Any:
    near = np.abs(difference) < np.abs(b) / 2
    return np.where(near, _log1p(None, difference / b), np.log(a) - np.log(b))


def _piecewise(_detail: object, *branches: Any) -> Any:
    result: Any = np.nan
    for value, condition in reversed(list(zip(branches[::2], branches[1::2], strict=True))):
        result = np.where(condition, value, result)
    return result


def _fold(function: Callable[..., Any]) -> Callable[..., Any]:
    def operation(_detail: object, first: Any, *others: Any) -> Any:
        for other in others:
            first = function(first, other)
        return first

    return operation


def _without_detail(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _detail, *operands: function(*operands)


def _of_scipy(name: str) -> Callable[..., Any]:
    """Return a special function, imported when it is called: most densities need none."""

    def operation(_detail: object, *operands: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*operands)

    return operation


def _upper_gamma(_detail: object, s: Any, x: Any) -> Any:
    from scipy import special

    return special.gamma(s) * special.gammaincc(s, x)


def _lower_gamma(_detail: object, s: Any, x: Any) -> Any:
    from scipy import special

    return special.gamma(s) * special.gammainc(s, x)


def _log_gamma(_detail: object, value: Any) -> Any:
    return _of_scipy("loggamma" if np.iscomplexobj(value) else "gammaln")(None, value)


def _log_bessel_k(_detail: object, order: Any, x: Any) -> Any:
    return np.log(_of_scipy("kve")(None, order, x)) - x


def _by_mpmath(above: int | None, *operands: Any) -> Any:
    """A pFq, or U, place by place: SciPy's have real parameters, and lose digits."""
    import mpmath

    def at(*operand: Any) -> Any:
        try:
            if above is None:
                return complex(mpmath.hyperu(*operand))
            return complex(mpmath.hyper(operand[:above], operand[above:-1], operand[-1]))
        except (ValueError, ArithmeticError, TypeError, mpmath.NoConvergence):
            return np.nan

    with mpmath.workdps(_DIGITS):
        values = np.asarray(np.frompyfunc(at, len(operands), 1)(*operands), dtype=complex)
    if any(map(np.iscomplexobj, operands)):
        return values
    return values.real


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _fold(np.add),
    "mul": _fold(np.multiply),
    "integer_power": _integer_power,
    "power": _without_detail(np.power),
    "log": _log,
    "log1p": _log1p,
    "expm1": _expm1,
    "log_ratio": _log_ratio,
    "log_sum_exp": _log_sum_exp,
    "unit_log_sum_exp": _unit_log_sum_exp,
    "piecewise": _piecewise,
    "abs": _without_detail(np.abs),
    "asin": _without_detail(np.arcsin),
    "acos": _without_detail(np.arccos),
    "atan": _without_detail(np.arctan),
    "asinh": _without_detail(np.arcsinh),
    "acosh": _without_detail(np.arccosh),
    "atanh": _without_detail(np.arctanh),
    "ceiling": _without_detail(np.ceil),
    "max": _fold(np.maximum),
    "min": _fold(np.minimum),
    "heaviside": lambda _, value: np.heaviside(value, 0.5),
    "erf": _of_scipy("erf"),
    "erfc": _of_scipy("erfc"),
    "erfi": _of_scipy("erfi"),
    "gamma": _of_scipy("gamma"),
    "loggamma": _log_gamma,
    "polygamma": _of_scipy("polygamma"),
    "log_besselk": _log_bessel_k,
    "log_besseli": _without_detail(_log_bessel_i),
    "log_erf_difference": _without_detail(log_erf_difference),
    "log_erfc": _without_detail(log_erfc),
    "besseli": _of_scipy("iv"),
    "besselk": _of_scipy("kv"),
    "besselj": _of_scipy("jv"),
    "bessely": _of_scipy("yv"),
    "hyper": _by_mpmath,
    "hyperu": _by_mpmath,
    "uppergamma": _upper_gamma,
    "lowergamma": _lower_gamma,
    "lt": _without_detail(np.less),
    "le": _without_detail(np.less_equal),
    "gt": _without_detail(np.greater),
    "ge": _without_detail(np.greater_equal),
    "eq": _without_detail(np.equal),
    "ne": _without_detail(np.not_equal),
    "and": _fold(np.logical_and),
    "or": _fold(np.logical_or),
    "not": _without_detail(np.logical_not),
    **{
        name: _without_detail(getattr(np, name))
        for name in ("exp", "sqrt", "sign", "floor", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
}


_Array = NDArray[Any]

_BITS = 136  # of constants, before they are rounded once
_MODERATE = 10**150  # coefficients within [1/this, this] multiply and divide without overflow
_SUMS_OF_EXPONENTIALS = ("log_sum_exp", "unit_log_sum_exp")


class NumpyFunction:
    """A compiled expression; call it with arrays, which broadcast against each other.

    `numbers`: the program's constants, where they depend on parameters that have values here alone.
    `logs`: the logarithms of those of which a double says too little, by slot.
    """

    def __init__(
        self,
        program: Program,
        numbers: Sequence[Any] | None = None,
        logs: Mapping[int, float] | None = None,
    ) -> None:
        for step in program.steps:
            if step.operation not in _OPERATIONS:
                raise InputError(f"the operation '{step.operation}' has no NumPy form")
        self._program = program
        self._numbers = numbers
        self._logs = logs
        if numbers is None:
            logs = _coefficients_by_logs(program)
        elif logs is None:
            logs = {}
        offset = len(program.symbols)
        self._constants = list(numbers or ())
        if not self._constants:
            self._constants = [
                None if offset + i in logs else _double(node)
                for i, node in enumerate(program.constants)
            ]
        for slot in logs:
            self._constants[slot - offset] = 1.0
        self._steps = [
            (
                _OPERATIONS[step.operation],
                [logs.get(slot) for slot in step.operands[::2]]
                if step.operation in _SUMS_OF_EXPONENTIALS
                else step.detail,
                step.operands,
            )
            for step in program.steps
        ]

    def __reduce__(self) -> tuple[type[NumpyFunction], tuple[Any, ...]]:
        return type(self), (self._program, self._numbers, self._logs)

    def __call__(self, *arguments: ArrayLike) -> _Array:
        """Return the values as float64, or complex128 where an argument is complex."""
        if len(arguments) != len(self._program.symbols):
            names = ", ".join(self._program.symbols)
            raise TypeError(f"expected the arguments ({names}), got {len(arguments)}")
        (result,) = self._result_arrays(arguments)
        return result

    def _result_arrays(self, arguments: Sequence[ArrayLike]) -> list[_Array]:
        arrays = [np.asarray(argument) for argument in arguments]
        inputs = [a if a.dtype.kind == "c" else a.astype(np.float64, copy=False) for a in arrays]
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
        return tuple(self._result_arrays(arguments))


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


def _double(node: sp.Expr) -> Any:
    """The nearest double (or complex, or bool) to a constant expression."""
    import sympy as sp

    if isinstance(node, sp.Rational):
        try:
            return node.p / node.q  # Python divides integers of any size with one rounding
        except OverflowError as error:
            raise InputError(f"the constant {sp.N(node, 5)} is beyond the double range") from error
    import mpmath

    from symdp.emit.exact import constant_value

    value = constant_value(node, _BITS)
    if isinstance(value, bool):
        return value
    if isinstance(value, mpmath.mpc):
        return complex(value)
    number = float(value)
    if np.isinf(number) and not mpmath.isinf(value):
        raise InputError(f"the constant {mpmath.nstr(value, 5)} is beyond the double range")
    return number


def _coefficients_by_logs(program: Program) -> dict[int, float]:
    """Slots of rational coefficients of which a double says too little, with their logarithms.

    It may not hold a binomial weight of a large batch; and where 1 − q leads, its rounding is much
    of a loss log(1 − q + …) about as small as q. A slot counts if it is no result and nothing but
    sums of exponentials reads it, which then add the logarithm to the exponent.
    """
    import sympy as sp

    offset = len(program.symbols)
    coefficients: dict[int, sp.Rational] = {}
    near_one: set[int] = set()
    for slot, node in enumerate(program.constants, start=offset):
        if not (isinstance(node, sp.Rational) and node.is_positive):
            continue
        if not 1 <= node * _MODERATE <= _MODERATE**2:
            coefficients[slot] = node
        elif 1 < 2 * node < 4 and sp.Rational(float(node)) != node:
            coefficients[slot] = node
            near_one.add(slot)
    only = coefficients_only(program, coefficients, near_one)
    return {slot: _double(sp.log(coefficients[slot])) for slot in only}


def coefficients_only(
    program: Program, slots: Iterable[int], near_one: Collection[int]
) -> list[int]:
    """Return which of some constants nothing but sums of exponentials reads, as coefficients."""
    used = set(program.results)
    for step in program.steps:
        if step.operation not in _SUMS_OF_EXPONENTIALS:
            used.update(step.operands)
            continue
        used.update(step.operands[1::2])
        if step.operation == "unit_log_sum_exp":  # 1 is told from Σ c there, not from its log
            used.update(slot for slot in near_one if slot in step.operands)
    return [slot for slot in slots if slot not in used]
