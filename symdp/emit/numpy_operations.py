"""The operations of a program on NumPy arrays: each takes (detail, *operands)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symdp.emit.erf_difference import log_erf_difference, log_erfc

_UNDERFLOW = -660.0  # of e^{−x} I_ν(x)
_MOST_TERMS = 256.0
_ROUNDING = 1e-17


def _integer_power(exponent: int, base: Any) -> Any:
    if exponent == 2:
        return base * base
    return 1.0 / base if exponent == -1 else np.power(base, float(exponent))


def _turn(value: Any) -> Any:
    """exp(−i Im x): SciPy's scaled I carries exp(−|Re x|), and the branch wants exp(−x)."""
    return np.exp(-1j * value.imag) if np.iscomplexobj(value) else 1.0


def _log_bessel_i(order: Any, x: Any) -> Any:
    """Log I_ν(x), by its series of positive terms where a large order leaves no double of I."""
    from scipy import special

    with np.errstate(divide="ignore"):
        value = np.log(special.ive(order, x) * _turn(x)) + x
    if np.iscomplexobj(x):
        return value
    order, x, value = np.broadcast_arrays(order, x, value)
    square = 0.25 * x * x
    tiny = (value - x < _UNDERFLOW) & (square < _MOST_TERMS * (order + 1.0))
    if not tiny.any():
        return value
    nu, square = order[tiny], square[tiny]
    term, total, k = np.ones(nu.size), np.ones(nu.size), 1
    while (term > _ROUNDING * total).any():
        term = term * square / (k * (nu + k))
        total, k = total + term, k + 1
    filled = np.array(value)
    filled[tiny] = nu * np.log(0.5 * x[tiny]) - special.gammaln(nu + 1.0) + np.log(total)
    return filled


def _log1p(_detail: object, value: Any) -> Any:
    # NumPy's own complex log1p loses small arguments; SciPy's does not.
    return _of_scipy("log1p")(None, value) if np.iscomplexobj(value) else np.log1p(value)


def _expm1(_detail: object, value: Any) -> Any:
    return _of_scipy("expm1")(None, value) if np.iscomplexobj(value) else np.expm1(value)


def _log(_detail: object, value: Any) -> Any:
    return np.log(value)


def _log_sum_exp(logs: list[float | None], *arguments: Any) -> Any:
    """Log Σ c exp(a) around its largest term with a positive coefficient."""
    exponents = [
        a if log is None else a + log for a, log in zip(arguments[1::2], logs, strict=True)
    ]
    if len(logs) == 2 and all(np.ndim(c) == 0 and np.isreal(c) and c > 0 for c in arguments[::2]):
        first, second = (np.log(c) + a for c, a in zip(arguments[::2], exponents, strict=True))
        if not (np.iscomplexobj(first) or np.iscomplexobj(second)):
            return np.logaddexp(first, second)
    spread = np.broadcast_arrays(*arguments[::2], *exponents)
    c, a = np.stack(spread[: len(logs)]), np.stack(spread[len(logs) :])
    weights = np.where(c.real > 0, np.log(np.abs(c)) + a.real, -np.inf)
    pivot = np.argmax(weights, axis=0)[np.newaxis]
    top, peak = np.take_along_axis(c, pivot, 0), np.take_along_axis(a, pivot, 0)
    shares = c * np.exp(a - peak) / top
    np.put_along_axis(shares, pivot, 0.0, 0)
    value = (peak + np.log(top))[0] + _log1p(None, shares.sum(axis=0))
    # An infinite peak leaves inf − inf in the shares, though the answer is plain.
    return np.where(np.isfinite(peak[0].real), value, peak[0])


def _unit_log_sum_exp(logs: list[float | None], *arguments: Any) -> Any:
    """Log Σ c exp(a) where Σ c = 1: log1p(Σ c expm1(a)) unless that sum is near −1 or overflows."""
    total: Any = 0.0
    for c, a, log in zip(arguments[::2], arguments[1::2], logs, strict=True):
        if log is not None:
            total = total + (np.exp(a + log) - np.exp(log))
        elif not (isinstance(a, float) and a == 0.0):
            total = total + c * _expm1(None, a)
    value = _log1p(None, total)
    far = ~((np.real(total) > -0.5) & np.isfinite(total))
    if not np.any(far):
        return value
    if np.ndim(value) and all(np.shape(x) in ((), value.shape) for x in arguments):
        value[far] = _log_sum_exp(logs, *[x[far] if np.ndim(x) else x for x in arguments])
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
    def operation(_detail: object, first: Any, *rest: Any) -> Any:
        for other in rest:
            first = function(first, other)
        return first

    return operation


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _detail, *operands: function(*operands)


def _of_scipy(name: str) -> Callable[..., Any]:
    """Return a special function, imported when it is called: most densities need none."""

    def operation(_detail: object, *operands: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*operands)

    return operation


def _incomplete_gamma(name: str) -> Callable[..., Any]:
    ratio, gamma = _of_scipy(name), _of_scipy("gamma")
    return lambda _detail, s, x: gamma(None, s) * ratio(None, s, x)


def _log_gamma(_detail: object, value: Any) -> Any:
    return _of_scipy("loggamma" if np.iscomplexobj(value) else "gammaln")(None, value)


def _log_bessel_k(_detail: object, order: Any, x: Any) -> Any:
    return np.log(_of_scipy("kve")(None, order, x)) - x


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _fold(np.add),
    "mul": _fold(np.multiply),
    "integer_power": _integer_power,
    "power": _plain(np.power),
    "log": _log,
    "log1p": _log1p,
    "expm1": _expm1,
    "log_ratio": _log_ratio,
    "log_sum_exp": _log_sum_exp,
    "unit_log_sum_exp": _unit_log_sum_exp,
    "piecewise": _piecewise,
    "abs": _plain(np.abs),
    "asin": _plain(np.arcsin),
    "acos": _plain(np.arccos),
    "atan": _plain(np.arctan),
    "asinh": _plain(np.arcsinh),
    "acosh": _plain(np.arccosh),
    "atanh": _plain(np.arctanh),
    "ceiling": _plain(np.ceil),
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
    "log_besseli": _plain(_log_bessel_i),
    "log_erf_difference": _plain(log_erf_difference),
    "log_erfc": _plain(log_erfc),
    "besseli": _of_scipy("iv"),
    "besselk": _of_scipy("kv"),
    "besselj": _of_scipy("jv"),
    "bessely": _of_scipy("yv"),
    "uppergamma": _incomplete_gamma("gammaincc"),
    "lowergamma": _incomplete_gamma("gammainc"),
    "lt": _plain(np.less),
    "le": _plain(np.less_equal),
    "gt": _plain(np.greater),
    "ge": _plain(np.greater_equal),
    "eq": _plain(np.equal),
    "ne": _plain(np.not_equal),
    "and": _fold(np.logical_and),
    "or": _fold(np.logical_or),
    "not": _plain(np.logical_not),
    **{
        name: _plain(getattr(np, name))
        for name in ("exp", "sqrt", "sign", "floor", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
}
