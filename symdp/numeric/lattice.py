"""Losses on a lattice of spacing Δ: the trapezoid over one period 2π/Δ of the integrand.

    δ(ε) = (1/2π) ∫_{−π/Δ}^{π/Δ} e^{K(z)−εz} G(z) dy,    z = t + iy,    G as in `lattice_kernel`.

A rule of N points adds δ at distances of NΔ, which Chernoff's bound makes negligible. However
narrow the peak at y = 0 of many steps is, others may be as high wherever the lattice is fine
compared with the differences of the losses that are taken often; nodes whose |φ|ⁿ is shown to be
below e^-40 of the value at y = 0, all together, are not evaluated, and count as an error.

**Where |φ|ⁿ may exceed a threshold**, angles tell: |φ(y − y′)| is the cosine of the angle between
the lines of e^{iyL} and e^{iy′L}, and angles obey the triangle inequality [Krein].  So does Θ(y) =
(Σ nᵢ arccos²|φᵢ(y)|)^½: Θ(y + s) ≥ Θ(y) − Θ(s). As cos θ ≤ e^{−θ²/2}, |Φ(y)| ≤ e^{−Θ(y)²/2}: one
value of Φ bounds a whole stretch around it, about as long as a step's loss is narrow, whatever the
number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from symdp.numeric.accuracy import MOST_NODES, MOST_WORK, NEGLIGIBLE, ROUNDING
from symdp.numeric.answer import Answer
from symdp.numeric.elementary import Complex
from symdp.numeric.line import (
    Kernel,
    Line,
    StripValue,
    answer_from_strips,
    first_line,
    line_tilt,
    longer,
    loss_size,
    with_places,
)
from symdp.numeric.nodes import Tilted, log_characteristic
from symdp.numeric.saddle_point import Strip
from symdp.numeric.step import Array
from symdp.numeric.sums import count_sums
from symdp.numeric.total import Lattice, SumLaw, find_lattice


def lattice_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) of losses on a lattice, None where there is none or it is too fine."""
    lattice = find_lattice(law)
    if lattice is None:
        return None
    # A lattice finer than the sums are many has no sum near most of its points.
    width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
    if count_sums(law) < width / float(lattice.spacing):
        return None
    kernel = lattice_kernel(lattice, epsilon)
    period = 2.0 * math.pi / float(lattice.spacing)

    def value(strip: Strip) -> StripValue | None:
        tilt = line_tilt(law, epsilon, strip)
        tilted = law.tilted(tilt)
        first, limit = first_line(law, tilted, epsilon, tilt, kernel, period, 0.0)
        line = with_period(law, epsilon, first, tilted, kernel, limit)
        return None if line is None else line.value(epsilon)

    return answer_from_strips(law, value)


def lattice_kernel(lattice: Lattice, epsilon: float) -> Kernel:
    """Return G(z) = Δ Σ_{λ>ε} e^{−z(λ−ε)}(1 − e^{ε−λ}) over the lattice, in closed form.

    The factor Δ makes the integral over one period 2π/Δ of e^{F(z)} G(z), divided by 2π, equal δ.

    With r the distance from ε up to the next point, the two geometric series combine to
    e^{−zr}[(1 − e^{−r}) + e^{−zΔ}(e^{−r} − e^{−Δ})]/((1 − e^{−zΔ})(1 − e^{−(z+1)Δ})).
    """
    spacing = float(lattice.spacing)
    distance = float((lattice.offset - Fraction(epsilon)) % lattice.spacing)

    def kernel(z: Complex) -> Complex:
        first = -math.expm1(-distance)
        second = -math.exp(-distance) * math.expm1(distance - spacing)
        with np.errstate(all="ignore"):  # what is no double is refused where the line begins
            numerator = np.exp(-z * distance) * (first + second * np.exp(-z * spacing))
            below = np.expm1(-z * spacing) * np.expm1(-(z + 1.0) * spacing)
            return np.asarray(spacing * numerator / below)

    return kernel


