r"""The density of a sum of likelihood ratios, accurate relative to itself in both tails.

W = P/Q of one step, Y the sum of t independent copies of W under Q. With
:math:`\varphi(u) = E_Q e^{-uW}` and :math:`\Phi = \varphi^t`,

.. math::

   y^k e^{-cy} g(y) = \frac{1}{2\pi} \int_{-\infty}^{\infty}
       (-1)^k \Phi^{(k)}(c + iv)\, e^{ivy}\, dv,

g the density of Y. The factor y^k e^{-cy} puts the maximum of the left-hand side at the y that is
asked for: k = 0 and c > 0 in the left tail, where e^{-cy} is the usual tilt; k > 0 in the right
tail, where Y may have no exponential moment. Every Φ^{(k)} is a sum of positive terms at v = 0, so
that nothing cancels. Its powers are those of a truncated power series, φ's Taylor series at u.

Components above y do not reach y: φ may leave out W > b where the other t − 1 components exceed
y − b but for a negligible probability. That gives exponential moments where W is unbounded.

The log density is kept as Chebyshev series on panels.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.numeric.allocation_window import NEGLIGIBLE, UNIT, Cut, Sums, Window
from symdp.numeric.likelihood_ratio import RatioLaw, Ratios, log_tail
from symdp.numeric.step import Array

DEGREE = 23  # of the interpolant of log g on a panel
FLOOR = 60.0  # e-folds below its maximum at which the density ends
_BEYOND_FLOOR = 20.0  # e-folds below that, of what no component exceeds
LARGEST_UNRESOLVED = 1e-8  # probability beyond the end of a table, which answers count as lost
_MOST_POWER = 48  # the largest k
_SHAPE = 16  # k beyond the slope of −log g in log y: the tilted density is as narrow as Gamma(16)
_REACH = 2.5  # standard deviations of the tilted density that one panel reaches
WORST = 1e-9  # relative: a density less accurate is not used
_TAIL = 1e-11  # of the last Chebyshev coefficients of log g, absolute
_MOST_PANELS = 120  # to one side of the mode; a table has some twenty
_SPLITS = 0.6, 0.35  # of the excess of Y over its mean: larger components are taken apart
_GAP, _WIDE_GAP = 1e-10, 1e-7  # relative: what panels may differ by where they meet, and far out
_ROUNDED = 100.0  # roundings of φ, which its power multiplies, that a gap may come from
_GAP_GROWS = 8.0  # e-folds below the maximum for each factor e of that
_SPREADS = 1.0, 0.5, 0.2, 2.5  # of the last panel's spread, for the next centre
_SHORTEST = 3e-3  # of y: no panel is shorter
_LARGEST = 690.0  # of log W: e^690 is nearly the largest double


def tabulate(law: RatioLaw, steps: int) -> LogDensityTable:
    """Return the log density of log(Y/t) under Q, Y the sum of t = `steps` ratios."""
    maker = _Maker(law, steps)
    right, left = maker.march(1), maker.march(-1)
    panels = [*left[::-1], *right]
    edges = [panels[0].lower, *(panel.upper for panel in panels)]
    return LogDensityTable(
        np.asarray(edges),
        np.stack([panel.coefficients for panel in panels]),
        np.asarray([panel.error + law.error for panel in panels]),
    )


@dataclass(frozen=True)
class _Panel:
    lower: float
    upper: float
    coefficients: Array
    error: float
    slope: float  # of log g in log y at the outer end
    log_value: float  # there
    spread: float  # standard deviation over mean of the tilted density

    def gap(self, value: float, side: int) -> float:
        """Return how far the log density at the inner end is from a value, 0 from none (NaN)."""
        inner = float(np.polynomial.chebyshev.chebval(-side, self.coefficients))
        return 0.0 if math.isnan(value) else abs(inner - value)


class _Maker(Sums):
    """Panels of the table, one after the other outwards from the mean of Y."""

    def __init__(self, law: RatioLaw, steps: int) -> None:
        super().__init__(law, steps)
        self.name = law.name
        self.least = self._least_sum()
        self.largest = self._largest_ratio()
        weight = np.exp(self.coarse.log_weight)
        variance = float(weight @ (np.minimum(self.coarse.ratio, 1e100) - 1.0) ** 2)
        self.spread = math.sqrt(variance / steps)  # standard deviation of Y over its mean

    def _least_sum(self) -> float:
        """Return what t − 1 components exceed but for a probability of e^−42 (Chernoff)."""
        others = self.steps - 1
        rates = np.exp(np.arange(-14.0, 14.0, 0.25))
        bounds = [
            (-NEGLIGIBLE - others * _log_transform(self.coarse, float(u))) / float(u) for u in rates
        ]
        return max(0.0, *bounds)

    def _largest_ratio(self) -> float:
        """Return what no component exceeds but for a probability beyond the end of the table."""
        order = np.argsort(self.coarse.ratio)[::-1]
        ratio, log_weight = self.coarse.ratio[order], self.coarse.log_weight[order]
        beyond = np.logaddexp.accumulate(log_weight) + math.log(self.steps)
        return float(ratio[np.argmax(beyond > -FLOOR - _BEYOND_FLOOR)])

    def march(self, side: int) -> list[_Panel]:
        """Return panels to the right (1) or to the left (−1) of the mean until the density ends.

        What two neighbours differ by where they meet is an error of both.
        """
        panels: list[_Panel] = []
        place, slope, spread, peak, last = 0.0, 0.0, self.spread, -math.inf, math.nan
        for _ in range(_MOST_PANELS):
            panel = None
            depth = 0.0 if math.isnan(last) else peak - last
            least = _GAP + _ROUNDED * UNIT * self.steps
            narrow = min(least * math.exp(depth / _GAP_GROWS), _WIDE_GAP)
            for allowed, share in itertools.product((narrow, _WIDE_GAP), _SPREADS):
                if panel is None:
                    panel = self._panel(place, side, slope, share * spread, (last, allowed))
            if panel is None:
                self._check_end(place, side)
                return panels
            gap = panel.gap(last, side)
            panels[-1:] = [replace(one, error=one.error + gap) for one in panels[-1:]]
            panels.append(replace(panel, error=panel.error + gap))
            place = panel.upper if side > 0 else panel.lower
            slope, spread, last = panel.slope, panel.spread, panel.log_value
            peak = max(peak, float(panel.coefficients[0]))
            # Under P the density is e^λ times as large.
            if panel.log_value + max(place, 0.0) < peak - FLOOR:
                break
        return panels

    def _check_end(self, place: float, side: int) -> None:
        """Raise AccuracyError where the table ends before the density is negligible."""
        what = f"random allocation of {self.name} over {self.steps} steps"
        if place == 0.0:
            raise AccuracyError(
                f"{what}: the transform of the likelihood ratio does not die out, as its law has "
                "atoms, jumps or turning points; more steps smooth it"
            )
        y = self.steps * math.exp(place)
        beyond = max(
            log_tail(self.coarse, self.steps, y, side, with_record=own) for own in (True, False)
        )
        if not beyond <= math.log(LARGEST_UNRESOLVED):
            raise AccuracyError(
                f"{what}: the density of the loss is not resolved beyond {place:.4g}, with a "
                f"probability of up to {math.exp(beyond):.1g}; change the number of steps or the "
                "noise"
            )

    def _panel(
        self, start: float, side: int, slope: float, spread: float, meets: tuple[float, float]
    ) -> _Panel | None:
        """Return the panel that begins where the last one ended, with its value but for a gap."""
        y = self.steps * math.exp(start)
        centre = y * (1.0 + side * 0.8 * _REACH * min(spread, 0.25))
        # Halfway to the end of the range of Y at most.
        end_of_range = self.steps * math.exp(min(self.law.law.loss_bounds[side > 0], _LARGEST))
        centre = y + side * min(abs(centre - y), 0.5 * abs(end_of_range - y))
        for power, origin in self._powers(side, y, slope, spread):
            reaching = 1.7 if power else 1.0 + 4.0 * min(spread, 0.17)
            top = max(reaching * centre, y)
            others = self.least if power <= 0 and side > 0 else 0.0
            bound = min(top - others, self.largest)
            cuts = [Cut(bound)]
            if power < 0:
                split = _SPLITS[-power - 1] * (centre - self.steps)
                cuts = [Cut(split), Cut(bound, split)]
            tried = [Window.at(self, centre, max(power, 0), origin, cut) for cut in cuts]
            windows = [window for window in tried if window is not None]
            if len(windows) < len(cuts):
                continue
            reach = _REACH * min(window.deviation for window in windows)
            end = centre + reach if side > 0 else max(centre - reach, 0.4 * centre)
            end = min(end, top)
            end = y + side * min(abs(end - y), 0.8 * abs(end_of_range - y))
            if abs(end - y) < _SHORTEST * y:
                continue
            for _ in range(4):
                last_place = math.log(end / self.steps)
                lower, upper = min(start, last_place), max(start, last_place)
                found = self._fitted(windows, lower, upper, side)
                if found is not None and found.gap(meets[0], side) <= meets[1]:
                    return found
                end = 0.5 * (end + y)
        return None

    def _powers(self, side: int, y: float, slope: float, spread: float) -> list[tuple[int, float]]:
        """Return which factors (y − origin)^k to try; the slope is that of log g in log y.

        k = −1 and −2 stand for none, with what a large component brings apart.
        """
        is_narrow = spread < 0.2
        if side < 0:
            return [(0, 0.0), (_SHAPE, 0.0)] if is_narrow else [(_SHAPE, 0.0), (0, 0.0)]
        plain = math.ceil(max(-slope, 0.0)) + _SHAPE
        shifted = math.ceil(max(-slope, 0.0) * (1.0 - self.least / y)) + _SHAPE
        factors = [(plain, 0.0), (shifted, self.least)]
        factors = [factor for factor in factors if factor[0] <= _MOST_POWER]
        if is_narrow:
            return [(0, 0.0), (-1, 0.0), (-2, 0.0), *factors]
        return [*factors, (0, 0.0)]

    def _fitted(
        self, windows: list[Window], lower: float, upper: float, side: int
    ) -> _Panel | None:
        u = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
        place = 0.5 * (lower + upper) + 0.5 * (upper - lower) * u
        parts = [window.log_density(self.steps * np.exp(place)) for window in windows]
        log_density = np.logaddexp.reduce([value for value, _ in parts])
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.exp(np.logaddexp.reduce([size for _, size in parts]) - log_density)
        if not (np.isfinite(log_density).all() and float(error.max()) < WORST):
            return None
        values = log_density + place + math.log(self.steps)
        coefficients = np.asarray(
            np.polynomial.chebyshev.chebfit(u, values, DEGREE), dtype=np.float64
        )
        rest = float(np.abs(coefficients[-3:]).max())
        if rest > max(_TAIL, 100.0 * float(error.max())):
            return None
        outer = 1.0 if side > 0 else -1.0
        deviation = min(window.deviation for window in windows)
        derivative = np.polynomial.chebyshev.chebder(coefficients)
        return _Panel(
            lower,
            upper,
            coefficients,
            float(error.max()) + self.steps * UNIT + 4.0 * rest,
            float(np.polynomial.chebyshev.chebval(outer, derivative)) * 2.0 / (upper - lower) - 1.0,
            float(np.polynomial.chebyshev.chebval(outer, coefficients)),
            min(deviation / windows[0].centre, 2.0 * (upper - lower) / (1.8 * _REACH)),
        )


def _log_transform(ratios: Ratios, u: float) -> float:
    """Return log E_Q e^{−uW} for u > 0."""
    exponent = ratios.log_weight - u * ratios.ratio
    top = float(exponent.max())
    return top + math.log(float(np.exp(exponent - top).sum()))


_NODES = 40  # of a panel's rule: e^{40u} on [−1, 1] to 1e-16, more than a panel's density grows


@dataclass(frozen=True)
class LogDensityTable:
    """log of the density of λ = log(Y/t) under Q: a Chebyshev series on every panel.

    `error` is that of the density on each panel, relative to itself.
    """

    edges: Array
    coefficients: Array
    error: Array

    def panel(self, place: Array) -> NDArray[np.intp]:
        """Return the number of the panel, or of the nearest one."""
        number = np.searchsorted(self.edges, place.real, side="right") - 1
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
        kept = [np.delete(one, panel, axis=0) for one in (x, log_weight, error)]
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
