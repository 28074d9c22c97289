"""Means E_t[g(c − L)] under one step's tilted law, g a kernel with kinks at known places.

The panels of a quadrature are cut where the loss turns: on each of them it is monotone, so that it
meets a kink of the kernel at one place at the most, where the panel is cut once more. Next to a cut
a kernel may be a root of the distance. With x = a + (b − a) sin² πθ/2 on a part [a, b], roots at
both ends are smooth functions of θ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from symdp.capacity import BLOCK
from symdp.errors import AccuracyError
from symdp.numeric.elementary import distinct
from symdp.numeric.integers import integer_rule
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import MASS_ROUNDED, escapes, flat_nodes
from symdp.numeric.outline import Outline, covering_tilts, tilted_each
from symdp.numeric.panels import NODES, WEIGHTS, gauss_legendre, interpolated, monotone_grid
from symdp.numeric.step import Array, Index, SmoothPiece

_SEEN = 1e-21  # of the mass under a tilt: panels with less are left out
_ROUNDS = 60  # halvings of a part
_SETTLED = 1e-15  # of a mean: a part whose integral changes by less is settled
_SAMPLED = 24  # places at which doubles are compared with balls
_LOST = 16.0  # roundings of doubles from which on series through balls are worth their time
_MOST_PARTS = 1 << 18  # of panels at once: some seconds

# Gauss's rule on [0, 1], and the same in θ: places as shares of a part, and weights.
_THETA: Array = 0.5 * (NODES + 1.0)
_SHARES = (_THETA, np.sin(0.5 * np.pi * _THETA) ** 2)
_SHARE_WEIGHTS = (0.5 * WEIGHTS, 0.25 * np.pi * np.sin(np.pi * _THETA) * WEIGHTS)


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
    """Panels of a piece on which the loss is monotone, with weights and losses at their nodes.

    `mass` is what P has on them.
    """

    piece: SmoothPiece
    lower: Array
    upper: Array
    weight: Array
    loss: Array
    loss_at_lower: Array
    loss_at_upper: Array
    mass: float

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
    """E_t[g(c − L)] at one c, its derivative by c, and about how far off the quadrature is.

    `losses` are places of L that cut the mean into equal parts.
    """

    value: float
    slope: float
    error: float
    losses: Array


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
        panels = self._all_panels(masses)
        log_atom_weight = log_atom + tilt * atom_loss
        top = float(log_atom_weight.max(initial=-math.inf))
        for part in panels:
            top = max(top, float(part.weight.max(initial=-math.inf)))
        if not math.isfinite(top):
            raise AccuracyError("no finite loss is seen")
        atom_weight = np.exp(log_atom_weight - top)
        weights = [np.exp(part.weight - top) for part in panels]
        total = float(atom_weight.sum()) + math.fsum(float(weight.sum()) for weight in weights)
        self.log_mass = top + math.log(total)
        self.atom_loss = atom_loss
        self.atom_weight = atom_weight / total
        self.panels: list[Panels] = []
        for part, weight in zip(panels, weights, strict=True):
            share = weight / total
            is_seen = np.asarray(share.sum(axis=1) > _SEEN)
            if is_seen.any():
                self.panels.append(replace(part, weight=share).take(is_seen))
        mass = law.mass_at_infinity + float(np.exp(log_atom).sum())
        mass += math.fsum(part.mass for part in panels)
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

    def _all_panels(self, masses: Mapping[float, float]) -> list[Panels]:
        """Return the panels of every smooth piece, with logs of weights that are not divided."""
        panels = []
        for outline in self._outlines:
            if not (outline.piece.integer or outline.piece.flat):
                panels += self._panels(outline, masses)
        return panels

    def _panels(self, outline: Outline, masses: Mapping[float, float]) -> list[Panels]:
        grid = monotone_grid(outline, masses)
        if grid is None:
            return []
        piece = outline.piece
        if piece.off is not None:
            raise AccuracyError("the density is known at the nodes of a table only")
        edges = distinct(np.concatenate([grid.edges, grid.turns]))
        lower = edges[:-1]
        upper = edges[1:]
        x, weight = gauss_legendre(lower, upper)
        _, _, roundings = piece.accurate(x.ravel(), _SAMPLED)
        if roundings > _LOST:
            piece = interpolated(piece, grid.edges) or piece
        with np.errstate(all="ignore"):
            log_p, log_q, loss = piece.values(x.ravel())
            tilts = np.full(x.size, self.tilt)
            log_weight = tilted_each(log_p, log_q, loss, tilts) + np.log(weight.ravel())
            masses_of_nodes = np.exp(np.nan_to_num(log_p, nan=-np.inf)) * weight.ravel()
            loss_at_lower = np.asarray(piece.loss(lower))
            loss_at_upper = np.asarray(piece.loss(upper))
        loss = np.where(np.isfinite(loss), loss, 0.0).reshape(x.shape)
        loss_at_lower = np.where(np.isfinite(loss_at_lower), loss_at_lower, loss[:, 0])
        loss_at_upper = np.where(np.isfinite(loss_at_upper), loss_at_upper, loss[:, -1])
        mass = float(masses_of_nodes.sum())
        shape = x.shape
        panels = Panels(
            piece,
            lower,
            upper,
            log_weight.reshape(shape),
            loss,
            loss_at_lower,
            loss_at_upper,
            mass,
        )
        return [panels]

    def means(self, kernel: Kernel, places: Array) -> Array:
        """Return E_t[g(c − L)] at several c, by the rule of each part."""
        from_atoms = kernel(places[:, None] - self.atom_loss) * self.atom_weight
        total = from_atoms.sum(axis=1)
        for panels in self.panels:
            parts, is_cut = _cut_parts(panels, kernel, places)
            total += _means_of_whole(panels, kernel, places, is_cut)
            values = self._integrals(panels, kernel, places, parts)
            total += np.bincount(parts.number, values, places.size)
        return np.asarray(total)

    def rough_mean(self, function: Callable[[Array], Array], place: float) -> float:
        """Return about E_t[f(c − L)] at one c, of a function that need not be smooth."""
        total = float((function(place - self.atom_loss) * self.atom_weight).sum())
        for panels in self.panels:
            total += float((function(place - panels.loss) * panels.weight).sum())
        return total

    def mean(self, kernel: Kernel, place: float) -> Mean:
        """Return E_t[g(c − L)] at one c, parts halved until nothing changes."""
        places = np.asarray([place])
        gaps = place - self.atom_loss
        of_atoms = kernel(gaps) * self.atom_weight
        pending: list[Parts] = []
        values: list[Array] = []
        for panels in self.panels:
            cut_parts, is_cut = _cut_parts(panels, kernel, places)
            whole = np.flatnonzero(~is_cut[0])
            number = np.zeros(whole.size, dtype=np.intp)
            whole_parts = Parts(number, panels.lower[whole], panels.upper[whole])
            parts = whole_parts.join(cut_parts)
            pending.append(parts)
            values.append(self._integrals(panels, kernel, places, parts))
        size = float(of_atoms.sum()) + math.fsum(float(np.abs(v).sum()) for v in values)
        terms = [of_atoms]
        losses = [self.atom_loss]
        slope = float((kernel.slope(gaps) * self.atom_weight).sum())
        error = 0.0
        for panels, parts, integrals in zip(self.panels, pending, values, strict=True):
            settled, halves, changes = self._settled(panels, kernel, places, parts, integrals, size)
            terms.append(halves)
            error += float(changes.sum())
            slopes = self._integrals(panels, kernel, places, settled, is_slope=True)
            slope += float(slopes.sum())
            with np.errstate(all="ignore"):
                losses.append(np.asarray(panels.piece.loss(0.5 * (settled.lower + settled.upper))))
        all_terms = np.concatenate(terms)
        return Mean(float(all_terms.sum()), slope, error, _quantiles(all_terms, losses))

    def _settled(
        self,
        panels: Panels,
        kernel: Kernel,
        places: Array,
        parts: Parts,
        integrals: Array,
        size: float,
    ) -> tuple[Parts, Array, Array]:
        """Return parts that agree with their halves, the halves' integrals, and what changed."""
        settled = parts.take(np.empty(0, dtype=np.intp))
        values = []
        changes = []
        for _ in range(_ROUNDS):
            left, right = parts.halves()
            left_values = self._integrals(panels, kernel, places, left)
            right_values = self._integrals(panels, kernel, places, right)
            refined = left_values + right_values
            change = np.abs(refined - integrals)
            is_shortest = (left.upper <= parts.lower) | (left.upper >= parts.upper)
            is_good = (change <= _SETTLED * size) | is_shortest
            good = np.flatnonzero(is_good)
            settled = settled.join(parts.take(good))
            values.append(refined[good])
            changes.append(change[good])
            bad = np.flatnonzero(~is_good)
            if not bad.size:
                return settled, np.concatenate(values), np.concatenate(changes)
            parts = left.take(bad).join(right.take(bad))
            integrals = np.concatenate([left_values[bad], right_values[bad]])
            if parts.number.size > _MOST_PARTS:
                break
        raise AccuracyError("a mean of the loss did not settle")

    def _integrals(
        self,
        panels: Panels,
        kernel: Kernel,
        places: Array,
        parts: Parts,
        is_slope: bool = False,
    ) -> Array:
        """Return the integrals of dP_t g(c − ℓ) over parts, or those of dP_t g′(c − ℓ)."""
        function = kernel.slope if is_slope else kernel
        shares = _SHARES[kernel.has_roots]
        weights = _SHARE_WEIGHTS[kernel.has_roots]
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
            values = function(places[parts.number[block], None] - finite_loss)
            values *= density.reshape(x.shape)
            result[block] = (values @ weights) * length[:, 0]
        return result

    def rounding(self, sensitivity: float) -> float:
        """Return about the relative error of a mean by rounding of log P and ℓ, as balls tell.

        `sensitivity`: the relative change of the mean for each unit by which losses are moved.
        """
        worst = 0.0
        for panels in self.panels:
            x, _ = gauss_legendre(panels.lower, panels.upper)
            cumulated = np.cumsum(panels.weight.ravel())
            quantiles = cumulated[-1] * (np.arange(_SAMPLED) + 0.5) / _SAMPLED
            chosen = np.searchsorted(cumulated, quantiles)
            sample = x.ravel()[chosen]
            with np.errstate(all="ignore"):
                log_p, _, loss = panels.piece.values(sample)
                exact_log_p, exact_loss = panels.piece.rounded(sample)
                off = np.abs(log_p - exact_log_p) + sensitivity * np.abs(loss - exact_loss)
            share = float(cumulated[-1])
            worst += share * float(np.nan_to_num(off, nan=1.0, posinf=1.0).mean())
        return worst


