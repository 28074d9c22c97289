"""A stretch on which the privacy loss is monotone: x as a function of the loss, and its density."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.numeric.outline import Outline
from symdp.numeric.step import Array, SmoothPiece

_IMAGINARY = 1e-30  # an imaginary step this small differentiates without cancellation
_ROOTS = 80
_TINY, _SMALL = 1e-8, 1e-5  # of a piece
_ORDER = 0.5  # slopes that fall faster than this power of the distance make a turn
_NEGLIGIBLE = 60.0
_ROUNDED = 1e-15  # of x, and of what is made of it
_MARGIN = 2.0  # over the noise that was seen
_NEAR, _ADJACENT = 1e-6, 32  # where noise is looked for: a share of x, and doubles in a row
_AGREED = 1e-14  # two rules that differ by no more are right
_COARSE, _FINE = (np.polynomial.legendre.leggauss(count) for count in (16, 22))


class Branch:
    """One smooth piece on which the loss is monotone: x as a function of the loss.

    Attributes
    ----------
    range
        The least and the largest loss.
    """

    def __init__(self, outline: Outline) -> None:
        self.piece: SmoothPiece = outline.piece
        usable = np.isfinite(outline.loss) & np.isfinite(outline.log_p)
        x, loss = outline.x[usable], outline.loss[usable]
        if x.size < 3:
            raise AccuracyError("a piece of the density is too narrow to convolve")
        self.sign = 1.0 if loss[-1] >= loss[0] else -1.0
        rise = np.diff(loss) * self.sign
        if (rise < -1e-13 * np.abs(loss).max()).any():
            raise AccuracyError("the privacy loss is not monotone where its density is smooth")
        order = np.maximum.accumulate(loss * self.sign)
        keep = np.diff(order, prepend=-np.inf) > 0
        self.x, self.loss = x[keep], order[keep]
        ends = sorted((self.sign * float(self.loss[0]), self.sign * float(self.loss[-1])))
        self.range = (ends[0], ends[1])
        self._mass = outline.shells([0.0])[0]
        self._all_losses = outline.loss

    def essential(self, floor: float, two_sided: bool) -> tuple[float, float]:
        """Losses between which everything that counts lies, where large ones do down to a floor."""
        finite = np.isfinite(self._all_losses)
        mass, loss = self._mass[finite], self._all_losses[finite]
        other = mass - loss if two_sided else mass  # the law under Q counts as well
        low = loss[_with_neighbours(np.maximum(mass, other) > -_NEGLIGIBLE)]
        high = loss[_with_neighbours(mass > floor - _NEGLIGIBLE)]
        return float(low.min()), float(high.max())

    def turns(self) -> list[Turn]:
        """Return the ends at which the slope of the loss falls to zero while P has a density."""
        low, high = self.piece.lower, self.piece.upper
        found = []
        for end, inward in ((low, 1.0), (high, -1.0)):
            if not math.isfinite(end):
                continue
            length = min(high - low, max(1.0, abs(end)))
            x = end + inward * length * np.asarray([_TINY, _SMALL])
            near, far = np.abs(self.slope(x))
            if far > near * (_SMALL / _TINY) ** _ORDER and self.piece.log_p(x)[0] > -_NEGLIGIBLE:
                found.append(Turn(self, end, inward))
        return found

    def slope(self, x: Array) -> Array:
        """Return dℓ/dx."""
        step = _IMAGINARY * np.maximum(np.abs(x), 1.0)
        with np.errstate(all="ignore"):
            return np.asarray(np.imag(self.piece.loss(x + 1j * step)) / step)

    def log_density(self, s: Array) -> Array:
        """Return log of P(x)/|ℓ′(x)| at the x with ℓ(x) = s."""
        x = self._inverse(s)
        inside = (s > self.range[0]) & (s < self.range[1])
        with np.errstate(all="ignore"):
            value = self.piece.log_p(x) - np.log(np.abs(self.slope(x)))
        return np.asarray(np.where(inside, value, -np.inf))

    def _inverse(self, s: Array) -> Array:
        target = s * self.sign
        place = np.clip(np.searchsorted(self.loss, target), 1, self.loss.size - 1)
        low, high = self.x[place - 1].copy(), self.x[place].copy()
        x = 0.5 * (low + high)
        for _ in range(_ROOTS):
            step = _IMAGINARY * np.maximum(np.abs(x), 1.0)
            with np.errstate(all="ignore"):
                value = np.asarray(self.piece.loss(x + 1j * step))
                gap = np.real(value) * self.sign - target
                slope = np.imag(value) * self.sign / step
                high = np.where(gap > 0, x, high)
                low = np.where(gap > 0, low, x)
                newton = x - gap / slope
            within = (newton > low) & (newton < high)
            fresh = np.where(within, newton, 0.5 * (low + high))
            moved = np.abs(fresh - x)
            x = fresh
            if (moved <= 4e-16 * np.abs(x)).all():
                break
        return np.asarray(x)


class Turn:
    """The end of a branch at which the loss turns, seen by the root v of the distance from there.

    The density of the loss is infinite where its slope vanishes; that of v is not.

    Attributes
    ----------
    value
        The loss at the end.
    side
        1 where the loss rises from there, −1 where it falls.
    """

    def __init__(self, branch: Branch, end: float, inward: float) -> None:
        self.branch, self._end, self._inward = branch, end, inward
        self.value = float(np.asarray(branch.piece.loss(np.asarray([end])))[0])
        if not math.isfinite(self.value):
            raise AccuracyError("the privacy loss has no value where it turns")
        self.side = branch.sign * inward
        w = np.sort((branch.x - end) * inward)
        self._w = w[w > 0]
        self._noise = self._slope_noise()
        self._far = np.maximum.accumulate(self._distance(self._w))

    def log_density(self, v: Array) -> Array:
        """Return the log of the density of v at which the loss is value + side·v²."""
        w = self._inverse(v)
        x = self._end + self._inward * w
        with np.errstate(all="ignore"):
            found = self.branch.piece.log_p(x) - np.log(np.abs(self.branch.slope(x)))
        inside = v * v < abs(self.branch.range[self.side > 0] - self.value)
        return np.asarray(np.where(inside, found + np.log(2.0 * v), -np.inf))

    def rounding(self, v: Array) -> Array:
        """Return how far log_density may be off because x is rounded, and ℓ′ with it."""
        w = np.maximum(np.interp(v * v, self._far, self._w), np.finfo(float).tiny)
        slope = np.abs(self.branch.slope(self._end + self._inward * w))
        return _ROUNDED * (1.0 + abs(self._end) / w) + _MARGIN * self._noise / slope

    def _slope_noise(self) -> float:
        """Return how far the slope is off next to the end: it scatters between adjacent doubles."""
        length = self._inward * max(abs(self._end), min(1.0, float(self._w[-1])))
        first = self._end + _NEAR * length
        steps = np.arange(_ADJACENT)
        slope = self.branch.slope(first + steps * np.spacing(first))
        return float(np.abs(slope - np.polyval(np.polyfit(steps, slope, 1), steps)).max())

    def _distance(self, w: Array) -> Array:
        """Return |ℓ(x) − value|, next to the end without cancellation: its slope integrated."""
        guesses = []
        for nodes, weights in (_COARSE, _FINE):
            half = 0.5 * w
            x = self._end + self._inward * (half[:, None] * (1.0 + nodes))
            slope = np.abs(self.branch.slope(x.ravel())).reshape(x.shape)
            guesses.append(half * (slope @ weights))
        with np.errstate(all="ignore"):
            plain = np.abs(
                np.asarray(self.branch.piece.loss(self._end + self._inward * w)) - self.value
            )
            allowed = _AGREED * (1.0 + abs(self._end) / w) * guesses[1] + self._noise * w
        agreed = np.abs(guesses[0] - guesses[1]) <= allowed
        return np.asarray(np.where(agreed, guesses[1], plain))

    def _inverse(self, v: Array) -> Array:
        """Return |x − end| at which the loss is v² from its value at the end."""
        place = np.clip(np.searchsorted(self._far, v * v), 1, self._far.size - 1)
        low = np.where(v * v < self._far[0], 0.0, self._w[place - 1])
        high = self._w[np.where(v * v < self._far[0], 0, place)]
        w = 0.5 * (low + high)
        for _ in range(_ROOTS):
            with np.errstate(all="ignore"):
                root = np.sqrt(self._distance(w))
                gap = root - v
                high, low = np.where(gap > 0, w, high), np.where(gap > 0, low, w)
                slope = np.abs(self.branch.slope(self._end + self._inward * w))
                newton = w - gap * 2.0 * root / slope
            within = (newton > low) & (newton < high)
            fresh = np.where(within, newton, 0.5 * (low + high))
            moved = np.abs(fresh - w)
            w = fresh
            if (moved <= 4e-16 * w).all():
                break
        return np.asarray(w)


def _with_neighbours(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which places of a grid are chosen or next to one that is."""
    wide = np.pad(chosen, 1)
    return np.asarray(wide[:-2] | wide[1:-1] | wide[2:])
