"""Masses that fall so slowly on the integers that they are not summed one by one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from symdp.law.nodes import MAX_INTEGERS, integer_range
from symdp.law.panels import gauss_legendre
from symdp.law.step import SmoothPiece

_NEAR = 2.0**17  # integers on either side of the largest mass that stay as they are
_WINDOW = 512  # integers whose sum is compared with an integral
_PLACES = (1.0, 16.0, 4096.0)  # of that distance, at which they are
_SAME = 1e-10  # relative: a mass that is no smooth function of its integer differs by far more


def with_smooth_tails(piece: SmoothPiece) -> list[SmoothPiece]:
    """Return a piece on the integers with what is far from its largest mass as a density.

    Σ_{k>N} f(k) = ∫_{N+1/2}^∞ f − f′(N + 1/2)/24 − …, which is below the rounding of a mass of 1
    for f that fall like a power, 10⁵ integers away. The piece stays whole where few integers carry
    it, or where sums of windows differ from integrals, as of masses that depend on parity.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> from symdp.law.compile import loss_law
    >>> (piece,) = loss_law(mechanisms.discrete_gaussian(sigma=2), "remove").step.pieces
    >>> with_smooth_tails(piece) == [piece]
    True
    """
    first, peak, last = integer_range(piece, [-1.0, 0.0])
    if last - first <= MAX_INTEGERS:
        return [piece]
    low, high = max(piece.lower, peak - _NEAR), min(piece.upper, peak + _NEAR)
    tails = [
        replace(piece, integer=False, lower=lower, upper=upper, ends=())
        for lower, upper in ((piece.lower, low - 0.5), (high + 0.5, piece.upper))
        if lower < upper and math.isinf(upper - lower)
    ]
    if not all(_is_smooth(tail) for tail in tails):
        return [piece]
    ends = [math.isinf(end) for end in (piece.lower, piece.upper)]
    middle = replace(
        piece, lower=low if ends[0] else piece.lower, upper=high if ends[1] else piece.upper
    )
    return [middle, *tails]


def _is_smooth(tail: SmoothPiece) -> bool:
    """Return whether sums over integers of a tail are integrals, under P and Q."""
    edge, outward = (tail.lower, 1.0) if math.isfinite(tail.lower) else (tail.upper, -1.0)
    for distance in _PLACES:
        start = edge + outward * distance * _NEAR
        first, last = sorted((start, start + outward * _WINDOW))
        whole = np.arange(first + 0.5, last)
        places, weights = gauss_legendre(np.asarray([first]), np.asarray([last]))
        for log_density in (tail.log_p, tail.log_q):
            with np.errstate(all="ignore"):
                top = float(log_density(whole[:1])[0])
                total = float(np.exp(log_density(whole) - top).sum())
                found = float((np.exp(log_density(places.ravel()) - top) * weights.ravel()).sum())
            if not abs(found - total) <= _SAME * total:
                return False
    return True
