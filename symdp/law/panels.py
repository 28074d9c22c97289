"""Adaptive Gauss–Legendre panels that resolve a density under several tilts at once.

A panel is accepted when its 16-point rule agrees with the two rules on its halves, for the tilted
densities at every asked tilt and for their oscillation at the highest asked frequency. Panels start
around every mode of every term of the densities and grow geometrically outwards, so that neither
a far narrow peak nor a heavy tail is missed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symdp.capacity import BLOCK, afford
from symdp.errors import AccuracyError
from symdp.law.outline import Outline, tilted_log_density
from symdp.law.step import Array, SmoothPiece

Index = NDArray[np.intp]
ORDER = 16
NODES, WEIGHTS = (a.astype(np.float64) for a in np.polynomial.legendre.leggauss(ORDER))
NEGLIGIBLE = 44.0  # e^-44 = 8e-20 of the largest shell is far below a double's rounding
ROUNDS = 120
MAX_NODES = 4_000_000
PANEL_TOLERANCE = 1e-16
_DEEPEST = 1000  # −log₂ of the smallest shell next to a singularity at 0
_SHORTEST = 1e-303  # halves of it would soon be no doubles
_FINEST = -119  # log₂ of the smallest shell, as a share of a piece
_LARGE_LOSS = 100.0  # losses beyond this count as if they grew no more
_ARRAYS = 12.0  # of the size of all nodes, held at once
_REMEDY = "use the method moments, or ask for another epsilon or delta"
SHELL_GROWTH = 2  # each shell is 2² times as wide as the one before it


_NONE: Array = np.empty(0)


@dataclass(frozen=True)
class Rule:
    """Quadrature nodes of one piece: places, log weights, and the disagreement that was left.

    `number` counts nodes from left to right, ORDER to a panel, those left out included, and
    `log_spread` is the log of the stretch of losses a node stands for: its weight times |ℓ′|.
    `beyond` is about ∫ P|ℓ| and ∫ Pℓ² over the tails that were cut off, and `panels` are the ends
    of the panels, whose halves have the nodes.
    """

    x: Array
    log_weight: Array
    number: Index
    log_spread: Array
    error: float
    beyond: tuple[float, float] = (0.0, 0.0)
    panels: tuple[Array, Array] = (_NONE, _NONE)


def _derivative() -> Array:
    """Return the matrix that takes values at the nodes to slopes at the nodes."""
    series = np.polynomial.legendre
    degree = np.arange(ORDER)
    coefficients = series.legvander(NODES, ORDER - 1) * WEIGHTS[:, None] * (degree + 0.5)
    return np.asarray(series.legval(NODES, series.legder(coefficients.T)), dtype=np.float64).T


DERIVATIVE = _derivative()


def _edges(outline: Outline, tilts: Sequence[float], log_masses: Array) -> Array:
    """Return the first panels' edges: geometric shells around each anchor where some mass lies."""
    piece, anchors, grid = outline.piece, outline.anchors, outline.x
    if grid.size < 3:
        return np.asarray([piece.lower, piece.upper])
    mass = outline.shells(tilts)
    essential = np.flatnonzero((mass > log_masses[:, None] - NEGLIGIBLE).any(axis=0))
    if essential.size == 0:
        return np.empty(0)
    if (essential[0] == 0 and not np.isfinite(piece.lower)) or (
        essential[-1] == grid.size - 1 and not np.isfinite(piece.upper)
    ):
        raise AccuracyError(
            "the tail of the tilted density is too heavy to integrate: the tilt is too close to "
            "the end of the domain on which the moment generating function is finite"
        )
    low = piece.lower if essential[0] == 0 else float(grid[essential[0] - 1])
    high = piece.upper if essential[-1] == grid.size - 1 else float(grid[essential[-1] + 1])
    edges = [np.asarray([low, high])]
    sides: list[tuple[float, float, Array]] = []
    places = []
    for anchor in anchors:
        if not low <= anchor <= high:
            continue
        # Down to the rounding of the anchor, too, however far a heavy tail reaches.
        finest = _FINEST
        if anchor != 0:
            finest = min(finest, math.floor(math.log2(abs(anchor) / (high - low))) - 52)
        elif _is_heavy(piece, math.ldexp(high - low, finest), tilts, log_masses):
            finest = -_DEEPEST - math.ceil(math.log2(high - low))
        # No power of two by itself may vanish.
        offsets = np.ldexp(high - low, np.arange(finest, 1))
        edges.append(np.asarray([anchor]))
        inside = np.nextafter(anchor, 0.5 * (low + high)) if anchor in (low, high) else anchor
        for side in (-1.0, 1.0):
            x = anchor + side * offsets
            within = (x > low) & (x < high)
            if within.any():
                sides.append((anchor, side, offsets[within]))
                places += [np.asarray([inside]), x[within]]
    # The density at all of them at once: a call of it costs more than a place.
    seen = tilted_log_density(piece, np.concatenate(places), tilts) if places else np.empty(0)
    first = 0
    for anchor, side, offsets in sides:
        here, away = seen[:, first : first + 1], seen[:, first + 1 : first + 1 + offsets.size]
        first += 1 + offsets.size
        with np.errstate(invalid="ignore"):
            drop = np.abs(away - here).max(axis=0)
        wide = np.flatnonzero(~(drop < 1.0))
        narrowest = offsets[wide[0]] if wide.size else offsets[-1]
        doublings = math.log2(high - low) - math.log2(narrowest)
        count = math.ceil(max(doublings, 0.0) / SHELL_GROWTH)
        shells = anchor + side * np.ldexp(narrowest, SHELL_GROWTH * np.arange(count + 1))
        edges.append(shells[(shells > low) & (shells < high)])
    merged = np.unique(np.concatenate(edges))
    keep = np.ones(merged.size, dtype=bool)
    keep[1:-1] = np.diff(merged)[:-1] > 1e-13 * np.abs(merged[1:-1])
    return merged[keep]


