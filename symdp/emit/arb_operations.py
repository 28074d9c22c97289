"""What ball arithmetic needs beside Arb: wide powers, logarithms of sums, open comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from flint import acb, arb, ctx, fmpq

from symdp.emit.enclose import between

_NARROW = 4  # bits of a ball whose powers are hardly wider than they must be
UNKNOWN = acb(arb.nan(), arb.nan())

_WIDE = 0.5  # the radius of a real exponent from which on its ends say more
_MOST_BITS = 20_000


def comparison(
    decide: Callable[[arb], bool], refute: Callable[[arb], bool]
) -> Callable[..., bool | None]:
    """A comparison of real parts: true, false, or None where the balls leave it open."""

    def operation(_detail: object, _analytic: bool, left: Any, right: Any) -> bool | None:
        difference = (acb(left) - acb(right)).real
        return True if decide(difference) else (False if refute(difference) else None)

    return operation


def all_of(_detail: object, _analytic: bool, *parts: bool | None) -> bool | None:
    """Whether all hold."""
    return False if False in parts else (None if None in parts else True)


def any_of(_detail: object, _analytic: bool, *parts: bool | None) -> bool | None:
    """Whether one holds."""
    return True if True in parts else (None if None in parts else False)


def piecewise(_detail: object, analytic: bool, *branches: Any) -> acb:
    """Follow the conditions; where a ball straddles a border, unite all branches it may take."""
    united: acb | None = None
    for value, condition in zip(branches[::2], branches[1::2], strict=True):
        if condition is False:
            continue
        united = acb(value) if united is None else united.union(acb(value))
        if condition is True:
            return united
        if analytic:
            return UNKNOWN
    return UNKNOWN


def integer_power(exponent: int, _analytic: bool, base: acb) -> acb:
    """Return baseⁿ, the better of products and what the ends of a wide real ball say."""
    raised = base**exponent
    ends = _ends(base)
    if ends is None or not raised.is_finite():
        return raised
    # Products of wide balls are wider than what they stand for.
    united = (ends[0] ** exponent).union(ends[1] ** exponent)
    return united if exponent % 2 or not base.contains(0) else united.union(acb(0))


def power(_detail: object, analytic: bool, base: acb, exponent: acb) -> acb:
    """Return baseᵉ on the principal branch."""
    if not analytic and base.contains(0) and exponent.imag.is_zero() and exponent.real > 0:
        return _power_about_zero(base, exponent)
    raised = base.pow(exponent, analytic=analytic)
    ends = _ends(base)
    if ends is None or not exponent.imag.is_zero() or not (base.real > 0 and raised.is_finite()):
        return raised
    return ends[0].pow(exponent).union(ends[1].pow(exponent))


def _power_about_zero(base: acb, exponent: acb) -> acb:
    """Enclose zᵉ from |zᵉ| = |z|ᵉ where the ball holds 0, at which log z is not finite."""

    def size(of: arb) -> arb:
        return acb(of.upper()).pow(exponent).real.upper()

    largest = size(abs(base))
    if not base.imag.is_zero():
        return acb(arb(0, largest), arb(0, largest))
    below = size((-base.real).max(arb(0)))
    return acb(between(-below, largest), arb(0, below))


def _ends(value: acb) -> tuple[acb, acb] | None:
    """Return the ends of a wide real interval, None for any other ball."""
    if value.rel_accuracy_bits() >= _NARROW or not value.imag.is_zero():
        return None
    return acb(value.real.lower()), acb(value.real.upper())


def log_one_plus(_detail: object, analytic: bool, value: acb) -> acb:
    """Log(1 + u); no branch cut lies in |u| < 1/2."""
    if value.abs_upper() < 0.5:
        return value.log1p()
    return (1 + value).log(analytic=analytic)


def log_sum_exp(_detail: object, analytic: bool, *arguments: acb) -> acb:
    """Log Σ c exp(a), continued from real a as a_r + log(c_r + Σ c exp(a − a_r)) with a largest r.

    That is one holomorphic function of all a, whatever r, where c_r exceeds the rest, and where
    the sum cannot vanish for the directions of its terms; no other place counts as analytic.
    """
    coefficients, exponents = arguments[::2], arguments[1::2]
    if _is_wide(coefficients, exponents):  # it rises with every exponent
        low, high = (
            _around_largest(coefficients, [acb(end) for end in ends], analytic=analytic)
            for ends in zip(*((a.real.lower(), a.real.upper()) for a in exponents), strict=True)
        )
        return low.union(high)
    return _around_largest(coefficients, exponents, analytic=analytic)


def _is_wide(coefficients: Sequence[acb], exponents: Sequence[acb]) -> bool:
    """Whether all are real, so much so that balls around exponentials may hold 0."""
    return (
        any(a.real.rad() > _WIDE for a in exponents)
        and all(a.imag.is_zero() and a.is_finite() for a in exponents)
        and all(c.imag.is_zero() and c.real > 0 for c in coefficients)
    )


def _around_largest(
    coefficients: Sequence[acb], exponents: Sequence[acb], *, analytic: bool
) -> acb:
    largest, most = 0, -math.inf
    for index, exponent in enumerate(exponents):
        size = float(exponent.real.mid()) + _log_size(coefficients[index])
        if size > most:
            largest, most = index, size
    top, front = exponents[largest], coefficients[largest]
    turns, terms = [], []
    total = front
    for index, exponent in enumerate(exponents):
        if index != largest:
            turn = exponent - top
            term = coefficients[index] * turn.exp()
            total = total + term
            turns.append(turn)
            terms.append(term)
    if analytic and not _is_single(front, coefficients, turns, terms, total):
        return UNKNOWN
    return top + total.log()


def _log_size(coefficient: acb) -> float:
    size = abs(float(coefficient.real.mid()))
    return math.log(size) if size > 0 else -math.inf


def _is_single(
    front: acb, coefficients: Sequence[acb], turns: list[acb], terms: list[acb], total: acb
) -> bool:
    """Whether one term exceeds the rest, or the directions of all let them not cancel."""
    if sum((abs(term) for term in terms), arb(0)) < front.real:
        return True
    sides = [turn.imag for turn in turns]
    lower = min(arb(0), *(side.lower() for side in sides))
    spread = max(arb(0), *(side.upper() for side in sides)) - lower
    if all(c.real > 0 for c in coefficients):
        return bool(spread < arb.pi())
    return bool(spread < arb.pi() / 2 and total.real > 0)


def unit_log_sum_exp(_detail: object, analytic: bool, *arguments: acb) -> acb:
    """Log Σ c exp(a) where Σ c = 1: each a occurs once, and small a keep relative accuracy."""
    exponents = arguments[1::2]
    terms = zip(arguments[::2], exponents, strict=True)
    total = sum((c * a.expm1() for c, a in terms), acb(0))
    if total.abs_upper() < 0.5 and all(abs(a.imag) < 1 for a in exponents):
        return total.log1p()
    return log_sum_exp(None, analytic, *arguments)


def log_ratio(_detail: object, analytic: bool, difference: acb, a: acb, b: acb) -> acb:
    """Log(a/b) from a − b, a and b: one function of the ratio, cut where that is negative."""
    relative = difference / b
    if relative.abs_upper() < 0.5:
        return relative.log1p()
    return (a / b).log(analytic=analytic)


def bessel_k_ball(order: acb | fmpq, value: acb, *, scaled: bool = False) -> acb:
    """Enclose K_ν(z), or exp(z) K_ν(z).

    Arb's series loses about 3|z| bits at middling |z|, of the argument's own width too.  For
    Re z > 0 and an exact rational ν the midpoint is evaluated with as many bits more, and the
    width enters through |K_ν′(z)| ≤ (K_{|ν−1|}(Re z) + K_{ν+1}(Re z))/2, which follows from
    K_ν(z) = ∫₀^∞ exp(−z cosh t) cosh(νt) dt.

    Examples
    --------
    >>> bessel_k_ball(fmpq(1, 3), acb(50)).real
    [3.41392178135836e-23 +/- 7.37e-38]
    """
    direct = acb(value.bessel_k(acb(order), scaled=scaled))
    left = arb(value.real.lower())
    wanted = min(value.rel_accuracy_bits(), ctx.prec) - 30
    if direct.rel_accuracy_bits() >= wanted or not isinstance(order, fmpq) or not left > 0:
        return direct
    middle = acb(value.real.mid(), value.imag.mid())
    if 3 * float(middle.abs_upper()) > _MOST_BITS:
        return direct
    centre = _bessel_k_at(order, middle)
    near, far = (_bessel_k_at(nu, acb(left)).real for nu in (abs(order - 1), order + 1))
    slope = (near + far).upper() / 2
    reach = (slope * (value.real.rad() + value.imag.rad())).upper()
    enclosure = centre + acb(arb(0, reach), arb(0, reach))
    return enclosure * value.exp() if scaled else +enclosure


def _bessel_k_at(order: fmpq, place: acb) -> acb:
    """Enclose K at an exact place, with more bits only where so many are lost."""
    found = acb(place.bessel_k(acb(order)))
    if found.rel_accuracy_bits() >= ctx.prec - 30:
        return found
    with ctx.workprec(ctx.prec + int(3 * float(place.abs_upper())) + 16):
        return acb(place.bessel_k(acb(order)))


def log_bessel_i_ball(order: acb, value: acb) -> acb | None:
    """Enclose log I_ν(x) for a range of real ν ≥ 0 and a real x > 0, None for anything else.

    I falls as ν grows, and all terms of its series are positive:

        F(ν) ≤ log I_ν(x) ≤ F(ν) + x²/(4(ν + 1)),    F(ν) = ν log(x/2) − log Γ(ν + 1).

    Examples
    --------
    >>> wide = log_bessel_i_ball(acb(arb(150, 50)), acb(2))
    >>> wide.real.contains(acb(2).bessel_i(acb(123)).log().real)
    True
    """
    low, high, x = arb(order.real.lower()), arb(order.real.upper()), value.real
    if not (order.imag.is_zero() and value.imag.is_zero() and low >= 0 and x > 0):
        return None
    ends = [nu * (x / 2).log() - (nu + 1).lgamma() for nu in (low, high)]
    top = ends[0] + x * x / (4 * (low + 1))
    return acb(arb(ends[1].lower()).union(arb(top.upper())))


def on_cut_left_of(value: acb, edge: int) -> bool:
    """Return whether the ball may meet the real half-line left of `edge`."""
    return bool(value.imag.contains(0)) and not bool(value.real > edge)


def asinh(_detail: object, analytic: bool, value: acb) -> acb:
    """Return asinh on a ball, where z + √(1 + z²) may vanish, as it may not for any one z."""
    turned = value * acb(0, 1)
    if analytic and (on_cut_left_of(turned, -1) or on_cut_left_of(-turned, -1)):
        return UNKNOWN
    if value.imag == 0:  # it rises, so that ends say all
        return acb(value.real.lower().asinh().union(value.real.upper().asinh()))
    found, inside = -((-value).asinh()) if value.real < 0 else value.asinh(), 1 + value * value
    kept = found.is_finite() or not inside.real > 0
    return found if kept else value.mid().asinh() + (value - value.mid()) / inside.sqrt()
