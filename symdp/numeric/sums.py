"""Losses that are atoms: all their sums, or one period of a lattice that they lie on.

**All sums** come by repeated doubling, equal sums merged on the way.

    δ(ε) = Σ_{λ>ε} p_λ (1 − e^{ε−λ}),    1 − δ(ε) = Σ_λ p_λ min(1, e^{ε−λ}).

Sums closer than `EQUAL` of the largest loss are one value but for rounding, and stand at their
mean; no chain of them is longer than `BLURRED`. The error counts the rounding of n additions, the
slope Σ p_λ e^{ε−λ} times the rounding of a loss, and all mass that merging may have put on the
wrong side of ε.

**Next to the largest sum** few steps can fall short of their own largest loss. With the budget B =
Σ nᵢ max ℓᵢ − ε, a sum is above ε where what its steps fall short by adds up to less than B.
Partial sums that fall short by more are left out, and nothing else is:

    δ = Σ_{d < B} P(d) (1 − e^{d − B}),    d = Σ (max ℓᵢ − ℓᵢ).

Terms are positive, so that rounding adds about n·1e-15 of δ, and what the rounding of λ moves
across ε. A lattice takes its period instead where n or the list is long: that is rounded less.

**Losses on a lattice of spacing Δ:** the trapezoid over one period 2π/Δ of the integrand.

    δ(ε) = (1/2π) ∫_{−π/Δ}^{π/Δ} e^{K(z)−εz} G(z) dy,    z = t + iy,    G as in `lattice_kernel`.

A rule of N points adds δ at distances of NΔ, which Chernoff's bound makes negligible. However
narrow the peak at y = 0 of many steps is, others may be as high wherever the lattice is fine
compared with the differences of the losses that are taken often; nodes whose |φ|ⁿ is shown to be
below e^-40 of the value at y = 0, all together, are not evaluated, and count as an error.

**Where |φ|ⁿ may exceed a threshold**, angles tell: |φ(y − y′)| is the cosine of the angle between
the lines of e^{iyL} and e^{iy′L}, and angles obey the triangle inequality [Krein].  So does Θ(y) =
(Σ nᵢ arccos²|φᵢ(y)|)^½: Θ(y + s) ≥ Θ(y) − Θ(s). As cos θ ≤ e^{−θ²/2}, |Φ(y)| ≤ e^{−Θ(y)²/2}: one
value of Φ bounds a whole stretch around it, about as long as a step's loss is narrow, whatever the
number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from symdp.numeric.answer import (
    BLURRED,
    EQUAL,
    FEW_NODES,
    HALF,
    MOST_NODES,
    MOST_WORK,
    ROUNDING,
    TOLERABLE,
    Answer,
    exact_answer,
    unclosed,
)
from symdp.numeric.elementary import Complex, log_sum, weighted_sums
from symdp.numeric.line import (
    Kernel,
    Line,
    StripValue,
    answer_from_strips,
    extended,
    first_line,
    line_tilt,
    longer,
    loss_size,
)
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import Tilted
from symdp.numeric.saddle_point import Strip, log_add_exp, log_one_minus_exp
from symdp.numeric.step import Array, Index
from symdp.numeric.total import Lattice, SumLaw, find_lattice, kept_with_law
from symdp.tolerances import NEGLIGIBLE, ROUNDED

MAX_SUMS = 2 * MOST_NODES  # of all steps: 16 MB an array, and about a second

Atoms = tuple[Array, Array]  # losses, and logs of masses under P


@dataclass(frozen=True)
class FiniteSum:
    """log δ and log(1 − δ) of the finite part, and the logs of its rounding and of −dδ/dε.

    `complement_error` is relative to 1 − δ where that is a sum of its own.
    """

    log_delta: float
    log_complement: float
    log_error: float
    log_slope: float
    complement_error: float | None = None


def finite_sum(
    law: SumLaw, epsilon: float, tilt: float, *, atomic: bool = False
) -> FiniteSum | None:
    """Return δ(ε) of the finite part as a finite sum, or None where there are too many terms.

    δ = Σ_{λ>ε} p_λ (1 − e^{ε−λ}) over all values λ of the total loss: sums of positive terms.

    `tilt`: where the law is looked at: values that are negligible there and near 0 are left out.
    `atomic`: count only those sums in which every step's loss is an atom.
    """
    total = _all_sums(law, tilt, atomic)
    if total is None:
        return None
    loss, log_weight = total
    gap, rounded = _distances(law, loss, epsilon)
    negative_gap = np.minimum(gap, 0.0)
    with np.errstate(divide="ignore"):
        log_terms = log_weight + np.log(-np.expm1(negative_gap))
    log_delta = log_sum(log_terms)
    is_above = gap < 0
    log_slope = log_sum((log_weight + gap)[is_above])
    # Every loss is rounded, which counts where ε lies just below one that makes up δ.
    largest_size = float(np.abs(loss).max())
    size = largest_size + abs(epsilon) + ROUNDED
    log_exposed = math.log(rounded + ROUNDED * ROUNDED)
    if log_slope > -math.inf:
        log_exposed += log_slope
    log_additions = math.log(law.count) + log_delta
    log_error = math.log(ROUNDED) + log_add_exp(log_additions, log_exposed)
    # What stands for several values next to ε may lie on the wrong side of it.
    near = np.abs(gap) <= BLURRED * size
    log_blurred = log_sum(log_weight[near]) + math.log(BLURRED * size)
    log_error = log_add_exp(log_error, log_blurred)
    log_kink = _log_kink(law, total, epsilon, tilt)
    log_error = log_add_exp(log_error, log_kink)
    log_complement = log_sum(log_weight + negative_gap)
    # The log of 1 − δ moves by no more than the losses do.
    log_near = log_sum(log_weight[near] + negative_gap[near])
    log_share_near = log_near - log_complement
    complement_error = ROUNDED * (law.count + size)
    complement_error += BLURRED * size * math.exp(min(log_share_near, 0.0))
    complement_error += math.exp(min(log_kink - log_complement, 0.0))
    return FiniteSum(log_delta, log_complement, log_error, log_slope, complement_error)


def _log_kink(law: SumLaw, total: Atoms, epsilon: float, tilt: float) -> float:
    """Return the log of what sums may be off where nodes stand for many atoms, one next to ε."""
    kink = 0.0
    for part, count in law.parts:
        low, high, change = part.nodes(tilt, 0.0).kinks
        if law.count == 1:
            is_around = (low <= epsilon) & (epsilon <= high)
            change = change[is_around]
        kink += count * float(change.sum())
    if kink == 0.0:
        return -math.inf
    loss, log_weight = total
    log_tilted_mass = log_sum(log_weight + tilt * (loss - epsilon))
    return math.log(kink) + log_tilted_mass


def _distances(law: SumLaw, loss: Array, epsilon: float) -> tuple[Array, float]:
    """Return ε less every loss, and the size of what is rounded in those below 0.

    Where the largest loss alone exceeds ε its distance is known beyond doubles.
    """
    largest = float(loss[-1])
    second_exceeds = (loss[-2:-1] > epsilon).any()
    if largest > epsilon and not second_exceeds:
        top = law.precise_top
        rounding = EQUAL * abs(largest)
        if top is not None and abs(float(top) - largest) <= rounding:
            beyond = float(top - Fraction(epsilon))
            return (largest - loss) - beyond, abs(beyond)
    largest_size = float(np.abs(loss).max())
    size = largest_size + abs(epsilon) + ROUNDED
    return epsilon - loss, size


def log_multisets(atoms: int, count: int) -> float:
    """Return log C(atoms + count − 1, count), the log of how many multisets there are."""
    log_all = math.lgamma(atoms + count)
    return log_all - math.lgamma(count + 1) - math.lgamma(atoms)


@kept_with_law
def count_sums(law: SumLaw) -> float:
    """Return how many multisets of losses there are: at least as many as different sums."""
    log_counts = [log_multisets(part.base.loss.size, count) for part, count in law.parts]
    log_count = sum(log_counts)
    return math.exp(min(log_count, 700.0))


def added(first: Atoms | None, second: Atoms | None, most: float = math.inf) -> Atoms | None:
    """Return the law of a sum of two independent losses, equal values merged, None if too many.

    `first, second`: the losses. `most`: sums from here on are left out.
    """
    if first is None or second is None:
        return None
    if first[0].size * second[0].size > MOST_WORK:
        return None
    by_size = sorted((first, second), key=lambda atoms: atoms[0].size)
    shorter, longer_list = by_size
    loss, log_weight = shorter
    other, other_weight = longer_list
    sums = []
    log_weights = []
    size = 0
    rows = max(1, MOST_NODES // other.size)
    for start in range(0, loss.size, rows):
        block = slice(start, start + rows)
        total = np.add.outer(loss[block], other).ravel()
        total_weight = np.add.outer(log_weight[block], other_weight).ravel()
        is_counted = total < most
        sums.append(total[is_counted])
        log_weights.append(total_weight[is_counted])
        size += sums[-1].size
        if size > 4 * MAX_SUMS:  # before equal values are merged
            return None
    if not size:
        return None
    return merged(np.concatenate(sums), np.concatenate(log_weights))


def power(step: Atoms, count: int, most: float = math.inf) -> Atoms | None:
    """Return the law of the sum of `count` copies by repeated doubling, None if too many."""
    square: Atoms | None = step
    result: Atoms | None = None
    while True:
        if count & 1 and result is None:
            result = square
        elif count & 1:
            result = added(result, square, most)
            if result is None:
                return None
        count >>= 1
        if not count:
            return result
        square = added(square, square, most)
        if square is None:
            return None


def atoms_of(law: LossLaw, tilt: float, atomic: bool = False) -> Atoms:
    """Return the losses of one step at a tilt, only atoms where asked, in rising order."""
    nodes = law.nodes(tilt, 0.0)
    if not atomic:
        return nodes.loss, nodes.log_weight
    return nodes.loss[nodes.atomic], nodes.log_weight[nodes.atomic]


def merged(loss: Array, log_weight: Array) -> Atoms | None:
    """Return the values in rising order, those that rounding does not tell apart at their mean."""
    order = np.argsort(loss, kind="stable")
    loss = loss[order]
    log_weight = log_weight[order]
    largest_size = max(abs(loss[0]), abs(loss[-1]))
    close = EQUAL * largest_size
    longest_chain = BLURRED / EQUAL * close
    is_start = np.diff(loss, prepend=-np.inf) > close
    starts = np.flatnonzero(is_start)
    # No chain of close values may lead far away.
    lengths = np.diff(np.append(starts, loss.size))
    distance = loss - np.repeat(loss[starts], lengths)
    if distance.max() > longest_chain:
        cell = np.floor(distance / longest_chain)
        is_start |= np.diff(cell, prepend=0.0) != 0
        starts = np.flatnonzero(is_start)
    if starts.size > MAX_SUMS:
        return None
    if starts.size == loss.size:
        return loss, log_weight
    lengths = np.diff(np.append(starts, loss.size))
    distance = loss - np.repeat(loss[starts], lengths)
    tops = np.maximum.reduceat(log_weight, starts)
    shares = np.exp(log_weight - np.repeat(tops, lengths))
    total = np.add.reduceat(shares, starts)
    shift = np.add.reduceat(shares * distance, starts) / total
    return loss[starts] + shift, tops + np.log(total)


@kept_with_law
def _kept_sums(law: SumLaw) -> dict[tuple[bytes, ...], Atoms | None]:
    """All sums, by the losses that they are of."""
    return {}


def _all_sums(law: SumLaw, tilt: float, atomic: bool) -> Atoms | None:
    """Return the sums of the losses at a tilt, None where there are too many; both are kept."""
    steps = [atoms_of(part, tilt, atomic) for part, _ in law.parts]
    kept = _kept_sums(law)
    key = tuple(loss.tobytes() for loss, _ in steps)
    if key in kept:
        return kept[key]
    counts = [count for _, count in law.parts]
    total = _sums_of_steps(steps, counts, atomic)
    size = 0
    for sums in (total, *kept.values()):
        size += 1 if sums is None else sums[0].size
    if size <= MAX_SUMS // 2:  # each tilt of integer noise has a list of its own
        kept[key] = total
    return total


def _sums_of_steps(steps: list[Atoms], counts: list[int], atomic: bool) -> Atoms | None:
    """Return the sums of so many losses of each list, None where there are too many.

    Those of atoms alone only shorten a line: they are given up where of a few thousand no two are
    equal and all would be too many.
    """
    log_sizes = [
        log_multisets(loss.size, count) for (loss, _), count in zip(steps, counts, strict=True)
    ]
    are_many = atomic and sum(log_sizes) > math.log(MAX_SUMS)
    total: Atoms | None = (np.zeros(1), np.zeros(1))
    log_unequal = 0.0  # of how many there are where no two are equal
    for step, count, log_size in zip(steps, counts, log_sizes, strict=True):
        total = added(total, power(step, count))
        if total is None:
            return None
        log_unequal += log_size
        size = total[0].size
        if are_many and size > FEW_NODES and math.log(size) > log_unequal - TOLERABLE:
            return None
    return total


def united(first: Atoms, second: Atoms) -> Atoms:
    """Return the atoms that are in either list: of integer noise, each tilt has its own."""
    first_merged = merged(*first)
    second_merged = merged(*second)
    assert first_merged is not None
    assert second_merged is not None
    loss, log_weight = first_merged
    other, other_weight = second_merged
    index = np.searchsorted(loss, other)
    right_neighbour = loss[np.minimum(index, loss.size - 1)]
    left_neighbour = loss[np.maximum(index - 1, 0)]
    right_gap = np.abs(other - right_neighbour)
    left_gap = np.abs(other - left_neighbour)
    gap = np.minimum(right_gap, left_gap)
    loss_size = float(np.abs(loss).max())
    other_size = float(np.abs(other).max())
    size = max(loss_size, other_size)
    is_new = gap > BLURRED * size
    losses = np.concatenate([loss, other[is_new]])
    log_weights = np.concatenate([log_weight, other_weight[is_new]])
    order = np.argsort(losses, kind="stable")
    return losses[order], log_weights[order]


MOST_SHORT = 20  # steps: periods of a lattice are summed to more digits if there are more


def topmost_sum(law: SumLaw, epsilon: float, tilt: float) -> FiniteSum | None:
    """Return δ(ε) of the finite part where few steps can fall short, else None.

    `law, epsilon`: the total of losses that are all single values, and ε below the largest total.
    `tilt`: where the law is looked at: values that are negligible there are left out.
    """
    budget = law.below_top(epsilon)
    if law.precise_top is None or not budget > 0.0:
        return None
    steps: list[Atoms] = []
    rounded = 4.0 * ROUNDED * budget
    widened_budget = budget * (1.0 + TOLERABLE)  # both are rounded
    for part, count in law.parts:
        step = _shortfalls(part, tilt, widened_budget)
        if step is None:
            return None
        least_shortfall = step[0][1:].min(initial=math.inf)
        steps_short = math.floor(min(widened_budget / least_shortfall, count))
        if log_multisets(step[0].size, steps_short) > math.log(4 * FEW_NODES):
            return None
        rounded += 2.0 * ROUNDED * steps_short * abs(part.loss_bounds[1])
        steps.append(step)
    most = budget + rounded
    total: Atoms | None = (np.zeros(1), np.zeros(1))
    for step, (_, count) in zip(steps, law.parts, strict=True):
        total = added(total, power(step, count, most), most)
    if total is None:
        return None
    shortfall, log_weight = total
    gap = shortfall - budget
    negative_gap = np.minimum(gap, 0.0)
    with np.errstate(divide="ignore"):
        log_payoff = np.log(-np.expm1(negative_gap))
        log_delta = log_sum(log_weight + log_payoff)
    log_whole = log_add_exp(log_delta, law.log_mass_at_infinity)
    if log_delta == -math.inf or log_whole > HALF:
        return None  # 1 − δ is known from sums of all values only
    # A sum next to ε may lie on either side of it, as may what stands for several.
    is_exposed = gap < rounded
    log_mass_exposed = log_sum((log_weight + negative_gap)[is_exposed])
    log_exposed = math.log(rounded) + log_mass_exposed
    log_error = log_add_exp(math.log(law.count * ROUNDED) + log_delta, log_exposed)
    blurred = BLURRED * most
    is_blurred = np.abs(gap) <= blurred
    log_blurred = log_sum(log_weight[is_blurred]) + math.log(blurred)
    log_error = log_add_exp(log_error, log_blurred)
    log_slope = log_sum((log_weight + gap)[gap < 0])
    largest_total = epsilon + budget
    sums = (largest_total - shortfall, log_weight)
    log_error = log_add_exp(log_error, _log_kink(law, sums, epsilon, tilt))
    log_complement = log_one_minus_exp(log_delta)
    return FiniteSum(log_delta, log_complement, log_error, log_slope)


def is_near_top(law: SumLaw, epsilon: float) -> bool:
    """Return whether ε is so close to the largest total that `topmost_sum` is worth a try."""
    return law.loss_bounds[1] - epsilon < MOST_SHORT * _gap_below_top(law)


@kept_with_law
def _gap_below_top(law: SumLaw) -> float:
    """Return how far the second largest total lies below the largest."""
    least_gap = math.inf
    for part, _ in law.parts:
        loss = part.base.loss
        largest = loss.max(initial=-math.inf)
        lower = loss[loss < largest]
        if lower.size:
            least_gap = min(least_gap, float(largest - lower.max()))
    return least_gap


def _shortfalls(law: LossLaw, tilt: float, most: float) -> Atoms | None:
    """Return how far losses lie below the largest, in rising order, and the logs of masses."""
    loss, log_weight = atoms_of(law, tilt)
    top = law.loss_bounds[1]
    rounding = EQUAL * (1.0 + abs(top))
    if not loss.size or abs(loss[-1] - top) > rounding:
        return None
    shortfall = (loss[-1] - loss)[::-1]
    log_weight = log_weight[::-1]
    near = shortfall < most
    return merged(shortfall[near], log_weight[near])


def listed_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) from all sums, or all above ε, None where they are too many.

    `epsilon`: between the least and the largest loss, in nats.
    """
    if law.is_spread:
        return None
    sums: FiniteSum | None = None
    if is_near_top(law, epsilon):
        tilt = line_tilt(law, epsilon, Strip.RIGHT)
        sums = topmost_sum(law, epsilon, tilt)
    if sums is None and count_sums(law) <= MAX_SUMS:
        is_long = count_sums(law) > FEW_NODES or law.count > MOST_SHORT
        if is_long and find_lattice(law):
            return None
        # Lists of points are whole at every tilt; of δ next to 1 the bulk of P is needed.
        is_list = not any(part.step.pieces for part, _ in law.parts)
        if is_list or law.log_mass_at_infinity > HALF:
            tilt = 0.0
        else:
            tilt = line_tilt(law, epsilon, Strip.RIGHT)
        sums = finite_sum(law, epsilon, tilt)
    if sums is None:
        return None
    return _answer_of_sum(sums, law.log_mass_at_infinity, epsilon)


