"""The law of one step from its density, in NumPy, as every emitted exact accountant builds it."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

# What each file puts in front.
KIND_OF_SUPPORT = "interval"
KIND: list[int] = []
FLAT: list[int] = []
LOWER: list[int] = []
UPPER: list[int] = []
LOSS: list[int] = []
PIECES: list[Any] = []

# ---- emitted from here on ----

GAUSS = 20  # nodes of a panel
DEEPEST = 60  # halvings of a panel
MOST_NODES = 200_000
NEGLIGIBLE = 1e-18  # relative: what a sum leaves out
CLOSE = 1e-14  # relative: a panel and its halves, which are far closer
MOST_TURN = 10.0  # radians by which a loss may turn within a panel


class NoAnswerError(ArithmeticError):
    """No number can be given; the message says why."""


class _TooFarError(ArithmeticError):
    """There is no moment generating function at a tilt."""


def _mapped(function: Any) -> Any:
    return lambda x: np.frompyfunc(function, 1, 1)(x).astype(float)


_erf, _erfc, _gamma, _lgamma = map(_mapped, (math.erf, math.erfc, math.gamma, math.lgamma))


def _log_ratio(difference: Any, a: Any, b: Any) -> Any:
    near = np.abs(difference) < np.abs(b) / 2
    return np.where(near, np.log1p(difference / b), np.log(a) - np.log(b))


def _log_sum_exp(*pairs: Any) -> Any:
    c, a = (np.stack(np.broadcast_arrays(*pairs)[k::2]).astype(float) for k in (0, 1))
    height = np.where(c > 0, np.log(np.abs(c)) + a, -np.inf)
    pivot = height.argmax(axis=0)[None]
    top, peak = np.take_along_axis(c, pivot, 0), np.take_along_axis(a, pivot, 0)
    shares = c * np.exp(a - peak) / top
    np.put_along_axis(shares, pivot, 0.0, 0)
    value = (peak + np.log(top))[0] + np.log1p(shares.sum(axis=0))
    return np.where(np.isfinite(peak[0]), value, peak[0])


def _unit_log_sum_exp(*pairs: Any) -> Any:
    total = 0.0
    for c, a in zip(pairs[::2], pairs[1::2], strict=True):
        total = total + c * np.expm1(a)
    near = (total > -0.5) & np.isfinite(total)
    return np.where(near, np.log1p(np.where(near, total, 0.0)), _log_sum_exp(*pairs))


def _gauss_rule() -> tuple[Any, Any]:
    """Return places and weights, correctly rounded: an error is the same in every panel."""
    places, weights = [], []
    with localcontext() as context:
        context.prec = 40
        for i in range(GAUSS // 2):
            x = Decimal(math.cos(math.pi * (i + 0.75) / (GAUSS + 0.5)))
            slope = Decimal(1)
            for _ in range(8):
                before, value = Decimal(1), x
                for k in range(2, GAUSS + 1):
                    before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
                slope = GAUSS * (before - x * value) / (1 - x * x)
                x -= value / slope
            places.append(float(x))
            weights.append(float(2 / ((1 - x * x) * slope * slope)))
    return np.array(places + [-x for x in places]), np.array(weights * 2)


_PLACES, _WEIGHTS = _gauss_rule()


def _look(piece: int, x: Any, c: Any, side: int) -> tuple[Any, Any]:
    """Return the log density of the law asked for, and the loss."""
    x = np.asarray(x, dtype=float)
    with np.errstate(all="ignore"):
        log_p, log_q, loss = (np.broadcast_to(v, x.shape) for v in PIECES[piece](x, c))
    density = log_p if side > 0 else log_q
    return np.where(np.isnan(density), -np.inf, density), side * loss


def _height(log_p: Any, loss: Any, tilt: float) -> Any:
    """Return log density plus tilt times loss, where a loss may be infinite."""
    with np.errstate(all="ignore"):
        return log_p if tilt == 0.0 else np.where(log_p > -np.inf, log_p + tilt * loss, -np.inf)


class _Law:
    """One step: losses with probabilities, for tilts up to one and frequencies up to another."""

    def __init__(self, c: Any, side: int, reach: float, frequency: float) -> None:
        found: list[tuple[Any, Any, bool]] = []
        for piece, kind in enumerate(KIND):
            if side * kind < 0:
                continue
            tilts = np.array([0.0] if kind else [0.0, 0.5 * reach, reach])
            low, high = c[LOWER[piece]], c[UPPER[piece]]
            if KIND_OF_SUPPORT == "points":
                loss, weight = (
                    np.array([side * c[LOSS[piece]]]),
                    np.array([low if side > 0 else high]),
                )
            elif KIND_OF_SUPPORT == "integers":
                loss, weight = _integers(piece, c, side, tilts, low, high)
            else:
                turning = 0.0 if FLAT[piece] else frequency
                loss, weight = _interval(piece, c, side, tilts, low, high, turning)
            found.append((loss, weight, bool(FLAT[piece])))
        loss = np.concatenate([one for one, _, _ in found])
        weight = np.concatenate([one for _, one, _ in found])
        atomic = np.concatenate([np.full(one.size, flat) for one, _, flat in found])
        total = math.fsum(weight.tolist())
        if not abs(total - 1.0) < 1e-9:
            raise NoAnswerError("the density does not add up to one here")
        weight = weight / total
        finite = np.isfinite(loss) & (weight > 0.0)
        self.escaped = math.fsum(weight[np.isposinf(loss)].tolist())
        self.loss, self.weight, self.atomic = loss[finite], weight[finite], atomic[finite]

    def tilted(self, t: float) -> tuple[float, float, float, Any]:
        """Return mean, variance and K of the tilted law, and its weights."""
        scaled = t * self.loss
        top = float(scaled.max())
        u = self.weight * np.exp(scaled - top)
        total = math.fsum(u.tolist())
        u = u / total
        mean = math.fsum((u * self.loss).tolist())
        variance = math.fsum((u * (self.loss - mean) ** 2).tolist())
        if top > 300.0:
            return mean, variance, top + math.log(total), u
        growth = math.fsum((self.weight * np.expm1(scaled)).tolist()) - self.escaped
        return mean, variance, math.log1p(growth), u


def _outline(piece: int, c: Any, low: float, high: float) -> Any:
    """Return places between which a piece is first looked at, geometric around modes."""
    anchor = low if math.isfinite(low) else high if math.isfinite(high) else 0.0
    powers = np.exp2(np.arange(-30.0, 41.0))
    grid = np.sort(np.concatenate([[anchor], anchor + powers, anchor - powers]))
    places = [end for end in (low, high) if math.isfinite(end)]
    for side in (1, -1):

        def value(x: Any, side: int = side) -> Any:
            x = np.asarray(x, dtype=float)
            inside = (x > low) & (x < high)
            middle = np.where(inside, x, anchor)
            return np.where(inside, _look(piece, middle, c, side)[0], -np.inf)

        heights = value(grid)
        for i in range(1, grid.size - 1):
            if heights[i] == -np.inf or heights[i] < max(heights[i - 1], heights[i + 1]):
                continue
            a, best, b, peak = grid[i - 1], grid[i], grid[i + 1], heights[i]
            for _ in range(100):  # golden section
                x = (
                    best - 0.381966 * (best - a)
                    if best - a > b - best
                    else best + 0.381966 * (b - best)
                )
                height = float(value(x))
                if height > peak:
                    a, b, best, peak = (a, best, x, height) if x < best else (best, b, x, height)
                elif x < best:
                    a = x
                else:
                    b = x
            scales = np.exp2(np.arange(-40.0, 41.0))
            fallen = np.maximum(value(best + scales), value(best - scales)) < peak - 0.5
            scale = float(scales[fallen.argmax()]) if fallen.any() else 1.0
            steps = scale * np.exp2(np.arange(-2.0, 41.0))
            around = np.concatenate([[best], best + steps, best - steps])
            places += around[(around > low) & (around < high)].tolist()
    return np.unique(places)


def _interval(
    piece: int, c: Any, side: int, tilts: Any, low: float, high: float, frequency: float
) -> tuple[Any, Any]:
    """Return losses and weights on a piece, from panels that are halved until they agree."""

    def measure(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
        half = 0.5 * (b - a)[:, None]
        log_p, loss = _look(piece, 0.5 * (a + b)[:, None] + half * _PLACES, c, side)
        with np.errstate(all="ignore"):
            sums = [
                (half * _WEIGHTS * np.exp(_height(log_p, loss, t) - peak)).sum(axis=1)
                for t, peak in zip(tilts, peaks, strict=True)
            ]
            seen = np.where(log_p > -np.inf, loss, np.nan)
            spread = np.fmax.reduce(seen, 1) - np.fmin.reduce(seen, 1)
            turn = np.nan_to_num(frequency * spread)
        return log_p, loss, np.stack(sums), turn

    places = _outline(piece, c, low, high)
    a, b = places[:-1], places[1:]
    if not a.size:
        raise NoAnswerError("no mass is seen on a piece of the support")
    log_p, loss = _look(piece, 0.5 * (a + b)[:, None] + 0.5 * (b - a)[:, None] * _PLACES, c, side)
    peaks = [float(_height(log_p, loss, t).max()) for t in tilts]
    if peaks[0] == -np.inf:
        return np.empty(0), np.empty(0)
    whole = measure(a, b)[2]
    totals = whole.sum(axis=1, keepdims=True)
    if not np.isfinite(totals).all():
        raise _TooFarError
    totals = np.maximum(totals, 1e-300)
    for end, outer in ((low, 0), (high, -1)):
        if math.isinf(end) and (whole[:, outer] > 1e-9 * totals[:, 0]).any():
            raise _TooFarError
    losses, weights, count = [], [], 0
    for depth in range(DEEPEST + 1):
        middle = 0.5 * (a + b)
        parts = [measure(a, middle), measure(middle, b)]
        off = (np.abs(parts[0][2] + parts[1][2] - whole) / totals).max(axis=0)
        if np.isnan(off).any():
            raise NoAnswerError("the density has no value somewhere")
        share = np.maximum(*((part[2] / totals).max(axis=0) for part in parts))
        turns = (share > NEGLIGIBLE) & (np.maximum(parts[0][3], parts[1][3]) > MOST_TURN)
        again = ((off > CLOSE) | turns) & (middle > a) & (middle < b) & (depth < DEEPEST)
        if (off[~again] > 1e3 * CLOSE).any():
            raise NoAnswerError("the density is too rough for this file")
        kept = ~again & (share > 1e-3 * NEGLIGIBLE)
        for log_p, loss, _, _ in parts:
            quarter = 0.25 * (b - a)[kept][:, None]
            losses.append(loss[kept].ravel())
            weights.append((quarter * _WEIGHTS * np.exp(log_p[kept])).ravel())
            count += losses[-1].size
        if count > MOST_NODES:
            raise NoAnswerError("the loss needs too many nodes")
        if not again.any():
            break
        ends = a[again], middle[again], b[again]
        a, b = np.concatenate(ends[:2]), np.concatenate(ends[1:])
        whole = np.concatenate([part[2][:, again] for part in parts], axis=1)
    return np.concatenate(losses), np.concatenate(weights)


def _integers(
    piece: int, c: Any, side: int, tilts: Any, low: float, high: float
) -> tuple[Any, Any]:
    start = low if math.isfinite(low) else high if math.isfinite(high) else 0.0
    size = 256
    while size <= MOST_NODES:
        x = np.arange(max(low, start - size), min(high, start + size) + 1.0)
        log_p, loss = _look(piece, x, c, side)
        heights = np.stack([_height(log_p, loss, t) for t in tilts])
        falls = heights < heights.max(axis=1, keepdims=True) - 60.0
        if (x[0] == low or falls[:, 0].all()) and (x[-1] == high or falls[:, -1].all()):
            return loss, np.exp(log_p)
        size *= 4
    raise _TooFarError
