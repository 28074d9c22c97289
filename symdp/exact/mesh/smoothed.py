"""A line that is cut off smoothly, with a bound of what that changes in δ.

|Φ(y)| of losses that are atoms off any lattice has no limit: it comes near 1 whenever all phases
nearly agree. With c(w) = (erfc s(w − w₀) − erfc s(w + w₀))/2 the terms times c(y/T) add up to
E (f ∗ κ)(S − ε), the payoff f smoothed by the transform κ of c, whose moments vanish. As f is
smooth but at 0, where its slope jumps by 1, smoothing changes it there alone, for T far above the
tilt by

    (f ∗ κ − f)(x) = D(Tx)/T,    D(u) = (1/π) ∫₀^∞ (1 − c(w)) cos(uw)/w² dw,
    |D(u)| ≤ M(u) = A sinc²(u/2) + Σ aᵢ e^{−(u/bᵢ)²},

where the numbers of M make ∫M small (a linear program). M has no frequencies beyond 1 but for
e^{−42}, so that E M(T(S − ε))/T is a sum over |y| ≤ T as well. It is a bound: how much of the loss
lies within a few T⁻¹ of ε, whatever Φ does beyond T. For a density f_S it is 7 f_S(ε)/T².
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from symdp.exact.line import Line, StripValue
from symdp.law.elementary import Complex
from symdp.law.step import Array

STEEPNESS = 12.0  # s, a pure number: c is 1e-14 at w = 1, and lacks 1e-20 of one at 0
CENTRE = 0.55  # w₀, a pure number, for which ∫M is about as small as it gets
_FEJER = 1.1 * 0.464  # A, a pure number, and a tenth more for what the tilt adds to 1/y²
_GAUSSIANS = ((1.1 * 0.094, 13.0), (1.1 * 0.032, 24.0))  # aᵢ, with a tenth more, and bᵢ
FAR_ABOVE = 2e2  # how many times 1 + |tilt| the cut-off T must be, for that tenth
_BLOCK = 1 << 16  # nodes summed at once: what a processor's cache holds


@dataclass(frozen=True)
class Smoothed(Line):
    """A line with values up to a cut-off, and a bound of what the cut-off changed at any ε.

    Attributes
    ----------
    reach
        The cut-off T, in nats⁻¹.
    left_out
        What else the sum may lack or have too much, on both sides together.
    """

    reach: float
    left_out: float

    def value(self, epsilon: float) -> StripValue:
        """Return the integral at one ε."""
        distance = self.distance(epsilon)
        total, slope, smoothing = self.sums(distance + self.shift)
        tail = self.left_out + smoothing
        return self.sized(distance, total, tail, slope / total if total else math.nan)

    def sums(self, gap: float) -> tuple[float, float, float]:
        """Return the sum, its derivative by ε, and a bound of what the cut-off changed."""
        # Products by 1, y and, of those near 0, by z(1 + z).
        found = np.zeros(3)
        for first in range(0, self.places.size, _BLOCK):
            here = slice(first, first + _BLOCK)
            y, near = self.places[here], self._near[here]
            terms = self.values[here] * np.exp(1j * gap * y)
            even, odd = terms.real, terms.imag
            if not first:  # y = 0 has no mirror image
                even[0] *= 0.5
            square = (self.tilt * (1.0 + self.tilt) - y * y) * near
            found += (
                even.sum(),
                y @ odd,
                square @ even - (1.0 + 2.0 * self.tilt) * ((y * near) @ odd),
            )
        total, turned, mass = (2.0 * found).tolist()
        return total, turned - self.tilt * total, abs(mass) / self.reach**2

    @cached_property
    def _near(self) -> Array:
        """M̂(w)/c(w): turns the values, but for G, into those of the mass within a few 1/T."""
        w = self.places / self.reach
        return majorant_transform(w) / cut_off(w)


def smoothed(line: Line, places: Array, values: Complex, reach: float, left_out: float) -> Smoothed:
    """Return a line's values, those at further places included, cut off smoothly at `reach`."""
    known = {field.name: getattr(line, field.name) for field in fields(Line)}
    every = np.concatenate([line.places, places])
    known |= {"places": every, "last": 0.0, "assured": True}
    known["values"] = np.concatenate([line.values, values]) * cut_off(every / reach)
    return Smoothed(**known, reach=reach, left_out=left_out)


def cut_off(w: Array) -> Array:
    """Return c(w), the indicator of |w| ≤ w₀ smoothed by a Gaussian, for w ≥ 0."""
    from scipy.special import erfc

    return np.asarray(0.5 * (erfc(STEEPNESS * (w - CENTRE)) - erfc(STEEPNESS * (w + CENTRE))))


def majorant_transform(w: Array) -> Array:
    """Return M̂(w) = ∫ M(u) cos(uw) du for w ≥ 0."""
    total = _FEJER * 2.0 * math.pi * np.maximum(1.0 - w, 0.0)
    for height, width in _GAUSSIANS:
        total += height * width * math.sqrt(math.pi) * np.exp(-((0.5 * width * w) ** 2))
    return np.asarray(total)