def _answer_of_sum(sums: FiniteSum, log_escaped: float, epsilon: float) -> Answer:
    log_delta = log_add_exp(sums.log_delta, log_escaped)
    error = 0.0
    slope = math.nan
    if log_delta > -math.inf:
        error = math.exp(min(sums.log_error - log_delta, 0.0))
        slope = -math.exp(min(sums.log_slope - log_delta, 700.0))
    # Lists made for a far tilt lack the bulk of P, of which δ next to 1 is made.
    if log_delta > HALF:
        log_complement = sums.log_complement
        complement_error = sums.complement_error
        error += unclosed(log_delta, log_complement, error)
    else:
        log_complement = log_one_minus_exp(log_delta)
        complement_error = None
    return exact_answer(log_delta, log_complement, error, slope, epsilon, complement_error)


def lattice_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) of losses on a lattice, None where there is none or it is too fine."""
    lattice = find_lattice(law)
    if lattice is None:
        return None
    # A lattice finer than the sums are many has no sum near most of its points.
    spacing = float(lattice.spacing)
    width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
    if count_sums(law) < width / spacing:
        return None
    kernel = lattice_kernel(lattice, epsilon)
    falls = lattice_fall(lattice, epsilon)
    period = 2.0 * math.pi / spacing

    def value(strip: Strip) -> StripValue | None:
        tilt = line_tilt(law, epsilon, strip)
        tilted = law.tilted(tilt)
        first, limit = first_line(law, tilted, epsilon, tilt, kernel, period, 0.0)
        line = with_period(law, epsilon, first, tilted, kernel, limit)
        if line is None:
            return None
        return line.value(epsilon, falls)

    return answer_from_strips(law, value)


def lattice_kernel(lattice: Lattice, epsilon: float) -> Kernel:
    """Return G(z) = Δ Σ_{λ>ε} e^{−z(λ−ε)}(1 − e^{ε−λ}) over the lattice, in closed form.

    The factor Δ makes the integral over one period 2π/Δ of e^{F(z)} G(z), divided by 2π, equal δ.

    With r the distance from ε up to the next point, the two geometric series combine to
    e^{−zr}[(1 − e^{−r}) + e^{−zΔ}(e^{−r} − e^{−Δ})]/((1 − e^{−zΔ})(1 − e^{−(z+1)Δ})).
    """
    spacing = float(lattice.spacing)
    distance = float((lattice.offset - Fraction(epsilon)) % lattice.spacing)
    first = -math.expm1(-distance)
    second = -math.exp(-distance) * math.expm1(distance - spacing)

    def kernel(z: Complex) -> Complex:
        with np.errstate(all="ignore"):  # what is no double is refused where the line begins
            series = first + second * np.exp(-z * spacing)
            numerator = np.exp(-z * distance) * series
            at_z = np.expm1(-z * spacing)
            at_next = np.expm1(-(z + 1.0) * spacing)
            denominator = at_z * at_next
            return np.asarray(spacing * numerator / denominator)

    return kernel


def lattice_fall(lattice: Lattice, epsilon: float) -> Kernel:
    """Return −d log(e^{−εz} G(z))/dε: between points what falls is the sum of e^{(z+1)(ε−λ)}."""
    spacing = float(lattice.spacing)
    distance = float((lattice.offset - Fraction(epsilon)) % lattice.spacing)
    near = math.exp(-distance)

    def falls(z: Complex) -> Complex:
        turn = np.exp(-z * spacing)
        numerator = near * (1.0 - turn)
        denominator = 1.0 - near + turn * (near - math.exp(-spacing))
        return np.asarray(numerator / denominator)

    return falls


def with_period(
    law: SumLaw, epsilon: float, line: Line, tilted: Sequence[Tilted], kernel: Kernel, limit: int
) -> Line | None:
    """Return a line with all values of half a period that may count, and a bound of the others.

    `limit` is the number of nodes from 0 to the middle; None where too many of them count.
    """
    first = line.places.size
    if first >= limit:
        return replace(line, last=0.0)
    counts = [count for _, count in law.terms]
    angles = Angles(tilted, counts)
    level = NEGLIGIBLE + math.log(limit)
    indices = places_above(angles, line.step, first, limit, level)
    if indices is None and limit > MOST_NODES:
        return None
    if indices is None:
        whole = longer(law, line, limit, kernel)
        return replace(whole, last=0.0)
    # |G| is largest at y = 0, and so is the modulus of every value.
    first_size = abs(line.values[0])
    left_out = 2.0 * math.exp(-NEGLIGIBLE) * first_size
    places: Array = line.step * np.asarray(indices, dtype=np.float64)
    if places.size:
        finer = law.tilted(line.tilt, float(places[-1]))
        logs = [part.log_characteristic(places) for part in finer]
        line = extended(law, line, finer, places, logs, kernel)
    # The rounding of the losses and of ε turns far values by so much times y.
    size = abs(epsilon) + loss_size(law, tilted)
    far_moment = float(weighted_sums(np.abs(line.values[first:]), places))
    turned = 2.0 * ROUNDING * size * far_moment
    last = (left_out + turned) / (2.0 * line.places.size)
    return replace(line, last=last)


_SPLIT = 4  # parts of a stretch that is not excluded, and nodes of one that is not split further


class Angles:
    """Θ of steps whose losses are single values, at one tilt.

    `counts`: how often each is taken.
    """

    def __init__(self, tilted: Sequence[Tilted], counts: Sequence[float]) -> None:
        self._tilted = tilted
        self._counts = counts
        self.atoms = sum(part.weight.size for part in tilted)
        self.work = 0  # values of e^{iyL} so far
        all_counts = float(sum(counts))
        self.most = 0.5 * math.pi * math.sqrt(all_counts)

    def at(self, y: Array) -> Array:
        """Return Θ(y), rounded down."""
        self.work += y.size * self.atoms
        square = np.zeros(y.size)
        for part, count in zip(self._tilted, self._counts, strict=True):
            log_modulus = part.log_characteristic(y).real
            depth = np.maximum(-log_modulus - 2.0 * ROUNDING, 0.0)
            sine = np.sqrt(-np.expm1(-2.0 * depth))
            angle = np.arctan2(sine, np.exp(-depth))
            square += count * (angle * angle)
        return np.asarray(np.sqrt(square))

    def within(self, reach: Array) -> Array:
        """Bound Θ(s) for all |s| ≤ reach: |φ(s)| ≥ 1 − σ²s²/2."""
        square = np.zeros(reach.size)
        for part, count in zip(self._tilted, self._counts, strict=True):
            half_width = 0.5 * math.sqrt(part.variance)
            sine = np.minimum(half_width * reach, math.sqrt(0.5))
            angle = 2.0 * np.arcsin(sine)
            square += count * angle**2
        return np.asarray(np.sqrt(square))


def places_above(angles: Angles, step: float, first: int, last: int, level: float) -> Array | None:
    """Return the k, first ≤ k < last, at which |Φ(k·step)| may be above e^{−level}.

    They come in rising order; None stands for too many to list or to look for.
    """
    needed = math.sqrt(2.0 * level)
    if needed > angles.most:
        return None
    edges = [first]
    while edges[-1] < last:
        edges.append(min(last, 2 * edges[-1] + _SPLIT))
    low = np.asarray(edges[:-1])
    high = np.asarray(edges[1:])
    starts: list[Index] = []
    stops: list[Index] = []
    places = 0
    most_work = angles.work + MOST_WORK
    while low.size:
        half_length = 0.5 * step * (high - 1 - low)
        around = needed + angles.within(half_length)
        # Where even right angles would not do, there is no need to look.
        hopeful = np.flatnonzero(around <= angles.most)
        if low.size + hopeful.size * angles.atoms > most_work - angles.work:
            return None
        is_above = np.ones(low.size, dtype=bool)
        middle = 0.5 * step * (low + high - 1)[hopeful]
        is_above[hopeful] = angles.at(middle) < around[hopeful]
        low = low[is_above]
        high = high[is_above]
        is_narrow = high - low <= _SPLIT
        starts.append(low[is_narrow])
        stops.append(high[is_narrow])
        places += int((high - low)[is_narrow].sum())
        if places > MOST_NODES:
            return None
        low, high = _parts_of_stretches(low[~is_narrow], high[~is_narrow])
    return _integers_between(np.concatenate(starts), np.concatenate(stops))


def _integers_between(starts: Index, stops: Index) -> Array:
    """Return the integers of disjoint stretches [start, stop), in rising order."""
    order = np.argsort(starts)
    starts = starts[order]
    sizes = stops[order] - starts
    cumulated = np.cumsum(sizes)
    before = np.concatenate([[0], cumulated[:-1]])
    offsets = np.repeat(starts - before, sizes)
    return np.asarray(offsets + np.arange(offsets.size))


def _parts_of_stretches(low: Array, high: Array) -> tuple[Array, Array]:
    """Cut stretches of nodes into several each."""
    width = -((low - high) // _SPLIT)
    widths = width[:, None]
    starts = low[:, None] + np.arange(_SPLIT) * widths
    stops = np.minimum(starts + widths, high[:, None])
    is_nonempty = starts < stops
    return starts[is_nonempty], stops[is_nonempty]
