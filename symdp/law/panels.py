"""Adaptive Gauss–Legendre panels that resolve a density under several tilts at once.

A panel is accepted when its 16-point rule agrees with the two rules on its halves, for the tilted
densities at every asked tilt and for their oscillation at the highest asked frequency. Panels start
around every mode of every term of the densities and grow geometrically outwards, so that neither
a far narrow peak nor a heavy tail is missed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symdp.capacity import BLOCK, afford
from symdp.errors import AccuracyError
from symdp.law.elementary import distinct
from symdp.law.first_panels import apart, first_edges
from symdp.law.interpolated import interpolated
from symdp.law.outline import NEGLIGIBLE, Outline, tilted_log_density
from symdp.law.probe import (
    DERIVATIVE,
    MANY_PANELS,
    ORDER,
    REMEDY,
    WEIGHTS,
    Panels,
    Probe,
    Probes,
    gauss_legendre,
)
from symdp.law.step import Array, Index, RealFunction, SmoothPiece

ROUNDS = 120  # halvings of a panel
MAX_NODES = 1 << 21  # of a piece: some ten seconds
PANEL_TOLERANCE = 1e-16  # relative to a piece: an error below rounding
_SMALLEST = 1e-290  # of a total: PANEL_TOLERANCE of it is about the smallest normal double
_SHORTEST = 1e-303  # halves of it would soon be no doubles
_ARRAYS = 12.0  # of the size of all nodes, held at once
_LOOKED_AT = 60  # panels of many that have not settled, to see whether rounding is why
_LOST = 16.0  # times the usual rounding: more digits are worth their time
_VAGUE = 2.0**-7  # of a panel's mass: rules that differ by less err 2^32 times less on halves
_TOO_FAST = "the density or its loss oscillates too fast to integrate"
_NONE: Array = np.empty(0)


@dataclass(frozen=True)
class Rule:
    """Quadrature nodes of one piece: places, log weights, and the disagreement that was left.

    `number` counts nodes from left to right, ORDER to a panel, those left out included, and
    `log_spread` is the log of the stretch of losses a node stands for: its weight times |ℓ′|.
    `beyond` is about ∫ P|ℓ| and ∫ Pℓ² over the tails that were cut off, `beyond_reversed` the same
    under Q, and `panels` are the ends of the panels, whose halves have the nodes.
    """

    x: Array
    log_weight: Array
    number: Index
    log_spread: Array
    error: float
    beyond: tuple[float, float] = (0.0, 0.0)
    panels: tuple[Array, Array] = (_NONE, _NONE)
    beyond_reversed: tuple[float, float] = (0.0, 0.0)


def _agree(whole: Panels, parts: Array, totals: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return whether each panel's rule agrees with its parts' sum, and the disagreement."""
    difference = np.abs(whole.integrals - parts)
    allowed = PANEL_TOLERANCE * totals[:, :, None] + whole.noise
    return np.asarray((difference <= allowed).all(axis=(0, 1))), difference.max(axis=0)


def _totals(*several: Panels) -> Array:
    """Return what a disagreement is small beside: a row for each test, of one for each tilt.

    Where most losses are small and rare ones make up K, it is their own size that counts.
    """
    sums = [np.abs(panels.integrals).sum(axis=2) for panels in several]
    mass = np.maximum(np.sum(sums, axis=0)[0], 1.0)
    totals = np.broadcast_to(mass, sums[0].shape).copy()
    totals[1] = np.clip(np.sum(sums, axis=0)[1], _SMALLEST, mass)
    return totals


def _refine(probe: Probes, edges: Array) -> tuple[Probes, Panels, Array]:
    """Return panels that settled, their leftover errors, and by which values they did.

    Where very many do not agree as terms cancel, balls and series between them give the values.
    """
    found = _settled(probe, edges, may_cancel=False)
    if found is not None:
        return probe, *found
    pieces = [interpolated(part.piece, edges) for part in probe.parts]
    if all(pieces):
        pairs = zip(probe.parts, pieces, strict=True)
        probe = Probes([replace(part, piece=piece) for part, piece in pairs if piece is not None])
    found = _settled(probe, edges, may_cancel=True)
    assert found is not None
    return probe, *found


