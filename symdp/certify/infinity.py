"""What a composition loses at infinity, and whether ε lies beyond every finite loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.balls.enclosure import enclose_exponential
from symdp.certify.parts import parts_of
from symdp.derive.pieces import pieces, points
from symdp.derive.signs import sign_of
from symdp.emit.arb import constant_ball

if TYPE_CHECKING:
    from symdp.model.pair import Pair


def mass_at_infinity(steps: Sequence[tuple[Pair, int]], tolerance: arb) -> arb:
    """Enclose 1 − Π(1 − δ∞ᵢ)^{nᵢ}, the probability of an infinite loss."""
    log_kept = arb(0)
    for pair, count in steps:
        own = arb(0)
        for point in points(pair):
            if point.q == 0:
                own += constant_ball(point.p, ctx.prec).real
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


def is_beyond(steps: Sequence[tuple[Pair, int]], epsilon: sp.Rational) -> bool:
    """Whether ε is proved to be at least the largest finite loss."""
    total = sp.S.Zero
    for pair, count in steps:
        parts = parts_of(pair)
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
