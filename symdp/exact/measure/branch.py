"""The density of the loss where it is monotone: f(s) = P(x)/|ℓ′(x)| at the x with ℓ(x) = s.

x is found by Newton's method within brackets of an outline; ℓ′(x) = Im ℓ(x + ih)/h, which does not
cancel however small h is. Both are rounded like doubles, which `interpolate` sees as noise. Ends
towards which f grows without bound, as where the loss turns, are refused: no series fits there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.exact.accuracy import EXTENDED, NEGLIGIBLE, ROUNDING, SETTLED
from symdp.law.outline import Outline
from symdp.law.step import Array, SmoothPiece

_SINGULAR = 0.02  # the least power of the distance from an end with which a density is infinite


class Branch:
    """One smooth piece on which the loss is monotone: x as a function of the loss.

    Attributes
    ----------
    range
        The least and the largest loss.

    Raises
    ------
    AccuracyError
        If the loss is not monotone, or its density grows without bound towards an end.
    """

    def __init__(self, outline: Outline, resolution: float) -> None:
        self._piece: SmoothPiece = outline.piece
        mass = outline.shells([0.0])[0]
        usable = np.isfinite(outline.loss) & np.isfinite(mass)
        x, loss, self._mass = outline.x[usable], outline.loss[usable], mass[usable]
        if x.size < 3:
            raise AccuracyError("a piece of the density is too narrow to convolve")
        self._losses, self._sign = loss, 1.0 if loss[-1] >= loss[0] else -1.0
        if (np.diff(loss) * self._sign < -SETTLED * np.abs(loss).max()).any():
            raise AccuracyError("the privacy loss is not seen to be monotone on a smooth piece")
        order = np.maximum.accumulate(loss * self._sign)
        keep = np.diff(order, prepend=-np.inf) > 0
        self._x, self._rising = x[keep], order[keep]
        self.range = float(loss.min()), float(loss.max())
        self._require_bounded(resolution)

    def _require_bounded(self, distance: float) -> None:
        """Raise where the density grows towards an end of the range, seen from a distance."""
        low, high = self.range
        for end, inward in ((low, 1.0), (high, -1.0)):
            if math.isfinite(end) and high - low > 2.0 * distance:
                near, far = self.log_density(end + inward * distance * np.asarray([1.0, 2.0]))
                if near > far + _SINGULAR * math.log(2.0):
                    raise AccuracyError("the density of the privacy loss is infinite at its end")

    def essential(self, floor: float) -> tuple[float, float]:
        """Losses between which everything that counts lies, where large ones do down to a floor."""
        with np.errstate(over="ignore"):
            other = self._mass - self._losses  # the law under Q counts as well
        low = self._losses[_with_neighbours(np.maximum(self._mass, other) > -1.5 * NEGLIGIBLE)]
        high = self._losses[_with_neighbours(self._mass > floor - 1.5 * NEGLIGIBLE)]
        if not (low.size and high.size):
            raise AccuracyError(
                "the mass of the density lies where doubles cannot tell its losses apart; use "
                "noise that is less large beside the sensitivity"
            )
        return float(low.min()), float(high.max())

    def log_density(self, s: Array) -> Array:
        """Return log of P(x)/|ℓ′(x)| at the x with ℓ(x) = s."""
        place = np.clip(np.searchsorted(self._rising, s * self._sign), 1, self._rising.size - 1)
        x = _root(self._loss_and_slope, s * self._sign, self._x[place - 1], self._x[place])
        inside = (s > self.range[0]) & (s < self.range[1])
        with np.errstate(all="ignore"):
            value = self._piece.log_p(x) - np.log(self._loss_and_slope(x)[1])
        return np.asarray(np.where(inside, value, -np.inf))

    def _loss_and_slope(self, x: Array) -> tuple[Array, Array]:
        """Return ℓ and ℓ′, with the sign that makes ℓ rise."""
        # h² is far below rounding.
        step = np.maximum(EXTENDED * np.abs(x), np.finfo(float).tiny)
        with np.errstate(all="ignore"):
            value = np.asarray(self._piece.loss(np.asarray(x + 1j * step))) * self._sign
            return np.real(value), np.imag(value) / step


def _root(
    function: Callable[[Array], tuple[Array, Array]], goal: Array, low: Array, high: Array
) -> Array:
    """Return where an increasing function, given with its slope, has values: Newton in brackets.

    A place that moves no less than before, and hardly at all, is as good as rounding allows.
    """
    goal, low, high = (a.astype(np.float64) for a in np.broadcast_arrays(goal, low, high))
    x = 0.5 * (low + high)
    before = np.full(x.size, np.inf)
    left = np.arange(x.size)
    for _ in range(80):  # more halvings than doubles have bits
        here = x[left]
        with np.errstate(all="ignore"):
            value, slope = function(here)
            value = value - goal[left]
            newton = here - value / slope
        high[left] = top = np.where(value > 0, here, high[left])
        low[left] = bottom = np.where(value > 0, low[left], here)
        within = (newton >= bottom) & (newton <= top)
        x[left] = fresh = np.where(within, newton, 0.5 * (bottom + top))
        moved = np.abs(fresh - here)
        settled = moved <= 2.0 * ROUNDING * np.abs(fresh)
        settled |= (moved <= SETTLED * np.abs(fresh)) & (moved >= 0.5 * before[left]) & within
        before[left] = moved
        left = left[~settled]
        if not left.size:
            break
    return np.asarray(x)


def _with_neighbours(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which places of a grid are chosen or next to one that is."""
    wide = np.pad(chosen, 1)
    return np.asarray(wide[:-2] | wide[1:-1] | wide[2:])
