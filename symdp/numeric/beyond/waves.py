"""Far waves of a loss, thousands of outputs with the same losses again, in few nodes.

What nodes are for is Σ pⱼ e^{zℓⱼ}. On a stretch of losses of half width r, Gauss's rule of 16
nodes for the measure Σ pⱼ δ(ℓⱼ) itself has their first 32 moments, and positive weights. It errs on
e^{zℓ} by 4e-45 |zr|³² of the mass at most: by rounding where |zr| is 7.2 m^{−1/32}, m that mass.

Nodes near the bulk of the mass stay as they are, on their panels, from which the decay of |φ| is
bounded; of the others their mass, which is small, is the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from symdp.numeric.panels import ORDER, PieceNodes
from symdp.numeric.step import Array, Index


def condensed(nodes: PieceNodes, masses: Mapping[float, float], frequency: float) -> PieceNodes:
    """Return fewer nodes with the same sums at every tilt of `masses` and frequency below one."""
    is_far = _is_far(nodes, masses)
    loss = nodes.loss[is_far]
    steepest = max(abs(tilt) for tilt in masses)
    size = max(math.hypot(steepest, frequency), 1.0)
    half_width = 0.45 * ORDER / size
    replaced, count = _full_cells(loss, half_width)
    far = np.flatnonzero(is_far)[replaced]
    if not count.size:
        return nodes
    first = np.cumsum(count) - count
    log_weight = nodes.log_weight[far]
    new_loss, new_log_weight = _gauss_rules(nodes.loss[far], log_weight, first, count)
    log_height = log_weight - nodes.log_spread[far]
    highest = np.maximum.reduceat(log_height, first)
    new_log_spread = new_log_weight - highest[:, None]
    kept = np.ones(nodes.loss.size, dtype=bool)
    kept[far] = False
    # Each with a panel of its own, which is never whole.
    beyond_last = int(nodes.number.max()) // ORDER + 1
    number = ORDER * (beyond_last + np.arange(new_loss.size))
    x = np.repeat(nodes.x[far[first]], ORDER)

    def joined(values: Array, new_values: Array) -> Array:
        return np.concatenate([values[kept], new_values.ravel()])

    return replace(
        nodes,
        loss=joined(nodes.loss, new_loss),
        log_weight=joined(nodes.log_weight, new_log_weight),
        number=np.concatenate([nodes.number[kept], number]),
        log_spread=joined(nodes.log_spread, new_log_spread),
        x=joined(nodes.x, x),
    )


def rules_of_losses(loss: Array, weight: Array, half_width: float) -> tuple[Array, Array]:
    """Return fewer losses with the same sums, and their weights, cell by cell."""
    has_mass = weight > 0.0
    loss = loss[has_mass]
    weight = weight[has_mass]
    replaced, count = _full_cells(loss, half_width)
    if not count.size:
        return loss, weight
    first = np.cumsum(count) - count
    new_loss, new_log = _gauss_rules(loss[replaced], np.log(weight[replaced]), first, count)
    is_kept = np.ones(loss.size, dtype=bool)
    is_kept[replaced] = False
    all_losses = np.concatenate([loss[is_kept], new_loss.ravel()])
    return all_losses, np.concatenate([weight[is_kept], np.exp(new_log).ravel()])


def _full_cells(loss: Array, half_width: float) -> tuple[Index, Index]:
    """Return the losses in cells that hold many, cell by cell, and how many each holds."""
    cell = np.floor(loss / (2.0 * half_width))
    order = np.argsort(cell, kind="stable")
    _, count = np.unique(cell, return_counts=True)
    is_full = count >= 4 * ORDER
    is_replaced = np.repeat(is_full, count)
    return order[is_replaced], count[is_full]


def _is_far(nodes: PieceNodes, masses: Mapping[float, float]) -> Array:
    """Return which nodes lie on the panels of the least mass under all tilts."""
    share = np.zeros(nodes.loss.size)
    for tilt, log_mass in masses.items():
        with np.errstate(over="ignore", invalid="ignore"):
            log_share = nodes.log_weight + tilt * nodes.loss - log_mass
            of_tilt = np.exp(log_share)
        np.fmax(share, of_tilt, out=share)
    panel = nodes.number // ORDER
    panel -= panel.min()
    of_panels = np.bincount(panel, share)
    by_mass = np.argsort(of_panels)
    cumulated = np.cumsum(of_panels[by_mass])
    far_mass = 2.0**-20  # of all mass: their share of |φ| is bounded by no more than it
    number = int(np.searchsorted(cumulated, far_mass))
    is_light = np.zeros(of_panels.size, dtype=bool)
    is_light[by_mass[:number]] = True
    return np.asarray(is_light[panel])


def _gauss_rules(loss: Array, log_weight: Array, first: Index, count: Index) -> tuple[Array, Array]:
    """Return losses and log weights of Gauss's rules for the points of each cell (Stieltjes)."""
    top = np.maximum.reduceat(log_weight, first)
    weight = np.exp(log_weight - np.repeat(top, count))
    low = np.minimum.reduceat(loss, first)
    high = np.maximum.reduceat(loss, first)
    middle = 0.5 * (low + high)
    half = np.maximum(0.5 * (high - low), 1e-300)
    distance = loss - np.repeat(middle, count)
    u = distance / np.repeat(half, count)
    matrix = np.zeros((count.size, ORDER, ORDER))
    before = np.zeros(u.size)
    polynomial = np.ones(u.size)
    total = np.add.reduceat(weight, first)
    norm = total
    for degree in range(ORDER):
        squares = weight * polynomial * polynomial
        centre = np.add.reduceat(squares * u, first) / norm
        matrix[:, degree, degree] = centre
        distance = u - np.repeat(centre, count)
        following = distance * polynomial
        if degree:
            square = matrix[:, degree, degree - 1] ** 2
            following -= np.repeat(square, count) * before
        before = polynomial
        polynomial = following
        next_norm = np.add.reduceat(weight * polynomial * polynomial, first)
        if degree + 1 < ORDER:
            ratio = np.sqrt(next_norm / norm)
            matrix[:, degree + 1, degree] = ratio
            matrix[:, degree, degree + 1] = ratio
        norm = np.maximum(next_norm, 1e-300)
    places, vectors = np.linalg.eigh(matrix)
    share = vectors[:, 0, :] ** 2
    with np.errstate(divide="ignore"):
        log_share = np.log(share)
    new_loss = middle[:, None] + half[:, None] * places
    log_total = top + np.log(total)
    return new_loss, log_total[:, None] + log_share
