"""What the published figures account for, and how one method answers along a curve."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

from fixed_batch import substitution_pair

import symdp
from symdp.errors import SymdpError

EPSILON, DELTA, STEPS = "ε", "δ", "number of steps"


@cache
def sampled(sigma: str, rate: str, relation: str = "remove") -> symdp.Mechanism:
    """Gaussian noise with sampling; numbers are decimals or ratios, taken exactly."""
    if relation == "substitution":
        return substitution_pair(sigma, rate)
    noise = symdp.mechanisms.gaussian(sigma=sigma)
    return noise if rate == "1" else noise.subsample("poisson", rate)


@cache
def job(sigma: str, rate: str, steps: int, relation: str = "remove") -> symdp.Composition:
    return symdp.compose(sampled(sigma, rate, relation), steps)


def delta(steps: symdp.Composition, epsilon: float, method: str = "contour") -> float:
    """δ in the remove direction, nan where the method refuses."""
    try:
        return steps.delta(epsilon, method=method, direction="remove").delta
    except SymdpError:
        return math.nan


def trusted_delta(steps: symdp.Composition, epsilon: float, method: str) -> float:
    """δ in the remove direction, nan where the method advises against its own answer."""
    found = steps.delta(epsilon, method=method, direction="remove")
    return math.nan if found.advice else found.delta


def deltas(
    steps: symdp.Composition, epsilons: Iterable[float], method: str = "contour"
) -> list[float]:
    return [delta(steps, e, method) for e in epsilons]


def interval(
    steps: symdp.Composition, epsilons: Iterable[float], method: str
) -> tuple[list[float], list[float]]:
    """(lower, upper) bounds on δ, 0 where there is no lower one."""
    low, high = [], []
    for e in epsilons:
        try:
            found = steps.delta(e, method=method, direction="remove")
        except SymdpError:
            low.append(math.nan)
            high.append(math.nan)
            continue
        low.append(math.exp(found.log_lower) if found.log_lower is not None else 0.0)
        high.append(math.exp(found.log_upper) if found.log_upper is not None else 1.0)
    return low, high


def epsilon(steps: symdp.Composition, target: float, method: str = "contour") -> float:
    """ε at δ in the remove direction, nan where the method has none."""
    try:
        return steps.epsilon(target, method=method, direction="remove").epsilon
    except SymdpError:
        return math.nan


def epsilon_interval(steps: symdp.Composition, target: float, method: str) -> tuple[float, float]:
    try:
        found = steps.epsilon(target, method=method, direction="remove")
    except SymdpError:
        return math.nan, math.nan
    upper = found.epsilon_upper if found.epsilon_upper is not None else found.epsilon
    return found.epsilon_lower or 0.0, upper


def counts(first: int, last: int, number: int) -> list[int]:
    """Whole numbers from first to last in geometric steps."""
    ratio = (last / first) ** (1.0 / (number - 1))
    return sorted({round(first * ratio**k) for k in range(number)})


def grid(low: float, high: float, number: int) -> list[float]:
    return [low + (high - low) * k / (number - 1) for k in range(number)]
