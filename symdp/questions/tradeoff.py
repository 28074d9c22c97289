"""What the privacy profile says in other words: tests, attacks, Rényi and Gaussian privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from symdp.arguments import flat, is_array
from symdp.errors import InputError
from symdp.questions.bracketed_root import bracketed_root
from symdp.questions.complement import Complement, maximum
from symdp.questions.steps import a_composition
from symdp.turns import in_turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from symdp.arguments import Direction
    from symdp.questions.accounted import Composed

_LEAST_DELTA = 1e-12  # of what is a pure ε but for δ
_PLACES = 128  # of ε, in a first look at the Gaussian curve


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
    """Return f(α): no attack whose false alarms have rate α has a smaller miss rate.

    f(α) = sup over all real ε of 1 − δ(ε) − e^ε α, which for two directions together is
    sup over ε ≥ 0 of max(0, 1 − δ(ε) − e^ε α, e^{−ε}(1 − δ(ε) − α)) [IND]. With "remove" the null
    hypothesis is Q and f is T(Q, P); "add" gives its inverse T(P, Q). "both" takes the larger δ at
    each ε: the convex hull of the smaller of the two, which is its own inverse.

    Every ε gives a line that no trade-off lies below, so that f is the highest of the lines that
    were tried, each from the lower end of 1 − δ: at most the true f, and by no more than the error
    of δ where the best line was found. The lines are checked to be those of one curve that is
    convex, falling and at most 1 − α.

    Parameters
    ----------
    composition
        The steps.
    alpha
        The type I error, from 0 to 1, or an array of them.
    direction
        "remove", "add" or "both".

    Raises
    ------
    InputError
        If α is no probability.
    AccuracyError
        If the profile can be computed nowhere, or is none that a trade-off has.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> print(f"{trade_off(compose(mechanisms.gaussian(sigma=1), 1), 0.1):.9f}")
    0.610856308
    """
    lines = Complement(a_composition(composition), direction)
    if is_array(alpha):
        return lines.miss_rates([_probability(one, "alpha") for one in flat(alpha)])
    return float(lines.miss_rates([_probability(alpha, "alpha")])[0])


@in_turn
def inverse_trade_off(composition: Composed, beta: float, direction: Direction = "both") -> float:
    """Return the least false alarm rate α of any attack whose miss rate is `beta`: f⁻¹(β).

    The inverse of T(Q, P) is T(P, Q): the same curve in the other direction.

    Parameters
    ----------
    composition, direction
        As for `trade_off`.
    beta
        The type II error, from 0 to 1.

    Raises
    ------
    InputError
        If β is no probability.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> steps = compose(mechanisms.gumbel(b=2), 3)
    >>> round(inverse_trade_off(steps, trade_off(steps, 0.2, "remove"), "remove"), 9)
    0.2
    """
    swapped: dict[str, Direction] = {"remove": "add", "add": "remove"}
    return trade_off(composition, _probability(beta, "beta"), swapped.get(direction, direction))


@in_turn
def membership_advantage(composition: Composed) -> float:
    """Return the largest true positive rate less false positive rate of any attack: δ(0).

    This is the total variation distance of P and Q, the same in both directions; returned is the
    upper end of its interval, so that no attack does better.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> print(f"{membership_advantage(compose(mechanisms.gaussian(sigma=1), 1)):.9f}")
    0.382924923
    """
    Complement(a_composition(composition), "both")(0.0)  # refuses what is no profile
    answer = composition.delta(0.0)
    return answer.delta if answer.upper is None else answer.upper


@in_turn
def bayes_error(composition: Composed, prior: float = 0.5, direction: Direction = "both") -> float:
    """Return the least probability that an attacker with a prior on membership is wrong.

    min over tests of π β + (1 − π) α = π (1 − δ(log((1 − π)/π))): exact in one direction, and for
    "both" the smaller of the two, so that no attacker does better.

    Parameters
    ----------
    composition, direction
        As for `trade_off`.
    prior
        π, the probability that the record is in, strictly between 0 and 1.

    Raises
    ------
    InputError
        If π is not strictly between 0 and 1.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> print(f"{bayes_error(compose(mechanisms.gaussian(sigma=1), 1)):.9f}")
    0.308537539
    """
    prior = _probability(prior, "prior")
    if not 0.0 < prior < 1.0:
        raise InputError(f"prior = {prior!r}: it must lie strictly between 0 and 1")
    odds = math.log1p(-prior) - math.log(prior)
    return prior * math.exp(Complement(a_composition(composition), direction)(odds))


@in_turn
def renyi_divergence(composition: Composed, order: float, direction: Direction = "both") -> float:
    """Return D_α = K(α − 1)/(α − 1), its limits at 1 and ∞ included; inf where it diverges.

    Parameters
    ----------
    composition, direction
        As for `trade_off`; "both" takes the larger divergence.
    order
        α ≥ 0, or inf for the largest loss.

    Raises
    ------
    InputError
        If the order is negative or no number.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> steps = compose(mechanisms.gaussian(sigma=2), 8)
    >>> [round(renyi_divergence(steps, order), 12) for order in (0.5, 1, 2, 32)]
    [0.5, 1.0, 2.0, 32.0]
    """
    from symdp.arguments import real

    order = math.inf if order == math.inf else real(order, "order")
    if order < 0:
        raise InputError(f"order = {order!r}: Rényi orders are 0 or more")
    steps = a_composition(composition)
    return max(_renyi(steps, order, side) for side in steps.sides(direction))


def _renyi(composition: Composed, order: float, side: str) -> float:
    from symdp.methods.renyi import renyi_curve

    law = composition.law(side)
    if 1.0 < order < math.inf:
        return renyi_curve(law, [order])[0]
    if order < 1.0:
        return law.cgf(order - 1.0) / (order - 1.0)
    if law.mass_at_infinity > 0:
        return math.inf
    return law.loss_bounds[1] if order == math.inf else float(law.cumulants(0.0, 1)[0])


def gaussian_mu(epsilon: float, log_delta: float) -> float:
    """Return the μ at which μ-GDP has this δ at this ε; 0 where δ(ε) is met without any noise.

    Parameters
    ----------
    epsilon
        Any real ε.
    log_delta
        log δ < 0, or −inf.

    Raises
    ------
    InputError
        If δ is not below 1.

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


