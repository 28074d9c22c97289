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

**Tails of Y**, which the table leaves out, under Q, or under P, where one component follows P. For
every u ≥ 0 and every b, Chernoff's bound and a union over the components give

.. math::

   Pr(Y < y) \le e^{uy} E e^{-uY}, \qquad
   Pr(Y > y) \le Pr(\max W > b) + e^{-uy} E[e^{uY}; \max W \le b].

The second needs no exponential moment of W. Both are sums over the nodes of W.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.numeric.elementary import Complex, column_sums
from symdp.numeric.laws.table import LogDensityTable
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import build_nodes, escapes
from symdp.numeric.panels import gauss_legendre
from symdp.numeric.step import Array, SmoothPiece
from symdp.tolerances import LOSS_ROUNDED, NO_SHARE, UNIT

_RATE = 90.0  # e-folds: what is less likely under P and under Q is left out
_LEVELS = 7  # of windows of tilts, the widest of −64 to 63
_FREQUENCY = 4.0  # of the loss, that the panels resolve without being cut
_LARGEST_LOSS = 300.0  # a larger W, whose square is near the end of doubles, counts as infinite
_TURN = 8.0  # with what W bends by _CHANGE: a rule of 16 nodes integrates e^{iz} over |z| ≤ 5
_CHANGE, _STEP_CHANGE = 0.5, 0.25  # of log W on a panel: five widths of a cut-off's step
_LOWEST = 36.0  # e-folds: 2e-16


@dataclass(frozen=True)
class Ratios:
    """Nodes of W with log weights under Q."""

    ratio: Array
    log_weight: Array


class RatioLaw:
    """W = P/Q of a step under Q.

    `atoms`: values of W of positive probability, W = 0 among them where P vanishes and Q does not.
    `mass_beyond`: P(log W > 300), which nodes leave out.
    """

    def __init__(self, law: LossLaw) -> None:
        self.law = law
        self.name = law.step.name
        nodes = build_nodes(law.step, law.outlines, _tilts_of_mass(law), _FREQUENCY)
        self.error = max(law.base.error, nodes.error)
        self._pieces = [panels for panels in nodes.panels if not panels[0].flat]
        loss = nodes.loss[nodes.atomic]
        log_p = nodes.log_weight[nodes.atomic]
        is_beyond = loss > _LARGEST_LOSS
        self.mass_beyond = float(np.exp(log_p[is_beyond]).sum())
        for piece, low, high in self._pieces:
            x, weight = gauss_legendre(low, high)
            with np.errstate(all="ignore"):
                is_large = np.asarray(piece.loss(x)) > _LARGEST_LOSS
            density = np.exp(piece.log_p(x[is_large]))
            masses = density * weight[is_large]
            self.mass_beyond += float(masses.sum())
        ratio = np.exp(loss[~is_beyond])
        log_weight = (log_p - loss)[~is_beyond]
        if self.mass_at_zero > 0:
            ratio = np.append(ratio, 0.0)
            log_weight = np.append(log_weight, math.log(self.mass_at_zero))
        self.atoms = Ratios(ratio, log_weight)

    @cached_property
    def mass_at_zero(self) -> float:
        """Q(P = 0)."""
        law = self.law
        at_minus_one = law.transform(np.asarray([-1.0]))
        log_remaining = float(at_minus_one[0]) - law.base.mean
        missing = -math.expm1(log_remaining)
        if missing > LOSS_ROUNDED:
            return missing
        return 0.0

    @property
    def is_spread(self) -> bool:
        """Whether W has a continuous part."""
        return bool(self._pieces)

    @cached_property
    def coarse(self) -> Ratios:
        """Nodes that resolve W under any tilt, but no oscillation."""
        return self.refined(0.0, -math.inf, math.inf)

    def refined(
        self,
        frequency: float,
        least: float,
        most: float,
        step: tuple[float, float] = (math.inf, -math.inf),
    ) -> Ratios:
        """Return nodes that resolve e^{−ivW}, |v| ≤ frequency, in a range of W, and a step."""
        ratios = [self.atoms.ratio]
        log_weights = [self.atoms.log_weight]
        for piece, low, high in self._pieces:
            x, weight = _cut_panels(piece, low, high, frequency, (least, most), step)
            with np.errstate(all="ignore"):
                loss = np.asarray(piece.loss(x))
                log_q = piece.log_q(x)
            is_finite = np.isfinite(loss) & np.isfinite(log_q)
            is_usable = is_finite & (loss <= _LARGEST_LOSS)
            ratios.append(np.exp(loss[is_usable]))
            log_weights.append(log_q[is_usable] + np.log(weight[is_usable]))
        return Ratios(np.concatenate(ratios), np.concatenate(log_weights))


