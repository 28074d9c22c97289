r"""What the privacy profile says in other words: tests, attacks, Rényi and Gaussian privacy.

Each question is asked of a composition; with a direction, "remove", "add" or "both", it is that of
the larger δ. A number out of its range is an InputError; where the profile can be computed nowhere,
or is none that a trade-off has, there is an AccuracyError.

For every ε the line 1 − δ(ε) − e^ε α lies below the trade-off f, and the highest of all lines is f
[IND]. So a line that is not known may be left out, and one from the lower end of 1 − δ lowers f at
most: what is returned is never above the true f. The lines are those of a trade-off, convex,
falling and at most 1 − α, just if 1 − δ is a concave function of e^ε that stays below 1 and e^ε;
that is checked of all that were computed, and refused where it does not hold.

μ-GDP with its regret: how far a Gaussian curve may lie below a privacy profile.

The smallest μ with δ(ε) ≤ δ_μ(ε) + Δ for every ε ≥ 0. Both profiles are convex in y = e^ε. Between
two places δ lies below the chord of its upper ends and δ_μ above its tangent in the middle: a
difference of two lines, which is largest at an end. Beyond the last place δ ≤ Δ.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from symdp.arguments import flat, is_array, real, share
from symdp.errors import AccuracyError, InputError
from symdp.numeric.answer import EXACT
from symdp.numeric.saddle_point import golden_section, log_one_minus_exp
from symdp.questions.guarantee import GaussianPrivacy
from symdp.questions.invert import bracketed_root, halved
from symdp.questions.steps.accounted import LEAST_DELTA, a_composition
from symdp.tolerances import ABOVE_ROUNDING, LARGEST_EXPONENT, ROUNDED, SUMS_ROUNDED
from symdp.turns import in_turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from symdp.arguments import Direction
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.answer import Answer, Kind
    from symdp.questions.steps.accounted import Composed

_PLACES = 128  # of ε, in a first look at the Gaussian curve
# lines tried for a rate, and those found by a polynomial
_TANGENTS = 40
_INTERPOLATED = 8
_TOLERANCE = 1e-11  # of the interval in which the best ε is sought
_KINK = 1e-5  # in nats: how far from a kink the parabolas may have stopped
_NARROWINGS = 50  # of a golden section
_DOUBLINGS = 60  # of the interval around the best ε: from any width beyond all losses in doubles
_NEVER = -1e9  # the score of a line below 0: less than the log of any miss rate
_CHORDS = 256  # of ε; the loss to chords and tangents falls with their square
_HALVINGS = 50


@overload
def trade_off(composition: Composed, alpha: float, direction: Direction = ...) -> float: ...


@overload
def trade_off(
    composition: Composed, alpha: ArrayLike, direction: Direction = ...
) -> NDArray[np.float64]: ...


@in_turn
def trade_off(
    composition: Composed, alpha: ArrayLike, direction: Direction = "both"
) -> float | NDArray[np.float64]:
    """Return f(α), see `Composition.trade_off`."""
    lines = _Complement(a_composition(composition), direction)
    if is_array(alpha):
        return lines.miss_rates([_probability(rate, "alpha") for rate in flat(alpha)])
    return float(lines.miss_rates([_probability(alpha, "alpha")])[0])


@in_turn
def inverse_trade_off(composition: Composed, beta: float, direction: Direction = "both") -> float:
    """Return f⁻¹(β), see `Composition.inverse_trade_off`."""
    swapped: dict[str, Direction] = {"remove": "add", "add": "remove"}
    return trade_off(composition, _probability(beta, "beta"), swapped.get(direction, direction))


@in_turn
def membership_advantage(composition: Composed) -> float:
    """Return δ(0), see `Composition.membership_advantage`."""
    _Complement(a_composition(composition), "both")(0.0)  # refuses what is no profile
    return composition.delta(0.0).at_most


@in_turn
def bayes_error(composition: Composed, prior: float = 0.5, direction: Direction = "both") -> float:
    """Return an attacker's least probability of error, see `Composition.bayes_error`."""
    prior = share(prior, "prior")
    odds = math.log1p(-prior) - math.log(prior)
    return prior * math.exp(_Complement(a_composition(composition), direction)(odds))


