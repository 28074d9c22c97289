"""ε(δ): the inverse of a decreasing privacy profile, for any accountant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError, InputError
from symdp.numeric.answer import (
    COUNTED,
    OUTSIDE,
    TOLERABLE,
    FloatAccountant,
    is_rounded,
    margin,
    outside_range,
)
from symdp.numeric.contour import epsilon_near
from symdp.numeric.residues import residues
from symdp.numeric.saddle_point import log_bound_below, log_usual_bound
from symdp.questions.guarantee import Link
from symdp.tolerances import ROUNDED, SUMS_ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.answer import Accountant, Answer
    from symdp.numeric.total import SumLaw

_RELATIVE = 4e-15  # of ε; its own rounding is a tenth of that
_SMALL_DELTA = -1.0  # log δ below which the saddle point's leading order is near enough
_UNSURE = 0.03  # of half an interval of log δ: a root's δ need not be nearer to the one asked for
_ITERATIONS = 100  # of a bracketed search
_AT_ZERO = "δ(0) is already at most the δ asked for"
_LINEAR = 1e-8  # of log δ: its square, which a step along a tangent lacks, is below rounding
_CLOSE = 1e-10  # relative: the ε of a bound needs no more
_FARTHEST = 30.0  # e-folds of the distance to the largest loss that one step of a search takes
_EVALUATIONS = 200  # evaluations, twice what halving alone takes


def cheap_log_bound(laws: Iterable[SumLaw], epsilon: float, wanted: float) -> float:
    """Return an upper bound on the largest log δ(ε) that costs less than δ does, 0 if none does.

    It is no closer to δ than what is `wanted`.

    Where δ is a closed form it costs less than any bound.
    """
    bounds = []
    for law in laws:
        if law.is_closed or residues(law) is not None:
            return 0.0
        bounds.append(log_bound_below(law, epsilon, wanted))
    return max(bounds)


def rounded_upper(
    accountant: Accountant, laws: Mapping[str, SumLaw], epsilon: float
) -> tuple[str, float]:
    """Return the side whose δ(ε) is the largest, and the upper end of log δ that doubles leave.

    Far from what is asked for it is as good as a narrower one; nan where there is none.
    """
    largest = ""
    upper = -math.inf
    for side, law in laws.items():
        if largest and log_usual_bound(law, epsilon, upper) < upper:
            continue
        if not isinstance(accountant, FloatAccountant):
            return "", math.nan
        answer = accountant.near(law, epsilon)
        if answer is None and outside_range(law, epsilon) is not None:
            answer = accountant.log_delta(law, epsilon)
        if answer is None or answer.log_upper is None:
            return "", math.nan
        if answer.kind != "exact" or not margin(answer) <= TOLERABLE:
            return "", math.nan
        if not largest or answer.log_upper > upper:
            largest = side
            upper = answer.log_upper
    return largest, upper


def invert_larger(
    accountant: Accountant, laws: Mapping[str, SumLaw], log_delta: float
) -> dict[str, Link]:
    """Return the inverses of those directions that may have the largest ε.

    A later direction whose δ is small enough already at an upper end of the ε found so far has no
    larger one, and is not looked at any further. Where that is an estimate, so is what it says.
    """
    for law in laws.values():
        _refuse_without_epsilon(law, log_delta)  # before the work of another direction
    inverses: dict[str, Link] = {}
    largest: float | None = None
    for side, law in laws.items():
        if largest is not None:
            is_bounded = (
                accountant.is_exact and not law.is_closed
            )  # whose δ costs less than a bound
            if is_bounded and log_usual_bound(law, largest, log_delta) <= log_delta:
                continue
            answer = _decisive(accountant, law, largest, log_delta)
            if _is_met(answer, log_delta):
                if answer.kind == "estimate":
                    end = None if answer.log_upper is None else largest
                    inverses[side] = Link(largest, None, end, "estimate", answer.advice)
                continue
        inverse = inverses[side] = invert(accountant, law, log_delta, largest)
        end = inverse.value if inverse.upper is None else inverse.upper
        largest = end if largest is None else max(largest, end)
    return inverses


def _decisive(accountant: Accountant, law: SumLaw, epsilon: float, log_delta: float) -> Answer:
    """Return log δ(ε) in doubles where its interval tells whether it is met, else all of it."""
    if isinstance(accountant, FloatAccountant):
        answer = accountant.near(law, epsilon)
        if answer is not None and answer.kind == "exact":
            least, most = answer.log_lower, answer.log_upper
            is_less = most is not None and most <= log_delta
            is_more = least is not None and least > log_delta
            if is_less or is_more:
                return answer
    return accountant.log_delta(law, epsilon)


def _refuse_without_epsilon(law: SumLaw, log_delta: float) -> None:
    escaped = law.mass_at_infinity
    if escaped > 0 and math.log(escaped) >= log_delta:
        raise InputError(
            f"delta = {math.exp(log_delta):.6g} is not above the probability {escaped:.6g} of an "
            "output that only one of the two distributions can give: no finite epsilon exists"
        )


def _is_met(answer: Answer, log_delta: float) -> bool:
    """Return whether δ is at most what is asked for, by its upper bound where it has one."""
    upper = answer.log_delta if answer.log_upper is None else answer.log_upper
    return upper <= log_delta


def invert(
    accountant: Accountant, law: SumLaw, log_delta: float, start: float | None = None
) -> Link:
    """Return the smallest ε ≥ 0 with log δ(ε) ≤ `log_delta`, by Newton's method or in a bracket."""
    _refuse_without_epsilon(law, log_delta)
    escaped = law.mass_at_infinity
    top = max(law.loss_bounds[1], 0.0)
    ends = _ends(law, log_delta)
    if ends[1] - ends[0] <= ROUNDED * ends[1] < math.inf:
        value = math.nextafter(ends[0], ends[1])  # it was rounded down
        return Link(value, *ends, "exact", "", OUTSIDE)
    is_quick = accountant.is_exact and (law.is_closed or residues(law) is not None)
    if is_quick:  # δ costs less than moments do
        mean, variance = law.rough_scale
    else:
        mean, variance = (float(v) for v in law.cumulants(0.0, 2))
        is_exact = accountant.is_exact and not escaped > 0
        if is_exact and _is_met_at_zero(law, mean, variance, log_delta):
            return Link(0.0, 0.0, 0.0, "exact", _AT_ZERO)
    if log_delta < accountant.least_log_delta:
        raise AccuracyError(
            f"{accountant.name} proves no δ below {math.exp(accountant.least_log_delta):.2g}, as "
            "doubles round its sums; use the method moments, tilted-prv or contour"
        )
    if not is_quick and not law.domain[1] > 0:  # moments say nothing of where losses are
        mean, variance = law.scale
    width = math.sqrt(max(variance, 1e-300))
    values: dict[float, tuple[float, Answer]] = {}
    rough: set[float] | None = set()  # where a search on its way need not know more

    def look(epsilon: float) -> tuple[float, float | None, float]:
        """Return log δ(ε) less what is asked, its slope, and how near to 0 it need be."""
        if epsilon not in values:
            answer = None
            if rough is not None and isinstance(accountant, FloatAccountant):
                answer = accountant.near(law, epsilon)
            if answer is None:
                answer = accountant.log_delta(law, epsilon)
            elif rough is not None and _tells_no_epsilon(answer, epsilon):
                rough.add(epsilon)
            values[epsilon] = (answer.log_delta - log_delta, answer)
        value, answer = values[epsilon]
        unsure, low, high = 0.0, answer.log_lower, answer.log_upper
        # A bound must be met, not approached, and the ends of an estimate say little of its value.
        if answer.kind == "exact" and low is not None and high is not None:
            unsure = _UNSURE * 0.5 * (high - low)
        # Where δ has reached zero its logarithm is −∞; any negative number brackets as well.
        return max(value, -1e6), answer.slope, unsure

    def height(epsilon: float) -> float:
        return look(epsilon)[0]

    def at_zero() -> Link | None:
        """Return the answer where δ(0) is small enough already."""
        if height(0.0) > 0:
            return None
        answer = values[0.0][1]
        proved = answer.log_upper is not None and _is_met(answer, log_delta)
        advice = answer.advice or _AT_ZERO
        return Link(0.0, 0.0, 0.0 if proved else None, answer.kind, advice, answer.route)

    guess = start
    if guess is None and accountant.is_exact and not is_quick and log_delta < _SMALL_DELTA:
        next_to_it = ends[0] > 0.0 and law.few_fall_short(ends[0])
        guess = ends[0] if next_to_it else epsilon_near(law, log_delta)
    if guess is None or (start is None and not law.is_spread):
        # The quantile of a normal loss is near enough to start from. Where rare large losses of
        # integer noise carry δ, the leading order overrates it.
        normal = mean + width * exceeded(log_delta)
        guess = normal if guess is None else min(guess, normal)
    guess = min(max(guess, 0.0), top)
    if is_quick and guess == top:  # where log δ has no slope
        guess = 0.5 * top
    smooth = accountant.is_exact and law.is_spread and not law.has_atoms
    root = _newton(look, guess, top, width, smooth)
    if rough and (not root or root in rough):
        values = {
            epsilon: answer_at for epsilon, answer_at in values.items() if epsilon not in rough
        }
        rough = None
        root = _newton(look, guess if root is None else root, top, width, smooth)
    rough = None
    if not root:
        # Widen to a bracket.
        low = high = guess
        step = width
        while height(high) > 0:
            if high >= top or step > 1e9 * width:
                raise AccuracyError(
                    f"δ by {accountant.name} does not fall to {math.exp(log_delta):.3g}"
                )
            low = high
            high = min(high + step, top)
            step = 2.0 * step
        step = width
        while height(low) <= 0 and low > 0:
            low, high, step = max(low - step, 0.0), low, 2.0 * step
        if low == 0.0:
            link = at_zero()
            if link is not None:
                return link
        root = bracketed_root(height, low, high, absolute=1e-300, relative=_RELATIVE)
    value, answer = look(root)[0], values[root][1]
    steepness = answer.slope
    if steepness is None:
        apart = root + 1e-4 * (width + abs(root))
        steepness = (height(apart) - value) / (apart - root)
    height_at_root, at_root = values[root]
    if smooth and value and abs(value) <= _LINEAR and steepness < 0.0:
        # The last step of Newton's method: what it lacks is of second order.
        root -= value / steepness
        height_at_root = value * value
    link = _with_bounds(root, height_at_root, at_root, steepness)
    if answer.kind == "bound" and answer.log_lower is not None:
        # The slope of the upper bound says nothing of where the lower one meets δ.
        guess = root if link.lower is None else link.lower
        lower = proved_lower_epsilon(accountant, law, log_delta, root, guess)
        link = replace(link, lower=lower)
    return _within(link, *ends)


