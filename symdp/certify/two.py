"""δ(ε) of two steps, an integral over the outcomes of one of them, whatever its loss does.

With G(e) the profile of one step, two have δ(ε) = ∫ p(x) G(ε − ℓ(x)) dx.  Every piece is cut into
cells on which the integrand is a Taylor polynomial, its remainder bounded by a coefficient over the
whole cell.  Cells shrink towards where there is none, as next to a turn of the loss, until what
they hold does not count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flint import arb, arb_poly, arb_series, ctx

from symdp.balls.jets import at_length
from symdp.certify.gains import CELL_COST, MOST_CELLS, Law, Piece, farther
from symdp.certify.single import excess
from symdp.certify.work import spend
from symdp.emit.enclose import between
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_BITS_PER_ORDER = 4
_LEAST_ORDER = 16
_SPARE_BITS = 64
_FIRST_BITS, _MOST_BITS = 14, 400
_CELLS = 128  # share the error between them


def enclose_two(pairs: Sequence[Pair], epsilon: arb, digits: float) -> arb:
    """Enclose δ(ε) of two steps less the mass at infinity.

    Parameters
    ----------
    pairs : sequence of two Pairs
        All parameters bound, of outcomes that are real numbers or single points.
    digits : float
        The relative accuracy.

    Raises
    ------
    AccuracyError
        If a piece is not known to be monotone, a tail is not bounded, the cells are too many, or
        δ is too small.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> ball = enclose_two([mechanisms.logistic(s=3).pair()] * 2, arb(0.25), 10)
    >>> bool(0.03052 < ball < 0.03053)
    True
    """
    bits = math.ceil(3.33 * digits) + _FIRST_BITS
    while bits < _MOST_BITS:
        ball = _enclosed(pairs, epsilon, bits)
        size = abs(ball).upper()
        if ball > 0 and 2 * ball.rad() < ball * arb(10) ** -math.ceil(digits):
            return ball
        # Twice as many where not even the sign is known, else what is lost.
        known = ball > 0 and size < 1
        lost = -float(size.log()) / math.log(2) if known else float(bits)
        bits = max(math.ceil(3.33 * digits + lost), bits) + _FIRST_BITS
    raise AccuracyError("δ is too small to integrate over the outcomes of two steps")


def _enclosed(pairs: Sequence[Pair], epsilon: arb, bits: int) -> arb:
    """Enclose δ(ε) with an error of about 2^(−bits)."""
    order = 2 * (max(_LEAST_ORDER, bits // _BITS_PER_ORDER) // 2)
    with ctx.workprec(max(ctx.prec, bits + _SPARE_BITS)), at_length(order + 1):
        goal = arb(2) ** -bits / _CELLS
        laws = {pair: Law(pair, bits, goal, order) for pair in pairs}
        first, second = (laws[pair] for pair in pairs)
        total = arb(0).union(first.missing + second.missing)
        for mass, loss in first.atoms:
            for share, more in second.atoms:
                total += mass * share * excess(loss + more, epsilon)
            for piece in second.pieces:
                total += mass * piece.gain(epsilon - loss)
        for own in first.pieces:
            for mass, loss in second.atoms:
                total += mass * own.gain(epsilon - loss)
            for piece in second.pieces:
                total += _integral(own, piece, epsilon, goal, order)
        return total


def _integral(own: Piece, other: Piece, epsilon: arb, goal: arb, order: int) -> arb:
    """Enclose ∫ p(x) G(ε − ℓ(x)) dx over one piece, G that of another."""
    total = arb(0)
    waiting = [(own.low, own.high)]
    for count in range(MOST_CELLS):
        if not waiting:
            return total
        low, high = waiting.pop()
        found = _share(own, other, epsilon, low, high, goal, order)
        if found is not None:
            total += found
            continue
        middle = ((low + high) / 2).mid()
        if middle in (low, high):
            break
        waiting += [(low, middle), (middle, high)]
        if count % 64 == 0 and len(waiting) > MOST_CELLS:
            break
    raise AccuracyError("an integral over the outcomes of one step has too many cells")


def _share(
    own: Piece, other: Piece, epsilon: arb, low: arb, high: arb, goal: arb, order: int
) -> arb | None:
    """Enclose the share of one cell, None where it must be halved."""
    spend(CELL_COST)
    rest = between(*(epsilon - own.losses(end, 1)[0] for end in (low, high)))
    if rest >= other.top:
        return arb(0)
    ball, width = between(low, high), high - low
    p, _, loss = own.densities(ball, order + 1)
    mass = (abs(p[0]) * width).upper()
    if mass < goal:
        return arb(0).union(mass)
    change = arb_series([0, *(-loss[k] for k in range(1, order + 1))], order + 1)
    outer = other.gains(rest, change, order + 1)
    centre = ((low + high) / 2).mid()
    half = farther(centre, low, high)
    error = arb.pos_inf()
    if outer is not None:
        error = (abs((p * outer)[order]) * half ** (order + 1) * 2 / (order + 1)).upper()
    if not error < goal:
        # Next to the top of the other's losses the gain is small.
        most = (mass * other.most(rest)).upper()
        return arb(0).union(most) if most < goal else None
    p, _, loss = own.densities(centre, order)
    change = arb_series([0, *(-loss[k] for k in range(1, order))], order)
    inner = other.gains(epsilon - loss[0], change, order)
    if inner is None:
        return None
    product = p * inner
    integral = arb_poly([product[k] for k in range(order)]).integral()
    return integral(high - centre) - integral(low - centre) + arb(0, error)
