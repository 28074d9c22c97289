r"""The blanket bound on the privacy profile of shuffled answers, of any laws.

With ω = min over all inputs of R_x, the bound for the inputs 0 and 1 of one of n people is

.. math:: δ(ε) \le \frac{1}{n} E\Big[\Big(\sum_{i \le n} X_i\Big)_+\Big] + ∫_B (R_0 - e^ε R_1)_+,

each X 0 with probability 1 − ∫ω, else (R₀ − e^ε R₁)/ω at an output that is drawn from ω, outside
B [Balle2019, Lemma 5.3]. B are outputs that ω has nothing of, and those where X is so large that
they cost less when they are counted apart, as (a + b)₊ ≤ a₊ + b₊.

Of all ordered pairs of inputs the largest bound answers. As E[S₊] ≤ min_t φ(t)ⁿ/(et), a pair of
which that is less than what another pair has needs no sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from symdp.errors import AccuracyError
from symdp.numeric.answer import EQUAL, EXACT, LONG_LINE, SAFETY, SETTLED, TOLERABLE
from symdp.numeric.shuffled.lattice import lattice_excess
from symdp.numeric.shuffled.law import Cells, PartLaw
from symdp.numeric.shuffled.line import Excess, chernoff, line_end, line_excess
from symdp.tolerances import NEGLIGIBLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from symdp.numeric.shuffled.outputs import Outputs

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """An upper bound on log δ of shuffled answers, and what is known of it."""

    log_delta: float
    # relative: what rounding, blur, lattice and quadrature may have added
    share: float
    # the inputs of the largest bound, by their numbers
    pair: tuple[int, int]
    # how much of δ is that of outputs which are counted apart
    apart: float


@dataclass(frozen=True)
class _Split:
    """The panels of a pair that are summed, and what the others add."""

    kept: NDArray[np.bool_]
    apart: float


@dataclass(frozen=True)
class _Order:
    """The panels of a pair from the largest X downwards, and what so many of them add."""

    panels: NDArray[np.int64]
    apart: Array
    # how many must be counted apart, as X is infinite on them
    infinite: int
    # whether X is so large anywhere that it may cost less to count more of them apart
    is_long: bool

    def split(self, count: int) -> _Split:
        """Return the split that counts so many panels apart."""
        kept = np.ones(self.panels.size, dtype=bool)
        kept[self.panels[:count]] = False
        return _Split(kept, float(self.apart[count]))

    def count_at(self, apart: float) -> int:
        """Return how many panels add about so much."""
        if not self.is_long:
            return self.infinite
        count = int(np.searchsorted(self.apart, apart, side="right")) - 1
        return max(count, self.infinite)


@dataclass(frozen=True)
class Estimate:
    """What a split of a pair gives by the best tilt, an upper bound, and moments of its law."""

    log_delta: float
    # about log δ itself, by a saddle point
    about: float
    pair: tuple[int, int]
    split: _Split
    moments: Array


@dataclass(frozen=True)
class Cut:
    """Panels, and the split of them that was chosen for a pair."""

    outputs: Outputs
    estimate: Estimate

    @property
    def kept(self) -> Outputs:
        """The panels that are summed."""
        return self.outputs.only(self.estimate.split.kept)


def blanket_bound(
    outputs: Outputs, pairs: Sequence[tuple[int, int]], people: int, epsilon: float
) -> Bound:
    """Return the largest bound of all pairs of inputs."""
    best = Bound(-math.inf, 0.0, pairs[0], 0.0)
    # What is best counted apart of one pair is about that of the others: a bound for each.
    first = best_split(outputs, pairs[0], people, epsilon)
    estimates = [first.estimate]
    for pair in pairs[1:]:
        trial = _Trial(outputs, pair, people, epsilon)
        estimates.append(trial.estimate(trial.order.count_at(first.estimate.split.apart)))
    estimates.sort(key=lambda estimate: -estimate.log_delta)
    last = replace(estimates[0], log_delta=math.inf)
    for rough in estimates:
        if rough.log_delta <= best.log_delta:
            break
        if _is_mirrored(rough, last):
            continue
        last = rough
        cut = first
        if rough.pair != first.estimate.pair:
            cut = best_split(outputs, rough.pair, people, epsilon)
        if cut.estimate.log_delta <= best.log_delta:
            continue
        bound = _bound(cut, people, epsilon)
        plain = _order(outputs, rough.pair, epsilon)
        if outputs.is_list and cut.estimate.split.apart > plain.apart[plain.infinite]:
            # A tilt says little of few people: sums of atoms cost little.
            whole = replace(cut.estimate, split=plain.split(plain.infinite))
            other = _bound(Cut(outputs, whole), people, epsilon)
            bound = min(bound, other, key=lambda one: one.log_delta)
        if bound.log_delta > best.log_delta:
            best = bound
    return best


def _bound(cut: Cut, people: int, epsilon: float) -> Bound:
    """Return the bound of a pair and its split."""
    estimate = cut.estimate
    excess = _excess(cut.kept, estimate.pair, people, epsilon)
    value = _log_total(excess.log_value, people, estimate.split.apart)
    return Bound(min(value, 0.0), excess.share, estimate.pair, estimate.split.apart)


def _is_mirrored(estimate: Estimate, before: Estimate) -> bool:
    """Whether a pair has the law of the pair before, but for rounding."""
    gap = abs(before.log_delta - estimate.log_delta)
    is_close = gap <= SETTLED * max(abs(estimate.log_delta), 1.0)
    return is_close and np.allclose(estimate.moments, before.moments, rtol=TOLERABLE)


def _log_total(log_excess: float, people: int, apart: float) -> float:
    """Return log(E[S₊]/n + apart), which of an estimate may lie above 0."""
    log_apart = math.log(apart) if apart > 0.0 else -math.inf
    return float(np.logaddexp(log_excess - math.log(people), log_apart))


class _Trial:
    """A pair of inputs on panels, whose split is looked for."""

    def __init__(
        self, outputs: Outputs, pair: tuple[int, int], people: int, epsilon: float
    ) -> None:
        self.outputs = outputs
        self.pair = pair
        self.people = people
        self.values = _values(outputs, pair, epsilon)
        self.masses = outputs.least * outputs.weights
        self.order = _order(outputs, pair, epsilon)

    def counts_between(self, lowest: float, highest: float) -> list[int]:
        """Return how many panels may be counted apart such that they add between two numbers."""
        apart = self.order.apart
        counts = np.flatnonzero((apart >= lowest) & (apart <= highest) & (apart < 1.0))
        return [int(k) for k in counts if k >= self.order.infinite]

    def estimate(self, count: int) -> Estimate:
        """Return what a split gives that counts so many panels apart."""
        split = self.order.split(count)
        values = self.values[split.kept].ravel()
        masses = self.masses[split.kept].ravel()
        law = PartLaw(values[masses > 0.0], masses[masses > 0.0])
        return _estimate(law, self.pair, split, self.people)


def _estimate(law: PartLaw, pair: tuple[int, int], split: _Split, people: int) -> Estimate:
    tilt, log_excess = chernoff(law, people)
    about = log_excess
    if log_excess > -math.inf:
        # a normal law around the saddle point, in place of its height alone
        curvature = people * law.tilted(tilt)[1] + 2.0 / tilt**2
        spread = 0.5 * math.log(2.0 * math.pi * curvature)
        about += 1.0 - math.log(tilt) - spread
    mean = law.masses @ law.values
    second_moment = law.masses @ law.values**2
    moments = np.array([mean, second_moment, split.apart])
    most = _log_total(log_excess, people, split.apart)
    likely = _log_total(about, people, split.apart)
    return Estimate(most, likely, pair, split, moments)


def _order(outputs: Outputs, pair: tuple[int, int], epsilon: float) -> _Order:
    first, second = outputs.densities[list(pair)]
    difference = first - math.exp(epsilon) * second
    gains = np.maximum(difference, 0.0) * outputs.weights
    losses = gains.sum(axis=1)
    largest = _ratio(difference, outputs.least).max(axis=1)
    # numbers next to the end of the doubles have no ratio
    smallest = 1e17 * np.finfo(float).tiny
    is_whole = (outputs.least == 0.0) | (outputs.least > smallest)
    is_finite = np.isfinite(largest) & is_whole.all(axis=1)
    panels = np.argsort(np.where(is_finite, -largest, -np.inf))
    apart = np.concatenate(([0.0], np.cumsum(losses[panels])))
    longest = math.exp(3.0)
    is_long = bool((largest[is_finite] > longest).any())
    unlimited = int((~is_finite).sum())
    return _Order(panels, apart, unlimited, is_long)


def whole_estimate(
    outputs: Outputs, pair: tuple[int, int], people: int, epsilon: float
) -> Estimate:
    """Return what a pair gives where no more is counted apart than must be."""
    trial = _Trial(outputs, pair, people, epsilon)
    return trial.estimate(trial.order.infinite)


def best_split(outputs: Outputs, pair: tuple[int, int], people: int, epsilon: float) -> Cut:
    """Return the split of a pair whose bound by a tilt is least, as far as it is looked for.

    Panels next to the cut are halved, and the cut moved to the best of their ends.
    """
    trial = _Trial(outputs, pair, people, epsilon)
    estimate = _coarse_split(trial)
    if not trial.order.is_long or outputs.is_list:
        return Cut(outputs, estimate)
    # so that X changes by a factor of about e^{1/32} on each
    for _ in range(5):
        count = int((~estimate.split.kept).sum())
        last = max(count - 2, 0)
        first = min(count + 2, trial.order.panels.size)
        near = np.zeros(trial.order.panels.size, dtype=bool)
        near[trial.order.panels[last:first]] = True
        lowest, highest = trial.order.apart[[last, first]]
        finer = _Trial(trial.outputs.halved(near), pair, people, epsilon)
        counts = finer.counts_between(lowest, highest)
        if not counts:
            break
        trial = finer
        estimate = min((trial.estimate(k) for k in counts), key=lambda one: one.about)
    return Cut(trial.outputs, estimate)


def splits_of_all(
    outputs: Outputs, pairs: Sequence[tuple[int, int]], people: int, epsilon: float
) -> tuple[Outputs, list[Estimate]]:
    """Return panels on which every pair has its best cut, and the splits there."""
    apart = []
    for pair in pairs:
        cut = best_split(outputs, pair, people, epsilon)
        outputs = cut.outputs
        apart.append(cut.estimate.split.apart)
    estimates = []
    for pair, share in zip(pairs, apart, strict=True):
        trial = _Trial(outputs, pair, people, epsilon)
        estimates.append(trial.estimate(trial.order.count_at(share * (1.0 + EQUAL))))
    return outputs, estimates


def _coarse_split(trial: _Trial) -> Estimate:
    order = trial.order
    counts = [order.infinite]
    if order.is_long:
        with np.errstate(divide="ignore"):
            parts = np.floor(8.0 * np.log10(np.maximum(order.apart, 1e-300)))
        steps = np.flatnonzero(np.diff(parts)) + 1
        counts += [int(k) for k in steps if k > order.infinite and order.apart[k] < 1.0]
    values: dict[int, Estimate] = {}

    def look(index: int) -> float:
        if index not in values:
            values[index] = trial.estimate(counts[index])
        return values[index].about

    # eighths of a decade: every second decade, then every half, then all
    best = min(range(0, len(counts), 16), key=look)
    for stride in (4, 1):
        reach = range(best - 3 * stride, best + 3 * stride + 1, stride)
        near = [index for index in reach if 0 <= index < len(counts)]
        best = min(near, key=look)
    least = look(best)
    # Of those that are as good, the one with the least range of X.
    good = [index for index in near if look(index) <= least + TOLERABLE]
    return values[good[-1]]


def _ratio(difference: Array, least: Array) -> Array:
    """Return X at the nodes, inf where ω is 0 and the difference is above 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = difference / least
    return np.where(least > 0.0, ratio, np.where(difference > 0.0, np.inf, 0.0))


