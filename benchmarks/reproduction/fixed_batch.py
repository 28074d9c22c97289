"""The pairs of [FA 6.2] and [FA 6.3], as that paper computes them.

They do not dominate batches of a fixed size: where the other records contribute −C, a batch that
holds the record is 2C away from one that does not. `mechanism.subsample("without_replacement", …)`
has the pair that does; here stands what the published figures were computed with.
"""

from __future__ import annotations

import math
from fractions import Fraction

import sympy as sp

import symdp


def substitution_pair(sigma: str, rate: str, batch: int = 1) -> symdp.Mechanism:
    """Gaussian noise, `batch` draws that each hold the record with probability `rate`.

    One draw is [FA 6.2]: (1 − q)f(x) + q f(x − 1) against (1 − q)f(x) + q f(x + 1).
    """
    noise = symdp.mechanisms.gaussian(sigma=sigma)
    x, f, q = noise.variable, noise.source.density, sp.Rational(str(Fraction(rate)))
    weights = [math.comb(batch, j) * q**j * (1 - q) ** (batch - j) for j in range(batch + 1)]
    P, Q = (sum(w * f.subs(x, x - side * j) for j, w in enumerate(weights)) for side in (1, -1))
    return symdp.Mechanism.from_pair(P, Q, x, name="substitution")
