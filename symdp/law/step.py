"""One step of a mechanism as plain numeric functions: what a loss law is built from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from flint import arb
from numpy.typing import NDArray

Array = NDArray[np.float64]
Extended = NDArray[np.longdouble]
RealFunction = Callable[[Array], Array]
ExtendedFunction = Callable[[Extended], Extended]


class Accurate(Protocol):
    """log P and ℓ of a piece beyond double precision."""

    def __call__(self, x: Array, origin: float = 0.0) -> tuple[Array, Array]:
        """Return log P and ℓ − origin at given places, rounded correctly to doubles."""
        ...

    def ball(self, x: arb) -> tuple[arb, arb]:
        """Return balls around both at the working precision."""
        ...

    def extended(self, x: Extended) -> tuple[Extended, Extended] | None:
        """Return both with 64-bit mantissas, None where the platform or a formula has none."""
        ...


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
        Logarithms of the single terms that P and Q are sums of; their modes show where a
        quadrature must look, however far apart or narrow they are.
    flat
        True where ℓ is constant, so that the whole piece is one atom of the loss.
    accurate
        The same two functions beyond double precision.
    ends
        Balls around the finite ends, which a double may have rounded.
    """

    lower: float
    upper: float
    log_p: RealFunction
    log_q: RealFunction
    loss: RealFunction
    accurate: Accurate
    log_terms: tuple[RealFunction, ...] = ()
    flat: bool = False
    integer: bool = False
    ends: tuple[arb, ...] = ()


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
