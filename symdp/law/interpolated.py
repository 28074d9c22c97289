"""Values of a density and its loss to rounding where doubles cancel: few balls, and series between.

On panels short enough for it, log P and ℓ are Legendre series through balls at exact places. A
place x is told by its distance from the middle of its panel, which is exact however far the panel
is from 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from symdp.law.probe import COEFFICIENTS, NODES, ORDER
from symdp.law.step import Array, SmoothPiece, rounded

_SETTLED = 2e-15  # of the largest value of a panel: what the last coefficients may be
_LAST = 3  # coefficients that must be small
_MOST_PANELS = 1 << 12
_ROUNDS = 40  # halvings


def interpolated(piece: SmoothPiece, edges: Array) -> SmoothPiece | None:
    """Return the piece with values from series between its edges; None where they do not settle."""
    series = _series(piece, edges)
    if series is None:
        return None
    lower, upper, coefficients = series
    order = np.argsort(lower)
    lower, coefficients = lower[order], coefficients[:, order]
    middle, half = 0.5 * (lower + upper[order]), 0.5 * (upper[order] - lower)
    only_p = bool(np.isposinf(piece.loss(middle)).all())

    def joint(x: Array) -> tuple[Array, ...]:
        panel = np.clip(np.searchsorted(lower, x, side="right") - 1, 0, lower.size - 1)
        place = np.clip((x - middle[panel]) / half[panel], -1.0, 1.0)
        log_p, loss = (np.polynomial.legendre.legval(place, c[panel].T, tensor=False)
                       for c in coefficients)  # fmt: skip
        if only_p:
            return log_p, np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
        return log_p, log_p - loss, loss

    return replace(piece, joint=joint, loss=lambda x: joint(x)[2], log_p=lambda x: joint(x)[0])


def _series(piece: SmoothPiece, edges: Array) -> tuple[Array, Array, Array] | None:
    """Return panels and the coefficients of both: (function, panel, degree)."""
    lower, upper = edges[:-1], edges[1:]
    found: list[tuple[Array, Array, Array]] = []
    count = 0
    for _ in range(_ROUNDS):
        count += lower.size
        if count > _MOST_PANELS:
            return None
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
        values = np.asarray(
            [
                rounded(piece.ball, centre, width * node)
                for centre, width in zip(middle.tolist(), half.tolist(), strict=True)
                for node in NODES.tolist()
            ]
        )
        values = values.reshape(lower.size, ORDER, 2)
        values[..., 1][np.isposinf(values[..., 1])] = 0.0
        coefficients = np.einsum("nk,pnf->fpk", COEFFICIENTS, values)
        size = np.abs(values).max(axis=1).T
        size[0] = np.maximum(size[0], 1.0)  # of log P it is the difference that counts
        last = np.abs(coefficients[..., -_LAST:]).max(axis=2)
        good = (last <= _SETTLED * size).all(axis=0)
        found.append((lower[good], upper[good], coefficients[:, good]))
        if good.all():
            some, others, sums = zip(*found, strict=True)
            return np.concatenate(some), np.concatenate(others), np.concatenate(sums, axis=1)
        lower, middle, upper = lower[~good], middle[~good], upper[~good]
        lower, upper = np.concatenate([lower, middle]), np.concatenate([middle, upper])
    return None