def _tells_no_epsilon(answer: Answer, epsilon: float) -> bool:
    """Return whether balls are asked: what doubles leave of δ makes the interval of ε wide."""
    if not is_rounded(answer):
        return False
    if answer.slope is None or answer.kind != "exact":
        return True
    return not margin(answer) <= COUNTED * abs(answer.slope) * epsilon


def _ends(law: SumLaw, log_delta: float) -> tuple[float, float]:
    """Return ends of ε that need no method: the largest loss alone gives δ, and nothing exceeds it.

    At ε at or above it, δ(ε) = δ∞ ≤ δ.
    """
    if not law.loss_bounds[1] < math.inf:
        return 0.0, math.inf
    least = law.epsilon_of_top(log_delta) or 0.0
    return max(math.nextafter(least, -math.inf), 0.0), max(law.around_top[1], 0.0)


def _within(link: Link, least: float, most: float) -> Link:
    """Return an answer whose ε and ends lie between two that are proved."""
    lower, upper = link.lower, link.upper
    if link.kind == "exact":
        lower, upper = lower or 0.0, most if upper is None else upper
    return replace(
        link,
        value=min(max(link.value, least), most),
        lower=None if lower is None else min(max(lower, least), most),
        upper=None if upper is None else min(max(upper, least), most),
    )


