"""Cumulants of a tilted loss from its central moments."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from symdp.law.step import Array
from symdp.law.tilted import Tilted


@singledispatch
def tilted_cumulants(tilted: Tilted, order: int) -> Array:
    """Return a tilted law's cumulants, the first one as E_t L − E L, from its central moments.

    κⱼ = mⱼ − Σ_{i=2}^{j−2} C(j−1, i−1) κᵢ m_{j−i}, the recursion for central moments.
    """
    moments = [1.0, 0.0]
    power = tilted.weight * tilted.deviation
    for _ in range(2, order + 1):
        power = power * tilted.deviation
        moments.append(float(power.sum()))
    cumulants = [0.0, tilted.shift]
    for j in range(2, order + 1):
        lower = math.fsum(
            math.comb(j - 1, i - 1) * cumulants[i] * moments[j - i] for i in range(2, j - 1)
        )
        cumulants.append(moments[j] - lower)
    return np.asarray(cumulants[1 : order + 1])
