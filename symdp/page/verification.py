"""Every accountant against truth, at places all over the privacy profile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import mpmath

from symdp.decimal_text import exponential
from symdp.errors import InputError
from symdp.interrupt import Deadline
from symdp.page.profile import FAILURES, reason_of
from symdp.questions.accounted import direction_of

if TYPE_CHECKING:
    from symdp.model.pair import Pair
    from symdp.questions.composition import Composition, Direction
    from symdp.questions.guarantee import Guarantee

TARGETS = (0.5, 1e-2, 1e-5, 1e-10, 1e-30)
MOST_SECONDS = 4.0  # for one answer, where there is a limit at all
_ROUNDING = 4e-16  # of a logarithm stored as a double, relative


@dataclass(frozen=True)
class Truth:
    """δ(ε) to many digits; `value` is None where it could not be reached, for a `reason`.

    `behind` says how many digits are known and by what; `certified`, that not the truth was reached
    in time but a proved enclosure of fewer digits, of which `value` is the middle.
    """

    epsilon: float
    value: Any
    digits: int
    direction: Direction = "both"
    reason: str = ""
    certified: bool = False
    behind: str = ""

    @property
    def log(self) -> float:
        """log δ as a double, −inf where δ = 0."""
        return -math.inf if self.value == 0 else float(mpmath.log(self.value))


@dataclass(frozen=True)
class Check:
    """What one accountant says at one ε, and how far that is from the truth.

    Attributes
    ----------
    answer
        None where the method gave none, for a `reason`.
    error
        (δ − truth)/truth; None without truth or answer, or where the truth is 0.
    broken
        Whether a bound that the method gives is on the wrong side of the truth.
    """

    method: str
    truth: Truth
    answer: Guarantee | None
    error: float | None = None
    broken: bool = False
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        truth = self.truth
        own: dict[str, Any] = self.answer.to_json() if self.answer else {"method": self.method}
        known = truth.value is not None
        return own | {
            "epsilon": truth.epsilon,
            "truth": exponential(truth.log) if known else None,
            "truth_digits": truth.digits if known else None,
            "relative_error": self.error,
            "bound_violated": self.broken,
            "reason": self.reason or None,
        }


def places(
    composition: Composition,
    direction: Direction,
    targets: Sequence[float],
    methods: Sequence[str] = ("contour",),
    deadline: Deadline | None = None,
) -> list[float]:
    """Return ε at which δ is about each target, rounded to three digits, ascending.

    The first of the methods that is quick enough is asked, where there is a deadline.
    """
    end = deadline or Deadline(None)
    guides = list(methods)
    found = set()
    for target in targets:
        for method in tuple(guides):
            try:
                with end.within(MOST_SECONDS):
                    epsilon = composition.epsilon(target, method, direction).epsilon
            except InputError:
                break  # below the mass at infinity, say: the profile never falls so far
            except ArithmeticError:
                guides.remove(method)
                continue
            found.add(float(f"{epsilon:.3g}"))
            break
    return sorted(found or {0.0})


def truth_at(composition: Composition, epsilon: float, direction: Direction, digits: int) -> Truth:
    """Return the true δ(ε), proved in balls.

    Fewer digits are taken where the asked ones are out of reach; `Truth.digits` says how many.
    """
    pairs = {side: composition.accounted.pairs(side) for side in composition.sides(direction)}
    return judge(pairs, epsilon, digits)


def judge(pairs: Mapping[str, Sequence[tuple[Pair, int]]], epsilon: float, digits: int) -> Truth:
    """Return the largest of the true δ(ε) of several sides, each a list of (pair, count)."""
    from symdp.prove.truth import profile

    try:
        found = {side: profile(steps, epsilon, digits) for side, steps in pairs.items()}
    except FAILURES as error:
        return Truth(epsilon, None, digits, reason=reason_of(error))
    side = max(found, key=lambda one: found[one].value)
    own = found[side]
    return Truth(epsilon, own.value, own.digits, _direction(side), behind=own.said)


def certified(
    pairs: Mapping[str, Sequence[tuple[Pair, int]]], epsilon: float, digits: int
) -> Truth:
    """Return the middle of a proved enclosure of the largest δ(ε), in place of the truth."""
    from symdp.prove.enclosure import enclose_delta

    try:
        balls = {side: enclose_delta(steps, epsilon, digits) for side, steps in pairs.items()}
    except FAILURES as error:
        return Truth(epsilon, None, digits, reason=f"nor certified: {reason_of(error)}")
    with mpmath.workdps(digits + 10):
        values = {
            side: mpmath.mpf(ball.mid().str(digits + 5, radius=False))
            for side, ball in balls.items()
        }
    side = max(values, key=values.__getitem__)
    proved = min(digits, math.floor(balls[side].rel_accuracy_bits() * math.log10(2.0)) - 1)
    return Truth(epsilon, values[side], max(proved, 0), _direction(side), certified=True)


def _direction(side: str) -> Direction:
    return cast("Direction", direction_of(side))


def check(composition: Composition, method: str, direction: Direction, truth: Truth) -> Check:
    """Return one accountant's answer beside the truth."""
    try:
        answer = composition.delta(truth.epsilon, method, direction)
    except FAILURES as failure:
        return Check(method, truth, None, reason=reason_of(failure))
    if truth.value is None:
        return Check(method, truth, answer)
    with mpmath.workdps(truth.digits + 10):
        error = None
        if truth.value != 0:
            ratio = mpmath.exp(mpmath.mpf(answer.log_delta)) / truth.value
            error = _finite(ratio - 1)
    return Check(method, truth, answer, error, is_broken(answer, truth))


def is_broken(answer: Guarantee, truth: Truth) -> bool:
    """Whether a lower bound lies above the truth, or an upper bound below it.

    A bound is a logarithm in double precision, so half a unit in its last place is allowed for.
    """
    actual = truth.log
    lower, upper = answer.log_lower, answer.log_upper
    if answer.kind == "bound" and upper is None:
        upper = answer.log_delta
    unsure = 10.0**-truth.digits
    above = lower is not None and lower - _slack(lower) - unsure > actual
    below = upper is not None and upper + _slack(upper) + unsure < actual
    return above or below


def verify(
    composition: Composition,
    direction: Direction = "both",
    *,
    digits: int = 30,
    targets: Sequence[float] | None = None,
    methods: Sequence[str] | None = None,
    advance: Callable[[int, int], None] | None = None,
) -> Iterator[Check]:
    """Compare accountants with truth where δ is about each target.

    Parameters
    ----------
    composition, direction
        What is accounted for.
    digits
        Digits of the truth.
    targets
        Values of δ, `TARGETS` if left out; the ε are found by the contour and rounded.
    methods
        Names of accountants, all of `symdp.methods.names()` if left out.
    advance
        Called with (done, total) as the comparison goes on.

    Yields
    ------
    Check, method by method within each ε.
    """
    from symdp.methods.table import names

    chosen = names() if methods is None else methods
    epsilons = places(composition, direction, TARGETS if targets is None else targets)
    total = len(epsilons) * (1 + len(chosen))
    done = 0
    for epsilon in epsilons:
        truth = truth_at(composition, epsilon, direction, digits)
        for name in ("", *chosen):
            if name:
                yield check(composition, name, direction, truth)
            done += 1
            if advance is not None:
                advance(done, total)


def _slack(log_bound: float) -> float:
    return _ROUNDING * (1.0 + abs(log_bound)) if math.isfinite(log_bound) else 0.0


def _finite(value: Any) -> float:
    """Return a double, the largest one where the value is larger."""
    return float(min(value, mpmath.mpf(1e308)))
