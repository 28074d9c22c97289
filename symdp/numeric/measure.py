"""The law of a privacy loss as a measure on the line: atoms, and a density between breaks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.numeric.density import LogDensity, convolve, interpolate
from symdp.numeric.law import LossLaw
from symdp.numeric.outline import Outline
from symdp.numeric.step import Array, SmoothPiece

MAX_ATOMS = 4000
MAX_BREAKS = 120
_MOST_CUTS = 1 << 23  # of panels: ten seconds and more
_ROUNDED = 1e-14  # how far off a sum of ends is, relative to the largest
_SAME = 1e-13
_IMAGINARY = 1e-30  # an imaginary step this small differentiates without cancellation
_ROOTS = 80
_TINY, _SMALL = 1e-8, 1e-5  # of a piece
_NEGLIGIBLE = 60.0
_TRIM = 0.05
_MOST_COPIES = 6
_ROUNDING_MASS = 42.0


@dataclass(frozen=True)
class Window:
    """Where the law of a sum is kept, and a first guess of where it changes quickly."""

    lower: float
    upper: float
    centre: float
    width: float
    tilt: float
    two_sided: bool

    def negligible(self, lower: Array, upper: Array, log_density: Array) -> NDArray[np.bool_]:
        """Return which panels below the centre hold less than rounding of the untilted mass."""
        mass = log_density - self.tilt * lower + np.log(upper - lower)
        if self.two_sided:  # the law under Q counts as well
            mass = np.maximum(mass, mass - lower)
        return np.asarray((upper <= self.centre) & (mass < -_ROUNDING_MASS))

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
    convolution adds up; the density's own panels end at them.
    """

    atoms: Array
    log_weight: Array
    density: LogDensity | None
    breaks: Array

    def log_moment(self, tilt: float) -> float:
        """Return log of the sum of the weights, each times e^{−tilt·s}."""
        parts = self.log_weight - tilt * self.atoms
        if self.density is not None:
            parts = np.append(parts, self.density.mass_and_mean(tilt)[0])
        return float(np.logaddexp.reduce(parts))


def merged(values: Array) -> Array:
    """Return sorted values without those that differ by rounding only."""
    values = np.sort(values)
    scale = float(np.abs(values).max(initial=0.0))
    return values[np.diff(values, prepend=-np.inf) > _SAME * scale]


def loss_measure(law: LossLaw, window: Window, floor: float) -> Measure:
    """Return the law of one step's loss, tilted and unnormalised: P-density times e^{tℓ}.

    Losses above the mean that P does not reach with a log probability of `floor` are left out.

    Raises
    ------
    AccuracyError
        If the loss is not monotone on some piece or turns there, or lives on integers.
    """
    step = law.step
    finite = np.isfinite(step.point_loss)
    atoms = [step.point_loss[finite]]
    weights = [step.point_log_p[finite]]
    branches, tilt = [], window.tilt
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
            branches.append(_Branch(outline))
    if any(branch.turns() for branch in branches):
        raise AccuracyError("the density of the privacy loss is infinite where the loss turns")
    places, logs = np.concatenate(atoms), np.concatenate(weights)
    # An end far outside would only widen the tolerance with which places count as the same.
    slack = window.upper - window.lower
    ends = np.asarray(
        [e for b in branches for e in b.range if -slack < e - window.lower < 2.0 * slack]
    )
    breaks = merged(np.concatenate([places, ends]))
    density = None
    if branches:
        ends_that_count = [b.essential(floor, window.two_sided) for b in branches]
        low = max(window.lower, min(b.range[0] for b in branches), min(ends_that_count)[0])
        high = min(
            window.upper, max(b.range[1] for b in branches), max(e for _, e in ends_that_count)
        )
        if high > low:
            inside = replace(window, lower=low, upper=high)

            def log_density(s: Array) -> Array:
                parts = [b.log_density(s) for b in branches]
                return np.asarray(np.logaddexp.reduce(parts) + tilt * s)

            density = interpolate(log_density, inside.edges(breaks), inside.negligible)
    return Measure(places, logs + tilt * places, density, breaks)


