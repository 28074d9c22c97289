"""Sums of many values of a smooth function: its integral and what the ends add (Abel and Plana).

For f holomorphic on a ≤ Re z ≤ b, |Im z| ≤ Y, with a = m − ½ and b = M + ½, the residues of
f(z)/(e^{2πiz} − 1) at the integers give

    Σ_{k=m}^{M} f(k) = ∫_a^b f(x) dx + J(b) − J(a) + E,
    J(c) = i ∫_0^Y (f(c + iy) − f(c − iy))/(e^{2πy} + 1) dy,
    |E| ≤ ∫_a^b (|f(x + iY)| + |f(x − iY)|) dx/(e^{2πY} − 1)

[DLMF 2.10(i) with ends at integers]. A sum of a million terms then costs what an integral does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import acb, arb, ctx

from symdp.errors import AccuracyError

_MOST_CELLS = 1_000  # on which f is looked at: each takes some ten microseconds
_SPARE_BITS = 64  # carried: large logarithms cancel in masses
_LARGER = 2**16  # than |∫f| may be what bounds ∫|f|
_UNKNOWN = acb(arb.nan(), arb.nan())
_EVALUATIONS = 20_000  # of an integrand: less than a second


def smooth_sum(function: Callable[..., Any], first: int, last: int) -> arb | None:
    """Enclose Σ f(k), k = first … last, at `flint.ctx.prec`; None where f is not seen smooth.

    Examples
    --------
    >>> found = smooth_sum(lambda k, analytic=False: (-k / 1000).exp(), 0, 999)
    >>> found.overlaps((1 - arb(-1).exp()) / (1 - (arb(-1) / 1000).exp())), found.rad() < 1e-9
    (True, True)
    """
    bits = ctx.prec
    with ctx.workprec(bits + _SPARE_BITS):
        found = _smooth_sum(function, first, last, arb(2) ** -bits)
    return None if found is None else +found


def _smooth_sum(function: Callable[..., Any], first: int, last: int, small: arb) -> arb | None:
    low, high = arb(first) - 0.5, arb(last) + 0.5
    height = ((_LARGER / small).log() / (2 * arb.pi())).ceil()
    inside = _integral(function, low, high, arb(0), small)
    size = abs(inside.real).upper()
    if not (size.is_finite() and size > 0):
        return None
    bound = _bound(function, low, high, height, size)
    if bound is None:
        return None
    turned = (2 * arb.pi() * height).exp() - 1
    total = inside.real + arb(0, (2 * bound / turned).upper())
    for end, sign in ((high, 1), (low, -1)):

        def weighed(y: acb, analytic: bool = False, end: arb = end) -> acb:
            above = function(end + acb(0, 1) * y, analytic=analytic)
            below = function(end - acb(0, 1) * y, analytic=analytic)
            falling = (-2 * arb.pi() * y).exp()  # e^{2πy} of a wide ball says nothing
            return acb((above - below) * falling / (1 + falling))

        total -= sign * _integral(weighed, arb(0), height, size * small, small).imag
    return total if total.is_finite() else None


def _integral(
    function: Callable[..., Any], low: arb, high: arb, absolute: arb, relative: arb
) -> acb:
    refusal: list[AccuracyError] = []

    def values(place: acb, analytic: bool = False) -> Any:
        try:
            return _UNKNOWN if refusal else function(place, analytic=analytic)
        except AccuracyError as error:  # raised here, it would not stop Arb
            refusal.append(error)
            return _UNKNOWN

    found = acb.integral(
        values,
        acb(low),
        acb(high),
        abs_tol=absolute,
        rel_tol=relative,
        eval_limit=_EVALUATIONS,
    )
    if refusal:
        raise refusal[0]
    return found


def _bound(function: Callable[..., Any], low: arb, high: arb, height: arb, size: arb) -> arb | None:
    """Bound ∫|f(x ± iY)| dx where f is holomorphic on the whole rectangle, else return None."""
    total, waiting, strip = arb(0), [(low, high)], arb(0, height)
    for _ in range(_MOST_CELLS):
        if not waiting:
            return total
        left, right = waiting.pop()
        value = function(acb(left.union(right), strip), analytic=True)
        part = abs(acb(value)).upper() * (right - left)
        if value.is_finite() and part < size:
            total = (total + part).upper()
        else:
            middle = ((left + right) / 2).mid()
            waiting += [(left, middle), (middle, right)]
    return None
