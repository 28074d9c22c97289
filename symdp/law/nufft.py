"""Sums Σⱼ wⱼ e^{ikθⱼ} for many consecutive integers k: a matrix product or one Fourier transform.

Of few points, e^{i(a+b)θ} = e^{iaθ} e^{ibθ} makes the sums of all k = a + b one matrix product. Of
many, each is spread over a fine grid with the kernel e^{β(√(1−x²)−1)} (Barnett, Magland and af
Klinteberg, SIAM J. Sci. Comput. 2019), transformed, and divided by the kernel's own transform.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.polynomial import Chebyshev

from symdp.law.elementary import Complex
from symdp.law.step import Array

_WIDTH = 15  # grid points a source is spread over: relative error about 1e-14
_BETA = 2.30 * _WIDTH  # of the kernel e^{β(√(1−x²)−1)}, for a grid twice as fine


@cache
def _kernel_transform() -> Chebyshev:
    """Return the kernel's Fourier transform, which is even, as a polynomial in (k/grid)² ≤ 1/16."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    values = weights * np.exp(_BETA * (np.sqrt(1.0 - nodes * nodes) - 1.0))

    def transform(square: Array) -> Array:
        phase = np.multiply.outer(np.sqrt(square) * (np.pi * _WIDTH), nodes)
        return 0.5 * _WIDTH * (np.cos(phase) @ values)

    return Chebyshev.interpolate(transform, 20, domain=[0.0, 0.0676])


def _quick_length(least: int) -> int:
    """Return a length, hardly greater, that a fast Fourier transform takes quickly."""
    shift = max(least.bit_length() - 4, 0)
    return next(k << shift for k in (8, 9, 10, 12, 15, 16) if k << shift >= least)


def uniform_sum(weight: Array, angle: Array, first: int, last: int) -> Complex:
    """Return Σⱼ wⱼ e^{ikθⱼ} for k = first, …, last − 1, absolute error below 5e-14 Σ|wⱼ|.

    Angles are at most 2π in size; what k times their rounding turns the terms comes on top.

    Examples
    --------
    >>> out = uniform_sum(np.array([0.25, 0.75]), np.array([0.1, -2.0]), 5, 9)
    >>> direct = 0.25 * np.exp(0.1j * 5) + 0.75 * np.exp(-2j * 5)
    >>> bool(abs(out[0] - direct) < 1e-13)
    True
    """
    seen = np.abs(weight) > 1e-17 * np.abs(weight).sum() / weight.size
    if np.count_nonzero(seen) <= 64 * _WIDTH:  # else a transform takes less time
        weight, angle = weight[seen], angle[seen]
        width = 1 << ((last - first).bit_length() + 1) // 2
        starts = np.arange(first, last, width)
        rows = np.exp(1j * np.multiply.outer(starts, angle)) * weight
        columns = np.exp(1j * np.multiply.outer(angle, np.arange(width)))
        return np.asarray((rows @ columns).ravel()[: last - first])
    count = last - first
    half = (count + 1) // 2
    centre = first + half  # frequencies are taken relative to the middle of the asked range
    grid = _quick_length(max(2 * count + 2 * _WIDTH, 64))
    # Signed, so that small angles of either sign keep their relative accuracy: k multiplies it.
    position = angle * (grid / (2.0 * np.pi))
    source = weight * np.exp(1j * _turned(centre, position, grid))
    base = np.ceil(position - 0.5 * _WIDTH).astype(np.int64)
    real, imaginary = np.zeros(grid), np.zeros(grid)
    for offset in range(_WIDTH):
        place = base + offset
        x = (place - position) * (2.0 / _WIDTH)
        kernel = np.exp(_BETA * (np.sqrt(np.maximum(1.0 - x * x, 0.0)) - 1.0))
        index = np.mod(place, grid)
        real += np.bincount(index, source.real * kernel, grid)
        imaginary += np.bincount(index, source.imag * kernel, grid)
    spectrum = np.fft.ifft(real + 1j * imaginary) * grid
    k = np.arange(first, last) - centre
    return np.asarray(spectrum[np.mod(k, grid)] / _kernel_transform()((k / grid) ** 2))


def _turned(centre: int, position: Array, grid: int) -> Array:
    """Return the angle 2π·centre·position/grid, whole turns apart, without rounding the product.

    A rounded one would be wrong by `centre` times what the position is rounded by, next to k = 0
    as well.
    """
    scale = 2.0**27 + 1.0  # splits a double into two of half its bits [Dekker]
    high = scale * position - (scale * position - position)
    parts = np.fmod(centre * high, grid) + np.fmod(centre * (position - high), grid)
    return np.asarray(parts * (2.0 * np.pi / grid))


def column_sums(weights: Array, angle: Array, count: int) -> Complex:
    """Return Σⱼ wⱼᵢ e^{−ikθⱼ}, a row for each column i, for k = 0, …, count − 1.

    On a grid twice as fine as that of `uniform_sum`: absolute error ~1e-15 Σⱼ|wⱼᵢ|.

    >>> out = column_sums(np.array([[0.25, 1.0], [0.75, 0.0]]), np.array([0.1, -2.0]), 3)
    >>> bool(abs(out[0, 2] - 0.25 * np.exp(-0.2j) - 0.75 * np.exp(4j)) < 1e-14)
    True
    """
    grid = _quick_length(max(4 * count + 2 * _WIDTH, 64))
    position = angle * (grid / (2.0 * np.pi))
    base = np.ceil(position - 0.5 * _WIDTH)
    from_base, base = position - base, np.mod(base.astype(np.int64), grid)
    order = np.argsort(base)
    base, from_base, weights = base[order], from_base[order], weights[order]
    starts = np.flatnonzero(np.diff(base, prepend=-1))
    total = np.zeros((grid, weights.shape[1]))
    for offset in range(_WIDTH):
        x = (offset - from_base) * (2.0 / _WIDTH)
        kernel = np.exp(_BETA * (np.sqrt(np.maximum(1.0 - x * x, 0.0)) - 1.0))
        cells = np.mod(base[starts] + offset, grid)  # no two of them are equal
        total[cells] += np.add.reduceat(kernel[:, None] * weights, starts, axis=0)
    spectrum = np.fft.rfft(total.T)[:, :count]
    return np.asarray(spectrum / _kernel_transform()((np.arange(count) / grid) ** 2))
