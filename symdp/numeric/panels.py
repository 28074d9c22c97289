"""Adaptive Gauss–Legendre panels that resolve a density under several tilts at once.

A panel is accepted when its 16-point rule agrees with the two rules on its halves, for the tilted
densities at every asked tilt and for their oscillation at the highest asked frequency. Panels start
around every mode of every term of the densities and grow geometrically outwards, so that neither a
far narrow peak nor a heavy tail is missed.

**Where doubles cancel**, log P and ℓ are Legendre series through few balls at exact places. A place
is told by its distance from the middle of its panel, which is exact however far that is from 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from symdp.capacity import BLOCK, afford
from symdp.errors import AccuracyError
from symdp.numeric.elementary import distinct, lightest
from symdp.numeric.outline import (
    NEGLIGIBLE,
    Outline,
    log_row_sums,
    tilted,
    tilted_each,
    tilted_log_density,
)
from symdp.numeric.step import Array, Index, RealFunction, SmoothPiece, rounded

ROUNDS = 120  # halvings of a panel
MAX_NODES = 1 << 21  # of a piece: some ten seconds
PANEL_TOLERANCE = 1e-16  # relative to a piece: an error below rounding
_SMALLEST = 1e-290  # of a total: PANEL_TOLERANCE of it is about the smallest normal double
_SHORTEST = 1e-303  # halves of it would soon be no doubles
_ARRAYS = 12.0  # of the size of all nodes, held at once
_LOOKED_AT = 60  # panels of many that have not settled, to see whether rounding is why
_LOST = 64.0  # times the usual rounding: more digits are worth their time
_VAGUE = 2.0**-7  # of a panel's mass: rules that differ by less err 2^32 times less on halves
# words of a refusal
_TOO_FAST = "the density or its loss oscillates too fast to integrate"
_EPS = np.finfo(float).eps  # relative error of a node for each rounding of its values
_FEW_ROUNDINGS = 2.0  # that every value has


@dataclass(frozen=True)
class PieceNodes:
    """Nodes of one piece: losses and log weights under P, and the disagreement that was left.

    `number` counts nodes from left to right, ORDER to a panel, those left out included (−1 for an
    atom), and `log_spread` is the log of the stretch of losses that a node stands for, its weight
    times |ℓ′|. `beyond` is about ∫ P|ℓ| and ∫ Pℓ² over the tails that were cut off,
    `beyond_reversed` the same under Q, and `panels` are the ends of the panels, whose halves have
    the nodes, at the places `x`. `rounded` is that part of the error that losses and masses have as
    they are rounded. `kinks` has the ends of losses that nodes stand for many of, and what a payoff
    with a kink between them adds to the error: a row each.
    """

    loss: Array
    log_weight: Array
    number: Index
    log_spread: Array
    error: float
    beyond: tuple[float, float] = (0.0, 0.0)
    panels: tuple[Array, Array] | None = None
    beyond_reversed: tuple[float, float] = (0.0, 0.0)
    x: Array = field(default_factory=lambda: np.empty(0))
    kinks: Array = field(default_factory=lambda: np.empty((3, 0)))
    rounded: float = 0.0

    @classmethod
    def atoms(cls, loss: Array, log_weight: Array, off: float = 1.0) -> PieceNodes:
        """Return single losses, whose values are off by so many roundings."""
        number = np.full(loss.size, -1, dtype=np.intp)
        return cls(
            loss,
            log_weight,
            number,
            np.full(loss.size, -np.inf),
            rounding(off),
            rounded=rounding(off),
        )


def rounding(off: float) -> float:
    """Return the error that roundings beyond a few leave."""
    return float(_EPS * max(off - _FEW_ROUNDINGS, 0.0))


def _agree(whole: Panels, parts: Array, totals: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return whether each panel's rule agrees with its parts' sum, and the disagreement."""
    difference = np.abs(whole.integrals - parts)
    tolerance = PANEL_TOLERANCE * totals[:, :, None]
    is_small = difference <= tolerance + whole.noise
    agrees = np.asarray(is_small.all(axis=(0, 1)))
    return agrees, difference.max(axis=0)


def _totals(*several: Panels) -> Array:
    """Return what a disagreement is small beside: a row for each test, of one for each tilt.

    Where most losses are small and rare ones make up K, it is their own size that counts.
    """
    sums = [np.abs(panels.integrals).sum(axis=2) for panels in several]
    all_sums = np.sum(sums, axis=0)
    mass = np.maximum(all_sums[0], 1.0)
    totals = np.broadcast_to(mass, sums[0].shape).copy()
    totals[1] = np.clip(all_sums[1], _SMALLEST, mass)
    return totals


