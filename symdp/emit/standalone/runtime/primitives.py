"""What the accountant is written in, for NumPy: its names say what each does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# ---- emitted from here on ----

Number = Any
Vector = Any
INFINITY = math.inf
PI = math.pi
exp, expm1, log, log1p, sqrt, sin, cos = np.exp, np.expm1, np.log, np.log1p, np.sqrt, np.sin, np.cos
power = np.power
atan2 = np.arctan2
hypot = np.hypot
floor = np.floor
absolute = np.abs
where = np.where
maximum = np.maximum
minimum = np.minimum
isfinite = np.isfinite
ordered = np.sort
repeated = np.repeat
tiled = np.tile


class NoAnswerError(ArithmeticError):
    """No number can be given; the message says why."""


def fail(message: str) -> None:
    """Give no answer, and say why."""
    raise NoAnswerError(message)


def size(v: Any) -> int:
    """Return how many numbers a vector holds."""
    return int(v.size)


def filled(count: float, value: float) -> Any:
    """Return a vector of one number."""
    return np.full(int(count), float(value))


def steps(count: float) -> Any:
    """Return 0, 1, 2, ..."""
    return np.arange(float(count))


def joined(a: Any, b: Any) -> Any:
    """Return one vector after another."""
    return np.concatenate([a, b])


def kept(v: Any, mask: Any) -> Any:
    """Return the numbers where a mask holds."""
    return v[mask != 0]


def gathered(v: Any, start: float, count: float) -> Any:
    """Return a stretch of a vector."""
    return v[int(start) : int(start + count)]


def ranking(v: Any) -> Any:
    """Return the places of a vector in the order of its numbers."""
    return v.argsort()


def taken(v: Any, places: Any) -> Any:
    """Return the numbers at places."""
    return v[places.astype(int)]


def largest(v: Any) -> float:
    """Return the largest number, or minus infinity."""
    return float(v.max()) if v.size else -INFINITY


def total(v: Any) -> float:
    """Return a sum with one rounding."""
    try:
        return math.fsum(v.tolist())
    except (OverflowError, ValueError):  # infinite terms
        return float(v.sum())


def summed(v: Any) -> float:
    """Return a plain sum."""
    return float(v.sum())


def sums_of(v: Any, count: int) -> Any:
    """Return the sums of equal stretches."""
    return v.reshape(-1, count).sum(axis=1)


def largest_of(v: Any, count: int) -> Any:
    """Return the largest numbers of equal stretches."""
    return v.reshape(-1, count).max(axis=1)


def binned(places: Any, v: Any, count: float) -> Any:
    """Return the sums of numbers that belong to one place."""
    return np.bincount(places.astype(int), v, int(count))


def spread_over(v: Any, places: Any, off: Any, count: float, wide: int, decay: float) -> Any:
    """Return the sums on a grid that closes of numbers, each spread as a Gaussian about its place.

    exp(-c (o + k)^2) is exp(-c o^2) exp(-2 c o k) exp(-c k^2), the middle one a power.
    """
    many = int(count)
    k = wide // 2 - 1
    first = (places.astype(int) - k) % many
    share = v * np.exp(-decay * off * (off + 2.0 * k))
    step = np.exp(2.0 * decay * off)
    grid = np.zeros(many + wide)
    for i in range(wide):
        part = math.exp(-decay * (k - i) ** 2) * share
        grid[i : i + many] += np.bincount(first, part, many)
        share *= step
    grid[:wide] += grid[many:]
    return grid[:many]


def spectrum(real: Any, imaginary: Any, sign: float) -> Any:
    """Return the discrete Fourier transform, or its inverse: real parts, then imaginary ones."""
    waves = (np.fft.fft if sign > 0 else np.fft.ifft)(real + 1j * imaginary)
    return np.concatenate([waves.real, waves.imag])


def _mapped(function: Any) -> Any:
    def value(x: float) -> float:
        try:
            return float(function(x))
        except (OverflowError, ValueError):
            return math.nan  # no value: the law's mass tells

    return lambda x: np.asarray(np.frompyfunc(value, 1, 1)(x), dtype=float)


def polynomial(coefficients: Any, x: Any) -> Any:
    """Return a polynomial by Horner's rule, whose highest power is first."""
    value = np.full(np.shape(x), coefficients[0])
    for coefficient in coefficients[1:]:
        value *= x
        value += coefficient
    return value


def chosen(mask: Any, if_true: Any, if_false: Any, *arguments: Any) -> Any:
    """Return one function where a mask holds, and another elsewhere."""
    if np.all(mask):
        return if_true(*arguments)
    if not np.any(mask):
        return if_false(*arguments)
    holds, *parts = np.broadcast_arrays(mask, *arguments)
    value = np.empty(holds.shape)
    value[holds] = if_true(*(part[holds] for part in parts))
    value[~holds] = if_false(*(part[~holds] for part in parts))
    return value


gamma = _mapped(math.gamma)
lgamma = _mapped(math.lgamma)


def log_ratio(difference: Any, a: Any, b: Any) -> Any:
    """Return log(a/b), the difference given."""
    near = np.abs(difference) < np.abs(b) / 2
    return np.where(near, np.log1p(difference / b), np.log(a) - np.log(b))


def log_sum_exp(*pairs: Any) -> Any:
    """Return log of the sum of c exp(a), pairs (c, a), around its largest term."""
    parts = np.broadcast_arrays(*pairs)
    c = np.stack(parts[::2]).astype(float)
    a = np.stack(parts[1::2]).astype(float)
    heights = np.where(c > 0, np.log(np.abs(c)) + a, -np.inf)
    pivot = heights.argmax(axis=0)[None]
    top = np.take_along_axis(c, pivot, 0)
    peak = np.take_along_axis(a, pivot, 0)
    shares = c * np.exp(a - peak) / top
    np.put_along_axis(shares, pivot, 0.0, 0)
    log_largest = (peak + np.log(top))[0]
    value = log_largest + np.log1p(shares.sum(axis=0))
    return np.where(np.isfinite(peak[0]), value, peak[0])


def unit_log_sum_exp(*pairs: Any) -> Any:
    """Return the same where the c add up to 1, accurate where it is small."""
    less_one: Any = 0.0
    for c, a in zip(pairs[::2], pairs[1::2], strict=True):
        less_one = less_one + c * np.expm1(a)
    is_near = (less_one > -0.5) & np.isfinite(less_one)
    near = np.log1p(np.where(is_near, less_one, 0.0))
    return np.where(is_near, near, log_sum_exp(*pairs))


def careful(*parts: float) -> float:
    """Add rounded numbers, unless their digits cancel."""
    value = math.fsum(parts)
    if abs(value) < 1e-3 * max(map(abs, parts)):
        fail("digits cancel in double precision at these values; the package answers")
    return value
