"""Every record's ε and δ from how often it took which kind of step."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symdp.arguments import AT_MOST, flat, is_array, listed, real, sides
from symdp.errors import InputError, suggestion
from symdp.individual.methods import METHODS, Asked, Parts, Work, gaussian_step, run
from symdp.individual.result import IndividualResult, check_delta
from symdp.model.mechanism import a_mechanism
from symdp.model.relation import ADD_REMOVE, Protection
from symdp.numeric.many.rows import Progress
from symdp.numeric.step import Array
from symdp.questions.steps.accounted import answered, protection_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from symdp.model.mechanism import Mechanism

ADAPTIVE = (
    "the steps were chosen after outputs were seen: exact for this sequence of contributions had "
    "it been fixed, an estimate for an adaptive run; a filter gives a proved bound"
)
_SEVERAL = 2  # steps, of which a record has two or more
_OF_SUMS = Protection(ADD_REMOVE, "poisson", shift=AT_MOST)  # of Gaussian steps by their numbers
_MOST_STEPS = 1 << 40  # more steps than any run has; counts stay exact in doubles
_MOST = 256  # distinct rows of noise and rate; each costs tables of its own


@dataclass(frozen=True, eq=False)
class IndividualAccountant:
    """Counts of steps for each record, and the questions that may be asked of them.

    Build it with `from_counts`, `from_mechanisms` or `Recorder.accountant`.
    """

    counts: NDArray[np.integer]  # of steps of each kind, shape (records, kinds)
    # σ_b in units of the contribution, and q, shape (kinds,) or (records, kinds); nan and 0 for
    # steps that were given as mechanisms
    noise: Array
    rate: Array
    direction: str = "both"
    # levels that the steps' own noise does not exceed, for lower bounds; None where it is exact
    noise_above: Array | None = None
    mechanisms: tuple[Mechanism | None, ...] | None = None  # where the kinds were given so
    adaptive: bool = False  # whether steps were chosen after outputs were seen: all is estimated
    ids: NDArray[Any] | None = None
    protection: Protection = _OF_SUMS  # whose privacy every number speaks of

    def __len__(self) -> int:
        return int(self.counts.shape[0])

    def __repr__(self) -> str:
        return f"<IndividualAccountant: {len(self)} records, {self.counts.shape[1]} kinds of steps>"

    def epsilon(
        self,
        delta: float,
        *,
        records: ArrayLike | None = None,
        method: str = "contour",
        direction: str | None = None,
        executor: Executor | None = None,
        progress: Progress | None = None,
    ) -> IndividualResult:
        """Return the smallest ε ≥ 0 of every record at a given δ.

        Parameters
        ----------
        delta
            δ, strictly between 0 and 1.
        records
            Places of the records that are wanted; all, if left out.
        method
            "contour" (exact, shared lines), "renyi" (a bound, [IND C.3]), "plancherel" (the
            paper's Fourier sum [IND App. D], an estimate) or the central limit's μ by its name.
        direction
            "remove", "add" or "both": the larger.
        executor
            Anything like `concurrent.futures.Executor`: the records are split among its workers.
        progress
            Called with the numbers of records done and in all.

        Examples
        --------
        >>> found = from_counts([2.0, 8.0], [[700, 300], [0, 1000]], rate=0.01).epsilon(1e-6)
        >>> found.epsilon.round(9).tolist()
        [0.606560231, 0.148947749]
        """
        checked_delta = real(delta, "delta")
        return self._answer_of_records(
            checked_delta, None, records, method, direction, executor, progress
        )

    def delta(
        self,
        epsilon: ArrayLike,
        *,
        records: ArrayLike | None = None,
        method: str = "contour",
        direction: str | None = None,
        executor: Executor | None = None,
        progress: Progress | None = None,
    ) -> IndividualResult:
        """Return δ(ε) of every record, for one real ε or one for each record, as `epsilon` does.

        Examples
        --------
        >>> found = from_counts([2.0, 8.0], [[700, 300], [0, 1000]], rate=0.01).delta(0.5)
        >>> [f"{value:.9g}" for value in found.delta]
        ['1.70851317e-05', '1.94867136e-37']
        """
        chosen = self._chosen(records)
        wanted = len(self) if chosen is None else chosen.size
        checked = flat(epsilon) if is_array(epsilon) else real(epsilon, "epsilon")
        epsilons = np.asarray(checked)
        if epsilons.ndim == 1 and epsilons.size != wanted:
            raise InputError(
                f"epsilon of {epsilons.size} for {wanted} records: give 1, or one each"
            )
        if not np.isfinite(epsilons).all():
            raise InputError("epsilon: every value must be a finite number")
        epsilons = np.broadcast_to(epsilons, (wanted,)).astype(np.float64)
        return self._answer_of_records(
            None, epsilons, records, method, direction, executor, progress
        )

    def mu(self, floor: float, **options: Any) -> Array:
        """Return μ(δ₀) of every record: the largest μ of a Gaussian through (ε, δ(ε)) ≥ δ₀.

        μ = max of the μ with G_μ(ε) = δ(ε) over eight ε up to ε(`floor`).  An estimate, to be
        quoted with its floor δ₀, strictly between 0 and 1: for sampled steps no μ below the
        unsampled one holds at every ε. The options are those of `epsilon`.

        Examples
        --------
        >>> from_counts([10.0], [[25]]).mu(1e-9).round(9).tolist()
        [0.5]
        """
        from symdp.individual.gaussian import largest_mu

        end = self.epsilon(floor, **options).epsilon
        return largest_mu(end, floor, lambda at: self.delta(at, **options).log_delta)

    def _chosen(self, records: ArrayLike | None) -> NDArray[np.int64] | None:
        if records is None:
            return None
        chosen = np.atleast_1d(np.asarray(records))
        if chosen.dtype == bool:
            if chosen.shape != (len(self),):
                raise InputError(f"records: a mask of shape {chosen.shape} for {len(self)} records")
            return np.flatnonzero(chosen)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise InputError("records: give whole numbers, the places of records, or a mask")
        wrong = (chosen < 0) | (chosen >= len(self))
        if wrong.any():
            raise InputError(f"records: {chosen[wrong][0]} is out of range for {len(self)} records")
        return chosen.astype(np.int64)

    def _answer_of_records(
        self,
        delta: float | None,
        epsilon: Array | None,
        records: ArrayLike | None,
        method: str,
        direction: str | None,
        executor: Executor | None,
        progress: Progress | None,
    ) -> IndividualResult:
        start = time.perf_counter()
        side = self.direction if direction is None else direction
        sides(side)
        if method not in METHODS:
            raise InputError(
                f"method {method!r}: it is one of {', '.join(METHODS)}{suggestion(method, METHODS)}"
            )
        chosen = self._chosen(records)
        counts = self.counts if chosen is None else self.counts[chosen]
        if counts.shape[0] == 0:
            raise InputError("no records: give at least one")
        work = Work(counts, self.noise, self.rate, self.noise_above, self.mechanisms, method)
        if self.noise.ndim == 2 or self.rate.ndim == 2:
            parts: Parts = _split_profiles(work, chosen)
        elif self.mechanisms is not None and method != "contour":
            parts = _split_steps(work)
        else:
            parts = [(None, work)]
        log_delta = None if delta is None else check_delta(delta)
        answers = run(parts, Asked(side, delta, log_delta, epsilon), executor, progress)
        ids = self.ids
        if chosen is not None:
            ids = chosen if self.ids is None else self.ids[chosen]
        seconds = time.perf_counter() - start
        answers = replace(answers, ids=ids, seconds=seconds, protects=self.protection.sentence)
        if not self.adaptive:
            return answers
        note = f"{answers.note}; {ADAPTIVE}" if answers.note else ADAPTIVE
        estimates = np.full(len(answers), 2, dtype=np.uint8)
        return replace(answers, kind_code=estimates, note=note)


def from_counts(
    noise: ArrayLike,
    counts: ArrayLike,
    rate: ArrayLike = 1.0,
    direction: str = "both",
    *,
    noise_above: ArrayLike | None = None,
    adaptive: bool = False,
    ids: ArrayLike | None = None,
) -> IndividualAccountant:
    """Return the accountant of records that took Gaussian steps of several noise levels.

    Step b is a Gaussian whose noise is σ_b times what the record contributes, taken with
    probability q (Poisson sampling); the record's loss is the sum over its counts.

    Parameters
    ----------
    noise
        σ_b > 0 in units of one record's largest contribution, shape (kinds,), or
        (records, kinds) where records differ; inf for a step without contribution.
    counts
        How many steps of each kind, whole numbers ≥ 0, shape (records, kinds); may be
        memory-mapped.
    rate
        q in [0, 1]: a number, one for each kind, shape (kinds,), or one for each record, shape
        (records, 1).
    direction
        "remove", "add" or "both": the larger.
    noise_above
        Where σ_b was rounded down: levels that the noise does not exceed, for lower bounds.
    adaptive
        Whether the steps depended on earlier outputs; then every number is an estimate.
    ids
        Names of the records.

    Examples
    --------
    >>> two = from_counts(noise=[1.0, 4.0], counts=[[100, 0], [0, 100]], rate=0.01)
    >>> two.epsilon(1e-5).epsilon.round(6).tolist()
    [0.718036, 0.079514]
    """
    table = _whole_counts(counts)
    records, kinds = table.shape
    levels = _levels(noise, "noise", records, kinds, positive=True)
    rates = _levels(rate, "rate", records, kinds, positive=False)
    above = None
    if noise_above is not None:
        above = _levels(noise_above, "noise_above", records, kinds, positive=True)
        if (above < levels).any():
            raise InputError("noise_above: no level may lie below that of noise")
    sides(direction)
    names = named(ids, records)
    return IndividualAccountant(
        table, levels, rates, direction, above, adaptive=adaptive, ids=names
    )


def from_mechanisms(
    mechanisms: Sequence[Mechanism | None],
    counts: ArrayLike,
    direction: str = "both",
    *,
    adaptive: bool = False,
    ids: ArrayLike | None = None,
) -> IndividualAccountant:
    """Return the accountant of records whose steps are mechanisms, each given by its density.

    Records share lines as those of `from_counts` do, with steps of several densities, atoms and
    infinite losses among them. A record that no line serves, as of few steps or of atoms alone, is
    asked as a composition of its own, equal records once, and has all that `Composition.epsilon`
    says: its cost is that of one answer for each distinct row of counts.

    Parameters
    ----------
    mechanisms
        One for each kind of step, sampling included; None for a step without contribution.
    counts, direction, adaptive, ids
        As for `from_counts`.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> kinds = [mechanisms.logistic(s=s).subsample("poisson", "1/50") for s in (1, 3)]
    >>> from_mechanisms(kinds, [[200, 0], [100, 100]]).epsilon(1e-6).epsilon.round(8).tolist()
    [0.73417337, 0.53845931]
    """
    table = _whole_counts(counts)
    step_kinds = listed(mechanisms, "give a list of mechanisms, one for each column of counts")
    kinds = tuple(None if kind is None else a_mechanism(kind) for kind in step_kinds)
    if len(kinds) != table.shape[1]:
        raise InputError(f"{len(kinds)} mechanisms for {table.shape[1]} columns of counts")
    taken = [kind.require_concrete() for kind in kinds if kind is not None]
    protection_of(taken)  # one neighbouring relation for all
    answers = [answered(kind) for kind in taken]
    whose = protection_of(taken, answers).over(_SEVERAL)
    sides(direction)
    names = named(ids, table.shape[0])
    noise = np.full(len(kinds), math.nan)
    rate = np.zeros(len(kinds))
    return IndividualAccountant(table, noise, rate, direction, None, kinds, adaptive, names, whose)


def _whole_counts(counts: ArrayLike) -> NDArray[np.integer]:
    table = np.asanyarray(counts)
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(
            f"counts of shape {table.shape}: records × kinds of steps are needed, at least one each"
        )
    if table.dtype.kind == "u":
        return cast("NDArray[np.integer]", table)
    if table.dtype.kind not in "if":
        raise InputError(f"counts of type {table.dtype}: whole numbers are needed")
    wrong = ~((table >= 0) & (table <= _MOST_STEPS))
    if table.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            wrong |= table != np.floor(table)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"counts: record {row}, kind {column} is {table[row, column]!r}; "
            f"whole numbers from 0 to {_MOST_STEPS} are needed"
        )
    if table.dtype.kind == "f":
        return table.astype(np.int64)
    return table


def _numbers_of(value: Any, name: str) -> Any:
    """Return numbers that may be written as text, "1/100" say."""
    if isinstance(value, str):
        return real(value, name)
    if isinstance(value, list | tuple):
        return [_numbers_of(entry, name) for entry in value]
    return value


def _levels(value: ArrayLike, name: str, records: int, kinds: int, positive: bool) -> Array:
    try:
        levels = np.asarray(_numbers_of(value, name), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}: numbers are needed") from None
    if levels.ndim <= 1:
        if kinds > 1 and positive and levels.size == 1 and np.isfinite(levels).all():
            raise InputError(
                f"{name}: one level for {kinds} kinds of steps, the columns of counts; give {kinds}"
            )
        if levels.ndim == 1 and levels.size not in {1, kinds}:
            raise InputError(f"{name} of shape {levels.shape} for {kinds} kinds of steps")
        levels = np.broadcast_to(levels, (kinds,)).copy()
    elif levels.shape in {(records, 1), (records, kinds)}:
        levels = np.broadcast_to(levels, (records, kinds))
    else:
        raise InputError(
            f"{name} of shape {levels.shape}: ({kinds},) or ({records}, {kinds}) is needed"
        )
    wrong = ~(levels > 0.0) if positive else ~((levels >= 0.0) & (levels <= 1.0))
    if wrong.any():
        rule = "above 0" if positive else "from 0 to 1"
        bad = float(levels[wrong][0])
        raise InputError(f"{name}: {bad!r} is out of range; values {rule} are needed")
    return np.asarray(levels)


def named(ids: ArrayLike | None, records: int) -> NDArray[Any] | None:
    """Return the names of records, each its own, None where they have none."""
    if ids is None:
        return None
    names = np.asarray(ids)
    if names.shape != (records,):
        raise InputError(f"ids of shape {names.shape} for {records} records: one each is needed")
    if np.unique(names).size != records:
        seen, often = np.unique(names, return_counts=True)
        raise InputError(
            f"ids: {seen[often > 1][0].item()!r} occurs twice; every record needs its own"
        )
    return names


def _split_profiles(
    work: Any, chosen: NDArray[np.int64] | None
) -> list[tuple[NDArray[np.int64], Any]]:
    """Return the records of each distinct row of noise levels and rates, with their work."""
    records, kinds = work.counts.shape
    columns = []
    for levels in (work.noise, work.rate, work.noise_above):
        if levels is None:
            continue
        rows = levels[chosen] if levels.ndim == 2 and chosen is not None else levels
        columns.append(np.broadcast_to(rows, (records, kinds)))
    distinct, which = np.unique(np.concatenate(columns, axis=1), axis=0, return_inverse=True)
    if distinct.shape[0] > _MOST:
        raise InputError(
            f"{distinct.shape[0]} distinct rows of noise and rate: at most {_MOST} are served at "
            "once; round them, noise down and rate up, or ask for the records in parts"
        )
    which = which.ravel()
    parts = []
    for number, row in enumerate(distinct):
        places = np.flatnonzero(which == number)
        cut = np.split(row, len(columns))
        above = cut[2] if work.noise_above is not None else None
        part_work = replace(
            work, counts=work.counts[places], noise=cut[0], rate=cut[1], noise_above=above
        )
        parts.append((places, part_work))
    return parts


def _split_steps(work: Any) -> list[tuple[NDArray[np.int64] | None, Any]]:
    """Return the records whose steps are sampled Gaussians alone, by numbers, and the others.

    The methods of the papers know no other steps.
    """
    nothing = math.inf, 0.0
    unknown = math.nan, 0.0
    steps = [nothing if m is None else gaussian_step(m) or unknown for m in work.mechanisms]
    noise, rate = np.asarray(steps).T
    others = np.isnan(noise)
    alone = np.asarray(work.counts[:, others].any(axis=1))
    parts: list[tuple[NDArray[np.int64] | None, Any]] = []
    for rows, numbers in (
        (np.flatnonzero(~alone), {"noise": np.where(others, np.inf, noise), "rate": rate}),
        (np.flatnonzero(alone), {}),
    ):
        if rows.size:
            kinds = None if numbers else work.mechanisms
            part_work = replace(work, counts=work.counts[rows], mechanisms=kinds, **numbers)
            parts.append((rows, part_work))
    return parts
