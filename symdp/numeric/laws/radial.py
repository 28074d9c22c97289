r"""The law of noise on vectors, f(x) = g(|x|) on R^d moved by D, as a density of its loss.

With r the distance of an output from where its noise is centred with the record, ρ = r + u the one
from where it is centred without it, and ψ = −log g, the loss is λ = ψ(ρ) − ψ(r). Under P

.. math::

   p(\lambda) = \frac{S_{d-2}}{S_{d-1}\, D \int g\, r^{d-1} dr} \int g(r)\,
      \frac{r \rho}{\psi'(\rho)} \Bigl(\frac{(D^2 - u^2)(v^2 - D^2)}{4 D^2}\Bigr)^{(d-3)/2} dr,
   \qquad v = r + \rho,

over all r with |u| ≤ D ≤ v, and p(−λ) = e^{−λ}p(λ). For λ > 0 these r lie between lengths at which
u = D or v = D, next to which D − u or v − D is found relative to itself, from differences of ψ: the
rule in r is the doubly exponential one, for which all ends are alike.

p is smooth but at values of Λ(r) = ψ(r + D) − ψ(r) where Λ turns, or has a limit at 0 or ∞. Between
two such values a and b the coordinate is the w of λ = a + (b − a)/(1 + e^{−w}), in which powers of
λ − a are exponentials; above the last one, that of λ = a + S log(1 + e^w).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from flint import arb
from numpy.typing import NDArray

from symdp.capacity import BLOCK
from symdp.errors import AccuracyError, InputError
from symdp.numeric.laws.table import Chart, LogDensityTable, TabulatedLaw
from symdp.numeric.step import Array, RealFunction
from symdp.tolerances import LARGEST_EXPONENT, NEGLIGIBLE, SUMS_ROUNDED

_LEFT, _RIGHT, _FINE = -80.0, 160.0, 16  # of log(r/D) that is looked at, and places in one e-fold
_NEAR = 0.25  # of a length: over such a rise of ψ the rule of its slope is exact
_ORDER, _CHECKED = 180, 257  # nodes of a rule in r, and of the one that checks it
_WIDTH, _RISE = 3.0, 40.0  # of a panel in w, and by how much it may rise
_DIRECT, _DEEP = -18.0, -100.0  # of w: where p is found, and where it is continued by a line
_DIRECT_AT_0, _DEEPEST = -24.0, -400.0  # the same next to λ = 0, which has no rounding
_DIRECT_LEVEL = -34.0  # the same where Λ is a constant, which has none either


class _Noise:
    """ψ, its slope, d and D, and what is known of Λ."""

    def __init__(self, psi: RealFunction, slope: RealFunction, d: int, shift: float) -> None:
        self._psi = psi
        self._slope = slope
        self._d = d
        self._shift = shift
        self._points, self._weights = np.polynomial.legendre.leggauss(8)
        exponents = np.arange(_LEFT, _RIGHT, 1.0 / _FINE)
        log_r = math.log(shift) + exponents
        with np.errstate(all="ignore"):
            r = np.exp(log_r)
            height = d * log_r - psi(r)
            spread = self.rise(r, np.full(r.size, shift))
            falls = slope(r)
        has_density = np.isfinite(height) & np.isfinite(falls)
        is_usable = has_density & np.isfinite(spread)
        if not is_usable.any():
            raise InputError("its density has no positive values")
        first, last = np.flatnonzero(is_usable)[[0, -1]]
        top = float(height[is_usable].max())
        is_high_at_last = height[last] > top - LARGEST_EXPONENT
        ends_early = last < r.size - 1 and is_high_at_last
        if ends_early and np.isposinf(-height[last + 1]):
            ends_early = False
        if ends_early or not is_usable[first : last + 1].all():
            raise InputError("its density has kinks, ends or zeros, which it may not have")
        if max(height[first], height[last]) > top - NEGLIGIBLE:
            raise InputError("its mass over all vectors is not finite, or not seen to be")
        has_mass = height > top - NEGLIGIBLE
        if not (falls[has_mass] > 0).all():
            raise InputError(
                "its density does not fall all the way with the length: where it rises a smaller "
                "shift may be worse, and where it is level the loss has no density"
            )
        is_essential = height > top - 1.25 * NEGLIGIBLE
        self._log_constant = self._normaliser(log_r[is_essential])
        is_short = log_r < log_r[first] + 5.0
        is_near = is_short | (height > top - 1.5 * LARGEST_EXPONENT)
        is_looked_at = is_usable & is_near
        far, less_far = spread[[last, last - _FINE]].tolist()
        if abs(far - less_far) <= 1e-6 * far:
            self._limit = far
        else:
            self._limit = 0.0 if far < less_far else math.inf
        self._find_turns(log_r[is_looked_at], spread[is_looked_at])

    def _normaliser(self, log_lengths: Array) -> float:
        """Return the log of the factor of the integral over r."""
        number = 4000
        low = log_lengths[0] - 1.0 / _FINE
        high = log_lengths[-1] + 1.0 / _FINE
        log_r = np.linspace(low, high, number)
        height = self._d * log_r - self._psi(np.exp(log_r))
        top = float(height.max())
        total = float(np.exp(height - top).sum())
        mass = total * (high - low) / (number - 1)
        log_mass = top + math.log(mass)
        d = self._d
        log_ratio = math.lgamma(d / 2) - math.lgamma((d - 1) / 2)
        log_areas = log_ratio - 0.5 * math.log(math.pi)
        log_powers = (d - 3) * math.log(2.0 * self._shift)
        return log_areas - log_mass - math.log(self._shift) - log_powers

    def _find_turns(self, log_r: Array, spread: Array) -> None:
        """Find the stretches on which Λ is monotone, and the values next to which p is singular."""
        ends = [float(log_r[0])]
        way = 0
        extreme = 0
        last = log_r.size - 1
        for k in range(1, log_r.size):
            gap = spread[k] - spread[extreme]
            if abs(gap) <= SUMS_ROUNDED * abs(spread[extreme]):
                continue
            new_way = 1 if gap > 0 else -1
            if way and new_way != way:
                low = log_r[max(extreme - 2, 0)]
                high = log_r[min(extreme + 2, last)]
                ends.append(self._turning_length(low, high, way))
            way = new_way
            extreme = k
        if len(ends) > 12:  # each costs cells of a table
            raise InputError(
                "its largest loss at a distance turns many times, and at every turn the density of "
                "the loss is singular; give a density whose logarithm bends less often"
            )
        last_end = float(log_r[-1])
        self._ends = np.asarray([*ends, last_end])
        self._values = self.spread(np.exp(self._ends))
        zero = np.asarray(0.0)
        whole_shift = np.asarray(self._shift)
        with np.errstate(all="ignore"):
            self._short = float(self._psi(whole_shift) - self._psi(zero))
        if math.isfinite(self._short):
            self._values[0] = self._short
        elif way < 0 or len(ends) > 1:
            self._short = math.inf
            self._values[0] = math.inf
        self._values[-1] = self._limit
        values = sorted(float(value) for value in self._values if 0.0 < value < math.inf)
        self.values = values[:1]
        for value, next_value in pairwise(values):
            if next_value > value * (1 + 1e-9):
                self.values.append(next_value)
        self.is_bounded = bool(np.isfinite(self._values).all())
        self.is_singular_at_0 = self._values[-1] == 0.0
        has_one_value = len(self.values) == 1
        self.is_level = self.is_bounded and not self.is_singular_at_0 and has_one_value

    def _turning_length(self, low: float, high: float, way: int) -> float:
        for _ in range(60):
            middle = 0.5 * (low + high)
            r = np.asarray([math.exp(middle)])
            change = self._slope(r + self._shift) - self._slope(r)
            if float(change[0]) * way > 0:
                low = middle
            else:
                high = middle
        return 0.5 * (low + high)

    def rise(self, start: Array, step: Array) -> Array:
        """Return ψ(start + step) − ψ(start), accurate relative to itself."""
        is_near = np.abs(step) <= _NEAR * start
        is_far = ~is_near
        result = np.empty(start.shape)
        if is_near.any():
            near_start = start[is_near]
            half = 0.5 * step[is_near]
            middle = near_start + half
            places = middle[:, None] + half[:, None] * self._points
            result[is_near] = half * (self._slope(places) @ self._weights)
        if is_far.any():
            far_start = start[is_far]
            far_end = far_start + step[is_far]
            result[is_far] = self._psi(far_end) - self._psi(far_start)
        return result

    def spread(self, r: Array) -> Array:
        """Return Λ, the largest loss at a distance."""
        return self.rise(r, np.full(r.shape, self._shift))

    def _advance(self, start: Array, rise: Array, most: float, way: float) -> Array:
        """Return how far to go forth or back from places for ψ to rise or to fall by so much."""
        advance = np.zeros(rise.shape)
        with np.errstate(all="ignore"):
            x = np.minimum(rise / self._slope(start), most)
        is_usable = np.isfinite(x) & (x > 0)
        inner = min(most, 1e300) / 2
        x = np.asarray(np.where(is_usable, x, inner))
        low = np.zeros(x.size)
        high = np.full(x.size, most)
        left = np.arange(x.size)
        for _ in range(80):  # all of them where it has to halve
            excess = way * self.rise(start, way * x) - rise
            high = np.where(excess > 0, x, high)
            low = np.where(excess > 0, low, x)
            with np.errstate(all="ignore"):
                new = x - excess / self._slope(start + way * x)
            is_inside = (new >= low) & (new <= high)
            middle = 0.5 * (low + np.minimum(high, 1e300))
            new = np.where(is_inside, new, middle)
            advance[left] = new
            # Newton's next step would be the square of this one.
            is_still = np.abs(new - x) <= 1e-9 * np.abs(x)
            is_settled = is_inside & is_still
            is_open = ~is_settled & (low < high)
            if not is_open.any():
                break
            left = left[is_open]
            x = new[is_open]
            low = low[is_open]
            high = high[is_open]
            start = start[is_open]
            rise = rise[is_open]
        return advance

    def _largest_loss_within(self, r: Array) -> Array:
        """Return ψ(D − r) − ψ(r), the largest loss at a distance below D/2."""
        return self.rise(r, self._shift - 2.0 * r)

    def _lack(self, r: Array) -> Array:
        """Return by how much less that is than at r = 0."""
        zero = np.zeros(r.shape)
        shift = np.full(r.shape, self._shift)
        return self.rise(zero, r) - self.rise(shift, -r)

    def _length_with_value(
        self,
        low: float,
        high: float,
        value: Array,
        function: RealFunction,
        rises: bool,
    ) -> Array:
        """Return the lengths at which a function has values, monotone in between."""
        lower = np.full(value.shape, low)
        upper = np.full(value.shape, high)
        for _ in range(64):
            middle = 0.5 * (lower + upper)
            is_below = (function(np.exp(middle)) < value) == rises
            lower = np.where(is_below, middle, lower)
            upper = np.where(is_below, upper, middle)
        return np.asarray(np.exp(0.5 * (lower + upper)))

    def log_density(self, loss: Array, below: Array, top: float, order: int) -> Array:
        """Return log p of losses above 0, which lie so far `below` the value `top` of Λ."""
        size = max(1, BLOCK // (16 * order))
        blocks = []
        for start in range(0, loss.size, size):
            block = slice(start, start + size)
            log_density = self._density_of_block(loss[block], below[block], top, order)
            blocks.append(log_density)
        return np.concatenate(blocks)

    def _density_of_block(self, loss: Array, below: Array, top: float, order: int) -> Array:
        total = np.full(loss.shape, -np.inf)
        is_short = loss < self._short
        least = self._least_lengths(loss, below, top)
        stretches = zip(pairwise(self._ends), pairwise(self._values), strict=True)
        for (low, high), (first, last) in stretches:
            rises = last > first
            is_inside = loss < max(first, last)
            is_cut = is_inside & (loss > min(first, last))
            left = np.full(loss.shape, math.exp(low))
            right = np.full(loss.shape, math.exp(high))
            if is_cut.any() and not math.isclose(first, last, rel_tol=SUMS_ROUNDED):
                root = self._length_with_value(low, high, loss[is_cut], self.spread, rises)
                end = left if rises else right
                end[is_cut] = root
            begins_short = is_short & (least > left)
            left_kind = np.where(begins_short, 2.0, 1.0 * (is_cut & rises))
            right_kind = 1.0 * (is_cut & (last < first))
            left = np.where(begins_short, least, left)
            is_inside &= left < right
            if not is_inside.any():
                continue
            unit = np.minimum(self._shift, right)
            intervals = _Intervals(
                loss=loss[is_inside],
                below=below[is_inside],
                left=left[is_inside],
                right=right[is_inside],
                unit=unit[is_inside],
                left_kind=left_kind[is_inside],
                right_kind=right_kind[is_inside],
            )
            log_integral = self._log_integral(intervals, top, order)
            total[is_inside] = np.logaddexp(total[is_inside], log_integral)
        return total + self._log_constant

    def _least_lengths(self, loss: Array, below: Array, top: float) -> Array:
        """Return the lengths below D/2 from which on there are losses so large, 0 of the others."""
        least = np.zeros(loss.shape)
        is_short = loss < self._short
        if not is_short.any():
            return least
        low = math.log(self._shift) + _LEFT - 10.0
        high = math.log(0.5 * self._shift)
        if math.isclose(top, self._short, rel_tol=SUMS_ROUNDED):  # told by how much less
            lengths = self._length_with_value(low, high, below[is_short], self._lack, True)
        else:
            lengths = self._length_with_value(
                low, high, loss[is_short], self._largest_loss_within, False
            )
        least[is_short] = lengths
        return least

    def _log_integral(self, rows: _Intervals, top: float, order: int) -> Array:
        """Return the log of the integral over r, each row's between its ends."""
        low = np.log(rows.left + rows.unit)
        high = np.log(rows.right + rows.unit)
        ends = (low, high)
        look = np.linspace(0.0, 1.0, 34)[1:-1]
        last_look = look.size - 1
        for _ in range(8):
            length = high - low
            height = self._heights(rows, top, ends, (low, high), look, 1.0 - look)
            highest = height.max(axis=1, keepdims=True)
            counts = height > highest - NEGLIGIBLE
            first = counts.argmax(axis=1)
            from_last = counts[:, ::-1].argmax(axis=1)
            last = last_look - from_last
            before = np.maximum(first - 1, 0)
            after = np.minimum(last + 1, last_look)
            place_after = low + length * look[after]
            place_before = low + length * look[before]
            high = np.where(last < last_look, place_after, high)
            low = np.where(first > 0, place_before, low)
            if not (high - low < 0.7 * length).any():
                break
        reach = 3.9  # 1e-33 of the way from the ends
        t = np.linspace(-reach, reach, order)
        exponent = math.pi * np.sinh(t)
        share = 1.0 / (1.0 + np.exp(-exponent))
        other_share = 1.0 / (1.0 + np.exp(exponent))
        slope = math.pi * np.cosh(t)
        spacing = slope * 2.0 * reach / (order - 1)
        log_weight = np.log(spacing * share * other_share)
        height = self._heights(rows, top, ends, (low, high), share, other_share)
        height = height + log_weight
        most = np.maximum(height.max(axis=1), -1e300)
        with np.errstate(divide="ignore"):
            shares = np.exp(height - most[:, None])
            log_sums = np.log(shares.sum(axis=1))
            total = log_sums + np.log(high - low)
        return np.asarray(most + total)

    def _heights(
        self,
        rows: _Intervals,
        top: float,
        ends: tuple[Array, Array],
        window: tuple[Array, Array],
        share: Array,
        other_share: Array,
    ) -> Array:
        """Return the log of the integrand in log(r + unit), at shares of windows."""
        low, high = window
        unit = rows.unit[:, None]
        left = rows.left[:, None]
        right = rows.right[:, None]
        length = (high - low)[:, None]
        begins_at_end = (low == ends[0])[:, None]
        ends_at_end = (high == ends[1])[:, None]
        with np.errstate(over="ignore"):
            from_low = (left + unit) * np.expm1(share * length)
            from_high = -(right + unit) * np.expm1(-other_share * length)
            ahead = np.where(begins_at_end, from_low, np.inf)
            behind = np.where(ends_at_end, from_high, np.inf)
        is_near_left = ahead < 0.5 * (left + unit)
        is_near_right = behind < 0.5 * right
        log_length = low[:, None] + share * length
        r = np.exp(log_length) - unit
        r = np.where(is_near_right, right - behind, r)
        r = np.where(is_near_left, left + ahead, r)
        shape = r.shape

        def flat(values: Array) -> Array:
            if values.ndim == 1:
                values = values[:, None]
            return np.broadcast_to(values, shape).ravel()

        columns = [flat(column) for column in vars(rows).values()]
        flat_rows = _Intervals(*columns)
        flat_ahead = flat(np.where(is_near_left, ahead, np.inf))
        flat_behind = flat(np.where(is_near_right, behind, np.inf))
        logs = self._integrand(r.ravel(), flat_rows, top, (flat_ahead, flat_behind))
        return logs.reshape(shape)

    def _integrand(
        self,
        r: Array,
        rows: _Intervals,
        top: float,
        distances: tuple[Array, Array],
    ) -> Array:
        """Return the log of the integrand at distances from the ends, those not near infinite."""
        shift = self._shift
        ahead, _ = distances
        left_over = self._loss_left_over(r, rows, top, distances)
        u = np.empty(r.shape)
        lack = np.empty(r.shape)
        is_close = left_over < 0.5 * rows.loss
        is_apart = ~is_close
        if is_close.any():
            start = (r + shift)[is_close]
            lack[is_close] = self._advance(start, left_over[is_close], shift, -1.0)
        if is_apart.any():
            u[is_apart] = self._advance(r[is_apart], rows.loss[is_apart], shift, 1.0)
        u[is_close] = shift - lack[is_close]
        lack[is_apart] = shift - u[is_apart]
        excess = 2.0 * r + u - shift
        is_close_to_left = ahead <= _NEAR * np.minimum(rows.left, shift)
        is_near = (rows.left_kind == 2) & is_close_to_left
        if is_near.any():
            near_end = rows.left[is_near]
            step = ahead[is_near]
            start = shift - near_end - step
            rise = self.rise(start, step) + self.rise(near_end, step)
            excess[is_near] = self._advance(start, rise, math.inf, 1.0)
        rho = r + u
        with np.errstate(all="ignore"):
            log_of_both = np.log(r) + np.log(rho)
            log_lengths = log_of_both + np.log(r + rows.unit)
            log_integrand = log_lengths - np.log(self._slope(rho))
            log_integrand -= self._psi(r)
            if self._d != 3:
                log_lack = np.log(np.maximum(lack, 1e-300))
                log_excess = np.log(np.maximum(excess, 1e-300))
                around = log_lack + np.log(2.0 * shift - lack)
                around += log_excess + np.log(2.0 * shift + excess)
                log_integrand += 0.5 * (self._d - 3) * around
        is_finite = np.isfinite(log_integrand)
        return np.where(is_finite, log_integrand, -np.inf)

    def _loss_left_over(
        self,
        r: Array,
        rows: _Intervals,
        top: float,
        distances: tuple[Array, Array],
    ) -> Array:
        """Return Λ(r) − λ, relative to itself next to an end where u = D."""
        ahead, behind = distances
        widest = self.spread(r)
        left_over = np.maximum(widest - rows.loss, 1e-16 * widest)
        if top < math.inf:
            is_at_top = np.abs(widest - top) < SUMS_ROUNDED * top
            left_over = np.where(is_at_top, rows.below, left_over)
        sides = (
            (rows.left, ahead, rows.left_kind == 1),
            (rows.right, -behind, rows.right_kind == 1),
        )
        for end, distance, is_of_kind in sides:
            nearest = _NEAR * np.minimum(end, self._shift)
            is_close = np.abs(distance) <= nearest
            is_near = is_of_kind & is_close
            if is_near.any():
                near_end = end[is_near]
                step = distance[is_near]
                far_rise = self.rise(near_end + self._shift, step)
                left_over[is_near] = far_rise - self.rise(near_end, step)
        return left_over


