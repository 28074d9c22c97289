"""What an accountant answers, within which interval, and what it must offer to be one.

**Intervals.** An estimate of the relative error is widened by `SAFETY`; rounding of log δ, and of 1
− δ where δ is raised from it, is added. An answer whose interval is wider than `EXACT` is called an
estimate.

**Outside the range of the loss** δ needs no method. Where ε is at least the largest finite loss, δ
= δ∞, the mass that is lost at infinity; where it is at most the least one, 1 − δ = e^{ε + K(−1)},
as every output counts. Both are rounded like the logarithm of a mass; next to the largest loss its
own rounding may put ε on either side of it.

**What is called rounded, equal, negligible, accurate and long** in this room is said once, below.
An answer lacks what rounding takes, what a sum leaves out, and what a rule of quadrature misses.
The first is `ROUNDING` times the size of what was added; the second is kept e^-`NEGLIGIBLE` below
what is kept, so that it is less than the first; the third is estimated, widened by `SAFETY`, and no
wider than `TOLERABLE` unless there is no other way. Other numbers follow from these.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from flint import arb, ctx

from symdp.numeric.loss import EXTENDED
from symdp.numeric.saddle_point import log_one_minus_exp
from symdp.tolerances import ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

ROUNDING = 2.3e-16  # relative: of one operation on doubles, rounded up
EQUAL = 2e-14  # of the largest loss: losses that are closer are one value, but for rounding
BLURRED = 4.0 * EQUAL  # of the largest loss: the longest chain of losses that are taken together
SETTLED = 1e-13  # relative change at which a sum counts as complete: less is rounding
COUNTED = 1e-11  # relative half width of δ beyond which rounding counts, and balls take over
TOLERABLE = 1e-9  # relative half width of δ beyond which the next row of the table is asked
EXACT = 1e-6  # relative half width of δ beyond which an answer is no longer called exact
SAFETY = 4.0  # an error estimate is widened by this before it becomes an interval
HALF = math.log(0.5)  # log δ above which 1 − δ tells more than δ
MOST_NODES = 1 << 20  # values of one array: 16 MB, and about a second to evaluate
MOST_WORK = 1 << 27  # exponentials or sums of one answer: about two seconds
LONG_LINE = 1 << 17  # nodes of a line of losses with a density, which have many nodes themselves
FEW_NODES = 1 << 12  # of a line: ten milliseconds, less than to find out whether fewer will do

Kind = Literal["exact", "bound", "estimate"]
OUTSIDE = "outside_range"  # the row that answers beyond all finite losses, for every method


@dataclass(frozen=True, slots=True)
class Answer:
    """δ at one ε in one direction, on the logarithmic scale.

    `log_delta` is log δ (−inf where δ = 0); `log_lower` and `log_upper` are the method's own
    bounds on it, None where it has none; `advice` says what to do where the method left its regime.
    `log_complement` is log(1 − δ) where the method computes it without cancellation, with the
    relative error `complement_error`, and `slope` is d log δ / dε where the method knows it.
    `route` names the row of `symdp.methods.route` that gave it, empty for a method asked by name.
    """

    log_delta: float
    log_lower: float | None
    log_upper: float | None
    kind: Kind
    advice: str = ""
    log_complement: float | None = None
    slope: float | None = None
    route: str = ""
    complement_error: float = 0.0

    @property
    def complement_bounds(self) -> tuple[float, float]:
        """The logs of the ends between which 1 − δ lies: those of δ where it is no own integral."""
        low = -math.inf
        high = 0.0
        if self.log_complement is not None:
            error = self.complement_error
            if error < 1.0:
                low = self.log_complement + math.log1p(-error)
            return low, min(self.log_complement + math.log1p(error), 0.0)
        if self.log_upper is not None:
            low = log_one_minus_exp(self.log_upper)
        if self.log_lower is not None:
            high = log_one_minus_exp(self.log_lower)
        return low, high


class Accountant(Protocol):
    """A rule that turns the law of a composition's privacy loss into δ(ε)."""

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

    @abstractmethod
    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε) in the direction of the law."""

    def log_deltas(self, law: SumLaw, epsilons: Sequence[float]) -> list[Answer]:
        """Return log δ at several ε in the direction of the law."""
        return [self.log_delta(law, epsilon) for epsilon in epsilons]


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
    """Return δ within `error`, relative and not yet widened, and how far to trust that.

    `complement_error` is that of 1 − δ where it is an integral of its own, else it was taken from
    δ.
    """
    if log_delta == -math.inf:
        # No loss was seen above ε; one may lie as far above as both are rounded.
        most = ROUNDED * max(abs(epsilon), ROUNDED)
        return Answer(
            log_delta,
            log_lower=log_delta,
            log_upper=math.log(most),
            kind="exact",
            log_complement=0.0,
            complement_error=most,
        )
    # The logarithm itself is rounded, and next to δ = 1 what 1 − δ was raised from.
    raised = 0.0
    if math.isfinite(log_complement):
        raised = -log_complement
    rounding = 2.0 * ROUNDING * abs(log_delta) * (1.0 + raised)
    width = SAFETY * error + rounding
    lower = -math.inf
    if width < 1:
        lower = log_delta + math.log1p(-width)
    upper = min(log_delta + math.log1p(width), 0.0)
    finite_slope = slope if math.isfinite(slope) else None
    if not width < EXACT:
        advice = (
            f"the contour reached a relative accuracy of only {width:.0e} here; "
            "the bounds say so, the digits do not"
        )
        return Answer(log_delta, lower, upper, "estimate", advice, slope=finite_slope)
    if complement_error is None:
        off = width * math.exp(min(log_delta - log_complement, 700.0))
    else:
        complement_rounding = 2.0 * ROUNDING * (1.0 + min(raised, 1e300))
        off = SAFETY * complement_error + complement_rounding
    return Answer(
        log_delta,
        lower,
        upper,
        "exact",
        log_complement=log_complement,
        slope=finite_slope,
        complement_error=off,
    )


def is_narrow(finite: arb, log_infinite: float) -> bool:
    """Return whether δ − δ∞ is known to a double's rounding of δ and of 1 − δ."""
    total = finite + arb(log_infinite).exp().mid()
    radius = finite.rad()
    if not radius < _TIGHT * total.lower():
        return False
    return bool(radius < _TIGHT * (1 - total).lower())