@overload
def renyi_divergence(composition: Composed, order: float, direction: Direction = ...) -> float: ...


@overload
def renyi_divergence(
    composition: Composed, order: Sequence[float] | NDArray[np.float64], direction: Direction = ...
) -> NDArray[np.float64]: ...


@in_turn
def renyi_divergence(composition: Composed, order: Any, direction: Direction = "both") -> Any:
    """Return D_α = K(α − 1)/(α − 1), its limits at 1 and ∞ included; inf where it diverges.

    An upper bound where the pair is one: see `symdp.questions.tradeoff.divergence_kind`.

    Parameters
    ----------
    composition, direction
        As for `trade_off`; "both" takes the larger divergence.
    order
        α ≥ 0, or inf for the largest loss; an array of them gives an array.

    Raises
    ------
    InputError
        If the order is negative or no number.
    AccuracyError
        If a table ends before the order.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> steps = compose(mechanisms.gaussian(sigma=2), 8)
    >>> [round(renyi_divergence(steps, order), 12) for order in (0.5, 1, 2, 32)]
    [0.5, 1.0, 2.0, 32.0]
    """
    if is_array(order):
        import numpy as np

        return np.asarray([renyi_divergence(composition, alpha, direction) for alpha in order])
    from symdp.methods.renyi import one_value

    return one_value(renyi_ends(composition, order, direction), order)


def renyi_ends(
    composition: Composed, order: float, direction: Direction = "both"
) -> tuple[float, float]:
    """Return between which numbers D_α lies: they differ at orders beyond the table of a loss."""
    order = math.inf if order == math.inf else real(order, "order")
    if order < 0:
        raise InputError(f"order = {order!r}: Rényi orders are 0 or more")
    steps = a_composition(composition)
    ends = [_renyi_ends(steps, order, side) for side in steps.sides(direction)]
    return max(0.0, *(low for low, _ in ends)), max(0.0, *(high for _, high in ends))


def _renyi_ends(steps: Composed, order: float, side: str) -> tuple[float, float]:
    """Return the ends on one side: divergences add up, and those of a step with ρ are αρ at most.

    For α ≤ 1 they are ρ at most, as D_α rises with α.
    """
    from symdp.methods.renyi import divergence_ends

    given_steps = steps.accounted.given
    stated = [(step, count) for step, count in given_steps if stated_rho(step) is not None]
    if not stated or order == math.inf:
        return divergence_ends(steps.law(side), order)
    others = [step for step in given_steps if step not in stated]
    parts = [_renyi_ends_of(steps, others, order, side)] if others else []
    for step, count in stated:
        most = count * float(stated_rho(step) or 0.0) * max(order, 1.0)
        low, high = _renyi_ends_of(steps, [(step, count)], order, side)
        parts.append((min(low, most), min(high, most)))
    lows, highs = zip(*parts, strict=True)
    return math.fsum(lows), math.fsum(highs)


def _renyi_ends_of(
    steps: Composed, part_steps: Sequence[tuple[Mechanism, int]], order: float, side: str
) -> tuple[float, float]:
    """Return the ends of a part of the steps of a composition."""
    from symdp.methods.renyi import divergence_ends

    part = type(steps)(part_steps)  # type: ignore[call-arg]
    known_side = side if side in part.sides("both") else "remove"  # both directions have one law
    return divergence_ends(part.law(known_side), order)


def stated_rho(step: Mechanism) -> float | None:
    """Return the bound on D_α/α that a pair carries of all that it stands for, None without one."""
    rho = getattr(step.source, "rho", None)
    if rho is None or step.sampling is not None:
        return None
    return math.nextafter(float(rho), math.inf)


def divergence_kind(steps: Composed) -> Kind:
    """Return "bound" where a pair only dominates what data attain at all orders, else "exact"."""
    protection = steps.accounted.protection
    if protection.by_curve or protection.is_envelope or not protection.is_attained:
        return "bound"
    return "exact"


