"""Two published methods for every record: the Rényi bound and the Fourier sum.

*The Rényi bound* is the least conversion over all real orders [IND C.3],

ε ≤ min over t > 0 of (K(t) + log c_t − log δ)/t,  δ ≤ min over t of e^{K(t) − tε} c_t, with
c_t = t^t/(1+t)^{1+t} and t = α − 1 (Canonne, Kamath, Steinke 2020).

*The Fourier sum* [IND App. D] takes one record at a time and is there for comparison. Every kind of
step has its loss density sampled on n points of [−L, L); a record's composition is the product of
their transforms to the powers of its counts.  δ(ε) is one inner product in the transformed domain
by Plancherel's theorem, ε(δ) takes one inverse transform.  Its errors, of the sampled densities, of
what folds back and of rounding, are not bounded: an estimate.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.numeric.elementary import log_payoff
from symdp.numeric.many.kinds import Table
from symdp.numeric.many.rows import TiltGrid, chunks
from symdp.numeric.step import Array
from symdp.tolerances import SUMS_ROUNDED

_FINER = 33  # tilts between two neighbours, at each refinement
_REFINEMENTS = 2  # of the orders around the best one
_POINTS = 1 << 20  # of the transform; the paper takes as many
_REACH = 20.0  # L: losses from −L to L are told apart


def least_bounds(table: Table, counts: NDArray[np.integer], question: Any) -> Array:
    """Return the least bound on ε, or on log δ, of every row of counts."""
    grid = TiltGrid(table, counts, question.log_delta, question.epsilon)
    best = np.full(counts.shape[0], np.inf)
    for chunk, block in chunks(counts):
        rows = np.arange(chunk.start, chunk.stop)
        column = _look(grid.tilts, grid.transforms(block), rows, question, best)
        _refine(table, block, grid.tilts, column, rows, question, best)
    empty = np.flatnonzero(~np.asarray(counts[:, table.has_loss].any(axis=1)))
    if question.log_delta is not None:
        best[empty] = 0.0
    return best


def _look(
    tilts: Array, values: Array, rows: NDArray[np.int64], question: Any, best: Array
) -> NDArray[np.int64]:
    """Note the least bound from K at a grid of tilts, and return where on the grid it is."""
    payoff = log_payoff(tilts)
    if question.log_delta is not None:
        terms = values + (payoff - question.log_delta)
        size = np.abs(values) + np.abs(payoff) + abs(question.log_delta)
        bound = (terms + SUMS_ROUNDED * size) / tilts
    else:
        drift = np.multiply.outer(question.epsilon[rows], tilts)
        size = np.abs(values) + np.abs(payoff) + np.abs(drift)
        bound = values + payoff - drift + SUMS_ROUNDED * size
    best[rows] = np.minimum(best[rows], bound.min(axis=1))
    return np.asarray(bound.argmin(axis=1))


def _refine(
    table: Table,
    block: Array,
    tilts: Array,
    column: NDArray[np.int64],
    rows: NDArray[np.int64],
    question: Any,
    best: Array,
    depth: int = 0,
) -> None:
    for index in np.unique(column):
        chosen = np.flatnonzero(column == index)
        low = tilts[max(index - 1, 0)]
        high = tilts[min(index + 1, tilts.size - 1)]
        finer = np.geomspace(low, high, _FINER)
        chosen_counts = block[chosen]
        used = np.asarray((chosen_counts > 0.0).any(axis=0))
        values = np.asarray(chosen_counts @ table.transform(finer, used).T)
        where = _look(finer, values, rows[chosen], question, best)
        if depth + 1 < _REFINEMENTS:
            _refine(table, chosen_counts, finer, where, rows[chosen], question, best, depth + 1)


def _loss_density(values: Array, sigma: float, q: float, removes: bool) -> Array:
    """Return the density of one step's loss at some values [IND App. D].

    With r = e^s (remove) or e^{−s} (add), x = σ² log((r − (1−q))/q) + ½ and
    dx/ds = σ² r/(r − 1 + q); the density is P(x) dx/ds, or Q(x) dx/ds.
    """
    log_r = values if removes else -values
    density = np.zeros(values.size)
    inside = np.ones(values.size, dtype=bool)
    if q < 1.0:
        inside = log_r > math.log1p(-q)
    with np.errstate(divide="ignore"):
        gap = np.exp(log_r[inside]) - (1.0 - q)
    is_open = gap > 0.0
    inside[inside] = is_open
    gap = gap[is_open]
    log_r_inside = log_r[inside]
    variance = sigma * sigma
    x = variance * np.log(gap / q) + 0.5
    slope = variance * np.exp(log_r_inside) / gap
    exponent = -0.5 * (x / sigma) ** 2
    if removes:
        exponent = exponent + log_r_inside
    height = np.exp(exponent) * slope
    density[inside] = height / (sigma * math.sqrt(2.0 * math.pi))
    return density


def plancherel(
    counts: NDArray[np.integer],
    noise: Array,
    rate: Array,
    question: Any,
    points: int = _POINTS,
    reach: float = _REACH,
) -> Array:
    """Return ε, or log δ, of every record by the Fourier sum; nan where it drowns in rounding."""
    half = points // 2
    spacing = 2.0 * reach / points
    grid = np.arange(-half, points - half, dtype=np.float64) * spacing
    spectra = np.zeros((noise.size, half + 1), dtype=np.complex128)
    used = np.asarray(counts.any(axis=0)) & np.isfinite(noise) & (rate > 0.0)
    removes = question.direction == "remove"
    for b in np.flatnonzero(used):
        density = _loss_density(grid, float(noise[b]), float(rate[b]), removes)
        # the half swap puts loss 0 at index 0
        swapped = np.fft.ifftshift(spacing * density)
        spectrum = np.fft.rfft(swapped)
        with np.errstate(divide="ignore"):
            spectra[b] = np.log(np.where(spectrum == 0.0, 1e-300, spectrum))
    result = np.empty(counts.shape[0])
    for i in range(counts.shape[0]):
        row = np.asarray(counts[i], dtype=np.float64)
        product = np.exp(row[used] @ spectra[used])
        if question.log_delta is None:
            below = np.minimum(question.epsilon[i] - grid, 0.0)
            payoff = np.maximum(-np.expm1(below), 0.0)
            payoff_spectrum = np.fft.rfft(np.fft.ifftshift(payoff))
            result[i] = _inner(payoff_spectrum, product, points)
        else:
            masses: Array = np.fft.fftshift(np.fft.irfft(product, points))
            result[i] = _epsilon(grid, masses, math.exp(question.log_delta))
    if question.log_delta is None:
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
