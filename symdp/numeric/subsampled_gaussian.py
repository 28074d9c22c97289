"""CGF tables of Poisson-subsampled Gaussian steps: many noise levels at once, fast.

With Q = N(0, σ²) and r(x) = 1 − q + q e^{(2x−1)/2σ²} the two directions are moments of r
[IND D.3]:

    M_remove(z) = E_Q r^{1+z},        M_add(z) = E_Q r^{−z} = M_remove(−1−z)

by the trapezoidal rule in u = x/σ.  Its error is e^{−2πa/h} times the growth of the integrand on
the line Im u = a, for any a below the branch point of log r at πσ.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from symdp.errors import AccuracyError
from symdp.numeric.elementary import Complex, log_one_plus, powers_less_one
from symdp.numeric.nodes import near_bound
from symdp.numeric.step import Array

_EFOLDS = 41.0  # what is dropped is below e^-41 = 1.6e-18 of the integral
_REACH = 9.2  # standard deviations of a unit Gaussian that hold all but e^-42
_STRIP = 2.8  # of the branch point at πσ
_PARTS = np.asarray([1.0, 0.5, 0.25, 0.1, 0.03, 0.01])  # of the widest shift, to choose from
_WIDEST_SHIFT = 8.8  # beyond this a farther line gains nothing: a²/2 reaches the accuracy
_FAR_MODE = 40.0  # standard deviations of the noise at which the two modes are taken apart
_SMALL_EXPONENT = 30.0  # below this, M − 1 is summed instead of M
_MODE = 0.01  # standard deviations of the noise: how well a mode is known
_FIXED_POINTS = 60  # iterations of x ← g(x), each a factor of two nearer at least
_SLAB = 1 << 16  # powers that are held at once, in the cache
_MOST_POWERS = 20_000_000  # of one kind of step on one line: about 0.3 s
_MOST_KEPT = 4096  # node sets, of some kilobytes each
_SUMMED = 32.0  # roundings of a growth's terms; 20 were the most that were measured
_LAYERS = 40  # of a density
_BETWEEN = 1.1  # at most what widths and heights lack or have too much between two nodes
_BEYOND_NODES = 1e-17  # the mass that nodes leave out
_ROUNDING = 2.3e-16  # relative: of one operation on doubles, rounded up
# log(sqrt(2 pi))
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class SubsampledGaussian:
    """K_b(z) of single steps, one for each noise level σ_b > 0, inf for no contribution, and rate.

    Noise is in units of what the record contributes; the direction is "remove" or "add".

    Examples
    --------
    >>> table = SubsampledGaussian(np.array([2.0]), np.array([1.0]), "add")
    >>> table.transform(np.array([1.0, 3.0]), table.has_loss)[:, 0].round(12).tolist()
    [0.25, 1.5]
    """

    def __init__(self, noise: Array, rate: Array, direction: str) -> None:
        self.noise = noise
        self.rate = rate
        self.removes = direction == "remove"
        self.idle = ~np.isfinite(noise) | (rate == 0.0)
        self.plain = (rate == 1.0) & ~self.idle
        self.has_loss = ~self.idle
        self.log_finite = np.zeros(noise.size)
        self._rows: dict[float, Array] = {}
        self._kept: dict[tuple[int, float, int], tuple[Array, Array, Array]] = {}

    @property
    def count(self) -> int:
        """The number of buckets."""
        return self.noise.size

    @property
    def variance(self) -> Array:
        """About the variance of the loss: no more than that of P/Q, nor than without sampling."""
        most = np.where(self.idle, 0.0, self.noise**-2.0)
        return np.minimum(self.rate**2 * np.expm1(np.minimum(most, 700.0)), most)

    def transform(self, tilts: Array, used: NDArray[np.bool_]) -> Array:
        """Return K_b(t) at real tilts t > 0, shape (tilts, buckets)."""
        result = np.zeros((tilts.size, self.count))
        half = 0.5 * tilts * (1.0 + tilts)
        for b in np.flatnonzero(used).tolist():
            if self.plain[b]:
                result[:, b] = half / self.noise[b] / self.noise[b]
            elif not self.idle[b]:
                result[:, b] = self._transform(b, tilts)
        if (used | self.idle).all():
            self._rows.update(zip(tilts.tolist(), result, strict=True))
        return result

    def _transform(self, bucket: int, tilts: Array) -> Array:
        sigma, q = float(self.noise[bucket]), float(self.rate[bucket])
        power = 1.0 + tilts if self.removes else -tilts
        result = np.full(tilts.size, -np.inf)
        for low, high, step, chosen in self._windows(sigma, q, tilts):
            nodes = math.ceil(float(((high - low) / step).max())) + 1
            width = ((high - low) / (nodes - 1))[:, None]
            u = low[:, None] + width * np.arange(nodes)
            log_r = log_ratio(u, sigma, q)
            exponent = power[chosen, None] * log_r - 0.5 * u * u
            top = exponent.max(axis=1)
            total = np.exp(exponent - top[:, None]).sum(axis=1) * width[:, 0]
            value = top + np.log(total) - _LOG_ROOT_TWO_PI
            near = (top < _SMALL_EXPONENT) & (low < -_REACH + 0.1)
            if near.any():
                u, log_r = u[near], log_r[near]
                base = -0.5 * u * u + (log_r if self.removes else 0.0)
                tilt = (tilts if self.removes else -tilts)[chosen][near, None]
                grown = np.exp(base) * np.expm1(np.minimum(tilt * log_r, 700.0))
                ratio = grown.sum(axis=1) * width[near, 0] / math.sqrt(2.0 * math.pi)
                value[near] = np.log1p(ratio)
            result[chosen] = np.logaddexp(result[chosen], value)
        return result

    def _windows(
        self, sigma: float, q: float, tilts: Array
    ) -> list[tuple[Array, Array, Array, NDArray[np.bool_]]]:
        """Return windows (low, high, step, tilts concerned) in u that hold the integrand."""
        step = self._steps(sigma, q, tilts, 0.0)
        if not self.removes:  # one mode, where x = −t s(x)
            mode = self._add_mode(sigma, q, tilts) / sigma
            low = np.minimum(mode - _REACH, -_REACH)
            return [(low, np.full(tilts.size, _REACH), step, np.ones(tilts.size, dtype=bool))]
        far = (1.0 + tilts) / sigma
        near = far <= _FAR_MODE
        windows = []
        if near.any():
            ones = np.ones(int(near.sum()))
            windows.append((-_REACH * ones, far[near] + _REACH, step[near], near))
        if not near.all():
            away = ~near
            lower, upper = self._remove_modes(sigma, q, tilts[away])
            windows += self._split(sigma, q, tilts, away, lower, upper, step[away])
        return windows

    def _split(
        self,
        sigma: float,
        q: float,
        tilts: Array,
        away: NDArray[np.bool_],
        lower: Array,
        upper: Array,
        step: Array,
    ) -> list[tuple[Array, Array, Array, NDArray[np.bool_]]]:
        """Return one window around both modes, or one around each where they lie far apart."""
        low = np.where(lower > _FAR_MODE, lower - _REACH, -_REACH)
        high = np.maximum(upper, 1.0 / sigma) + _REACH
        power = 1.0 + tilts[away]

        def exponent(u: Array) -> Array:
            return power * log_ratio(u, sigma, q) - 0.5 * u * u

        top = np.maximum(exponent(lower), exponent(upper))
        for _ in range(12):  # next to where two modes merge, the integrand is wide
            short = exponent(high) > top - _EFOLDS
            high = np.where(short, high + 2.0 * (high - upper), high)
            long = (exponent(low) > top - _EFOLDS) & (low > -_REACH)
            low = np.where(long, np.maximum(low - 2.0 * (lower - low), -_REACH), low)
        together = upper - lower <= 4.0 * _FAR_MODE
        windows = []
        places = np.flatnonzero(away)
        for part, ends in (
            (together, (low, high)),
            (~together, (low, lower + (high - upper))),
            (~together, (upper - (high - upper), high)),
        ):
            if part.any():
                chosen = np.zeros(away.size, dtype=bool)
                chosen[places[part]] = True
                windows.append((ends[0][part], ends[1][part], step[part], chosen))
        return windows

    def _remove_modes(self, sigma: float, q: float, tilts: Array) -> tuple[Array, Array]:
        """Return the outermost solutions u of x = (1 + t) s(x), approached from outside."""
        power = 1.0 + tilts
        lower, upper = np.zeros(tilts.size), power.copy()
        for _ in range(_FIXED_POINTS):
            lower = power * _share(lower, sigma, q)
            upper = power * _share(upper, sigma, q)
        return lower / sigma, upper / sigma

    def _add_mode(self, sigma: float, q: float, tilts: Array) -> Array:
        low, high = -tilts, np.zeros(tilts.size)
        for _ in range(max(1, math.ceil(math.log2(float(tilts.max()) / (_MODE * sigma))))):
            middle = 0.5 * (low + high)
            above = middle + tilts * _share(middle, sigma, q) > 0
            high = np.where(above, middle, high)
            low = np.where(above, low, middle)
        return 0.5 * (low + high)

    def _steps(self, sigma: float, q: float, tilts: Array, frequency: float) -> Array:
        """Return the steps in u that resolve r^{iy}, |y| ≤ frequency, to full accuracy.

        On the line Im u = a the modulus of r is r·√(1 − 2s(1−s)(1 − cos(a/σ))), so that r^{1+t}
        grows by e^{a²/2} at most and r^{−t} by what the largest of its values there shows.
        """
        best = np.zeros(tilts.size)
        profile = None if self.removes else self._profile(sigma, q, tilts)
        for a in min(_STRIP * sigma, _WIDEST_SHIFT) * _PARTS:
            cost = frequency * a / sigma + 0.5 * a * a + _EFOLDS
            if profile is not None:
                real, mixed = profile
                turned = np.log1p((math.cos(a / sigma) - 1.0) * mixed)
                cost = cost + (real - 0.5 * tilts[:, None] * turned).max(axis=1) - real.max(axis=1)
            best = np.maximum(best, 2.0 * math.pi * a / cost)
        return best

    def _profile(self, sigma: float, q: float, tilts: Array) -> tuple[Array, Array]:
        """Return log r^{−t}e^{−u²/2} and 2s(1 − s) where the integrand or its turned form lies."""
        mode = self._add_mode(sigma, q, tilts) / sigma
        u = np.linspace(np.minimum(mode, 0.0) - _REACH, np.full(tilts.size, _REACH), 96, axis=1)
        share = _share(sigma * u, sigma, q)
        return -tilts[:, None] * log_ratio(u, sigma, q) - 0.5 * u * u, 2.0 * share * (1.0 - share)

    def line(self, tilt: float, step: float, nodes: int, used: NDArray[np.bool_]) -> Complex:
        """Return K_b(t + ihk) for k < nodes, shape (buckets, nodes); 0 for buckets not used.

        Imaginary parts are those of principal logarithms: whole multiples serve.
        """
        result = np.zeros((self.count, nodes), dtype=np.complex128)
        y = step * np.arange(nodes)
        z = tilt + 1j * y
        for b in np.flatnonzero(used & ~self.idle):
            if self.plain[b]:
                result[b] = 0.5 * z * (1.0 + z) / self.noise[b] / self.noise[b]
                continue
            _, log_r, weight = self._tilted(int(b), tilt, float(y[-1]))
            if log_r.size * nodes > _MOST_POWERS:
                raise AccuracyError(f"{log_r.size} × {nodes} powers are too many for one line")
            values = np.zeros(nodes, dtype=np.complex128)
            slab = max(1, _SLAB // nodes)
            for i in range(0, log_r.size, slab):
                turned = powers_less_one(step * log_r[i : i + slab], nodes).view(np.float64)
                values += (weight[i : i + slab] @ turned).view(np.complex128)
            result[b] = self._row(tilt)[b] + log_one_plus(values)
        return result

    def _row(self, tilt: float) -> Array:
        """Return every K_b(t)."""
        if tilt not in self._rows:
            self.transform(np.asarray([tilt]), self.has_loss)
        return self._rows[tilt]

    def rounding(self, tilt: float, reach: float, used: NDArray[np.bool_]) -> Array:
        """Return the rounding error of every K_b(t), absolute; 0 for buckets not used.

        A sum of e^{tL} − 1 whose signs differ is rounded like E|tL| under the tilted law.
        """
        result = np.where(used, 2.0 * np.abs(self._row(tilt)), 0.0)
        for b in np.flatnonzero(used & ~self.idle & ~self.plain):
            _, log_r, weight = self._tilted(int(b), tilt, 0.0)
            size = tilt * float(weight @ np.abs(log_r))
            result[b] += _SUMMED * min(size, 1.0) + 2.0 * size
        return _ROUNDING * result

    def log_bounds(self, tilt: float, y: Array, used: NDArray[np.bool_]) -> Array:
        """Return bounds on log |φ_t| between neighbours of rising y, the last one for all beyond.

        φ_t(y) = M(t + iy)/M(t).  Far out layers of the loss's density bound it, and for small y the
        spread around the median tells more.  Shape (buckets, y); 0 for buckets not used.
        """
        result = np.zeros((self.count, y.size))
        for b in np.flatnonzero(used & ~self.idle):
            if self.plain[b]:
                result[b] = -0.5 * (y / self.noise[b]) ** 2
                continue
            result[b] = layer_bound(*self._layers(int(b), tilt), y)
            _, loss, weight = self._tilted(int(b), tilt, 0.0)
            order = slice(None) if self.removes else slice(None, None, -1)
            near = near_bound(weight[order], loss[order] - weight @ loss, y)
            np.minimum(result[b, :-1], near, out=result[b, :-1])
        return result

    def _layers(self, bucket: int, tilt: float) -> tuple[Array, Array, Array]:
        """Return heights of the layers of the loss's density, and widths above and below each."""
        key = (bucket, tilt, -1)
        if key in self._kept:
            return self._kept[key]
        sigma, q = float(self.noise[bucket]), float(self.rate[bucket])
        u, log_r, weight = self._tilted(bucket, tilt, 0.0)
        share = _share(sigma * u, sigma, q)
        with np.errstate(divide="ignore", invalid="ignore"):
            density = weight * sigma / (share * (u[1] - u[0]))  # a window's steps are all equal
        density = np.where(share > 0.0, density, 0.0)
        self._kept[key] = layers(density, log_r)
        return self._kept[key]

    def _tilted(self, bucket: int, tilt: float, frequency: float) -> tuple[Array, Array, Array]:
        """Return u, the losses and the tilted probabilities at nodes that resolve a frequency."""
        band = max(0, math.ceil(2.0 * math.log2(max(frequency, 0.25) / 0.25)))
        key = (bucket, tilt, band)
        if key not in self._kept:
            if len(self._kept) > _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = self._tilted_nodes(bucket, tilt, 0.25 * 2.0 ** (0.5 * band))
        return self._kept[key]

    def _tilted_nodes(
        self, bucket: int, tilt: float, frequency: float
    ) -> tuple[Array, Array, Array]:
        sigma, q = float(self.noise[bucket]), float(self.rate[bucket])
        tilts = np.asarray([tilt])
        step = float(self._steps(sigma, q, tilts, frequency)[0])
        power = 1.0 + tilt if self.removes else -tilt
        nodes = []
        for low, high, _, _ in self._windows(sigma, q, tilts):
            start, stop = float(low[0]), float(high[0])
            # a first look finds where the integrand matters
            look = np.linspace(start, stop, max(33, int((stop - start) / 0.5)))
            seen = power * log_ratio(look, sigma, q) - 0.5 * look * look
            kept = np.flatnonzero(seen > seen.max() - _EFOLDS)
            start = float(look[max(kept[0] - 1, 0)])
            stop = float(look[min(kept[-1] + 1, look.size - 1)])
            nodes.append(np.arange(start, stop + step, step))
        u = np.concatenate(nodes)
        log_r = log_ratio(u, sigma, q)
        exponent = power * log_r - 0.5 * u * u
        weight = np.exp(exponent - float(exponent.max()))
        weight /= float(weight.sum())
        return u, log_r if self.removes else -log_r, weight


