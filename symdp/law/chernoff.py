"""Chernoff's bounds on δ at the best tilt: what holds where nothing else is told.

    δ ≤ min_t e^{K(t) − εt} t^t/(1+t)^{1+t}

The factor is the largest value of (1 − e^{−x})e^{−tx} on x > 0; the plain bound leaves it out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from symdp.errors import AccuracyError
from symdp.law.elementary import log_payoff
from symdp.law.tilts import (
    Probe,
    Strip,
    delta_from_strip,
    increasing_root,
    log_add_exp,
    log_one_minus_exp,
)

if TYPE_CHECKING:
    from symdp.law.total import SumLaw

# The bound holds at every tilt, so the optimum need not be exact, but the rounding of its terms
# must not push it below δ: K is relied on to twelve digits of the largest term.
SLACK = 1e-12  # relative: the bound is raised by more than its sums are rounded
_CLOSE = 1e-6  # of a standard deviation: any tilt gives a bound, one so near the best loses 1e-12
_ROUNDING = 1e-14  # of K(−1), for each step and for each unit of the mean


def log_moments_bound(law: SumLaw, epsilon: float, *, plain: bool = False) -> float:
    """Return an upper bound on log δ(ε), at most 0.

    Parameters
    ----------
    law, epsilon
        the total loss and ε.
    plain
        leave the factor out.
    """
    best = 0.0
    for strip in (Strip.RIGHT, Strip.LEFT) if epsilon < 0 else (Strip.RIGHT,):
        log_integral = log_integral_bound(law, epsilon, strip, plain=plain)
        if strip is Strip.LEFT:  # δ = 1 − e^{ε+K(−1)} + I, where both terms round
            log_integral += 2.0 * complement_rounding(law)
        found = delta_from_strip(law, epsilon, strip, log_integral)
        if found is not None:
            value, complement = found
            if complement is not None:
                value = log_one_minus_exp(complement - complement_rounding(law))
            best = min(best, value)
    return best


def log_usual_bound(law: SumLaw, epsilon: float) -> float:
    """Return an upper bound on log δ(ε) from tilts at which K is at hand, 0 where none is.

    Parameters
    ----------
    law, epsilon
        the total loss and ε.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> law = compose(mechanisms.gaussian(sigma=5), 10).law("remove")
    >>> -19.0 > log_usual_bound(law, 4.0) > log_moments_bound(law, 4.0) > -22.0
    True
    """
    try:
        tilts = law.window(0.0)[1] * np.exp2(np.arange(-5.0, 1.0))
        if not (tilts[0] > 0.0 and law.mean < epsilon):
            return 0.0
        terms = law.log_transform(tilts, epsilon), log_payoff(tilts)
    except AccuracyError:  # no finite loss, or none that doubles tell
        return 0.0
    bound = float(np.min(sum(terms) + SLACK * (sum(map(np.abs, terms)) + law.count)))
    return min(log_add_exp(bound, law.log_mass_at_infinity), 0.0)


def complement_rounding(law: SumLaw) -> float:
    """Return how far off log(1 − δ) = log(e^{ε+K(−1)} − I) may be where I hardly matters.

    K(−1) is a sum over the steps, whose rounding grows with their number.

    Parameters
    ----------
    law
        the total privacy loss.
    """
    return SLACK + _ROUNDING * (law.count + abs(float(law.cumulants(0.0, 1)[0])))


def log_integral_bound(law: SumLaw, epsilon: float, strip: Strip, *, plain: bool) -> float:
    """Return an upper bound on log I of an outer strip, inf where none is found."""
    end = strip.width(law)
    if not end > 0:
        return math.inf
    sign = 1.0 if strip is Strip.RIGHT else -1.0
    mean, variance = law.cumulants(strip.position(0.0)[0], 2)
    if plain and sign * (mean - epsilon) >= 0:
        return math.inf  # the best tilt is zero, and the bound the trivial one
    best = math.inf

    def probe(s: float) -> Probe:
        nonlocal best
        t = strip.position(s)[0]
        best = min(best, log_bound(law.cgf(t), epsilon, t, s, plain=plain))
        first, second = law.cumulants(t, 2)
        value = sign * (float(first) - epsilon)
        slope = float(second)
        if not plain:
            value -= math.log1p(1.0 / s)
            slope += 1.0 / (s * (1.0 + s))
        return Probe(value, _CLOSE * math.sqrt(slope), s - value / slope if slope > 0 else -1.0)

    gap = sign * (epsilon - float(mean))
    spread = math.sqrt(float(variance)) if variance > 0 else 1.0
    start = min(max(gap / spread, 1.0) / spread, 1.0, 0.5 * end)
    increasing_root(probe, end, start)
    return best


def log_bound(cgf: float, epsilon: float, tilt: float, distance: float, *, plain: bool) -> float:
    """Return the bound on log I of one tilt, so far from its strip's pole, raised by rounding."""
    terms = [cgf, -epsilon * tilt]
    if not plain:
        terms.append(float(log_payoff(distance)))
    return math.fsum(terms) + SLACK * math.fsum(abs(term) for term in terms)
