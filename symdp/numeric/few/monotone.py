"""Means E_t[g(c − L)] under one step's tilted law, g a kernel with kinks at known places.

The panels of a quadrature are cut where the loss turns: on each of them it is monotone, so that it
meets a kink of the kernel at one place at the most, where the panel is cut once more. Next to a cut
a kernel may be a root of the distance. With x = a + (b − a) sin² πθ/2 on a part [a, b], roots at
both ends are smooth functions of θ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from symdp.capacity import BLOCK
from symdp.errors import AccuracyError
from symdp.numeric.beyond.turns import monotone_grid
from symdp.numeric.elementary import distinct, log_sum
from symdp.numeric.integers import integer_rule
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import escapes, flat_nodes
from symdp.numeric.outline import covering_tilts, tilted_each
from symdp.numeric.panels import (
    MAX_NODES,
    NODES,
    ORDER,
    WEIGHTS,
    gauss_legendre,
    interpolated,
    log_masses_on,
)
from symdp.numeric.step import CANCELLED, Array, Index, SmoothPiece
from symdp.tolerances import MASS_ROUNDED, NEGLIGIBLE, ROUNDED, UNIT


@cache
def _rule_of_parts(has_roots: bool) -> tuple[Array, Array]:
    """Return the places of a rule as shares of a part, and its weights: in θ where there are roots.

    In x it is the rule by which panels were resolved.
    """
    theta = 0.5 * (NODES + 1.0)
    if not has_roots:
        return theta, 0.5 * WEIGHTS
    shares = np.sin(0.5 * np.pi * theta) ** 2
    weights = 0.25 * np.pi * np.sin(np.pi * theta) * WEIGHTS
    return shares, weights


class UnsettledError(AccuracyError):
    """Another row answers: these means cost too much, or do not settle."""


class Kernel(Protocol):
    """A continuous function, smooth between its kinks but perhaps for roots next to them."""

    kinks: Array
    has_roots: bool

    def __call__(self, u: Array) -> Array:
        """Return its values."""

    def slope(self, u: Array) -> Array:
        """Return its derivative."""


@dataclass(frozen=True)
class Panels:
    """Panels of a piece on which the loss is monotone, with tilted weights and losses at nodes."""

    piece: SmoothPiece
    tilt: float
    lower: Array
    upper: Array
    weight: Array
    loss: Array
    loss_at_lower: Array
    loss_at_upper: Array

    def take(self, chosen: NDArray[np.bool_]) -> Panels:
        """Return some of them."""
        return replace(
            self,
            lower=self.lower[chosen],
            upper=self.upper[chosen],
            weight=self.weight[chosen],
            loss=self.loss[chosen],
            loss_at_lower=self.loss_at_lower[chosen],
            loss_at_upper=self.loss_at_upper[chosen],
        )

    def join(self, other: Panels) -> Panels:
        """Return these and others, from left to right."""
        lower = np.concatenate([self.lower, other.lower])
        order = np.argsort(lower)
        return replace(
            self,
            lower=lower[order],
            upper=np.concatenate([self.upper, other.upper])[order],
            weight=np.concatenate([self.weight, other.weight])[order],
            loss=np.concatenate([self.loss, other.loss])[order],
            loss_at_lower=np.concatenate([self.loss_at_lower, other.loss_at_lower])[order],
            loss_at_upper=np.concatenate([self.loss_at_upper, other.loss_at_upper])[order],
        )

    @cached_property
    def ends_of_loss(self) -> tuple[Array, Array]:
        """The least and the largest loss on each."""
        least = np.minimum(self.loss_at_lower, self.loss_at_upper)
        return least, np.maximum(self.loss_at_lower, self.loss_at_upper)

    @property
    def least_mass(self) -> float:
        """The mass under the tilt of panels that are kept."""
        return math.exp(-1.2 * NEGLIGIBLE)

    @cached_property
    def has_mass(self) -> NDArray[np.bool_]:
        """Whether each has more of the mass under the tilt than nothing."""
        return np.asarray(self.weight.sum(axis=1) > self.least_mass)

    def densities(self, least: Array, largest: Array) -> Array:
        """Return ∫ P e^{tc} where losses lie on one side of c, and ∫ Q e^{(1+t)c}: two rows.

        That is what payoffs make of the weights, c at the end of the losses.
        """
        near = least if self.tilt >= 0.0 else largest
        with np.errstate(over="ignore", invalid="ignore"):
            of_p = self.weight * np.exp(-self.tilt * (self.loss - near[:, None]))
            of_q = self.weight * np.exp(-(1.0 + self.tilt) * (self.loss - least[:, None]))
        return np.stack([of_p.sum(axis=1), of_q.sum(axis=1)])

    def kinks(self) -> Array:
        """Return the losses next to which the density of the losses need not be smooth."""
        is_rising = self.loss_at_upper > self.loss_at_lower
        is_apart = self.lower[1:] != self.upper[:-1]
        is_turn = is_rising[1:] != is_rising[:-1]
        is_end = is_apart | is_turn
        starts = self.loss_at_lower[np.append(True, is_end)]
        ends = self.loss_at_upper[np.append(is_end, True)]
        return np.concatenate([starts, ends])


@dataclass(frozen=True)
class Parts:
    """Parts of panels that no kink cuts, each with the number of its c."""

    number: Index
    lower: Array
    upper: Array

    def take(self, chosen: Index) -> Parts:
        """Return some of them."""
        return Parts(self.number[chosen], self.lower[chosen], self.upper[chosen])

    def halves(self) -> tuple[Parts, Parts]:
        """Return the left half of each, and the right one."""
        middle = 0.5 * (self.lower + self.upper)
        left = Parts(self.number, self.lower, middle)
        return left, Parts(self.number, middle, self.upper)

    def join(self, other: Parts) -> Parts:
        """Return these and others."""
        number = np.concatenate([self.number, other.number])
        lower = np.concatenate([self.lower, other.lower])
        return Parts(number, lower, np.concatenate([self.upper, other.upper]))


@dataclass(frozen=True)
class Mean:
    """E_t[g(c − L)] at one c, its derivative by c, and about how far off the quadrature is."""

    value: float
    slope: float
    error: float


class TiltedStep:
    """One step's finite losses under dP_t = e^{tℓ} dP / M(t), on panels and as atoms."""

    def __init__(self, law: LossLaw, tilt: float) -> None:
        self.tilt = tilt
        self._outlines = [outline for outline in law.outlines if not escapes(outline.piece)]
        masses: Mapping[float, float] = {}
        if self._outlines:
            masses = covering_tilts(self._outlines, sorted({-1.0, 0.0, tilt}))
        self.missed = 0.0
        atom_loss, log_atom = self._atoms(law, masses)
        grids = self._grids(masses)
        log_masses = [log_sum(log_atom + tilt * atom_loss)]
        log_masses += [float(log_masses_on(piece, edges, [tilt])[0]) for piece, edges in grids]
        self.log_mass = log_sum(log_masses)
        if not math.isfinite(self.log_mass):
            raise UnsettledError("no finite loss is seen")
        self.atom_loss = atom_loss
        self.atom_weight = np.exp(log_atom + tilt * atom_loss - self.log_mass)
        mass = law.mass_at_infinity + float(np.exp(log_atom).sum())
        self.panels: list[Panels] = []
        for piece, edges in grids:
            mass += math.exp(float(log_masses_on(piece, edges, [0.0])[0]))
            panels = _resolved(self._panels(piece, edges[:-1], edges[1:]), self._panels)
            if panels.has_mass.any():
                self.panels.append(panels.take(panels.has_mass))
        self.missed += max(abs(mass - 1.0) - MASS_ROUNDED, 0.0)
        all_kinks = [part.kinks() for part in self.panels]
        self.kinks = distinct(np.concatenate([atom_loss, *all_kinks]))

    def _atoms(self, law: LossLaw, masses: Mapping[float, float]) -> tuple[Array, Array]:
        """Return the losses of all atoms, and logs of their probabilities."""
        losses = [law.step.point_loss]
        log_masses = [law.step.point_log_p]
        for outline in self._outlines:
            if outline.piece.integer:
                nodes = integer_rule(outline.piece, masses, 0.0)
            elif outline.piece.flat:
                nodes = flat_nodes(outline)
            else:
                continue
            self.missed += nodes.error + float(nodes.kinks[2].sum())
            losses.append(nodes.loss)
            log_masses.append(nodes.log_weight)
        loss = np.concatenate(losses)
        log_mass = np.concatenate(log_masses)
        is_usable = np.isfinite(loss) & np.isfinite(log_mass)
        return loss[is_usable], log_mass[is_usable]

    def _grids(self, masses: Mapping[float, float]) -> list[tuple[SmoothPiece, Array]]:
        """Return every smooth piece with edges between which its loss is monotone."""
        grids = []
        for outline in self._outlines:
            piece = outline.piece
            if piece.integer or piece.flat:
                continue
            if piece.off is not None:
                raise UnsettledError("the density is known at the nodes of a table only")
            grid = monotone_grid(outline, masses)
            if grid is None:
                continue
            edges = distinct(np.concatenate([grid.edges, grid.turns]))
            x, _ = gauss_legendre(edges[:-1], edges[1:])
            _, _, roundings = piece.accurate(x.ravel(), 16)
            if roundings > 2.0 * CANCELLED:
                piece = interpolated(piece, grid.edges) or piece
            grids.append((piece, edges))
        return grids

    def _panels(self, piece: SmoothPiece, lower: Array, upper: Array) -> Panels:
        x, weight = gauss_legendre(lower, upper)
        with np.errstate(all="ignore"):
            log_p, log_q, loss = (rows.reshape(x.shape) for rows in piece.values(x.ravel()))
            log_density = tilted_each(log_p, log_q, loss, np.full(x.shape, self.tilt))
            loss_at_lower = np.asarray(piece.loss(lower))
            loss_at_upper = np.asarray(piece.loss(upper))
            log_weight = log_density - self.log_mass + np.log(weight)  # next to 0 some are 0
        is_finite = np.isfinite(loss)
        weight = np.where(is_finite, np.exp(log_weight), 0.0)
        loss = np.where(is_finite, loss, 0.0)
        loss_at_lower = np.where(np.isfinite(loss_at_lower), loss_at_lower, loss[:, 0])
        loss_at_upper = np.where(np.isfinite(loss_at_upper), loss_at_upper, loss[:, -1])
        return Panels(piece, self.tilt, lower, upper, weight, loss, loss_at_lower, loss_at_upper)

    def halved(self) -> TiltedStep:
        """Return the step on panels of half the length."""
        finer = copy(self)
        finer.panels = []
        for panels in self.panels:
            middle = 0.5 * (panels.lower + panels.upper)
            lower = np.stack([panels.lower, middle], axis=1).ravel()
            upper = np.stack([middle, panels.upper], axis=1).ravel()
            finer.panels.append(self._panels(panels.piece, lower, upper))
        return finer

    def means(self, kernel: Kernel, centres: Array) -> Array:
        """Return E_t[g(c − L)] at several c, by the rule of each part."""
        from_atoms = kernel(centres[:, None] - self.atom_loss) * self.atom_weight
        total = from_atoms.sum(axis=1)
        for panels in self.panels:
            parts, is_cut = _cut_parts(panels, kernel, centres)
            total += _means_of_whole(panels, kernel, centres, is_cut)
            values = self._integrals(panels, kernel, centres, parts)
            total += np.bincount(parts.number, values, centres.size)
        return np.asarray(total)

    def rough_mean(self, function: Callable[[Array], Array], centre: float) -> float:
        """Return about E_t[f(c − L)] at one c, of a function that need not be smooth."""
        total = float((function(centre - self.atom_loss) * self.atom_weight).sum())
        for panels in self.panels:
            total += float((function(centre - panels.loss) * panels.weight).sum())
        return total

    def mean(self, kernel: Kernel, centre: float) -> Mean:
        """Return E_t[g(c − L)] at one c, parts halved until nothing changes."""
        centres = np.asarray([centre])
        gaps = centre - self.atom_loss
        value = float((kernel(gaps) * self.atom_weight).sum())
        slope = float((kernel.slope(gaps) * self.atom_weight).sum())
        pending: list[tuple[Panels, Parts, Array]] = []
        size = value
        for panels in self.panels:
            cut_parts, is_cut = _cut_parts(panels, kernel, centres)
            whole = np.flatnonzero(~is_cut[0])
            number = np.zeros(whole.size, dtype=np.intp)
            whole_parts = Parts(number, panels.lower[whole], panels.upper[whole])
            parts = whole_parts.join(cut_parts)
            integrals = self._integrals(panels, kernel, centres, parts)
            pending.append((panels, parts, integrals))
            size += float(np.abs(integrals).sum())
        error = 0.0
        for panels, parts, integrals in pending:
            settled, halves, changes = self._settled(
                panels, kernel, centres, parts, integrals, size
            )
            value += float(halves.sum())
            error += float(changes.sum())
            slopes = self._integrals(panels, kernel, centres, settled, is_slope=True)
            slope += float(slopes.sum())
        return Mean(value, slope, error)

    def _settled(
        self,
        panels: Panels,
        kernel: Kernel,
        centres: Array,
        parts: Parts,
        integrals: Array,
        size: float,
    ) -> tuple[Parts, Array, Array]:
        """Return parts that agree with their halves, the halves' integrals, and what changed."""
        settled = parts.take(np.empty(0, dtype=np.intp))
        values = []
        changes = []
        while parts.number.size * ORDER <= MAX_NODES // 8:
            left, right = parts.halves()
            left_values = self._integrals(panels, kernel, centres, left)
            right_values = self._integrals(panels, kernel, centres, right)
            refined = left_values + right_values
            change = np.abs(refined - integrals)
            is_shortest = (left.upper <= parts.lower) | (left.upper >= parts.upper)
            is_good = (change <= ROUNDED * size) | is_shortest
            good = np.flatnonzero(is_good)
            settled = settled.join(parts.take(good))
            values.append(refined[good])
            changes.append(change[good])
            bad = np.flatnonzero(~is_good)
            if not bad.size:
                return settled, np.concatenate(values), np.concatenate(changes)
            parts = left.take(bad).join(right.take(bad))
            integrals = np.concatenate([left_values[bad], right_values[bad]])
        raise UnsettledError("a mean of the loss did not settle")

    def _integrals(
        self,
        panels: Panels,
        kernel: Kernel,
        centres: Array,
        parts: Parts,
        is_slope: bool = False,
    ) -> Array:
        """Return the integrals of dP_t g(c − ℓ) over parts, or those of dP_t g′(c − ℓ)."""
        function = kernel.slope if is_slope else kernel
        shares, weights = _rule_of_parts(kernel.has_roots)
        result = np.empty(parts.number.size)
        rows = BLOCK // (4 * shares.size)
        for start in range(0, result.size, rows):
            block = slice(start, start + rows)
            lower = parts.lower[block, None]
            length = parts.upper[block, None] - lower
            x = lower + length * shares
            with np.errstate(all="ignore"):
                log_p, log_q, loss = panels.piece.values(x.ravel())
                exponent = tilted_each(log_p, log_q, loss, np.full(x.size, self.tilt))
            is_finite = np.isfinite(loss)
            density = np.where(is_finite, np.exp(exponent - self.log_mass), 0.0)
            finite_loss = np.where(is_finite, loss, 0.0).reshape(x.shape)
            values = function(centres[parts.number[block], None] - finite_loss)
            values *= density.reshape(x.shape)
            result[block] = (values @ weights) * length[:, 0]
        return result

    def rounding(self, sensitivity: float) -> float:
        """Return about the relative error of a mean by rounding of log P and ℓ, as balls tell.

        `sensitivity`: the relative change of the mean for each unit by which losses are moved.
        """
        samples = 24
        worst = 0.0
        for panels in self.panels:
            x, _ = gauss_legendre(panels.lower, panels.upper)
            cumulated = np.cumsum(panels.weight.ravel())
            quantiles = cumulated[-1] * (np.arange(samples) + 0.5) / samples
            chosen = np.searchsorted(cumulated, quantiles)
            sample = x.ravel()[chosen]
            with np.errstate(all="ignore"):
                log_p, _, loss = panels.piece.values(sample)
                exact_log_p, exact_loss = panels.piece.rounded(sample)
                off = np.abs(log_p - exact_log_p) + sensitivity * np.abs(loss - exact_loss)
            share = float(cumulated[-1])
            worst += share * float(np.nan_to_num(off, nan=1.0, posinf=1.0).mean())
        return worst


