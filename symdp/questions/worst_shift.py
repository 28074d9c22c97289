r"""Noise of several modes: one pair that dominates every shift of it by at most the sensitivity D.

One step's profile is δ*(α) = sup over |d| ≤ D of H_α(f(· − d) ‖ f), α = e^ε: convex in α, so that
it belongs to a pair, which composes [Zhu, Dong, Wang 2022]. From above, at each α of a table:

- f is enclosed on cells of width h = D/K by ball arithmetic, its mass in each, and |f″|. For a
  shift kh, cells of P and Q are the same; a cell of masses a, b on which P/Q lies in [r, R] counts
  at most as much as two outcomes of ratios r and R that share a and b.
- For d between two such shifts, (1 − θ)f(· − kh) + θf(· − (k+1)h) lies below the larger of both,
  as H is convex, and above f(· − d) but for h²|f″|/8; that is counted where P/Q may exceed α.
- What is not on the cells counts as an infinite loss; for integers there is nothing between shifts.

The table's points stand on a lattice of losses, dense around 0, which sums of many steps keep.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from symdp.model.curve_tables import exponential, profile_pair
from symdp.model.noise_shape import centre_of
from symdp.questions.noise_cells import ROUNDING, Cells, cells_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.model.mechanism import Mechanism

    Array = NDArray[np.float64]

_DENSE = 90  # points of the table on either side of 0, one lattice step apart
_GROWTH = 1.06  # of their distances further out
_FINE = 24  # lattice steps in a standard deviation of the loss
_INFINITE = 1e200  # a ratio that counts as one
_NOTHING = 1e-17  # of δ: the table ends where no more is left


@lru_cache(maxsize=64)
def worst_pair(mechanism: Mechanism) -> Mechanism:
    """Return a pair of lists that dominates each shift by at most D, Poisson sampling included.

    Parameters
    ----------
    mechanism
        Additive noise with all values, on all records or under Poisson sampling.

    Raises
    ------
    AccuracyError
        If the density cannot be enclosed on cells, or has too wide a range.

    Examples
    --------
    >>> from symdp.model.mechanism import Mechanism
    >>> k = sp.Symbol("k", integer=True)
    >>> two = Mechanism.additive(sp.exp(-abs(abs(k) - 2)), k, 2, "integers", normalize=True)
    >>> worst_pair(two).is_given
    True
    """
    rate = sp.S.One if mechanism.sampling is None else mechanism.sampling.rate
    q = Fraction(int(rate.p), int(rate.q)) if rate.is_Rational else exponential(sp.log(rate))
    shifts = _Shifts(cells_of(replace(mechanism, sampling=None, relation=None)), mechanism)
    spacing, last = shifts.scale(float(q))
    corners = []
    size = sp.Rational(spacing)
    if q < 1:  # the least loss is on the lattice
        least = -sp.log(1 - sp.Rational(q))
        size = least / sp.ceiling(least / size)
    levels = [exponential(size * j) for j in _places(last)]
    # Under Poisson sampling H_α of the mixture is q H at 1 + (α − 1)/q, and 1 − α below 1 − q.
    inner = [(y, 1 + (y - 1) / q) for y in levels if y > 1 - q]
    found = shifts.profile([_down(max(a, 1 / a)) for _, a in inner])
    for (y, a), delta in zip(inner, found, strict=True):
        own = Fraction(delta)
        own = own if a >= 1 else 1 - a + a * own
        corners.append((y, min(Fraction(1), max(1 - y, q * own))))
    return profile_pair(corners, mechanism.name)


def _down(value: Fraction) -> float:
    return math.nextafter(float(value), 0.0) if value > 1 else 1.0


def _places(last: int) -> list[int]:
    """Return multiples of the lattice's spacing: all near 0, then ever fewer."""
    places, place = list(range(_DENSE)), float(_DENSE)
    while places[-1] < last:
        places.append(math.ceil(place))
        place *= _GROWTH
    return sorted({sign * place for place in places for sign in (-1, 1)})


