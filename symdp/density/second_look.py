"""A second look at a shape that was proved: values of the density itself, at some hundred points.

It knows nothing of slopes, cells and rules, so that a mistake of theirs shows. Points are spread by
distance from everything that the formula names (ends, kinks, centres), then by quantiles; of
integers all of them are looked at where the mass is. What doubles see is believed after 50 digits
say the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import mpmath
import sympy as sp

from symdp.emit.mass import MassIntegral
from symdp.model.pair import Support
from symdp.tolerances import SUMS_ROUNDED

_QUANTILES = 200
_OCTAVES = 30  # of distances on either side of 1, half an octave apart
_MOST_ORIGINS = 8
_ROUNDING = 1e-6  # relative: by less a rise in doubles may be one of rounding
_FAINT = 1e-200  # of the largest value: below, doubles are no longer looked at
_DIGITS = 50
_MOST_LOOKED_AT = 10  # places with fifty digits that show nothing, where doubles are rough

Values = Callable[[float], float]


@dataclass(frozen=True)
class Contradiction:
    """Points from left to right at which a density falls and rises again, or is not as claimed."""

    points: tuple[float, ...]

    def __str__(self) -> str:
        return "x = " + ", ".join(f"{point:.6g}" for point in self.points)


class SecondLook:
    """The values of a density, without its constant of normalization, and what they contradict."""

    def __init__(self, density: sp.Expr, x: sp.Symbol, support: Support) -> None:
        masses = density.atoms(MassIntegral, sp.Sum, sp.Integral)
        self._density = density.xreplace(dict.fromkeys(masses, sp.S.One))
        self._x = x
        self._support = support
        self._lower = float(support.lower)
        self._upper = float(support.upper)
        self.value = _in_doubles(self._density, x)
        self._exact: Callable[[Any], Any] | None = None
        self.heights = self._heights_at(self._by_distance())
        further = _all_between if x.is_integer else _quantiles
        self.heights |= self._heights_at(further(self.heights))

    def against_one_mode(self) -> Contradiction | None:
        """Return three points, the middle one below both others; None where no such were seen."""
        if not self.heights:
            return None
        top = max(self.heights.values())
        highest = lowest = 0.0, 0.0  # a point and its height
        for point in sorted(self.heights):
            height = self.heights[point]
            if height > lowest[1] * (1.0 + _ROUNDING) and lowest[1] < highest[1]:
                points = (highest[0], lowest[0], point)
                if height > _FAINT * top and self._is_valley(points):
                    return Contradiction(points)
            if height >= highest[1]:
                highest = lowest = point, height
            elif height < lowest[1]:
                lowest = point, height
        return None

    def against_log_concave(self) -> Contradiction | None:
        """Return three points at which log f is below its chord; None where no such were seen."""
        heights = self.heights
        faint = _FAINT * max(heights.values(), default=0.0)
        points = [point for point in sorted(heights) if heights[point] > faint]
        logs = [math.log(heights[point]) for point in points]
        looked_at = 0
        for index in range(1, len(points) - 1):
            left, middle, right = points[index - 1 : index + 2]
            log_left, log_middle, log_right = logs[index - 1 : index + 2]
            share = (middle - left) / (right - left)
            chord = (1.0 - share) * log_left + share * log_right
            gap = chord - log_middle
            if gap > _ROUNDING:
                looked_at += 1
                if self._is_below_chord((left, middle, right)):
                    return Contradiction((left, middle, right))
            if looked_at == _MOST_LOOKED_AT:
                break
        return None

    def against_even(self, centre: sp.Expr) -> Contradiction | None:
        """Return two points at equal distances from a centre whose heights differ, or None."""
        middle = float(centre)
        for point, height in self.heights.items():
            mirrored = 2.0 * middle - point
            gap = abs(self.value(mirrored) - height)
            if gap > _ROUNDING * height and self._are_unequal(point - middle, centre):
                return Contradiction((min(point, mirrored), max(point, mirrored)))
        return None

    def _is_valley(self, points: tuple[float, float, float]) -> bool:
        """Return whether fifty digits say that the middle one of three points is the lowest."""
        left, middle, right = (self._digits(point) for point in points)
        return bool(middle < left * (1 - SUMS_ROUNDED) and middle < right * (1 - SUMS_ROUNDED))

    def _is_below_chord(self, points: tuple[float, float, float]) -> bool:
        """Return whether fifty digits say that log f is below its chord at the middle one."""
        left, middle, right = (self._digits(point) for point in points)
        if min(left, middle, right) <= 0:
            return False
        (first, inner, last) = points
        width = mpmath.mpf(last) - first
        share = (mpmath.mpf(inner) - first) / width
        with mpmath.workdps(_DIGITS):
            chord = (1 - share) * mpmath.log(left) + share * mpmath.log(right)
            return bool(mpmath.log(middle) < chord - SUMS_ROUNDED)

    def _are_unequal(self, distance: float, centre: sp.Expr) -> bool:
        """Return whether fifty digits tell f apart at a distance on either side of a centre."""
        offset = sp.Rational(distance)
        left_point = centre - offset
        right_point = centre + offset
        for point in (left_point, right_point):
            if not self._lower < float(point) < self._upper:
                return False
        left = self._digits(left_point)
        right = self._digits(right_point)
        return bool(abs(left - right) > SUMS_ROUNDED * max(abs(left), abs(right)))

    def _digits(self, point: Any) -> Any:
        if self._exact is None:
            self._exact = sp.lambdify(self._x, self._density, [{"gamma": _gamma}, "mpmath"])
        with mpmath.workdps(_DIGITS):
            if isinstance(point, float):
                at = mpmath.mpf(point)
            else:
                at = mpmath.mpmathify(sp.N(point, _DIGITS))
            return mpmath.re(self._exact(at))

    def _heights_at(self, points: Iterable[float]) -> dict[float, float]:
        heights = {}
        for point in points:
            is_inside = self._lower < point < self._upper
            if not is_inside and not (self._x.is_integer and self._holds(point)):
                continue
            height = self.value(point)
            if 0.0 <= height < math.inf:
                heights[point] = height
        return heights

    def _holds(self, point: float) -> bool:
        return self._lower <= point <= self._upper

    def _by_distance(self) -> set[float]:
        ends = [end for end in (self._lower, self._upper) if math.isfinite(end)]
        half_octaves = range(-2 * _OCTAVES, 2 * _OCTAVES + 1)
        distances = [2.0 ** (k / 2) for k in half_octaves]
        origins = _origins(self._density, self._x)
        points: set[float] = set()
        for origin in [*ends, *origins][:_MOST_ORIGINS]:
            for distance in distances:
                points.add(origin + distance)
                points.add(origin - distance)
        if len(ends) == 2:
            width = self._upper - self._lower
            for k in range(1, _QUANTILES):
                points.add(self._lower + width * k / _QUANTILES)
        if not self._x.is_integer:  # the value at a jump is a convention: no origin is a point
            return points
        points.update(origins)
        return {float(round(point)) for point in points if abs(point) < 2.0**53}


def _origins(density: sp.Expr, x: sp.Symbol) -> list[float]:
    """Return 0 and the zeros of linear terms, at which kinks and centres are."""
    origins = {0.0}
    for node in density.atoms(sp.Add, sp.Rel):
        term = node
        if isinstance(node, sp.Rel):
            term = node.lhs - node.rhs
        slope = term.diff(x)
        is_line = term.is_polynomial(x) and slope != 0 and x not in slope.free_symbols
        if is_line:
            zero = -term.subs(x, 0) / slope
            if zero.is_real:
                origins.add(float(zero))
    return sorted(origins, key=abs)


def _in_doubles(density: sp.Expr, x: sp.Symbol) -> Values:
    """Return the density as a function of doubles that is NaN where they do not hold it."""
    value = sp.lambdify(x, density, [_FUNCTIONS, "mpmath"])

    def height(point: float) -> float:
        try:
            result = value(point)
        except (ArithmeticError, ValueError, TypeError, NotImplementedError):
            return math.nan
        if isinstance(result, complex):
            if abs(result.imag) <= _ROUNDING * abs(result.real):
                return result.real
            return math.nan
        return float(result)

    return height


# What Python's own mathematics has, at a hundredth of the price.
_FUNCTIONS: dict[str, Any] = {
    name: getattr(mpmath.fp, name)
    for name in dir(mpmath.fp)
    if not name.startswith("_") and callable(getattr(mpmath.fp, name))
}


def _quantiles(heights: dict[float, float]) -> list[float]:
    """Return points that share the mass evenly, f taken as linear between its heights."""
    points = sorted(heights)
    masses = []
    for left, right in pairwise(points):
        mean_height = 0.5 * (heights[left] + heights[right])
        masses.append(mean_height * (right - left))
    total = math.fsum(masses)
    if not 0.0 < total < math.inf:
        return []
    quantiles = []
    below = 0.0
    for (left, right), mass in zip(pairwise(points), masses, strict=True):
        first = math.ceil(below / total * _QUANTILES)
        below += mass
        last = math.floor(below / total * _QUANTILES)
        count = min(last, first + _QUANTILES) - first + 1
        width = right - left
        quantiles += [left + width * (j + 0.5) / count for j in range(count)]
    return quantiles


def _all_between(heights: dict[float, float]) -> list[float]:
    """Return all integers around the largest masses, up to twice as many as there are quantiles."""
    faint = 1e-12 * max(heights.values(), default=0.0)
    centre = max(heights, key=heights.__getitem__, default=0.0)
    distances = []
    for point, height in heights.items():
        if height > faint:
            distances.append(abs(point - centre))
    farthest = max(distances, default=0.0)
    reach = int(min(farthest, 2.0 * _QUANTILES))
    return [centre + step for step in range(-reach, reach + 1)]


def _gamma(argument: Any) -> Any:
    """Return Γ, infinite at its poles: 1/Γ is 0 there, as in masses beyond a support."""
    if mpmath.isint(argument) and argument <= 0:
        return mpmath.inf
    return mpmath.gamma(argument)