def _is_met_at_zero(law: SumLaw, mean: float, variance: float, log_delta: float) -> bool:
    """Return whether δ(0) ≤ δ by Pinsker's inequality, δ(0) = TV(P, Q) ≤ √(KL(P, Q)/2)."""
    # Σ E|Lᵢ| is at most that; the mean of the losses is rounded like their size.
    size = math.sqrt(law.count * max(variance, 0.0)) + abs(mean)
    return 0.5 * math.log(max(0.5 * (mean + SUMS_ROUNDED * size), 5e-324)) <= log_delta


def exceeded(log_probability: float) -> float:
    """Return about what a standard normal exceeds with a probability, given its logarithm."""
    if log_probability > -0.5:
        return NormalDist().inv_cdf(-math.expm1(log_probability))
    if log_probability > -700.0:  # else it is no double
        return -NormalDist().inv_cdf(math.exp(log_probability))
    square = -2.0 * log_probability
    return math.sqrt(square - math.log(2.0 * math.pi * square))


def _newton(
    look: Callable[[float], tuple[float, float | None, float]],
    guess: float,
    top: float,
    width: float,
    smooth: bool,
) -> float | None:
    """Return the root by Newton's method, 0 where it lies below, or None where it is not for it.

    Each step stays inside what is known of the root's place, and the last step is a plain one,
    or one that would move δ by less than its interval tells. Of a smooth profile the last step is
    left to be taken where its square is below rounding.
    """
    low = 0.0
    high = top
    reach = width
    x = guess
    for _ in range(_ITERATIONS):
        height, rate, unsure = look(x)
        if rate is None or not rate < 0:
            return None
        if x == 0.0 and height <= 0:
            return 0.0
        low, high = (x, high) if height > 0 else (low, x)
        move = -height / rate
        near = max(_RELATIVE * min(x, max(top - x, 0.0)), math.ulp(x))
        if abs(move) <= near or abs(height) <= unsure or (smooth and abs(height) <= _LINEAR):
            return x
        if 0.0 < top - x < math.inf:  # next to the largest loss log δ is a line in log(top − ε)
            move = (top - x) * -math.expm1(min(-move / (top - x), _FARTHEST))
        is_far = top == math.inf and move > reach
        if x + move >= high or is_far:
            fresh = min(x + reach, 0.5 * (low + high))
            reach *= 2.0
        else:
            fresh = max(x + move, 0.0)
            if 0.0 < fresh <= low:
                fresh = 0.5 * (low + high)
        if fresh == x:
            return x
        x = fresh
    return None


