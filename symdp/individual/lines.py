"""Shared contour lines: δ or ε of many records from one line's node values.

On Re z = t, with nodes z_k = t + ihk and counts n_b of each kind of step,

    δ(ε) = (h/2π) Re Σ_k w_k e^{Σ_b n_b K_b(z_k) − ε z_k}/(z_k(1 + z_k)),    w_0 = 1, w_k = 2

One matrix product gives all exponents.  ε enters by e^{−εz_k} alone, so that Newton's steps use a
Taylor polynomial in ε from the same values, and turn them where ε moves farther than it serves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.exact.accuracy import ROUNDING
from symdp.individual.subsampled_gaussian import (
    Array,
    Complex,
    SubsampledGaussian,
    powers_less_one,
)

_ORDER = 10  # terms of the Taylor polynomial
_TRUST = 1.6  # y·(ε step) of the polynomial, y where the values have fallen to e^-4.5
_SETTLED = 2e-15  # relative size of the last Taylor terms that ends the steps
_ROUNDS = 40  # Newton steps in ε for all records at once
_BLOCK = 1 << 18  # node values of one block: they stay in the cache
# ends of stretches beyond a line, in its length: how |φ|ⁿ falls there is bounded on each
_STRETCHES = np.concatenate([np.geomspace(1.0, 2.0, 13), np.geomspace(2.0, 1e4, 24)[1:]])


@dataclass(frozen=True)
class LineValues:
    """What a line gave for its records.

    Attributes
    ----------
    epsilon, log_delta
        The solution; one of them was given.
    slope
        d log δ/dε.
    beyond
        A bound on what lies beyond the last node, relative to δ.
    rounding
        An estimate of the rounding error, relative to δ.
    settled
        Whether the steps in ε came to rest.
    """

    epsilon: Array
    log_delta: Array
    slope: Array
    beyond: Array
    rounding: Array
    settled: NDArray[np.bool_]


class SharedLine:
    """Node values of all kinds of steps on one line.

    Parameters
    ----------
    table
        The CGFs.
    tilt, step, nodes
        t, h and the number of nodes.
    used
        Which kinds of steps occur among the records that it serves.
    """

    def __init__(
        self,
        table: SubsampledGaussian,
        tilt: float,
        step: float,
        nodes: int,
        used: NDArray[np.bool_],
    ) -> None:
        self.tilt, self.step, self.nodes = tilt, step, nodes
        values = table.line(tilt, step, nodes, used)
        self.exponents: Array = np.concatenate([values.real, values.imag], axis=1)
        self.error = table.rounding(tilt, used)
        y = np.arange(nodes, dtype=np.float64) * step
        z = tilt + 1j * y
        weight: Any = np.where(np.arange(nodes) == 0, 1.0, 2.0) / (z * (1.0 + z))
        self.kernel = np.abs(weight)
        edges = step * nodes * _STRETCHES
        self.bounds = table.log_bounds(tilt, edges, used)
        # nodes of each stretch, each at most as large as the first; Σ 1/y² beyond the last one
        some = np.append(np.diff(edges) / step, edges[-1] / step) + 1.0
        self.left_out = 2.0 * some / (np.hypot(tilt, edges) * np.hypot(1.0 + tilt, edges))
        # Σ_k v_k w_k (−iy_k)^m/m!, real parts, as one real product with (Re v, Im v) side by side
        self.scale = float(y[-1]) if nodes > 1 else 1.0
        self.moments = self._moments(weight, y)

    def _moments(self, weight: Complex, y: Array) -> Array:
        moments: Any = np.empty((y.size, 2, _ORDER))
        terms: Any = weight.copy()
        for m in range(_ORDER):
            moments[:, 0, m], moments[:, 1, m] = terms.real, -terms.imag
            terms = terms * (-1j * y / self.scale) / (m + 1)
        return np.asarray(moments.reshape(2 * y.size, _ORDER))

    def _values(self, counts: Array, epsilon: Array) -> tuple[Complex, Array, Array]:
        """Return node values over their size at the tilt, that size's log, and the moduli."""
        exponents = counts @ self.exponents
        transform = exponents[:, 0].copy()
        modulus = exponents[:, : self.nodes]
        modulus -= transform[:, None]
        np.exp(modulus, out=modulus)
        angle = exponents[:, self.nodes :]
        angle -= np.multiply.outer(epsilon, self.step * np.arange(self.nodes))
        values: Any = np.empty((counts.shape[0], self.nodes), dtype=np.complex128)
        np.multiply(modulus, np.cos(angle), out=values.real)
        np.multiply(modulus, np.sin(angle, out=angle), out=values.imag)
        return values, transform, modulus

    def solve(self, counts: Array, epsilon: Array, log_delta: float | None) -> LineValues:
        """Return ε at a given log δ, or log δ at given ε where that is None.

        Parameters
        ----------
        counts
            Steps of each kind, shape (records, kinds), as doubles.
        epsilon
            Where to begin, or the given ε.
        log_delta
            The wanted log δ.
        """
        size = max(16, _BLOCK // self.nodes)
        parts = [
            self._solve(counts[i : i + size], epsilon[i : i + size], log_delta)
            for i in range(0, counts.shape[0], size)
        ]
        columns = ([getattr(part, field.name) for part in parts] for field in fields(LineValues))
        return LineValues(*(np.concatenate(column) for column in columns))

    def _solve(self, counts: Array, epsilon: Array, log_delta: float | None) -> LineValues:
        values, transform, modulus = self._values(counts, epsilon)
        size = modulus @ self.kernel
        beyond = np.exp(counts @ self.bounds) @ self.left_out
        # the width of the values: where their modulus is e^-4.5
        fallen = np.maximum((modulus > math.exp(-4.5)).sum(axis=1), 2)
        reach = _TRUST / (fallen * self.step)
        epsilon = epsilon.copy()
        count = epsilon.size
        total, rate = np.full(count, np.nan), np.full(count, np.nan)
        settled = np.zeros(count, dtype=bool)
        front = math.log(self.step / (2.0 * math.pi))
        waiting = np.arange(count)
        for _ in range(_ROUNDS if log_delta is not None else 1):
            moments = values.view(np.float64) @ self.moments
            offset = transform[waiting] - self.tilt * epsilon[waiting] + front
            if log_delta is None:
                total, rate = moments[:, 0], moments[:, 1] * self.scale
                settled = total > 0.0
                break
            move, ready, total[waiting], rate[waiting] = self._step(
                moments, offset - log_delta, reach[waiting], epsilon[waiting]
            )
            epsilon[waiting] += move
            settled[waiting[ready]] = True
            rest = np.flatnonzero(~ready)
            waiting = waiting[rest]
            if not waiting.size:
                break
            turn = powers_less_one(-self.step * move[rest], self.nodes)
            turn += 1.0
            values = values[rest] if rest.size < values.shape[0] else values
            values *= turn
        with np.errstate(divide="ignore", invalid="ignore"):
            found = transform - self.tilt * epsilon + front + np.log(total)
            slope = rate / total - self.tilt
            drift = 8.0 + np.abs(transform) + np.abs(self.tilt * epsilon) + np.sqrt(counts.sum(1))
            rounding = (ROUNDING * drift + counts @ self.error) * size / total
        return LineValues(epsilon, found, slope, beyond / total, rounding, settled)

    def _step(
        self, moments: Array, excess: Array, reach: Array, epsilon: Array
    ) -> tuple[Array, NDArray[np.bool_], Array, Array]:
        """Return the step in ε that the Taylor polynomials ask for, and whether it is the last.

        Parameters
        ----------
        moments
            Taylor coefficients of the sum without e^{−td}, in d·scale.
        excess
            log of the front factor over the wanted δ.
        reach
            The longest step that the polynomial serves.
        epsilon
            Where the polynomial stands; a plain Newton step beyond it is no longer than a third.
        """
        d = np.zeros(excess.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(8):
                total, rate = _polynomial(moments, d * self.scale)
                height = excess - self.tilt * d + np.log(total)
                move = -height / (rate * self.scale / total - self.tilt)
                # the sum cancelled, or the slope has the wrong sign: come from above
                lost = ~np.isfinite(move)
                move = np.where(lost, 0.5 * reach, move)
                d = np.clip(d + move, -reach, reach)
            total, rate = _polynomial(moments, d * self.scale)
            x = np.abs(d * self.scale)
            left_out = np.abs(moments[:, -1]) * x ** (_ORDER - 1)
            left_out += np.abs(moments[:, -2]) * x ** (_ORDER - 2)
            inside = (np.abs(d) < reach) & ~lost & (total > 0.0)
            ready = inside & (left_out <= _SETTLED * total)
            plain = moments[:, 1] * self.scale / moments[:, 0] - self.tilt
            newton = -(excess + np.log(moments[:, 0])) / plain
            longest = np.maximum(np.abs(epsilon) / 3.0, reach)
            far = ~inside & (plain < 0.0) & (np.abs(newton) > reach)
            d = np.where(far, np.clip(newton, -longest, longest), d)
        return d, ready, total, rate * self.scale


def _polynomial(coefficients: Array, x: Array) -> tuple[Array, Array]:
    """Return a polynomial and its derivative, one for each row."""
    value = coefficients[:, -1].copy()
    slope = np.zeros_like(value)
    for m in range(coefficients.shape[1] - 2, -1, -1):
        slope = slope * x + value
        value = value * x + coefficients[:, m]
    return value, slope
