"""Integrals of an exponential against Hermite functions over a half-line, in closed form.

For the standardised tilted sum, u = (x − c)/√v, the tilted Edgeworth series needs

    J_m = ∫₀^∞ e^{−s x} φ(u) He_m(u) dx/√v,

which depends on b = s√v and on the standardised end point u₀ = −c/√v alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from symdp.expansion.hermite import hermite_values


def hermite_integrals_from_moments(end_point: float, moments: Sequence[float]) -> list[float]:
    """Return J_m/φ(u₀) for m below the number of moments, from the M_j(b + u₀).

    J_m/φ(u₀) = Σ_j C(m, j) He_{m−j}(u₀) M_j(b + u₀), M_j(a) = ∫₀^∞ w^j e^{−aw − w²/2} dw: by the
    Taylor expansion of He_m(u₀ + w), without the cancellation between powers of b that an
    integration by parts has where b is large [SPA (62)-(64)]. Linear in the moments, so that
    differences of two tilts may be passed as differences of moments.

    Parameters
    ----------
    end_point
        u₀.
    moments
        M₀, M₁, …

    Examples
    --------
    >>> hermite_integrals_from_moments(0.5, [2.0, 3.0, 4.0])
    [2.0, 4.0, 5.5]
    """
    count = len(moments)
    hermites = hermite_values(count, end_point)
    return [
        sum(comb(m, j) * hermites[m - j] * moments[j] for j in range(m + 1)) for m in range(count)
    ]
