"""How large a characteristic function may be beyond the end of a line.

Losses that gather near equally spaced values, however closely, lift |φ_t(y)|ⁿ again beyond any
point where it had fallen to nothing. Far out, the variation of the loss's density bounds it; up to
there the variance of the losses next to their median does where steps are many, and elsewhere it is
looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from symdp.exact.accuracy import NEGLIGIBLE, SETTLED
from symdp.law.characteristic_function import log_characteristic, log_characteristic_grid
from symdp.law.decay import log_bound_near, log_decay
from symdp.law.elementary import Complex
from symdp.law.step import Array
from symdp.law.total import SumLaw

if TYPE_CHECKING:
    from symdp.exact.line import Line

_EVALUATED = -math.log(SETTLED) + 3.0  # e-folds below the value at y = 0: what values can tell
_RISE = 0.5  # above the last values of the line
_FARTHEST = 300.0  # in standard deviations⁻¹ of one step: finer nodes would cost too much
_FINEST = 0.25  # in standard deviations⁻¹ of a loss: its |φ| cannot rise within it unseen
_GROWTH = 0.2  # of y from one place to the next


@dataclass(frozen=True)
class TailBound:
    """From where on |φ_t(y)|ⁿ/|z(1+z)| stays negligible: inf where it was never seen to.

    `assured` says whether the variation of the densities excludes that it rises again further out
    than was looked at, and `left_out` what its modulus adds up to from there on: an integral over
    y, relative to the value at y = 0.
    """

    start: float
    assured: bool
    left_out: float = 0.0

    def beyond(self, line: Line) -> float:
        """Return what the terms of a line that lie beyond add up to at most, on both sides."""
        return 2.0 * self.left_out / (abs(line.tilt * (1.0 + line.tilt)) * line.step)


class Tail:
    """The far part of one line.

    Parameters
    ----------
    law, tilt
        The total loss, which single values do not make up alone, and the line.

    Attributes
    ----------
    end
        The y beyond which the variation of the densities leaves nothing, None where it does not.
    """

    def __init__(self, law: SumLaw, tilt: float) -> None:
        self._law, self._tilt = law.thinned, tilt
        self._tilted = self._law.tilted(tilt)
        self._widest = max(x.widest for x in self._tilted)
        untilted = max(x.widest for x in self._law.tilted(0.0))
        # What a tilt makes narrower would need finer nodes than the untilted law.
        widest = max(self._widest, untilted)  # 0 of losses that doubles do not tell apart
        self._farthest = _FARTHEST / widest if widest > 0 else math.inf
        self.end = self._end() if widest > 0 else None

    def _end(self) -> float | None:
        places = self._farthest * np.geomspace(1e-3, 1.0, 16)
        bound = self._law.combine([log_decay(part, places) for part in self._tilted])
        beyond = np.flatnonzero(bound < -NEGLIGIBLE)
        return float(places[beyond[0]]) if beyond.size else None

    def beyond(self, reach: float) -> TailBound:
        """Return from where on the line's values stay negligible, the least being `reach`.

        Parameters
        ----------
        reach
            The last y at which the values are known, and small.
        """
        end = self._farthest if self.end is None else self.end
        if end <= reach:
            return TailBound(reach, self.end is not None)
        y = np.geomspace(reach, end, 2 + math.ceil(math.log(end / reach) / _GROWTH))
        bound = self._law.combine([log_bound_near(part, y) for part in self._tilted])
        bound += self._log_kernel(y[:-1])
        doubtful = np.flatnonzero(bound > -_EVALUATED)
        left_out = float(np.where(bound > -_EVALUATED, 0.0, np.exp(bound)) @ np.diff(y))
        # |z(1+z)| is more than y².
        left_out += math.exp(-NEGLIGIBLE) * abs(self._tilt * (1.0 + self._tilt)) / end
        if not doubtful.size:
            return TailBound(reach, self.end is not None, left_out)
        found = self._looked_at(reach, float(y[doubtful[0]]), float(y[doubtful[-1] + 1]))
        if self.end is None and found.start > reach:  # what rose again may do so for ever
            return TailBound(math.inf, False)
        return TailBound(found.start, self.end is not None, left_out + found.left_out)

    def largest(self, reach: float) -> float:
        """Return at most what the integrand adds up to beyond `reach`, atoms alone left out.

        That is 2∫ (Π|φᵢ|^{nᵢ} − Π aᵢ^{nᵢ})/y² dy relative to the integrand at y = 0, by the
        variation of the densities alone: all that lies out there, seen or not.
        """
        y = reach * np.geomspace(1.0, 1e6, 121)
        bound = np.exp(self._law.combine([log_decay(part, y) for part in self._tilted]))
        atoms = [np.full(1, math.log(max(part.atomic, 1e-300))) for part in self._tilted]
        alone = float(np.exp(self._law.combine(atoms)[0]))
        fall = np.maximum(bound - alone, 0.0) / (y * y)
        total = float(fall[:-1] @ np.diff(y))  # a bound falls, so that left ends are larger
        # Beyond the last y at most the last bound is left.
        rest = total + float(fall[-1]) * float(y[-1])
        return 2.0 * abs(self._tilt * (1.0 + self._tilt)) * rest

    def _looked_at(self, reach: float, low: float, high: float) -> TailBound:
        """Return from where on what was seen between two y stays negligible."""
        y, height = self._samples(low, high, _FINEST / self._widest)
        # What falls slowly was seen to be small enough; what rises again was not seen.
        last = self._log_modulus(reach * np.linspace(0.875, 1.0, 9))
        level = max(-_EVALUATED, float(last.max()) + _RISE)
        step = np.diff(y, append=2.0 * y[-1] - y[-2])
        # Between samples a peak is higher by at most this, were it as narrow as the one at zero.
        terms = zip(self._tilted, self._law.terms, strict=True)
        variance = math.fsum(n * x.variance for x, (_, n) in terms)
        inner = np.flatnonzero((height[1:-1] >= height[:-2]) & (height[1:-1] >= height[2:])) + 1
        inner = inner[height[inner] <= level]
        doubtful = inner[height[inner] + 0.125 * variance * step[inner] ** 2 > level]
        for k in doubtful.tolist():
            height[k] = self._peak(float(y[k]), float(step[k]), _FINEST / math.sqrt(variance))
        rest = np.flatnonzero(height > level)
        if not rest.size:
            # Beats of places where a density is infinite are no peaks, and add up.
            return TailBound(reach, True, float(np.exp(height) @ step))
        return TailBound(float(y[rest[-1]] + step[rest[-1]]), True)

    def _samples(self, low: float, high: float, spacing: float) -> tuple[Array, Array]:
        """Return places from `low` to `high`, evenly spaced or closer, and the values there."""
        y = [low]
        while len(y) < 2 or (y[-1] < high and _GROWTH * y[-1] < spacing):
            y.append((1.0 + _GROWTH) * y[-1])
        places = np.asarray(y)
        height = self._log_modulus(places)
        first, last = math.floor(y[-1] / spacing) + 1, math.ceil(high / spacing) + 1
        if first >= last:
            return places, height
        # Evenly spaced places cost one transform.
        even: Array = spacing * np.arange(first, last, dtype=np.float64)
        parts = self._law.tilted(self._tilt, float(even[-1]))
        logs = [log_characteristic_grid(part, spacing, first, last) for part in parts]
        return np.append(places, even), np.append(height, self._height(even, logs))

    def _peak(self, place: float, width: float, sharp: float) -> float:
        """Return the height of the peak next to a sample, as sharp as one may be."""
        for _ in range(3 + max(0, math.ceil(math.log(width / sharp, 8)))):
            fine = place + width * np.linspace(-1.0, 1.0, 17)
            found = self._log_modulus(fine)
            place, width = float(fine[found.argmax()]), width / 8
        return float(found.max())

    def _log_modulus(self, y: Array) -> Array:
        """Return log of |φ_t(y)|ⁿ/|z(1+z)|, relative to its value at y = 0."""
        parts = self._law.tilted(self._tilt, float(y[-1]))
        return self._height(y, [log_characteristic(part, y) for part in parts])

    def _height(self, y: Array, logs: list[Complex]) -> Array:
        """Return it from the logs of every φ_t."""
        return np.asarray(self._log_kernel(y) + self._law.combine([log.real for log in logs]))

    def _log_kernel(self, y: Array) -> Array:
        """Return log of |t(1+t)/(z(1+z))|."""
        t = self._tilt
        return np.asarray(-np.log(np.hypot(1.0, y / t) * np.hypot(1.0, y / (1.0 + t))))
