"""Numbers that every emitted file holds: the Gauss rule of a panel and the series of erf."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import mpmath

from symdp.emit.standalone.runtime.erf import ERFC_MIDDLE

_GAUSS = 20  # nodes of a panel, as in the accountant
_SCALED_TERMS = 26  # of e^(x²) erfc(x) (1 + x): the next is below 1e-17
_SMALL_TERMS = 14  # of erf(x)/x in x² up to 1: likewise
_DIGITS = 40


@cache
def tables() -> dict[str, list[float]]:
    """Return the tables by name."""
    positive_nodes, weights = gauss_legendre(_GAUSS)
    negative_nodes = [-x for x in positive_nodes]
    return {
        "PLACES": [*negative_nodes, *reversed(positive_nodes)],
        "WEIGHTS": [*weights, *reversed(weights)],
        "SCALED_ERFC": _polynomial(_scaled_erfc, _SCALED_TERMS),
        "SMALL_ERF": _polynomial(_small_erf, _SMALL_TERMS, mpmath.mpf(1) / 2),
    }


def gauss_legendre(count: int) -> tuple[list[float], list[float]]:
    """Return the positive places and the weights of an even Gauss-Legendre rule, rounded once."""
    places = []
    weights = []
    with mpmath.workdps(30):
        for i in range(count // 2):
            near = mpmath.cos(mpmath.pi * (i + 0.75) / (count + 0.5))
            x = mpmath.findroot(lambda x: mpmath.legendre(count, x), near)
            places.append(float(x))
            slope = count * mpmath.legendre(count - 1, x)
            weights.append(float(2 * (1 - x * x) / slope**2))
    return places, weights


def _scaled_erfc(t: mpmath.mpf) -> mpmath.mpf:
    """Return e^(x²) erfc(x) (1 + x) at t = 1 − 2a/(x + a)."""
    x = ERFC_MIDDLE * (1 + t) / (1 - t)
    return (1 + x) * mpmath.exp(x * x) * mpmath.erfc(x)


def _small_erf(square: mpmath.mpf) -> mpmath.mpf:
    """Return erf(x)/x at x²."""
    x = mpmath.sqrt(square)
    return mpmath.erf(x) / x


def _polynomial(
    function: Callable[[mpmath.mpf], mpmath.mpf], count: int, half: mpmath.mpf | None = None
) -> list[float]:
    """Return the coefficients of a polynomial, that of the highest power first.

    It meets a function at Chebyshev's places: from −1 to 1, or from 0 to twice `half`.
    """
    with mpmath.workdps(_DIGITS):
        angles = [mpmath.pi * (2 * i + 1) / (2 * count) for i in range(count)]
        places = [mpmath.cos(angle) for angle in angles]
        if half is not None:
            places = [half * (1 + place) for place in places]
        powers = mpmath.matrix([[x ** (count - 1 - k) for k in range(count)] for x in places])
        values = mpmath.matrix([function(x) for x in places])
        return [float(c) for c in mpmath.lu_solve(powers, values)]
