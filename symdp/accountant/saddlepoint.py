"""The saddle-point accountant: the method of steepest descent at any order, in any strip."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from symdp.accountant.answer import Answer
from symdp.accountant.base import SeriesAccountant
from symdp.accountant.regime import Series, estimate, far_line, standardised
from symdp.accountant.tilts import Probe, Strip, increasing_root
from symdp.errors import AccuracyError
from symdp.numeric.total import ACCURATE, UnresolvedError

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_SETTLED = 1e-11  # of a standard deviation of the integrand
_ROUGH = 1e-3  # of cumulants that lead to where a line only costs least


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
    accuracy = ACCURATE if settled <= _SETTLED else _ROUGH

    unresolved: list[float] = []

    def probe(s: float) -> Probe:
        nonlocal variance
        t, t_plus_one = strip.position(s)
        try:
            mean, variance = (float(x) for x in law.tried_cumulants(t, 2, accuracy))
        except UnresolvedError:
            unresolved.append(t)
            raise
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
    # Where the terms of a condensed law were too few, it may lie beyond.
    while s is None and unresolved and law.resolve(min(unresolved, key=abs)):
        unresolved.clear()
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


def standardised_exponent(law: SumLaw, saddle: Saddle, order: int) -> list[float]:
    """Return F_j/F₂^{j/2} at index j, for j from 2 to `order` (indices 0 and 1 hold zero).

    F_j = K^{(j)} + (−1)^j (j−1)! (t^{−j} + (1+t)^{−j}), from [SPA (49)].

    Parameters
    ----------
    law, saddle
        the total loss and its saddle point.
    order
        the highest derivative.
    """
    width = 1.0 / math.sqrt(saddle.curvature)
    at_zero, at_minus_one = -width / saddle.tilt, -width / saddle.tilt_plus_one
    scaled = standardised(law.cumulants(saddle.tilt, order), 1.0 / width)
    scaled[2] = 1.0
    for j in range(3, order + 1):
        scaled[j] += math.factorial(j - 1) * (at_zero**j + at_minus_one**j)
    return scaled


@dataclass(frozen=True)
class SaddlePoint(SeriesAccountant):
    """MSD_k: e^F/√(2πF₂) times the series of steepest descent to relative order n^{−k}.

    k = 0 is [SPA (60)] and k = 1 is [SPA (61)]. The answer is an estimate. Its yardstick is the
    first omitted order, n^{−(k+1)}; the line far from the saddle point, which no order of the
    series sees, is sampled beside it.

    Parameters
    ----------
    order
        k, from 0 to 12.

    Raises
    ------
    InputError
        If the order is not an integer from 0 to 12.

    Examples
    --------
    >>> SaddlePoint(order=1).name
    'msd:1'
    """

    family: ClassVar[str] = "msd"
    order: int = 1

    @property
    def citations(self) -> tuple[str, ...]:
        """What the method rests on."""
        return ("SPA (60)",) if self.order == 0 else ("SPA (59)", "SPA (61)")

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return MSD_k at one ε, on the logarithmic scale.

        Where 1 + corrections is not positive, or where the strip's integral leaves no δ in (0, 1],
        the answer is the interval up to the moments bound, of kind "bound", with advice.
        """
        saddle = best_saddle(law, epsilon)
        derivatives = standardised_exponent(law, saddle, 2 * self.order + 4)
        terms = _corrections(self.order + 1)(derivatives)
        series = 1.0 + sum(terms[:-1])
        width = 1.0 / math.sqrt(saddle.curvature)
        far = far_line(law, saddle.tilt, saddle.variance, width=width, pole=saddle.tilt)
        unseen = far * abs(saddle.tilt * saddle.tilt_plus_one) / (width * math.sqrt(2.0 * math.pi))
        return estimate(
            law,
            epsilon,
            saddle.strip,
            saddle.log_leading,
            Series(self.name, series, abs(terms[-1]), unseen),
        )


@cache
def _corrections(order: int) -> Callable[[Sequence[float]], list[float]]:
    """Return the function that gives the corrections at n⁻¹, …, n^{−order} in numbers."""
    from symdp.expansion.graded import graded_value
    from symdp.expansion.saddlepoint import gaussian_images

    images = [float(x) for x in gaussian_images(6 * order + 1)]

    def corrections(derivatives: Sequence[float]) -> list[float]:
        return [graded_value(2 * k, derivatives, images) for k in range(1, order + 1)]

    return corrections