@dataclass
class _Intervals:
    """Losses, how far they lie below a value, and between which r: ends of u = D (1), v = D (2)."""

    loss: Array
    below: Array
    left: Array
    right: Array
    unit: Array  # of lengths, where the coordinate turns from r to log r
    left_kind: Array
    right_kind: Array


def _soft(w: Array) -> Array:
    """Return log(1 + e^w)."""
    is_positive = w.real > 0
    small = np.exp(np.where(is_positive, -w, w))
    return np.where(is_positive, w, 0.0) + np.log1p(small)


@dataclass(frozen=True)
class _LossCell:
    """λ = low + (high − low)/(1 + e^{−w}), or low + scale·log(1 + e^w), w = x − offset."""

    low: float
    high: float
    scale: float
    offset: float = 0.0

    def value(self, w: Array) -> tuple[Array, Array, Array]:
        """Return λ, how far it is below the upper end, and log |dλ/dw|."""
        near = _soft(w)
        if math.isinf(self.high):
            loss = self.low + self.scale * near
            no_top = np.full(w.shape, np.inf)
            return loss, no_top, self._log_scale + w - near
        width = self.high - self.low
        far = _soft(-w)
        below = width * np.exp(-near)
        from_low = self.low + width * np.exp(-far)
        loss = np.where(w.real < 0, from_low, self.high - below)
        return loss, below, self._log_scale - near - far

    @property
    def _log_scale(self) -> float:
        if math.isinf(self.high):
            return math.log(self.scale)
        return math.log(self.high - self.low)

    def ball(self, w: arb) -> arb:
        """Return λ in a ball."""
        low = arb(self.low)
        if not math.isinf(self.high):
            width = arb(self.high) - self.low
            return low + width / (1 + (-w).exp())
        if w < 0:
            return low + self.scale * w.exp().log1p()
        return low + self.scale * (w + (-w).exp().log1p())

    def place(self, loss: Array) -> Array:
        """Return w."""
        with np.errstate(all="ignore"):
            if math.isinf(self.high):
                share = (loss - self.low) / self.scale
                shortfall = -np.expm1(-share)
                return np.asarray(share + np.log(shortfall))
            odds = (loss - self.low) / (self.high - loss)
            return np.asarray(np.log(odds))


