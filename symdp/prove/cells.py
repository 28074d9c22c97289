"""One step's loss in cells no wider than a mesh, with the proved masses of P and Q in each.

On a panel p, q and ℓ are polynomials but for a proved error (see `measure`).  The
antiderivatives of those of p and q give the mass of any part of it for the price of a polynomial,
within that error times its width.

Cells end where the polynomial of ℓ passes the levels g_k of a mesh, and where it is not known which
sign its slope has: elsewhere it lies between its ends, and there it strays from them by less than
its slope times so narrow a cell.  Levels are passed at places found in doubles; how far ℓ is from
g_k there is then enclosed.  The largest such distance is the overshoot of the step: losses in a
cell lie between g_k − overshoot and g_{k+1} + overshoot.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_poly, ctx
from numpy.typing import NDArray

from symdp.emit.enclose import between
from symdp.errors import AccuracyError
from symdp.prove.kind import Kind, Stretch
from symdp.prove.measure import (
    RADIUS,
    Asked,
    Panels,
    interpolant,
    interpolation_error,
    measure,
    sampled,
)
from symdp.prove.work import COARSE_BITS

Array = NDArray[np.float64]

_SHARP_BITS = 50  # to which p and q are known, relative to their least value on a panel
_MOST_PANELS = 4_000  # of a stretch: about a second
_FEWEST_GRID = 64  # places of a run between which a root in doubles begins
_MOST_NEWTON = 16  # steps of a root in doubles, halvings included
_ROUNDINGS = 64  # by which a height in doubles is off


class Cells(NamedTuple):
    """Cells in a row: P and Q where ℓ is between g_k and g_{k+1}, up to an overshoot."""

    levels: list[int]
    p: list[arb]
    q: list[arb]
    overshoot: arb


@dataclass(frozen=True, eq=False)
class Atom:
    """A value of the loss and its mass."""

    mass: arb
    loss: arb

    @property
    def top(self) -> arb:
        """Bound the loss."""
        return arb(self.loss.upper())

    @property
    def places(self) -> Array:
        """About the loss."""
        return np.asarray([float(self.loss.mid())])

    def cells(self, offset: arb, spacing: arb) -> Iterator[Cells]:
        """Yield the cell on the mesh g_k = offset + k·spacing."""
        away = self.loss - offset
        level = math.floor(float((away / spacing).mid()))
        overshoot = (level * spacing - away).max(away - (level + 1) * spacing).max(arb(0))
        yield Cells([level], [self.mass], [self.mass * (-self.loss).exp()], overshoot)


class Run(NamedTuple):
    """A part of a panel, in u; ℓ rises, falls, or has a slope of unknown sign and strays."""

    start: float
    end: float
    sign: int
    stray: arb


@dataclass(frozen=True, eq=False)
class Panel:
    """Polynomials in u of ℓ less a middle and of antiderivatives of p and q, and their errors.

    The errors of masses are for each unit of u.
    """

    p: arb_poly
    q: arb_poly
    loss: arb_poly
    p_error: arb
    q_error: arb
    loss_error: arb
    middle: arb
    runs: tuple[Run, ...]

    @cached_property
    def mass(self) -> arb:
        """Enclose P."""
        return arb(self.p(arb(1)) - self.p(arb(-1)) + arb(0, 2 * self.p_error))

    @cached_property
    def top(self) -> arb:
        """Bound the loss."""
        top = arb(-math.inf)
        for run in self.runs:
            for end in run[:2]:
                top = top.max(self.loss(arb(end)) + run.stray)
        return arb((top + self.middle + self.loss_error).upper())

    @cached_property
    def places(self) -> Array:
        """About the losses at the ends of runs."""
        ends = np.asarray([run.start for run in self.runs] + [1.0])
        return np.polynomial.chebyshev.chebval(ends, self.shape) + float(self.middle)

    @cached_property
    def shape(self) -> Array:
        """The Chebyshev coefficients of ℓ less its middle, in doubles."""
        powers = [float(c.mid()) for c in self.loss.coeffs()] or [0.0]
        return np.asarray(np.polynomial.chebyshev.poly2cheb(powers))

    def cells(self, offset: arb, spacing: arb) -> Iterator[Cells]:
        """Yield the cells of all runs on the mesh g_k = offset + k·spacing."""
        away = self.middle - offset
        whole = (away / spacing).mid().floor().unique_fmpz()
        if whole is None:
            raise AccuracyError("a loss on the mesh is not enclosed")
        heights = self.shape / float(spacing)
        heights[0] += float((away / spacing - whole).mid())
        away += arb(0, self.loss_error)
        for run in self.runs:
            places, levels = _roots(heights, run)
            levels = [int(whole) + level for level in levels]
            ends = [arb(u) for u in places]
            # Inside a run a place has a level of its own; at its ends ℓ may lie between two.
            losses, overshoot = self.loss.evaluate(ends, "iter"), arb(0)
            for left_level, right_level, loss in zip(levels, levels[1:], losses[1:], strict=False):
                overshoot = overshoot.max(abs(loss + away - max(left_level, right_level) * spacing))
            for level, loss in ((levels[0], losses[0]), (levels[-1], losses[-1])):
                above = loss + away - level * spacing
                overshoot = overshoot.max(run.stray - above).max(above - spacing + run.stray)
            p = _cell_masses(self.p, self.p_error, ends, places)
            q = _cell_masses(self.q, self.q_error, ends, places)
            yield Cells(levels, p, q, overshoot)


def _cell_masses(shape: arb_poly, error: arb, ends: list[arb], places: list[float]) -> list[arb]:
    """Return what an integral grows by on each cell, in balls."""
    growths = itertools.pairwise(shape.evaluate(ends, "iter"))
    widths = itertools.pairwise(places)
    return [
        after - before + arb(0, error * (right - left))
        for (before, after), (left, right) in zip(growths, widths, strict=True)
    ]


@lru_cache(maxsize=16)
def outcomes_of(
    kind: Kind,
    panels: Sequence[Panels],
    bits: int,
    stray_bits: int,
    sharp_bits: int = _SHARP_BITS,
) -> tuple[tuple[Atom | Panel, ...], tuple[Panels, ...]]:
    """Return the outcomes of one step, and where they lie: panels of about 2^(−bits) are left out.

    The loss is known to 2^(−stray_bits).
    """
    single = list[Panels]()
    dense_panels = list[Panel]()
    where = list[Panels]()
    for stretch_panels in panels:
        stretch = kind.stretches[stretch_panels.stretch]
        if stretch.is_infinite:
            where.append(stretch_panels)
        elif stretch.is_flat or stretch.is_integer:
            single.append(stretch_panels)
        else:
            for *edges, panel in _panels(
                stretch, stretch_panels.edges, bits, stray_bits, sharp_bits
            ):
                dense_panels.append(panel)
                where.append(Panels(stretch_panels.stretch, tuple(edges)))
    nodes = measure(kind, single, [Asked(arb(0), 0.0, -bits * math.log(2))])
    atoms = [
        Atom(mass + arb(0, nodes.errors[0]), loss)
        for mass, loss in zip(nodes.weights, nodes.losses, strict=True)
    ]
    return (*atoms, *dense_panels), (*single, *where)


def _panels(
    stretch: Stretch, edges: Sequence[float], bits: int, stray_bits: int, sharp_bits: int
) -> Iterator[tuple[float, float, Panel]]:
    """Yield panels of a stretch but for those that are too short or irregular to count."""
    negligible = arb(2) ** -bits / _MOST_PANELS
    waiting = list(itertools.pairwise(edges))[::-1]
    for _ in range(_MOST_PANELS):
        if not waiting:
            return
        left, right = waiting.pop()
        ends = stretch.place(left), stretch.place(right)
        middle = (left + right) / 2
        with ctx.workprec(COARSE_BITS):
            # What is left out is no error, and so its middle may stand for it.
            for point in (between(*ends), arb(middle)):
                log_p, _ = stretch.values(point)
                if log_p.is_finite():
                    break
            is_negligible = (ends[1] - ends[0]) * log_p.exp() < negligible
        if is_negligible:
            continue
        panel = _panel(stretch, *ends, arb(2) ** -stray_bits, sharp_bits)
        if panel is not None:
            yield left, right, panel
        elif left < middle < right:
            waiting += [(middle, right), (left, middle)]
        else:
            break
    raise AccuracyError("a part of the loss needs too many panels")


def _panel(stretch: Stretch, left: arb, right: arb, stray: arb, sharp_bits: int) -> Panel | None:
    """Return the panel between two places, None where one must be shorter."""
    points = math.ceil((1.1 * sharp_bits + 21) / math.log2(RADIUS))
    samples = sampled(stretch, left, right, points)
    if samples is None:
        return None
    middle = samples.values[points // 2][1].mid()
    columns = list(zip(*(_terms(*pair, middle) for pair in samples.values), strict=True))
    errors = []
    for sizes in zip(*(_terms(*pair, middle) for pair in samples.around), strict=True):
        bound = reduce(arb.max, (abs(size).upper() for size in sizes))
        errors.append(interpolation_error(bound, points))
    sharp = arb(2) ** -sharp_bits
    least = [*(sharp * reduce(arb.min, column) for column in columns[:2]), stray]
    if not all(error <= most for error, most in zip(errors, least, strict=True)):
        return None
    p, q, loss = (_shortened(interpolant(c), e) for c, e in zip(columns, errors, strict=True))
    half = samples.half
    runs = _runs(loss, stray)
    return Panel(
        half * p.integral(),
        half * q.integral(),
        loss,
        2 * half * errors[0],
        2 * half * errors[1],
        2 * errors[2],
        middle,
        runs,
    )


def _shortened(shape: arb_poly, error: arb) -> arb_poly:
    """Return a polynomial less its last terms, of no more than an error together."""
    coefficients = shape.coeffs()
    total = arb(0)
    while coefficients and (total := total + abs(coefficients[-1])) < error:
        coefficients.pop()
    return arb_poly(coefficients)


def _terms(log_p: Any, loss: Any, middle: arb) -> tuple[Any, Any, Any]:
    """Return p, q and ℓ less its middle."""
    return log_p.exp(), (log_p - loss).exp(), loss - middle


def _runs(loss: arb_poly, stray: arb) -> tuple[Run, ...]:
    """Return parts of a panel on which a polynomial is monotone, and narrow ones between them."""
    waiting = [(-1.0, 1.0)]
    runs = list[Run]()
    slope = loss.derivative()
    with ctx.workprec(COARSE_BITS):
        while waiting:
            left, right = waiting.pop()
            centre = (left + right) / 2
            half = (right - left) / 2
            slope_at_centre, *others = slope(arb_poly([centre, half])).coeffs() or [arb(0)]
            slope_variation = sum((abs(c) for c in others), arb(0))
            far = arb((2 * half * (abs(slope_at_centre) + slope_variation)).upper())
            sign = 0
            if abs(slope_at_centre) > slope_variation:
                sign = 1 if slope_at_centre > 0 else -1
            if runs and runs[-1].sign == sign != 0:
                runs[-1] = runs[-1]._replace(end=right)
            elif sign or far < stray:
                runs.append(Run(left, right, sign, arb(0) if sign else far))
            else:
                waiting += [(centre, right), (left, centre)]
    return tuple(runs)


def _roots(heights: Array, run: Run) -> tuple[list[float], list[int]]:
    """Return the ends of cells in u, rising, and between two of them the level below the loss.

    All are found in doubles, a root by Newton's method between places on both sides of it.
    """
    height = np.polynomial.chebyshev.chebval
    sides = np.asarray([run.start, run.end])
    first, last = height(sides, heights)
    low = min(first, last)
    high = max(first, last)
    bottom = math.floor(low)
    wanted = np.arange(bottom + 1, max(math.ceil(high), bottom + 1), dtype=float)
    if not run.sign or not wanted.size:
        return sides.tolist(), [math.floor((low + high) / 2)]
    targets = wanted if run.sign > 0 else -wanted[::-1]
    rising = run.sign * heights
    slope = np.polynomial.chebyshev.chebder(rising)
    # Close at both ends, where ℓ may turn.
    angles = np.linspace(0.0, math.pi, max(_FEWEST_GRID, len(wanted)))
    grid = run.start + (run.end - run.start) * (1 - np.cos(angles)) / 2
    grid_heights = np.maximum.accumulate(height(grid, rising))
    after = np.clip(np.searchsorted(grid_heights, targets), 1, len(grid) - 1)
    left, right = grid[after - 1], grid[after]
    u = np.clip(np.interp(targets, grid_heights, grid), left, right)
    small = _ROUNDINGS * np.finfo(float).eps * np.abs(heights).sum()
    for _ in range(_MOST_NEWTON):
        miss = height(u, rising) - targets
        if np.all(np.abs(miss) <= small):
            break
        left = np.where(miss < 0, u, left)
        right = np.where(miss > 0, u, right)
        with np.errstate(all="ignore"):
            u = u - miss / height(u, slope)
        u = np.where((u >= left) & (u <= right), u, (left + right) / 2)
    ends = np.maximum.accumulate(np.concatenate((sides[:1], u, sides[1:])))
    levels = list(range(bottom, bottom + len(wanted) + 1))
    return ends.tolist(), levels if run.sign > 0 else levels[::-1]
