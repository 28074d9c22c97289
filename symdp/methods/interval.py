"""What is proved of δ and of one tail without any limit theorem, and the interval that it gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from symdp.methods.moments import Moments
from symdp.methods.regime import REMEDY
from symdp.numeric.answer import Answer
from symdp.numeric.saddle_point import (
    SLACK,
    Probe,
    complement_rounding,
    increasing_root,
    log_add_exp,
    log_one_minus_exp,
)

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_CLOSE = 1e-4  # standard deviations of the best tilt, where the bound is flat


def least_log_delta(law: SumLaw, epsilon: float) -> float:
    """Return a lower bound on log δ that every mechanism has: δ ≥ max(δ∞, 1 − e^{ε+K(−1)}).

    Parameters
    ----------
    law, epsilon
        the total loss and ε.
    """
    escaped = law.mass_at_infinity
    bounds = [-math.inf]
    if escaped > 0:
        bounds.append(math.log(escaped) - SLACK)
    complement = epsilon + min(law.cgf(-1.0), 0.0) + complement_rounding(law)
    bounds.append(log_one_minus_exp(complement))
    return max(bounds)


def proved_answer(law: SumLaw, epsilon: float, low: float, high: float, name: str) -> Answer:
    """Return the answer for log δ in [low, high], within what is known besides.

    The value of an answer of kind "bound" is its upper end. Where the method adds nothing to the
    moments bound above and to the bound that needs no method below, the answer says so.

    Parameters
    ----------
    law, epsilon
        the total loss and ε.
    low, high
        the method's own bounds on log δ, −inf and inf allowed.
    name
        the method's name.
    """
    most, least = Moments().log_delta(law, epsilon).log_delta, least_log_delta(law, epsilon)
    upper, lower = high, max(low, least)
    if epsilon < 0:
        # the strip left of the pole adds to 1 − e^{ε+K(−1)}, whose rounding grows with the steps
        log_rounding = epsilon + math.log(complement_rounding(law))
        upper = log_add_exp(upper, log_rounding)
        # as logarithms: next to δ = 1 a difference of the two would lose what 1 − δ is
        share = log_rounding - lower
        lower = lower + math.log1p(-math.exp(share)) if share < 0 else -math.inf
    upper = min(upper, most, 0.0)
    advice = ""
    if high >= most and low <= least:
        advice = (
            f"{name} is out of its regime: its error is larger than delta, which leaves the "
            f"moments bound; {REMEDY}"
        )
    return Answer(upper, min(lower, upper), upper, "bound", advice)


def log_tail(law: SumLaw, epsilon: float, origin: float, *, upper: bool) -> float:
    """Return a bound on log P_t{L > ε}, or for the lower tail on log P_t{L ≤ ε}, at most 0.

    The least of e^{K(t+s) − K(t) − sε} over s > 0 (or s < 0), and of e^{−2(ε − m)²/Σ nᵢτᵢ²} where
    the loss of step i lies in an interval of length τᵢ and m is the mean [EA Thm 1, Prop 4.5].

    Parameters
    ----------
    law, epsilon
        the total loss and ε.
    origin
        the tilt t: 0 for the loss under P, −1 under Q.
    upper
        which tail.
    """
    sign = 1.0 if upper else -1.0
    mean, variance = (float(x) for x in law.cumulants(origin, 2))
    gap = sign * (epsilon - mean)
    end = sign * ((law.domain[1] if upper else law.domain[0]) - origin)
    if not (gap > 0 and variance > 0):
        return 0.0
    best = min(0.0, log_hoeffding(law, gap))
    if not end > 0:
        return best
    start = float(law.log_transform(np.asarray([origin]), epsilon)[0])

    def probe(s: float) -> Probe:
        nonlocal best
        t = origin + sign * s
        value = float(law.log_transform(np.asarray([t]), epsilon)[0])
        best = min(best, value - start + SLACK * (1.0 + abs(value) + abs(start)))
        first, second = (float(x) for x in law.cumulants(t, 2))
        slope = sign * (first - epsilon)
        return Probe(slope, _CLOSE * math.sqrt(second), s - slope / second if second > 0 else -1.0)

    increasing_root(probe, end, min(gap / variance, 1.0, 0.5 * end))
    return best


def log_hoeffding(law: SumLaw, gap: float) -> float:
    """Return −2 gap²/Σ nᵢτᵢ², a bound on the log probability of exceeding the mean by gap > 0.

    Parameters
    ----------
    law
        the total privacy loss; the bound is 0 where a step's loss has no bounds.
    gap
        the distance from the mean, under whichever measure it was taken.
    """
    square = law.square_length
    return -2.0 * gap * gap / square if square > 0 else 0.0
