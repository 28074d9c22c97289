"""Exponentials that keep their relative accuracy near zero, and sums of very many of them.

n copies of a loss multiply every rounding error of K = log E e^{zL} by n, so K must be accurate
relative to itself, which near z = 0 is of second order: it is built from e^x − 1 − x, never from
e^x − 1 followed by a subtraction.

**Sums Σⱼ wⱼ e^{ikθⱼ} for many consecutive k.** Of few points, e^{i(a+b)θ} = e^{iaθ} e^{ibθ} makes
the sums of all k = a + b one matrix product. Of many, each is spread over a fine grid with the
kernel e^{β(√(1−x²)−1)} (Barnett, Magland and af Klinteberg, SIAM J. Sci. Comput. 2019),
transformed, and divided by the kernel's own transform.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import ArrayLike, NDArray

from symdp.numeric.step import Array

Complex = NDArray[np.complex128]

_SMALL = 0.5  # up to which a series is summed: above it no digit cancels
CHUNK = 1 << 14  # numbers at once: what a processor's cache holds
_ALONE = 1 << 13  # numbers of a sum: longer ones BLAS hands to threads, whose waking takes longer
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
    """Return numbers in rising order, each once; `np.unique` would load masked arrays for it."""
    rising = np.sort(values)
    keep = np.ones(rising.size, dtype=bool)
    np.not_equal(rising[1:], rising[:-1], out=keep[1:])
    return np.asarray(rising[keep])


def weighted_sums(values: Array, weight: Array) -> Array:
    """Return `values @ weight` of one row or many, in blocks that no other thread is woken for."""
    count = weight.size
    if count > _ALONE:
        blocks = [slice(start, start + _ALONE) for start in range(0, count, _ALONE)]
        return np.asarray(sum(weighted_sums(values[..., part], weight[part]) for part in blocks))
    if values.size <= CHUNK:
        return np.asarray(values @ weight)
    rows = CHUNK // count
    return np.concatenate(
        [values[start : start + rows] @ weight for start in range(0, len(values), rows)]
    )


def matrix_product(left: Array, right: Array) -> Array:
    """Return `left @ right` in blocks that no other thread is woken for."""
    count, inner = left.shape
    columns = right.shape[1]
    depth = max(1, _ALONE // columns)
    rows = 2 * CHUNK // _ALONE
    total = np.zeros((count, columns))
    for begin in range(0, inner, depth):
        part = slice(begin, begin + depth)
        for row in range(0, count, rows):
            total[row : row + rows] += left[row : row + rows, part] @ right[part]
    return total


def log_sum(values: ArrayLike) -> float:
    """Return log Σ e^v, added with more digits than a double has; −inf of nothing."""
    terms = np.asarray(values, dtype=np.float64).ravel()
    top = float(terms.max(initial=-np.inf))
    if math.isinf(top):
        return top
    total = np.exp(terms - top).sum(dtype=np.longdouble)
    return top + math.log(float(total))


def log_payoff(s: Any) -> Any:
    """Return log s^s/(1+s)^{1+s}, the largest (1 − e^{−x})⁺e^{−sx} [SPA (43)], 0 at s = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.log1p(1.0 / np.asarray(s))
        value = -s * log_ratio - np.log1p(s)
        return np.where(s > 0.0, value, 0.0)


def exponential_remainder(x: Array) -> Array:
    """Return e^x − 1 − x for real x, accurate relative to itself: near zero by its series."""
    flat = np.ravel(x)
    result = np.empty(flat.size)
    for start in range(0, flat.size, CHUNK):
        chunk = flat[start : start + CHUNK]
        near = np.clip(chunk, -_SMALL, _SMALL)
        value = _horner(_EXPONENTIAL, near)
        value *= near * near
        is_far = np.abs(chunk) >= _SMALL
        if is_far.any():
            far = chunk[is_far]
            value[is_far] = np.expm1(far) - far
        result[start : start + CHUNK] = value
    return result.reshape(np.shape(x))


