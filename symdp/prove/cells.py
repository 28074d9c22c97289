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
        distance = self.loss - offset
        level = math.floor(float((distance / spacing).mid()))
        below = level * spacing - distance
        above = distance - (level + 1) * spacing
        overshoot = below.max(above).max(arb(0))
        q = self.mass * (-self.loss).exp()
        yield Cells([level], [self.mass], [q], overshoot)


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
        integral = self.p(arb(1)) - self.p(arb(-1))
        return arb(integral + arb(0, 2 * self.p_error))

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
        starts = [run.start for run in self.runs]
        ends = np.asarray([*starts, 1.0])
        return np.polynomial.chebyshev.chebval(ends, self.shape) + float(self.middle)

    @cached_property
    def shape(self) -> Array:
        """The Chebyshev coefficients of ℓ less its middle, in doubles."""
        powers = [float(c.mid()) for c in self.loss.coeffs()] or [0.0]
        return np.asarray(np.polynomial.chebyshev.poly2cheb(powers))

    def cells(self, offset: arb, spacing: arb) -> Iterator[Cells]:
        """Yield the cells of all runs on the mesh g_k = offset + k·spacing."""
        distance = self.middle - offset
        whole = (distance / spacing).mid().floor().unique_fmpz()
        if whole is None:
            raise AccuracyError("a loss on the mesh is not enclosed")
        heights = self.shape / float(spacing)
        heights[0] += float((distance / spacing - whole).mid())
        distance += arb(0, self.loss_error)
        for run in self.runs:
            places, levels = _cell_ends_and_levels(heights, run)
            levels = [int(whole) + level for level in levels]
            ends = [arb(u) for u in places]
            losses = self.loss.evaluate(ends, "iter")
            overshoot = arb(0)
            # Inside a run a place has a level of its own; at its ends ℓ may lie between two.
            next_levels = zip(levels, levels[1:], losses[1:], strict=False)
            for left_level, right_level, loss in next_levels:
                own_level = max(left_level, right_level)
                overshoot = overshoot.max(abs(loss + distance - own_level * spacing))
            first_end = (levels[0], losses[0])
            last_end = (levels[-1], losses[-1])
            for level, loss in (first_end, last_end):
                above = loss + distance - level * spacing
                overshoot = overshoot.max(run.stray - above)
                overshoot = overshoot.max(above - spacing + run.stray)
            p = _cell_masses(self.p, self.p_error, ends, places)
            q = _cell_masses(self.q, self.q_error, ends, places)
            yield Cells(levels, p, q, overshoot)


def _cell_masses(shape: arb_poly, error: arb, ends: list[arb], places: list[float]) -> list[arb]:
    """Return what an integral grows by on each cell, in balls."""
    integrals = shape.evaluate(ends, "iter")
    masses = []
    for k in range(len(places) - 1):
        width = places[k + 1] - places[k]
        growth = integrals[k + 1] - integrals[k]
        masses.append(growth + arb(0, error * width))
    return masses


class Outcomes(NamedTuple):
    """The outcomes of one step, the panels that they lie on, and panels beyond them.

    Beyond, where the loss grows to infinity, Q has hardly any mass, at most `q_beyond`.
    """

    items: tuple[Atom | Panel, ...]
    panels: tuple[Panels, ...]
    beyond: tuple[Panels, ...]
    q_beyond: arb


