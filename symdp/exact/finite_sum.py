"""All sums of losses that are atoms, by repeated doubling, equal sums merged on the way.

    δ(ε) = Σ_{λ>ε} p_λ (1 − e^{ε−λ}),    1 − δ(ε) = Σ_λ p_λ min(1, e^{ε−λ}).

Sums closer than `EQUAL` of the largest loss are one value but for rounding, and stand at their
mean; no chain of them is longer than `BLURRED`. The error counts the rounding of n additions, the
slope Σ p_λ e^{ε−λ} times the rounding of a loss, and all mass that merging may have put on the
wrong side of ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from symdp.exact.accuracy import BLURRED, EQUAL, MOST_NODES, MOST_WORK, ROUNDED
from symdp.law.elementary import log_sum
from symdp.law.loss import LossLaw
from symdp.law.step import Array
from symdp.law.tilts import log_add_exp
from symdp.law.total import SumLaw, kept_with_law

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

    Parameters
    ----------
    law, epsilon
        the total loss and ε.
    tilt
        where the law is looked at: values that are negligible there and near 0 are left out.
    atomic
        count only those sums in which every step's loss is an atom.
    """
    total = _all_sums(law, tilt, atomic)
    if total is None:
        return None
    loss, log_weight = total
    gap, rounded = _distances(law, loss, epsilon)
    with np.errstate(divide="ignore"):
        gain = log_weight + np.log(-np.expm1(np.minimum(gap, 0.0)))
    log_delta, slope = log_sum(gain), log_sum((log_weight + gap)[gap < 0])
    # Every loss is rounded, which counts where ε lies just below one that makes up δ.
    size = float(np.abs(loss).max()) + abs(epsilon) + ROUNDED
    exposed = math.log(rounded + ROUNDED * ROUNDED) + (slope if slope > -math.inf else 0.0)
    log_error = math.log(ROUNDED) + log_add_exp(math.log(law.count) + log_delta, exposed)
    # What stands for several values next to ε may lie on the wrong side of it.
    near = np.abs(gap) <= BLURRED * size
    log_error = log_add_exp(log_error, log_sum(log_weight[near]) + math.log(BLURRED * size))
    complement = log_sum(log_weight + np.minimum(gap, 0.0))
    # The log of 1 − δ moves by no more than the losses do.
    beside = log_sum(log_weight[near] + np.minimum(gap[near], 0.0)) - complement
    error = ROUNDED * (law.count + size) + BLURRED * size * math.exp(min(beside, 0.0))
    return FiniteSum(log_delta, complement, log_error, slope, error)


def _distances(law: SumLaw, loss: Array, epsilon: float) -> tuple[Array, float]:
    """Return ε less every loss, and the size of what is rounded in those below 0.

    Where the largest loss alone exceeds ε its distance is known beyond doubles.
    """
    last = float(loss[-1])
    top = law.precise_top if last > epsilon and not (loss[-2:-1] > epsilon).any() else None
    if top is not None and abs(float(top) - last) <= EQUAL * abs(last):
        beyond = float(top - Fraction(epsilon))
        return (last - loss) - beyond, abs(beyond)
    return epsilon - loss, float(np.abs(loss).max()) + abs(epsilon) + ROUNDED


def log_multisets(atoms: int, count: int) -> float:
    """Return log C(atoms + count − 1, count), the log of how many multisets there are."""
    return math.lgamma(atoms + count) - math.lgamma(count + 1) - math.lgamma(atoms)


@kept_with_law
def count_sums(law: SumLaw) -> float:
    """Return how many multisets of losses there are: at least as many as different sums."""
    log_count = sum(log_multisets(part.base.loss.size, count) for part, count in law.parts)
    return math.exp(min(log_count, 700.0))


