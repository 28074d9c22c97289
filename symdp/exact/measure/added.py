"""The privacy profile from the loss's own density, convolved with itself: positive sums only.

The contour integral loses all digits where no tilt makes ε a typical loss: with a small sampling
rate one step's rare large loss carries the tail, and every line through the plane passes values
far larger than δ. Adding densities by repeated doubling never cancels, knows atoms exactly, and
costs a time that grows with log n only; it is used where the contour cannot answer.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.measure.measure import (
    Measure,
    Window,
    add,
    loss_measure,
)
from symdp.exact.measure.total_density import Direct, TotalDensity, log_sum
from symdp.exact.single_step import log_profile
from symdp.law.loss import LossLaw
from symdp.law.saddle_point import saddle_point
from symdp.law.step import Array
from symdp.law.tilts import Strip, far_tilt
from symdp.law.total import SumLaw

_NEAR = 3.0  # standard deviations
_DROP = 50.0  # e^-50 of the answer is left out on either side
_FAR_LESS = 1e4  # e-folds, for which a coarse grid has room
_SPARE = 40.0  # and so much more is kept for smaller δ
_MOST_FOLDS = 16e3  # e-folds of the tilt over the range that is kept
_STEEPEST = 60.0  # of those over a range that is bounded
_MOST_EFFORT, _EFFORT = 4.0, 0.4  # of one sum of densities, and for each step before the last
_SHARE = 0.1  # with less of the mass than this, a density is not moved to mend the mean
_LESS = 0.5  # of the reach of a failed attempt is worth another one
_STEEPER = 2.0  # the slope of log δ for which densities are kept, in those it was asked for
_SHARPEST = 300.0  # of these slopes, times the losses: places closer than that are rounded
_SHARP = 1e-12  # the error of an answer that no finer places would improve on
_ROUNDING = 1e-15  # of one interpolated density
_FIT = 2e-15  # of its logarithm, where no known mass corrects it
_KEPT = 2.0  # times as far below the largest loss as ε lies: what is kept next to it


def convolved(law: SumLaw, epsilon: float) -> Direct:
    """Return δ(ε) = ∫_{s>ε} (1 − e^{ε−s}) f(s) ds, f the density of the total loss.

    The density is kept with its law and serves every further ε that it reaches. The first may take
    some seconds.

    Raises
    ------
    AccuracyError
        If the loss of a step is not monotone on its pieces or lives on integers, or if the
        densities are too rough.
    """
    kept: _Kept | None = law.kept.get(_Kept)
    served = None if kept is None else kept.at_once(epsilon)
    if served is not None:
        return served
    plan = _Plan(law, epsilon)
    if kept is None or not kept.plan.serves(plan):
        failed: _Failure | None = law.kept.get(_Failure)
        if failed is not None and failed.stops(plan):
            raise AccuracyError(failed.reason)
        try:
            whole = not plan.is_top_only
            kept = _Kept(plan, TotalDensity(law, plan.tilt, *plan.total(), is_whole=whole))
        except AccuracyError as error:
            law.kept[_Failure] = _Failure(plan, str(error))
            raise
        law.kept[_Kept] = kept
    kept.asked.append(epsilon)
    return kept.total.profile(epsilon)


class _Plan:
    """Which tilt to store densities in, and how far to keep them."""

    def __init__(self, law: SumLaw, epsilon: float) -> None:
        self.law, self.epsilon = law, epsilon
        self.width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
        self.is_top_only = law.few_fall_short(epsilon)
        # Below and next to the mean 1 − δ counts too, and with it the bulk of Q.
        self.two_sided = not self.is_top_only and epsilon < law.mean + _NEAR * self.width
        tilt = math.inf if self.is_top_only else _saddle_tilt(law, epsilon)
        size = max(abs(epsilon), abs(law.mean))
        self.steepness = min(_STEEPER * abs(tilt), _SHARPEST / size)
        # Next to an end of the range no tilt makes ε a typical loss, nor need it.
        span = law.loss_bounds[1] - law.loss_bounds[0]
        steepest = _STEEPEST / span if math.isfinite(span) else math.inf
        self.tilt = math.copysign(min(abs(tilt), steepest), tilt)
        # What is needed for this ε, and what is kept, which serves smaller δ as well.
        self.needed = self._ends(epsilon, 0.0)
        self.upper, self.floor = self._ends(epsilon, _SPARE)
        self._firsts: dict[LossLaw, tuple[Measure, Array]] = {}
        self._moments: dict[tuple[LossLaw, float], float] = {}

    def serves(self, other: _Plan) -> bool:
        """Return whether what this plan keeps is enough for another one."""
        upper, floor = other.needed
        reaches = self.upper >= upper and self.floor <= floor
        resolves = _STEEPER * self.steepness >= other.steepness
        if self.is_top_only and not (other.is_top_only and other.epsilon >= self.epsilon):
            return False
        return reaches and resolves and self.two_sided >= other.two_sided

    def asks_as_much_as(self, failed: _Plan) -> bool:
        """Return whether it keeps about what another plan did, or more."""
        start = self.law.mean
        return self.two_sided >= failed.two_sided and (
            self.upper - start >= _LESS * (failed.upper - start)
        )

    def _ends(self, epsilon: float, spare: float) -> tuple[float, float]:
        """Where what lies beyond is e^−50 of δ(ε), by Chernoff's bound, and its logarithm."""
        law, most = self.law, self.law.loss_bounds[1]
        if self.tilt <= 0:
            return min(-_lower_end(law, self.width, -1.0, 0.0), most), -_DROP
        values = [law.cgf(self.tilt) - self.tilt * epsilon - 300.0]
        for part, _ in law.parts:  # hardly less than one step's large loss gives
            rest = epsilon - (law.mean - part.base.mean)
            hopeful = _seen_beyond(part, rest) > max(values) - _FAR_LESS
            if hopeful and part.loss_bounds[0] < rest < part.loss_bounds[1]:
                values.append(log_profile(part, rest)[0] - 20.0)
        floor = max(values) - _DROP - spare
        reach = (law.cgf(self.tilt) - floor) / self.tilt
        return min(max(reach, epsilon), most), floor

    def total(self) -> tuple[Measure, Array]:
        """Return the law of the total loss, and what had to be mended on the way, summed."""
        self.window(self.law.parts)  # raises where that is hopeless
        for part, _ in self.law.parts:
            alone = ((part, 1),)
            first = loss_measure(part, self.window(alone))
            self._firsts[part] = self._normalised(first, alone)
        found: Measure | None = None
        defect = np.zeros(2)
        for index, (part, count) in enumerate(self.law.parts):
            power, wrong = self._power(part, count)
            if found is None:
                found, defect = power, wrong
            else:
                parts = self.law.parts[: index + 1]
                found, more = self._normalised(add(found, power, self.window(parts)), parts)
                defect += wrong + more
        assert found is not None
        return found, defect

    def window(self, parts: tuple[tuple[LossLaw, int], ...]) -> Window:
        """Where the sum of some of the steps is kept, the others being what they are."""
        some = SumLaw(parts)
        mean, variance = some.mean, float(some.cumulants(0.0, 2)[1])
        width = math.sqrt(variance)
        if self.is_top_only:  # the other steps' losses are their largest at most
            upper = some.loss_bounds[1]
            lower = upper - _KEPT * (self.law.loss_bounds[1] - self.epsilon)
            return self._window(lower, upper, mean, width, math.inf)
        lower = _lower_end(some, width, 1.0, 0.0)
        if self.two_sided:
            lower = min(lower, _lower_end(some, width, 1.0, -1.0))
        lower = max(lower, some.loss_bounds[0])
        # The other steps' losses are hardly less than this.
        spread = math.sqrt(max(self.width**2 - variance, 0.0))
        rest = self.law.mean - mean - 15.0 * spread
        if math.isfinite(self.law.loss_bounds[0]):
            rest = max(rest, self.law.loss_bounds[0] - some.loss_bounds[0])
        upper = min(some.loss_bounds[1], self.upper - min(rest, 0.0))
        if all(part in self._firsts for part, _ in parts):
            upper = min(upper, self._reach(parts))
        if not (upper > lower and abs(self.tilt) * (upper - lower) < _MOST_FOLDS):
            raise AccuracyError("the density of the privacy loss falls too steeply to convolve")
        # Sums of few steps that take long are those of which more would take too long.
        last = some.count == self.law.count
        return self._window(lower, upper, mean, width, math.inf if last else _EFFORT * some.count)

    def _window(
        self, lower: float, upper: float, mean: float, width: float, effort: float
    ) -> Window:
        return Window(
            lower=lower,
            upper=upper,
            centre=mean,
            width=width,
            tilt=self.tilt,
            two_sided=self.two_sided,
            floor=self.floor,
            steepness=self.steepness,
            effort=min(_MOST_EFFORT, effort),
        )

    def _reach(self, parts: tuple[tuple[LossLaw, int], ...]) -> float:
        """Where the sum of some of the steps falls below the floor, by Chernoff's bound."""
        best = math.inf
        scale = max(abs(self.tilt), 1.0 / self.width)
        for tilt in (scale * np.exp2(np.arange(-2.0, 11.0))).tolist():
            with suppress(AccuracyError):  # too large a tilt for the range
                growth = sum(c * self._log_moment(p, tilt) for p, c in parts)
                best = min(best, (growth - self.floor) / tilt)
        return best

    def _log_moment(self, part: LossLaw, tilt: float) -> float:
        """Return log E e^{tL} of one step as its density is kept, which every sum asks again."""
        key = part, tilt
        if key not in self._moments:
            self._moments[key] = self._firsts[part][0].log_moment(self.tilt - tilt)
        return self._moments[key]

    def _power(self, part: LossLaw, count: int) -> tuple[Measure, Array]:
        """Return the law of `count` copies by repeated doubling, and what had to be mended."""
        square, wrong = self._firsts[part]
        result: Measure | None = None
        defect, have, size = np.zeros(2), 0, 1
        while True:
            if count & 1:
                if result is None:
                    result, defect = square, wrong
                else:
                    both = ((part, have + size),)
                    result = add(result, square, self.window(both))
                    result, more = self._normalised(result, both)
                    defect += wrong + more
                have += size
            count >>= 1
            if not count:
                assert result is not None
                return result, defect
            size *= 2
            both = ((part, size),)
            square = add(square, square, self.window(both))
            square, more = self._normalised(square, both)
            wrong = 2.0 * wrong + more

    def _normalised(
        self, measure: Measure, parts: tuple[tuple[LossLaw, int], ...]
    ) -> tuple[Measure, Array]:
        """Return the measure with its known total mass, and how far mass and mean were off.

        Of a part of it the mass is not known, and what fitting costs is counted in full.
        """
        if self.is_top_only:
            size = 0.0 if measure.density is None else measure.density.size
            return measure, np.asarray([_ROUNDING + _FIT * (4.0 + size), 0.0])
        some = SumLaw(parts)
        known = some.cgf(0.0)
        kept = np.exp(measure.log_weight - self.tilt * measure.atoms)
        mass, moment = float(kept.sum()), float(kept @ measure.atoms)
        found = [part.mass_and_mean(self.tilt) for part in measure.spread]
        shares = [math.exp(log_share) for log_share, _ in found]
        share = math.fsum(shares)
        change = known - math.log(mass + share)
        if not abs(change) < 1e-8:
            raise AccuracyError("the density of the privacy loss lost mass on the way")
        distance = 0.0
        # A shift of the mean by rounding would grow with every doubling; the mean is known.
        if share > _SHARE:
            seen = math.fsum(s * mean for s, (_, mean) in zip(shares, found, strict=True))
            distance = (some.mean * math.exp(known - change) - moment - seen) / share
        density = measure.density
        if density is not None:
            density = density.scaled(change).moved(distance)
        spikes = tuple(spike.scaled(change).moved(distance) for spike in measure.spikes)
        weight = measure.log_weight + change
        corrected = replace(measure, log_weight=weight, density=density, spikes=spikes)
        return corrected, np.asarray([abs(change) + _ROUNDING, abs(distance)])


