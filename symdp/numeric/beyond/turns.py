"""Where the loss of a piece turns, and panels on which it is monotone.

On the panels of a quadrature that resolves P e^{tℓ} and ℓP e^{tℓ}, ℓ is as
smooth as a polynomial: between two neighbouring nodes it turns once at the most. A turn therefore
shows as a change of direction between three nodes, and is found there as the zero of ℓ′.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from symdp.numeric.elementary import distinct
from symdp.numeric.outline import Outline
from symdp.numeric.panels import Probe, first_edges, gauss_legendre, settled_panels
from symdp.numeric.step import Array, SmoothPiece
from symdp.tolerances import LOSS_ROUNDED

_IMAGINARY = 1e-30  # an imaginary step this small differentiates without cancellation
_HALVINGS = 100  # of a bracket, down to neighbouring doubles


@dataclass(frozen=True)
class MonotoneGrid:
    """Where a piece carries mass, its losses ℓ at x there, and where they turn."""

    edges: Array  # of the panels, rising
    x: Array
    loss: Array
    turns: Array  # where ℓ turns from rising to falling or back, between places of x


def monotone_grid(outline: Outline, masses: Mapping[float, float]) -> MonotoneGrid | None:
    """Return the grid on which the loss is monotone; None where the piece carries no mass."""
    piece = outline.piece
    tilts = list(masses)
    log_masses = np.asarray(list(masses.values()))
    first = first_edges(outline, tilts, log_masses)
    if first.size == 0:
        return None
    probe = Probe(piece, tilts, log_masses, 0.0)
    settled = settled_panels(probe, first, may_cancel=True)
    assert settled is not None
    panels, _ = settled
    edges = distinct(np.concatenate([panels.lower, panels.upper]))
    nodes, _ = gauss_legendre(edges[:-1], edges[1:])
    x = distinct(np.concatenate([edges, nodes.ravel()]))
    with np.errstate(all="ignore"):
        loss = np.real(piece.loss(x))
    is_usable = np.isfinite(loss)
    x = x[is_usable]
    loss = loss[is_usable]
    return MonotoneGrid(edges, x, loss, _turning_places(piece, x, loss))


def _turning_places(piece: SmoothPiece, x: Array, loss: Array) -> Array:
    """Return where the loss rises, then falls or the reverse by more than losses there round."""
    rise = np.diff(loss)
    absolute = np.abs(loss)
    loss_size = np.fmax(absolute[1:], absolute[:-1])
    clear = np.flatnonzero(np.abs(rise) > LOSS_ROUNDED * loss_size)
    signs = np.sign(rise[clear])
    change = np.flatnonzero(signs[:-1] != signs[1:])
    low = x[clear[change]]
    high = x[clear[change + 1] + 1]
    sign_before = signs[:-1][change]
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not ((middle > low) & (middle < high)).any():
            break
        _, slope = value_and_slope(piece, middle)
        is_before_turn = np.sign(slope) == sign_before
        low = np.where(is_before_turn, middle, low)
        high = np.where(is_before_turn, high, middle)
    return low


def value_and_slope(piece: SmoothPiece, x: Array) -> tuple[Array, Array]:
    """Return ℓ and ℓ′ = Im ℓ(x + ih)/h, which does not cancel however small h is."""
    step = _IMAGINARY * np.maximum(np.abs(x), 1.0)
    with np.errstate(all="ignore"):
        value = np.asarray(piece.loss(x + 1j * step))
    return np.real(value), np.imag(value) / step
