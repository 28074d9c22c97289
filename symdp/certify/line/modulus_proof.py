"""Proofs that Π|φᵢ(y)|^{nᵢ} stays below a level for every y beyond a place.

Far out, integration by parts bounds each |φᵢ| for all y at once (see `decay`).  Up to there the
proof goes on in steps: with ψ(y) = φ(y)e^{−iyc} enclosed at a place y, Taylor's theorem gives

    |φ(y + s)| ≤ |ψ(y) + sψ′(y)| + s² max|ψ″|/2,    max|ψ″| ≤ E_t(ℓ − c)²,

and with it a distance over which the product stays below the level.  The next place lies where the
last distance ends, so that no y is left out.  The level itself is for φ relative to the scale that
nodes carry in place of K(t); what the two differ by is `excess`, a factor of the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flint import arb, ctx

from symdp.certify.line.step import TiltedStep
from symdp.errors import AccuracyError
from symdp.prove.work import COARSE_BITS

_MOST_PLACES = 1000  # of a march; a sum over the frequencies costs no more then
_LEAST_STEP = 1e-7  # relative, below which a march does not get on
_HALVINGS = 24  # of a step's length, which need not be the longest
_FARTHEST = arb(2) ** 80  # frequency at which a product must have decayed at last


class March:
    """Bounds of Π|φ_i(y)|^{n_i} along the line.

    Parameters
    ----------
    steps : sequence of (TiltedStep, count)
        Steps whose loss is discrete count with |φ| ≤ 1.
    """

    def __init__(self, steps: Sequence[tuple[TiltedStep, int]]) -> None:
        self.steps = [(step, n) for step, n in steps if not step.is_discrete]
        if not self.steps:
            raise AccuracyError("every loss is discrete: its characteristic function never falls")
        excess = sum((n * step.log_excess() for step, n in steps), arb(0))
        self.excess = arb(excess.exp().upper())
        self._deviations: list[float] = []

    def failure(self, start: arb, level: arb) -> arb | None:
        """Return None if the product is proved ≤ level on [start, ∞), else where that failed.

        Raises
        ------
        AccuracyError
            If no bound far out is small enough, as where atoms of the loss keep φ from falling.
        """
        if self._decayed(start, level):
            return None
        place = arb(start.upper())
        if not self._deviations:
            self._deviations = [step.deviation() for step, _ in self.steps]
        stride = min(self._each(level) / d for d in self._deviations)
        far = self.far(place, level)
        if float(far - place) > _MOST_PLACES * stride:
            return far  # too many places to march over: sum up to there instead
        guess = arb(0)
        for _ in range(2 * _MOST_PLACES):
            if not place < far:
                return None
            if guess > 0:
                centre = (place + guess).mid()
                room = self._room(centre, level)
                # What is covered around the centre must reach back to the place.
                if room > 0 and centre - room <= place:
                    place, guess = arb((centre + room).lower()), (room * 0.99).mid()
                    continue
            room = self._room(place, level)
            if not room > _LEAST_STEP * place:
                return place
            place, guess = arb((place + room).lower()), (room * 0.9).mid()
        return place

    def require_decay(self, level: arb, last: arb) -> None:
        """Raise AccuracyError where no bound falls below a level within marching distance."""
        if not self._deviations:
            self._deviations = [step.deviation() for step, _ in self.steps]
        stride = min(self._each(level) / d for d in self._deviations)
        place = (last + _MOST_PLACES * stride).mid()
        if not self._decayed(place, level):
            raise AccuracyError(
                "atoms of the loss, or its few steps, keep the characteristic function from "
                "falling far enough to certify so many digits; ask for fewer digits, or compose "
                "more steps"
            )

    def _each(self, level: arb) -> float:
        """Return the modulus that each step may have, all alike."""
        return _root(level, sum(n for _, n in self.steps))

    def far(self, start: arb, level: arb) -> arb:
        """Return a place beyond which integration by parts bounds the product by the level."""
        if not self._decayed(_FARTHEST, level):
            raise AccuracyError("no bound of the characteristic function is small far out")
        place = start
        while not self._decayed(place, level):
            place = (2 * place).mid()
        low, high = float(place) / 2, float(place)
        for _ in range(12):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._decayed(arb(middle), level) else (middle, high)
        return arb(high).max(start)

    def _decayed(self, place: arb, level: arb) -> bool:
        product, waiting = arb(1), self.steps
        while waiting:
            each = _root(level / product, sum(n for _, n in waiting))
            bounds = [step.decay(place, each) for step, _ in waiting]
            slow = [bound > each for bound in bounds]
            # What does not fall so far leaves more to the others.
            is_last = all(slow) or not any(slow)
            for bound, is_slow, (_, count) in zip(bounds, slow, waiting, strict=True):
                product *= bound**count if is_slow or is_last else 1
            waiting = (
                [] if is_last else [w for w, own in zip(waiting, slow, strict=True) if not own]
            )
        return bool(product < level)

    def _room(self, place: arb, level: arb) -> arb:
        """Return a distance from a place within which the product is below the level, or 0."""
        largest = max(n for _, n in self.steps)
        # An error of 1/(4n) changes the power n by e^{1/4}, small beside what it must fall by.
        tolerance = (arb(2) ** -2 / largest).min(arb(2) ** -14)
        with ctx.workprec(COARSE_BITS + largest.bit_length()):
            around = [
                (step.around(place, 2 / arb(deviation), tolerance), step.log_excess().exp(), count)
                for (step, count), deviation in zip(self.steps, self._deviations, strict=True)
            ]

        def is_low(distance: arb) -> bool:
            product = arb(1)
            for local, excess, count in around:
                product *= (local.bound(distance) * excess).upper().min(arb(1)) ** count
            return bool(product < level)

        if not is_low(arb(0)):
            return arb(0)
        low, high = 0.0, min(local.room for local, _, _ in around)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if is_low(arb(middle)) else (low, middle)
        return arb(low)


def _root(level: arb, count: int) -> float:
    # No modulus exceeds 1: where far more would be allowed, any large number says so.
    return math.exp(min(float(level.log().mid()) / count, 700.0))
