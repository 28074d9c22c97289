"""Where a piece's mass lies under any tilt: modes of every term, and tilts that leave no gap.

A quadrature that looks only around one centre misses a far narrow peak, and one that looks only at
the ends of a window of tilts misses the mass that moves between them; an outline finds both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from symdp.capacity import afford
from symdp.law.step import Array, SmoothPiece

LARGEST_EXPONENT = 500  # offsets up to 2^500: x² stays finite
CONVEXITY_GAP = 6.0  # e-folds by which log-masses of neighbouring tilts may bend
MAX_TILTS = 400  # looked at
_HARDLY_BENT = 1.0  # e-folds: far less than the gap, so that no tilt between is needed
_FAR_OFFSETS = np.exp2(np.append(np.arange(-60.0, 64.0), np.arange(64.0, LARGEST_EXPONENT, 4.0)))
_NEAR_OFFSETS = np.exp2(np.arange(-36.0, 6.0))  # distances from a peak, in octaves
_ZOOM, _ZOOMS = np.linspace(0.0, 1.0, 17), 10  # places of a zoom, and zooms: 8^10 into a peak
_FLAT = 1e-4  # of log densities: a mode is then found to a hundredth of its width


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
    rows = []
    with np.errstate(all="ignore"):
        for t in tilts:
            if t >= 0:
                row = log_p + t * loss if t > 0 else log_p
            elif t <= -1:
                row = log_q + (1 + t) * loss if t < -1 else log_q
            else:
                row = (1 + t) * log_p - t * log_q
            rows.append(row)
    stacked = np.stack(rows)
    # A density that has underflowed (−inf, or inf − inf on the way) carries no mass.
    return np.where(np.isfinite(stacked), stacked, -np.inf)


def _peaks(function: Callable[[Array], Array], x: Array, values: Array, most: int) -> Array:
    """Return the highest local maxima of a function with these values on a grid, zoomed in upon.

    Where a maximum is flat, any place on its top will do.
    """
    centre = values[1:-1]
    inner = (centre >= values[:-2]) & (centre > values[2:]) & np.isfinite(centre)
    found = np.flatnonzero(inner) + 1
    if found.size == 0:
        return np.empty(0)
    found = found[np.argsort(values[found])[::-1][:most]]
    low, high = x[found - 1], x[found + 1]
    peaks = x[found]
    rows = np.flatnonzero(~_is_flat(values[found[:, None] + np.arange(-1, 2)]))
    for _ in range(_ZOOMS):
        if rows.size == 0:
            break
        trial = low[rows, None] + (high - low)[rows, None] * _ZOOM
        seen = function(trial.ravel()).reshape(trial.shape)
        best, each = seen.argmax(axis=1), np.arange(rows.size)
        peaks[rows] = trial[each, best]
        low[rows] = trial[each, np.maximum(best - 1, 0)]
        high[rows] = trial[each, np.minimum(best + 1, _ZOOM.size - 1)]
        rows = rows[~_is_flat(seen)]
    return peaks


def _is_flat(values: Array) -> NDArray[np.bool_]:
    """Return whether the values of each row are those of one flat top."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.ptp(values, axis=1) < _FLAT)


