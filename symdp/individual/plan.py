"""Which contour line serves a record: its tilt, the spacing of its nodes and how many it needs.

All of it is read off one product, A = counts · K(t_g) at a geometric grid of tilts.  Every column
is a Chernoff bound on δ [SPA (43)], and Chernoff bounds also bound the alias terms of the
trapezoidal rule: with D = 2π/h they are below e^{−L} δ where

    D ≥ (log bound(s) + L)/|s − t|    for some s > t and for some s < t     (bound relative to δ)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symdp.individual.subsampled_gaussian import Array
from symdp.law.elementary import log_payoff

ALIAS_EFOLDS = 34.0  # alias terms are kept below e^-34 = 2e-15 of δ
_RATIO = 1.22  # of neighbouring tilts
_BELOW = 6  # tilts below the saddle that are tried: fewer nodes where single large losses rule
_MOST_GIVEN_UP = 7.0  # e-folds of the integrand's size that a lower tilt may cost
_WINDOW = 14  # tilts to either side that are looked at for bounds of alias terms
_WORTH = 0.8  # of the nodes: what a lower tilt must save
_NODE_EFOLDS = 80.0  # 2 × 40: nodes until a Gaussian |φ| is below e^-40, its bound below e^-29
DISTANCE_RATIO = 1.3  # of neighbouring alias distances
_NODE_COUNTS = tuple(
    int(value) for power in range(3, 13) for value in (2**power, 3 * 2 ** (power - 1))
)
NODE_LADDER = np.asarray(_NODE_COUNTS)

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """Line and start of every record of a chunk; `covered` records have δ(0) ≤ δ, by a bound.

    Attributes
    ----------
    renyi
        The least Chernoff bound, on ε or on log δ.
    start
        Where Newton's steps begin: an ε, or a guess of log δ.
    tilt, distance, nodes
        Column of the tilt, exponent of the alias distance, place on the ladder of node counts.
    above, below
        Columns of s whose bounds bound the alias terms, with A there, shape (records, 2) each.
    """

    renyi: Array
    start: Array
    covered: NDArray[np.bool_]
    tilt: Integers
    distance: Integers
    nodes: Integers
    sides: Integers
    transforms: Array


def tilt_grid(spread: Array, heaviest: float, log_delta: float) -> Array:
    """Return tilts that reach from the heaviest record's saddle point to the lightest one's.

    Parameters
    ----------
    spread
        The variance of P/Q of every kind of step; zeros do not count.
    heaviest
        The largest Σ counts·spread over records.
    log_delta
        log of the least δ that is of interest.

    Examples
    --------
    >>> grid = tilt_grid(np.array([1e-4]), 1.0, -14.0)
    >>> bool(grid[0] < 0.05), bool(grid[-1] > 500), round(float(grid[5] / grid[4]), 6)
    (True, True, 1.22)
    """
    reach = math.sqrt(2.0 * max(-log_delta, 1.0))
    seen = spread[spread > 0.0]
    lightest = math.sqrt(float(seen.min())) if seen.size else 1.0
    low = min(0.02, 0.05 / math.sqrt(max(heaviest, 1.0)))
    high = max(200.0, 8.0 * reach / min(lightest, 1.0))
    columns = math.ceil(math.log(high / low) / math.log(_RATIO)) + 1
    return np.asarray(low * _RATIO ** np.arange(columns))


def plan_epsilon(transforms: Array, tilts: Array, log_delta: float) -> Plan:
    """Return lines for the ε at which δ(ε) has a given value.

    Parameters
    ----------
    transforms
        A = counts · K(t), shape (records, tilts).
    tilts
        The tilts of the columns.
    log_delta
        log δ.
    """
    payoff = log_payoff(tilts)
    bound = (transforms + (payoff - log_delta)) / tilts
    saddle = _inner(bound.argmin(axis=1), tilts)
    rows = np.arange(saddle.size)
    renyi = bound.min(axis=1)
    curvature = _curvature(transforms, tilts, saddle)
    t = tilts[saddle]
    start = (
        transforms[rows, saddle]
        - np.log(t * (1.0 + t))
        - 0.5 * np.log(2.0 * math.pi * (curvature + t**-2 + (1.0 + t) ** -2))
        - log_delta
    ) / t
    # where one large loss rules, the saddle point formula is far off: stay near the bound
    start = np.clip(start, renyi - 4.0 / t, renyi)
    heights = np.full(saddle.size, log_delta)
    return _lines(transforms, tilts, saddle, np.maximum(start, 0.0), start, heights, renyi)


def replan_epsilon(transforms: Array, tilts: Array, log_delta: float, epsilon: Array) -> Plan:
    """Return lines for ε(δ) anew, from an ε that is nearly right.

    Where one large loss rules, the Chernoff bound on ε is far off, and so is the tilt that it
    suggests; the bound on δ at the right ε suggests a better one.
    """
    bound = transforms + log_payoff(tilts) - np.multiply.outer(epsilon, tilts)
    saddle = _inner(bound.argmin(axis=1), tilts)
    heights = np.full(saddle.size, log_delta)
    renyi = np.full(saddle.size, np.inf)
    return _lines(transforms, tilts, saddle, epsilon, epsilon, heights, renyi)


def plan_delta(transforms: Array, tilts: Array, epsilon: Array) -> Plan:
    """Return lines for log δ at given ε, one for each record."""
    payoff = log_payoff(tilts)
    bound = transforms + payoff - np.multiply.outer(epsilon, tilts)
    saddle = _inner(bound.argmin(axis=1), tilts)
    renyi = bound.min(axis=1)
    curvature = _curvature(transforms, tilts, saddle)
    t = tilts[saddle]
    size = np.log(t * (1.0 + t)) + 0.5 * np.log(
        2.0 * math.pi * (curvature + t**-2 + (1.0 + t) ** -2)
    )
    heights = np.minimum(renyi, renyi - payoff[saddle] - size) - 1.0
    return _lines(transforms, tilts, saddle, epsilon, heights, heights, renyi)


def _inner(columns: Integers, tilts: Array) -> Integers:
    return np.asarray(np.clip(columns, 1, tilts.size - 2))


def _curvature(transforms: Array, tilts: Array, column: Integers) -> Array:
    """Return K″ at columns by second differences: good to a tenth, which is all that is needed."""
    rows = np.arange(column.size)
    low, here, high = (transforms[rows, column + k] for k in (-1, 0, 1))
    t_low, t, t_high = (tilts[column + k] for k in (-1, 0, 1))
    rise = (high - here) / (t_high - t) - (here - low) / (t - t_low)
    return np.maximum(2.0 * rise / (t_high - t_low), 1e-300)


def _lines(
    transforms: Array,
    tilts: Array,
    saddle: Integers,
    epsilon: Array,
    start: Array,
    log_delta: Array,
    renyi: Array,
) -> Plan:
    """Choose tilt, alias distance and node count, records of one saddle column together."""
    count = saddle.size
    tilt = saddle.copy()
    distance = np.empty(count)
    sides = np.zeros((count, 2), dtype=np.int64)
    payoff = log_payoff(tilts)
    order = np.argsort(saddle, kind="stable")
    cuts = np.flatnonzero(np.diff(saddle[order])) + 1
    for rows in np.split(order, cuts):
        if not rows.size:
            continue
        column = int(saddle[rows[0]])
        first = max(column - _BELOW - _WINDOW, 0)
        last = min(column + _WINDOW + 1, tilts.size)
        here = tilts[first:last]
        # log of Chernoff bound over δ, and e-folds that alias terms must lose
        bound = transforms[rows, first:last] + payoff[first:last] - log_delta[rows, None]
        bound -= epsilon[rows, None] * here
        best = np.full(rows.size, np.inf)
        saddle_size = bound[:, column - first]
        for step in range(_BELOW + 1):
            at = column - step - first
            if at < 1:
                break
            t = here[at]
            allowed = bound[:, at] - saddle_size < _MOST_GIVEN_UP
            if not allowed.any():
                break
            above = (bound[:, at + 1 :] + ALIAS_EFOLDS) / (here[at + 1 :] - t)
            below = (bound[:, :at] + ALIAS_EFOLDS) / (t - here[:at])
            up, down = above.argmin(axis=1), below.argmin(axis=1)
            index = np.arange(rows.size)
            at_zero = (ALIAS_EFOLDS - log_delta[rows]) / t  # δ ≤ 1: the bound at s = 0
            by_low = below[index, down]
            needed = np.maximum(above[index, up], np.minimum(by_low, at_zero))
            better = allowed & (needed < _WORTH * best)
            best[better] = needed[better]
            chosen = rows[better]
            tilt[chosen] = column - step
            sides[chosen, 0] = up[better] + at + 1 + first
            sides[chosen, 1] = np.where(by_low <= at_zero, down + first, -1)[better]
        distance[rows] = best
    curvature = _curvature(transforms, tilts, _inner(tilt, tilts))
    level = np.ceil(np.log(np.maximum(distance, 1e-12)) / math.log(DISTANCE_RATIO))
    level = level.astype(np.int64)
    nodes = nodes_needed(DISTANCE_RATIO ** level.astype(np.float64), curvature, tilts[tilt])
    every = np.arange(count)
    values = np.stack(
        [
            transforms[every, sides[:, 0]],
            np.where(sides[:, 1] < 0, 0.0, transforms[every, sides[:, 1]]),
        ],
        axis=1,
    )
    covered = (renyi <= 0.0) if start is not log_delta else np.zeros(count, dtype=bool)
    return Plan(renyi, start, covered, tilt, level, nodes, sides, values)


def nodes_needed(distance: Array, curvature: Array, tilt: Array) -> Integers:
    """Return the place on the ladder of node counts at which a Gaussian |φ| has died out."""
    reach = np.sqrt(_NODE_EFOLDS / curvature)
    # the kernel 1/(z(1+z)) falls as well, where the tilt is small beside the reach
    gain = np.log1p((reach / tilt) ** 2)
    reach = np.sqrt(np.maximum(_NODE_EFOLDS - gain, 16.0) / curvature)
    wanted = distance * reach / (2.0 * math.pi) + 3.0
    return np.minimum(np.searchsorted(NODE_LADDER, wanted), NODE_LADDER.size - 1)
