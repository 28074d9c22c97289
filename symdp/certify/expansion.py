"""One step's φ_t far out: what atoms, edges and turns of its loss add, and a bound of the rest.

Integration by parts on every monotone piece, J times, gives with u = 1/(iy)

    φ_t(y) = Σ_σ e^{iyσ} P_σ(u) + r,   |r| ≤ η + V_J/y^J.

An atom at σ is the constant of P_σ, an end at which the density of the loss is regular gives powers
of u, a place where the loss turns, or a value that it never reaches, whole and broken ones (see
`ends`).  Where a piece is infinite or singular and nothing else counts, a tilted mass η is cut off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.certify.changes import FAR, changes, vanishing_order
from symdp.certify.charts import Chart, PlaceChart, SubstitutedChart
from symdp.certify.decay import metered_part
from symdp.certify.ends import bound_between, expand_end
from symdp.certify.work import OutOfWorkError
from symdp.derive.signs import sign_of
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.certify.moments import Cut, Stretch
    from symdp.certify.step import TiltedStep
    from symdp.derive.records import Piece
    from symdp.truth.variation import LossPart

_STEEP = arb(2) ** -30
_BITS = 128
_ROOT_BITS = 100  # places that no formula gives are known better than that
_CUT_BITS = 64
_LITTLE = arb(2) ** 10  # times the mass that is cut off: what an end may add and not count

Row = dict[Fraction, acb]  # coefficients of powers of u


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

    def root(self) -> int:
        """Return the least whole number of which all powers are multiples of one part."""
        return math.lcm(*(power.denominator for _, row in self.terms for power in row))

    def row(self, number: int, root: int, length: int) -> list[acb]:
        """Return the coefficients of one value as those of a polynomial in the root of u."""
        found = [acb(0)] * length
        for power, size in self.terms[number][1].items():
            found[int(power * root)] = size
        return found

    def majorant(self, root: int, length: int) -> list[arb]:
        """Return a polynomial in the root of 1/y that bounds the sum of moduli, r left out."""
        total = [arb(0)] * length
        for number in range(len(self.terms)):
            row = self.row(number, root, length)
            total = [a + abs(b).upper() for a, b in zip(total, row, strict=True)]
        return total


def expand(step: TiltedStep, reach: Reach, *, bare: bool = False) -> Expansion | None:
    """Expand one step's φ_t; None where its loss has no atom, edge or turn, unless so is asked for.

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
    pieces = [part.piece for part in step.parts.stretches]
    beside = dict(zip(pieces[1:], pieces, strict=False)), dict(pairwise(pieces))
    for part in step.parts.stretches:
        if part.piece.slope == "constant":
            places.add(part.piece.loss, 0, step.flat(part))
        else:
            neighbours = beside[0].get(part.piece), beside[1].get(part.piece)
            own = metered_part(part.piece, part.x, step.tilt, step.scale)
            cut = part.cut(step.parts.reach(step.tilt), bits)
            found.append(_Piece(part, own, tilt, cut, reach, places, neighbours))
    if not (places.found or bare):
        return None
    with ctx.workprec(_BITS):
        remainder = sum((piece.remainder() for piece in found), arb(0))
        removed = sum((piece.removed for piece in found), arb(0))
    return Expansion(places.listed(), arb(remainder.upper()), arb(removed.upper()))


