"""The strips of tilts between the poles, their saddle points and Chernoff's bounds on δ.

The integrand e^{K(z) − εz}/(z(1+z)) has poles at 0 and −1. Its integral I over a vertical line,
taken with a positive sign, is

    t > 0:        I = E[(1 − e^{ε−L})⁺],              δ = δ∞ + I,
    −1 < t < 0:   I = 1 − δ,
    t < −1:       I = E[(e^{ε−L} − 1)⁺],              δ = 1 − e^{ε+K(−1)} + I,

with L finite in the expectations [SPA (28), moved past its poles]. A method that approximates I to
some relative accuracy is best where I is the smallest of the three.

**Chernoff's bound** at the best tilt holds where nothing else is told:

    δ ≤ min_t e^{K(t) − εt} t^t/(1+t)^{1+t}

The factor is the largest value of (1 − e^{−x})e^{−tx} on x > 0; the plain bound leaves it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from symdp.errors import AccuracyError
from symdp.numeric.elementary import log_payoff
from symdp.numeric.outline import NEGLIGIBLE
from symdp.tolerances import LOSS_ROUNDED, SUMS_ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

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
        """Return (t, 1 + t), each rounded once, at a distance from its pole: −1 of LEFT, else 0."""
        if self is Strip.RIGHT:
            return distance, 1.0 + distance
        if self is Strip.MIDDLE:
            return -distance, 1.0 - distance
        return -1.0 - distance, -distance

    def width(self, law: SumLaw) -> float:
        """Return the largest distance from that pole: 1 between the poles, else the domain's."""
        lower, upper = law.domain
        if self is Strip.RIGHT:
            return upper
        if self is Strip.MIDDLE:
            return 1.0
        return -1.0 - lower


@dataclass(frozen=True, slots=True)
class Probe:
    """An increasing function at a point: value, what counts as zero, a proposal for its root."""

    value: float
    tolerance: float
    proposal: float


def increasing_root(probe: Callable[[float], Probe], end: float, start: float) -> float | None:
    """Return the root in (0, end) of an increasing function, None if it is negative up to there.

    Proposals are kept while they fall inside the bracket; else it is halved in the coordinate log s
    (log(s/(end − s)) for a finite end). A point that raises AccuracyError counts as too far out.
    """

    def coordinate(s: float) -> float:
        if math.isinf(end):
            return math.log(s)
        return math.log(s / (end - s))

    def point(u: float) -> float:
        if math.isinf(end):
            return math.exp(u)
        return end / (1.0 + math.exp(-u))

    low = -math.inf
    high = math.inf
    is_reachable = True
    s = start
    u = coordinate(s)
    for _ in range(_ITERATIONS):
        target = u - _OUTWARD
        try:
            current = probe(s)
        except AccuracyError:
            high = u
            is_reachable = False
        else:
            if abs(current.value) <= current.tolerance:
                return s
            if current.value > 0:
                high = u
                is_reachable = True
            else:
                low = u
            if 0 < current.proposal < end:
                target = coordinate(current.proposal)
            elif current.value < 0:
                target = u + _OUTWARD
        resolution = _EDGE
        if is_reachable:
            resolution = _RESOLUTION * (1.0 + abs(u))
        if high - low < resolution:
            return s if is_reachable else None
        target = min(target, u + _OUTWARD)
        if not low < target < high:
            target = 0.5 * (low + high)
        u = target
        s = point(u)
        if not 0 < s < end or s > 1e300:
            return None
    if math.isinf(high):
        return None
    raise AccuracyError("the tilt of the privacy loss did not settle; use the method contour")


def far_tilt(law: SumLaw, strip: Strip) -> float:
    """Return a tilt far out, but where K is to be had, where K ends before the saddle point."""
    width = min(strip.width(law), 1e3)
    for share in _FAR:
        tilt, _ = strip.position(share * width)
        try:
            law.tilted(tilt)
        except AccuracyError:
            continue
        return tilt
    raise AccuracyError("no positive tilt was found at which the CGF can be evaluated")


