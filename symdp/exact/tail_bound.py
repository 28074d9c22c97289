"""How large a characteristic function may be beyond the end of a line.

Losses that gather near equally spaced values, however closely, lift |φ_t(y)|ⁿ again beyond any
point where it had fallen to nothing. Far out, the variation of the loss's density bounds it; up to
there it is looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from symdp.law.decay import log_decay
from symdp.law.elementary import Complex
from symdp.law.line import log_characteristic, log_characteristic_grid
from symdp.law.step import Array
from symdp.law.total import SumLaw

if TYPE_CHECKING:
    from symdp.exact.line import Line

_NEGLIGIBLE = 40.0  # e-folds below the value at y = 0, for all that is never looked at
_EVALUATED = 33.0  # the same for what is
_RISE = 0.5  # above the last values of the line
_HALFWAY = 0.5  # what is above it beyond this part of all that is looked at may go on for ever
_MOST_KNOWN = 256  # tilts of one law
_FARTHEST = 300.0  # in standard deviations⁻¹ of one step
_NARROWEST = 0.5  # of the untilted one: what a tilt makes narrower is not looked at further out
_FINEST = 0.25  # in standard deviations⁻¹ of one step: |φ| cannot rise within it unseen
_GROWTH = 0.1  # of y from one place to the next
_SHARP = 0.25  # in standard deviations⁻¹ of the sum
_ZOOM = np.linspace(-1.0, 1.0, 17)


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
        return 2.0 * self.left_out * abs(complex(line.values[0])) / line.step


def tail_bound(law: SumLaw, tilt: float, reach: float) -> TailBound:
    """Return from where on a line's values stay negligible, the least being `reach`.

    Parameters
    ----------
    law, tilt
        The total loss, which single values do not make up alone, and the line.
    reach
        The last y at which the values are known, and small.
    """
    law = law.thinned
    tilted = law.tilted(tilt)
    widest = max(x.widest for x in tilted)
    farthest = _farthest(law, tilt)
    last_above = _last_above(law, tilt, farthest)
    end = farthest if last_above is None else last_above
    if end <= reach:
        return TailBound(reach, last_above is not None)
    places, height = _looked_at(law, tilt, reach, end, _FINEST / widest)
    # What falls slowly was seen to be small enough; what rises again was not seen.
    last = _log_modulus(law, tilt, reach * np.linspace(0.875, 1.0, 9))
    level = max(-_EVALUATED, float(last.max()) + _RISE)
    step = np.diff(places, append=2.0 * places[-1] - places[-2])
    # Between samples a peak is higher by at most this, were it as narrow as the one at zero.
    variance = math.fsum(n * x.variance for x, (_, n) in zip(tilted, law.terms, strict=True))
    inner = np.flatnonzero((height[1:-1] >= height[:-2]) & (height[1:-1] >= height[2:])) + 1
    inner = inner[height[inner] <= level]
    doubtful = inner[height[inner] + 0.125 * variance * step[inner] ** 2 > level]
    for k in doubtful.tolist():
        height[k] = _peak(law, tilt, float(places[k]), float(step[k]), _SHARP / math.sqrt(variance))
    rest = np.flatnonzero(height > level)
    if not rest.size:
        # Beats of places where a density is infinite are no peaks, and add up.
        return TailBound(reach, last_above is not None, float(np.exp(height) @ step))
    start = float(places[rest[-1]] + step[rest[-1]])
    if last_above is None and start > _HALFWAY * farthest:
        return TailBound(math.inf, False)
    return TailBound(start, last_above is not None)


def _looked_at(
    law: SumLaw, tilt: float, reach: float, end: float, spacing: float
) -> tuple[Array, Array]:
    """Return places from `reach` to `end`, evenly spaced or closer, and the values there."""
    y = [reach]
    while y[-1] < end and _GROWTH * y[-1] < spacing:
        y.append((1.0 + _GROWTH) * y[-1])
    places = np.asarray(y)
    height = _log_modulus(law, tilt, places)
    first, last = math.floor(y[-1] / spacing) + 1, math.ceil(end / spacing) + 1
    if first >= last:
        return places, height
    # Evenly spaced places cost one transform.
    even: Array = spacing * np.arange(first, last, dtype=np.float64)
    parts = law.tilted(tilt, float(even[-1]))
    logs = [log_characteristic_grid(part, spacing, first, last) for part in parts]
    return np.append(places, even), np.append(height, _height(law, tilt, even, logs))


def _peak(law: SumLaw, tilt: float, place: float, width: float, sharp: float) -> float:
    """Return the height of the peak next to a sample, as sharp as one may be."""
    for _ in range(3 + max(0, math.ceil(math.log(width / sharp, _ZOOM.size // 2)))):
        fine = place + width * _ZOOM
        found = _log_modulus(law, tilt, fine)
        place, width = float(fine[found.argmax()]), width / (_ZOOM.size // 2)
    return float(found.max())


def is_assured(law: SumLaw, tilt: float) -> bool:
    """Return whether the variation of the densities bounds what lies far out on a line."""
    return _last_above(law.thinned, tilt, _farthest(law.thinned, tilt)) is not None


def _farthest(law: SumLaw, tilt: float) -> float:
    """Return how far out a line is looked at: as finer nodes than the untilted law's would cost."""
    widest, untilted = (max(x.widest for x in law.tilted(t)) for t in (tilt, 0.0))
    return _FARTHEST / max(widest, _NARROWEST * untilted)


def _last_above(law: SumLaw, tilt: float, most: float) -> float | None:
    """Return the y beyond which the variation of the densities leaves nothing, at most `most`."""
    known: dict[float, float | None] = law.kept.setdefault(_Known, {})
    if tilt not in known:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[tilt] = _found_above(law, tilt, most)
    return known[tilt]


class _Known:
    """The key under which a law keeps these, by the tilt."""


def _found_above(law: SumLaw, tilt: float, most: float) -> float | None:
    places = np.geomspace(1e-3 * most, most, 60)
    bound = law.combine([log_decay(part, places) for part in law.tilted(tilt)])
    beyond = np.flatnonzero(bound < -_NEGLIGIBLE)
    return float(places[beyond[0]]) if beyond.size else None


def _log_modulus(law: SumLaw, tilt: float, y: Array) -> Array:
    """Return log of |φ_t(y)|ⁿ/|z(1+z)|, relative to its value at y = 0."""
    parts = law.tilted(tilt, float(y[-1]))
    return _height(law, tilt, y, [log_characteristic(part, y) for part in parts])


def _height(law: SumLaw, tilt: float, y: Array, logs: list[Complex]) -> Array:
    """Return it from the logs of every φ_t."""
    height: Array = -np.log(np.hypot(1.0, y / tilt) * np.hypot(1.0, y / (1.0 + tilt)))
    return np.asarray(height + law.combine([log.real for log in logs]))
