"""Nodes of a piece on the integers: all of them, or few for each long stretch of a heavy tail.

A mass function with a power's tail spreads over 10¹² integers, on which the loss hardly changes.
Where mass and loss are smooth from one integer to the next, a stretch of N integers is summed like
an integral, by a rule that is exact for polynomials of degree ORDER − 1 on these very integers:

    Σ_{k=a}^{b} f(k) = Σᵢ wᵢ f(kᵢ).

The kᵢ are the integers next to the nodes of the Gauss–Legendre rule. The sums of Legendre
polynomials over all N integers, which tell the wᵢ, are those of the Gauss rule of the discrete
Chebyshev polynomials, whose recurrence has βⱼ = j²(N² − j²)/(4(4j² − 1)) [Szegő, 2.8].

As with an integral, a stretch is accepted where its rule agrees with the two rules on its halves,
for the tilted masses, for the loss, and for e^{iyL}; what alternates from integer to integer does
not, is summed one by one, or is refused where that takes too long.

**What has a kink.** In δ a payoff (1 − e^{ε−L})⁺ turns at ε, which may lie inside a stretch. There
a rule is wrong by at most what one node holds of the mass, times the losses that it stands for:
about mass · width/ORDER² of a stretch, four times which is counted as an error. Stretches are
halved, down to single integers, while that is more than rounding and there is room.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.numeric.outline import (
    LARGEST_EXPONENT,
    NEGLIGIBLE,
    log_row_sums,
    tilted,
    tilted_log_density,
)
from symdp.numeric.panels import MAX_NODES, PANEL_TOLERANCE, ROUNDS, PieceNodes, bounded
from symdp.numeric.step import Array, SmoothPiece

ORDER = 24  # nodes of a stretch: an octave of a power's tail is then summed to 1e-16


@lru_cache
def _near_and_far() -> tuple[Array, Array]:
    """Return distances at which masses are looked at: to 2^62, and beyond."""
    near = np.unique(np.round(np.exp2(np.arange(0, 62, 0.125))))
    return near, np.exp2(np.arange(62.0, LARGEST_EXPONENT))


@lru_cache
def _gauss_places() -> Array:
    """Return the nodes of the Gauss–Legendre rule on [−1, 1]."""
    return legendre.leggauss(ORDER)[0].astype(np.float64)


def integer_range(
    piece: SmoothPiece, tilts: list[float], further: float = 0.0
) -> tuple[float, float] | None:
    """Return the ends of the integers where some tilted mass is not negligible, None of no mass.

    `further`: e-folds of mass beyond what is negligible.
    """
    low = piece.lower
    high = piece.upper
    finite_ends = [end for end in (low, high) if np.isfinite(end)]
    near, far = _near_and_far()
    offsets = np.append(near, far)
    places: list[Array] = []
    for anchor in finite_ends or [0.0]:
        places += [np.asarray([anchor]), anchor + offsets, anchor - offsets]
    grid = np.unique(np.concatenate(places))
    grid = grid[(grid >= low) & (grid <= high)]
    for _ in range(3):
        log_mass = _shells(piece, grid, tilts)
        likeliest = np.unique(log_mass.argmax(axis=1))
        places = [grid]
        for peak in grid[likeliest]:
            places += [np.round(peak + near), np.round(peak - near)]
        grid = np.unique(np.concatenate(places))
        grid = grid[(grid >= low) & (grid <= high)]
    log_mass = _shells(piece, grid, tilts)
    level = log_mass.max(axis=1, keepdims=True) - NEGLIGIBLE - further
    essential = np.flatnonzero((log_mass > level).any(axis=0))
    if essential.size == 0:
        return None
    first = grid[max(essential[0] - 1, 0)]
    last = grid[min(essential[-1] + 1, grid.size - 1)]
    return float(first), float(last)


def _shells(piece: SmoothPiece, grid: Array, tilts: list[float]) -> Array:
    """Return the log of mass times spacing on a grid, one row for each tilt."""
    log_mass = tilted_log_density(piece, grid, tilts)
    if grid.size > 1:
        spacing = np.maximum(np.gradient(grid), 1.0)
        log_mass = log_mass + np.log(spacing)
    return log_mass


def integer_nodes(piece: SmoothPiece, tilts: list[float], further: float = 0.0) -> Array:
    """Return all integers where some tilted mass is not negligible, or by so many e-folds."""
    ends = integer_range(piece, tilts, further)
    if ends is None:
        return np.empty(0)
    low, high = ends
    if high - low > MAX_NODES:
        raise _too_many(low, high)
    return np.arange(low, high + 1.0)


def _too_many(low: float, high: float) -> AccuracyError:
    return AccuracyError(
        f"the mass function spreads over {high - low:.3g} integers; at most {MAX_NODES} are summed"
    )


@dataclass(frozen=True)
class _Stretches:
    """Stretches of integers, both ends included, with their tests: (function, tilt, stretch)."""

    first: Array
    last: Array
    tests: Array
    noise: Array
    kinks: Array  # the ends of its losses, and what a kink between them may change of the mass

    def take(self, chosen: NDArray[np.bool_]) -> _Stretches:
        """Return some of them."""
        return _Stretches(
            first=self.first[chosen],
            last=self.last[chosen],
            tests=self.tests[..., chosen],
            noise=self.noise[:, chosen],
            kinks=self.kinks[:, chosen],
        )


def integer_rule(
    piece: SmoothPiece, masses: Mapping[float, float], frequency: float = 0.0
) -> PieceNodes:
    """Return the nodes of a piece on the integers, under every tilt and up to a frequency."""
    ends = integer_range(piece, list(masses))
    if ends is None:
        return PieceNodes.atoms(np.empty(0), np.empty(0))
    low, high = ends
    if high - low <= MAX_NODES:
        log_p, loss, off = piece.accurate(np.arange(low, high + 1.0))
        return PieceNodes.atoms(loss, log_p, off)
    summation = _Summation(piece, masses, frequency, ends)
    alone, first, last, kinks, leftover = summation.stretches()
    log_p, loss, off = piece.accurate(alone)
    places, weights = stretch_rule(first, last)
    far_log_p, far_loss, far_off = piece.accurate(places.ravel())
    with np.errstate(all="ignore"):
        far_log_p = far_log_p + np.log(weights.ravel())
    nodes = PieceNodes.atoms(
        np.append(loss, far_loss),
        np.append(log_p, far_log_p),
        max(off, far_off),
    )
    return replace(nodes, kinks=kinks, error=nodes.error + leftover)


class _Summation:
    """The search for stretches that few nodes serve."""

    shortest = MAX_NODES >> 12  # integers that are summed one by one without a trial
    most_nodes = MAX_NODES >> 7  # of a piece, while a kink is made to count less

    def __init__(
        self,
        piece: SmoothPiece,
        masses: Mapping[float, float],
        frequency: float,
        ends: tuple[float, float],
    ) -> None:
        self._piece = piece
        self._frequency = frequency
        self._ends = ends
        self._tilts = list(masses)
        self._tops = np.asarray(list(masses.values()))[:, None]

    def stretches(self) -> tuple[Array, Array, Array, Array, float]:
        """Return integers summed alone, both ends of each stretch, its kinks, and the error."""
        first, last = self._octaves()
        alone: list[Array] = [np.empty(0)]
        starts: list[Array] = []
        stops: list[Array] = []
        kinks: list[Array] = []
        count = 0
        leftover = 0.0
        for _ in range(ROUNDS):
            is_short = last - first < self.shortest
            short = zip(first[is_short].tolist(), last[is_short].tolist(), strict=True)
            for low, high in short:
                alone.append(np.arange(low, high + 1.0))
                count += alone[-1].size
            first = first[~is_short]
            last = last[~is_short]
            if first.size == 0:
                break
            whole = self._tested(first, last)
            middle = np.floor(0.5 * (first + last))
            left = self._tested(first, middle)
            right = self._tested(middle + 1.0, last)
            with np.errstate(invalid="ignore"):  # sums that overflow agree with none
                difference = np.abs(whole.tests - left.tests - right.tests)
            agrees = (difference <= PANEL_TOLERANCE + whole.noise).all(axis=(0, 1))
            is_waiting = ~agrees
            # While there is room, a kink is to change less than rounding does.
            is_finer = is_waiting | (whole.kinks[2] > 8.0 * PANEL_TOLERANCE)
            if count + self.shortest * int(is_finer.sum()) < self.most_nodes:
                is_waiting = is_finer
            if count + self.shortest * int(is_waiting.sum()) > MAX_NODES:
                raise _too_many(*self._ends)
            is_accepted = ~is_waiting
            unexplained = np.maximum(difference - whole.noise, 0.0)
            missing = unexplained.max(axis=(0, 1))
            leftover += float(missing[is_accepted].sum())
            starts.append(first[is_accepted])
            stops.append(last[is_accepted])
            kinks.append(whole.kinks[:, is_accepted])
            halved = middle[is_waiting]
            first = np.concatenate([first[is_waiting], halved + 1.0])
            last = np.concatenate([halved, last[is_waiting]])
        all_kinks = np.concatenate(kinks, axis=-1)
        if first.size or all_kinks[2].sum() > 1e-6:  # with more a stretch is no tail
            raise _too_many(*self._ends)
        return (
            np.concatenate(alone),
            np.concatenate(starts),
            np.concatenate(stops),
            all_kinks,
            leftover,
        )

    def _octaves(self) -> tuple[Array, Array]:
        """Return stretches that grow in octaves from the finite ends of the piece, or from 0."""
        low, high = self._ends
        piece_ends = (self._piece.lower, self._piece.upper)
        anchors = [end for end in piece_ends if math.isfinite(end)] or [0.0]
        offsets = np.exp2(np.arange(math.log2(self.shortest), LARGEST_EXPONENT))
        edges = [low, high + 1.0]
        for anchor in anchors:
            for places in (anchor + offsets, anchor - offsets):
                is_inside = (places > low) & (places <= high)
                edges += places[is_inside].tolist()
        cuts = np.unique(edges)
        return cuts[:-1], cuts[1:] - 1.0

    def _tested(self, first: Array, last: Array) -> _Stretches:
        """Return stretches with the sums of each tilted mass: plain, by the loss, oscillating."""
        places, weights = stretch_rule(first, last)
        with np.errstate(all="ignore"):
            log_p, log_q, loss = self._piece.values(places.ravel())
            exponent = tilted(log_p, log_q, loss, self._tilts) - self._tops
            mass = np.exp(exponent)
        shape = (len(self._tilts), *places.shape)
        mass = mass.reshape(shape) * weights
        finite_loss = np.where(np.isfinite(loss), loss, 0.0)
        loss = finite_loss.reshape(places.shape)
        factors = [np.ones(loss.shape), bounded(loss)]
        if self._frequency > 0.0:
            phase = np.fmod(self._frequency * loss, 2.0 * np.pi)
            factors += [np.cos(phase), np.sin(phase)]
        exponent_size = np.abs(exponent).reshape(shape)
        size = np.where(mass > 0.0, exponent_size, 0.0) + 1.0
        rounding = (mass * size).sum(axis=2)
        return _Stretches(
            first=first,
            last=last,
            tests=np.einsum("kpn,tpn->ktp", np.stack(factors), mass),
            noise=2.0 * np.finfo(float).eps * rounding,
            kinks=_kinks_of_stretches(mass, loss),
        )


def _kinks_of_stretches(mass: Array, loss: Array) -> Array:
    """Return the ends of the losses of each stretch, and what a kink between them may change."""
    low = loss.min(axis=1)
    high = loss.max(axis=1)
    width = high - low
    margin = 0.1 * width  # the first and the last integers are no nodes
    mass_by_tilt = np.abs(mass).sum(axis=2)
    total = mass_by_tilt.max(axis=0)
    rise = np.minimum(width, 1.0)
    change = total * rise * (4.0 / ORDER**2)
    return np.stack([low - margin, high + margin, change])


def stretch_rule(first: Array, last: Array) -> tuple[Array, Array]:
    """Return integers and weights of the rule on each stretch, one row for each."""
    start = first[:, None]
    count = last - first + 1.0
    half = 0.5 * (count - 1.0)
    spread = half[:, None] * (_gauss_places() + 1.0)
    distances = np.round(spread)
    places = np.clip(start + distances, start, last[:, None])
    # On [−1, 1], as far as the distance from the first integer is known.
    u = (places - start) / half[:, None] - 1.0
    vandermonde = legendre.legvander(u, ORDER - 1)
    basis = np.swapaxes(vandermonde, 1, 2)
    means = _legendre_means(count)[:, :, None]
    solution = np.linalg.solve(basis, means)
    weights = solution[:, :, 0]
    return places, np.asarray(weights * count[:, None])


def _legendre_means(count: Array) -> Array:
    """Return the means of Legendre polynomials over N integers spread evenly on [−1, 1]."""
    size = ORDER // 2
    degree = np.arange(1.0, size)
    with np.errstate(over="ignore"):
        # N − 1 integers apart are 2 on this axis.
        scale = (count / (count - 1.0))[:, None]
        share = (degree / count[:, None]) ** 2
        square = degree**2
        beta = square * (1.0 - share) / (4.0 * square - 1.0)
    off_diagonal = np.sqrt(beta) * scale
    matrix = np.zeros((count.size, size, size))
    index = np.arange(size - 1)
    matrix[:, index, index + 1] = off_diagonal
    matrix[:, index + 1, index] = off_diagonal
    nodes, vectors = np.linalg.eigh(matrix)
    weights = vectors[:, 0, :] ** 2
    values = legendre.legvander(nodes, ORDER - 1)
    return np.asarray(np.einsum("pn,pnd->pd", weights, values))


def sampled_integers(piece: SmoothPiece, tilts: list[float]) -> Array:
    """Return rising integers of a piece: all, or those that stretches are summed by."""
    ends = integer_range(piece, tilts)
    if ends is None:
        return np.empty(0)
    low, high = ends
    if high - low <= MAX_NODES:
        return np.arange(low, high + 1.0)
    near, _ = _near_and_far()
    both_sides = np.append(near, -near)
    return np.unique(np.clip(both_sides, low, high))


def log_mass_of_integers(piece: SmoothPiece) -> float:
    """Return log Σ P over a piece on the integers."""
    rows = integer_rule(piece, {0.0: 0.0}).log_weight
    return float(log_row_sums(rows[None, :])[0])
