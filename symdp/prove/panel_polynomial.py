"""log P and ℓ on a panel c + hu, |u| ≤ 1, where polynomials interpolate what is made of them.

A function that is holomorphic in the ellipse of radius ρ, and at most M there, has Chebyshev
coefficients |a_j| ≤ 2Mρ^{−j}, and differs from its interpolant at N Chebyshev points by at most
4Mρ^{1−N}/(ρ − 1) [Trefethen, Approximation Theory and Approximation Practice, Theorem 8.2].
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from flint import arb, arb_mat, arb_poly, ctx

from symdp.prove.kind import Stretch
from symdp.prove.measure import RADIUS, ellipse


class Samples(NamedTuple):
    """log P and ℓ at Chebyshev points of a panel, rising, and over its ellipse."""

    centre: arb
    half: arb
    values: list[tuple[arb, arb]]
    around: list[tuple[Any, Any]]


def sampled(stretch: Stretch, left: arb, right: arb, size: int) -> Samples | None:
    """Return a panel's values at so many points, None where they are not all regular."""
    centre, half = (left + right) / 2, (right - left) / 2
    around = ellipse(stretch, centre, half)
    if around is None:
        return None
    values = [stretch.values(centre + half * u) for u in _chebyshev(size, ctx.prec)[0]]
    if not all(p.is_finite() and x.is_finite() for p, x in values):
        return None
    return Samples(centre, half, values, around)


def interpolant(values: Sequence[arb]) -> arb_poly:
    """Return the polynomial of u that has these values at Chebyshev points."""
    matrix = _chebyshev(len(values), ctx.prec)[1]
    return arb_poly(list((matrix * arb_mat([[v] for v in values])).entries()))


def interpolation_error(bound: arb, size: int) -> arb:
    """Bound what an interpolant at so many points lacks, for a bound on the ellipse."""
    return arb((bound * 4 * arb(RADIUS) ** (1 - size) / (RADIUS - 1)).upper())


@lru_cache(maxsize=8)
def _chebyshev(size: int, precision: int) -> tuple[tuple[arb, ...], arb_mat]:
    """Return Chebyshev points, and what makes the powers' coefficients of interpolants."""
    with ctx.workprec(precision + 2 * size):
        angles = [(2 * k + 1) * arb.pi() / (2 * size) for k in reversed(range(size))]
        fourier = arb_mat(
            [
                [(arb(2) if j else arb(1)) * (j * angle).cos() / size for angle in angles]
                for j in range(size)
            ]
        )
        columns = [[0] * size for _ in range(size)]  # of powers in each Chebyshev polynomial
        before, own = [1], [0, 1]
        for j in range(size):
            for k, c in enumerate(before):
                columns[k][j] = c
            following = [0, *(2 * c for c in own)]
            for k, c in enumerate(before):
                following[k] -= c
            before, own = own, following
        return tuple(angle.cos() for angle in angles), arb_mat(columns) * fourier
