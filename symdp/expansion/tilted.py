"""Integrals of an exponential against Hermite functions over a half-line, in closed form.

For the standardised tilted sum, u = (x − c)/√v, the tilted Edgeworth series needs

    J_m = ∫₀^∞ e^{−s x} φ(u) He_m(u) dx/√v,

which depends on b = s√v and on the standardised end point u₀ = −c/√v alone. With the Mills ratio
R(a) = (1 − Φ(a))/φ(a) = √(π/2) erfcx(a/√2) one has J₀ = φ(u₀) R(b + u₀), and φ·He_m is minus the
derivative of φ·He_{m−1}, so that integration by parts gives the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb

import sympy as sp

from symdp.expansion.hermite import hermite_values

SCALED_TILT = sp.Symbol("b", real=True)
END_POINT = sp.Symbol("u", real=True)
MILLS_RATIO = sp.Symbol("R", positive=True)


@cache
def hermite_integral(degree: int) -> sp.Expr:
    """Return J_degree/φ(u₀) as a polynomial in b, u = u₀ and the Mills ratio R = R(b + u₀).

    J_m = φ(u₀) He_{m−1}(u₀) − b J_{m−1}, J₀ = φ(u₀) R; the closed form of [SPA (62)-(64)].

    Parameters
    ----------
    degree
        m, a non-negative integer.

    Examples
    --------
    >>> hermite_integral(2)
    R*b**2 - b + u
    """
    if degree == 0:
        return MILLS_RATIO
    boundary = hermite_values(degree, END_POINT)[degree - 1]
    return sp.expand(boundary - SCALED_TILT * hermite_integral(degree - 1))


@cache
def mills_moment(index: int) -> sp.Expr:
    """Return M_index(a) = ∫₀^∞ w^index e^{−aw − w²/2} dw in a = b + u and R = R(a).

    M₀ = R, M₁ = 1 − aR, M_{j+1} = j M_{j−1} − a M_j.

    Parameters
    ----------
    index
        a non-negative integer.

    Examples
    --------
    >>> mills_moment(1)
    -R*b - R*u + 1
    """
    a = SCALED_TILT + END_POINT
    if index == 0:
        return MILLS_RATIO
    if index == 1:
        return sp.expand(1 - a * MILLS_RATIO)
    return sp.expand((index - 1) * mills_moment(index - 2) - a * mills_moment(index - 1))


def hermite_integrals_from_moments(end_point: float, moments: Sequence[float]) -> list[float]:
    """Return J_m/φ(u₀) for m below the number of moments, from the M_j(b + u₀).

    J_m/φ(u₀) = Σ_j C(m, j) He_{m−j}(u₀) M_j(b + u₀): the Taylor expansion of He_m(u₀ + w). Equal to
    `hermite_integral`, but free of its cancellation between powers of b where b is large. Linear in
    the moments, so that differences of two tilts may be passed as differences of moments.

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