def gaussian_mu(epsilon: float, log_delta: float) -> float:
    """Return the μ at which μ-GDP has this δ at this ε; 0 where δ(ε) is met without any noise.

    Examples
    --------
    >>> from symdp.methods.gaussian import log_gaussian_delta
    >>> round(gaussian_mu(1.0, log_gaussian_delta(0.7, 1.0)), 12)
    0.7
    """
    from symdp.methods.gaussian import log_gaussian_delta

    if not log_delta < 0.0:
        raise InputError("log_delta: δ must lie below 1")
    if log_delta == -math.inf or (epsilon < 0 and log_delta <= math.log(-math.expm1(epsilon))):
        return 0.0

    def height(log_mu: float) -> float:
        return log_gaussian_delta(math.exp(log_mu), epsilon) - log_delta

    low, high = -1.0, 1.0
    while height(high) < 0:
        high += 1.0
    while height(low) > 0:
        low -= 1.0
    return math.exp(bracketed_root(height, low, high, absolute=1e-15, relative=1e-14))


@in_turn
def gaussian_privacy(composition: Composed, least_delta: float = LEAST_DELTA) -> GaussianPrivacy:
    """Return a μ above a floor, see `Composition.gaussian_privacy`."""
    least = share(least_delta, "least_delta")
    steps = a_composition(composition)
    end = steps.epsilon(least).epsilon

    def mu(epsilon: float) -> float:
        log_delta = steps.delta(epsilon).log_delta
        if log_delta < 0:
            return gaussian_mu(epsilon, log_delta)
        return 0.0

    grid = [end * k / _PLACES for k in range(_PLACES + 1)]
    values = [mu(epsilon) for epsilon in grid]
    best = max(range(len(grid)), key=values.__getitem__)
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _PLACES)]
    if low == high:
        return GaussianPrivacy(values[best], grid[best], least)
    best_epsilon = _maximum(mu, low, high)
    value = mu(best_epsilon)
    if value < values[best]:
        best_epsilon = grid[best]
        value = values[best]
    return GaussianPrivacy(value, best_epsilon, least)


def _probability(value: object, name: str) -> float:
    number = real(value, name)
    if not 0.0 <= number <= 1.0:
        raise InputError(f"{name} = {value!r}: it must lie from 0 to 1")
    return number


class _Touching(NamedTuple):
    """A line 1 − δ(ε) − e^ε α and the rate at which it touches the trade-off."""

    deviate: float  # z with Φ(z) the rate: nearly linear in ε
    epsilon: float
    log_rate: float
    low: float  # of log(1 − δ)
    width: float  # by which 1 − δ may be larger