def added(first: Atoms | None, second: Atoms | None, most: float = math.inf) -> Atoms | None:
    """Return the law of a sum of two independent losses, equal values merged, None if too many.

    Parameters
    ----------
    first, second
        The losses.
    most
        Sums from here on are left out.
    """
    if first is None or second is None or first[0].size * second[0].size > MOST_WORK:
        return None
    (loss, log_weight), (other, other_weight) = sorted((first, second), key=lambda a: a[0].size)
    losses, weights, size = [], [], 0
    rows = max(1, MOST_NODES // other.size)
    for start in range(0, loss.size, rows):
        total = np.add.outer(loss[start : start + rows], other).ravel()
        total_weight = np.add.outer(log_weight[start : start + rows], other_weight).ravel()
        kept = total < most
        losses.append(total[kept])
        weights.append(total_weight[kept])
        size += losses[-1].size
        if size > 4 * MAX_SUMS:  # before equal values are merged
            return None
    return merged(np.concatenate(losses), np.concatenate(weights)) if size else None


def power(step: Atoms, count: int, most: float = math.inf) -> Atoms | None:
    """Return the law of the sum of `count` copies by repeated doubling, None if too many."""
    square: Atoms | None = step
    result: Atoms | None = None
    while True:
        if count & 1:
            result = square if result is None else added(result, square, most)
        count >>= 1
        if not count:
            return result
        square = added(square, square, most)
        if square is None:
            return None


def atoms_of(law: LossLaw, tilt: float, atomic: bool = False) -> Atoms:
    """Return the losses of one step at a tilt, only atoms where asked, in rising order."""
    nodes = law.nodes(tilt, 0.0)
    kept = nodes.atomic if atomic else slice(None)
    return nodes.loss[kept], nodes.log_weight[kept]


def merged(loss: Array, log_weight: Array) -> Atoms | None:
    """Return the values in rising order, those that rounding does not tell apart at their mean."""
    order = np.argsort(loss, kind="stable")
    loss, log_weight = loss[order], log_weight[order]
    close = EQUAL * max(abs(loss[0]), abs(loss[-1]))
    starts = np.flatnonzero(np.diff(loss, prepend=-np.inf) > close)
    # No chain of close values may lead far away.
    far = loss - np.repeat(loss[starts], np.diff(np.append(starts, loss.size)))
    if far.max() > BLURRED / EQUAL * close:
        cell = np.floor(far / (BLURRED / EQUAL * close))
        starts = np.flatnonzero(
            (np.diff(loss, prepend=-np.inf) > close) | (np.diff(cell, prepend=0.0) != 0)
        )
    if starts.size > MAX_SUMS:
        return None
    if starts.size == loss.size:
        return loss, log_weight
    lengths = np.diff(np.append(starts, loss.size))
    tops = np.maximum.reduceat(log_weight, starts)
    shares = np.exp(log_weight - np.repeat(tops, lengths))
    total = np.add.reduceat(shares, starts)
    shift = np.add.reduceat(shares * (loss - np.repeat(loss[starts], lengths)), starts) / total
    return loss[starts] + shift, tops + np.log(total)


@kept_with_law
def _listed(law: SumLaw) -> dict[tuple[bytes, ...], Atoms | None]:
    """All sums, by the losses that they are of."""
    return {}


def _all_sums(law: SumLaw, tilt: float, atomic: bool) -> Atoms | None:
    """Return the sums of the losses at a tilt, None where there are too many; both are kept."""
    steps = [atoms_of(part, tilt, atomic) for part, _ in law.parts]
    kept = _listed(law)
    key = tuple(loss.tobytes() for loss, _ in steps)
    if key in kept:
        return kept[key]
    total: Atoms | None = (np.zeros(1), np.zeros(1))
    for step, (_, count) in zip(steps, law.parts, strict=True):
        total = added(total, power(step, count))
    size = sum(1 if other is None else other[0].size for other in (total, *kept.values()))
    if size <= MAX_SUMS // 2:  # each tilt of integer noise has a list of its own
        kept[key] = total
    return total


def united(first: Atoms, second: Atoms) -> Atoms:
    """Return the atoms that are in either list: of integer noise, each tilt has its own."""
    told_apart = [merged(*atoms) for atoms in (first, second)]
    assert told_apart[0] is not None
    assert told_apart[1] is not None
    (loss, log_weight), (other, other_weight) = told_apart[0], told_apart[1]
    place = np.searchsorted(loss, other)
    gap = np.minimum(
        np.abs(other - loss[np.minimum(place, loss.size - 1)]),
        np.abs(other - loss[np.maximum(place - 1, 0)]),
    )
    new = gap > BLURRED * max(float(np.abs(loss).max()), float(np.abs(other).max()))
    losses = np.concatenate([loss, other[new]])
    order = np.argsort(losses, kind="stable")
    return losses[order], np.concatenate([log_weight, other_weight[new]])[order]
