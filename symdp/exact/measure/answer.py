"""δ from atoms and a density of the total loss, added step by step (see `added`).

Its error is what mass and mean of every sum lacked, the noise of the interpolated log densities,
and rounding of ε times the slope of δ.
"""

from __future__ import annotations

import math

from symdp.errors import AccuracyError
from symdp.exact.accuracy import TOLERABLE
from symdp.exact.answer import Answer
from symdp.exact.error_bars import exact_answer, unclosed
from symdp.exact.measure.convolution import convolved
from symdp.law.tilts import log_add_exp
from symdp.law.total import SumLaw


def measure_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε), or None where the densities cannot be added, or not to eight digits.

    Parameters
    ----------
    law
        The total loss.
    epsilon
        Between the least and the largest loss, in nats.
    """
    if not law.is_spread or law.is_mixed:
        return None
    try:
        found = convolved(law.singly(), epsilon)
    except AccuracyError:  # only fitting a density tells whether it is smooth enough
        return None
    if not found.error <= 10.0 * TOLERABLE:
        return None
    log_delta = log_add_exp(found.log_delta, law.log_mass_at_infinity)
    slope = (
        found.slope * math.exp(found.log_delta - log_delta) if log_delta > -math.inf else math.nan
    )
    complement = min(found.log_complement, 0.0)
    error = found.error + unclosed(log_delta, complement, found.error * math.exp(log_delta))
    off = found.complement_error
    return exact_answer(min(log_delta, 0.0), complement, error, slope, complement_error=off)
