"""Estimates in doubles that decide what a proof costs, never what it says.

Where a line crosses the real axis and how fine its nodes are changes the width of a proved ball,
not whether it contains δ.  So K, its saddle point and the largest loss come from the numeric law:
F(t) = K(t) − εt − log|t(1+t)| is smallest at the saddle point, and e^F/√(2πF″) [SPA (60)] is the
size of δ that digits are counted from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from symdp.errors import AccuracyError
from symdp.law.allocation import AllocatedLaw, allocated_law
from symdp.law.compile import pair_law
from symdp.law.saddle_point import saddle_point
from symdp.law.tilts import Strip
from symdp.law.total import SumLaw
from symdp.model.allocation import AllocatedPair, OneStep

if TYPE_CHECKING:
    from symdp.law.loss import LossLaw
    from symdp.model.pair import Pair

Steps = Sequence[tuple["OneStep", int]]

_SETTLED = 0.02  # of the saddle point's own width: its place changes cost, not value
_BEYOND_LOSSES = 1e300  # in place of an unbounded largest loss, nats
# Of the way to the end of K's domain, where K′ stays below ε up to that end.
_NEAR_END = (0.9995, 0.99, 0.9, 0.5)
_NEAR_TOP = 1e-3  # of ε: from so near the largest loss no other ε tells about it
_ROUNDED = (6, 8, 10)  # digits of an ε that close ones share
_CLOSE = 0.05  # what it may change log δ by
_PLACES = 16  # at which |φ| is looked at, so that it is not at a zero at all of them


class AboutSaddle(NamedTuple):
    """The saddle point of one strip: its tilt, F″ there, and the log of e^F/√(2πF″)."""

    tilt: float
    curvature: float
    log_size: float


@lru_cache(maxsize=64)
def _law(steps: tuple[tuple[OneStep, int], ...]) -> SumLaw:
    return SumLaw([(_own_law(pair), count) for pair, count in steps])


def _own_law(pair: Pair | AllocatedPair) -> LossLaw:
    if isinstance(pair, AllocatedPair):
        return allocated_law(pair_law(pair.base), pair.steps, pair.direction)
    return pair_law(pair)


def log_delta_of_one(pair: AllocatedPair, epsilon: float) -> float | None:
    """Return about log δ(ε) of one epoch of random allocation, None where no number is found."""
    law = _own_law(pair)
    if isinstance(law, AllocatedLaw):
        log_delta = law.known_profile(epsilon)[0]
        return log_delta if log_delta > -math.inf else None
    return None


def largest_loss(steps: Steps) -> float:
    """Return about the largest loss there is, a huge number where it is unbounded."""
    return min(_law(tuple(steps)).loss_bounds[1], _BEYOND_LOSSES)


def find_saddle(steps: Steps, epsilon: float, strip: Strip) -> AboutSaddle | None:
    """Return about the saddle point of a strip, None where K is finite nowhere in it.

    Where F falls up to the end of K's domain, a tilt near that end serves.
    """
    law = _law(tuple(steps))
    found = saddle_point(law, epsilon, strip, _SETTLED)
    if found is not None:
        return AboutSaddle(found.tilt, found.curvature, found.log_leading)
    end = strip.width(law)
    if not 0 < end < math.inf:
        return None
    for share in _NEAR_END:
        tilt, tilt_plus_one = strip.position(share * end)
        try:
            variance = float(law.cumulants(tilt, 2)[1])
            height = law.cgf(tilt) - epsilon * tilt - math.log(abs(tilt * tilt_plus_one))
        except AccuracyError:  # too close to the end for doubles
            continue
        curvature = variance + tilt**-2 + tilt_plus_one**-2
        return AboutSaddle(tilt, curvature, height - math.log(2 * math.pi * curvature) / 2)
    return None


def exponent(steps: Steps, epsilon: float, tilt: float) -> float | None:
    """Return about K(s) − sε at one tilt, None where K is infinite there, or nearly so."""
    try:
        return float(_law(tuple(steps)).log_transform(np.asarray([tilt]), epsilon)[0])
    except AccuracyError:  # outside the domain of K, or at its end
        return None


def log_modulus(steps: Steps, tilt: float, frequency: float) -> float:
    """Return about the largest log |φ_t(y)| of the sum from one frequency to twice as far."""
    places = np.linspace(frequency, 2.0 * frequency, _PLACES)
    return float(_law(tuple(steps)).cgf_line(tilt, places).real.max())


def nearby_saddle(
    steps: tuple[tuple[OneStep, int], ...], top: float, epsilon: float
) -> tuple[float, AboutSaddle] | None:
    """Return an ε near by, which close ones share unless the largest loss is near, and its saddle.

    Of very many steps the deviation of the sum is small beside its mean.
    """
    if top - epsilon > _NEAR_TOP * abs(epsilon):
        for digits in _ROUNDED:
            about = float(f"{epsilon:.{digits}g}")
            saddle = right_saddle(steps, about)
            if saddle is not None and saddle.tilt * abs(epsilon - about) < _CLOSE:
                return about, saddle
    exact = right_saddle(steps, epsilon)
    return None if exact is None else (epsilon, exact)


@lru_cache(maxsize=128)
def right_saddle(steps: tuple[tuple[OneStep, int], ...], epsilon: float) -> AboutSaddle | None:
    """Return the saddle point right of 0, which decides about costs alone."""
    return find_saddle(steps, epsilon, Strip.RIGHT)