def part_law(outputs: Outputs, pair: tuple[int, int], epsilon: float) -> PartLaw:
    """Return the law of one answer's part on all panels."""
    masses = outputs.least * outputs.weights
    return PartLaw(*_merged(_values(outputs, pair, epsilon).ravel(), masses.ravel()))


def _values(outputs: Outputs, pair: tuple[int, int], epsilon: float) -> Array:
    """Return X at the nodes of all panels."""
    first, second = outputs.densities[list(pair)]
    return _ratio(first - math.exp(epsilon) * second, outputs.least)


def _merged(values: Array, masses: Array) -> tuple[Array, Array]:
    """Return values and masses, those that are equal but for rounding taken together."""
    counts = masses > 0.0
    values = values[counts]
    masses = masses[counts]
    if not values.size:
        return values, masses
    order = np.argsort(values)
    values = values[order]
    masses = masses[order]
    is_new = np.diff(values, prepend=-np.inf) > EQUAL * np.maximum(np.abs(values), 1.0)
    starts = np.flatnonzero(is_new)
    total = np.add.reduceat(masses, starts)
    mean = np.add.reduceat(masses * values, starts) / total
    return mean, total


def _excess(outputs: Outputs, pair: tuple[int, int], people: int, epsilon: float) -> Excess:
    """Return E[S₊] of a pair by its line, or on a lattice where that has no end."""
    law = part_law(outputs, pair, epsilon)
    tilt, bound = chernoff(law, people)
    if bound == -math.inf:
        return Excess(-math.inf, 0.0)
    if outputs.is_list:
        return _of_atoms(law, people)
    outputs = _resolving(outputs, pair, epsilon, complex(tilt))
    law = part_law(outputs, pair, epsilon)
    off = people * abs(part_law(outputs.halved(), pair, epsilon).cgf(tilt) - law.cgf(tilt))
    if not off < 0.1:
        raise AccuracyError(
            "the law of the answers is not resolved at so many people: ask a smaller epsilon, or "
            "give the outcomes as a list"
        )
    excess = None
    windows = _widest(law, _windows(outputs, pair, epsilon), people, tilt)
    if windows is not None:
        frequency, columns = windows
        finer = part_law(_resolving(outputs, pair, epsilon, tilt + 1j * frequency), pair, epsilon)
        excess = line_excess(replace(finer, windows=columns), people)
    if excess is None:
        excess = lattice_excess(law, _cells(outputs, pair, epsilon, tilt), people)
    off *= SAFETY
    return Excess(excess.log_value + off, excess.share + 2.0 * off)


