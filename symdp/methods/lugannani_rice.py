"""The Lugannani–Rice accountant: a saddle-point formula for each of the two tails of δ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.methods.moments import proved_instead
from symdp.methods.series import (
    REMEDY,
    Series,
    estimate,
    far_line,
    largest_error,
    mills_differences,
    mills_moments,
    payoff_integrals,
    standardised,
)
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.saddle_point import Probe, Strip, increasing_root
from symdp.tolerances import ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_SETTLED = 1e-12  # of a standard deviation of the tilted loss
_CUMULANTS = 12  # how far the series around a removable singularity goes
_OFF_POLE = 1.0  # deviations: nearer, the terms of one tail cancel each other


@dataclass(frozen=True, slots=True)
class _Tail:
    """One tail at the tilt t̂: w and 1/u − 1/w."""

    w: float
    correction: float


@dataclass(frozen=True)
class LugannaniRice(FloatAccountant):
    """δ ≈ Φ̄(w) − e^ε Φ̄(w_Q) + φ(w)(1/u − 1/w − 1/u_Q + 1/w_Q) at K′(t̂) = ε [Daniels 1987, §4].

    w = sgn(t̂)√(2(t̂ε − K(t̂))), u = t̂√K″(t̂) for the tail under P, and with t̂ + 1 for t̂ in the
    factors for the tail under Q (K less K(0) and less K(−1) where these are not zero). Exact for a
    Gaussian loss. The terms are combined in the strip of t̂, so that small δ and small 1 − δ keep
    their digits; the removable singularities at w = 0 and w_Q = 0 are summed as series in the
    cumulants. The answer is an estimate of relative error n^{−3/2}; its
    yardstick is the tilted Edgeworth series at that order.

    Examples
    --------
    >>> LugannaniRice().name
    'lugannani-rice'
    """

    name: str = "lugannani-rice"
    citations: tuple[str, ...] = ("Daniels 1987", "SPA (48)")

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the Lugannani–Rice estimate at one ε.

        Where no tilt moves the mean to ε, or where the formula leaves no δ in (0, 1], the answer is
        the interval up to the moments bound, of kind "bound", with advice.
        """
        saddle = _tilt_to_mean(law, epsilon)
        if saddle is None:
            return proved_instead(law, epsilon, f"no tilt moves the mean loss to epsilon; {REMEDY}")
        strip, tilt, tilt_plus_one = saddle
        cumulants = [float(x) for x in law.cumulants(tilt, _CUMULANTS)]
        if not cumulants[1] > 0:
            return proved_instead(law, epsilon, f"the tilted loss has no variance; {REMEDY}")
        root = math.sqrt(cumulants[1])
        scaled = standardised(cumulants, root)
        argument = tilt_plus_one * root
        at_tilt = law.cgf(tilt)
        at_zero = law.cgf(0.0)
        at_minus_one = law.cgf(-1.0)
        p = _tail(tilt * root, (epsilon * tilt, -at_tilt, at_zero), scaled)
        q = _tail(argument, (epsilon * tilt_plus_one, -at_tilt, at_minus_one), scaled)
        if p is None or q is None:
            return proved_instead(law, epsilon, f"the tails are lost to rounding; {REMEDY}")
        correction = p.correction - q.correction
        if strip is Strip.MIDDLE:
            total = mills_moments(-p.w, 1)[0] + mills_moments(q.w, 1)[0] - correction
        else:
            start = p.w if strip is Strip.RIGHT else -q.w
            # w_Q² − w² = 2(ε + K(−1) − K(0)) without cancellation
            width = 2.0 * (epsilon + at_minus_one - at_zero) / (p.w + q.w)
            total = (mills_differences(start, width, 1)[0] if width > 0 else 0.0) + correction
        far = far_line(
            law, tilt, cumulants[1], width=1.0 / root, pole=_off_pole(strip, tilt, 1.0 / root)
        )
        return estimate(
            law,
            epsilon,
            strip,
            at_tilt - tilt * epsilon - 0.5 * math.log(2.0 * math.pi),
            Series(
                self.name,
                total,
                max(
                    _next_terms(strip, tilt, tilt_plus_one, cumulants[1], scaled),
                    abs(_next_order(tilt * root, p.w, scaled) - _next_order(argument, q.w, scaled)),
                ),
                far / math.sqrt(2.0 * math.pi),
                largest_error(law.count),
            ),
        )


