"""Losses on a lattice of spacing Δ: the trapezoid over one period 2π/Δ of the integrand.

    δ(ε) = (1/2π) ∫_{−π/Δ}^{π/Δ} e^{K(z)−εz} G(z) dy,    z = t + iy,    G as in `lattice_kernel`.

A rule of N points adds δ at distances of NΔ, which Chernoff's bound makes negligible. However
narrow the peak at y = 0 of many steps is, others may be as high wherever the lattice is fine
compared with the differences of the losses that are taken often; nodes whose |φ|ⁿ is shown to be
below e^-40 of the value at y = 0, all together, are not evaluated, and count as an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from symdp.exact.accuracy import MOST_NODES, NEGLIGIBLE
from symdp.exact.answer import Answer
from symdp.exact.finite_sum import count_sums
from symdp.exact.line import (
    Kernel,
    Line,
    StripValue,
    first_line,
    longer,
    loss_size,
    with_places,
)
from symdp.exact.modulus_bound import Angles, places_above
from symdp.exact.two_strips import answer_from_strips, line_tilt, sharpened
from symdp.law.elementary import Complex
from symdp.law.lattice import Lattice, find_lattice
from symdp.law.step import Array
from symdp.law.tilted import Tilted
from symdp.law.tilts import Strip
from symdp.law.total import SumLaw


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

    return sharpened(law, epsilon, answer_from_strips(law, value))


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