def _of_atoms(law: PartLaw, people: int) -> Excess:
    """Return E[S₊] of a list: by a blurred line, or on a lattice where sums lie next to 0."""
    blurred = line_excess(law, people)
    assert blurred is not None
    if blurred.share <= EXACT:
        return blurred
    values = law.values
    moved = lattice_excess(law, Cells(law.masses, values, values, values), people)
    return min(blurred, moved, key=lambda excess: excess.log_value)


def _resolving(outputs: Outputs, pair: tuple[int, int], epsilon: float, point: complex) -> Outputs:
    """Return panels on which e^{zX} changes little, where it is not negligible."""
    for _ in range(40):
        values = _values(outputs, pair, epsilon)
        masses = (outputs.least * outputs.weights).sum(axis=1)
        largest = values.max(axis=1)
        turns = abs(point) * (largest - values.min(axis=1))
        with np.errstate(divide="ignore"):
            heights = np.log(masses) + point.real * largest
        is_coarse = (turns > 8.0) & (heights > -2.0 * NEGLIGIBLE)
        if not is_coarse.any():
            break
        outputs = outputs.halved(is_coarse)
    return outputs


def _windows(outputs: Outputs, pair: tuple[int, int], epsilon: float) -> list[Array]:
    """Return intervals of X with the least density of X there, in runs of 1, 2, 4, … panels."""
    values = _values(outputs, pair, epsilon)
    half = 0.5 * (outputs.high - outputs.low)[:, None]
    slope = values @ _differences().T / half
    with np.errstate(divide="ignore", invalid="ignore"):
        density = (outputs.least / np.abs(slope)).min(axis=1)
    is_rising = (slope > 0.0).all(axis=1)
    is_falling = (slope < 0.0).all(axis=1)
    spans = values.max(axis=1) - values.min(axis=1)
    sign = is_rising.astype(int) - is_falling
    sizes = np.abs(values).max(axis=1)
    usable = np.isfinite(density) & (spans > EQUAL * sizes)
    sign = np.where(usable, sign, 0)
    # runs of neighbours on which X goes one way
    adjoin = np.isclose(outputs.low[1:], outputs.high[:-1])
    joined = adjoin & (sign[1:] == sign[:-1])
    run = np.concatenate(([0], np.cumsum(~joined)))
    position = np.arange(run.size) - np.searchsorted(run, run)
    listed = []
    for length in (1, 2, 4, 8, 16, 32):
        group = run * (run.size + 1) + position // length
        columns = []
        for label in np.unique(group[sign != 0]):
            members = (group == label) & (sign != 0)
            ends = values[members].min(), values[members].max()
            columns.append((*ends, 0.9 * density[members].min()))
        listed.append(np.asarray(columns).T)
    return listed