class _Shifts:
    """Profiles of all shifts of a density against itself."""

    def __init__(self, cells: Cells, mechanism: Mechanism) -> None:
        density, x = mechanism.source.density, mechanism.variable  # type: ignore[union-attr]
        even = centre_of(density, x, mechanism.support) is not None
        self.sides = [cells] if even else [cells, cells.mirrored()]

    def scale(self, rate: float) -> tuple[Fraction, int]:
        """Return a lattice's spacing, a power of two, and how many of them the largest loss has."""
        epsilons = np.linspace(0.0, 60.0, 241)
        alphas = np.exp(epsilons)
        cells = self.sides[0]
        rough = np.max([_of_shift(c, k, alphas) for c in self.sides for k in _some(c)], axis=0)
        floor = cells.beyond + _NOTHING
        last = float(epsilons[min(int(np.sum(rough > 2.0 * floor)), epsilons.size - 1)])
        spread = 2.5 * float(rough[0])  # of a normal loss of this total variation
        spread, last = rate * spread, math.log1p(rate * math.expm1(last))
        spacing = Fraction(2) ** math.floor(math.log2(min(spread / _FINE, last / _DENSE)))
        return spacing, math.ceil(last / spacing)

    def profile(self, alphas: list[float]) -> list[float]:
        """Return upper bounds on δ* at each α ≥ 1."""
        order = np.argsort(alphas)
        at = np.asarray(alphas)[order]
        best = np.zeros(at.size)
        for cells in self.sides:
            before = np.zeros(at.size)  # of no shift
            for k in range(1, cells.shifts + 1):
                own = _of_shift(cells, k, at)
                here = np.maximum(before, own)
                if cells.bend is not None:
                    here = here + _of_between(cells, k, at)
                best, before = np.maximum(best, here), own
        found = np.empty(at.size)
        found[order] = np.minimum(best * (1.0 + ROUNDING), 1.0)
        return [float(value) for value in found]


def _some(cells: Cells) -> list[int]:
    return sorted({max(1, cells.shifts * j // 8) for j in range(1, 9)})


def _moved(values: Array, k: int) -> Array:
    """Return the values of f(· − kh) on the cells of f, and on the k cells beyond."""
    return np.concatenate([np.zeros(k), values])


def _of_shift(cells: Cells, k: int, alphas: Array) -> Array:
    """Return upper bounds on H_α(f(· − kh) ‖ f) at sorted α ≥ 1."""
    none = np.zeros(k)
    a, b = _moved(cells.most, k), np.concatenate([cells.least, none])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lowest = _moved(cells.low, k) / np.concatenate([cells.high, np.full(k, math.inf)])
        highest = _moved(cells.high, k) / np.concatenate([cells.low, none])
    lowest = np.where(lowest < _INFINITE, lowest, 0.0) * (1.0 - ROUNDING)
    highest = np.where(highest < _INFINITE, highest, math.inf) * (1.0 + ROUNDING)
    used = (a > 0.0) & (highest > alphas[0])
    a, b, lowest, highest = a[used], b[used], lowest[used], highest[used]
    over = np.maximum(a - lowest * b, 0.0)
    finite = np.isfinite(highest) & (highest > lowest)
    gap = np.where(finite, highest - lowest, 1.0)
    far = np.where(finite, over / gap, 0.0)
    near = b - far
    constant = cells.beyond + float(np.sum(over[~finite]))
    near[~finite] = b[~finite]
    total = _sum_above(lowest, near, alphas) + _sum_above(highest[finite], far[finite], alphas)
    return np.asarray(total + constant)


def _sum_above(ratios: Array, masses: Array, alphas: Array) -> Array:
    """Return Σ m (r − α)⁺ at each α."""
    place = np.searchsorted(alphas, ratios, side="left")
    count = alphas.size + 1
    held = np.bincount(place, masses, count)[::-1].cumsum()[::-1]
    first = np.bincount(place, masses * ratios, count)[::-1].cumsum()[::-1]
    return np.asarray(np.maximum(first[1:] - alphas * held[1:], 0.0))


def _of_between(cells: Cells, k: int, alphas: Array) -> Array:
    """Return what a shift between (k − 1)h and kh may add to the larger of both."""
    assert cells.bend is not None
    h, edge = cells.width, np.full(1, math.inf)
    inner = (np.maximum, np.minimum, np.maximum)
    # Of f(x − d), x in cell i, two neighbours are seen: i − k and i − k + 1.
    high, low, bend = (
        np.concatenate([end, pick(part[:-1], part[1:]), end])
        for pick, part, end in zip(
            inner,
            (cells.high, cells.low, cells.bend),
            (np.zeros(1), np.zeros(1), edge),
            strict=True,
        )
    )
    high[0], high[-1] = cells.high[0], cells.high[-1]
    added = _moved(h * np.minimum(h * h * bend / 8.0, high - low), k - 1)
    top = _moved(high, k - 1)
    own = np.zeros(top.size)
    own[: cells.low.size] = cells.low
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(top > 0.0, top / own * (1.0 + ROUNDING), 0.0)
    place = np.searchsorted(alphas, ratio, side="left")
    sums = np.bincount(place, added, alphas.size + 1)[::-1].cumsum()[::-1]
    return np.asarray(sums[1:])
