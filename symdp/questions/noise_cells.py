"""A noise density enclosed on cells of one width, by ball arithmetic: values, masses, curvature."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from flint import arb, ctx

from symdp.balls.cuts import cut_tails
from symdp.density.breakpoints import Stretch, smooth_stretches
from symdp.emit.arb import ArbFunction, compile_arb, compile_arb_together, constant_ball
from symdp.emit.enclose import between
from symdp.emit.exact import BITS
from symdp.errors import AccuracyError, InputError
from symdp.model.noise_shape import centre_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.model.mechanism import Mechanism

    Array = NDArray[np.float64]

ROUNDING = 1e-12  # relative: of sums of so many doubles
_TAILS = (1e-24, 1e-18, 1e-12, 1e-9, 1e-6)  # masses beyond the cells, the least that is affordable
_WIDER = 12.0  # times the range that holds all but 1e-3 of the mass, is affordable
_MOST_CELLS = 12_000  # about two seconds
_CELLS_AT_LAST = 60_000  # where the sensitivity is short: ten seconds
_MOST_WORK = 3e6  # cells times shifts, about as long
_SPARE = 1e-9  # cells: where an end falls between two, but for rounding


@dataclass(frozen=True)
class Cells:
    """A density on cells of one width, or at whole numbers.

    Attributes
    ----------
    low, high
        Its least and largest value on each cell.
    least, most
        Bounds on its mass in each.
    bend
        A bound on |f″|, infinite where f has a kink.
    beyond
        The mass that is not on the cells.
    shifts
        How many cells D is long.
    """

    low: Array
    high: Array
    least: Array
    most: Array
    bend: Array | None
    beyond: float
    width: float
    shifts: int

    def mirrored(self) -> Cells:
        """Return f(−x)."""
        sides = (self.low, self.high, self.least, self.most)
        low, high, least, most = (part[::-1] for part in sides)
        bend = None if self.bend is None else self.bend[::-1]
        return replace(self, low=low, high=high, least=least, most=most, bend=bend)

    def with_mirror(self) -> Cells:
        """Return an even f of which this is the right half."""
        left = self.mirrored()
        low, high, least, most = (
            np.concatenate([getattr(left, name), getattr(self, name)])
            for name in ("low", "high", "least", "most")
        )
        bends = None if left.bend is None or self.bend is None else (left.bend, self.bend)
        bend = None if bends is None else np.concatenate(bends)
        return replace(self, low=low, high=high, least=least, most=most, bend=bend)


@lru_cache(maxsize=64)
def cells_of(mechanism: Mechanism) -> Cells:
    """Return the density on cells; see `Cells`."""
    density, x = mechanism.source.density, mechanism.variable  # type: ignore[union-attr]
    size = mechanism.source.sensitivity  # type: ignore[union-attr]
    support = mechanism.support
    try:
        with ctx.workprec(BITS):
            if mechanism.support.kind != "interval":
                return _masses(density, x, support.lower, int(size))
            stretches = smooth_stretches((density,), x, support.lower, support.upper)
            low, high, beyond = _range(stretches, x)
            distance = float(size)
            width = math.sqrt((high - low) * distance / _MOST_WORK)
            width = max(width, (high - low) / _MOST_CELLS)
            shifts = math.ceil(distance / width)
            step = constant_ball(size, BITS).real / shifts
            if (high - low) / float(step) > _CELLS_AT_LAST:
                raise AccuracyError(
                    f"{mechanism.name}: the noise spreads over {(high - low) / distance:.3g} times "
                    f"its sensitivity, and the worst shift is looked for over {_CELLS_AT_LAST} at "
                    "most; where each record moves the output by exactly that much, say so by "
                    "shift = 'exactly'"
                )
            if centre_of(density, x, support) != 0:
                return _on_grid(stretches, x, step, (low, high), beyond, shifts)
            half = _on_grid(stretches, x, step, (0.0, high), beyond, shifts)
            return half.with_mirror()
    except InputError as error:
        raise AccuracyError(f"{mechanism.name}: {error}") from None


def _range(stretches: list[Stretch], x: sp.Symbol) -> tuple[float, float, float]:
    """Return finite ends, and the mass beyond them."""
    outer = [(s, compile_arb(s.expressions[0], [x])) for s in (stretches[0], stretches[-1])]
    found: tuple[float, float, float] | None = None
    for tail in (1e-3, *reversed(_TAILS)):
        low, high, beyond = float("nan"), float("nan"), 0.0
        for side, (stretch, values) in enumerate(outer):
            end = (stretch.lower, stretch.upper)[side]
            if end.is_infinite:
                place, mass = _cut(stretch, values, x, side, tail)
                beyond += mass
            else:
                place = float(end)
            low, high = (place, high) if side == 0 else (low, place)
        if found is None:
            most = _WIDER * (high - low)
        elif high - low > most:
            break
        found = (low, high, beyond)
    assert found is not None
    return found


def _cut(
    stretch: Stretch, values: ArbFunction, x: sp.Symbol, side: int, tail: float
) -> tuple[float, float]:
    f = stretch.expressions[0]
    exponent = sp.expand_log(sp.log(f), force=True)
    ends = [None if end.is_infinite else constant_ball(end, BITS).real
            for end in (stretch.lower, stretch.upper)]  # fmt: skip
    if ends[1 - side] is None:
        ends[1 - side] = arb(0)
    places, mass = cut_tails(exponent, values, x, ends, arb(tail))
    return float(places[side]), float(mass.upper())


def _on_grid(
    stretches: list[Stretch],
    x: sp.Symbol,
    step: arb,
    span: tuple[float, float],
    beyond: float,
    shifts: int,
) -> Cells:
    width, (low, high) = float(step), span
    first = math.floor(low / width - _SPARE) if low else 0  # half of an even density begins at 0
    places = range(first, math.ceil(high / width + _SPARE))
    ends = [(constant_ball(s.lower, BITS).real, constant_ball(s.upper, BITS).real)
            for s in stretches]  # fmt: skip
    taylor = (
        [sp.diff(s.expressions[0], x, k) / sp.factorial(k) for k in range(5)] for s in stretches
    )
    jets = [compile_arb_together(terms, [x]) for terms in taylor]
    values = [compile_arb(s.expressions[0], [x]) for s in stretches]
    rows, at = list[_Row](), 0
    for i in places:
        left, right = i * step, (i + 1) * step
        while at + 1 < len(stretches) and left >= ends[at][1]:
            at += 1
        inside = left >= ends[at][0] and right <= ends[at][1]
        if inside:
            row = _smooth_cell(jets[at], left, right, step)
            # A kink at an end of the cell is told by its neighbour's bend.
            if row is not None:
                rows.append(row)
                continue
        rows.append(_any_cell(values, ends, left, right, step))
    low_, high_, least, most, bend = (np.asarray(part) for part in zip(*rows, strict=True))
    kinks = [float(end) for pair in ends for end in pair if end.is_finite()]
    for kink in kinks:  # at an end of a cell, f″ is bounded on neither side of it
        place = kink / width - places.start
        for cell in {math.floor(place - 1e-6), math.floor(place + 1e-6)}:
            if 0 <= cell < bend.size:
                bend[cell] = math.inf
    return Cells(low_, high_, least, most, bend, beyond, width * (1.0 + ROUNDING), shifts)


_Row = tuple[float, float, float, float, float]


def _smooth_cell(jet: Any, left: arb, right: arb, step: arb) -> _Row | None:
    """Return a cell's bounds by Taylor's formula, None where f has no derivatives on it."""
    over = jet(between(left, right))
    if not all(part.is_finite() for part in over):
        return None
    middle = jet((left + right) / 2)
    mass = step * (middle[0] + step**2 / 12 * middle[2] + step**4 / 80 * over[4])
    value = over[0].intersection(middle[0] + arb(0, 1) * abs(over[1]).upper() * step / 2)
    return (*_ends(value), *_ends(mass), _up(2 * abs(over[2])))


def _any_cell(
    values: list[Any], ends: list[tuple[arb, arb]], left: arb, right: arb, step: arb
) -> _Row:
    """Return the bounds of a cell that holds a kink, or an end where f is singular."""
    lowest, highest = math.inf, 0.0
    if not (left >= ends[0][0] and right <= ends[-1][1]):
        lowest = 0.0  # a part of it is off the support
    for value, (begin, end) in zip(values, ends, strict=True):
        if begin < right and left < end:
            ball = value(between(left.max(begin), right.min(end)))
            if not ball.is_finite():
                raise AccuracyError("the density could not be enclosed where it is singular")
            low, high = _ends(ball)
            lowest, highest = min(lowest, low), max(highest, high)
    width = _up(step)
    return lowest, highest, math.nextafter(lowest * width, 0.0) * (1 - ROUNDING), (
        highest * width * (1 + ROUNDING)), math.inf  # fmt: skip


def _ends(ball: arb) -> tuple[float, float]:
    return max(math.nextafter(float(ball.lower()), -math.inf), 0.0), _up(ball)


def _up(ball: arb) -> float:
    upper = float(ball.upper())
    return math.nextafter(upper, math.inf) if upper > 0.0 else 0.0


def _masses(density: sp.Expr, k: sp.Symbol, lower: sp.Expr, shifts: int) -> Cells:
    """Return the masses at whole numbers."""
    value = compile_arb(density, [k])
    exponent = sp.expand_log(sp.log(density), force=True)
    start = None if lower.is_infinite else constant_ball(lower, BITS).real
    found = None
    for tail in _TAILS:
        ends, mass = cut_tails(exponent, value, k, [start, None], arb(tail), whole=True)
        first, last = (int(end.mid().unique_fmpz() or round(float(end))) for end in ends)
        if last - first <= _MOST_CELLS:
            found = first, last, float(mass.upper())
            break
    if found is None:
        raise AccuracyError("the masses fall too slowly")
    first, last, beyond = found
    rows = [_ends(value(arb(place))) for place in range(first, last + 1)]
    low, high = (np.asarray(part) for part in zip(*rows, strict=True))
    return Cells(low, high, low, high, None, beyond, 1.0, shifts)