def _tilts_of_mass(law: LossLaw) -> list[float]:
    """Return tilts between which the law is seen down to a probability of e^−90, P's and Q's."""
    outlines = [outline for outline in law.outlines if not escapes(outline.piece)]

    def log_moment(tilt: float) -> float:
        """Return K(t) to within a few units."""
        points = law.step.point_log_p + tilt * law.step.point_loss
        log_masses = [outline.log_masses([tilt])[0] for outline in outlines]
        finite_points = points[np.isfinite(points)]
        return float(np.logaddexp.reduce([*log_masses, *finite_points]))

    tilts = {-1.0, 0.0}
    for upper, centre in ((False, -1.0), (True, 0.0)):
        for level in range(1, _LEVELS):
            tilt = law._edge(level, upper)
            tilts.add(tilt)
            # Half of what a large deviation costs where K is quadratic, and less elsewhere.
            halfway = 0.5 * (centre + tilt)
            rate = log_moment(tilt) - 2.0 * log_moment(halfway)
            if rate > _RATE:
                break
    return sorted(tilts)


def _cut_panels(
    piece: SmoothPiece,
    low: Array,
    high: Array,
    frequency: float,
    within: tuple[float, float],
    step: tuple[float, float],
) -> tuple[Array, Array]:
    """Return nodes and weights of panels, cut where one rule would not do.

    On each, vW changes by few turns, and log W by little where e^{−ivW} turns or a cut-off steps.
    """
    least, most = within
    step_low, step_high = step
    bottom, top = _losses_on_panels(piece, low, high)
    largest = np.exp(top)
    smallest = np.exp(bottom)
    is_inside = (largest >= least) & (smallest <= most)
    is_turning = is_inside & (frequency * largest > 1.0)
    is_stepping = is_inside & (largest >= step_low) & (smallest <= step_high)
    most_change = np.where(is_turning, _CHANGE, np.inf)
    most_change = np.where(is_stepping, _STEP_CHANGE, most_change)
    # Far below the top W is as good as 0.
    log_change = np.minimum(top - bottom, _LOWEST)
    low, high = _divided_panels(low, high, log_change / most_change)
    bottom, top = _losses_on_panels(piece, low, high)
    largest = np.exp(top)
    smallest = np.exp(bottom)
    is_inside = (largest >= least) & (smallest <= most)
    change = np.minimum(largest, 4.0 * most) - smallest
    number = np.where(is_inside, frequency * change / _TURN, 1.0)
    low, high = _divided_panels(low, high, number)
    nodes, weights = gauss_legendre(low, high)
    return nodes.ravel(), weights.ravel()


def _divided_panels(low: Array, high: Array, number: Array) -> tuple[Array, Array]:
    """Return panels cut into at least so many equal parts."""
    parts = np.maximum(1, np.ceil(number)).astype(np.intp)
    cumulated = np.cumsum(parts)
    before = np.concatenate([[0], cumulated[:-1]])
    number_in_all = np.arange(int(parts.sum()))
    part = number_in_all - np.repeat(before, parts)
    width = np.repeat((high - low) / parts, parts)
    lower = np.repeat(low, parts) + part * width
    return lower, lower + width