@dataclass(frozen=True)
class _Kept:
    """The law of the total loss as it is kept between questions, and which ε it is known to serve.

    What an ε needs grows with its distance from the bulk, so that all between two ε are served.
    """

    plan: _Plan
    total: TotalDensity
    asked: list[float] = field(default_factory=list)

    def at_once(self, epsilon: float) -> Direct | None:
        """Return the answer where it is certain without a plan of its own that all is kept for it.

        What was left out is below e^floor by Chernoff's bound, of which the answer itself can tell
        whether it is enough.
        """
        if not epsilon >= min(self.asked):
            return None
        try:
            found = self.total.profile(epsilon)
        except AccuracyError:
            return None
        enough = self.plan.floor <= found.log_delta - _DROP or epsilon <= max(self.asked)
        # Next to the largest loss δ falls ever faster.
        gentle = not self.total.measure.blur or -found.slope <= self.plan.steepness
        resolved = gentle or found.error <= _SHARP
        return found if enough and resolved else None


@dataclass(frozen=True)
class _Failure:
    """What could not be done, and why."""

    plan: _Plan
    reason: str

    def stops(self, plan: _Plan) -> bool:
        """Return whether there is no point in another try."""
        return plan.asks_as_much_as(self.plan)


def _saddle_tilt(law: SumLaw, epsilon: float) -> float:
    """Return the tilt that makes ε a typical loss, or the farthest one."""
    strip = Strip.MIDDLE if epsilon < law.mean else Strip.RIGHT
    saddle = saddle_point(law, epsilon, strip, settled=0.1)
    return far_tilt(law, strip) if saddle is None else saddle.tilt


def _seen_beyond(part: LossLaw, loss: float) -> float:
    """Return the log of the largest density seen where one step's loss is larger."""
    tops = [
        float(outline.log_p[outline.loss > loss].max(initial=-math.inf))
        for outline in part.outlines
    ]
    return max(tops, default=-math.inf)


def _lower_end(some: SumLaw, width: float, sign: float, weighed: float) -> float:
    """Where what lies below is e^−50 of everything, by Chernoff's bound below the mean.

    What the quadrature leaves out is less than that, so its own nodes do for every tilt. A `sign`
    of −1 looks at the other side, and the law may be `weighed` by −1, which makes it Q's.
    """
    natural = math.sqrt(2.0 * _DROP) / max(width, 1e-300)
    best = -math.inf
    for tilt in (natural * np.exp2(np.arange(-10.0, 3.0))).tolist():
        cgf = 0.0
        for part, count in some.parts:
            factor = weighed - tilt * sign
            cgf += count * log_sum(part.base.log_weight + factor * part.base.centred)
        # The weighed law's own mass is 1 − δ∞ of the other direction, at most one.
        cgf += weighed * some.mean
        best = max(best, -(cgf + _DROP) / tilt)
    return sign * some.mean + best