def _differences() -> Array:
    """Return the matrix of the derivative of a polynomial by its values at 16 Gauss nodes."""
    places = np.polynomial.legendre.leggauss(16)[0]
    powers = np.polynomial.legendre.legvander(places, 15)
    slopes = np.empty_like(powers)
    for degree in range(16):
        series = np.polynomial.legendre.legder(np.eye(16)[degree])
        slopes[:, degree] = np.polynomial.legendre.legval(places, series)
    matrix: Array = slopes @ np.linalg.inv(powers)
    return matrix


def _widest(
    law: PartLaw, choices: list[Array], people: int, tilt: float
) -> tuple[float, Array] | None:
    """Return the intervals by which the line ends soonest, and where; None where it does not."""
    best = None
    for columns in choices:
        end = line_end(replace(law, windows=columns), people, tilt)
        if end is not None and (best is None or end < best[0]):
            best = (end, columns)
    return best


def _cells(outputs: Outputs, pair: tuple[int, int], epsilon: float, tilt: float) -> Cells:
    """Return the law of X on cells of all panels, each cut into as many as are of use."""
    assert outputs.function is not None
    values = _values(outputs, pair, epsilon)
    spans = values.max(axis=1) - values.min(axis=1)
    is_wide = spans > EQUAL * np.maximum(np.abs(values).max(axis=1), 1.0)
    # k cells of a panel of mass m cost m (span/k)²: the sum of all is least at these numbers
    masses = (outputs.least * outputs.weights).sum(axis=1)
    heights = np.minimum(tilt * values.max(axis=1), 700.0)
    tilted = masses * np.exp(heights)
    counted = masses / masses.sum() + tilted / tilted.sum()
    costs = np.cbrt(counted * np.where(is_wide, spans, 0.0) ** 2)
    total = max(float(costs.sum()), np.finfo(float).tiny)
    # where X is constant the panel is its own cell, of its own nodes
    constant = values[~is_wide]
    flat = Cells(
        masses[~is_wide],
        constant.mean(axis=1),
        constant.min(axis=1),
        constant.max(axis=1),
    )
    parts = np.ceil(LONG_LINE // 4 * costs / total)
    shares = parts.astype(int)[is_wide] + 3
    low = np.repeat(outputs.low[is_wide], shares)
    widths = (outputs.high - outputs.low)[is_wide] / shares
    width = np.repeat(widths, shares)
    first = np.cumsum(shares) - shares
    position = np.arange(low.size) - np.repeat(first, shares)
    low = low + position * width
    nodes, weights = np.polynomial.legendre.leggauss(7)
    half = 0.5 * width
    inner = low[:, None] + half[:, None] * (1.0 + nodes)
    # next to the ends: at them a law may jump
    margin = 1e-9 * width
    points = np.column_stack((low + margin, inner, low + width - margin))
    inputs = [*pair, *outputs.deciding]
    values = outputs.function(points.ravel(), inputs)
    densities = values.reshape(len(inputs), *points.shape)
    least = densities[2:].min(axis=0)
    difference = densities[0] - math.exp(epsilon) * densities[1]
    ratio = _ratio(difference, least)
    masses = (least[:, 1:-1] * weights).sum(axis=1) * half
    means = (difference[:, 1:-1] * weights).sum(axis=1) * half
    counts = masses > np.finfo(float).tiny
    means = means[counts] / masses[counts]
    lower = np.minimum(ratio[counts].min(axis=1), means)
    upper = np.maximum(ratio[counts].max(axis=1), means)
    return flat.joined(Cells(masses[counts], means, lower, upper))
