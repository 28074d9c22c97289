"""One step of a mechanism as plain numeric functions: what a loss law is built from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from symdp.errors import AccuracyError

Array = NDArray[np.float64]
Index = NDArray[np.intp]
RealFunction = Callable[[Array], Array]
BallFunction = Callable[..., tuple[Any, Any]]

_BITS, _MOST_BITS = 110, 4_000  # of a ball that says how to round, at first and at last
MOST_ROUNDED = 4_000  # nodes at most that are evaluated in balls, one by one
_EVERY, _LEAST, _MOST = 16, 16, 256  # of how many places one is compared with balls, and how many
CANCELLED = 8.0  # roundings by which doubles are off where terms cancel
_TYPICAL = 0.01  # of the median loss: what is smaller need be known no better


def no_terms(x: Array) -> Sequence[Array]:
    """Return nothing: P and Q are no sums, or their terms need no look."""
    return ()


def together(functions: Sequence[RealFunction]) -> Callable[[Array], Sequence[Array]]:
    """Return the function that gives the values of several."""
    return lambda x: [function(x) for function in functions]


@dataclass(frozen=True)
class SmoothPiece:
    """A stretch of the support on which densities and privacy loss are smooth.

    Attributes
    ----------
    lower, upper
        Ends, ±inf allowed; for `integer` pieces the ends belong to the piece.
    log_p, log_q, loss
        Vectorised log densities of P and Q and privacy loss ℓ. A loss of +inf means that Q vanishes
        here, so that the piece's P-mass is mass at infinity.
    log_terms
        Returns the logarithms of the single terms that P and Q are sums of; their modes show where
        a quadrature must look, however far apart or narrow they are.
    flat
        True where ℓ is constant, so that the whole piece is one atom of the loss.
    log_mass
        The log of the atom's probability under P, None where it is to be integrated.
    monotone
        True where ℓ is derived to rise or to fall on the whole piece.
    ball
        log P and ℓ in balls at the working precision, of complex places too with `analytic`.
    ends
        Balls around the finite ends, which a double may have rounded.
    joint
        log P, log Q and ℓ at once, where that is cheaper.
    """

    lower: float
    upper: float
    log_p: RealFunction
    log_q: RealFunction
    loss: RealFunction
    ball: BallFunction
    log_terms: Callable[[Array], Sequence[Array]] = no_terms
    flat: bool = False
    log_mass: float | None = None
    monotone: bool = False
    integer: bool = False
    ends: tuple[arb, ...] = ()
    joint: Callable[[Array], tuple[Array, ...]] | None = None

    def values(self, x: Array) -> tuple[Array, Array, Array]:
        """Return log P, log Q and ℓ."""
        if self.joint is None:
            return self.log_p(x), self.log_q(x), np.asarray(self.loss(x), dtype=np.float64)
        log_p, log_q, loss = self.joint(x)
        return log_p, log_q, loss

    def accurate(self, x: Array) -> tuple[Array, Array, float]:
        """Return log P and ℓ, and how many roundings of a double they may be off by.

        Where doubles are seen to cancel, balls say how to round, unless the places are too many.
        """
        with np.errstate(all="ignore"):
            log_p, _, loss = self.values(x)
            number = min(x.size, max(_LEAST, min(x.size // _EVERY, _MOST)))  # one of each panel
            some = np.linspace(0, max(x.size - 1, 0), number).astype(np.intp)
            off = _roundings(log_p[some], loss[some], *self.rounded(x[some]))
        if off <= CANCELLED or x.size > MOST_ROUNDED:
            return log_p, loss, off
        return *self.rounded(x), 1.0

    def rounded(self, x: Array) -> tuple[Array, Array]:
        """Return log P and ℓ, each the double next to it."""
        pairs = [rounded(self.ball, place) for place in x.tolist()]
        log_p, loss = np.asarray(pairs, dtype=np.float64).reshape(-1, 2).T
        return log_p, loss

    def reversed(self) -> SmoothPiece:
        """Return the piece with P and Q exchanged, neither of which vanishes on it."""
        mass = self.log_mass
        if mass is not None:  # from some place of it
            place = np.asarray([max(min(0.0, self.upper - 1.0), self.lower + 1.0)])
            mass -= float(self.rounded(place)[1][0])
        own = self.ball

        def ball(x: Any, **analytic: bool) -> tuple[Any, Any]:
            log_p, loss = own(x, **analytic)
            return log_p - loss, -loss

        return replace(
            self,
            log_mass=mass,
            log_p=self.log_q,
            log_q=self.log_p,
            loss=_negative(self.loss),
            ball=ball,
            joint=None if self.joint is None else _exchanged(self.joint),
        )

    def less(self, constant: float) -> SmoothPiece:
        """Return the piece with both log densities less a constant."""
        own, density, other = self.ball, self.log_p, self.log_q

        def ball(x: Any, **analytic: bool) -> tuple[Any, Any]:
            log_p, loss = own(x, **analytic)
            return log_p - arb(constant), loss

        return replace(
            self,
            log_p=lambda x: np.asarray(density(x) - constant),
            log_q=lambda x: np.asarray(other(x) - constant),
            ball=ball,
            joint=None,
        )


def paired(log_p: Callable[..., Any], loss: Callable[..., Any] | None) -> BallFunction:
    """Return the function that gives balls of both, an infinite ℓ where it has none."""

    def ball(x: Any, **analytic: bool) -> tuple[Any, Any]:
        return log_p(x, **analytic), arb.pos_inf() if loss is None else loss(x, **analytic)

    return ball


def _roundings(log_p: Array, loss: Array, exact_log_p: Array, exact_loss: Array) -> float:
    """Return how many roundings of a double the differences are in the mean square."""
    size = np.abs(exact_loss[np.isfinite(exact_loss)])
    unit = np.abs(exact_loss) + (_TYPICAL * float(np.median(size)) if size.size else 0.0)
    pairs = [
        (log_p, exact_log_p, 1.0 + np.abs(exact_log_p)),
        (loss, exact_loss, np.maximum(unit, 1e-300)),
    ]
    off = [np.where(near == exact, 0.0, np.abs(near - exact) / u) for near, exact, u in pairs]
    squares = np.square(np.nan_to_num(off, nan=np.inf) / np.finfo(float).eps)
    return max(1.0, math.sqrt(float(squares.mean(axis=1).max())) if log_p.size else 1.0)


def _is_known(ball: arb) -> bool:
    if not ball.is_finite():
        return bool(ball == arb.pos_inf())
    return ball.rel_accuracy_bits() >= 54 or float(ball.rad()) < 1e-300


@lru_cache(maxsize=1 << 15)  # node sets of several tilts share places, whose balls are slow
def rounded(ball: BallFunction, place: float, beside: float = 0.0) -> tuple[float, float]:
    """Return log P and ℓ at the sum of two numbers, each the double next to it."""
    bits = _BITS
    while bits <= _MOST_BITS:
        with ctx.workprec(bits):
            pair = ball(arb(place) + arb(beside))
            if all(map(_is_known, pair)):
                return float(pair[0].mid()), float(pair[1].mid())
        bits *= 2
    raise AccuracyError(
        f"the density or the loss has no finite value at {place!r}, as where a density touches "
        "zero at so many places that they are not told apart; bound the support"
    )


def _negative(function: RealFunction) -> RealFunction:
    return lambda x: -function(x)


def _exchanged(joint: Callable[[Array], tuple[Array, ...]]) -> Callable[[Array], tuple[Array, ...]]:
    def function(x: Array) -> tuple[Array, ...]:
        log_p, log_q, loss = joint(x)
        return log_q, log_p, -loss

    return function


@dataclass(frozen=True)
class Step:
    """Everything numeric about one step in one direction: smooth pieces, and single points.

    `point_loss` and `point_log_p` are the points of a finite list (a loss of +inf is mass at
    infinity), and `point_balls` enclose (probability, loss) of those with a finite loss. `name` is
    used in messages only.
    """

    name: str
    pieces: tuple[SmoothPiece, ...] = ()
    point_loss: Array = field(default_factory=lambda: np.empty(0))
    point_log_p: Array = field(default_factory=lambda: np.empty(0))
    point_balls: tuple[tuple[arb, arb], ...] = ()
