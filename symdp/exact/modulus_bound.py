"""Where |φ|ⁿ of atoms may exceed a threshold far out: angles rule out all the rest.

|φ(y − y′)| is the cosine of the angle between the lines of e^{iyL} and e^{iy′L}, and angles obey
the triangle inequality [Krein].  So does Θ(y) = (Σ nᵢ arccos²|φᵢ(y)|)^½: Θ(y + s) ≥ Θ(y) − Θ(s).
As cos θ ≤ e^{−θ²/2}, |Φ(y)| ≤ e^{−Θ(y)²/2}: one value of Φ bounds a whole stretch around it,
about as long as a step's loss is narrow, whatever the number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from symdp.exact.accuracy import MOST_NODES, MOST_WORK, ROUNDING
from symdp.law.characteristic_function import log_characteristic
from symdp.law.step import Array
from symdp.law.tilted import Tilted

_SPLIT = 4  # parts of a stretch that is not excluded, and nodes of one that is not split further


class Angles:
    """Θ of steps whose losses are single values, at one tilt.

    Parameters
    ----------
    tilted
        The steps.
    counts
        How often each is taken.
    """

    def __init__(self, tilted: Sequence[Tilted], counts: Sequence[float]) -> None:
        self._tilted, self._counts = tilted, counts
        self.atoms = sum(part.weight.size for part in tilted)
        self.work = 0  # values of e^{iyL} so far
        self.most = 0.5 * math.pi * math.sqrt(float(sum(counts)))

    def at(self, y: Array) -> Array:
        """Return Θ(y), rounded down."""
        self.work += y.size * self.atoms
        total = np.zeros(y.size)
        for part, count in zip(self._tilted, self._counts, strict=True):
            depth = np.maximum(-log_characteristic(part, y).real - 2.0 * ROUNDING, 0.0)
            angle = np.arctan2(np.sqrt(-np.expm1(-2.0 * depth)), np.exp(-depth))
            total += count * (angle * angle)
        return np.asarray(np.sqrt(total))

    def within(self, reach: Array) -> Array:
        """Bound Θ(s) for all |s| ≤ reach: |φ(s)| ≥ 1 − σ²s²/2."""
        total = np.zeros(reach.size)
        for part, count in zip(self._tilted, self._counts, strict=True):
            sine = np.minimum(0.5 * math.sqrt(part.variance) * reach, math.sqrt(0.5))
            total += count * (2.0 * np.arcsin(sine)) ** 2
        return np.asarray(np.sqrt(total))


def places_above(angles: Angles, step: float, first: int, last: int, level: float) -> Array | None:
    """Return the k, first ≤ k < last, at which |Φ(k·step)| may be above e^{−level}.

    They come in rising order; None stands for too many to list or to look for.
    """
    needed = math.sqrt(2.0 * level)
    if needed > angles.most:
        return None
    edges = [first]
    while edges[-1] < last:
        edges.append(min(last, 2 * edges[-1] + _SPLIT))
    low, high = np.asarray(edges[:-1]), np.asarray(edges[1:])
    found: list[tuple[Array, Array]] = []
    places, most = 0, angles.work + MOST_WORK
    while low.size:
        around = needed + angles.within(0.5 * step * (high - 1 - low))
        # Where even right angles would not do, there is no need to look.
        hopeful = np.flatnonzero(around <= angles.most)
        if low.size + hopeful.size * angles.atoms > most - angles.work:
            return None
        above = np.ones(low.size, dtype=bool)
        middle = 0.5 * step * (low + high - 1)[hopeful]
        above[hopeful] = angles.at(middle) < around[hopeful]
        low, high = low[above], high[above]
        narrow = high - low <= _SPLIT
        found.append((low[narrow], high[narrow]))
        places += int((high - low)[narrow].sum())
        if places > MOST_NODES:
            return None
        low, high = _split(low[~narrow], high[~narrow])
    starts, stops = (np.concatenate([pair[side] for pair in found]) for side in (0, 1))
    order = np.argsort(starts)
    starts, sizes = starts[order], (stops - starts)[order]
    offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.asarray(offsets + np.arange(offsets.size))


def _split(low: Array, high: Array) -> tuple[Array, Array]:
    """Cut stretches of nodes into several each."""
    width = -((low - high) // _SPLIT)
    starts = low[:, None] + np.arange(_SPLIT) * width[:, None]
    stops = np.minimum(starts + width[:, None], high[:, None])
    some = starts < stops
    return starts[some], stops[some]
