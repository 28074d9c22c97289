"""Accountants against truth: at places all over the privacy profile, and ε of a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any, cast

import mpmath

from symdp.decimal_text import exponential
from symdp.errors import AccuracyError, InputError, SymdpError
from symdp.interrupt import Deadline, limit, time_limit, worked
from symdp.questions.steps.accounted import direction_of
from symdp.tolerances import SAME, SHORT_TIME

if TYPE_CHECKING:
    from symdp.arguments import MethodName
    from symdp.model.pair import Pair
    from symdp.questions.composition import Composition, Direction
    from symdp.questions.guarantee import Guarantee

SMALL = 1e-10  # δ at which a curve ends, unless somebody asks for more
# What keeps an accountant from an answer: bad input, too little accuracy, a division by zero.
FAILURES = (InputError, ArithmeticError)


def reason_of(failure: Exception) -> str:
    """Return one line that says why there is no number."""
    text = " ".join(str(failure).split())
    if isinstance(failure, SymdpError):
        return text
    return f"its arithmetic broke off ({text})"


def default_range(
    composition: Composition, direction: Direction = "both", method: MethodName = "contour"
) -> tuple[float, float]:
    """Return the range from ε = 0 to where δ is about 1e-10, or near its mass at infinity."""
    sides = composition.sides(direction)
    escaped = max(composition.law(side).mass_at_infinity for side in sides)
    start = composition.delta(0.0, method, direction)
    target = SMALL
    if start.delta <= SMALL:
        target = max(start.delta * SMALL, 1e-300)
    if escaped > 0:
        target = max(target, min(2 * escaped, 0.5 * (escaped + start.delta)))
    if not escaped < target < start.delta:
        return 0.0, 1.0
    try:
        end = composition.epsilon(target, method, direction).epsilon
    except InputError:
        end = 0.0
    return 0.0, end or 1.0


def evenly(ends: tuple[float, float], points: int) -> list[float]:
    """Return evenly spaced ε, both ends among them."""
    low, high = ends
    last = points - 1
    return [low + (high - low) * (index / last) for index in range(last)] + [high]


def sample(
    composition: Composition,
    epsilons: list[float],
    method: MethodName,
    direction: Direction = "both",
    seconds: float | None = None,
) -> list[Guarantee]:
    """Return an accountant's answers, leaving out the ε at which it has none, or no more time."""
    answers = []
    deadline = Deadline(seconds, worked)
    for epsilon in epsilons:
        if deadline.is_past:
            break
        try:
            with deadline.within():
                answers.append(composition.delta(epsilon, method, direction))
        except FAILURES:
            continue
    return answers


TARGETS = (0.5, 1e-2, 1e-5, 1e-10, 1e-30)
# of the time that is left for a place
_TRUTH_SHARE = 0.5
_ROW_SHARE = 0.25
_DELTAS = 8.0  # that an ε of a method takes, about
_ROUNDING = 4e-16  # of a logarithm stored as a double, relative