def _resolved(panels: Panels, between: Callable[[SmoothPiece, Array, Array], Panels]) -> Panels:
    """Return panels that resolve P and Q as payoffs need them, near every c.

    Panels that resolve tilted densities need not resolve untilted ones far out, relative to what
    they are there.
    """
    settled = panels.take(np.zeros(panels.lower.size, dtype=bool))
    most_growth = 8.0  # e-folds of e^{tℓ} on a panel
    while (settled.lower.size + panels.lower.size) * ORDER <= MAX_NODES // 8:
        middle = 0.5 * (panels.lower + panels.upper)
        left = between(panels.piece, panels.lower, middle)
        right = between(panels.piece, middle, panels.upper)
        least, largest = panels.ends_of_loss
        whole = panels.densities(least, largest)
        parts = left.densities(least, largest) + right.densities(least, largest)
        # Relative to what a panel has, and beside a thousandth of all mass.
        exponent = np.abs(panels.tilt) * np.maximum(np.abs(least), np.abs(largest))
        rounding = 2.0 * ROUNDED + 2.0 * UNIT * exponent
        is_resolved = np.abs(whole - parts) <= rounding * (1e-3 + whole)
        is_even = np.abs(panels.tilt) * (largest - least) <= most_growth
        is_shortest = (middle <= panels.lower) | (middle >= panels.upper)
        is_good = (is_resolved.all(axis=0) & is_even) | is_shortest
        is_good |= ~panels.has_mass
        settled = settled.join(panels.take(is_good))
        if is_good.all():
            return settled
        panels = left.take(~is_good).join(right.take(~is_good))
    raise UnsettledError("densities of the loss are not resolved")


