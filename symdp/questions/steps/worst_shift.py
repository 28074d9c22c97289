r"""Noise of several modes: one pair that dominates every shift of it by at most the sensitivity D.

One step's profile is δ*(α) = sup over |d| ≤ D of H_α(f(· − d) ‖ f), α = e^ε: convex in α, so that
it belongs to a pair, which composes [Zhu, Dong, Wang 2022]. From above, at each α of a table:

- f is enclosed on cells of width h = D/K by ball arithmetic, its mass in each, and |f″|. For a
  shift kh, cells of P and Q are the same; a cell of masses a, b on which P/Q lies in [r, R] counts
  at most as much as two outcomes of ratios r and R that share a and b.
- For d between two such shifts, (1 − θ)f(· − kh) + θf(· − (k+1)h) lies below the larger of both,
  as H is convex, and above f(· − d) but for h²|f″|/8; that is counted where P/Q may exceed α.
- What is not on the cells counts as an infinite loss; for integers there is nothing between shifts.

The table's points stand on a lattice of losses, dense around 0, which sums of many steps keep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from flint import arb, ctx

from symdp.balls.cuts import cut_tails
from symdp.balls.departure import departure_from_one_mode
from symdp.density.breakpoints import Stretch, smooth_stretches
from symdp.density.shapes import centre_of
from symdp.emit.arb import ArbFunction, compile_arb, compile_arb_together, constant_ball
from symdp.emit.enclose import between
from symdp.errors import AccuracyError, InputError
from symdp.model.curve_tables import exponential, profile_pair, upper_end
from symdp.tolerances import ABOVE_ROUNDING, BITS, NO_SHARE, SUMS_ROUNDED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.model.mechanism import Mechanism

    Array = NDArray[np.float64]

_DENSE = 90  # points of the table on either side of 0, one lattice step apart
_GROWTH = 1.06  # of their distances further out
_FINE = 24  # lattice steps in a standard deviation of the loss
_INFINITE = 1e200  # a ratio that counts as one
_LEAST_RATE = 2.0**-900  # whose lattice smaller rates have: losses are doubles
_TAILS = (1e-24, 1e-18, 1e-12, 1e-9, 1e-6)  # masses beyond the cells, the least that is affordable
_SHRINKING = 0.9  # of the distance to a cut, as long as what lies beyond it is little
_CELLS_OF_SHELL = 8  # on which the density is enclosed for that
_WIDER = 12.0  # times the range that holds all but 1e-3 of the mass, is affordable
_MOST_CELLS = 12_000  # about two seconds
_CELLS_AT_LAST = 60_000  # where the sensitivity is short: ten seconds
_MOST_WORK = 3e6  # cells times shifts, about as long
_MOST_EXCESS = Fraction(1, 10**10)  # of δ, of one step
_Row = tuple[float, float, float, float, float]


@dataclass(frozen=True)
class _Cells:
    """A density on cells of one width, or at whole numbers, where no cell has an inside."""

    rows: Array  # least and largest value, least and largest mass, a bound on |f″|: ∞ at a kink
    beyond: float  # the mass that is not on the cells
    width: float
    shifts: int  # how many cells D is long
    has_inside: bool = True

    def mirrored(self) -> _Cells:
        """Return f(−x)."""
        return replace(self, rows=self.rows[:, ::-1])


@lru_cache(maxsize=64)
def _cells_of(mechanism: Mechanism) -> _Cells:
    """Return the density on cells; see `Cells`."""
    density = mechanism.source.density  # type: ignore[union-attr]
    x = mechanism.variable
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
            return replace(half, rows=np.hstack([half.mirrored().rows, half.rows]))
    except InputError as error:
        raise AccuracyError(f"{mechanism.name}: {error}") from None


def _range(stretches: list[Stretch], x: sp.Symbol) -> tuple[float, float, float]:
    """Return finite ends, and the mass beyond them."""
    outer = [(s, compile_arb(s.expressions[0], [x])) for s in (stretches[0], stretches[-1])]
    found: tuple[float, float, float] | None = None
    for tail in (1e-3, *reversed(_TAILS)):
        low = float("nan")
        high = float("nan")
        beyond = 0.0
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
    other = ends[1 - side]
    if other is None:
        other = arb(0)
    ends[1 - side] = other
    places, mass = cut_tails(exponent, values, x, ends, arb(tail))
    return _nearer(values, float(places[side]), float(mass.upper()), float(other.mid()), tail)


def _nearer(
    values: ArbFunction, cut: float, mass: float, other: float, tail: float
) -> tuple[float, float]:
    """Return a cut nearer to the other end, beyond which no more than a mass lies.

    A slope that waves let grow late is told far out, where the density is long gone.
    """
    while abs(cut - other) > 1.0:
        inner = other + _SHRINKING * (cut - other)
        width = abs(cut - inner) / _CELLS_OF_SHELL
        shell = 0.0
        for k in range(_CELLS_OF_SHELL):
            ends = (inner + (cut - inner) * share / _CELLS_OF_SHELL for share in (k, k + 1))
            height = abs(values(between(*map(arb, ends))))
            shell += width * float(height.upper())
        if not mass + shell <= tail:
            break
        cut = inner
        mass += shell * (1.0 + SUMS_ROUNDED)
    return cut, mass


def _on_grid(
    stretches: list[Stretch],
    x: sp.Symbol,
    step: arb,
    span: tuple[float, float],
    beyond: float,
    shifts: int,
) -> _Cells:
    width = float(step)
    (low, high) = span
    first = (
        math.floor(low / width - ABOVE_ROUNDING) if low else 0
    )  # half of an even density begins at 0
    places = range(first, math.ceil(high / width + ABOVE_ROUNDING))
    ends = [(constant_ball(s.lower, BITS).real, constant_ball(s.upper, BITS).real)
            for s in stretches]  # fmt: skip
    taylor = (
        [sp.diff(s.expressions[0], x, k) / sp.factorial(k) for k in range(5)] for s in stretches
    )
    jets = [compile_arb_together(terms, [x]) for terms in taylor]
    values = [compile_arb(s.expressions[0], [x]) for s in stretches]
    rows = list[_Row]()
    at = 0
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
    found = np.asarray(rows).T
    bend = found[4]
    kinks = [float(end) for pair in ends for end in pair if end.is_finite()]
    for kink in kinks:  # at an end of a cell, f″ is bounded on neither side of it
        place = kink / width - places.start
        for cell in {math.floor(place - 1e-6), math.floor(place + 1e-6)}:
            if 0 <= cell < bend.size:
                bend[cell] = math.inf
    return _Cells(found, beyond, width * (1.0 + SUMS_ROUNDED), shifts)


def _smooth_cell(jet: Any, left: arb, right: arb, step: arb) -> _Row | None:
    """Return a cell's bounds by Taylor's formula, None where f has no derivatives on it."""
    on_cell = jet(between(left, right))
    if not all(part.is_finite() for part in on_cell):
        return None
    at_middle = jet((left + right) / 2)
    second_order = step**2 / 12 * at_middle[2]
    remainder = step**4 / 80 * on_cell[4]
    mass = step * (at_middle[0] + second_order + remainder)
    steepest = abs(on_cell[1]).upper()
    around_middle = at_middle[0] + arb(0, 1) * steepest * step / 2
    value = on_cell[0].intersection(around_middle)
    bend = _up(2 * abs(on_cell[2]))
    return (*_double_ends(value), *_double_ends(mass), bend)


def _any_cell(
    values: list[Any], ends: list[tuple[arb, arb]], left: arb, right: arb, step: arb
) -> _Row:
    """Return the bounds of a cell that holds a kink, or an end where f is singular."""
    lowest = math.inf
    highest = 0.0
    if not (left >= ends[0][0] and right <= ends[-1][1]):
        lowest = 0.0  # a part of it is off the support
    for value, (begin, end) in zip(values, ends, strict=True):
        if begin < right and left < end:
            ball = value(between(left.max(begin), right.min(end)))
            if not ball.is_finite():
                raise AccuracyError("the density could not be enclosed where it is singular")
            low, high = _double_ends(ball)
            lowest = min(lowest, low)
            highest = max(highest, high)
    width = _up(step)
    return lowest, highest, math.nextafter(lowest * width, 0.0) * (1 - SUMS_ROUNDED), (
        highest * width * (1 + SUMS_ROUNDED)), math.inf  # fmt: skip


def _double_ends(ball: arb) -> tuple[float, float]:
    return max(math.nextafter(float(ball.lower()), -math.inf), 0.0), _up(ball)


def _up(ball: arb) -> float:
    upper = float(ball.upper())
    if upper > 0.0:
        return math.nextafter(upper, math.inf)
    return 0.0


def _masses(density: sp.Expr, k: sp.Symbol, lower: sp.Expr, shifts: int) -> _Cells:
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
    rows = [_double_ends(value(arb(place))) for place in range(first, last + 1)]
    low, high = np.asarray(rows).T
    nothing = np.zeros(low.size)
    return _Cells(np.stack([low, high, low, high, nothing]), beyond, 1.0, shifts, has_inside=False)


@lru_cache(maxsize=64)
def smaller_shifts(mechanism: Mechanism) -> Mechanism | None:
    """Return the step that, beside the pair at D, makes up for all smaller shifts.

    With κ of `symdp.balls.departure`, H_α(f(·−d) ‖ f) ≤ H + κ, H = H_α(f(·−D) ‖ f), α ≥ 1. A step
    that is seen through with probability η and tells nothing else makes η + (1 − η)H of it, no less
    where η(1 − H) ≥ κ. Under Poisson sampling at rate q, α′ = 1 + (α − 1)/q, H and κ are q times as
    large, and for α < 1, where 1 − H ≥ α(1 − H₁), κ counts α′ ≤ α times.

    None where κ is not known, or so large that cells of all shifts tell more.
    """
    source = mechanism.source
    departure = departure_from_one_mode(
        source.density,  # type: ignore[union-attr]
        mechanism.variable,
        mechanism.support,
        source.sensitivity,  # type: ignore[union-attr]
    )
    if departure is None:
        return None
    q = _rate(mechanism)
    excess = q * upper_end(departure.excess)
    overlap = upper_end(departure.overlap.lower())
    chance = excess / (1 - q * (1 - overlap))
    if chance > _MOST_EXCESS:
        return None
    return profile_pair([(Fraction(1), chance)], f"{mechanism.name}, smaller shifts")


def _rate(mechanism: Mechanism) -> Fraction:
    rate = sp.S.One if mechanism.sampling is None else mechanism.sampling.rate
    if rate.is_Rational:
        return Fraction(int(rate.p), int(rate.q))
    return exponential(sp.log(rate))


@lru_cache(maxsize=64)
def worst_pair(mechanism: Mechanism) -> Mechanism:
    """Return a pair of lists that dominates each shift by at most D, Poisson sampling included."""
    q = _rate(mechanism)
    shifts = _Shifts(_cells_of(replace(mechanism, sampling=None, relation=None)), mechanism)
    spacing, last = shifts.scale(max(float(q), _LEAST_RATE))
    corners = []
    size = sp.Rational(spacing)
    if q < 1:  # the least loss is on the lattice
        least = -sp.log(1 - sp.Rational(q))
        size = least / sp.ceiling(least / size)
    levels = [exponential(size * j) for j in _places(last)]
    # Under Poisson sampling H_α of the mixture is q H at 1 + (α − 1)/q, and 1 − α below 1 − q.
    inner = [(y, 1 + (y - 1) / q) for y in levels if y > 1 - q]
    found = shifts.profile([_down(max(a, 1 / a)) for _, a in inner])
    for (y, a), delta in zip(inner, found, strict=True):
        own = Fraction(delta)
        own = own if a >= 1 else 1 - a + a * own
        corners.append((y, min(Fraction(1), max(1 - y, q * own))))
    return profile_pair(corners, mechanism.name)


def _down(value: Fraction) -> float:
    if value > 1:
        return math.nextafter(float(value), 0.0)
    return 1.0


def _places(last: int) -> list[int]:
    """Return multiples of the lattice's spacing: all near 0, then ever fewer."""
    places = list(range(_DENSE))
    place = float(_DENSE)
    while places[-1] < last:
        places.append(math.ceil(place))
        place *= _GROWTH
    return sorted({sign * place for place in places for sign in (-1, 1)})