def log_ratio(u: Array, sigma: float, q: float) -> Array:
    """Return log r(σu), accurate relative to itself near 0 and without overflow.

    Examples
    --------
    >>> log_ratio(np.array([0.5, 5000.0]), 1.0, 0.5).round(9).tolist()
    [0.0, 4998.806852819]
    """
    y = u / sigma - 0.5 / (sigma * sigma)
    near = np.log1p(q * np.expm1(np.minimum(y, 1.0)))
    large = y > 1.0
    if large.any():
        away = y[large]
        near[large] = away + math.log(q) + np.log1p((1.0 - q) / q * np.exp(-away))
    return np.asarray(near)


def _share(x: Array, sigma: float, q: float) -> Array:
    """Return s(x) = q e^y/(1 − q + q e^y), the posterior probability that the record took part."""
    y = (2.0 * x - 1.0) / (2.0 * sigma * sigma)
    return np.asarray(expit(y + math.log(q) - math.log1p(-q)))


def layers(density: Array, loss: Array) -> tuple[Array, Array, Array]:
    """Return heights of the layers of a density, and the widths above and below each.

    Density and loss are at nodes along the outcomes; widths have a row for each stretch between two
    valleys.
    """
    levels = np.unique(density)
    levels = levels[np.linspace(0, levels.size - 1, min(_LAYERS, levels.size)).astype(np.intp)]
    inner = density[1:-1]
    valleys = 1 + np.flatnonzero((inner < density[:-2]) & (inner <= density[2:]))
    ends = [0, *valleys.tolist(), loss.size - 1]
    widths = []
    for low, high in pairwise(ends):
        part, place = density[low : high + 1], loss[low : high + 1]
        top = int(part.argmax())
        left = np.interp(levels, part[: top + 1], place[: top + 1])
        right = np.interp(-levels, -part[top:], place[top:])
        widths.append(np.where(levels > part[top], 0.0, np.abs(right - left)))
    above = np.asarray(widths)
    below = np.concatenate([np.full((above.shape[0], 1), np.inf), above[:, :-1]], axis=1)
    return np.diff(levels, prepend=0.0), above, below


def layer_bound(height: Array, above: Array, below: Array, y: Array) -> Array:
    """Return log of the smaller of the two bounds on |φ|, for all that lies beyond each y.

    Examples
    --------
    >>> x = np.linspace(-6.0, 6.0, 49)
    >>> normal = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    >>> layer_bound(*layers(normal, x), np.array([0.1, 4.0])).round(3).tolist()
    [-0.004, -1.522]
    """
    gone, far = np.zeros(y.size), np.zeros(y.size)
    for upper, lower in zip(above, below, strict=True):
        theta = 0.5 * np.multiply.outer(y, upper)
        share = np.sin(np.minimum(theta, 0.5 * math.pi)) / np.maximum(theta, 1e-300)
        gone += np.where(upper > 0.0, 1.0 - share, 0.0) @ (height * upper)
        lower_theta = np.minimum(0.5 * np.multiply.outer(y, lower), 0.5 * math.pi)
        far += np.sin(lower_theta) @ np.where(lower > 0.0, height, 0.0)
    near = 1.0 - np.maximum(gone, 0.0) / _BETWEEN
    return np.asarray(np.log(np.minimum(near, 2.0 * _BETWEEN * far / y + _BEYOND_NODES)))
