"""Where a piece's mass lies under any tilt: modes of every term, and tilts that leave no gap.

A quadrature that looks only around one centre misses a far narrow peak, and one that looks only at
the ends of a window of tilts misses the mass that moves between them; an outline finds both. The
panels of a quadrature start as geometric shells around every mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial, reduce
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from symdp.capacity import afford
from symdp.errors import AccuracyError
from symdp.numeric.elementary import distinct
from symdp.numeric.step import Array, Balls, Index, SmoothPiece
from symdp.tolerances import ABOVE_ROUNDING, BITS, MANY_BITS, MASS_ROUNDED

LARGEST_EXPONENT = 500  # offsets up to 2^500: x² stays finite
CONVEXITY_GAP = 6.0  # e-folds by which log-masses of neighbouring tilts may bend
MAX_TILTS = 400  # looked at
_MOST_BENT = 24.0  # e-folds: what matters halfway to e^-52 then matters to e^-28 at neither end
_BLURRED = -1e20  # a logarithm that is rounded by thousands: far tilts reach 1e17
_MUCH = -3.0  # log of the share of all mass that ends there, or more
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
    tilt = np.asarray(tilts, dtype=np.float64)
    values = np.empty((tilt.size, log_p.size))
    is_right = tilt >= 0.0
    is_left = tilt <= -1.0
    is_between = ~(is_right | is_left)
    left_weight = 1.0 + tilt[is_left, None]
    middle_tilt = tilt[is_between, None]
    with np.errstate(all="ignore"):
        values[is_right] = log_p + tilt[is_right, None] * loss
        values[is_left] = log_q + left_weight * loss
        values[is_between] = (1.0 + middle_tilt) * log_p - middle_tilt * log_q
    # At −1 and 0 an infinite loss counts for nothing.
    values[tilt == 0.0] = log_p
    values[tilt == -1.0] = log_q
    values[~np.isfinite(values)] = -np.inf  # as where a density has underflowed
    return values


def tilted_each(log_p: Array, log_q: Array, loss: Array, tilts: Array) -> Array:
    """Return log P + t·ℓ at tilts that are broadcast against places; −inf where P or Q vanishes."""
    is_right = tilts >= 0.0
    is_outer = is_right | (tilts <= -1.0)
    weight = np.where(is_right, tilts, 1.0 + tilts)
    with np.errstate(all="ignore"):
        nearer_density = np.where(is_right, log_p, log_q)
        # At −1 and 0 an infinite loss counts for nothing.
        weighted_loss = np.where(weight == 0.0, 0.0, weight * loss)
        values = nearer_density + weighted_loss
        if not is_outer.all():
            between = weight * log_p - tilts * log_q
            values = np.where(is_outer, values, between)
    # A density that has underflowed (−inf, or inf − inf on the way) carries no mass.
    return np.where(np.isfinite(values), values, -np.inf)


Rows = Callable[[Index, Array], Array]  # values of the functions of so many rows at as many places


def _peaks(functions: Rows, x: Array, values: Array, most: int) -> tuple[Index, Array]:
    """Return the highest local maxima of several functions, zoomed in upon, with their rows."""
    centre = values[:, 1:-1]
    is_above_left = centre >= values[:, :-2]
    is_above_right = centre > values[:, 2:]
    is_maximum = is_above_left & is_above_right & np.isfinite(centre)
    row, column = np.nonzero(is_maximum)
    column += 1
    if column.size > most:
        heights = values[row, column]
        order = np.lexsort((-heights, row))
        first_of_row = np.searchsorted(row, row)
        rank = np.arange(row.size) - first_of_row
        order = order[rank < most]
        row = row[order]
        column = column[order]
    low = x[column - 1]
    high = x[column + 1]
    peaks = x[column]
    neighbours = column[:, None] + np.arange(-1, 2)
    around = values[row[:, None], neighbours]
    unsettled = np.flatnonzero(~_is_flat(around))
    for _ in range(_ZOOMS):
        if unsettled.size == 0:
            break
        width = (high - low)[unsettled, None]
        trial = low[unsettled, None] + width * _ZOOM
        trial_rows = np.repeat(row[unsettled], _ZOOM.size)
        heights = functions(trial_rows, trial.ravel()).reshape(trial.shape)
        best = heights.argmax(axis=1)
        index = np.arange(unsettled.size)
        peaks[unsettled] = trial[index, best]
        place_before = np.maximum(best - 1, 0)
        place_after = np.minimum(best + 1, _ZOOM.size - 1)
        low[unsettled] = trial[index, place_before]
        high[unsettled] = trial[index, place_after]
        unsettled = unsettled[~_is_flat(heights)]
    return row, peaks


def _is_flat(values: Array) -> NDArray[np.bool_]:
    """Return whether the values of each row are those of one flat top."""
    with np.errstate(invalid="ignore"):
        spread = values.max(axis=1) - values.min(axis=1)
        return np.asarray(spread < _FLAT)


class Outline:
    """A piece seen on geometric grids around its ends and modes, learned as tilts are asked.

    `anchors`: finite ends, zero or the middle, and every mode found so far; `roots` are those of
    them that are no modes, next to which a density may be singular. `spacing`: the log of the
    length that each place of the grid stands for.
    """

    def __init__(self, piece: SmoothPiece, tilts: Sequence[float] = (-1.0, 0.0)) -> None:
        self.piece = piece
        ends = [end for end in (piece.lower, piece.upper) if np.isfinite(end)]
        self.roots = list(ends)
        if piece.lower < 0 < piece.upper or not ends:
            self.roots.append(0.0)
        if len(ends) == 2:
            middle = 0.5 * (ends[0] + ends[1])
            self.roots.append(middle)
        self.anchors = sorted(self.roots)
        self.covered: dict[float, float] = {}  # log masses of tilts that cover those asked for
        self.edges: dict[tuple[tuple[float, float], ...], Array] = {}  # first ones, by log masses
        self.x = np.empty(0)
        self.log_p = np.empty(0)
        self.log_q = np.empty(0)
        self.loss = np.empty(0)
        self._see(np.asarray(self.roots), _FAR_OFFSETS)
        terms = _finite_rows(piece, self.x)
        if len(terms):

            def log_term(row: Index, x: Array) -> Array:
                return _finite_rows(piece, x)[row, np.arange(x.size)]

            self._look(log_term, terms, 4)
        is_regular = piece.flat or piece.monotone or piece.integer
        if len(tilts) > 1 and not is_regular:
            # Under far tilts the mass gathers where ℓ turns, which tells nothing at near ones.
            least, largest = turns(self)
            self._see(np.concatenate([least, largest]), _NEAR_OFFSETS)
        self.kept: dict[str, Any] = {}  # what was computed from it, shared by its copies
        self._looked: set[tuple[float, int]] = set()
        for _ in range(2):  # the second pass looks around the first pass's modes
            self.look(tilts)
        self._settle(tilts)

    def copy(self) -> Outline:
        """Return an outline that learns by itself."""
        other = copy(self)
        other._looked = set(self._looked)
        other.covered = {}
        other.edges = {}
        return other

    def _see(self, anchors: Array, offsets: Array) -> None:
        """Add anchors, and places around them to the grid."""
        if anchors.size == 0:
            return
        self.anchors = sorted({*self.anchors, *anchors.tolist()})
        centres = anchors[:, None]
        if offsets is _FAR_OFFSETS:
            distances = offsets * 1.0
        else:
            distances = offsets * np.maximum(np.abs(centres), 1e-3)
        x = np.concatenate([centres, centres + distances, centres - distances], axis=1)
        is_inside = (x > self.piece.lower) & (x < self.piece.upper)
        self._add_places(distinct(x[is_inside]))

    def _add_places(self, x: Array) -> None:
        self.edges.clear()
        if self.x.size:
            index = np.minimum(self.x.searchsorted(x), self.x.size - 1)
            x = x[self.x[index] != x]
        with np.errstate(all="ignore"):
            log_p, log_q, loss = self.piece.values(x)
        joined = np.concatenate([self.x, x])
        order = joined.argsort()
        self.x = joined[order]
        self.log_p = np.concatenate([self.log_p, log_p])[order]
        self.log_q = np.concatenate([self.log_q, log_q])[order]
        self.loss = np.concatenate([self.loss, loss])[order]
        self.spacing = np.zeros(self.x.size)
        if self.x.size > 1:
            gaps = np.diff(self.x)
            self.spacing[0] = gaps[0]
            self.spacing[-1] = gaps[-1]
            between = self.x[2:] - self.x[:-2]
            self.spacing[1:-1] = 0.5 * between
            self.spacing = np.log(self.spacing)

    def _look(self, functions: Rows, seen: Array, most: int) -> None:
        """Add the modes of functions that are known on the grid to the anchors."""
        row, peaks = _peaks(functions, self.x, seen, most)
        if peaks.size == 0:
            return
        is_known = self._are_known(functions, row, peaks)
        self._see(peaks[~is_known], _NEAR_OFFSETS)

    def _are_known(self, functions: Rows, row: Index, peaks: Array) -> NDArray[np.bool_]:
        """Return whether each peak is an anchor, or the same flat top as the nearest one."""
        anchors = np.asarray(self.anchors)
        distances = np.abs(anchors - peaks[:, None])
        nearest = anchors[distances.argmin(axis=1)]
        is_known = np.asarray(nearest == peaks)
        other = np.flatnonzero(~is_known)
        if other.size:
            peak = peaks[other]
            inner = np.maximum(nearest[other], self.x[0])
            inward = np.minimum(inner, self.x[-1])
            halfway = 0.5 * (peak + inward)
            places = np.stack([peak, halfway, inward], axis=1)
            three_rows = np.repeat(row[other], 3)
            values = functions(three_rows, places.ravel())
            is_known[other] = _is_flat(values.reshape(places.shape))
        return is_known

    def look(self, tilts: Sequence[float]) -> None:
        """Find the modes of P·e^{tℓ} under some tilts."""
        anchor_count = len(self.anchors)
        fresh = [tilt for tilt in tilts if (tilt, anchor_count) not in self._looked]
        if not fresh:
            return
        self._looked.update((tilt, anchor_count) for tilt in fresh)
        tilt_of_row = np.asarray(fresh)

        def values(row: Index, x: Array) -> Array:
            with np.errstate(all="ignore"):
                return tilted_each(*self.piece.values(x), tilt_of_row[row])

        on_grid = tilted(self.log_p, self.log_q, self.loss, fresh)
        self._look(values, on_grid, 6)

    def _settle(self, tilts: Sequence[float]) -> None:
        """Forget places that doubles blur, and look where much mass ends, as beside a plateau."""
        larger = np.fmax(self.log_p, self.log_q)
        is_told = (larger > _BLURRED) | (larger == -np.inf)
        if is_told.any():
            self.x = self.x[is_told]
            self.log_p = self.log_p[is_told]
            self.log_q = self.log_q[is_told]
            self.loss = self.loss[is_told]
            self.spacing = self.spacing[is_told]
            first = self.x[0]
            last = self.x[-1]
            self.anchors = [a for a in self.anchors if a in self.roots or first <= a <= last]
        if self.piece.integer or self.piece.flat:
            return
        for _ in range(_ZOOMS):
            logs = tilted(self.log_p, self.log_q, self.loss, tilts)
            masses = logs + self.spacing
            total = log_row_sums(masses)[:, None]
            with np.errstate(invalid="ignore"):  # where there is no mass
                is_cliff = np.abs(np.diff(logs)) > 2.0 * CONVEXITY_GAP
                has_mass = masses - total > _MUCH
            is_cliff &= has_mass[:, 1:] | has_mass[:, :-1]
            before = np.flatnonzero(is_cliff.any(axis=0))
            if before.size == 0:
                return
            left = self.x[before, None]
            right = self.x[before + 1, None]
            self._add_places((left + (right - left) * _ZOOM[1:-1]).ravel())

    def shells(self, tilts: Sequence[float]) -> Array:
        """Return the log of density times spacing on the grid: one row for each tilt."""
        return tilted(self.log_p, self.log_q, self.loss, tilts) + self.spacing

    def rough_moments(self) -> tuple[float, float, float]:
        """Return ∫ P, ∫ Pℓ and ∫ Pℓ² to within a factor of about two."""
        with np.errstate(all="ignore"):
            mass = np.exp(self.shells([0.0])[0])
            loss = np.where(mass > 0, self.loss, 0.0)
            zeroth = float(np.nansum(mass * loss**0))
            first = float(np.nansum(mass * loss**1))
            second = float(np.nansum(mass * loss**2))
        return zeroth, first, second

    def log_masses(self, tilts: Sequence[float]) -> Array:
        """Return log ∫ P e^{tℓ} for several tilts to within a few units."""
        self.look(tilts)
        return log_row_sums(self.shells(tilts))


def log_row_sums(rows: Array) -> Array:
    """Return log Σ e^v of every row."""
    top = rows.max(axis=1, initial=-np.inf)
    with np.errstate(all="ignore"):
        shares = np.exp(rows - top[:, None])
        total = np.log(shares.sum(axis=1))
    return np.where(np.isfinite(top), top + total, -np.inf)


def loss_range(outlines: Sequence[Outline], atoms: Array) -> tuple[float, float]:
    """Return what encloses all finite losses, as doubles on the outer side.

    Between ends it is what outlines see, turns zoomed in upon. At an end it is read in balls, or at
    places that come near: differences that shrink as a power's do tell a limit within the last,
    others (a logarithm's, too) none. Unknown ends are infinite: that costs time, never accuracy.
    """
    atoms = atoms[np.isfinite(atoms)]
    low = float(atoms.min(initial=math.inf))
    high = float(atoms.max(initial=-math.inf))
    for outline in outlines:
        piece = outline.piece
        if np.isposinf(outline.loss).all():
            continue
        if piece.flat:
            middle = float(outline.x[outline.x.size // 2])
            ends = [_loss_ball(piece, middle)]
        else:
            has_end = np.isfinite((piece.lower, piece.upper))
            sides = np.flatnonzero(has_end).tolist()
            exact = dict(zip(sides, piece.ends, strict=False))
            ends = [_end_loss(outline, side, exact.get(side)) for side in (0, 1)]
        balls = [ball for ball in ends if ball is not None]
        if len(balls) < len(ends):
            return -math.inf, math.inf
        lower_bounds = [_outward_double(ball, -1) for ball in balls]
        upper_bounds = [_outward_double(ball, 1) for ball in balls]
        low = min(low, *lower_bounds)
        high = max(high, *upper_bounds)
        if piece.flat or piece.monotone:
            continue
        further = () if piece.integer else turns(outline)
        losses = _losses_beyond(outline, (low, high), MASS_ROUNDED, further)
        low, high = _extended_bounds((low, high), losses, MASS_ROUNDED)
    if low <= high:
        return low, high
    return 0.0, 0.0


def _loss_ball(piece: SmoothPiece, x: float | arb, bits: int = BITS) -> arb | None:
    """Enclose the loss at a place, None where no ball does, or hardly one."""
    with ctx.workprec(bits):
        balls = piece.ball
        if isinstance(balls, Balls) and balls.loss is not None:
            loss = balls.loss(arb(x))  # without a normalizing sum that only the density needs
        else:
            _, loss = balls(arb(x))
        value = arb(loss.real)
    allowed = MASS_ROUNDED * (1 + abs(value))
    if value.is_finite() and value.rad() < allowed:
        return value
    return None


def _end_loss(outline: Outline, side: int, exact: arb | None) -> arb | None:
    """Return the value or the limit of the loss at an end, ±∞ too, None where neither is seen."""
    piece = outline.piece
    inward = 1 - 2 * side
    end = (piece.lower, piece.upper)[side]
    end_ball = arb(0)
    if math.isfinite(end):
        end_ball = arb(end) if exact is None else exact
        value = _loss_ball(piece, end_ball)
        if value is not None:
            return value
        unit = arb(min(piece.upper - piece.lower, 1.0))
    else:
        typical = np.abs(outline.x[_has_mass(outline)])
        largest = max(float(typical.max(initial=1.0)), 1.0)
        unit = arb(2.0 ** math.ceil(math.log2(largest)))

    def loss_with(cancelled: int, octaves: int, share: float | arb = 0.0) -> arb | None:
        """Return the loss so many octaves towards the end, and a share more."""
        with ctx.workprec(BITS):
            distance = unit * arb(2) ** octaves * (1 + arb(share))
            x = -inward * distance
            if math.isfinite(end):
                x = end_ball + inward * unit * unit / distance
        return _loss_ball(piece, x, BITS + cancelled)

    for step in (60, 20, 4):  # powers of two between the places
        loss_at = partial(loss_with, 6 * step)  # bits of x² at the last place, that ℓ may lose
        first, second, third = (loss_at(step * k) for k in (1, 2, 3))
        if first is None or second is None or third is None:
            continue
        with ctx.workprec(BITS):
            first_change = abs(second - first)
            last_change = abs(third - second)
            # 1/log x falls slower than to an eighth at 16 times the place.
            if last_change < first_change / 8 or last_change < MASS_ROUNDED * MASS_ROUNDED:
                return third + 2 * arb(0, last_change.upper())
            if piece.monotone:
                return arb.pos_inf() if third > second else arb.neg_inf()
            shares = _ZOOM.tolist()
            before = [loss_at(step, share) for share in shares]
            after = [loss_at(3 * step, share) for share in shares]
            waves = _waves(before, after, abs(third - first))
        if waves is not None:
            crests = _crests(partial(loss_at, step), waves)
            return waves if crests is None else crests
        return arb.pos_inf() if third > second else arb.neg_inf()
    return _settled([loss_with(MANY_BITS, octave) for octave in (1, 2, 3)])


def _settled(losses: Sequence[arb | None]) -> arb | None:
    """Return the last loss where none differs from it, as where an exponential of one settles."""
    known = [loss for loss in losses if loss is not None]
    if len(known) < len(losses):
        return None
    last = known[-1]
    with ctx.workprec(BITS):
        change = max((abs(loss - last).upper() for loss in known), default=arb(0))
        if change < MASS_ROUNDED * MASS_ROUNDED:
            return last + 2 * arb(0, change)
    return None


def _waves(before: list[arb | None], after: list[arb | None], apart: arb) -> arb | None:
    """Return what holds losses that go up and down towards an end, None where they do not.

    Within an octave they move as far as between far octaves, and no farther at the second one. Of
    waves the places that are looked at need not meet the crests: half of what they span is added
    on either side.
    """
    known_before = [ball for ball in before if ball is not None]
    known_after = [ball for ball in after if ball is not None]
    if not known_before or not known_after:
        return None
    hull = reduce(arb.union, known_after)
    largest_before = max(float(abs(ball).upper()) for ball in known_before)
    largest_after = float(abs(hull).upper())
    if largest_after > 2.0 * largest_before or 8.0 * float(hull.rad()) < float(apart.upper()):
        return None
    hull = reduce(arb.union, known_before, hull)
    return hull + arb(0, hull.rad())


def _crests(loss_at: Callable[[arb], arb | None], waves: arb) -> arb | None:
    """Return what holds waves of one height and one depth, None where they are not so.

    Of some waves at three places 1024 losses are looked at, and then those next to the highest and
    the lowest one. None where the places do not agree: then waves have no one height.

    `loss_at`: the loss at shares beyond 1 of a far octave.
    """
    span = float(waves.rad())
    if not 0.0 < span < math.inf:
        return None
    heights = []
    for start in (0.0, 0.37, 0.61):

        def losses(beyond: Array, start: float = start) -> Array:
            with ctx.workprec(BITS):
                shares = [arb(start) + arb(further) for further in beyond.tolist()]
            balls = [loss_at(share) for share in shares]
            return np.asarray([math.nan if b is None else float(b.mid()) for b in balls])

        length = 2.0**-BITS
        wave = losses(length * _ZOOM)
        while length < 0.1 and np.isfinite(wave).all() and np.ptp(wave) < 0.25 * span:
            length *= 4.0
            wave = losses(length * _ZOOM)
        beyond = np.linspace(0.0, 32.0 * length, 1024)
        wave = losses(beyond)
        if not np.isfinite(wave).all():
            return None
        for sign in (1.0, -1.0):
            top = int((sign * wave).argmax())
            low = beyond[max(top - 1, 0)]
            high = beyond[min(top + 1, beyond.size - 1)]
            for _ in range(_ZOOMS):
                zoomed = low + (high - low) * _ZOOM
                values = losses(zoomed)
                best = int((sign * values).argmax())
                low = zoomed[max(best - 1, 0)]
                high = zoomed[min(best + 1, zoomed.size - 1)]
            heights.append(float(values[best]))
    crests = heights[::2]
    troughs = heights[1::2]
    room = ABOVE_ROUNDING * span
    if max(np.ptp(crests), np.ptp(troughs)) > room:
        return None
    highest = arb(max(crests), room)
    lowest = arb(min(troughs), room)
    return highest.union(lowest)


def _has_mass(outline: Outline) -> NDArray[np.bool_]:
    """Return on which places of the grid P has mass."""
    top = np.fmax.reduce(outline.log_p, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        return np.asarray(outline.log_p > top - 2.0 * NEGLIGIBLE)


def _outward_double(value: arb, sign: int) -> float:
    """Return a bound as the double on its outer side, or as it is where it is a double."""
    middle = float(value.mid())
    with ctx.workprec(BITS):
        distance = abs(value - middle)
        rounding = MASS_ROUNDED * MASS_ROUNDED * (1 + abs(middle))
        if not math.isfinite(middle) or distance < rounding:
            return middle
        bound = float(distance.upper()) * sign + middle
    return math.nextafter(bound, sign * math.inf)


def widened(bounds: tuple[float, float], outlines: Sequence[Outline]) -> tuple[float, float]:
    """Return bounds that hold every loss seen, whatever was derived of them."""
    for outline in outlines:
        losses = _losses_beyond(outline, bounds, ABOVE_ROUNDING)
        bounds = _extended_bounds(bounds, losses, ABOVE_ROUNDING)
    return bounds


def _losses_beyond(
    outline: Outline, bounds: tuple[float, float], room: float, further: Sequence[Array] = ()
) -> Array:
    """Return the losses on the grid, and at further places, that lie outside of bounds.

    Far out log P and log Q are large and round to where no loss lies: of those losses the extreme
    ones of each octave are computed anew in balls.
    """
    low, high = bounds
    x = outline.x
    log_p = outline.log_p
    log_q = outline.log_q
    loss = outline.loss
    if further:
        x = np.concatenate([x, *further])
        with np.errstate(all="ignore"):
            log_p, log_q, loss = outline.piece.values(x)
    size = room * (1.0 + np.abs(loss))
    is_finite = np.isfinite(log_p) & np.isfinite(loss)
    is_below = loss < low - size
    is_above = loss > high + size
    beyond = is_finite & (is_below | is_above)
    rounding = np.spacing(np.abs(log_p)) + np.spacing(np.abs(log_q))
    is_noisy = beyond & (rounding > size)
    losses = [float(value) for value in loss[beyond & ~is_noisy]]
    octaves: dict[tuple[float, int], list[int]] = {}
    for index in np.flatnonzero(is_noisy).tolist():
        octave = math.copysign(1.0, x[index]), math.frexp(x[index])[1]
        octaves.setdefault(octave, []).append(index)
    for (_, exponent), places in octaves.items():
        cancelled = 2 * max(exponent, 0)  # bits of x², that ℓ may lose
        for index in {min(places, key=loss.__getitem__), max(places, key=loss.__getitem__)}:
            ball = _loss_ball(outline.piece, float(x[index]), BITS + cancelled)
            losses.append(float(loss[index] if ball is None else ball.mid()))
    return np.asarray(losses)


def _extended_bounds(
    bounds: tuple[float, float], losses: Array, room: float
) -> tuple[float, float]:
    """Return bounds moved out to losses seen beyond them, which are not exact."""
    low, high = bounds
    least = float(losses.min(initial=low))
    most = float(losses.max(initial=high))
    if least < low - room * (1.0 + abs(least)):  # also where both ends are at +∞
        low = least - ABOVE_ROUNDING * (1.0 + abs(least))
    if most > high + room * (1.0 + abs(most)):
        high = most + ABOVE_ROUNDING * (1.0 + abs(most))
    return low, high


def turns(outline: Outline) -> tuple[Array, Array]:
    """Return places of the least and the largest losses among their neighbours where P has mass."""
    piece = outline.piece
    grid = outline.x
    massive = grid[_has_mass(outline)]
    if not massive.size:
        return np.empty(0), np.empty(0)
    even = np.linspace(massive.min(), massive.max(), _EVEN)
    x = np.union1d(grid, even)

    def values(row: Index, places: Array) -> Array:
        with np.errstate(all="ignore"):
            loss = np.asarray(piece.loss(places)) * _SHARP
        signed = np.where(row == 0, -loss, loss)
        return np.where(np.isfinite(loss), signed, -np.inf)

    losses = values(np.ones(x.size, dtype=np.intp), x)
    with np.errstate(invalid="ignore"):
        absolute = np.abs(losses)
        size = np.fmax(absolute[1:], absolute[:-1])  # of losses there, not far out
        change = np.abs(np.diff(losses))
        is_clear = change > MASS_ROUNDED * (size + _SHARP)
    # On a flat stretch only rounding turns.
    x = x[1:][is_clear]
    losses = losses[1:][is_clear]
    if x.size < 3:
        return np.empty(0), np.empty(0)
    negated = np.where(np.isfinite(losses), -losses, losses)
    heights = np.stack([negated, losses])
    row, peaks = _peaks(values, x, heights, _MOST_TURNS)
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
        middle = 0.5 * (left + right)
        of_pieces = [log_row_sums(outline.shells([middle]))[0] for outline in outlines]
        log_mass = float(np.logaddexp.reduce(of_pieces))  # as far as grids tell
        bend = 0.5 * (masses[left] + masses[right]) - log_mass
        if not bend < _HARDLY_BENT:
            waiting.append((-math.inf, left, right))
    while waiting and len(masses) < MAX_TILTS:
        _, left, right = heappop(waiting)  # where K bends most
        middle = 0.5 * (left + right)
        if not left < middle < right:  # K jumps between neighbouring doubles: M ends there
            raise AccuracyError(_TOO_FAR)
        masses |= log_masses([middle])
        bend = 0.5 * (masses[left] + masses[right]) - masses[middle]
        if bend > CONVEXITY_GAP:
            # A parabola's halves bend a quarter as much.
            heappush(waiting, (-0.25 * bend, left, middle))
            heappush(waiting, (-0.25 * bend, middle, right))
    if waiting:
        halfway = log_masses([0.5 * (left + right) for _, left, right in waiting])
        bends = []
        for (_, left, right), log_mass in zip(waiting, halfway.values(), strict=True):
            bends.append(0.5 * (masses[left] + masses[right]) - log_mass)
        if max(bends) > _MOST_BENT:
            raise AccuracyError(_TOO_FAR)
        masses |= halfway
    return dict(sorted(masses.items()))