@lru_cache(maxsize=16)
def outcomes_of(
    kind: Kind,
    panels: Sequence[Panels],
    bits: int,
    stray_bits: int,
    sharp_bits: int = _SHARP_BITS,
    q_bits: int | None = None,
) -> Outcomes:
    """Return the outcomes of one step; panels of a mass of about 2^(−bits) are left out.

    The loss is known to 2^(−stray_bits).  Panels of which Q has about 2^(−q_bits) lie beyond.
    """
    single = list[Panels]()
    dense_panels = list[Panel]()
    where = list[Panels]()
    beyond = list[Panels]()
    q_beyond = arb(0)
    for stretch_panels in panels:
        number = stretch_panels.stretch
        edges = stretch_panels.edges
        stretch = kind.stretches[number]
        if stretch.is_infinite:
            where.append(stretch_panels)
        elif stretch.is_flat or stretch.is_integer:
            single.append(stretch_panels)
        else:
            counted = _panels_that_count(stretch, edges, bits, stray_bits, sharp_bits, q_bits)
            for left, right, panel in counted:
                part = Panels(number, (left, right))
                if isinstance(panel, Panel):
                    dense_panels.append(panel)
                    where.append(part)
                else:
                    beyond.append(part)
                    q_beyond += panel
    plain_mass = Asked(arb(0), 0.0, -bits * math.log(2))
    nodes = measure(kind, single, [plain_mass])
    error = arb(0, nodes.errors[0])
    pairs = zip(nodes.weights, nodes.losses, strict=True)
    atoms = [Atom(mass + error, loss) for mass, loss in pairs]
    return Outcomes((*atoms, *dense_panels), (*single, *where), tuple(beyond), q_beyond)


def _panels_that_count(
    stretch: Stretch,
    edges: Sequence[float],
    bits: int,
    stray_bits: int,
    sharp_bits: int,
    q_bits: int | None,
) -> Iterator[tuple[float, float, Panel | arb]]:
    """Yield panels of a stretch but for those that are too short or irregular to count.

    Where Q has hardly any mass of a panel, a bound of that mass stands in place of the panel.
    """
    negligible = arb(2) ** -bits / _MOST_PANELS
    negligible_q = arb(0)
    if q_bits is not None:
        negligible_q = arb(2) ** -q_bits / _MOST_PANELS
    stray = arb(2) ** -stray_bits
    waiting = list(itertools.pairwise(edges))[::-1]
    for _ in range(_MOST_PANELS):
        if not waiting:
            return
        left, right = waiting.pop()
        start = stretch.place(left)
        end = stretch.place(right)
        middle = (left + right) / 2
        with ctx.workprec(COARSE_BITS):
            log_p, loss = stretch.values(between(start, end))
            of_q = (end - start) * (log_p - loss).exp()
            # What is left out is no error, and so its middle may stand for it.
            if not log_p.is_finite():
                log_p, _ = stretch.values(arb(middle))
            is_negligible = (end - start) * log_p.exp() < negligible
        if is_negligible:
            continue
        if of_q < negligible_q:
            yield left, right, arb(of_q.upper())
            continue
        panel = _panel_between(stretch, start, end, stray, sharp_bits)
        if panel is not None:
            yield left, right, panel
        elif left < middle < right:
            waiting += [(middle, right), (left, middle)]
        else:
            break
    raise AccuracyError(
        "a part of the loss needs too many panels; ask for fewer digits, or compose more steps"
    )