@dataclass(frozen=True)
class GaussianPrivacy:
    """The μ of the Gaussian curve that touches a privacy profile from above, and where it does."""

    mu: float
    epsilon: float
    least_delta: float

    def __float__(self) -> float:
        return self.mu


@in_turn
def gaussian_privacy(composition: Composed, least_delta: float = _LEAST_DELTA) -> GaussianPrivacy:
    """Return the smallest μ whose Gaussian curve lies above δ(ε) wherever δ(ε) ≥ `least_delta`.

    μ = max over ε ≥ 0 of `gaussian_mu` at (ε, δ(ε)), δ the larger of both directions, found on a
    grid that is refined around its maximum: an estimate. A floor is needed because the tail of a
    loss may be heavier than every Gaussian's, and then no μ would do [IND].

    Parameters
    ----------
    composition
        The steps.
    least_delta
        The floor, strictly between 0 and 1.

    Raises
    ------
    InputError
        If the floor is out of range, or not above the composition's mass at infinity.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> print(f"{gaussian_privacy(compose(mechanisms.gaussian(sigma=2), 1)).mu:.9f}")
    0.500000000
    """
    least = _probability(least_delta, "least_delta")
    steps = a_composition(composition)
    end = steps.epsilon(least).epsilon if 0 < least < 1 else 0.0
    if not 0 < least < 1:
        raise InputError(f"least_delta = {least!r}: it must lie strictly between 0 and 1")

    def mu(epsilon: float) -> float:
        log_delta = steps.delta(epsilon).log_delta
        return gaussian_mu(epsilon, log_delta) if log_delta < 0 else 0.0

    grid = [end * k / _PLACES for k in range(_PLACES + 1)]
    values = [mu(epsilon) for epsilon in grid]
    best = max(range(len(grid)), key=values.__getitem__)
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _PLACES)]
    if low == high:
        return GaussianPrivacy(values[best], grid[best], least)
    place = maximum(mu, low, high)
    value = mu(place)
    if value < values[best]:
        place, value = grid[best], values[best]
    return GaussianPrivacy(value, place, least)


def _probability(value: object, name: str) -> float:
    from symdp.arguments import real

    number = real(value, name)
    if not 0.0 <= number <= 1.0:
        raise InputError(f"{name} = {value!r}: it must lie from 0 to 1")
    return number
