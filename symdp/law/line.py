"""The tilted characteristic function on a line: log φ_t(y) with the mean's phase taken out."""

from __future__ import annotations

import numpy as np

from symdp.law.elementary import Complex, oscillation_sum
from symdp.law.nufft import uniform_sum
from symdp.law.step import Array
from symdp.law.tilted import Tilted

DIRECT_WORK = 400_000  # below this many exponentials a plain sum beats the transform
_LOG_ZERO = -800.0  # stands for log 0: e^-800 is zero in double precision, and stays so times n
_SMALL_SQUARE = -0.75  # |1 + z|² − 1 for |1 + z| = 1/2
_NEAR_PHASE = 32.0  # nodes whose phase stays below this are few, and are always summed directly


def log_characteristic(tilted: Tilted, y: Array) -> Complex:
    """Return log E_t e^{iy(L − m)} = log φ_t(y) − iym, accurate relative to itself near y = 0."""
    flat = oscillation_sum(y.ravel(), tilted.deviation, tilted.weight)
    return _log1p(flat).reshape(y.shape)


def log_characteristic_grid(tilted: Tilted, step: float, first: int, last: int) -> Complex:
    """Return log φ_t(kh) − ikhm for k = first, …, last − 1.

    Nodes near the mean, which carry nearly all weight when n is large, are summed directly so that
    they keep full relative accuracy; the far ones go through a non-uniform Fourier transform whose
    error is relative to their own, small weight.
    """
    count = last - first
    size = tilted.deviation.size
    y: Array = step * np.arange(first, last, dtype=np.float64)
    if count * size <= DIRECT_WORK:
        return log_characteristic(tilted, y)
    near = np.abs(tilted.deviation) * (step * last) <= _NEAR_PHASE
    if near.sum() * 4 > size or size < 64:
        return log_characteristic(tilted, y)
    remainder = oscillation_sum(y, tilted.deviation[near], tilted.weight[near])
    weight, deviation = tilted.weight[~near], tilted.deviation[~near]
    far = uniform_sum(weight, np.fmod(step * deviation, 2 * np.pi), first, last)
    remainder += far - weight.sum() - 1j * y * float(weight @ deviation)
    return _log1p(remainder)


def _log1p(z: Complex) -> Complex:
    """Return log(1 + z), accurate relative to itself or to 1 + z, on the principal branch."""
    real = z.real
    result = np.empty(z.shape, dtype=np.complex128)
    with np.errstate(divide="ignore"):
        square = np.maximum(real * (2.0 + real) + z.imag * z.imag, -1.0)
        modulus = 0.5 * np.log1p(square)
        # Next to −1 the square cancels, and its root would keep half of the digits.
        small = square < _SMALL_SQUARE
        modulus[small] = np.log(np.hypot(1.0 + real[small], z.imag[small]))
        result.real = np.maximum(modulus, _LOG_ZERO)
    result.imag = np.arctan2(z.imag, 1.0 + real)
    return result
