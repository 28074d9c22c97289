"""Many records at once: plan by chunks, then one shared line for each group of records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.exact.accuracy import TOLERABLE
from symdp.individual.lines import LineValues, SharedLine
from symdp.individual.plan import (
    DISTANCE_RATIO,
    NODE_LADDER,
    Plan,
    plan_delta,
    plan_epsilon,
    replan_epsilon,
    tilt_grid,
)
from symdp.individual.subsampled_gaussian import Array, SubsampledGaussian
from symdp.law.elementary import log_payoff

CHUNK = 1 << 14  # records planned at once
_SLAB = 1 << 13  # records of a group read at once
_BEYOND = 3e-13  # relative to δ: more than this, and the line is taken again with more nodes
_MOST_BEYOND = 2e-11  # relative: what may lie beyond the end of a line whose sum cancels
_ALIAS = 3e-13  # relative: what the spacing of a line may add
_RETRIES = 7  # halvings of a spacing
_FEWEST = 400  # records that are worth a line of their own
_MORE_NODES = 2  # places on the ladder: twice as many

CONTOUR, WITHOUT_LOSS, UNRESOLVED = 0, 1, 2

Progress = Callable[[int, int], None]


@dataclass
class Solution:
    """ε or log δ of every record, with the relative error of δ and how it was found.

    Attributes
    ----------
    epsilon, log_delta, slope
        Slope is d log δ/dε.
    error
        An estimate of everything that the double arithmetic and the cut sum did to δ, relative;
        alias terms, which are proved, are in it.
    renyi
        The Chernoff bound: on ε where δ was given, else on log δ.
    path
        CONTOUR, WITHOUT_LOSS (δ(0) ≤ δ by a bound, so ε = 0) or UNRESOLVED.
    """

    epsilon: Array
    log_delta: Array
    slope: Array
    error: Array
    renyi: Array
    path: NDArray[np.uint8]


def solve_records(
    table: SubsampledGaussian,
    counts: NDArray[np.integer],
    log_delta: float | None,
    epsilon: Array | None = None,
    progress: Progress | None = None,
    floor: Array | None = None,
) -> Solution:
    """Return ε(δ) or δ(ε) of every record on shared contour lines.

    Parameters
    ----------
    table
        CGFs of the kinds of steps.
    counts
        Steps of each kind, shape (records, kinds), integers; may be memory-mapped.
    log_delta
        The δ at which every ε is wanted; None to find log δ at `epsilon`.
    epsilon
        Given ε, one for each record, where log δ is wanted.
    progress
        Called with the number of records done and their number.
    floor
        A number of each record below which no answer is needed: where the Chernoff bound lies
        below, the record is WITHOUT_LOSS.
    """
    records = counts.shape[0]
    solution = Solution(
        np.zeros(records) if epsilon is None else np.asarray(epsilon, dtype=np.float64).copy(),
        np.full(records, -np.inf if log_delta is None else log_delta),
        np.full(records, np.nan),
        np.zeros(records),
        np.zeros(records),
        np.full(records, UNRESOLVED, dtype=np.uint8),
    )
    planned = _Planned(records)
    tilts = tilts_for(table, counts, log_delta, epsilon)
    transforms = table.transform(tilts)
    kinds, lossy = np.isfinite(transforms).all(axis=0), table.spread() > 0.0
    for chunk, block in _chunks(counts):
        empty = np.asarray(block[:, lossy].sum(axis=1) == 0.0)
        values = block[:, kinds] @ transforms[:, kinds].T
        if log_delta is not None:
            plan = plan_epsilon(values, tilts, log_delta)
        else:
            plan = plan_delta(values, tilts, solution.epsilon[chunk])
        planned.put(chunk, plan)
        covered = plan.covered | empty
        solution.renyi[chunk] = plan.renyi
        if log_delta is not None:
            solution.renyi[chunk] = np.where(covered, 0.0, plan.renyi)
        if floor is not None:
            below = plan.renyi <= floor[chunk]
            if log_delta is None:
                solution.log_delta[chunk] = np.where(below, plan.renyi, -np.inf)
            covered |= below
        solution.path[chunk] = np.where(covered, WITHOUT_LOSS, UNRESOLVED)
        if log_delta is None and empty.any():
            at = np.flatnonzero(empty) + chunk.start
            solution.log_delta[at] = _no_loss(solution.epsilon[at])
            solution.renyi[at] = solution.log_delta[at]
    waiting = np.flatnonzero(solution.path == UNRESOLVED)
    _attempts(planned, solution, table, counts, tilts, log_delta, waiting, progress)
    rest = np.flatnonzero(solution.path == UNRESOLVED)
    if rest.size and log_delta is not None:
        for start in range(0, rest.size, CHUNK):
            rows = rest[start : start + CHUNK]
            block = np.asarray(counts[rows], dtype=np.float64)
            values = block[:, kinds] @ transforms[:, kinds].T
            planned.put(rows, replan_epsilon(values, tilts, log_delta, planned.start[rows]))
        _attempts(planned, solution, table, counts, tilts, log_delta, rest, None)
    return solution


def _attempts(
    planned: _Planned,
    solution: Solution,
    table: SubsampledGaussian,
    counts: NDArray[np.integer],
    tilts: Array,
    log_delta: float | None,
    waiting: NDArray[np.int64],
    progress: Progress | None,
) -> None:
    """Take lines, and longer ones for the records that need them, until all are served."""
    total, done = waiting.size, 0
    for attempt in range(_RETRIES):
        failed: list[NDArray[np.int64]] = []
        for group, level, place in planned.groups(waiting):
            spacing = 2.0 * math.pi / DISTANCE_RATIO**level
            tilt = float(tilts[planned.tilt[group[0]]])
            nodes = int(NODE_LADDER[place])
            try:
                line = SharedLine(table, tilt, spacing, nodes, _used(counts, group))
            except AccuracyError:  # too long: its records stay UNRESOLVED
                continue
            for start in range(0, group.size, _SLAB):
                rows = group[start : start + _SLAB]
                block = np.asarray(counts[rows], dtype=np.float64)
                begin = planned.start[rows] if log_delta is not None else solution.epsilon[rows]
                found = line.solve(block, begin, log_delta)
                last = attempt == _RETRIES - 1 or nodes == NODE_LADDER[-1]
                good = planned.judge(rows, found, line, tilts, last)
                _store(solution, rows[good], found, good)
                if nodes < NODE_LADDER[-1]:  # else no longer line would serve them
                    failed.append(rows[~good])
                done += int(good.sum())
                if progress is not None and attempt == 0:
                    progress(done, total)
        waiting = np.concatenate(failed) if failed else np.empty(0, dtype=np.int64)
        if not waiting.size:
            break


class _Planned:
    """The plans of all records, small enough to keep for millions."""

    def __init__(self, records: int) -> None:
        self.start = np.zeros(records)
        self.tilt = np.zeros(records, dtype=np.int16)
        self.distance = np.zeros(records, dtype=np.int16)
        self.nodes = np.zeros(records, dtype=np.int16)
        self.sides = np.zeros((records, 2), dtype=np.int16)
        self.transforms = np.zeros((records, 2))

    def put(self, rows: slice | NDArray[np.int64], plan: Plan) -> None:
        """Keep the plan of a chunk."""
        self.start[rows] = plan.start
        self.tilt[rows], self.distance[rows] = plan.tilt, plan.distance
        self.nodes[rows], self.sides[rows] = plan.nodes, plan.sides
        self.transforms[rows] = plan.transforms

    def groups(self, rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], int, int]]:
        """Yield records that share a line, with its alias distance and node count on the ladders.

        A line serves every record of its tilt that would do with fewer nodes, so that small groups
        join the next larger one.
        """
        for tilt in np.unique(self.tilt[rows]):
            of_tilt = rows[self.tilt[rows] == tilt]
            key = (self.distance[of_tilt].astype(np.int64) << 12) + self.nodes[of_tilt]
            order = np.argsort(key, kind="stable")
            cuts = np.flatnonzero(np.diff(key[order])) + 1
            joined: list[NDArray[np.int64]] = []
            parts = [of_tilt[part] for part in np.split(order, cuts)]
            for number, part in enumerate(parts):
                joined.append(part)
                if sum(p.size for p in joined) < _FEWEST and number < len(parts) - 1:
                    continue
                group = np.concatenate(joined)
                level = int(self.distance[group].max())
                stretch = DISTANCE_RATIO ** (level - self.distance[group].astype(np.float64))
                nodes = (NODE_LADDER[self.nodes[group]] * stretch).max()
                place = min(int(np.searchsorted(NODE_LADDER, nodes)), NODE_LADDER.size - 1)
                yield group, level, place
                joined = []

    def judge(
        self, rows: NDArray[np.int64], found: LineValues, line: SharedLine, tilts: Array, last: bool
    ) -> NDArray[np.bool_]:
        """Return which values are good; for the others, plan more nodes or a smaller step.

        What may lie beyond the last line of a record is part of its interval: few steps die out
        slowly.
        """
        distance = 2.0 * math.pi / line.step
        payoff = log_payoff(tilts)
        alias = np.zeros(rows.size)
        for side in (0, 1):
            column = self.sides[rows, side]
            s = np.where(column < 0, 0.0, tilts[column])
            bound = self.transforms[rows, side] - s * found.epsilon
            bound += np.where(column < 0, 0.0, payoff[column])
            bound -= found.log_delta + np.abs(s - line.tilt) * distance
            alias += np.exp(np.minimum(np.nan_to_num(bound, nan=700.0), 700.0))
        # where large losses are rare, the sum cancels: no line ends below its own rounding
        most = np.clip(3.0 * found.rounding, _BEYOND, _MOST_BEYOND)
        long_enough = found.beyond <= (TOLERABLE if last else most)
        fine_enough = alias <= _ALIAS
        more = ~long_enough | ~found.settled
        shift = np.where(fine_enough, 0, 3)
        # a node count grows by the step's share as well
        self.distance[rows] += shift
        self.nodes[rows] += np.where(more, _MORE_NODES, 0)
        self.nodes[rows] += np.where(fine_enough, 0, 2)
        self.nodes[rows] = np.minimum(self.nodes[rows], NODE_LADDER.size - 1)
        known = found.settled & np.isfinite(found.epsilon) & (found.beyond < 0.5)
        self.start[rows[known]] = found.epsilon[known]
        found.rounding[:] += found.beyond + alias
        return np.asarray(long_enough & fine_enough & found.settled)


def _store(
    solution: Solution, rows: NDArray[np.int64], found: LineValues, good: NDArray[np.bool_]
) -> None:
    solution.epsilon[rows] = found.epsilon[good]
    solution.log_delta[rows] = found.log_delta[good]
    solution.slope[rows] = found.slope[good]
    solution.error[rows] = found.rounding[good]
    solution.path[rows] = CONTOUR


def _no_loss(epsilon: Array) -> Array:
    """Return log δ of a record that never contributed: (1 − e^ε)₊."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(np.minimum(epsilon, 0.0))))


