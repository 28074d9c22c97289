"""Many steps of one formula under one tilt: what adds up over them, from arrays of all nodes.

The sum of independent losses is a loss, its K the sum of theirs. On a line its characteristic
function is a product, whose factors φᵢ(y) − 1 − iy E L = Σⱼ wⱼ dⱼ² g(y dⱼ), with
g(x) = (e^{ix} − 1 − ix)/x², need no exponential for each node and y: a Chebyshev series in d for
each y, and Chebyshev moments of w d² for each step, give them as a product of matrices, accurate
relative to themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symdp.law.characteristic_function import (
    log_characteristic,
    log_characteristic_grid,
    log_one_plus,
)
from symdp.law.decay import DERIVATIVES, log_bound_near, log_decay, near_bound, panel_decay
from symdp.law.elementary import Complex, exponential_remainder, oscillation_sum
from symdp.law.nufft import uniform_sums
from symdp.law.panels import DERIVATIVE, ORDER, Index
from symdp.law.shared_nodes import NodeRows, blocks
from symdp.law.step import Array
from symdp.law.tilted import LARGE, OVERFLOW, tilted_cumulants

_NEAR_PHASE = 32.0  # up to this the series serves, beyond it a transform with an absolute error
_BOUNDED_PHASE = 128.0  # the same, where nodes beyond are bounded by their weights
_MOST_PLACES = 1 << 12  # of one sum
_SERIES_ROOM = 24.0, 8.0  # terms beyond the largest phase x: 24 + 8 x^(1/3) leave 1e-17
_UNSEEN = 1e-21  # of a step's variance, for a node
_SMALL_PHASE = 0.5  # below which sin x − x cancels


@dataclass(frozen=True)
class SumNodes:
    """What a node set says of a whole stack: sums over its steps."""

    mean: float
    beyond: tuple[float, float]
    error: float
    origin: None = None


@dataclass(frozen=True, eq=False)
class StackTilted:
    """The steps of a stack under P_t: what `Tilted` says of one step, of their sum.

    Attributes
    ----------
    tilt, rows, counts
        Where, and of what.
    totals
        log Σ w e^{t(ℓ − E L)} of each step's nodes.
    shifts, variances
        E_t L − E L and Var_t L of each step.
    centres
        The same shifts as the nodes have them, so that weighted deviations add up to nothing.
    longest
        The largest |ℓ − E_t L| of a node that counts.
    imprecise
        How many steps have a K that is no sum of growths.
    """

    tilt: float
    rows: NodeRows
    counts: Array
    totals: Array
    shifts: Array
    variances: Array
    centres: Array
    longest: float
    imprecise: float

    @classmethod
    def at(cls, rows: NodeRows, counts: Array, tilt: float) -> StackTilted:
        """Return the rows tilted."""
        totals, shifts, variances, centres = (np.empty(counts.size) for _ in range(4))
        imprecise, longest = 0.0, 0.0
        for block in blocks(*rows.loss.shape):
            centred = rows.loss[block] - rows.mean[block, None]
            scaled = tilt * centred
            exponent = rows.log_weight[block] + scaled
            top = exponent.max(axis=1)
            weight = np.exp(exponent - top[:, None])
            total = weight.sum(axis=1)
            weight /= total[:, None]
            totals[block] = top + np.log(total)
            centre = np.einsum("ij,ij->i", weight, centred)
            deviation = centred - centre[:, None]
            residue = np.einsum("ij,ij->i", weight, deviation)
            deviation -= residue[:, None]
            centres[block] = centre + residue
            square = weight * deviation * deviation
            variances[block] = square.sum(axis=1)
            seen = square > _UNSEEN * variances[block, None]
            longest = max(longest, float(np.abs(deviation[seen]).max(initial=0.0)))
            # As in one step: what the growth e^{t(L−μ)} − 1 adds is accurate relative to itself.
            untilted = np.exp(rows.log_weight[block])
            plain = untilted * np.expm1(np.minimum(scaled, LARGE))
            grown = np.exp(np.minimum(exponent, OVERFLOW)) - untilted
            growth = np.where(scaled > LARGE, grown, plain)
            better = np.einsum("ij,ij->i", centred, growth) / (1.0 + growth.sum(axis=1))
            precise = top < OVERFLOW
            shifts[block] = np.where(precise, better, centres[block])
            imprecise += float(counts[block] @ ~precise)
        found = totals, shifts, variances, centres
        return cls(tilt, rows, counts, *found, longest or 1.0, imprecise)

    def block(self, some: slice) -> tuple[Array, Array]:
        """Return weights and ℓ − E_t L of some steps' nodes."""
        deviation = self.rows.loss[some] - (self.rows.mean[some] + self.centres[some])[:, None]
        exponent = self.rows.log_weight[some] + self.tilt * (deviation + self.centres[some, None])
        return np.exp(exponent - self.totals[some, None]), deviation

    @cached_property
    def nodes(self) -> SumNodes:
        """Sums over the steps that no tilt changes."""
        rows, counts = self.rows, self.counts
        first, second = (float(counts @ rows.beyond[:, k]) for k in (0, 1))
        return SumNodes(float(counts @ rows.mean), (first, second), rows.error)

    @property
    def error(self) -> float:
        """The quadrature's estimate of its relative error."""
        return self.rows.error

    @cached_property
    def shift(self) -> float:
        """E_t L − E L of the sum."""
        return math.fsum((self.counts * self.shifts).tolist())

    @cached_property
    def variance(self) -> float:
        """Var_t L of the sum."""
        return float(self.counts @ self.variances)

    @property
    def widest(self) -> float:
        """The largest standard deviation of a single step."""
        return math.sqrt(float(self.variances.max()))

    @cached_property
    def size(self) -> float:
        """Σ nᵢ (σᵢ + |E_t Lᵢ − μᵢ| + |μᵢ|), of which rounding takes its share."""
        sizes = np.sqrt(self.variances) + np.abs(self.shifts) + np.abs(self.rows.mean)
        return float(self.counts @ sizes)

    @cached_property
    def excess(self) -> float:
        """K(t) − t·E L of the sum, accurate relative to itself."""
        return math.fsum((self.counts * excess_of_rows(self.rows, self.tilt)).tolist())

    @property
    def places(self) -> int:
        """How many nodes come before those of the atoms."""
        return ORDER * (self.rows.joined.size + 1)

    @cached_property
    def atomic(self) -> float:
        """Π aᵢ^nᵢ, aᵢ the weight of a step's atoms."""
        logs = 0.0
        for some in blocks(*self.rows.loss.shape):
            with np.errstate(divide="ignore"):
                share = self.block(some)[0][:, self.places :].sum(axis=1)
                logs += float(self.counts[some] @ np.log(share))
        return math.exp(logs)

    def log_characteristic(self, y: Array, step: float = 0.0, first: int = 0) -> Complex:
        """Return log φ_t(y) − iy E_t L of the sum, on a grid from first·step on if it is one.

        Parameters
        ----------
        y
            Places of any shape; of a grid, all of them.
        """
        flat = y.ravel()
        total = np.zeros(flat.size, dtype=np.complex128)
        for start in range(0, flat.size, _MOST_PLACES):
            places = slice(start, start + _MOST_PLACES)
            for some, value in self.step_values(flat[places], step, first + start):
                total[places] += self.counts[some] @ log_one_plus(value)
        return total.reshape(y.shape)

    def step_values(
        self, flat: Array, step: float = 0.0, first: int = 0
    ) -> Iterator[tuple[slice, Complex]]:
        """Yield some steps with their φ_t(y) e^{−iy E_t L} − 1, steps by y.

        Parameters
        ----------
        flat, step, first
            A few thousand places, and the grid that they are, if any.
        """
        places = flat if step == 0.0 else (step, first, first + flat.size)
        for some, near, weight, deviation, far in self._near(flat, _NEAR_PHASE):
            where = np.nonzero(far)
            if where[0].size:
                own = weight[where], deviation[where]
                near[:] += _far_sums(*own, where[0], weight.shape[0], places)
            yield some, near

    def moduli(self, flat: Array) -> Iterator[tuple[slice, Array]]:
        """Yield some steps with an upper bound on their |φ_t(y)|, steps by y, at a few places.

        Nodes whose phase is large count as if their terms were all of one sign.

        Parameters
        ----------
        flat
            The places.
        """
        for some, near, weight, deviation, far in self._near(flat, _BOUNDED_PHASE):
            lost = np.einsum("ij,ij->i", weight, far)[:, None]
            first = np.einsum("ij,ij,ij->i", weight, deviation, far)[:, None]
            yield some, np.abs(near + (1.0 - lost) - 1j * flat * first) + lost

    def _near(
        self, flat: Array, most: float
    ) -> Iterator[tuple[slice, Complex, Array, Array, NDArray[np.bool_]]]:
        """Yield some steps with the sum over nodes of phases up to `most`, and what is left.

        Σ w (e^{iyd} − 1 − iyd), the weights, the deviations, and which nodes are not in the sum.
        """
        end = float(np.abs(flat).max(initial=0.0))
        reach = self.longest if end * self.longest <= most else most / end
        phase, (room, slope) = reach * end, _SERIES_ROOM
        terms = 2 * math.ceil(0.5 * (phase + room + slope * phase ** (1.0 / 3.0)))
        real, imaginary = _series(reach * flat, terms)
        for some in blocks(*self.rows.loss.shape):
            weight, deviation = self.block(some)
            square = weight * deviation * deviation
            square[square <= _UNSEEN * self.variances[some, None]] = 0.0
            near = np.abs(deviation) <= reach
            columns = near.any(axis=0)
            moments = _moments(
                np.where(near, square, 0.0)[:, columns],
                np.where(near, deviation / reach, 0.0)[:, columns],
                terms,
            )
            value = np.empty((weight.shape[0], flat.size), dtype=np.complex128)
            value.real = moments @ real
            value.imag = moments @ imaginary
            value /= reach * reach
            yield some, value, weight, deviation, (square > 0) & ~near

    def cumulants(self, order: int) -> Array:
        """Return the cumulants of the sum, the first as E_t L − E L: those of the steps add up."""
        if order == 1:
            return np.asarray([self.shift])
        moments = np.zeros((order + 1, self.counts.size))
        moments[0], moments[2] = 1.0, self.variances
        for some in blocks(*self.rows.loss.shape):
            if order == 2:
                break
            weight, deviation = self.block(some)
            power = weight * deviation * deviation
            for j in range(3, order + 1):
                power = power * deviation
                moments[j, some] = power.sum(axis=1)
        found = [np.zeros(self.counts.size), self.shifts]
        for j in range(2, order + 1):
            lower = sum(
                (math.comb(j - 1, i - 1) * found[i] * moments[j - i] for i in range(2, j - 1)),
                np.zeros(self.counts.size),
            )
            found.append(moments[j] - lower)
        return np.asarray([float(self.counts @ k) for k in found[1:]])

    def log_decay(self, y: Array, most: int = DERIVATIVES) -> Array:
        """Return an estimated bound on log |φ_t(y')| of the sum for every |y'| ≥ |y|."""
        panels = self.rows.joined.size + 1
        total = np.zeros(y.size)
        for some in blocks(*self.rows.loss.shape):
            shape = (-1, panels, ORDER)
            weight = self.block(some)[0][:, : panels * ORDER].reshape(shape)
            slope = self.rows.loss[some, : panels * ORDER].reshape(shape) @ DERIVATIVE.T
            found = panel_decay(weight, slope, self.rows.joined, most)
            total += found.log_bound(y) @ self.counts[some]
        return total

    def log_bound_near(self, y: Array) -> Array:
        """Return a bound on log |φ_t(y')| of the sum between every two neighbours of rising y."""
        total = np.zeros(y.size - 1)
        for some in blocks(*self.rows.loss.shape):
            for weight, deviation, count in zip(*self.block(some), self.counts[some], strict=True):
                order = np.argsort(deviation)
                total += count * near_bound(weight[order], deviation[order], y)
        return total


