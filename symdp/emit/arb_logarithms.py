"""Logarithms of sums and ratios in ball arithmetic, as functions that continue those of reals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flint import acb, arb

UNKNOWN = acb(arb.nan(), arb.nan())

_WIDE = 0.5  # the radius of a real exponent from which on its ends say more


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