def golden_section(
    function: Callable[[float], float], low: float, high: float, steps: int
) -> tuple[float, float]:
    """Return where a function of one valley in (low, high) was found least, and that value."""
    left = high - _GOLDEN * (high - low)
    right = low + _GOLDEN * (high - low)
    left_value = function(left)
    right_value = function(right)
    best = min((left_value, left), (right_value, right))
    for _ in range(steps):
        if left_value < right_value:
            high = right
            right = left
            right_value = left_value
            left = high - _GOLDEN * (high - low)
            left_value = function(left)
        else:
            low = left
            left = right
            left_value = right_value
            right = low + _GOLDEN * (high - low)
            right_value = function(right)
        best = min(best, (left_value, left), (right_value, right))
    least, argument = best
    return argument, least


def log_one_minus_exp(x: float) -> float:
    """Return log(1 − e^x) for x ≤ 0, −inf at x ≥ 0."""
    if x >= 0:
        return -math.inf
    if x > -math.log(2.0):
        return math.log(-math.expm1(x))
    return math.log1p(-math.exp(x))


def log_add_exp(x: float, y: float) -> float:
    """Return log(e^x + e^y), −inf allowed."""
    top = max(x, y)
    if math.isinf(top):
        return top
    return top + math.log1p(math.exp(min(x, y) - top))


def delta_from_strip(
    law: SumLaw, epsilon: float, strip: Strip, log_integral: float
) -> tuple[float, float | None] | None:
    """Return (log δ, log(1 − δ)) from log I of a strip, or None where I leaves δ no logarithm.

    The complement is None in the right strip, where δ itself is the accurate one.
    """
    if strip is Strip.RIGHT:
        log_delta = log_add_exp(law.log_mass_at_infinity, log_integral)
        return (log_delta, None) if log_delta <= 0 else None
    log_complement = log_integral
    if strip is Strip.LEFT:
        log_base = epsilon + law.cgf(-1.0)
        if log_integral >= log_base:
            return None
        log_complement = log_base + log_one_minus_exp(log_integral - log_base)
    if not log_complement < 0:
        return None
    return log_one_minus_exp(log_complement), log_complement


_SETTLED = 1e-11  # of a standard deviation of the integrand


@dataclass(frozen=True, slots=True)
class Saddle:
    """The saddle point of e^{F(z)} in one strip, F(z) = K(z) − εz − log|z| − log|1+z|.

    `log_leading`: log of MSD₀ = e^F/√(2πF₂) [SPA (60)], the strip's integral to leading order.
    """

    strip: Strip
    tilt: float
    tilt_plus_one: float
    cgf: float
    variance: float
    curvature: float  # F₂ = K″ + 1/t² + 1/(1+t)²
    log_leading: float


def saddle_point(
    law: SumLaw, epsilon: float, strip: Strip, settled: float = _SETTLED
) -> Saddle | None:
    """Return the saddle point of a strip, K′(t) = ε + 1/t + 1/(1+t) [SPA (50)], or None.

    F is strictly convex in each strip. Newton's method keeps the near pole exact and treats K′ − ε
    − (far pole) as linear, which for a Gaussian loss is all there is; the bracket guards it. An
    outer strip has none where M ends, with a finite slope, before it.
    """
    end = strip.width(law)
    if not end > 0:
        return None
    sign = 1.0 if strip is Strip.RIGHT else -1.0
    variance = math.nan

    def probe(s: float) -> Probe:
        nonlocal variance
        t, t_plus_one = strip.position(s)
        mean, variance = (float(cumulant) for cumulant in law.cumulants(t, 2))
        far_pole = t if strip is Strip.LEFT else t_plus_one
        residual = sign * (mean - epsilon - 1.0 / far_pole)
        slope = variance + 1.0 / (far_pole * far_pole)
        b = residual - slope * s
        root = math.sqrt(b * b + 4.0 * slope)
        if b > 0:
            proposal = 2.0 / (b + root)
        else:
            proposal = (root - b) / (2.0 * slope)
        tolerance = settled * math.sqrt(slope + 1.0 / (s * s))
        return Probe(residual - 1.0 / s, tolerance, proposal)

    start = 0.5
    if strip is not Strip.MIDDLE:
        start = min(1.0, 0.5 * end)
    s = increasing_root(probe, end, start)
    if s is None:
        return None
    t, t_plus_one = strip.position(s)
    cgf = law.cgf(t)
    pole_at_0 = 1.0 / (t * t)
    pole_at_minus_1 = 1.0 / (t_plus_one * t_plus_one)
    curvature = variance + pole_at_0 + pole_at_minus_1
    log_t = math.log(abs(t))
    log_t_plus_one = math.log(abs(t_plus_one))
    exponent = math.fsum([cgf, -epsilon * t, -log_t, -log_t_plus_one])
    log_leading = exponent - 0.5 * math.log(2.0 * math.pi * curvature)
    return Saddle(
        strip=strip,
        tilt=t,
        tilt_plus_one=t_plus_one,
        cgf=cgf,
        variance=variance,
        curvature=curvature,
        log_leading=log_leading,
    )