def with_period(
    law: SumLaw, epsilon: float, line: Line, tilted: Sequence[Tilted], kernel: Kernel, limit: int
) -> Line | None:
    """Return a line with all values of half a period that may count, and a bound of the others.

    `limit` is the number of nodes from 0 to the middle; None where too many of them count.
    """
    first = line.places.size
    if line.places.size >= limit:
        return replace(line, last=0.0)
    counts = [count for _, count in law.terms]
    angles = Angles(tilted, counts)
    level = NEGLIGIBLE + math.log(limit)
    found = places_above(angles, line.step, first, limit, level)
    if found is None:
        if limit > MOST_NODES:
            return None
        return replace(longer(law, line, limit, kernel), last=0.0)
    size = abs(epsilon) + loss_size(law, tilted)
    # |G| is largest at y = 0, and so is the modulus of every value.
    left_out = 2.0 * math.exp(-NEGLIGIBLE) * abs(line.values[0])
    places: Array = line.step * np.asarray(found, dtype=np.float64)
    return with_places(law, line, places, kernel, left_out, size)


_SPLIT = 4  # parts of a stretch that is not excluded, and nodes of one that is not split further


class Angles:
    """Θ of steps whose losses are single values, at one tilt.

    `counts`: how often each is taken.
    """

    def __init__(self, tilted: Sequence[Tilted], counts: Sequence[float]) -> None:
        self._tilted, self._counts = tilted, counts
        self.atoms = sum(part.weight.size for part in tilted)
        self.work = 0  # values of e^{iyL} so far
        self.most = 0.5 * math.pi * math.sqrt(float(sum(counts)))

    def at(self, y: Array) -> Array:
        """Return Θ(y), rounded down."""
        self.work += y.size * self.atoms
        total = np.zeros(y.size)
        for part, count in zip(self._tilted, self._counts, strict=True):
            depth = np.maximum(-log_characteristic(part, y).real - 2.0 * ROUNDING, 0.0)
            angle = np.arctan2(np.sqrt(-np.expm1(-2.0 * depth)), np.exp(-depth))
            total += count * (angle * angle)
        return np.asarray(np.sqrt(total))

    def within(self, reach: Array) -> Array:
        """Bound Θ(s) for all |s| ≤ reach: |φ(s)| ≥ 1 − σ²s²/2."""
        total = np.zeros(reach.size)
        for part, count in zip(self._tilted, self._counts, strict=True):
            sine = np.minimum(0.5 * math.sqrt(part.variance) * reach, math.sqrt(0.5))
            total += count * (2.0 * np.arcsin(sine)) ** 2
        return np.asarray(np.sqrt(total))


def places_above(angles: Angles, step: float, first: int, last: int, level: float) -> Array | None:
    """Return the k, first ≤ k < last, at which |Φ(k·step)| may be above e^{−level}.

    They come in rising order; None stands for too many to list or to look for.
    """
    needed = math.sqrt(2.0 * level)
    if needed > angles.most:
        return None
    edges = [first]
    while edges[-1] < last:
        edges.append(min(last, 2 * edges[-1] + _SPLIT))
    low, high = np.asarray(edges[:-1]), np.asarray(edges[1:])
    found: list[tuple[Array, Array]] = []
    places, most = 0, angles.work + MOST_WORK
    while low.size:
        around = needed + angles.within(0.5 * step * (high - 1 - low))
        # Where even right angles would not do, there is no need to look.
        hopeful = np.flatnonzero(around <= angles.most)
        if low.size + hopeful.size * angles.atoms > most - angles.work:
            return None
        above = np.ones(low.size, dtype=bool)
        middle = 0.5 * step * (low + high - 1)[hopeful]
        above[hopeful] = angles.at(middle) < around[hopeful]
        low, high = low[above], high[above]
        narrow = high - low <= _SPLIT
        found.append((low[narrow], high[narrow]))
        places += int((high - low)[narrow].sum())
        if places > MOST_NODES:
            return None
        low, high = _split(low[~narrow], high[~narrow])
    starts, stops = (np.concatenate([pair[side] for pair in found]) for side in (0, 1))
    order = np.argsort(starts)
    starts, sizes = starts[order], (stops - starts)[order]
    offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.asarray(offsets + np.arange(offsets.size))


def _split(low: Array, high: Array) -> tuple[Array, Array]:
    """Cut stretches of nodes into several each."""
    width = -((low - high) // _SPLIT)
    starts = low[:, None] + np.arange(_SPLIT) * width[:, None]
    stops = np.minimum(starts + width[:, None], high[:, None])
    some = starts < stops
    return starts[some], stops[some]
