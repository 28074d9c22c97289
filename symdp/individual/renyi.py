"""The Rényi bound of every record: the least conversion over all real orders [IND C.3].

ε ≤ min over t > 0 of (K(t) + log c_t − log δ)/t,  δ ≤ min over t of e^{K(t) − tε} c_t, with
c_t = t^t/(1+t)^{1+t} and t = α − 1 (Canonne, Kamath, Steinke 2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.individual.shared import CHUNK, tilts_for
from symdp.individual.subsampled_gaussian import Array
from symdp.law.chernoff import SLACK
from symdp.law.elementary import log_payoff

_FINER = 33  # tilts between two neighbours, at each refinement
_REFINEMENTS = 2  # of the orders around the best one


def least_bounds(table: Any, counts: NDArray[np.integer], asked: Any) -> Array:
    """Return the least bound on ε, or on log δ, of every record.

    Parameters
    ----------
    table
        CGFs of the kinds of steps.
    counts
        Steps of each kind, shape (records, kinds).
    asked
        The question: `log_delta`, or `epsilon` of each record.
    """
    tilts = tilts_for(table, counts, asked.log_delta, asked.epsilon)
    best = np.full(counts.shape[0], np.inf)
    for start in range(0, counts.shape[0], CHUNK):
        rows = np.arange(start, min(start + CHUNK, counts.shape[0]))
        block = np.asarray(counts[rows[0] : rows[-1] + 1], dtype=np.float64)
        column = _look(table, block, tilts, rows, asked, best)
        _refine(table, block, tilts, column, rows, asked, best)
    empty = np.flatnonzero(~np.asarray(counts[:, table.spread() > 0.0].any(axis=1)))
    if asked.log_delta is not None:
        best[empty] = 0.0
    return best


def _look(
    table: Any, block: Array, tilts: Array, rows: NDArray[np.int64], asked: Any, best: Array
) -> NDArray[np.int64]:
    """Note the least bound on a grid of tilts, and return where on the grid it is."""
    transforms = table.transform(tilts)
    kinds = np.isfinite(transforms).all(axis=0)
    values = block[:, kinds] @ transforms[:, kinds].T
    if not kinds.all():
        values[(block[:, ~kinds] > 0.0).any(axis=1)] = np.inf
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
    table: Any,
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
        where = _look(table, block[chosen], finer, rows[chosen], asked, best)
        if depth + 1 < _REFINEMENTS:
            _refine(table, block[chosen], finer, where, rows[chosen], asked, best, depth + 1)