class _Shifts:
    """Profiles of all shifts of a density against itself."""

    def __init__(self, cells: _Cells, mechanism: Mechanism) -> None:
        density = mechanism.source.density  # type: ignore[union-attr]
        x = mechanism.variable
        even = centre_of(density, x, mechanism.support) is not None
        self.sides = [cells] if even else [cells, cells.mirrored()]

    def scale(self, rate: float) -> tuple[Fraction, int]:
        """Return a lattice's spacing, a power of two, and how many of them the largest loss has."""
        epsilons = np.linspace(0.0, 60.0, 241)
        alphas = np.exp(epsilons)
        cells = self.sides[0]
        shifts = {max(1, cells.shifts * j // 8) for j in range(1, 9)}
        of_shifts = [_of_shift(side, k, alphas) for side, k in product(self.sides, shifts)]
        rough = np.max(of_shifts, axis=0)
        floor = cells.beyond + NO_SHARE
        above_floor = int(np.sum(rough > 2.0 * floor))
        last = float(epsilons[min(above_floor, epsilons.size - 1)])
        spread = 2.5 * float(rough[0])  # of a normal loss of this total variation
        spread = rate * spread
        last = math.log1p(rate * math.expm1(last))
        finest = min(spread / _FINE, last / _DENSE)
        spacing = Fraction(2) ** math.floor(math.log2(finest))
        return spacing, math.ceil(last / spacing)

    def profile(self, alphas: list[float]) -> list[float]:
        """Return upper bounds on δ* at each α ≥ 1."""
        order = np.argsort(alphas)
        at = np.asarray(alphas)[order]
        best = np.zeros(at.size)
        for cells in self.sides:
            before = np.zeros(at.size)  # of no shift
            for k in range(1, cells.shifts + 1):
                own = _of_shift(cells, k, at)
                here = np.maximum(before, own)
                if cells.has_inside:
                    here = here + _of_between(cells, k, at)
                best = np.maximum(best, here)
                before = own
        found = np.empty(at.size)
        found[order] = np.minimum(best * (1.0 + SUMS_ROUNDED), 1.0)
        return [float(value) for value in found]


def _moved(values: Array, k: int) -> Array:
    """Return the values of f(· − kh) on the cells of f, and on the k cells beyond."""
    return np.concatenate([np.zeros(k), values])


def _of_shift(cells: _Cells, k: int, alphas: Array) -> Array:
    """Return upper bounds on H_α(f(· − kh) ‖ f) at sorted α ≥ 1."""
    none = np.zeros(k)
    low, high, least, most, _ = cells.rows
    a, b = _moved(most, k), np.concatenate([least, none])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lowest = _moved(low, k) / np.concatenate([high, np.full(k, math.inf)])
        highest = _moved(high, k) / np.concatenate([low, none])
    lowest = np.where(lowest < _INFINITE, lowest, 0.0) * (1.0 - SUMS_ROUNDED)
    highest = np.where(highest < _INFINITE, highest, math.inf) * (1.0 + SUMS_ROUNDED)
    used = (a > 0.0) & (highest > alphas[0])
    a = a[used]
    b = b[used]
    lowest = lowest[used]
    highest = highest[used]
    over = np.maximum(a - lowest * b, 0.0)
    finite = np.isfinite(highest) & (highest > lowest)
    gap = np.where(finite, highest - lowest, 1.0)
    far = np.where(finite, over / gap, 0.0)
    near = b - far
    constant = cells.beyond + float(np.sum(over[~finite]))
    near[~finite] = b[~finite]
    total = _sum_above(lowest, near, alphas) + _sum_above(highest[finite], far[finite], alphas)
    return np.asarray(total + constant)


def _sum_above(ratios: Array, masses: Array, alphas: Array) -> Array:
    """Return Σ m (r − α)⁺ at each α."""
    cells = np.searchsorted(alphas, ratios, side="left")
    count = alphas.size + 1
    mass_of_cells = np.bincount(cells, masses, count)
    moment_of_cells = np.bincount(cells, masses * ratios, count)
    mass_above = mass_of_cells[::-1].cumsum()[::-1]
    moment_above = moment_of_cells[::-1].cumsum()[::-1]
    excess = moment_above[1:] - alphas * mass_above[1:]
    return np.asarray(np.maximum(excess, 0.0))


def _of_between(cells: _Cells, k: int, alphas: Array) -> Array:
    """Return what a shift between (k − 1)h and kh may add to the larger of both."""
    h, edge = cells.width, np.full(1, math.inf)
    lowest, highest, _, _, bends = cells.rows
    inner = (np.maximum, np.minimum, np.maximum)
    # Of f(x − d), x in cell i, two neighbours are seen: i − k and i − k + 1.
    high, low, bend = (
        np.concatenate([end, pick(part[:-1], part[1:]), end])
        for pick, part, end in zip(
            inner,
            (highest, lowest, bends),
            (np.zeros(1), np.zeros(1), edge),
            strict=True,
        )
    )
    high[0] = highest[0]
    high[-1] = highest[-1]
    added = _moved(h * np.minimum(h * h * bend / 8.0, high - low), k - 1)
    top = _moved(high, k - 1)
    own = np.zeros(top.size)
    own[: lowest.size] = lowest
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(top > 0.0, top / own * (1.0 + SUMS_ROUNDED), 0.0)
    place = np.searchsorted(alphas, ratio, side="left")
    sums = np.bincount(place, added, alphas.size + 1)[::-1].cumsum()[::-1]
    return np.asarray(sums[1:])
