"""What a pair consists of: smooth pieces of the support, or single points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import sympy as sp

Slope = Literal["increasing", "decreasing", "constant", "unknown"]
TURNED: dict[Slope, Slope] = {  # with the variable reversed
    "increasing": "decreasing",
    "decreasing": "increasing",
    "constant": "constant",
    "unknown": "unknown",
}


@dataclass(frozen=True)
class Piece:
    """A stretch of the support where every density is smooth and the loss monotone.

    Between `lower` and `upper` no Abs, sign, Min, Max, Heaviside or Piecewise is left.  With an
    integer variable both ends belong to the piece where they are finite, and the next piece starts
    one higher.

    Attributes
    ----------
    lower, upper
        The ends, ±oo allowed.
    log_p, log_q
        Log densities of P and Q, None where that density is identically 0.
    loss
        ℓ = log P − log Q in normal form; oo where Q = 0 < P, −oo where P = 0 < Q.
    slope
        How ℓ moves with the variable; "unknown" only where no exact test could tell.
    log_p_terms, log_q_terms
        Logs of the single additive terms of P and Q, whose modes a quadrature must see.
    place
        The one value of the output that the piece stands for, where P and Q have an atom there:
        densities equal to its masses on an interval of length 1 have the same loss.
    """

    lower: sp.Expr
    upper: sp.Expr
    log_p: sp.Expr | None
    log_q: sp.Expr | None
    loss: sp.Expr
    slope: Slope
    log_p_terms: tuple[sp.Expr, ...] = ()
    log_q_terms: tuple[sp.Expr, ...] = ()
    place: sp.Expr | None = None


@dataclass(frozen=True)
class Point:
    """One value of a finite list with its two probabilities and its loss log(p/q)."""

    value: sp.Expr
    p: sp.Expr
    q: sp.Expr
    loss: sp.Expr