def best_saddle(law: SumLaw, epsilon: float) -> Saddle:
    """Return the saddle point of the strip whose integral is the smallest.

    Errors are relative to the strip's integral: the smallest leaves the smallest error in δ. For ε
    ≥ 0 that is δ itself or 1 − δ; for ε < 0, by exchanging P and Q, e^ε times the same.
    """
    outer_strip = Strip.RIGHT if epsilon >= 0 else Strip.LEFT
    outer = saddle_point(law, epsilon, outer_strip)
    if outer is not None:
        log_outer = outer.log_leading - min(epsilon, 0.0)
        if log_outer < -math.log(2.0):
            return outer
    middle = saddle_point(law, epsilon, Strip.MIDDLE)
    if middle is None:
        raise AccuracyError("no saddle point of the privacy loss was found; use the method contour")
    return middle


# The bound holds at every tilt, so the optimum need not be exact; rounding of its terms must not
# push it below δ, and K is relied on to twelve digits of the largest term.
_NEXT_TO_END = 1.0 - 2.0**-8  # of the domain of K: there nodes of losses are still few
_CLOSE = 1e-6  # of a standard deviation: any tilt gives a bound, one so near the best loses 1e-12


def log_moments_bound(law: SumLaw, epsilon: float, *, plain: bool = False) -> float:
    """Return an upper bound on log δ(ε), at most 0; a plain one leaves the factor out."""
    best = 0.0
    strips = [Strip.RIGHT]
    if epsilon < 0:
        strips.append(Strip.LEFT)
    for strip in strips:
        log_integral = log_integral_bound(law, epsilon, strip, plain=plain)
        if strip is Strip.LEFT:  # δ = 1 − e^{ε+K(−1)} + I, where both terms round
            log_integral += 2.0 * complement_rounding(law)
        both = delta_from_strip(law, epsilon, strip, log_integral)
        if both is None:
            continue
        log_delta, log_complement = both
        if log_complement is not None:
            log_delta = log_one_minus_exp(log_complement - complement_rounding(law))
        best = min(best, log_delta)
    return best


def log_usual_bound(law: SumLaw, epsilon: float, wanted: float = 0.0) -> float:
    """Return an upper bound on log δ(ε) from tilts at which K is at hand, 0 where none is.

    Far out, where δ may need balls, a few more tilts are asked if the bound is not below `wanted`,
    unless no tilt can give that.
    """
    try:
        shares = np.exp2(np.arange(-5.0, 1.0))
        tilts = law.window(0.0)[1] * shares
        if not (tilts[0] > 0.0 and law.mean < epsilon):
            return 0.0
        transform = law.log_transform(tilts, epsilon)
    except AccuracyError:  # no finite loss, or none that doubles tell
        return 0.0
    payoff = log_payoff(tilts)
    size = np.abs(transform) + np.abs(payoff)
    bounds = transform + payoff + SUMS_ROUNDED * (size + law.count)
    log_delta = log_add_exp(float(np.min(bounds)), law.log_mass_at_infinity)
    is_enough = log_delta < wanted or wanted >= -0.5 * NEGLIGIBLE
    if not is_enough and law.log_mass_at_infinity < wanted:
        log_delta = min(log_delta, log_bound_below(law, epsilon, wanted))
    return min(log_delta, 0.0)


