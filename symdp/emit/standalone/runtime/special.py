"""Special functions of densities for NumPy: Bessel's I and K, erfi, incomplete gamma functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symdp.emit.standalone.runtime.primitives import gamma, lgamma

# ---- emitted from here on ----


def _both(a: Any, b: Any) -> Any:
    """Return numbers or vectors as doubles of one shape."""
    first = np.asarray(a, dtype=float)
    second = np.asarray(b, dtype=float)
    return np.broadcast_arrays(first, second)


def _beyond_linear(a: Any, square: Any) -> Any:
    """Return sinh a - a where the square is that of a, and sin a - a where it is minus that."""
    value: Any = 1.0
    for number in (156.0, 110.0, 72.0, 42.0, 20.0):
        value = 1.0 + square * value / number
    return a * square * value / 6.0


def _bessel_series(v: Any, square: Any) -> Any:
    part = np.ones(v.shape)
    value = part
    for k in range(1, 100000):
        part = part * square
        part = part / (k * (v + k))
        value = value + part
        if not (part > 1e-18 * value).any():
            break
    return value


def _steepest(v: Any, r: Any) -> Any:
    """Return the integral of exp(r (cos a - 1)) cos(v (sin a - a)) from 0 to pi, over pi."""
    h = 0.5 / np.sqrt(r)
    value = 0.5 + 0.0 * v
    for k in range(1, 100000):
        a = k * h
        half_sine = np.sin(0.5 * a)
        fall = 2.0 * r * half_sine**2
        inside = (a < math.pi) & (fall < 45.0)
        if not inside.any():
            break
        beyond_linear = _beyond_linear(a, -a * a)
        turn = np.where(a < 0.1, beyond_linear, np.sin(a) - a)
        height = np.exp(-fall) * np.cos(v * turn)
        value = value + np.where(inside, height, 0.0)
    return h * value / math.pi


def log_besseli(order: Any, x: Any) -> Any:
    """Return log I_v(x), v >= 0: its series, or the integral along the steepest path."""
    v, x = _both(order, x)
    in_series = (x <= 30.0) | (x * x <= 40.0 * (v + 1.0))
    order_near = np.where(in_series, v, 1.0)
    square_near = np.where(in_series, 0.25 * x * x, 1.0)
    series = _bessel_series(order_near, square_near)
    first_term = v * np.log(0.5 * x) - lgamma(order_near + 1.0)
    below = first_term + np.log(series)
    r = np.hypot(x, v)
    integral = _steepest(v, np.where(in_series, 900.0, r))
    beyond_x = x + v * v / (r + x)
    most = np.where(x > v, beyond_x, r)
    peak = most - v * np.arcsinh(v / x)
    above = peak + np.log(integral)
    value = np.where(in_series, below, above)
    at_zero = np.where(v > 0.0, -np.inf, 0.0)
    value = np.where(x == 0.0, at_zero, value)
    is_known = (x >= 0.0) & (v >= 0.0)
    return np.where(is_known, value, np.nan)


def _fall(v: Any, r: Any, x: Any, u: Any) -> Any:
    """Return r (cosh u - 1) + v (sinh u - u), which on the left is a difference."""
    beyond_linear = _beyond_linear(u, u * u)
    over = np.where(np.abs(u) < 0.5, beyond_linear, np.sinh(u) - u)
    half_sine = np.sinh(0.5 * u)
    near = 2.0 * r * half_sine**2 + v * over
    falling = x * x / (r + v) * np.exp(-u)
    rising = (r + v) * np.exp(u)
    far = 0.5 * (falling + rising) - r - v * u
    is_near = (u > 0.0) | (far < 4.0)
    return np.where(is_near, near, far)


def log_besselk(order: Any, x: Any) -> Any:
    """Return log K_v(x): the sum of exp(-x cosh t + vt) about its highest place."""
    v, x = _both(np.abs(order), x)
    r = np.hypot(x, v)
    h = np.minimum(0.15, 0.5 / np.sqrt(r))
    heights = np.ones(v.shape)
    for side in (-1.0, 1.0):
        for k in range(1, 100000):
            fall = _fall(v, r, x, side * k * h)
            if not (fall <= 45.0).any():
                break
            heights = heights + np.exp(-fall)
    value = v * np.arcsinh(v / x) - r
    value = value + np.log(0.5 * h * heights)
    at_zero = np.where(x == 0.0, np.inf, np.nan)
    return np.where(x > 0.0, value, at_zero)


def besseli(order: Any, x: Any) -> Any:
    """Return I_v(x)."""
    v, x = _both(order, x)
    is_negative = x < 0.0
    is_odd = v != 2.0 * np.floor(0.5 * v)
    value = np.exp(log_besseli(v, np.abs(x)))
    value = np.where(is_negative & is_odd, -value, value)
    is_whole = v == np.floor(v)
    is_complex = is_negative & ~is_whole
    return np.where(is_complex, np.nan, value)


def besselk(order: Any, x: Any) -> Any:
    """Return K_v(x)."""
    return np.exp(log_besselk(order, x))


def erfi(x: Any) -> Any:
    """Return erf(ix)/i by its series of positive terms."""
    part = value = np.asarray(x, dtype=float)
    for k in range(1, 100000):
        part = part * x * x / k
        value = value + part / (2.0 * k + 1.0)
        if not (np.abs(part) > 1e-18 * np.abs(value)).any():
            break
    return 2.0 / math.sqrt(math.pi) * value


def _gamma_below(s: Any, x: Any) -> Any:
    part = value = 1.0 / np.asarray(s, dtype=float)
    for k in range(1, 100000):
        part = part * x
        part = part / (s + k)
        value = value + part
        if not (np.abs(part) > 1e-18 * np.abs(value)).any():
            break
    return value


def _gamma_above(s: Any, x: Any) -> Any:
    b = x + 1.0 - s
    c = 1e300
    d = 1.0 / b
    f = d
    for k in range(1, 100000):
        a = -k * (k - s)
        b = b + 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        f = f * c * d
        if not (np.abs(c * d - 1.0) >= 1e-16).any():
            break
    return f


def lowergamma(s: Any, x: Any) -> Any:
    """Return the integral of y^(s - 1) e^-y up to x, s > 0."""
    s, x = _both(s, x)
    is_near = x < s + 1.0
    scale = np.exp(s * np.log(x) - x)
    x_near = np.where(is_near, x, s)
    x_far = np.where(is_near, s + 1.0, x)
    below = scale * _gamma_below(s, x_near)
    missing = scale * _gamma_above(s, x_far)
    above = gamma(s) - missing
    value = np.where(is_near, below, above)
    value = np.where(x == 0.0, 0.0, value)
    is_known = (s > 0.0) & (x >= 0.0)
    return np.where(is_known, value, np.nan)


def uppergamma(s: Any, x: Any) -> Any:
    """Return the integral of y^(s - 1) e^-y from x on; s from -30 on."""
    s, x = _both(s, x)
    is_far = (x > 1.0) & (x >= s + 1.0)
    scale = np.exp(s * np.log(x) - x)
    least = np.maximum(s, 0.0) + 1.0
    x_far = np.where(is_far, x, least)
    far = scale * _gamma_above(s, x_far)
    positive = np.where(s > 0.0, s, 1.0)
    below = np.where(x == 0.0, 0.0, scale)
    near = gamma(positive) - below * _gamma_below(positive, x)
    at_zero = _exponential_integral(x)
    value = np.where(s == 0.0, at_zero, np.nan)
    value = np.where(s > 0.0, near, value)
    value = np.where(is_far, far, value)
    is_negative = (s < 0.0) & (s > -30.0)
    is_below = is_negative & ~is_far
    is_below = is_below & (x > 0.0)
    if is_below.any():
        next_order = np.where(is_below, s + 1.0, 1.0)
        following = uppergamma(next_order, x)
        divisor = np.where(is_below, s, 1.0)
        quotient = (following - scale) / divisor
        value = np.where(is_below, quotient, value)
    return value


def _exponential_integral(x: Any) -> Any:
    """Return that from x on, x up to 1."""
    part = 1.0 + 0.0 * x
    value = -np.euler_gamma - np.log(x)
    for k in range(1, 60):
        part = -part * np.minimum(x, 1.0) / k
        value = value - part / k
    return value
