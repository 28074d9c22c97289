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

_LEFT, _RIGHT, _FINE = -80.0, 160.0, 16  # of log(r/D) that is looked at, and places in one e-fold
_NEAR = 0.25  # of a length: over such a rise of ψ the rule of its slope is exact
_ROUNDED = 1e-12  # relative: by which Λ turns at least
_SEEN = 40.0  # e-folds of an integrand
_ORDER, _CHECKED = 180, 257  # nodes of a rule in r, and of the one that checks it
_WIDTH, _RISE = 3.0, 40.0  # of a panel in w, and by how much it may rise
_DIRECT, _DEEP = -18.0, -100.0  # of w: where p is found, and where it is continued by a line
_DIRECT_AT_0, _DEEPEST = -24.0, -400.0  # the same next to λ = 0, which has no rounding
_DIRECT_LEVEL = -34.0  # the same where Λ is a constant, which has none either
_FLOOR = 700.0  # e-folds: beyond them a loss counts as infinite, with their probability


class _Noise:
    """ψ, its slope, d and D, and what is known of Λ."""

    def __init__(self, psi: RealFunction, slope: RealFunction, d: int, shift: float) -> None:
        self._psi, self._slope, self._d, self._shift = psi, slope, d, shift
        self._points, self._weights = np.polynomial.legendre.leggauss(8)
        log_r = math.log(shift) + np.arange(_LEFT, _RIGHT, 1.0 / _FINE)
        with np.errstate(all="ignore"):
            r = np.exp(log_r)
            height = d * log_r - psi(r)
            spread, falls = self.rise(r, np.full(r.size, shift)), slope(r)
        is_usable = np.isfinite(height) & np.isfinite(spread) & np.isfinite(falls)
        if not is_usable.any():
            raise InputError("its density has no positive values")
        first, last = np.flatnonzero(is_usable)[[0, -1]]
        top = float(height[is_usable].max())
        if not is_usable[first : last + 1].all() or (
            last < r.size - 1 and height[last] > top - _FLOOR and not np.isposinf(-height[last + 1])
        ):
            raise InputError("its density has kinks, ends or zeros, which it may not have")
        if max(height[first], height[last]) > top - _SEEN:
            raise InputError("its mass over all vectors is not finite, or not seen to be")
        if not (falls[height > top - _SEEN] > 0).all():
            raise InputError(
                "its density does not fall all the way with the length: where it rises a smaller "
                "shift may be worse, and where it is level the loss has no density"
            )
        self._log_constant = self._normaliser(log_r[height > top - 1.25 * _SEEN])
        kept = is_usable & ((log_r < log_r[first] + 5.0) | (height > top - 1.5 * _FLOOR))
        far = spread[[last, last - _FINE]].tolist()
        level = abs(far[0] - far[1]) <= 1e-6 * far[0]
        self._limit = far[0] if level else (0.0 if far[0] < far[1] else math.inf)
        self._turns(log_r[kept], spread[kept])

    def _normaliser(self, seen: Array) -> float:
        """Return the log of the factor of the integral over r."""
        low, high, number = seen[0] - 1.0 / _FINE, seen[-1] + 1.0 / _FINE, 4000
        log_r = np.linspace(low, high, number)
        height = self._d * log_r - self._psi(np.exp(log_r))
        top = float(height.max())
        mass = top + math.log(float(np.exp(height - top).sum()) * (high - low) / (number - 1))
        d = self._d
        areas = math.lgamma(d / 2) - math.lgamma((d - 1) / 2) - 0.5 * math.log(math.pi)
        return areas - mass - math.log(self._shift) - (d - 3) * math.log(2.0 * self._shift)

    def _turns(self, log_r: Array, spread: Array) -> None:
        """Find the stretches on which Λ is monotone, and the values next to which p is singular."""
        ends, way, extreme = [float(log_r[0])], 0, 0
        for k in range(1, log_r.size):
            gap = spread[k] - spread[extreme]
            if abs(gap) <= _ROUNDED * abs(spread[extreme]):
                continue
            if way and (gap > 0) != (way > 0):
                sides = log_r[max(extreme - 2, 0)], log_r[min(extreme + 2, log_r.size - 1)]
                ends.append(self._turn(*sides, way))
            way, extreme = (1 if gap > 0 else -1), k
        if len(ends) > 12:  # each costs cells of a table
            raise InputError(
                "its largest loss at a distance turns many times, and at every turn the density of "
                "the loss is singular; give a density whose logarithm bends less often"
            )
        self._ends = np.asarray([*ends, float(log_r[-1])])
        self._values = self.spread(np.exp(self._ends))
        with np.errstate(all="ignore"):
            self._short = float(self._psi(np.asarray(self._shift)) - self._psi(np.asarray(0.0)))
        if math.isfinite(self._short):
            self._values[0] = self._short
        elif way < 0 or len(ends) > 1:
            self._short = self._values[0] = math.inf
        self._values[-1] = self._limit
        listed = sorted(float(value) for value in self._values if 0.0 < value < math.inf)
        self.values = [v for k, v in enumerate(listed) if not k or v > listed[k - 1] * (1 + 1e-9)]
        self.is_bounded = bool(np.isfinite(self._values).all())
        self.is_singular_at_0 = self._values[-1] == 0.0
        self.is_level = self.is_bounded and not self.is_singular_at_0 and len(self.values) == 1

    def _turn(self, low: float, high: float, way: int) -> float:
        for _ in range(60):
            middle = 0.5 * (low + high)
            r = np.asarray([math.exp(middle)])
            rises = float((self._slope(r + self._shift) - self._slope(r))[0]) * way > 0
            low, high = (middle, high) if rises else (low, middle)
        return 0.5 * (low + high)

    def rise(self, start: Array, step: Array) -> Array:
        """Return ψ(start + step) − ψ(start), accurate relative to itself."""
        near = np.abs(step) <= _NEAR * start
        result, far = np.empty(start.shape), ~near
        if near.any():
            near_start, length = start[near], step[near]
            middle = (near_start + 0.5 * length)[:, None] + 0.5 * length[:, None] * self._points
            result[near] = 0.5 * length * (self._slope(middle) @ self._weights)
        if far.any():
            result[far] = self._psi(start[far] + step[far]) - self._psi(start[far])
        return result

    def spread(self, r: Array) -> Array:
        """Return Λ, the largest loss at a distance."""
        return self.rise(r, np.full(r.shape, self._shift))

    def _advance(self, start: Array, rise: Array, most: float, way: float) -> Array:
        """Return how far to go forth or back from places for ψ to rise or to fall by so much."""
        advance = np.zeros(rise.shape)
        with np.errstate(all="ignore"):
            x = np.minimum(rise / self._slope(start), most)
        x = np.asarray(np.where(np.isfinite(x) & (x > 0), x, min(most, 1e300) / 2))
        low, high, left = np.zeros(x.size), np.full(x.size, most), np.arange(x.size)
        for _ in range(80):  # all of them where it has to halve
            excess = way * self.rise(start, way * x) - rise
            high, low = np.where(excess > 0, x, high), np.where(excess > 0, low, x)
            with np.errstate(all="ignore"):
                new = x - excess / self._slope(start + way * x)
            inside = (new >= low) & (new <= high)
            new = np.where(inside, new, 0.5 * (low + np.minimum(high, 1e300)))
            advance[left] = new
            # Newton's next step would be the square of this one.
            open_ = ~(inside & (np.abs(new - x) <= 1e-9 * np.abs(x))) & (low < high)
            if not open_.any():
                break
            left, x, low, high = left[open_], new[open_], low[open_], high[open_]
            start, rise = start[open_], rise[open_]
        return advance

    def _inner(self, r: Array) -> Array:
        """Return ψ(D − r) − ψ(r), the largest loss at a distance below D/2."""
        return self.rise(r, self._shift - 2.0 * r)

    def _lack(self, r: Array) -> Array:
        """Return by how much less that is than at r = 0."""
        shift, zero = np.full(r.shape, self._shift), np.zeros(r.shape)
        return self.rise(zero, r) - self.rise(shift, -r)

    def _root(
        self, low: float, high: float, value: Array, function: RealFunction, rises: bool
    ) -> Array:
        """Return the lengths at which a function has values, monotone in between."""
        lower, upper = np.full(value.shape, low), np.full(value.shape, high)
        for _ in range(64):
            middle = 0.5 * (lower + upper)
            right = (function(np.exp(middle)) < value) == rises
            lower, upper = np.where(right, middle, lower), np.where(right, upper, middle)
        return np.asarray(np.exp(0.5 * (lower + upper)))

    def log_density(self, loss: Array, below: Array, top: float, order: int) -> Array:
        """Return log p of losses above 0, which lie `rest` below the value `top` of Λ."""
        size = max(1, BLOCK // (16 * order))
        blocks = [slice(k, k + size) for k in range(0, loss.size, size)]
        return np.concatenate([self._density(loss[b], below[b], top, order) for b in blocks])

    def _density(self, loss: Array, below: Array, top: float, order: int) -> Array:
        total = np.full(loss.shape, -np.inf)
        short = loss < self._short
        least = np.zeros(loss.shape)
        if short.any():
            ends = math.log(self._shift) + _LEFT - 10.0, math.log(0.5 * self._shift)
            if math.isclose(top, self._short, rel_tol=_ROUNDED):  # told by how much less
                least[short] = self._root(*ends, below[short], self._lack, True)
            else:
                least[short] = self._root(*ends, loss[short], self._inner, False)
        for (low, high), (first, last) in zip(
            pairwise(self._ends), pairwise(self._values), strict=True
        ):
            inside = loss < max(first, last)
            left, right = (np.full(loss.shape, math.exp(end)) for end in (low, high))
            cut = inside & (loss > min(first, last))
            if cut.any() and not math.isclose(first, last, rel_tol=_ROUNDED):
                root = self._root(low, high, loss[cut], self.spread, last > first)
                (left if last > first else right)[cut] = root
            is_short = short & (least > left)
            kinds = (
                np.where(is_short, 2.0, 1.0 * (cut & (last > first))),
                1.0 * (cut & (last < first)),
            )
            left = np.where(is_short, least, left)
            inside &= left < right
            if inside.any():
                unit = np.minimum(self._shift, right)
                row = _Rows(
                    *(column[inside] for column in (loss, below, left, right, unit, *kinds))
                )
                total[inside] = np.logaddexp(total[inside], self._integral(row, top, order))
        return total + self._log_constant

    def _integral(self, rows: _Rows, top: float, order: int) -> Array:
        """Return the log of the integral over r, each row's between its ends."""
        low, high = np.log(rows.left + rows.unit), np.log(rows.right + rows.unit)
        ends, look = (low, high), np.linspace(0.0, 1.0, 34)[1:-1]
        for _ in range(8):
            length = high - low
            height = self._heights(rows, top, ends, (low, high), look, 1.0 - look)
            seen = height > height.max(axis=1, keepdims=True) - _SEEN
            first, last = seen.argmax(axis=1), seen.shape[1] - 1 - seen[:, ::-1].argmax(axis=1)
            before, after = np.maximum(first - 1, 0), np.minimum(last + 1, look.size - 1)
            high = np.where(last < look.size - 1, low + length * look[after], high)
            low = np.where(first > 0, low + length * look[before], low)
            if not (high - low < 0.7 * length).any():
                break
        reach = 3.9  # 1e-33 of the way from the ends
        t = np.linspace(-reach, reach, order)
        exponent = math.pi * np.sinh(t)
        share, other_share = 1.0 / (1.0 + np.exp(-exponent)), 1.0 / (1.0 + np.exp(exponent))
        weight = np.log(math.pi * np.cosh(t) * 2.0 * reach / (order - 1) * share * other_share)
        height = self._heights(rows, top, ends, (low, high), share, other_share) + weight
        most = np.maximum(height.max(axis=1), -1e300)
        with np.errstate(divide="ignore"):
            total = np.log(np.exp(height - most[:, None]).sum(axis=1)) + np.log(high - low)
        return np.asarray(most + total)

    def _heights(
        self,
        rows: _Rows,
        top: float,
        ends: tuple[Array, Array],
        window: tuple[Array, Array],
        share: Array,
        other_share: Array,
    ) -> Array:
        """Return the log of the integrand in log(r + unit), at shares of windows."""
        (low, high), unit = window, rows.unit[:, None]
        length = (high - low)[:, None]
        left, right = rows.left[:, None], rows.right[:, None]
        with np.errstate(over="ignore"):
            ahead = np.where(
                (low == ends[0])[:, None], (left + unit) * np.expm1(share * length), np.inf
            )
            behind = np.where(
                (high == ends[1])[:, None],
                -(right + unit) * np.expm1(-other_share * length),
                np.inf,
            )
        r = np.exp(low[:, None] + share * length) - unit
        from_left, from_right = ahead < 0.5 * (left + unit), behind < 0.5 * right
        r = np.where(from_left, left + ahead, np.where(from_right, right - behind, r))
        shape = r.shape

        def flat(values: Array) -> Array:
            return np.broadcast_to(values if values.ndim == 2 else values[:, None], shape).ravel()

        logs = self._integrand(
            r.ravel(),
            _Rows(*(flat(column) for column in vars(rows).values())),
            top,
            (flat(np.where(from_left, ahead, np.inf)), flat(np.where(from_right, behind, np.inf))),
        )
        return logs.reshape(shape)

    def _integrand(
        self, r: Array, rows: _Rows, top: float, distances: tuple[Array, Array]
    ) -> Array:
        """Return the log of the integrand at distances from the ends, those not near infinite."""
        shift, (ahead, behind) = self._shift, distances
        widest = self.spread(r)
        left_over = np.maximum(widest - rows.loss, 1e-16 * widest)
        if top < math.inf:
            left_over = np.where(np.abs(widest - top) < _ROUNDED * top, rows.rest, left_over)
        for end, apart, is_near_one in (
            (rows.left, ahead, rows.left_kind == 1),
            (rows.right, -behind, rows.right_kind == 1),
        ):
            near = is_near_one & (np.abs(apart) <= _NEAR * np.minimum(end, shift))
            if near.any():
                near_end, step = end[near], apart[near]
                left_over[near] = self.rise(near_end + shift, step) - self.rise(near_end, step)
        u, lack = np.empty(r.shape), np.empty(r.shape)
        close = left_over < 0.5 * rows.loss
        for chosen, target, start, way in (
            (close, lack, r + shift, -1.0), (~close, u, r, 1.0)
        ):  # fmt: skip
            if chosen.any():
                wanted = left_over if way < 0 else rows.loss
                target[chosen] = self._advance(start[chosen], wanted[chosen], shift, way)
        u[close], lack[~close] = shift - lack[close], shift - u[~close]
        excess = 2.0 * r + u - shift
        near = (rows.left_kind == 2) & (ahead <= _NEAR * np.minimum(rows.left, shift))
        if near.any():
            near_end, step = rows.left[near], ahead[near]
            start = shift - near_end - step
            rise = self.rise(start, step) + self.rise(near_end, step)
            excess[near] = self._advance(start, rise, math.inf, 1.0)
        rho = r + u
        with np.errstate(all="ignore"):
            log_integrand = (
                np.log(r) + np.log(rho) + np.log(r + rows.unit) - np.log(self._slope(rho))
            )
            log_integrand -= self._psi(r)
            if self._d != 3:
                around = np.log(np.maximum(lack, 1e-300)) + np.log(2.0 * shift - lack)
                around += np.log(np.maximum(excess, 1e-300)) + np.log(2.0 * shift + excess)
                log_integrand += 0.5 * (self._d - 3) * around
        return np.where(np.isfinite(log_integrand), log_integrand, -np.inf)


@dataclass
class _Rows:
    """Losses, how far they lie below a value, and between which r: ends of u = D (1), v = D (2)."""

    loss: Array
    rest: Array
    left: Array
    right: Array
    unit: Array  # of lengths, where the coordinate turns from r to log r
    left_kind: Array
    right_kind: Array


def _soft(w: Array) -> Array:
    """Return log(1 + e^w)."""
    return np.where(w.real > 0, w, 0.0) + np.log1p(np.exp(np.where(w.real > 0, -w, w)))


@dataclass(frozen=True)
class _Cell:
    """λ = low + (high − low)/(1 + e^{−w}), or low + scale·log(1 + e^w), w = x − offset."""

    low: float
    high: float
    scale: float
    offset: float = 0.0

    def value(self, w: Array) -> tuple[Array, Array, Array]:
        """Return λ, how far it is below the upper end, and log |dλ/dw|."""
        near = _soft(w)
        if math.isinf(self.high):
            return self.low + self.scale * near, np.full(w.shape, np.inf), self._log + w - near
        width, far = self.high - self.low, _soft(-w)
        below = width * np.exp(-near)
        loss = np.where(w.real < 0, self.low + width * np.exp(-far), self.high - below)
        return loss, below, self._log - near - far

    @property
    def _log(self) -> float:
        return math.log(self.scale if math.isinf(self.high) else self.high - self.low)

    def ball(self, w: arb) -> arb:
        """Return λ in a ball."""
        if math.isinf(self.high):
            return arb(self.low) + self.scale * (
                w.exp().log1p() if w < 0 else w + (-w).exp().log1p()
            )
        return arb(self.low) + (arb(self.high) - self.low) / (1 + (-w).exp())

    def place(self, loss: Array) -> Array:
        """Return w."""
        with np.errstate(all="ignore"):
            if math.isinf(self.high):
                share = (loss - self.low) / self.scale
                return np.asarray(share + np.log(-np.expm1(-share)))
            return np.asarray(np.log((loss - self.low) / (self.high - loss)))


class _RadialChart(Chart):
    """The log likelihood ratio over cells of x ≥ 0, and odd in x; of samples at a rate."""

    def __init__(self, table: _Tabulated, rate: float) -> None:
        self._cells, self._edges, self._rate = table.cells, np.asarray(table.edges), rate
        inner = table.edges[1:-1]
        start = [0.0] if table.starts_apart else []
        self.breaks = (*(-edge for edge in inner[::-1]), *start, *inner)

    def _number(self, size: Array) -> NDArray[np.intp]:
        return np.clip(
            np.searchsorted(self._edges, size, side="right") - 1, 0, len(self._cells) - 1
        )

    def plain(self, x: Array) -> Array:
        """Return λ; places may be complex."""
        x = np.asarray(x)
        sign = np.where(x.real < 0, -1.0, 1.0)
        size, loss = sign * x, np.empty_like(x)
        number = self._number(size.real)
        for k, cell in enumerate(self._cells):
            in_cell = number == k
            if in_cell.any():
                loss[in_cell] = cell.value(size[in_cell] - cell.offset)[0]
        return np.asarray(sign * loss)

    def ratio(self, x: Array) -> Array:
        """Return the log of 1 − q + qe^λ."""
        plain = self.plain(x)
        if self._rate == 1.0:
            return plain
        with np.errstate(all="ignore"):
            small = np.log1p(self._rate * np.expm1(plain))
            large = plain + np.log(self._rate - (self._rate - 1.0) * np.exp(-plain))
        return np.where(plain.real > 30.0, large, small)

    def ball(self, x: arb) -> arb:
        """Return the same in a ball."""
        size, sign = abs(x), -1 if x < 0 else 1
        cell = self._cells[int(self._number(np.asarray(float(size.mid()))))]
        plain = sign * cell.ball(size - cell.offset)
        return plain if self._rate == 1.0 else (self._rate * plain.expm1()).log1p()

    def place(self, ratio: Array) -> Array:
        """Return where it has values, infinite where it has them nowhere."""
        plain = np.asarray(ratio, dtype=np.float64)
        with np.errstate(all="ignore"):
            if self._rate < 1.0:
                above = np.where(
                    plain > 30.0,
                    plain + np.log1p(-(1 - self._rate) * np.exp(-plain)) - math.log(self._rate),
                    np.log1p(np.expm1(plain) / self._rate),
                )
                plain = np.where(np.isnan(above), -np.inf, above)
        size, places = np.abs(plain), np.full(plain.shape, np.inf)
        for cell, low, high in zip(self._cells, self._edges[:-1], self._edges[1:], strict=True):
            in_cell = (size >= max(cell.low, 0.0)) & (size < cell.high)
            places[in_cell] = np.clip(cell.place(size[in_cell]) + cell.offset, low, high)
        return np.asarray(np.copysign(places, plain))


def _cells(noise: _Noise) -> list[_Cell]:
    values = noise.values
    ends = [0.0, *values] if noise.is_singular_at_0 or not values else [-values[0], *values]
    cells = [_Cell(low, high, 0.0) for low, high in pairwise(ends)]
    if noise.is_bounded:
        return cells
    low = ends[-1]
    away = (low or 1.0) * np.exp2(np.arange(-30.0, 60.0))
    height = noise.log_density(low + away, np.full(away.shape, np.inf), math.inf, _ORDER)
    best = int(np.argmax(np.where(np.isfinite(height), height + np.log(away), -np.inf)))
    return [*cells, _Cell(low, math.inf, float(away[best]))]


_DEGREE = 23  # of a panel's series
# of a panel, and from the values there to the coefficients
_NODES = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
_SERIES = np.linalg.inv(np.polynomial.chebyshev.chebvander(_NODES, _DEGREE)).T  # rows of them


class _Panels:
    """log p |dλ/dw| over one cell: ends of panels in w, values at the nodes, and their errors."""

    def __init__(self, noise: _Noise, cell: _Cell, peak: float) -> None:
        self._noise, self._cell = noise, cell
        is_top, is_central = math.isinf(cell.high), cell.low < 0
        first = 0.0 if is_central else (_DIRECT if cell.low else _DIRECT_AT_0)
        self._direct = _DIRECT_LEVEL if noise.is_level else _DIRECT
        last = 800.0 if is_top else -self._direct
        grid = np.append(np.arange(first, last, _WIDTH), last)
        height = self._found(grid, _CHECKED // 2)
        self.peak = max(peak, float(height.max()))
        kept = np.flatnonzero(height > self.peak - _FLOOR)
        if not kept.size:
            kept = np.asarray([int(height.argmax())])
        low, high = max(kept[0] - 1, 0), min(kept[-1] + 1, grid.size - 1)
        edges = self._first(grid[low : high + 1], height[low : high + 1])
        self.edges, self.values, self.error = self._settled(edges)
        if low == 0 and not is_central:
            self._continue(-1.0, first, _DEEP if cell.low else _DEEPEST)
        if high == grid.size - 1 and not is_top:
            self._continue(1.0, self._direct, _DEEP)

    def _found(self, w: Array, order: int = _ORDER) -> Array:
        loss, below, log_slope = self._cell.value(w)
        top = self._cell.high
        log_density = self._noise.log_density(loss, below, top, order) + log_slope
        return np.where(
            np.isfinite(log_density), np.maximum(log_density, -9.0 * _FLOOR), -9.0 * _FLOOR
        )

    def _first(self, grid: Array, height: Array) -> Array:
        """Return edges that are closest around w = 0, no panel rising by much."""
        edges = [grid[0]]
        for k in range(1, grid.size):
            wide = max(_WIDTH, 0.4 * min(abs(edges[-1]), abs(grid[k])))
            before = np.interp(edges[-1], grid, height)
            is_short = k < grid.size - 1 and grid[k + 1] - edges[-1] <= wide
            if is_short and abs(height[k + 1] - before) <= _RISE:
                continue
            parts = max(1, math.ceil(min(abs(height[k] - before), 1e3) / _RISE))
            edges += np.linspace(edges[-1], grid[k], parts + 1)[1:].tolist()
        return np.asarray(edges)

    def _settled(self, edges: Array) -> tuple[Array, Array, Array]:
        """Return edges in order, the values at the nodes of each panel, and errors."""
        low, high = edges[:-1], edges[1:]
        done: list[tuple[float, float, Array, float]] = []
        is_top = math.isinf(self._cell.high)
        while low.size:
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            values = self._found((middle[:, None] + half[:, None] * _NODES).ravel())
            values = values.reshape(low.size, -1)
            series = values @ _SERIES
            size = np.abs(values).max(axis=1) + 4.0
            tail = np.abs(series[:, -3:]).max(axis=1)
            left = -low if self._cell.low else np.zeros(low.shape)
            right = 0.0 if is_top or self._noise.is_level else high
            near = np.exp(np.minimum(np.maximum(left, right), -_DIRECT))
            good = (tail <= 2e-15 * (size + near)) | (half < 0.4)
            done += zip(low[good], high[good], values[good], tail[good], strict=True)
            low, high = (
                np.concatenate([low[~good], middle[~good]]),
                np.concatenate([middle[~good], high[~good]]),
            )
        done.sort(key=lambda panel: float(panel[0]))
        starts, ends, rows, tails = (np.asarray(column) for column in zip(*done, strict=True))
        off_nodes = 0.31
        aside = 0.5 * (starts + ends) + 0.5 * off_nodes * (ends - starts)
        series = rows @ _SERIES
        predicted = np.polynomial.chebyshev.chebval(off_nodes, series.T)
        gap = np.abs(predicted - self._found(aside, _CHECKED))
        return np.append(starts, ends[-1]), rows, np.nan_to_num(tails + gap, nan=math.inf)

    def _continue(self, way: float, start: float, deep: float) -> None:
        """Continue by a line, which log p is in w next to a value of Λ."""
        places = -way * np.asarray([start, start + 2.0, start - 2.0])
        near, inner, check = self._found(places).tolist()
        slope = 0.5 * (near - inner)  # for each unit of w outwards
        if not slope < 0:
            raise AccuracyError("the density of the loss has no end that is seen next to a value")
        length = min(start - deep, (near - self.peak + _FLOOR) / -slope)
        if not length > 0:
            return
        parts = max(1, math.ceil(-slope * length / _RISE))
        ends = np.linspace(0.0, length, parts + 1)
        middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * np.diff(ends)
        rows = near + slope * (middle[:, None] + way * half[:, None] * _NODES)
        gap = abs(check - near - 2.0 * slope) + math.exp(slope * length)
        edges = -way * start + way * ends[1:]
        panels, more = (self.edges, self.values), (edges[:: int(way)], rows[:: int(way)])
        first, last = (panels, more) if way > 0 else (more, panels)
        self.edges, self.values = np.append(first[0], last[0]), np.vstack([first[1], last[1]])
        self.error = np.concatenate((np.full(parts, gap), self.error)[:: -int(way)])


@dataclass(frozen=True)
class _Tabulated:
    table: LogDensityTable
    cells: tuple[_Cell, ...]
    edges: tuple[float, ...]
    starts_apart: bool  # whether p is singular at 0
    log_infinite: float
    top: float


def _tabulated(noise: _Noise) -> _Tabulated:
    """Return the log density of the loss under Q on panels of x, x < 0 that of losses below 0."""
    cells, edges, peak = [], [0.0], -math.inf
    places: list[Array] = [np.zeros(1)]
    with_record: list[Array] = []
    losses: list[Array] = []
    errors: list[Array] = []
    for cell in _cells(noise):
        panels = _Panels(noise, cell, peak)
        peak = panels.peak
        start = panels.edges[0]
        placed = replace(cell, offset=edges[-1] - float(start))
        middle, half = 0.5 * (panels.edges[1:] + panels.edges[:-1]), 0.5 * np.diff(panels.edges)
        nodes = middle[:, None] + half[:, None] * _NODES
        losses.append(cell.value(nodes.ravel())[0].reshape(nodes.shape))
        with_record.append(panels.values)
        # Series add up to logs that are rounded, those of Q less by λ.
        size = (np.abs(panels.values) + np.abs(losses[-1])).max(axis=1)
        errors.append(panels.error + 16.0 * np.finfo(float).eps * size)
        places.append(panels.edges[1:] + placed.offset)
        edges.append(float(places[-1][-1]))
        cells.append(placed)
    right, values = np.concatenate(places), np.vstack(with_record)
    series, other = values @ _SERIES, (values - np.vstack(losses)) @ _SERIES
    flipped = (series * (-1.0) ** np.arange(_DEGREE + 1))[::-1]
    error = np.concatenate(errors)
    coefficients = np.vstack([flipped, other])
    table = LogDensityTable(
        np.concatenate([-right[:0:-1], right]), coefficients, np.concatenate([error[::-1], error])
    )
    log_mass = float(np.logaddexp.reduce(table.rule(math.inf)[1]))
    gap = abs(math.expm1(log_mass))
    if not gap < 1e-7:  # counted with the errors
        raise AccuracyError(
            f"the density of its loss integrates numerically to {1.0 + gap!r}, not 1"
        )
    coefficients[:, 0] -= log_mass
    table = replace(table, error=table.error + gap)
    infinite = -math.inf if noise.is_bounded else float(values[-1].min()) + 3.0
    top = noise.values[-1] if noise.is_bounded else math.inf
    return _Tabulated(table, tuple(cells), tuple(edges), cells[0].low == 0, infinite, top)


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
    bounds = -table.top, table.top
    if rate < 1.0:
        low, high = (math.expm1(min(end, 700.0)) for end in bounds)
        bounds = math.log1p(rate * low), math.log1p(rate * high) if table.top < 700.0 else math.inf
    law = RadialLaw(table.table, chart, direction, name, table.log_infinite, bounds)
    if table.log_infinite > -math.inf:
        law.uncertain_mass = math.exp(table.log_infinite)
    return law