def _cut_parts(panels: Panels, kernel: Kernel, centres: Array) -> tuple[Parts, NDArray[np.bool_]]:
    """Return the parts of panels in which the kernel has kinks, and which of all are so cut."""
    crossings = centres[:, None] - kernel.kinks
    order = np.argsort(crossings, axis=None)
    rising = crossings.ravel()[order]
    least, largest = panels.ends_of_loss
    first = np.searchsorted(rising, least, side="right")
    last = np.searchsorted(rising, largest, side="left")
    count = np.maximum(last - first, 0)
    if count.sum() * ORDER > MAX_NODES:
        raise UnsettledError("kinks of the loss are too many")
    panel = np.repeat(np.arange(count.size), count)
    before = np.repeat(np.cumsum(count) - count - first, count)
    index = np.arange(panel.size) - before
    number = order[index] // max(kernel.kinks.size, 1)
    root = _roots(
        panels.piece,
        panels.lower[panel],
        panels.upper[panel],
        panels.loss_at_lower[panel],
        panels.loss_at_upper[panel],
        rising[index],
    )
    order = np.lexsort((root, panel, number))
    root = root[order]
    panel = panel[order]
    number = number[order]
    is_new = np.ones(root.size + 1, dtype=bool)
    is_new[1:-1] = (panel[1:] != panel[:-1]) | (number[1:] != number[:-1])
    is_last = is_new[1:]
    lower = np.where(is_new[:-1], panels.lower[panel], np.roll(root, 1))
    tail = Parts(number[is_last], root[is_last], panels.upper[panel[is_last]])
    parts = Parts(number, lower, root).join(tail)
    parts = parts.take(np.flatnonzero(parts.upper > parts.lower))
    is_cut = np.zeros((centres.size, count.size), dtype=bool)
    is_cut[number, panel] = True
    return parts, is_cut


