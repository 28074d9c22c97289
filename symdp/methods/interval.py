"""What is proved of δ without any limit theorem, and the interval that an accountant adds to it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from symdp.exact.answer import Answer
from symdp.law.tilts import log_add_exp, log_one_minus_exp
from symdp.methods.moments import Moments, complement_rounding
from symdp.methods.regime import REMEDY

if TYPE_CHECKING:
    from symdp.law.total import SumLaw

_SLACK = 1e-12  # of log δ: what the rounding of the sums in it may be, many times over


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
        bounds.append(math.log(escaped) - _SLACK)
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
