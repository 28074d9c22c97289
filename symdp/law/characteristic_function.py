"""The tilted characteristic function on a line: log φ_t(y) with the mean's phase taken out."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from symdp.law.elementary import Complex, oscillation_sum
from symdp.law.nufft import uniform_sum
from symdp.law.step import Array
from symdp.law.tilted import Tilted

DIRECT_WORK = 400_000  # below this many exponentials a plain sum beats the transform
_LOG_ZERO = -800.0  # stands for log 0: e^-800 is zero in double precision, and stays so times n
_SMALL_SQUARE = -0.75  # |1 + z|² − 1 for |1 + z| = 1/2
_NEAR_PHASE = 32.0  # radians at the last y: nodes that turn by no more keep their relative accuracy
_PLACES = 48  # of a polynomial that e^{iyd} is to rounding while yd runs over half of that phase
_BLOCK = 1 << 14  # values that stay in a processor's cache
_CHEBYSHEV = np.cos((np.arange(_PLACES) + 0.5) * (np.pi / _PLACES))  # places of the polynomial
# Its values there to its coefficients.
_TO_SERIES = np.cos(np.outer(np.arange(_PLACES), np.arccos(_CHEBYSHEV))) * (2.0 / _PLACES)
_TO_SERIES[0] *= 0.5


@singledispatch
def log_characteristic(tilted: Tilted, y: Array) -> Complex:
    """Return log E_t e^{iy(L − m)} = log φ_t(y) − iym, accurate relative to itself near y = 0."""
    flat = oscillation_sum(y.ravel(), tilted.deviation, tilted.weight)
    return log_one_plus(flat).reshape(y.shape)


@singledispatch
def log_characteristic_grid(tilted: Tilted, step: float, first: int, last: int) -> Complex:
    """Return log φ_t(kh) − ikhm for k = first, …, last − 1.

    Nodes near the mean, which carry nearly all weight when n is large, are summed directly so that
    they keep full relative accuracy; the far ones go through a non-uniform Fourier transform whose
    error is relative to their own, small weight.
    """
    y: Array = step * np.arange(first, last, dtype=np.float64)
    if y.size * tilted.deviation.size <= DIRECT_WORK:
        return log_characteristic(tilted, y)
    near = np.abs(tilted.deviation) * (step * last) <= _NEAR_PHASE
    remainder = _near_sum(y, tilted.deviation[near], tilted.weight[near])
    weight, deviation = tilted.weight[~near], tilted.deviation[~near]
    if weight.size:
        far = uniform_sum(weight, np.fmod(step * deviation, 2 * np.pi), first, last)
        remainder += far - weight.sum() - 1j * y * float(weight @ deviation)
    return log_one_plus(remainder)


def _near_sum(y: Array, deviation: Array, weight: Array) -> Complex:
    """Return `oscillation_sum` at rising y, from 0 or a multiple of the step on, with small phases.

    From one y to twice as far it is y times a polynomial in y, found at its Chebyshev places.
    """
    found = np.empty(y.size, dtype=np.complex128)
    start = 0
    while start < y.size:
        stop = int(max(np.searchsorted(y, 2.0 * y[start]), start + 2 * _PLACES))
        here = y[start:stop]
        if here.size <= 2 * _PLACES:
            found[start:stop] = oscillation_sum(here, deviation, weight)
        else:
            middle, half = 0.5 * (here[0] + here[-1]), 0.5 * (here[-1] - here[0])
            places = middle + half * _CHEBYSHEV
            coefficients = _TO_SERIES @ (oscillation_sum(places, deviation, weight) / places)
            for first in range(0, here.size, _BLOCK):
                some = here[first : first + _BLOCK]
                value = np.polynomial.chebyshev.chebval((some - middle) / half, coefficients)
                found[start + first : start + first + some.size] = some * value
        start = stop
    return found


def log_one_plus(z: Complex) -> Complex:
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