@dataclass(frozen=True)
class Truth:
    """δ(ε), or ε at a δ, to many digits; `value` is None where it was not reached, for a `reason`.

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
        if self.value == 0:
            return -math.inf
        return float(mpmath.log(self.value))


@dataclass(frozen=True)
class Check:
    """What one accountant says at one ε, and how far that is from the truth."""

    method: MethodName
    truth: Truth
    answer: Guarantee | None
    error: float | None = None
    broken: bool = False
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        truth = self.truth
        entries: dict[str, Any] = {"method": self.method}
        if self.answer:
            entries = self.answer.to_json()
        true_delta = None
        truth_digits = None
        if truth.value is not None:
            true_delta = exponential(truth.log)
            truth_digits = truth.digits
        return entries | {
            "epsilon": truth.epsilon,
            "truth": true_delta,
            "truth_digits": truth_digits,
            "relative_error": self.error,
            "bound_violated": self.broken,
            "reason": self.reason or None,
        }


def places(
    composition: Composition,
    direction: Direction,
    targets: Sequence[float],
    methods: Sequence[MethodName] = ("contour",),
    deadline: Deadline | None = None,
) -> list[float]:
    """Return ε at which δ is about each target, rounded to three digits, ascending.

    The first of the methods that is quick enough is asked, where there is a deadline.  A profile
    that falls to none of them, as one of disjoint supports, has places all over its range.
    """
    end = deadline or Deadline(None, worked)
    guides = list(methods)
    epsilons = set()
    for target in targets:
        for method in tuple(guides):
            try:
                with end.within(SHORT_TIME):
                    epsilon = composition.epsilon(target, method, direction).epsilon
            except InputError:
                break  # below the mass at infinity, say: the profile never falls so far
            except ArithmeticError:
                guides.remove(method)
                continue
            epsilons.add(float(f"{epsilon:.3g}"))
            break
    if not epsilons and targets:
        with suppress(*FAILURES), end.within(SHORT_TIME):
            default = evenly(default_range(composition, direction), len(REPORT_TARGETS))
            epsilons = {float(f"{epsilon:.3g}") for epsilon in default}
    return sorted(epsilons or {0.0})


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
        profiles = {side: profile(steps, epsilon, digits) for side, steps in pairs.items()}
    except FAILURES as error:
        return Truth(epsilon, None, digits, reason=reason_of(error))
    side = max(profiles, key=lambda name: profiles[name].value)
    largest = profiles[side]
    return Truth(epsilon, largest.value, largest.digits, _direction(side), behind=largest.said)


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
        values = {}
        for side, ball in balls.items():
            middle = ball.mid().str(digits + 5, radius=False)
            values[side] = mpmath.mpf(middle)
    side = max(values, key=values.__getitem__)
    proved = min(digits, math.floor(balls[side].rel_accuracy_bits() * math.log10(2.0)) - 1)
    return Truth(epsilon, values[side], max(proved, 0), _direction(side), certified=True)


def _direction(side: str) -> Direction:
    return cast("Direction", direction_of(side))


def check(
    composition: Composition, method: MethodName, direction: Direction, truth: Truth
) -> Check:
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
            error = float(min(ratio - 1, mpmath.mpf(1e308)))
    return Check(method, truth, answer, error, is_broken(answer, truth))


def is_broken(answer: Guarantee, truth: Truth) -> bool:
    """Whether a lower bound lies above the truth, or an upper bound below it.

    A bound is a logarithm in double precision, so half a unit in its last place is allowed for.
    """
    actual = truth.log
    lower = answer.log_lower
    upper = answer.log_upper
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
    methods: Sequence[MethodName] | None = None,
    epsilons: Sequence[float] | None = None,
    advance: Callable[[int, int], None] | None = None,
    patience: float | None = None,
) -> Iterator[Check]:
    """Compare accountants with truth at each ε, or where δ is about each target.

    Within the seconds of patience each place has its part, of which the truth has half and a row a
    quarter of what is left; a row that is not there by then says so, and its method is asked again
    where it has twice the time.
    """
    from symdp.methods.table import names

    chosen = methods
    if chosen is None:
        chosen = names()
    end = Deadline(patience, worked)
    if epsilons is None:
        if targets is None:
            targets = TARGETS
        guides: tuple[MethodName, ...] = ("contour",)
        if patience:
            guides = GUIDES
        epsilons = places(composition, direction, targets, guides, end)
    total = len(epsilons) * (1 + len(chosen))
    done = 0
    tried = dict[str, float]()
    for index, epsilon in enumerate(epsilons):
        deadline = Deadline(end.left / (len(epsilons) - index), worked)
        share = _TRUTH_SHARE * deadline.left
        truth = Truth(epsilon, None, digits, reason=f"{_NO_ANSWER} {share:.2g} s")
        with limit(share, of_work=True):
            truth = truth_at(composition, epsilon, direction, digits)
        for name in (None, *chosen):
            if name is not None:
                share = deadline.left * _ROW_SHARE
                is_new = share > 2.0 * tried.get(name, 0.0)
                waited = share
                if not is_new:
                    waited = tried.get(name, share)
                result = Check(name, truth, None, reason=f"{_NO_ANSWER} {waited:.2g} s")
                if is_new:
                    with limit(share, of_work=True) as outcome:
                        result = check(composition, name, direction, truth)
                    if outcome.late:
                        tried[name] = share
                yield result
            done += 1
            if advance is not None:
                advance(done, total)


def _slack(log_bound: float) -> float:
    if math.isfinite(log_bound):
        return _ROUNDING * (1.0 + abs(log_bound))
    return 0.0


REPORT_TARGETS = (1e-2, 1e-5, 1e-10)  # δ at which a report checks
_EPSILONS = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)  # at which it gives δ where no finite ε exists
_NEWTON_STEPS = 4
_FOR_FIRST = 3.0  # times the time of the others, for the first number
_NO_ANSWER = "no answer within"
_CERTIFIED_DIGITS = 15  # of what stands in for a truth
_FOR_CERTIFICATE = 0.5  # of the time for all truths, for the proved enclosure in place of one
# Whose ε says where to look at the profile, the first that has one.
GUIDES: tuple[MethodName, ...] = ("contour", "clt", "moments")


@dataclass
class Results:
    """The numbers of a section, for those who print them too."""

    answers: list[Guarantee] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    truth: Truth | None = None  # of ε
    checks: list[Check] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)  # of work for every δ
    escaped: float = 0.0  # the mass of outputs that one of P and Q alone has
    profile: list[Guarantee] = field(default_factory=list)  # δ, where no finite ε exists

    @property
    def best(self) -> Guarantee | None:
        """The exact answer; None where there is none."""
        return next((a for a in self.answers if a.method == "contour"), None)

    @property
    def guide(self) -> Guarantee | None:
        """An answer near the truth, the exact one if it is there."""
        by_method = {a.method: a for a in self.answers}
        return next((by_method[name] for name in GUIDES if name in by_method), None)


def analyse(
    composition: Composition,
    delta: float,
    digits: int = 30,
    targets: Sequence[float] = REPORT_TARGETS,
    patience: float | None = None,
) -> Results:
    """Compute ε at δ by every accountant and by truth, and check the profile at a few places."""
    results = Results()
    for _ in analysing(composition, delta, results, digits, targets, patience):
        pass
    return results


def analysing(
    composition: Composition,
    delta: float,
    results: Results,
    digits: int = 30,
    targets: Sequence[float] = REPORT_TARGETS,
    patience: float | None = None,
) -> Iterator[str]:
    """Fill the results of `analyse`, yielding what comes next: what is found by then is there.

    Where no finite ε exists, δ at a few ε is computed instead.  The seconds of patience are for
    each of four things: the first ε, truths, δ by all accountants, ε by all.
    """
    from symdp.methods.table import names

    first = None
    if patience is not None:
        first = _FOR_FIRST * patience  # without it a page says little
    within = Deadline(first, worked)
    with suppress(*FAILURES), within.within():
        sides = composition.sides("both")
        results.escaped = max(composition.law(side).mass_at_infinity for side in sides)
    exists = results.escaped < delta
    epsilons: tuple[float, ...] = _EPSILONS
    guides: tuple[MethodName, ...] = ()
    others: list[MethodName] = []
    if exists:
        epsilons = ()
        guides = GUIDES
        others = [name for name in names() if name not in GUIDES]
    for epsilon in epsilons:
        yield f"δ({epsilon:g})"
        with suppress(*FAILURES), within.within():
            results.profile.append(composition.delta(epsilon))
    for name in guides:
        yield f"ε by {name}"
        allowed = patience
        most = SHORT_TIME
        if not results.failures and not results.answers:
            allowed = first
            most = math.inf
        _account(composition, delta, name, Deadline(allowed, worked), results, most)
    looked = places(composition, "both", targets, GUIDES, Deadline(patience, worked))
    guide = results.guide
    truths = list[Truth]()
    left = len(looked) + 1
    end = Deadline(patience, worked)

    def true(epsilon: float) -> Truth:
        seconds = None
        if patience is not None:
            seconds = end.left / left
        return timely_truth(composition, epsilon, digits, Deadline(seconds, worked))

    if guide is not None:
        yield f"ε to {digits} digits"
        results.truth = epsilon_truth(composition, delta, guide, true)
    for epsilon in looked:
        left -= 1
        yield f"truth at ε = {epsilon:g}"
        truths.append(true(epsilon))
    within = Deadline(patience, worked)
    for name in names():  # each at all places: the slow ones come last
        yield f"δ by {name}"
        for truth in truths:
            results.checks.append(_check(composition, name, truth, within, results))
    within = Deadline(patience, worked)
    for name in others:
        yield f"ε by {name}"
        _account(composition, delta, name, within, results)
    order: dict[str, int] = {name: index for index, name in enumerate(names())}
    results.answers.sort(key=lambda answer: order.get(answer.method, len(order)))
    results.failures.sort(key=lambda failure: order.get(failure[0], len(order)))


def timely_truth(
    composition: Composition,
    epsilon: float,
    digits: int,
    deadline: Deadline,
) -> Truth:
    """Return the true δ(ε), or a proved enclosure in its place where the time is up first."""
    pairs = {side: composition.accounted.pairs(side) for side in different_sides(composition)}
    late = f"not reached within {deadline.seconds:.3g} s"
    truth = Truth(epsilon, None, digits, reason=late)
    proved = Truth(epsilon, None, digits)
    with limit(deadline.left, of_work=True):
        truth = judge(pairs, epsilon, digits)
    if truth.value is not None or math.isinf(deadline.seconds):
        return truth
    with limit(_FOR_CERTIFICATE * deadline.seconds, of_work=True):
        proved = certified(pairs, epsilon, _CERTIFIED_DIGITS)
    if proved.value is None:
        return replace(truth, reason=", ".join(filter(None, (truth.reason, proved.reason))))
    return replace(proved, reason=f"{truth.reason}: a certified value stands in")


def different_sides(composition: Composition) -> tuple[str, ...]:
    """Return the sides that may differ: one where a symmetry exchanges P and Q of each step."""
    from symdp.derive.derivation import derive_pair

    larger = (derive_pair(step).dominating_direction.value for step, _ in composition.steps)
    if all(direction == "both" for direction in larger):
        return composition.sides("remove")
    return composition.sides("both")


def _account(
    composition: Composition,
    delta: float,
    method: MethodName,
    deadline: Deadline,
    results: Results,
    most: float = SHORT_TIME,
) -> None:
    """Ask for ε, unless δ has shown that it will not come in time."""
    # What is kept for further ε makes one of them slow, and not the others.
    needed = _DELTAS * median(results.seconds.get(method, [0.0]))
    is_long = needed > SHORT_TIME and not math.isinf(deadline.seconds)
    why = _late(method, results)
    if is_long and not why:
        why = f"left out: its ε takes about {needed:.0f} s"
    why = why or _left_out(deadline)
    if why:
        results.failures.append((method, why))
        return
    try:
        with deadline.within(most):
            results.answers.append(composition.epsilon(delta, method))
    except FAILURES as error:
        results.failures.append((method, reason_of(error)))


def _late(method: MethodName, results: Results) -> str:
    """Why a method that was too slow before is not asked again."""
    reasons = (c.reason for c in results.checks if c.method == method)
    return next((reason for reason in reasons if reason.startswith(_NO_ANSWER)), "")


def _check(
    composition: Composition, method: MethodName, truth: Truth, deadline: Deadline, results: Results
) -> Check:
    if why := _late(method, results) or _left_out(deadline):
        return Check(method, truth, None, reason=why)
    start = worked()
    try:
        with deadline.within(SHORT_TIME):
            return check(composition, method, "both", truth)
    except AccuracyError as error:  # after the answer, or check would have caught it
        return Check(method, truth, None, reason=str(error))
    finally:
        results.seconds.setdefault(method, []).append(worked() - start)


def _left_out(deadline: Deadline) -> str:
    reason = f"left out: the accountants before it took the {deadline.seconds:g} s of a page"
    if deadline.is_past:
        return reason
    return ""


def epsilon_truth(
    composition: Composition, delta: float, start: Guarantee, ask: Callable[[float], Truth]
) -> Truth:
    """Return the ε at which the true profile equals δ, by Newton steps from a near guess.

    The slope of log δ comes from the contour; it only sets how fast the steps settle.
    """
    truth = ask(start.epsilon)
    epsilon = start.epsilon
    if epsilon == 0 and truth.value is not None and truth.value <= delta:
        return replace(truth, value=mpmath.mpf(0), certified=False)
    for _ in range(_NEWTON_STEPS):
        if truth.value is None:
            return truth
        try:
            with time_limit(SHORT_TIME):
                slope = _slope(composition, epsilon, truth)
        except AccuracyError as error:
            return replace(truth, value=None, reason=str(error))
        with mpmath.workdps(truth.digits + 5):
            gap = mpmath.log(truth.value) - mpmath.log(mpmath.mpf(delta))
            exact = mpmath.mpf(epsilon) - gap / slope
            if abs(exact - epsilon) <= SAME * max(1.0, abs(epsilon)):
                # The next step would change it by about the square of this one.
                return replace(truth, epsilon=float(exact), value=exact)
            epsilon = float(exact)
        truth = ask(epsilon)
    return replace(truth, value=None, reason="Newton's method did not settle")


def _slope(composition: Composition, epsilon: float, truth: Truth) -> float:
    step = 1e-4 * max(1.0, abs(epsilon))
    above = composition.delta(epsilon + step, direction=truth.direction)
    below = composition.delta(epsilon - step, direction=truth.direction)
    slope = float(above.log_delta - below.log_delta) / (2 * step)
    if not slope < 0:
        raise AccuracyError(f"the privacy profile is flat at ε = {epsilon:.6g}")
    return slope
