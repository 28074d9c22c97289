"""Single-valued losses that are large but rarely: a sum over the large ones, the rest by others.

Where a rare loss beyond ε makes δ, no tilt makes ε typical, and an integral cancels wholly.  The
values of one step are split at a threshold.  With λ the sums of j values above it and δ_{n−j} the
profile of n − j steps below it,

    δ(ε) = Σ_j Σ_λ p_λ δ_{n−j}(ε − λ),

terms of one sign.  Values are added from the largest on; with those up to c left to add, what a
partial sum can still give is at most p_λ e^{K_c(s) − s(ε − λ)}, and what is too little is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from flint import arb, ctx

from symdp.errors import AccuracyError
from symdp.exact.answer import Answer
from symdp.exact.conditioned import Terms
from symdp.exact.exact import exact_answer
from symdp.exact.finite_sum import log_total
from symdp.exact.routes import LARGE_JUMPS
from symdp.law.loss import LossLaw
from symdp.law.nodes import integer_nodes
from symdp.law.panels import Index
from symdp.law.step import Array, Step
from symdp.law.tilts import log_one_minus_exp
from symdp.law.total import SumLaw

_RARE = 1e-3  # about how many steps of all have a loss above the threshold
_HIGHER = (0, 4, 8, 16, 24, 32)  # values more below it, where those above have too many sums
_OUTWEIGHED = 30.0
_FEWEST = 2  # values of δ that are worth no other threshold
_SAME = 1e-12
_NEGLIGIBLE = 42.0  # −log of a share of δ
_FARTHEST = 24  # log₂ of a tilt at which losses are looked for
_MOST_PARTIAL = 400_000
_SLOPES = 40  # tilts s that bounds are taken at
_LARGEST_DELTA = math.log(0.1)
_BITS = 140
_ROUNDING = 4e-16


class _Below:
    """Marks a law of values below a threshold, which is not split again."""


class _Rests:
    """The laws below thresholds, which a law keeps for other ε."""

    def __init__(self) -> None:
        self._steps: dict[tuple[float, int], LossLaw] = {}
        self._sums: dict[tuple[float, int, int], SumLaw] = {}

    def law(self, part: LossLaw, values: _Values, first: int, count: int) -> SumLaw:
        """Return the law of so many steps whose loss is one of the first values."""
        step = float(values.loss[0]), first
        key = (*step, count)
        if key not in self._sums:
            if step not in self._steps:
                self._steps[step] = _law_below(part, values, first)
            self._sums[key] = SumLaw([(self._steps[step], count)])
            self._sums[key].kept[_Below] = True
        return self._sums[key]


class _Values(NamedTuple):
    """The values of one step's loss in rising order, and the logs of their masses."""

    owner: Index  # which piece each is of
    place: Array
    loss: Array
    log_mass: Array


@dataclass
class _Partial:
    """Sums of some large values: their logs of weights, their least value and how often it is."""

    loss: Array
    log_weight: Array
    last: Index
    times: Array


def with_jumps(
    law: SumLaw, epsilon: float, answer: Callable[[SumLaw, float, float], Answer], most: int
) -> Answer | None:
    """Return δ(ε) of equal steps as a sum over rare large losses, or None where that is too long.

    Parameters
    ----------
    law, epsilon
        Of single values alone, and ε.
    answer
        Returns δ of the steps below the threshold, bounds included, which may be so many times
        wider than else.
    most
        How many values of that are not too many: each is an integral of its own.
    """
    if len(law.parts) > 1 or _Below in law.kept or law.mass_at_infinity > 0:
        return None
    part, count = law.parts[0]
    values = _values(part, epsilon, count)
    if values is None:
        return None
    usual, best = _threshold(values, count), None
    for more in _HIGHER:
        split = _split(law, values, usual + more, epsilon)
        if split is not None and (best is None or split.waiting < best.waiting):
            best = split
        if best is not None and best.waiting <= _FEWEST:
            break
    if best is None or best.waiting > most:
        return None
    if not all(level.collect(answer) for level in best.levels):
        return None
    gains = best.gains + [gain for level in best.levels for gain in level.gains]
    error = best.error + math.fsum(level.error for level in best.levels)
    slope = best.slope + math.fsum(level.slope for level in best.levels)
    log_delta = best.scale + log_total(np.asarray(gains))
    if not -math.inf < log_delta < _LARGEST_DELTA:
        return None
    size = abs(epsilon) + float(np.abs(values.loss).max())
    error = (error + _ROUNDING * size * slope) * math.exp(best.scale - log_delta)
    error += _ROUNDING * best.largest
    return exact_answer(log_delta, log_one_minus_exp(log_delta), error, route=LARGE_JUMPS)


