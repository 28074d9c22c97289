"""Steps of any mechanisms: the table of their losses, and records asked one at a time.

A record whose losses no line serves, of few steps or atoms say, is asked as a composition, by the
table of methods that answers any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError, SymdpError
from symdp.numeric.kinds import LawTable
from symdp.numeric.loss import LossLaw
from symdp.numeric.step import Array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from symdp.model.mechanism import Mechanism
    from symdp.questions.composition import Composition
    from symdp.questions.guarantee import Guarantee

EXACT, BOUND, ESTIMATE = 0, 1, 2
_KINDS = {"exact": EXACT, "bound": BOUND, "estimate": ESTIMATE}
_MASS = 1e-9  # by which a density's mass may differ from one, as everywhere


def step_mechanism(noise: float, rate: float) -> Mechanism:
    """Return the mechanism of one Gaussian step with Poisson sampling."""
    import sympy as sp

    from symdp.model.mechanism import Mechanism

    x, sigma = sp.Symbol("x", real=True), sp.Symbol("sigma", positive=True)
    density = sp.exp(-(x**2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))
    step = Mechanism.additive(density, x, sensitivity=1, name="step")(sigma=noise)
    return step if rate == 1.0 else step.subsample("poisson", rate)


def gaussian_step(mechanism: Mechanism) -> tuple[float, float] | None:
    """Return σ over the shift and q where a step's pair is that of a sampled Gaussian, else None.

    The pair is ((1−q)f₀ + q f₁, f₀) on the line, log f₀ and log f₁ of degree two in x with the
    same square: its formula tells, not its name.
    """
    import sympy as sp

    if mechanism.sampling is not None and mechanism.sampling.steps is not None:
        return None  # an allocation is no single step
    pair = mechanism.pair("remove")
    line = (pair.support.lower, pair.support.upper) == (-sp.oo, sp.oo) and not pair.is_discrete
    is_plain = not pair.alternatives and not pair.atoms
    if not line or not is_plain or tuple(pair.q_weights) != (1, 0):
        return None
    forms = []
    for density in pair.components:
        log_density = sp.expand(sp.expand_log(sp.log(density), force=True))
        form = log_density.as_poly(pair.variable)
        if form is None or form.degree() != 2 or form.free_symbols_in_domain:
            return None
        square, slope, height = form.all_coeffs()
        mass = sp.exp(height - slope**2 / (4 * square)) * sp.sqrt(-sp.pi / square)
        if not (square < 0 and abs(float(mass) - 1.0) < _MASS):
            return None
        forms.append((square, slope))
    (square, slope), (other, moved) = forms
    if other != square or moved == slope:
        return None
    return float(sp.sqrt(-2 * square) / abs(moved - slope)), float(pair.p_weights[1])


class StepKinds:
    """The laws of some mechanisms' steps on every side that a composition of them has."""

    def __init__(self, mechanisms: Sequence[Mechanism | None], used: NDArray[np.bool_]) -> None:
        from symdp.questions.accounted import accounted

        self.is_served = np.ones(len(mechanisms), dtype=bool)
        self.is_attained = np.ones(len(mechanisms), dtype=bool)  # else the pair is a bound
        self._steps: dict[int, Mechanism] = {}
        for b in np.flatnonzero(used).tolist():
            mechanism = mechanisms[b]
            if mechanism is None:
                continue
            try:
                found = accounted({mechanism: 2})
                (self._steps[b], count), *others = found.steps
                self.is_served[b] = count == 2 and not others
                self.is_attained[b] = found.protection.is_attained
            except SymdpError:  # whoever has such a step is told why
                self.is_served[b] = False
        served = {m: 2 for b, m in enumerate(mechanisms) if b in self._steps and m is not None}
        self._whole = accounted(served) if served else None
        self._tables: dict[str, LawTable] = {}
        for side in self.sides("both"):
            self._tables[side] = LawTable([self._law(b, side) for b in range(used.size)])

    def sides(self, direction: str) -> tuple[str, ...]:
        """Return the sides of a direction, of which the largest answers."""
        return ("remove",) if self._whole is None else self._whole.sides(direction)

    def table(self, side: str) -> LawTable:
        """Return the table of a side; what it does not serve has no loss there."""
        return self._tables[side]

    def _law(self, kind: int, side: str) -> LossLaw | None:
        from symdp.numeric.compile import loss_law
        from symdp.questions.accounted import answered, direction_of

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
        return law if self.is_served[kind] else None


