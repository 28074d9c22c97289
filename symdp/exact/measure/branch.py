"""A stretch on which the privacy loss is monotone: x as a function of the loss, and its density."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.law.outline import Outline
from symdp.law.step import Array, SmoothPiece

_IMAGINARY = 1e-30  # of x: an imaginary step this small differentiates without cancellation
_NEAREST = 1e-250  # to 0, that such a step still is a double
_ROOTS = 80  # halvings of a bracket, and more than doubles have bits
_SHAKEN = 1e-13  # of a place: how little rounding may move it
_TINY, _SMALL = 1e-8, 1e-5  # of a piece
_ORDERS = 0.75, 1.25  # powers of the distance with which the slope of the loss falls at a turn
_NEGLIGIBLE = 60.0  # e-folds below the maximum: e^−60 is far below rounding
_SINGULAR, _FARTHER = 0.02, 2.0  # the least power with which a density is called infinite
_MOST_HALVINGS, _SMALLEST, _LARGEST = 1000, 1e-300, 1e300  # the range of doubles
_ROUNDED = 1e-15  # of x, and of what is made of it
_MARGIN = 2.0  # over the noise that was seen
_NEAR, _NARROW, _BESIDE = 1e-6, 1e-3, 33  # where noise is looked for: shares of x, and places
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
        places, losses, mass = _seen_closer(outline)
        usable = np.isfinite(losses) & np.isfinite(mass)
        x, loss = places[usable], losses[usable]
        if x.size < 3:
            raise AccuracyError("a piece of the density is too narrow to convolve")
        self.sign = 1.0 if loss[-1] >= loss[0] else -1.0
        rise = np.diff(loss) * self.sign
        if (rise < -1e-13 * np.abs(loss).max()).any():
            raise AccuracyError("the privacy loss is not seen to be monotone on a smooth piece")
        order = np.maximum.accumulate(loss * self.sign)
        keep = np.diff(order, prepend=-np.inf) > 0
        self.x, self.loss = x[keep], order[keep]
        ends = sorted((self.sign * float(self.loss[0]), self.sign * float(self.loss[-1])))
        self.range = (ends[0], ends[1])
        self._mass, self._all_losses = mass, losses

    def essential(self, floor: float, two_sided: bool) -> tuple[float, float]:
        """Losses between which everything that counts lies, where large ones do down to a floor."""
        finite = np.isfinite(self._all_losses)
        mass, loss = self._mass[finite], self._all_losses[finite]
        with np.errstate(over="ignore"):
            other = mass - loss if two_sided else mass  # the law under Q counts as well
        low = loss[_with_neighbours(np.maximum(mass, other) > -_NEGLIGIBLE)]
        high = loss[_with_neighbours(mass > floor - _NEGLIGIBLE)]
        if not (low.size and high.size):
            raise AccuracyError(
                "the mass of the density lies where doubles cannot tell its losses apart; use "
                "noise that is less large beside the sensitivity"
            )
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
            least, most = near * (_SMALL / _TINY) ** np.asarray(_ORDERS)
            if least < far < most and self.piece.log_p(x)[0] > -_NEGLIGIBLE:
                found.append(Turn(self, end, inward))
        return found

    def without_singular_ends(self, distance: float) -> tuple[Branch, list[Lump]]:
        """Return what is left without the ends towards which the loss's density grows like a power.

        What lies within a distance of such an end, less than which no loss need be known, is given
        as a lump. Ends at which the loss turns stay.
        """
        low, high = self.range
        lumps: list[Lump] = []
        turning = {low if turn.side > 0 else high for turn in self.turns()}
        for end, inward in ((low, 1.0), (high, -1.0)):
            if end in turning or not (math.isfinite(end) and high - low > 2.0 * distance):
                continue
            near, far = self.log_density(end + inward * distance * np.asarray([1.0, _FARTHER]))
            if near > far + _SINGULAR * math.log(_FARTHER):
                lumps.append(self._lump(end, end + inward * distance))
        if not lumps:
            return self, lumps
        rest = copy(self)
        cuts = {lump.end: lump.cut for lump in lumps}
        rest.range = (cuts.get(low, low), cuts.get(high, high))
        return rest, lumps

    def _lump(self, end: float, cut: float) -> Lump:
        """Return the mass between a loss and the end of the range, and its mean."""
        start = float(self._inverse(np.asarray([cut]))[0])
        rising = (end > cut) == (self.sign > 0)
        stop = self.piece.upper if rising else self.piece.lower
        halvings = np.exp2(-np.arange(_MOST_HALVINGS))
        if math.isfinite(stop):
            edges = stop + (start - stop) * halvings
        else:
            reach = max(abs(start), 1.0)
            with np.errstate(over="ignore"):  # what overflows is left out
                edges = start + math.copysign(1.0, stop) * reach * (1.0 / halvings - 1.0)
            edges = edges[np.abs(edges) < _LARGEST]
        half = 0.5 * np.abs(np.diff(edges))
        x = (0.5 * (edges[1:] + edges[:-1]))[:, None] + half[:, None] * _FINE[0]
        with np.errstate(all="ignore"):
            weight = np.exp(self.piece.log_p(x.ravel())).reshape(x.shape)
            loss = np.asarray(self.piece.loss(x.ravel())).reshape(x.shape)
        weight = weight * half[:, None] * _FINE[1]
        usable = np.isfinite(weight) & np.isfinite(loss)
        weight = np.where(usable, weight, 0.0)
        beyond = np.where(usable, loss - end, 0.0)
        mass = float(weight.sum())
        if not mass > 0:
            raise AccuracyError("the density of the privacy loss has no mass next to its end")
        mean = float((weight * beyond).sum()) / mass
        variance = float((weight * (beyond - mean) ** 2).sum()) / mass
        return Lump(end, cut, mass, end + mean, variance)

    def mass_between(self, lower: Array, upper: Array, tilt: float) -> Array:
        """Return ∫ e^{tℓ} dP over losses between two ends each, as a sum over outcomes.

        An end that is rounded moves mass from one interval to the next, and none is lost.
        """
        ends = self._inverse(np.clip(np.stack([lower, upper]), *self.range))
        half = 0.5 * np.abs(ends[1] - ends[0])
        x = 0.5 * (ends[0] + ends[1])[:, None] + half[:, None] * _FINE[0]
        with np.errstate(all="ignore"):
            exponent = self.piece.log_p(x.ravel()) + tilt * np.asarray(self.piece.loss(x.ravel()))
            return np.asarray(np.exp(exponent).reshape(x.shape) @ _FINE[1] * half)

    def slope(self, x: Array) -> Array:
        """Return dℓ/dx."""
        step = _IMAGINARY * np.maximum(np.abs(x), _NEAREST)
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

        def rising(x: Array) -> tuple[Array, Array]:
            step = _IMAGINARY * np.maximum(np.abs(x), _NEAREST)
            value = np.asarray(self.piece.loss(x + 1j * step)) * self.sign
            return np.real(value), np.imag(value) / step

        return _root(rising, target, self.x[place - 1], self.x[place])


@dataclass(frozen=True)
class Lump:
    """The mass of a branch between a loss and the end of its range, so near that one value does."""

    end: float
    cut: float
    mass: float
    mean: float
    variance: float


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
        # Far out the loss may have a value and its slope none: there it hardly changes any more.
        self._w = w[(w > 0) & np.isfinite(branch.slope(end + inward * w))]
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
        scatter = _MARGIN * self._noise / np.maximum(slope, np.finfo(float).tiny)
        return _ROUNDED * (1.0 + abs(self._end) / w) + np.minimum(scatter, 1.0)

    def _slope_noise(self) -> float:
        """Return how far the slope is off next to the end: it scatters around a smooth curve.

        A coordinate that was moved so that its other end is at 0 is rounded like its length.
        """
        length = self._inward * max(abs(self._end), min(1.0, float(self._w[-1])))
        steps = np.linspace(-1.0, 1.0, _BESIDE)
        slope = self.branch.slope(self._end + _NEAR * length * (1.0 + _NARROW * steps))
        return float(np.abs(slope - np.polyval(np.polyfit(steps, slope, 3), steps)).max())

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
        nearest = v * v < self._far[0]

        def rising(w: Array) -> tuple[Array, Array]:
            root = np.sqrt(self._distance(w))
            slope = np.abs(self.branch.slope(self._end + self._inward * w))
            return root, slope / (2.0 * root)

        low = np.where(nearest, 0.0, self._w[place - 1])
        return _root(rising, v, low, self._w[np.where(nearest, 0, place)])


def _seen_closer(outline: Outline) -> tuple[Array, Array, Array]:
    """Return places, losses and logs of mass: the outline's, and as close to an end at 0 as any."""
    piece = outline.piece
    places, losses, mass = outline.x, outline.loss, outline.shells([0.0])[0]
    for end, sign in ((piece.lower, 1.0), (piece.upper, -1.0)):
        if end == 0.0 and places.size:
            nearest = float(np.abs(places).min())
            x = sign * np.ldexp(nearest, -np.arange(1, _MOST_HALVINGS))
            x = x[np.abs(x) > _SMALLEST]
            with np.errstate(all="ignore"):
                more = piece.log_p(x) + np.log(np.abs(x)), np.asarray(piece.loss(x))
            order = np.argsort(np.concatenate([places, x]))
            places, losses, mass = (
                np.concatenate(both)[order]
                for both in ((places, x), (losses, more[1]), (mass, more[0]))
            )
    return places, losses, mass


