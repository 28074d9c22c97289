"""The lower end of an interval of ε: where a method's lower bound on δ meets the δ asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symdp.exact.answer import Accountant
    from symdp.law.total import SumLaw

_CLOSE = 1e-10  # relative: the ε of a bound needs no more
_MOST = 60  # halvings


def proved_lower_epsilon(
    accountant: Accountant, law: SumLaw, log_delta: float, upper: float, guess: float
) -> float:
    """Return ε₋ ≥ 0 with log δ₋(ε₋) ≥ `log_delta`, so that every ε with δ(ε) ≤ δ is larger.

    As δ decreases, any place where its lower bound reaches the target will do; the largest is
    looked for, by bisection. Zero always will [EA 3.1].

    Parameters
    ----------
    accountant, law
        a method that gives lower bounds, and the total loss.
    log_delta
        log δ < 0.
    upper
        an ε whose upper bound is at most δ, beyond which there is nothing to look for.
    guess
        where the root may lie.

    Examples
    --------
    >>> import math
    >>> from symdp import compose, mechanisms
    >>> from symdp.methods import accountant
    >>> law = compose(mechanisms.gaussian(sigma=50), 2500).law("remove")
    >>> found = proved_lower_epsilon(accountant("eeai"), law, math.log(0.1), 2.0, 1.0)
    >>> round(found, 1)
    1.2
    """

    def reaches(epsilon: float) -> bool:
        lower = accountant.log_delta(law, epsilon).log_lower
        return lower is not None and lower >= log_delta

    low, high = 0.0, upper
    place = min(max(guess, 0.0), upper)
    step = max(upper - place, 1e-3 * upper)
    while place > 0.0 and not reaches(place):
        high, place, step = place, max(place - step, 0.0), 2.0 * step
    low = place
    for _ in range(_MOST):
        if high - low <= _CLOSE * high:
            break
        middle = 0.5 * (low + high)
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low
