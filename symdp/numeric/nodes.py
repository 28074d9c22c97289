"""The privacy loss of one step as a weighted set of points that serves a whole window of tilts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.numeric.outline import Outline, covering_tilts, tilted_log_density
from symdp.numeric.panels import NEGLIGIBLE, build_rule
from symdp.numeric.step import Array, SmoothPiece, Step

MAX_INTEGERS = 2_000_000


@dataclass(frozen=True)
class NodeSet:
    """Points ℓⱼ and log weights log pⱼ with Σ pⱼ e^{zℓⱼ} = M(z) on a window of tilts.

    `mass_at_infinity` is P(Q = 0); the pⱼ add up to one less it. `error` is the quadrature's own
    estimate of its relative error. `atomic` marks single values of positive probability, which no
    frequency averages out. `centred` and `mean` are ℓⱼ − μ and μ = E L, kept because K is
    only accurate relative to itself when built around the mean. Far tilts see only losses next to
    the end of the range, whose distance from it a difference from the mean would lose: their
    `origin` is that end, and `loss` and `centred` are ℓⱼ − origin. Such sets are `partial`: they
    leave out what only tilts nearer to 0 see.
    """

    loss: Array
    log_weight: Array
    weight: Array
    mean: float
    centred: Array
    mass_at_infinity: float
    atomic: NDArray[np.bool_]
    error: float
    origin: float | None = None
    partial: bool = False


def integer_nodes(piece: SmoothPiece, tilts: Sequence[float]) -> Array:
    """Return all integers of the piece on which some tilted mass function is not negligible."""
    offsets = np.unique(np.round(np.exp2(np.arange(0, 62, 0.125))))
    low, high = piece.lower, piece.upper
    finite = [e for e in (low, high) if np.isfinite(e)]
    anchors = finite if finite else [0.0]
    grid = np.unique(
        np.concatenate(
            [np.asarray([a + 0.0 * offsets, a + offsets, a - offsets]).ravel() for a in anchors]
        )
    )
    grid = grid[(grid >= low) & (grid <= high)]
    for _ in range(3):
        mass = (
            tilted_log_density(piece, grid, tilts) + np.log(np.maximum(np.gradient(grid), 1.0))
            if grid.size > 1
            else tilted_log_density(piece, grid, tilts)
        )
        peaks = grid[np.unique(mass.argmax(axis=1))]
        more = np.concatenate([np.concatenate([p + offsets, p - offsets]) for p in peaks])
        grid = np.unique(np.concatenate([grid, np.round(more)]))
        grid = grid[(grid >= low) & (grid <= high)]
    mass = tilted_log_density(piece, grid, tilts)
    if grid.size > 1:
        mass = mass + np.log(np.maximum(np.gradient(grid), 1.0))
    essential = np.flatnonzero((mass > mass.max(axis=1, keepdims=True) - NEGLIGIBLE).any(axis=0))
    first, last = grid[max(essential[0] - 1, 0)], grid[min(essential[-1] + 1, grid.size - 1)]
    if last - first > MAX_INTEGERS:
        raise AccuracyError(
            f"the mass function spreads over {last - first:.3g} integers; "
            f"at most {MAX_INTEGERS} are summed"
        )
    return np.arange(first, last + 1.0)


def _piece_nodes(
    outline: Outline, masses: Mapping[float, float], frequency: float, origin: float
) -> tuple[Array, Array, float]:
    """Return (ℓⱼ − origin, log weightⱼ, error) of one piece."""
    piece = outline.piece
    if piece.integer:
        x = integer_nodes(piece, list(masses))
        log_p, loss = piece.accurate(x, origin)
        log_weight, error = log_p, 0.0
    else:
        rule = build_rule(outline, masses, 0.0 if piece.flat else frequency)
        log_p, loss = piece.accurate(rule.x, origin)
        log_weight, error = log_p + rule.log_weight, rule.error
    if piece.flat and loss.size:
        top = log_weight.max()
        log_weight = np.asarray([top + np.log(np.exp(log_weight - top).sum())])
        loss = loss[:1]
    return loss, log_weight, error


def build_nodes(
    step: Step,
    outlines: Sequence[Outline],
    ends: Sequence[float],
    frequency: float,
    reference: NodeSet | None = None,
    origin: float | None = None,
) -> NodeSet:
    """Return the node set of a step for tilts between the ends and frequencies up to `frequency`.

    Where the ends leave tilt 0 out, mean and mass at infinity are those of a `reference` that does
    not, and the losses may be counted from an `origin`.

    Raises
    ------
    AccuracyError
        If a tail is too heavy for a tilt, or the weights do not add up to one.
    """
    escaping = [escapes(outline.piece) for outline in outlines]
    finite = [o for o, out in zip(outlines, escaping, strict=True) if not out]
    masses = covering_tilts(finite, ends) if finite else {}
    start = 0.0 if origin is None else origin
    losses, logs, error = [step.point_loss - start], [step.point_log_p], 0.0
    marks = [np.ones(step.point_loss.size, dtype=bool)]
    for outline, out in zip(outlines, escaping, strict=True):
        loss, log_weight, piece_error = _piece_nodes(
            outline, {0.0: 0.0} if out else masses, frequency, start
        )
        losses.append(loss)
        logs.append(log_weight)
        marks.append(np.full(loss.size, outline.piece.flat or outline.piece.integer))
        error = max(error, piece_error)
    loss, log_weight, atomic = np.concatenate(losses), np.concatenate(logs), np.concatenate(marks)
    infinite = np.isposinf(loss)
    escaped = float(np.exp(log_weight[infinite]).sum())
    loss, log_weight, atomic = loss[~infinite], log_weight[~infinite], atomic[~infinite]
    keep = np.isfinite(log_weight) & np.isfinite(loss)
    loss, log_weight, atomic = loss[keep], log_weight[keep], atomic[keep]
    order = np.argsort(loss)
    loss, log_weight, atomic = loss[order], log_weight[order], atomic[order]
    if reference is not None:
        return replace(
            reference,
            loss=loss,
            log_weight=log_weight,
            weight=np.exp(log_weight),
            centred=loss - reference.mean if origin is None else loss,
            atomic=atomic,
            error=error,
            origin=origin,
            partial=True,
        )
    total = float(np.exp(log_weight).sum()) + escaped
    if not abs(total - 1.0) < 1e-9:
        raise AccuracyError(
            f"the density of {step.name} integrates numerically to {total!r}, not 1"
        )
    log_weight = log_weight - np.log(total)
    weight = np.exp(log_weight)
    inside = weight.sum()
    mean = float(weight @ loss / inside) if inside > 0 else 0.0
    mean += float(weight @ (loss - mean) / inside) if inside > 0 else 0.0
    return NodeSet(loss, log_weight, weight, mean, loss - mean, escaped / total, atomic, error)


def escapes(piece: SmoothPiece) -> bool:
    """Return whether Q vanishes on the piece, so that its loss is infinite."""
    return bool(np.isposinf(piece.loss(np.asarray([_inside(piece)]))).all())


def _inside(piece: SmoothPiece) -> float:
    """Return some point of the piece."""
    low, high = piece.lower, piece.upper
    if np.isfinite(low) and np.isfinite(high):
        return low if piece.integer else 0.5 * (low + high)
    if np.isfinite(low):
        return low + 1.0
    return high - 1.0 if np.isfinite(high) else 0.0
