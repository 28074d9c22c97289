"""The profile of one step, G(e) = ∫ (p − e^e q)⁺, and its Taylor series, from masses of cells.

Each piece of the support on which the loss is monotone is cut into cells on which P and Q are
Taylor polynomials, their remainders bounded by coefficients over the whole cell.  With M_P and M_Q
the masses between the largest loss and the root y of ℓ(y) = e, found by Newton's method and proved
by its interval form, G = M_P − e^e M_Q and G′ = −e^e M_Q.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, arb_poly, arb_series, ctx

from symdp.balls.jets import Jet
from symdp.certify.parts import parts_of
from symdp.certify.work import spend
from symdp.emit.arb import constant_ball
from symdp.emit.enclose import between
from symdp.errors import AccuracyError, InputError

if TYPE_CHECKING:
    from symdp.certify.moments import Stretch
    from symdp.model.pair import Pair

MOST_CELLS = 6000
CELL_COST = 20.0  # in values of a log-density
_ROOT_STEPS, _ROOT_TRIES = 80, 8


class Law:
    """Single losses with their masses, and pieces on which the loss moves."""

    def __init__(self, pair: Pair, bits: int, goal: arb, order: int) -> None:
        parts = parts_of(pair)
        self.atoms: list[tuple[arb, arb]] = [
            (constant_ball(point.p, ctx.prec).real, constant_ball(point.loss, ctx.prec).real)
            for point in parts.points
        ]
        self.pieces: list[Piece] = []
        self.missing = arb(0)
        for part in parts.stretches:
            if part.x.is_integer or part.piece.slope == "unknown":
                raise AccuracyError("the loss is not known to be monotone on a piece")
            piece = Piece(part, bits, goal, order)
            self.missing += piece.missing
            if part.is_flat:
                self.atoms.append((piece.whole[0], piece.top))
            else:
                self.pieces.append(piece)


@dataclass(frozen=True)
class _Cell:
    """A part of a piece: integrals of the Taylor polynomials of P and Q, and the masses before it.

    `near` is the end at which the loss is larger; without polynomials there is next to no mass.
    """

    near: arb
    far: arb
    centre: arb
    p: arb_poly | None
    q: arb_poly | None
    errors: tuple[arb, arb]
    before: tuple[arb, arb]

    def masses(self, place: arb) -> tuple[arb, arb]:
        """Return ∫ P and ∫ Q from the top of the piece to a place of the cell."""
        found = []
        for integral, error, before in zip((self.p, self.q), self.errors, self.before, strict=True):
            if integral is None:
                found.append(before + arb(0).union(error))
                continue
            change = integral(place - self.centre) - integral(self.near - self.centre)
            found.append(before + abs(change) + arb(0, error))
        return found[0], found[1]


class Piece:
    """A stretch between its cuts, and the masses of outcomes with losses above a value."""

    def __init__(self, part: Stretch, bits: int, goal: arb, order: int) -> None:
        self._part, self._order, self._goal = part, order, goal
        base = part.piece.log_p if part.shift == 0 else part.piece.log_q
        try:
            self._loss, self._base = Jet(part.piece.loss, part.x), Jet(base, part.x)
        except InputError as refusal:  # a function without a series
            raise AccuracyError(str(refusal)) from None
        cut = part.cut(sp.S.Zero, bits + 8)
        self.low, self.high = cut.lower.mid(), cut.upper.mid()
        self.missing = cut.beyond
        for end in (cut.lower, cut.upper):
            if end.rad() > 0:  # between the middle of the ball and the true end
                self.missing += 2 * end.rad() * self.densities(end, 1)[0][0].upper()
        self.rising = part.piece.slope != "decreasing"
        ends = (self.high, self.low) if self.rising else (self.low, self.high)
        self.top, self.bottom = (self.losses(end, 1)[0] for end in ends)
        if not (self.top.is_finite() and self.bottom.is_finite()):
            raise AccuracyError("the loss could not be enclosed at the end of a piece")
        self.cells = self._cut_up(*ends)
        self._levels = [self.losses(cell.far, 1)[0].mid() for cell in self.cells]
        self.whole = self.cells[-1].masses(self.cells[-1].far)

    def losses(self, place: arb, length: int) -> arb_series:
        """Return the Taylor series of the loss around all of a ball."""
        return arb_series(self._loss(place, length), length)

    def densities(self, place: arb, length: int) -> tuple[arb_series, arb_series, arb_series]:
        """Return the series of P, of Q and of the loss."""
        loss = self.losses(place, length)
        base = arb_series(self._base(place, length), length)
        if self._part.shift == 0:
            return base.exp(), (base - loss).exp(), loss
        return (base + loss).exp(), base.exp(), loss

    def _cut_up(self, start: arb, end: arb) -> list[_Cell]:
        """Return cells from the largest loss to the least."""
        cells: list[_Cell] = []
        before = (arb(0), arb(0))
        waiting = [(start, end)]
        while waiting:
            near, far = waiting.pop()
            cell = self._cell(near, far, before)
            if cell is None:
                middle = ((near + far) / 2).mid()
                waiting += [(middle, far), (near, middle)]
                if len(cells) + len(waiting) > MOST_CELLS or middle in (near, far):
                    raise AccuracyError("a density has too many cells to integrate")
                continue
            cells.append(cell)
            before = cell.masses(far)
        return cells

    def _cell(self, near: arb, far: arb, before: tuple[arb, arb]) -> _Cell | None:
        spend(CELL_COST)
        n = self._order
        centre = ((near + far) / 2).mid()
        half = farther(centre, near, far)
        ball = between(near, far)
        p, q, loss = self.densities(ball, n + 1)
        growth = abs(loss[0].exp()).upper()  # e^e q counts where e is less than the loss
        if not growth.is_finite():
            return None
        size = half ** (n + 1) * 2 / (n + 1)
        errors = [arb((abs(series[n]) * size).upper()) for series in (p, q)]
        if errors[0].is_finite() and errors[0] < self._goal and errors[1] * growth < self._goal:
            inner = self.densities(centre, n)
            rows = [arb_poly([s[k] for k in range(n)]).integral() for s in inner[:2]]
            return _Cell(near, far, centre, rows[0], rows[1], (errors[0], errors[1]), before)
        most = [arb((abs(series[0]) * half * 2).upper()) for series in (p, q)]
        if most[0] < self._goal and most[1] * growth < self._goal:
            return _Cell(near, far, centre, None, None, (most[0], most[1]), before)
        return None

    def masses(self, place: arb) -> tuple[arb, arb]:
        """Return ∫ P and ∫ Q over outcomes with losses above that at a place, or at all of a ball.

        The ends of a wide ball are taken, as masses grow from the top on.
        """
        ends = [place] if place.rad() == 0 else [place.lower(), place.upper()]
        found = [self._masses_at(end.min(self.high).max(self.low)) for end in ends]
        return reduce(between, (p for p, _ in found)), reduce(between, (q for _, q in found))

    def _masses_at(self, place: arb) -> tuple[arb, arb]:
        place = place.mid()
        first, last = 0, len(self.cells) - 1
        while first < last:
            middle = (first + last) // 2
            cell = self.cells[middle]
            passed = place < cell.far if self.rising else place > cell.far
            first, last = (middle + 1, last) if passed else (first, middle)
        return self.cells[first].masses(place)

    def root(self, loss: arb) -> arb | None:
        """Enclose the place with a loss between the ends, or all for a ball of losses, or None."""
        ends = [loss] if 2 * loss.rad() < self._goal else [loss.lower(), loss.upper()]
        found = [root for end in ends if (root := self._root(end)) is not None]
        return arb(reduce(between, found)) if len(found) == len(ends) else None

    def _root(self, loss: arb) -> arb | None:
        first, last = 0, len(self.cells) - 1
        while first < last:
            middle = (first + last) // 2
            passed = loss.mid() < self._levels[middle]
            first, last = (middle + 1, last) if passed else (first, middle)
        low, high = self.cells[first].far, self.cells[first].near
        if not self.rising:
            low, high = high, low
        place = ((low + high) / 2).mid()
        limit = arb(2) ** (8 - ctx.prec)
        close = arb(2) ** (-ctx.prec // 2 - 8)  # after one more step of Newton's all bits are right
        for _ in range(_ROOT_STEPS):
            value = self.losses(place, 2)
            above = (value[0] - loss).mid() > 0
            low, high = (low, place) if above == self.rising else (place, high)
            change = ((loss - value[0]) / value[1]).mid()
            fresh = (place + change).mid()
            if not (change.is_finite() and low < fresh < high):
                fresh = ((low + high) / 2).mid()
            moved = abs(fresh - place)
            place = fresh
            if moved <= close * abs(place):
                break
        radius = (abs(place) * limit * 4).upper().max(arb(2) ** (-2 * ctx.prec))
        for _ in range(_ROOT_TRIES):
            ball = arb(place, radius)
            slope = self.losses(ball, 2)[1]
            if not abs(slope) > 0:
                return None
            closer = place - (self.losses(place, 1)[0] - loss) / slope
            if ball.contains(closer):
                return closer
            radius = (radius * 256 + 2 * abs(closer - place).upper()).upper()
        return None

    def most(self, loss: arb) -> arb:
        """Bound the gain for all of a ball."""
        place = self._root(loss.lower()) if self.bottom < loss.lower() < self.top else None
        return self.whole[0] if place is None else self.masses(place)[0]

    def gain(self, loss: arb) -> arb:
        """Enclose ∫ (p − e^e q)⁺ for one e, known as well as rounding allows."""
        if loss >= self.top:
            return arb(0)
        if loss <= self.bottom:
            return self.whole[0] - loss.exp() * self.whole[1]
        place = self.root(loss)
        if place is not None:
            p, q = self.masses(place)
            return p - loss.exp() * q
        # Next to an end: e is off by no more than the distance from it.
        nearest = min((self.top, self.bottom), key=lambda end: float(abs(end - loss).upper()))
        error = abs(loss - nearest).upper().expm1() * self.whole[0]
        inner = arb(0) if nearest is self.top else self.whole[0] - nearest.exp() * self.whole[1]
        return inner + arb(0, error.upper())

    def gains(self, loss: arb, change: arb_series, length: int) -> arb_series | None:
        """Return the series of the gain as the loss changes from all of a ball, None for none.

        With e = loss + change, G(e) = G(loss) − ∫ e^e M_Q(e) de, and y(e) is a reverted series.
        """
        if loss <= self.bottom:
            part = (change + loss).exp()
            return self.whole[0] - part * self.whole[1]
        if not (self.bottom < loss < self.top):
            return None
        place = self.root(loss)
        if place is None:
            return None
        _, q, own = self.densities(place, length)
        moved = arb_series([0, *(own[k] for k in range(1, length))], length)
        if not abs(own[1]) > 0:
            return None
        inverse = moved.reversion()
        p_mass, q_mass = self.masses(place)
        beyond = (-q if self.rising else q).integral() + q_mass
        slope = (change + loss).exp() * beyond(inverse(change)) * change.derivative()
        return p_mass - loss.exp() * q_mass - slope.integral()


def farther(centre: arb, low: arb, high: arb) -> arb:
    """Bound the distances of two ends from about their middle, which may be rounded."""
    return arb(abs(low - centre).max(abs(high - centre)).upper())
