"""δ outside the range of the loss, which needs no method, and what all accountants share.

Where ε is at least the largest finite loss, δ = δ∞, the mass that is lost at infinity; where it is
at most the least one, 1 − δ = e^{ε + K(−1)}, as every output counts. Both are rounded like the
logarithm of a mass; next to the largest loss its own rounding may put ε on either side of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from symdp.exact.accuracy import EQUAL, EXACT, ROUNDED
from symdp.exact.answer import OUTSIDE, Answer
from symdp.law.exact_losses import EXTENDED
from symdp.law.tilts import log_one_minus_exp

if TYPE_CHECKING:
    from symdp.law.total import SumLaw


class FloatAccountant(ABC):
    """An accountant in floating point: exact outside the range of the loss, a method inside."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name people ask for it by."""

    @property
    @abstractmethod
    def citations(self) -> tuple[str, ...]:
        """What the method rests on."""

    @property
    def is_exact(self) -> bool:
        """Whether it gives the profile itself, no bound or estimate of it."""
        return False

    @property
    def least_log_delta(self) -> float:
        """The log of the smallest δ that it can give, −∞ where there is none."""
        return -math.inf

    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε) in the direction of the law.

        Where no finite loss exceeds ε, or none falls below it, δ needs no method and is exact.

        Parameters
        ----------
        law
            the total privacy loss.
        epsilon
            any real ε, in nats.

        Raises
        ------
        AccuracyError
            If the method cannot answer to the accuracy it promises.
        """
        exact = outside_range(law, epsilon)
        answer = self.inside_range(law, epsilon) if exact is None else replace(exact, route=OUTSIDE)
        mass = law.uncertain_mass
        return with_uncertain_mass(answer, math.log(mass)) if mass > 0 else answer

    def log_deltas(self, law: SumLaw, epsilons: Sequence[float]) -> list[Answer]:
        """Return log δ at several ε in the direction of the law."""
        return [self.log_delta(law, epsilon) for epsilon in epsilons]

    @abstractmethod
    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the method's own answer, for ε between the least and the largest loss."""


def with_uncertain_mass(answer: Answer, log_mass: float) -> Answer:
    """Return an answer whose lower bound knows that a mass of large losses was taken as infinite.

    δ itself and its upper bound count that mass as lost, so that they are never too small.

    Parameters
    ----------
    answer
        of a law in which the mass is infinite.
    log_mass
        the log of a probability.

    Examples
    --------
    >>> answer = Answer(-10.0, -10.0, -10.0, "exact")
    >>> with_uncertain_mass(answer, -11.0).kind
    'bound'
    """
    if answer.log_lower is None:
        return answer
    lost = log_mass - answer.log_lower
    lower = answer.log_lower + log_one_minus_exp(lost) if lost < 0 else -math.inf
    if answer.kind == "exact" and not lost < math.log(EXACT):
        mass = math.exp(log_mass)
        advice = f"a probability of {mass:.0e} of large losses is not resolved, and counted as lost"
        answer = replace(answer, kind="bound", advice=advice, log_complement=None)
    return replace(answer, log_lower=lower)


def outside_range(law: SumLaw, epsilon: float) -> Answer | None:
    """Return the exact answer where ε lies outside the range of the finite loss, else None.

    δ = δ∞ at and above the largest loss, δ = 1 − e^{ε+K(−1)} at and below the smallest.
    """
    lower, upper = law.loss_bounds
    near = math.isfinite(upper) and abs(epsilon - upper) <= EQUAL * abs(upper)
    top = law.precise_top if near else None
    if (near and top is None) or epsilon >= (upper if top is None else top):
        escaped = law.mass_at_infinity
        if near and (top is None or not escaped > 0):
            # The true end may lie above ε, by the rounding of either, and e^ε Q(S) is about P(S).
            rounding = ROUNDED if top is None else EXTENDED
            beyond = rounding * abs(upper) + max(upper - epsilon, 0.0)
            most = math.log(max(min(1.0, escaped + beyond), 5e-324))
            value = law.log_mass_at_infinity
            return Answer(value, value, most, "exact", log_complement=law.log_finite_mass)
        if not escaped > 0:
            return Answer(-math.inf, -math.inf, -math.inf, "exact", log_complement=0.0)
        return _with_margin(math.log(escaped), law.log_finite_mass, 4.0 * ROUNDED)
    if epsilon <= lower:
        log_complement = float(law.log_transform(np.asarray([-1.0]), epsilon)[0])
        value = log_one_minus_exp(log_complement)
        if value == -math.inf:
            return Answer(value, value, value, "exact", log_complement=0.0)
        # What is rounded is the logarithm of 1 − δ, and the terms that it is the sum of.
        rounded = 8.0 + 2.0 * abs(law.drift(epsilon)) + abs(log_complement)
        rounded += sum(count * abs(part.base.mean) for part, count in law.parts)
        error = 0.5 * ROUNDED * rounded
        answer = _with_margin(value, log_complement, error * math.exp(log_complement - value))
        return replace(answer, complement_error=error)
    return None


def _with_margin(value: float, log_complement: float, error: float) -> Answer:
    """Return an exact answer whose bounds allow for rounding."""
    margin = ROUNDED * (4.0 + abs(value)) + error
    upper = min(0.0, value + margin)
    return Answer(
        value,
        value - margin,
        upper,
        "exact",
        log_complement=log_complement,
        complement_error=margin * math.exp(min(value - log_complement, 700.0)),
    )
