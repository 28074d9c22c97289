"""The law of the total loss by repeated doubling of one step's law: positive sums only.

The contour integral loses all digits where no tilt makes ε a typical loss: with a small sampling
rate one step's rare large loss carries the tail, and every line through the plane passes values
far larger than δ. Adding densities never cancels, knows atoms exactly, and costs a time that grows
with log n only.

The law is kept where it is not negligible: above the mean down to e^floor under P, the floor 50
e-folds and more below a lower bound of δ(ε), and below the mean down to e^-50 under P and Q. Ends
are Chernoff's: P(L > s) ≤ e^{K(t) − ts}. Floors are multiples of 40, so that one law serves many
ε, whichever of them is asked first. Mass and mean of every sum are known; what a sum lacks of them
is mended, and counts as an error.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.accuracy import NEGLIGIBLE, ROUNDED, TOLERABLE
from symdp.exact.measure.measure import Measure, Window, add, loss_measure
from symdp.exact.measure.total_density import Direct, TotalDensity
from symdp.exact.single_step import log_profile
from symdp.law.elementary import log_sum
from symdp.law.loss import LossLaw
from symdp.law.saddle_point import saddle_point
from symdp.law.step import Array
from symdp.law.tilts import Strip, far_tilt
from symdp.law.total import SumLaw, kept_with_law

_DROP = 1.25 * NEGLIGIBLE  # e-folds below δ of what is left out on either side


def convolved(law: SumLaw, epsilon: float) -> Direct:
    """Return δ(ε) = ∫_{s>ε} (1 − e^{ε−s}) f(s) ds, f the density of the total loss.

    The first of the ε that one density serves may take some seconds.

    Raises
    ------
    AccuracyError
        If the loss of a step is not monotone on its pieces or lives on integers, or if the
        densities are too rough.
    """
    reach = _reach(law, epsilon)
    while True:
        found = _total(law, reach).profile(epsilon)
        if found is not None:
            return found
        reach = reach._replace(floor=reach.floor - 3.0 * NEGLIGIBLE)  # δ is less than was thought


def _total(law: SumLaw, key: _Reach) -> TotalDensity:
    """Return the law of the total loss so far out, kept for further ε."""
    kept = densities(law)
    if key not in kept:
        try:
            kept[key] = TotalDensity(
                law, *_Sum(law, key).total(), is_whole=math.isinf(key.below_top)
            )
        except AccuracyError as error:
            kept[key] = str(error)
    found = kept[key]
    if isinstance(found, str):
        raise AccuracyError(found)
    return found


@kept_with_law
def densities(law: SumLaw) -> dict[_Reach, TotalDensity | str]:
    """Densities of the total by how far they reach, or why there is none."""
    return {}


class _Reach(NamedTuple):
    """How far a density is kept: the tilt of Chernoff's bound, the floor, or next to the top."""

    tilt: float
    floor: float
    below_top: float = math.inf


def _reach(law: SumLaw, epsilon: float) -> _Reach:
    """Return what is kept for ε and others near it: a power of two and a multiple of 40."""
    if law.few_fall_short(epsilon):  # no tilt makes ε typical, nor need it
        below = law.loss_bounds[1] - epsilon
        return _Reach(0.0, -17.0 * NEGLIGIBLE, math.ldexp(1.0, math.frexp(below)[1]))
    width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
    tilt, lowest = 1.0 / width, 0.0
    if epsilon > law.mean:
        saddle = saddle_point(law, epsilon, Strip.RIGHT, settled=0.1)
        tilt = far_tilt(law, Strip.RIGHT) if saddle is None else saddle.tilt
        lowest = law.cgf(tilt) - tilt * epsilon - 300.0  # e-folds that Chernoff's bound may exceed
        for part, _ in law.parts:  # hardly less than one step's large loss gives
            rest = epsilon - (law.mean - part.base.mean)
            if part.loss_bounds[0] < rest < part.loss_bounds[1]:
                lowest = max(lowest, log_profile(part, rest).log_delta - 0.5 * NEGLIGIBLE)
    floor = NEGLIGIBLE * math.floor((lowest - _DROP) / NEGLIGIBLE)
    tilt = min(math.ldexp(0.5, math.frexp(tilt)[1]), 0.5 * law.domain[1])
    return _Reach(tilt, floor)