def _cut_parts(
    panels: Panels, kernel: Kernel, places: Array
) -> tuple[Parts, NDArray[np.bool_]]:
    """Return the parts of panels in which the kernel has kinks, and which of all are so cut."""
    crossings = places[:, None] - kernel.kinks
    order = np.argsort(crossings, axis=None)
    rising = crossings.ravel()[order]
    least = np.minimum(panels.loss_at_lower, panels.loss_at_upper)
    largest = np.maximum(panels.loss_at_lower, panels.loss_at_upper)
    first = np.searchsorted(rising, least, side="right")
    last = np.searchsorted(rising, largest, side="left")
    count = np.maximum(last - first, 0)
    if count.sum() > _MOST_PARTS:
        raise AccuracyError("kinks of the loss are too many")
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
    is_cut = np.zeros((places.size, count.size), dtype=bool)
    is_cut[number, panel] = True
    return parts, is_cut


def _means_of_whole(
    panels: Panels, kernel: Kernel, places: Array, is_cut: NDArray[np.bool_]
) -> Array:
    """Return what panels that no kink cuts add at every c, by the nodes that resolved them."""
    total = np.empty(places.size)
    rows = max(1, BLOCK // max(panels.loss.size, 1))
    for start in range(0, places.size, rows):
        block = slice(start, start + rows)
        values = kernel(places[block, None, None] - panels.loss)
        values *= panels.weight
        of_panels = values.sum(axis=2)
        of_panels[is_cut[block]] = 0.0
        total[block] = of_panels.sum(axis=1)
    return total


def _quantiles(terms: Array, losses: Sequence[Array]) -> Array:
    """Return losses at which the sum of terms is cut into equal parts."""
    loss = np.concatenate(losses)
    order = np.argsort(loss)
    cumulated = np.cumsum(np.abs(terms[order]))
    shares = cumulated[-1] * (np.arange(_SAMPLED) + 0.5) / _SAMPLED
    index = np.searchsorted(cumulated, shares)
    return loss[order][np.minimum(index, loss.size - 1)]


_ROOT = 1e-9  # of a panel: a kernel is continuous, so that an error of a cut counts squared
_ROOT_ROUNDED = 1e-15  # of a loss
_ROOT_ROUNDS = 60
_FIRST_SHARE = 0.02  # of a panel, from its ends, within which a first guess is moved inwards


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
    roots = 0.5 * (low + high)
    active = np.arange(roots.size)
    width = np.abs(high - low)
    newest = low
    other = high
    newest_gap = loss_at_low - targets
    other_gap = loss_at_high - targets
    with np.errstate(all="ignore"):
        share = newest_gap / (newest_gap - other_gap)
        share = np.clip(np.nan_to_num(share, nan=0.5), _FIRST_SHARE, 1.0 - _FIRST_SHARE)
        for _ in range(_ROOT_ROUNDS):
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
            is_narrow = np.abs(other - newest) <= _ROOT * width
            is_open = ~(is_narrow | (least_gap <= _ROOT_ROUNDED * np.abs(targets)))
            share = _next_share(newest, other, dropped, newest_gap, other_gap, dropped_gap)
            least_share = 0.25 * _ROOT * width / np.abs(other - newest)
            share = np.clip(share, least_share, 1.0 - least_share)[is_open]
            active = active[is_open]
            width = width[is_open]
            targets = targets[is_open]
            newest = newest[is_open]
            other = other[is_open]
            newest_gap = newest_gap[is_open]
            other_gap = other_gap[is_open]
    return roots


def _next_share(a: Array, b: Array, c: Array, fa: Array, fb: Array, fc: Array) -> Array:
    """Return where between a and b the next trial lies, as a share of the way."""
    place = (a - b) / (c - b)
    value = (fa - fb) / (fc - fb)
    is_curved_little = (value**2 < place) & ((1.0 - value) ** 2 < 1.0 - place)
    from_b = fa / (fb - fa) * fc / (fb - fc)
    from_c = (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    share = np.where(is_curved_little, from_b + from_c, 0.5)
    return np.where(np.isfinite(share), share, 0.5)