class _RadialChart(Chart):
    """The log likelihood ratio over cells of x ≥ 0, and odd in x; of samples at a rate."""

    def __init__(self, table: _Tabulated, rate: float) -> None:
        self._cells = table.cells
        self._edges = np.asarray(table.edges)
        self._rate = rate
        inner = table.edges[1:-1]
        mirrored = [-edge for edge in inner[::-1]]
        start = [0.0] if table.starts_apart else []
        self.breaks = (*mirrored, *start, *inner)

    def _cell_number(self, size: Array) -> NDArray[np.intp]:
        number = np.searchsorted(self._edges, size, side="right") - 1
        return np.clip(number, 0, len(self._cells) - 1)

    def plain(self, x: Array) -> Array:
        """Return λ; places may be complex."""
        x = np.asarray(x)
        sign = np.where(x.real < 0, -1.0, 1.0)
        size = sign * x
        loss = np.empty_like(x)
        number = self._cell_number(size.real)
        for k, cell in enumerate(self._cells):
            in_cell = number == k
            if in_cell.any():
                w = size[in_cell] - cell.offset
                loss[in_cell], _, _ = cell.value(w)
        return np.asarray(sign * loss)

    def ratio(self, x: Array) -> Array:
        """Return the log of 1 − q + qe^λ."""
        plain = self.plain(x)
        if self._rate == 1.0:
            return plain
        with np.errstate(all="ignore"):
            small = np.log1p(self._rate * np.expm1(plain))
            without = (self._rate - 1.0) * np.exp(-plain)
            share = self._rate - without
            large = plain + np.log(share)
        return np.where(plain.real > 30.0, large, small)

    def ball(self, x: arb) -> arb:
        """Return the log of 1 − q + qe^λ in a ball."""
        size = abs(x)
        sign = -1 if x < 0 else 1
        number = self._cell_number(np.asarray(float(size.mid())))
        cell = self._cells[int(number)]
        plain = sign * cell.ball(size - cell.offset)
        if self._rate == 1.0:
            return plain
        return (self._rate * plain.expm1()).log1p()

    def place(self, ratio: Array) -> Array:
        """Return where it has values, infinite where it has them nowhere."""
        plain = np.asarray(ratio, dtype=np.float64)
        if self._rate < 1.0:
            with np.errstate(all="ignore"):
                share = (1 - self._rate) * np.exp(-plain)
                unsampled = np.log1p(-share)
                large = plain + unsampled - math.log(self._rate)
                small = np.log1p(np.expm1(plain) / self._rate)
                above = np.where(plain > 30.0, large, small)
                plain = np.where(np.isnan(above), -np.inf, above)
        size = np.abs(plain)
        places = np.full(plain.shape, np.inf)
        ends = pairwise(self._edges)
        for cell, (low, high) in zip(self._cells, ends, strict=True):
            in_cell = (size >= max(cell.low, 0.0)) & (size < cell.high)
            x = cell.place(size[in_cell]) + cell.offset
            places[in_cell] = np.clip(x, low, high)
        return np.asarray(np.copysign(places, plain))


