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
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, log_ndtr

from symdp.errors import AccuracyError
from symdp.law.elementary import Complex
from symdp.law.likelihood_ratio import RatioLaw, Ratios
from symdp.law.log_density_table import LogDensityTable
from symdp.law.power_series import power_of_series
from symdp.law.step import Array

DEGREE = 23  # of the interpolant of log g on a panel
FLOOR = 90.0  # e-folds below its maximum at which the density ends
LEAST_FLOOR = 40.0  # e-folds below which an end that is not resolved counts for nothing
_MOST_POWER = 96  # the largest k
_SHAPE = 16  # k beyond the slope of −log g in log y: the tilted density is as narrow as Gamma(16)
_NEGLIGIBLE = 42.0  # e-folds, 6e-19
_FAINT = 1e-17  # of Φ^{(k)}(c): the integral ends there
_NOISE = 1e-12  # the rounding of Φ^{(k)}: the integral ends where it falls no further
_MOST_NODES = 1536  # of the integral over v
_BLOCK = 48
_PERIOD = 24.0  # standard deviations between two aliases of the tilted density
_REACH = 2.5  # standard deviations of the tilted density that one panel reaches
_UNIT = 1.2e-16  # rounding of a double
WORST = 1e-9  # relative: a density less accurate is not used
_TAIL = 1e-11  # of the last Chebyshev coefficients of log g, absolute
_CUT_WIDTH = 0.05  # of the smooth cut-off of log W
_CUT_BEYOND = 0.45  # nine widths: 1 up to the bound but for 1e-18
_MOST_PANELS = 120
_LARGEST = 690.0  # of log W: e^690 is nearly the largest double
_MOST_PLACES = 1 << 15  # nodes of W for one window


def tabulate(law: RatioLaw, steps: int) -> LogDensityTable:
    """Return the log density of log(Y/t) under Q, Y the sum of t = `steps` ratios.

    Raises
    ------
    AccuracyError
        If Φ does not die out along the line, as where W has atoms or its density jumps.
    """
    maker = _Maker(law, steps)
    right, left = list(maker.march(1)), list(maker.march(-1))
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

    def joins(self, value: float, side: int) -> bool:
        """Return whether the density has a given log at the inner end, if one is given."""
        inner = float(np.polynomial.chebyshev.chebval(-side, self.coefficients))
        return not abs(inner - value) > WORST


class _Maker:
    """Panels of the table, one after the other outwards from the mean of Y."""

    def __init__(self, law: RatioLaw, steps: int) -> None:
        self.law, self.steps, self.name = law, steps, law.name
        self.coarse = law.coarse
        self.least = self._least_sum()

    def _least_sum(self) -> float:
        """Return what t − 1 components exceed but for a probability of e^−42 (Chernoff)."""
        others = self.steps - 1
        rates = np.exp(np.arange(-14.0, 14.0, 0.25))
        bounds = [
            (-_NEGLIGIBLE - others * _log_transform(self.coarse, float(u))) / float(u)
            for u in rates
        ]
        return max(0.0, *bounds)

    def march(self, side: int) -> Iterator[_Panel]:
        """Yield panels to the right (1) or to the left (−1) of the mean until the density ends."""
        place, slope, spread, peak, last = 0.0, 0.0, 0.0, -math.inf, math.nan
        for _ in range(_MOST_PANELS):
            panel = self._panel(place, side, slope, spread, last)
            if panel is None:
                self._check_end(place, last + max(place, 0.0) - peak)
                return
            yield panel
            place = panel.upper if side > 0 else panel.lower
            slope, spread, last = panel.slope, panel.spread, panel.log_value
            peak = max(peak, float(panel.coefficients[0]))
            # Under P the density is e^λ times as large.
            if panel.log_value + max(place, 0.0) < peak - FLOOR:
                return

    def _check_end(self, place: float, height: float) -> None:
        """Raise AccuracyError where the table ends before the density is negligible."""
        what = f"random allocation of {self.name} over {self.steps} steps"
        if place == 0.0:
            raise AccuracyError(
                f"{what}: the transform of the likelihood ratio does not die out, as its law has "
                "atoms, jumps or turning points; more steps smooth it"
            )
        if height > -LEAST_FLOOR:
            raise AccuracyError(
                f"{what}: the density of the loss is not resolved beyond {place:.4g}, where it is "
                f"still e^{height:.0f} of its maximum; change the number of steps or the noise"
            )

    def _panel(
        self, start: float, side: int, slope: float, spread: float, last: float
    ) -> _Panel | None:
        """Return the panel that begins where the last one ended, and with its value there."""
        y = self.steps * math.exp(start)
        centre = y * (1.0 + side * 0.8 * _REACH * min(spread, 0.25))
        # Halfway to the end of the range of Y at most.
        end_of_range = self.steps * math.exp(min(self.law.law.loss_bounds[side > 0], _LARGEST))
        centre = y + side * min(abs(centre - y), 0.5 * abs(end_of_range - y))
        for power, origin in self._powers(side, y, slope, spread):
            reaching = 1.7 if power else 1.0 + 4.0 * min(spread, 0.17)
            top = max(reaching * centre, y)
            window = _Window.at(self, centre, power, origin, top)
            if window is None:
                continue
            reach = _REACH * window.deviation
            end = centre + reach if side > 0 else max(centre - reach, 0.4 * centre)
            end = min(end, top)
            end = y + side * min(abs(end - y), 0.8 * abs(end_of_range - y))
            for _ in range(4):
                last_place = math.log(end / self.steps)
                lower, upper = min(start, last_place), max(start, last_place)
                found = self._fitted(window, lower, upper, side)
                if found is not None and found.joins(last, side):
                    return found
                end = 0.5 * (end + y)
        return None

    def _powers(self, side: int, y: float, slope: float, spread: float) -> list[tuple[int, float]]:
        """Return which factors (y − origin)^k to try; the slope is that of log g in log y."""
        is_narrow = 0.0 < spread < 0.2
        if side < 0:
            return [(0, 0.0), (_SHAPE, 0.0)] if is_narrow else [(_SHAPE, 0.0), (0, 0.0)]
        plain = math.ceil(max(-slope, 0.0)) + _SHAPE
        shifted = math.ceil(max(-slope, 0.0) * (1.0 - self.least / y)) + _SHAPE
        factors = [(plain, 0.0), (shifted, self.least)]
        factors = [factor for factor in factors if factor[0] <= _MOST_POWER]
        return [(0, 0.0), *factors] if is_narrow else [*factors, (0, 0.0)]

    def _fitted(self, window: _Window, lower: float, upper: float, side: int) -> _Panel | None:
        u = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
        place = 0.5 * (lower + upper) + 0.5 * (upper - lower) * u
        log_density, error = window.log_density(self.steps * np.exp(place))
        if not (np.isfinite(log_density).all() and float(error.max()) < WORST):
            return None
        values = log_density + place + math.log(self.steps)
        coefficients = np.asarray(
            np.polynomial.chebyshev.chebfit(u, values, DEGREE), dtype=np.float64
        )
        if float(np.abs(coefficients[-2:]).max()) > max(_TAIL, 10.0 * float(error.max())):
            return None
        outer = 1.0 if side > 0 else -1.0
        derivative = np.polynomial.chebyshev.chebder(coefficients)
        return _Panel(
            lower,
            upper,
            coefficients,
            float(error.max()) + self.steps * _UNIT,
            float(np.polynomial.chebyshev.chebval(outer, derivative)) * 2.0 / (upper - lower) - 1.0,
            float(np.polynomial.chebyshev.chebval(outer, coefficients)),
            window.deviation / window.centre,
        )


