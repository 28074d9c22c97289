"""The methods of individual accounting, run over all records, here or by an executor.

A record whose losses no shared line serves, of few steps or of atoms say, is asked as a composition
by the table of methods that answers any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError, InputError, SymdpError, answer_of
from symdp.individual import gaussian
from symdp.individual.published import least_bounds, plancherel
from symdp.individual.result import IndividualResult, larger
from symdp.numeric.answer import ROUNDING
from symdp.numeric.loss import LossLaw
from symdp.numeric.many.kinds import LawTable, Table, sampled_normals
from symdp.numeric.many.rows import (
    CONTOUR,
    UNRESOLVED,
    WITHOUT_LOSS,
    Progress,
    Solution,
    solve_rows,
    used_kinds,
)
from symdp.numeric.step import Array
from symdp.questions.guarantee import KINDS, Link
from symdp.tolerances import MASS_TOLERANCE

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from numpy.typing import ArrayLike

    from symdp.arguments import Direction, MethodName
    from symdp.model.mechanism import Mechanism
    from symdp.questions.composition import Composition

METHODS = ("contour", "plancherel", "renyi", gaussian.NAME)
EXACT, BOUND, ESTIMATE = range(3)  # places in KINDS
_MOST_KINDS = 1_000  # of steps of all records that no shared line serves: each costs half a second
_FEWEST_A_PART = 2_000  # records on shared lines that are worth a task of an executor
_TASKS = 16  # parts of the records, for an executor
_ROWS = 1 << 18  # records that are compared at once
_SEED = 1  # of the weights that tell records apart
# places in PATHS
_ALONE = 2
_RENYI = 3
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
    def _kinds(self) -> _StepKinds:
        assert self.mechanisms is not None
        return _StepKinds(self.mechanisms, used_kinds(self.counts, slice(None)))

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
        if direction == "both":
            return ("remove", "add")
        return (direction,)

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

    @property
    def least(self) -> float:
        """The least ε, or log δ."""
        if self.log_delta is None:
            return -math.inf
        return 0.0

    def rows(self, chosen: Any) -> Asked:
        """Return the question for some of the records."""
        return replace(self, epsilon=None if self.epsilon is None else self.epsilon[chosen])


Parts = Sequence[tuple[NDArray[np.int64] | None, Work]]


def run(
    parts: Parts,
    question: Asked,
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
        answers = [answer(work, question.rows(places), progress) for places, work in tasks]
    else:
        futures = [executor.submit(answer, work, question.rows(places)) for places, work in tasks]
        answers = []
        for number, future in enumerate(futures):
            answers.append(answer_of(future))
            if progress is not None:
                progress(number + 1, len(futures))
    if len(answers) == 1 and parts[0][0] is None:
        return answers[0]
    order = np.argsort(np.concatenate([places for places, _ in tasks]), kind="stable")
    joined: dict[str, Any] = {}
    for field in fields(IndividualResult):
        values = [getattr(part_answers, field.name) for part_answers in answers]
        if isinstance(values[0], np.ndarray):
            joined[field.name] = np.concatenate(values)[order]
    notes = dict.fromkeys(part_answers.note for part_answers in answers if part_answers.note)
    return replace(answers[0], note="; ".join(notes), **joined)


def answer(work: Work, question: Asked, progress: Progress | None = None) -> IndividualResult:
    """Return the answers of some records, equal ones asked once: what an executor's worker does."""
    first, which = distinct_rows(work.counts, question.epsilon)
    if first.size == which.size:
        return _noted(work, _of_distinct(work, question, progress))
    few = replace(work, counts=np.asarray(work.counts[first]))
    return _noted(work, _of_distinct(few, question.rows(first), progress).taken(which))