def _cells_of(noise: _Noise) -> list[_LossCell]:
    values = noise.values
    if noise.is_singular_at_0 or not values:
        ends = [0.0, *values]
    else:
        ends = [-values[0], *values]
    cells = [_LossCell(low, high, 0.0) for low, high in pairwise(ends)]
    if noise.is_bounded:
        return cells
    low = ends[-1]
    octaves = np.exp2(np.arange(-30.0, 60.0))
    distance = (low or 1.0) * octaves
    no_top = np.full(distance.shape, np.inf)
    height = noise.log_density(low + distance, no_top, math.inf, _ORDER)
    log_mass = height + np.log(distance)
    log_mass = np.where(np.isfinite(height), log_mass, -np.inf)
    best = int(np.argmax(log_mass))
    return [*cells, _LossCell(low, math.inf, float(distance[best]))]


_DEGREE = 23  # of a panel's series
# of a panel, and from the values there to the coefficients
_NODES = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
_SERIES = np.linalg.inv(np.polynomial.chebyshev.chebvander(_NODES, _DEGREE)).T  # rows of them


class _CellPanels:
    """log p |dλ/dw| over one cell: ends of panels in w, values at the nodes, and their errors."""

    def __init__(self, noise: _Noise, cell: _LossCell, peak: float) -> None:
        self._noise = noise
        self._cell = cell
        is_top = math.isinf(cell.high)
        is_central = cell.low < 0
        first = _DIRECT if cell.low else _DIRECT_AT_0
        if is_central:
            first = 0.0
        self._direct = _DIRECT_LEVEL if noise.is_level else _DIRECT
        last = 800.0 if is_top else -self._direct
        starts = np.arange(first, last, _WIDTH)
        grid = np.append(starts, last)
        height = self._log_density_at(grid, _CHECKED // 2)
        self.peak = max(peak, float(height.max()))
        essential = np.flatnonzero(height > self.peak - LARGEST_EXPONENT)
        if not essential.size:
            essential = np.asarray([int(height.argmax())])
        low = max(essential[0] - 1, 0)
        high = min(essential[-1] + 1, grid.size - 1)
        stretch = slice(low, high + 1)
        edges = self._first_edges(grid[stretch], height[stretch])
        self.edges, self.values, self.error = self._settled(edges)
        if low == 0 and not is_central:
            deepest = _DEEP if cell.low else _DEEPEST
            self._continue_by_line(-1.0, first, deepest)
        if high == grid.size - 1 and not is_top:
            self._continue_by_line(1.0, self._direct, _DEEP)

    def _log_density_at(self, w: Array, order: int = _ORDER) -> Array:
        loss, below, log_slope = self._cell.value(w)
        log_p = self._noise.log_density(loss, below, self._cell.high, order)
        log_density = log_p + log_slope
        floor = -9.0 * LARGEST_EXPONENT
        return np.where(np.isfinite(log_density), np.maximum(log_density, floor), floor)

    def _first_edges(self, grid: Array, height: Array) -> Array:
        """Return edges that are closest around w = 0, no panel rising by much."""
        edges = [grid[0]]
        last = grid.size - 1
        for k in range(1, grid.size):
            edge = edges[-1]
            nearer = min(abs(edge), abs(grid[k]))
            widest = max(_WIDTH, 0.4 * nearer)
            before = np.interp(edge, grid, height)
            can_grow = k < last and grid[k + 1] - edge <= widest
            if can_grow and abs(height[k + 1] - before) <= _RISE:
                continue
            rise = min(abs(height[k] - before), 1e3)
            parts = max(1, math.ceil(rise / _RISE))
            inner = np.linspace(edge, grid[k], parts + 1)
            edges += inner[1:].tolist()
        return np.asarray(edges)

    def _settled(self, edges: Array) -> tuple[Array, Array, Array]:
        """Return edges in order, the values at the nodes of each panel, and errors."""
        low = edges[:-1]
        high = edges[1:]
        settled: list[tuple[float, float, Array, float]] = []
        is_top = math.isinf(self._cell.high)
        while low.size:
            middle = 0.5 * (low + high)
            half = 0.5 * (high - low)
            nodes = middle[:, None] + half[:, None] * _NODES
            values = self._log_density_at(nodes.ravel()).reshape(low.size, -1)
            series = values @ _SERIES
            size = np.abs(values).max(axis=1) + 4.0
            last_coefficients = np.abs(series[:, -3:])
            tail = last_coefficients.max(axis=1)
            left = -low if self._cell.low else np.zeros(low.shape)
            right = 0.0 if is_top or self._noise.is_level else high
            depth = np.minimum(np.maximum(left, right), -_DIRECT)
            allowed = 2e-15 * (size + np.exp(depth))
            is_good = (tail <= allowed) | (half < 0.4)
            columns = (low, high, values, tail)
            good_columns = [column[is_good] for column in columns]
            settled += zip(*good_columns, strict=True)
            is_bad = ~is_good
            halved = middle[is_bad]
            low = np.concatenate([low[is_bad], halved])
            high = np.concatenate([halved, high[is_bad]])
        settled.sort(key=lambda panel: float(panel[0]))
        settled_columns = zip(*settled, strict=True)
        starts, ends, rows, tails = (np.asarray(column) for column in settled_columns)
        off_nodes = 0.31
        middle = 0.5 * (starts + ends)
        aside = middle + 0.5 * off_nodes * (ends - starts)
        series = rows @ _SERIES
        predicted = np.polynomial.chebyshev.chebval(off_nodes, series.T)
        gap = np.abs(predicted - self._log_density_at(aside, _CHECKED))
        error = np.nan_to_num(tails + gap, nan=math.inf)
        return np.append(starts, ends[-1]), rows, error

    def _continue_by_line(self, way: float, start: float, deep: float) -> None:
        """Continue by a line, which log p is in w next to a value of Λ."""
        starts = np.asarray([start, start + 2.0, start - 2.0])
        places = -way * starts
        near, inner, check = self._log_density_at(places).tolist()
        slope = 0.5 * (near - inner)  # for each unit of w outwards
        if not slope < 0:
            raise AccuracyError("the density of the loss has no end that is seen next to a value")
        to_floor = (near - self.peak + LARGEST_EXPONENT) / -slope
        length = min(start - deep, to_floor)
        if not length > 0:
            return
        parts = max(1, math.ceil(-slope * length / _RISE))
        ends = np.linspace(0.0, length, parts + 1)
        middle = 0.5 * (ends[1:] + ends[:-1])
        half = 0.5 * np.diff(ends)
        nodes = middle[:, None] + way * half[:, None] * _NODES
        rows = near + slope * nodes
        miss = abs(check - near - 2.0 * slope)
        gap = miss + math.exp(slope * length)
        error = np.full(parts, gap)
        edges = -way * start + way * ends[1:]
        if way > 0:
            self.edges = np.append(self.edges, edges)
            self.values = np.vstack([self.values, rows])
            self.error = np.concatenate([self.error, error])
        else:
            self.edges = np.append(edges[::-1], self.edges)
            self.values = np.vstack([rows[::-1], self.values])
            self.error = np.concatenate([error, self.error])


@dataclass(frozen=True)
class _Tabulated:
    table: LogDensityTable
    cells: tuple[_LossCell, ...]
    edges: tuple[float, ...]
    starts_apart: bool  # whether p is singular at 0
    log_infinite: float
    top: float


def _tabulated(noise: _Noise) -> _Tabulated:
    """Return the log density of the loss under Q on panels of x, x < 0 that of losses below 0."""
    cells = []
    ends_of_cells = [0.0]
    peak = -math.inf
    places: list[Array] = [np.zeros(1)]
    with_record: list[Array] = []
    losses: list[Array] = []
    errors: list[Array] = []
    for cell in _cells_of(noise):
        panels = _CellPanels(noise, cell, peak)
        peak = panels.peak
        edges = panels.edges
        offset = ends_of_cells[-1] - float(edges[0])
        middle = 0.5 * (edges[1:] + edges[:-1])
        half = 0.5 * np.diff(edges)
        nodes = middle[:, None] + half[:, None] * _NODES
        loss, _, _ = cell.value(nodes.ravel())
        loss = loss.reshape(nodes.shape)
        # Series add up to logs that are rounded, those of Q less by λ.
        sizes = np.abs(panels.values) + np.abs(loss)
        size = sizes.max(axis=1)
        losses.append(loss)
        with_record.append(panels.values)
        rounding = 16.0 * np.finfo(float).eps * size
        errors.append(panels.error + rounding)
        places.append(edges[1:] + offset)
        ends_of_cells.append(float(places[-1][-1]))
        cells.append(replace(cell, offset=offset))
    right = np.concatenate(places)
    values = np.vstack(with_record)
    error = np.concatenate(errors)
    series = values @ _SERIES
    without_record = values - np.vstack(losses)
    series_without = without_record @ _SERIES
    signs = (-1.0) ** np.arange(_DEGREE + 1)
    flipped = (series * signs)[::-1]
    coefficients = np.vstack([flipped, series_without])
    table = LogDensityTable(
        edges=np.concatenate([-right[:0:-1], right]),
        coefficients=coefficients,
        error=np.concatenate([error[::-1], error]),
    )
    _, log_weight, _ = table.rule(math.inf)
    log_mass = float(np.logaddexp.reduce(log_weight))
    gap = abs(math.expm1(log_mass))
    if not gap < 1e-7:  # counted with the errors
        raise AccuracyError(
            f"the density of its loss integrates numerically to {1.0 + gap!r}, not 1"
        )
    coefficients[:, 0] -= log_mass
    log_infinite = -math.inf
    top = math.inf
    if noise.is_bounded:
        top = noise.values[-1]
    else:
        log_infinite = float(values[-1].min()) + 3.0
    return _Tabulated(
        table=replace(table, error=table.error + gap),
        cells=tuple(cells),
        edges=tuple(ends_of_cells),
        starts_apart=cells[0].low == 0,
        log_infinite=log_infinite,
        top=top,
    )


@lru_cache(maxsize=16)
def _table_of(
    functions: tuple[RealFunction, RealFunction], dimension: int, shift: float
) -> _Tabulated:
    return _tabulated(_Noise(*functions, dimension, shift))


class RadialLaw(TabulatedLaw):
    """The loss of noise on vectors: its table ends so far out that tilts inside reach no end."""

    def is_resolved_at(self, tilt: float) -> bool:
        """Whether the tilted density ends inside the table."""
        low, high = self.domain
        return low < tilt < high


def radial_law(
    functions: tuple[RealFunction, RealFunction],
    shape: tuple[int, float],
    rate: float,
    direction: str,
    name: str,
) -> RadialLaw:
    """Return the law of one step of noise on vectors, Poisson samples drawn at a rate.

    `functions`: ψ and its slope. `shape`: d, 2 or more, and D.
    """
    table = _table_of(functions, *shape)
    chart = _RadialChart(table, rate)
    low = -table.top
    high = table.top
    if rate < 1.0:
        lowest = math.expm1(min(-table.top, 700.0))
        low = math.log1p(rate * lowest)
        high = math.inf
        if table.top < 700.0:
            high = math.log1p(rate * math.expm1(table.top))
    law = RadialLaw(table.table, chart, direction, name, table.log_infinite, (low, high))
    if table.log_infinite > -math.inf:
        law.uncertain_mass = math.exp(table.log_infinite)
    return law