def _settled(probe: Probes, edges: Array, may_cancel: bool) -> tuple[Panels, Array] | None:
    """Bisect panels until each agrees with its halves; return them and the leftover errors.

    None where terms are seen to cancel and must not.
    """
    trial = probe.evaluate(edges[:-1], edges[1:])
    totals = _totals(trial)
    done: Panels | None = None
    leftover = np.zeros(len(probe.tilts))
    for _ in range(ROUNDS):
        middle = 0.5 * (trial.lower + trial.upper)
        halves = probe.evaluate(
            np.concatenate([trial.lower, middle]), np.concatenate([middle, trial.upper])
        )
        if not (np.isfinite(trial.integrals).all() and np.isfinite(halves.integrals).all()):
            raise AccuracyError("a tilted density is far larger than on the places looked at first")
        lost = np.ones_like(trial.noise)
        if middle.size > MANY_PANELS:
            some = slice(None, None, middle.size // _LOOKED_AT)
            most = probe.cancelled(trial.lower[some], trial.upper[some]).max(axis=1)
            if (is_lost := bool(most.max() > _LOST)) and not may_cancel:
                return None
            lost = probe.cancelled(trial.lower, trial.upper) if is_lost else most[:, None] * lost
            trial.noise *= lost
        first = np.arange(middle.size)
        left, right = halves.take(first), halves.take(first + middle.size)
        good, difference = _agree(trial, left.integrals + right.integrals, totals)
        good |= (middle <= trial.lower) | (middle >= trial.upper)
        good |= trial.upper - trial.lower < 1e-15 * np.abs(middle)
        good |= trial.upper - trial.lower < _SHORTEST
        # Noise is no error of the rule: what rounding takes is counted with the nodes.
        vague = trial.noise > _VAGUE * np.abs(trial.integrals[0])
        explained = np.where(vague | (lost > _LOST), -1.0, 1.0 / lost) * trial.noise
        leftover += np.maximum(difference - explained, 0.0)[:, good].sum(axis=1)
        accepted = trial.take(np.flatnonzero(good))
        done = accepted if done is None else done.join(accepted)
        if good.all():
            return done, leftover / totals[0]
        bad = np.flatnonzero(~good)
        trial = left.take(bad).join(right.take(bad))
        if (done.lower.size + trial.lower.size) * ORDER > MAX_NODES:
            raise AccuracyError(_TOO_FAST)
        totals = _totals(done, trial)
    raise AccuracyError("the quadrature of the density did not settle")


def _merge(probe: Probes, panels: Panels, faint: float) -> Panels:
    """Join neighbouring panels wherever one rule does the work of two."""
    totals = _totals(panels)
    panels = panels.take(np.argsort(panels.lower))
    untried = np.ones(panels.lower.size - 1, dtype=bool)  # each panel with its right neighbour
    while untried.any():
        first = np.flatnonzero(untried)
        wide = probe.evaluate(panels.lower[first], panels.upper[first + 1])
        good, _ = _agree(
            wide, panels.integrals[..., first] + panels.integrals[..., first + 1], totals
        )
        if faint > 0:
            shares = panels.integrals[0] / totals[0][:, None]
            good &= (np.minimum(shares[:, first], shares[:, first + 1]) > faint).any(axis=0)
        chosen: list[int] = []  # of those that were tried, none next to another one
        for k in np.flatnonzero(good).tolist():
            if not chosen or first[k] > first[chosen[-1]] + 1:
                chosen.append(k)
        joined = first[chosen]
        kept = np.ones(panels.lower.size, dtype=bool)
        kept[joined] = kept[joined + 1] = False
        panels = panels.take(np.flatnonzero(kept)).join(
            wide.take(np.asarray(chosen, dtype=np.intp))
        )
        panels = panels.take(np.argsort(panels.lower))
        untried = np.zeros(panels.lower.size - 1, dtype=bool)
        place = joined - np.arange(joined.size)
        untried[place[place < untried.size]] = True
        untried[place[place > 0] - 1] = True
    return panels


def build_panels(
    steps: Sequence[tuple[Outline, Mapping[float, float]]],
    frequency: float,
    faint: float = 0.0,
    cuts: Array = _NONE,
) -> tuple[Panels | None, Array]:
    """Return settled panels and their leftover errors; None where the piece carries no mass.

    Panels are as few as serve in double precision, and may leave unresolved what is negligible
    there; those of less than a `faint` share of the mass stay as small as they were at first.

    Parameters
    ----------
    steps
        One piece of one step or of several, each with tilts and the logs of its mass under them.
    cuts
        Places at which panels end as well.
    """
    probes, edges = [], [cuts] if cuts.size else []
    for outline, masses in steps:
        tilts, log_masses = list(masses), np.asarray(list(masses.values()))
        edges.append(first_edges(outline, tilts, log_masses))
        probes.append(Probe(outline.piece, tilts, log_masses, frequency))
    first = edges[0] if len(edges) == 1 else apart(distinct(np.concatenate(edges)))
    if first.size == 0:
        return None, np.zeros(1)
    probe, panels, leftover = _refine(Probes(probes), first)
    return _merge(probe, panels, faint), leftover


def build_rule(
    outline: Outline, masses: Mapping[float, float], frequency: float, cuts: Array = _NONE
) -> Rule:
    """Return nodes that integrate P·e^{(t+iy)ℓ} for every tilt asked and |y| ≤ frequency.

    Each tilt has the log of the whole law's mass under it, beside which little is left out.

    Raises
    ------
    AccuracyError
        If the tail cannot be cut, or the panels do not settle within the work limit.
    """
    panels, leftover = build_panels([(outline, masses)], frequency, cuts=cuts)
    if panels is None:
        return Rule(np.empty(0), np.empty(0), np.empty(0, dtype=np.intp), np.empty(0), 0.0)
    # Of the two rules that agreed, to rounding, the finer one: its own error is far below that.
    middle = 0.5 * (panels.lower + panels.upper)
    lower = np.stack([panels.lower, middle], axis=1).ravel()
    upper = np.stack([middle, panels.upper], axis=1).ravel()
    nodes, weights = gauss_legendre(lower, upper)
    x, weight = nodes.ravel(), weights.ravel()
    log_masses = np.asarray(list(masses.values()))
    afford(_ARRAYS * x.size, "the nodes of the loss", REMEDY)
    with np.errstate(all="ignore"):
        loss = np.asarray(outline.piece.loss(x), dtype=np.float64).reshape(nodes.shape)
        # Per unit of a panel's half width, which is in the weights as well.
        spread = np.log(np.abs(loss @ DERIVATIVE.T) * WEIGHTS).ravel()
        log_weight = np.log(weight)  # of panels next to 0 some are no doubles
    keep = _is_seen(outline.piece, x, log_weight, list(masses), log_masses)
    # Panels are kept whole, as far as they have values.
    whole = np.repeat(keep.reshape(nodes.shape).any(axis=1), ORDER)
    keep |= whole
    with np.errstate(all="ignore"):
        keep &= np.isfinite(outline.piece.log_p(x)) & (loss.ravel() > -np.inf)
    if not np.isposinf(loss).all():
        keep &= np.isfinite(loss.ravel())
    number = np.flatnonzero(keep)
    beyond = swapped = (0.0, 0.0)
    if number.size:
        first, last = number[0] // ORDER, number[-1] // ORDER
        edges = [
            (float(lower[first]), float(upper[first])),
            (float(upper[last]), float(lower[last])),
        ]
        beyond, swapped = (
            _beyond(outline.piece, density, edges)
            for density in (outline.piece.log_p, outline.piece.log_q)
        )
    error = float(leftover.max())
    ends = panels.lower, panels.upper
    return Rule(x[keep], log_weight[keep], number, spread[keep], error, beyond, ends, swapped)


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


def _beyond(
    piece: SmoothPiece, density: RealFunction, edges: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Return about ∫ P|ℓ| and ∫ Pℓ² beyond edges, P falling there as from an inner place."""
    total = np.zeros(2)
    places = np.asarray(edges)
    with np.errstate(all="ignore"):
        logs = density(places.ravel()).reshape(places.shape)
        falls = np.nan_to_num(logs[:, 1] - logs[:, 0])
        losses = np.abs(np.asarray(piece.loss(places[:, 0])))
    rows = zip(edges, logs[:, 0].tolist(), falls.tolist(), losses.tolist(), strict=True)
    for (edge, inner), log_p, fall, loss in rows:
        room = edge - piece.lower if edge < inner else piece.upper - edge
        length = abs(edge - inner) / max(0.5, fall)
        first = math.exp(min(log_p, 700.0)) * min(room, length) * loss if room > 0 else 0.0
        if math.isfinite(first * loss):
            total += first, first * loss
    return float(total[0]), float(total[1])
