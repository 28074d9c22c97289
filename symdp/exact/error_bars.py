"""Intervals around an answer from an estimate of its relative error.

The estimate is widened by `SAFETY`; rounding of log δ, and of 1 − δ where δ is raised from it, is
added. An answer whose interval is wider than `EXACT` is called an estimate.
"""

from __future__ import annotations

import math

from flint import arb, ctx

from symdp.exact.accuracy import EXACT, ROUNDED, ROUNDING, SAFETY, SETTLED
from symdp.exact.answer import Answer

BALL_BITS = 64  # at least, of balls that become doubles
_TIGHT = arb(2) ** -56  # relative radius of a ball that is no wider than a double's rounding


def exact_answer(
    log_delta: float,
    log_complement: float,
    error: float,
    slope: float = math.nan,
    epsilon: float = 0.0,
    complement_error: float | None = None,
) -> Answer:
    """Return δ within bounds that a relative error estimate gives, and how far to trust them.

    Parameters
    ----------
    log_delta, log_complement
        log δ and log(1 − δ).
    error
        Relative, of δ, before it is widened.
    slope, epsilon
        d log δ / dε where it is known, and ε.
    complement_error
        The same of 1 − δ where it is an integral of its own; if left out, it was taken from δ.
    """
    if log_delta == -math.inf:
        # No loss was seen above ε; one may lie as far above as both are rounded.
        most = ROUNDED * max(abs(epsilon), ROUNDED)
        return Answer(log_delta, log_delta, math.log(most), "exact", "", 0.0, complement_error=most)
    width = SAFETY * error
    # The logarithm itself is rounded, and next to δ = 1 what 1 − δ was raised from.
    raised = -log_complement if math.isfinite(log_complement) else 0.0
    width += 2.0 * ROUNDING * abs(log_delta) * (1.0 + raised)
    lower = log_delta + math.log1p(-width) if width < 1 else -math.inf
    upper = min(log_delta + math.log1p(width), 0.0)
    known = slope if math.isfinite(slope) else None
    if complement_error is None:
        off = width * math.exp(min(log_delta - log_complement, 700.0))
    else:
        off = SAFETY * complement_error + 2.0 * ROUNDING * (1.0 + min(raised, 1e300))
    if width < EXACT:
        return Answer(
            log_delta, lower, upper, "exact", "", log_complement, known, complement_error=off
        )
    advice = (
        f"the contour reached a relative accuracy of only {width:.0e} here; "
        "the bounds say so, the digits do not"
    )
    return Answer(log_delta, lower, upper, "estimate", advice, None, known)


def is_narrow(finite: arb, log_infinite: float) -> bool:
    """Return whether δ − δ∞ is known to a double's rounding of δ and of 1 − δ."""
    total = finite + arb(log_infinite).exp().mid()
    return bool(finite.rad() < _TIGHT * total.lower()) and bool(
        finite.rad() < _TIGHT * (1 - total).lower()
    )


def answer_in_balls(finite: arb, log_infinite: float, rest: arb | None = None) -> Answer:
    """Return δ = δ∞ + what a ball encloses: its ends are those of the ball, rounded outwards.

    A ball of 1 − δ that is an integral of its own may be narrower than what δ lacks.

    Examples
    --------
    >>> answer = answer_in_balls(arb(0.25), -math.inf)
    >>> answer.log_lower < math.log(0.25) < answer.log_upper, answer.kind
    (True, 'exact')
    """
    infinite = arb(log_infinite).exp().mid()
    with ctx.workprec(BALL_BITS << 9):  # 1 − δ may be far below the rounding of δ
        total = (finite + arb(infinite, (4.0 * ROUNDED * infinite).upper())).max(arb(0)).min(arb(1))
        complement = 1 - total
    if not total.upper() > 0:
        return Answer(-math.inf, -math.inf, -math.inf, "exact", log_complement=0.0)
    if rest is None or rest.rad() > total.rad():
        rest = complement
    log_delta, log_complement = _log(total.mid()), _log(rest.mid())
    # The logarithm is rounded, and δ when it is raised from it.
    slack = 2.0 * ROUNDING * (1.0 + abs(log_delta))
    error = float((rest.rad() / rest.mid()).upper()) if rest.mid() > 0 else 0.0
    low, high = _log(total.lower()) - slack, min(_log(total.upper()) + slack, 0.0)
    is_exact = max(high - log_delta, log_delta - low) <= EXACT
    return Answer(
        log_delta,
        low,
        high,
        "exact" if is_exact else "estimate",
        "" if is_exact else "a part of the mass of the loss was not resolved; the bounds say so",
        log_complement=log_complement,
        complement_error=error + 2.0 * ROUNDING * (1.0 + min(-log_complement, 1e300)),
    )


def _log(end: arb) -> float:
    """Return the logarithm of an exact number, −∞ of none above 0."""
    return float(end.log().mid()) if end > 0 else -math.inf


def unclosed(log_delta: float, log_complement: float, error: float) -> float:
    """Return how far δ and 1 − δ, computed apart, miss 1, relative to δ; 0 where that is explained.

    Parameters
    ----------
    log_delta, log_complement
        log δ and log(1 − δ), mass at infinity included.
    error
        What both are known to lack, absolute.

    Examples
    --------
    >>> unclosed(math.log(0.25), math.log(0.75), 0.0)
    0.0
    >>> round(unclosed(math.log(0.25), math.log(0.7), 0.01), 3)
    0.2
    """
    gap = abs(math.exp(log_delta) + math.exp(log_complement) - 1.0)
    return gap * math.exp(min(-log_delta, 700.0)) if gap > error + SETTLED else 0.0


def margin(answer: Answer) -> float:
    """Return how far the bounds lie from the value."""
    assert answer.log_upper is not None
    assert answer.log_lower is not None
    return max(answer.log_upper - answer.log_delta, answer.log_delta - answer.log_lower)