def _chunks(counts: NDArray[np.integer]) -> Iterator[tuple[slice, Array]]:
    for start in range(0, counts.shape[0], CHUNK):
        rows = slice(start, min(start + CHUNK, counts.shape[0]))
        yield rows, np.asarray(counts[rows], dtype=np.float64)


def _used(counts: NDArray[np.integer], group: NDArray[np.int64]) -> NDArray[np.bool_]:
    used = np.zeros(counts.shape[1], dtype=bool)
    for start in range(0, group.size, CHUNK):
        used |= np.asarray(counts[group[start : start + CHUNK]]).any(axis=0)
        if used.all():
            break
    return used


def tilts_for(
    table: SubsampledGaussian,
    counts: NDArray[np.integer],
    log_delta: float | None,
    epsilon: Array | None,
) -> Array:
    """Return the grid of tilts for all records, with an untilted column for their weight."""
    spread = table.spread()
    heaviest = max(float((block @ spread).max(initial=0.0)) for _, block in _chunks(counts))
    least = -40.0 if log_delta is None else log_delta
    grid = tilt_grid(spread, heaviest, least)
    if epsilon is not None and epsilon.size:
        # far out the saddle point lies at about ε over the loss's variance
        light = float(spread[spread > 0.0].min()) if (spread > 0.0).any() else 1.0
        highest = max(grid[-1], 4.0 * float(np.max(np.abs(epsilon), initial=0.0)) / light)
        grid = tilt_grid(spread, heaviest, -0.5 * (highest * math.sqrt(light) / 8.0) ** 2)
    return grid
