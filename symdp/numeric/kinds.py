"""The kinds of steps of many compositions: a table of their K_b, on real tilts and on lines.

A composition is a row of counts, and what adds up over its steps is one product of that row with a
table: K_b(t) at real tilts, K_b(t + iy) on a line, bounds on log |φ_b| far out, and what rounding
and quadrature do to K_b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.numeric.elementary import Complex
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import decays, log_bound_near, log_characteristic_grid
from symdp.numeric.step import Array

_INSIDE = 0.95  # of the largest tilt with a moment, whose place is itself found in doubles
_UNSEEN = 1e-20  # of all weight: a node's, of which a few thousand are no more than rounding
_TOGETHER = 32  # kinds whose bounds are evaluated at once, some megabytes
_ROUNDING = 1e-15  # relative: of sums of losses and growths, widened as an estimate is

Flags = NDArray[np.bool_]


class Table(Protocol):
    """What rows of counts ask about the kinds of their steps, all arrays with an axis of kinds.

    `has_loss` tells which kinds lose anything, and `log_finite` the log of the probability that the
    loss is finite.  What is not `used` need not be right.
    """

    has_loss: Flags
    log_finite: Array

    @property
    def count(self) -> int:
        """The number of kinds."""

    @property
    def variance(self) -> Array:
        """Of the untilted finite loss, or about that."""

    def transform(self, tilts: Array, used: Flags) -> Array:
        """Return K_b(t) at real tilts t > 0, shape (tilts, kinds); inf where it is not known."""

    def line(self, tilt: float, step: float, nodes: int, used: Flags) -> Complex:
        """Return K_b(t + ihk) for k < nodes, shape (kinds, nodes), for whole counts: logs of φ_b
        may be principal ones; AccuracyError where the line is too long."""

    def rounding(self, tilt: float, reach: float, used: Flags) -> Array:
        """Return the error of every K_b(t + iy), y ≪ reach, absolute."""

    def log_bounds(self, tilt: float, y: Array, used: Flags) -> Array:
        """Return bounds on log |φ_b| between neighbours of rising y, the last for all beyond."""


class LawTable:
    """K_b of the losses of any kinds of steps, each with its own nodes; None for no loss."""

    def __init__(self, laws: Sequence[LossLaw | None]) -> None:
        self._laws = tuple(laws)
        self.count = len(self._laws)
        self.variance: Array
        self.log_finite, self.variance, self._mean = np.zeros((3, self.count))
        self.has_loss = np.zeros(self.count, dtype=bool)
        for b, law in enumerate(self._laws):
            if law is None:
                continue
            self._mean[b] = law.base.mean
            self.variance[b] = float(law.base.weight @ law.base.centred**2)
            escaped = law.mass_at_infinity
            self.log_finite[b] = math.log1p(-escaped) if escaped < 1.0 else -math.inf
            self.has_loss[b] = bool(np.any(law.base.loss)) or escaped > 0.0

    def _each(self, used: Flags) -> list[tuple[int, LossLaw]]:
        """Return the kinds that are to be looked at, with their places."""
        chosen = np.flatnonzero(used & self.has_loss).tolist()
        return [(b, law) for b in chosen if (law := self._laws[b]) is not None]

    def transform(self, tilts: Array, used: Flags) -> Array:
        """Return K_b(t) at real tilts t > 0, shape (tilts, kinds); inf where it is not known."""
        result = np.zeros((tilts.size, self.count))
        for b, law in self._each(used):
            result[:, b] = np.inf
            inside = np.flatnonzero(tilts < _INSIDE * law.domain[1])
            while inside.size:
                try:
                    found = law.transform(tilts[inside])
                except AccuracyError:  # no quadrature so far out
                    inside = inside[: inside.size // 2]
                    continue
                result[inside, b] = found + tilts[inside] * self._mean[b]
                break
        return result

    def line(self, tilt: float, step: float, nodes: int, used: Flags) -> Complex:
        """Return K_b(t + ihk) for k < nodes, shape (kinds, nodes)."""
        result = np.zeros((self.count, nodes), dtype=np.complex128)
        y = step * np.arange(nodes)
        for b, law in self._each(used):
            there, here = law.tilted(tilt, float(y[-1])), law.tilted(tilt)
            mean = there.shift + self._mean[b]
            seen = there.weight > _UNSEEN
            part = replace(there, weight=there.weight[seen], deviation=there.deviation[seen])
            result[b] = log_characteristic_grid(part, step, 0, nodes) + 1j * y * mean
            result[b] += here.excess + tilt * self._mean[b]
        return result

    def rounding(self, tilt: float, reach: float, used: Flags) -> Array:
        """Return the error of every K_b(t + iy), y ≪ reach, absolute."""
        result = np.zeros(self.count)
        for b, law in self._each(used):
            part = law.tilted(tilt)
            size = 2.0 * abs(part.excess) + tilt * part.size
            # Cut tails lack in averages of e^{zL} − 1 − zL, about |zL|, or z²L²/2 if less.
            z, (first, second) = math.hypot(tilt, 0.25 * reach), part.nodes.beyond
            lacking = z * min(first, 0.5 * z * second)
            result[b] = (_ROUNDING + part.error) * (size + 4.0 * part.imprecise) + lacking
        return result

    def log_bounds(self, tilt: float, y: Array, used: Flags) -> Array:
        """Return bounds on log |φ_b| between neighbours of rising y, the last for all beyond."""
        result = np.zeros((self.count, y.size))
        each = self._each(used)
        for start in range(0, len(each), _TOGETHER):
            kinds = [b for b, _ in each[start : start + _TOGETHER]]
            parts = [law.tilted(tilt) for _, law in each[start : start + _TOGETHER]]
            bound = np.minimum(decays(parts).log_bound(y).T, 0.0)
            near = np.asarray([log_bound_near(part, y) for part in parts])
            np.minimum(bound[:, :-1], near, out=bound[:, :-1])
            result[kinds] = bound
        return result