def distinct_rows(
    counts: NDArray[np.integer], epsilon: Array | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return a record of each history, and which of these every record has.

    Records are told apart by a sum of their counts with random weights, modulo 2⁶⁴. If two
    histories have one sum, every record counts as a history of its own.
    """
    records, kinds = counts.shape
    chance = np.random.default_rng(_SEED)
    weights = chance.integers(1, 2**63, kinds + 1, dtype=np.uint64)
    sums = np.zeros(records, dtype=np.uint64)
    for kind in range(kinds):
        counts_of_kind = np.asarray(counts[:, kind]).astype(np.uint64)
        sums += counts_of_kind * weights[kind]
    if epsilon is not None:
        bits_of_epsilon = np.ascontiguousarray(epsilon).view(np.uint64)
        sums += bits_of_epsilon * weights[kinds]
    _, first, which = np.unique(sums, return_index=True, return_inverse=True)
    for start in range(0, records, _ROWS):
        block = slice(start, start + _ROWS)
        representatives = first[which[block]]
        same = np.array_equal(counts[representatives], counts[block])
        if epsilon is not None:
            same &= np.array_equal(epsilon[representatives], epsilon[block])
        if not same:
            every = np.arange(records)
            return every, every
    return first, which


def _noted(work: Work, found: IndividualResult) -> IndividualResult:
    """Return the answers with how many of them were found by what."""
    notes = [found.note] if found.note else []
    alone = int(np.count_nonzero(found.path_code == _ALONE))
    bounded = int(np.count_nonzero(found.path_code == _RENYI))
    if alone and work.has_table:
        notes.append(f"{alone} records were asked one by one")
    if bounded and (work.method == "contour" or not work.has_table):
        notes.append(f"{bounded} records have the Rényi bound only")
    return replace(found, note="; ".join(notes))


def _of_distinct(work: Work, question: Asked, progress: Progress | None) -> IndividualResult:
    if not work.has_table:
        return _one_by_one(work, question, progress)
    combined: IndividualResult | None = None
    left = work.unserved
    for side in work.sides(question.direction):
        floor = None
        if combined is not None:
            # Whoever is proved to have less on this side needs no number there.
            floor = combined.computed
        side_question = replace(question, direction=side, floor=floor, with_lower=combined is None)
        if work.method == "contour":
            answered, unresolved = _contour(work, side_question, progress)
            left |= unresolved
        else:
            answered = _published(work, side_question)
        combined = answered if combined is None else larger(combined, answered)
    assert combined is not None
    bounded = work.dominated & (combined.kind_code == EXACT)
    combined.computed[bounded] = combined.upper[bounded]
    combined.kind_code[bounded] = BOUND
    return _with_single_records(
        work, question, replace(combined, direction=question.direction), left
    )


def _one_by_one(work: Work, question: Asked, progress: Progress | None) -> IndividualResult:
    """Return the answers of records whose steps are any mechanisms, as compositions."""
    if work.method == "plancherel":
        raise InputError("method 'plancherel' knows Gaussian steps only; use 'contour'")
    singles = _singles(work, question, np.arange(work.counts.shape[0]), progress)
    path = np.where(singles.fell_back, _RENYI, _ALONE)
    return _result(
        work, question, singles.value, (singles.lower, singles.upper), singles.kind, path, ""
    )


def _contour(
    work: Work, question: Asked, progress: Progress | None
) -> tuple[IndividualResult, NDArray[np.bool_]]:
    """Return the answers on one side, and which records have no more than a bound there."""
    solution = _solve(work.table(question.direction), work, question, progress)
    answered = solution.path == CONTOUR
    least = question.least
    if question.log_delta is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            width = np.abs(solution.error / solution.slope)
        width = np.where(answered, np.nan_to_num(width), 0.0) + _ULPS * np.abs(solution.epsilon)
        width = np.where(solution.path == WITHOUT_LOSS, 0.0, width)
        values = solution.epsilon
        lower = np.maximum(values - width, 0.0)
        upper = np.maximum(values + width, 0.0)
        values[:] = np.maximum(values, 0.0)
    else:
        values = solution.log_delta
        width = np.where(answered, np.log1p(solution.error) + _ULPS * np.abs(values), 0.0)
        lower = values - width
        upper = np.minimum(values + width, 0.0)
        values[:] = np.minimum(values, 0.0)
    if work.noise_above is not None:
        lower[:] = least
        if question.with_lower:
            below = _solve(work.table(question.direction, above=True), work, question, None)
            usable = below.path == CONTOUR
            if question.log_delta is not None:
                with np.errstate(invalid="ignore", divide="ignore"):
                    low = below.epsilon - np.abs(below.error / below.slope) * (1.0 + _ULPS)
                lower = np.where(usable, np.maximum(low * (1.0 - _ULPS), 0.0), least)
            else:
                lower = np.where(usable, below.log_delta - np.log1p(below.error), least)
    path = np.where(solution.path == WITHOUT_LOSS, 1, 0)
    kind = np.zeros(path.size, dtype=np.uint8)
    left = solution.path == UNRESOLVED
    path[left] = 3
    kind[left] = BOUND
    values[left] = solution.renyi[left]
    lower[left] = least
    upper[left] = solution.renyi[left]
    bounds = (np.fmin(lower, values), np.fmax(upper, values))
    return _result(work, question, values, bounds, kind, path, "", solution.error), left


def _with_single_records(
    work: Work, question: Asked, found: IndividualResult, left: NDArray[np.bool_]
) -> IndividualResult:
    """Return the answers with records that no line served asked one by one, in both directions."""
    alone = np.flatnonzero(left)
    if work.mechanisms is None:
        alone = _alone(work.counts, alone)
    path = found.path_code
    error = found.numerical_error
    if alone.size:
        single = _singles(work, question, alone)
        found.computed[alone] = single.value
        found.upper[alone] = single.upper
        found.kind_code[alone] = single.kind
        found.lower[alone] = single.lower if work.noise_above is None else question.least
        path[alone] = np.where(single.fell_back, _RENYI, _ALONE)
    if work.method == "contour":
        error[path > 1] = np.nan
    return found


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


def _solve(table: Table, work: Work, question: Asked, progress: Progress | None) -> Solution:
    return solve_rows(
        table, work.counts, question.log_delta, question.epsilon, progress, question.floor
    )


_ESTIMATES = {
    "plancherel": (
        plancherel,
        "the grid's error is not bounded: it is large where a step's loss is narrower than the "
        "spacing",
    ),
    gaussian.NAME: (
        gaussian.central_limit,
        "the central limit under-reports where single losses are large",
    ),
}


def _published(work: Work, question: Asked) -> IndividualResult:
    """Return the answers of the Rényi bound or of an estimate on one side."""
    if work.method == "renyi":
        value = least_bounds(work.table(question.direction), work.counts, question)
        value = np.minimum(value, 0.0) if question.delta is None else np.maximum(value, 0.0)
        return _result(
            work, question, value, (np.full(value.size, question.least), value), BOUND, 3, ""
        )
    estimate, note = _ESTIMATES[work.method]
    value = estimate(work.counts, work.noise, work.rate, question)
    unknown = np.full(value.size, np.nan)
    return _result(work, question, value, (unknown, unknown), ESTIMATE, 0, note)


def _result(
    work: Work,
    question: Asked,
    value: Array,
    bounds: tuple[Array, Array],
    kind: ArrayLike,
    path: ArrayLike,
    note: str,
    error: ArrayLike = math.nan,
) -> IndividualResult:
    """Return what was found of ε, or of log δ, beside what was given; one code serves all rows."""
    size = value.size
    epsilon = value
    log_delta = value
    if question.log_delta is not None:
        log_delta = np.full(size, question.log_delta)
    else:
        assert question.epsilon is not None
        epsilon = question.epsilon
    return IndividualResult(
        "delta" if question.log_delta is None else "epsilon",
        epsilon,
        log_delta,
        *bounds,
        kind_code=np.full(size, kind, dtype=np.uint8),
        path_code=np.full(size, path, dtype=np.uint8),
        numerical_error=np.full(size, error),
        steps=np.asarray(work.counts.sum(axis=1), dtype=np.int64),
        method=work.method,
        direction=question.direction,
        note=note,
    )


def step_mechanism(noise: float, rate: float) -> Mechanism:
    """Return the mechanism of one Gaussian step with Poisson sampling."""
    import sympy as sp

    from symdp.model.mechanism import Mechanism

    x = sp.Symbol("x", real=True)
    sigma = sp.Symbol("sigma", positive=True)
    density = sp.exp(-(x**2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))
    step = Mechanism.additive(density, x, sensitivity=1, name="step")(sigma=noise)
    if rate == 1.0:
        return step
    return step.subsample("poisson", rate)


def gaussian_step(mechanism: Mechanism) -> tuple[float, float] | None:
    """Return σ over the shift and q where a step's pair is that of a sampled Gaussian, else None.

    The pair is ((1−q)f₀ + q f₁, f₀) on the line, log f₀ and log f₁ of degree two in x with the
    same square: its formula tells, not its name.
    """
    import sympy as sp

    if mechanism.sampling is not None and mechanism.sampling.steps is not None:
        return None  # an allocation is no single step
    pair = mechanism.pair("remove")
    is_line = (pair.support.lower, pair.support.upper) == (-sp.oo, sp.oo)
    is_plain = not pair.is_discrete and not pair.alternatives and not pair.atoms
    if not is_line or not is_plain or tuple(pair.q_weights) != (1, 0):
        return None
    forms = []
    for density in pair.components:
        logarithm = sp.expand_log(sp.log(density), force=True)
        form = sp.expand(logarithm).as_poly(pair.variable)
        if form is None or form.degree() != 2 or form.free_symbols_in_domain:
            return None
        square, slope, height = form.all_coeffs()
        peak = sp.exp(height - slope**2 / (4 * square))
        mass = peak * sp.sqrt(-sp.pi / square)
        if not (square < 0 and abs(float(mass) - 1.0) < MASS_TOLERANCE):
            return None
        forms.append((square, slope))
    (square, slope), (other_square, other_slope) = forms
    if other_square != square or other_slope == slope:
        return None
    multiplier = sp.sqrt(-2 * square) / abs(other_slope - slope)
    return float(multiplier), float(pair.p_weights[1])


class _StepKinds:
    """The laws of some mechanisms' steps on every side that a composition of them has."""

    def __init__(self, mechanisms: Sequence[Mechanism | None], used: NDArray[np.bool_]) -> None:
        from symdp.questions.steps.accounted import accounted

        self.is_served = np.ones(len(mechanisms), dtype=bool)
        self.is_attained = np.ones(len(mechanisms), dtype=bool)  # else the pair is a bound
        self._steps: dict[int, Mechanism] = {}
        for b in np.flatnonzero(used).tolist():
            mechanism = mechanisms[b]
            if mechanism is None:
                continue
            try:
                composition = accounted({mechanism: 2})
                (self._steps[b], count), *others = composition.steps
                self.is_served[b] = count == 2 and not others
                self.is_attained[b] = composition.protection.is_attained
            except SymdpError:  # whoever has such a step is told why
                self.is_served[b] = False
        served = {m: 2 for b, m in enumerate(mechanisms) if b in self._steps and m is not None}
        self._whole = accounted(served) if served else None
        self._tables: dict[str, LawTable] = {}
        for side in self.sides("both"):
            self._tables[side] = LawTable([self._law_of_kind(b, side) for b in range(used.size)])

    def sides(self, direction: str) -> tuple[str, ...]:
        """Return the sides of a direction, of which the largest answers."""
        if self._whole is None:
            return ("remove",)
        return self._whole.sides(direction)

    def table(self, side: str) -> LawTable:
        """Return the table of a side; what it does not serve has no loss there."""
        return self._tables[side]

    def _law_of_kind(self, kind: int, side: str) -> LossLaw | None:
        from symdp.numeric.laws.of_mechanism import loss_law
        from symdp.questions.steps.accounted import answered, direction_of

        if not (self.is_served[kind] and kind in self._steps):
            return None
        step = self._steps[kind]
        direction = direction_of(side)
        if side != direction:
            step = answered(step).lowered
        try:
            law = loss_law(step, direction)
            self.is_served[kind] = type(law) is LossLaw and law.domain[1] > 0.0
            self.is_served[kind] &= law.mass_at_infinity < 1.0 and law.uncertain_mass == 0.0
        except SymdpError:
            self.is_served[kind] = False
        if self.is_served[kind]:
            return law
        return None


def record_composition(work: Work, record: int) -> Composition | None:
    """Return a record's steps as a composition, None where none of them has a loss."""
    from symdp.questions.composition import compose

    counts = np.asarray(work.counts[record])
    steps = []
    for b in np.flatnonzero(counts):
        mechanism = None
        if work.mechanisms is not None:
            mechanism = work.mechanisms[b]
        elif math.isfinite(work.noise[b]) and work.rate[b] > 0.0:
            mechanism = step_mechanism(float(work.noise[b]), float(work.rate[b]))
        if mechanism is not None:
            steps.append((mechanism, int(counts[b])))
    if steps:
        return compose(steps)
    return None


class _Singles(NamedTuple):
    """What was asked for with its ends, the kind of number, and whether it is the Rényi bound."""

    value: Array
    lower: Array
    upper: Array
    kind: NDArray[np.uint8]
    fell_back: NDArray[np.bool_]


def _singles(
    work: Work, question: Asked, records: NDArray[np.int64], progress: Progress | None = None
) -> _Singles:
    """Return ε, or log δ, of some records, each distinct one asked once as a composition."""
    keys = np.asarray(work.counts[records], dtype=np.float64)
    if question.epsilon is not None:
        keys = np.column_stack([keys, question.epsilon[records]])
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    rows = []
    for number, first_record in enumerate(first):
        record = int(records[first_record])
        try:
            rows.append(_single(work, question, record))
        except SymdpError as error:
            taken = np.asarray(work.counts[record]).tolist()
            raise type(error)(f"a record of counts {taken!s:.200}: {error}") from None
        if progress is not None:
            progress(number + 1, first.size)
    value, lower, upper, kind, fell_back = np.asarray(rows, dtype=np.float64)[which.ravel()].T
    return _Singles(value, lower, upper, kind.astype(np.uint8), fell_back.astype(bool))


def _single(work: Work, question: Asked, record: int) -> tuple[float, float, float, int, bool]:
    steps = record_composition(work, record)
    epsilon = 0.0 if question.epsilon is None else float(question.epsilon[record])
    if steps is None:
        value = 0.0
        if question.delta is None:
            below = -math.expm1(min(epsilon, 0.0))
            value = math.log(below) if below > 0.0 else -math.inf
        return value, value, value, EXACT, False

    def answer_by(method: str) -> Link:
        if question.delta is not None:
            return Link.of(steps.epsilon(question.delta, cast("MethodName", method), side))
        return Link.of(steps.delta(epsilon, cast("MethodName", method), side))

    side = cast("Direction", question.direction)
    fell_back = False
    try:
        link = answer_by(work.method)
    except AccuracyError:
        if work.method != "contour":
            raise
        link = answer_by("renyi")
        fell_back = True
    unknown = (question.least, link.value)
    if link.kind == "estimate":
        unknown = (math.nan, math.nan)
    ends = zip((link.lower, link.upper), unknown, strict=True)
    lower, upper = (other if end is None else end for end, other in ends)
    return link.value, lower, upper, KINDS.index(link.kind), fell_back
