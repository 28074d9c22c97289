"""One step of a mechanism as plain numeric functions: what a loss law is built from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from flint import arb
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Extended = NDArray[np.longdouble]
RealFunction = Callable[[Array], Array]
ExtendedFunction = Callable[[Extended], Extended]

_CANCELLED = 2.0**9  # ℓ over log Q: from here on their difference has lost nine bits


class Accurate(Protocol):
    """log P and ℓ of a piece beyond double precision."""

    def __call__(self, x: Array, origin: float = 0.0) -> tuple[Array, Array]:
        """Return log P and ℓ − origin at given places, rounded correctly to doubles."""
        ...

    def ball(self, x: Any, **analytic: bool) -> tuple[Any, Any]:
        """Return balls around both at the working precision; on integers, of complex balls too."""
        ...

    def extended(self, x: Extended) -> tuple[Extended, Extended] | None:
        """Return both with 64-bit mantissas, None where the platform or a formula has none."""
        ...


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
    accurate
        The same two functions beyond double precision.
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
    accurate: Accurate
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

    def reversed(self) -> SmoothPiece:
        """Return the piece with P and Q exchanged, neither of which vanishes on it."""
        mass = self.log_mass
        if mass is not None:  # from some place of it
            place = np.asarray([max(min(0.0, self.upper - 1.0), self.lower + 1.0)])
            mass -= float(self.accurate(place)[1][0])
        return replace(
            self,
            log_mass=mass,
            log_p=self.log_q,
            log_q=self.log_p,
            loss=_negative(self.loss),
            accurate=_Reversed(self.accurate, self.log_q),
            joint=None if self.joint is None else _exchanged(self.joint),
        )


def _negative(function: RealFunction) -> RealFunction:
    return lambda x: -function(x)


def _exchanged(joint: Callable[[Array], tuple[Array, ...]]) -> Callable[[Array], tuple[Array, ...]]:
    def function(x: Array) -> tuple[Array, ...]:
        log_p, log_q, loss = joint(x)
        return log_q, log_p, -loss

    return function


class _Reversed:
    """log Q and −ℓ of a piece beyond double precision."""

    def __init__(self, accurate: Accurate, log_q: RealFunction) -> None:
        self._accurate, self._log_q = accurate, log_q

    def __call__(self, x: Array, origin: float = 0.0) -> tuple[Array, Array]:
        log_p, loss = self._accurate(x, -origin)
        log_q = log_p - loss + origin
        # Where P falls far faster than Q, their logarithms cancel in the difference.
        lost = np.flatnonzero(np.abs(loss) > _CANCELLED * np.maximum(np.abs(log_q), 1.0))
        log_q[lost] = self._log_q(x[lost])
        return log_q, -loss

    def ball(self, x: Any, **analytic: bool) -> tuple[Any, Any]:
        log_p, loss = self._accurate.ball(x, **analytic)
        return log_p - loss, -loss

    def extended(self, x: Extended) -> tuple[Extended, Extended] | None:
        values = self._accurate.extended(x)
        return None if values is None else (values[0] - values[1], -values[1])


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