def _tilt_to_mean(law: SumLaw, epsilon: float) -> tuple[Strip, float, float] | None:
    """Return (strip, t̂, 1 + t̂) with K′(t̂) = ε, or None where K′ does not reach ε."""
    for strip in (Strip.RIGHT, Strip.LEFT):
        origin, _ = strip.position(0.0)
        sign = 1.0 if strip is Strip.RIGHT else -1.0
        mean, variance = (float(x) for x in law.cumulants(origin, 2))
        gap = sign * (epsilon - mean)
        if abs(gap) <= _SETTLED * math.sqrt(variance):
            return (strip, *strip.position(0.0))
        if gap > 0:
            break
    else:
        strip = Strip.MIDDLE
        sign = -1.0
        gap = math.nan
    end = strip.width(law)

    def probe(s: float) -> Probe:
        mean, variance = (float(x) for x in law.cumulants(strip.position(s)[0], 2))
        value = sign * (mean - epsilon)
        return Probe(
            value,
            _SETTLED * math.sqrt(variance),
            s - value / variance if variance > 0 else -1.0,
        )

    if not end > 0:
        return None
    start = 0.5 if strip is Strip.MIDDLE else min(gap / variance, 1.0, 0.5 * end)
    root = increasing_root(probe, end, start)
    if root is None:
        return None
    return (strip, *strip.position(root))


def _tail(
    u: float, half_square: tuple[float, float, float], scaled: Sequence[float]
) -> _Tail | None:
    """Return one tail's w and 1/u − 1/w, or None where rounding leaves neither.

    w² = u²(1 + θ). θ follows either from the terms t̂ε, −K(t̂), K(0) of w²/2, which cancel for
    small u, or from the Taylor series of K(0) about t̂, θ = 2 Σ_{j≥3} λ_j (−u)^{j−2}/j!, which
    needs small u. The one with the smaller error is taken.
    """
    powers = [2.0 * scaled[j] * (-u) ** (j - 3) / math.factorial(j) for j in range(3, len(scaled))]
    ratio = -sum(powers)  # θ/u
    theta = u * ratio
    series_error = abs(u * powers[-1])
    direct = 2.0 * math.fsum(half_square)
    size = sum(abs(x) for x in half_square)
    if direct > 0 and not series_error <= ROUNDED * size / direct:
        theta = direct / (u * u) - 1.0
        ratio = theta / u
    if not -1.0 < theta < math.inf:
        return None
    stretch = math.sqrt(1.0 + theta)
    return _Tail(u * stretch, ratio / (stretch * (1.0 + stretch)))


def _next_order(u: float, w: float, scaled: Sequence[float]) -> float:
    """Return the formula's next term for one tail [Daniels (4.7)], zero where it is near its pole.

    (λ₄/8 − 5λ₃²/24)/u − λ₃/(2u²) − 1/u³ + 1/w³. Where w and u differ much, as next to the largest
    loss, the last two are large beside the difference of two tails that nearly cancel.
    """
    if min(abs(u), abs(w)) < _OFF_POLE:
        return 0.0
    third = scaled[3]
    fourth = scaled[4]
    term = (fourth / 8.0 - 5.0 * third * third / 24.0) / u - third / (2.0 * u * u)
    return term - u**-3 + w**-3


def _next_terms(
    strip: Strip, tilt: float, tilt_plus_one: float, variance: float, scaled: Sequence[float]
) -> float:
    """Return the size of the tilted Edgeworth terms at n^{−3/2} and n⁻², in the formula's units.

    The formula's own error is of order n^{−3/2}. Its next order has removable singularities of its
    own; the same order of the tilted Edgeworth series has none.
    """
    from symdp.expansion.graded import graded_value

    log_factor, integrals = payoff_integrals(
        strip, tilt, tilt_plus_one, gap=0.0, variance=variance, count=13
    )
    scale = math.exp(log_factor) * math.sqrt(2.0 * math.pi)
    return scale * sum(abs(graded_value(grade, scaled, integrals)) for grade in (3, 4))


def _off_pole(strip: Strip, tilt: float, width: float) -> float:
    """Return the tilt, moved away from the poles by at most a width of the integrand."""
    if strip is Strip.RIGHT:
        return max(tilt, width)
    if strip is Strip.LEFT:
        return min(tilt, -1.0 - width)
    return min(max(tilt, -1.0 + min(width, 0.5)), -min(width, 0.5))
