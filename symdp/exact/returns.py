"""Losses on single values off any lattice: their characteristic function comes back for ever.

|Φ(y)| has no limit there: it comes near 1 whenever all phases nearly agree, after lulls of any
length. Nothing seen up to y = T tells what follows, but a smooth cut-off at T makes it unneeded.
With c(w) = (erf 12(w + ½) − erf 12(w − ½))/2 the terms times c(y/T) add up to E (f ∗ κ)(S − ε), the
payoff f blurred by the transform of c, all of whose moments vanish. As f bends at 0 alone, where
its slope jumps by 1, blurring changes it there alone:

    |(f ∗ κ − f)(x)| ≤ (C/T) e^{−(Tx/b)²},    C = 0.65, b = 24, for T far above the tilt,

and the mean of the right hand side is an integral up to T as well. So the error is bounded by how
much of the loss lies within b/T of ε, whatever Φ does farther out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from statistics import median

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.line import (
    ROUNDING,
    Line,
    StripValue,
    continuous_kernel,
    first_line,
    loss_size,
    plain_sum,
    tilted_laws,
)
from symdp.exact.lookout import Lookout
from symdp.law.elementary import Complex
from symdp.law.loss import Tilted
from symdp.law.panels import Index
from symdp.law.step import Array
from symdp.law.total import SumLaw

_MOST_WORK = float(1 << 30)  # nodes times atoms
_FIRST_LOOK = 1 << 16
_WANTED = 1e-13  # what the cut-off may have changed, as a share of the sum
_SHARES = tuple(0.85**k for k in range(13))  # of the saddle point
_MOST_KEPT = 1 << 21
_FAINT = 1e-15  # what a stretch may lack, as a share of the sum
_STEEP = 12.0  # of the cut-off, which is 1e-17 at its end
_BLUR = 1.1 * 0.65 * 2.0 * _STEEP * math.sqrt(math.pi)  # C b √π, and a tenth more
_NEAREST = 1e2  # how far T must be above the tilt
_RARELY = 4  # times as many nodes, until the bound is looked at again
_AT_ONCE = 1 << 16
_PATIENT = 4.0  # times that, where no bound could be given before
_USUAL = 1 << 22  # nodes, where a tilt is chosen
_ROUNDED = 4e-15


@dataclass(frozen=True)
class Blurred(Line):
    """A line that is cut off smoothly, with a bound of what that changed at any ε.

    Attributes
    ----------
    reach
        T.
    left_out
        What else the sum may lack, on both sides together.
    """

    reach: float
    left_out: float

    def value(self, epsilon: float) -> StripValue:
        """Return the integral at one ε."""
        distance = self.distance(epsilon)
        total, slope, blur = self.sums(distance + self.shift)
        tail = self.left_out + blur
        return self.sized(distance, total, tail, slope / total if total else math.nan)

    def sums(self, gap: float) -> tuple[float, float, float]:
        """Return the sum, its derivative by ε, and what the cut-off may have changed."""
        # Products by 1, y and, of those near 0, by z(1 + z).
        found = np.zeros(3)
        for first in range(0, self.places.size, _AT_ONCE):
            here = slice(first, first + _AT_ONCE)
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
        return total, turned - self.tilt * total, _BLUR * abs(mass) / self.reach**2

    @cached_property
    def _near(self) -> Array:
        """What makes the values those that the mass near ε is a sum of, but for 1/G."""
        w = self.places / self.reach
        return np.asarray(np.exp(-((_STEEP * w) ** 2)) / _cut_off(w))


def sparing_tilt(law: SumLaw, epsilon: float, saddle: float) -> float:
    """Return the tilt, at the saddle point or below, at which bounds are narrowest.

    Lower ones allow longer steps h, and T is a number of them; but the sum cancels to a smaller
    share of its terms, which are rounded.
    """
    if not saddle > 0:
        return saddle
    found: list[tuple[float, float, float, float]] = []
    for share in _SHARES:
        tilt = share * saddle
        try:
            line, _ = first_line(
                law, tilted_laws(law, tilt), epsilon, tilt, continuous_kernel, math.inf, 0.0
            )
        except AccuracyError:
            continue
        height = tilt * line.distance(epsilon) + line.excess + math.log(line.step)
        terms, total = float(np.abs(line.values).sum()), abs(line.plain(epsilon))
        if not total > 0:  # it cancels wholly, and tells nothing about the answer
            continue
        found.append((height + math.log(total), height + math.log(terms), line.step, tilt))
    if not found:
        return saddle
    log_answer = median(answer for answer, _, _, _ in found)

    def width(log_terms: float, step: float) -> float:
        blur = _BLUR * saddle * (1.0 + saddle) / (_USUAL * step) ** 2
        return blur + _ROUNDED * math.exp(min(log_terms - log_answer, 700.0))

    return min((width(terms, step), tilt) for _, terms, step, tilt in found)[1]


def with_returns(
    line: Line, tilted: Sequence[Tilted], counts: Sequence[float], gap: float
) -> Blurred:
    """Return a line as far out as a narrow bound asks for, or as it pays.

    Parameters
    ----------
    line
        Its first nodes, of a scattered law.
    tilted, counts
        The steps at its tilt.
    gap
        The frequency of the sum, E L + shift − ε.

    Raises
    ------
    AccuracyError
        If no bound can be given so far out.
    """
    start, step = line.places.size, line.step
    total = abs(plain_sum((line.values * np.exp(1j * gap * line.places)).real))
    places, values = [line.places], [line.values]
    dropped, kept, seen, next_look = 0.0, 0, 0, _FIRST_LOOK
    lookout = Lookout(tilted, counts, step)
    size = abs(gap) + loss_size(tilted, counts)
    while True:
        first = seen
        # So little of all that lies as far out again is left out.
        faint = min(_FAINT * total * step * step * max(first, 1), 0.5)
        seen, heard, product = lookout.block(first, -math.log(faint))
        y = step * heard
        product *= continuous_kernel(np.asarray(line.tilt + 1j * y, dtype=np.complex128))
        product[heard < start] = 0.0
        modulus = np.abs(product)
        here = _loud(modulus, _FAINT * total * (seen - first) / seen)
        places.append(y[here])
        values.append(product[here])
        dropped += 2.0 * float(modulus.sum() - modulus[here].sum())
        dropped += 2.0 * ROUNDING * sum(counts) * float(modulus[here].sum())
        dropped += 2.0 * faint * _gain(line.tilt, step, first, seen)
        kept += here.size
        near = step * seen < _NEAREST * (1.0 + abs(line.tilt))
        last = kept > _MOST_KEPT or lookout.work > _MOST_WORK * (_PATIENT if near else 1.0)
        if last or (seen > start and seen >= next_look and not near):
            next_look = _RARELY * seen
            found = _cut(line, np.concatenate(places), np.concatenate(values), step * seen)
            # The losses are rounded, which turns far values by so much times y; next to the axis
            # only what differs from the mean counts, which is known precisely.
            far = np.abs(found.values[start:])
            turned = 2.0 * ROUNDING * size * float(far @ found.places[start:])
            total, _, blur = found.sums(gap)
            total = abs(total)
            if last or blur <= max(_WANTED * total, 0.1 * turned):
                return replace(found, left_out=1.1 * dropped + turned)


def _loud(modulus: Array, negligible: float) -> Index:
    """Return which of some values to keep, so that the others add up to no more than so much."""
    _, power = np.frexp(modulus)
    least = int(power.min(initial=0))
    sums = np.cumsum(np.bincount(power - least, weights=modulus))
    return np.flatnonzero(power - least >= np.searchsorted(sums, negligible, side="right"))


def _cut(line: Line, places: Array, values: Complex, reach: float) -> Blurred:
    """Cut values off at `reach`."""
    if reach < _NEAREST * (1.0 + abs(line.tilt)):
        raise AccuracyError(
            "too few values of the characteristic function tell how often single values of the "
            "loss bring it back; the method prv gives proved bounds"
        )
    known = {field.name: getattr(line, field.name) for field in fields(Line)}
    known |= {"places": places, "values": values * _cut_off(places / reach)}
    known |= {"last": 0.0, "assured": True}
    return Blurred(**known, reach=reach, left_out=0.0)


def _cut_off(w: Array) -> Array:
    """Return c(w), the indicator of |w| ≤ ½ blurred by a Gaussian, for w ≥ 0."""
    from scipy.special import erfc

    return np.asarray(0.5 * (erfc(_STEEP * (w - 0.5)) - erfc(_STEEP * (w + 0.5))))


def _gain(tilt: float, step: float, first: int, end: int) -> float:
    """Bound Σ |G| over the nodes of a stretch."""
    if first:
        return (end - first) / (step * first) ** 2
    z = tilt + 1j * step * np.arange(end)
    return float(np.abs(continuous_kernel(np.asarray(z))).sum())
