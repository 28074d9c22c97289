"""Integrals of exp of a polynomial of degree one or two."""

from __future__ import annotations

import sympy as sp

from symdp.derive import tidy
from symdp.derive.integrand import Integrand
from symdp.derive.signs import sign_of


def line(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(αx)."""
    powers = integrand.powers()
    if powers is None or set(powers) - {1}:
        return None
    rate, lower, upper = powers.get(1, sp.S.Zero), integrand.lower, integrand.upper
    if rate == 0:
        width = upper - lower
        return None if width.is_infinite else width
    if integrand.is_line:
        return None
    ends = [
        sp.S.Zero if end.is_infinite else sp.exp(sp.expand(rate * end)) for end in (upper, lower)
    ]
    return (ends[0] - ends[1]) / rate


def gaussian(integrand: Integrand) -> sp.Expr | None:
    """∫ exp(−ax² + bx), with error functions where an end is finite."""
    powers = integrand.powers()
    if powers is None or set(powers) - {1, 2} or 2 not in powers:
        return None
    a, b = -powers[2], powers.get(1, sp.S.Zero)
    finite = not (integrand.lower.is_infinite or integrand.upper.is_infinite)
    if finite and sign_of(a) != 1:
        return None  # a changes its sign with the tilt: no real formula serves everywhere
    peak = sp.sqrt(sp.pi) / sp.sqrt(a) * sp.exp(tidy.factor(b**2 / (4 * a)))
    if integrand.is_line:
        return peak
    ends = []
    for end in (integrand.upper, integrand.lower):
        if end.is_infinite:
            ends.append(sp.S.One if end is sp.oo else sp.S.NegativeOne)
        else:
            ends.append(sp.erf(sp.sqrt(a) * end - b / (2 * sp.sqrt(a))))
    return peak * (ends[0] - ends[1]) / 2
