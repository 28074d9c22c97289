"""What an adapter returns: the upper end of an answer's interval, one double further up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError, InputError
from symdp.tolerances import LOSS_ROUNDED, ROUNDED

if TYPE_CHECKING:
    from symdp.questions.guarantee import Guarantee
    from symdp.questions.ledger import Ledger


def epsilon_upper(ledger: Ledger, delta: float) -> float:
    """Return a number that ε(δ) of all steps so far does not exceed, 0 without any.

    It is inf where no finite ε exists; at δ = 0 it is the largest loss, as in pure differential
    privacy. InputError if δ is no probability, AccuracyError if the interval has no upper end.

    >>> from symdp import Ledger, mechanisms
    >>> steps = Ledger([(mechanisms.laplace(b=2), 4)])
    >>> 2 <= epsilon_upper(steps, 0) < 2.0001, epsilon_upper(steps, 1), epsilon_upper(Ledger(), 0)
    (True, 0.0, 0.0)
    """
    if not 0.0 <= delta <= 1.0:
        raise InputError(f"delta = {delta!r}: it must lie from 0 to 1")
    if not len(ledger) or delta == 1.0:
        return 0.0
    composition = ledger.composition()
    if delta == 0.0:
        return max(0.0, composition.renyi(math.inf) * (1.0 + LOSS_ROUNDED))
    if delta <= infinite_loss(ledger):
        return math.inf
    answer = composition.epsilon(delta)
    if answer.kind == "estimate":  # nothing is proved of its ends
        answer = composition.epsilon(delta, "moments")
    return _above(answer, answer.epsilon_upper)


def delta_upper(ledger: Ledger, epsilon: float) -> float:
    """Return a number that δ(ε) of all steps so far does not exceed, at ε ≥ 0 in nats.

    At inf it is the probability of an infinite loss. InputError if ε is negative or no number,
    AccuracyError if the interval has no upper end.

    >>> from symdp import Ledger, mechanisms
    >>> steps = Ledger([(mechanisms.gaussian(sigma=2), 4)])
    >>> exact = steps.delta(1).delta
    >>> exact <= delta_upper(steps, 1) < exact * 1.0001, delta_upper(steps, float("inf"))
    (True, 0.0)
    """
    if not epsilon >= 0.0:
        raise InputError(f"epsilon = {epsilon!r}: it must be 0 or more")
    if not len(ledger):
        return 0.0
    if epsilon == math.inf:
        return infinite_loss(ledger)
    answer = ledger.composition().delta(epsilon)
    if answer.log_upper == -math.inf:
        return 0.0  # no loss exceeds this ε
    return min(1.0, _above(answer, answer.upper))


def infinite_loss(ledger: Ledger) -> float:
    """Return an upper bound on the probability of an infinite loss in either direction."""
    composition = ledger.composition()
    lost = max(0.0, *(composition.law(side).mass_at_infinity for side in composition.sides("both")))
    return min(1.0, lost + min(lost, ROUNDED))


def _above(answer: Guarantee, upper: float | None) -> float:
    if upper is None:
        raise AccuracyError(f"{answer.method} gives no upper bound here; use another method")
    if upper:
        return math.nextafter(upper, math.inf)
    return 0.0
