"""Integrals of an exponential against Hermite functions, by parts, in the Mills ratio: references.

With R(a) = (1 − Φ(a))/φ(a) = √(π/2) erfcx(a/√2) one has J₀ = φ(u₀) R(b + u₀), and φ·He_m is minus
the derivative of φ·He_{m−1}.
"""

from __future__ import annotations

from functools import cache

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
