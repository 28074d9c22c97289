"""What the accountant is written in, for NumPy: its names say what each does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

PLACES: list[float] = []
WEIGHTS: list[float] = []

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


erf, erfc, gamma, lgamma = map(_mapped, (math.erf, math.erfc, math.gamma, math.lgamma))


def log_scaled_erfc(x: Any) -> Any:
    """Return log of exp(x^2) erfc(x)."""
    far: Any = np.maximum(x, 2.0)
    fraction: Any = 0.0
    for k in range(60, 0, -1):
        fraction = 0.5 * k / (far + fraction)
    near = np.minimum(x, 2.0)
    value_near = near * near + np.log(erfc(near))
    value_far = -np.log(math.sqrt(math.pi) * (far + fraction))
    return np.where(np.asarray(x) < 2.0, value_near, value_far)


def log_erfc(x: Any) -> Any:
    """Return log erfc(x), which erfc itself has no double for beyond 27."""
    far = np.maximum(x, 25.0)
    near = np.log(erfc(np.minimum(x, 25.0)))
    return np.where(np.asarray(x) > 25.0, log_scaled_erfc(far) - far * far, near)


def log_erf_difference(middle: Any, half: Any) -> Any:
    """Return log(erf(m + h) - erf(m - h)), which does not cancel."""
    distance = np.abs(np.asarray(middle, dtype=float))
    m, h = np.broadcast_arrays(distance, half)
    is_short = (h <= 0.5) & (m * h <= 2.0)  # 20 Gauss nodes
    weight: Any = 0.0
    shift = np.where(is_short, h, 0.0)
    twice = 2.0 * np.where(is_short, m, 0.0)
    for x, w in zip(PLACES, WEIGHTS, strict=True):
        step = shift * x
        weight = weight + w * np.exp(-shift * x * (twice + step))
    short = np.log(2.0 * h * weight / math.sqrt(math.pi)) - m * m
    wide = np.log(erf(m + h) + erf(h - m))
    first = log_scaled_erfc(np.maximum(m - h, 0.0))
    last = log_scaled_erfc(m + h)
    lost = np.exp(last - first - 4.0 * m * h)
    tail = first - (m - h) ** 2 + np.log1p(-lost)
    value = np.where(m < h, wide, tail)
    value = np.where(is_short, short, value)
    return np.where(h > 0.0, value, np.nan)


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