def answer_in_balls(finite: arb, log_infinite: float, rest: arb | None = None) -> Answer:
    """Return δ = δ∞ + what a ball encloses: its ends are those of the ball, rounded outwards.

    `rest` is 1 − δ where that is an integral of its own: it may be narrower than what δ lacks.
    """
    infinite = arb(log_infinite).exp().mid()
    with ctx.workprec(BALL_BITS << 9):  # 1 − δ may be far below the rounding of δ
        rounded_infinite = arb(infinite, (4.0 * ROUNDED * infinite).upper())
        total = (finite + rounded_infinite).max(arb(0)).min(arb(1))
        if not total.is_finite():
            total = arb(0.5, 0.5)  # nothing is known then
        complement = 1 - total
    if not total.upper() > 0:
        return Answer(-math.inf, -math.inf, -math.inf, "exact", log_complement=0.0)
    if rest is not None and not rest.rad() > total.rad():
        complement = rest
    log_delta = _log_of_end(total.mid())
    log_complement = _log_of_end(complement.mid())
    complement_error = 0.0
    if complement.mid() > 0:
        complement_error = float((complement.rad() / complement.mid()).upper())
    complement_error += 2.0 * ROUNDING * (1.0 + min(-log_complement, 1e300))
    # The logarithm is rounded, and δ when it is raised from it.
    slack = 2.0 * ROUNDING * (1.0 + abs(log_delta))
    low = _log_of_end(total.lower()) - slack
    high = min(_log_of_end(total.upper()) + slack, 0.0)
    answer = Answer(
        log_delta,
        low,
        high,
        "exact",
        log_complement=log_complement,
        complement_error=complement_error,
    )
    if max(high - log_delta, log_delta - low) <= EXACT:
        return answer
    advice = "a part of the mass of the loss was not resolved; the bounds say so"
    return replace(answer, kind="estimate", advice=advice)


def falling_answer(answer: Answer, fall: arb) -> Answer:
    """Return an answer with the slope of log δ, from −dδ/dε, where that is known."""
    if not fall > 0 or not answer.log_delta > -math.inf:
        return answer
    log_steepness = _log_of_end(fall.mid()) - answer.log_delta
    return replace(answer, slope=-math.exp(min(log_steepness, 700.0)))


def _log_of_end(end: arb) -> float:
    """Return the logarithm of an exact number, −∞ of none above 0."""
    if end > 0:
        return float(end.log().mid())
    return -math.inf


def unclosed(log_delta: float, log_complement: float, error: float) -> float:
    """Return how far both miss 1, relative to δ; 0 where an absolute error of them explains it."""
    total = math.exp(log_delta) + math.exp(log_complement)
    gap = abs(total - 1.0)
    if gap <= error + SETTLED:
        return 0.0
    return gap * math.exp(min(-log_delta, 700.0))


