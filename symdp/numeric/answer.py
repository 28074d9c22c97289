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

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

ROUNDING = 2.3e-16  # relative: of one operation on doubles, rounded up
ROUNDED = 1e-15  # relative: of a sum of losses or the log of a mass, a few operations
EQUAL = 2e-14  # of the largest loss: losses that are closer are one value, but for rounding
BLURRED = 4.0 * EQUAL  # of the largest loss: the longest chain of losses that are taken together
SETTLED = 1e-13  # relative change at which a sum counts as complete: less is rounding
NEGLIGIBLE = 40.0  # e-folds below what counts: 4e-18, less than rounding
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
        if self.log_complement is None:
            low = -math.inf if self.log_upper is None else log_one_minus_exp(self.log_upper)
            return low, 0.0 if self.log_lower is None else log_one_minus_exp(self.log_lower)
        error = self.complement_error
        low = self.log_complement + math.log1p(-error) if error < 1.0 else -math.inf
        return low, min(self.log_complement + math.log1p(error), 0.0)


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
        return Answer(log_delta, log_delta, math.log(most), "exact", "", 0.0, complement_error=most)
    width = SAFETY * error
    # The logarithm itself is rounded, and next to δ = 1 what 1 − δ was raised from.
    raised = -log_complement if math.isfinite(log_complement) else 0.0
    width += 2.0 * ROUNDING * abs(log_delta) * (1.0 + raised)
    lower = log_delta + math.log1p(-width) if width < 1 else -math.inf
    upper = min(log_delta + math.log1p(width), 0.0)
    finite_slope = slope if math.isfinite(slope) else None
    if complement_error is None:
        off = width * math.exp(min(log_delta - log_complement, 700.0))
    else:
        off = SAFETY * complement_error + 2.0 * ROUNDING * (1.0 + min(raised, 1e300))
    if width < EXACT:
        return Answer(
            log_delta, lower, upper, "exact", "", log_complement, finite_slope, complement_error=off
        )
    advice = (
        f"the contour reached a relative accuracy of only {width:.0e} here; "
        "the bounds say so, the digits do not"
    )
    return Answer(log_delta, lower, upper, "estimate", advice, None, finite_slope)


def is_narrow(finite: arb, log_infinite: float) -> bool:
    """Return whether δ − δ∞ is known to a double's rounding of δ and of 1 − δ."""
    total = finite + arb(log_infinite).exp().mid()
    return bool(finite.rad() < _TIGHT * total.lower()) and bool(
        finite.rad() < _TIGHT * (1 - total).lower()
    )


def answer_in_balls(finite: arb, log_infinite: float, rest: arb | None = None) -> Answer:
    """Return δ = δ∞ + what a ball encloses: its ends are those of the ball, rounded outwards.

    `rest` is 1 − δ where that is an integral of its own: it may be narrower than what δ lacks.
    """
    infinite = arb(log_infinite).exp().mid()
    with ctx.workprec(BALL_BITS << 9):  # 1 − δ may be far below the rounding of δ
        total = (finite + arb(infinite, (4.0 * ROUNDED * infinite).upper())).max(arb(0)).min(arb(1))
        total = total if total.is_finite() else arb(0.5, 0.5)  # nothing is known then
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


def falling_answer(answer: Answer, fall: arb) -> Answer:
    """Return an answer with the slope of log δ, from −dδ/dε, where that is known."""
    if not fall > 0 or not answer.log_delta > -math.inf:
        return answer
    return replace(answer, slope=-math.exp(min(_log(fall.mid()) - answer.log_delta, 700.0)))


def _log(end: arb) -> float:
    """Return the logarithm of an exact number, −∞ of none above 0."""
    return float(end.log().mid()) if end > 0 else -math.inf


def unclosed(log_delta: float, log_complement: float, error: float) -> float:
    """Return how far both miss 1, relative to δ; 0 where an absolute error of them explains it."""
    gap = abs(math.exp(log_delta) + math.exp(log_complement) - 1.0)
    return gap * math.exp(min(-log_delta, 700.0)) if gap > error + SETTLED else 0.0


def margin(answer: Answer) -> float:
    """Return how far the bounds lie from the value."""
    assert answer.log_upper is not None
    assert answer.log_lower is not None
    return max(answer.log_upper - answer.log_delta, answer.log_delta - answer.log_lower)


def is_rounded(answer: Answer) -> bool:
    """Return whether rounding of doubles makes the interval so wide that balls are asked."""
    return margin(answer) > COUNTED + SAFETY * ROUNDED * abs(answer.log_delta)


class FloatAccountant(Accountant):
    """An accountant in floating point: exact outside the range of the loss, a method inside."""

    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε) in the direction of the law.

        Where no finite loss exceeds ε, or none falls below it, δ needs no method and is exact.
        """
        exact = outside_range(law, epsilon)
        answer = self.inside_range(law, epsilon) if exact is None else replace(exact, route=OUTSIDE)
        mass = law.uncertain_mass
        return with_uncertain_mass(answer, math.log(mass)) if mass > 0 else answer

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
    lost = log_mass - answer.log_lower
    lower = answer.log_lower + log_one_minus_exp(lost) if lost < 0 else -math.inf
    if answer.kind == "exact" and not lost < math.log(EXACT):
        mass = math.exp(log_mass)
        advice = f"a probability of {mass:.0e} of large losses is not resolved, and counted as lost"
        answer = replace(answer, kind="bound", advice=advice, log_complement=None)
    return replace(answer, log_lower=lower)


def outside_range(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ∞ at and above the largest loss, 1 − e^{ε+K(−1)} at and below the least, or None."""
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