def _with_bounds(epsilon: float, value: float, answer: Answer, slope: float) -> Link:
    """Turn bounds on log δ at the root into bounds on ε through the local slope."""
    steepness = max(abs(slope), 1e-300)
    down, up = (
        None
        if bound is None or not math.isfinite(bound)
        else (bound - answer.log_delta) / steepness
        for bound in (answer.log_lower, answer.log_upper)
    )
    rounding = 1e-15 * abs(epsilon) + abs(value) / steepness
    return Link(
        epsilon,
        None if down is None else max(0.0, epsilon + down - rounding),
        None if up is None else epsilon + up + rounding,
        answer.kind,
        answer.advice,
        answer.route,
    )


def proved_lower_epsilon(
    accountant: Accountant, law: SumLaw, log_delta: float, upper: float, guess: float
) -> float:
    """Return ε₋ ≥ 0 with log δ₋(ε₋) ≥ `log_delta`, so that every ε with δ(ε) ≤ δ is larger.

    As δ decreases, any place where its lower bound reaches the target will do; the largest is
    looked for, by bisection. Zero always will [EA 3.1].
    """

    def reaches(epsilon: float) -> bool:
        lower = accountant.log_delta(law, epsilon).log_lower
        return lower is not None and lower >= log_delta

    high = upper
    low = min(max(guess, 0.0), upper)
    step = max(upper - low, 1e-3 * upper)
    while low > 0.0 and not reaches(low):
        high = low
        low = max(low - step, 0.0)
        step = 2.0 * step
    return halved(reaches, low, high, relative=_CLOSE)[0]


def halved(
    holds: Callable[[float], bool], low: float, high: float, relative: float = 0.0, most: int = 60
) -> tuple[float, float]:
    """Return neighbouring ends of where what holds at the lower end ceases to hold, by bisection.

    They are as near to each other, relatively, as is asked, or apart by `most` halvings.
    """
    for _ in range(most):
        middle = 0.5 * (low + high)
        if high - low <= relative * high or middle in (low, high):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def bracketed_root(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    absolute: float = 0.0,
    relative: float = 4e-15,
) -> float:
    """Return a place where the function was computed, as close to a root as asked for.

    Brent's method [R. P. Brent, Algorithms for Minimization without Derivatives, 1973, ch. 4]:
    secants and inverse parabolas while they shorten the steps, else halving. SciPy has it too, and
    takes a third of a second to be imported.
    """
    before = low
    best = high
    at_before = function(low)
    at_best = function(high)
    if at_before * at_best > 0.0:
        raise AccuracyError(f"no root between {low:.6g} and {high:.6g}: the signs do not differ")
    other = before
    at_other = at_before  # the end across the root
    step = earlier = best - before
    for _ in range(_EVALUATIONS):
        if (at_best > 0.0) == (at_other > 0.0):
            other = before
            at_other = at_before
            step = earlier = best - before
        if abs(at_other) < abs(at_best):
            before, best, other = best, other, best
            at_before, at_best, at_other = at_best, at_other, at_best
        least = 0.5 * (absolute + relative * abs(best))
        half = 0.5 * (other - best)
        if at_best == 0.0 or abs(half) <= least:
            return best
        tried = math.inf
        if abs(earlier) > least and abs(at_best) < abs(at_before):
            s = at_best / at_before
            if before == other:
                tried = s * 2.0 * half / (s - 1.0)
            elif at_before != at_other:
                q = at_before / at_other
                r = at_best / at_other
                tried = s * ((best - before) * (r - 1.0) - 2.0 * half * q * (q - r))
                tried /= (q - 1.0) * (r - 1.0) * (s - 1.0)
        shortens = 2.0 * abs(tried) < min(abs(earlier), 3.0 * abs(half) - least)
        earlier, step = (step, tried) if shortens and tried * half > 0.0 else (half, half)
        before = best
        at_before = at_best
        best += step if abs(step) > least else math.copysign(least, half)
        at_best = function(best)
        if math.isnan(at_best):
            raise AccuracyError(f"no number at {best:.6g}, where a root is sought")
    return best
