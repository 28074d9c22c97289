"""The pieces of a pair cut where the loss turns, as a page shows them; no number asks for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.pieces import joined, pieces
from symdp.density.records import Piece
from symdp.density.signs import sign_of
from symdp.density.turning import monotone_cuts

if TYPE_CHECKING:
    from symdp.model.pair import Pair


def monotone_pieces(pair: Pair) -> tuple[Piece, ...]:
    """Return the smooth pieces of a pair, split further where the loss turns."""
    x = pair.variable
    found = [part for piece in pieces(pair) for part in _cut(piece, x)]
    return tuple(found if pair.alternatives else joined(found, x))


def _cut(piece: Piece, x: sp.Symbol) -> Iterator[Piece]:
    """Yield a piece in parts, one for each direction of the loss."""
    if piece.slope != "unknown":
        yield piece
        return
    lower, upper = piece.lower, piece.upper
    for low, high, slope in monotone_cuts(piece.loss, x, lower, upper):
        first, last = low, high
        if x.is_integer:
            first = low if low == lower else sp.floor(low) + 1
            last = high if high == upper else sp.floor(high)
            if sign_of(last - first) == -1:
                continue
        yield replace(piece, lower=first, upper=last, slope=slope)
