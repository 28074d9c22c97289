"""Proved bounds of |φ_t(y)| far out: what is left out, the atoms, and a bound of the rest.

With ends of a piece cut off, whose tilted mass is η, integration by parts over the middle gives
|φ_t(y)| ≤ η + atoms + V₁/y.  The middle is free of whatever the ends hold: infinite range, a
singular density, or a place where the loss turns.  As n copies need only |φ| ≤ level^{1/n}, η may
be large.  Where that does not serve, a path beside the real axis bounds the middle (see `lifted`).
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.certify.lifted import Lifted
from symdp.certify.moments import Cut, Stretch
from symdp.certify.work import OutOfWorkError, metered
from symdp.emit.arb import constant_ball
from symdp.emit.enclose import between
from symdp.errors import AccuracyError
from symdp.truth.variation import LossPart

if TYPE_CHECKING:
    from symdp.certify.nodes import Nodes
    from symdp.certify.step import Parts
    from symdp.derive.records import Piece

_BITS = 128
_GOAL = arb(2) ** -110
_LEAST = 2.0**-100  # a share of the mass below which the ends are not cut off
_LITTLE = 2.0**-5  # a path that starts close to a singular place is no worse for it
_CLOSE = 0.9  # to 1
_FLAT_SLOPE = arb(2) ** -40


def metered_part(piece: Piece, x: sp.Symbol, tilt: sp.Rational, log_moment: arb) -> LossPart:
    """Return the density of the loss on a piece, its values counted as work."""
    part = LossPart(piece, x, tilt, log_moment)
    for name in ("exponent", "steepness"):
        setattr(part, name, metered(getattr(part, name)))
    return part


class Decay:
    """Bounds of one step at one tilt, made as they are asked for and kept."""

    def __init__(self, parts: Parts, tilt: sp.Rational) -> None:
        log_moment = parts.cgf(tilt)
        self._pieces: list[LossPart] = []
        self._middles: dict[int, _Middle] = {}
        self._moving: list[tuple[Stretch, Cut, Nodes]] = []
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
                    self._moving.append((part, cut, found))
                    self._pieces.append(metered_part(part.piece, part.x, tilt, log_moment))

    def at(self, frequency: arb, each: float) -> arb:
        """Return a bound of |φ(y)| for all y ≥ frequency, best where it is about `each`.

        Raises
        ------
        AccuracyError
            If no such bound is proved.
        """
        flat = float(self._flat.upper())
        room = (each - flat) / 2 if each > flat else each
        with ctx.workprec(_BITS):
            best = self._middle(room).by_parts(frequency)
            # Of very many steps integration by parts serves, and costs less.
            if not best < each and not (each > _CLOSE and best.is_finite()):
                best = best.min(self._middle(room * _LITTLE).by_path(frequency))
            return arb(best.min(arb(1)).upper())

    def _middle(self, room: float) -> _Middle:
        """Return the bound that leaves out about so large a share of the mass."""
        key = math.floor(math.log2(max(room, _LEAST)))
        if key not in self._middles:
            self._middles[key] = self._cut_off(2.0**key)
        return self._middles[key]

    def _cut_off(self, room: float) -> _Middle:
        removed = self._flat
        inside: list[tuple[LossPart, Lifted, arb, arb]] = []
        share = room / (4 * max(len(self._moving), 1))
        for (part, cut, nodes), piece in zip(self._moving, self._pieces, strict=True):
            low, high = self._ends(part, cut, nodes, share)
            removed += cut.beyond * (-self._scale).exp() / self._total
            if not low < high:
                removed += nodes.total() / self._total
                continue
            removed += self._mass(part, cut.lower, low) + self._mass(part, high, cut.upper)
            inside.append((piece, Lifted(part, low, high, self._tilt, self._scale), low, high))
        return _Middle(arb(removed.upper()), inside, self._total)

    def _mass(self, part: Stretch, left: arb, right: arb) -> arb:
        """Bound the tilted mass between two places, which may be one and the same."""
        if left < right:
            cut = Cut(left, right, arb(0))
            mass = part.nodes(cut, self._tilt, self._scale, tolerance=_GOAL).total()
        else:
            gap = abs(right - left).upper()
            mass = gap * part.height(between(left, right), self._tilt, self._scale) if gap else gap
        return arb((mass / self._total).upper())

    def _ends(self, part: Stretch, cut: Cut, nodes: Nodes, share: float) -> tuple[arb, arb]:
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
            place, weight = ordered[index]
            if index == 0:  # the mass up to a place is about proportional to the distance
                end = (cut.lower, cut.upper)[side].mid()
                place = (end + (place - end) * min(0.5, share / float(weight.mid()))).mid()
            ends.append(place)
        return ends[0], ends[1]

    def _is_regular(self, part: Stretch, end: arb) -> bool:
        index = [own for own, _, _ in self._moving].index(part)
        piece = self._pieces[index]
        if not (part.base(end).is_finite() and part.loss(end).is_finite()):
            return False
        slope = piece.loss(end, 2)[1]
        return bool(slope.is_finite() and abs(slope) > _FLAT_SLOPE) and bool(
            piece.derivatives(end, 1)[0].is_finite()
        )


class _Middle:
    """|φ(y)| ≤ removed + the integral over what is left, bounded in two ways."""

    def __init__(
        self, removed: arb, inside: list[tuple[LossPart, Lifted, arb, arb]], total: arb
    ) -> None:
        self._removed, self._inside, self._total = removed, inside, total
        self._slope: arb | None = None

    def by_parts(self, frequency: arb) -> arb:
        """Return the removed share + V₁/y."""
        if self._slope is None:
            slope = sum((_variation(part, *ends) for part, _, *ends in self._inside), arb(0))
            self._slope = arb(slope.upper()) if slope.is_finite() else arb.pos_inf()
        return arb((self._removed + self._slope / frequency).upper())

    def by_path(self, frequency: arb) -> arb:
        """Return the removed share + what paths beside the axis show."""
        inner = sum((lifted.at(frequency) for _, lifted, *_ in self._inside), arb(0))
        return arb((self._removed + inner / self._total).upper())


def _variation(part: LossPart, low: arb, high: arb) -> arb:
    """Return the part of V₁ of one piece between two places, ∞ where none is proved."""
    try:
        ends = sum((abs(part.derivatives(end, 1)[0]).upper() for end in (low, high)), arb(0))
        return ends + part.variation(low, high, 1)
    except OutOfWorkError:
        raise
    except AccuracyError:
        return arb.pos_inf()