def _is_heavy(piece: SmoothPiece, near: float, tilts: Sequence[float], log_masses: Array) -> bool:
    """Return whether there is mass still closer to 0 than a place near it."""
    places = np.asarray([x for x in (-near, near) if piece.lower < x < piece.upper])
    if places.size == 0:
        return False
    with np.errstate(invalid="ignore"):
        log_size = tilted_log_density(piece, places, tilts) + math.log(near)
    return bool((log_size > log_masses[:, None] - NEGLIGIBLE).any())


def gauss_legendre(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return nodes and weights, one row for each interval [lower, upper]."""
    half = 0.5 * (upper - lower)
    middle = 0.5 * (upper + lower)
    return middle[:, None] + half[:, None] * NODES, half[:, None] * WEIGHTS


@dataclass
class _Panels:
    """Intervals with their test integrals: (test function, tilt, interval), and rounding noise."""

    lower: Array
    upper: Array
    integrals: Array
    noise: Array

    def take(self, index: Index) -> _Panels:
        return _Panels(
            self.lower[index], self.upper[index], self.integrals[..., index], self.noise[:, index]
        )

    def join(self, other: _Panels) -> _Panels:
        return _Panels(
            np.concatenate([self.lower, other.lower]),
            np.concatenate([self.upper, other.upper]),
            np.concatenate([self.integrals, other.integrals], axis=-1),
            np.concatenate([self.noise, other.noise], axis=-1),
        )


@dataclass(frozen=True)
class _Probe:
    """The tilted and oscillating functions that every panel must integrate."""

    piece: SmoothPiece
    tilts: Sequence[float]
    tops: Array
    frequency: float

    def evaluate(self, lower: Array, upper: Array) -> _Panels:
        """Return panels with the integrals of each tilted density: plain, by ℓ, oscillating."""
        # Plain, by ℓ, two that oscillate, and the noise; twice, for what is joined or compared.
        held = (5.0 if self.frequency > 0 else 3.0) * 2.0 * len(self.tilts) * lower.size
        afford(held, "the nodes of the loss", _REMEDY)
        size = max(1, BLOCK // (ORDER * len(self.tilts)))
        blocks = [
            self._evaluated(lower[i : i + size], upper[i : i + size])
            for i in range(0, max(lower.size, 1), size)
        ]
        if len(blocks) == 1:
            return blocks[0]
        return _Panels(
            lower,
            upper,
            np.concatenate([block.integrals for block in blocks], axis=-1),
            np.concatenate([block.noise for block in blocks], axis=-1),
        )

    def _evaluated(self, lower: Array, upper: Array) -> _Panels:
        x, weight = gauss_legendre(lower, upper)
        places = x.ravel()
        with np.errstate(all="ignore"):
            rows = tilted_log_density(self.piece, places, self.tilts)
            density = np.exp(rows - self.tops[:, None])
            loss = np.asarray(self.piece.loss(places)).reshape(x.shape)
        loss = np.where(np.isfinite(loss), loss, 0.0)
        values = density.reshape(len(self.tilts), *x.shape) * weight
        tests = [values, values * loss / (1.0 + np.abs(loss) / _LARGE_LOSS)]
        if self.frequency > 0:
            phase = np.fmod(self.frequency * loss, 2 * np.pi)
            tests += [values * np.cos(phase), values * np.sin(phase)]
        # Rounding of the exponent log P + tℓ (and of the phase yℓ) is a relative error of the
        # density that no refinement removes.
        reach = np.abs(np.asarray(self.tilts))[:, None, None] + self.frequency
        exponent = np.where(values > 0, np.abs(rows).reshape(values.shape) + reach * abs(loss), 0)
        # The second test function is as large as the loss, and so is its rounding.
        size = 1.0 + np.minimum(np.abs(loss), _LARGE_LOSS)
        noise = 2.3e-16 * (values * size * (4 + 2 * exponent)).sum(axis=2)
        return _Panels(lower, upper, np.stack([t.sum(axis=2) for t in tests]), noise)


def _agree(whole: _Panels, parts: Array, totals: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return whether each panel's rule agrees with its parts' sum, and the disagreement."""
    difference = np.abs(whole.integrals - parts)
    allowed = PANEL_TOLERANCE * totals[:, :, None] + whole.noise
    return np.asarray((difference <= allowed).all(axis=(0, 1))), difference.max(axis=0)


def _totals(*several: _Panels) -> Array:
    """Return what a disagreement is small beside: a row for each test, of one for each tilt.

    Where most losses are small and rare ones make up K, it is their own size that counts.
    """
    sums = [np.abs(panels.integrals).sum(axis=2) for panels in several]
    mass = np.maximum(np.sum(sums, axis=0)[0], 1.0)
    totals = np.broadcast_to(mass, sums[0].shape).copy()
    totals[1] = np.minimum(np.sum(sums, axis=0)[1], mass)
    return totals


def _refine(probe: _Probe, edges: Array) -> tuple[_Panels, Array]:
    """Bisect panels until each agrees with its halves; return them and the leftover errors."""
    trial = probe.evaluate(edges[:-1], edges[1:])
    totals = _totals(trial)
    done: _Panels | None = None
    leftover = np.zeros(len(probe.tilts))
    for _ in range(ROUNDS):
        middle = 0.5 * (trial.lower + trial.upper)
        left = probe.evaluate(trial.lower, middle)
        right = probe.evaluate(middle, trial.upper)
        good, difference = _agree(trial, left.integrals + right.integrals, totals)
        good |= (middle <= trial.lower) | (middle >= trial.upper)
        good |= trial.upper - trial.lower < 1e-15 * np.abs(middle)
        good |= trial.upper - trial.lower < _SHORTEST
        # Rounding noise is no error of the nodes: their values are evaluated again, accurately.
        leftover += np.maximum(difference - trial.noise, 0.0)[:, good].sum(axis=1)
        accepted = trial.take(np.flatnonzero(good))
        done = accepted if done is None else done.join(accepted)
        if good.all():
            return done, leftover / totals[0]
        bad = np.flatnonzero(~good)
        trial = left.take(bad).join(right.take(bad))
        if (done.lower.size + trial.lower.size) * ORDER > MAX_NODES:
            raise AccuracyError("the density or its loss oscillates too fast to integrate")
        totals = _totals(done, trial)
    raise AccuracyError("the quadrature of the density did not settle")


def _merge(probe: _Probe, panels: _Panels, faint: float) -> _Panels:
    """Join neighbouring panels wherever one rule does the work of two."""
    totals = _totals(panels)
    panels = panels.take(np.argsort(panels.lower))
    parity, failures = 0, 0
    alone = np.zeros(panels.lower.size, dtype=bool)  # was seen not to join its right neighbour
    while failures < 2 and panels.lower.size > 1:
        first = np.arange(parity, panels.lower.size - 1, 2)
        first = first[~alone[first]]
        parity = 1 - parity
        if first.size == 0:
            failures += 1
            continue
        wide = probe.evaluate(panels.lower[first], panels.upper[first + 1])
        good, _ = _agree(
            wide, panels.integrals[..., first] + panels.integrals[..., first + 1], totals
        )
        if faint > 0:
            shares = panels.integrals[0] / totals[0][:, None]
            good &= (np.minimum(shares[:, first], shares[:, first + 1]) > faint).any(axis=0)
        failures = 0 if good.any() else failures + 1
        alone[first[~good]] = True
        joined = first[good]
        alone[joined] = False
        alone[np.maximum(joined - 1, 0)] = False
        kept = np.ones(panels.lower.size, dtype=bool)
        kept[joined] = kept[joined + 1] = False
        panels = panels.take(np.flatnonzero(kept)).join(wide.take(np.flatnonzero(good)))
        panels = panels.take(np.argsort(panels.lower))
        kept[joined] = True
        alone = alone[kept]
    return panels


def build_panels(
    outline: Outline, masses: Mapping[float, float], frequency: float, faint: float = 0.0
) -> tuple[_Panels | None, Array]:
    """Return settled panels and their leftover errors; None where the piece carries no mass.

    Panels are as few as serve in double precision, and may leave unresolved what is negligible
    there; those of less than a `faint` share of the mass stay as small as they were at first.
    """
    tilts, log_masses = list(masses), np.asarray(list(masses.values()))
    edges = _edges(outline, tilts, log_masses)
    if edges.size == 0:
        return None, np.zeros(1)
    probe = _Probe(outline.piece, tilts, log_masses, frequency)
    panels, leftover = _refine(probe, edges)
    return _merge(probe, panels, faint), leftover


def build_rule(outline: Outline, masses: Mapping[float, float], frequency: float) -> Rule:
    """Return nodes that integrate P·e^{(t+iy)ℓ} for every tilt asked and |y| ≤ frequency.

    Parameters
    ----------
    masses
        The tilts, each with the log of the whole law's mass under it to within a few units; what
        is negligible against it is left out.

    Raises
    ------
    AccuracyError
        If the tail cannot be cut, or the panels do not settle within the work limit.
    """
    panels, leftover = build_panels(outline, masses, frequency)
    if panels is None:
        return Rule(np.empty(0), np.empty(0), np.empty(0, dtype=np.intp), np.empty(0), 0.0)
    # Of the two rules that agreed, to rounding, the finer one: its own error is far below that.
    middle = 0.5 * (panels.lower + panels.upper)
    lower = np.stack([panels.lower, middle], axis=1).ravel()
    upper = np.stack([middle, panels.upper], axis=1).ravel()
    nodes, weights = gauss_legendre(lower, upper)
    x, weight = nodes.ravel(), weights.ravel()
    log_masses = np.asarray(list(masses.values()))
    afford(_ARRAYS * x.size, "the nodes of the loss", _REMEDY)
    with np.errstate(all="ignore"):
        loss = np.asarray(outline.piece.loss(x), dtype=np.float64).reshape(nodes.shape)
        # Per unit of a panel's half width, which is in the weights as well.
        spread = np.log(np.abs(loss @ DERIVATIVE.T) * WEIGHTS).ravel()
    keep = _is_seen(outline.piece, x, np.log(weight), list(masses), log_masses)
    # Panels are kept whole, as far as they have values.
    whole = np.repeat(keep.reshape(nodes.shape).any(axis=1), ORDER)
    keep |= whole
    with np.errstate(all="ignore"):
        keep &= np.isfinite(outline.piece.log_p(x)) & (loss.ravel() > -np.inf)
    if not np.isposinf(loss).all():
        keep &= np.isfinite(loss.ravel())
    number = np.flatnonzero(keep)
    beyond = (0.0, 0.0)
    if number.size:
        first, last = number[0] // ORDER, number[-1] // ORDER
        below = _beyond(outline.piece, float(lower[first]), float(upper[first]))
        above = _beyond(outline.piece, float(upper[last]), float(lower[last]))
        beyond = (below[0] + above[0], below[1] + above[1])
    error = float(leftover.max())
    ends = panels.lower, panels.upper
    return Rule(x[keep], np.log(weight[keep]), number, spread[keep], error, beyond, ends)


def _is_seen(
    piece: SmoothPiece, x: Array, log_weight: Array, tilts: Sequence[float], log_masses: Array
) -> NDArray[np.bool_]:
    """Return whether each node has mass that is not negligible under some tilt."""
    seen = np.zeros(x.size, dtype=bool)
    size = max(1, BLOCK // len(tilts))
    for i in range(0, x.size, size):
        some = slice(i, i + size)
        mass = tilted_log_density(piece, x[some], tilts) - log_masses[:, None]
        seen[some] = (mass + log_weight[some] > -NEGLIGIBLE).any(axis=0)
    return seen


def _beyond(piece: SmoothPiece, edge: float, inner: float) -> tuple[float, float]:
    """Return about ∫ P|ℓ| and ∫ Pℓ² beyond an edge, P falling there as from an inner place."""
    room = edge - piece.lower if edge < inner else piece.upper - edge
    places = np.asarray([edge, inner])
    with np.errstate(all="ignore"):
        log_p = np.asarray(piece.log_p(places), dtype=np.float64)
        loss = abs(float(np.asarray(piece.loss(places))[0]))
        length = abs(edge - inner) / max(float(log_p[1] - log_p[0]), 0.5)
        first = math.exp(log_p[0]) * min(room, length) * loss if room > 0 else 0.0
    return (first, first * loss) if math.isfinite(first * loss) else (0.0, 0.0)
