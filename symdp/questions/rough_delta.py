"""About δ(ε), from the nodes of every step, for a search on its way to a value that is proved.

Along one line, at z_k = t + 2πik/R, the sum over the nodes that carry P and Q is taken as

    δ(ε) ≈ δ∞ + (1/R) Σ_k e^{K(z_k) − εz_k} w(k)/(z_k(1 + z_k)),    w(k) = (1 + u²)e^{−u²}, u ∝ k,

or, where δ is large, 1 − δ at t = −½ [SPA (28)]. Where |φ|ⁿ does not die out w ends the sum: that
is δ(ε) averaged over losses near ε, off by the fourth power of their distance. Losses so far above
ε that the payoff is 1 count as infinite. Nothing here bounds anything.

Of Poisson sampling the nodes are those of the step without it, whose loss ℓ becomes
log(1 − q + q e^ℓ): no rate needs nodes of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from symdp.errors import AccuracyError, InputError
from symdp.model.relation import ADD_REMOVE
from symdp.model.sampling import Noise
from symdp.model.schemes import Sampling
from symdp.numeric.elementary import log_payoff, uniform_sum
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.loss import LossLaw
from symdp.numeric.saddle_point import log_add_exp, log_one_minus_exp
from symdp.questions.steps.accounted import direction_of

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.step import Array
    from symdp.questions.steps.accounted import Accounted

_FAR = 40.0  # nats beyond ε: the payoff there is 1 to e^−40
_TILTS = np.exp2(np.arange(-8.0, 10.0, 0.25))
_SMALL = 16.0  # e-folds below δ: what the next period of the line adds
_NODES = 4096  # of a line
_MOST_POINTS = 1 << 15  # of one step
_SPARE = 5.0  # u at the end of the line, where w is 4e-10
_MIDDLE = -0.5
_PERIODS = 12  # tried, each 1.3 times as long
_WIDEST = 0.25  # of the width in units of 1/t, where the sum is cut off
_HARDLY = 1e-6  # |φ|ⁿ that has died out


@dataclass(frozen=True)
class _Losses:
    """The losses of one kind of step as points, and the mass of those that are infinite."""

    loss: Array
    log_mass: Array
    infinite: float
    count: int

    def below(self, top: float) -> _Losses:
        """Return them with losses above `top` as infinite, and none below −`top`."""
        is_far = self.loss > top
        infinite = self.infinite + float(np.exp(self.log_mass[is_far]).sum())
        near = np.maximum(self.loss[~is_far], -top)
        return _Losses(near, self.log_mass[~is_far], min(infinite, 1.0), self.count)

    def log_moments(self, tilts: Array) -> Array:
        """Return n log E e^{tL} at several tilts."""
        exponents = self.log_mass + np.multiply.outer(tilts, self.loss)
        top = exponents.max(axis=1, initial=-1e300)
        sums = np.exp(exponents - top[:, None]).sum(axis=1)
        return np.asarray(self.count * (top + np.log(sums)))

    def log_line(self, tilt: float, spacing: float) -> Array:
        """Return n log of E e^{(t + iy)L} over E e^{tL}, at y = 0, h, 2h, …, but for 2πi."""
        exponent = self.log_mass + tilt * self.loss
        weight = np.exp(exponent - exponent.max())
        values = uniform_sum(weight / weight.sum(), spacing * self.loss, 0, _NODES)
        with np.errstate(divide="ignore"):
            return np.asarray(self.count * np.log(values))


def rough_log_deltas(
    accounted: Accounted, sides: Sequence[str], epsilon: float
) -> dict[str, float]:
    """Return about log δ(ε) of every side, nan where too little is known of it.

    Where a bound on it is below another side's δ, that stands for it.
    """
    estimates = {}
    bounds = {}
    for side in sides:
        steps = accounted.steps_of(side)
        estimates[side], bounds[side] = rough_log_delta(steps, direction_of(side), epsilon)
    largest = max(
        (value for value in estimates.values() if not math.isnan(value)), default=-math.inf
    )
    for side, value in estimates.items():
        if math.isnan(value) and bounds[side] < largest:
            estimates[side] = bounds[side]
    return estimates


def rough_log_delta(
    steps: Sequence[tuple[Mechanism, int]], direction: str, epsilon: float
) -> tuple[float, float]:
    """Return about log δ(ε), nan where too little is known of it, and about a bound on it."""
    points = []
    with suppress(AccuracyError, InputError):
        points = [_losses(step, direction, count) for step, count in steps]
    top = abs(epsilon) + _FAR
    near = [losses.below(top) for losses in points if losses is not None]
    if len(near) < len(steps) or any(losses.loss.size == 0 for losses in near):
        return math.nan, 0.0
    return _log_delta_of_points(near, epsilon, top)


def _losses(step: Mechanism, direction: str, count: int) -> _Losses | None:
    """Return the points of one kind of step, None where it has no nodes of that kind."""
    sampling = step.sampling
    is_noise = isinstance(step.source, Noise) and step.neighbours == ADD_REMOVE
    if not is_noise or sampling != Sampling("poisson", sampling.rate if sampling else sp.S.One):
        return _points(loss_law(step, direction), count)
    unsampled = _points(loss_law(_without_sampling(step), "remove"), count)
    if unsampled is None:
        return None
    return _sampled(unsampled, float(sampling.rate), direction)


def _without_sampling(step: Mechanism) -> Mechanism:
    """Return the step on all records, equal for all values of what only its rate depends on."""
    template = step.template
    if template is None:
        return replace(step, sampling=None)
    names = {parameter.name for parameter in template.declared}
    declared = tuple(parameter for parameter in step.declared if parameter.name in names)
    bound = tuple(pair for pair in step.bound if pair[0] in names)
    return replace(step, sampling=None, declared=declared, bound=bound)


def _points(law: LossLaw, count: int) -> _Losses | None:
    if type(law) is not LossLaw:
        return None
    nodes = law.base
    if nodes.loss.size > _MOST_POINTS:
        return None
    return _Losses(nodes.loss, nodes.log_weight, law.mass_at_infinity, count)


def _sampled(losses: _Losses, rate: float, direction: str) -> _Losses:
    """Return the points of (M, Q) or (Q, M), M = (1 − q)Q + qP, from those of (P, Q)."""
    log_q = losses.log_mass - losses.loss
    only_q = max(1.0 - float(np.exp(log_q).sum()), 0.0)
    loss = np.append(losses.loss, -np.inf)
    log_q = np.append(log_q, math.log(max(only_q, 1e-300)))
    log_kept = math.log1p(-rate) if rate < 1.0 else -math.inf
    mixed = np.logaddexp(log_kept, math.log(rate) + loss)
    if direction == "remove":
        return _Losses(mixed, log_q + mixed, rate * losses.infinite, losses.count)
    return _Losses(-mixed, log_q, 0.0, losses.count)


def _log_delta_of_points(
    parts: Sequence[_Losses], epsilon: float, top: float
) -> tuple[float, float]:
    """Return log δ(ε) of sums of points none of which is farther than `top` from 0, and a bound."""
    log_finite = 0.0
    for losses in parts:
        if not losses.infinite < 1.0:
            return 0.0, 0.0
        log_finite += losses.count * math.log1p(-losses.infinite)
    log_infinite = log_one_minus_exp(log_finite)
    moments = np.sum([losses.log_moments(_TILTS) for losses in parts], axis=0)
    bounds = moments - _TILTS * epsilon + log_payoff(_TILTS)
    best = int(np.argmin(bounds))
    log_bound = log_add_exp(log_infinite, float(bounds[best]))
    if bounds[best] < log_infinite - _SMALL:
        return log_infinite, log_bound
    if bounds[best] > -1.0:  # 1 − δ is no larger than δ
        log_rest = _log_integral(parts, epsilon, _MIDDLE, 4.0 * top)
        log_delta = math.nan
        if log_rest < 0.0:
            log_delta = log_one_minus_exp(log_rest)
        return log_delta, log_bound
    log_integral = math.nan
    line = _line(bounds, best, 2.0 * top)
    if line is not None:
        log_integral = _log_integral(parts, epsilon, *line)
    if math.isnan(log_integral):
        return math.nan, log_bound
    return log_add_exp(log_infinite, log_integral), log_bound


def _line(bounds: Array, best: int, period: float) -> tuple[float, float] | None:
    """Return a tilt and a period of the line at which what other periods add is small beside δ.

    They add e^{jtR}δ(ε + jR), j = ±1, …. The tilt next to the best one that allows a short period
    is taken, if its integrand is not so much larger that doubles lose δ.
    """
    least = float(bounds[best])
    is_near = bounds < least + _SMALL
    for _ in range(_PERIODS):
        before = -_TILTS * period
        after = float(np.min(bounds - _TILTS * period)) + _TILTS * period
        serves = is_near & (np.maximum(before, after) < least - _SMALL)
        if serves.any():
            tilts = np.where(serves, bounds, np.inf)
            return float(_TILTS[np.argmin(tilts)]), period
        period *= 1.3
    return None


def _log_integral(parts: Sequence[_Losses], epsilon: float, tilt: float, period: float) -> float:
    """Return the log of the smoothed integral over one line, of either sign."""
    spacing = 2.0 * math.pi / period
    number = np.arange(_NODES)
    z = tilt + 1j * spacing * number
    scale = float(sum(losses.log_moments(np.asarray([tilt]))[0] for losses in parts))
    exponent = sum(losses.log_line(tilt, spacing) for losses in parts) - 1j * z.imag * epsilon
    u = _SPARE * number / _NODES
    sizes = np.exp(exponent.real)
    width = _SPARE / float(z[-1].imag)  # in nats, of what δ is averaged over
    if tilt * width > _WIDEST and float(sizes[u > 1.0].max()) > _HARDLY:
        return math.nan
    window = (1.0 + u * u) * np.exp(-u * u)
    terms = np.exp(exponent) * window / (z * (1.0 + z))
    total = float(np.real(terms[1:].sum() + 0.5 * terms[0])) * spacing / math.pi
    if tilt < 0.0:
        total = -total
    if not total > 0.0:
        return math.nan
    return scale - tilt * epsilon + math.log(total)
