"""The Fourier sum of [IND App. D], one record at a time, for comparison.

Every kind of step has its loss density sampled on n points of [−L, L); a record's composition is
the product of their transforms to the powers of its counts.  δ(ε) is one inner product in the
transformed domain by Plancherel's theorem, ε(δ) takes one inverse transform.  Its errors, of the
sampled densities, of what folds back and of rounding, are not bounded: an estimate.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.numeric.step import Array

POINTS = 1 << 20  # of the transform; the paper takes as many
REACH = 20.0  # L: losses from −L to L are told apart


def loss_density(values: Array, sigma: float, q: float, removes: bool) -> Array:
    """Return the density of one step's loss at some values [IND App. D].

    With r = e^s (remove) or e^{−s} (add), x = σ² log((r − (1−q))/q) + ½ and
    dx/ds = σ² r/(r − 1 + q); the density is P(x) dx/ds, or Q(x) dx/ds.

    Examples
    --------
    >>> s = np.arange(-8.0, 8.0, 1e-3)
    >>> round(float(loss_density(s, 1.5, 0.5, True).sum()) * 1e-3, 9)
    1.0
    """
    log_r = values if removes else -values
    density = np.zeros(values.size)
    inside = log_r > math.log1p(-q) if q < 1.0 else np.ones(values.size, dtype=bool)
    with np.errstate(divide="ignore"):
        gap = np.exp(log_r[inside]) - (1.0 - q)
    some = gap > 0.0
    inside[inside] = some
    gap, kept = gap[some], log_r[inside]
    x = sigma * sigma * np.log(gap / q) + 0.5
    slope = sigma * sigma * np.exp(kept) / gap
    exponent = -0.5 * (x / sigma) ** 2 + (kept if removes else 0.0)
    density[inside] = np.exp(exponent) * slope / (sigma * math.sqrt(2.0 * math.pi))
    return density


def plancherel(
    counts: NDArray[np.integer],
    noise: Array,
    rate: Array,
    asked: Any,
    points: int = POINTS,
    reach: float = REACH,
) -> Array:
    """Return ε, or log δ, of every record by the Fourier sum; nan where it drowns in rounding.

    Parameters
    ----------
    counts, noise, rate
        As for `from_counts`, noise and rate of shape (kinds,).
    asked
        The question: direction, `log_delta`, or `epsilon` of each record.
    points, reach
        n and L.
    """
    spacing = 2.0 * reach / points
    grid = np.arange(-(points // 2), points - points // 2, dtype=np.float64) * spacing
    spectra = np.zeros((noise.size, points // 2 + 1), dtype=np.complex128)
    used = np.asarray(counts.any(axis=0)) & np.isfinite(noise) & (rate > 0.0)
    for b in np.flatnonzero(used):
        density = loss_density(grid, float(noise[b]), float(rate[b]), asked.direction == "remove")
        # the half swap puts loss 0 at index 0
        spectrum = np.fft.rfft(np.fft.ifftshift(spacing * density))
        with np.errstate(divide="ignore"):
            spectra[b] = np.log(np.where(spectrum == 0.0, 1e-300, spectrum))
    result = np.empty(counts.shape[0])
    for i in range(counts.shape[0]):
        row = np.asarray(counts[i], dtype=np.float64)
        product = np.exp(row[used] @ spectra[used])
        if asked.log_delta is None:
            payoff = np.maximum(-np.expm1(np.minimum(asked.epsilon[i] - grid, 0.0)), 0.0)
            result[i] = _inner(np.fft.rfft(np.fft.ifftshift(payoff)), product, points)
        else:
            masses: Array = np.fft.fftshift(np.fft.irfft(product, points))
            result[i] = _epsilon(grid, masses, math.exp(asked.log_delta))
    if asked.log_delta is None:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(np.where(result > 0.0, result, np.nan))
    return result


def _inner(first: Any, second: Any, points: int) -> float:
    """Return ⟨x, y⟩ = ⟨Fx, Fy⟩/n from the half spectra of real sequences."""
    terms = (np.conj(first) * second).real
    total = 2.0 * terms.sum() - terms[0]
    if points % 2 == 0:
        total -= terms[-1]
    return float(total / points)


def _epsilon(grid: Array, masses: Array, delta: float) -> float:
    """Return ε by Newton's steps on Σ (1 − e^{ε−s})⁺ m_s, a convex function of ε."""
    epsilon = 0.0
    for _ in range(200):
        above = grid > epsilon
        gone = np.exp(epsilon - grid[above]) * masses[above]
        value = float(masses[above].sum() - gone.sum())
        slope = -float(gone.sum())
        if epsilon == 0.0 and value <= delta:
            return 0.0
        if not slope < 0.0:
            return math.nan
        step = (delta - value) / slope
        epsilon += step
        if abs(step) < 1e-13 * max(1.0, epsilon):
            return float(epsilon)
        if not 0.0 <= epsilon < grid[-1]:
            return math.nan
    return math.nan
