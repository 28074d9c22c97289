"""Exponential remainders that keep their relative accuracy near zero.

n copies of a loss multiply every rounding error of K = log E e^{zL} by n, so K must be accurate
relative to itself, which near z = 0 is of second order: it is built from e^x − 1 − x, never from
e^x − 1 followed by a subtraction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symdp.numeric.step import Array

Complex = NDArray[np.complex128]

_SMALL = 0.5  # up to which a series is summed: above it no digit cancels
_CHUNK = 1 << 14  # phases at once: what a processor's cache holds
# 1/k! for the exponential's remainder, highest first: what is left out is 1e-18 of it.
_EXPONENTIAL = [1.0 / math.factorial(k) for k in range(17, 1, -1)]
# (−1)^k/(2k+1)! for the sine's remainder, highest first.
_SINE = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(7, 0, -1)]


def _horner(coefficients: list[float], x: Array) -> Array:
    """Return the polynomial with these coefficients, highest first."""
    value = np.full(x.shape, coefficients[0])
    for coefficient in coefficients[1:]:
        value *= x
        value += coefficient
    return value


def distinct(values: Array) -> Array:
    """Return numbers in rising order, each once; `np.unique` would load masked arrays for it.

    Examples
    --------
    >>> distinct(np.array([2.0, 1.0, 2.0])).tolist(), distinct(np.empty(0)).size
    ([1.0, 2.0], 0)
    """
    rising = np.sort(values)
    keep = np.ones(rising.size, dtype=bool)
    np.not_equal(rising[1:], rising[:-1], out=keep[1:])
    return np.asarray(rising[keep])


def log_sum(values: ArrayLike) -> float:
    """Return log Σ e^v, added with more digits than a double has; −inf of nothing.

    Examples
    --------
    >>> log_sum([-1000.0, -1000.0]) == -1000.0 + math.log(2.0), log_sum([])
    (True, -inf)
    """
    given = np.asarray(values, dtype=np.float64).ravel()
    top = float(given.max(initial=-np.inf))
    if math.isinf(top):
        return top
    return top + math.log(float(np.exp(given - top).sum(dtype=np.longdouble)))


def log_payoff(s: Any) -> Any:
    """Return log of s^s/(1+s)^{1+s}, the largest value of (1 − e^{−x})⁺e^{−sx} [SPA (43)].

    Written so that a large s does not cancel; 0 at s = 0.

    Examples
    --------
    >>> float(log_payoff(1.0)) == -2.0 * math.log(2.0), log_payoff(np.array([0.0, 1e9])).round(6)
    (True, array([  0.      , -21.723266]))
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(s > 0.0, -s * np.log1p(1.0 / np.asarray(s)) - np.log1p(s), 0.0)


def exponential_remainder(x: Array) -> Array:
    """Return e^x − 1 − x for real x, accurate relative to itself: near zero by its series."""
    every = np.ravel(x)
    result = np.empty(every.size)
    for start in range(0, every.size, _CHUNK):
        here = every[start : start + _CHUNK]
        small = np.clip(here, -_SMALL, _SMALL)
        value = _horner(_EXPONENTIAL, small)
        value *= small * small
        large = np.abs(here) >= _SMALL
        if large.any():
            far = here[large]
            value[large] = np.expm1(far) - far
        result[start : start + _CHUNK] = value
    return result.reshape(np.shape(x))


def oscillation_sum(y: Array, deviation: Array, weight: Array) -> Complex:
    """Return Σⱼ wⱼ (e^{iydⱼ} − 1 − iydⱼ) for every y, each part accurate relative to itself.

    The sums are products of real matrices: complex ones are handed to threads, whose waking takes
    longer than the whole work.
    """
    result = np.empty(y.shape, dtype=np.complex128)
    rows = max(1, _CHUNK // max(deviation.size, 1))
    for start in range(0, y.size, rows):
        # With u = tan(x/2), the one of these functions that NumPy has as vector instructions:
        # sin x = 2u/(1 + u²) and 1 − cos x = 2u²/(1 + u²).
        half = np.multiply.outer(0.5 * y[start : start + rows], deviation)
        tangent = np.tan(half)
        sine = tangent * tangent
        sine += 1.0
        np.divide(tangent, sine, out=sine)
        tangent *= sine
        result[start : start + rows].real = -2.0 * (tangent @ weight)
        sine -= half
        small = np.abs(half) < 0.5 * _SMALL
        near = 2.0 * half[small]
        square = near * near
        sine[small] = 0.5 * near * square * _horner(_SINE, square)
        result[start : start + rows].imag = 2.0 * (sine @ weight)
    return result