def _losses_on_panels(piece: SmoothPiece, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the least and the largest loss seen on each panel."""
    x, _ = gauss_legendre(low, high)
    columns = [low[:, None], x, high[:, None]]
    x = np.concatenate(columns, axis=1)
    with np.errstate(all="ignore"):
        values = np.asarray(piece.loss(x.ravel()))
    loss = np.clip(values.reshape(x.shape), -_LARGEST_LOSS, _LARGEST_LOSS)
    least = np.fmin.reduce(loss, axis=1)
    largest = np.fmax.reduce(loss, axis=1)
    return least, largest


_RATES = np.exp(np.arange(-9.0, 12.0, 0.125))  # u, in units of 1/y
_CUTS = np.exp(np.linspace(-5.0, 0.0, 41))  # b, in units of y
_UNSEEN = 1e-38  # nodes of W leave out what is less likely than e^−90 under P and under Q


def log_tail(ratios: Ratios, steps: int, y: float, side: int, *, with_record: bool) -> float:
    """Return a log bound on Pr(Y > y) (side 1) or Pr(Y < y) (−1), one from P with a record."""
    order = np.argsort(ratios.ratio)
    ratio = ratios.ratio[order]
    log_q = ratios.log_weight[order]
    log_first = log_q
    if with_record:
        is_positive = ratio > 0
        log_ratio = np.log(np.where(is_positive, ratio, 1.0))
        log_first = np.where(is_positive, log_q + log_ratio, -math.inf)
    others = steps - 1
    if side < 0:
        exponent = np.multiply.outer(-_RATES / y, ratio)
        of_first = np.logaddexp.reduce(log_first + exponent, axis=1)
        of_other = np.logaddexp.reduce(log_q + exponent, axis=1)
        chernoff = _RATES + of_first + others * of_other
        return _at_least_unseen(float(chernoff.min()))
    # Up to each cut, at all rates at once; beyond it, a union over the components.
    number = np.searchsorted(ratio, _CUTS * y, side="right")
    beyond = []
    for first in number:
        of_others = _log_of_count(others) + _log_total(log_q[first:])
        beyond.append(np.logaddexp(_log_total(log_first[first:]), of_others))
    exponent = np.multiply.outer(_RATES / y, ratio)
    up_to = np.maximum(number, 1) - 1
    first_sums = np.logaddexp.accumulate(log_first + exponent, axis=1)
    other_sums = np.logaddexp.accumulate(log_q + exponent, axis=1)
    of_first = first_sums[:, up_to]
    of_other = other_sums[:, up_to]
    bounds = -_RATES[:, None] + of_first + others * of_other
    chernoff = bounds.min(axis=0)
    chernoff[number == 0] = 0.0
    log_bounds = np.logaddexp(beyond, chernoff)
    return _at_least_unseen(float(log_bounds.min()))


def _log_total(logs: Array) -> float:
    if not logs.size:
        return -math.inf
    return float(np.logaddexp.reduce(logs))


def _log_of_count(count: int) -> float:
    return math.log(count) if count else -math.inf


def _at_least_unseen(bound: float) -> float:
    widened = float(np.logaddexp(bound, math.log(_UNSEEN)))
    return min(widened, 0.0)


_NOISE = 1e-12  # the rounding of Φ^{(k)}: the integral ends where it falls no further
_MOST_NODES = 3072  # of the integral over v
_RUN = 48  # nodes of the line, at the last third of which its size is looked at
_QUICK_DECAY, _SLOW_DECAY = 12.0, 40.0  # over standard deviation: v at which transforms die out
_PERIOD = 24.0  # standard deviations between two aliases of the tilted density
_CUT_WIDTH = 0.05  # of the smooth cut-off of log W
_CUT_BEYOND = 0.45  # nine widths: 1 up to the bound but for 1e-18
_NEWTON, _NEAR = 60, 0.02  # steps to a tilt, and standard deviations from it that will do
_MOST_LARGE = 6  # of them at once
_MOST_PLACES = 1 << 15  # nodes of W for one window
NEGLIGIBLE = 42.0  # e-folds, 6e-19


class Sums:
    """The sum Y of t likelihood ratios under Q."""

    def __init__(self, law: RatioLaw, steps: int) -> None:
        self.law = law
        self.steps = steps
        self.coarse = law.coarse


@dataclass(frozen=True)
class Window:
    """y^k e^{−cy} g(y) around a centre: the values of its transform along Re u = c."""

    centre: float
    deviation: float
    power: int
    tilt: float
    log_front: float
    step: float
    values: Complex

    @classmethod
    def at(cls, maker: Sums, centre: float, power: int, cut: Cut) -> Window | None:
        """Return the window whose tilted mean is a given y, None where there is none."""
        small, large = cut.weights(maker.coarse)
        ratio = maker.coarse.ratio / centre
        if large is None:
            tilt_and_width = _tilt_with_mean_one(small, ratio, maker, power)
        else:
            tilt_and_width = _tilt_of_large(small, large, ratio, maker.steps)
        if tilt_and_width is None:
            return None
        relative_tilt, relative_width = tilt_and_width
        tilt = relative_tilt / centre
        deviation = relative_width * centre
        transformed = _TiltedRatios(maker, centre, power, tilt, cut).transform(deviation)
        if transformed is None:
            return None
        log_mass, step, values = transformed
        log_front = maker.steps * log_mass + math.lgamma(power + 1.0)
        return cls(
            centre=centre,
            deviation=deviation,
            power=power,
            tilt=tilt,
            log_front=log_front,
            step=step,
            values=values,
        )

    def log_density(self, y: Array) -> tuple[Array, Array]:
        """Return log g(y), and the log of what rounding and the end of the line leave open."""
        frequency = self.step * np.arange(self.values.size)
        phase = np.multiply.outer(y - self.centre, frequency)
        turned = np.exp(1j * phase) @ self.values
        first_half = 0.5 * self.values[0].real
        value = turned.real - first_half
        modulus = np.abs(self.values)
        size = float(modulus.sum())
        last = float(modulus[-8:].max())
        left_out = 2.0 * math.sqrt(modulus.size) * last
        log_step = math.log(self.step / math.pi)
        front = self.log_front + log_step + self.tilt * y
        front -= self.power * np.log(y / self.centre)
        with np.errstate(divide="ignore"):
            log_value = np.log(np.maximum(value, 0.0)) + front
        log_error = math.log(2.0 * UNIT * size + left_out) + front
        return log_value, log_error


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
        if self.split is None:
            return ratios.log_weight + self._log_cut_off(ratios, self.bound), None
        small = self._log_cut_off(ratios, self.split)
        with np.errstate(divide="ignore"):
            large = _log_normal_cdf(-_widths_below(ratios, self.split))
        large = large + self._log_cut_off(ratios, self.bound)
        return ratios.log_weight + small, ratios.log_weight + large

    @property
    def step(self) -> tuple[float, float]:
        """Between which W parts are taken apart; what a bound cuts off is negligible."""
        if self.split is None:
            return math.inf, -math.inf
        return self.split, math.exp(2.0 * _CUT_BEYOND) * self.split

    @staticmethod
    def _log_cut_off(ratios: Ratios, bound: float) -> Array:
        widths = _widths_below(ratios, bound)
        is_kept = widths > -_CUT_BEYOND / _CUT_WIDTH
        return np.where(is_kept, _log_normal_cdf(widths), -np.inf)


def _widths_below(ratios: Ratios, bound: float) -> Array:
    """Return how many widths W is below the middle of a cut-off."""
    middle = math.log(bound) + _CUT_BEYOND
    with np.errstate(divide="ignore"):
        return np.asarray((middle - np.log(ratios.ratio)) / _CUT_WIDTH)


def _log_normal_cdf(x: Array) -> Array:
    """Return log Φ(x), −∞ far on the left; 0 far on the right."""
    result = np.where(x > 0.0, 0.0, -np.inf)
    is_near = np.abs(x) < 2.0 * _CUT_BEYOND / _CUT_WIDTH
    scaled = math.sqrt(0.5) * x[is_near]
    logs = [math.log(0.5 * math.erfc(-argument)) for argument in scaled.tolist()]
    result[is_near] = logs
    return result


def _tilt_of_large(
    small: Array, large: Array, ratio: Array, steps: int
) -> tuple[float, float] | None:
    """Return `_tilt_with_mean_one` of the sums in which some component is large."""
    has_both = np.isfinite(small).any() and np.isfinite(large).any()
    if not has_both:
        return None
    number = np.arange(1.0, min(_MOST_LARGE, steps) + 1.0)
    ways = (steps + 1.0 - number) / number
    log_ways = np.cumsum(np.log(ways))

    def moments(tilt: float) -> tuple[float, float]:
        of_small = _log_mass_and_moments(small - tilt * ratio, ratio)
        of_large = _log_mass_and_moments(large - tilt * ratio, ratio)
        log_small, small_mean, small_variance = of_small
        log_large, large_mean, large_variance = of_large
        log_share = log_ways + (steps - number) * log_small + number * log_large
        share = np.exp(log_share - log_share.max())
        share /= share.sum()
        means = (steps - number) * small_mean + number * large_mean
        variances = (steps - number) * small_variance + number * large_variance
        mean = float(share @ means)
        variance = float(share @ (variances + (means - mean) ** 2))
        return mean, variance

    return _with_mean_one(moments, 0.0)


def _log_mass_and_moments(exponent: Array, ratio: Array) -> tuple[float, float, float]:
    """Return log mass, mean and variance."""
    top = float(exponent.max())
    weight = np.exp(exponent - top)
    mass = float(weight.sum())
    mean = float(weight @ ratio) / mass
    variance = float(weight @ (ratio - mean) ** 2) / mass
    return top + math.log(mass), mean, variance


def _tilt_with_mean_one(
    log_weight: Array, ratio: Array, maker: Sums, power: int
) -> tuple[float, float] | None:
    """Return c with tilted mean 1, and the standard deviation there; lengths are in centres."""
    is_finite = np.isfinite(log_weight)
    if not is_finite.any():
        return None
    log_weight = log_weight[is_finite]
    ratio = ratio[is_finite]
    order = np.arange(power + 3.0)
    factorial = np.cumprod(np.maximum(order, 1.0))
    powers = ratio[:, None] ** order

    def moments(tilt: float) -> tuple[float, float]:
        exponent = log_weight - tilt * ratio
        weight = np.exp(exponent - exponent.max())
        share = weight / weight.sum()
        series = share @ powers / factorial
        total = np.asarray(power_of_series(series, maker.steps)) * factorial
        if not (np.isfinite(total).all() and total[power] > 0):
            return math.nan, math.nan
        mean = float(total[power + 1] / total[power])
        second = float(total[power + 2] / total[power])
        variance = second - mean * mean
        return mean, variance

    return _with_mean_one(moments, float(power))


def _with_mean_one(
    moments: Callable[[float], tuple[float, float]], tilt: float
) -> tuple[float, float] | None:
    """Return the tilt at which a mean is 1, by Newton's method, and the standard deviation."""
    for _ in range(_NEWTON):
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance = moments(tilt)
        if not (math.isfinite(mean) and variance > 0):
            return None
        deviation = math.sqrt(variance)
        change = (mean - 1.0) / variance
        if abs(change) * deviation < _NEAR:
            return tilt, deviation
        longest = 2.0 / deviation
        tilt += min(max(change, -longest), longest)
    return None


@dataclass(frozen=True)
class _TiltedRatios:
    """What a cut-off, a tilt c and a factor y^k leave of W: sums over its nodes."""

    maker: Sums
    centre: float
    power: int
    tilt: float
    cut: Cut

    def sizes(self, ratios: Ratios) -> list[Array]:
        """Return logs of e^{−cW}, alone, by powers of W, and of what is large and apart."""
        small, large = self.cut.weights(ratios)
        exponent = small - self.tilt * ratios.ratio
        with np.errstate(divide="ignore"):
            log_ratio = np.log(ratios.ratio / self.centre)
        sizes = [exponent]
        for order in {self.power // 2, self.power} - {0}:
            sizes.append(exponent + order * log_ratio)
        if large is not None:
            sizes.append(large - self.tilt * ratios.ratio)
        return sizes

    def moments(self, ratios: Ratios) -> tuple[Array, Array, float]:
        """Return weights of the Taylor series of φ, a column each, W less its mean, log φ(c)."""
        sizes = self.sizes(ratios)
        is_counted = _is_essential(sizes, NEGLIGIBLE)
        exponent = sizes[0]
        top = float(exponent.max())
        weight = np.exp(exponent - top)
        mass = float(weight.sum())
        log_mass = top + math.log(mass)
        ratio = ratios.ratio[is_counted]
        orders = self.power if self.cut.split is None else _MOST_LARGE
        factors = np.zeros((ratio.size, 1 + orders))
        factors[:, 0] = weight[is_counted] / mass
        if self.cut.split is None:
            relative = (ratio / self.centre)[:, None]
            factorials = np.arange(1.0, self.power + 1.0)
            factors[:, 1:] = relative / factorials
            np.multiply.accumulate(factors, axis=1, out=factors)
        else:
            log_large = sizes[-1][is_counted]
            factors[:, 1] = np.exp(log_large - log_mass)
        return factors, ratio - self.centre / self.maker.steps, log_mass

    def transform(self, deviation: float) -> tuple[float, float, Complex] | None:
        """Return log φ(c), a step in v, and (−1)^k Φ^{(k)}(c + iv) over φ(c)^t k! at v ≥ 0.

        The values end where they are negligible; None where they do not become so.
        """
        coarse = self.maker.coarse
        cut = self.cut
        # A large component may lie anywhere up to the end of its cut-off.
        whole = 0.0
        if cut.split is not None or self.tilt < 0.0:
            whole = math.exp(2.0 * _CUT_BEYOND) * cut.bound
        step = 2.0 * math.pi / (_PERIOD * deviation + whole)
        decay = _SLOW_DECAY if self.power else _QUICK_DECAY
        reach = decay / deviation
        is_essential = _is_essential(self.sizes(coarse), 1.5 * NEGLIGIBLE)
        essential = coarse.ratio[is_essential]
        least = float(essential.min())
        most = float(essential.max())
        count = 0
        while count < _MOST_NODES:
            frequency = abs(self.tilt) + reach
            ratios = self.maker.law.refined(frequency, least, most, cut.step)
            if ratios.ratio.size > _MOST_PLACES:
                return None
            factors, from_mean, log_mass = self.moments(ratios)
            count = _RUN * math.ceil(reach / (_RUN * step))
            taylor = column_sums(factors, step * from_mean, count)
            if cut.split is None:
                taylor[0] /= taylor[0, 0].real  # 1, but for rounding, which a high power multiplies
            series = np.asarray(power_of_series(taylor, self.maker.steps))
            values: Complex = series[-1]
            if cut.split is not None:
                values = series[1:].sum(axis=0)
            all_runs = values.reshape(-1, _RUN)
            ends = all_runs[:, -_RUN // 3 :]
            last = np.abs(ends).max(axis=1) / abs(values[0])
            before = np.concatenate([[math.inf], last[:-1]])
            is_noise = (last <= _NOISE) & (last > 0.5 * before)
            is_settled = (last <= NO_SHARE) | is_noise
            if is_settled.any():
                runs_needed = int(is_settled.argmax()) + 1
                return log_mass, step, values[: _RUN * runs_needed]
            reach *= 2.0
        return None


def _is_essential(sizes: Sequence[Array], efolds: float) -> NDArray[np.bool_]:
    """Return which nodes are not negligible to one of several sums, given by logs of terms."""
    by_size = [size > size.max() - efolds for size in sizes]
    return np.asarray(np.any(by_size, axis=0))


Series = NDArray[Any]  # real or complex


def power_of_series(series: Series, power: int) -> Series:
    """Return a truncated power series to a whole power, by repeated squaring: nothing cancels."""
    if series.shape[0] == 1:
        return np.asarray(np.power(series, power))
    result: Series | None = None
    while True:
        if power & 1:
            result = series if result is None else _product_of_series(result, series)
        power >>= 1
        if not power:
            assert result is not None
            return result
        series = _product_of_series(series, series)


def _product_of_series(first: Series, second: Series) -> Series:
    if first.ndim == 1:
        return np.convolve(first, second)[: first.size]
    length = first.shape[0]
    total = np.zeros_like(first)
    for i in range(length):
        product = first[i] * second[: length - i]
        total[i:] += product
    return total


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
    maker = _TableMaker(law, steps)
    right = maker.march(1)
    left = maker.march(-1)
    panels = [*left[::-1], *right]
    edges = [panels[0].lower, *(panel.upper for panel in panels)]
    errors = [panel.error + law.error for panel in panels]
    return LogDensityTable(
        edges=np.asarray(edges),
        coefficients=np.stack([panel.coefficients for panel in panels]),
        error=np.asarray(errors),
    )


@dataclass(frozen=True)
class _DensityPanel:
    lower: float
    upper: float
    coefficients: Array
    error: float
    slope: float  # of log g in log y at the outer end
    log_value: float  # there
    spread: float  # standard deviation over mean of the tilted density

    def gap(self, value: float, side: int) -> float:
        """Return how far the log density at the inner end is from a value, 0 from none (NaN)."""
        if math.isnan(value):
            return 0.0
        inner = float(np.polynomial.chebyshev.chebval(-side, self.coefficients))
        return abs(inner - value)


class _TableMaker(Sums):
    """Panels of the table, one after the other outwards from the mean of Y."""

    def __init__(self, law: RatioLaw, steps: int) -> None:
        super().__init__(law, steps)
        self.name = law.name
        self.least = self._least_sum()
        self.largest = self._largest_ratio()
        weight = np.exp(self.coarse.log_weight)
        deviation = np.minimum(self.coarse.ratio, 1e100) - 1.0
        variance = float(weight @ deviation**2)
        self.spread = math.sqrt(variance / steps)  # standard deviation of Y over its mean

    def _least_sum(self) -> float:
        """Return what t − 1 components exceed but for a probability of e^−42 (Chernoff)."""
        others = self.steps - 1
        ratio = self.coarse.ratio
        best = 0.0
        for rate in np.exp(np.arange(-14.0, 14.0, 0.25)).tolist():
            exponent = self.coarse.log_weight - rate * ratio
            log_mass, _, _ = _log_mass_and_moments(exponent, ratio)
            bound = (-NEGLIGIBLE - others * log_mass) / rate
            best = max(best, bound)
        return float(best)

    def _largest_ratio(self) -> float:
        """Return what no component exceeds but for a probability beyond the end of the table."""
        order = np.argsort(self.coarse.ratio)[::-1]
        ratio = self.coarse.ratio[order]
        log_weight = self.coarse.log_weight[order]
        log_beyond = np.logaddexp.accumulate(log_weight) + math.log(self.steps)
        first = np.argmax(log_beyond > -FLOOR - _BEYOND_FLOOR)
        return float(ratio[first])

    def march(self, side: int) -> list[_DensityPanel]:
        """Return panels to the right (1) or to the left (−1) of the mean until the density ends.

        What two neighbours differ by where they meet is an error of both.
        """
        panels: list[_DensityPanel] = []
        edge = 0.0
        slope = 0.0
        spread = self.spread
        peak = -math.inf
        last = math.nan
        least_gap = _GAP + _ROUNDED * UNIT * self.steps
        for _ in range(_MOST_PANELS):
            depth = 0.0 if math.isnan(last) else peak - last
            narrow_gap = min(least_gap * math.exp(depth / _GAP_GROWS), _WIDE_GAP)
            panel = None
            for allowed, share in itertools.product((narrow_gap, _WIDE_GAP), _SPREADS):
                panel = self._next_panel(edge, side, slope, share * spread, (last, allowed))
                if panel is not None:
                    break
            if panel is None:
                self._check_end(edge, side)
                return panels
            gap = panel.gap(last, side)
            if panels:
                last_panel = panels[-1]
                panels[-1] = replace(last_panel, error=last_panel.error + gap)
            panels.append(replace(panel, error=panel.error + gap))
            edge = panel.upper if side > 0 else panel.lower
            slope = panel.slope
            spread = panel.spread
            last = panel.log_value
            peak = max(peak, float(panel.coefficients[0]))
            # Under P the density is e^λ times as large.
            if panel.log_value + max(edge, 0.0) < peak - FLOOR:
                break
        return panels

    def _check_end(self, end: float, side: int) -> None:
        """Raise AccuracyError where the table ends before the density is negligible."""
        what = f"random allocation of {self.name} over {self.steps} steps"
        if end == 0.0:
            raise AccuracyError(
                f"{what}: the transform of the likelihood ratio does not die out, as its law has "
                "atoms, jumps or turning points; more steps smooth it"
            )
        y = self.steps * math.exp(end)
        with_record = log_tail(self.coarse, self.steps, y, side, with_record=True)
        without = log_tail(self.coarse, self.steps, y, side, with_record=False)
        log_beyond = max(with_record, without)
        if not log_beyond <= math.log(LARGEST_UNRESOLVED):
            raise AccuracyError(
                f"{what}: the density of the loss is not resolved beyond {end:.4g}, with a "
                f"probability of up to {math.exp(log_beyond):.1g}; change the number of steps or "
                "the noise"
            )

    def _next_panel(
        self, start: float, side: int, slope: float, spread: float, meets: tuple[float, float]
    ) -> _DensityPanel | None:
        """Return the panel that begins where the last one ended, with its value but for a gap."""
        last_value, allowed_gap = meets
        y = self.steps * math.exp(start)
        share = 0.8 * _REACH * min(spread, 0.25)
        centre = y * (1.0 + side * share)
        # Halfway to the end of the range of Y at most.
        largest_loss = min(self.law.law.loss_bounds[side > 0], _LARGEST)
        end_of_range = self.steps * math.exp(largest_loss)
        remaining = abs(end_of_range - y)
        distance = min(abs(centre - y), 0.5 * remaining)
        centre = y + side * distance
        for power in self._powers_to_try(side, slope, spread):
            reaching = 1.7 if power else 1.0 + 4.0 * min(spread, 0.17)
            top = max(reaching * centre, y)
            windows = self._windows(centre, power, top, side)
            if windows is None:
                continue
            reach = _REACH * min(window.deviation for window in windows)
            end = centre + reach
            if side < 0:
                end = max(centre - reach, 0.4 * centre)
            end = min(end, top)
            distance = min(abs(end - y), 0.8 * remaining)
            end = y + side * distance
            if abs(end - y) < _SHORTEST * y:
                continue
            for _ in range(4):
                last_place = math.log(end / self.steps)
                lower = min(start, last_place)
                upper = max(start, last_place)
                panel = self._fitted_panel(windows, lower, upper, side)
                if panel is not None and panel.gap(last_value, side) <= allowed_gap:
                    return panel
                end = 0.5 * (end + y)
        return None

    def _windows(self, centre: float, power: int, top: float, side: int) -> list[Window] | None:
        """Return the windows around a centre that add up to the density, None if one is lacking."""
        others = 0.0
        if power <= 0 and side > 0:
            others = self.least
        bound = min(top - others, self.largest)
        cuts = [Cut(bound)]
        if power < 0:
            split = _SPLITS[-power - 1] * (centre - self.steps)
            cuts = [Cut(split), Cut(bound, split)]
        windows = []
        for cut in cuts:
            window = Window.at(self, centre, max(power, 0), cut)
            if window is None:
                return None
            windows.append(window)
        return windows

    def _powers_to_try(self, side: int, slope: float, spread: float) -> list[int]:
        """Return which k of y^k to try, −1 and −2 for none with a large component apart."""
        is_narrow = spread < 0.2
        if side < 0:
            return [0, _SHAPE] if is_narrow else [_SHAPE, 0]
        fitting = math.ceil(max(-slope, 0.0)) + _SHAPE
        factors = [fitting] if fitting <= _MOST_POWER else []
        if is_narrow:
            return [0, -1, -2, *factors]
        return [*factors, 0]

    def _fitted_panel(
        self, windows: list[Window], lower: float, upper: float, side: int
    ) -> _DensityPanel | None:
        angles = np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1)
        u = np.cos(angles)
        width = upper - lower
        log_y = 0.5 * (lower + upper) + 0.5 * width * u
        y = self.steps * np.exp(log_y)
        parts = [window.log_density(y) for window in windows]
        log_density = np.logaddexp.reduce([value for value, _ in parts])
        with np.errstate(over="ignore", invalid="ignore"):
            log_error = np.logaddexp.reduce([size for _, size in parts])
            error = np.exp(log_error - log_density)
        largest_error = float(error.max())
        if not (np.isfinite(log_density).all() and largest_error < WORST):
            return None
        values = log_density + log_y + math.log(self.steps)
        chebyshev = np.polynomial.chebyshev
        coefficients = np.asarray(chebyshev.chebfit(u, values, DEGREE), dtype=np.float64)
        last_terms = float(np.abs(coefficients[-3:]).max())
        if last_terms > max(_TAIL, 100.0 * largest_error):
            return None
        outer = 1.0 if side > 0 else -1.0
        deviation = min(window.deviation for window in windows)
        derivative = chebyshev.chebder(coefficients)
        outer_slope = float(chebyshev.chebval(outer, derivative))
        relative_spread = deviation / windows[0].centre
        return _DensityPanel(
            lower=lower,
            upper=upper,
            coefficients=coefficients,
            error=largest_error + self.steps * UNIT + 4.0 * last_terms,
            slope=outer_slope * 2.0 / width - 1.0,
            log_value=float(chebyshev.chebval(outer, coefficients)),
            spread=min(relative_spread, 2.0 * width / (1.8 * _REACH)),
        )
