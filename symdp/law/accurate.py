"""Losses and log densities rounded correctly to doubles, by 64-bit mantissas or by balls."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, ctx

from symdp.errors import AccuracyError
from symdp.law.step import Array, Extended, ExtendedFunction, RealFunction

# First precision of a ball, and the last: 4 000 bits tell any double apart.
_BITS, _MOST_BITS = 110, 4_000
MOST_ROUNDED = 16_000  # nodes at most whose values are rounded by balls, one by one
_MANY = 400_000  # nodes at most whose values have 64-bit mantissas first: half a second
_SAMPLED = 64  # of many places, at which doubles are compared with balls
_SEEN = 1e-10  # relative: where doubles are off by more, they are not used
_CANCELLED = 2.0**-43  # relative: where doubles are off by more, 64-bit mantissas may be, too


class Accurate:
    """log P and ℓ at given places, rounded correctly to doubles.

    Values with 64-bit mantissas say how to round; ball arithmetic says it where there are none, or
    where these differ from doubles by so much that the expression must have cancelled.
    """

    def __init__(
        self,
        log_p: Callable[..., Any],
        loss: Callable[..., Any] | None,
        fast_log_p: RealFunction,
        fast_loss: RealFunction | None,
        extended_log_p: ExtendedFunction | None = None,
        extended_loss: ExtendedFunction | None = None,
    ) -> None:
        self._log_p, self._loss = log_p, loss
        self._fast_log_p, self._fast_loss = fast_log_p, fast_loss
        self._extended_log_p, self._extended_loss = extended_log_p, extended_loss

    def ball(self, x: Any, **analytic: bool) -> tuple[Any, Any]:
        """Return balls around log P and ℓ at the working precision."""
        loss = arb(math.inf) if self._loss is None else self._loss(x, **analytic)
        return self._log_p(x, **analytic), loss

    def extended(self, x: Extended) -> tuple[Extended, Extended] | None:
        """Return log P and ℓ with 64-bit mantissas, None where there are none."""
        if self._extended_log_p is None or self._extended_loss is None:
            return None
        return self._extended_log_p(x), self._extended_loss(x)

    def __call__(self, x: Array, origin: float = 0.0) -> tuple[Array, Array]:
        """Return log P and ℓ − origin, rounded."""
        if x.size > (MOST_ROUNDED if self._extended_log_p is None else _MANY) and (
            self._extended_log_p is not None or self._is_seen_right(x)
        ):
            loss = np.full(x.shape, math.inf) if self._fast_loss is None else self._fast_loss(x)
            return self._fast_log_p(x), loss - origin
        log_p = _rounded(self._log_p, self._fast_log_p, self._extended_log_p, x)
        if self._loss is None or self._fast_loss is None:
            return log_p, np.full(x.shape, math.inf)
        return log_p, _rounded(self._loss, self._fast_loss, self._extended_loss, x, origin)

    def _is_seen_right(self, x: Array) -> bool:
        """Return whether doubles are near to balls at some places of many."""
        places = x[np.linspace(0, x.size - 1, _SAMPLED).astype(np.intp)]
        functions = [(self._log_p, self._fast_log_p)]
        if self._loss is not None and self._fast_loss is not None:
            functions.append((self._loss, self._fast_loss))
        for ball, fast in functions:
            exact = np.asarray([_rounded_ball(ball, place, 0.0) for place in places.tolist()])
            with np.errstate(all="ignore"):
                if not (np.abs(fast(places) - exact) <= _SEEN * (1.0 + np.abs(exact))).all():
                    return False
        return True


def _rounded(
    ball: Callable[..., Any],
    fast: RealFunction,
    extended: ExtendedFunction | None,
    x: Array,
    origin: float = 0.0,
) -> Array:
    """Return the function less `origin`, each value as close as its rounding."""
    values = np.empty(x.shape)
    doubtful = np.ones(x.shape, dtype=bool)
    if extended is not None:
        with np.errstate(all="ignore"):
            values = (extended(x.astype(np.longdouble)) - origin).astype(np.float64)
            doubtful = ~(np.abs(values - (fast(x) - origin)) <= _CANCELLED * np.abs(values))
    places = np.flatnonzero(doubtful)
    # Of very many, mantissas of 64 bits are near enough, which have cancelled 2¹¹ times less.
    for i in (
        places.tolist()
        if places.size <= MOST_ROUNDED or extended is None
        else np.flatnonzero(np.isnan(values)).tolist()
    ):
        values[i] = _rounded_ball(ball, float(x[i]), origin)
    return values


@lru_cache(maxsize=1 << 15)  # node sets of several tilts share integers, whose balls are slow
def _rounded_ball(function: Callable[..., Any], place: float, origin: float) -> float:
    """Return the function less `origin`, from a ball no wider than its rounding."""
    bits = _BITS
    while bits <= _MOST_BITS:
        with ctx.workprec(bits):
            ball = function(arb(place)) - origin
            if ball.is_finite() and (ball.rel_accuracy_bits() >= 54 or ball == 0):
                return float(ball.mid())
            if ball.is_finite() and float(ball.rad()) < 1e-300:
                return float(ball.mid())
        bits *= 2
    raise AccuracyError(
        f"the density or the loss has no finite value at {place!r}, as where a density touches "
        "zero at so many places that they are not told apart; bound the support"
    )


def extended_number(ball: arb) -> np.longdouble:
    """Return the middle of a ball with a 64-bit mantissa."""
    middle = ball.mid()
    first = float(middle)
    return np.longdouble(first) + np.longdouble(float((middle - arb(first)).mid()))