def excess_of_rows(rows: NodeRows, tilt: float) -> Array:
    """Return K(t) − t·E L of every step, as `loss.excess` does of one."""
    found = np.empty(rows.mean.size)
    for block in blocks(*rows.loss.shape):
        scaled = tilt * (rows.loss[block] - rows.mean[block, None])
        log_weight = rows.log_weight[block]
        weight = np.exp(log_weight)
        exponent = scaled + log_weight
        top = exponent.max(axis=1)
        if float(top.max()) < OVERFLOW:
            near = np.minimum(scaled, LARGE)
            terms = weight * exponential_remainder(near)
            if float(scaled.max()) > LARGE:
                terms = np.where(scaled > LARGE, np.exp(exponent) - weight * (1.0 + scaled), terms)
            found[block] = np.log1p(terms.sum(axis=1))
        else:
            found[block] = top + np.log(np.exp(exponent - top[:, None]).sum(axis=1))
    return found


def _moments(square: Array, place: Array, terms: int) -> Array:
    """Return Σⱼ vⱼ T_m(sⱼ) for every row, rows by m."""
    found = np.empty((square.shape[0], terms))
    before, here = np.ones_like(place), place.copy()
    found[:, 0] = square.sum(axis=1)
    twice = 2.0 * place
    for m in range(1, terms):
        found[:, m] = np.einsum("ij,ij->i", square, here)
        before *= -1.0
        before += twice * here
        before, here = here, before
    return found


