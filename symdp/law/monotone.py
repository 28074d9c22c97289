"""Places between neighbours of which a loss is monotone, where its turning points are not derived.

On the panels of a quadrature that resolves P e^{tℓ} and ℓP e^{tℓ}, ℓ is as smooth as a polynomial:
between two neighbouring nodes it turns once at the most. A turn therefore shows as a change of
direction between three nodes, and is found there as the zero of ℓ′.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from symdp.law.elementary import distinct
from symdp.law.outline import Outline
from symdp.law.panels import build_panels
from symdp.law.probe import gauss_legendre
from symdp.law.step import Array, SmoothPiece

_IMAGINARY = 1e-30  # an imaginary step this small differentiates without cancellation
_FLAT = 1e-14  # changes of the loss below this, relative to its size, are rounding
_HALVINGS = 100  # of a bracket, down to neighbouring doubles


@dataclass(frozen=True)
class MonotoneGrid:
    """Where a piece carries mass, its losses there, and where they turn.

    Attributes
    ----------
    edges
        Of the panels, rising.
    x, loss
        Edges and nodes of the panels, and ℓ there.
    turns
        Where ℓ turns from rising to falling or back, between places of x.
    """

    edges: Array
    x: Array
    loss: Array
    turns: Array


def monotone_grid(outline: Outline, masses: Mapping[float, float]) -> MonotoneGrid | None:
    """Return the grid on which the loss is monotone; None where the piece carries no mass.

    Parameters
    ----------
    outline
        The piece, with the modes under all tilts that are asked.
    masses
        Tilts, each with the log of the whole law's mass under it to within a few units.
    """
    panels, _ = build_panels([(outline, masses)], 0.0)
    if panels is None:
        return None
    edges = distinct(np.concatenate([panels.lower, panels.upper]))
    nodes, _ = gauss_legendre(edges[:-1], edges[1:])
    x = distinct(np.concatenate([edges, nodes.ravel()]))
    with np.errstate(all="ignore"):
        loss = np.real(outline.piece.loss(x))
    usable = np.isfinite(loss)
    x, loss = x[usable], loss[usable]
    return MonotoneGrid(edges, x, loss, _turns(outline.piece, x, loss))


def _turns(piece: SmoothPiece, x: Array, loss: Array) -> Array:
    """Return the places where the loss turns from rising to falling or back."""
    rise = np.diff(loss)
    clear = np.flatnonzero(np.abs(rise) > _FLAT * np.abs(loss).max(initial=0.0))
    before, after = np.sign(rise[clear][:-1]), np.sign(rise[clear][1:])
    change = np.flatnonzero(before != after)
    low, high, side = x[clear[change]], x[clear[change + 1] + 1], before[change]
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not ((middle > low) & (middle < high)).any():
            break
        rises = np.sign(value_and_slope(piece, middle)[1]) == side
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return low


def value_and_slope(piece: SmoothPiece, x: Array) -> tuple[Array, Array]:
    """Return ℓ and ℓ′ = Im ℓ(x + ih)/h, which does not cancel however small h is."""
    step = _IMAGINARY * np.maximum(np.abs(x), 1.0)
    with np.errstate(all="ignore"):
        value = np.asarray(piece.loss(x + 1j * step))
    return np.real(value), np.imag(value) / step
