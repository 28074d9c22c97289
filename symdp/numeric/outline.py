"""Where a piece's mass lies under any tilt: modes of every term, and tilts that leave no gap.

A quadrature that looks only around one centre misses a far narrow peak, and one that looks only at
the ends of a window of tilts misses the mass that moves between them; an outline finds both. The
panels of a quadrature start as geometric shells around every mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from symdp.capacity import afford
from symdp.emit.exact import BITS
from symdp.errors import AccuracyError
from symdp.numeric.elementary import distinct
from symdp.numeric.step import Array, Index, SmoothPiece

LARGEST_EXPONENT = 500  # offsets up to 2^500: x² stays finite
CONVEXITY_GAP = 6.0  # e-folds by which log-masses of neighbouring tilts may bend
MAX_TILTS = 400  # looked at
_MOST_BENT = 24.0  # e-folds: what matters halfway to e^-52 then matters to e^-28 at neither end
_HARDLY_BENT = 1.0  # e-folds: far less than the gap, so that no tilt between is needed
# words of a refusal
_TOO_FAR = (
    "losses that count under one tilt and under another lie too far apart for all to be seen, as "
    "where noise is far smaller than the sensitivity; ask for less extreme values"
)
# distances from a place at which a density is looked at
_FAR_OFFSETS = np.exp2(np.append(np.arange(-60.0, 64.0), np.arange(64.0, LARGEST_EXPONENT, 4.0)))
_NEAR_OFFSETS = np.exp2(np.arange(-36.0, 6.0))  # distances from a peak, in octaves
_ZOOM, _ZOOMS = np.linspace(0.0, 1.0, 17), 10  # places of a zoom, and zooms: 8^10 into a peak
_FLAT = 1e-4  # of log densities: a mode is then found to a hundredth of its width
# e^-52 = 3e-23 of the mass under a tilt. Rare large losses may hold a millionth of it, and a
# million steps multiply what they lack.
NEGLIGIBLE = 52.0
_EVEN, _MOST_TURNS = 8192, 256  # places at which turns of the loss are looked for, and turns
_SHARP = 1e6  # times the loss, so that a turn serves tilts that large
SEEN_BEYOND = 1e-9  # relative: what lies so far beyond a bound is no rounding
_ROUNDED = 1e-13  # of the loss: what turns by less is rounding


def tilted_log_density(piece: SmoothPiece, x: Array, tilts: Sequence[float]) -> Array:
    """Return log P(x) + t·ℓ(x), one row for each tilt; −inf where the density vanishes."""
    with np.errstate(all="ignore"):
        return tilted(*piece.values(x), tilts)


def tilted(log_p: Array, log_q: Array, loss: Array, tilts: Sequence[float]) -> Array:
    """Return log P + t·ℓ as a sum of terms that do not cancel, however large each of them is.

    Between −1 and 0 that is (1 + t) log P − t log Q; further out ℓ is added to the nearer density.
    """
    what = "the privacy loss under very many tilts"
    afford(3.0 * len(tilts) * log_p.size, what, "ask for a less extreme epsilon, delta or noise")
    tried = np.asarray(tilts, dtype=np.float64)
    values = np.empty((tried.size, log_p.size))
    right, left = tried >= 0.0, tried <= -1.0
    between = ~(right | left)
    with np.errstate(all="ignore"):
        values[right] = log_p + tried[right, None] * loss
        values[left] = log_q + (1.0 + tried[left, None]) * loss
        values[between] = (1.0 + tried[between, None]) * log_p - tried[between, None] * log_q
    values[tried == 0.0], values[tried == -1.0] = (
        log_p,
        log_q,
    )  # an infinite loss counts for nothing
    values[~np.isfinite(values)] = -np.inf  # as where a density has underflowed
    return values


def tilted_each(log_p: Array, log_q: Array, loss: Array, tilts: Array) -> Array:
    """Return the same at tilts that are broadcast against places; −inf where P or Q vanishes."""
    right, outer = tilts >= 0.0, (tilts >= 0.0) | (tilts <= -1.0)
    weight = np.where(right, tilts, 1.0 + tilts)
    with np.errstate(all="ignore"):
        # At −1 and 0 an infinite loss counts for nothing.
        values = np.where(right, log_p, log_q) + np.where(weight == 0.0, 0.0, weight * loss)
        if not outer.all():
            values = np.where(outer, values, weight * log_p - tilts * log_q)
    # A density that has underflowed (−inf, or inf − inf on the way) carries no mass.
    return np.where(np.isfinite(values), values, -np.inf)


Rows = Callable[[Index, Array], Array]  # values of the functions of so many rows at as many places


def _peaks(functions: Rows, x: Array, values: Array, most: int) -> tuple[Index, Array]:
    """Return the highest local maxima of several functions, zoomed in upon, with their rows."""
    centre = values[:, 1:-1]
    inner = (centre >= values[:, :-2]) & (centre > values[:, 2:]) & np.isfinite(centre)
    row, column = np.nonzero(inner)
    column += 1
    if column.size > most:
        order = np.lexsort((-values[row, column], row))
        rank = np.arange(row.size) - np.searchsorted(row, row)
        order = order[rank < most]
        row, column = row[order], column[order]
    low, high = x[column - 1], x[column + 1]
    peaks = x[column]
    rows = np.flatnonzero(~_is_flat(values[row[:, None], column[:, None] + np.arange(-1, 2)]))
    for _ in range(_ZOOMS):
        if rows.size == 0:
            break
        trial = low[rows, None] + (high - low)[rows, None] * _ZOOM
        seen = functions(np.repeat(row[rows], _ZOOM.size), trial.ravel()).reshape(trial.shape)
        best, index = seen.argmax(axis=1), np.arange(rows.size)
        peaks[rows] = trial[index, best]
        low[rows] = trial[index, np.maximum(best - 1, 0)]
        high[rows] = trial[index, np.minimum(best + 1, _ZOOM.size - 1)]
        rows = rows[~_is_flat(seen)]
    return row, peaks


def _is_flat(values: Array) -> NDArray[np.bool_]:
    """Return whether the values of each row are those of one flat top."""
    with np.errstate(invalid="ignore"):
        return np.asarray(values.max(axis=1) - values.min(axis=1) < _FLAT)


class Outline:
    """A piece seen on geometric grids around its ends and modes, learned as tilts are asked.

    `anchors`: finite ends, zero or the middle, and every mode found so far; `roots` are those of
    them that are no modes, next to which a density may be singular. `spacing`: the log of the
    length that each place of the grid stands for.
    """

    def __init__(self, piece: SmoothPiece, tilts: Sequence[float] = (-1.0, 0.0)) -> None:
        self.piece = piece
        ends = [e for e in (piece.lower, piece.upper) if np.isfinite(e)]
        self.roots = list(ends)
        if piece.lower < 0 < piece.upper or not ends:
            self.roots.append(0.0)
        if len(ends) == 2:
            self.roots.append(0.5 * (ends[0] + ends[1]))
        self.anchors = sorted(self.roots)
        self.x = self.log_p = self.log_q = self.loss = np.empty(0)
        self._see(self.anchors, _FAR_OFFSETS)
        terms = _finite_rows(piece, self.x)
        if len(terms):
            self._look(lambda row, y: _finite_rows(piece, y)[row, np.arange(y.size)], terms, 4)
        if len(tilts) > 1 and not (piece.flat or piece.monotone or piece.integer):
            # Under far tilts the mass gathers where ℓ turns, which tells nothing at near ones.
            least, largest = turns(self)
            self._add_anchors(np.concatenate([least, largest]))
        self.kept: dict[str, Any] = {}  # what was computed from it, shared by its copies
        self._looked: set[tuple[float, int]] = set()
        for _ in range(2):  # the second pass looks around the first pass's modes
            self.look(tilts)

    def copy(self) -> Outline:
        """Return an outline that learns by itself."""
        other = copy(self)
        other._looked = set(self._looked)
        return other

    def _see(self, anchors: Sequence[float], offsets: Array) -> None:
        """Add places around anchors to the grid."""
        centres = np.asarray(anchors)[:, None]
        sizes = 1.0 if offsets is _FAR_OFFSETS else np.maximum(np.abs(centres), 1e-3)
        apart = offsets * sizes
        x = np.concatenate([centres, centres + apart, centres - apart], axis=1)
        x = distinct(x[(x > self.piece.lower) & (x < self.piece.upper)])
        if self.x.size:
            x = x[self.x[np.minimum(self.x.searchsorted(x), self.x.size - 1)] != x]
        with np.errstate(all="ignore"):
            fresh = x, *self.piece.values(x)
        columns = self.x, self.log_p, self.log_q, self.loss
        both = [np.concatenate(pair) for pair in zip(columns, fresh, strict=True)]
        order = both[0].argsort()
        self.x, self.log_p, self.log_q, self.loss = (values[order] for values in both)
        self.spacing = np.zeros(self.x.size)
        if self.x.size > 1:
            apart = np.diff(self.x)
            self.spacing[0], self.spacing[-1] = apart[0], apart[-1]
            self.spacing[1:-1] = 0.5 * (self.x[2:] - self.x[:-2])
            self.spacing = np.log(self.spacing)

    def _look(self, functions: Rows, seen: Array, most: int) -> None:
        """Add the modes of functions that are known on the grid to the anchors."""
        row, peaks = _peaks(functions, self.x, seen, most)
        if peaks.size == 0:
            return
        self._add_anchors(peaks[~self._are_known(functions, row, peaks)])

    def _add_anchors(self, places: Array) -> None:
        """Look around further places."""
        if places.size:
            self.anchors = sorted({*self.anchors, *places.tolist()})
            self._see(places.tolist(), _NEAR_OFFSETS)

    def _are_known(self, functions: Rows, row: Index, peaks: Array) -> NDArray[np.bool_]:
        """Return whether each peak is an anchor, or the same flat top as the nearest one."""
        anchors = np.asarray(self.anchors)
        nearest = anchors[np.abs(anchors - peaks[:, None]).argmin(axis=1)]
        is_known = np.asarray(nearest == peaks)
        other = np.flatnonzero(~is_known)
        if other.size:
            inward = np.minimum(np.maximum(nearest[other], self.x[0]), self.x[-1])
            places = np.stack([peaks[other], 0.5 * (peaks[other] + inward), inward], axis=1)
            values = functions(np.repeat(row[other], 3), places.ravel())
            is_known[other] = _is_flat(values.reshape(places.shape))
        return is_known

    def look(self, tilts: Sequence[float]) -> None:
        """Find the modes of P·e^{tℓ} under some tilts."""
        size = len(self.anchors)
        fresh = [tilt for tilt in tilts if (tilt, size) not in self._looked]
        if not fresh:
            return
        self._looked.update((tilt, size) for tilt in fresh)
        tried = np.asarray(fresh)

        def values(row: Index, x: Array) -> Array:
            with np.errstate(all="ignore"):
                return tilted_each(*self.piece.values(x), tried[row])

        self._look(values, tilted(self.log_p, self.log_q, self.loss, fresh), 6)

    def shells(self, tilts: Sequence[float]) -> Array:
        """Return the log of density times spacing on the grid: one row for each tilt."""
        return tilted(self.log_p, self.log_q, self.loss, tilts) + self.spacing

    def rough_moments(self) -> tuple[float, float, float]:
        """Return ∫ P, ∫ Pℓ and ∫ Pℓ² to within a factor of about two."""
        with np.errstate(all="ignore"):
            mass = np.exp(self.shells([0.0])[0])
            rows = [mass * np.where(mass > 0, self.loss, 0.0) ** k for k in range(3)]
            zeroth, first, second = (float(np.nansum(row)) for row in rows)
        return zeroth, first, second

    def rough_log_masses(self, tilts: Sequence[float]) -> Array:
        """Return log ∫ P e^{tℓ} for several tilts to within a few units, far peaks left out."""
        return log_row_sums(self.shells(tilts))

    def log_masses(self, tilts: Sequence[float]) -> Array:
        """Return log ∫ P e^{tℓ} for several tilts to within a few units."""
        self.look(tilts)
        return self.rough_log_masses(tilts)


def log_row_sums(rows: Array) -> Array:
    """Return log Σ e^v of every row."""
    top = rows.max(axis=1, initial=-np.inf)
    with np.errstate(all="ignore"):
        total = np.log(np.exp(rows - top[:, None]).sum(axis=1))
    return np.where(np.isfinite(top), top + total, -np.inf)


def loss_range(outlines: Sequence[Outline], atoms: Array) -> tuple[float, float]:
    """Return what encloses all finite losses, as doubles on the outer side.

    Between ends it is what outlines see, turns zoomed in upon. At an end it is read in balls, or at
    places that come near: differences that shrink as a power's do tell a limit within the last,
    others (a logarithm's, too) none. Unknown ends are infinite: that costs time, never accuracy.
    """
    atoms = atoms[np.isfinite(atoms)]
    low, high = float(atoms.min(initial=math.inf)), float(atoms.max(initial=-math.inf))
    for outline in outlines:
        piece = outline.piece
        if np.isposinf(outline.loss).all():
            continue
        if piece.flat:
            ends = [_loss(piece, float(outline.x[outline.x.size // 2]))]
        else:
            sides = np.flatnonzero(np.isfinite((piece.lower, piece.upper))).tolist()
            exact = dict(zip(sides, piece.ends, strict=False))
            ends = [_end_loss(outline, side, exact.get(side)) for side in (0, 1)]
        balls = [value for value in ends if value is not None]
        if len(balls) < len(ends):
            return -math.inf, math.inf
        low = min(low, *(_outward(value, -1) for value in balls))
        high = max(high, *(_outward(value, 1) for value in balls))
        if piece.flat or piece.monotone:
            continue
        seen = outline.loss[np.isfinite(outline.log_p) & np.isfinite(outline.loss)]
        if not piece.integer:
            seen = np.append(seen, extremes(outline))
        low, high = _reaching((low, high), seen, _ROUNDED)
    return (low, high) if low <= high else (0.0, 0.0)


def _loss(piece: SmoothPiece, x: float | arb) -> arb | None:
    """Enclose the loss at a place, None where no ball does, or hardly one."""
    with ctx.workprec(BITS):
        value = arb(piece.ball(arb(x))[1].real)
    return value if value.is_finite() and value.rad() < _ROUNDED * (1 + abs(value)) else None


def _end_loss(outline: Outline, side: int, exact: arb | None) -> arb | None:
    """Return the value or the limit of the loss at an end, ±∞ too, None where neither is seen."""
    piece, sign = outline.piece, 1 - 2 * side
    end = (piece.lower, piece.upper)[side]
    end_ball, unit = arb(0), arb(1)
    if math.isfinite(end):
        end_ball = arb(end) if exact is None else exact
        value = _loss(piece, end_ball)
        if value is not None:
            return value
        unit = arb(min(piece.upper - piece.lower, 1.0))
    else:
        typical = np.abs(outline.x[_is_held(outline)])
        unit = arb(2.0 ** math.ceil(math.log2(max(float(typical.max(initial=1.0)), 1.0))))
    for step in (60, 20, 4):  # powers of two between the places
        with ctx.workprec(BITS):
            places = [
                end_ball + sign * unit / arb(2) ** (step * k)
                if math.isfinite(end)
                else -sign * unit * arb(2) ** (step * k)
                for k in (1, 2, 3)
            ]
        first, second, third = (_loss(piece, at) for at in places)
        if first is None or second is None or third is None:
            continue
        with ctx.workprec(BITS):
            before, apart = abs(second - first), abs(third - second)
            # 1/log x falls slower than to an eighth at 16 times the place.
            if apart < before / 8 or apart < _ROUNDED * _ROUNDED:
                return third + 2 * arb(0, apart.upper())
        return arb.pos_inf() if third > second else arb.neg_inf()
    return None


def _is_held(outline: Outline) -> NDArray[np.bool_]:
    """Return on which places of the grid P has mass."""
    top = np.fmax.reduce(outline.log_p, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        return np.asarray(outline.log_p > top - 2.0 * NEGLIGIBLE)


def _outward(value: arb, sign: int) -> float:
    """Return a bound as the double on its outer side, or as it is where it is a double."""
    number = float(value.mid())
    with ctx.workprec(BITS):
        apart = abs(value - number)
        if not math.isfinite(number) or apart < _ROUNDED * _ROUNDED * (1 + abs(number)):
            return number
        return math.nextafter(float(apart.upper()) * sign + number, sign * math.inf)


def extremes(outline: Outline) -> tuple[float, float]:
    """Return the least and the largest loss seen where P has mass, turns zoomed in upon."""
    x = np.concatenate([outline.x, *turns(outline)])
    with np.errstate(all="ignore"):
        loss = np.asarray(outline.piece.loss(x))
    loss = loss[np.isfinite(loss)]
    return float(loss.min(initial=np.inf)), float(loss.max(initial=-np.inf))


def widened(bounds: tuple[float, float], outlines: Sequence[Outline]) -> tuple[float, float]:
    """Return bounds that hold every loss seen, whatever was derived of them."""
    for outline in outlines:
        seen = outline.loss[np.isfinite(outline.log_p) & np.isfinite(outline.loss)]
        bounds = _reaching(bounds, seen, SEEN_BEYOND)
    return bounds


def _reaching(bounds: tuple[float, float], seen: Array, room: float) -> tuple[float, float]:
    """Return bounds moved out to losses seen beyond them, which are not exact."""
    low, high = bounds
    least, most = float(seen.min(initial=low)), float(seen.max(initial=high))
    if least < low - room * (1.0 + abs(least)):  # also where both ends are at +∞
        low = least - SEEN_BEYOND * (1.0 + abs(least))
    if most > high + room * (1.0 + abs(most)):
        high = most + SEEN_BEYOND * (1.0 + abs(most))
    return low, high


def turns(outline: Outline) -> tuple[Array, Array]:
    """Return places of the least and the largest losses among their neighbours where P has mass."""
    piece, grid = outline.piece, outline.x
    has_mass = _is_held(outline)
    if not has_mass.any():
        return np.empty(0), np.empty(0)
    x = np.union1d(grid, np.linspace(grid[has_mass].min(), grid[has_mass].max(), _EVEN))

    def values(row: Index, places: Array) -> Array:
        with np.errstate(all="ignore"):
            loss = np.asarray(piece.loss(places)) * _SHARP
        return np.where(np.isfinite(loss), np.where(row == 0, -loss, loss), -np.inf)

    seen = values(np.ones(x.size, dtype=np.intp), x)
    with np.errstate(invalid="ignore"):
        size = np.fmax(np.abs(seen[1:]), np.abs(seen[:-1]))  # of losses there, not far out
        clear = np.abs(np.diff(seen)) > _ROUNDED * (size + _SHARP)
    x, seen = x[1:][clear], seen[1:][clear]  # on a flat stretch only rounding turns
    if x.size < 3:
        return np.empty(0), np.empty(0)
    seen = np.stack([np.where(np.isfinite(seen), -seen, seen), seen])
    row, peaks = _peaks(values, x, seen, _MOST_TURNS)
    return peaks[row == 0], peaks[row == 1]


def _finite_rows(piece: SmoothPiece, x: Array) -> Array:
    """Return the logs of the terms of P and Q, one row for each; −inf where they vanish."""
    with np.errstate(all="ignore"):
        values = np.asarray([np.empty(x.size), *piece.log_terms(x)])[1:]
    return np.where(np.isfinite(values), values, -np.inf)


def covering_tilts(outlines: Sequence[Outline], ends: Sequence[float]) -> dict[float, float]:
    """Return tilts between the ends, so close that their masses overlap, each with its log mass.

    log K is convex in t while log P + tℓ is linear: if K at two tilts exceeds twice K halfway by at
    most 2g, a place that matters halfway to e^{−c} matters at one of the two to e^{−(c+g)}.
    """

    def log_masses(tilts: Sequence[float]) -> dict[float, float]:
        values = np.logaddexp.reduce([o.log_masses(tilts) for o in outlines], axis=0)
        return dict(zip(tilts, values.tolist(), strict=True))

    masses = log_masses(sorted(set(ends)))
    waiting = []
    for left, right in pairwise(sorted(masses)):
        middles = [o.rough_log_masses([0.5 * (left + right)])[0] for o in outlines]
        middle = float(np.logaddexp.reduce(middles))  # as far as grids tell
        if not 0.5 * (masses[left] + masses[right]) - middle < _HARDLY_BENT:
            waiting.append((-math.inf, left, right))
    while waiting and len(masses) < MAX_TILTS:
        _, left, right = heappop(waiting)  # where K bends most
        middle = 0.5 * (left + right)
        masses |= log_masses([middle])
        bent = 0.5 * (masses[left] + masses[right]) - masses[middle]
        if bent > CONVEXITY_GAP:
            # A parabola's halves bend a quarter as much.
            for half in ((left, middle), (middle, right)):
                heappush(waiting, (-0.25 * bent, *half))
    if waiting:
        halfway = log_masses([0.5 * (left + right) for _, left, right in waiting])
        bends = zip(waiting, halfway.values(), strict=True)
        if (
            max(0.5 * (masses[l] + masses[r]) - half_mass for (_, l, r), half_mass in bends)
            > _MOST_BENT
        ):
            raise AccuracyError(_TOO_FAR)
        masses |= halfway
    return dict(sorted(masses.items()))
