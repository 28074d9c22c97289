r"""Below all laws f(y − x), x in [a, b], where f turns more than once.

The least of f on the window [y − b, y − a] is at an end of it, or at a point inside at which f
turns from falling to rising, or jumps: so ω is the least of f(y − a), f(y − b) and, while such a
point c lies in the window, a ≤ y − c ≤ b, of the floor min(f(c−), f(c+)). Where f is 0 between two
points, the floor is 0 as long as the window meets them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from symdp.density.breakpoints import Stretch, smooth_stretches
from symdp.density.normal_form import log_form
from symdp.density.signs import interior_point
from symdp.density.turning import monotone_cuts
from symdp.interrupt import attempt
from symdp.tolerances import SUMS_ROUNDED

if TYPE_CHECKING:
    from symdp.model.local import Local
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.shuffled.outputs import Array

_SECONDS = 10.0  # for all turning points


@dataclass(frozen=True)
class Floor:
    """A number below all laws between two outputs."""

    low: float
    high: float
    value: float

    def over(self, law: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """Return a function that is the floor between its outputs, and a law elsewhere."""

        def density(outputs: Array) -> Array:
            inside = (outputs >= self.low) & (outputs <= self.high)
            values: Array = np.where(inside, self.value, law(outputs))
            return values

        return density


def turning_floors(
    mechanism: Mechanism, source: Local, density: sp.Expr
) -> tuple[Floor, ...] | None:
    """Return the floors of a density f(y), None where it was not found out where f turns."""
    y = mechanism.variable
    first, last = source.inputs
    ends = mechanism.support.lower - last, mechanism.support.upper - first
    return attempt(lambda: _floors(density, y, ends, (first, last)), None, _SECONDS)


def _floors(
    density: sp.Expr,
    y: sp.Symbol,
    ends: tuple[sp.Expr, sp.Expr],
    inputs: tuple[sp.Expr, sp.Expr],
) -> tuple[Floor, ...] | None:
    parts: list[tuple[sp.Expr, sp.Expr, str, sp.Expr]] = []
    for stretch in smooth_stretches((density,), y, *ends):
        cuts = _cuts(stretch, y)
        if cuts is None:
            return None
        parts += cuts
    lower, upper = (float(value) for value in inputs)
    floors = []
    for low, high, _, value in parts:
        if value == 0:
            floors.append(Floor(float(low) + lower, float(high) + upper, 0.0))
    for left, right in pairwise(parts):
        place = float(left[1])
        before, after = (_value(part[3], y, left[1]) for part in (left, right))
        if not (math.isfinite(before) and math.isfinite(after)):
            return None
        is_jump = abs(before - after) > SUMS_ROUNDED * max(before, after)
        if is_jump or left[2] != "increasing" or right[2] != "decreasing":
            value = min(before, after) * (1.0 - SUMS_ROUNDED)
            floors.append(Floor(place + lower, place + upper, value))
    return tuple(floors)


def _cuts(stretch: Stretch, y: sp.Symbol) -> list[tuple[sp.Expr, sp.Expr, str, sp.Expr]] | None:
    """Return parts of a stretch on which its density is monotone, with their slopes."""
    (value,) = stretch.expressions
    if y not in value.free_symbols:
        return [(stretch.lower, stretch.upper, "constant", value)]
    inside = interior_point(stretch.lower, stretch.upper)
    height = log_form(value, y, inside).to_expression()
    cuts: list[Any] = monotone_cuts(height, y, stretch.lower, stretch.upper)
    if any(slope == "unknown" for _, _, slope in cuts):
        return None
    return [(low, high, str(slope), value) for low, high, slope in cuts]


def _value(density: sp.Expr, y: sp.Symbol, place: sp.Expr) -> float:
    """Return a density at an end of its stretch; NaN where it has no value there."""
    value = density.subs(y, place).evalf(30)
    return float(value) if value.is_real and value.is_finite else math.nan
