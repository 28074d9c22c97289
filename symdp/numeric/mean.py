"""The mean and the ends of the loss beyond double precision.

n steps shift the total loss by n times the mean, while δ depends on ε minus that shift. For many
steps a double's rounding of the mean is therefore no longer small, so it is summed in balls.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb, ctx

from symdp.numeric.nodes import escapes, inner_place, integer_nodes
from symdp.numeric.outline import Outline, covering_tilts
from symdp.numeric.panels import build_panels
from symdp.numeric.step import Step

_BITS = 140
_ORDER = 24
_FURTHER = 20.0  # e-folds of mass that doubles need not, and 25 digits do


@cache
def _rule() -> tuple[tuple[arb, arb], ...]:
    with ctx.workprec(_BITS):
        return tuple(arb.legendre_p_root(_ORDER, k, weight=True) for k in range(_ORDER))


def precise_mean(step: Step, outlines: Sequence[Outline]) -> Fraction:
    """Return E L given that L is finite, to about 25 digits.

    Every panel that settled with 16 points in double precision is halved and summed again with 24
    points in ball arithmetic, which leaves a quadrature error far below a double's rounding.
    """
    with ctx.workprec(_BITS):
        mass, total = arb(0), arb(0)
        for probability, loss in step.point_balls:
            mass, total = mass + probability, total + probability * loss
        finite = [outline for outline in outlines if not escapes(outline.piece)]
        masses = covering_tilts(finite, [-1.0, 0.0]) if finite else {}
        for outline in finite:
            piece = outline.piece
            for place, weight in _weighted_places(outline, masses[0.0]):
                log_p, loss = piece.accurate.ball(place)
                share = weight * log_p.exp()
                mass, total = mass + share, total + share * loss
        return _fraction(total / mass)


def precise_ends(step: Step, outlines: Sequence[Outline]) -> tuple[Fraction, Fraction]:
    """Return the least and the largest loss of a step whose finite losses are all single values.

    Of integer noise, these are the ends of what is not negligible.
    """
    with ctx.workprec(_BITS):
        ends = [_fraction(loss) for _, loss in step.point_balls]
        for piece in (outline.piece for outline in outlines if not escapes(outline.piece)):
            if piece.integer:
                x = integer_nodes(piece, [-1.0, 0.0])
                loss = np.asarray(piece.loss(x))
                places = x[[loss.argmin(), loss.argmax()]].tolist()
            else:
                places = [inner_place(piece)]
            ends += [_fraction(piece.accurate.ball(arb(place))[1]) for place in places]
        return min(ends), max(ends)


def _fraction(ball: arb) -> Fraction:
    mantissa, exponent = ball.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _weighted_places(outline: Outline, log_mass: float) -> list[tuple[arb, arb]]:
    piece = outline.piece
    if piece.integer:
        return [(arb(x), arb(1)) for x in integer_nodes(piece, [0.0], _FURTHER).tolist()]
    panels, _ = build_panels(outline, {0.0: log_mass - _FURTHER}, 0.0)
    if panels is None:
        return []
    lower, upper = panels.lower, panels.upper
    middle = 0.5 * (lower + upper)
    ends = zip(
        np.concatenate([lower, middle]).tolist(),
        np.concatenate([middle, upper]).tolist(),
        strict=True,
    )
    places = []
    for low, high in ends:
        half, centre = (arb(high) - arb(low)) / 2, (arb(high) + arb(low)) / 2
        places += [(centre + half * node, half * weight) for node, weight in _rule()]
    return places
