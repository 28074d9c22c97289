"""δ from a list of sums: of all of them where they are few, or of those above ε.

    δ(ε) = δ∞ + Σ_{λ>ε} p_λ (1 − e^{ε−λ}) over all values λ of the total loss.

Terms are positive, so that rounding adds about n·1e-15 of δ, and what the rounding of λ moves
across ε. A lattice takes its period instead where n or the list is long: that is rounded less.
"""

from __future__ import annotations

import math

from symdp.exact.accuracy import FEW_NODES, HALF
from symdp.exact.answer import Answer
from symdp.exact.error_bars import exact_answer, unclosed
from symdp.exact.finite_sum import MAX_SUMS, FiniteSum, count_sums, finite_sum
from symdp.exact.two_strips import line_tilt
from symdp.exact.upper_tail import MOST_SHORT, is_near_top, topmost_sum
from symdp.law.lattice import find_lattice
from symdp.law.tilts import Strip, log_add_exp, log_one_minus_exp
from symdp.law.total import SumLaw


def listed_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) from all sums, or all above ε, None where they are too many.

    Parameters
    ----------
    law
        The total loss.
    epsilon
        Between the least and the largest loss, in nats.
    """
    if law.is_spread:
        return None
    found: FiniteSum | None = None
    if is_near_top(law, epsilon):
        found = topmost_sum(law, epsilon, line_tilt(law, epsilon, Strip.RIGHT))
    if found is None and count_sums(law) <= MAX_SUMS:
        if (count_sums(law) > FEW_NODES or law.count > MOST_SHORT) and find_lattice(law):
            return None
        is_list = not any(part.step.pieces for part, _ in law.parts)  # whole at every tilt
        tilt = 0.0 if is_list else line_tilt(law, epsilon, Strip.RIGHT)
        found = finite_sum(law, epsilon, tilt)
    return None if found is None else _of_sum(found, law.log_mass_at_infinity, epsilon)


def _of_sum(found: FiniteSum, log_escaped: float, epsilon: float) -> Answer:
    log_delta = log_add_exp(found.log_delta, log_escaped)
    known = log_delta > -math.inf
    error = math.exp(min(found.log_error - log_delta, 0.0)) if known else 0.0
    # Lists made for a far tilt lack the bulk of P, of which δ next to 1 is made.
    if log_delta > HALF:
        complement, off = found.log_complement, found.complement_error
        error += unclosed(log_delta, complement, error)
    else:
        complement, off = log_one_minus_exp(log_delta), None
    return exact_answer(log_delta, complement, error, epsilon=epsilon, complement_error=off)
