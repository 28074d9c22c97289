"""The methods of individual accounting, run over all records, here or by an executor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import InputError
from symdp.individual import gaussian
from symdp.individual.published import least_bounds, plancherel
from symdp.individual.result import IndividualResult, larger
from symdp.individual.single import BOUND, ESTIMATE, EXACT, StepKinds, table_answers
from symdp.numeric.accuracy import ROUNDING
from symdp.numeric.kinds import Table, sampled_normals
from symdp.numeric.rows import (
    CONTOUR,
    UNRESOLVED,
    WITHOUT_LOSS,
    Progress,
    Solution,
    solve_rows,
    used_kinds,
)
from symdp.numeric.step import Array

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from numpy.typing import ArrayLike

    from symdp.model.mechanism import Mechanism

METHODS = ("contour", "plancherel", "renyi", gaussian.NAME)
_MOST_KINDS = 1_000  # of steps of all records that no shared line serves: each costs half a second
_FEWEST_A_PART = 2_000  # records on shared lines that are worth a task of an executor
_TASKS = 16  # parts of the records, for an executor
_ULPS = 4.0 * ROUNDING  # relative: the rounding of ε itself


@dataclass(frozen=True)
class Work:
    """What a method needs to know of some records."""

    counts: NDArray[np.integer]
    noise: Array
    rate: Array
    noise_above: Array | None
    mechanisms: tuple[Mechanism | None, ...] | None
    method: str

    @property
    def has_table(self) -> bool:
        """Whether the method asks a table, rather than one composition for each record."""
        return self.mechanisms is None or self.method == "contour"

    @cached_property
    def _kinds(self) -> StepKinds:
        assert self.mechanisms is not None
        return StepKinds(self.mechanisms, used_kinds(self.counts, slice(None)))

    @property
    def unserved(self) -> NDArray[np.bool_]:
        """Which records have a step that no table serves."""
        if self.mechanisms is None:
            return np.zeros(self.counts.shape[0], dtype=bool)
        return np.asarray(self.counts[:, ~self._kinds.is_served].any(axis=1))

    @property
    def dominated(self) -> NDArray[np.bool_]:
        """Which records have a step whose pair is an upper bound, which nothing attains."""
        if self.mechanisms is None:
            return np.zeros(self.counts.shape[0], dtype=bool)
        return np.asarray(self.counts[:, ~self._kinds.is_attained].any(axis=1))

    def sides(self, direction: str) -> Sequence[str]:
        """Return the sides of a direction, of which the largest answers."""
        if self.mechanisms is not None:
            return self._kinds.sides(direction)
        return ("remove", "add") if direction == "both" else (direction,)

    def table(self, side: str, above: bool = False) -> Table:
        """Return the table of a side; `above`, that of the larger noise levels."""
        if self.mechanisms is not None:
            return self._kinds.table(side)
        noise = self.noise_above if above else self.noise
        assert noise is not None
        return sampled_normals(noise, self.rate, side)


@dataclass(frozen=True)
class Asked:
    """One question: a direction, δ and its log or each record's ε, and what needs no answer.

    `floor` holds numbers of the other direction: a record that is proved to lie below its own
    needs no number here.
    """

    direction: str
    delta: float | None
    log_delta: float | None
    epsilon: Array | None
    floor: Array | None = None
    with_lower: bool = True

    def rows(self, chosen: Any) -> Asked:
        """Return the question for some of the records."""
        return replace(
            self,
            epsilon=None if self.epsilon is None else self.epsilon[chosen],
        )


Parts = Sequence[tuple[NDArray[np.int64] | None, Work]]


def run(
    parts: Parts,
    asked: Asked,
    executor: Executor | None,
    progress: Progress | None,
) -> IndividualResult:
    """Return the answers of all parts, in the records' order."""
    tasks: list[tuple[Any, Work]] = []
    for rows, work in parts:
        records = work.counts.shape[0]
        places = np.arange(records) if rows is None else rows
        least = _FEWEST_A_PART if work.has_table else 1
        size = records if executor is None else max(least, -(-records // _TASKS))
        for start in range(0, records, size):
            cut = slice(start, min(start + size, records))
            counts = work.counts[cut] if size < records else work.counts
            tasks.append((places[cut], replace(work, counts=counts)))
    if executor is None:
        found = [answer(work, asked.rows(places), progress) for places, work in tasks]
    else:
        futures = [executor.submit(answer, work, asked.rows(places)) for places, work in tasks]
        found = []
        for number, future in enumerate(futures):
            found.append(future.result())
            if progress is not None:
                progress(number + 1, len(futures))
    if len(found) == 1 and parts[0][0] is None:
        return found[0]
    order = np.argsort(np.concatenate([places for places, _ in tasks]), kind="stable")
    joined: dict[str, Any] = {}
    for field in fields(IndividualResult):
        values = [getattr(one, field.name) for one in found]
        if isinstance(values[0], np.ndarray):
            joined[field.name] = np.concatenate(values)[order]
    notes = dict.fromkeys(one.note for one in found if one.note)
    return replace(found[0], note="; ".join(notes), **joined)


def answer(work: Work, asked: Asked, progress: Progress | None = None) -> IndividualResult:
    """Return the answers of some records: what an executor's worker does."""
    if not work.has_table:
        return _one_by_one(work, asked, progress)
    found: IndividualResult | None = None
    left = work.unserved
    for side in work.sides(asked.direction):
        floor = None
        if found is not None:
            # whoever is proved to have less on this side needs no number there
            floor = found.epsilon if asked.log_delta is not None else found.log_delta
        one = replace(asked, direction=side, floor=floor, with_lower=found is None)
        if work.method == "contour":
            answered, unresolved = _contour(work, one, progress)
            left |= unresolved
        else:
            answered = _METHODS[work.method](work, one)
        found = answered if found is None else larger(found, answered)
    assert found is not None
    own = found.epsilon if asked.log_delta is not None else found.log_delta
    bounded = work.dominated & (found.kind_code == EXACT)
    own[bounded], found.kind_code[bounded] = found.upper[bounded], BOUND
    return _with_single_records(work, asked, replace(found, direction=asked.direction), left)


def _one_by_one(work: Work, asked: Asked, progress: Progress | None) -> IndividualResult:
    """Return the answers of records whose steps are any mechanisms, as compositions."""
    if work.method == "plancherel":
        raise InputError("method 'plancherel' knows Gaussian steps only; use 'contour'")
    found = table_answers(work, asked, np.arange(work.counts.shape[0]), progress)
    fell = int(found.fell_back.sum())
    note = f"{fell} records have the Rényi bound only" if fell else ""
    path = np.where(found.fell_back, 3, 2)
    return _result(work, asked, found.value, (found.lower, found.upper), found.kind, path, note)


def _contour(
    work: Work, asked: Asked, progress: Progress | None
) -> tuple[IndividualResult, NDArray[np.bool_]]:
    """Return the answers on one side, and which records have no more than a bound there."""
    solution = _solve(work.table(asked.direction), work, asked, progress)
    answered = solution.path == CONTOUR
    least = 0.0 if asked.log_delta is not None else -math.inf
    if asked.log_delta is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            width = np.abs(solution.error / solution.slope)
        width = np.where(answered, np.nan_to_num(width), 0.0) + _ULPS * np.abs(solution.epsilon)
        width = np.where(solution.path == WITHOUT_LOSS, 0.0, width)
        own = solution.epsilon
        lower, upper = np.maximum(own - width, 0.0), np.maximum(own + width, 0.0)
        own[:] = np.maximum(own, 0.0)
    else:
        own = solution.log_delta
        width = np.where(answered, np.log1p(solution.error) + _ULPS * np.abs(own), 0.0)
        lower, upper = own - width, np.minimum(own + width, 0.0)
        own[:] = np.minimum(own, 0.0)
    if work.noise_above is not None:
        lower[:] = least
        if asked.with_lower:
            below = _solve(work.table(asked.direction, above=True), work, asked, None)
            usable = below.path == CONTOUR
            if asked.log_delta is not None:
                with np.errstate(invalid="ignore", divide="ignore"):
                    low = below.epsilon - np.abs(below.error / below.slope) * (1.0 + _ULPS)
                lower = np.where(usable, np.maximum(low * (1.0 - _ULPS), 0.0), least)
            else:
                lower = np.where(usable, below.log_delta - np.log1p(below.error), least)
    path = np.where(solution.path == WITHOUT_LOSS, 1, 0)
    kind = np.zeros(path.size, dtype=np.uint8)
    left = solution.path == UNRESOLVED
    path[left], kind[left] = 3, BOUND
    own[left], lower[left], upper[left] = solution.renyi[left], least, solution.renyi[left]
    bounds = (np.fmin(lower, own), np.fmax(upper, own))
    return _result(work, asked, own, bounds, kind, path, "", solution.error), left


def _with_single_records(
    work: Work, asked: Asked, found: IndividualResult, left: NDArray[np.bool_]
) -> IndividualResult:
    """Return the answers with records that no line served asked one by one, in both directions."""
    alone = np.flatnonzero(left)
    if work.mechanisms is None:
        alone = _alone(work.counts, alone)
    path, error = found.path_code, found.numerical_error
    if alone.size:
        own = found.epsilon if asked.log_delta is not None else found.log_delta
        single = table_answers(work, asked, alone)
        own[alone], found.upper[alone] = single.value, single.upper
        found.kind_code[alone] = single.kind
        least = 0.0 if asked.log_delta is not None else -math.inf
        found.lower[alone] = single.lower if work.noise_above is None else least
        path[alone] = np.where(single.fell_back, 3, 2)
    if work.method == "contour":
        error[path > 1] = np.nan
    notes = [found.note] if found.note else []
    if (path == 2).any():
        notes.append(f"{int((path == 2).sum())} records were asked one by one")
    if work.method == "contour" and (path == 3).any():
        notes.append(f"{int((path == 3).sum())} records have the Rényi bound only")
    return replace(found, note="; ".join(notes))


def _alone(counts: NDArray[np.integer], left: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the records that no shared line served and that are few enough to ask one by one."""
    if not left.size:
        return left
    rows, which = np.unique(counts[left], axis=0, return_inverse=True)
    kinds = np.count_nonzero(rows, axis=1)
    order = np.argsort(kinds, kind="stable")
    few = np.empty(order.size, dtype=bool)
    few[order] = np.cumsum(kinds[order]) <= _MOST_KINDS
    return np.asarray(left[few[which.ravel()]])


def _solve(table: Table, work: Work, asked: Asked, progress: Progress | None) -> Solution:
    return solve_rows(table, work.counts, asked.log_delta, asked.epsilon, progress, asked.floor)


def _renyi(work: Work, asked: Asked) -> IndividualResult:
    value = least_bounds(work.table(asked.direction), work.counts, asked)
    if asked.log_delta is not None:
        least, value = 0.0, np.maximum(value, 0.0)
    else:
        least, value = -math.inf, np.minimum(value, 0.0)
    return _result(work, asked, value, (np.full(value.size, least), value), BOUND, 3, "")


def _plancherel(work: Work, asked: Asked) -> IndividualResult:
    value = plancherel(work.counts, work.noise, work.rate, asked)
    return _estimates(
        work,
        asked,
        value,
        "the grid's error is not bounded: it is large where a step's loss is narrower than the "
        "spacing",
    )


def _central_limit(work: Work, asked: Asked) -> IndividualResult:
    value = gaussian.central_limit(work.noise, work.rate, work.counts, asked)
    return _estimates(
        work, asked, value, "the central limit under-reports where single losses are large"
    )


_METHODS = {"renyi": _renyi, "plancherel": _plancherel, gaussian.NAME: _central_limit}


def _estimates(work: Work, asked: Asked, value: Array, note: str) -> IndividualResult:
    unknown = np.full(value.size, np.nan)
    return _result(work, asked, value, (unknown, unknown), ESTIMATE, 0, note)


def _result(
    work: Work,
    asked: Asked,
    value: Array,
    bounds: tuple[Array, Array],
    kind: ArrayLike,
    path: ArrayLike,
    note: str,
    error: ArrayLike = math.nan,
) -> IndividualResult:
    """Return what was found of ε, or of log δ, beside what was given; one code serves all rows."""
    size = value.size
    epsilon, log_delta = value, value
    if asked.log_delta is not None:
        log_delta = np.full(size, asked.log_delta)
    else:
        assert asked.epsilon is not None
        epsilon = asked.epsilon
    return IndividualResult(
        "delta" if asked.log_delta is None else "epsilon",
        epsilon,
        log_delta,
        *bounds,
        kind_code=np.full(size, kind, dtype=np.uint8),
        path_code=np.full(size, path, dtype=np.uint8),
        numerical_error=np.full(size, error),
        steps=np.asarray(work.counts.sum(axis=1), dtype=np.int64),
        method=work.method,
        direction=asked.direction,
        note=note,
    )
