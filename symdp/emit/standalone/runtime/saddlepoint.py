"""The saddle-point accountant in plain Python: the part that every emitted file shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

# ---- emitted from here on ----


class AccountantError(ArithmeticError):
    """No number can be given; the message says why."""


class _TooFar(Exception):  # noqa: N818  (a signal to the search, not an error of the user)
    """The transform cannot be evaluated at a tilt."""


class _Law(Protocol):
    count: int
    domain: tuple[float, float]  # tilts between which K is finite
    loss_range: tuple[float, float]  # of one step
    log_finite_mass: float  # log(1 - mass at infinity) of one step

    def exponent(self, tilt: float, order: int, epsilon: float) -> list[float]:
        """Return the derivatives 0 to order of n K(t) - epsilon t."""
        ...


_Corrections = Callable[[Sequence[float]], Sequence[float]]


def _root(
    probe: Callable[[float], tuple[float, float, float]], end: float, start: float
) -> tuple[float, bool] | None:
    """Find where an increasing function on (0, end) vanishes; None if it stays negative.

    `probe` returns value, tolerance and a proposal, which is kept while it stays in the bracket.
    Where it cannot be evaluated as far as that, the farthest place is returned with False.
    """

    def point(u: float) -> float:
        return math.exp(u) if math.isinf(end) else end / (1 + math.exp(-u))

    def place(s: float) -> float:
        return math.log(s) if math.isinf(end) else math.log(s / (end - s))

    low, high, reachable = -math.inf, math.inf, True
    s = start
    u = place(s)
    for _ in range(200):
        value, proposal, evaluated = 0.0, 0.0, True
        try:
            value, tolerance, proposal = probe(s)
        except _TooFar:
            high, reachable, evaluated = u, False, False
        if evaluated:
            if abs(value) <= tolerance:
                return s, True
            if value > 0:
                high, reachable = u, True
            else:
                low = u
        if high - low < (1e-15 * (1 + abs(u)) if reachable else 1e-3):
            if reachable:
                return s, True
            return (point(low), False) if math.isfinite(low) else None
        if evaluated and 0 < proposal < end:
            target = min(place(proposal), u + 1.5)
        else:
            target = u + (1.5 if evaluated and value < 0 else -1.5)
        if not low < target < high:
            target = 0.5 * (low + high)
        if abs(target) > 690:
            return None
        u = target
        s = point(u)
        if not 0 < s < end:
            return None
    raise AccountantError("the saddle point did not settle")


def _saddle(
    law: _Law, epsilon: float, strip: str
) -> tuple[float, float, float, float, bool] | None:
    """Return t, 1 + t, F'', log MSD_0 at the saddle point of a strip and True, or None.

    The strips are t > 0 ("right"), -1 < t < 0 ("middle") and t < -1 ("left"). The last value is
    False where K could not be evaluated as far as the saddle point.
    """
    low, high = law.domain
    end = {"right": high, "middle": 1.0, "left": -1.0 - low}[strip]
    if not end > 0:
        return None
    sign = 1.0 if strip == "right" else -1.0

    def position(s: float) -> tuple[float, float]:
        if strip == "right":
            return s, 1 + s
        return (-s, 1 - s) if strip == "middle" else (-1 - s, -s)

    def probe(s: float) -> tuple[float, float, float]:
        t, t_plus_one = position(s)
        _, slope, variance = law.exponent(t, 2, epsilon)
        far = t if strip == "left" else t_plus_one
        rest = sign * (slope - 1 / far)
        steep = variance + 1 / (far * far)
        b = rest - steep * s
        root = math.sqrt(b * b + 4 * steep)
        proposal = 2 / (b + root) if b > 0 else (root - b) / (2 * steep)
        return rest - 1 / s, 1e-13 * math.sqrt(steep + 1 / (s * s)), proposal

    found = _root(probe, end, 0.5 if strip == "middle" else min(1.0, 0.5 * end))
    if found is None:
        return None
    s, reached = found
    t, t_plus_one = position(s)
    height, _, variance = law.exponent(t, 2, epsilon)
    curvature = variance + 1 / (t * t) + 1 / (t_plus_one * t_plus_one)
    leading = height - math.log(abs(t)) - math.log(abs(t_plus_one))
    leading -= 0.5 * math.log(2 * math.pi * curvature)
    return t, t_plus_one, curvature, leading, reached


def _log_one_minus_exp(x: float) -> float:
    if x >= 0:
        return -math.inf
    return math.log(-math.expm1(x)) if x > -math.log(2) else math.log1p(-math.exp(x))


def _log_add_exp(x: float, y: float) -> float:
    top = max(x, y)
    return top if math.isinf(top) else top + math.log1p(math.exp(min(x, y) - top))


def _out_of_regime(epsilon: float) -> AccountantError:
    return AccountantError(
        f"the saddle-point series gives no delta at epsilon = {epsilon!r}: out of its regime"
    )


def _log_delta(
    law: _Law, epsilon: float, order: int, corrections: _Corrections
) -> tuple[float, float]:
    """Return log delta and the next term of the series relative to delta, its own yardstick."""
    n = law.count
    least, largest = (n * end for end in law.loss_range)
    escaped = -math.expm1(n * law.log_finite_mass)
    log_escaped = math.log(escaped) if escaped > 0 else -math.inf
    if epsilon >= largest:
        return log_escaped, 0.0
    try:
        at_minus_one = law.exponent(-1.0, 0, epsilon)[0]  # epsilon + log Q(P > 0)
    except _TooFar:
        raise _out_of_regime(epsilon) from None
    if epsilon <= least:
        return _log_one_minus_exp(at_minus_one), 0.0
    strip = "right" if epsilon >= 0 else "left"
    found = _saddle(law, epsilon, strip)
    if found is None or not found[3] - min(epsilon, 0.0) < -math.log(2):
        strip = "middle"
        found = _saddle(law, epsilon, strip)
    if found is None or not found[4]:
        raise AccountantError("the saddle point lies at a tilt where K cannot be evaluated")
    t, t_plus_one, curvature, leading, _ = found
    width = 1 / math.sqrt(curvature)
    scaled = [0.0, 0.0]
    power = width
    for derivative in law.exponent(t, 2 * order + 4, epsilon)[2:]:
        power *= width
        scaled.append(derivative * power)
    for j in range(2, len(scaled)):
        scaled[j] += math.factorial(j - 1) * ((-width / t) ** j + (-width / t_plus_one) ** j)
    terms = corrections(scaled)[: order + 1]
    series = 1 + sum(terms[:-1])
    if not 0 < series < math.inf:
        raise _out_of_regime(epsilon)
    log_integral = leading + math.log(series)
    if strip == "right":
        value = _log_add_exp(log_escaped, log_integral)
    elif strip == "middle":
        value = _log_one_minus_exp(log_integral)
    else:
        gap = log_integral - at_minus_one
        value = _log_one_minus_exp(at_minus_one + _log_one_minus_exp(gap)) if gap < 0 else math.inf
    if not -math.inf < value <= 0:
        raise _out_of_regime(epsilon)
    return value, abs(terms[-1]) * math.exp(min(leading - value, 700.0))


def _epsilon(law: _Law, log_delta: float, order: int, corrections: _Corrections) -> float:
    """Return the smallest epsilon >= 0 at which log delta is at most the one given."""
    escaped = -math.expm1(law.count * law.log_finite_mass)
    if escaped > 0 and math.log(escaped) >= log_delta:
        raise AccountantError("no finite epsilon: delta is not above the mass at infinity")
    try:
        _, mean, variance = law.exponent(0.0, 2, 0.0)
    except _TooFar:
        mean, variance = 0.0, 1.0
    step = math.sqrt(variance) if variance > 0 else 1.0
    largest = max(law.count * law.loss_range[1], 0.0)

    def height(epsilon: float) -> float:
        return max(_log_delta(law, epsilon, order, corrections)[0] - log_delta, -1e6)

    low = high = min(max(mean, 0.0), largest)
    at_low = at_high = height(low)
    width = step
    for _ in range(200):
        if at_high <= 0 or high >= largest:
            break
        low, at_low = high, at_high
        high = min(high + width, largest)
        width *= 2
        at_high = height(high)
    width = step
    for _ in range(200):
        if at_low > 0 or low <= 0:
            break
        high, at_high = low, at_low
        low = max(low - width, 0.0)
        width *= 2
        at_low = height(low)
    if at_low <= 0:
        return 0.0
    if at_high > 0:
        raise AccountantError("delta does not fall to the one given")
    return _bracketed(height, (low, at_low), (high, at_high))


def _bracketed(
    function: Callable[[float], float], left: tuple[float, float], right: tuple[float, float]
) -> float:
    """Find a sign change by inverse quadratic steps where they are safe, else by halving."""
    (a, fa), (b, fb) = left, right
    c, fc, share = a, fa, 0.5
    for _ in range(200):
        x = a + share * (b - a)
        fx = function(x)
        if (fx > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        best, least = (a, fa) if abs(fa) < abs(fb) else (b, fb)
        tolerance = 4e-16 * abs(best) / abs(b - a) if b != a else 1.0
        if least == 0 or tolerance > 0.5:
            return best
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        if phi * phi < xi and (1 - phi) ** 2 < 1 - xi:
            share = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (
                fc - fb
            )
        else:
            share = 0.5
        share = min(max(share, tolerance), 1 - tolerance)
    raise AccountantError("epsilon did not settle")