def _panel_between(
    stretch: Stretch, left: arb, right: arb, stray: arb, sharp_bits: int
) -> Panel | None:
    """Return the panel between two places, None where one must be shorter."""
    needed_bits = 1.1 * sharp_bits + 21
    points = math.ceil(needed_bits / math.log2(RADIUS))
    samples = sampled(stretch, left, right, points)
    if samples is None:
        return None
    _, middle_loss = samples.values[points // 2]
    middle = middle_loss.mid()
    values = [_densities_and_loss(*v, middle) for v in samples.values]
    values_around = [_densities_and_loss(*v, middle) for v in samples.around]
    p, q, loss = zip(*values, strict=True)
    errors = []
    for sizes in zip(*values_around, strict=True):
        upper_bounds = [abs(size).upper() for size in sizes]
        bound = reduce(arb.max, upper_bounds)
        errors.append(interpolation_error(bound, points))
    p_error, q_error, loss_error = errors
    sharp = arb(2) ** -sharp_bits
    if not p_error <= sharp * reduce(arb.min, p):
        return None
    if not q_error <= sharp * reduce(arb.min, q):
        return None
    if not loss_error <= stray:
        return None
    half = samples.half
    loss_shape = _shortened(interpolant(loss), loss_error)
    return Panel(
        p=half * _shortened(interpolant(p), p_error).integral(),
        q=half * _shortened(interpolant(q), q_error).integral(),
        loss=loss_shape,
        p_error=2 * half * p_error,
        q_error=2 * half * q_error,
        loss_error=2 * loss_error,
        middle=middle,
        runs=_runs(loss_shape, stray),
    )


def _shortened(shape: arb_poly, error: arb) -> arb_poly:
    """Return a polynomial less its last terms, of no more than an error together."""
    coefficients = shape.coeffs()
    total = arb(0)
    while coefficients:
        total = total + abs(coefficients[-1])
        if not total < error:
            break
        coefficients.pop()
    return arb_poly(coefficients)


def _densities_and_loss(log_p: Any, loss: Any, middle: arb) -> tuple[Any, Any, Any]:
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
            around_centre = slope(arb_poly([centre, half]))
            slope_at_centre, *others = around_centre.coeffs() or [arb(0)]
            slope_variation = sum((abs(c) for c in others), arb(0))
            largest_slope = abs(slope_at_centre) + slope_variation
            far = arb((2 * half * largest_slope).upper())
            sign = 0
            if abs(slope_at_centre) > slope_variation:
                sign = 1 if slope_at_centre > 0 else -1
            if runs and runs[-1].sign == sign != 0:
                runs[-1] = runs[-1]._replace(end=right)
            elif sign:
                runs.append(Run(left, right, sign, arb(0)))
            elif far < stray:
                runs.append(Run(left, right, 0, far))
            else:
                waiting += [(centre, right), (left, centre)]
    return tuple(runs)


def _cell_ends_and_levels(heights: Array, run: Run) -> tuple[list[float], list[int]]:
    """Return the ends of cells in u, rising, and between two of them the level below the loss.

    All are found in doubles, a root by Newton's method between places on both sides of it.
    """
    height = np.polynomial.chebyshev.chebval
    sides = np.asarray([run.start, run.end])
    first, last = height(sides, heights)
    low = min(first, last)
    high = max(first, last)
    bottom = math.floor(low)
    stop = max(math.ceil(high), bottom + 1)
    wanted = np.arange(bottom + 1, stop, dtype=float)
    if not run.sign or not wanted.size:
        return sides.tolist(), [math.floor((low + high) / 2)]
    targets = wanted
    if run.sign < 0:
        targets = -wanted[::-1]
    rising = run.sign * heights
    slope = np.polynomial.chebyshev.chebder(rising)
    # Close at both ends, where ℓ may turn.
    angles = np.linspace(0.0, math.pi, max(_FEWEST_GRID, len(wanted)))
    length = run.end - run.start
    grid = run.start + length * (1 - np.cos(angles)) / 2
    grid_heights = np.maximum.accumulate(height(grid, rising))
    index = np.searchsorted(grid_heights, targets)
    after = np.clip(index, 1, len(grid) - 1)
    left = grid[after - 1]
    right = grid[after]
    straight = np.interp(targets, grid_heights, grid)
    u = np.clip(straight, left, right)
    largest_height = np.abs(heights).sum()
    small = _ROUNDINGS * np.finfo(float).eps * largest_height
    for _ in range(_MOST_NEWTON):
        miss = height(u, rising) - targets
        if np.all(np.abs(miss) <= small):
            break
        left = np.where(miss < 0, u, left)
        right = np.where(miss > 0, u, right)
        with np.errstate(all="ignore"):
            u = u - miss / height(u, slope)
        is_inside = (u >= left) & (u <= right)
        u = np.where(is_inside, u, (left + right) / 2)
    places = np.concatenate((sides[:1], u, sides[1:]))
    ends = np.maximum.accumulate(places)
    levels = list(range(bottom, bottom + len(wanted) + 1))
    if run.sign < 0:
        levels.reverse()
    return ends.tolist(), levels