class _Sum:
    """The sum of all steps, kept down to a floor."""

    def __init__(self, law: SumLaw, reach: _Reach) -> None:
        if reach.floor < math.log(np.finfo(float).tiny):
            raise AccuracyError("δ is no double")
        self._law, self._floor, self._below_top = law, reach.floor, reach.below_top
        self._width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
        chernoff = (law.cgf(reach.tilt) - reach.floor) / reach.tilt if reach.tilt > 0 else math.inf
        self._upper = min(law.loss_bounds[1], chernoff)

    def total(self) -> tuple[Measure, Array]:
        """Return the law of the total loss, and what had to be mended on the way, summed."""
        total: Measure | None = None
        parts: list[tuple[LossLaw, int]] = []
        defect = np.zeros(2)
        for part, count in self._law.parts:
            power, wrong = self._power(part, count)
            parts.append((part, count))
            if total is not None:
                power, more = self._added(total, power, parts)
                wrong = wrong + more
            total, defect = power, defect + wrong
        assert total is not None
        return total, defect

    def _power(self, part: LossLaw, count: int) -> tuple[Measure, Array]:
        """Return the law of `count` copies, each bit of the count a doubling."""
        alone = [(part, 1)]
        first, wrong = self._mended(loss_measure(part, self._window(alone)), alone)
        result, defect = first, wrong
        for place in range(count.bit_length() - 2, -1, -1):
            have = count >> place
            result, more = self._added(result, result, [(part, have - have % 2)])
            defect = 2.0 * defect + more
            if have % 2:
                result, more = self._added(result, first, [(part, have)])
                defect = defect + wrong + more
        return result, defect

    def _added(
        self, first: Measure, second: Measure, parts: list[tuple[LossLaw, int]]
    ) -> tuple[Measure, Array]:
        return self._mended(add(first, second, self._window(parts)), parts)

    def _mended(self, measure: Measure, parts: list[tuple[LossLaw, int]]) -> tuple[Measure, Array]:
        if math.isinf(self._below_top):
            return _mended(measure, SumLaw(parts))
        # Of a part of a law the mass is not known, and what fitting costs is counted in full.
        size = 0.0 if measure.density is None else measure.density.size
        return measure, np.asarray([ROUNDED + 2.0 * ROUNDED * (4.0 + size), 0.0])

    def _window(self, parts: list[tuple[LossLaw, int]]) -> Window:
        """Return where the sum of some of the steps is kept, the others being what they are."""
        some = SumLaw(parts)
        variance = float(some.cumulants(0.0, 2)[1])
        width = math.sqrt(variance)
        if self._below_top < math.inf:  # the other steps' losses are their largest at most
            upper = some.loss_bounds[1]
            return Window(upper - self._below_top, upper, some.mean, width, self._floor)
        lower = min(_lower_end(some, width, under) for under in (0.0, -1.0))
        lower = max(lower, some.loss_bounds[0])
        # The other steps' losses are hardly less than this.
        others = math.sqrt(max(self._width**2 - variance, 0.0))
        rest = self._law.mean - some.mean - 15.0 * others
        if math.isfinite(self._law.loss_bounds[0]):
            rest = max(rest, self._law.loss_bounds[0] - some.loss_bounds[0])
        upper = min(some.loss_bounds[1], self._upper - min(rest, 0.0))
        if not upper > lower:
            raise AccuracyError("the density of the privacy loss is too narrow to convolve")
        return Window(lower, upper, some.mean, width, self._floor)


def _mended(measure: Measure, some: SumLaw) -> tuple[Measure, Array]:
    """Return the measure with its known total mass, and how far mass and mean were off."""
    kept, density = np.exp(measure.log_weight), measure.density
    share, mean = density.mass_and_mean() if density else (0.0, 0.0)
    known = some.cgf(0.0)
    change = known - math.log(float(kept.sum()) + share)
    if not abs(change) < 10.0 * TOLERABLE:
        raise AccuracyError("the density of the privacy loss lost mass on the way")
    distance = 0.0
    # A shift of the mean by rounding would grow with every doubling; the mean is known. With less
    # than a tenth of the mass, a density would be moved by the rounding of the atoms.
    if density and share > 0.1:
        moment = some.mean * math.exp(known - change) - float(kept @ measure.atoms)
        distance = moment / share - mean
    density = density.mended(change, distance) if density else None
    measure = replace(measure, log_weight=measure.log_weight + change, density=density)
    return measure, np.asarray([abs(change) + ROUNDED, abs(distance)])


def _lower_end(some: SumLaw, width: float, weighed: float) -> float:
    """Where what lies below is e^−50 of everything, by Chernoff's bound below the mean.

    What the quadrature leaves out is less than that, so its own nodes do for every tilt. The law
    may be `weighed` by −1, which makes it Q's.
    """
    natural = math.sqrt(2.0 * _DROP) / max(width, np.finfo(float).tiny)
    best = -math.inf
    for tilt in (natural * np.exp2(np.arange(-10.0, 3.0))).tolist():
        cgf = weighed * some.mean
        for part, count in some.parts:
            cgf += count * log_sum(part.base.log_weight + (weighed - tilt) * part.base.centred)
        # The weighed law's own mass is 1 − δ∞ of the other direction, at most one.
        best = max(best, -(cgf + _DROP) / tilt)
    return some.mean + best