def _far_sums(
    weight: Array,
    deviation: Array,
    row: Index,
    rows: int,
    places: Array | tuple[float, int, int],
) -> Complex:
    """Return Σⱼ wⱼ (e^{iydⱼ} − 1 − iydⱼ) of every row, at some y or on a grid, rows by y."""
    mass, first = (np.bincount(row, x, rows) for x in (weight, weight * deviation))
    if isinstance(places, tuple):
        step, start, stop = places
        y = step * np.arange(start, stop, dtype=np.float64)
        value = uniform_sums(weight, np.fmod(step * deviation, 2.0 * np.pi), start, stop, row, rows)
    else:
        y = places
        value = np.empty((rows, y.size), dtype=np.complex128)
        for k, place in enumerate(y.tolist()):
            phase = place * deviation
            value[:, k].real = np.bincount(row, weight * np.cos(phase), rows)
            value[:, k].imag = np.bincount(row, weight * np.sin(phase), rows)
    return value - mass[:, None] - 1j * np.multiply.outer(first, y)


def _series(phase: Array, terms: int) -> tuple[Array, Array]:
    """Return the Chebyshev coefficients of (e^{ixs} − 1 − ixs)/s² on [−1, 1], terms by phases x."""
    angle = np.pi * (np.arange(terms) + 0.5) / terms  # even in number: s is never 0
    s = np.cos(angle)
    x = np.multiply.outer(s, phase)
    small = np.abs(x) < _SMALL_PHASE
    half = np.sin(0.5 * x)
    sine = np.where(small, 0.0, np.sin(x) - x)
    near = x[small]
    sine[small] = oscillation_sum(near, np.ones(1), np.ones(1)).imag
    square = (s * s)[:, None]
    basis = 2.0 / terms * np.cos(np.multiply.outer(np.arange(terms), angle))
    basis[0] *= 0.5
    return basis @ (-2.0 * half * half / square), basis @ (sine / square)


@log_characteristic.register
def _(tilted: StackTilted, y: Array) -> Complex:  # type: ignore[misc]
    return tilted.log_characteristic(y)


@log_characteristic_grid.register
def _(tilted: StackTilted, step: float, first: int, last: int) -> Complex:  # type: ignore[misc]
    y: Array = step * np.arange(first, last, dtype=np.float64)
    return tilted.log_characteristic(y, step, first)


@tilted_cumulants.register
def _(tilted: StackTilted, order: int) -> Array:  # type: ignore[misc]
    return tilted.cumulants(order)


@log_decay.register
def _(tilted: StackTilted, y: Array, most: int = DERIVATIVES) -> Array:  # type: ignore[misc]
    return tilted.log_decay(y, most)


@log_bound_near.register
def _(tilted: StackTilted, y: Array) -> Array:  # type: ignore[misc]
    return tilted.log_bound_near(y)