@dataclass
class _Split:
    """What a threshold makes of δ, in units of e^scale: terms for each number of large losses.

    `gains` and `slope` are of sums in which every loss is large, `error` is of those left out, and
    `largest` is how far a log of a weight lies from 0.
    """

    scale: float
    levels: list[Terms]
    gains: list[float]
    slope: float
    error: float
    largest: float

    @property
    def waiting(self) -> int:
        """How many values of δ of the other steps are needed."""
        return sum(level.waiting for level in self.levels)


def _split(law: SumLaw, values: _Values, first: int, epsilon: float) -> _Split | None:
    """Return what a threshold makes of δ, None where it has too many sums or hardly any."""
    if not 0 < first < values.loss.size:
        return None
    part, count = law.parts[0]
    scale = _about(values, first, epsilon, count)
    if not -math.inf < scale < _LARGEST_DELTA:
        return None
    slopes, heights = _heights(values, count)
    usual = min(height[first - 1] - s * epsilon for s, height in zip(slopes, heights, strict=True))
    if usual > scale + _OUTWEIGHED:  # not large losses make δ
        return None
    found = _large(values, first, epsilon, count, scale)
    if found is None:
        return None
    sums, left_out = found
    rests: _Rests = law.kept.setdefault(_Rests, _Rests())
    log_below = log_total(values.log_mass[:first])
    split = _Split(scale, [], [], 0.0, math.exp(left_out - scale), 0.0)
    for number, partial in enumerate(sums):
        if not partial.loss.size:
            continue
        weight = partial.log_weight + (count - number) * log_below
        gap = epsilon - partial.loss
        split.largest = max(split.largest, float(np.abs(weight).max()))
        if number < count:
            rest = rests.law(part, values, first, count - number)
            split.levels.append(Terms(rest, gap, weight, scale, _natural(rest), 1.0))
        else:  # every loss is large
            above = gap < 0
            split.gains = (weight[above] + np.log(-np.expm1(gap[above])) - scale).tolist()
            split.slope = float(np.exp((weight + gap)[above] - scale).sum())
    return split


def _natural(law: SumLaw) -> float:
    """Return a tilt at which the law is hardly another."""
    return 1.0 / math.sqrt(float(law.cumulants(0.0, 2)[1]))


def _values(part: LossLaw, epsilon: float, count: int) -> _Values | None:
    """Return all values that may count, None where they are not those of integers."""
    pieces = part.step.pieces
    if part.step.point_loss.size or not all(piece.integer for piece in pieces):
        return None
    for level in range(_FARTHEST):
        tilts = [-1.0, 0.0, min(2.0**level, 0.9 * part.domain[1])]
        try:
            places = [integer_nodes(piece, tilts) for piece in pieces]
        except AccuracyError:
            return None
        made = [piece.accurate(x) for piece, x in zip(pieces, places, strict=True)]
        log_mass, loss = (np.concatenate(column) for column in zip(*made, strict=True))
        owner = np.repeat(np.arange(len(pieces)), [x.size for x in places])
        order = np.argsort(loss, kind="stable")
        order = order[np.isfinite(log_mass[order]) & np.isfinite(loss[order])]
        place = np.concatenate(places)
        values = _Values(owner[order], place[order], loss[order], log_mass[order])
        beyond = values.log_mass[values.loss > epsilon]
        # Beyond ε masses must have fallen so far that the rest counts for nothing, or end.
        if beyond.size and (
            beyond[-1] < beyond.max() - _NEGLIGIBLE - math.log(count)
            or values.loss[-1] >= part.loss_bounds[1] - _SAME * abs(part.loss_bounds[1])
        ):
            return values
    return None