@dataclass(frozen=True)
class _Window:
    """(y − m)^k e^{−cy} g(y) around a centre: the values of its transform along Re u = c."""

    centre: float
    deviation: float
    power: int
    origin: float
    tilt: float
    log_front: float
    step: float
    values: Complex

    @classmethod
    def at(
        cls, maker: _Maker, centre: float, power: int, origin: float, top: float
    ) -> _Window | None:
        """Return the window whose tilted mean is a given y, None where there is none.

        It serves y up to a `top`, which larger components do not reach.
        """
        bound = top - (maker.least if not power and centre > maker.steps else 0.0)
        log_weight = _bounded(maker.coarse, bound)
        scale = centre - origin
        found = _tilt(log_weight, (maker.coarse.ratio - origin / maker.steps) / scale, maker, power)
        if found is None:
            return None
        tilt, deviation = found[0] / scale, found[1] * scale
        transform = _Transform(maker, centre, power, origin, tilt, bound, deviation)
        values = transform.until_it_dies_out()
        if values is None:
            return None
        front = maker.steps * transform.log_mass + float(gammaln(power + 1.0))
        return cls(centre, deviation, power, origin, tilt, front, transform.step, values)

    def log_density(self, y: Array) -> tuple[Array, Array]:
        """Return log g(y), and the relative error that rounding and the end of the line leave."""
        frequency = self.step * np.arange(self.values.size)
        turned = np.exp(1j * np.multiply.outer(y - self.centre, frequency)) @ self.values
        value = turned.real - 0.5 * self.values[0].real
        size = float(np.abs(self.values).sum())
        left_out = 2.0 * math.sqrt(self.values.size) * float(np.abs(self.values[-8:]).max())
        with np.errstate(divide="ignore", invalid="ignore"):
            error = (2.0 * _UNIT * size + left_out) / np.where(value > 0, value, 0.0)
            log_value = np.log(np.where(value > 0, value, np.nan) * self.step / math.pi)
        log_value += self.log_front
        log_value -= self.power * np.log((y - self.origin) / (self.centre - self.origin))
        log_value += self.tilt * y
        return log_value, error


def _log_transform(ratios: Ratios, u: float) -> float:
    """Return log E_Q e^{−uW} for u > 0."""
    exponent = ratios.log_weight - u * ratios.ratio
    top = float(exponent.max())
    return top + math.log(float(np.exp(exponent - top).sum()))