def oscillation_sum(y: Array, deviation: Array, weight: Array) -> Complex:
    """Return Σⱼ wⱼ (e^{iydⱼ} − 1 − iydⱼ) for every y, each part accurate relative to itself.

    The sums are products of real matrices: complex ones are handed to threads, whose waking takes
    longer than the whole work.
    """
    result = np.empty(y.shape, dtype=np.complex128)
    rows = max(1, CHUNK // max(deviation.size, 1))
    for start in range(0, y.size, rows):
        block = slice(start, start + rows)
        # With u = tan(x/2), the one of these functions that NumPy has as vector instructions:
        # sin x = 2u/(1 + u²) and 1 − cos x = 2u²/(1 + u²).
        half = np.multiply.outer(0.5 * y[block], deviation)
        tangent = np.tan(half)
        sine = tangent * tangent
        sine += 1.0
        np.divide(tangent, sine, out=sine)
        tangent *= sine
        result[block].real = -2.0 * weighted_sums(tangent, weight)
        sine -= half
        is_small = np.abs(half) < 0.5 * _SMALL
        near = 2.0 * half[is_small]
        square = near * near
        remainder = 0.5 * near * square * _horner(_SINE, square)
        sine[is_small] = remainder
        result[block].imag = 2.0 * weighted_sums(sine, weight)
    return result


_SMALL_SQUARE = -0.75  # |1 + z|² − 1 for |1 + z| = 1/2
_LOG_ZERO = -800.0  # stands for log 0: e^-800 is zero in double precision, and stays so times n


def log_one_plus(z: Complex) -> Complex:
    """Return log(1 + z), accurate relative to itself or to 1 + z, on the principal branch."""
    real = z.real
    imaginary = z.imag
    result = np.empty(z.shape, dtype=np.complex128)
    with np.errstate(divide="ignore"):
        plain_square = real * (2.0 + real) + imaginary * imaginary
        square = np.maximum(plain_square, -1.0)
        log_modulus = 0.5 * np.log1p(square)
        # Next to −1 the square cancels, and its root would keep half of the digits.
        is_small = square < _SMALL_SQUARE
        modulus = np.hypot(1.0 + real[is_small], imaginary[is_small])
        log_modulus[is_small] = np.log(modulus)
        result.real = np.maximum(log_modulus, _LOG_ZERO)
    result.imag = np.arctan2(imaginary, 1.0 + real)
    return result


_WIDTH = 15  # grid points a source is spread over: relative error about 1e-14
_BETA = 2.30 * _WIDTH  # of the kernel e^{β(√(1−x²)−1)}, for a grid four times as fine


@cache
def _kernel_transform() -> Chebyshev:
    """Return the kernel's Fourier transform, which is even, as a polynomial in (k/grid)² ≤ 1/16."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    root = np.sqrt(1.0 - nodes * nodes)
    kernel = np.exp(_BETA * (root - 1.0))
    values = weights * kernel

    def transform(square: Array) -> Array:
        frequency = np.sqrt(square) * (np.pi * _WIDTH)
        phase = np.multiply.outer(frequency, nodes)
        return 0.5 * _WIDTH * (np.cos(phase) @ values)

    return Chebyshev.interpolate(transform, 20, domain=[0.0, 0.0676])


def _quick_length(least: int) -> int:
    """Return a length, hardly greater, that a fast Fourier transform takes quickly."""
    shift = max(least.bit_length() - 4, 0)
    lengths = [k << shift for k in (8, 9, 10, 12, 15, 16)]
    return next(length for length in lengths if length >= least)


def uniform_sum(weight: Array, angle: Array, first: int, last: int) -> Complex:
    """Return Σⱼ wⱼ e^{ikθⱼ} for k = first, …, last − 1, absolute error below 5e-14 Σ|wⱼ|.

    Angles are at most 2π in size; what k times their rounding turns the terms comes on top.
    """
    count = last - first
    size = np.abs(weight)
    counts = size > 1e-17 * size.sum() / weight.size
    if np.count_nonzero(counts) <= 4 * _WIDTH:  # else a transform takes less time
        weight = weight[counts]
        angle = angle[counts]
        width = 1 << (count.bit_length() + 1) // 2
        starts = np.arange(first, last, width)
        start_phases = np.multiply.outer(starts, angle)
        column_phases = np.multiply.outer(angle, np.arange(width))
        rows = np.exp(1j * start_phases) * weight
        columns = np.exp(1j * column_phases)
        return np.asarray((rows @ columns).ravel()[:count])
    turned = weight * np.exp(1j * first * angle)
    columns = np.stack([turned.real, turned.imag], axis=1)
    real, imaginary = column_sums(columns, -angle, count)
    return np.asarray(real + 1j * imaginary)


def column_sums(weights: Array, angle: Array, count: int) -> Complex:
    """Return Σⱼ wⱼᵢ e^{−ikθⱼ}, k < count, a row for each i; absolute error ~1e-15 Σⱼ|wⱼᵢ|."""
    least = max(4 * count + 2 * _WIDTH, 64)
    grid = _quick_length(least)
    position = angle * (grid / (2.0 * np.pi))
    first = np.ceil(position - 0.5 * _WIDTH)
    from_first = position - first
    index = np.mod(first.astype(np.int64), grid)
    order = np.argsort(index)
    index = index[order]
    from_first = from_first[order]
    columns = np.ascontiguousarray(weights[order].T)
    total = np.zeros((columns.shape[0], grid + _WIDTH))
    offsets = np.arange(_WIDTH)
    for start in range(0, index.size, CHUNK):
        block = slice(start, start + CHUNK)
        low = int(index[start])
        x = (offsets - from_first[block, np.newaxis]) * (2.0 / _WIDTH)
        root = np.sqrt(np.maximum(1.0 - x * x, 0.0))
        kernel = np.exp(_BETA * (root - 1.0))
        targets = (index[block, np.newaxis] - low + offsets).ravel()
        for row, column in zip(total, columns, strict=True):
            products = kernel * column[block, np.newaxis]
            spread = np.bincount(targets, products.ravel())
            row[low : low + spread.size] += spread
    total[:, :_WIDTH] += total[:, grid:]
    transform = np.fft.rfft(total[:, :grid])
    spectrum = transform[:, :count]
    return np.asarray(spectrum / _kernel_on_grid(count, grid))


@lru_cache(maxsize=4)
def _kernel_on_grid(count: int, grid: int) -> Array:
    """Return the kernel's transform at the first frequencies of a grid."""
    square = (np.arange(count) / grid) ** 2
    return np.asarray(_kernel_transform()(square))


def powers_less_one(angle: Array, nodes: int) -> Complex:
    """Return e^{ikθ} − 1 for k < nodes, shape (θ, nodes), accurate relative to itself.

    c_{j+m} = c_j + c_m + c_j c_m doubles the known ones, so that errors grow like log₂ k.
    """
    table: Any = np.zeros((angle.size, nodes), dtype=np.complex128)
    if nodes > 1:
        half_sine = np.sin(0.5 * angle)
        real = -2.0 * half_sine * half_sine
        table[:, 1] = real + 1j * np.sin(angle)
    filled = 1
    while filled < nodes - 1:
        more = min(filled, nodes - 1 - filled)
        start = filled + 1
        last = table[:, filled:start]
        grown = table[:, start : start + more]
        filled_columns = table[:, 1 : more + 1]
        np.multiply(filled_columns, 1.0 + last, out=grown)
        grown += last
        filled += more
    return np.asarray(table)


def lightest(share: Array, count: Array, room: float) -> NDArray[np.bool_]:
    """Return which columns to leave out lest the others count more than there is room.

    Waves under a power tail have no end, but hardly any mass far out. Those of the least mass go
    first, and so few that none of the rows, which add up to 1, loses more than half a billionth.
    """
    is_left = np.zeros(count.size, dtype=bool)
    if count.sum() <= room:
        return is_left
    by_mass = np.argsort(share.max(axis=0))
    cumulated = np.cumsum(share[:, by_mass], axis=1)
    largest = cumulated.max(axis=0)
    number = 0
    for exponent in (-43, -37, -31):  # the least that will do is left out
        number = int(np.searchsorted(largest, 2.0**exponent))
        kept = by_mass[number:]
        if count[kept].sum() <= room:
            break
    is_left[by_mass[:number]] = True
    return is_left
