"""The three strips of tilts between the poles, a root finder for them, and what they tell of δ.

The integrand e^{K(z) − εz}/(z(1+z)) has poles at 0 and −1. Its integral I over a vertical line,
taken with a positive sign, is

    t > 0:        I = E[(1 − e^{ε−L})⁺],              δ = δ∞ + I,
    −1 < t < 0:   I = 1 − δ,
    t < −1:       I = E[(e^{ε−L} − 1)⁺],              δ = 1 − e^{ε+K(−1)} + I,

with L finite in the expectations [SPA (28), moved past its poles]. A method that approximates I to
some relative accuracy is best where I is the smallest of the three.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.law.total import SumLaw

_ITERATIONS = 200  # of a bracketed Newton search
_OUTWARD = 1.5  # largest step in the logarithm of the tilt: far tilts cost a law new nodes
_RESOLUTION = 1e-13  # of the logarithm of the tilt: closer than this, rounding decides
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)  # what a golden section keeps of an interval
_FAR = (0.9, 0.7, 0.45, 0.2, 0.05)  # of a strip's width
_EDGE = 1e-3  # how closely the end of what can be evaluated is approached


class Strip(Enum):
    """Where a line crosses the real axis: right of both poles, between them, or left of both."""

    RIGHT = "t > 0"
    MIDDLE = "-1 < t < 0"
    LEFT = "t < -1"

    def position(self, distance: float) -> tuple[float, float]:
        """Return (t, 1 + t), both rounded once, at a distance from the strip's own pole.

        The own pole is 0, for LEFT it is −1.
        """
        if self is Strip.RIGHT:
            return distance, 1.0 + distance
        if self is Strip.MIDDLE:
            return -distance, 1.0 - distance
        return -1.0 - distance, -distance

    def width(self, law: SumLaw) -> float:
        """Return the largest distance from that pole: 1 between the poles, else the domain's."""
        lower, upper = law.domain
        return {Strip.RIGHT: upper, Strip.MIDDLE: 1.0, Strip.LEFT: -1.0 - lower}[self]


@dataclass(frozen=True, slots=True)
class Probe:
    """An increasing function at one point: its value, the size below which it counts as zero,
    and a proposal for its root."""

    value: float
    tolerance: float
    proposal: float


def increasing_root(probe: Callable[[float], Probe], end: float, start: float) -> float | None:
    """Return the root in (0, end) of an increasing function, or None where it is negative up to
    the end (or to where the law can still be evaluated).

    Proposals of the function are kept while they fall inside the bracket; else the bracket is
    halved in the coordinate log s (log(s/(end − s)) for a finite end), in which both ends are at
    infinity. A point that raises `AccuracyError` counts as too far out.

    Parameters
    ----------
    probe
        the function.
    end
        the upper end, inf allowed.
    start
        a first guess inside the interval.

    Raises
    ------
    AccuracyError
        If 200 steps do not settle it.

    Examples
    --------
    >>> newton = lambda s: Probe(s * s - 2, 1e-15, s - (s * s - 2) / (2 * s))
    >>> round(increasing_root(newton, math.inf, 1.0), 12)
    1.414213562373
    >>> increasing_root(newton, 1.3, 1.0) is None
    True
    """

    def coordinate(s: float) -> float:
        return math.log(s) if math.isinf(end) else math.log(s / (end - s))

    def point(u: float) -> float:
        return math.exp(u) if math.isinf(end) else end / (1.0 + math.exp(-u))

    low, high = -math.inf, math.inf
    reachable = True
    s = start
    u = coordinate(s)
    for _ in range(_ITERATIONS):
        try:
            here = probe(s)
        except AccuracyError:
            high, reachable, here = u, False, None
        if here is not None:
            if abs(here.value) <= here.tolerance:
                return s
            if here.value > 0:
                high, reachable = u, True
            else:
                low = u
        resolution = _RESOLUTION * (1.0 + abs(u)) if reachable else _EDGE
        if high - low < resolution:
            return s if reachable else None
        if here is not None and 0 < here.proposal < end:
            target = coordinate(here.proposal)
        else:
            target = u + (_OUTWARD if here is not None and here.value < 0 else -_OUTWARD)
        target = min(target, u + _OUTWARD)
        if not low < target < high:
            target = 0.5 * (low + high)
        u, s = target, point(target)
        if not 0 < s < end or s > 1e300:
            return None
    if math.isinf(high):
        return None
    raise AccuracyError("the tilt of the privacy loss did not settle; use the method contour")


def far_tilt(law: SumLaw, strip: Strip) -> float:
    """Return a tilt far out in a strip, but where K can still be evaluated.

    It stands in for a saddle point that K does not reach before the end of its domain.

    Raises
    ------
    AccuracyError
        If K can be evaluated nowhere in the strip.
    """
    width = min(strip.width(law), 1e3)
    for share in _FAR:
        tilt = strip.position(share * width)[0]
        try:
            law.tilted(tilt)
        except AccuracyError:
            continue
        return tilt
    raise AccuracyError("no positive tilt was found at which the CGF can be evaluated")


def golden_section(
    function: Callable[[float], float], low: float, high: float, steps: int
) -> tuple[float, float]:
    """Return where a function of one valley in (low, high) was found least, and that value.

    Examples
    --------
    >>> place, value = golden_section(lambda x: (x - 1.0) ** 2, 0.0, 3.0, 40)
    >>> abs(place - 1.0) < 1e-7, value < 1e-14
    (True, True)
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    here, there = function(left), function(right)
    best = min((here, left), (there, right))
    for _ in range(steps):
        if here < there:
            high, right, there = right, left, here
            left = high - _GOLDEN * (high - low)
            here = function(left)
        else:
            low, left, here = left, right, there
            right = low + _GOLDEN * (high - low)
            there = function(right)
        best = min(best, (here, left), (there, right))
    return best[1], best[0]


def log_one_minus_exp(x: float) -> float:
    """Return log(1 − e^x) for x ≤ 0, −inf at x ≥ 0.

    Examples
    --------
    >>> log_one_minus_exp(-1e-20) == math.log(1e-20), log_one_minus_exp(-50.0) == -math.exp(-50)
    (True, True)
    """
    if x >= 0:
        return -math.inf
    return math.log(-math.expm1(x)) if x > -math.log(2.0) else math.log1p(-math.exp(x))


def log_add_exp(x: float, y: float) -> float:
    """Return log(e^x + e^y), −inf allowed.

    Examples
    --------
    >>> log_add_exp(-1000.0, -math.inf)
    -1000.0
    """
    top = max(x, y)
    return top if math.isinf(top) else top + math.log1p(math.exp(min(x, y) - top))


def delta_from_strip(
    law: SumLaw, epsilon: float, strip: Strip, log_integral: float
) -> tuple[float, float | None] | None:
    """Return (log δ, log(1 − δ)) from log I of a strip, or None where I leaves δ no logarithm.

    The complement is None in the right strip, where δ itself is the accurate one.

    Parameters
    ----------
    law, epsilon
        the total loss and ε.
    strip, log_integral
        where I was computed, and its logarithm.
    """
    if strip is Strip.RIGHT:
        value = log_add_exp(law.log_mass_at_infinity, log_integral)
        return (value, None) if value <= 0 else None
    if strip is Strip.MIDDLE:
        return (log_one_minus_exp(log_integral), log_integral) if log_integral < 0 else None
    log_base = epsilon + law.cgf(-1.0)
    if log_integral >= log_base:
        return None
    log_complement = log_base + log_one_minus_exp(log_integral - log_base)
    return (log_one_minus_exp(log_complement), log_complement) if log_complement < 0 else None
