"""A law whose density is known as a table, one coordinate for every outcome that counts.

`table` has the log density of a coordinate x without the record; with the record it is larger by
the log of the likelihood ratio, which a chart knows at every x and which rises with it. What errs
is the density alone, by a factor, and so δ by no more than that factor for each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from symdp.emit.arb import UNKNOWN
from symdp.numeric.elementary import log_sum
from symdp.numeric.loss import LossLaw
from symdp.numeric.step import Array, SmoothPiece, Step, together

_NEGLIGIBLE = 44.0  # e-folds below its maximum at which a tilted density may end
_PLACES = 2000  # at which a tilted density is looked at
_MOST_TILT = 1e6  # beyond which a moment generating function is taken to be finite
_NODES = 40  # of a panel's rule: e^{40u} on [−1, 1] to 1e-16, more than a panel's density grows


@dataclass(frozen=True)
class LogDensityTable:
    """The log density of x under Q: Chebyshev series on panels, `error` relative."""

    edges: Array
    coefficients: Array
    error: Array

    def panel(self, x: Array) -> NDArray[np.intp]:
        """Return the number of the panel, or of the nearest one."""
        number = np.searchsorted(self.edges, x.real, side="right") - 1
        return np.asarray(np.clip(number, 0, self.edges.size - 2))

    def __call__(self, place: Array) -> Array:
        """Return the log density, −∞ outside the panels; places may be complex."""
        x = np.asarray(place)
        panel = self.panel(x)
        low, high = self.edges[panel], self.edges[panel + 1]
        u = (2.0 * x - low - high) / (high - low)
        first, second = np.zeros_like(u), np.zeros_like(u)
        for row in self.coefficients.T[:0:-1]:
            first, second = row[panel] + 2.0 * u * first - second, first
        value = self.coefficients.T[0][panel] + u * first - second
        inside = (x.real >= self.edges[0]) & (x.real <= self.edges[-1])
        return np.asarray(np.where(inside, value, -np.inf))

    def rule(self, cut: float) -> tuple[Array, Array, Array]:
        """Return nodes, logs of density times weight and errors of a rule for kinks at `cut`."""
        x, log_weight, error = self._whole
        if not self.edges[0] < cut < self.edges[-1]:
            return x.ravel(), log_weight.ravel(), error.ravel()
        panel = int(self.panel(np.asarray(cut)))
        ends = np.asarray([self.edges[panel], cut, self.edges[panel + 1]])
        parts = [*self._rule(ends), np.full((2, _NODES), self.error[panel])]
        kept = [np.delete(column, panel, axis=0) for column in (x, log_weight, error)]
        joined = [np.concatenate(both).ravel() for both in zip(kept, parts, strict=True)]
        return joined[0], joined[1], joined[2]

    @cached_property
    def _whole(self) -> tuple[Array, Array, Array]:
        x, log_weight = self._rule(self.edges)
        return x, log_weight, np.broadcast_to(self.error[:, None], x.shape)

    def _rule(self, edges: Array) -> tuple[Array, Array]:
        """Return Gauss nodes between the edges, and logs of density times weight."""
        half = 0.5 * np.diff(edges)[:, None]
        nodes, weights = _gauss()
        x = edges[:-1, None] + half * (1.0 + nodes)
        with np.errstate(divide="ignore"):
            return x, self(x) + np.log(half * weights)


@cache
def _gauss() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return np.asarray(nodes), np.asarray(weights)


class Chart:
    """The log likelihood ratio as a function of the coordinate: here, the coordinate itself.

    `breaks`: inner places where it is not smooth.
    """

    breaks: tuple[float, ...] = ()

    def ratio(self, x: Array) -> Array:
        """Return the log ratio of the densities with the record and without it."""
        return x

    def ball(self, x: arb) -> arb:
        """Return the same in a ball."""
        return x

    def place(self, ratio: Array) -> Array:
        """Return where it has values, infinite where it has them nowhere."""
        return ratio


class TabulatedLaw(LossLaw):
    """The privacy loss of one step in one direction, from a table.

    `bounds`: of the loss in the remove direction. `log_infinite`: log of the mass at infinity, what
    the table does not reach among it.
    """

    def __init__(
        self,
        table: LogDensityTable,
        chart: Chart,
        direction: str,
        name: str,
        log_infinite: float,
        bounds: tuple[float, float],
    ) -> None:
        self._table, self._chart, self._log_infinite = table, chart, log_infinite
        self._sign = 1.0 if direction == "remove" else -1.0
        low, high = bounds
        super().__init__(self._step(name), bounds if self._sign > 0 else (-high, -low))
        self.domain = self._domain()

    def _step(self, name: str) -> Step:
        table, sign = self._table, self._sign

        def with_record(x: Array) -> Array:
            return table(x) + self._chart.ratio(x)

        log_p, log_q = (with_record, table) if sign > 0 else (table, with_record)

        def ball(x: Any, **_analytic: bool) -> tuple[Any, Any]:
            # Log P as doubles have it, and ℓ: a table says nothing beside the line.
            if isinstance(x, acb):
                return UNKNOWN, UNKNOWN
            log_value = float(log_p(np.asarray([float(x.mid())]))[0])
            return arb(log_value), int(sign) * self._chart.ball(x)

        edges = [float(table.edges[0]), *self._chart.breaks, float(table.edges[-1])]
        pieces = tuple(
            SmoothPiece(
                low,
                high,
                log_p,
                log_q,
                self._loss,
                ball,
                together([log_p, log_q]),
                monotone=True,
                off=lambda x: table.error[table.panel(x)],
            )
            for low, high in pairwise(edges)
        )
        if self._log_infinite == -math.inf:
            return Step(name, pieces)
        return Step(name, pieces, np.asarray([math.inf]), np.asarray([self._log_infinite]))

    def _loss(self, x: Array) -> Array:
        return self._sign * self._chart.ratio(x)

    def _log_p(self, x: Array, log_q: Array) -> Array:
        return log_q + self._chart.ratio(x) if self._sign > 0 else log_q

    def _domain(self) -> tuple[float, float]:
        """Return the tilts at which the density ends below 2^−63 of the tilted maximum.

        Of a loss that is bounded on one side, every tilt towards it.
        """
        x = np.linspace(self._table.edges[0], self._table.edges[-1], _PLACES)
        log_p, loss = self._log_p(x, self._table(x)), self._loss(x)

        def holds(tilt: float) -> bool:
            exponent = log_p + tilt * loss
            return bool(max(exponent[0], exponent[-1]) < exponent.max() - _NEGLIGIBLE)

        ends = []
        for start, way in ((-1.0, -1.0), (0.0, 1.0)):
            near, far = 0.0, 1.0
            while far < _MOST_TILT and holds(start + way * far):
                near, far = far, 2.0 * far
            for _ in range(30):
                middle = 0.5 * (near + far)
                near, far = (middle, far) if holds(start + way * middle) else (near, middle)
            ends.append(start + way * near)
        return ends[0], ends[1]

    @property
    def mass_at_infinity(self) -> float:
        """P(Q = 0), and what the table does not reach."""
        return math.exp(self._log_infinite)

    def is_resolved_at(self, tilt: float) -> bool:
        """Whether the table reaches as far as a tilted density does."""
        low, high = self.domain
        return low < tilt < high and super().is_resolved_at(tilt)

    def known_profile(self, epsilon: float) -> tuple[float, float, float, float]:
        """Return log δ(ε), log(1 − δ(ε)), δ's relative error and log(e^ε Q(L > ε))."""
        x, log_q, error = self._table.rule(
            float(self._chart.place(np.asarray(self._sign * epsilon)))
        )
        above, log_p = self._loss(x) - epsilon, self._log_p(x, log_q)
        with np.errstate(divide="ignore"):
            gain = log_p + np.log(-np.expm1(np.minimum(-above, 0.0)))
        log_delta = log_sum(gain)
        share = np.exp(gain - log_delta) if log_delta > -math.inf else np.zeros(gain.size)
        complement = log_sum(log_p + np.minimum(-above, 0.0))
        falling = log_sum(np.where(above > 0, log_p - above, -np.inf))
        return log_delta, complement, float(share @ error), falling
