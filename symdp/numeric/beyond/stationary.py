"""Panels on which the loss turns: its derivative has a zero u* there, or at an end.

With s = √|ℓ − ℓ*|, from 0 at u* to S at an end of the panel, each side is a branch

    ∫ w e^{iyℓ} du = e^{iyℓ*} ∫₀^S h(s) e^{±iys²} ds,    h = w du/ds smooth.

As h(s) = h(0) + s k(s), and s e^{±iys²} has a primitive, with F = ∫₀^S e^{±iys²} ds

    ∫ h e^{±iys²} ds = h(0) F ± [k e^{±iys²}]/(2iy) ∓ (1/2iy) ∫ k′ e^{±iys²} ds,

and so on with k′ in place of h. The terms at s = 0 are those of a kink at ℓ*, |F| at S = ∞ being
½√(π/y). Those at S, with F less that, are what integrations by parts of the density g = h/(2s)
leave there, up to a next term. What is left after N steps is at most (2y)^−N times an integral.

**Next to an end** a short side would leave large terms. There the other side begins at u*, be it on
the panel or a little beyond, as does that of the panel that adjoins: together they are whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev, legendre, polynomial

from symdp.numeric.panels import NODES, ORDER, TO_LEGENDRE, WEIGHTS
from symdp.numeric.step import Array

# values at the nodes of a panel to values at its ends
ENDS = np.linalg.solve(
    np.polynomial.legendre.legvander(NODES, ORDER - 1).T,
    np.polynomial.legendre.legvander(np.asarray([-1.0, 1.0]), ORDER - 1).T,
)
NEAR_END = 0.05  # of half a panel: with a zero so near its end, 1/ℓ′ is no polynomial


@dataclass(frozen=True)
class Branch:
    """One side of a stationary point of the loss on a panel."""

    value: float  # u*, where the loss is ℓ*
    end: int  # of the panel, where it ends: 0 left, 1 right
    sign: float  # of ℓ − ℓ*
    width: float  # S
    series: Array  # the coefficients of h in powers of s/S
    variation: float  # |h(0)| and how much h varies
    misfit: float  # mass by which the series is off
    edge_mass: float  # between u* and the panel's other end, where that is near; else 0

    @property
    def most(self) -> float:
        """What √y times the branch's integral is at most, and that of what lies at the edge."""
        return 2.0 * 1.2 * self.variation  # |∫₀ᶻ e^{±it²} dt| is at most 1.2

    def terms(self, order: int) -> tuple[Array, Array, Array]:
        """Return the sizes at ℓ*, those of the rest, and g and its derivatives at the end.

        The first two are coefficients of powers of y^−½.
        """
        size: Array = np.zeros(2 * order + 3)
        residual: Array = np.zeros(2 * order + 3)
        series = self.series
        residual[0] = self.misfit
        for j in range(order):
            height = abs(series[0])
            slope = abs(series[1]) / self.width
            size[2 * j + 1] = height * 0.5 * math.sqrt(math.pi) * 0.5**j
            size[2 * j + 2] = slope * 0.5 ** (j + 1)
            left = order - j  # terms of F beyond S that are no part of the rest
            odd = math.prod(range(1, 2 * left, 2))
            next_term = 2.0 * height * odd * 0.5 ** (order + 1)
            power_of_width = self.width ** (2 * left + 1)
            residual[2 * order + 2] += next_term / power_of_width
            degrees = np.arange(1.0, series.size - 1.0)
            derivative = series[2:] * degrees
            series = np.append(derivative, [0.0, 0.0])
            series = series / self.width**2
        powers = np.arange(1.0, series.size + 1.0)
        integral = float(np.abs(series) @ (1.0 / powers))
        residual[2 * order] = integral * self.width * 0.5**order
        return size, residual, self._at_end(order)

    def _at_end(self, order: int) -> Array:
        """Return g, g′, … where the branch ends: (d/2s ds)^m of h/(2s)."""
        term = self.series / (2.0 * self.width)
        power = np.arange(self.series.size) - 1.0
        derivatives = []
        for _ in range(order):
            derivatives.append(float(term.sum()))
            square = 2.0 * self.width**2
            term = term * power * self.sign / square
            power = power - 2.0
        return np.asarray(derivatives)


def interpolated_at(values: Array, u: Array) -> Array:
    """Return the polynomial through values at a panel's nodes at places −1 ≤ u ≤ 1."""
    return np.asarray(legendre.legval(u, values @ TO_LEGENDRE))


