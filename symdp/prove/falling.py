"""Proved bounds of |M(t + iy)| for all y from a frequency on, of one step restricted to its panels.

On each panel log P and ℓ are polynomials but for a proved error; cells of it have all derivatives
as balls.  With u = log P + tℓ − scale, the tilted density of the loss λ = ℓ(x) is f = e^u/|ℓ′|.

**Layers.**  A layer of height c over a row of cells whose losses span a width w is a part of that
density: of it the transform is at most cw |sin v/v| at v = yw/2, and |sin v/v| ≤ 1 − v²/6 + v⁴/120
for v ≤ 2 and ≤ 1/v beyond.  Hence |M| ≤ M(t) − Σ cw(1 − |sin v/v|), best for many steps.

**Variation.**  With D = (1/ℓ′)d/dx, k integrations by parts over rows of cells give

    |∫ f e^{iyλ} dλ| ≤ Σ_{j<k} Σ_ends |D^j f|/y^{j+1} + y^{−k} ∫ |d/dx D^{k−1} f| dx.

Cells where the loss may turn, or is too dense, are left out: their tilted mass is added.  The more
are left out, the less the others vary; some levels of density are kept, and the best counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from flint import arb, arb_poly, arb_series, ctx
from numpy.typing import NDArray

from symdp.emit.enclose import between
from symdp.prove.kind import Kind, Stretch
from symdp.prove.measure import RADIUS, Panels, down, interpolant, sampled, up
from symdp.prove.work import spend
from symdp.tolerances import ABOVE_ROUNDING, BITS

Array = NDArray[np.float64]

_POINTS, _MORE_POINTS = 40, 4  # of the polynomials on a panel, and for each order above three
_MOST_CELLS = 3000  # of a step
_MOST_HALVINGS = 40  # of a panel, and of a cell
_FINE = 0.15  # e-folds that the density of the loss may change by on a cell
_LEVELS = 24  # of density, above which cells are left out
_CELLS = 4  # of a panel at first
_LOSS_ERROR, _LOG_ERROR = 1e-6, 1e-3  # of derivatives on a panel, the loss relative to its spread


@dataclass(frozen=True)
class Model:
    """log P and ℓ on a panel c + ht, |t| ≤ 1: polynomials of t, and errors of their derivatives."""

    log_p: arb_poly
    loss: arb_poly  # less its middle
    middle: arb
    errors: tuple[Array, Array]  # of the k-th derivative in t, over k!
    half: arb


class Cell(NamedTuple):
    """A piece of a panel, all of it bounds that hold everywhere on it."""

    low: float  # the losses at its left and right ends
    high: float
    least: float  # of the density of the loss
    most: float  # infinite where the loss may turn
    mass: float  # at least the tilted mass
    variations: tuple[float, ...] = ()  # at least ∫|d/dx D^{k−1}f| dx for each order k
    edges: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())  # at least |D^j f| at both ends


class Falling:
    """Bounds of |e^{−scale} M(t + iy)| of one step, restricted to its panels."""

    def __init__(
        self,
        kind: Kind,
        panels: Sequence[Panels],
        tilt: float | arb,
        scale: float,
        total: arb,
        atoms: arb,
        share: float,
        orders: int = 0,
    ) -> None:
        self._total = up(total)
        cover = _Cover(tilt, scale, share, orders)
        for stretch_panels in panels:
            stretch = kind.stretches[stretch_panels.stretch]
            if stretch.has_density:
                cover.add(stretch, stretch_panels.edges)
        self.cells = sum(map(len, cover.runs))
        self._layer_sizes = _layer_sizes(cover.runs)
        self._parts: list[tuple[float, tuple[float, ...], float]] = []
        if orders:
            self._parts = _by_parts(cover.runs, up(atoms) + cover.dropped, orders)

    def at(self, y: float) -> float:
        """Return a bound for all frequencies from y on."""
        heights, widths = self._layer_sizes
        v = 0.5 * (1 - ABOVE_ROUNDING) * y * widths
        near_fall = v * v * (1 / 6 - v * v / 120)
        far_fall = 1 - 1 / np.maximum(v, 2.0)
        fall = np.where(v <= 2.0, near_fall, far_fall)
        lost_by_layer = widths * fall
        best = self._total - (1 - ABOVE_ROUNDING) * float(heights @ lost_by_layer)
        for removed, edges, variation in self._parts:
            edge_terms = [edge / y ** (j + 1) for j, edge in enumerate(edges)]
            bound = variation / y ** len(edges)
            bound += sum(edge_terms)
            best = min(best, (removed + bound) * (1 + ABOVE_ROUNDING))
        return float(max(math.nextafter(best, math.inf), 1e-300))


def layers(least: Sequence[float]) -> Iterator[tuple[int, int, float]]:
    """Yield layers below a row of heights: its ends, and by how much it is above what is below."""
    stack = [(0, len(least), 0.0)]
    while stack:
        i, j, base = stack.pop()
        if i >= j:
            continue
        lowest = min(range(i, j), key=least.__getitem__)
        height = max(least[lowest], base)
        if height > base:
            yield i, j, height - base
        stack.append((i, lowest, height))
        stack.append((lowest + 1, j, height))


def _layer_sizes(runs: Sequence[Sequence[Cell]]) -> tuple[Array, Array]:
    """Return heights and widths: one layer below all cells of a row, then one on each side, …"""
    rectangles = []
    for run in runs:
        for i, j, height in layers([cell.least for cell in run]):
            first = run[i]
            last = run[j - 1]
            width = abs(last.high - first.low)
            rectangles.append((height, width))
    columns = np.asarray(rectangles or [(0.0, 0.0)]).T
    heights, widths = columns * (1 - ABOVE_ROUNDING)
    return heights, np.maximum(widths, 0.0)


def _by_parts(
    runs: Sequence[Sequence[Cell]], dropped: float, orders: int
) -> list[tuple[float, tuple[float, ...], float]]:
    """Return the mass left out, Σ|D^j f| at ends and the variation, for levels of density."""
    cells = list(itertools.chain(*runs))
    most = [cell.most for cell in cells if math.isfinite(cell.most)]
    densest = np.asarray(most)
    if not densest.size:
        return []
    quantiles = np.quantile(densest, np.linspace(0.2, 1.0, _LEVELS))
    candidates = []
    for level in np.unique(quantiles) * (1 + ABOVE_ROUNDING):
        removed_masses = [cell.mass for cell in cells if cell.most > level]
        removed = dropped + sum(removed_masses)
        parts: list[list[Cell]] = []
        for run in runs:
            parts += _rows_below_level(run, float(level))
        counted = list(itertools.chain(*parts))
        for order in range(1, orders + 1):
            variation = sum(cell.variations[order - 1] for cell in counted)
            edges = []
            for j in range(order):
                at_ends = [part[0].edges[0][j] + part[-1].edges[1][j] for part in parts]
                edges.append(sum(at_ends))
            if math.isfinite(variation + sum(edges)):
                candidates.append((removed, tuple(edges), variation))
    return candidates


def _rows_below_level(run: Sequence[Cell], level: float) -> list[list[Cell]]:
    """Return the rows of neighbouring cells that are not denser than a level."""
    groups = itertools.groupby(run, key=lambda cell: cell.most <= level)
    return [list(group) for is_kept, group in groups if is_kept]


class _Cover:
    """Cells that cover a stretch but for a share of the tilted mass, in rows without a gap."""

    def __init__(self, tilt: float | arb, scale: float, share: float, orders: int) -> None:
        self._tilt = arb(tilt)
        self._scale = arb(scale)
        self._least = share / _MOST_CELLS
        self._orders = orders
        self._count = orders + 1  # derivatives of ℓ and of u
        self._points = _POINTS + _MORE_POINTS * max(orders - 3, 0)
        self.runs: list[list[Cell]] = [[]]
        self.dropped = 0.0
        self._cell_count = 0

    def add(self, stretch: Stretch, edges: Sequence[float]) -> None:
        """Add a stretch between its edges."""
        with ctx.workprec(BITS):
            self._end_row()
            places = map(stretch.place, edges)
            waiting = list(itertools.pairwise(places))[::-1]
            while waiting:
                left, right = waiting.pop()
                size = self._mass_between(stretch, left, right)
                if size < self._least or self._cell_count > _MOST_CELLS:
                    self._leave_out(size)
                    continue
                model = panel_model(stretch, left, right, self._points, self._count + 2)
                middle = ((left + right) / 2).mid()
                if model is not None:
                    self._add_cells(model)
                elif left < middle < right:
                    waiting += [(middle, right), (left, middle)]
                else:
                    self._leave_out(size)
            self._end_row()

    def _end_row(self) -> None:
        if self.runs[-1]:
            self.runs.append([])

    def _leave_out(self, size: float) -> None:
        self.dropped += size
        self._end_row()

    def _mass_between(self, stretch: Stretch, left: arb, right: arb) -> float:
        """Bound the tilted mass between two places."""
        log_p, loss = stretch.values(between(left, right))
        density = (log_p + self._tilt * loss - self._scale).exp()
        size = density * abs(right - left)
        return up(size) if size.is_finite() else math.inf

    def _add_cells(self, model: Model) -> None:
        """Add the cells of a panel from left to right, as fine as the density needs."""
        width = 1 / _CELLS
        waiting = []
        for k in reversed(range(_CELLS)):
            left = k / _CELLS * 2 - 1
            waiting.append((left + width, width))
        while waiting:
            centre, half = waiting.pop()
            cell, is_rough = self._cell_and_roughness(model, centre, half)
            if cell.mass < self._least or self._cell_count > _MOST_CELLS:
                self._leave_out(cell.mass)
                continue
            if is_rough and half > 2.0**-_MOST_HALVINGS:
                finer = half / 2
                waiting += [(centre + finer, finer), (centre - finer, finer)]
                continue
            self._cell_count += 1
            if is_rough:  # to the last: there the density may be without a bound
                cell = cell._replace(most=math.inf)
            self.runs[-1].append(cell)
            if not math.isfinite(cell.most):
                self._end_row()

    def _cell_and_roughness(self, model: Model, centre: float, half: float) -> tuple[Cell, bool]:
        """Return a cell, and whether its density is not known well enough."""
        spend(2.0)
        at = arb_poly([arb(centre), arb(half)])
        log_p_errors, loss_errors = model.errors
        losses = model.loss(at)
        logs = model.log_p(at)
        loss, ends = local_derivatives(losses, loss_errors, half, self._count + 1)
        log_p, _ = local_derivatives(logs, log_p_errors, half, self._count)
        log_p_error = arb(0, float(log_p_errors[0]))
        loss_error = arb(0, float(loss_errors[0]))
        slope_error = arb(0, float(half * loss_errors[1]))
        width = half * model.half  # of t's unit in x
        middle_loss = losses[0] + loss_error + model.middle
        middle = logs[0] + log_p_error + self._tilt * middle_loss
        log_density = middle - self._scale + width.log()
        at_middle = (log_density, losses[1] + slope_error)
        exponent = [p + self._tilt * x for p, x in zip(log_p, loss, strict=False)]
        exponent[0] += self._tilt * model.middle - self._scale
        mass = up(2 * width * exponent[0].exp())
        slope = loss[1]
        if not abs(slope) > 0:
            return Cell(0.0, 0.0, 0.0, math.inf, mass), True
        # log f moves by its slope, which is far less than u and log|ℓ′| do where they move alike.
        height, middle_slope = at_middle
        middle_density = height.exp() / abs(middle_slope)
        slope_of_log = exponent[1] - 2 * loss[2] / slope
        moved = slope_of_log * arb(0, 1)
        density = middle_density * moved.exp()
        least = down(density)
        most = up(density)
        first = ends[0] + model.middle
        last = ends[1] + model.middle
        # Rounded inwards, so that no layer is too wide.
        if slope > 0:
            cell = Cell(up(first), down(last), least, most, mass)
        else:
            cell = Cell(down(first), up(last), least, most, mass)
        is_rough = not most < least * math.exp(_FINE)
        if is_rough or not self._orders:
            return cell, is_rough
        return self._with_derivatives(cell, exponent, loss, at_middle), False

    def _with_derivatives(
        self, cell: Cell, exponent: list[arb], loss: list[arb], at_middle: tuple[arb, arb]
    ) -> Cell:
        """Add |D^j f| = e^{u − (j+1)b} |ρ_j|, b = log|ℓ′|, ρ_{j+1} = ρ_j′ + (u′ − (j+1)b′) ρ_j."""
        length = self._count
        height, slope = at_middle
        sign = 1 if loss[1] > 0 else -1
        slopes = [sign * (k + 1) * c for k, c in enumerate(loss[1:])]
        growth = arb_series(exponent, prec=length).derivative()
        rise = arb_series(slopes, prec=length).log().derivative()
        factor = arb_series([1], prec=length)
        variations = []
        edges = []
        for j in range(1, self._orders + 1):
            rate = growth - j * rise
            change = rate[0] * arb(0, 1)
            log_size = height - j * abs(slope).log() + change
            size = log_size.exp()
            edges.append(up(size * abs(factor[0])))
            factor = factor.derivative() + rate * factor
            variations.append(up(2 * size * abs(factor[0])))
        at_both_ends = (tuple(edges), tuple(edges))
        return cell._replace(variations=tuple(variations), edges=at_both_ends)


def local_derivatives(
    shape: arb_poly, errors: Array, half: float, count: int
) -> tuple[list[arb], tuple[arb, arb]]:
    """Return all k-th derivatives over k! on |t| ≤ 1 as balls, and the values at both ends."""
    coefficients = list(shape.coeffs())
    coefficients += [arb(0)] * (count + 1 - len(coefficients))
    sizes = np.asarray([up(abs(c)) for c in coefficients])
    binomials = _binomials(len(sizes))[: count + 1]
    powers = half ** np.arange(count + 1)
    scaled_errors = errors[: count + 1] * powers
    radii = (binomials @ sizes) * (1 + ABOVE_ROUNDING) + scaled_errors
    centred = zip(coefficients[: count + 1], radii.tolist(), strict=True)
    balls = [c + arb(0, r) for c, r in centred]
    even = sum(coefficients[::2], arb(0))
    odd = sum(coefficients[1::2], arb(0))
    slack = arb(0, float(errors[0]) * (1 + ABOVE_ROUNDING))
    at_ends = (even - odd + slack, even + odd + slack)
    return balls, at_ends


@lru_cache(maxsize=4)
def _binomials(size: int) -> Array:
    """Return C(j, k) in row k for j > k, 0 elsewhere."""
    table: Array = np.zeros((size, size))
    for k in range(size):
        binomials = [float(math.comb(j, k)) for j in range(k + 1, size)]
        table[k, k + 1 :] = binomials
    return table


def panel_model(stretch: Stretch, left: arb, right: arb, points: int, count: int) -> Model | None:
    """Return polynomials on a panel with `count` derivatives, None where it must be shorter."""
    samples = sampled(stretch, left, right, points)
    if samples is None:
        return None
    log_p_at_centre, loss_at_centre = stretch.values(samples.centre.mid())
    log_p_middle = log_p_at_centre.mid()
    middle = loss_at_centre.mid()
    log_p_distances = [up(abs(log_p - log_p_middle)) for log_p, _ in samples.around]
    loss_distances = [up(abs(loss - middle)) for _, loss in samples.around]
    log_p_bound = max(log_p_distances)
    loss_bound = max(loss_distances)
    unit_errors = _interpolation_errors(points, count)
    log_p_errors = log_p_bound * unit_errors
    loss_errors = loss_bound * unit_errors
    losses = [loss - middle for _, loss in samples.values]
    spread = max(up(abs(loss)) for loss in losses)
    if not (loss_errors <= _LOSS_ERROR * spread).all():
        return None
    if not (log_p_errors <= _LOG_ERROR).all():
        return None
    return Model(
        log_p=interpolant([log_p for log_p, _ in samples.values]),
        loss=interpolant(losses),
        middle=middle,
        errors=(log_p_errors, loss_errors),
        half=samples.half,
    )


@lru_cache(maxsize=8)
def _interpolation_errors(points: int, count: int) -> Array:
    """Bound the k-th derivative over k! of what an interpolant lacks, for a bound of 1.

    With |a_j| ≤ 2ρ^{−j} what lacks is Σ_{j≥N} a_j(T_j − T_i), i < N, and derivatives of T_j are
    largest at 1, where they rise with j.
    """
    bounds = []
    for k in range(count):
        total = 0.0
        for j in range(points, points + 200):
            factors = [(j * j - i * i) / (2 * i + 1) for i in range(k)]
            at_one = math.prod(factors)
            top = at_one / math.factorial(k)
            total += 4.0 * top * float(RADIUS) ** -j
        bounds.append(total * (1 + 1e-6))  # from there on terms fall by more than a half
    return np.asarray(bounds)