def margin(answer: Answer) -> float:
    """Return how far the bounds lie from the value."""
    assert answer.log_upper is not None
    assert answer.log_lower is not None
    return max(answer.log_upper - answer.log_delta, answer.log_delta - answer.log_lower)


def is_rounded(answer: Answer) -> bool:
    """Return whether rounding of doubles makes the interval so wide that balls are asked."""
    rounding = SAFETY * ROUNDED * abs(answer.log_delta)
    return margin(answer) > COUNTED + rounding


class FloatAccountant(Accountant):
    """An accountant in floating point: exact outside the range of the loss, a method inside."""

    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε) in the direction of the law.

        Where no finite loss exceeds ε, or none falls below it, δ needs no method and is exact.
        """
        outside = outside_range(law, epsilon)
        if outside is None:
            answer = self.inside_range(law, epsilon)
        else:
            answer = replace(outside, route=OUTSIDE)
        mass = law.uncertain_mass
        if mass > 0:
            answer = with_uncertain_mass(answer, math.log(mass))
        return answer

    def near(self, law: SumLaw, epsilon: float) -> Answer | None:
        """Return log δ(ε) for a search on its way, None where `log_delta` is as soon.

        It differs from that where `is_rounded` holds of it.
        """
        return None

    @abstractmethod
    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the method's own answer, for ε between the least and the largest loss."""


def with_uncertain_mass(answer: Answer, log_mass: float) -> Answer:
    """Return an answer that counts a mass of large losses as lost, and whose lower end does not."""
    if answer.log_lower is None:
        return answer
    log_share = log_mass - answer.log_lower
    lower = -math.inf
    if log_share < 0:
        lower = answer.log_lower + log_one_minus_exp(log_share)
    if answer.kind == "exact" and not log_share < math.log(EXACT):
        mass = math.exp(log_mass)
        advice = f"a probability of {mass:.0e} of large losses is not resolved, and counted as lost"
        answer = replace(answer, kind="bound", advice=advice, log_complement=None)
    return replace(answer, log_lower=lower)


def outside_range(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ∞ at and above the largest loss, 1 − e^{ε+K(−1)} at and below the least, or None."""
    lower, upper = law.loss_bounds
    distance = abs(epsilon - upper)
    is_near = math.isfinite(upper) and distance <= EQUAL * abs(upper)
    if is_near:
        top = law.precise_top
        if top is None or epsilon >= top:
            return _at_largest_loss(law, epsilon, is_exact=top is not None)
    elif epsilon >= upper:
        return _lost_at_infinity(law)
    if not epsilon <= lower:
        return None
    at_minus_one = law.log_transform(np.asarray([-1.0]), epsilon)
    log_complement = float(at_minus_one[0])
    log_delta = log_one_minus_exp(log_complement)
    if log_delta == -math.inf:
        return Answer(log_delta, log_delta, log_delta, "exact", log_complement=0.0)
    # What is rounded is the logarithm of 1 − δ, and the terms that it is the sum of.
    rounded = 8.0 + 2.0 * abs(law.drift(epsilon)) + abs(log_complement)
    means = [count * abs(part.base.mean) for part, count in law.parts]
    rounded += sum(means)
    error = 0.5 * ROUNDED * rounded
    delta_error = error * math.exp(log_complement - log_delta)
    answer = _with_margin(log_delta, log_complement, delta_error)
    return replace(answer, complement_error=error)


def _at_largest_loss(law: SumLaw, epsilon: float, is_exact: bool) -> Answer:
    """Return δ next to the largest loss, which is known in doubles alone or beyond them."""
    escaped = law.mass_at_infinity
    if is_exact and escaped > 0:
        return _lost_at_infinity(law)
    # The true end may lie above ε, by the rounding of either, and e^ε Q(S) is about P(S).
    upper = law.loss_bounds[1]
    rounding = EXTENDED if is_exact else ROUNDED
    beyond = rounding * abs(upper) + max(upper - epsilon, 0.0)
    most = max(min(1.0, escaped + beyond), 5e-324)
    return Answer(
        law.log_mass_at_infinity,
        log_lower=law.log_mass_at_infinity,
        log_upper=math.log(most),
        kind="exact",
        log_complement=law.log_finite_mass,
    )


def _lost_at_infinity(law: SumLaw) -> Answer:
    """Return δ∞."""
    escaped = law.mass_at_infinity
    if not escaped > 0:
        return Answer(-math.inf, -math.inf, -math.inf, "exact", log_complement=0.0)
    return _with_margin(math.log(escaped), law.log_finite_mass, 4.0 * ROUNDED)


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
