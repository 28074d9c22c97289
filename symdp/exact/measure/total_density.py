"""δ(ε) and 1 − δ(ε) as integrals over the law of the total loss: sums of positive terms.

    δ(ε) = Σ_{s>ε} p_s (1 − e^{ε−s}) + ∫_{s>ε} (1 − e^{ε−s}) f(s) ds,
    1 − δ(ε) = Σ p_s min(1, e^{ε−s}) + ∫ min(1, e^{ε−s}) f(s) ds.

The error adds up what mass and mean were mended by, the noise of log f, and rounding of ε and of
the losses, which moves mass across ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.accuracy import EQUAL, NEGLIGIBLE, ROUNDING, TOLERABLE
from symdp.exact.measure.measure import Measure
from symdp.law.elementary import log_sum
from symdp.law.step import Array
from symdp.law.tilts import log_one_minus_exp
from symdp.law.total import SumLaw


@dataclass(frozen=True)
class Direct:
    """log δ(ε) and log(1 − δ(ε)) of the finite loss, with an estimate of the relative error.

    `slope` is d log δ / dε, and `complement_error` is relative to 1 − δ, None where that was taken
    from δ.
    """

    log_delta: float
    log_complement: float
    error: float
    slope: float
    complement_error: float | None = None


@dataclass(frozen=True)
class TotalDensity:
    """The law of the total loss, and how far mass and mean had to be mended on the way.

    Where it is not whole, what lies below the ε asked for was left out.
    """

    law: SumLaw
    measure: Measure
    defect: Array
    is_whole: bool = True

    def profile(self, epsilon: float) -> Direct | None:
        """Return δ and 1 − δ at one ε, None where the density ends while it still counts."""
        atoms, density = self.measure.atoms, self.measure.density
        last, beyond, rounded = self._top(epsilon)
        gap = np.minimum((last - atoms) - beyond, 0.0)
        with np.errstate(divide="ignore"):
            gains = [self.measure.log_weight + np.log(-np.expm1(gap))]
        caps, noise, unsure = [self.measure.log_weight + gap], [np.full(1, -np.inf)], [-np.inf]
        single, above = caps[0][gap < 0], np.empty(0)
        for low, high in ((-math.inf, epsilon), (epsilon, math.inf)) if density else ():
            assert density is not None
            s, weight = density.rule(low, high)
            gap = np.minimum((last - s) - beyond, 0.0)
            above = weight + gap
            caps.append(above)
            with np.errstate(divide="ignore"):
                log_noise = np.log(density.noise_at(s))
                gains.append(weight + np.log(-np.expm1(gap)))
                noise.append(gains[-1] + log_noise)
                unsure.append(log_sum(above + log_noise))
        gain, cap = log_sum(np.concatenate(gains)), log_sum(np.concatenate(caps))
        if not self.is_whole:
            finite = self.law.log_finite_mass
            cap = finite + log_one_minus_exp(min(gain - finite, 0.0))
        if self._ends_early(epsilon, gain):
            return None
        if cap < -NEGLIGIBLE:
            raise AccuracyError("1 − δ is too small for densities kept around the bulk")
        of_atoms, of_rest = (math.exp(min(log_sum(x) - gain, 700.0)) for x in (single, above))
        scattered, moved = self.defect.tolist()
        added = 8.0 + (density.size if density else 0.0)
        error = scattered + ROUNDING * (added + abs(gain))
        # Places are rounded, those of atoms like their distance from the last one.
        error += of_rest * (moved + ROUNDING * abs(epsilon)) + of_atoms * ROUNDING * rounded
        error += math.exp(min(log_sum(np.concatenate(noise)) - gain, 0.0))
        # The log of 1 − δ moves by no more than the losses do.
        off = scattered + moved + ROUNDING * (added + abs(cap) + abs(epsilon) + rounded)
        off += math.exp(min(log_sum(np.asarray(unsure)) - cap, 0.0))
        slope = -(of_atoms + of_rest)
        return Direct(gain, cap, error, slope, off if self.is_whole else None)

    def _top(self, epsilon: float) -> tuple[float, float, float]:
        """Return where the last atom is kept, how far its loss is from ε, and what is rounded."""
        law, atoms = self.law, self.measure.atoms
        if atoms.size and law.precise_top is not None:
            last = float(atoms.max())
            if abs(float(law.precise_top) - last) <= EQUAL * abs(last):
                beyond = float(law.precise_top - Fraction(epsilon))
                return last, beyond, abs(beyond)
        return epsilon, 0.0, abs(epsilon)

    def _ends_early(self, epsilon: float, gain: float) -> bool:
        """Return whether the density was cut off while it still counted."""
        end, density = self.law.loss_bounds[1], self.measure.density
        if density is None or density.ends[1] >= end - TOLERABLE * abs(end):
            return False
        last = float(density(density.edges[-1:])[0])
        return not (density.ends[1] > epsilon and last < gain - 0.8 * NEGLIGIBLE)
