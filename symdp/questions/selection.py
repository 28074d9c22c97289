r"""Private selection: the best of a random number of trials, as in a search of hyper-parameters.

K is drawn first, then the same steps run K times with fresh noise, each with a candidate that does
not depend on the data, and only the best result is released. With f(x) = E x^K, F the distribution
function of one trial's rank and q its law, the result has the density f′(F) q. Write G = 1 − F.

**Truncated negative binomial** numbers (η > −1, 0 < γ < 1; η = 1 is geometric, η = 0 logarithmic)
have f′(x) = m ((1 − (1 − γ)x)/γ)^{−1−η}, m = E K. For neighbours G′ ≤ e^s G + δ(s), so that

.. math::

   \frac{f'(F)}{f'(F')} = \Big(\frac{\gamma + (1-\gamma)G'}{\gamma + (1-\gamma)G}\Big)^{1+\eta}
       \le r^{1+\eta}, \qquad r = \max\Big(e^s, 1 + \frac{1-\gamma}{\gamma}\delta(s)\Big),

as a mean of two quotients lies between them, for every s ≥ 0. **Poisson** numbers have
f′(x) = m e^{m(x−1)}, and G′ − G ≤ δ(0): there r^{1+η} is e^{mδ(0)}. As f′ ≤ m, both give

.. math:: \delta_{best}(\varepsilon) \le m\, \delta(\varepsilon - (1+\eta) \log r).

The Rényi bounds are those of Papernot and Steinke (arXiv 2110.03620): Theorem 2, and for Poisson
numbers the steps of Theorem 6 with the outcome of no trial, which has the mass e^{−m}, counted:

.. math:: e^{(\lambda-1) D} \le e^{-m} + m\, e^{(\lambda-1)(D_{trial} + m \delta(\hat s))},
   \qquad e^{\hat s} = \lambda/(\lambda - 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from symdp.arguments import AT_MOST, real
from symdp.errors import InputError
from symdp.model.relation import PAIR
from symdp.questions.invert import halved
from symdp.questions.steps.accounted import a_composition
from symdp.turns import in_turn

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.composition import Composition

__all__ = ["selection"]

_POINTS = 150  # of ε: chords between them lose about a thousandth of ε
_LAST = 1e-15  # the smallest δ of the table, beside the mass at infinity
_ORDERS = [1.0 + 2.0 ** (k / 8) for k in range(-64, 73)]  # 1.004 to 513
_SLACK = 1.0 + 1e-9  # what orders of divergence, searched and rounded numbers may have lost
_MOST_MEAN = 1e9


@in_turn
def selection(base: Composition, mean: float, shape: float = 1.0, by: str = "profile") -> Mechanism:
    """Return the step that releases the best of a random number of trials, see `Composition`."""
    trial = a_composition(base)
    many = real(mean, "mean")
    eta = math.inf if shape == math.inf else real(shape, "shape")
    if not eta > -1:
        raise InputError(f"shape = {shape!r}: η lies above −1; 1 is geometric, inf is Poisson")
    if not 0 < many <= _MOST_MEAN or (many < 1 and eta < math.inf):
        raise InputError(f"mean = {mean!r}: the expected number of trials is 1 to {_MOST_MEAN:g}")
    if trial.protection.group > 1:
        raise InputError("ask for one record: a group is not what a trial's δ speaks of here")
    if by not in ("profile", "renyi"):
        raise InputError(f"by = {by!r:.40}: it is 'profile' or 'renyi'")
    released = (_by_profile if by == "profile" else _by_orders)(trial, many, eta)
    relation = trial.protection.relation
    shift = trial.protection.shift or AT_MOST
    released = released if shift == AT_MOST else replace(released, shift=shift)
    released = replace(released, modes=1) if trial.protection.by_author else released
    if relation == PAIR:
        return released
    return replace(released, relation=relation)


def _by_profile(trial: Composition, many: float, eta: float) -> Mechanism:
    from symdp.model.curve_tables import from_profile_points

    def delta(epsilon: float) -> float:
        return min(trial.delta(epsilon).at_most * _SLACK, 1.0)

    if eta == math.inf:
        shift = many * delta(0.0)
    elif many == 1.0:
        shift = 0.0  # one trial, always
    else:
        shift = (1.0 + eta) * _least_ratio(delta, _gamma(many, eta)) * _SLACK
    sides = trial.sides("both") if not trial.protection.by_curve else ()
    infinite = max((trial.law(side).mass_at_infinity for side in sides), default=0.0)
    if many * infinite >= 1.0:
        raise InputError("one trial has too large a δ at every ε: no bound on the best of so many")
    last = trial.epsilon(min(max(_LAST, 1.001 * infinite + _LAST), 0.5)).epsilon
    points = []
    for index in range(_POINTS + 1):
        at = last * index / _POINTS
        points.append((at + shift, min(many * delta(at) * _SLACK, 1.0)))
    kept = [(0.0, min(points[0][1], 1.0))] if shift == 0.0 else []
    kept += [(e * (1.0 + 1e-15), d) for e, d in points if e > 0.0 and d < 1.0]
    if not kept:
        raise InputError("one trial has too large a δ at every ε: no bound on the best of so many")
    falling = [(e, min(d for _, d in kept[: index + 1])) for index, (e, _) in enumerate(kept)]
    return from_profile_points(falling, name="best_of_trials")


def _by_orders(trial: Composition, many: float, eta: float) -> Mechanism:
    import numpy as np

    from symdp.model.curve_tables import from_renyi_points

    def divergence(order: float) -> float:
        return trial.renyi(order) * _SLACK

    divergences = [(order, divergence(order)) for order in _ORDERS]
    divergences = [(order, value) for order, value in divergences if math.isfinite(value)]
    bounds = []
    for order, value in divergences:
        if eta == math.inf:
            spent = many * trial.delta(math.log1p(1.0 / (order - 1.0))).at_most
            raised = math.log(many) + (order - 1.0) * (value + spent)
            bounds.append((order, float(np.logaddexp(-many, raised)) / (order - 1.0) * _SLACK))
            continue
        extra = 0.0
        if many > 1.0:
            spent = -math.log(_gamma(many, eta))
            extra = (1.0 + eta) * min(
                (1.0 - 1.0 / other) * least + spent / other for other, least in divergences
            )
        bounds.append((order, (value + extra + math.log(many) / (order - 1.0)) * _SLACK))
    if not bounds:
        raise InputError("one trial has no finite Rényi divergence")
    # D_α does not fall in α, so that a bound at a larger order holds at smaller ones.
    least = math.inf
    rising = []
    for order, value in reversed(bounds):
        least = min(least, value)
        rising.append((order, least))
    return from_renyi_points(rising[::-1], name="best_of_trials")


def _least_ratio(delta: Callable[[float], float], gamma: float) -> float:
    """Return the least log r over s: e^s rises, δ(s) falls, and it is where they meet."""
    odds = (1.0 - gamma) / gamma

    def other(s: float) -> float:
        return math.log1p(odds * delta(s))

    low, high = 0.0, 1.0
    while other(high) > high:
        low, high = high, 2.0 * high
        if high > 1e4:
            raise InputError("one trial has too large a δ at every ε: no bound on the best of many")
    return halved(lambda s: other(s) > s, low, high, relative=1e-12)[1]


def _gamma(many: float, eta: float) -> float:
    """Return a γ, rounded down, at which E K is `many` or more: both bounds fall in γ."""

    def mean(log_gamma: float) -> float:
        odds = math.expm1(-log_gamma)  # (1 − γ)/γ
        if eta == 0.0:
            return odds / -log_gamma
        return eta * odds / -math.expm1(eta * log_gamma)

    low = -1.0
    while mean(low) < many:
        low *= 2.0
    return math.exp(halved(lambda x: mean(x) >= many, low, 0.0, most=200)[0]) * (1.0 - 1e-12)