def settled_panels(probe: Probe, edges: Array, may_cancel: bool) -> tuple[Panels, Array] | None:
    """Return panels that agree with their halves, and what they miss; None if terms cancel."""
    trial = probe.evaluate(edges[:-1], edges[1:])
    totals = _totals(trial)
    done: Panels | None = None
    leftover = np.zeros(len(probe.tilts))
    for _ in range(ROUNDS):
        middle = 0.5 * (trial.lower + trial.upper)
        lower = np.concatenate([trial.lower, middle])
        upper = np.concatenate([middle, trial.upper])
        halves = probe.evaluate(lower, upper)
        is_finite = np.isfinite(trial.integrals).all() and np.isfinite(halves.integrals).all()
        if not is_finite:
            raise AccuracyError("a tilted density is far larger than on the places looked at first")
        lost = np.ones_like(trial.noise)
        if middle.size > MANY_PANELS:
            sample = slice(None, None, middle.size // _LOOKED_AT)
            some_lost = probe.cancelled(trial.lower[sample], trial.upper[sample])
            most = some_lost.max(axis=1)
            is_lost = bool(most.max() > _LOST)
            if is_lost:
                lost = probe.cancelled(trial.lower, trial.upper)
                mass = np.abs(trial.integrals[0])
                share = mass / totals[0][:, None]
                lost_here = np.where(lost > _LOST, lost, 0.0)
                of_all = (lost_here * share).sum(axis=1)
                if float(of_all.max()) > 1.0 and not may_cancel:
                    return None
            else:
                lost = most[:, None] * lost
            trial.noise *= lost
        first = np.arange(middle.size)
        left = halves.take(first)
        right = halves.take(first + middle.size)
        good, difference = _agree(trial, left.integrals + right.integrals, totals)
        length = trial.upper - trial.lower
        good |= (middle <= trial.lower) | (middle >= trial.upper)
        good |= length < 1e-15 * np.abs(middle)
        good |= length < _SHORTEST
        # Noise is no error of the rule: what rounding takes is counted with the nodes.
        is_vague = trial.noise > _VAGUE * np.abs(trial.integrals[0])
        explained_share = np.where(is_vague | (lost > _LOST), -1.0, 1.0 / lost)
        unexplained = np.maximum(difference - explained_share * trial.noise, 0.0)
        # Rules on halves miss 2^−32 of that of smooth functions.
        leftover += 2.0**-6 * unexplained[:, good].sum(axis=1)
        accepted = trial.take(np.flatnonzero(good))
        done = accepted if done is None else done.join(accepted)
        if good.all():
            return done, leftover / totals[0]
        bad = np.flatnonzero(~good)
        room = 0.5 * (ORDER * MANY_PANELS - done.lower.size)
        if bad.size > room:
            waiting = trial.take(bad)
            mass = np.abs(waiting.integrals[0])
            least_total = np.minimum(totals[0], totals[1])
            share = mass / least_total[:, None]
            is_left = lightest(share, np.ones(bad.size), room)
            # A rule has positive weights: it errs by what it finds and what is there at most.
            leftover += 2.0 * mass[:, is_left].sum(axis=1)
            done = done.join(waiting.take(np.flatnonzero(is_left)))
            bad = bad[~is_left]
            if not bad.size:
                return done, leftover / totals[0]
        trial = left.take(bad).join(right.take(bad))
        panel_count = done.lower.size + trial.lower.size
        if panel_count * ORDER > MAX_NODES:
            raise AccuracyError(_TOO_FAST)
        totals = _totals(done, trial)
    raise AccuracyError("the quadrature of the density did not settle")


def _merge(probe: Probe, panels: Panels) -> Panels:
    """Join neighbouring panels wherever one rule does the work of two."""
    totals = _totals(panels)
    panels = panels.take(np.argsort(panels.lower))
    untried = np.ones(panels.lower.size - 1, dtype=bool)  # each panel with its right neighbour
    while untried.any():
        first = np.flatnonzero(untried)
        second = first + 1
        wide = probe.evaluate(panels.lower[first], panels.upper[second])
        parts = panels.integrals[..., first] + panels.integrals[..., second]
        good, _ = _agree(wide, parts, totals)
        chosen: list[int] = []  # of those that were tried, none next to another one
        for k in np.flatnonzero(good).tolist():
            if not chosen or first[k] > first[chosen[-1]] + 1:
                chosen.append(k)
        joined = first[chosen]
        is_kept = np.ones(panels.lower.size, dtype=bool)
        is_kept[joined] = False
        is_kept[joined + 1] = False
        unjoined = panels.take(np.flatnonzero(is_kept))
        chosen_panels = wide.take(np.asarray(chosen, dtype=np.intp))
        panels = unjoined.join(chosen_panels)
        panels = panels.take(np.argsort(panels.lower))
        untried = np.zeros(panels.lower.size - 1, dtype=bool)
        index = joined - np.arange(joined.size)
        to_the_right = index[index < untried.size]
        to_the_left = index[index > 0] - 1
        untried[to_the_right] = True
        untried[to_the_left] = True
    return panels


def build_panels(
    outline: Outline, masses: Mapping[float, float], frequency: float
) -> tuple[Panels | None, Array]:
    """Return settled panels, as few as serve, and their leftover errors; None of no mass."""
    settled = _panels_of_piece(outline, masses, frequency)
    if settled is None:
        return None, np.zeros(1)
    _, panels, leftover = settled
    return panels, leftover


def build_rule(outline: Outline, masses: Mapping[float, float], frequency: float) -> PieceNodes:
    """Return nodes that integrate P·e^{(t+iy)ℓ} beside the mass of every tilt, |y| ≤ frequency."""
    turns_often = False
    if frequency > 0:
        log_masses = np.asarray(list(masses.values()))
        shells = outline.shells(list(masses))
        has_mass = (shells > log_masses[:, None] - NEGLIGIBLE).any(axis=0)
        loss = outline.loss[has_mass & np.isfinite(outline.loss)]
        radians = frequency * float(np.abs(np.diff(loss)).sum())
        turns_often = radians > MANY_PANELS * ORDER / 3
    settled = _panels_of_piece(outline, masses, 0.0 if turns_often else frequency)
    if settled is None:
        return PieceNodes.atoms(np.empty(0), np.empty(0))
    piece, panels, leftover = settled
    ends = (panels.lower, panels.upper)
    if turns_often:
        ends, left_mass = _parted(piece, panels, masses, frequency)
        leftover = leftover + left_mass
    with np.errstate(all="ignore"):
        mass = np.exp(outline.shells([0.0])[0])
        usual_loss = float(np.nansum(mass * np.abs(bounded(outline.loss))) / np.nansum(mass))
    return _nodes_of_panels(piece, ends, leftover, masses, usual_loss=usual_loss)


def _parted(
    piece: SmoothPiece, panels: Panels, masses: Mapping[float, float], frequency: float
) -> tuple[tuple[Array, Array], float]:
    """Return panels that resolve e^{iyℓ} as well, |y| ≤ frequency, from those that resolve P.

    The number is twice the share of mass on those that need not, where they are too many.

    The rule of 16 nodes errs on e^{iθu}, |u| ≤ 1, by 2.7e-45 θ³² [Abramowitz and Stegun 25.4.30]:
    by 8e-18 where θ = yℓ′ per half a width is at most 7.2, and by as much of all mass where it is
    at most 7.2 m^{−1/32} on a panel of mass m.
    """
    mass = np.abs(panels.integrals[0]).max(axis=0)
    allowed = 0.45 * ORDER * np.clip(mass, PANEL_TOLERANCE, 1.0) ** (-1.0 / (2 * ORDER))
    stretches = 16  # of a panel, each with a steepest loss of its own
    shares = np.linspace(0.0, 1.0, stretches + 1)
    length = (panels.upper - panels.lower)[:, None]
    edges = panels.lower[:, None] + length * shares
    edges[:, -1] = panels.upper
    lower = edges[:, :-1].ravel()
    upper = edges[:, 1:].ravel()
    nodes, weights = gauss_legendre(lower, upper)
    with np.errstate(all="ignore"):
        values = piece.values(nodes.ravel())
        steepest = np.abs(values[2].reshape(nodes.shape) @ DERIVATIVE.T).max(axis=1)
        log_weight = np.log(weights.ravel())
    log_masses = np.asarray(list(masses.values()))
    has_mass = _is_seen(values, log_weight, list(masses), log_masses).reshape(nodes.shape)
    turn = frequency * np.nan_to_num(steepest, posinf=0.0) * has_mass.any(axis=1)
    # Half a panel has the nodes.
    count = np.ceil(0.5 * turn / np.repeat(allowed, stretches))
    count = np.maximum(count, 1.0)
    of_panels = count.reshape(-1, stretches).sum(axis=1)
    is_left = np.zeros(of_panels.size, dtype=bool)
    left_mass = 0.0
    # Of so many those of hardly any mass need not be resolved.
    if of_panels.sum() > ORDER * MANY_PANELS:
        all_mass = np.abs(panels.integrals[0])
        share = all_mass / all_mass.sum(axis=1, keepdims=True)
        is_left = lightest(share, of_panels, ORDER * MANY_PANELS)
        left_shares = share[:, is_left].sum(axis=1)
        left_mass = 2.0 * float(left_shares.max())
    is_stretch_left = np.repeat(is_left, stretches)
    count = count[~is_stretch_left]
    lower = lower[~is_stretch_left]
    upper = upper[~is_stretch_left]
    if 1.4 * ORDER * float(count.sum()) > MAX_NODES:
        raise AccuracyError(_TOO_FAST)
    parts = count.astype(np.intp)
    parent = np.repeat(np.arange(parts.size), parts)
    first = np.cumsum(parts) - parts
    number = np.arange(parent.size) - first[parent]
    width = ((upper - lower) / parts)[parent]
    all_lower = lower[parent] + width * number
    all_upper = np.append(all_lower[1:], 0.0)
    last = first + parts - 1
    all_upper[last] = upper
    all_lower = np.concatenate([all_lower, panels.lower[is_left]])
    all_upper = np.concatenate([all_upper, panels.upper[is_left]])
    order = np.argsort(all_lower)
    return (all_lower[order], all_upper[order]), left_mass


def _panels_of_piece(
    outline: Outline, masses: Mapping[float, float], frequency: float
) -> tuple[SmoothPiece, Panels, Array] | None:
    """Return panels that settled and what they miss, by series through balls if terms cancel.

    The piece is returned with the series of log P and ℓ that they needed.
    """
    piece = outline.piece
    tilts = list(masses)
    log_masses = np.asarray(list(masses.values()))
    key = tuple(masses.items())
    edges = outline.edges.get(key)
    if edges is None:
        edges = first_edges(outline, tilts, log_masses)
        outline.edges[key] = edges
    if edges.size == 0:
        return None
    probe = Probe(piece, tilts, log_masses, frequency)
    settled = settled_panels(probe, edges, may_cancel=False)
    if settled is None:
        piece = interpolated(piece, edges) or piece
        probe = replace(probe, piece=piece)
        settled = settled_panels(probe, edges, may_cancel=True)
    assert settled is not None
    panels, leftover = settled
    return piece, _merge(probe, panels), leftover


def guided_rule(
    piece: SmoothPiece, edges: Array, masses: Mapping[float, float], frequency: float
) -> PieceNodes | None:
    """Return nodes from panels of what is much alike, None where mass lies beyond them."""
    log_masses = np.asarray(list(masses.values()))
    probe = Probe(piece, list(masses), log_masses, frequency)
    settled = settled_panels(probe, edges, may_cancel=False)
    if settled is None:
        return None
    panels, leftover = settled
    panels = panels.take(np.argsort(panels.lower))
    nodes = _nodes_of_panels(piece, (panels.lower, panels.upper), leftover, masses, 4)
    last = 2 * ORDER * panels.lower.size - 1
    reaches_first = (nodes.number[:1] == 0).any()
    reaches_last = (nodes.number[-1:] == last).any()
    if edges[0] > piece.lower and reaches_first:
        return None
    if edges[-1] < piece.upper and reaches_last:
        return None
    return nodes


def log_masses_on(piece: SmoothPiece, edges: Array, tilts: Sequence[float]) -> Array:
    """Return log ∫ P e^{tℓ} between edges of panels for several tilts, but for their errors."""
    x, weight = gauss_legendre(edges[:-1], edges[1:])
    with np.errstate(all="ignore"):
        log_densities = tilted(*piece.values(x.ravel()), tilts)
        rows = log_densities + np.log(weight.ravel())
    return log_row_sums(rows)


def _nodes_of_panels(
    piece: SmoothPiece,
    ends: tuple[Array, Array],
    leftover: Array,
    masses: Mapping[float, float],
    balls: int | None = None,
    usual_loss: float = 0.0,
) -> PieceNodes:
    # Of the two rules that agreed, to rounding, the finer one: its own error is far below that.
    left, right = ends
    middle = 0.5 * (left + right)
    lower = np.stack([left, middle], axis=1).ravel()
    upper = np.stack([middle, right], axis=1).ravel()
    nodes, weights = gauss_legendre(lower, upper)
    x = nodes.ravel()
    weight = weights.ravel()
    tilts = list(masses)
    log_masses = np.asarray(list(masses.values()))
    afford(_ARRAYS * x.size, "the nodes of the loss", REMEDY)
    with np.errstate(all="ignore"):
        values = piece.values(x)
        loss = values[2].reshape(nodes.shape)
        # Per unit of a panel's half width, which is in the weights as well.
        slope = loss @ DERIVATIVE.T
        spread = np.log(np.abs(slope) * WEIGHTS).ravel()
        log_weight = np.log(weight)  # of panels next to 0 some are no doubles
    keep = _is_seen(values, log_weight, tilts, log_masses)
    # Panels are kept whole, as far as they have values.
    is_panel_kept = keep.reshape(nodes.shape).any(axis=1)
    keep |= np.repeat(is_panel_kept, ORDER)
    keep &= np.isfinite(values[0])
    keep &= values[2] > -np.inf
    if not np.isposinf(loss).all():
        keep &= np.isfinite(loss.ravel())
    number = np.flatnonzero(keep)
    beyond = (0.0, 0.0)
    beyond_reversed = (0.0, 0.0)
    if number.size:
        first = number[0] // ORDER
        last = number[-1] // ORDER
        first_edges_inward = (float(lower[first]), float(upper[first]))
        last_edges_inward = (float(upper[last]), float(lower[last]))
        edges = [first_edges_inward, last_edges_inward]
        beyond = _moments_beyond(piece, piece.log_p, edges)
        beyond_reversed = _moments_beyond(piece, piece.log_q, edges)
    x = x[keep]
    doubles = values[0][keep], values[2][keep]
    # Of the masses under the tilts at the ends and 0, and of E|L|.
    with np.errstate(all="ignore"):
        log_mass_of_nodes = doubles[0] + log_weight[keep]
        shares = [np.exp(log_mass_of_nodes) * np.abs(doubles[1])]
        for tilt in {min(tilts), min(tilts, key=abs), max(tilts)}:
            shares.append(np.exp(log_mass_of_nodes + tilt * doubles[1] - masses[tilt]))
    log_p, losses, roundings = piece.accurate(x, balls, doubles, usual_loss, shares)
    if roundings > _LOST:  # too many to ask a ball of each
        all_edges = distinct(np.concatenate(ends))
        smooth = interpolated(piece, all_edges) or piece
        log_p, losses, roundings = smooth.accurate(x, usual_loss=usual_loss, shares=shares)
    rounded = rounding(roundings)
    error = float(leftover.max()) + rounded
    log_weight = log_p + log_weight[keep]
    if piece.off is not None and x.size:
        error += _mean_off(piece.off(x), log_weight, losses, tilts)
    return PieceNodes(
        loss=losses,
        log_weight=log_weight,
        number=number,
        log_spread=spread[keep],
        error=error,
        beyond=beyond,
        panels=ends,
        beyond_reversed=beyond_reversed,
        x=x,
        rounded=rounded,
    )


def _mean_off(off: Array, log_weight: Array, loss: Array, tilts: Sequence[float]) -> float:
    """Return the mean error of a density under the tilt at which it is largest."""
    exponent = log_weight + np.multiply.outer(np.asarray(tilts), loss)
    top = exponent.max(axis=1, keepdims=True)
    weight = np.exp(exponent - top)
    means = weight @ off / weight.sum(axis=1)
    return float(means.max())


def _is_seen(
    values: tuple[Array, Array, Array],
    log_weight: Array,
    tilts: Sequence[float],
    log_masses: Array,
) -> NDArray[np.bool_]:
    """Return whether each node has mass that is not negligible under some tilt."""
    seen = np.zeros(log_weight.size, dtype=bool)
    size = max(1, BLOCK // len(tilts))
    for start in range(0, log_weight.size, size):
        block = slice(start, start + size)
        log_p, log_q, loss = (value[block] for value in values)
        with np.errstate(invalid="ignore"):  # where there is no mass at all
            log_density = tilted(log_p, log_q, loss, tilts) - log_masses[:, None]
        log_share = log_density + log_weight[block]
        seen[block] = (log_share > -NEGLIGIBLE).any(axis=0)
    return seen


def _moments_beyond(
    piece: SmoothPiece, density: RealFunction, edges: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Return about ∫ P|ℓ| and ∫ Pℓ² beyond edges, P falling there as from an inner place."""
    first_moment = 0.0
    second_moment = 0.0
    places = np.asarray(edges)
    with np.errstate(all="ignore"):
        logs = density(places.ravel()).reshape(places.shape)
        falls = np.nan_to_num(logs[:, 1] - logs[:, 0])
        losses = np.abs(np.asarray(piece.loss(places[:, 0])))
    rows = zip(edges, logs[:, 0].tolist(), falls.tolist(), losses.tolist(), strict=True)
    for (edge, inner), log_p, fall, loss in rows:
        room = edge - piece.lower if edge < inner else piece.upper - edge
        if not room > 0:
            continue
        length = abs(edge - inner) / max(0.5, fall)
        density_at_edge = math.exp(min(log_p, 700.0))
        width = min(room, length)
        first = density_at_edge * width * loss
        second = first * loss
        if math.isfinite(second):
            first_moment += first
            second_moment += second
    return first_moment, second_moment


_DEEPEST = 1000  # −log₂ of the smallest shell next to a singularity at 0
_FINEST = -119  # log₂ of the smallest shell, as a share of a piece
SHELL_GROWTH = 2  # each shell is 2² times as wide as the one before it


def first_edges(outline: Outline, tilts: Sequence[float], log_masses: Array) -> Array:
    """Return the first panels' edges: geometric shells around each anchor where some mass lies."""
    piece = outline.piece
    if outline.x.size < 3:
        return np.asarray([piece.lower, piece.upper])
    ends = _ends_of_mass(outline, tilts, log_masses)
    if ends is None:
        return np.empty(0)
    low, high = ends
    edges = [np.asarray([low, high])]
    sides: list[tuple[float, float, Array]] = []
    places = []
    under = []
    for anchor in outline.anchors:
        if not low <= anchor <= high:
            continue
        edges.append(np.asarray([anchor]))
        inside = anchor
        if anchor in (low, high):
            inside = float(np.nextafter(anchor, 0.5 * (low + high)))
        seeing = sorted(tilts)
        if anchor not in outline.roots:  # tilts under which there may be mass around a mode
            log_p = tilted_log_density(piece, np.asarray([inside]), tilts)[:, 0]
            has_mass = log_p + math.log(high - low) > log_masses - NEGLIGIBLE
            seeing = sorted(np.asarray(tilts)[has_mass].tolist())
        if not seeing:
            continue
        # Down to the rounding of the anchor, too, however far a heavy tail reaches.
        finest = _FINEST
        if anchor != 0:
            log_share = math.floor(math.log2(abs(anchor) / (high - low)))
            finest = min(finest, log_share - 52)
        elif _is_heavy(piece, math.ldexp(high - low, finest), tilts, log_masses):
            finest = -_DEEPEST - math.ceil(math.log2(high - low))
        # No power of two by itself may vanish.
        offsets = np.ldexp(high - low, np.arange(finest, 1))
        for side in (-1.0, 1.0):
            x = anchor + side * offsets
            is_within = (x > low) & (x < high)
            if not is_within.any():
                continue
            sides.append((anchor, side, offsets[is_within]))
            places += [np.asarray([inside]), x[is_within]]
            place_count = 1 + int(is_within.sum())
            least_and_largest = [[seeing[0]], [seeing[-1]]]
            under.append(np.repeat(least_and_largest, place_count, axis=1))
    # The density at all of them at once: a call of it costs more than a place. Its logarithm is
    # linear in the tilt, so that what changes most does so under the least tilt or the largest.
    log_densities = np.empty(0)
    if places:
        with np.errstate(all="ignore"):
            values = piece.values(np.concatenate(places))
        tilts_there = np.concatenate(under, axis=1)
        log_densities = tilted_each(*values, tilts_there)
    first = 0
    for anchor, side, offsets in sides:
        stop = first + 1 + offsets.size
        at_anchor = log_densities[:, first : first + 1]
        away = log_densities[:, first + 1 : stop]
        first = stop
        with np.errstate(invalid="ignore"):
            drop = np.abs(away - at_anchor).max(axis=0)
        wide = np.flatnonzero(~(drop < 1.0))
        narrowest = offsets[wide[0]] if wide.size else offsets[-1]
        doublings = math.log2(high - low) - math.log2(narrowest)
        count = math.ceil(max(doublings, 0.0) / SHELL_GROWTH)
        sizes = np.ldexp(narrowest, SHELL_GROWTH * np.arange(count + 1))
        shells = anchor + side * sizes
        is_within = (shells > low) & (shells < high)
        edges.append(shells[is_within])
    inner_edges = distinct(np.concatenate(edges))
    is_apart = np.ones(inner_edges.size, dtype=bool)  # none inside that is next to another one
    gaps = np.diff(inner_edges)[:-1]
    rounding = 1e-13 * np.abs(inner_edges[1:-1])
    is_apart[1:-1] = gaps > rounding
    return inner_edges[is_apart]


def _ends_of_mass(
    outline: Outline, tilts: Sequence[float], log_masses: Array
) -> tuple[float, float] | None:
    """Return between which places all mass that counts lies, None where none does."""
    piece = outline.piece
    grid = outline.x
    is_essential = outline.shells(tilts) > log_masses[:, None] - NEGLIGIBLE
    essential = np.flatnonzero(is_essential.any(axis=0))
    if essential.size == 0:
        return None
    reaches_lower = essential[0] == 0
    reaches_upper = essential[-1] == grid.size - 1
    is_endless_left = reaches_lower and not np.isfinite(piece.lower)
    is_endless_right = reaches_upper and not np.isfinite(piece.upper)
    if is_endless_left or is_endless_right:
        raise AccuracyError(
            "the tail of the tilted density is too heavy to integrate: the tilt is too close to "
            "the end of the domain on which the moment generating function is finite"
        )
    low = piece.lower if reaches_lower else float(grid[essential[0] - 1])
    high = piece.upper if reaches_upper else float(grid[essential[-1] + 1])
    return low, high


def _is_heavy(piece: SmoothPiece, near: float, tilts: Sequence[float], log_masses: Array) -> bool:
    """Return whether there is mass still closer to 0 than a place near it."""
    both_sides = (-near, near)
    places = np.asarray([x for x in both_sides if piece.lower < x < piece.upper])
    if places.size == 0:
        return False
    with np.errstate(invalid="ignore"):
        log_density = tilted_log_density(piece, places, tilts)
        log_size = log_density + math.log(near)
    has_mass = log_size > log_masses[:, None] - NEGLIGIBLE
    return bool(has_mass.any())


ORDER = 16  # nodes of a panel: the usual balance of cost and accuracy
# On [−1, 1].
NODES, WEIGHTS = (a.astype(np.float64) for a in np.polynomial.legendre.leggauss(ORDER))
LARGE_LOSS = 100.0  # losses beyond this count as if they grew no more
MANY_PANELS = 1_000  # of so many that have not settled, rounding is measured
_FAR, _RESOLVED = 2.0**5, 2.0**40  # halves of an interval, that its middle is away from 0
_NO_MASS = -745.2  # an exponent whose exponential is no double above 0
_SOME = (2, 7, 8, 13)  # nodes of a panel at which rounding is measured
_ROUNDED = 4.0  # times the largest that is seen at a few nodes
# what a refusal says last
REMEDY = "use the method moments, or ask for another epsilon or delta"


# its polynomials
_LEGENDRE = np.polynomial.legendre
# From values at the nodes to the coefficients of their Legendre series, and to slopes there.
TO_LEGENDRE: Array = (
    _LEGENDRE.legvander(NODES, ORDER - 1) * WEIGHTS[:, None] * (np.arange(ORDER) + 0.5)
)
# of Legendre polynomials at the nodes
DERIVATIVE = _LEGENDRE.legval(NODES, _LEGENDRE.legder(TO_LEGENDRE.T)).T.astype(np.float64)


def gauss_legendre(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return nodes and weights, one row for each interval [lower, upper].

    Where an interval is short beside its distance from 0, its nodes are rounded by e_i, which the
    weights make up for: Σ w_i f(x_i + e_i) is Σ w_i f(x_i) + Σ w_i e_i f′(x_i), and f′ at the nodes
    is a matrix times the values.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what is no double is refused with its sum
        half = 0.5 * (upper - lower)
        middle = 0.5 * (upper + lower)
        offset = half[:, None] * NODES
        nodes = middle[:, None] + offset
        weights = half[:, None] * WEIGHTS
    is_far = np.abs(middle) > _FAR * half
    is_resolved = np.abs(middle) < _RESOLVED * half
    far = np.flatnonzero(is_far & is_resolved)
    if far.size:
        rounded_off = _sum_error(middle[far, None], offset[far], nodes[far])
        middle_error = _sum_error(lower[far], upper[far], 2.0 * middle[far])
        rounded_off += 0.5 * middle_error[:, None]
        shift = weights[far] * rounded_off / half[far, None]
        weights[far] += shift @ DERIVATIVE
    return nodes, weights


def _sum_error(a: Array, b: Array, total: Array) -> Array:
    """Return a + b − total exactly, of a sum that was rounded."""
    back = total - a
    return (a - (total - back)) + (b - back)


def bounded(loss: Array) -> Array:
    """Return a smooth function of the loss, about itself, that grows no more where it is large."""
    return np.asarray(loss / np.hypot(1.0, loss / LARGE_LOSS))


@dataclass
class Panels:
    """Intervals with their test integrals: (test function, tilt, interval), and rounding noise."""

    lower: Array
    upper: Array
    integrals: Array
    noise: Array

    def take(self, index: Index) -> Panels:
        """Return some of them."""
        return Panels(
            lower=self.lower[index],
            upper=self.upper[index],
            integrals=self.integrals[..., index],
            noise=self.noise[:, index],
        )

    def join(self, other: Panels) -> Panels:
        """Return these and others."""
        return Panels(
            np.concatenate([self.lower, other.lower]),
            np.concatenate([self.upper, other.upper]),
            np.concatenate([self.integrals, other.integrals], axis=-1),
            np.concatenate([self.noise, other.noise], axis=-1),
        )


@dataclass(frozen=True)
class Probe:
    """The tilted and oscillating functions that every panel must integrate."""

    piece: SmoothPiece
    tilts: Sequence[float]
    tops: Array
    frequency: float

    def evaluate(self, lower: Array, upper: Array) -> Panels:
        """Return panels with the integrals of each tilted density: plain, by ℓ, oscillating."""
        # Plain, by ℓ, two that oscillate, and the noise; twice, for what is joined or compared.
        arrays = 5.0 if self.frequency > 0 else 3.0
        afford(arrays * 2.0 * len(self.tilts) * lower.size, "the nodes of the loss", REMEDY)
        size = max(1, BLOCK // (ORDER * len(self.tilts)))
        blocks = []
        for start in range(0, max(lower.size, 1), size):
            block = slice(start, start + size)
            blocks.append(self._evaluated(lower[block], upper[block]))
        if len(blocks) == 1:
            return blocks[0]
        integrals = np.concatenate([block.integrals for block in blocks], axis=-1)
        noise = np.concatenate([block.noise for block in blocks], axis=-1)
        return Panels(lower, upper, integrals, noise)

    def cancelled(self, lower: Array, upper: Array) -> Array:
        """Return the rounding of log P + tℓ, in units of what is usual, by tilt and panel."""
        every = -(-lower.size // MANY_PANELS)
        nodes, _ = gauss_legendre(lower[::every], upper[::every])
        x = nodes[:, list(_SOME)].ravel()
        with np.errstate(all="ignore"):
            log_p, _, loss = self.piece.values(x)
            exact_log_p, exact_loss = self.piece.rounded(x)
            tilt_sizes = np.abs(np.asarray(self.tilts))
            reach = tilt_sizes[:, None] + self.frequency
            rounding_of_p = np.abs(log_p - exact_log_p)
            rounding_of_loss = np.abs(loss - exact_loss)
            rounding = rounding_of_p + reach * rounding_of_loss
            usual = 4.6e-16 * (2.0 + np.abs(log_p) + reach * np.abs(loss))
            ratio = np.nan_to_num(rounding / usual, nan=1.0, posinf=1.0)
        by_panel = ratio.reshape(len(self.tilts), -1, len(_SOME))
        highest = _ROUNDED * by_panel.max(axis=2)
        repeated = np.repeat(highest, every, axis=1)
        of_all_panels = repeated[:, : lower.size]
        return np.asarray(np.maximum(of_all_panels, 1.0))

    def _evaluated(self, lower: Array, upper: Array) -> Panels:
        x, weight = gauss_legendre(lower, upper)
        with np.errstate(all="ignore"):
            log_p, log_q, loss = self.piece.values(x.ravel())
            rows = tilted(log_p, log_q, loss, self.tilts)
            # Where losses are wide each place matters to few of the tilts.
            highest = (rows - self.tops[:, None]).max(axis=1)
            seen = np.flatnonzero(highest > _NO_MASS)
            rows = rows[seen]
            density = np.exp(rows - self.tops[seen, None])
        loss = loss.reshape(x.shape)
        loss = np.where(np.isfinite(loss), loss, 0.0)
        values = density.reshape(seen.size, *x.shape) * weight
        tests = [np.ones(loss.shape), bounded(loss)]
        if self.frequency > 0:
            phase = np.fmod(self.frequency * loss, 2 * np.pi)
            tests += [np.cos(phase), np.sin(phase)]
        # Rounding of the exponent log P + tℓ = log Q + (1 + t)ℓ (and of the phase yℓ) is a relative
        # error of the density that no refinement removes.
        tilts = np.asarray(self.tilts)[seen]
        tilt_sizes = np.minimum(np.abs(tilts), np.abs(1.0 + tilts))
        reach = tilt_sizes[:, None, None] + self.frequency
        loss_size = np.abs(loss)
        log_density_size = np.abs(rows).reshape(values.shape)
        exponent_size = log_density_size + reach * loss_size
        exponent = np.where(values > 0, exponent_size, 0.0)
        # The second test function is as large as the loss, and so is its rounding.
        test_size = 2.3e-16 * (1.0 + np.minimum(loss_size, LARGE_LOSS))
        noise = np.zeros((len(self.tilts), lower.size))
        rounding = 4.0 + 2.0 * exponent
        noise[seen] = np.einsum("tpn,tpn,pn->tp", values, rounding, test_size)
        integrals = np.zeros((len(tests), len(self.tilts), lower.size))
        integrals[:, seen] = np.einsum("kpn,tpn->ktp", np.stack(tests), values)
        return Panels(lower, upper, integrals, noise)


_SERIES_SETTLED = 2e-15  # of the largest value of a panel: what the last coefficients may be
_LAST_COEFFICIENTS = 3  # coefficients that must be small
_MOST_PANELS = 1 << 12  # of a series
_FIRST_PANELS = 64  # at first
_SERIES_ROUNDS = 40  # halvings


def interpolated(piece: SmoothPiece, edges: Array) -> SmoothPiece | None:
    """Return the piece with values from series between its edges; None where they do not settle."""
    series = _fitted_series(piece, edges)
    if series is None:
        return None
    lower, upper, coefficients = series
    order = np.argsort(lower)
    lower = lower[order]
    upper = upper[order]
    log_p_series, loss_series = coefficients[:, order]
    middle = 0.5 * (lower + upper)
    half = 0.5 * (upper - lower)
    only_p = bool(np.isposinf(piece.loss(middle)).all())

    def joint(x: Array) -> tuple[Array, ...]:
        index = np.searchsorted(lower, x, side="right") - 1
        panel = np.clip(index, 0, lower.size - 1)
        from_middle = (x - middle[panel]) / half[panel]
        u = np.clip(from_middle, -1.0, 1.0)
        log_p = _LEGENDRE.legval(u, log_p_series[panel].T, tensor=False)
        if only_p:
            return log_p, np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
        loss = _LEGENDRE.legval(u, loss_series[panel].T, tensor=False)
        return log_p, log_p - loss, loss

    return replace(
        piece,
        joint=joint,
        loss=lambda x: joint(x)[2],
        log_p=lambda x: joint(x)[0],
    )


def _fitted_series(piece: SmoothPiece, edges: Array) -> tuple[Array, Array, Array] | None:
    """Return panels and the coefficients of both: (function, panel, degree).

    Frequencies ask for finer panels than the functions: wide ones come first, and are halved.
    """
    stride = max(edges.size // _FIRST_PANELS, 1)
    wide_edges = np.append(edges[:-1:stride], edges[-1])
    lower = wide_edges[:-1]
    upper = wide_edges[1:]
    fitted: list[tuple[Array, Array, Array]] = []
    count = 0
    for _ in range(_SERIES_ROUNDS):
        count += lower.size
        if count > _MOST_PANELS:
            return None
        middle = 0.5 * (lower + upper)
        half = 0.5 * (upper - lower)
        values = np.empty((lower.size, ORDER, 2))
        centres = zip(middle.tolist(), half.tolist(), strict=True)
        for panel, (centre, width) in enumerate(centres):
            values[panel] = [rounded(piece.ball, centre, width * node) for node in NODES.tolist()]
        losses = values[..., 1]
        losses[np.isposinf(losses)] = 0.0
        coefficients = np.einsum("nk,pnf->fpk", TO_LEGENDRE, values)
        size = np.abs(values).max(axis=1).T
        size[0] = np.maximum(size[0], 1.0)  # of log P it is the difference that counts
        last_coefficients = np.abs(coefficients[..., -_LAST_COEFFICIENTS:])
        is_small = last_coefficients.max(axis=2) <= _SERIES_SETTLED * size
        good = is_small.all(axis=0)
        fitted.append((lower[good], upper[good], coefficients[:, good]))
        if good.all():
            lowers, uppers, series = zip(*fitted, strict=True)
            coefficients = np.concatenate(series, axis=1)
            return np.concatenate(lowers), np.concatenate(uppers), coefficients
        bad = ~good
        left_ends = np.concatenate([lower[bad], middle[bad]])
        upper = np.concatenate([middle[bad], upper[bad]])
        lower = left_ends
    return None
