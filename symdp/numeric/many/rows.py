"""Many compositions of the same kinds of steps at once: a composition is a row of counts.

A table has K_b(z) of every kind of step (`kinds.py`), and a row of counts n_b times it is the
transform of a composition.  On Re z = t, with nodes z_k = t + ihk,

    δ(ε) = δ∞ + (h/2π) Re Σ_k w_k e^{Σ_b n_b K_b(z_k) − ε z_k}/(z_k(1 + z_k)),    w_0 = 1, w_k = 2,

and one line serves all rows whose saddle points lie near its tilt t.

*Plan.*  A = counts · K(t_g) at a geometric grid of tilts.  Every column is a Chernoff bound on δ
[SPA (43)], and Chernoff bounds also bound the alias terms of the trapezoidal rule: with D = 2π/h
they are below e^{−L} δ where

    D ≥ (log bound(s) + L)/|s − t|    for some s > t and for some s < t     (bound relative to δ).

*Line.*  One matrix product gives all exponents.  ε enters by e^{−εz_k} alone, so that Newton's
steps use a Taylor polynomial in ε from the same values, and turn them where ε moves farther than it
serves.  What lies beyond the last node is bounded on stretches by Π |φ_b|^{n_b}.

Rows that no line serves, as of few steps or of atoms, stay unresolved: others answer for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.numeric.answer import EXACT, ROUNDING, TOLERABLE
from symdp.numeric.elementary import Complex, log_payoff, powers_less_one
from symdp.numeric.many.kinds import Table
from symdp.numeric.step import Array
from symdp.tolerances import MASS_ROUNDED

CHUNK = 1 << 14  # rows planned at once
CONTOUR, WITHOUT_LOSS, UNRESOLVED = 0, 1, 2  # how a row was answered

_RATIO = 1.22  # of neighbouring tilts
_STRIDE = 3  # columns between the tilts of most lines
_GIVEN_UP = 1.0  # e-folds of the integrand's size that such a tilt may cost
_BELOW = 6  # columns below the saddle that are tried: fewer nodes where single large losses rule
_MOST_GIVEN_UP = 5.0  # e-folds that a lower tilt may cost
_WINDOW = 14  # columns to either side that are looked at for bounds of alias terms
_WORTH = 0.8  # of the nodes: what a lower tilt must save
_FIRST_TILT = 30.0  # to which the grid goes before any row asks for more
_MORE = 4.0  # times as far at once
_ALIAS_EFOLDS = 31.0  # alias terms are planned below e^-31 = 3e-14 of δ
_ALIAS = 3e-13  # relative to δ: what they may add
_BEYOND = 3e-13  # relative to δ: more than this, and the line is taken again with more nodes
_MOST_BEYOND = 2e-11  # relative: what may lie beyond the end of a line whose sum cancels
_NODE_EFOLDS = 110.0  # 2 × 55: nodes until a Gaussian |φ| is below e^-55, its bound below e^-34
_DISTANCE_RATIO = 1.3  # of neighbouring alias distances
_LADDER = np.asarray([int(m * 2**k) for k in range(3, 13) for m in (1.0, 1.5)])  # node counts
_FEWEST = 64  # rows for each kind of step that are worth a line of their own
_RETRIES = 7  # lines that a row may take
_SLAB = 1 << 13  # rows of a group read at once
_BLOCK = 1 << 17  # node values of one block: they stay in the cache
_ORDER = 10  # terms of the Taylor polynomial
_TRUST = 1.6  # y·(ε step) of the polynomial, y where the values have fallen to e^-4.5
_SETTLED = 2e-15  # relative size of the last Taylor terms that ends the steps
_ROUNDS = 40  # Newton steps in ε for all rows at once
_PARTLY = 0.99  # of δ that δ∞ may be: what is left has 14 digits
# ends of stretches beyond a line, in its length: how |φ|ⁿ falls there is bounded on each
_STRETCHES = np.concatenate([np.geomspace(1.0, 8.0, 37), np.geomspace(8.0, 1e4, 20)[1:]])

Integers = NDArray[np.int64]
Progress = Callable[[int, int], None]


@dataclass
class Solution:
    """ε or log δ of every row, with the relative error of δ and how it was found.

    `slope` is d log δ/dε, `error` what the spacing, the end and the rounding of a line do to δ,
    relative, and `renyi` the Chernoff bound: on ε where δ was given, else on log δ.  `path` is
    CONTOUR, WITHOUT_LOSS (proved to be no more than what is of interest) or UNRESOLVED.
    """

    epsilon: Array
    log_delta: Array
    slope: Array
    error: Array
    renyi: Array
    path: NDArray[np.uint8]


def solve_rows(
    table: Table,
    counts: NDArray[np.integer],
    log_delta: float | None,
    epsilon: Array | None = None,
    progress: Progress | None = None,
    floor: Array | None = None,
) -> Solution:
    """Return ε(δ), or log δ(ε) where no δ is given, of every row of counts.

    `floor` has a number of each row below which no answer is needed; `progress` is called with the
    number of rows done and their number.  Counts may be memory-mapped.
    """
    return _Rows(table, counts, log_delta, epsilon, progress, floor).solution


class _Rows:
    """One question about all rows."""

    def __init__(
        self,
        table: Table,
        counts: NDArray[np.integer],
        log_delta: float | None,
        epsilon: Array | None,
        progress: Progress | None,
        floor: Array | None,
    ) -> None:
        rows = counts.shape[0]
        self.table = table
        self.counts = counts
        self.log_delta = log_delta
        self.progress = progress
        self.solution = _unsolved(rows, log_delta, epsilon)
        self._fewest = _FEWEST * table.count
        self.grid = TiltGrid(table, counts, log_delta, epsilon)
        # log of what δ lacks of δ∞, the goal of a line; nan where the line would lack digits
        self.infinite = np.full(rows, -np.inf)
        goal = math.nan if log_delta is None else log_delta
        self.goal = np.full(rows, goal)
        self.start = np.zeros(rows)
        self.tilt = np.zeros(rows, dtype=np.int16)
        self.distance = np.zeros(rows, dtype=np.int16)
        self.place = np.zeros(rows, dtype=np.int16)
        self.sides = np.zeros((rows, 2), dtype=np.int16)
        self.transforms = np.zeros((rows, 2))
        for chunk, block in chunks(counts):
            self._plan_chunk(chunk, block, floor)
        waiting = np.flatnonzero(self.solution.path == UNRESOLVED)
        waiting = waiting[self.place[waiting] >= 0]
        self._attempts(waiting, progress)
        unresolved = waiting[self.solution.path[waiting] == UNRESOLVED]
        if unresolved.size and log_delta is not None:
            for first in range(0, unresolved.size, CHUNK):
                self._plan_again(unresolved[first : first + CHUNK])
            self._attempts(unresolved[self.place[unresolved] >= 0], None)

    def _plan_chunk(self, chunk: slice, block: Array, floor: Array | None) -> None:
        """Plan some rows, and answer those that need no line."""
        solution = self.solution
        table = self.table
        tilts = self.grid.tilts
        values = self.grid.transforms(block)
        has_loss = (block[:, table.has_loss] > 0.0).any(axis=1)
        is_empty = np.asarray(~has_loss)
        if (table.log_finite < 0.0).any():
            self._take_infinite(chunk, block @ np.maximum(table.log_finite, -1e300))
        payoff = log_payoff(tilts)
        if self.log_delta is not None:
            bound = (values + (payoff - self.goal[chunk, None])) / tilts
            known_bounds = np.where(np.isfinite(bound), bound, np.inf)
            best = known_bounds.min(axis=1)
            is_covered = is_empty | (best <= 0.0)
            renyi = np.where(is_covered, 0.0, best)
        else:
            falls = np.multiply.outer(solution.epsilon[chunk], tilts)
            bound = values + payoff - falls
            best = bound.min(axis=1)
            log_delta = np.logaddexp(best, self.infinite[chunk])
            renyi = np.minimum(log_delta, 0.0)
            is_covered = is_empty
            if is_empty.any():
                without_loss = _no_loss(solution.epsilon[chunk][is_empty])
                solution.log_delta[chunk][is_empty] = without_loss
                renyi = np.where(is_empty, solution.log_delta[chunk], renyi)
        self._plan_rows(chunk, values, bound, best)
        if floor is not None:
            is_below = renyi <= floor[chunk]
            if self.log_delta is None:
                is_bounded = is_below & ~is_empty
                solution.log_delta[chunk] = np.where(is_bounded, renyi, solution.log_delta[chunk])
            is_covered = is_covered | is_below
        solution.renyi[chunk] = renyi
        solution.path[chunk] = np.where(is_covered, WITHOUT_LOSS, UNRESOLVED)

    def _take_infinite(self, chunk: slice, log_finite: Array) -> None:
        """Note log δ∞ of some rows, and what a line has to find beside it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            self.infinite[chunk] = np.log(-np.expm1(log_finite))
            if self.log_delta is None:
                return
            share = np.exp(self.infinite[chunk] - self.log_delta)
            log_of_finite_share = np.log1p(-share)
            log_remaining = np.where(share < _PARTLY, log_of_finite_share, np.nan)
            self.goal[chunk] = self.log_delta + log_remaining

    def _plan_rows(self, rows: Any, values: Array, bound: Array, best: Array) -> None:
        """Choose a line and a start for rows whose bounds at all tilts are known."""
        tilts = self.grid.tilts
        is_finite = np.isfinite(bound)
        finite_count = is_finite.sum(axis=1)
        saddle = np.where(is_finite, bound, np.inf).argmin(axis=1)
        saddle = np.clip(saddle, 1, np.maximum(finite_count - 2, 1))
        t = tilts[saddle]
        index = np.arange(saddle.size)
        usable = (finite_count >= 3) & np.isfinite(best)
        curvature = _curvature(values, tilts, saddle)
        with np.errstate(invalid="ignore"):
            width = curvature + t**-2 + (1.0 + t) ** -2
            log_kernel = np.log(t * (1.0 + t))
            log_peak = 0.5 * np.log(2.0 * math.pi * width)
            front = log_kernel + log_peak
            if self.log_delta is not None:
                # where one large loss rules, the saddle point formula is far off
                log_value = values[index, saddle] - front
                start = (log_value - self.goal[rows]) / t
                start = np.clip(start, best - 4.0 / t, best)
                start = np.maximum(start, 0.0)
                epsilon = start
                height = self.goal[rows]
            else:
                epsilon = self.solution.epsilon[rows]
                saddle_point = best - log_payoff(t) - front
                start = np.minimum(best, saddle_point) - 1.0
                height = start
        usable &= np.isfinite(start) & np.isfinite(height)
        usable_height = np.where(usable, height, 0.0)
        self._choose_lines(rows, values, saddle, epsilon, usable_height)
        self.start[rows] = start
        self.place[rows] = np.where(usable, self.place[rows], -1)

    def _plan_again(self, rows: Integers) -> None:
        """Plan rows anew, from an ε that is nearly right.

        Where one large loss rules, the Chernoff bound on ε is far off, and so is the tilt that it
        suggests; the bound on δ at the right ε suggests a better one.
        """
        tilts = self.grid.tilts
        counts = np.asarray(self.counts[rows], dtype=np.float64)
        values = self.grid.transforms(counts)
        start = self.start[rows]
        bound = values + log_payoff(tilts) - np.multiply.outer(start, tilts)
        finite_count = np.isfinite(bound).sum(axis=1)
        last_usable = np.maximum(finite_count - 2, 1)
        saddle = np.clip(bound.argmin(axis=1), 1, last_usable)
        self._choose_lines(rows, values, saddle, start, self.goal[rows])

    def _choose_lines(
        self,
        rows: Any,
        values: Array,
        saddle: Integers,
        epsilon: Array,
        height: Array,
    ) -> None:
        """Choose tilt, alias distance and node count, rows of one tilt together."""
        tilts = self.grid.tilts
        payoff = log_payoff(tilts)
        index = np.arange(saddle.size)
        near = self._tilt_of_many(values, saddle, epsilon)
        tilt = near.copy()
        sides = np.zeros((saddle.size, 2), dtype=np.int64)
        needed = np.full(saddle.size, np.inf)
        order = np.argsort(near, kind="stable")
        changes = np.flatnonzero(np.diff(near[order])) + 1
        for group in np.split(order, changes):
            if not group.size:
                continue
            column = int(near[group[0]])
            first = max(column - _BELOW - _WINDOW, 0)
            window = slice(first, column + _WINDOW + 1)
            # log of Chernoff bound over δ, and e-folds that alias terms must lose
            log_bound = values[group, window] + payoff[window]
            bound = log_bound - height[group, None]
            bound -= epsilon[group, None] * tilts[window]
            centre = column - first
            for own_column in range(centre, centre - _BELOW - 1, -_STRIDE):
                if own_column < 1:
                    break
                distance, up, down = _alias_distances(
                    bound, tilts[window], own_column, height[group]
                )
                given_up = bound[:, own_column] - bound[:, centre]
                is_allowed = given_up < _MOST_GIVEN_UP
                is_better = is_allowed & (distance < _WORTH * needed[group])
                chosen = group[is_better]
                needed[chosen] = distance[is_better]
                tilt[chosen] = own_column + first
                sides[chosen, 0] = up[is_better] + first
                down_column = np.where(down < 0, -1, down + first)
                sides[chosen, 1] = down_column[is_better]
        curvature = _curvature(values, tilts, tilt)
        usable = np.isfinite(needed) & np.isfinite(curvature)
        needed = np.where(usable, np.maximum(needed, 1e-12), 1.0)
        curvature = np.where(usable, curvature, 1.0)
        level = np.ceil(np.log(needed) / math.log(_DISTANCE_RATIO))
        ladder_index = _nodes_needed(_DISTANCE_RATIO**level, curvature, tilts[tilt])
        above = values[index, sides[:, 0]]
        at_lower = values[index, sides[:, 1]]
        below = np.where(sides[:, 1] < 0, 0.0, at_lower)
        self.tilt[rows] = tilt
        self.distance[rows] = level
        self.sides[rows] = sides
        self.place[rows] = np.where(usable, ladder_index, -1)
        self.transforms[rows] = np.stack([above, below], axis=1)

    def _tilt_of_many(self, values: Array, saddle: Integers, epsilon: Array) -> Integers:
        """Return the column of a tilt that many lines have, or the saddle where that costs much."""
        tilts = self.grid.tilts
        index = np.arange(saddle.size)
        near = _STRIDE * ((saddle + _STRIDE // 2) // _STRIDE)
        near = np.clip(near, 1, tilts.size - 2)
        with np.errstate(invalid="ignore"):
            rise = values[index, near] - values[index, saddle]
            given_up = rise + log_payoff(tilts[near])
            fall = epsilon * (tilts[near] - tilts[saddle])
            given_up -= log_payoff(tilts[saddle]) + fall
            given_up += 0.0 * values[index, near + 1]  # infinite where no K is known above
            return np.where(given_up < _GIVEN_UP, near, saddle)

    def _attempts(self, waiting: Integers, progress: Progress | None) -> None:
        """Take lines, and longer ones for the rows that need them, until all are served."""
        total = waiting.size
        done = 0
        for attempt in range(_RETRIES):
            failed: list[Integers] = [np.empty(0, dtype=np.int64)]
            for group, level, ladder_index in self._groups(waiting):
                spacing = 2.0 * math.pi / _DISTANCE_RATIO**level
                tilt = float(self.grid.tilts[self.tilt[group[0]]])
                nodes = int(_LADDER[ladder_index])
                used = used_kinds(self.counts, group)
                try:
                    line = _RowLine(self.table, tilt, spacing, nodes, used)
                except AccuracyError:  # too long, or no law so far out: its rows stay UNRESOLVED
                    continue
                for first in range(0, group.size, _SLAB):
                    rows = group[first : first + _SLAB]
                    solved = self._solved(rows, line)
                    is_last = attempt == _RETRIES - 1
                    good, again = self._judged(rows, solved, line, is_last)
                    self._keep_solution(rows[good], solved, good)
                    failed.append(rows[again])
                    done += int(good.sum())
                    if progress is not None and attempt == 0:
                        progress(done, total)
            waiting = np.concatenate(failed)
            if not waiting.size:
                break

    def _solved(self, rows: Integers, line: _RowLine) -> _LineSolution:
        """Return what a line gives for some rows."""
        block = np.asarray(self.counts[rows], dtype=np.float64)
        if self.log_delta is None:
            return line.solve(block, self.solution.epsilon[rows], None)
        return line.solve(block, self.start[rows], self.goal[rows])

    def _groups(self, rows: Integers) -> Iterator[tuple[Integers, int, int]]:
        """Yield rows that share a line, with its alias distance and node count on the ladders.

        A line serves every row of its tilt that would do with fewer nodes, so that small groups
        join the next larger one.
        """
        for tilt in np.unique(self.tilt[rows]):
            of_tilt = rows[self.tilt[rows] == tilt]
            level = self.distance[of_tilt].astype(np.int64)
            key = (level << 12) + self.place[of_tilt]
            order = np.argsort(key, kind="stable")
            changes = np.flatnonzero(np.diff(key[order])) + 1
            parts = np.split(of_tilt[order], changes)
            joined: list[Integers] = []
            for number, part in enumerate(parts):
                joined.append(part)
                size = sum(joined_part.size for joined_part in joined)
                is_last = number == len(parts) - 1
                if size < self._fewest and not is_last:
                    continue
                group = np.concatenate(joined)
                joined = []
                levels = self.distance[group]
                level = int(levels.max())
                stretch = _DISTANCE_RATIO ** (level - levels.astype(np.float64))
                nodes = (_LADDER[self.place[group]] * stretch).max()
                ladder_index = int(np.searchsorted(_LADDER, nodes))
                yield group, level, min(ladder_index, _LADDER.size - 1)

    def _judged(
        self, rows: Integers, solved: _LineSolution, line: _RowLine, last: bool
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which values are good, and which are worth another line: more nodes, finer steps.

        What may lie beyond a row's last line is part of its interval: few steps die out slowly.
        """
        distance = 2.0 * math.pi / line.step
        alias = self._alias(rows, solved, line)
        # no longer line would serve what has too many nodes already
        is_longest = line.nodes == _LADDER[-1]
        loose = (last or is_longest) | solved.is_slow
        most_beyond = np.where(loose, TOLERABLE, _most_beyond(solved.rounding))
        is_long_enough = solved.beyond <= most_beyond
        is_fine = alias <= _ALIAS
        is_known = solved.settled & np.isfinite(solved.epsilon)
        usable = is_known & (solved.beyond < 0.5)
        self.start[rows[usable]] = solved.epsilon[usable]
        solved.rounding[:] += solved.beyond + alias
        is_exact = solved.rounding <= EXACT
        good = np.asarray(is_long_enough & is_fine & solved.settled & is_exact)
        wanted = np.where(solved.settled, solved.wanted, 2.0 * line.nodes)
        is_short = wanted <= _LADDER[-1]
        again = np.asarray(~good & is_short & (not is_longest))
        next_nodes = np.where(again, np.maximum(wanted, line.nodes), 0.0)
        ladder_index = np.searchsorted(_LADDER, next_nodes)
        # a node count grows by the step's share as well
        ladder_index = ladder_index + np.where(is_fine, 0, 2)
        self.place[rows] = np.minimum(ladder_index, _LADDER.size - 1)
        level = round(math.log(distance) / math.log(_DISTANCE_RATIO))
        self.distance[rows] = level + np.where(is_fine, 0, 3)
        return good, again

    def _alias(self, rows: Integers, solved: _LineSolution, line: _RowLine) -> Array:
        """Return what the other terms of Poisson's sum may add, relative to δ."""
        tilts = self.grid.tilts
        payoff = log_payoff(tilts)
        distance = 2.0 * math.pi / line.step
        alias = np.zeros(rows.size)
        for side in (0, 1):
            column = self.sides[rows, side]
            is_at_zero = column < 0
            s = np.where(is_at_zero, 0.0, tilts[column])
            bound = self.transforms[rows, side] - s * solved.epsilon
            bound += np.where(is_at_zero, 0.0, payoff[column])
            bound -= solved.log_delta + np.abs(s - line.tilt) * distance
            bound = np.nan_to_num(bound, nan=700.0)
            alias += np.exp(np.minimum(bound, 700.0))
        return alias

    def _keep_solution(
        self, rows: Integers, solved: _LineSolution, good: NDArray[np.bool_]
    ) -> None:
        """Keep what a line gave, δ∞ included."""
        solution = self.solution
        finite = solved.log_delta[good]
        solution.epsilon[rows] = solved.epsilon[good]
        if self.log_delta is None:
            solution.log_delta[rows] = np.logaddexp(finite, self.infinite[rows])
        share = np.exp(finite - solution.log_delta[rows])  # of δ
        solution.slope[rows] = solved.slope[good] * share
        error = solved.rounding[good] * share
        solution.error[rows] = error + MASS_ROUNDED * (1.0 - share)
        solution.path[rows] = CONTOUR


def _unsolved(rows: int, log_delta: float | None, epsilon: Array | None) -> Solution:
    """Return what is known of rows before any of them is solved."""
    known_epsilon = np.zeros(rows)
    if epsilon is not None:
        known_epsilon = np.asarray(epsilon, dtype=np.float64).copy()
    known_log_delta = -math.inf if log_delta is None else log_delta
    return Solution(
        epsilon=known_epsilon,
        log_delta=np.full(rows, known_log_delta),
        slope=np.full(rows, np.nan),
        error=np.zeros(rows),
        renyi=np.zeros(rows),
        path=np.full(rows, UNRESOLVED, dtype=np.uint8),
    )


def _alias_distances(
    bound: Array, tilts: Array, column: int, height: Array
) -> tuple[Array, Integers, Integers]:
    """Return how far apart alias terms must lie for a line at a column, and the columns that tell.

    Of the lower columns that is −1 where the bound at s = 0, δ ≤ 1, tells more.
    """
    t = tilts[column]
    index = np.arange(bound.shape[0])
    farther_right = tilts[column + 1 :] - t
    farther_left = t - tilts[:column]
    above = (bound[:, column + 1 :] + _ALIAS_EFOLDS) / farther_right
    below = (bound[:, :column] + _ALIAS_EFOLDS) / farther_left
    up = above.argmin(axis=1)
    down = below.argmin(axis=1)
    at_zero = (_ALIAS_EFOLDS - height) / t
    by_low = below[index, down]
    of_lower = np.minimum(by_low, at_zero)
    distance = np.maximum(above[index, up], of_lower)
    up_column = up + column + 1
    down_column = np.where(by_low <= at_zero, down, -1)
    return distance, up_column, down_column


class TiltGrid:
    """K of every kind at tilts that reach from the heaviest row's saddle point to the lightest's.

    No kind is evaluated farther out than some row with it needs; beyond, its K counts as infinite.
    """

    def __init__(
        self,
        table: Table,
        counts: NDArray[np.integer],
        log_delta: float | None,
        epsilon: Array | None,
    ) -> None:
        self._table = table
        low, high = self._least_and_largest_tilt(counts, log_delta, epsilon)
        log_range = math.log(high / low)
        columns = math.ceil(log_range / math.log(_RATIO)) + 1
        exponents = np.arange(float(columns))
        all_tilts: Array = low * np.power(_RATIO, exponents)
        self.tilts = all_tilts[:0]
        self._columns = np.empty((0, table.count))
        used = used_kinds(counts, slice(None)) & table.has_loss
        end = _FIRST_TILT
        while used.any():
            largest = self.tilts[-1:].max(initial=0.0)
            is_next = (all_tilts <= end) & (all_tilts > largest)
            next_tilts = all_tilts[is_next]
            if next_tilts.size:
                self._add_tilts(next_tilts, used)
            if self.tilts.size == all_tilts.size:
                break
            end *= _MORE
            used = self._kinds_still_falling(counts, log_delta, epsilon) & used
        if not self.tilts.size:
            self.tilts = all_tilts[:3]
            self._columns = np.zeros((3, table.count))
        is_finite = np.isfinite(self._columns)
        self._finite = np.where(is_finite, self._columns, 0.0)
        self._is_finite = is_finite.all()

    def _least_and_largest_tilt(
        self,
        counts: NDArray[np.integer],
        log_delta: float | None,
        epsilon: Array | None,
    ) -> tuple[float, float]:
        """Return the least and the largest tilt that may be needed."""
        variance = self._table.variance
        variances = [(block @ variance).max(initial=0.0) for _, block in chunks(counts)]
        heaviest = max(map(float, variances))
        is_lossy = self._table.has_loss & (variance > 0.0)
        positive = variance[is_lossy]
        light = math.sqrt(float(positive.min(initial=1.0)))
        low = min(0.02, 0.05 / math.sqrt(max(heaviest, 1.0)))
        efolds = 40.0
        if log_delta is not None:
            efolds = -log_delta
        deviations = math.sqrt(2.0 * max(efolds, 1.0))
        high = max(200.0, 8.0 * deviations / light)
        if epsilon is not None and epsilon.size:
            # far out the saddle point lies at about ε over the loss's variance
            farthest = float(np.abs(epsilon).max())
            high = max(high, 4.0 * farthest / (light * light))
        return low, high

    def _add_tilts(self, tilts: Array, used: NDArray[np.bool_]) -> None:
        zeros = np.zeros((tilts.size, self._table.count))
        fresh = np.where(self._table.has_loss, np.inf, zeros)
        transform = self._table.transform(tilts, used)
        fresh[:, used] = transform[:, used]
        self.tilts = np.concatenate([self.tilts, tilts])
        self._columns = np.concatenate([self._columns, fresh])

    def _kinds_still_falling(
        self,
        counts: NDArray[np.integer],
        log_delta: float | None,
        epsilon: Array | None,
    ) -> NDArray[np.bool_]:
        """Return the kinds of rows whose bounds are still falling near the end of the grid."""
        last = self.tilts.size - 1
        columns = [max(last - _WINDOW // 2, 0), last]
        tilts = self.tilts[columns]
        values = self._columns[columns]
        finite = np.where(np.isfinite(values), values, 0.0)
        is_infinite = (~np.isfinite(values[1])).astype(np.float64)
        used = np.zeros(self._table.count, dtype=bool)
        for chunk, block in chunks(counts):
            bound = block @ finite.T + log_payoff(tilts)
            has_end = block @ is_infinite > 0.0
            if log_delta is not None:
                bound = (bound - log_delta) / tilts
            else:
                assert epsilon is not None
                bound -= np.multiply.outer(epsilon[chunk], tilts)
            falls = bound[:, 1] <= bound[:, 0]
            is_falling = falls & ~has_end
            if is_falling.any():
                used |= (block[is_falling] > 0.0).any(axis=0)
        return used

    def transforms(self, block: Array) -> Array:
        """Return A = counts · K, shape (rows, tilts), infinite where a kind has no K."""
        values = _product(block, self._finite.T)
        if not self._is_finite:
            is_finite = np.isfinite(self._columns)
            columns = np.flatnonzero(~is_finite.all(axis=1))
            lacking = (~is_finite[columns]).astype(np.float64)
            is_infinite = block @ lacking.T > 0.0
            finite_part = values[:, columns]
            values[:, columns] = np.where(is_infinite, np.inf, finite_part)
        return np.asarray(values)


@dataclass(frozen=True)
class _LineSolution:
    """What a line gave for its rows: the solution, d log δ/dε, and relative errors of δ.

    `beyond` bounds what lies beyond the last node, and `wanted` nodes would leave little enough
    there, or as little as any line does where it `is_slow`; `settled` tells whether the steps in ε
    came to rest.
    """

    epsilon: Array
    log_delta: Array
    slope: Array
    beyond: Array
    wanted: Array
    is_slow: NDArray[np.bool_]
    rounding: Array
    settled: NDArray[np.bool_]


class _RowLine:
    """Node values of all kinds of steps on one line."""

    def __init__(
        self,
        table: Table,
        tilt: float,
        step: float,
        nodes: int,
        used: NDArray[np.bool_],
    ) -> None:
        self.tilt = tilt
        self.step = step
        self.nodes = nodes
        self.front = math.log(step / (2.0 * math.pi))  # of δ over the sum, but for e^{K(t) − εt}
        self._used = np.flatnonzero(used)
        values = table.line(tilt, step, nodes, used)[self._used]
        self.exponents: Array = np.concatenate([values.real, values.imag], axis=1)
        self.error = table.rounding(tilt, step * nodes, used)[self._used]
        y: Array = np.arange(nodes, dtype=np.float64) * step
        z = tilt + 1j * y
        mirrored = np.where(np.arange(nodes) == 0, 1.0, 2.0)
        weight: Any = mirrored / (z * (1.0 + z))
        weight_size = np.abs(weight)
        self.sizes = np.stack([weight_size, weight_size * y], axis=1)
        self.edges = step * nodes * _STRETCHES
        self.bounds = table.log_bounds(tilt, self.edges, used)[self._used]
        # nodes of each stretch, each at most as large as the first; Σ 1/y² beyond the last one
        between = np.diff(self.edges) / step
        lengths = np.append(between, self.edges[-1] / step)
        stretch_nodes = lengths + 1.0
        size_of_z = np.hypot(tilt, self.edges)
        inverse_kernel = size_of_z * np.hypot(1.0 + tilt, self.edges)
        self.left_out = 2.0 * stretch_nodes / inverse_kernel
        # Σ_k v_k w_k (−iy_k)^m/m!, real parts, as one real product with (Re v, Im v) side by side
        self.scale = float(y[-1])
        moments: Any = np.empty((nodes, 2, _ORDER))
        terms: Any = weight.copy()
        for m in range(_ORDER):
            moments[:, 0, m] = terms.real
            moments[:, 1, m] = -terms.imag
            turn = -1j * y / self.scale
            terms = terms * turn / (m + 1)
        self.moments: Array = moments.reshape(2 * nodes, _ORDER)

    def solve(self, counts: Array, epsilon: Array, goal: Array | None) -> _LineSolution:
        """Return ε at a given log δ of each row, or log δ at given ε where that is None."""
        size = max(16, _BLOCK // self.nodes)
        counts = counts[:, self._used]
        parts = []
        for first in range(0, counts.shape[0], size):
            block = slice(first, first + size)
            block_goal = None if goal is None else goal[block]
            parts.append(self._solve_block(counts[block], epsilon[block], block_goal))
        columns = []
        for field in fields(_LineSolution):
            values = [getattr(part, field.name) for part in parts]
            columns.append(np.concatenate(values))
        return _LineSolution(*columns)

    def _node_values(self, counts: Array, epsilon: Array) -> tuple[Complex, Array, Array]:
        """Return node values over their size at the tilt, that size's log, and the moduli."""
        exponents = _product(counts, self.exponents)
        transform = exponents[:, 0].copy()
        modulus = exponents[:, : self.nodes]
        modulus -= transform[:, None]
        np.exp(modulus, out=modulus)
        half = exponents[:, self.nodes :]
        y = self.step * np.arange(self.nodes)
        half -= np.multiply.outer(epsilon, y)
        half *= 0.5
        # cos x = 2/(1 + u²) − 1 and sin x = 2u/(1 + u²), u = tan(x/2), as in `oscillation_sum`.
        tangent = np.tan(half, out=half)
        share = 2.0 / (1.0 + tangent * tangent)
        tangent *= share
        share -= 1.0
        shape = (counts.shape[0], self.nodes)
        values: Any = np.empty(shape, dtype=np.complex128)
        np.multiply(modulus, share, out=values.real)
        np.multiply(modulus, tangent, out=values.imag)
        return values, transform, modulus

    def _solve_block(self, counts: Array, epsilon: Array, goal: Array | None) -> _LineSolution:
        values, transform, modulus = self._node_values(counts, epsilon)
        size, turned = _product(modulus, self.sizes).T
        # the width of the values: where their modulus is e^-4.5
        is_high = modulus > math.exp(-4.5)
        fallen = np.maximum(is_high.sum(axis=1), 2)
        reach = _TRUST / (fallen * self.step)
        epsilon = epsilon.copy()
        count = epsilon.size
        total = np.full(count, np.nan)
        rate = np.full(count, np.nan)
        settled = np.zeros(count, dtype=bool)
        waiting = np.arange(count)
        rounds = 1 if goal is None else _ROUNDS
        for _ in range(rounds):
            moments = _product(values.view(np.float64), self.moments)
            offset = transform[waiting] - self.tilt * epsilon[waiting] + self.front
            if goal is None:
                total = moments[:, 0]
                rate = moments[:, 1] * self.scale
                settled = total > 0.0
                break
            excess = offset - goal[waiting]
            move, ready, total[waiting], rate[waiting] = self._epsilon_step(
                moments, excess, reach[waiting], epsilon[waiting]
            )
            epsilon[waiting] += move
            settled[waiting[ready]] = True
            unsettled = np.flatnonzero(~ready)
            waiting = waiting[unsettled]
            if not waiting.size:
                break
            turn = powers_less_one(-self.step * move[unsettled], self.nodes)
            turn += 1.0
            if unsettled.size < values.shape[0]:
                values = values[unsettled]
            values *= turn
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_front = transform - self.tilt * epsilon + self.front
            log_delta = log_front + np.log(total)
            slope = rate / total - self.tilt
            tilted_epsilon = np.abs(self.tilt * epsilon)
            step_counts = counts.sum(1)
            drift = 8.0 + np.abs(transform) + tilted_epsilon + np.sqrt(step_counts)
            of_exponent = 2.0 * ROUNDING * drift + counts @ self.error
            rounding = of_exponent * size / total
            rounding += 2.0 * ROUNDING * np.abs(epsilon) * turned / total
            left_out = self._left_out(counts) / total[:, None]
        little = left_out <= _most_beyond(rounding)[:, None]
        wanted = self._nodes_until(little)
        is_slow = wanted > _LADDER[-1]
        tolerable = self._nodes_until(left_out <= TOLERABLE)
        wanted = np.where(is_slow, tolerable, wanted)
        return _LineSolution(
            epsilon=epsilon,
            log_delta=log_delta,
            slope=slope,
            beyond=left_out[:, 0],
            wanted=wanted,
            is_slow=is_slow,
            rounding=rounding,
            settled=settled,
        )

    def _left_out(self, counts: Array) -> Array:
        """Return what each stretch beyond the line holds, and all those after it."""
        log_bound = np.minimum(_product(counts, self.bounds), 0.0)
        of_stretch = np.exp(log_bound) * self.left_out
        from_last = np.cumsum(of_stretch[:, ::-1], axis=1)
        return np.asarray(from_last[:, ::-1])

    def _nodes_until(self, little: NDArray[np.bool_]) -> Array:
        """Return to which node each row's line has to go until little is left."""
        nodes = self.edges[little.argmax(axis=1)] / self.step
        return np.where(little.any(axis=1), nodes, np.inf)

    def _epsilon_step(
        self, moments: Array, excess: Array, reach: Array, epsilon: Array
    ) -> tuple[Array, NDArray[np.bool_], Array, Array]:
        """Return the step in ε that the Taylor polynomials ask for, and whether it is the last.

        `moments` are Taylor coefficients of the sum without e^{−td}, in d·scale; `excess` is the
        log of the front factor over the wanted δ, and no step is longer than `reach`, a plain
        Newton step beyond it no longer than a third of ε.
        """
        d = np.zeros(excess.size)
        settled_step = 1e-15 * (np.abs(epsilon) + reach)
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(8):
                total, rate = _polynomials_and_slopes(moments, d * self.scale)
                height = excess - self.tilt * d + np.log(total)
                slope = rate * self.scale / total - self.tilt
                move = -height / slope
                # the sum cancelled, or the slope has the wrong sign: come from above
                is_lost = ~np.isfinite(move)
                move = np.where(is_lost, 0.5 * reach, move)
                d = np.clip(d + move, -reach, reach)
                if (np.abs(move) <= settled_step).all():
                    break
            total, rate = _polynomials_and_slopes(moments, d * self.scale)
            x = np.abs(d * self.scale)
            last_size = np.abs(moments[:, -1])
            next_size = np.abs(moments[:, -2])
            left_out = last_size * x ** (_ORDER - 1)
            left_out += next_size * x ** (_ORDER - 2)
            is_within = np.abs(d) < reach
            is_inside = is_within & ~is_lost & (total > 0.0)
            ready = is_inside & (left_out <= _SETTLED * total)
            relative_rate = moments[:, 1] * self.scale / moments[:, 0]
            first_slope = relative_rate - self.tilt
            first_height = excess + np.log(moments[:, 0])
            newton = -first_height / first_slope
            longest = np.maximum(np.abs(epsilon) / 3.0, reach)
            is_long = np.abs(newton) > reach
            is_far = ~is_inside & (first_slope < 0.0) & is_long
            shortened = np.clip(newton, -longest, longest)
            d = np.where(is_far, shortened, d)
        return d, ready, total, rate * self.scale


def _product(rows: Array, matrix: Array) -> Array:
    """Return `rows @ matrix`, so few rows at a time that BLAS wakes no other thread for them."""
    count = max(1, _BLOCK // matrix.size)
    last = rows.shape[0] // count * count
    stacked = rows[:last].reshape(-1, count, rows.shape[1]) @ matrix
    return np.concatenate([stacked.reshape(last, matrix.shape[1]), rows[last:] @ matrix])


def _most_beyond(rounding: Array) -> Array:
    """Return what may lie beyond a line: where a sum cancels, none ends below its own rounding."""
    return np.clip(3.0 * rounding, _BEYOND, _MOST_BEYOND)


def _polynomials_and_slopes(coefficients: Array, x: Array) -> tuple[Array, Array]:
    """Return a polynomial and its derivative, one for each row."""
    value = coefficients[:, -1].copy()
    slope = np.zeros_like(value)
    for m in range(coefficients.shape[1] - 2, -1, -1):
        slope = slope * x + value
        value = value * x + coefficients[:, m]
    return value, slope


def _curvature(values: Array, tilts: Array, column: Integers) -> Array:
    """Return K″ at columns by second differences: good to a tenth, which is all that is needed."""
    rows = np.arange(column.size)
    low = values[rows, column - 1]
    centre = values[rows, column]
    high = values[rows, column + 1]
    t_low = tilts[column - 1]
    t = tilts[column]
    t_high = tilts[column + 1]
    with np.errstate(invalid="ignore"):
        left_slope = (centre - low) / (t - t_low)
        rise = (high - centre) / (t_high - t) - left_slope
    return np.maximum(2.0 * rise / (t_high - t_low), 1e-300)


def _nodes_needed(distance: Array, curvature: Array, tilt: Array) -> Integers:
    """Return the place on the ladder of node counts at which a Gaussian |φ| has died out."""
    reach = np.sqrt(_NODE_EFOLDS / curvature)
    # the kernel 1/(z(1+z)) falls as well, where the tilt is small beside the reach
    gain = np.log1p((reach / tilt) ** 2)
    reach = np.sqrt(np.maximum(_NODE_EFOLDS - gain, 16.0) / curvature)
    wanted = distance * reach / (2.0 * math.pi) + 3.0
    return np.minimum(np.searchsorted(_LADDER, wanted), _LADDER.size - 1)


def _no_loss(epsilon: Array) -> Array:
    """Return log δ of a row without loss: (1 − e^ε)₊."""
    with np.errstate(divide="ignore"):
        loss = np.expm1(np.minimum(epsilon, 0.0))
        return np.asarray(np.log(-loss))


def chunks(counts: NDArray[np.integer]) -> Iterator[tuple[slice, Array]]:
    """Yield rows of counts as doubles, some at a time."""
    for start in range(0, counts.shape[0], CHUNK):
        rows = slice(start, min(start + CHUNK, counts.shape[0]))
        yield rows, np.asarray(counts[rows], dtype=np.float64)


def used_kinds(counts: NDArray[np.integer], rows: Any) -> NDArray[np.bool_]:
    """Return which kinds of steps some of the rows have."""
    used = np.zeros(counts.shape[1], dtype=bool)
    numbers = np.arange(counts.shape[0])[rows]
    for start in range(0, numbers.size, CHUNK):
        block = counts[numbers[start : start + CHUNK]]
        used |= np.asarray(block).any(axis=0)
        if used.all():
            break
    return used
