"""The window of usual tilts, which one node set of a step serves.

Sums of many steps tilt each of them by a small part of 1/σ, and turn it by little more than that:
where tilts up to ±3 or more hardly change the moments, one set serves them all. It reaches as far
as that is so, and the losses that matter there are hardly farther apart than near 0.

Farther out each window is cut in halves until K hardly bends in the part that is asked for: few of
its tilts have losses in common with the others, as of little noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from symdp.law.outline import NEGLIGIBLE, Outline, log_row_sums
from symdp.law.step import Array

_USUAL, _WIDEST = 3, 12  # levels of usual tilts, and of the widest window
_HARDLY = 2.0  # e-folds by which E e^{t(L − E L)} may grow there
_FARTHER = 1.5  # times as far apart as under usual tilts: more would ask for many more nodes
_INNER = 0.25  # of the way to the end of the domain
_FREQUENT = 0.5  # its frequency, in standard deviations⁻¹ of the loss, for hundreds of steps
_MOST_BENT = 1000.0  # e-folds by which K bends in a part of far tilts: about 13 tilts cover it
_CHEAP_TURN = 30.0  # of all its losses, which some ten panels resolve


def common_window(
    outlines: Sequence[Outline], nearest: float, edge: Callable[[int, bool], float]
) -> tuple[int, float] | None:
    """Return the level and the frequency of the window, None where no tilt is usual.

    Parameters
    ----------
    outlines
        Of all pieces whose loss is finite.
    nearest
        How far from −1 or 0 the nearer end of the domain is.
    edge
        Returns the lower (False) or the upper end (True) of the window of a level.
    """
    mass, first, second = np.sum([o.rough_moments() for o in outlines], axis=0).tolist()
    if not (0.5 < mass < 2.0 and 0.0 < second < math.inf):
        return None
    mean, size = first / mass, math.sqrt(second / mass)
    levels = [k for k in range(2, _WIDEST + 1) if edge(k, True) < _INNER * nearest]
    if not levels:
        return None
    tilts = np.asarray([edge(k, side) for k in levels for side in (False, True)])
    shells = [o.shells(tilts.tolist()) for o in outlines]  # of all levels at once
    masses = np.logaddexp.reduce([log_row_sums(rows) for rows in shells], axis=0)
    growth = (masses - tilts * mean).reshape(-1, 2).max(axis=1)
    found, usual = None, math.inf
    for k, grown, stretch in zip(
        levels, growth.tolist(), _stretches(outlines, shells), strict=True
    ):
        if not (grown < _HARDLY and stretch <= _FARTHER * usual):
            break
        found = k, max(_FREQUENT / size, _CHEAP_TURN / max(stretch, 1e-300))
        usual = stretch if k == _USUAL else usual
    return found


def far_part(
    tilt: float, left: float, right: float, log_masses: Callable[[Sequence[float]], Array]
) -> tuple[float, float]:
    """Return the part of a window of far tilts, by halving, that holds a tilt and bends little."""
    while True:
        middle = 0.5 * (left + right)
        first, here, last = log_masses([left, middle, right]).tolist()
        if not 0.5 * (first + last) - here > _MOST_BENT:
            return left, right
        left, right = (left, middle) if tilt <= middle else (middle, right)


def _stretches(outlines: Sequence[Outline], shells: Sequence[Array]) -> list[float]:
    """Return how far apart losses are that matter, as far as grids tell, at every two tilts."""
    low, high = math.inf, -math.inf
    for outline, rows in zip(outlines, shells, strict=True):
        seen = (rows > rows.max(axis=1, keepdims=True) - NEGLIGIBLE) & np.isfinite(outline.loss)
        seen = seen[::2] | seen[1::2]
        low = np.minimum(low, np.where(seen, outline.loss, np.inf).min(axis=1))
        high = np.maximum(high, np.where(seen, outline.loss, -np.inf).max(axis=1))
    found: list[float] = np.where(high < low, np.inf, high - low).tolist()
    return found
