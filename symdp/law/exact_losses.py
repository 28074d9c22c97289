"""Losses of single values and the largest loss, beyond double precision.

Sums of many steps lie on a lattice whose spacing n multiplies, and ε next to the largest loss is
told from it by the last digits: both are read off balls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from symdp.emit.exact import middle_of
from symdp.law.nodes import escapes, inner_place, integer_nodes
from symdp.law.outline import Outline
from symdp.law.step import SmoothPiece, Step

BITS = 140  # carried: n = 10¹² steps leave 100 of them
EXTENDED = 1e-21  # relative: of losses that are known to 22 digits
_KNOWN = 1e-22  # radius of a loss in balls that is known
_SAME_TOP = 1e-14  # relative: a largest loss in balls is the one in doubles
_BESIDE = 8  # integers on each side of the likeliest
_SPARSE = 32  # places of an outline that are looked at


def precise_losses(step: Step, outlines: Sequence[Outline]) -> tuple[Fraction, ...]:
    """Return the losses of a step whose finite losses are all single values, in rising order.

    Of integer noise, these are the ends of what is not negligible and some of those between.
    """
    with ctx.workprec(BITS):
        losses = [middle_of(loss) for _, loss in step.point_balls]
        for piece in (outline.piece for outline in outlines if not escapes(outline.piece)):
            places = _sampled(piece) if piece.integer else [inner_place(piece)]
            losses += [middle_of(piece.ball(arb(place))[1]) for place in places]
        return tuple(sorted(losses))


def precise_top(step: Step, outlines: Sequence[Outline], top: float) -> Fraction | None:
    """Return the largest loss beyond doubles, None where it is not seen at a place of a piece."""
    with ctx.workprec(BITS):
        losses = [loss for _, loss in step.point_balls]
        for piece in (outline.piece for outline in outlines if not escapes(outline.piece)):
            places = [arb(inner_place(piece))] if piece.flat else list(piece.ends)
            losses += [piece.ball(place)[1] for place in places]
        close = [loss for loss in losses if loss.is_finite() and loss.rad() < _KNOWN]
        known = max((middle_of(loss) for loss in close), default=None)
    if known is None or not math.isfinite(top):
        return None
    return known if abs(float(known) - top) <= _SAME_TOP * (1.0 + abs(top)) else None


def _sampled(piece: SmoothPiece) -> list[float]:
    """Return some integers of a piece: where its loss ends, and others far from even spacing."""
    x = np.sort(integer_nodes(piece, [-1.0, 0.0]))
    loss = np.asarray(piece.loss(x))
    middle = int(np.asarray(piece.log_p(x)).argmax())
    chosen = {int(loss.argmin()), int(loss.argmax())}
    chosen |= {place % x.size for place in range(middle - _BESIDE, middle + _BESIDE + 1)}
    chosen |= {place * place * (x.size - 1) // _SPARSE**2 for place in range(_SPARSE + 1)}
    return [float(place) for place in x[sorted(chosen)]]