def _middle(outline: Outline) -> Array:
    return outline.x[outline.x.size // 2 : outline.x.size // 2 + 1]


class _Branch:
    """One smooth piece on which the loss is monotone: x as a function of the loss."""

    def __init__(self, outline: Outline) -> None:
        self.piece: SmoothPiece = outline.piece
        usable = np.isfinite(outline.loss) & np.isfinite(outline.log_p)
        x, loss = outline.x[usable], outline.loss[usable]
        if x.size < 3:
            raise AccuracyError("a piece of the density is too narrow to convolve")
        self.sign = 1.0 if loss[-1] >= loss[0] else -1.0
        rise = np.diff(loss) * self.sign
        if (rise < -1e-13 * np.abs(loss).max()).any():
            raise AccuracyError("the privacy loss is not monotone where its density is smooth")
        order = np.maximum.accumulate(loss * self.sign)
        keep = np.diff(order, prepend=-np.inf) > 0
        self.x, self.loss = x[keep], order[keep]
        ends = sorted((self.sign * float(self.loss[0]), self.sign * float(self.loss[-1])))
        self.range = (ends[0], ends[1])
        self._mass = outline.shells([0.0])[0]
        self._all_losses = outline.loss

    def essential(self, floor: float, two_sided: bool) -> tuple[float, float]:
        """Losses between which everything that counts lies, where large ones do down to a floor."""
        finite = np.isfinite(self._all_losses)
        mass, loss = self._mass[finite], self._all_losses[finite]
        other = mass - loss if two_sided else mass  # the law under Q counts as well
        low = loss[np.maximum(mass, other) > -_NEGLIGIBLE]
        high = loss[mass > floor - _NEGLIGIBLE]
        step = 0.05 * (high.max() - low.min())
        return float(low.min()) - step, float(high.max()) + step

    def turns(self) -> bool:
        """Return whether the slope of the loss falls to zero at an end where P has a density."""
        low, high = self.piece.lower, self.piece.upper
        for end, inward in ((low, 1.0), (high, -1.0)):
            if not math.isfinite(end):
                continue
            length = min(high - low, max(1.0, abs(end)))
            x = end + inward * length * np.asarray([_TINY, _SMALL])
            near, far = np.abs(self._slope(x))
            if far > near * math.sqrt(_SMALL / _TINY) and self.piece.log_p(x)[0] > -_NEGLIGIBLE:
                return True
        return False

    def _slope(self, x: Array) -> Array:
        step = _IMAGINARY * np.maximum(np.abs(x), 1.0)
        with np.errstate(all="ignore"):
            return np.asarray(np.imag(self.piece.loss(x + 1j * step)) / step)

    def log_density(self, s: Array) -> Array:
        """Return log of P(x)/|ℓ′(x)| at the x with ℓ(x) = s."""
        x = self._inverse(s)
        inside = (s > self.range[0]) & (s < self.range[1])
        with np.errstate(all="ignore"):
            value = self.piece.log_p(x) - np.log(np.abs(self._slope(x)))
        return np.asarray(np.where(inside, value, -np.inf))

    def _inverse(self, s: Array) -> Array:
        target = s * self.sign
        place = np.clip(np.searchsorted(self.loss, target), 1, self.loss.size - 1)
        low, high = self.x[place - 1].copy(), self.x[place].copy()
        x = 0.5 * (low + high)
        for _ in range(_ROOTS):
            step = _IMAGINARY * np.maximum(np.abs(x), 1.0)
            with np.errstate(all="ignore"):
                value = np.asarray(self.piece.loss(x + 1j * step))
                gap = np.real(value) * self.sign - target
                slope = np.imag(value) * self.sign / step
                high = np.where(gap > 0, x, high)
                low = np.where(gap > 0, low, x)
                newton = x - gap / slope
            within = (newton > low) & (newton < high)
            fresh = np.where(within, newton, 0.5 * (low + high))
            moved = np.abs(fresh - x)
            x = fresh
            if (moved <= 4e-16 * np.abs(x)).all():
                break
        return np.asarray(x)


def add(first: Measure, second: Measure, window: Window) -> Measure:
    """Return the law of the sum of two independent losses, kept within a window."""
    atoms, logs = _add_atoms(first, second)
    inside = (atoms >= window.lower) & (atoms <= window.upper)
    breaks = merged(np.add.outer(first.breaks, second.breaks).ravel())
    # A sum of ends is an end of the window but for rounding.
    slack = _ROUNDED * max(abs(window.lower), abs(window.upper))
    breaks = breaks[(breaks >= window.lower - slack) & (breaks <= window.upper + slack)]
    breaks = np.unique(np.clip(breaks, window.lower, window.upper))
    if breaks.size > MAX_BREAKS or atoms.size > MAX_ATOMS:
        raise AccuracyError("too many single values of the privacy loss to convolve")
    shifts: list[tuple[LogDensity, float, float]] = []
    for one, other in ((first, second), (second, first)):
        if one.density is not None:
            shifts += [
                (one.density, float(a), float(w))
                for a, w in zip(other.atoms, other.log_weight, strict=True)
            ]
    pair = first.density is not None and second.density is not None
    if not pair and not shifts:
        return Measure(atoms[inside], logs[inside], None, breaks)
    low, high = _support(first, second)
    if pair and not atoms.size and (not breaks.size or low < breaks[0] - _SAME):
        # Where both were cut off next to nothing is, and the sum rises from zero.
        assert first.density is not None
        assert second.density is not None
        low += _TRIM * min(d.below(window.tilt) for d in (first.density, second.density))
    low, high = max(low, window.lower), min(high, window.upper)
    if not high > low:
        return Measure(atoms[inside], logs[inside], None, breaks)

    spent = 0

    def log_density(s: Array) -> Array:
        nonlocal spent
        parts = [density(s - a) + w for density, a, w in shifts]
        if pair:
            assert first.density is not None
            assert second.density is not None
            spent += s.size * (first.density.fine_edges.size + second.density.fine_edges.size)
            if spent > _MOST_CUTS:
                raise AccuracyError("the density of the privacy loss takes too long to convolve")
            parts.append(convolve(first.density, second.density, s))
        return np.asarray(np.logaddexp.reduce(parts))

    kept = replace(window, lower=low, upper=high)
    # Next to an atom of one law, the sum looks like the other one, however narrow.
    heaviest = sorted(shifts, key=lambda shift: -shift[2])[:_MOST_COPIES]
    copies = [density.edges + a for density, a, _ in heaviest]
    density = interpolate(
        log_density, kept.edges(np.concatenate([breaks, *copies])), kept.negligible
    )
    return Measure(atoms[inside], logs[inside], density, breaks)


def _support(first: Measure, second: Measure) -> tuple[float, float]:
    ends = []
    for measure in (first, second):
        values = list(measure.atoms)
        if measure.density is not None:
            values += [measure.density.edges[0], measure.density.edges[-1]]
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
