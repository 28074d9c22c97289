r"""How far noise is from one mode at most, and what that adds to the pair at its sensitivity D.

Where one mode is not decided, balls still enclose f on cells: on most of them f is seen to rise or
to fall, and on the few others, next to the mode, it hardly changes. Let f₁ be f on an interval with
a mass T outside, m a place in it, and g the largest of f₁ from x on, away from m: g has one mode,
and g ≤ (1 + ρ)f₁ with a ρ(x) that is 0 where f₁ falls away from m and is nowhere larger beyond. For
|d| ≤ D and α ≥ 1, with A = {f₁(x − d) > αf₁(x)} and M = sup f,

    H_α(f(·−d) ‖ f) ≤ T + H_α(f₁(·−d) ‖ f₁)
                    ≤ T + H_α(g(·−d) ‖ g) + ∫_A ραf₁     where ∫_A ραf₁ ≤ ∫ρ(x)f₁(x − d) dx ≤ M∫ρ
                    ≤ T + H_α(g(·−D) ‖ g) + M∫ρ          as g has one mode
                    ≤ T + H_α(f₁(·−D) ‖ f₁) + 2M∫ρ       as ∫(g − f₁) ≤ M∫ρ
                    ≤ H_α(f(·−D) ‖ f) + κ,               κ = 2T + 2M∫ρ,

where the interval reaches D beyond places that leave out T. Sums take the place of integrals for
masses on whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import sympy as sp
from flint import arb, ctx

from symdp.balls.cuts import cut_tail
from symdp.density.breakpoints import Stretch, smooth_stretches
from symdp.density.records import DISTANCE
from symdp.density.signs import sign_of
from symdp.emit.arb import ArbFunction, compile_arb, compile_arb_together, constant_ball
from symdp.emit.enclose import between
from symdp.errors import AccuracyError, InputError
from symdp.model.pair import Support
from symdp.tolerances import BITS

_TAILS = ("1e-30", "1e-24", "1e-18")  # masses left out, the least that is told
_NEGLIGIBLE = 1e-32  # relative: a change over the sensitivity that counts as none
_MOST_LOOKS = 12_000  # at cells of one density: two or three seconds
_MOST_HALVINGS = 150
_MOST_MASSES = 3_000  # at whole numbers to either side of 0 that are looked at one by one
_OCTAVES = 16.0  # a cell whose ends differ by more is cut at their geometric mean
_CELLS_IN_D = 4  # on which the overlap of f with its shift is looked at
_CELLS_AROUND = 60  # of them, to either side of the mode
_COST = 100  # looks at elementary functions that one at others takes, of wide balls
_COSTLY = (
    sp.besseli,
    sp.besselk,
    sp.besselj,
    sp.gamma,
    sp.loggamma,
    sp.hyper,
    sp.uppergamma,
    sp.lowergamma,
    sp.Integral,
    sp.Sum,
)
_RISING = 1
_FALLING = -1


@dataclass(frozen=True)
class Departure:
    """What smaller shifts may add to the divergences of the largest."""

    excess: arb  # κ: H_α(f(·−d) ‖ f) ≤ H_α(f(·−D) ‖ f) + κ for |d| ≤ D, α ≥ 1
    overlap: arb  # a lower bound of ∫ min(f(x − D), f(x)) dx


@dataclass(frozen=True)
class _Cell:
    """Bounds of f on a cell, or at one whole number."""

    left: arb
    right: arb
    low: arb
    high: arb
    ends: tuple[arb, arb]  # of f where the cell begins and ends
    trend: int  # 0 where neither rising nor falling is told
    size: arb  # its width, or the whole numbers in it at most
    stretch: int = 0  # on which of them f is smooth

    @property
    def mirrored(self) -> _Cell:
        """The cell of f(−x)."""
        return _Cell(
            -self.right,
            -self.left,
            self.low,
            self.high,
            self.ends[::-1],
            -self.trend,
            self.size,
            self.stretch,
        )


@lru_cache(maxsize=64)
def departure_from_one_mode(
    density: sp.Expr, x: sp.Symbol, support: Support, sensitivity: sp.Expr
) -> Departure | None:
    """Return how far a density is from one mode, None where that is not told or is much."""
    with suppress(AccuracyError, InputError), ctx.workprec(BITS):
        distance = constant_ball(sensitivity, BITS).real
        cells, outside = _density_cells(density, x, support, distance)
        departure = _departure(cells, outside)
        if departure is None:
            return None
        excess, summit = departure
        values = compile_arb(density, [x])
        ends = [
            None if end.is_infinite else constant_ball(end, BITS).real
            for end in (support.lower, support.upper)
        ]
        overlap = _overlap(values, ends, summit, distance, is_whole=bool(x.is_integer))
        if overlap > 0:
            return Departure(excess, overlap)
    return None


def _density_cells(
    density: sp.Expr, x: sp.Symbol, support: Support, distance: arb
) -> tuple[list[_Cell], arb]:
    """Return f on cells from left to right, and the mass outside."""
    (low, high), outside = _finite_range(density, x, support)
    if support.lower.is_infinite:
        low -= distance
    if support.upper.is_infinite:
        high += distance
    if not x.is_integer:
        stretches = smooth_stretches((density,), x, support.lower, support.upper)
        return _Looks(x, distance).over(stretches, low, high), outside
    near = [max(low, arb(-_MOST_MASSES)), min(high, arb(_MOST_MASSES))]
    cells = _at_whole_numbers(density, x, *near)
    y = sp.Symbol(x.name, real=True)
    for begin, end in ((low, near[0]), (near[1], high)):
        if begin < end:
            smooth = density.xreplace({x: y})
            stretches = smooth_stretches((smooth,), y, support.lower, support.upper)
            far = _Looks(y, distance, is_whole=True).over(stretches, begin, end)
            cells = sorted([*cells, *far], key=lambda cell: float(cell.left))
    return cells, outside


def _finite_range(density: sp.Expr, x: sp.Symbol, support: Support) -> tuple[list[arb], arb]:
    """Return finite ends and the mass beyond them, of a sum at whole numbers."""
    ends: list[arb | None] = []
    for limit in (support.lower, support.upper):
        ends.append(None if limit.is_infinite else constant_ball(limit, BITS).real)
    finite_ends = [arb(0) if end is None else end for end in ends]
    total = arb(0)
    for side, direction in ((0, -1), (1, 1)):
        if ends[side] is not None:
            continue
        far_density = _far_out(density.xreplace({x: direction * DISTANCE}))
        terms = [term for term in sp.Add.make_args(far_density) if not _is_below_zero(term)]
        exponents = [sp.expand_log(sp.log(term), force=True) for term in terms]
        other = ends[1 - side]
        finite_ends[side], mass = _bounded_end(exponents, density, x, direction, other)
        total += mass
    return finite_ends, arb(total.upper())


def _bounded_end(
    exponents: list[sp.Expr], density: sp.Expr, x: sp.Symbol, direction: int, other: arb | None
) -> tuple[arb, arb]:
    values = compile_arb(density, [x])
    for tail in _TAILS:
        with suppress(AccuracyError):
            return cut_tail(
                exponents, values, direction, other, arb(tail), whole=bool(x.is_integer)
            )
    raise AccuracyError("its tails are not bounded")


def _far_out(f: sp.Expr) -> sp.Expr:
    """Write erf as ±(1 − erfc), so that differences of distribution functions do not cancel."""
    complements = {}
    for node in f.atoms(sp.erf):
        (argument,) = node.args
        rate = argument.diff(DISTANCE)
        if rate.is_positive:
            complements[node] = 1 - sp.erfc(argument, evaluate=False)
        elif rate.is_negative:
            complements[node] = sp.erfc(-argument, evaluate=False) - 1
    if complements:
        return sp.expand_mul(f.xreplace(complements))
    return f


def _is_below_zero(term: sp.Expr) -> bool:
    """Whether a term of a density is negative: what it is a bound of is larger without it."""
    constant, moving = term.as_independent(DISTANCE, as_Add=False)
    is_positive = all(isinstance(t, sp.erfc | sp.exp) for t in sp.Mul.make_args(moving))
    return is_positive and sign_of(constant) == -1


def _at_whole_numbers(density: sp.Expr, k: sp.Symbol, low: arb, high: arb) -> list[_Cell]:
    value = compile_arb(density, [k])
    cells = []
    first = math.floor(float(low))
    last = math.ceil(float(high))
    for number in range(first, last + 1):
        k_ball = arb(number)
        mass = value(k_ball)
        cells.append(
            _Cell(k_ball, k_ball, mass.lower(), mass.upper(), (mass, mass), 0, arb(1)),
        )
    return cells


class _Looks:
    """Cells of one density, halved until its trend is told or it hardly changes."""

    def __init__(self, x: sp.Symbol, distance: arb, *, is_whole: bool = False) -> None:
        self._x = x
        self._distance = distance
        self._is_whole = is_whole
        self._left = _MOST_LOOKS

    def over(self, stretches: list[Stretch], low: arb, high: arb) -> list[_Cell]:
        """Return the cells from `low` to `high`."""
        cells = []
        for index, stretch in enumerate(stretches):
            f = stretch.expressions[0]
            is_costly = any(self._x in node.free_symbols for node in f.atoms(*_COSTLY))
            cost = 1
            if is_costly:
                cost = _COST
            jet = compile_arb_together([f, f.diff(self._x), f.diff(self._x, 2)], [self._x])
            begin, end = low, high
            if stretch.lower.is_finite:
                begin = max(low, constant_ball(stretch.lower, BITS).real)
            if stretch.upper.is_finite:
                end = min(high, constant_ball(stretch.upper, BITS).real)
            if begin < end:
                cells += [
                    replace(cell, stretch=index) for cell in self._halved(jet, begin, end, cost)
                ]
        return cells

    def _halved(self, jet: Any, begin: arb, end: arb, cost: int) -> list[_Cell]:
        waiting = [(begin, end, 0)]
        cells = []
        while waiting:
            left, right, depth = waiting.pop()
            self._left -= cost
            if self._left < 0:
                raise AccuracyError("its slope changes its sign on too many cells, or vanishes")
            cell = self._cell(jet, left, right)
            if depth >= _MOST_HALVINGS or _is_settled(cell, self._distance):
                cells.append(cell)
                continue
            middle = _middle(left, right)
            waiting += [(middle, right, depth + 1), (left, middle, depth + 1)]
        return cells

    def _cell(self, jet: Any, left: arb, right: arb) -> _Cell:
        width = right - left
        size = width + int(self._is_whole)
        value, slope, bend = jet(between(left, right))
        middle_value, middle_slope, _ = jet((left + right) / 2)
        half = arb(0, 1) * (width / 2).upper()
        slope_by_bend = middle_slope + half * bend
        trend = _sign(slope) or _sign(slope_by_bend)
        at_left = jet(left)[0]
        at_right = jet(right)[0]
        ends = (at_left, at_right)
        if trend and at_left.is_finite() and at_right.is_finite():
            least, largest = ends[::trend]
            return _Cell(left, right, least.lower(), largest.upper(), ends, trend, size)
        by_slope = middle_value + half * slope
        if by_slope.is_finite() and value.is_finite():
            value = value.intersection(by_slope)
        elif by_slope.is_finite():
            value = by_slope
        return _Cell(left, right, value.lower(), value.upper(), ends, 0, size)


def _sign(values: arb) -> int:
    """Return the sign that all values have, 0 where they have several or vanish."""
    if values > 0:
        return _RISING
    if values < 0:
        return _FALLING
    return 0


def _is_settled(cell: _Cell, size: arb) -> bool:
    """Whether a cell need not be halved, of a change that counts as nothing over some length."""
    if cell.trend:
        return True
    if not (cell.high.is_finite() and cell.low > 0):
        return bool(cell.size < _NEGLIGIBLE * size)
    change = (cell.high - cell.low) / cell.low
    return bool(change * cell.size < _NEGLIGIBLE * size)


def _middle(left: arb, right: arb) -> arb:
    """Return a double between two ends, by octaves where they are far apart."""
    if left > 0 and right > _OCTAVES * left:
        return arb((left * right).sqrt().mid())
    if right < 0 and left < _OCTAVES * right:
        return arb(-(left * right).sqrt().mid())
    if left < 0 < right:
        return arb(0)
    return arb(((left + right) / 2).mid())


def _departure(cells: list[_Cell], outside: arb) -> tuple[arb, arb] | None:
    """Return κ and the mode; None where a cell has no bounds, or f may vanish inside."""
    if not cells or not all(cell.high.is_finite() for cell in cells):
        return None
    summit_index = max(range(len(cells)), key=lambda index: float(cells[index].high))
    summit = cells[summit_index]
    begin = summit_index
    mode = summit.left
    if summit.trend == _RISING:
        begin = summit_index + 1
        mode = summit.right
    right = cells[begin:]
    left = [cell.mirrored for cell in reversed(cells[:begin])]
    change = arb(0)
    for side in (right, left):
        side_change = _change(side)
        if side_change is None:
            return None
        change += side_change
    excess = 2 * outside + 2 * summit.high * change
    if not excess.is_finite():
        return None
    return arb(excess.upper()), mode


def _change(cells: list[_Cell]) -> arb | None:
    """Return ∫ρ over cells that lie to the right of m, and what is left out at the end."""
    beyond = arb(0)  # the largest value further out
    is_end = True  # nothing is further out
    stretch: int | None = None  # on which f falls to that value, which it has where it begins
    total = arb(0)
    for cell in reversed(cells):
        falls = cell.trend == _FALLING
        if falls and (is_end or stretch == cell.stretch):
            is_end = False
            beyond = cell.high
            stretch = cell.stretch
            continue
        least = cell.low
        largest = beyond.max(cell.high)
        if falls:
            least = cell.ends[1].lower()
            largest = beyond
        if least > 0:
            total += (largest / least - 1).max(arb(0)) * cell.size
        elif is_end:
            total += cell.size  # f₁ is 0 there
            continue
        else:
            return None
        is_end = False
        stretch = None
        if falls and cell.ends[0] > beyond:
            stretch = cell.stretch
        beyond = beyond.max(cell.high)
    return arb(total.upper())


def _overlap(
    values: ArbFunction,
    ends: Sequence[arb | None],
    summit: arb,
    distance: arb,
    *,
    is_whole: bool,
) -> arb:
    """Bound ∫ min(f(x − D), f(x)) dx from below by the least values on cells around the mode.

    A cell counts where it and its shift are seen to lie in the support: what is written as f may
    have any value elsewhere.
    """
    lower, upper = ends
    width = arb(1) if is_whole else distance / _CELLS_IN_D
    total = arb(0)
    for index in range(-_CELLS_AROUND, _CELLS_AROUND):
        left = summit + index * width
        right = left if is_whole else left + width
        if lower is not None and not left - distance >= lower:
            continue
        if upper is not None and not right <= upper:
            continue
        cell = left if is_whole else between(left, right)
        least = values(cell).min(values(cell - distance)).lower()
        if least > 0:
            total += least * width
    return arb(total.lower())
