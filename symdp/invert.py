"""ε(δ): the inverse of a decreasing privacy profile, for any accountant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from symdp.errors import AccuracyError, InputError

if TYPE_CHECKING:
    from symdp.accountant.answer import Accountant, Answer
    from symdp.numeric.law import SumLaw

_RELATIVE = 4e-15
_ITERATIONS = 100


@dataclass(frozen=True)
class Inverse:
    """The ε at which δ(ε) meets its target, with bounds where the method has them."""

    epsilon: float
    lower: float | None
    upper: float | None
    kind: Literal["exact", "bound", "estimate"]
    advice: str


def invert(accountant: Accountant, law: SumLaw, log_delta: float) -> Inverse:
    """Return the smallest ε ≥ 0 with log δ(ε) ≤ `log_delta`, by Brent's method on log δ.

    Parameters
    ----------
    accountant, law
        The rule and the law of the total loss in one direction.
    log_delta
        log δ < 0.

    Raises
    ------
    InputError
        If the mass at infinity alone is at least δ: no finite ε exists.
    AccuracyError
        If the accountant fails, or its profile is not decreasing where it matters.
    """
    escaped = law.mass_at_infinity
    if escaped > 0 and math.log(escaped) >= log_delta:
        raise InputError(
            f"delta = {math.exp(log_delta):.6g} is not above the probability {escaped:.6g} of an "
            "output that only one of the two distributions can give: no finite epsilon exists"
        )

    def excess(epsilon: float) -> tuple[float, Answer]:
        answer = accountant.log_delta(law, epsilon)
        return answer.log_delta - log_delta, answer

    low, low_answer = 0.0, excess(0.0)
    if low_answer[0] <= 0:
        already = low_answer[1]
        advice = already.advice or "δ(0) is already at most the δ asked for"
        has_upper = already.log_upper is not None and already.log_upper <= log_delta
        upper = 0.0 if has_upper else None
        return Inverse(0.0, 0.0, upper, already.kind, advice)
    top = law.loss_bounds[1]
    mean, variance = (float(v) for v in law.cumulants(0.0, 2))
    width = math.sqrt(max(variance, 1e-300))
    high = max(mean, 0.0) + width * (1.0 + math.sqrt(-2.0 * log_delta))
    for _ in range(200):
        if high >= top:
            high = top
            high_value, high_answer = excess(high)
            break
        high_value, high_answer = excess(high)
        if high_value <= 0:
            break
        low, low_answer = high, (high_value, high_answer)
        high *= 3.0
    else:
        raise AccuracyError(f"no ε was found at which δ falls to {math.exp(log_delta):.3g}")
    if high_value > 0:
        raise AccuracyError(f"δ by {accountant.name} does not fall to {math.exp(log_delta):.3g}")
    from scipy.optimize import brentq

    answers: dict[float, tuple[float, Answer]] = {low: low_answer, high: (high_value, high_answer)}

    def height(epsilon: float) -> float:
        if epsilon not in answers:
            answers[epsilon] = excess(epsilon)
        # Where δ has reached zero its logarithm is −∞; any negative number brackets as well.
        return max(answers[epsilon][0], -1e6)

    root = brentq(height, low, high, xtol=1e-300, rtol=_RELATIVE, maxiter=_ITERATIONS, disp=False)
    height(root)
    apart = root + 1e-4 * (width + abs(root))
    slope = (height(apart) - height(root)) / (apart - root)
    return _with_bounds(root, *answers[root], slope)


def _with_bounds(epsilon: float, value: float, answer: Answer, slope: float) -> Inverse:
    """Turn bounds on log δ at the root into bounds on ε through the local slope."""
    steepness = max(abs(slope), 1e-300)

    def shift(bound: float | None) -> float | None:
        if bound is None or not math.isfinite(bound):
            return None
        return (bound - answer.log_delta) / steepness

    down, up = shift(answer.log_lower), shift(answer.log_upper)
    rounding = 1e-15 * abs(epsilon) + abs(value) / steepness
    return Inverse(
        epsilon,
        None if down is None else max(0.0, epsilon + down - rounding),
        None if up is None else epsilon + up + rounding,
        answer.kind,
        answer.advice,
    )
