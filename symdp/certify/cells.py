"""One step's loss cut into cells of a mesh, with the proved masses of P and Q in each.

Ends of cells are roots of ℓ = g_k, each between two places at which the side is proved.  Cells are
halved where their tilted mass times the square of their width is largest, so that few of them serve
a range that is thousands of times as wide as the finest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import acb, arb

from symdp.certify.moments import Stretch
from symdp.emit.arb import constant_ball
from symdp.emit.enclose import between
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.certify.parts import Parts

_EVALUATIONS = 20_000
_ROUGH_BITS = 10
_FINE_BITS = 56
_ROOT_BITS = 50
_MOST_CELLS = 24_000
_FEWEST = 64  # cells that share out the error at first
_ROUNDS = 200
_SECANTS = 400


@dataclass(frozen=True)
class Mesh:
    """Losses g_k = offset + k·spacing, and atoms that lie on them by construction."""

    offset: arb
    spacing: arb
    atoms: dict[sp.Expr, int]

    def at(self, index: int) -> arb:
        """Enclose g_k."""
        return self.offset + index * self.spacing

    def around(self, low: arb, high: arb) -> tuple[int, int]:
        """Return i < j with g_i ≤ low and high ≤ g_j, proved."""
        first = ((low - self.offset) / self.spacing).lower().floor().unique_fmpz()
        last = ((high - self.offset) / self.spacing).upper().ceil().unique_fmpz()
        if first is None or last is None:
            raise AccuracyError("a loss at the end of a piece could not be enclosed")
        return int(first), max(int(last), int(first) + 1)


@dataclass(frozen=True)
class Cell:
    """Masses of P and Q whose losses lie between g_low and g_high; at g_low = g_high, an atom."""

    low: int
    high: int
    p: arb
    q: arb


@dataclass(frozen=True)
class Weighting:
    """What cells are made for: e^{t(ℓ − c)}P counts, and mass below 2^(−bits) does not."""

    tilt: float
    centre: float
    bits: int


@dataclass(frozen=True)
class _End:
    """A root between two exact places: the loss is at most g_k at one, at least g_k at the other.

    p and q bound the masses between the two.
    """

    below: arb
    above: arb
    p: arb
    q: arb


@dataclass
class _Span:
    """A cell of one piece: its two roots."""

    part: Stretch
    start: _End
    stop: _End

    def inner(self) -> tuple[arb, arb]:
        """Return the places between its roots from left to right, reversed if none are."""
        if self.part.piece.slope == "increasing":
            return self.start.above, self.stop.below
        return self.stop.below, self.start.above

    def is_empty(self) -> bool:
        """Whether no loss of the piece lies here."""
        low, high = self.inner()
        return not low < high and self.start.p.is_zero() and self.stop.p.is_zero()


class _Slot:
    """A cell of all pieces together."""

    def __init__(self, low: int, high: int, spans: list[_Span], bits: int) -> None:
        self.low, self.high, self.bits = low, high, bits
        self.spans = [span for span in spans if not span.is_empty()]
        rough = sum((_integral(s, bits, 0, _ROUGH_BITS) for s in self.spans), arb(0)).mid()
        self.log_mass = float(rough.log()) if rough > 0 else -math.inf
        self._cell: Cell | None = None

    def cell(self) -> Cell:
        """Return the masses, enclosed once."""
        if self._cell is None:
            masses = []
            for of_q in (0, 1):
                total = arb(0)
                for span in self.spans:
                    total += _integral(span, self.bits, of_q, _FINE_BITS)
                    for end in (span.start, span.stop):
                        total += arb(0).union(end.q if of_q else end.p)
                masses.append(total)
            self._cell = Cell(self.low, self.high, *masses)
        return self._cell


def atoms_of(parts: Parts, bits: int) -> tuple[list[tuple[sp.Expr, arb]], arb]:
    """Return (loss, mass of P) of every atom, and a bound of what was left out."""
    found: list[tuple[sp.Expr, arb]] = []
    beyond = arb(0)
    for point in parts.points:
        found.append((point.loss, constant_ball(point.p, 2 * bits).real))
    for part in parts.stretches:
        if part.x.is_integer:
            raise AccuracyError("a loss on infinitely many points cannot be put on a mesh")
        if part.piece.slope == "unknown":
            raise AccuracyError("the loss is not known to be monotone on a piece: no proved roots")
        if part.is_flat:
            low, high, missed = _ends(part, bits)
            beyond += missed
            found.append((part.piece.loss, _mass(part, low, high, bits, 0, _FINE_BITS)))
    return found, beyond


class Chain:
    """The pieces of one step on which the loss moves, cell by cell in the order of the losses.

    Parameters
    ----------
    allowed : float
        Cells are halved until Σ (tilted mass)(width)², relative to the tilted mass of all, is less.
    """

    def __init__(self, parts: Parts, mesh: Mesh, weighting: Weighting, allowed: float) -> None:
        self.mesh, self.weighting = mesh, weighting
        self.beyond = arb(0)  # bounds P outside of all cells
        self._slots: list[_Slot] = []
        spans: list[_Span] = []
        ranges: list[tuple[int, int]] = []
        for part in parts.stretches:
            if part.is_flat:
                continue
            low, high, missed = _ends(part, weighting.bits)
            self.beyond += missed
            if part.piece.slope == "decreasing":
                low, high = high, low
            start, stop = (_End(place, place, arb(0), arb(0)) for place in (low, high))
            spans.append(_Span(part, start, stop))
            ranges.append(mesh.around(part.loss(low), part.loss(high)))
        if spans:
            first, last = min(low for low, _ in ranges), max(high for _, high in ranges)
            self._slots = [_Slot(first, last, spans, weighting.bits)]
            self._refine_by_mass(allowed)

    def cells(self) -> list[Cell]:
        """Return the cells in the order of their losses."""
        return [slot.cell() for slot in self._slots]

    def log_height(self, index: int) -> float:
        """Return t(g_k − c)."""
        loss = float(self.mesh.offset) + index * float(self.mesh.spacing)
        return self.weighting.tilt * (loss - self.weighting.centre)

    def log_total(self) -> float:
        """Return about the logarithm of the tilted mass, never too large."""
        return log_sum(slot.log_mass + self.log_height(slot.low) for slot in self._slots)

    def halve(self, chosen: Sequence[bool]) -> bool:
        """Halve the chosen cells that are wider than the mesh; whether there were any."""
        if len(self._slots) > _MOST_CELLS:
            raise AccuracyError("the mesh needs too many cells")
        fresh: list[_Slot] = []
        for slot, is_chosen in zip(self._slots, chosen, strict=True):
            fresh += self._halves(slot) if is_chosen and slot.high - slot.low > 1 else [slot]
        halved = len(fresh) > len(self._slots)
        self._slots = fresh
        return halved

    def _halves(self, slot: _Slot) -> list[_Slot]:
        middle = (slot.low + slot.high) // 2
        level = self.mesh.at(middle)
        ends = [_root(span, level, slot.high - slot.low) for span in slot.spans]
        pairs = list(zip(slot.spans, ends, strict=True))
        left = [_Span(span.part, span.start, end) for span, end in pairs]
        right = [_Span(span.part, end, span.stop) for span, end in pairs]
        bits = self.weighting.bits
        return [_Slot(slot.low, middle, left, bits), _Slot(middle, slot.high, right, bits)]

    def _refine_by_mass(self, allowed: float) -> None:
        spacing = float(self.mesh.spacing)
        for _ in range(_ROUNDS):
            total = self.log_total()
            if total == -math.inf:
                return
            limit = total + math.log(allowed / max(len(self._slots), _FEWEST))
            chosen = [
                slot.log_mass
                + self.log_height(slot.high)
                + 2 * math.log((slot.high - slot.low) * spacing)
                > limit
                for slot in self._slots
            ]
            if not self.halve(chosen):
                return
        raise AccuracyError("the mesh needs too many cells")


def log_sum(logs: Iterable[float]) -> float:
    """Return log Σ e^x."""
    values = list(logs)
    peak = max(values, default=-math.inf)
    if peak == -math.inf:
        return peak
    return peak + math.log(math.fsum(math.exp(value - peak) for value in values))


def _ends(part: Stretch, bits: int) -> tuple[arb, arb, arb]:
    """Return exact places inside both cuts, and a bound of P outside of them."""
    cut = part.cut(sp.S.Zero, bits)
    low, high = cut.lower.upper(), cut.upper.lower()
    if not low < high:
        raise AccuracyError("the ends of a piece could not be told from each other")
    beyond = cut.beyond
    for place, end in ((low, cut.lower), (high, cut.upper)):
        gap = abs(place - end).upper()
        if gap > 0:
            beyond += gap * _height(part, place.union(end), 0)
    return low, high, arb(beyond.upper())


def _height(part: Stretch, place: arb, of_q: int) -> arb:
    """Bound P, or Q, over a ball."""
    base, loss = part.logarithms(place)
    return arb((base + (part.shift - of_q) * loss).exp().upper())


def _integral(span: _Span, bits: int, of_q: int, fine: int) -> arb:
    """Enclose the mass of P, or of Q, between two roots, to about 2^(−fine) of itself."""
    low, high = span.inner()
    return _mass(span.part, low, high, bits, of_q, fine)


def _mass(part: Stretch, low: arb, high: arb, bits: int, of_q: int, fine: int) -> arb:
    if not low < high:
        return arb(0)
    weight = part.shift - of_q

    def density(x: Any, analytic: bool = False) -> Any:
        value = part.base(x, analytic=analytic)
        if weight:
            value = value + weight * part.loss(x, analytic=analytic)
        return value.exp()

    found = acb.integral(
        density,
        acb(low),
        acb(high),
        rel_tol=arb(2) ** -fine,
        abs_tol=arb(2) ** -(bits + fine),
        eval_limit=_EVALUATIONS,
    )
    return found.real


def _root(span: _Span, level: arb, cells: int) -> _End:
    """Enclose where the loss passes a level; where it does not inside a piece, its end is."""
    part = span.part
    low, high = span.start.above, span.stop.below
    width = abs(high - low) / cells * arb(2) ** -_ROOT_BITS
    at_low, at_high = (part.loss(place) - level for place in (low, high))
    if at_low >= 0:
        low = span.start.below
        high = span.start.above
    elif at_high <= 0:
        low = span.stop.below
        high = span.stop.above
    else:
        if not at_low < 0:
            low = span.start.below
        if not at_high > 0:
            high = span.stop.above
        low, high = _narrowed(part, level, low, high, width.mid())
    ball, size = between(*_sorted(low, high)), abs(high - low)
    p, q = ((_height(part, ball, of_q) * size).upper() for of_q in (0, 1))
    return _End(low, high, p, q)


def _sorted(one: arb, other: arb) -> tuple[arb, arb]:
    return (one, other) if one < other else (other, one)


def _narrowed(part: Stretch, level: arb, low: arb, high: arb, width: arb) -> tuple[arb, arb]:
    """Return two places closer than a width, or as close as the balls of the loss allow.

    A place replaces an end only where its side is proved; secants and halves only propose.
    """
    values = [-abs(part.loss(low) - level).mid(), abs(part.loss(high) - level).mid()]
    ends = [low, high]
    last = 0

    def put(place: arb) -> bool:
        nonlocal last
        if not (min(ends) < place < max(ends)):
            return False
        value = part.loss(place) - level
        side = 0 if value < 0 else 1
        if not (value < 0 or value > 0):
            return False
        if last == side:
            values[1 - side] = values[1 - side] / 2
        ends[side], values[side], last = place, value.mid(), side
        return True

    for turn in range(_SECANTS):
        gap = ends[1] - ends[0]
        if abs(gap) <= width:
            break
        share = arb(1) / 2
        if turn % 4 != 3 and values[1] > values[0]:
            share = (values[0] / (values[0] - values[1])).mid()
            if turn % 4 == 2:  # just beyond where the root seems to be, to close the other side
                nearer = (width / abs(gap) / 3).mid()
                share = share + nearer if last == 0 else share - nearer
        place = (ends[0] + share.mid() * gap).mid()
        if put(place):
            continue
        if turn % 4 != 3 and not min(ends) < place < max(ends):
            continue
        for direction in (-1, 1):
            step = width
            while abs(step) < abs(gap) and not put((place + direction * step).mid()):
                step = 16 * step
        break
    return ends[0], ends[1]