class _Complement:
    """The lower end of log(1 − δ(ε)), the smaller one of the directions, at every real ε."""

    def __init__(self, composition: Composed, direction: Direction) -> None:
        self._accountant = composition.accountant()
        self._laws = [composition.law(side) for side in composition.sides(direction)]
        # log P(L < ∞) and log Q(P > 0): no 1 − δ(ε) is above the one, or e^ε times the other.
        self._most = min(law.log_finite_mass for law in self._laws)
        self._slope = min(law.log_common_mass for law in self._laws)
        self._known: dict[float, tuple[float, float]] = {}
        self._measured: list[_Touching] = []  # in the order of ε, the rates as answers have them
        self._fitted: list[_Touching] = []  # with rates that fall with ε
        self._touching: list[_Touching] = []  # the same in the order of the rates
        self._refusal: AccuracyError | None = None

    def __call__(self, epsilon: float) -> float:
        """Return the lower end of log(1 − δ(ε))."""
        low = self._lower(epsilon)
        if low == -math.inf and self._refusal is not None:
            raise self._refusal
        return low

    def miss_rates(self, alphas: Sequence[float]) -> NDArray[np.float64]:
        """Return f at some false positive rates between 0 and 1."""
        import numpy as np

        for alpha in sorted(set(alphas)):
            if 0.0 < alpha < 1.0:
                self._seek(math.log(alpha))
        self._check()
        epsilon, low, _ = self._lines()
        if epsilon.size == 0 and self._refusal is not None:
            raise self._refusal
        rates = np.asarray(alphas, dtype=np.float64)
        misses = np.where(rates == 0.0, math.exp(self._most), 0.0)
        for index in np.flatnonzero((rates > 0.0) & (rates < 1.0)).tolist():
            over = np.minimum(epsilon + math.log(rates[index]) - low, 0.0)
            with np.errstate(divide="ignore"):  # of a line that is not above 0
                misses[index] = np.exp(np.max(low + np.log(-np.expm1(over))))
        return misses

    def _lower(self, epsilon: float) -> float:
        """Return the lower end, −∞ where a direction's cannot be computed."""
        if epsilon not in self._known:
            try:
                answers = [self._accountant.log_delta(law, epsilon) for law in self._laws]
            except AccuracyError as refusal:  # a line that is left out raises no miss rate
                self._refusal = refusal
                self._known[epsilon] = -math.inf, math.inf
                return -math.inf
            bounds = [answer.complement_bounds for answer in answers]
            low, high = min(low for low, _ in bounds), min(high for _, high in bounds)
            for answer, (least, _) in zip(answers, bounds, strict=True):
                if least <= low + SUMS_ROUNDED * (1.0 + abs(low)):
                    self._add_touching(epsilon, answer)
            most = min(self._most, epsilon + self._slope)
            if low > most + ABOVE_ROUNDING * (1.0 + abs(most)):
                raise _misfit(epsilon)
            self._known[epsilon] = min(low, most), min(high, most)
        return self._known[epsilon][0]

    def _lines(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return every ε at which 1 − δ is known, in rising order, and the logs of its ends."""
        import numpy as np

        rows = []
        for epsilon, (log_low, log_high) in self._known.items():
            if log_low > -math.inf:
                rows.append((epsilon, log_low, log_high))
        columns = np.asarray(sorted(rows), dtype=np.float64).reshape(-1, 3).T
        epsilons, log_lows, log_highs = columns
        return epsilons, log_lows, log_highs

    def _check(self) -> None:
        """Refuse values of 1 − δ that are not those of one concave function of e^ε."""
        import numpy as np

        epsilon, low, high = self._lines()
        if epsilon.size == 0:
            return
        least = np.maximum.accumulate(low)  # it does not fall
        below = epsilon + np.maximum.accumulate((low - epsilon)[::-1])[::-1]  # nor rises faster
        least = np.maximum(least, below)
        chord = _log_chords(epsilon, low)
        least[1:-1] = np.fmax(least[1:-1], chord)
        wrong = np.flatnonzero(high < least - ABOVE_ROUNDING * (1.0 + np.abs(least)))
        if wrong.size:
            raise _misfit(float(epsilon[wrong[0]]))

    def _add_touching(self, epsilon: float, answer: Answer) -> None:
        """Keep at which rate α = −δ′(ε) e^{−ε} a line touches the trade-off, where that is told."""
        if answer.slope is not None and answer.slope < 0.0:
            log_rate = math.log(-answer.slope) + answer.log_delta - epsilon
            low, high = answer.complement_bounds
            relative_width = math.expm1(min(high - low, 1.0)) + ROUNDED
            width = math.exp(low) * relative_width
            line = _Touching(_deviate(log_rate), epsilon, log_rate, low, width)
            self._insert(line)

    def _insert(self, line: _Touching) -> None:
        """Keep a line, and fit the rates of those that it changes."""
        index = bisect_right(self._measured, line.epsilon, key=attrgetter("epsilon"))
        self._measured.insert(index, line)
        self._fitted.insert(index, line)
        first = max(index - 1, 0)
        before = None
        if first > 0:
            before = self._fitted[first - 1]
        for number in range(first, len(self._measured)):
            before = _fitted(self._measured, number, before)
            if number > index + 1 and before == self._fitted[number]:
                break
            self._fitted[number] = before
        self._touching = sorted(self._fitted, key=attrgetter("deviate"))

    def _seek(self, log_alpha: float) -> None:
        """Compute 1 − δ around the ε whose line is the highest at a false positive rate."""
        if not self._touches(log_alpha):
            self._seek_highest(log_alpha)

    def _touches(self, log_alpha: float) -> bool:
        """Look for the line that touches f at a rate, and return whether it was found.

        The rate falls with ε: it is Q(L > ε). Two lines that touch at a smaller and a larger rate
        bound f between them: it is convex, so that no line is above where theirs meet.
        """
        low, high = self._ends(log_alpha)
        width = self._width(log_alpha, tilts=(0.0,))
        if not self._touching and self._lower(min(max(0.0, low), high)) == -math.inf:
            return False
        for trial in range(_TANGENTS):
            if not self._touching:
                return False
            epsilon, is_highest = self._next(log_alpha, width, trial)
            if is_highest:
                return True
            if not low < epsilon < high:
                epsilon = self._halfway(epsilon, *self._ends(log_alpha))
            if epsilon in self._known:
                return False
            self._lower(epsilon)
            if all(line.epsilon != epsilon for line in self._touching):
                return False
            width *= 2.0
        return False

    def _next(self, log_alpha: float, width: float, trial: int) -> tuple[float, bool]:
        """Return the ε to be tried for a rate, beyond all others by `width`, and whether none is.

        None is where one of the lines next to the rate is as high as where both meet.
        """
        index = bisect_left(self._touching, _deviate(log_alpha), key=attrgetter("deviate"))
        if index == 0:
            return self._touching[0].epsilon + width, False
        if index == len(self._touching):
            return self._touching[-1].epsilon - width, False
        flat = self._touching[index]
        steep = self._touching[index - 1]  # at the smaller ε, and not
        highest = max(_log_line(line.epsilon, line.low, log_alpha) for line in (flat, steep))
        meeting, height = _meeting(flat, steep, log_alpha)
        # A line between them is no better known than they are.
        level = math.exp(highest)
        least_width = min(flat.width, steep.width, EXACT * level)
        enough = SUMS_ROUNDED * level + least_width
        if height - level <= enough:
            return meeting, True
        if trial < _INTERPOLATED:
            nearest = self._touching[max(index - 2, 0) : index + 2]
            guess = _interpolated(nearest, _deviate(log_alpha))
            if trial % 2:  # beyond it, so that the next lines lie on both sides of the rate
                side = min(flat.epsilon, steep.epsilon, key=lambda end: abs(guess - end))
                guess += guess - side
            if flat.epsilon < guess < steep.epsilon:
                return guess, False
        if flat.epsilon < meeting < steep.epsilon:
            return meeting, False
        return 0.5 * (flat.epsilon + steep.epsilon), False

    def _seek_highest(self, log_alpha: float) -> None:
        """Compute 1 − δ around the ε whose line is the highest, by its height alone."""

        def score(epsilon: float) -> float:
            return _log_line(epsilon, self._lower(epsilon), log_alpha)

        left, right = self._bracket(score, log_alpha)
        for end in self._ends(log_alpha):
            if math.isfinite(end):  # where parabolas do not get to
                score(end)
        # The score has kinks at the values of a loss that takes single values only.
        spread = any(law.is_spread for law in self._laws)
        highest = _maximum(score, left, right)
        if not spread:
            near = max(left, highest - _KINK), min(right, highest + _KINK)
            golden_section(lambda epsilon: -score(epsilon), *near, _NARROWINGS)

    def _ends(self, log_alpha: float) -> tuple[float, float]:
        """Return where the highest line can lie.

        Beyond the range of the loss 1 − δ(ε) is constant, or e^ε times that. A line is above 0
        only where e^ε α < P(L < ∞), and above another one only where e^ε Q(P > 0) is.
        """
        bounds = [law.loss_bounds for law in self._laws]
        low = min(low for low, _ in bounds)
        high = max(high for _, high in bounds)
        heights = (_log_line(e, ends[0], log_alpha) for e, ends in self._known.items())
        highest = max(heights, default=_NEVER)
        if highest > _NEVER:
            low = max(low, highest - self._slope)
        return low, min(high, self._most - log_alpha)

    def _halfway(self, epsilon: float, low: float, high: float) -> float:
        """Return a place between the last line that was tried and the end that ε lies beyond."""
        if epsilon >= high:
            return 0.5 * (self._touching[0].epsilon + high)
        return 0.5 * (self._touching[-1].epsilon + low)

    def _width(self, log_alpha: float, tilts: tuple[float, ...]) -> float:
        """Return the first step of a search: a deviation, or −log α where heavy tails make it."""
        variances = [float(law.cumulants(tilt, 2)[1]) for law in self._laws for tilt in tilts]
        return min(math.sqrt(max(*variances, 1e-300)), max(1.0, -log_alpha))

    def _bracket(self, score: Callable[[float], float], log_alpha: float) -> tuple[float, float]:
        """Return an interval around the maximum, from what is known already or from 0 on."""
        low, high = self._ends(log_alpha)
        middle = max(self._known, key=score) if self._known else min(max(0.0, low), high)
        width = self._width(log_alpha, tilts=(0.0, -1.0))
        left = max((e for e in self._known if e < middle), default=middle - width)
        left = max(low, left)
        right = min((e for e in self._known if e > middle), default=middle + width)
        right = min(high, right)
        for _ in range(_DOUBLINGS):
            if not (left > low and score(left) >= score(middle)):
                break
            left, middle, right = max(low, left - 2.0 * (middle - left)), left, middle
        for _ in range(_DOUBLINGS):
            if not (right < high and score(right) >= score(middle)):
                break
            left, middle, right = middle, right, min(high, right + 2.0 * (right - middle))
        return left, right


def _fitted(lines: Sequence[_Touching], index: int, before: _Touching | None) -> _Touching:
    """Return a line with a rate that falls with ε, `before` being the one at the next smaller ε.

    1 − δ is concave in e^ε: a rate lies between the slopes of the chords to both neighbours. Next
    to a kink an answer's own slope may not.
    """
    line = lines[index]
    log_rate = line.log_rate
    if before is not None:
        most = _log_slope(lines[index - 1], line, line.width)
        log_rate = min(log_rate, most, before.log_rate)
    if index + 1 < len(lines):
        least = _log_slope(line, lines[index + 1], -line.width)
        log_rate = max(log_rate, least)
    if log_rate == line.log_rate:
        return line
    return line._replace(log_rate=log_rate, deviate=_deviate(log_rate))


def _log_slope(first: _Touching, second: _Touching, more: float) -> float:
    """Return the log of the slope by e^ε of a chord that rises by so much more."""
    rise = math.exp(second.low) - math.exp(first.low) + more
    apart = second.epsilon - first.epsilon
    if not (rise > 0.0 and apart > 0.0):
        return -math.inf if more < 0.0 else math.inf
    return math.log(rise) - second.epsilon - math.log(-math.expm1(-apart))


def _log_chords(epsilon: NDArray[np.float64], low: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return at each inner ε the log of the chord in e^ε between its two neighbours.

    A neighbour far away has a share that 1 less the other one's would lose to rounding.
    """
    import numpy as np

    def log_expm1(gap: NDArray[np.float64]) -> NDArray[np.float64]:
        return gap + np.log(-np.expm1(-gap))

    gaps = np.diff(epsilon)
    left = gaps[:-1]
    right = gaps[1:]
    log_whole = log_expm1(left + right)
    log_share_left = left + log_expm1(right) - log_whole
    log_share_right = log_expm1(left) - log_whole
    return np.logaddexp(log_share_left + low[:-2], log_share_right + low[2:])


def _misfit(epsilon: float) -> AccuracyError:
    return AccuracyError(
        f"1 − δ computed at epsilon = {epsilon:.6g} is none of a privacy profile, so that no "
        "trade-off is given; prove δ there with certify, and please report it"
    )


def _deviate(log_rate: float) -> float:
    """Return the normal deviate below which a rate lies: nearly linear in ε for many steps."""
    rate = math.exp(min(log_rate, 0.0))
    return NormalDist().inv_cdf(min(max(rate, 1e-300), 1.0 - 1e-16))


def _meeting(flat: _Touching, steep: _Touching, log_alpha: float) -> tuple[float, float]:
    """Return the ε where two lines meet as functions of e^ε, and how high above e^ε α they do."""
    apart = min(steep.epsilon - flat.epsilon, LARGEST_EXPONENT)
    stretch = math.exp(apart)
    low = math.exp(flat.low)
    high = math.exp(steep.low)
    fast = _slope_at(flat.epsilon, flat.log_rate)
    slow = _slope_at(flat.epsilon, steep.log_rate)
    level = _slope_at(flat.epsilon, log_alpha)
    if not fast > slow:
        return math.nan, max(low - level, high - level * stretch)
    gap = high - low + fast - slow * stretch
    times = max(gap / (fast - slow), 0.0)
    epsilon = math.nan
    if times > 0.0:
        epsilon = flat.epsilon + math.log(times)
    return epsilon, low + fast * (times - 1.0) - level * times


def _slope_at(epsilon: float, log_rate: float) -> float:
    """Return e^ε times a rate, a double."""
    return math.exp(min(log_rate + epsilon, LARGEST_EXPONENT))


def _interpolated(lines: Sequence[_Touching], deviate: float) -> float:
    """Return ε at a rate's deviate by the polynomial through some lines', by Neville's scheme."""
    places = [line.deviate for line in lines]
    values = [line.epsilon for line in lines]
    for order in range(1, len(lines)):
        for k in range(len(lines) - order):
            gap = places[k + order] - places[k]
            if gap == 0.0:
                return math.nan
            values[k] += (deviate - places[k]) * (values[k + 1] - values[k]) / gap
    return values[0]


def _log_line(epsilon: float, log_complement: float, log_alpha: float) -> float:
    """Return log(1 − δ − e^ε α); where that is no logarithm, less the farther ε is too large."""
    over = epsilon + log_alpha - log_complement
    if over < 0.0:
        return log_complement + log_one_minus_exp(over)
    # Where e^ε α is a share of 1 − δ at all ε, as of mass that both laws have, ε alone tells.
    return _NEVER * (2.0 + min(over, -_NEVER) + math.atan(epsilon) / math.pi)


def _maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that rises and then falls is largest, found by parabolas."""
    from scipy.optimize import minimize_scalar

    if not low < high:
        return low
    optimum = minimize_scalar(
        lambda x: -function(float(x)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": _TOLERANCE * max(1.0, high - low), "maxiter": 200},
    )
    return float(optimum.x)


@in_turn
def gaussian_privacy_with_regret(composition: Composed, regret: float) -> GaussianPrivacy:
    """Return a μ with a regret, see `Composition.gaussian_privacy`."""
    import numpy as np
    from scipy.special import log_ndtr, ndtr

    most = share(regret, "regret")
    steps = a_composition(composition)
    end = max(steps.epsilon(most).at_most, 1e-3) * (1.0 + 1e-9)
    places = end * np.arange(_CHORDS) / (_CHORDS - 1)
    heights = np.asarray([answer.at_most for answer in steps.delta(places)])
    middle = 0.5 * (places[:-1] + places[1:])
    ahead = places[1:] - middle

    def holds(mu: float) -> bool:
        """Return whether every chord lies below the tangent in its middle, at both of its ends."""
        log_lost = middle + log_ndtr(-middle / mu - 0.5 * mu)  # of e^ε Φ(−ε/μ − μ/2), at most 1
        lost = np.exp(log_lost)
        tangent = ndtr(-middle / mu + 0.5 * mu) - lost
        left = tangent + lost * -np.expm1(-ahead)
        log_right = np.minimum(log_lost + ahead, LARGEST_EXPONENT)
        right = tangent + lost - np.exp(log_right)
        above_left = left - heights[:-1]
        above_right = right - heights[1:]
        above_chord = np.stack([above_left, above_right])
        return bool((above_chord >= SUMS_ROUNDED - most).all())

    if heights[0] <= most:
        return GaussianPrivacy(0.0, end, most)
    above = 1.0
    while not holds(above):
        above *= 2.0
        if above > 1e4:
            raise InputError("no μ up to 10000 has so small a regret: take a larger one")
    _, mu = halved(lambda tried: not holds(tried), 0.0, above, most=_HALVINGS)
    return GaussianPrivacy(mu, end, most)
