"""Sums of many losses of few values each: how often each value occurs is multinomial.

Counts are drawn one value after another, each binomial given those before, within windows outside
of which Bernstein's inequality leaves next to nothing; what remains are those of a box of a few
standard deviations, however many steps there are.  Their probabilities are

    log P(k) = s(m) − Σ s(kᵢ) − Σ (kᵢ log(kᵢ/mpᵢ) − kᵢ + mpᵢ) − m(1 − Σ pᵢ),
    s(k) = log k! − k log k + k,

where no term is large unless the probability is small (Loader, Fast and Accurate Computation of
Binomial Probabilities, 2000).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.exact.finite_sum import Atoms, log_multisets, merged
from symdp.law.step import Array

_SERIES_FROM = 32
_NEARBY = 0.3
_MOST = 4_000_000
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)

Integers = NDArray[np.int64]


def log_typical_sums(chances: Array, count: int, depth: float) -> float:
    """Return the log of about how many multisets are not negligible.

    Parameters
    ----------
    chances
        Of the values of one loss.
    count
        How many losses are added up.
    depth
        −log of the probability that is negligible.
    """
    rare = np.sort(chances)[:-1]
    mean = count * rare
    wide = np.minimum(mean, _reach(mean * (1.0 - rare), depth)) + _reach(mean, depth)
    # Of the box around it, an ellipsoid fills as much as a ball does of a cube.
    d = rare.size
    ball = 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1.0) - d * math.log(2.0)
    typical = float(np.log(np.minimum(wide, count) + 1.0).sum()) + min(ball + 2.0, 0.0)
    return min(typical, log_multisets(chances.size, count))


def multiple(step: Atoms, count: int, tilt: float, depth: float, lost: list[float]) -> Atoms | None:
    """Return the law of the sum of `count` copies, or None where it has too many values.

    Parameters
    ----------
    step
        The losses of one, and logs of their masses.
    count
        How many copies.
    tilt
        What is negligible there is left out.
    depth
        −log of the share of the law that is negligible.
    lost
        Takes in what share of the law, at the tilt, was left out.
    """
    loss, log_weight = step
    tilted = log_weight + tilt * loss
    chances = np.exp(tilted - tilted.max())
    chances /= chances.sum()
    order = np.argsort(chances)
    loss, log_weight, chances = loss[order], log_weight[order], chances[order]
    left: Integers = np.asarray([count], dtype=np.int64)
    logs, counts = np.zeros(1), np.zeros((0, 1), dtype=np.int64)
    dropped, before = 2.0 * loss.size * math.exp(-depth), 1.0
    for chance in chances[:-1]:
        share = min(chance / before, 1.0)
        before = max(before - chance, float(chances[-1]))
        index, taken = _windows(left, share, depth)
        if index.size > _MOST:
            return None
        rest = left[index] - taken
        logs = logs[index] + _log_multinomial(
            np.stack([taken, rest]), left[index], np.asarray([share, 1.0 - share])
        )
        near = logs > logs.max() - depth
        dropped += float(np.exp(logs[~near]).sum())
        counts = np.vstack([counts[:, index[near]], taken[near]])
        left, logs = rest[near], logs[near]
    counts = np.vstack([counts, left])
    lost.append(dropped)
    masses = np.exp(log_weight)
    # Where a loss may be infinite, masses do not add up to one.
    missing = count * (1.0 - float(masses.sum()))
    total = _log_multinomial(counts, np.full(left.size, count), masses) - missing
    return merged(loss @ counts, total)


def _reach(variance: NDArray[Any], depth: float) -> Array:
    """Return the distance beyond which binomial tails are below e^{−depth} [Bernstein]."""
    return np.asarray(depth / 3.0 + np.sqrt((depth / 3.0) ** 2 + 2.0 * depth * variance))


def _windows(left: Integers, chance: float, depth: float) -> tuple[Integers, Integers]:
    """Return which of the rests each count goes with, and the counts that are not negligible."""
    mean = left * chance
    reach = _reach(mean * (1.0 - chance), depth)
    low = np.maximum(np.floor(mean - reach), 0).astype(np.int64)
    high = np.minimum(np.ceil(mean + reach), left).astype(np.int64)
    sizes = high - low + 1
    starts = np.cumsum(sizes) - sizes
    index = np.repeat(np.arange(left.size), sizes)
    return index, np.arange(int(sizes.sum())) - np.repeat(starts - low, sizes)


def _log_multinomial(counts: Integers, total: Integers, chances: Array) -> Array:
    """Return log P of counts, one row for each value, but for Σ total·(1 − Σ chances)."""
    result = _log_factorial_left(total)
    for own, chance in zip(counts, chances, strict=True):
        result -= _log_factorial_left(own) + _deviance(own, total * chance)
    return result


def _log_factorial_left(k: Integers) -> Array:
    """Return log k! − k log k + k."""
    large = np.maximum(k, 1).astype(np.float64)
    inverse = 1.0 / large
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680))))
    found = _HALF_LOG_TWO_PI + 0.5 * np.log(large) + series
    return np.where(k < _SERIES_FROM, _SMALL[np.minimum(k, _SERIES_FROM - 1)], found)


_SMALL = np.asarray(
    [math.log(math.factorial(k)) - k * math.log(max(k, 1)) + k for k in range(_SERIES_FROM)]
)


def _deviance(k: Integers, mean: Array) -> Array:
    """Return k log(k/mean) − k + mean."""
    away = k - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        near = k * np.log1p(away / mean) - away
        far = k * np.log(k / mean) - away
    return np.where(k == 0, mean, np.where(np.abs(away) < _NEARBY * mean, near, far))
