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
from symdp.numeric.nodes import MASS_ROUNDED
from symdp.numeric.step import Array

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
_BLOCK = 1 << 18  # node values of one block: they stay in the cache
_ORDER = 10  # terms of the Taylor polynomial
_TRUST = 1.6  # y·(ε step) of the polynomial, y where the values have fallen to e^-4.5
_SETTLED = 2e-15  # relative size of the last Taylor terms that ends the steps
_ROUNDS = 40  # Newton steps in ε for all rows at once
_PARTLY = 0.99  # of δ that δ∞ may be: what is left has 14 digits
# ends of stretches beyond a line, in its length: how |φ|ⁿ falls there is bounded on each
_STRETCHES = np.concatenate([np.geomspace(1.0, 2.0, 13), np.geomspace(2.0, 1e4, 24)[1:]])

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
        self.table, self.counts, self.log_delta, self.progress = table, counts, log_delta, progress
        self.solution = Solution(
            np.zeros(rows) if epsilon is None else np.asarray(epsilon, dtype=np.float64).copy(),
            np.full(rows, -np.inf if log_delta is None else log_delta),
            np.full(rows, np.nan),
            np.zeros(rows),
            np.zeros(rows),
            np.full(rows, UNRESOLVED, dtype=np.uint8),
        )
        self._fewest = _FEWEST * table.count
        self.grid = TiltGrid(table, counts, log_delta, epsilon)
        # log of what δ lacks of δ∞, the goal of a line; nan where the line would lack digits
        self.infinite = np.full(rows, -np.inf)
        self.goal = np.full(rows, np.nan if log_delta is None else log_delta)
        self.start = np.zeros(rows)
        self.tilt, self.distance, self.place = (np.zeros(rows, dtype=np.int16) for _ in range(3))
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
        solution, table, tilts = self.solution, self.table, self.grid.tilts
        values = self.grid.transforms(block)
        empty = np.asarray(~(block[:, table.has_loss] > 0.0).any(axis=1))
        if (table.log_finite < 0.0).any():
            self._take_infinite(chunk, block @ np.maximum(table.log_finite, -1e300))
        payoff = log_payoff(tilts)
        if self.log_delta is not None:
            bound = (values + (payoff - self.goal[chunk, None])) / tilts
            best = np.where(np.isfinite(bound), bound, np.inf).min(axis=1)
            covered = empty | (best <= 0.0)
            renyi = np.where(covered, 0.0, best)
        else:
            bound = values + payoff - np.multiply.outer(solution.epsilon[chunk], tilts)
            best = bound.min(axis=1)
            renyi = np.minimum(np.logaddexp(best, self.infinite[chunk]), 0.0)
            covered = empty
            if empty.any():
                solution.log_delta[chunk][empty] = _no_loss(solution.epsilon[chunk][empty])
                renyi = np.where(empty, solution.log_delta[chunk], renyi)
        self._plan(chunk, values, bound, best)
        if floor is not None:
            below = renyi <= floor[chunk]
            if self.log_delta is None:
                kept = np.where(below & ~empty, renyi, solution.log_delta[chunk])
                solution.log_delta[chunk] = kept
            covered = covered | below
        solution.renyi[chunk] = renyi
        solution.path[chunk] = np.where(covered, WITHOUT_LOSS, UNRESOLVED)

    def _take_infinite(self, chunk: slice, log_finite: Array) -> None:
        """Note log δ∞ of some rows, and what a line has to find beside it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            self.infinite[chunk] = np.log(-np.expm1(log_finite))
            if self.log_delta is not None:
                share = np.exp(self.infinite[chunk] - self.log_delta)
                left = np.where(share < _PARTLY, np.log1p(-share), np.nan)
                self.goal[chunk] = self.log_delta + left

    def _plan(self, rows: Any, values: Array, bound: Array, best: Array) -> None:
        """Choose a line and a start for rows whose bounds at all tilts are known."""
        tilts = self.grid.tilts
        finite = np.isfinite(bound).sum(axis=1)
        saddle = np.where(np.isfinite(bound), bound, np.inf).argmin(axis=1)
        saddle = np.clip(saddle, 1, np.maximum(finite - 2, 1))
        t, index = tilts[saddle], np.arange(saddle.size)
        usable = (finite >= 3) & np.isfinite(best)
        curvature = _curvature(values, tilts, saddle)
        with np.errstate(invalid="ignore"):
            front = np.log(t * (1.0 + t)) + 0.5 * np.log(
                2.0 * math.pi * (curvature + t**-2 + (1.0 + t) ** -2)
            )
            if self.log_delta is not None:
                # where one large loss rules, the saddle point formula is far off
                start = (values[index, saddle] - front - self.goal[rows]) / t
                start = np.maximum(np.clip(start, best - 4.0 / t, best), 0.0)
                epsilon, height = start, self.goal[rows]
            else:
                epsilon = self.solution.epsilon[rows]
                start = np.minimum(best, best - log_payoff(t) - front) - 1.0
                height = start
        usable &= np.isfinite(start) & np.isfinite(height)
        self._lines(rows, values, saddle, epsilon, np.where(usable, height, 0.0))
        self.start[rows] = start
        self.place[rows] = np.where(usable, self.place[rows], -1)

    def _plan_again(self, rows: Integers) -> None:
        """Plan rows anew, from an ε that is nearly right.

        Where one large loss rules, the Chernoff bound on ε is far off, and so is the tilt that it
        suggests; the bound on δ at the right ε suggests a better one.
        """
        tilts = self.grid.tilts
        values = self.grid.transforms(np.asarray(self.counts[rows], dtype=np.float64))
        start = self.start[rows]
        bound = values + log_payoff(tilts) - np.multiply.outer(start, tilts)
        finite = np.isfinite(bound).sum(axis=1)
        saddle = np.clip(bound.argmin(axis=1), 1, np.maximum(finite - 2, 1))
        self._lines(rows, values, saddle, start, self.goal[rows])

    def _lines(
        self, rows: Any, values: Array, saddle: Integers, epsilon: Array, height: Array
    ) -> None:
        """Choose tilt, alias distance and node count, rows of one tilt together."""
        tilts = self.grid.tilts
        near, every_row = _STRIDE * ((saddle + _STRIDE // 2) // _STRIDE), np.arange(saddle.size)
        near = np.clip(near, 1, tilts.size - 2)
        with np.errstate(invalid="ignore"):
            given_up = values[every_row, near] - values[every_row, saddle] + log_payoff(tilts[near])
            given_up -= log_payoff(tilts[saddle]) + epsilon * (tilts[near] - tilts[saddle])
            given_up += 0.0 * values[every_row, near + 1]  # infinite where no K is known above
            near = np.where(given_up < _GIVEN_UP, near, saddle)
        tilt, sides = near.copy(), np.zeros((saddle.size, 2), dtype=np.int64)
        needed = np.full(saddle.size, np.inf)
        payoff = log_payoff(tilts)
        order = np.argsort(near, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(near[order])) + 1):
            if not group.size:
                continue
            column = int(near[group[0]])
            first, last = max(column - _BELOW - _WINDOW, 0), column + _WINDOW + 1
            tilts_above_zero = tilts[first:last]
            # log of Chernoff bound over δ, and e-folds that alias terms must lose
            bound = values[group, first:last] + payoff[first:last] - height[group, None]
            bound -= epsilon[group, None] * tilts_above_zero
            for at in range(column - first, column - first - _BELOW - 1, -_STRIDE):
                if at < 1:
                    break
                t, index = tilts_above_zero[at], np.arange(group.size)
                above = (bound[:, at + 1 :] + _ALIAS_EFOLDS) / (tilts_above_zero[at + 1 :] - t)
                below = (bound[:, :at] + _ALIAS_EFOLDS) / (t - tilts_above_zero[:at])
                up, down = above.argmin(axis=1), below.argmin(axis=1)
                at_zero = (_ALIAS_EFOLDS - height[group]) / t  # δ ≤ 1: the bound at s = 0
                by_low = below[index, down]
                distance = np.maximum(above[index, up], np.minimum(by_low, at_zero))
                allowed = bound[:, at] - bound[:, column - first] < _MOST_GIVEN_UP
                better = allowed & (distance < _WORTH * needed[group])
                chosen = group[better]
                needed[chosen] = distance[better]
                tilt[chosen] = at + first
                sides[chosen, 0] = up[better] + at + 1 + first
                sides[chosen, 1] = np.where(by_low <= at_zero, down + first, -1)[better]
        curvature = _curvature(values, tilts, tilt)
        usable = np.isfinite(needed) & np.isfinite(curvature)
        needed = np.where(usable, np.maximum(needed, 1e-12), 1.0)
        level = np.ceil(np.log(needed) / math.log(_DISTANCE_RATIO))
        ladder_index = _nodes_needed(
            _DISTANCE_RATIO**level, np.where(usable, curvature, 1.0), tilts[tilt]
        )
        below = np.where(sides[:, 1] < 0, 0.0, values[every_row, sides[:, 1]])
        self.tilt[rows], self.distance[rows], self.sides[rows] = tilt, level, sides
        self.place[rows] = np.where(usable, ladder_index, -1)
        self.transforms[rows] = np.stack([values[every_row, sides[:, 0]], below], axis=1)

    def _attempts(self, waiting: Integers, progress: Progress | None) -> None:
        """Take lines, and longer ones for the rows that need them, until all are served."""
        total, done = waiting.size, 0
        for attempt in range(_RETRIES):
            failed: list[Integers] = []
            for group, level, ladder_index in self._groups(waiting):
                spacing = 2.0 * math.pi / _DISTANCE_RATIO**level
                tilt = float(self.grid.tilts[self.tilt[group[0]]])
                nodes = int(_LADDER[ladder_index])
                try:
                    line = _Line(self.table, tilt, spacing, nodes, used_kinds(self.counts, group))
                except AccuracyError:  # too long, or no law so far out: its rows stay UNRESOLVED
                    continue
                for first in range(0, group.size, _SLAB):
                    rows = group[first : first + _SLAB]
                    block = np.asarray(self.counts[rows], dtype=np.float64)
                    goal = self.goal[rows] if self.log_delta is not None else None
                    begin = self.start[rows] if goal is not None else self.solution.epsilon[rows]
                    solved = line.solve(block, begin, goal)
                    good, again = self._judge(rows, solved, line, attempt == _RETRIES - 1)
                    self._store(rows[good], solved, good)
                    failed.append(rows[again])
                    done += int(good.sum())
                    if progress is not None and attempt == 0:
                        progress(done, total)
            waiting = np.concatenate(failed) if failed else np.empty(0, dtype=np.int64)
            if not waiting.size:
                break

    def _groups(self, rows: Integers) -> Iterator[tuple[Integers, int, int]]:
        """Yield rows that share a line, with its alias distance and node count on the ladders.

        A line serves every row of its tilt that would do with fewer nodes, so that small groups
        join the next larger one.
        """
        for tilt in np.unique(self.tilt[rows]):
            of_tilt = rows[self.tilt[rows] == tilt]
            key = (self.distance[of_tilt].astype(np.int64) << 12) + self.place[of_tilt]
            order = np.argsort(key, kind="stable")
            joined: list[Integers] = []
            parts = np.split(of_tilt[order], np.flatnonzero(np.diff(key[order])) + 1)
            for number, part in enumerate(parts):
                joined.append(part)
                if sum(p.size for p in joined) < self._fewest and number < len(parts) - 1:
                    continue
                group = np.concatenate(joined)
                level = int(self.distance[group].max())
                stretch = _DISTANCE_RATIO ** (level - self.distance[group].astype(np.float64))
                nodes = (_LADDER[self.place[group]] * stretch).max()
                yield group, level, min(int(np.searchsorted(_LADDER, nodes)), _LADDER.size - 1)
                joined = []

    def _judge(
        self, rows: Integers, solved: _Found, line: _Line, last: bool
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which values are good, and which are worth another line: more nodes, finer steps.

        What may lie beyond a row's last line is part of its interval: few steps die out slowly.
        """
        distance, alias = 2.0 * math.pi / line.step, np.zeros(rows.size)
        tilts, payoff = self.grid.tilts, log_payoff(self.grid.tilts)
        for side in (0, 1):
            column = self.sides[rows, side]
            s = np.where(column < 0, 0.0, tilts[column])
            bound = self.transforms[rows, side] - s * solved.epsilon
            bound += np.where(column < 0, 0.0, payoff[column])
            bound -= solved.log_delta + np.abs(s - line.tilt) * distance
            alias += np.exp(np.minimum(np.nan_to_num(bound, nan=700.0), 700.0))
        # no longer line would serve what has too many nodes already
        last = last or line.nodes == _LADDER[-1]
        loose = last | solved.is_slow
        enough = solved.beyond <= np.where(loose, TOLERABLE, _most_beyond(solved.rounding))
        fine = alias <= _ALIAS
        usable = solved.settled & np.isfinite(solved.epsilon) & (solved.beyond < 0.5)
        self.start[rows[usable]] = solved.epsilon[usable]
        solved.rounding[:] += solved.beyond + alias
        good = np.asarray(enough & fine & solved.settled & (solved.rounding <= EXACT))
        wanted = np.where(solved.settled, solved.wanted, 2.0 * line.nodes)
        again = ~good & (wanted <= _LADDER[-1]) & (line.nodes < _LADDER[-1])
        ladder_index = np.searchsorted(
            _LADDER, np.where(again, np.maximum(wanted, line.nodes), 0.0)
        )
        # a node count grows by the step's share as well
        self.place[rows] = np.minimum(ladder_index + np.where(fine, 0, 2), _LADDER.size - 1)
        level = round(math.log(distance) / math.log(_DISTANCE_RATIO))
        self.distance[rows] = level + np.where(fine, 0, 3)
        return good, np.asarray(again)

    def _store(self, rows: Integers, solved: _Found, good: NDArray[np.bool_]) -> None:
        """Keep what a line gave, δ∞ included."""
        solution, infinite = self.solution, self.infinite[rows]
        finite = solved.log_delta[good]
        solution.epsilon[rows] = solved.epsilon[good]
        if self.log_delta is None:
            solution.log_delta[rows] = np.logaddexp(finite, infinite)
        share = np.exp(finite - solution.log_delta[rows])  # of δ
        solution.slope[rows] = solved.slope[good] * share
        solution.error[rows] = solved.rounding[good] * share + MASS_ROUNDED * (1.0 - share)
        solution.path[rows] = CONTOUR


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
        variance = table.variance
        heaviest = max(float((block @ variance).max(initial=0.0)) for _, block in chunks(counts))
        seen = variance[table.has_loss & (variance > 0.0)]
        light = math.sqrt(float(seen.min(initial=1.0)))
        low = min(0.02, 0.05 / math.sqrt(max(heaviest, 1.0)))
        goal = 40.0 if log_delta is None else -log_delta
        high = max(200.0, 8.0 * math.sqrt(2.0 * max(goal, 1.0)) / light)
        if epsilon is not None and epsilon.size:
            # far out the saddle point lies at about ε over the loss's variance
            high = max(high, 4.0 * float(np.abs(epsilon).max()) / (light * light))
        columns = math.ceil(math.log(high / low) / math.log(_RATIO)) + 1
        every: Array = low * np.power(_RATIO, np.arange(float(columns)))
        self.tilts, self._values = every[:0], np.empty((0, table.count))
        used = used_kinds(counts, slice(None)) & table.has_loss
        end = _FIRST_TILT
        while used.any():
            next_tilts = every[(every <= end) & (every > self.tilts[-1:].max(initial=0.0))]
            if next_tilts.size:
                self._grow(next_tilts, used)
            if self.tilts.size == every.size:
                break
            end *= _MORE
            used = self._asking(counts, log_delta, epsilon) & used
        if not self.tilts.size:
            self.tilts = every[:3]
            self._values = np.zeros((3, table.count))
        self._finite = np.where(np.isfinite(self._values), self._values, 0.0)
        self._is_finite = np.isfinite(self._values).all()

    def _grow(self, tilts: Array, used: NDArray[np.bool_]) -> None:
        fresh = np.where(self._table.has_loss, np.inf, np.zeros((tilts.size, self._table.count)))
        fresh[:, used] = self._table.transform(tilts, used)[:, used]
        self.tilts = np.concatenate([self.tilts, tilts])
        self._values = np.concatenate([self._values, fresh])

    def _asking(
        self, counts: NDArray[np.integer], log_delta: float | None, epsilon: Array | None
    ) -> NDArray[np.bool_]:
        """Return the kinds of rows whose bounds are still falling near the end of the grid."""
        at = [max(self.tilts.size - 1 - _WINDOW // 2, 0), self.tilts.size - 1]
        tilts, values = self.tilts[at], self._values[at]
        finite = np.where(np.isfinite(values), values, 0.0)
        used = np.zeros(self._table.count, dtype=bool)
        for chunk, block in chunks(counts):
            bound = block @ finite.T + log_payoff(tilts)
            ends = block @ (~np.isfinite(values[1])).astype(np.float64) > 0.0
            if log_delta is not None:
                bound = (bound - log_delta) / tilts
            else:
                assert epsilon is not None
                bound -= np.multiply.outer(epsilon[chunk], tilts)
            falling = (bound[:, 1] <= bound[:, 0]) & ~ends
            if falling.any():
                used |= (block[falling] > 0.0).any(axis=0)
        return used

    def transforms(self, block: Array) -> Array:
        """Return A = counts · K, shape (rows, tilts), infinite where a kind has no K."""
        values = block @ self._finite.T
        if not self._is_finite:
            columns = np.flatnonzero(~np.isfinite(self._values).all(axis=1))
            lacking = (~np.isfinite(self._values[columns])).astype(np.float64)
            values[:, columns] = np.where(block @ lacking.T > 0.0, np.inf, values[:, columns])
        return np.asarray(values)


@dataclass(frozen=True)
class _Found:
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


class _Line:
    """Node values of all kinds of steps on one line."""

    def __init__(
        self, table: Table, tilt: float, step: float, nodes: int, used: NDArray[np.bool_]
    ) -> None:
        self.tilt, self.step, self.nodes, self._used = tilt, step, nodes, np.flatnonzero(used)
        values = table.line(tilt, step, nodes, used)[self._used]
        self.exponents: Array = np.concatenate([values.real, values.imag], axis=1)
        self.error = table.rounding(tilt, step * nodes, used)[self._used]
        y: Array = np.arange(nodes, dtype=np.float64) * step
        z = tilt + 1j * y
        weight: Any = np.where(np.arange(nodes) == 0, 1.0, 2.0) / (z * (1.0 + z))
        self.sizes = np.stack([np.abs(weight), np.abs(weight) * y], axis=1)
        self.edges = step * nodes * _STRETCHES
        self.bounds = table.log_bounds(tilt, self.edges, used)[self._used]
        # nodes of each stretch, each at most as large as the first; Σ 1/y² beyond the last one
        stretch_nodes = np.append(np.diff(self.edges) / step, self.edges[-1] / step) + 1.0
        self.left_out = (
            2.0 * stretch_nodes / (np.hypot(tilt, self.edges) * np.hypot(1.0 + tilt, self.edges))
        )
        # Σ_k v_k w_k (−iy_k)^m/m!, real parts, as one real product with (Re v, Im v) side by side
        self.scale = float(y[-1])
        moments: Any = np.empty((nodes, 2, _ORDER))
        terms: Any = weight.copy()
        for m in range(_ORDER):
            moments[:, 0, m], moments[:, 1, m] = terms.real, -terms.imag
            terms = terms * (-1j * y / self.scale) / (m + 1)
        self.moments: Array = moments.reshape(2 * nodes, _ORDER)

    def solve(self, counts: Array, epsilon: Array, goal: Array | None) -> _Found:
        """Return ε at a given log δ of each row, or log δ at given ε where that is None."""
        size = max(16, _BLOCK // self.nodes)
        counts = counts[:, self._used]
        parts = [
            self._solve(
                counts[i : i + size],
                epsilon[i : i + size],
                None if goal is None else goal[i : i + size],
            )
            for i in range(0, counts.shape[0], size)
        ]
        columns = ([getattr(part, field.name) for part in parts] for field in fields(_Found))
        return _Found(*(np.concatenate(column) for column in columns))

    def _values(self, counts: Array, epsilon: Array) -> tuple[Complex, Array, Array]:
        """Return node values over their size at the tilt, that size's log, and the moduli."""
        exponents = counts @ self.exponents
        transform = exponents[:, 0].copy()
        modulus = exponents[:, : self.nodes]
        modulus -= transform[:, None]
        np.exp(modulus, out=modulus)
        angle = exponents[:, self.nodes :]
        angle -= np.multiply.outer(epsilon, self.step * np.arange(self.nodes))
        values: Any = np.empty((counts.shape[0], self.nodes), dtype=np.complex128)
        np.multiply(modulus, np.cos(angle), out=values.real)
        np.multiply(modulus, np.sin(angle, out=angle), out=values.imag)
        return values, transform, modulus

    def _solve(self, counts: Array, epsilon: Array, goal: Array | None) -> _Found:
        values, transform, modulus = self._values(counts, epsilon)
        size, turned = (modulus @ self.sizes).T
        # the width of the values: where their modulus is e^-4.5
        fallen = np.maximum((modulus > math.exp(-4.5)).sum(axis=1), 2)
        reach = _TRUST / (fallen * self.step)
        epsilon = epsilon.copy()
        count = epsilon.size
        total, rate = np.full(count, np.nan), np.full(count, np.nan)
        settled = np.zeros(count, dtype=bool)
        front = math.log(self.step / (2.0 * math.pi))
        waiting = np.arange(count)
        for _ in range(_ROUNDS if goal is not None else 1):
            moments = values.view(np.float64) @ self.moments
            offset = transform[waiting] - self.tilt * epsilon[waiting] + front
            if goal is None:
                total, rate = moments[:, 0], moments[:, 1] * self.scale
                settled = total > 0.0
                break
            move, ready, total[waiting], rate[waiting] = self._step(
                moments, offset - goal[waiting], reach[waiting], epsilon[waiting]
            )
            epsilon[waiting] += move
            settled[waiting[ready]] = True
            unsettled = np.flatnonzero(~ready)
            waiting = waiting[unsettled]
            if not waiting.size:
                break
            turn = powers_less_one(-self.step * move[unsettled], self.nodes)
            turn += 1.0
            values = values[unsettled] if unsettled.size < values.shape[0] else values
            values *= turn
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_delta = transform - self.tilt * epsilon + front + np.log(total)
            slope = rate / total - self.tilt
            drift = 8.0 + np.abs(transform) + np.abs(self.tilt * epsilon) + np.sqrt(counts.sum(1))
            rounding = (2.0 * ROUNDING * drift + counts @ self.error) * size / total
            rounding += 2.0 * ROUNDING * np.abs(epsilon) * turned / total
            # what each stretch holds, and all those after it
            left_out = np.exp(np.minimum(counts @ self.bounds, 0.0)) * self.left_out
            left_out = np.cumsum(left_out[:, ::-1], axis=1)[:, ::-1] / total[:, None]
        wanted = self._nodes_until(left_out <= _most_beyond(rounding)[:, None])
        slow = wanted > _LADDER[-1]
        wanted = np.where(slow, self._nodes_until(left_out <= TOLERABLE), wanted)
        return _Found(epsilon, log_delta, slope, left_out[:, 0], wanted, slow, rounding, settled)

    def _nodes_until(self, little: NDArray[np.bool_]) -> Array:
        """Return to which node each row's line has to go until little is left."""
        nodes = self.edges[little.argmax(axis=1)] / self.step
        return np.where(little.any(axis=1), nodes, np.inf)

    def _step(
        self, moments: Array, excess: Array, reach: Array, epsilon: Array
    ) -> tuple[Array, NDArray[np.bool_], Array, Array]:
        """Return the step in ε that the Taylor polynomials ask for, and whether it is the last.

        `moments` are Taylor coefficients of the sum without e^{−td}, in d·scale; `excess` is the
        log of the front factor over the wanted δ, and no step is longer than `reach`, a plain
        Newton step beyond it no longer than a third of ε.
        """
        d = np.zeros(excess.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(8):
                total, rate = _polynomial(moments, d * self.scale)
                height = excess - self.tilt * d + np.log(total)
                move = -height / (rate * self.scale / total - self.tilt)
                # the sum cancelled, or the slope has the wrong sign: come from above
                lost = ~np.isfinite(move)
                move = np.where(lost, 0.5 * reach, move)
                d = np.clip(d + move, -reach, reach)
                if (np.abs(move) <= 1e-15 * (np.abs(epsilon) + reach)).all():
                    break
            total, rate = _polynomial(moments, d * self.scale)
            x = np.abs(d * self.scale)
            left_out = np.abs(moments[:, -1]) * x ** (_ORDER - 1)
            left_out += np.abs(moments[:, -2]) * x ** (_ORDER - 2)
            inside = (np.abs(d) < reach) & ~lost & (total > 0.0)
            ready = inside & (left_out <= _SETTLED * total)
            plain = moments[:, 1] * self.scale / moments[:, 0] - self.tilt
            newton = -(excess + np.log(moments[:, 0])) / plain
            longest = np.maximum(np.abs(epsilon) / 3.0, reach)
            far = ~inside & (plain < 0.0) & (np.abs(newton) > reach)
            d = np.where(far, np.clip(newton, -longest, longest), d)
        return d, ready, total, rate * self.scale


def _most_beyond(rounding: Array) -> Array:
    """Return what may lie beyond a line: where a sum cancels, none ends below its own rounding."""
    return np.clip(3.0 * rounding, _BEYOND, _MOST_BEYOND)


def _polynomial(coefficients: Array, x: Array) -> tuple[Array, Array]:
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
    low, centre, high = (values[rows, column + k] for k in (-1, 0, 1))
    t_low, t, t_high = (tilts[column + k] for k in (-1, 0, 1))
    with np.errstate(invalid="ignore"):
        rise = (high - centre) / (t_high - t) - (centre - low) / (t - t_low)
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
        return np.asarray(np.log(-np.expm1(np.minimum(epsilon, 0.0))))


def chunks(counts: NDArray[np.integer]) -> Iterator[tuple[slice, Array]]:
    """Yield rows of counts as doubles, some at a time."""
    for start in range(0, counts.shape[0], CHUNK):
        rows = slice(start, min(start + CHUNK, counts.shape[0]))
        yield rows, np.asarray(counts[rows], dtype=np.float64)


def used_kinds(counts: NDArray[np.integer], rows: Any) -> NDArray[np.bool_]:
    """Return which kinds of steps some of the rows have."""
    used = np.zeros(counts.shape[1], dtype=bool)
    places = np.arange(counts.shape[0])[rows]
    for start in range(0, places.size, CHUNK):
        used |= np.asarray(counts[places[start : start + CHUNK]]).any(axis=0)
        if used.all():
            break
    return used
