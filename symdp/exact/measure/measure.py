"""The law of a privacy loss on the line: atoms and a density, and the sum of two such laws.

With atoms aᵢ of mass pᵢ and densities f, g the density of a sum of two independent losses is

    Σ pᵢ g(s − aᵢ) + Σ qⱼ f(s − bⱼ) + ∫ f(x) g(s − x) dx:

positive terms only, so that no digit cancels. It is not smooth at sums of places where f or g is
not, which are ends of panels. All weights are kept as logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.exact.accuracy import EQUAL, FEW_NODES, MOST_NODES, NEGLIGIBLE, SETTLED
from symdp.exact.measure.branch import Branch
from symdp.exact.measure.density import LogDensity, convolve, interpolate
from symdp.law.loss import LossLaw
from symdp.law.step import Array

_MOST_BREAKS = 120  # places where a panel must end: sums with more are smooth enough without
_TRIM = 0.05  # of the way from a lower end to the mean
_CLOSE = 2.0**-20  # of the width of the sum: closer to an end a density is not looked at


@dataclass(frozen=True)
class Window:
    """Where the law of a sum is kept, and a first guess of where it changes quickly.

    Above the centre, what P does not reach with a log probability of `floor` counts for nothing.
    """

    lower: float
    upper: float
    centre: float
    width: float
    floor: float

    def negligible(self, lower: Array, upper: Array, log_mass: Array) -> NDArray[np.bool_]:
        """Return which panels hold too little mass to be fitted: all together, they are many."""
        above = (lower >= self.centre) & (log_mass < self.floor - 0.5 * NEGLIGIBLE)
        most = np.maximum(log_mass, log_mass - lower)  # the law under Q counts as well
        return np.asarray(above | ((upper <= self.centre) & (most < -NEGLIGIBLE)))

    def edges(self, more: Array) -> Array:
        """Return first panels: geometric around the centre, with every given place an edge."""
        scale = self.width * np.exp2(np.arange(-1.0, 12.0))
        parts = [self.centre - scale, np.asarray([self.centre]), self.centre + scale, more]
        inside = np.unique(np.concatenate(parts))
        slack = SETTLED * (self.upper - self.lower)
        inside = inside[(inside > self.lower + slack) & (inside < self.upper - slack)]
        return np.concatenate([[self.lower], inside, [self.upper]])


@dataclass(frozen=True)
class Measure:
    """Atoms with log weights, and a log density that ends or is not smooth at `breaks`."""

    atoms: Array
    log_weight: Array
    density: LogDensity | None
    breaks: Array

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        values = [*self.atoms.tolist(), *(self.density.ends if self.density else ())]
        return min(values), max(values)


def _distinct(values: Array) -> Array:
    """Return sorted values without those that differ by rounding only."""
    values = np.sort(values)
    scale = float(np.abs(values).max(initial=0.0))
    return values[np.diff(values, prepend=-np.inf) > SETTLED * scale]


def loss_measure(law: LossLaw, window: Window) -> Measure:
    """Return the law of one step's loss.

    Raises
    ------
    AccuracyError
        If the loss is not monotone on some piece, lives on integers, or has an infinite density.
    """
    step = law.step
    finite = np.isfinite(step.point_loss)
    atoms, weights = [step.point_loss[finite]], [step.point_log_p[finite]]
    branches = []
    for outline in law.outlines:
        piece = outline.piece
        if piece.integer:
            raise AccuracyError("a loss on integers has no density")
        if not piece.flat:
            branches.append(Branch(outline, _CLOSE * window.width))
            continue
        middle = outline.x[outline.x.size // 2 : outline.x.size // 2 + 1]
        value = float(np.asarray(piece.loss(middle))[0])
        if math.isfinite(value) and value not in np.concatenate(atoms):
            nodes = law.base
            here = nodes.atomic & (np.abs(nodes.loss - value) <= EQUAL * (1.0 + abs(value)))
            atoms.append(nodes.loss[here])
            weights.append(nodes.log_weight[here])
    places, logs = np.concatenate(atoms), np.concatenate(weights)
    # An end far outside would only widen the tolerance with which places count as the same.
    slack = window.upper - window.lower
    ends = [e for b in branches for e in b.range if -slack < e - window.lower < 2.0 * slack]
    breaks = _distinct(np.concatenate([places, ends]))
    density = None
    if branches:
        essential = [b.essential(window.floor) for b in branches]
        low = max(window.lower, min(b.range[0] for b in branches), min(essential)[0])
        high = min(window.upper, max(b.range[1] for b in branches), max(e for _, e in essential))
        if high > low:
            inside = replace(window, lower=low, upper=high)

            def log_density(s: Array) -> Array:
                return np.asarray(np.logaddexp.reduce([b.log_density(s) for b in branches]))

            density = interpolate(log_density, inside.edges(breaks), inside.negligible)
    return Measure(places, logs, density, breaks)


def add(first: Measure, second: Measure, window: Window) -> Measure:
    """Return the law of the sum of two independent losses, kept within a window.

    Raises
    ------
    AccuracyError
        If there are too many atoms, or densities too long or too rough to convolve.
    """
    atoms, logs = _add_atoms(first, second)
    inside = (atoms >= window.lower) & (atoms <= window.upper)
    breaks = _distinct(np.add.outer(first.breaks, second.breaks).ravel())
    # A sum of ends is an end of the window but for rounding.
    slack = EQUAL * max(abs(window.lower), abs(window.upper))
    breaks = breaks[(breaks >= window.lower - slack) & (breaks <= window.upper + slack)]
    breaks = np.unique(np.clip(breaks, window.lower, window.upper))
    if breaks.size > _MOST_BREAKS:
        breaks = breaks[[0, -1]]
    if atoms.size > FEW_NODES:  # each shifts the whole density once a step
        raise AccuracyError("too many single values of the privacy loss to convolve")
    atomic = Measure(atoms[inside], logs[inside], None, breaks)
    shifts = [
        (one.density, a, w)
        for one, other in ((first, second), (second, first))
        if one.density is not None
        for a, w in zip(other.atoms.tolist(), other.log_weight.tolist(), strict=True)
    ]
    pair = [one.density for one in (first, second) if one.density is not None]
    low, high = (a + b for a, b in zip(first.ends, second.ends, strict=True))
    if len(pair) == 2 and not atoms.size and (not breaks.size or low < breaks[0] - slack):
        # Where both were cut off next to nothing is, and the sum rises from zero.
        low += _TRIM * min(density.mass_and_mean()[1] - density.ends[0] for density in pair)
    low, high = max(low, window.lower), min(high, window.upper)
    if not high > low or not (shifts or len(pair) == 2):
        return atomic
    spent = 0

    def log_density(s: Array) -> Array:
        nonlocal spent
        parts = [density(s - a) + w for density, a, w in shifts]
        if len(pair) == 2:
            spent += s.size * (pair[0].fine_edges.size + pair[1].fine_edges.size)
            if spent > 2 * MOST_NODES:
                raise AccuracyError("the density of the privacy loss takes too long to convolve")
            parts.append(convolve(pair[0], pair[1], s))
        return np.asarray(np.logaddexp.reduce(parts))

    kept = replace(window, lower=low, upper=high)
    # Next to an atom of one law, the sum looks like the other one, however narrow.
    copies = [density.edges + a for density, a, _ in sorted(shifts, key=lambda x: -x[2])[:6]]
    edges = kept.edges(np.concatenate([breaks, *copies]))
    return replace(atomic, density=interpolate(log_density, edges, kept.negligible))


def _add_atoms(first: Measure, second: Measure) -> tuple[Array, Array]:
    atoms = np.add.outer(first.atoms, second.atoms).ravel()
    logs = np.add.outer(first.log_weight, second.log_weight).ravel()
    if not atoms.size:
        return atoms, logs
    order = np.argsort(atoms)
    atoms, logs = atoms[order], logs[order]
    starts = np.flatnonzero(np.diff(atoms, prepend=-np.inf) > SETTLED * np.abs(atoms).max())
    return atoms[starts], np.logaddexp.reduceat(logs, starts)
