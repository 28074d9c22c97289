"""Sums of single-valued losses next to the largest: few steps can fall short of their own largest.

With the budget B = Σ nᵢ max ℓᵢ − ε, a sum is above ε where what its steps fall short by adds up to
less than B.  Partial sums that fall short by more are left out, and nothing else is:

    δ = Σ_{d < B} P(d) (1 − e^{d − B}),    d = Σ (max ℓᵢ − ℓᵢ).
"""

from __future__ import annotations

import math

import numpy as np

from symdp.exact.accuracy import BLURRED, EQUAL, FEW_NODES, HALF, ROUNDED, TOLERABLE
from symdp.exact.finite_sum import (
    Atoms,
    FiniteSum,
    added,
    atoms_of,
    log_multisets,
    merged,
    power,
)
from symdp.law.elementary import log_sum
from symdp.law.loss import LossLaw
from symdp.law.tilts import log_add_exp, log_one_minus_exp
from symdp.law.total import SumLaw, kept_with_law

MOST_SHORT = 20  # steps: periods of a lattice are summed to more digits if there are more


def topmost_sum(law: SumLaw, epsilon: float, tilt: float) -> FiniteSum | None:
    """Return δ(ε) of the finite part where few steps can fall short, else None.

    Parameters
    ----------
    law, epsilon
        The total of losses that are all single values, and ε below the largest total.
    tilt
        Where the law is looked at: values that are negligible there are left out.
    """
    budget = law.below_top(epsilon)
    if law.precise_top is None or not budget > 0.0:
        return None
    steps: list[Atoms] = []
    rounded = 4.0 * ROUNDED * budget
    for part, count in law.parts:
        most = budget * (1.0 + TOLERABLE)  # both are rounded
        step = _shortfalls(part, tilt, most)
        if step is None:
            return None
        short = math.floor(
            min(budget * (1.0 + TOLERABLE) / step[0][1:].min(initial=math.inf), count)
        )
        if log_multisets(step[0].size, short) > math.log(4 * FEW_NODES):
            return None
        rounded += 2.0 * ROUNDED * short * abs(part.loss_bounds[1])
        steps.append(step)
    most = budget + rounded
    total: Atoms | None = (np.zeros(1), np.zeros(1))
    for step, (_, count) in zip(steps, law.parts, strict=True):
        total = added(total, power(step, count, most), most)
    if total is None:
        return None
    shortfall, log_weight = total
    gap = shortfall - budget
    with np.errstate(divide="ignore"):
        log_delta = log_sum(log_weight + np.log(-np.expm1(np.minimum(gap, 0.0))))
    if log_delta == -math.inf or log_add_exp(log_delta, law.log_mass_at_infinity) > HALF:
        return None  # 1 − δ is known from sums of all values only
    # A sum next to ε may lie on either side of it, as may what stands for several.
    exposed = math.log(rounded) + log_sum((log_weight + np.minimum(gap, 0.0))[gap < rounded])
    blurred = BLURRED * most
    log_error = log_add_exp(math.log(law.count * ROUNDED) + log_delta, exposed)
    log_error = log_add_exp(
        log_error, log_sum(log_weight[np.abs(gap) <= blurred]) + math.log(blurred)
    )
    slope = log_sum((log_weight + gap)[gap < 0])
    return FiniteSum(log_delta, log_one_minus_exp(log_delta), log_error, slope)


def is_near_top(law: SumLaw, epsilon: float) -> bool:
    """Return whether ε is so close to the largest total that `topmost_sum` is worth a try."""
    return law.loss_bounds[1] - epsilon < MOST_SHORT * _gap(law)


@kept_with_law
def _gap(law: SumLaw) -> float:
    """Return how far the second largest total lies below the largest."""
    gaps = [math.inf]
    for part, _ in law.parts:
        loss = part.base.loss
        lower = loss[loss < loss.max(initial=-math.inf)]
        if lower.size:
            gaps.append(float(loss.max() - lower.max()))
    return min(gaps)


def _shortfalls(law: LossLaw, tilt: float, most: float) -> Atoms | None:
    """Return how far losses lie below the largest, in rising order, and the logs of masses."""
    loss, log_weight = atoms_of(law, tilt)
    top = law.loss_bounds[1]
    if not loss.size or abs(loss[-1] - top) > EQUAL * (1.0 + abs(top)):
        return None
    shortfall, log_weight = (loss[-1] - loss)[::-1], log_weight[::-1]
    near = shortfall < most
    return merged(shortfall[near], log_weight[near])
