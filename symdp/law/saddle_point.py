"""The saddle point of the contour integral in each strip, and the strip that errs least."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError
from symdp.law.tilts import Probe, Strip, increasing_root

if TYPE_CHECKING:
    from symdp.law.total import SumLaw

_SETTLED = 1e-11  # of a standard deviation of the integrand


@dataclass(frozen=True, slots=True)
class Saddle:
    """The saddle point of e^{F(z)} in one strip, F(z) = K(z) − εz − log|z| − log|1+z|.

    Attributes
    ----------
    strip, tilt, tilt_plus_one
        Where it is: t and 1 + t, each to full precision however near the poles.
    cgf, variance
        K and K″ there.
    log_leading
        log of MSD₀ = e^F/√(2πF₂) [SPA (60)], the strip's integral to leading order.
    curvature
        F₂ = K″ + 1/t² + 1/(1+t)².
    """

    strip: Strip
    tilt: float
    tilt_plus_one: float
    cgf: float
    variance: float
    curvature: float
    log_leading: float


def saddle_point(
    law: SumLaw, epsilon: float, strip: Strip, settled: float = _SETTLED
) -> Saddle | None:
    """Return the saddle point of a strip, K′(t) = ε + 1/t + 1/(1+t) [SPA (50)], or None.

    F is strictly convex in each strip. Newton's method keeps the near pole exact and treats
    K′ − ε − (far pole) as linear, which for a Gaussian loss is all there is; the bracket guards it.

    Parameters
    ----------
    law
        the total privacy loss.
    epsilon
        any real ε.
    strip
        the strip between the poles always has a saddle point; an outer one has none where the
        moment generating function ends, with a finite slope, before it.
    settled
        how close to the saddle point, in standard deviations of the integrand.
    """
    end = strip.width(law)
    if not end > 0:
        return None
    sign = 1.0 if strip is Strip.RIGHT else -1.0
    variance = math.nan

    def probe(s: float) -> Probe:
        nonlocal variance
        t, t_plus_one = strip.position(s)
        mean, variance = (float(x) for x in law.cumulants(t, 2))
        other = t if strip is Strip.LEFT else t_plus_one
        rest = sign * (mean - epsilon - 1.0 / other)
        slope = variance + 1.0 / (other * other)
        b = rest - slope * s
        root = math.sqrt(b * b + 4.0 * slope)
        proposal = 2.0 / (b + root) if b > 0 else (root - b) / (2.0 * slope)
        tolerance = settled * math.sqrt(slope + 1.0 / (s * s))
        return Probe(rest - 1.0 / s, tolerance, proposal)

    start = 0.5 if strip is Strip.MIDDLE else min(1.0, 0.5 * end)
    s = increasing_root(probe, end, start)
    if s is None:
        return None
    t, t_plus_one = strip.position(s)
    cgf = law.cgf(t)
    curvature = variance + 1.0 / (t * t) + 1.0 / (t_plus_one * t_plus_one)
    exponent = math.fsum([cgf, -epsilon * t, -math.log(abs(t)), -math.log(abs(t_plus_one))])
    leading = exponent - 0.5 * math.log(2.0 * math.pi * curvature)
    return Saddle(strip, t, t_plus_one, cgf, variance, curvature, leading)


def best_saddle(law: SumLaw, epsilon: float) -> Saddle:
    """Return the saddle point of the strip whose integral is the smallest.

    Errors are relative to the strip's integral: the smallest leaves the smallest error in δ. For
    ε ≥ 0 that is δ itself or 1 − δ; for ε < 0, by exchanging P and Q, e^ε times the same.

    Parameters
    ----------
    law
        the total privacy loss.
    epsilon
        any real ε.

    Raises
    ------
    AccuracyError
        If no saddle point can be found, which a finite K on [−1, 0] excludes.
    """
    outer = saddle_point(law, epsilon, Strip.RIGHT if epsilon >= 0 else Strip.LEFT)
    if outer is not None and outer.log_leading - min(epsilon, 0.0) < -math.log(2.0):
        return outer
    middle = saddle_point(law, epsilon, Strip.MIDDLE)
    if middle is None:
        raise AccuracyError("no saddle point of the privacy loss was found; use the method contour")
    return middle
