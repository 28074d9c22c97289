"""A proved bound on |F − E₁| from the characteristic function itself, by Prawitz's smoothing.

For a distribution function F with characteristic function f, a smooth G with g, and every T > 0

    sup|F − G| ≤ (2/T)∫₀ᵀ |k(u/T)| |f − g| du + (2/T)∫₀ᵀ |k(u/T) − iT/(2πu)| |g| du
                 + (1/π)∫_T^∞ |g|/u du,

k(v) = ½(1 − |v|) + (i/2)((1 − |v|) cot πv + sgn(v)/π), where |k(v)| ≤ c/(2π|v|) and
|k(v) − i/(2πv)| ≤ ½(1 − |v| + π²v²/18). The second integral is about 1.2533/T. A bound that knows
moments only must stop at T ~ √n, where nothing is known of f any more, which makes it n^{−1/2}.
Here f is evaluated, bounded between the places by its derivatives, and T goes on as long as that
pays: for continuous losses |f| is tiny there, and what is left is the error of the series, O(1/n).
Where the loss has atoms |f| returns to one, and T stays before that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.methods.standard_moments import SUM_ROUNDING, StepRows, step_rows
from symdp.numeric.elementary import Complex
from symdp.numeric.nodes import log_characteristic, log_characteristic_grid

if TYPE_CHECKING:
    from symdp.methods.standard_moments import Summands
    from symdp.numeric.total import SumLaw

Array = NDArray[np.float64]

KERNEL = 1.0253  # c
_SERIES_END = 12.0  # deviations of u, where |g| is below 1e-28
_FINEST, _COARSEST, _SPACING = 2e-4, 0.02, 0.3  # of u: the last is divided by n^{1/3}
_CELL = 0.1  # width of cells where y times a step's deviation is one or more; in ratio before
_FARTHEST, _PER_ROOT = 4096.0, 4.0  # largest y of one deviation of a step, and how it grows with √n
_TURNS = 1e5  # of the whole range of a loss, which take a second to resolve
_NEARER = 8.0  # where the loss turns too fast to be integrated so far out
_LIGHT = 1e-20  # probability: losses less likely do not turn what is summed
_HALF_NORMAL = math.sqrt(0.5 * math.pi)

_known: WeakKeyDictionary[SumLaw, dict[float, float]] = WeakKeyDictionary()


def smoothing_error(law: SumLaw, origin: float, steps: Summands) -> float:
    """Return Δ ≥ sup|F − E₁| of the standardised sum under P_t, the least over T; kept for a law.

    Parameters
    ----------
    law, origin
        the total privacy loss, and the tilt t.
    steps
        moments of its summands at that tilt, of positive variance.
    """
    kept = _known.setdefault(law, {})
    if origin not in kept:
        kept[origin] = _least(law, origin, steps)
    return kept[origin]


def _least(law: SumLaw, origin: float, steps: Summands) -> float:
    near = _near(law, origin, steps)
    widest = max(part.widest for part in law.tilted(origin))
    longest = max(float(_length(rows).max()) for rows in step_rows(law, origin))
    turns = 2.0 * math.pi * _TURNS * widest / longest
    farthest = min(_FARTHEST, _PER_ROOT * math.sqrt(steps.count), turns)
    while True:
        try:
            edges, far = _far(law, origin, steps, farthest)
            break
        except AccuracyError:
            farthest /= _NEARER  # any T gives a bound
            if farthest < 1.0 / _NEARER:
                return 1.0
    total = near + np.concatenate([[0.0], np.cumsum(far)]) + _kernel_error(edges, steps)
    return float(total.min()) * (1.0 + SUM_ROUNDING)


def _kernel_error(ends: Array, steps: Summands) -> Array:
    """Return the second and third integral at each T ≥ 1: |g| = e^{−u²/2}√(1 + λ²u⁶/36)."""
    skew = abs(steps.skewness) / 6.0
    none, two = _HALF_NORMAL + 2.0 * skew, _HALF_NORMAL + 8.0 * skew  # ∫|g|, ∫u²|g|; ∫u|g| ≥ 1
    inner = (none - 1.0 / ends + math.pi**2 / 18.0 * two / ends**2) / ends
    beyond = np.exp(-0.5 * ends**2) / math.pi * (1.0 / ends**2 + skew * (ends + 1.0 / ends))
    return np.asarray(inner + beyond)


def _near(law: SumLaw, origin: float, steps: Summands) -> float:
    """Return a bound on (c/π)∫ |f − g|/u du over 0 < u ≤ 12.

    On a cell |D| is at most the line through its end values plus h²/8 · sup|D″|. D″ is known to
    h·sup|D‴| from second differences, and D = O(u⁴) on the first cells.
    """
    skew = abs(steps.skewness)
    # of S = Σ Xᵢ/σ: E S⁴ = 3 + κ₄/σ⁴, E|S|³ ≤ (E S⁴)^{3/4}, and as much for the series
    moment = 3.0 + abs(float(law.cumulants(origin, 4)[3])) / steps.variance**2
    third, fourth = moment**0.75 + 1.6 + 4.0 * skew, moment + 3.0 + 9.6 * skew
    h = min(_COARSEST, max(_FINEST, _SPACING * steps.count ** (-1.0 / 3.0)))
    count = math.ceil(_SERIES_END / h)
    u = h * np.arange(count + 2)
    log_f, error = _log_sum(law, origin, u / math.sqrt(steps.variance))
    series = np.exp(-0.5 * u * u) * (1.0 - 1j * steps.skewness * u**3 / 6.0)
    f = np.exp(log_f)
    unsure = np.abs(f) * np.expm1(np.minimum(error * (1.0 + np.abs(log_f)), 1.0))
    difference = f - series
    size = np.abs(difference) + unsure
    bend = np.zeros(count + 1)  # of second differences around the nodes 1, …, count
    bend[1:] = np.abs(difference[2:] - 2.0 * difference[1:-1] + difference[:-2])
    bend[1:] += unsure[2:] + 2.0 * unsure[1:-1] + unsure[:-2]
    left, right = u[:count], u[1 : count + 1]
    cell = np.maximum(bend[:count], bend[1:]) + 2.0 * h**3 * third
    cell = np.minimum(cell, 0.5 * h * h * fourth * right**2)  # as D = D′ = D″ = D‴ = 0 at u = 0
    value = np.maximum(size[:count], size[1 : count + 1]) + 0.125 * cell
    logarithm = np.log(right[1:] / left[1:])
    total = float(value[1:] @ logarithm) + fourth * h**4 / 96.0  # ∫₀ʰ M u³/24 du
    return float(KERNEL / math.pi * total)


def _far(law: SumLaw, origin: float, steps: Summands, farthest: float) -> tuple[Array, Array]:
    """Return places T from 12 on, and bounds on (c/π)∫ (|f| + |g|)/u du between them."""
    widest = max(part.widest for part in law.tilted(origin))
    per_turn = math.sqrt(steps.variance) / widest
    # v = yσ of the widest step: equal ratios below one, where 1 − |φ| grows like v², then multiples
    start = _SERIES_END / per_turn
    end = max(farthest, 2.0 * start)
    first = max(math.floor(start / _CELL), round(1.0 / _CELL)) + 1
    last = max(math.ceil(end / _CELL), first) + 1
    grid = _CELL * np.arange(first, last + 1, dtype=np.float64)
    ratio = math.log(grid[0] / start)
    below = grid[0] * np.exp(-ratio * np.linspace(1.0, 0.0, math.ceil(ratio / _CELL) + 1)[:-1])
    edges = np.concatenate([below, grid])
    slow = log_largest(law, origin, edges[: below.size + 1] / widest)
    fast = log_largest(law, origin, grid / widest, (_CELL / widest, first))
    log_f = np.concatenate([slow, fast])
    series = 1e-27 * (1.0 + abs(steps.skewness))
    bound = KERNEL / math.pi * np.log(edges[1:] / edges[:-1]) * (np.exp(log_f) + series)
    return np.asarray(edges * per_turn, dtype=np.float64), np.asarray(bound)


def _length(rows: StepRows) -> Array:
    """Return the range of the losses of each row that are not too unlikely to matter."""
    seen = rows.weight > _LIGHT
    high = np.where(seen, rows.deviation, -np.inf).max(axis=1)
    return np.asarray(high - np.where(seen, rows.deviation, np.inf).min(axis=1))


def log_largest(
    law: SumLaw, origin: float, y: Array, grid: tuple[float, int] | None = None
) -> Array:
    """Return a bound on log |f| between neighbours of rising y, a grid of a step and a first place.

    |φ|² of a step is the characteristic function of the difference of two independent losses, so
    that its second derivative is at most 2σ².
    """
    total, cell = np.zeros(y.size - 1), np.diff(y)
    if y.size < 2:
        return total
    for tilted, count in law.tilted_terms(origin, float(y[-1])):
        log_f = (
            log_characteristic(tilted, y)
            if grid is None
            else log_characteristic_grid(tilted, *grid, grid[1] + y.size)
        )
        square = np.exp(2.0 * log_f.real)
        total += count * _log_between(square, cell, tilted.variance, tilted.error)
    return total


def _log_between(square: Array, cell: Array, variance: float | Array, error: float) -> Array:
    larger = np.maximum(square[..., 1:], square[..., :-1])
    larger = larger + 0.25 * cell * cell * variance + SUM_ROUNDING + 8.0 * error
    return np.asarray(0.5 * np.log(np.minimum(larger, 1.0)))


def _log_sum(law: SumLaw, origin: float, y: Array) -> tuple[Complex, float]:
    """Return log f, the sum's mean taken out, and how far off it may be relative to itself."""
    spacing = float(y[1])
    parts = law.tilted(origin, float(y[-1]))
    total = np.zeros(y.size, dtype=np.complex128)
    for tilted, (_, count) in zip(parts, law.terms, strict=True):
        total += count * log_characteristic_grid(tilted, spacing, 0, y.size)
    return total, SUM_ROUNDING + 4.0 * max(tilted.error for tilted in parts)
