"""The Rényi bound of every record: the least conversion over all real orders [IND C.3].

ε ≤ min over t > 0 of (K(t) + log c_t − log δ)/t,  δ ≤ min over t of e^{K(t) − tε} c_t, with
c_t = t^t/(1+t)^{1+t} and t = α − 1 (Canonne, Kamath, Steinke 2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.numeric.elementary import log_payoff
from symdp.numeric.kinds import Table
from symdp.numeric.rows import TiltGrid, chunks
from symdp.numeric.saddle_point import SLACK
from symdp.numeric.step import Array

_FINER = 33  # tilts between two neighbours, at each refinement
_REFINEMENTS = 2  # of the orders around the best one


def least_bounds(table: Table, counts: NDArray[np.integer], asked: Any) -> Array:
    """Return the least bound on ε, or on log δ, of every row of counts."""
    grid = TiltGrid(table, counts, asked.log_delta, asked.epsilon)
    best = np.full(counts.shape[0], np.inf)
    for chunk, block in chunks(counts):
        rows = np.arange(chunk.start, chunk.stop)
        column = _look(grid.tilts, grid.transforms(block), rows, asked, best)
        _refine(table, block, grid.tilts, column, rows, asked, best)
    empty = np.flatnonzero(~np.asarray(counts[:, table.has_loss].any(axis=1)))
    if asked.log_delta is not None:
        best[empty] = 0.0
    return best


def _look(
    tilts: Array, values: Array, rows: NDArray[np.int64], asked: Any, best: Array
) -> NDArray[np.int64]:
    """Note the least bound from K at a grid of tilts, and return where on the grid it is."""
    payoff = log_payoff(tilts)
    if asked.log_delta is not None:
        terms = values + (payoff - asked.log_delta)
        size = np.abs(values) + np.abs(payoff) + abs(asked.log_delta)
        bound = (terms + SLACK * size) / tilts
    else:
        drift = np.multiply.outer(asked.epsilon[rows], tilts)
        size = np.abs(values) + np.abs(payoff) + np.abs(drift)
        bound = values + payoff - drift + SLACK * size
    best[rows] = np.minimum(best[rows], bound.min(axis=1))
    return np.asarray(bound.argmin(axis=1))


def _refine(
    table: Table,
    block: Array,
    tilts: Array,
    column: NDArray[np.int64],
    rows: NDArray[np.int64],
    asked: Any,
    best: Array,
    depth: int = 0,
) -> None:
    for place in np.unique(column):
        chosen = np.flatnonzero(column == place)
        low, high = tilts[max(place - 1, 0)], tilts[min(place + 1, tilts.size - 1)]
        finer = np.geomspace(low, high, _FINER)
        some = block[chosen]
        used = np.asarray((some > 0.0).any(axis=0))
        values = np.asarray(some @ table.transform(finer, used).T)
        where = _look(finer, values, rows[chosen], asked, best)
        if depth + 1 < _REFINEMENTS:
            _refine(table, some, finer, where, rows[chosen], asked, best, depth + 1)
