"""Pieces of an even law: one of two mirror images stands for both.

Where log p, log q and ℓ of one piece are those of another at c − x, both have the same law of the
loss: one piece with 2p and 2q in place of p and q stands for both, as every δ and K here depends
on that law alone.  The image is compared symbolically: pieces that SymPy does not find to be equal
are kept apart, which costs time and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy as sp

from symdp.derive.records import TURNED, Piece

_DEFINING = ("lower", "upper", "log_p", "log_q", "loss")  # what makes two pieces equal


def folded(found: Sequence[Piece], x: sp.Symbol) -> list[Piece]:
    """Return pieces with the same law of the loss, one for two that are mirror images.

    Parameters
    ----------
    found : sequence of Piece
        On which both densities live.
    x : sympy.Symbol
        Their variable.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> left = Piece(-sp.oo, sp.S.Zero, x, 2 * x, -x, "decreasing")
    >>> right = Piece(sp.S.Zero, sp.oo, -x, -2 * x, x, "increasing")
    >>> [piece.log_p for piece in folded([left, right], x)]
    [x + log(2)]
    """
    if not found:
        return []
    ends = sp.Min(*(piece.lower for piece in found)), sp.Max(*(piece.upper for piece in found))
    turned = -x if any(end.is_infinite for end in ends) else sum(ends) - x
    kept: list[Piece] = []
    for piece in found:
        image = _mirrored(piece, x, turned)
        match = next((other for other in kept if _are_equal(other, image)), None)
        if match is None:
            kept.append(piece)
        else:
            kept[kept.index(match)] = _doubled(match)
    return kept


def _mirrored(piece: Piece, x: sp.Symbol, turned: sp.Expr) -> Piece:
    log_p, log_q = (e.subs(x, turned) for e in _log_densities(piece))
    ends = turned.subs(x, piece.upper), turned.subs(x, piece.lower)
    return Piece(*ends, log_p, log_q, piece.loss.subs(x, turned), TURNED[piece.slope])


def _are_equal(one: Piece, other: Piece) -> bool:
    if one.slope != other.slope:
        return False
    pairs = [(getattr(one, name), getattr(other, name)) for name in _DEFINING]
    return all(first == second or sp.expand(first - second) == 0 for first, second in pairs)


def _doubled(piece: Piece) -> Piece:
    log_p, log_q = (sp.log(2) + e for e in _log_densities(piece))
    return replace(piece, log_p=log_p, log_q=log_q)


def _log_densities(piece: Piece) -> tuple[sp.Expr, sp.Expr]:
    assert piece.log_p is not None
    assert piece.log_q is not None
    return piece.log_p, piece.log_q
