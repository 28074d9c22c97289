r"""A step that is known by a bound on its Rényi divergence alone: zCDP, or a table of orders.

Such a step has no dominating pair. What adds up over the steps is a bound on the transform,

.. math:: K(t) \le \sum_i n_i\, t\, D^{(i)}_{1+t}, \qquad t > 0,

and every tilt t gives a bound on δ [SPA (43)], [IND (C.3)].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy as sp

from symdp.errors import InputError
from symdp.model.guarded import substitute

if TYPE_CHECKING:
    from symdp.model.pair import Support

MOST_ORDERS = 10_000  # of one table


@dataclass(frozen=True)
class RenyiCurve:
    """A bound on the divergence D_α at every order α > 1 of the support, in both directions."""

    # A formula of the order, or a list of orders, rising, each followed by its bound. K is convex
    # and 0 at t = 0, so that between orders it lies below the chord
    divergence: sp.Expr | tuple[sp.Expr, ...]

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> RenyiCurve:
        """Return the curve with values in place of symbols."""
        if isinstance(self.divergence, tuple):
            return self
        return replace(self, divergence=substitute(self.divergence, values))

    def checked(self, support: Support) -> RenyiCurve:
        """Return self: every support of orders will do."""
        return self


def table(points: Sequence[sp.Expr]) -> tuple[sp.Expr, ...]:
    """Return orders, each followed by its bound, checked."""
    listed = list(zip(points[::2], points[1::2], strict=True))
    if not 1 <= len(listed) <= MOST_ORDERS:
        raise InputError(f"a Rényi curve needs 1 to {MOST_ORDERS} orders, not {len(listed)}")
    for (before, last), (order, bound) in pairwise([(sp.S.One, sp.S.Zero), *listed]):
        if not order > before:
            raise InputError(f"order {order} must lie above {before}: above 1, and orders rising")
        if not bound >= last:
            rule = "below 0" if bound < 0 else f"below the {last} of a smaller order"
            raise InputError(f"the divergence {bound} of order {order} is {rule}; it must not be")
    return tuple(points)
