"""A law whose density is known as a table, one coordinate for every outcome that counts.

`table` has the log density of a coordinate x without the record; with the record it is larger by
the log of the likelihood ratio, which a chart knows at every x and which rises with it. What errs
is the density alone, by a factor, and so δ by no more than that factor for each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from symdp.emit.arb import UNKNOWN
from symdp.numeric.elementary import log_sum
from symdp.numeric.loss import LossLaw
from symdp.numeric.step import Array, RealFunction, SmoothPiece, Step, together

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
        low = self.edges[panel]
        high = self.edges[panel + 1]
        u = (2.0 * x - low - high) / (high - low)
        # Clenshaw's recurrence
        first = np.zeros_like(u)
        second = np.zeros_like(u)
        for row in self.coefficients.T[:0:-1]:
            before = first
            first = row[panel] + 2.0 * u * first - second
            second = before
        value = self.coefficients.T[0][panel] + u * first - second
        is_inside = (x.real >= self.edges[0]) & (x.real <= self.edges[-1])
        return np.asarray(np.where(is_inside, value, -np.inf))

    def rule(self, cut: float) -> tuple[Array, Array, Array]:
        """Return nodes, logs of density times weight and errors of a rule for kinks at `cut`."""
        x, log_weight, error = self._nodes_of_panels
        if not self.edges[0] < cut < self.edges[-1]:
            return x.ravel(), log_weight.ravel(), error.ravel()
        panel = int(self.panel(np.asarray(cut)))
        ends = np.asarray([self.edges[panel], cut, self.edges[panel + 1]])
        cut_x, cut_log_weight = self._gauss_rule(ends)
        cut_error = np.full((2, _NODES), self.error[panel])
        whole_and_cut = ((x, cut_x), (log_weight, cut_log_weight), (error, cut_error))
        columns = []
        for whole, of_cut in whole_and_cut:
            others = np.delete(whole, panel, axis=0)
            joined = np.concatenate([others, of_cut])
            columns.append(joined.ravel())
        all_x, all_log_weights, all_errors = columns
        return all_x, all_log_weights, all_errors

    @cached_property
    def _nodes_of_panels(self) -> tuple[Array, Array, Array]:
        x, log_weight = self._gauss_rule(self.edges)
        error = np.broadcast_to(self.error[:, None], x.shape)
        return x, log_weight, error

    def _gauss_rule(self, edges: Array) -> tuple[Array, Array]:
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
        self._table = table
        self._chart = chart
        self._log_infinite = log_infinite
        self._sign = 1.0
        if direction != "remove":
            self._sign = -1.0
            bounds = (-bounds[1], -bounds[0])
        super().__init__(self._step_of_table(name), bounds)
        self.domain = self._resolved_domain()

    def _step_of_table(self, name: str) -> Step:
        table = self._table
        sign = self._sign

        def with_record(x: Array) -> Array:
            return table(x) + self._chart.ratio(x)

        log_p: RealFunction = with_record if sign > 0 else table
        log_q: RealFunction = table if sign > 0 else with_record

        def ball(x: Any, **_analytic: bool) -> tuple[Any, Any]:
            # Log P as doubles have it, and ℓ: a table says nothing beside the line.
            if isinstance(x, acb):
                return UNKNOWN, UNKNOWN
            middle = np.asarray([float(x.mid())])
            log_value = float(log_p(middle)[0])
            return arb(log_value), int(sign) * self._chart.ball(x)

        first = float(table.edges[0])
        last = float(table.edges[-1])
        edges = [first, *self._chart.breaks, last]
        pieces = []
        for low, high in pairwise(edges):
            piece = SmoothPiece(
                lower=low,
                upper=high,
                log_p=log_p,
                log_q=log_q,
                loss=self._loss,
                ball=ball,
                log_terms=together([log_p, log_q]),
                monotone=True,
                off=lambda x: table.error[table.panel(x)],
            )
            pieces.append(piece)
        step = Step(name, tuple(pieces))
        if self._log_infinite == -math.inf:
            return step
        return replace(
            step,
            point_loss=np.asarray([math.inf]),
            point_log_p=np.asarray([self._log_infinite]),
        )

    def _loss(self, x: Array) -> Array:
        return self._sign * self._chart.ratio(x)

    def _log_p(self, x: Array, log_q: Array) -> Array:
        if self._sign > 0:
            return log_q + self._chart.ratio(x)
        return log_q

    def _resolved_domain(self) -> tuple[float, float]:
        """Return the tilts at which the density ends below 2^−63 of the tilted maximum.

        Of a loss that is bounded on one side, every tilt towards it.
        """
        edges = self._table.edges
        x = np.linspace(edges[0], edges[-1], _PLACES)
        log_p = self._log_p(x, self._table(x))
        loss = self._loss(x)

        def is_resolved(tilt: float) -> bool:
            exponent = log_p + tilt * loss
            at_ends = max(exponent[0], exponent[-1])
            return bool(at_ends < exponent.max() - _NEGLIGIBLE)

        ends = []
        for start, way in ((-1.0, -1.0), (0.0, 1.0)):
            near = 0.0
            far = 1.0
            while far < _MOST_TILT and is_resolved(start + way * far):
                near = far
                far = 2.0 * far
            for _ in range(30):
                middle = 0.5 * (near + far)
                if is_resolved(start + way * middle):
                    near = middle
                else:
                    far = middle
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
        cut = self._chart.place(np.asarray(self._sign * epsilon))
        x, log_q, error = self._table.rule(float(cut))
        above = self._loss(x) - epsilon
        log_p = self._log_p(x, log_q)
        exponent = np.minimum(-above, 0.0)
        with np.errstate(divide="ignore"):
            log_gain = log_p + np.log(-np.expm1(exponent))
        log_delta = log_sum(log_gain)
        share = np.zeros(log_gain.size)
        if log_delta > -math.inf:
            share = np.exp(log_gain - log_delta)
        log_complement = log_sum(log_p + exponent)
        log_falls = np.where(above > 0, log_p - above, -np.inf)
        log_falling = log_sum(log_falls)
        return log_delta, log_complement, float(share @ error), log_falling
