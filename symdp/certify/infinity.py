"""The mass at infinity, and whether ε lies beyond every finite loss.

An output that Q never gives has an infinite loss.  With δ∞ᵢ = P(Q = 0) of a step, steps being
independent, a sum of losses is infinite with probability

    δ∞ = 1 − Π (1 − δ∞ᵢ)^{nᵢ},

which δ(ε) holds at every ε.  Masses are enclosed integrals, their tails bounded.

For ε at or above Σ nᵢ max ℓᵢ, over the finite losses, no sum exceeds ε and δ(ε) = δ∞ exactly.  The
largest loss of a monotone piece is its limit at an end; the sign of the sum less ε is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp
from flint import arb

from symdp.balls.enclosure import enclose_exponential
from symdp.certify.parts import parts_of
from symdp.derive.pieces import pieces, points
from symdp.derive.signs import sign_of
from symdp.emit.arb import constant_ball
from symdp.emit.exact import real_ball
from symdp.model.allocation import AllocatedPair, OneStep


def mass_at_infinity(steps: Sequence[tuple[OneStep, int]], tolerance: arb) -> arb:
    """Enclose 1 − Π(1 − δ∞ᵢ)^{nᵢ}, the probability of an infinite loss.

    One of t steps: Q is 0 in the step that has the record, or P is 0 in every step.
    """
    log_kept = arb(0)
    for pair, count in steps:
        own = arb(0)
        if isinstance(pair, AllocatedPair):
            own = mass_at_infinity([(pair.own, 1)], tolerance / count)
            log_kept += count * (-(own if pair.direction == "remove" else own**pair.steps)).log1p()
            continue
        for point in points(pair):
            if point.q == 0:
                own += real_ball(point.p)
        for piece in pieces(pair):
            if piece.log_q is None:
                assert piece.log_p is not None
                own += enclose_exponential(
                    piece.log_p,
                    pair.variable,
                    piece.lower,
                    piece.upper,
                    tolerance=tolerance / count,
                )
        log_kept += count * (-own).log1p()
    return -log_kept.expm1()


def is_beyond(steps: Sequence[tuple[OneStep, int]], epsilon: sp.Rational) -> bool:
    """Whether ε is proved to be at least the largest finite loss.

    That of one of t steps is no larger than one step's: no mean exceeds all that it is of.
    """
    total = sp.S.Zero
    for pair, count in steps:
        parts = parts_of(pair.own if isinstance(pair, AllocatedPair) else pair)
        tops = [point.loss for point in parts.points]
        for part in parts.stretches:
            piece, x = part.piece, part.x
            if piece.slope == "unknown":
                return False
            end = piece.lower if piece.slope == "decreasing" else piece.upper
            if piece.slope == "constant":
                tops.append(piece.loss)
            elif end.is_finite:
                tops.append(piece.loss.subs(x, end))
            else:
                tops.append(sp.limit(piece.loss, x, end))
        if any(not top.is_finite for top in tops):
            return False
        largest = max(tops, key=lambda top: float(constant_ball(top, 128).real.mid()))
        if any(sign_of(top - largest) not in (-1, 0) for top in tops):
            return False
        total += count * largest
    return sign_of(total - epsilon) in (-1, 0)
