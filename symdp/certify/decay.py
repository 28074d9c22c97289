"""Proved bounds of |φ_t(y)| far out: what is left out, the atoms, and V_k/y^k of the rest.

With ends of a piece cut off, whose tilted mass is η, integration by parts over the middle gives
|φ_t(y)| ≤ η + atoms + V₁/y.  The middle is free of whatever the ends hold: infinite range, a
singular density, or a place where the loss turns.  As n copies need only |φ| ≤ level^{1/n}, η may
be large.  Where a far smaller modulus is wanted, and the loss is smooth throughout, higher orders
of integration by parts over the whole pieces serve.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.certify.moments import Cut, Stretch
from symdp.certify.work import OutOfWorkError, metered
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError
from symdp.truth.variation import Bound, LossDensity

if TYPE_CHECKING:
    from symdp.certify.nodes import Nodes
    from symdp.certify.step import Parts
    from symdp.pair import Pair

_BITS = 128
_GOAL = arb(2) ** -60
_LEAST = 2.0**-40  # a share of the mass below which the ends are not cut off
_SMALL = 2.0**-7  # a modulus for which higher orders are tried
_ORDERS = (2, 3, 4, 6, 8)
_FLAT_SLOPE = arb(2) ** -40
_HUGE = 2.0**60


@dataclass(frozen=True)
class _Middle:
    """|φ(y)| ≤ removed + slope/y."""

    removed: arb
    slope: arb

    def at(self, frequency: arb) -> arb:
        return (self.removed + self.slope / frequency).upper()


def loss_density(pair: Pair, tilt: sp.Rational, log_moment: arb) -> LossDensity:
    """Return the density of the loss, its values counted as work."""
    density = LossDensity(pair, tilt, log_moment)
    for part in density.parts:
        for name in ("exponent", "steepness"):
            setattr(part, name, metered(getattr(part, name)))
    return density


class Decay:
    """Bounds of one step at one tilt, made as they are asked for and kept."""

    def __init__(self, parts: Parts, tilt: sp.Rational) -> None:
        log_moment = parts.cgf(tilt)
        self._density = loss_density(parts.pair, tilt, log_moment)
        self._middles: dict[int, _Middle] = {}
        self._orders: dict[int, Bound | None] = {}
        self._moving: list[tuple[Stretch, Nodes]] = []
        with ctx.workprec(_BITS):
            self._tilt, self._scale = constant_ball(tilt, _BITS).real, log_moment.mid()
            self._total = (log_moment - self._scale).exp()
            self._flat = arb(0)
            for part in parts.stretches:
                cut = part.cut(parts.reach(tilt), _BITS)
                found = part.nodes(cut, self._tilt, self._scale, tolerance=_GOAL)
                if part.piece.slope == "constant":
                    beyond = cut.beyond * (-self._scale).exp()
                    self._flat += (found.total() + beyond) / self._total
                else:
                    self._moving.append((part, found))

    def at(self, frequency: arb, each: float) -> arb:
        """Return a bound of |φ(y)| for all y ≥ frequency, best where it is about `each`.

        Raises
        ------
        AccuracyError
            If no such bound is proved.
        """
        with ctx.workprec(_BITS):
            best = self._middle(each).at(frequency)
            if each < _SMALL and not best < each and not self._flat > 0:
                for order in _ORDERS:
                    bound = self._order(order)
                    if bound is None:
                        break
                    own = bound.at(frequency)
                    if own > best and order > _ORDERS[1]:
                        break
                    best = best.min(own)
            return arb(best.min(arb(1)).upper())

    def _order(self, order: int) -> Bound | None:
        if order not in self._orders:
            before = [self._orders.get(o) for o in _ORDERS if o < order]
            try:
                found = None if None in before else self._density.bound(order)
            except OutOfWorkError:
                raise
            except AccuracyError:
                found = None
            if found is not None and not float(found.variation) < _HUGE**order:
                found = None
            self._orders[order] = found
        return self._orders[order]

    def _middle(self, each: float) -> _Middle:
        """Return the bound that leaves out about half of the modulus that is wanted."""
        flat = float(self._flat.upper())
        room = max((each - flat) / 2 if each > flat else each, _LEAST)
        key = math.floor(math.log2(room))
        if key not in self._middles:
            self._middles[key] = self._cut_off(2.0**key)
        return self._middles[key]

    def _cut_off(self, room: float) -> _Middle:
        inner, slope = arb(0), arb(0)
        share = room / (4 * max(len(self._moving), 1))
        for (part, nodes), piece in zip(self._moving, self._density.parts, strict=True):
            low, high = self._ends(part, nodes, share)
            if not low < high:
                continue
            found = part.nodes(Cut(low, high, arb(0)), self._tilt, self._scale, tolerance=_GOAL)
            inner += found.total()
            for end in (low, high):
                slope += abs(piece.derivatives(end, 1)[0]).upper()
            slope += piece.variation(low, high, 1)
        removed = 1 - inner / self._total
        if not slope.is_finite():
            raise AccuracyError(
                "no bound of the characteristic function of the loss is proved far out"
            )
        return _Middle(arb(removed.upper()), arb(slope.upper()))

    def _ends(self, part: Stretch, nodes: Nodes, share: float) -> tuple[arb, arb]:
        """Return the ends of a piece, or places a little inside where it is not regular there."""
        pairs = sorted(
            zip(nodes.places, nodes.weights, strict=True), key=lambda pair: pair[0].fmpq()
        )
        ends: list[arb] = []
        for side, ordered in ((0, pairs), (1, pairs[::-1])):
            exact = (part.piece.lower, part.piece.upper)[side]
            if exact.is_finite:
                end = constant_ball(exact, ctx.prec).real
                if self._is_regular(part, end):
                    ends.append(end.mid())
                    continue
            passed = itertools.accumulate(float(weight.mid()) for _, weight in ordered)
            index = next((k for k, mass in enumerate(passed) if mass > share), len(ordered) - 1)
            if index < 0:  # no node counts: the whole piece is left out
                return arb(0), arb(0)
            ends.append(ordered[index][0])
        return ends[0], ends[1]

    def _is_regular(self, part: Stretch, end: arb) -> bool:
        index = [own for own, _ in self._moving].index(part)
        piece = self._density.parts[index]
        if not (part.base(end).is_finite() and part.loss(end).is_finite()):
            return False
        slope = piece.loss(end, 2)[1]
        return bool(slope.is_finite() and abs(slope) > _FLAT_SLOPE) and bool(
            piece.derivatives(end, 1)[0].is_finite()
        )
