"""From the derived pieces of a pair to numbers: the only place where derivation meets numerics."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from flint import arb, ctx

from symdp.derive import pieces, points
from symdp.derive.limits import loss_range
from symdp.derive.records import Piece, Point
from symdp.emit import compile_arb, compile_numpy
from symdp.errors import AccuracyError
from symdp.numeric.law import LossLaw
from symdp.numeric.step import Array, RealFunction, SmoothPiece, Step

if TYPE_CHECKING:
    from symdp.emit.arb import ArbFunction
    from symdp.mechanism import Mechanism

_BITS = 110
_MOST_BITS = 4_000
_FEW = 6_000  # beyond this many nodes, correctly rounded values cost more than they bring


def loss_law(mechanism: Mechanism, direction: str) -> LossLaw:
    """Return the numeric law of one step's privacy loss in one direction, compiled once.

    Raises
    ------
    InputError
        If a parameter of the mechanism is still free.
    """
    return _loss_law(mechanism.require_concrete(), direction)


@lru_cache(maxsize=256)
def _loss_law(mechanism: Mechanism, direction: str) -> LossLaw:
    pair = mechanism.pair(direction)
    variable = pair.variable
    if pair.support.kind == "points":
        step, bounds = _finite_step(mechanism.name, points(pair))
        return LossLaw(step, bounds)
    derived = pieces(pair)
    integer = pair.is_discrete
    smooth = [_smooth_piece(p, variable, integer) for p in derived if p.log_p is not None]
    step = Step(mechanism.name, tuple(smooth))
    charged = [p for p in derived if p.log_p is not None and p.log_q is not None]
    found = loss_range(charged, variable) if charged else (sp.Integer(0), sp.Integer(0))
    bounds = (
        _seen_range(smooth) if found is None else (_outward(found[0], -1), _outward(found[1], 1))
    )
    return LossLaw(step, bounds)


def _smooth_piece(piece: Piece, variable: sp.Symbol, integer: bool) -> SmoothPiece:
    symbols = [variable]
    terms = (*piece.log_p_terms, *piece.log_q_terms)
    infinite = piece.loss == sp.oo
    loss: RealFunction = _constant(math.inf) if infinite else compile_numpy(piece.loss, symbols)
    return SmoothPiece(
        lower=float(sp.N(piece.lower, 40)),
        upper=float(sp.N(piece.upper, 40)),
        log_p=compile_numpy(piece.log_p, symbols),
        log_q=_constant(-math.inf) if infinite else compile_numpy(piece.log_q, symbols),
        loss=loss,
        accurate=_Accurate(piece, variable, infinite),
        log_terms=tuple(compile_numpy(term, symbols) for term in dict.fromkeys(terms)),
        flat=infinite or piece.slope == "constant",
        integer=integer,
    )


def _constant(value: float) -> RealFunction:
    def function(x: Array) -> Array:
        return np.full(np.shape(x), value)

    return function


class _Accurate:
    """log P and ℓ at given places, rounded correctly to doubles from ball arithmetic."""

    def __init__(self, piece: Piece, variable: sp.Symbol, infinite: bool) -> None:
        self._log_p = compile_arb(piece.log_p, [variable])
        self._loss = None if infinite else compile_arb(piece.loss, [variable])
        self._fast_log_p = compile_numpy(piece.log_p, [variable])
        self._fast_loss = None if infinite else compile_numpy(piece.loss, [variable])

    def ball(self, x: arb) -> tuple[arb, arb]:
        """Return balls around log P and ℓ at the working precision."""
        return self._log_p(x), arb(math.inf) if self._loss is None else self._loss(x)

    def __call__(self, x: Array, origin: float = 0.0) -> tuple[Array, Array]:
        if x.size > _FEW:
            loss = np.full(x.shape, math.inf) if self._fast_loss is None else self._fast_loss(x)
            return self._fast_log_p(x), loss - origin
        log_p = _rounded(self._log_p, x)
        if self._loss is None:
            return log_p, np.full(x.shape, math.inf)
        return log_p, _rounded(self._loss, x, origin)


def _rounded(function: ArbFunction, x: Array, origin: float = 0.0) -> Array:
    """Return the function less `origin`, each value from a ball no wider than its rounding."""
    values = np.empty(x.shape)
    for i, place in enumerate(x.tolist()):
        bits = _BITS
        while True:
            with ctx.workprec(bits):
                ball = function(arb(place)) - origin
                if ball.is_finite() and (ball.rel_accuracy_bits() >= 54 or ball == 0):
                    values[i] = float(ball.mid())
                    break
                if ball.is_finite() and float(ball.rad()) < 1e-300:
                    values[i] = float(ball.mid())
                    break
            bits *= 2
            if bits > _MOST_BITS:
                raise AccuracyError(f"the density or loss has no accurate value at {place!r}")
    return values


def _finite_step(name: str, listed: tuple[Point, ...]) -> tuple[Step, tuple[float, float]]:
    """Return the step of a finite list, and its loss range."""
    charged = [point for point in listed if not point.p.is_zero]
    loss = np.asarray([float(sp.N(point.loss, 30)) for point in charged])
    log_p = np.asarray([float(sp.N(sp.log(point.p), 30)) for point in charged])
    finite = loss[np.isfinite(loss)]
    bounds = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    with ctx.workprec(_BITS):
        balls = tuple(
            (compile_arb(point.p, [])().real, compile_arb(point.loss, [])().real)
            for point in charged
            if point.loss != sp.oo
        )
    return Step(name, (), loss, log_p, balls), bounds


def _outward(value: sp.Expr, sign: int) -> float:
    """Return a bound as the double on its outer side."""
    number = float(sp.N(value, 40))
    return math.nextafter(number, sign * math.inf) if math.isfinite(number) else number


def _seen_range(smooth: list[SmoothPiece]) -> tuple[float, float]:
    """Return an enclosing range of the loss where limits were not found symbolically.

    Only what a double can see counts: the extreme values on a grid out to 2^500. A range that is
    too wide costs time, never accuracy.
    """
    from symdp.numeric.outline import Outline

    low, high = math.inf, -math.inf
    for piece in smooth:
        if piece.flat and np.isposinf(piece.loss(np.zeros(1))).all():
            continue
        outline = Outline(piece)
        seen = outline.loss[np.isfinite(outline.log_p) & np.isfinite(outline.loss)]
        if seen.size:
            low, high = min(low, float(seen.min())), max(high, float(seen.max()))
    spread = 1e-3 * (high - low) + 1e-300
    return low - spread, high + spread
