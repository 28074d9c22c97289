"""One kind of step in balls: stretches on which densities are smooth, and atoms of the loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.density.pieces import log_exponential_mass, mass_of_integers, points
from symdp.density.turning import monotone_cuts
from symdp.emit.arb import compile_arb, compile_arb_together
from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError
from symdp.numeric.compile import compiled_pieces, pair_law
from symdp.numeric.outline import Outline
from symdp.numeric.total import SumLaw
from symdp.prove.work import spend
from symdp.tolerances import BITS

if TYPE_CHECKING:
    from symdp.density.records import Piece
    from symdp.model.pair import Pair
    from symdp.numeric.step import SmoothPiece

Kinds = tuple[tuple["Kind", int], ...]  # of all steps, with counts
_AROUND = 1 << 10  # parts of a panel, of which one around an end tells whether it is singular


class Stretch:
    """A part of the support on which log P and ℓ are holomorphic, in the numeric law's coordinate.

    Where an end is singular that coordinate puts it at infinity, with |dx/dv| in the density.
    """

    def __init__(self, piece: Piece, smooth: SmoothPiece | None, x: sp.Symbol) -> None:
        self.exact = piece
        self.variable = x
        self.piece = smooth
        self.lower = piece.lower  # exact ends, of x itself
        self.upper = piece.upper
        self.is_integer = bool(x.is_integer)
        self.is_infinite = piece.loss == sp.oo
        self.is_flat = self.is_infinite or piece.slope == "constant"
        self.is_moved = False
        if smooth is not None:
            self.is_moved = bool(smooth.lower != _end_in_doubles(piece.lower))

    @cached_property
    def _log_p_and_loss(self) -> Callable[..., tuple[Any, Any]]:
        if self.is_moved and self.piece is not None:
            return self.piece.ball
        exact = self.exact
        variables = [self.variable]
        if self.is_flat:
            value = compile_arb(exact.log_p, variables)
            return lambda x, analytic=False: (value(x, analytic=analytic), self.loss)
        if not sp.count_ops(exact.log_q) < sp.count_ops(exact.log_p):
            return compile_arb_together([exact.log_p, exact.loss], variables)
        joint = compile_arb_together([exact.log_q, exact.loss], variables)

        def function(x: Any, analytic: bool = False) -> tuple[Any, Any]:
            log_q, loss = joint(x, analytic=analytic)
            return log_q + loss, loss

        return function

    @property
    def has_density(self) -> bool:
        """Whether the loss has a density here, not atoms."""
        return not (self.is_flat or self.is_integer)

    @property
    def loss(self) -> Any:
        """The loss of a flat stretch."""
        if self.is_infinite:
            return arb.pos_inf()
        return real_ball(self.exact.loss)

    def values(self, x: Any, *, analytic: bool = False) -> tuple[Any, Any]:
        """Return balls around log P and ℓ over a real or complex ball, 0 for an infinite ℓ."""
        spend(1.0)
        log_p, loss = self._log_p_and_loss(x, analytic=analytic)
        if self.is_infinite:
            return log_p, arb(0)
        return log_p, loss

    def place(self, edge: float | arb) -> arb:
        """Return an edge of a panel, which is the exact end where it is the double next to it."""
        piece = self.piece
        if isinstance(edge, float) and not self.is_moved and piece is not None:
            if edge == piece.lower:
                return real_ball(self.exact.lower)
            if edge == piece.upper:
                return real_ball(self.exact.upper)
        return arb(edge)

    def ends(self) -> tuple[arb | None, arb | None]:
        """Return the exact ends in the coordinate of panels, None where one is infinite."""
        if self.is_moved and self.piece is not None:
            lower = self.piece.lower
            upper = self.piece.upper
        else:
            lower = _end_in_doubles(self.exact.lower)
            upper = _end_in_doubles(self.exact.upper)
        first = None if math.isinf(lower) else self.place(lower)
        last = None if math.isinf(upper) else self.place(upper)
        return first, last

    def is_regular(self, edge: float, room: float) -> bool:
        """Whether log P and ℓ are seen to be holomorphic around an end, so far at least."""
        with ctx.workprec(BITS):
            around = arb(0, room) / _AROUND
            values = self.values(self.place(edge) + acb(around, around), analytic=True)
            return all(value.is_finite() for value in values)

    @cached_property
    def outline(self) -> Outline | None:
        """Where the mass lies, in doubles."""
        return None if self.piece is None else Outline(self.piece)

    def largest_losses(self) -> list[sp.Expr]:
        """Return the limits at the ends where the loss is largest; NaN where it may turn."""
        exact = self.exact
        x = self.variable
        parts = [(exact.lower, exact.upper, exact.slope)]
        if exact.slope == "unknown":
            parts = monotone_cuts(exact.loss, x, exact.lower, exact.upper)
        limits = []
        for low, high, slope in parts:
            end = low if slope == "decreasing" else high
            if end.is_finite:
                at_end = exact.loss.subs(x, end)
            else:
                at_end = sp.limit(exact.loss, x, end)
            if slope == "unknown":
                at_end = sp.nan
            limits.append(at_end)
        return limits

    def whole_mass(self) -> arb | None:
        """Enclose P of a flat stretch that has a closed form, or is a sum; None elsewhere."""
        exact = self.exact
        if not self.is_flat:
            return None
        if self.is_integer:
            with suppress(AccuracyError):
                return mass_of_integers(exact, self.variable)
            return None
        log_mass = log_exponential_mass(exact, self.variable)
        if log_mass is None:
            return None
        return real_ball(log_mass).exp()


def _end_in_doubles(end: sp.Expr) -> float:
    if end.is_infinite:
        return float(end)
    return float(sp.N(end, 40))


class Kind:
    """One step in one direction.

    Its law in doubles finds; balls of its stretches and atoms prove.
    """

    stretch_type: type[Stretch] = Stretch

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.law = pair_law(pair)
        self.points = tuple(point for point in points(pair) if point.p != 0)
        stretches = []
        if pair.support.kind != "points":
            for piece, smooth in compiled_pieces(pair):
                if piece.log_p is not None:
                    stretches.append(self.stretch_type(piece, smooth, pair.variable))
        self.stretches = tuple(stretches)

    @cached_property
    def is_discrete(self) -> bool:
        """Whether the finite loss has atoms only."""
        return not any(stretch.has_density for stretch in self.stretches)

    def largest_losses(self) -> list[sp.Expr]:
        """Return losses of which one is the largest, exactly; NaN where one may turn."""
        tops = [point.loss for point in self.points if point.q != 0]
        for stretch in self.stretches:
            if not stretch.is_infinite:
                tops += stretch.largest_losses()
        return tops

    def atoms(self) -> list[tuple[arb, arb]]:
        """Return mass and finite loss of the points of a list at the working precision."""
        finite = [point for point in self.points if point.q != 0]
        return [(real_ball(point.p), real_ball(point.loss)) for point in finite]

    @property
    def may_be_infinite(self) -> bool:
        """Whether Q is 0 somewhere where P is not."""
        if any(stretch.is_infinite for stretch in self.stretches):
            return True
        return any(point.q == 0 for point in self.points)

    @property
    def is_infinite(self) -> bool:
        """Whether Q is 0 wherever P is not, so that every loss under P is infinite."""
        if not self.may_be_infinite:
            return False
        if not all(stretch.is_infinite for stretch in self.stretches):
            return False
        return all(point.q == 0 for point in self.points)

    def infinite_atoms(self) -> arb:
        """Return the mass of the points of a list that Q never gives."""
        masses = [real_ball(point.p) for point in self.points if point.q == 0]
        return sum(masses, arb(0))


@lru_cache(maxsize=512)
def kind_of(pair: Pair) -> Kind:
    """Return the kind of a pair, whose nodes are kept."""
    return Kind(pair)


def sum_law(kinds: Kinds) -> SumLaw:
    """Return the total loss in doubles."""
    return SumLaw([(kind.law, count) for kind, count in kinds])
