"""One step's φ_t far out: what atoms and edges of its loss add, and a bound of the rest.

Integration by parts on every monotone piece, J times, gives with u = 1/(iy)

    φ_t(y) = Σ_σ e^{iyσ} P_σ(u) + r,   |r| ≤ η + V_J/y^J.

An atom at σ is the constant of P_σ, and an end at which the density of the loss is regular gives
powers of u.  Where a piece is infinite or singular and hardly counts, a tilted mass η is cut off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp
from flint import acb, arb, ctx

from symdp.certify.decay import metered_part
from symdp.certify.discs import Chart, bound_between
from symdp.derive.signs import sign_of
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.balls.variation import LossPart
    from symdp.certify.moments import Cut, Stretch
    from symdp.certify.step import TiltedStep

_STEEP = arb(2) ** -30
_BITS = 128
_CUT_BITS = 64
_LITTLE = arb(2) ** 10  # times the mass that is cut off: what an end may add and not count

Row = list[acb]  # coefficients of powers of u


@dataclass(frozen=True)
class Reach:
    """What the expansion is for: J, the least y, and how much mass each end may cut off."""

    order: int
    first: arb
    removed: arb


@dataclass(frozen=True)
class Expansion:
    """One step's φ_t, in units of e^{−scale}: values σ with P_σ, V_J and η."""

    terms: tuple[tuple[arb, Row], ...]
    remainder: arb
    removed: arb

    def majorant(self, length: int) -> list[arb]:
        """Return a polynomial in 1/y that bounds the sum of moduli, r left out."""
        total = [arb(0)] * length
        for _, row in self.terms:
            for power, size in enumerate(row):
                total[power] += abs(size).upper()
        return total


def expand(step: TiltedStep, reach: Reach) -> Expansion | None:
    """Expand one step's φ_t; None where its loss has no atom and no edge.

    Raises
    ------
    AccuracyError
        Where an end of a piece is singular, or no bound is proved.
    """
    tilt = constant_ball(step.tilt, ctx.prec).real
    places = _Places()
    for point in step.parts.points:
        mass, loss = (constant_ball(e, ctx.prec).real for e in (point.p, point.loss))
        places.add(point.loss, 0, (mass.log() + tilt * loss - step.scale).exp())
    found = []
    bits = -math.floor(float((reach.removed * step.scale.exp()).log().mid()) / math.log(2))
    bits = _CUT_BITS * math.ceil(max(bits, 1) / _CUT_BITS)  # few cuts serve all
    for part in step.parts.stretches:
        if part.is_flat:
            places.add(part.piece.loss, 0, step.flat(part))
        else:
            own = metered_part(part.piece, part.x, step.tilt, step.scale)
            cut = part.cut(step.parts.reach(step.tilt), bits)
            found.append(_Piece(part, own, tilt, cut, reach, places))
    if not places.found:
        return None
    with ctx.workprec(_BITS):
        remainder = sum((piece.remainder() for piece in found), arb(0))
        removed = sum((piece.removed for piece in found), arb(0))
    return Expansion(places.listed(), arb(remainder.upper()), arb(removed.upper()))


class _Places:
    """Coefficients of values of the loss; equal values share theirs."""

    def __init__(self) -> None:
        self.found: list[tuple[sp.Expr, Row]] = []

    def add(self, value: sp.Expr, power: int, size: arb) -> None:
        """Add to a coefficient of u^power."""
        row = self._row(value)
        row += [acb(0)] * (power + 1 - len(row))
        row[power] += size

    def listed(self) -> tuple[tuple[arb, Row], ...]:
        """Return the values as balls."""
        return tuple((constant_ball(place, ctx.prec).real, row) for place, row in self.found)

    def _row(self, value: sp.Expr) -> Row:
        for place, row in self.found:
            if place == value or sign_of(place - value) == 0:
                return row
        fresh: Row = []
        self.found.append((value, fresh))
        return fresh


class _Piece:
    """One monotone piece: its ends are expanded at once, what lies between them when asked."""

    def __init__(
        self,
        stretch: Stretch,
        part: LossPart,
        tilt: arb,
        cut: Cut,
        reach: Reach,
        places: _Places,
    ) -> None:
        self._stretch, self._part, self._tilt, self._reach = stretch, part, tilt, reach
        self._places = places
        self._sign = 1 if stretch.piece.slope == "increasing" else -1
        self._cuts, self._spare = (cut.lower, cut.upper), stretch.spare(cut.lower, cut.upper)
        self.removed = cut.beyond * (-part.log_moment).exp()
        self._ends = [self._expanded(side) for side in (0, 1)]

    def remainder(self) -> arb:
        """Bound V_J of the piece."""
        low, high = self._ends[0].lower(), self._ends[1].upper()
        if not low < high:
            raise AccuracyError("the loss seems to turn twice, too close to certify")
        return bound_between(self._around, low, high, self._reach.order, self._spare)

    def _around(self, place: arb) -> Chart:
        return Chart(self._stretch, self._part, self._tilt, place)

    def _expanded(self, side: int) -> arb:
        """Expand one end; return the place from where on integration by parts takes over."""
        piece, part = self._stretch.piece, self._part
        exact = (piece.lower, piece.upper)[side]
        if exact.is_finite:
            end = constant_ball(exact, 2 * ctx.prec).real
            values = part.derivatives(end, self._reach.order)
            if abs(part.loss(end, 2)[1]) > _STEEP and all(value.is_finite() for value in values):
                value = sp.simplify(piece.loss.subs(self._stretch.x, exact))
                self._edge(side, value, values)
                return end
        return self._cut(side)

    def _cut(self, side: int) -> arb:
        """Leave out what a cut leaves out, unless that counts."""
        place = self._cuts[side].mid()
        with ctx.workprec(ctx.prec + self._spare):
            values = self._part.derivatives(place, self._reach.order)
        first = self._reach.first
        little = sum((abs(value) * first ** (-j - 1) for j, value in enumerate(values)), arb(0))
        if not little < _LITTLE * self._reach.removed:
            raise AccuracyError("the density of the loss was not shown to be regular at its ends")
        self.removed += little
        return place

    def _edge(self, side: int, value: sp.Expr, sizes: list[arb]) -> None:
        # The loss at the upper end of a falling piece is the lower value.
        sign = self._sign
        own = sign if side == 1 else -sign
        for j, size in enumerate(sizes):
            self._places.add(value, j + 1, own * (-sign) ** j * size)
