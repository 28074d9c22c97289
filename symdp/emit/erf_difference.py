"""log(erf(m + h) − erf(m − h)), h > 0, and log erfc in doubles, without cancellation.

A mass of rounded normal noise is such a difference; far out both functions are 1 in doubles.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

_NODES = 20  # exact to degree 39: ∫ e^{−2mt − t²} to 1e-17 where |mh| ≤ 4 and h ≤ 3/2
_MOST_TURN, _MOST_HALF = 4.0, 1.5


def log_erf_difference(middle: Any, half: Any) -> Any:
    """Return the logarithms of doubles.

    As ∫ e^{−t²} over [m − h, m + h] by Gauss's rule where the integrand changes little on it; else
    by e^{z²} erfc(z) [DLMF 7.2.3], or where m < h as a sum of two positive values of erf.
    """
    from scipy import special

    if np.iscomplexobj(middle) or np.iscomplexobj(half):
        return np.log(special.erf(middle + half) - special.erf(middle - half))
    m, h = np.broadcast_arrays(np.abs(np.asarray(middle, dtype=np.float64)), half)
    with np.errstate(all="ignore"):
        near = (h <= _MOST_HALF) & (m * h <= _MOST_TURN)
        nodes, log_weights = _rule()
        # Narrow where it is not used, so that nothing overflows.
        t = np.where(near, h, 0.0)[..., None] * nodes
        exponent = log_weights - t * (2.0 * np.where(near, m, 0.0)[..., None] + t)
        inner = np.log(2.0 / np.sqrt(np.pi) * h) - m * m + special.logsumexp(exponent, axis=-1)
        first, last = special.erfcx(np.maximum(m - h, 0.0)), special.erfcx(m + h)
        tail = np.log(first) + np.log1p(-last / first * np.exp(-4.0 * m * h)) - (m - h) ** 2
        wide = np.log(special.erf(m + h) + special.erf(h - m))
        value = np.where(near, inner, np.where(m < h, wide, tail))
    return np.where(h > 0.0, value, np.nan)


@lru_cache(maxsize=1)
def _rule() -> tuple[Any, Any]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, np.log(weights)


def log_erfc(place: Any) -> Any:
    """Return log erfc z in doubles, by e^{z²} erfc z [DLMF 7.2.3] where erfc z is small."""
    from scipy import special

    z = np.asarray(place)
    far = np.real(z) > 0.5
    with np.errstate(all="ignore"):
        scaled = np.where(far, z, 0.5)
        near = np.where(far, 0.5, z)
        return np.where(
            far, np.log(special.erfcx(scaled)) - scaled * scaled, np.log1p(-special.erf(near))
        )