def _root(
    function: Callable[[Array], tuple[Array, Array]], goal: Array, low: Array, high: Array
) -> Array:
    """Return where an increasing function, given with its slope, has values: Newton in brackets.

    A place that moves no less than before, and hardly at all, is as good as rounding allows.
    """
    shape = np.broadcast_shapes(goal.shape, low.shape)
    goal, low, high = (np.broadcast_to(a, shape).ravel().copy() for a in (goal, low, high))
    x = 0.5 * (low + high)
    before = np.full(x.size, np.inf)
    open_ = np.arange(x.size)
    for _ in range(_ROOTS):
        here = x[open_]
        with np.errstate(all="ignore"):
            value, slope = function(here)
            value = value - goal[open_]
            newton = here - value / slope
        high[open_] = top = np.where(value > 0, here, high[open_])
        low[open_] = bottom = np.where(value > 0, low[open_], here)
        within = (newton >= bottom) & (newton <= top)
        fresh = np.where(within, newton, 0.5 * (bottom + top))
        moved = np.abs(fresh - here)
        x[open_] = fresh
        settled = moved <= 4e-16 * np.abs(fresh)
        settled |= (moved <= _SHAKEN * np.abs(fresh)) & (moved >= 0.5 * before[open_]) & within
        before[open_] = moved
        open_ = open_[~settled]
        if not open_.size:
            break
    return x.reshape(shape)


def _with_neighbours(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which places of a grid are chosen or next to one that is."""
    wide = np.pad(chosen, 1)
    return np.asarray(wide[:-2] | wide[1:-1] | wide[2:])
