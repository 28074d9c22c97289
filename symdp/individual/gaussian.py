"""Gaussian privacy of many records: its profile, its inverses, and the central limit's μ.

G_μ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) [IND 2.3], evaluated as a difference of scaled
complementary error functions, so that nothing cancels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

from symdp.numeric.step import Array

NAME = __name__.rpartition(".")[2]  # of the method: this file's, which no mechanism's file decides
_NEWTON = 60  # iterations; quadratic from a bracket, so far fewer are needed
_ROOT_HALF = math.sqrt(0.5)
_MOST_SPREAD = 700.0  # e-folds: more would overflow


def log_profile(mu: Array, epsilon: Array) -> Array:
    """Return log G_μ(ε) for arrays of μ > 0 and real ε.

    Examples
    --------
    >>> np.exp(log_profile(np.array([1.0, 0.5]), np.array([1.0, 0.0]))).round(9).tolist()
    [0.126936738, 0.197412651]
    """
    a = epsilon / mu - 0.5 * mu
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        # φ(a) and φ(a + μ)e^ε are equal: what is left are two Mills ratios
        near = erfcx(a * _ROOT_HALF) - erfcx((a + mu) * _ROOT_HALF)
        right = -0.5 * a * a + np.log(0.5 * near)
        # far left, Φ(−a) is next to 1 and erfcx overflows
        first, second = log_ndtr(-a), epsilon + log_ndtr(-a - mu)
        left = first + np.log1p(-np.exp(second - first))
    return np.asarray(np.where(a > -20.0, right, left))


def epsilon_of(mu: Array, log_delta: float) -> Array:
    """Return the smallest ε ≥ 0 at which G_μ(ε) is at most δ, by bisection and Newton's steps.

    Examples
    --------
    >>> epsilon_of(np.array([0.0, 4.2]), math.log(1e-5)).round(6).tolist()
    [0.0, 26.044996]
    """
    result = np.zeros(mu.shape)
    some = mu > 0.0
    some[some] = log_profile(mu[some], np.zeros(int(some.sum()))) > log_delta
    m = mu[some]
    if m.size:
        low = np.zeros(m.size)
        high = 0.5 * m * m + m * math.sqrt(2.0 * -log_delta) + 1e-300
        for _ in range(_NEWTON):
            middle = 0.5 * (low + high)
            above = log_profile(m, middle) > log_delta
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        result[some] = high
    return result


def mu_of(epsilon: Array, log_delta: Array) -> Array:
    """Return the μ with G_μ(ε) = δ at ε ≥ 0; 0 where δ = 0.

    Examples
    --------
    >>> mu_of(np.array([1.0]), log_profile(np.array([0.7]), np.array([1.0]))).round(12).tolist()
    [0.7]
    """
    low = np.full(epsilon.shape, -40.0)
    high = np.full(epsilon.shape, 10.0)
    for _ in range(_NEWTON + 10):
        middle = 0.5 * (low + high)
        with np.errstate(invalid="ignore"):
            above = ~(log_profile(np.exp(middle), epsilon) < log_delta)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(np.isneginf(log_delta), 0.0, np.exp(high))


def central_limit(noise: Array, rate: Array, counts: NDArray[np.integer], asked: Any) -> Array:
    """Return the estimate at μ_i² = Σ_b n_ib q²(e^{1/σ_b²} − 1) [IND 5]: ε, or log δ of each."""
    spread = rate**2 * np.expm1(np.minimum(noise**-2.0, _MOST_SPREAD))
    mu = np.sqrt(np.asarray(counts, dtype=np.float64) @ spread)
    if asked.log_delta is not None:
        return epsilon_of(mu, asked.log_delta)
    value = np.full(mu.shape, -np.inf)
    some = mu > 0.0
    value[some] = log_profile(mu[some], asked.epsilon[some])
    with np.errstate(divide="ignore"):
        value[~some] = np.log(-np.expm1(np.minimum(asked.epsilon[~some], 0.0)))
    return value
