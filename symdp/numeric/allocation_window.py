"""(y − m)^k e^{−cy} g(y) near one y, from its transform on the line Re u = c.

Powers of truncated power series are taken by squaring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.numeric.characteristic_function import column_sums
from symdp.numeric.elementary import Complex
from symdp.numeric.likelihood_ratio import RatioLaw, Ratios
from symdp.numeric.step import Array

_FAINT = 1e-17  # of Φ^{(k)}(c): the integral ends there
_NOISE = 1e-12  # the rounding of Φ^{(k)}: the integral ends where it falls no further
_MOST_NODES = 3072  # of the integral over v
_RUN = 48  # nodes of the line, at the last third of which its size is looked at
_QUICK_DECAY, _SLOW_DECAY = 12.0, 40.0  # over standard deviation: v at which transforms die out
_PERIOD = 24.0  # standard deviations between two aliases of the tilted density
_CUT_WIDTH = 0.05  # of the smooth cut-off of log W
_CUT_BEYOND = 0.45  # nine widths: 1 up to the bound but for 1e-18
_MOST_LARGE = 6  # of them at once
_MOST_PLACES = 1 << 15  # nodes of W for one window
NEGLIGIBLE = 42.0  # e-folds, 6e-19
UNIT = 1.2e-16  # rounding of a double


class Sums:
    """The sum Y of t likelihood ratios under Q."""

    def __init__(self, law: RatioLaw, steps: int) -> None:
        self.law, self.steps = law, steps
        self.coarse = law.coarse


@dataclass(frozen=True)
class Window:
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
    def at(cls, maker: Sums, centre: float, power: int, origin: float, cut: Cut) -> Window | None:
        """Return the window whose tilted mean is a given y, None where there is none."""
        scale = centre - origin
        small, large = cut.weights(maker.coarse)
        ratio = (maker.coarse.ratio - origin / maker.steps) / scale
        if large is None:
            found = _tilt(small, ratio, maker, power)
        else:
            found = _tilt_of_large(small, large, ratio, maker.steps)
        if found is None:
            return None
        tilt, deviation = found[0] / scale, found[1] * scale
        transform = _Transform(maker, centre, power, origin, tilt, cut, deviation)
        values = transform.until_it_dies_out()
        if values is None:
            return None
        front = maker.steps * transform.log_mass + math.lgamma(power + 1.0)
        return cls(centre, deviation, power, origin, tilt, front, transform.step, values)

    def log_density(self, y: Array) -> tuple[Array, Array]:
        """Return log g(y), and the log of what rounding and the end of the line leave open."""
        frequency = self.step * np.arange(self.values.size)
        turned = np.exp(1j * np.multiply.outer(y - self.centre, frequency)) @ self.values
        value = turned.real - 0.5 * self.values[0].real
        size = float(np.abs(self.values).sum())
        left_out = 2.0 * math.sqrt(self.values.size) * float(np.abs(self.values[-8:]).max())
        front = self.log_front + math.log(self.step / math.pi) + self.tilt * y
        front -= self.power * np.log((y - self.origin) / (self.centre - self.origin))
        with np.errstate(divide="ignore"):
            log_value = np.log(np.maximum(value, 0.0)) + front
        return log_value, math.log(2.0 * UNIT * size + left_out) + front


@dataclass(frozen=True)
class Cut:
    """A smooth cut-off of W above a bound.

    With a split, only sums in which some component is large count: W is taken apart there, as
    smoothly, and φ^t less the t-th power of the small part is the sum over how many are large.
    """

    bound: float
    split: float | None = None

    def weights(self, ratios: Ratios) -> tuple[Array, Array | None]:
        """Return log weights of small components, and of large ones if they are apart."""
        small = self._below(ratios, self.bound if self.split is None else self.split)
        if self.split is None:
            return ratios.log_weight + small, None
        with np.errstate(divide="ignore"):
            large = _log_normal_cdf(-_distance(ratios, self.split))
        large = large + self._below(ratios, self.bound)
        return ratios.log_weight + small, ratios.log_weight + large

    @property
    def step(self) -> tuple[float, float]:
        """Between which W parts are taken apart; what a bound cuts off is negligible."""
        if self.split is None:
            return math.inf, -math.inf
        return self.split, math.exp(2.0 * _CUT_BEYOND) * self.split

    @staticmethod
    def _below(ratios: Ratios, bound: float) -> Array:
        far = _distance(ratios, bound)
        return np.where(far > -_CUT_BEYOND / _CUT_WIDTH, _log_normal_cdf(far), -np.inf)


def _distance(ratios: Ratios, bound: float) -> Array:
    """Return how many widths W is below the middle of a cut-off."""
    with np.errstate(divide="ignore"):
        return np.asarray((math.log(bound) + _CUT_BEYOND - np.log(ratios.ratio)) / _CUT_WIDTH)


def _log_normal_cdf(x: Array) -> Array:
    """Return log Φ(x), −∞ far on the left; 0 far on the right."""
    found = np.where(x > 0.0, 0.0, -np.inf)
    near = np.abs(x) < 2.0 * _CUT_BEYOND / _CUT_WIDTH
    found[near] = [math.log(0.5 * math.erfc(-a)) for a in (math.sqrt(0.5) * x[near]).tolist()]
    return found


def _tilt_of_large(
    small: Array, large: Array, ratio: Array, steps: int
) -> tuple[float, float] | None:
    """Return `_tilt` of the sums in which some component is large."""
    if not (np.isfinite(small).any() and np.isfinite(large).any()):
        return None
    number = np.arange(1.0, min(_MOST_LARGE, steps) + 1.0)
    ways = np.cumsum(np.log((steps + 1.0 - number) / number))
    tilt = 0.0
    for _ in range(60):
        found = [_moments(part - tilt * ratio, ratio) for part in (small, large)]
        (log_small, mean, variance), (log_large, mean_large, variance_large) = found
        log_share = ways + (steps - number) * log_small + number * log_large
        if not np.isfinite(log_share).all():
            return None
        share = np.exp(log_share - log_share.max())
        share /= share.sum()
        means = (steps - number) * mean + number * mean_large
        variances = (steps - number) * variance + number * variance_large
        total = float(share @ means)
        spread = float(share @ (variances + (means - total) ** 2))
        if not spread > 0:
            return None
        change = (total - 1.0) / spread
        if abs(change) * math.sqrt(spread) < 0.02:
            return tilt, math.sqrt(spread)
        limit = 2.0 / math.sqrt(spread)
        tilt += min(max(change, -limit), limit)
    return None


def _moments(exponent: Array, ratio: Array) -> tuple[float, float, float]:
    """Return log mass, mean and variance."""
    top = float(exponent.max())
    weight = np.exp(exponent - top)
    mass = float(weight.sum())
    mean = float(weight @ ratio) / mass
    return top + math.log(mass), mean, float(weight @ (ratio - mean) ** 2) / mass


def _tilt(log_weight: Array, ratio: Array, maker: Sums, power: int) -> tuple[float, float] | None:
    """Return c with tilted mean 1, and the standard deviation there; lengths are in centres."""
    seen = np.isfinite(log_weight)
    if not seen.any():
        return None
    log_weight, ratio = log_weight[seen], ratio[seen]
    order = np.arange(power + 3.0)
    factorial = np.cumprod(np.maximum(order, 1.0))
    powers = ratio[:, None] ** order
    tilt = float(power)
    for _ in range(60):
        exponent = log_weight - tilt * ratio
        weight = np.exp(exponent - exponent.max())
        series = (weight / weight.sum()) @ powers / factorial
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.asarray(power_of_series(series, maker.steps)) * factorial
        if not (np.isfinite(total).all() and total[power] > 0):
            return None
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
        maker: Sums,
        centre: float,
        power: int,
        origin: float,
        tilt: float,
        cut: Cut,
        deviation: float,
    ) -> None:
        self.maker, self.centre, self.power, self.origin = maker, centre, power, origin
        self.tilt, self.cut = tilt, cut
        # A large component may lie anywhere up to the end of its cut-off.
        whole = (
            0.0 if cut.split is None and tilt >= 0.0 else math.exp(2.0 * _CUT_BEYOND) * cut.bound
        )
        self.step = 2.0 * math.pi / (_PERIOD * deviation + whole)
        self.reach = (_SLOW_DECAY if power else _QUICK_DECAY) / deviation
        self.log_mass = 0.0
        self._refine()

    def _refine(self) -> None:
        """Take nodes of W that resolve the frequencies up to the reach."""
        least, most = self._range()
        ratios = self.maker.law.refined(abs(self.tilt) + self.reach, least, most, self.cut.step)
        self.is_too_fine = ratios.ratio.size > _MOST_PLACES
        small, large = self.cut.weights(ratios)
        exponent = small - self.tilt * ratios.ratio
        top = float(exponent.max())
        weight = np.exp(exponent - top)
        mass = float(weight.sum())
        self.log_mass = top + math.log(mass)
        if large is not None:
            size = large - self.tilt * ratios.ratio
            kept = (exponent > top - NEGLIGIBLE) | (size > size.max() - NEGLIGIBLE)
            self._moments = np.zeros((int(kept.sum()), _MOST_LARGE + 1))
            self._moments[:, 0] = weight[kept] / mass
            self._moments[:, 1] = np.exp(size[kept] - self.log_mass)
            self._from_mean = ratios.ratio[kept] - self.centre / self.maker.steps
            return
        with np.errstate(divide="ignore"):
            log_ratio = np.log(np.abs(self._scaled(ratios.ratio)))
        kept = exponent > top - NEGLIGIBLE
        for order in {self.power // 2, self.power} - {0}:
            size = exponent + order * log_ratio
            kept |= size > size.max() - NEGLIGIBLE
        place = ratios.ratio[kept]
        factors = np.empty((place.size, self.power + 1))
        factors[:, 0] = weight[kept] / mass
        factors[:, 1:] = self._scaled(place)[:, None] / np.arange(1.0, self.power + 1.0)
        self._moments = np.multiply.accumulate(factors, axis=1)
        self._from_mean = place - self.centre / self.maker.steps

    def _range(self) -> tuple[float, float]:
        """Return between which W some weight is not negligible."""
        ratios = self.maker.coarse
        small, large = self.cut.weights(ratios)
        exponent = small - self.tilt * ratios.ratio
        with np.errstate(divide="ignore"):
            log_ratio = np.log(np.abs(self._scaled(ratios.ratio)))
        seen = np.zeros(exponent.size, dtype=bool)
        for order in {0, self.power // 2, self.power}:
            size = exponent + (order * log_ratio if order else 0.0)
            seen |= size > size.max() - 1.5 * NEGLIGIBLE
        if large is not None:
            size = large - self.tilt * ratios.ratio
            seen |= size > size.max() - 1.5 * NEGLIGIBLE
        return float(ratios.ratio[seen].min()), float(ratios.ratio[seen].max())

    def _scaled(self, ratio: Array) -> Array:
        scale = self.centre - self.origin
        return np.asarray((ratio - self.origin / self.maker.steps) / scale)

    def until_it_dies_out(self) -> Complex | None:
        """Return the values until they are negligible, None where they do not become so."""
        count = 0
        while count < _MOST_NODES and not self.is_too_fine:
            count = _RUN * math.ceil(self.reach / (_RUN * self.step))
            taylor = column_sums(self._moments, self.step * self._from_mean, count)
            if self.cut.split is None:
                taylor[0] /= taylor[0, 0].real  # 1, but for rounding, which a high power multiplies
            series = np.asarray(power_of_series(taylor, self.maker.steps))
            values: Complex = series[-1] if self.cut.split is None else series[1:].sum(axis=0)
            ends = np.abs(values.reshape(-1, _RUN)[:, -_RUN // 3 :]).max(axis=1) / abs(values[0])
            before = np.concatenate([[math.inf], ends[:-1]])
            settled = (ends <= _FAINT) | ((ends <= _NOISE) & (ends > 0.5 * before))
            if settled.any():
                return values[: _RUN * (int(settled.argmax()) + 1)]
            self.reach *= 2.0
            self._refine()
        return None


Series = NDArray[Any]  # real or complex


def power_of_series(series: Series, power: int) -> Series:
    """Return a truncated power series to a whole power; rows, or entries, are its coefficients.

    By repeated squaring: positive coefficients never cancel.

    >>> power_of_series(np.asarray([1.0, 1.0, 0.0]), 5).tolist()
    [1.0, 5.0, 10.0]
    """
    if series.shape[0] == 1:
        return np.asarray(np.power(series, power))
    result: Series | None = None
    while True:
        if power & 1:
            result = series if result is None else _product(result, series)
        power >>= 1
        if not power:
            assert result is not None
            return result
        series = _product(series, series)


def _product(first: Series, second: Series) -> Series:
    if first.ndim == 1:
        return np.convolve(first, second)[: first.size]
    total = np.zeros_like(first)
    for i in range(first.shape[0]):
        total[i:] += first[i] * second[: first.shape[0] - i]
    return total
