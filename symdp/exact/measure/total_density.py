"""The density of the total loss, and the privacy profile read off it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.measure.measure import Measure
from symdp.law.step import Array
from symdp.law.tilts import log_one_minus_exp
from symdp.law.total import SumLaw

_UNSEEN = 32.0  # what lies beyond the last panel, in e-folds below δ
_LEAST = 40.0  # e-folds of 1 − δ, which is made of what lies below ε
_BLURRED = 8.0  # standard deviations
_SAME_TOP = 1e-14  # relative: the largest loss but for rounding


@dataclass(frozen=True)
class Direct:
    """log δ(ε) and log(1 − δ(ε)) of the finite loss, with an estimate of the relative error.

    `slope` is d log δ / dε.
    """

    log_delta: float
    log_complement: float
    error: float
    slope: float


@dataclass(frozen=True)
class TotalDensity:
    """The law of the total loss, tilted, and how far mass and mean had to be mended on the way.

    Where it is not whole, what lies below the ε asked for was left out.
    """

    law: SumLaw
    tilt: float
    measure: Measure
    defect: Array
    is_whole: bool = True

    def profile(self, epsilon: float) -> Direct:
        """Return δ and 1 − δ at one ε."""
        total, tilt = self.measure, self.tilt
        gains, caps, above, noise = [], [], [], []
        last, beyond, rounded = self._top(epsilon)
        with np.errstate(divide="ignore"):
            gap = np.minimum((last - total.atoms) - beyond, 0.0)
            gains.append(total.log_weight - tilt * total.atoms + np.log(-np.expm1(gap)))
            caps.append(total.log_weight - tilt * total.atoms + gap)
            single = caps[0][gap < 0]
        for part in total.spread:
            for low, high in ((-math.inf, epsilon), (epsilon, math.inf)):
                s, weight = part.rule(tilt, low, high)
                gap = np.minimum((last - s) - beyond, 0.0)
                with np.errstate(divide="ignore"):
                    gains.append(weight + np.log(-np.expm1(gap)))
                    noise.append(gains[-1] + np.log(part.noise_at(s)))
                caps.append(weight + gap)
            above.append(caps[-1])
        gain, cap = log_sum(np.concatenate(gains)), log_sum(np.concatenate(caps))
        if not self.is_whole:
            finite = self.law.log_finite_mass
            cap = finite + log_one_minus_exp(min(gain - finite, 0.0))
        self._check_end(epsilon, gain)
        if cap < -_LEAST:
            raise AccuracyError("1 − δ is too small for densities kept around the bulk")
        size = max((part.size for part in total.spread), default=0.0)
        slopes = [log_sum(np.concatenate(some)) for some in ([single], [*above, np.empty(0)])]
        of_atoms, of_rest = (math.exp(min(slope - gain, 700.0)) for slope in slopes)
        scattered, moved = self.defect.tolist()
        # Places are rounded, those of atoms like their distance from the last one.
        error = scattered + 2.3e-16 * (8.0 + size + abs(gain))
        error += of_rest * (moved + 2.3e-16 * abs(epsilon)) + of_atoms * 2.3e-16 * rounded
        if noise:  # where ε is next to an end at which doubles cannot tell places apart
            error += math.exp(min(log_sum(np.concatenate(noise)) - gain, 0.0))
        error += self._blurred(epsilon, min(gain, cap)) + 0.5 * total.blur * (of_rest + of_atoms)
        return Direct(gain, cap, error, -(of_atoms + of_rest))

    def _blurred(self, epsilon: float, log_value: float) -> float:
        """Return how far values that were taken together move the answer, relative to a value.

        The loss in excess of ε bends at ε alone, so that only what lies around there counts.
        """
        blur, tilt = self.measure.blur, self.tilt
        if not blur:
            return 0.0
        reach = max(_BLURRED * math.sqrt(blur), 4.0 * math.ulp(epsilon))
        low, high = epsilon - reach, epsilon + reach
        near = np.abs(self.measure.atoms - epsilon) < reach
        single = log_sum((self.measure.log_weight - tilt * self.measure.atoms)[near])
        spread = log_sum(np.concatenate([p.rule(tilt, low, high)[1] for p in self.measure.spread]))
        change = math.sqrt(blur) * math.exp(min(single - log_value, 700.0))
        return change + 0.25 * blur / reach * math.exp(min(spread - log_value, 700.0))

    def _top(self, epsilon: float) -> tuple[float, float, float]:
        """Return where the last atom is kept, how far its loss is from ε, and what is rounded."""
        law, atoms = self.law, self.measure.atoms
        if atoms.size and law.precise_top is not None:
            last = float(atoms.max())
            if abs(float(law.precise_top) - last) <= _SAME_TOP * abs(last):
                beyond = float(law.precise_top - Fraction(epsilon))
                return last, beyond, abs(beyond)
        return epsilon, 0.0, abs(epsilon)

    def _check_end(self, epsilon: float, gain: float) -> None:
        """Raise where the density was cut off while it still counted."""
        end = self.law.loss_bounds[1]
        last = max((part.ends[1] for part in self.measure.spread), default=math.inf)
        if last >= end - 1e-9 * abs(end):
            return
        left = max(part.log_at_top() for part in self.measure.spread if part.ends[1] == last)
        if not (last > epsilon and left - self.tilt * last < gain - _UNSEEN):
            raise AccuracyError("the density of the privacy loss was cut off too early")


def log_sum(values: Array) -> float:
    """Return the log of the sum of e^value, added without rounding."""
    top = float(values.max(initial=-np.inf))
    if top == -math.inf:
        return top
    return top + math.log(math.fsum(np.exp(values - top).tolist()))