class Outline:
    """A piece seen on geometric grids around its ends and modes, learned as tilts are asked.

    Attributes
    ----------
    anchors
        Finite ends, zero or the middle, and every mode found so far.
    x, log_p, log_q, loss, spacing
        The grid, the three functions on it, and the log of the length each grid point stands for.
    """

    def __init__(self, piece: SmoothPiece, tilts: Sequence[float] = (-1.0, 0.0)) -> None:
        self.piece = piece
        ends = [e for e in (piece.lower, piece.upper) if np.isfinite(e)]
        self._roots = list(ends)
        if piece.lower < 0 < piece.upper or not ends:
            self._roots.append(0.0)
        if len(ends) == 2:
            self._roots.append(0.5 * (ends[0] + ends[1]))
        self.anchors = sorted(self._roots)
        self.x = self.log_p = self.log_q = self.loss = np.empty(0)
        self._see(self.anchors, _FAR_OFFSETS)
        for term in piece.log_terms:
            seen = _finite(term, self.x)
            self._look(lambda y, term=term: _finite(term, y), seen, 4)  # type: ignore[misc]
        self._looked: set[tuple[float, int]] = set()
        for _ in range(2):  # the second pass looks around the first pass's modes
            for tilt in tilts:
                self.look(tilt)

    def _see(self, anchors: Sequence[float], offsets: Array) -> None:
        """Add places around anchors to the grid."""
        centres = np.asarray(anchors)[:, None]
        sizes = 1.0 if offsets is _FAR_OFFSETS else np.maximum(np.abs(centres), 1e-3)
        apart = offsets * sizes
        x = np.concatenate([centres, centres + apart, centres - apart], axis=1)
        x = np.unique(x[(x > self.piece.lower) & (x < self.piece.upper)])
        if self.x.size:
            x = x[self.x[np.minimum(self.x.searchsorted(x), self.x.size - 1)] != x]
        with np.errstate(all="ignore"):
            fresh = x, *self.piece.values(x)
        known = self.x, self.log_p, self.log_q, self.loss
        places = self.x.searchsorted(x)
        self.x, self.log_p, self.log_q, self.loss = (
            np.insert(old, places, new) for old, new in zip(known, fresh, strict=True)
        )
        self.spacing = np.log(np.gradient(self.x)) if self.x.size > 1 else np.zeros(self.x.size)

    def _look(self, function: Callable[[Array], Array], seen: Array, most: int) -> None:
        """Add the modes of a function that is known on the grid to the anchors."""
        peaks = _peaks(function, self.x, seen, most)
        if peaks.size == 0:
            return
        fresh = peaks[~self._are_known(function, peaks)]
        if fresh.size:
            self.anchors = sorted({*self.anchors, *fresh.tolist()})
            self._see(fresh.tolist(), _NEAR_OFFSETS)

    def _are_known(self, function: Callable[[Array], Array], peaks: Array) -> NDArray[np.bool_]:
        """Return whether each peak is an anchor, or the same flat top as the nearest one."""
        anchors = np.asarray(self.anchors)
        nearest = anchors[np.abs(anchors - peaks[:, None]).argmin(axis=1)]
        known = np.asarray(nearest == peaks)
        rows = np.flatnonzero(~known)
        if rows.size:
            inward = np.clip(nearest[rows], self.x[0], self.x[-1])
            places = np.stack([peaks[rows], 0.5 * (peaks[rows] + inward), inward], axis=1)
            known[rows] = _is_flat(function(places.ravel()).reshape(places.shape))
        return known

    def look(self, tilt: float) -> None:
        """Find the modes of P·e^{tℓ}."""
        key = tilt, len(self.anchors)
        if key in self._looked:
            return
        self._looked.add(key)
        seen = tilted(self.log_p, self.log_q, self.loss, [tilt])[0]
        self._look(lambda y: tilted_log_density(self.piece, y, [tilt])[0], seen, 6)

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
        shells = self.shells(tilts)
        top = shells.max(axis=1, initial=-np.inf)
        with np.errstate(all="ignore"):
            total = np.log(np.exp(shells - top[:, None]).sum(axis=1))
        return np.where(np.isfinite(top), top + total, -np.inf)

    def log_mass(self, tilt: float) -> float:
        """Return log ∫ P e^{tℓ} to within a few units."""
        self.look(tilt)
        mass = self.shells([tilt])[0]
        top = mass.max() if mass.size else -np.inf
        return float(top + np.log(np.exp(mass - top).sum())) if np.isfinite(top) else -np.inf


def _finite(function: Callable[[Array], Array], x: Array) -> Array:
    with np.errstate(all="ignore"):
        values = function(x)
    return np.where(np.isfinite(values), values, -np.inf)


def _are_joined(
    outlines: Sequence[Outline], left: float, right: float, first: float, last: float
) -> bool:
    """Return whether K hardly bends between two tilts, as far as grids tell."""
    middle = [o.rough_log_masses([0.5 * (left + right)])[0] for o in outlines]
    return 0.5 * (first + last) - float(np.logaddexp.reduce(middle)) < _HARDLY_BENT


def covering_tilts(outlines: Sequence[Outline], ends: Sequence[float]) -> dict[float, float]:
    """Return tilts between the ends, so close that their masses overlap, each with its log mass.

    log K is convex in t while log P + tℓ is linear: if K at two tilts exceeds twice K halfway by at
    most 2g, a place that matters halfway to e^{−c} matters at one of the two to e^{−(c+g)}.
    """

    def log_mass(tilt: float) -> float:
        values = [o.log_mass(tilt) for o in outlines]
        top = max(values)
        return top + float(np.log(sum(np.exp(v - top) for v in values)))

    known = {t: log_mass(t) for t in sorted(set(ends))}
    waiting = [
        (left, right)
        for left, right in pairwise(sorted(known))
        if not _are_joined(outlines, left, right, known[left], known[right])
    ]
    while waiting and len(known) < MAX_TILTS:
        left, right = waiting.pop()
        middle = 0.5 * (left + right)
        known[middle] = log_mass(middle)
        if 0.5 * (known[left] + known[right]) - known[middle] > CONVEXITY_GAP:
            waiting += [(left, middle), (middle, right)]
    return dict(sorted(known.items()))
