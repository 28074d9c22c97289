"""What a pair consists of: smooth pieces of the support, or single points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import sympy as sp

from symdp.model.pair import Pair

DISTANCE = sp.Symbol("y", positive=True)  # of a place from 0, or from an end
Slope = Literal["increasing", "decreasing", "constant", "unknown"]


@dataclass(frozen=True)
class Piece:
    """A stretch of the support where every density is smooth and the loss monotone.

    Between `lower` and `upper` no Abs, sign, Min, Max, Heaviside or Piecewise is left.  With an
    integer variable both ends belong to the piece where they are finite, and the next piece starts
    one higher.
    """

    lower: sp.Expr  # ±oo allowed
    upper: sp.Expr
    log_p: sp.Expr | None  # None where the density is identically 0
    log_q: sp.Expr | None
    loss: sp.Expr  # in normal form; oo where Q = 0 < P, −oo where P = 0 < Q
    slope: Slope  # how ℓ moves with the variable; "unknown" where no exact test could tell
    log_p_terms: tuple[sp.Expr, ...] = ()  # single addends, whose modes a quadrature must see
    log_q_terms: tuple[sp.Expr, ...] = ()
    # Of an atom, the output that the piece stands for: densities equal to its masses on an interval
    # of length 1 have the same loss.
    place: sp.Expr | None = None

    def replaced(self, rule: Mapping[sp.Expr, sp.Expr]) -> Piece:
        """Return the piece with some of its expressions exchanged for others."""

        def put(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(put, value))
            if isinstance(value, sp.Basic):
                return value.xreplace(rule)
            return value

        return replace(self, **{name: put(value) for name, value in vars(self).items()})


def mapped(pair: Pair, put: Callable[[sp.Expr], sp.Expr]) -> Pair:
    """Return a pair with a function of each of its densities, masses and weights."""

    def law(component: Any) -> Any:
        if isinstance(component, tuple):
            return tuple(map(law, component))
        return put(component)

    return replace(
        pair,
        components=law(pair.components),
        p_weights=law(pair.p_weights),
        q_weights=law(pair.q_weights),
        alternatives=tuple(
            (put(weight), mapped(alternative, put)) for weight, alternative in pair.alternatives
        ),
        atoms=law(pair.atoms),
    )


@dataclass(frozen=True)
class Point:
    """One value of a finite list with its two probabilities and its loss log(p/q)."""

    value: sp.Expr
    p: sp.Expr
    q: sp.Expr
    loss: sp.Expr
