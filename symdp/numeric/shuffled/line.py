r"""E[S₊] of a sum S of n independent parts, on one vertical line.

As ∫ s₊ e^{−zs} ds = z^{−2} for Re z > 0, Poisson summation gives for any t > 0 and Λ > 0, with
z_k = t + 2πik/Λ and φ(z) = E e^{zX},

.. math:: \frac{1}{Λ} \sum_k \frac{φ(z_k)^n}{z_k^2}
   = \sum_m e^{-tmΛ}\, E[(S + mΛ)_+].

All terms on the right are ≥ 0 and the one at m = 0 is E[S₊]: the sum on the left is an upper bound,
whatever t and Λ are. They are chosen such that the others are e^-`NEGLIGIBLE` of it.

*What is left out, |k| > K.* If the tilted law e^{tX}dP of X has densities ≥ c on intervals of
widths w, then |φ(t + iy)| ≤ φ(t) − Σ c w (1 − |sin(yw/2)/(yw/2)|). Atoms have none: there the sum
is blurred. With G normal, of mean 0 and variance τ² and independent of S, E[(S + G)₊] ≥ E[S₊], as
s₊ is convex: still an upper bound, by τ² times the density of S + G at 0 at most, and the terms
have e^{τ²z²/2} besides.

*Rounding*: an n-th power has n times the error of what is raised, which is kept relative to φ − 1.
It is counted, and added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from symdp.numeric.answer import LONG_LINE, MOST_WORK, TOLERABLE
from symdp.tolerances import NEGLIGIBLE, ROUNDED

if TYPE_CHECKING:
    from symdp.numeric.shuffled.law import Array, PartLaw


@dataclass(frozen=True)
class Excess:
    """An upper end of log E[S₊], and the share of it that may be rounding or blur."""

    log_value: float
    share: float


def chernoff(law: PartLaw, people: int) -> tuple[float, float]:
    """Return the tilt t at which φ(t)ⁿ/t² is least, and log min φ(t)ⁿ/(et), a bound on E[S₊].

    n log φ(t) − 2 log t is convex: Newton's steps for its slope, inside a bracket.
    """
    largest = float(law.values.max(initial=0.0))
    if largest <= 0.0:
        return 1.0, -math.inf

    # X is rounded like a ratio of size 1: a larger tilt would tell roundings apart.
    highest = 1e10 / (1.0 + largest)
    low = 0.0
    high = min(highest, 700.0 / largest)
    tilt = _normal_tilt(law, people)
    if not 0.0 < tilt < 0.5 * high:
        tilt = 0.5 * high
    for _ in range(100):
        mean, variance = law.tilted(tilt)
        slope = people * mean - 2.0 / tilt
        if slope > 0.0:
            high = tilt
        else:
            low = tilt
        step = slope / (people * variance + 2.0 / tilt**2)
        following = tilt - step
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - tilt) <= TOLERABLE * tilt:
            break
        tilt = following
    return tilt, people * law.cgf(tilt) - math.log(tilt) - 1.0


def _normal_tilt(law: PartLaw, people: int) -> float:
    """Return where the least would be of a normal law of about the same mean and variance."""
    largest = float(law.values.max())
    values = np.maximum(law.values, -1e3 * max(largest, 1.0))
    mean = float(law.masses @ values)
    with np.errstate(over="ignore"):
        square = max(float((law.masses * values**2).sum()), math.ulp(0.0))
    return (math.hypot(mean, math.sqrt(8.0 * square / people)) - mean) / (2.0 * square)


def period(law: PartLaw, people: int, tilt: float) -> float:
    """Return Λ such that E[S₊] is e^`NEGLIGIBLE` times what other periods add."""
    cgf = law.cgf(tilt)
    deviations = tilt * law.spread(tilt) * math.sqrt(people)
    wanted = NEGLIGIBLE + math.log1p(deviations)
    below = math.inf
    above = math.inf
    for part in (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9):
        # E[(S + mΛ)₊] ≤ φ(s)ⁿ e^{smΛ}/(es) for s < t, and with s > t for m < 0
        smaller = part * tilt
        rise = max(people * (law.cgf(smaller) - cgf), 0.0) - math.log(part)
        below = min(below, (wanted + rise) / (tilt - smaller))
        larger = tilt / part
        rise = max(people * (law.cgf(larger) - cgf), 0.0) + math.log(part)
        above = min(above, (wanted + rise) / (larger - tilt))
    return max(below, above)


def line_excess(law: PartLaw, people: int) -> Excess | None:
    """Return E[S₊] by the line, None where its end is not bounded."""
    tilt, bound = chernoff(law, people)
    if bound == -math.inf:
        return Excess(-math.inf, 0.0)
    length = period(law, people, tilt)
    blur = 0.0
    end = line_end(law, people, tilt)
    if end is None:
        if law.windows.size:
            return None
        count = min(MOST_WORK // (8 * law.values.size), LONG_LINE)
        end = 2.0 * math.pi * count / length
        blur = math.sqrt(2.0 * _wanted(law, people, tilt)) / end
    count = math.ceil(end * length / (2.0 * math.pi))
    if count * law.values.size > MOST_WORK // 8:
        return None
    return _summed(law, people, tilt, length, count, blur)


def _wanted(law: PartLaw, people: int, tilt: float) -> float:
    """Return by how many e-folds |φⁿ| must have fallen where the line ends."""
    return NEGLIGIBLE + math.log1p(tilt * law.spread(tilt) * math.sqrt(people))


def line_end(law: PartLaw, people: int, tilt: float) -> float | None:
    """Return the frequency from which on |φⁿ| is negligible, by densities on intervals."""
    if not law.windows.size:
        return None
    low, high, density = law.windows
    width = high - low
    shares = density * width * np.exp(tilt * low - law.cgf(tilt))
    needed = -math.expm1(-_wanted(law, people, tilt) / people)

    def gone(frequency: float) -> float:
        return float(shares @ (1.0 - largest_sinc(0.5 * frequency * width)))

    if needed >= 0.99 * float(shares.sum()):
        return None
    end = 1.0 / float(width.max())
    while gone(end) < needed:
        end *= 1.25
    return end


def largest_sinc(angle: Array) -> Array:
    """Return a bound on |sin u/u| for all u from an angle on."""
    first_lobe = 1.0 - angle**2 / 6.0 + angle**4 / 120.0
    inside = np.where(angle**2 < 10.0, np.maximum(first_lobe, 0.2173), 0.2173)
    return np.minimum(inside, 1.0 / np.maximum(angle, 1.0))


def _summed(
    law: PartLaw, people: int, tilt: float, length: float, count: int, blur: float
) -> Excess:
    """Return the sum over |k| ≤ count, and what rounding may take from it."""
    frequencies = np.arange(count + 1, dtype=np.float64) * (2.0 * math.pi / length)
    points = (tilt + 1j * frequencies).astype(np.complex128)
    cgf = law.cgf(tilt)
    share = math.exp(-NEGLIGIBLE) / (people * law.values.size)
    growth = law.transform_less_one(tilt, frequencies, share)
    logs = people * (np.log1p(growth) - cgf) + 0.5 * blur**2 * points**2
    terms = np.exp(logs) / points**2
    weights = np.full(count + 1, 2.0)
    weights[0] = 1.0
    total = float(weights @ terms.real)
    lost = np.abs(terms) * (1.0 + people * np.abs(growth) / np.abs(1.0 + growth))
    rounding = 8.0 * ROUNDED * float(weights @ lost)
    beyond = math.exp(-_wanted(law, people, tilt)) * 0.5 * length / tilt
    value = total + rounding + beyond
    # E[(S + G)₊] − E[S₊] = ∫₀^τ E[ν(S/s)] ds ≤ τ E[ν(S/τ)], ν the normal density
    blurred = blur**2 * max(float(weights @ (terms * points**2).real), 0.0)
    share = (rounding + beyond + blurred) / value
    return Excess(people * cgf + math.log(value / length), share)
