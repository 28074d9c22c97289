"""δ from integrals on lines right of both poles and, where δ is large, between them.

With I(t) = (1/2πi) ∫_{Re z = t} e^{K(z)−εz}/(z(1+z)) dz,

    δ(ε) − δ∞ = I(t) for t > 0,    1 − δ(ε) = −I(t) for −1 < t < 0.

Each has an error relative to itself. Where δ is large the one that leaves δ the smaller error is
taken: an error of 1 − δ counts (1 − δ)/δ times.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from symdp.errors import AccuracyError
from symdp.exact.accuracy import COUNTED, HALF, ROUNDED, SAFETY
from symdp.exact.answer import Answer
from symdp.exact.error_bars import exact_answer, margin, unclosed
from symdp.exact.line import StripValue
from symdp.law.saddle_point import saddle_point
from symdp.law.tilts import Strip, far_tilt, log_add_exp, log_one_minus_exp
from symdp.law.total import SumLaw

_NEAR_SADDLE = 0.02  # standard deviations of the integrand: closer costs more than it saves


def line_tilt(law: SumLaw, epsilon: float, strip: Strip) -> float:
    """Return the tilt of a line near the saddle point, whose place changes only the cost."""
    saddle = saddle_point(law, epsilon, strip, settled=_NEAR_SADDLE)
    return far_tilt(law, strip) if saddle is None else saddle.tilt


def answer_from_strips(law: SumLaw, value: Callable[[Strip], StripValue | None]) -> Answer | None:
    """Return δ from the integrals of two strips, None where one has no value.

    Parameters
    ----------
    law
        The total loss.
    value
        Returns the integral of a strip.
    """
    log_escaped = law.log_mass_at_infinity
    above: StripValue | None = None
    refused: AccuracyError | None = None
    try:
        above = value(Strip.RIGHT) if law.domain[1] > 0 else None
    except AccuracyError as failure:  # far below the mean 1 − δ is all that there is to know
        refused = failure
    log_delta = math.nan
    if law.domain[1] > 0 and refused is None:
        if above is None:
            return None
        log_delta = log_add_exp(above.log_value, log_escaped)
        if log_delta < HALF:
            slope = above.slope * math.exp(above.log_value - log_delta)
            complement = log_one_minus_exp(log_delta)
            return exact_answer(log_delta, complement, above.relative_error, slope)
    below = value(Strip.MIDDLE)
    if below is None:
        return None
    complement = min(below.log_value, 0.0)
    through_complement = log_one_minus_exp(complement)
    if above is not None and not (
        through_complement > -math.inf
        and below.relative_error * math.exp(complement - through_complement) < above.relative_error
    ):
        error = max(above.relative_error, below.relative_error)
        error += unclosed(log_delta, complement, error)
        slope = above.slope * math.exp(above.log_value - log_delta)
        return exact_answer(
            min(log_delta, 0.0), complement, error, slope, complement_error=below.relative_error
        )
    # Only 1 − δ is to be had, or tells more: its error is relative to it, not to δ.
    above_delta = log_delta
    log_delta = through_complement
    scale = math.exp(complement - log_delta) if log_delta > -math.inf else math.inf
    slope = -below.slope * scale
    error = below.relative_error * scale
    if above is not None:
        known = above.relative_error * math.exp(above_delta) + below.relative_error
        error += unclosed(above_delta, complement, known)
    if refused is not None and not error < 1.0:
        raise refused
    if log_delta == -math.inf:  # 1 − δ is 1 but for its error, which δ may be as large as
        most = SAFETY * below.relative_error + max(below.log_value, 0.0)
        return Answer(math.log(most), -math.inf, math.log(most), "bound", "", 0.0, None, "", most)
    return exact_answer(log_delta, complement, error, slope, complement_error=below.relative_error)


def sharpened(law: SumLaw, epsilon: float, answer: Answer | None) -> Answer | None:
    """Return an answer, or the one in balls where it is wide by rounding and balls are narrower."""
    if answer is None or margin(answer) <= COUNTED + SAFETY * ROUNDED * abs(answer.log_delta):
        return answer
    from symdp.exact.in_balls import in_balls  # and with it SymPy

    return in_balls(law, epsilon, answer)
