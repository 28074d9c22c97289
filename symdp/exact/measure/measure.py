"""The law of a privacy loss on the line: atoms, a density, and what makes it infinite."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.exact.measure.branch import Branch, Turn
from symdp.exact.measure.density import NODES, LogDensity, convolve, interpolate
from symdp.exact.measure.spike import Spike, convolve_spikes, with_density
from symdp.law.loss import LossLaw
from symdp.law.outline import Outline
from symdp.law.step import Array

MAX_ATOMS = 4000  # kept apart; each shifts the whole density once a step
MAX_BREAKS = 120  # places where a panel must end
MAX_SPIKES = 40  # integrable singularities kept apart
_MOST_CUTS = 1 << 21  # of panels: a few seconds
_ROUNDED = 1e-14  # how far off a sum of ends is, relative to the largest
_SAME = 1e-13  # of the range: places closer than this are one
_TRIM = 0.05  # of the way from a lower end to the mean
_NEXT = 0.01  # of a range: no more is cut off next to a turn
_MOST_COPIES = 6  # shifted densities whose breaks are kept
_CLOSE = 2.0**-20  # of the scale on which the law of the sum changes
_ROUNDING_MASS = 42.0  # e-folds: 6e-19, below the rounding of a mass of one
_RESOLVED = 12.0  # e-folds over a cell that its rule still integrates
_BEYOND_NODES = 0.0054  # of the distance between a cell's outer nodes: from there to its end
_BELOW_FLOOR = 20.0  # e-folds, as many panels may hold as much


@dataclass(frozen=True)
class Window:
    """Where the law of a sum is kept, and a first guess of where it changes quickly.

    Above the centre, what P does not reach with a log probability of `floor` counts for nothing.
    With an `effort` of 1 a convolution may take some two seconds. The law that is asked for changes
    by no more than e-folds over 1/`steepness`.
    """

    lower: float
    upper: float
    centre: float
    width: float
    tilt: float
    two_sided: bool
    floor: float
    steepness: float
    effort: float

    def negligible(self, lower: Array, upper: Array, log_mass: Array) -> NDArray[np.bool_]:
        """Return which panels hold too little of the untilted mass to be fitted."""
        mass = log_mass - np.minimum(self.tilt * lower, self.tilt * upper)
        above = (lower >= self.centre) & (mass < self.floor - _BELOW_FLOOR)
        if self.two_sided:  # the law under Q counts as well
            mass = np.maximum(mass, mass - lower)
        return np.asarray(above | ((upper <= self.centre) & (mass < -_ROUNDING_MASS)))

    def edges(self, more: Array) -> Array:
        """Return first panels: geometric around the centre, with every given place an edge."""
        scale = self.width * np.exp2(np.arange(-1.0, 12.0))
        parts = [self.centre - scale, np.asarray([self.centre]), self.centre + scale, more]
        inside = np.unique(np.concatenate(parts))
        span = self.upper - self.lower
        inside = inside[(inside > self.lower + 1e-12 * span) & (inside < self.upper - 1e-12 * span)]
        return np.concatenate([[self.lower], inside, [self.upper]])


@dataclass(frozen=True)
class Measure:
    """Atoms with log weights, and a log density whose breaks are where it is not smooth.

    All weights are those of the law tilted by one common tilt. `breaks` holds places that a
    convolution adds up; the density's own panels end at them. Where it would be infinite, as it is
    where the loss turns, `spikes` take its place. A `blur` is the largest variance of values that
    were taken together, added up over the steps.
    """

    atoms: Array
    log_weight: Array
    density: LogDensity | None
    breaks: Array
    spikes: tuple[Spike, ...] = ()
    blur: float = 0.0

    @property
    def spread(self) -> tuple[LogDensity | Spike, ...]:
        """All that is not atoms."""
        return self.spikes if self.density is None else (self.density, *self.spikes)

    @cached_property
    def _cells(self) -> tuple[Array, Array]:
        """Places and log weights of rules for all that is not atoms, one row for each cell."""
        rules = [part.rule(0.0, -math.inf, math.inf) for part in self.spread]
        places, logs = (np.concatenate([*each, []]) for each in zip(*rules, strict=True))
        return places.reshape(-1, NODES.size), logs.reshape(-1, NODES.size)

    def log_moment(self, tilt: float) -> float:
        """Return log of the sum of the weights, each times e^{−tilt·s}, or somewhat more.

        A cell over which the factor changes by more than its rule resolves counts at its largest.
        """
        parts = [self.log_weight - tilt * self.atoms]
        if self.spread:
            s, weight = self._cells
            turn = -tilt * s
            movement = np.abs(turn[:, -1] - turn[:, 0])
            highest = np.maximum(turn[:, 0], turn[:, -1]) + _BEYOND_NODES * movement
            steep = movement > _RESOLVED
            parts += [
                (weight[~steep] + turn[~steep]).ravel(),
                (weight[steep] + highest[steep, None]).ravel(),
            ]
        return float(np.logaddexp.reduce(np.concatenate(parts)))


def merged(values: Array) -> Array:
    """Return sorted values without those that differ by rounding only."""
    values = np.sort(values)
    scale = float(np.abs(values).max(initial=0.0))
    return values[np.diff(values, prepend=-np.inf) > _SAME * scale]


def loss_measure(law: LossLaw, window: Window) -> Measure:
    """Return the law of one step's loss, tilted and unnormalised: P-density times e^{tℓ}.

    Raises
    ------
    AccuracyError
        If the loss is not monotone on some piece, or lives on integers.
    """
    step = law.step
    finite = np.isfinite(step.point_loss)
    atoms = [step.point_loss[finite]]
    weights = [step.point_log_p[finite]]
    branches, tilt = [], window.tilt
    blur = 0.0
    resolution = _CLOSE * min(1.0 / (1.0 + window.steepness), window.width)
    for outline in law.outlines:
        piece = outline.piece
        if piece.integer:
            raise AccuracyError("a loss on integers has no density")
        if piece.flat:
            nodes = law.base
            value = float(np.asarray(piece.loss(_middle(outline)))[0])
            if math.isfinite(value) and value not in np.concatenate(atoms):
                here = nodes.atomic & (np.abs(nodes.loss - value) <= 1e-12 * (1 + abs(value)))
                atoms.append(nodes.loss[here])
                weights.append(nodes.log_weight[here])
        else:
            branch, lumps = Branch(outline).without_singular_ends(resolution)
            branches.append(branch)
            for lump in lumps:
                atoms.append(np.asarray([lump.mean]))
                weights.append(np.log([lump.mass]))
                blur = max(blur, lump.variance)
    places, logs = np.concatenate(atoms), np.concatenate(weights)
    # An end far outside would only widen the tolerance with which places count as the same.
    slack = window.upper - window.lower
    ends = np.asarray(
        [e for b in branches for e in b.range if -slack < e - window.lower < 2.0 * slack]
    )
    breaks = merged(np.concatenate([places, ends]))
    density, spikes = None, []
    if branches:
        essential = [b.essential(window.floor, window.two_sided) for b in branches]
        low = max(window.lower, min(b.range[0] for b in branches), min(essential)[0])
        high = min(window.upper, max(b.range[1] for b in branches), max(e for _, e in essential))
        turns = [branch.turns() for branch in branches]
        smooth = [b for b, found in zip(branches, turns, strict=True) if not found]
        if high > low:
            inside = replace(window, lower=low, upper=high)

            def log_density(s: Array) -> Array:
                parts = [b.log_density(s) for b in smooth]
                return np.asarray(np.logaddexp.reduce(parts) + tilt * s)

            def mass(lower: Array, upper: Array) -> Array:
                return np.asarray(sum(b.mass_between(lower, upper, tilt) for b in smooth))

            if smooth:
                density = interpolate(log_density, inside.edges(breaks), inside.negligible)
                density = density.with_masses(mass)
            for found in turns:
                spikes += [_spike(turn, inside, len(found)) for turn in found]
    kept = tuple(spike for spike in spikes if spike is not None)
    return Measure(places, logs + tilt * places, density, breaks, kept, blur)


def _spike(turn: Turn, window: Window, turns: int) -> Spike | None:
    """Return the law of a branch next to where it turns: all, or half of it where both ends do."""
    low, high = turn.branch.range
    if turns == 2:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if turn.side > 0 else (middle, high)
    low, high = max(low, window.lower), min(high, window.upper)
    if not high > low:
        return None
    base, side = turn.value, turn.side
    # What lies next to the turn is worth keeping, and starts there exactly.
    if side > 0 and low - base < _NEXT * (high - low):
        low = base
    if side < 0 and base - high < _NEXT * (high - low):
        high = base
    inside = replace(window, lower=low, upper=high)

    def root(s: Array) -> Array:
        return np.sqrt(np.maximum(side * (s - base), 0.0))

    def value(v: Array) -> Array:
        return np.asarray(base + side * v * v)

    def log_density(v: Array) -> Array:
        return turn.log_density(v) + window.tilt * value(v)

    def negligible(lower: Array, upper: Array, log_mass: Array) -> NDArray[np.bool_]:
        ends = np.sort([value(lower), value(upper)], axis=0)
        return inside.negligible(ends[0], ends[1], log_mass)

    edges = np.unique(root(inside.edges(np.empty(0))))
    return Spike(base, side, interpolate(log_density, edges, negligible, turn.rounding))


def _middle(outline: Outline) -> Array:
    return outline.x[outline.x.size // 2 : outline.x.size // 2 + 1]


def add(first: Measure, second: Measure, window: Window) -> Measure:
    """Return the law of the sum of two independent losses, kept within a window."""
    atoms, logs = _add_atoms(first, second)
    inside = (atoms >= window.lower) & (atoms <= window.upper)
    breaks = merged(np.add.outer(first.breaks, second.breaks).ravel())
    # A sum of ends is an end of the window but for rounding.
    slack = _ROUNDED * max(abs(window.lower), abs(window.upper))
    breaks = breaks[(breaks >= window.lower - slack) & (breaks <= window.upper + slack)]
    breaks = np.unique(np.clip(breaks, window.lower, window.upper))
    if breaks.size > MAX_BREAKS:  # by then the sums are smooth enough to be fitted without
        breaks = breaks[[0, -1]]
    if atoms.size > MAX_ATOMS:
        raise AccuracyError("too many single values of the privacy loss to convolve")
    shifts: list[tuple[LogDensity, float, float]] = []
    spikes: list[Spike] = []
    for one, other in ((first, second), (second, first)):
        for a, w in zip(other.atoms.tolist(), other.log_weight.tolist(), strict=True):
            spikes += [spike.moved(a).scaled(w) for spike in one.spikes]
            if one.density is not None:
                shifts.append((one.density, a, w))
    if len(spikes) > MAX_SPIKES:
        raise AccuracyError("the density of the privacy loss is infinite at too many places")
    blur = first.blur + second.blur
    atomic = Measure(atoms[inside], logs[inside], None, breaks, tuple(spikes), blur)
    pairs = [(one, other) for one in first.spread for other in second.spread]
    if not pairs and not shifts:
        return atomic
    low, high = _support(first, second)
    if pairs and not atoms.size and (not breaks.size or low < breaks[0] - _SAME):
        # Where both were cut off next to nothing is, and the sum rises from zero.
        low += _TRIM * min(_below(part, window.tilt) for pair in pairs for part in pair)
    low, high = max(low, window.lower), min(high, window.upper)
    if not high > low:
        return atomic

    spent = 0

    def log_density(s: Array) -> Array:
        nonlocal spent
        parts = [density(s - a) + w for density, a, w in shifts]
        for one, other in pairs:
            spent += s.size * (one.fine_edges.size + other.fine_edges.size)
            if spent > _MOST_CUTS * window.effort:
                raise AccuracyError("the density of the privacy loss takes too long to convolve")
            parts.append(_convolve(one, other, s))
        return np.asarray(np.logaddexp.reduce(parts))

    def rounding(s: Array) -> Array:
        # Next to its ends the sum knows no more than its terms next to theirs.
        parts = [density.noise_at(s - a) for density, a, _ in shifts]
        for pair in pairs:
            for one, other in (pair, pair[::-1]):
                if isinstance(one, LogDensity):
                    middle = 0.5 * sum(one.ends)
                    for end, side in zip(other.ends, (-1.0, 1.0), strict=True):
                        place = s - end
                        parts.append(np.where(side * (place - middle) > 0, one.noise_at(place), 0))
        return np.asarray(np.max([np.zeros(s.size), *parts], axis=0))

    kept = replace(window, lower=low, upper=high)
    # Next to an atom of one law, the sum looks like the other one, however narrow.
    heaviest = sorted(shifts, key=lambda shift: -shift[2])[:_MOST_COPIES]
    copies = [density.edges + a for density, a, _ in heaviest]
    density = interpolate(
        log_density, kept.edges(np.concatenate([breaks, *copies])), kept.negligible, rounding
    )
    return replace(atomic, density=density)


def _convolve(one: LogDensity | Spike, other: LogDensity | Spike, s: Array) -> Array:
    if isinstance(one, Spike):
        if isinstance(other, Spike):
            return convolve_spikes(one, other, s)
        return with_density(one, other, s)
    return with_density(other, one, s) if isinstance(other, Spike) else convolve(one, other, s)


def _below(part: LogDensity | Spike, tilt: float) -> float:
    """Return the distance from the lower end to the mean under f(s) e^{−tilt·s}."""
    return part.mass_and_mean(tilt)[1] - part.ends[0]


def _support(first: Measure, second: Measure) -> tuple[float, float]:
    ends = []
    for measure in (first, second):
        values = list(measure.atoms)
        for part in measure.spread:
            values += part.ends
        ends.append((min(values), max(values)))
    return ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]


def _add_atoms(first: Measure, second: Measure) -> tuple[Array, Array]:
    atoms = np.add.outer(first.atoms, second.atoms).ravel()
    logs = np.add.outer(first.log_weight, second.log_weight).ravel()
    if atoms.size == 0:
        return atoms, logs
    order = np.argsort(atoms)
    atoms, logs = atoms[order], logs[order]
    scale = float(np.abs(atoms).max())
    starts = np.flatnonzero(np.diff(atoms, prepend=-np.inf) > _SAME * scale)
    return atoms[starts], np.logaddexp.reduceat(logs, starts)
