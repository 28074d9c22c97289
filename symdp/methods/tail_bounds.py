"""Proved bounds on one tail of a tilted total loss: Chernoff's for any, Hoeffding's for bounded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from symdp.law.tilts import Probe, increasing_root

if TYPE_CHECKING:
    from symdp.law.total import SumLaw

_SLACK = 1e-12  # relative: the bound is raised by more than its sums are rounded
_CLOSE = 1e-4  # standard deviations of the best tilt, where the bound is flat


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
        best = min(best, value - start + _SLACK * (1.0 + abs(value) + abs(start)))
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
    lengths = ((count, part.loss_bounds) for part, count in law.parts)
    square = math.fsum(count * (high - low) ** 2 for count, (low, high) in lengths)
    return -2.0 * gap * gap / square if square > 0 else 0.0
