"""The methods of individual accounting, run over all records, here or by an executor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError, InputError
from symdp.individual import gaussian, renyi
from symdp.individual.mechanism_table import MechanismTable
from symdp.individual.plancherel import plancherel
from symdp.individual.result import IndividualResult
from symdp.individual.shared import (
    CONTOUR,
    UNRESOLVED,
    WITHOUT_LOSS,
    Progress,
    Solution,
    solve_records,
)
from symdp.individual.single import single_record
from symdp.individual.subsampled_gaussian import Array, SubsampledGaussian

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from symdp.model.mechanism import Mechanism

METHODS = ("contour", "plancherel", "renyi", gaussian.NAME)
_MOST_SINGLE = 50  # records that are worth a contour of their own where no shared line serves
_MOST_KINDS = 16  # of steps of such a record: each kind costs a law of its own
_FEWEST_A_PART = 2_000  # records that are worth a task of an executor
_TASKS = 16  # parts of the records, for an executor
_ULPS = 4.0 * 2.3e-16  # relative: the rounding of ε itself
_EXACT, _BOUND, _ESTIMATE = 0, 1, 2


@dataclass(frozen=True)
class Work:
    """What a method needs to know of some records."""

    counts: NDArray[np.integer]
    noise: Array
    rate: Array
    noise_above: Array | None
    mechanisms: tuple[Mechanism | None, ...] | None
    method: str

    def table(self, direction: str, above: bool = False) -> Any:
        """Return the CGF table of a direction; `above`, that of the larger noise levels."""
        if self.mechanisms is not None:
            return MechanismTable(self.mechanisms, direction)
        noise = self.noise_above if above else self.noise
        assert noise is not None
        return SubsampledGaussian(noise, self.rate, direction)


@dataclass(frozen=True)
class Asked:
    """One question: a direction, log δ or each record's ε, and what needs no answer.

    `floor` holds numbers of the other direction: a record that is proved to lie below its own
    needs no number here.
    """

    direction: str
    log_delta: float | None
    epsilon: Array | None
    floor: Array | None = None
    with_lower: bool = True

    def rows(self, chosen: Any) -> Asked:
        """Return the question for some of the records."""
        return replace(
            self,
            epsilon=None if self.epsilon is None else self.epsilon[chosen],
            floor=None if self.floor is None else self.floor[chosen],
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
        size = records if executor is None else max(_FEWEST_A_PART, -(-records // _TASKS))
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
    if work.method == "contour":
        return _contour(work, asked, progress)
    if work.method == "renyi":
        return _renyi(work, asked)
    if work.method == "plancherel":
        if work.mechanisms is not None:
            raise InputError(
                "method 'plancherel' knows Gaussian steps only; use 'contour' for mechanisms"
            )
        value = plancherel(work.counts, work.noise, work.rate, asked)
        return _estimates(
            work,
            asked,
            value,
            "the grid's error is not bounded: it is large where a step's loss is narrower than the "
            "spacing",
        )
    value = gaussian.central_limit(work.table(asked.direction), work.counts, asked)
    return _estimates(
        work, asked, value, "the central limit under-reports where single losses are large"
    )


def _contour(work: Work, asked: Asked, progress: Progress | None) -> IndividualResult:
    table = work.table(asked.direction)
    solution = _solve(table, work, asked, progress)
    path, kind, note = _complete(solution, work, asked)
    if asked.log_delta is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            width = np.abs(solution.error / solution.slope)
        width = np.where(solution.path == CONTOUR, np.nan_to_num(width), 0.0)
        width += _ULPS * np.abs(solution.epsilon)
        width = np.where(solution.path == WITHOUT_LOSS, 0.0, width)
        value = np.maximum(solution.epsilon, 0.0)
        lower, upper = np.maximum(value - width, 0.0), np.maximum(solution.epsilon + width, 0.0)
        solution.epsilon = value
    else:
        width = np.where(solution.path == WITHOUT_LOSS, 0.0, np.log1p(solution.error))
        lower = solution.log_delta - width
        upper = np.minimum(solution.log_delta + width, 0.0)
        solution.log_delta = np.minimum(solution.log_delta, 0.0)
    least = 0.0 if asked.log_delta is not None else -math.inf
    if work.noise_above is not None:
        lower = np.full(lower.size, least)
        if asked.with_lower:
            below = _solve(work.table(asked.direction, above=True), work, asked, None)
            usable = below.path == CONTOUR
            if asked.log_delta is not None:
                with np.errstate(invalid="ignore", divide="ignore"):
                    low = below.epsilon - np.abs(below.error / below.slope) * (1.0 + _ULPS)
                lower = np.where(usable, np.maximum(low * (1.0 - _ULPS), 0.0), least)
            else:
                lower = np.where(usable, below.log_delta - np.log1p(below.error), least)
    bounded = kind == _BOUND
    lower = np.where(bounded, least, lower)
    own = solution.epsilon if asked.log_delta is not None else solution.log_delta
    return _result(
        work,
        asked,
        (solution.epsilon, solution.log_delta),
        (np.minimum(lower, own), np.maximum(upper, own)),
        kind,
        path,
        np.where(bounded, np.nan, solution.error),
        note,
    )


def _solve(table: Any, work: Work, asked: Asked, progress: Progress | None) -> Solution:
    return solve_records(
        table,
        work.counts,
        asked.log_delta,
        asked.epsilon,
        progress,
        getattr(table, "end", math.inf),
        asked.floor,
    )


def _complete(
    solution: Solution, work: Work, asked: Asked
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], str]:
    """Answer what no shared line served: one by one where that is few, else by the Rényi bound."""
    path = np.where(solution.path == WITHOUT_LOSS, 1, 0).astype(np.uint8)
    kind = np.zeros(path.size, dtype=np.uint8)
    left = np.flatnonzero(solution.path == UNRESOLVED)
    notes = []
    for number, record in enumerate(left):
        found = None
        kinds = int(np.count_nonzero(work.counts[record]))
        if number < _MOST_SINGLE and kinds <= _MOST_KINDS:
            try:
                found = single_record(work, asked, int(record))
            except AccuracyError:
                found = None
        if found is None:
            path[record], kind[record] = 3, _BOUND
            own = solution.renyi[record]
            if asked.log_delta is not None:
                solution.epsilon[record] = own
            else:
                solution.log_delta[record] = min(own, 0.0)
            continue
        path[record] = 2
        target = solution.epsilon if asked.log_delta is not None else solution.log_delta
        target[record], solution.error[record] = found
        if asked.log_delta is not None:
            solution.slope[record] = -1.0  # the error is that of ε itself
        solution.path[record] = CONTOUR
    if (path == 2).any():
        notes.append(f"{int((path == 2).sum())} records took a contour of their own")
    if (path == 3).any():
        notes.append(f"{int((path == 3).sum())} records have the Rényi bound only")
    return path, kind, "; ".join(notes)


def _renyi(work: Work, asked: Asked) -> IndividualResult:
    table = work.table(asked.direction)
    value = renyi.least_bounds(table, work.counts, asked)
    size = value.size
    least = 0.0 if asked.log_delta is not None else -math.inf
    if asked.log_delta is not None:
        value = np.maximum(value, 0.0)
        pair = (value, np.full(size, asked.log_delta))
    else:
        assert asked.epsilon is not None
        value = np.minimum(value, 0.0)
        pair = (asked.epsilon, value)
    return _result(
        work,
        asked,
        pair,
        (np.full(size, least), value),
        np.full(size, _BOUND, dtype=np.uint8),
        np.full(size, 3, dtype=np.uint8),
        np.full(size, np.nan),
        "",
    )


def _estimates(work: Work, asked: Asked, value: Array, note: str) -> IndividualResult:
    size = value.size
    if asked.log_delta is not None:
        pair = (value, np.full(size, asked.log_delta))
    else:
        assert asked.epsilon is not None
        pair = (asked.epsilon, value)
    unknown = np.full(size, np.nan)
    return _result(
        work,
        asked,
        pair,
        (unknown, unknown),
        np.full(size, _ESTIMATE, dtype=np.uint8),
        np.full(size, 0, dtype=np.uint8),
        unknown,
        note,
    )


def _result(
    work: Work,
    asked: Asked,
    pair: tuple[Array, Array],
    bounds: tuple[Array, Array],
    kind: NDArray[np.uint8],
    path: NDArray[np.uint8],
    error: Array,
    note: str,
) -> IndividualResult:
    return IndividualResult(
        "epsilon" if asked.log_delta is not None else "delta",
        *pair,
        *bounds,
        kind_code=kind,
        path_code=path,
        numerical_error=error,
        steps=np.asarray(work.counts.sum(axis=1), dtype=np.int64),
        method=work.method,
        direction=asked.direction,
        note=note,
    )