def _bounded(ratios: Ratios, bound: float) -> Array:
    """Return log weights with a smooth cut-off of W above a bound."""
    with np.errstate(divide="ignore"):
        far = (math.log(bound) + _CUT_BEYOND - np.log(ratios.ratio)) / _CUT_WIDTH
    cut = np.where(far > -_CUT_BEYOND / _CUT_WIDTH, log_ndtr(far), -np.inf)
    return np.asarray(ratios.log_weight + cut)


def _tilt(log_weight: Array, ratio: Array, maker: _Maker, power: int) -> tuple[float, float] | None:
    """Return c with tilted mean 1, and the standard deviation there; lengths are in centres."""
    seen = np.isfinite(log_weight)
    log_weight, ratio = log_weight[seen], ratio[seen]
    order = np.arange(power + 3.0)
    factorial = np.exp(gammaln(order + 1.0))
    powers = ratio[:, None] ** order
    tilt = float(power)
    for _ in range(60):
        exponent = log_weight - tilt * ratio
        weight = np.exp(exponent - exponent.max())
        series = (weight / weight.sum()) @ powers / factorial
        total = np.asarray(power_of_series(series[:, None], maker.steps))[:, 0] * factorial
        mean = float(total[power + 1] / total[power])
        variance = float(total[power + 2] / total[power]) - mean * mean
        if not (math.isfinite(mean) and variance > 0):
            return None
        deviation = math.sqrt(variance)
        change = (mean - 1.0) / variance
        if abs(change) * deviation < 0.02:
            return tilt, deviation
        limit = 2.0 / deviation
        tilt += min(max(change, -limit), limit)
    return None


class _Transform:
    """(−1)^k Φ^{(k)}(c + iv) over φ(c)^t k!, at equally spaced v ≥ 0."""

    def __init__(
        self,
        maker: _Maker,
        centre: float,
        power: int,
        origin: float,
        tilt: float,
        bound: float,
        deviation: float,
    ) -> None:
        self.maker, self.centre, self.power, self.origin = maker, centre, power, origin
        self.tilt, self.bound = tilt, bound
        self.step = 2.0 * math.pi / (_PERIOD * deviation)
        self.reach = 12.0 / deviation
        self.log_mass = 0.0
        self._refine()

    def _refine(self) -> None:
        """Take nodes of W that resolve the frequencies up to the reach."""
        least, most = self._range()
        ratios = self.maker.law.refined(abs(self.tilt) + self.reach, least, most)
        self.is_too_fine = ratios.ratio.size > _MOST_PLACES
        exponent = _bounded(ratios, self.bound) - self.tilt * ratios.ratio
        top = float(exponent.max())
        weight = np.exp(exponent - top)
        mass = float(weight.sum())
        self.log_mass = top + math.log(mass)
        with np.errstate(divide="ignore"):
            log_ratio = np.log(np.abs(self._scaled(ratios.ratio)))
        kept = exponent > top - _NEGLIGIBLE
        for order in {self.power // 2, self.power} - {0}:
            size = exponent + order * log_ratio
            kept |= size > size.max() - _NEGLIGIBLE
        place = ratios.ratio[kept]
        powers = np.arange(self.power + 1.0)
        moments = (weight[kept] / mass)[:, None] * self._scaled(place)[:, None] ** powers
        self._moments = moments * np.exp(-gammaln(powers + 1.0))
        self._from_mean = place - self.centre / self.maker.steps

    def _range(self) -> tuple[float, float]:
        """Return between which W some weight is not negligible."""
        ratios = self.maker.coarse
        exponent = _bounded(ratios, self.bound) - self.tilt * ratios.ratio
        with np.errstate(divide="ignore"):
            log_ratio = np.log(np.abs(self._scaled(ratios.ratio)))
        seen = np.zeros(exponent.size, dtype=bool)
        for order in {0, self.power // 2, self.power}:
            size = exponent + (order * log_ratio if order else 0.0)
            seen |= size > size.max() - 1.5 * _NEGLIGIBLE
        return float(ratios.ratio[seen].min()), float(ratios.ratio[seen].max())

    def _scaled(self, ratio: Array) -> Array:
        scale = self.centre - self.origin
        return np.asarray((ratio - self.origin / self.maker.steps) / scale)

    def until_it_dies_out(self) -> Complex | None:
        """Return the values until they are negligible, None where they do not become so."""
        values: list[Complex] = []
        last = math.inf
        for first in range(0, _MOST_NODES, _BLOCK):
            frequency = self.step * np.arange(first, first + _BLOCK)
            if frequency[-1] > self.reach:
                self.reach *= 2.0
                self._refine()
            if self.is_too_fine:
                return None
            angle = np.multiply.outer(frequency, self._from_mean)
            taylor = np.cos(angle) @ self._moments - 1j * (np.sin(angle) @ self._moments)
            series = np.asarray(power_of_series(taylor.T, self.maker.steps))
            values.append(series[-1].astype(np.complex128))
            size = float(np.abs(values[-1][-16:]).max()) / abs(values[0][0])
            if size <= _FAINT or (size <= _NOISE and size > 0.5 * last):
                return np.concatenate(values)
            last = size
        return None