def _means_of_whole(
    panels: Panels, kernel: Kernel, centres: Array, is_cut: NDArray[np.bool_]
) -> Array:
    """Return what panels that no kink cuts add at every c, by the nodes that resolved them."""
    total = np.empty(centres.size)
    rows = max(1, BLOCK // max(panels.loss.size, 1))
    for start in range(0, centres.size, rows):
        block = slice(start, start + rows)
        values = kernel(centres[block, None, None] - panels.loss)
        values *= panels.weight
        of_panels = values.sum(axis=2)
        of_panels[is_cut[block]] = 0.0
        total[block] = of_panels.sum(axis=1)
    return total


def _roots(
    piece: SmoothPiece,
    low: Array,
    high: Array,
    loss_at_low: Array,
    loss_at_high: Array,
    targets: Array,
) -> Array:
    """Return where monotone losses reach targets, by Chandrupatla's method.

    Inverse quadratic interpolation where it is sure to help, else a bisection [T. R. Chandrupatla,
    Adv. Eng. Software 28 (1997) 145].
    """
    enough = 1e-9  # of a panel: a kernel is continuous, so that an error of a cut counts squared
    roots = 0.5 * (low + high)
    active = np.arange(roots.size)
    width = np.abs(high - low)
    newest = low
    other = high
    newest_gap = loss_at_low - targets
    other_gap = loss_at_high - targets
    with np.errstate(all="ignore"):
        share = newest_gap / (newest_gap - other_gap)
        share = np.clip(np.nan_to_num(share, nan=0.5), 0.02, 0.98)
        for _ in range(80):
            if not active.size:
                break
            trial = newest + share * (other - newest)
            trial_gap = np.asarray(piece.loss(trial)) - targets
            is_same_side = (trial_gap > 0) == (newest_gap > 0)
            dropped = np.where(is_same_side, newest, other)
            dropped_gap = np.where(is_same_side, newest_gap, other_gap)
            other = np.where(is_same_side, other, newest)
            other_gap = np.where(is_same_side, other_gap, newest_gap)
            newest = trial
            newest_gap = trial_gap
            is_newest_best = np.abs(newest_gap) < np.abs(other_gap)
            roots[active] = np.where(is_newest_best, newest, other)
            least_gap = np.minimum(np.abs(newest_gap), np.abs(other_gap))
            is_narrow = ~(np.abs(other - newest) > enough * width)
            is_open = ~(is_narrow | (least_gap <= ROUNDED * np.abs(targets)))
            share = _next_share(newest, other, dropped, newest_gap, other_gap, dropped_gap)
            least_share = 0.25 * enough * width / np.abs(other - newest)
            share = np.clip(share, least_share, 1.0 - least_share)[is_open]
            active = active[is_open]
            width = width[is_open]
            targets = targets[is_open]
            newest = newest[is_open]
            other = other[is_open]
            newest_gap = newest_gap[is_open]
            other_gap = other_gap[is_open]
    return roots


def _next_share(
    newest: Array,
    other: Array,
    dropped: Array,
    newest_gap: Array,
    other_gap: Array,
    dropped_gap: Array,
) -> Array:
    """Return where between the newest place and the other one the next trial lies, as a share."""
    length = other - newest
    position = (newest - other) / (dropped - other)
    value = (newest_gap - other_gap) / (dropped_gap - other_gap)
    is_above = value**2 < position
    is_below = (1.0 - value) ** 2 < 1.0 - position
    to_other = newest_gap / (other_gap - newest_gap)
    of_other = to_other * dropped_gap / (other_gap - dropped_gap)
    to_dropped = newest_gap / (dropped_gap - newest_gap)
    of_dropped = to_dropped * other_gap / (dropped_gap - other_gap)
    curved = of_other + of_dropped * (dropped - newest) / length
    share = np.where(is_above & is_below, curved, 0.5)
    return np.asarray(np.where(np.isfinite(share), share, 0.5))