class _Places:
    """Coefficients of values of the loss; equal values share theirs."""

    def __init__(self) -> None:
        self.found: list[tuple[sp.Expr | arb, Row]] = []
        self._shared: dict[sp.Expr, arb] = {}

    def add(self, value: sp.Expr | arb, power: Fraction | int, size: Any) -> None:
        """Add to a coefficient of u^power."""
        row = self._row(value)
        row[Fraction(power)] = row.get(Fraction(power), acb(0)) + size

    def shared(self, at: sp.Expr, value: arb) -> arb:
        """Return the ball of the loss that was first given for a place."""
        return self._shared.setdefault(at, value)

    def listed(self) -> tuple[tuple[arb, Row], ...]:
        """Return the values as balls."""
        balls = [
            place if isinstance(place, arb) else constant_ball(place, ctx.prec).real
            for place, _ in self.found
        ]
        return tuple(zip(balls, (row for _, row in self.found), strict=True))

    def _row(self, value: sp.Expr | arb) -> Row:
        for place, row in self.found:
            if isinstance(place, arb) or isinstance(value, arb):
                if place is value:
                    return row
            elif place == value or sign_of(place - value) == 0:
                return row
        fresh: Row = {}
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
        neighbours: tuple[Piece | None, Piece | None],
    ) -> None:
        self._stretch, self._part, self._tilt, self._reach = stretch, part, tilt, reach
        self._neighbours = neighbours
        self._places = places
        self._sign = 1 if stretch.piece.slope == "increasing" else -1
        self._remainder = arb(0)
        self._cuts, self._spare = (cut.lower, cut.upper), stretch.spare(cut)
        self.removed = cut.beyond * (-part.log_moment).exp()
        self._ends = [self._expanded(side) for side in (0, 1)]

    def remainder(self) -> arb:
        """Bound V_J of the piece."""
        low, high = self._ends[0].lower(), self._ends[1].upper()
        if not low < high:
            raise AccuracyError("the loss turns twice, too close to certify")
        between = bound_between(self._around, low, high, self._reach.order, self._spare)
        return self._remainder + between

    def _around(self, place: arb) -> Chart:
        value = self._part.loss(place, 1)[0]
        return PlaceChart(self._stretch, self._part, self._tilt, place, 1, 1, value, arb(FAR))

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
            place = self._turned(side, end, abs(self._cuts[1 - side] - end) / 2)
            if place is not None:
                return place
        return self._cut(side)

    def _cut(self, side: int) -> arb:
        """Leave out what a cut leaves out, unless that counts."""
        place = self._cuts[side].mid()
        with ctx.workprec(ctx.prec + self._spare):
            values = self._part.derivatives(place, self._reach.order)
        first = self._reach.first
        little = sum((abs(value) * first ** (-j - 1) for j, value in enumerate(values)), arb(0))
        if not little < _LITTLE * self._reach.removed:
            return self._substituted(side)
        self.removed += little
        return place

    def _turned(self, side: int, end: arb, room: arb) -> arb | None:
        """Expand an end where the loss turns; None where it does not, or a density is singular."""
        turn = self._turning_place(side, end)
        if turn is None:
            return None
        value, place, power = turn
        chart = PlaceChart(
            self._stretch, self._part, self._tilt, place, 1 - 2 * side, power, value, room
        )
        return self._expand(side, chart)

    def _substituted(self, side: int) -> arb:
        """Expand an end in another variable."""
        for change in changes(self._stretch, side):
            chart = SubstitutedChart(change, self._stretch, self._part, self._tilt)
            place = self._expand(side, chart)
            if place is not None:
                return place
        raise AccuracyError("the density of the loss is not regular at its ends")

    def _edge(self, side: int, value: sp.Expr | arb, sizes: list[arb]) -> None:
        # The loss at the upper end of a falling piece is the lower value.
        sign = self._sign
        own = sign if side == 1 else -sign
        for j, size in enumerate(sizes):
            self._places.add(value, j + 1, own * (-sign) ** j * size)

    def _turning_place(self, side: int, end: arb) -> tuple[sp.Expr | arb, arb, int] | None:
        """Return the loss where it turns at an end, the place and κ; None where it does not."""
        piece, x = self._stretch.piece, self._stretch.x
        exact = (piece.lower, piece.upper)[side]
        power = vanishing_order(piece.loss, x, exact)
        if power is not None and power > 1:
            return sp.simplify(piece.loss.subs(x, exact)), end, power
        beside = self._neighbours[side]
        if beside is None or (beside.loss, beside.log_p) != (piece.loss, piece.log_p):
            return None
        # Both pieces end at the root of ℓ′ itself as well as at a rational close to it.
        root = _root(self._part, end)
        if root is None:
            return None
        return self._places.shared(exact, self._part.loss(root, 1)[0]), root, 2

    def _expand(self, side: int, chart: Chart) -> arb | None:
        """Expand an end around which all is holomorphic; return the place inside it, or None."""
        try:
            found = expand_end(chart, self._reach.order, self._sign == 1 - 2 * side)
        except OutOfWorkError:
            raise
        except AccuracyError:
            return None
        for power, size in found.coefficients.items():
            self._places.add(chart.value, power, size)
        self._remainder += found.remainder
        return found.inside


def _root(part: LossPart, about: arb) -> arb | None:
    """Return a ball that contains the one root of ℓ′ close to a place, None where none is shown."""
    middle = about.mid()
    near = middle + arb(0, 1) * arb(2) ** -_ROOT_BITS
    found = middle - part.loss(middle, 2)[1] / (2 * part.loss(near, 3)[2])
    return found if near.contains_interior(found) else None
