"""A line that is cut off smoothly, with a proved bound of what that changes in δ.

|Φ(y)| of losses that are atoms off any lattice has no limit: it comes near 1 whenever all phases
nearly agree. With c(w) = (erfc s(w − w₀) − erfc s(w + w₀))/2 the terms times c(y/T) add up to
E (f ∗ κ)(S − ε), the payoff f smoothed by the transform κ of c. At the tilt t = 0 that changes the
payoff by D₀(Tx)/T at the distance x from ε, where with u = Tx

    D_m(u) = ±(1/π) ∫₀^∞ (1 − c(w)) trig(uw)/w^{2+m} dw,    trig the cosine or the sine,

and is bounded by |D₀(u)| ≤ M(u) = A sinc²(u/2) + Σ aᵢ e^{−(u/bᵢ)²}, where the numbers of M make ∫M
small (a linear program). M has no frequencies beyond 1 but for e^{−42}, so that E M(T(S − ε))/T is
a sum over |y| ≤ T as well. It is a bound: how much of the loss lies within a few T⁻¹ of ε, whatever
Φ does beyond T. For a density f_S it is 6 f_S(ε)/T².

**Any tilt.** For |y| > 1 + |t| the kernel is a series in 1/y,

    1/(z(1+z)) = 1/z − 1/(1+z) = Σ_{m≥0} (−1)^m ((1+t)^{m+1} − t^{m+1})/(iy)^{m+2},    z = t + iy,

and |(1+t)^{m+1} − t^{m+1}| ≤ (m+1)(1+|t|)^m for t > −1, by the mean value theorem for t ≥ 0. Where
|y| ≤ 2(1+|t|), 1 − c is below 1e-18, less than the rounding of the terms there. So if R(1+|t|) ≤ T,
the payoff changes by at most (1/T) Σ_m (m+1) R^{−m} |D_m(u)|. Three facts bound that by M(u)/T:

- D_m is the (m+2)-fold integral, from u to ∞, of sin(w₀v)/(πv) e^{−(v/2s)²}, the transform of c, so
  that for u > 0, by v² ≥ u² + 2u(v − u),  |D_m(u)| ≤ (2s²/u)^{m+2} e^{−(u/2s)²}/(πu);
- as b₂ = 2s, for u ≥ 105 the sum of these bounds is below the last term of M alone;
- for u < 105 the sum was computed at steps of 10⁻³ and is below 0.993 M(u) where R = 100, its slope
  between the steps included: tests/exact/test_mesh.py does so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from symdp.exact.accuracy import FEW_NODES, SAFETY
from symdp.exact.line import Line, StripValue
from symdp.law.elementary import Complex
from symdp.law.step import Array, Index

STEEPNESS = 12.0  # s, a pure number: c is 1e-14 at w = 1, and lacks 1e-20 of one at 0
CENTRE = 0.55  # w₀, a pure number, for which ∫M is about as small as it gets
FEJER = 0.464  # A, a pure number
GAUSSIANS = ((0.094, 13.0), (0.032, 24.0))  # aᵢ and bᵢ, pure numbers
FAR_ABOVE = 1e2  # R: how many times 1 + |tilt| the cut-off T must be for the proof above
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
    near
        M̂(w)/c(w): turns the values, but for G, into those of the mass within a few 1/T.
    """

    reach: float
    left_out: float
    near: Array

    def value(self, epsilon: float) -> StripValue:
        """Return the integral at one ε."""
        distance = self.distance(epsilon)
        total, slope, smoothing = self.sums(distance + self.shift)
        tail = self.left_out + smoothing
        return self.sized(distance, total, tail, slope / total if total else math.nan)

    def sums(self, gap: float) -> tuple[float, float, float]:
        """Return the sum, its derivative by ε, and a bound of what the cut-off changed."""
        if gap not in self._known:
            self._known.clear()  # the last one is asked for again
            self._known[gap] = self._summed(gap)
        return self._known[gap]

    @cached_property
    def _known(self) -> dict[float, tuple[float, float, float]]:
        return {}

    def _summed(self, gap: float) -> tuple[float, float, float]:
        # Products by 1, y and, of those near 0, by z(1 + z).
        found = np.zeros(3)
        far, more = self._numbers
        step = gap * self.step
        jumps = np.exp(1j * (step * _BLOCK) * np.arange(far[-1] + 1.0))
        turns = np.exp(1j * step * np.arange(_BLOCK))
        for first in range(0, self.places.size, _BLOCK):
            here = slice(first, first + _BLOCK)
            y, near = self.places[here], self.near[here]
            terms = self.values[here] * jumps[far[here]] * turns[more[here]]
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
        # What is proved needs no margin, and gets one where estimates become bounds.
        return total, turned - self.tilt * total, abs(mass) / (SAFETY * self.reach**2)

    @cached_property
    def _numbers(self) -> tuple[Index, Index]:
        """How many blocks of steps the places are from 0, and how many steps more."""
        return np.divmod(np.rint(self.places / self.step).astype(np.intp), _BLOCK)


def smoothed(line: Line, places: Array, values: Complex, reach: float, left_out: float) -> Smoothed:
    """Return a line's values, those at further places included, cut off smoothly at `reach`."""
    known = {field.name: getattr(line, field.name) for field in fields(Line)}
    every = np.concatenate([line.places, places])
    known |= {"places": every, "last": 0.0, "assured": True}
    kept = cut_off(every / reach)
    known["values"] = np.concatenate([line.values, values]) * kept
    near = majorant_transform(every / reach) / kept
    return Smoothed(**known, reach=reach, left_out=left_out, near=near)


def cut_off(w: Array) -> Array:
    """Return c(w), the indicator of |w| ≤ w₀ smoothed by a Gaussian, for w ≥ 0.

    The second term of c is below 1e-20 of the first one there.
    """
    z = STEEPNESS * (w - CENTRE)
    if z.size <= FEW_NODES:  # half a millisecond at most; SciPy takes 200 to be imported
        return 0.5 * np.asarray([math.erfc(one) for one in z.tolist()])
    from scipy.special import erfc

    return np.asarray(0.5 * erfc(z))


def majorant_transform(w: Array) -> Array:
    """Return M̂(w) = ∫ M(u) cos(uw) du for w ≥ 0."""
    total = FEJER * 2.0 * math.pi * np.maximum(1.0 - w, 0.0)
    for height, width in GAUSSIANS:
        total += height * width * math.sqrt(math.pi) * np.exp(-((0.5 * width * w) ** 2))
    return np.asarray(total)
