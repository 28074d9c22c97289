"""Rare large losses: the total loss, given how many of a step's losses exceed a threshold.

Where a rare loss makes δ, no tilt makes ε a typical sum, and an integral cancels. With A and B the
step's loss given that it is below or above a threshold, and p the probability of the latter,

    δ(ε) = Σ_j C(n, j) p^j (1 − p)^{n−j} δ_{A·(n−j) + B·j}(ε),

terms of one sign, each with a tilt of its own. The threshold is where the tilted masses of the
step's values are lowest between two hills.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from flint import arb

from symdp.exact.finite_sum import Atoms, atoms_of, united
from symdp.law.elementary import log_sum
from symdp.law.loss import LossLaw
from symdp.law.step import Array, Step
from symdp.law.total import SumLaw

_SHALLOWEST = 2.0  # e-folds of a valley between two hills that is worth a threshold
_FARTHEST = 3000.0  # e-folds of a probability beyond which no δ is asked for


def conditioned(law: SumLaw, tilt: float) -> list[tuple[float, SumLaw]] | None:
    """Return logs of probabilities and the total losses given the number of large losses.

    Parameters
    ----------
    law
        All of whose losses are atoms.
    tilt
        At which the masses of the values have two hills, > 0.

    Returns
    -------
    list or None
        One pair for each number of large losses, None where no step has two hills.
    """
    best: tuple[float, int, int, Atoms] | None = None
    for index, (part, _) in enumerate(law.parts):
        values = _values(part, tilt)
        depth, first = _valley(values[1] + tilt * values[0])
        if depth > _SHALLOWEST and (best is None or depth > best[0]):
            best = depth, index, first, values
    if best is None:
        return None
    _, index, first, (loss, log_mass) = best
    part, count = law.parts[index]
    whole = log_sum(log_mass)
    sides = [
        _law_of(part, loss[:first], log_mass[:first]),
        _law_of(part, loss[first:], log_mass[first:]),
    ]
    logs = [log_sum(log_mass[:first]) - whole, log_sum(log_mass[first:]) - whole]
    logs[0] = math.log1p(-math.exp(logs[1])) if logs[1] < -1.0 else logs[0]
    others = [pair for k, pair in enumerate(law.parts) if k != index]
    finite = math.log1p(-part.mass_at_infinity) * count
    finite += math.fsum(n * math.log1p(-other.mass_at_infinity) for other, n in others)
    return list(_terms(sides, logs, count, others, finite))


def _terms(
    sides: list[LossLaw],
    logs: list[float],
    count: int,
    others: list[tuple[LossLaw, int]],
    log_finite: float,
) -> Iterator[tuple[float, SumLaw]]:
    choose = math.lgamma(count + 1)
    for j in range(count + 1):
        weight = choose - math.lgamma(j + 1) - math.lgamma(count - j + 1)
        weight += j * logs[1] + (count - j) * logs[0] + log_finite
        if j > 0 and weight < -_FARTHEST and logs[1] < 0 and j > count * math.exp(logs[1]):
            return
        kept = [(side, n) for side, n in zip(sides, (count - j, j), strict=True) if n]
        yield weight, SumLaw([*kept, *others])


def _values(part: LossLaw, tilt: float) -> Atoms:
    """Return all values of a step's loss that count at any tilt from −1 to the given one."""
    values = atoms_of(part, 0.0)
    reach = 1.0
    while reach < tilt:
        values = united(values, atoms_of(part, reach))
        reach *= 2.0
    return united(values, atoms_of(part, tilt))


def _valley(height: Array) -> tuple[float, int]:
    """Return how far the deepest valley lies below the lower of its hills, and where it is."""
    if height.size < 3:
        return 0.0, 0
    before = np.maximum.accumulate(height)
    after = np.maximum.accumulate(height[::-1])[::-1]
    # Two interleaved branches of the loss are no valleys: a neighbour may be as high.
    floor = np.maximum(height[1:-1], np.maximum(height[:-2], height[2:]))
    depth = np.minimum(before[1:-1], after[1:-1]) - floor
    place = int(depth.argmax())
    return float(depth[place]), place + 1


def _law_of(part: LossLaw, loss: Array, log_mass: Array) -> LossLaw:
    """Return the law of a step whose loss is one of some values."""
    log_mass = log_mass - log_sum(log_mass)
    balls = zip(np.exp(log_mass).tolist(), loss.tolist(), strict=True)
    step = Step(
        part.step.name,
        point_loss=loss,
        point_log_p=log_mass,
        point_balls=tuple((arb(mass), arb(value)) for mass, value in balls),
    )
    return LossLaw(step, (float(loss[0]), float(loss[-1])))
