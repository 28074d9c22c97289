"""The numbers of a section: ε by every accountant, truth, and the profile checked against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import mpmath

from symdp.errors import AccuracyError
from symdp.interrupt import Deadline, limit, time_limit
from symdp.page.profile import FAILURES, reason_of
from symdp.page.verification import (
    MOST_SECONDS,
    Check,
    Truth,
    certified,
    check,
    judge,
    places,
)

if TYPE_CHECKING:
    from symdp.questions.composition import Composition
    from symdp.questions.guarantee import Guarantee

TARGETS = (1e-2, 1e-5, 1e-10)
_NEWTON_STEPS = 4
_SETTLED = 1e-9
_NO_ANSWER = "no answer within"
_CERTIFIED_DIGITS = 15  # of what stands in for a truth
_FOR_CERTIFICATE = 0.5  # of the time for all truths, for the proved enclosure in place of one
# Whose ε says where to look at the profile, the first that has one.
GUIDES = ("contour", "clt", "moments")


@dataclass(frozen=True)
class EpsilonTruth:
    """The true ε at δ: where the many-digit profile, in its larger direction, meets δ.

    `certified` says that proved enclosures of δ stood in for a truth that took too long.
    """

    epsilon: float
    exact: Any
    digits: int
    direction: str
    reason: str = ""
    certified: bool = False


@dataclass
class Results:
    """The numbers of a section, for those who print them too."""

    answers: list[Guarantee] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    truth: EpsilonTruth | None = None
    checks: list[Check] = field(default_factory=list)

    @property
    def best(self) -> Guarantee | None:
        """The exact answer; None where there is none."""
        return next((a for a in self.answers if a.method == "contour"), None)

    @property
    def guide(self) -> Guarantee | None:
        """An answer near the truth, the exact one if it is there."""
        found = {a.method: a for a in self.answers}
        return next((found[name] for name in GUIDES if name in found), None)


def analyse(
    composition: Composition,
    delta: float,
    digits: int = 30,
    targets: Sequence[float] = TARGETS,
    advance: Callable[[str], None] = lambda _: None,
    patience: float | None = None,
) -> Results:
    """Compute ε at δ by every accountant and by truth, and check the profile at a few places.

    Parameters
    ----------
    composition, delta
        What is accounted for, and the δ at which ε is compared.
    digits
        Digits of the truth.
    targets
        Where on the profile accountants are checked: δ there.
    advance
        Told what comes next.
    patience
        Seconds for the truth, and as many for ε and for δ by the accountants; what is not reached
        by then is left out and says so. None takes as long as it takes.
    """
    from symdp.methods.table import names

    results = Results()
    own = Deadline(patience)
    for name in (*GUIDES, *(name for name in names() if name not in GUIDES)):
        advance(f"ε by {name}")
        _account(composition, delta, name, own, results)
    guide, end = results.guide, Deadline(patience)
    if guide is not None:
        advance(f"ε to {digits} digits")
        results.truth = epsilon_truth(
            composition, delta, guide, lambda at: timely_truth(composition, at, digits, end)
        )
    truths = []
    for epsilon in places(composition, "both", targets, GUIDES, own):
        advance(f"truth at ε = {epsilon:g}")
        truths.append(timely_truth(composition, epsilon, digits, end))
    order = {name: place for place, name in enumerate(names())}
    results.answers.sort(key=lambda answer: order.get(answer.method, len(order)))
    own = Deadline(patience)
    for truth in truths:
        advance(f"accountants at ε = {truth.epsilon:g}")
        for name in names():
            results.checks.append(_check(composition, name, truth, own, results))
    return results


def timely_truth(
    composition: Composition, epsilon: float, digits: int, deadline: Deadline
) -> Truth:
    """Return the true δ(ε), or a proved enclosure in its place where the time is up first."""
    pairs = {side: composition.accounted.pairs(side) for side in different_sides(composition)}
    late = f"not reached within {deadline.seconds:g} s"
    found, proved = Truth(epsilon, None, digits, reason=late), Truth(epsilon, None, digits)
    with limit(deadline.left):
        found = judge(pairs, epsilon, digits)
    if found.value is not None or math.isinf(deadline.seconds):
        return found
    with limit(_FOR_CERTIFICATE * deadline.seconds):
        proved = certified(pairs, epsilon, _CERTIFIED_DIGITS)
    if proved.value is None:
        return replace(found, reason=", ".join(filter(None, (found.reason, proved.reason))))
    return replace(proved, reason=f"{found.reason}: a certified value stands in")


def different_sides(composition: Composition) -> tuple[str, ...]:
    """Return the sides that may differ: one where a symmetry exchanges P and Q of each step.

    Examples
    --------
    >>> import symdp
    >>> different_sides(symdp.compose(symdp.mechanisms.laplace(b=2), 3))
    ('remove',)
    """
    from symdp.derive import derive

    same = all(derive(m).dominating_direction.value == "both" for m, _ in composition.steps)
    return composition.sides("remove" if same else "both")


def _account(
    composition: Composition, delta: float, method: str, deadline: Deadline, results: Results
) -> None:
    if deadline.is_past:
        results.failures.append((method, _left_out(deadline)))
        return
    try:
        with deadline.within(MOST_SECONDS):
            results.answers.append(composition.epsilon(delta, method))
    except FAILURES as error:
        results.failures.append((method, reason_of(error)))


def _check(
    composition: Composition, method: str, truth: Truth, deadline: Deadline, results: Results
) -> Check:
    """Check one answer; a method that was too slow before is not asked again."""
    slow = [c for c in results.checks if c.method == method and c.reason.startswith(_NO_ANSWER)]
    if slow:
        return Check(method, truth, None, reason=slow[0].reason)
    if deadline.is_past:
        return Check(method, truth, None, reason=_left_out(deadline))
    try:
        with deadline.within(MOST_SECONDS):
            return check(composition, method, "both", truth)
    except AccuracyError as late:  # after the answer, or check would have caught it
        return Check(method, truth, None, reason=str(late))


def _left_out(deadline: Deadline) -> str:
    return f"left out: the accountants before it took the {deadline.seconds:g} s of a page"


def epsilon_truth(
    composition: Composition, delta: float, start: Guarantee, ask: Callable[[float], Truth]
) -> EpsilonTruth:
    """Return the ε at which the true profile equals δ, by Newton steps from a near guess.

    The slope of log δ comes from the contour; it only sets how fast the steps settle.
    """
    truth = ask(start.epsilon)
    epsilon = start.epsilon
    if epsilon == 0 and truth.value is not None and truth.value <= delta:
        return EpsilonTruth(0.0, mpmath.mpf(0), truth.digits, truth.direction)
    for _ in range(_NEWTON_STEPS):
        if truth.value is None:
            return EpsilonTruth(epsilon, None, truth.digits, "", truth.reason)
        try:
            with time_limit(MOST_SECONDS):
                slope = _slope(composition, epsilon, truth)
        except AccuracyError as error:
            return EpsilonTruth(epsilon, None, truth.digits, "", str(error))
        with mpmath.workdps(truth.digits + 5):
            gap = mpmath.log(truth.value) - mpmath.log(mpmath.mpf(delta))
            exact = mpmath.mpf(epsilon) - gap / slope
            if abs(exact - epsilon) <= _SETTLED * max(1.0, abs(epsilon)):
                # The next step would change it by about the square of this one.
                return EpsilonTruth(
                    float(exact), exact, truth.digits, truth.direction, certified=truth.certified
                )
            epsilon = float(exact)
        truth = ask(epsilon)
    return EpsilonTruth(epsilon, None, truth.digits, "", "Newton's method did not settle")


def _slope(composition: Composition, epsilon: float, truth: Truth) -> float:
    step = 1e-4 * max(1.0, abs(epsilon))
    high, low = (
        composition.delta(at, direction=truth.direction).log_delta
        for at in (epsilon + step, epsilon - step)
    )
    slope = float(high - low) / (2 * step)
    if not slope < 0:
        raise AccuracyError(f"the privacy profile is flat at ε = {epsilon:.6g}")
    return slope