def log_bound_below(law: SumLaw, epsilon: float, wanted: float) -> float:
    """Return the least of a few upper bounds on log δ(ε), the last the first below `wanted`.

    K(t) − tε is convex: the slope of K tells on which side of a tilt the best one lies.
    """
    best = 0.0
    if not 0.0 <= law.mean < epsilon:
        return best
    low = 0.0
    high = law.domain[1]
    tilt = min(-2.0 * wanted / epsilon, 0.5 * high)
    for _ in range(8):  # the best may lie at an infinite tilt, where ε is the largest loss
        if high <= 2.0 * low or best < wanted:
            break
        log_integral = log_bound(law.cgf(tilt), epsilon, tilt, tilt, plain=False)
        best = min(best, log_add_exp(log_integral, law.log_mass_at_infinity))
        [slope] = law.cumulants(tilt, 1)
        if slope > epsilon:
            high = tilt
            tilt = max(0.25 * tilt, math.sqrt(low * tilt))
        else:
            low = tilt
            tilt = min(4.0 * tilt, math.sqrt(tilt) * math.sqrt(high))
    return best


def has_no_typical_tilt(law: SumLaw, epsilon: float) -> bool:
    """Return whether K′ is below ε next to the end of K's domain, as rare losses alone exceed ε."""
    end = law.domain[1]
    if law.count < 3 or not 0.0 < end < math.inf:
        return False
    tilts = np.asarray([_NEXT_TO_END * end])
    with suppress(AccuracyError):
        slopes = [count * step.rough_cumulants(tilts)[1] for step, count in law.terms]
        return law.mean + float(np.sum(slopes)) < epsilon
    return False


def complement_rounding(law: SumLaw) -> float:
    """Return how far off log(1 − δ) = log(e^{ε+K(−1)} − I) may be where I hardly matters."""
    mean = float(law.cumulants(0.0, 1)[0])
    return SUMS_ROUNDED + LOSS_ROUNDED * (law.count + abs(mean))


def log_integral_bound(law: SumLaw, epsilon: float, strip: Strip, *, plain: bool) -> float:
    """Return an upper bound on log I of an outer strip, inf where none is found."""
    end = strip.width(law)
    if not end > 0:
        return math.inf
    sign = 1.0 if strip is Strip.RIGHT else -1.0
    pole, _ = strip.position(0.0)
    mean, variance = law.cumulants(pole, 2)
    if plain and sign * (mean - epsilon) >= 0:
        return math.inf  # the best tilt is zero, and the bound the trivial one
    best = math.inf

    def probe(s: float) -> Probe:
        nonlocal best
        t, _ = strip.position(s)
        bound = log_bound(law.cgf(t), epsilon, t, s, plain=plain)
        best = min(best, bound)
        first, second = law.cumulants(t, 2)
        value = sign * (float(first) - epsilon)
        slope = float(second)
        if not plain:
            value -= math.log1p(1.0 / s)
            slope += 1.0 / (s * (1.0 + s))
        proposal = s - value / slope if slope > 0 else -1.0
        return Probe(value, _CLOSE * math.sqrt(slope), proposal)

    gap = sign * (epsilon - float(mean))
    deviation = 1.0
    if variance > 0:
        deviation = math.sqrt(float(variance))
    natural = max(gap / deviation, 1.0) / deviation
    increasing_root(probe, end, start=min(natural, 1.0, 0.5 * end))
    return best


def log_bound(cgf: float, epsilon: float, tilt: float, distance: float, *, plain: bool) -> float:
    """Return the bound on log I of one tilt, so far from its strip's pole, raised by rounding."""
    terms = [cgf, -epsilon * tilt]
    if not plain:
        terms.append(float(log_payoff(distance)))
    sizes = [abs(term) for term in terms]
    return math.fsum(terms) + SUMS_ROUNDED * math.fsum(sizes)