def record_composition(work: Any, record: int) -> Composition | None:
    """Return a record's steps as a composition, None where none of them has a loss."""
    from symdp.questions.composition import compose

    counts = np.asarray(work.counts[record])
    steps = []
    for b in np.flatnonzero(counts):
        if work.mechanisms is not None:
            mechanism = work.mechanisms[b]
        elif math.isfinite(work.noise[b]) and work.rate[b] > 0.0:
            mechanism = step_mechanism(float(work.noise[b]), float(work.rate[b]))
        else:
            mechanism = None
        if mechanism is not None:
            steps.append((mechanism, int(counts[b])))
    return compose(steps) if steps else None


@dataclass
class TableAnswers:
    """What was asked for with its ends, the kind of number, and whether it is the Rényi bound."""

    value: Array
    lower: Array
    upper: Array
    kind: NDArray[np.uint8]
    fell_back: NDArray[np.bool_]


def table_answers(
    work: Any,
    asked: Any,
    records: NDArray[np.int64],
    progress: Callable[[int, int], None] | None = None,
) -> TableAnswers:
    """Return ε, or log δ, of some records, each distinct one asked once as a composition."""
    keys = np.asarray(work.counts[records], dtype=np.float64)
    if asked.log_delta is None:
        keys = np.column_stack([keys, asked.epsilon[records]])
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    rows = []
    for number, place in enumerate(first):
        record = int(records[place])
        try:
            rows.append(_one(work, asked, record))
        except SymdpError as error:
            taken = np.asarray(work.counts[record]).tolist()
            raise type(error)(f"a record of counts {taken!s:.200}: {error}") from None
        if progress is not None:
            progress(number + 1, first.size)
    value, lower, upper, kind, fell_back = np.asarray(rows, dtype=np.float64)[which.ravel()].T
    return TableAnswers(value, lower, upper, kind.astype(np.uint8), fell_back.astype(bool))


def _one(work: Any, asked: Any, record: int) -> tuple[float, float, float, int, bool]:
    composition = record_composition(work, record)
    if composition is None:
        value = 0.0
        if asked.log_delta is None:
            below = -math.expm1(min(float(asked.epsilon[record]), 0.0))
            value = math.log(below) if below > 0.0 else -math.inf
        return value, value, value, EXACT, False
    try:
        return *_ends(_asked_of(composition, asked, record, work.method), asked), False
    except AccuracyError:
        if work.method != "contour":
            raise
    return *_ends(_asked_of(composition, asked, record, "renyi"), asked), True


def _asked_of(composition: Composition, asked: Any, record: int, method: str) -> Guarantee:
    found: Guarantee
    if asked.delta is not None:
        found = composition.epsilon(asked.delta, method, asked.direction)
    else:
        found = composition.delta(float(asked.epsilon[record]), method, asked.direction)
    return found


def _ends(found: Guarantee, asked: Any) -> tuple[float, float, float, int]:
    if asked.log_delta is not None:
        least, value, ends = 0.0, found.epsilon, (found.epsilon_lower, found.epsilon_upper)
    else:
        least, value, ends = -math.inf, found.log_delta, (found.log_lower, found.log_upper)
    unknown = (math.nan, math.nan) if found.kind == "estimate" else (least, value)
    lower, upper = (other if end is None else end for end, other in zip(ends, unknown, strict=True))
    return value, lower, upper, _KINDS[found.kind]
