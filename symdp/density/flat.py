"""Stretches on which the loss is constant: one atom, whose probability has a closed form."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import sympy as sp
from flint import arb, ctx

from symdp.density.records import Piece
from symdp.emit import compile_arb
from symdp.emit.arb import constant_ball
from symdp.emit.enclose import enclose_sum
from symdp.emit.exact import BITS
from symdp.errors import AccuracyError


def flat_masses(pieces: Sequence[Piece], k: sp.Symbol) -> dict[Piece, arb]:
    """Return the pieces of the integers on which the loss is constant, with balls around their P.

    Those that are too many to sum, and not smooth enough for an integral, are left out.
    """
    found = {}
    for piece in pieces:
        if piece.slope == "constant":
            with suppress(AccuracyError), ctx.workprec(BITS):
                mass = _mass(piece, k)
                if mass > 0:
                    found[piece] = mass
    return found


def log_exponential_mass(piece: Piece, x: sp.Symbol) -> sp.Expr | None:
    """Return the log of the mass of a density e^{a+rx} from an end on, None for others."""
    if piece.log_p is None or not (piece.slope == "constant" or piece.loss == sp.oo):
        return None
    rate = sp.diff(piece.log_p, x)
    if x in rate.free_symbols or piece.lower.is_infinite == piece.upper.is_infinite:
        return None
    end = piece.lower if piece.upper.is_infinite else piece.upper
    return piece.log_p.subs(x, end) - sp.log(sp.Abs(rate))


def _mass(piece: Piece, k: sp.Symbol) -> arb:
    log_p = compile_arb(piece.log_p, [k])

    def mass(place: Any, analytic: bool = False) -> Any:
        return log_p(place, analytic=analytic).exp()

    lower, upper = (
        None if end.is_infinite else constant_ball(end, BITS).real
        for end in (piece.lower, piece.upper)
    )
    rate = sp.diff(piece.log_p, k)
    if not rate.free_symbols and (lower is None) != (upper is None):  # a geometric series
        ratio = constant_ball(-rate if upper is not None else rate, BITS).real.exp()
        if ratio < 1:
            first: arb = mass(lower if upper is None else upper)
            return first / (1 - ratio)
    return enclose_sum(mass, lower, upper)
