"""Proofs that |φ_t(y)|ⁿ stays below a level for every y beyond a place."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flint import arb, ctx

from symdp.certify.step import TiltedStep
from symdp.errors import AccuracyError

_MOST_PLACES = 1000
_COARSE = 64  # bits of the nodes that only bound a modulus
_LEAST_STEP = 1e-7
_FARTHEST = arb(2) ** 80


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
        self._deviations: list[arb] = []

    def failure(self, start: arb, level: arb) -> arb | None:
        """Return None if the product is proved ≤ level on [start, ∞), else where that failed.

        Raises
        ------
        AccuracyError
            If no bound far out is small enough, as where atoms of the loss keep φ from falling.
        """
        if self._decayed(start, level):
            return None
        place = self._by_cubic(arb(start.upper()), level)
        if not self._deviations:
            self._deviations = [step.deviation() for step, _ in self.steps]
        far = self._far(place, level)
        stride = min(self._each(level) / float(d) for d in self._deviations)
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
        stride = min(self._each(level) / float(d) for d in self._deviations)
        if not self._decayed((last + _MOST_PLACES * stride).mid(), level):
            raise AccuracyError(
                "atoms of the loss, or its few steps, keep the characteristic function from "
                "falling far enough to certify so many digits; ask for fewer digits, or compose "
                "more steps"
            )

    def _each(self, level: arb) -> float:
        """Return the modulus that each step may have, all alike."""
        return _root(level, sum(n for _, n in self.steps))

    def _far(self, start: arb, level: arb) -> arb:
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

    def _by_cubic(self, start: arb, level: arb) -> arb:
        """Return a place up to which the cubic bounds alone stay below the level."""
        best = start
        shapes = [step.cubic() for step, _ in self.steps]
        edges = [(2 * v / (3 * c)).lower() for v, c in shapes]  # each cubic falls up to here
        for edge in edges:
            product = arb(1)
            for (_, count), (v, c), own in zip(self.steps, shapes, edges, strict=True):
                if own >= edge:
                    square = (1 - v * start**2 + c * start**3).upper()
                    product *= square.max(arb(0)).min(arb(1)).sqrt() ** count
            if edge > best and product < level:
                best = edge
        return best

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
        tolerance = (arb(2) ** -10 / largest).min(arb(2) ** -14)
        with ctx.workprec(_COARSE + largest.bit_length()):
            moduli = [
                (abs(step.transform(place, tolerance)) * step.log_excess().exp()).upper()
                for step, _ in self.steps
            ]
        if not self._product(moduli, arb(0)) < level:
            return arb(0)
        room = arb(self._guess([float(m) for m in moduli], float(level.log().mid())))
        while room > 0:
            if self._product(moduli, room) < level:
                return room
            room = (room / 2).mid() if room > _LEAST_STEP else arb(0)
        return room

    def _guess(self, moduli: list[float], log_level: float) -> float:
        """Solve Σ n log(|φ| + σd) = log level for d in doubles."""
        deviations = [float(d) for d in self._deviations]
        counts = [n for _, n in self.steps]
        low, high = 0.0, 1.0 / min(deviations)
        for _ in range(40):
            middle = (low + high) / 2
            total = sum(
                n * math.log(min(1.0, m + d * middle) + 1e-300)
                for n, m, d in zip(counts, moduli, deviations, strict=True)
            )
            low, high = (middle, high) if total < log_level else (low, middle)
        return low * 0.999

    def _product(self, moduli: list[arb], distance: arb) -> arb:
        product = arb(1)
        for modulus, deviation, (_, count) in zip(
            moduli, self._deviations, self.steps, strict=True
        ):
            product *= (modulus + deviation * distance).upper().min(arb(1)) ** count
        return product


def _root(level: arb, count: int) -> float:
    return math.exp(float(level.log().mid()) / count)