def _threshold(values: _Values, count: int) -> int:
    """Return the number of values that are not rare."""
    tail = np.cumsum(np.exp(values.log_mass[::-1]))[::-1]
    return int(np.searchsorted(-tail, -_RARE / count))


def _about(values: _Values, first: int, epsilon: float, count: int) -> float:
    """Return about log δ, by one large value alone."""
    with np.errstate(divide="ignore"):
        payoff = np.log(-np.expm1(np.minimum(epsilon - values.loss[first:], 0.0)))
    return math.log(count) + log_total(values.log_mass[first:] + payoff)


def _large(
    values: _Values, first: int, epsilon: float, count: int, scale: float
) -> tuple[list[_Partial], float] | None:
    """Return the sums of 0, 1, 2, … large values, and the log of what those left out may add."""
    floor = scale - _NEGLIGIBLE - math.log(_MOST_PARTIAL)
    large, log_mass = values.loss[first:], values.log_mass[first:]
    slopes, heights = _heights(values, count)
    lost: list[Array] = []
    none = np.zeros(1)
    start = _Partial(none, none, np.asarray([large.size - 1], dtype=np.intp), np.zeros(1))
    found, number = [start], 0
    while found[-1].loss.size and number < count:
        here = found[-1]
        # Every value up to the least so far may come next.
        owner = np.repeat(np.arange(here.loss.size), here.last + 1)
        if owner.size > _MOST_PARTIAL:
            return None
        ends = np.cumsum(here.last + 1)
        last = np.arange(owner.size) - np.repeat(ends - here.last - 1, here.last + 1)
        again = last == here.last[owner]
        times = np.where(again, here.times[owner] + 1.0, 1.0)
        weight = here.log_weight[owner] + log_mass[last] + math.log(count - number) - np.log(times)
        loss = here.loss[owner] + large[last]
        gap = epsilon - loss
        reach = np.full(owner.size, np.inf)
        for s, height in zip(slopes, heights, strict=True):
            np.minimum(reach, height[first + last] - s * gap, out=reach)
        bound = weight + np.minimum(reach, 0.0)
        kept = bound > floor
        lost.append(bound[~kept])
        found.append(_Partial(loss[kept], weight[kept], last[kept], times[kept]))
        number += 1
        if sum(part.loss.size for part in found) > _MOST_PARTIAL:
            return None
    left_out = log_total(np.concatenate(lost)) if lost else -math.inf
    return found, left_out


def _heights(values: _Values, count: int) -> tuple[Array, list[Array]]:
    """Return tilts s ≥ 0, and for each of them K_c(s) of all steps for every largest value c."""
    spread = math.sqrt(float(np.exp(values.log_mass) @ values.loss**2)) + 1e-300
    slopes = np.geomspace(1e-2 / spread / math.sqrt(count), 1e3 / spread, _SLOPES)
    heights = []
    for s in slopes:
        logs = values.log_mass + s * values.loss
        heights.append(count * np.maximum(np.logaddexp.accumulate(logs), 0.0))
    return slopes, heights


def _law_below(part: LossLaw, values: _Values, first: int) -> LossLaw:
    """Return the law of a step whose loss is not large."""
    log_total_mass = log_total(values.log_mass[:first])
    with ctx.workprec(_BITS):
        places = zip(values.owner[:first].tolist(), values.place[:first].tolist(), strict=True)
        balls = [part.step.pieces[owner].accurate.ball(arb(x)) for owner, x in places]
        masses = [log_mass.exp() for log_mass, _ in balls]
        whole = sum(masses, arb(0))
        exact = tuple((mass / whole, loss) for mass, (_, loss) in zip(masses, balls, strict=True))
    step = Step(
        part.step.name,
        point_loss=values.loss[:first],
        point_log_p=values.log_mass[:first] - log_total_mass,
        point_balls=exact,
    )
    return LossLaw(step, (float(values.loss[0]), float(values.loss[first - 1])))
