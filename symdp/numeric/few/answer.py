"""δ(ε) of two steps as a mean of means.

    δ(ε) − δ∞ = M₁(t) M₂(t) e^{−tε} E_t[g₂(ε − L₁)],    g₂(c) = E_t[g(c − L₂)]

for any tilt t where both moments are finite, and 1 − δ(ε) likewise between −1 and 0 (`kernels`).
No characteristic function has to die out: kinks, turns and heavy tails of the loss cost a few more
panels. The tilt makes ε typical, so that what is settled absolutely is so relative to δ, too.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from symdp.errors import AccuracyError
from symdp.numeric.answer import ROUNDING, TOLERABLE, Answer, margin
from symdp.numeric.contour import epsilons_of_line
from symdp.numeric.few.far import far_mean, parted
from symdp.numeric.few.kernels import MeanSeries, Payoff
from symdp.numeric.few.monotone import Mean, TiltedStep, UnsettledError
from symdp.numeric.line import LineError, StripValue, answer_from_strips
from symdp.numeric.loss import LossLaw
from symdp.numeric.saddle_point import Strip
from symdp.numeric.total import SumLaw, kept_with_law
from symdp.tolerances import ROUNDED


def two_steps_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) of two steps, None of others and where the means do not settle."""
    if law.count != 2 or not law.is_spread:
        return None
    if any(type(part) is not LossLaw for part, _ in law.parts):
        return None

    def value(strip: Strip) -> StripValue | None:
        return _value(law, epsilon, strip)

    with suppress(AccuracyError):
        answer = answer_from_strips(law, value)
        if answer is not None and margin(answer) <= TOLERABLE:
            return answer
    return None


def _value(law: SumLaw, epsilon: float, strip: Strip) -> StripValue | None:
    served = epsilons_of_line(law, epsilon, strip)
    if served is None:
        return None
    steps = _tilted_steps(law, *served)
    return None if steps is None else steps.value(epsilon)


@kept_with_law
def _tilted_steps(law: SumLaw, tilt: float, lowest: float, highest: float) -> _TwoSteps | None:
    """Return the steps under a tilt, None where their means do not settle: other ε ask again."""
    with suppress(AccuracyError):
        return _TwoSteps(law, tilt, lowest, highest)
    return None


class _TwoSteps:
    """Two steps under one tilt, for every ε between two."""

    def __init__(self, law: SumLaw, tilt: float, lowest: float, highest: float) -> None:
        self._tilt = tilt
        distinct_steps = [TiltedStep(part, tilt) for part, _ in law.parts]
        steps = [distinct_steps[0], distinct_steps[-1]]
        steps.sort(key=lambda step: step.kinks.size)
        inner, outer = steps
        if not inner.panels:
            outer, inner = steps
        self._parted = parted(inner), parted(outer)
        self._inner = self._parted[0].near
        self._outer = self._parted[1].near
        least, largest = self._parted[1].ends
        self._series = MeanSeries(self._inner, Payoff(tilt), lowest - largest, highest - least)

    def value(self, epsilon: float) -> StripValue:
        """Return the logarithm of the integral at one ε, with its errors."""
        tilt = self._tilt
        mean = self._outer.mean(self._series, epsilon)
        of_far = far_mean(*self._parted, self._series, epsilon)
        mean = Mean(mean.value + of_far.value, mean.slope + of_far.slope, mean.error + of_far.error)
        if not mean.value > 0.0:
            raise UnsettledError("the mean cancelled to nothing")
        logs = (self._inner.log_mass, self._outer.log_mass, -tilt * epsilon)
        log_value = math.fsum([*logs, math.log(mean.value)])
        slope = mean.slope / mean.value - tilt
        of_series = self._outer.rough_mean(self._series.error, epsilon)
        steepness = 1.0 + abs(tilt) + abs(slope)
        of_balls = self._inner.rounding(steepness) + self._outer.rounding(steepness)
        loss_size = self._outer.rough_mean(lambda u: np.abs(epsilon - u) * self._series(u), epsilon)
        sums = 8.0 + sum(abs(log) for log in logs)
        sums += steepness * (abs(epsilon) + loss_size / mean.value)
        error = LineError(
            outside=self._inner.missed + self._outer.missed,
            quadrature=(mean.error + of_series) / mean.value + 4.0 * ROUNDED,
            rounding=ROUNDING * sums + of_balls,
        )
        return StripValue(log_value, error, slope, assured=True)
