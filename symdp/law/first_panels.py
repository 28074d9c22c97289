"""The first panels of a quadrature: geometric shells around every mode that some tilt feels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from symdp.errors import AccuracyError
from symdp.law.elementary import distinct
from symdp.law.outline import NEGLIGIBLE, Outline, tilted_each, tilted_log_density
from symdp.law.step import Array, SmoothPiece

_DEEPEST = 1000  # −log₂ of the smallest shell next to a singularity at 0
_FINEST = -119  # log₂ of the smallest shell, as a share of a piece
SHELL_GROWTH = 2  # each shell is 2² times as wide as the one before it


def first_edges(outline: Outline, tilts: Sequence[float], log_masses: Array) -> Array:
    """Return the first panels' edges: geometric shells around each anchor where some mass lies."""
    piece, anchors, grid = outline.piece, outline.anchors, outline.x
    if grid.size < 3:
        return np.asarray([piece.lower, piece.upper])
    mass = outline.shells(tilts)
    essential = np.flatnonzero((mass > log_masses[:, None] - NEGLIGIBLE).any(axis=0))
    if essential.size == 0:
        return np.empty(0)
    if (essential[0] == 0 and not np.isfinite(piece.lower)) or (
        essential[-1] == grid.size - 1 and not np.isfinite(piece.upper)
    ):
        raise AccuracyError(
            "the tail of the tilted density is too heavy to integrate: the tilt is too close to "
            "the end of the domain on which the moment generating function is finite"
        )
    low = piece.lower if essential[0] == 0 else float(grid[essential[0] - 1])
    high = piece.upper if essential[-1] == grid.size - 1 else float(grid[essential[-1] + 1])
    edges = [np.asarray([low, high])]
    sides: list[tuple[float, float, Array]] = []
    places, under = [], []
    for anchor in anchors:
        if not low <= anchor <= high:
            continue
        edges.append(np.asarray([anchor]))
        inside = np.nextafter(anchor, 0.5 * (low + high)) if anchor in (low, high) else anchor
        felt = sorted(tilts)
        if anchor not in outline.roots:
            felt = _felt(piece, inside, high - low, tilts, log_masses)
        if not felt:
            continue
        # Down to the rounding of the anchor, too, however far a heavy tail reaches.
        finest = _FINEST
        if anchor != 0:
            finest = min(finest, math.floor(math.log2(abs(anchor) / (high - low))) - 52)
        elif _is_heavy(piece, math.ldexp(high - low, finest), tilts, log_masses):
            finest = -_DEEPEST - math.ceil(math.log2(high - low))
        # No power of two by itself may vanish.
        offsets = np.ldexp(high - low, np.arange(finest, 1))
        for side in (-1.0, 1.0):
            x = anchor + side * offsets
            within = (x > low) & (x < high)
            if within.any():
                sides.append((anchor, side, offsets[within]))
                places += [np.asarray([inside]), x[within]]
                under.append(np.repeat([[felt[0]], [felt[-1]]], 1 + int(within.sum()), axis=1))
    # The density at all of them at once: a call of it costs more than a place. Its logarithm is
    # linear in the tilt, so that what changes most does so under the least tilt or the largest.
    seen = np.empty(0)
    if places:
        with np.errstate(all="ignore"):
            values = piece.values(np.concatenate(places))
        seen = tilted_each(*values, np.concatenate(under, axis=1))
    first = 0
    for anchor, side, offsets in sides:
        here, away = seen[:, first : first + 1], seen[:, first + 1 : first + 1 + offsets.size]
        first += 1 + offsets.size
        with np.errstate(invalid="ignore"):
            drop = np.abs(away - here).max(axis=0)
        wide = np.flatnonzero(~(drop < 1.0))
        narrowest = offsets[wide[0]] if wide.size else offsets[-1]
        doublings = math.log2(high - low) - math.log2(narrowest)
        count = math.ceil(max(doublings, 0.0) / SHELL_GROWTH)
        shells = anchor + side * np.ldexp(narrowest, SHELL_GROWTH * np.arange(count + 1))
        edges.append(shells[(shells > low) & (shells < high)])
    return apart(distinct(np.concatenate(edges)))


def _felt(
    piece: SmoothPiece, place: float, width: float, tilts: Sequence[float], log_masses: Array
) -> list[float]:
    """Return the tilts under which there may be mass around a mode."""
    log_p = tilted_log_density(piece, np.asarray([place]), tilts)[:, 0]
    held = log_p + math.log(width) > log_masses - NEGLIGIBLE
    return sorted(tilt for tilt, is_felt in zip(tilts, held.tolist(), strict=True) if is_felt)


def apart(edges: Array) -> Array:
    """Return rising edges without those inside that are next to another one."""
    keep = np.ones(edges.size, dtype=bool)
    keep[1:-1] = np.diff(edges)[:-1] > 1e-13 * np.abs(edges[1:-1])
    return edges[keep]


def _is_heavy(piece: SmoothPiece, near: float, tilts: Sequence[float], log_masses: Array) -> bool:
    """Return whether there is mass still closer to 0 than a place near it."""
    places = np.asarray([x for x in (-near, near) if piece.lower < x < piece.upper])
    if places.size == 0:
        return False
    with np.errstate(invalid="ignore"):
        log_size = tilted_log_density(piece, places, tilts) + math.log(near)
    return bool((log_size > log_masses[:, None] - NEGLIGIBLE).any())