@cache
def _in_shares() -> Array:
    """Return Chebyshev polynomials of 2v − 1 as coefficients of powers of v, a row for each."""
    rows = np.zeros((ORDER - 2, ORDER - 2))
    argument = polynomial.Polynomial([-1.0, 2.0])
    for degree in range(ORDER - 2):
        powers = chebyshev.Chebyshev.basis(degree).convert(kind=polynomial.Polynomial)
        rows[degree, : degree + 1] = powers(argument).coef
    return rows


def _trimmed(coefficients: Array) -> Array:
    """Return a series without last coefficients that are rounding."""
    rounding = 1e-13 * float(np.abs(coefficients).max())
    clear = np.flatnonzero(np.abs(coefficients) > rounding)
    return coefficients[: clear[-1] + 1] if clear.size else coefficients[:1]


def _powers_around(series: Array, centre: float) -> Array:
    """Return the coefficients of a Legendre series in powers of u − centre."""

    def times_u(powers: Array) -> Array:
        raised = np.append(0.0, powers[:-1])
        return np.asarray(centre * powers + raised)

    degree = series.size - 1
    lower = np.zeros(series.size)  # Clenshaw's recurrence
    upper = np.zeros(series.size)
    lower[0] = series[degree - 1]
    upper[0] = series[degree]
    for k in range(degree, 1, -1):
        next_lower = -upper * ((k - 1) / k)
        next_lower[0] += series[k - 2]
        upper = lower + times_u(upper) * ((2 * k - 1) / k)
        lower = next_lower
    return lower + times_u(upper)


def branches(slope: Array, weight: Array) -> list[Branch]:
    """Return the branches of a panel on which the loss turns once, and none if it is not so simple.

    `slope`: ℓ′ per half a panel's width, at its nodes, and `weight` the masses of these.
    """
    rate = slope @ TO_LEGENDRE
    roots = legendre.legroots(_trimmed(rate))
    is_real = np.abs(roots.imag) < math.sqrt(1e-13)  # as rounding parts a double zero
    real = roots.real[is_real]
    real = real[np.abs(real) <= 1.0 + NEAR_END]
    if real.size != 1:
        return []
    turn = float(real[0])
    density = (weight / WEIGHTS) @ TO_LEGENDRE
    rise = _powers_around(rate, turn)
    sides = []
    for end, corner in enumerate((-1.0, 1.0)):
        if abs(corner - turn) <= NEAR_END:
            continue
        edge = 0.0
        if abs(corner + turn) <= NEAR_END:
            edge = -corner - turn
        branch = _branch(rise, density, turn, end, corner - turn, edge)
        if branch is None:
            return []
        sides.append(branch)
    return sides


def _branch(
    rise: Array,
    density: Array,
    turn: float,
    end: int,
    length: float,
    edge: float,
) -> Branch | None:
    """Return what lies between u* and an end, ℓ′ being `rise` around u*; the other end is near.

    `rise` are coefficients of powers of the distance from u*, `density` those of a Legendre series.
    """
    bend = rise[1:]  # ℓ′ over the distance from u*
    degrees = np.arange(2.0, bend.size + 2.0)
    shares = 0.5 + 0.5 * chebyshev.chebpts1(3 * ORDER)
    offset = np.append(length * shares, [edge, length])
    quotient = polynomial.polyval(offset, bend)
    height = polynomial.polyval(offset, bend / degrees)  # ℓ − ℓ* over the square of the distance
    has_one_sign = (height > 0.0).all() or (height < 0.0).all()
    if not has_one_sign:
        return None
    root = np.sqrt(np.abs(height))
    pace = np.abs(quotient) / (2.0 * root)  # ds over the distance from u*
    if not (pace > 0.0).all():
        return None
    s = np.abs(offset) * root
    values = legendre.legval(turn + offset, density) / pace
    mass_at_edge = s[-2] * abs(values[-2])
    edge_mass = float(mass_at_edge)
    width = float(s[-1])
    s = np.delete(s, -2)
    values = np.delete(values, -2)
    share = s / width
    fit = _trimmed(chebyshev.chebfit(2.0 * share - 1.0, values, ORDER - 3))
    off = np.abs(chebyshev.chebval(2.0 * share - 1.0, fit) - values)
    series = np.zeros(ORDER)
    series[: ORDER - 2] = fit @ _in_shares()[: fit.size]
    values_in_order = values[np.argsort(s)]
    changes = np.abs(np.diff(values_in_order))
    return Branch(
        value=turn,
        end=end,
        sign=math.copysign(1.0, float(height[-1])),
        width=width,
        series=series,
        variation=abs(series[0]) + float(changes.sum()),
        misfit=float(off.max()) * width,
        edge_mass=edge_mass,
    )
