"""erf, erfc, their logarithms and differences: polynomials, for vectors and numbers alike.

e^(x²) erfc(x) (1 + x) is a smooth function of t = 1 − 2a/(x + a) on −1 ≤ t ≤ 1, whose Chebyshev
series ends after some 26 terms (Schonfelder, Math. Comp. 32, 1978, maps the half-line so). Its
coefficients are computed where a program is written. C has erf and erfc of its own.
"""

from __future__ import annotations

from symdp.emit.standalone.runtime.mechanism import SCALED_ERFC, SMALL_ERF
from symdp.emit.standalone.runtime.primitives import (
    INFINITY,
    PI,
    Number,
    absolute,
    chosen,
    exp,
    floor,
    log,
    minimum,
    polynomial,
    sqrt,
    where,
)

# ---- emitted from here on ----

ERFC_MIDDLE = 3.75  # a: where t = 0
ERF_SERIES = 1.0  # below it erf is a polynomial
NO_ERFC = 40.0  # erfc is no double from there on
SHORT_ERF = 0.5  # half a stretch that is short
SHORT_TURN = 0.125  # of its middle times half of it: differences beyond do not cancel
SHORT_TERMS = 13  # pairs of the series of a short stretch


def scaled_erfc(x: Number) -> Number:
    """Return exp(x^2) erfc(x) for x >= 0."""
    t = 1.0 - 2.0 * ERFC_MIDDLE / (x + ERFC_MIDDLE)
    return polynomial(SCALED_ERFC, t) / (1.0 + x)


def gaussian_of(x: Number) -> Number:
    """Return exp(-x^2), whose exponent is not rounded."""
    near = minimum(absolute(x), NO_ERFC)
    high = floor(16.0 * near) / 16.0
    return exp(-high * high) * exp((high - near) * (high + near))


def near_erf(x: Number) -> Number:
    """Return erf(x) where |x| is small."""
    return x * polynomial(SMALL_ERF, x * x)


def far_erf(x: Number) -> Number:
    """Return erf(x) where |x| is not small."""
    value = 1.0 - gaussian_of(x) * scaled_erfc(absolute(x))
    return where(x > 0.0, value, -value)


def erf(x: Number) -> Number:
    """Return erf(x)."""
    return chosen(absolute(x) < ERF_SERIES, near_erf, far_erf, x)


def erfc(x: Number) -> Number:
    """Return erfc(x)."""
    tail = gaussian_of(x) * scaled_erfc(absolute(x))
    return where(x > 0.0, tail, 2.0 - tail)


def log_erfc(x: Number) -> Number:
    """Return log erfc(x), which erfc itself has no double for beyond 27."""
    scaled = scaled_erfc(absolute(x))
    return where(x > 0.0, log(scaled) - x * x, log(2.0 - exp(-x * x) * scaled))


def log_short_difference(m: Number, h: Number) -> Number:
    """Return log(erf(m + h) - erf(m - h)) of a short stretch.

    It is the integral of exp(-(m + s)^2), a series of Hermite's polynomials.
    """
    turn = 2.0 * m * h
    square = 2.0 * h * h
    before = 0.0 * square
    term = 1.0 + before
    value = term
    for k in range(SHORT_TERMS):
        before = (turn * term - square * before) / (2.0 * k + 1.0)
        term = (turn * before - square * term) / (2.0 * k + 2.0)
        value = value + term / (2.0 * k + 3.0)
    return log(4.0 * h * value / sqrt(PI)) - m * m


def log_long_difference(m: Number, h: Number) -> Number:
    """Return the same of one that is not short, m >= 0."""
    near = m - h
    far = m + h
    near_scaled = scaled_erfc(absolute(near))
    far_scaled = scaled_erfc(far)
    about_zero = 2.0 - exp(-near * near) * near_scaled - exp(-far * far) * far_scaled
    beside_zero = near_scaled - exp(-4.0 * m * h) * far_scaled
    return where(near < 0.0, log(about_zero), log(beside_zero) - near * near)


def log_erf_difference(middle: Number, half: Number) -> Number:
    """Return log(erf(m + h) - erf(m - h)), which does not cancel."""
    m = absolute(middle)
    h = where(half > 0.0, half, INFINITY - INFINITY)
    is_short = (h <= SHORT_ERF) & (m * h <= SHORT_TURN)
    return chosen(is_short, log_short_difference, log_long_difference, m, h)
