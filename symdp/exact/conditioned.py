"""Steps of which some have single-valued losses: one sum over those, of what the others give.

With λ the sums of the single values, δ(ε) = δ∞ + Σ_λ p_λ δ′(ε − λ), δ′ and δ∞ of the other steps
and of the single-valued ones: terms of one sign, each as exact as δ′ is, where the characteristic
function of all steps has lulls and comes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.answer import Answer
from symdp.exact.exact import exact_answer
from symdp.exact.finite_sum import NEGLIGIBLE, Atoms, listed, log_total
from symdp.exact.line import log_payoff_bound
from symdp.exact.quiet import is_assured
from symdp.exact.routes import CONDITIONING
from symdp.law.step import Array
from symdp.law.tilts import log_add_exp, log_one_minus_exp
from symdp.law.total import SumLaw

_WHOLE = 1e-13  # a share of the tilted law that may be missing from lists made at other tilts
_SETTLED = 1e-15  # of δ, left out
_LESSER = 0.01
_KNOWN = 1e-9  # relative error up to which 1 − δ is reported
_EXACT = 40.0  # −log of a relative error that is none
_FIRST_TILT = 1.0
_NATURAL = 1.0  # standard deviations⁻¹
_WIDER = 3.0
_MOST_TILTS = 16
_ROUNDING = 4e-16


class _Kept:
    """What a law keeps: its steps apart, and the sums of the single values."""

    def __init__(self, law: SumLaw) -> None:
        self.alone, self.rest = law.apart()
        self.sums: Atoms | None = None
        self.too_many = False

    @cached_property
    def is_cheap(self) -> bool:
        """Whether δ of the other steps takes no integral of its own at every ε."""
        return self.rest.count == 1 or is_assured(self.rest, 0.0)

    def listed(self, tilts: Sequence[float]) -> tuple[Atoms, float] | None:
        """Return the sums and what share of them is missing at one of the tilts, or None."""
        missing = math.inf if self.sums is None else self._missing(self.sums, tilts)
        if missing > _WHOLE and not self.too_many:
            self.sums = listed(self.alone, tilts)
            self.too_many = self.sums is None
            missing = math.inf if self.sums is None else self._missing(self.sums, tilts)
        if self.sums is None or missing > 1.0:
            return None
        # Each time the law was doubled, about as many sums were left out as there are.
        doublings = 2.0 * math.log2(1.0 + self.alone.count)
        return self.sums, missing + doublings * self.sums[0].size * math.exp(-NEGLIGIBLE)

    def _missing(self, sums: Atoms, tilts: Sequence[float]) -> float:
        """Return the share that is seen to be missing over what rounding makes of it."""
        loss, log_weight = sums
        whole = self.alone.log_transform(np.asarray(tilts), 0.0)
        found = np.asarray([log_total(log_weight + t * loss) for t in tilts])
        rounding = _ROUNDING * (1.0 + np.abs(np.asarray(tilts)) * float(np.abs(loss).max()))
        return float(np.maximum(np.abs(np.expm1(found - whole)) - rounding, 0.0).max())


def conditioned(
    law: SumLaw,
    epsilon: float,
    tilts: Sequence[float],
    answer: Callable[[SumLaw, float, float], Answer],
    limits: tuple[int, int],
) -> Answer | None:
    """Return δ(ε), or None where too many values of the other steps' δ would be needed.

    Parameters
    ----------
    law, epsilon
        A mixed law, and ε.
    tilts
        One, not below 0, where e^{K(t)−tε} bounds δ, and others where it bounds 1 − δ.
    answer
        Returns δ of the other steps, bounds included, which may be so many times wider than else.
    limits
        How many values are not too many, and how many where each costs little.
    """
    if _Kept not in law.kept:
        law.kept[_Kept] = _Kept(law)
    kept: _Kept = law.kept[_Kept]
    found_sums = kept.listed(tilts)
    if found_sums is None:
        return None
    (loss, log_weight), missing = found_sums
    right = tilts[0]
    scale = float(law.transform_bound(np.asarray([right]), epsilon)[0]) + _payoff(right)
    scale = min(scale, 0.0)
    sums = Terms(kept.rest, epsilon - loss, log_weight, scale, right)
    if sums.waiting > limits[kept.is_cheap] or not sums.collect(answer):
        return None
    log_value = scale + log_total(np.asarray(sums.gains))
    log_delta = log_add_exp(log_value, kept.alone.log_mass_at_infinity)
    if log_delta == -math.inf:
        return None
    # Every loss is rounded; d log δ / dε is about −t where no single loss decides.
    size = float(np.abs(loss).max()) + abs(epsilon)
    absolute = sums.error + missing + _ROUNDING * size * sums.slope
    error = absolute * math.exp(min(scale - log_delta, 700.0)) + 2.0 * _ROUNDING * size * right
    log_complement = min(log_total(np.asarray(sums.losses)), 0.0)
    found = exact_answer(min(log_delta, 0.0), log_complement, error, route=CONDITIONING)
    known = absolute * math.exp(min(scale - log_complement, 700.0)) < _KNOWN
    return found if known else replace(found, log_complement=None)


class Terms:
    """Σ_λ p_λ δ′(ε − λ) in units of e^scale, those terms first that need no method.

    What is known of the whole, in these units, tells which terms are too small to count.
    """

    def __init__(
        self,
        rest: SumLaw,
        gap: Array,
        log_weight: Array,
        scale: float,
        right: float,
        known: float = 0.0,
    ) -> None:
        self._rest, self._gap, self._log_weight = rest, gap, log_weight
        self._scale = scale
        above, below = _bounds(rest, gap, log_weight - scale, right)
        complement = gap + float(rest.log_transform(np.asarray([-1.0]), 0.0)[0])
        # Where as good as no loss of the others falls short of ε − λ, 1 − δ′ = E e^{ε−λ−L}.
        with np.errstate(divide="ignore"):
            value = np.log(-np.expm1(np.minimum(complement, 0.0)))
        clear = (complement < 0) & (below < np.minimum(complement, value) - _EXACT)
        self.gains: list[float] = (log_weight + value - scale)[clear].tolist()
        self.losses: list[float] = (log_weight + complement)[clear].tolist()
        self.slope = float(np.exp((log_weight + complement - scale)[clear]).sum())
        self.error = 0.0
        self._total = max(math.exp(log_total(np.asarray(self.gains))), known)
        left = np.flatnonzero(~clear)
        with np.errstate(over="ignore"):
            bound = np.exp(log_weight[left] + np.minimum(above[left], 0.0) - scale)
        order = np.argsort(-bound, kind="stable")
        self._left, self._bound = left[order], bound[order]
        self._beyond = np.cumsum(self._bound[::-1])[::-1]
        self._largest = max(self._total, float(bound.max(initial=0.0)))
        self.waiting = int((bound > _SETTLED * self._largest).sum())

    def collect(self, answer: Callable[[SumLaw, float, float], Answer]) -> bool:
        """Add the terms that need a method; return whether all could be had."""
        done, stop = 0, self.waiting
        while done < stop:
            # The farthest first: what is kept for it serves those closer by.
            batch = np.arange(done, stop)
            for index in batch[np.argsort(-self._gap[self._left[batch]])]:
                place, spare = self._left[index], _LESSER * self._largest / self._bound[index]
                try:
                    found = answer(self._rest, float(self._gap[place]), max(1.0, float(spare)))
                except AccuracyError:
                    return False
                self._add(float(self._log_weight[place]), found)
            done = stop
            enough = np.flatnonzero(self._beyond <= _SETTLED * self._total)
            stop = int(enough[0]) if enough.size else self._left.size
        # The others count for nothing in δ, and for all of their mass in 1 − δ.
        self.error += float(self._bound[done:].sum())
        self.losses += self._log_weight[self._left[done:]].tolist()
        return True

    def _add(self, log_weight: float, found: Answer) -> None:
        assert found.log_upper is not None
        assert found.log_lower is not None
        own, value = log_weight - self._scale, found.log_delta
        self.gains.append(own + value)
        size = math.exp(own + value)
        self._total += size
        self.error += max(
            math.exp(own + found.log_upper) - size, size - math.exp(own + found.log_lower)
        )
        complement = found.log_complement
        self.losses.append(
            log_weight + (log_one_minus_exp(value) if complement is None else complement)
        )


def _bounds(rest: SumLaw, gap: Array, weight: Array, right: float) -> tuple[Array, Array]:
    """Bound log δ′ at every gap, and log E(e^{gap−L} − 1)⁺, as closely as pays.

    Parameters
    ----------
    weight
        What δ′ is multiplied by, on the scale on which the sum is about one.
    right
        The tilt of all steps.
    """
    escaped = rest.log_mass_at_infinity
    above, below = np.zeros(gap.size), np.full(gap.size, np.inf)
    natural = _NATURAL / math.sqrt(float(rest.cumulants(0.0, 2)[1]))
    unit = min(_FIRST_TILT, natural)
    for tilt in (right, *(unit * _WIDER**k for k in range(_MOST_TILTS))):
        bound = np.minimum(_height(rest, tilt, gap) + _payoff(tilt), above)
        better = (bound < above - 1.0)[weight + above > -_EXACT - math.log(gap.size)].any()
        above = np.logaddexp(bound, escaped)
        if tilt != right and tilt > natural and not better:
            break
    for k in range(_MOST_TILTS):
        bound = _height(rest, -1.0 - unit * _WIDER**k, gap)
        waiting = (below > np.minimum(gap, 0.0) - _EXACT) & (gap < 0)
        better = (bound < below - 1.0)[waiting].any()
        below = np.minimum(bound, below)
        if unit * _WIDER**k > natural and not better:
            break
    return above, below


def _payoff(tilt: float) -> float:
    """Return log of the largest value of (1 − e^{−x})⁺e^{−tx}."""
    return float(log_payoff_bound(np.asarray([tilt]))[0])


def _height(rest: SumLaw, tilt: float, gap: Array) -> Array:
    """Return K′(t) − t·gap, inf where it is out of reach."""
    try:
        return float(rest.transform_bound(np.asarray([tilt]), 0.0)[0]) - tilt * gap
    except AccuracyError:
        return np.full(gap.size, np.inf)
