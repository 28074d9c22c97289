"""How large a characteristic function may be, from layers of the loss's density.

Between two levels a density f is a uniform law on the stretches where it lies above, of widths w.
With θ = yw/2, and p_j the mass of a layer,

    |φ(y)| ≤ 1 − Σ p_j (1 − |sin θ_j|/θ_j)   and   |φ(y)| ≤ (2/y) Σ (h_j − h_{j−1}) |sin θ_{j−1}|,

from the widths at the upper and at the lower level of each layer.  Both fall with y where sin θ is
taken for 1 beyond θ = π/2, so that they hold for all larger y as well.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from symdp.law.step import Array

_LAYERS = 40  # of a density
_BETWEEN = 1.1  # at most what widths and heights lack or have too much between two nodes
_BEYOND_NODES = 1e-17  # the mass that nodes leave out


def layers(density: Array, loss: Array) -> tuple[Array, Array, Array]:
    """Return heights of the layers of a density, and the widths above and below each.

    Parameters
    ----------
    density, loss
        At nodes along the outcomes, with the losses rising or falling.

    Returns
    -------
    Heights, shape (layers,); widths, shape (stretches between two valleys, layers).
    """
    levels = np.unique(density)
    levels = levels[np.linspace(0, levels.size - 1, min(_LAYERS, levels.size)).astype(np.intp)]
    inner = density[1:-1]
    valleys = 1 + np.flatnonzero((inner < density[:-2]) & (inner <= density[2:]))
    ends = [0, *valleys.tolist(), loss.size - 1]
    widths = []
    for low, high in pairwise(ends):
        part, place = density[low : high + 1], loss[low : high + 1]
        top = int(part.argmax())
        left = np.interp(levels, part[: top + 1], place[: top + 1])
        right = np.interp(-levels, -part[top:], place[top:])
        widths.append(np.where(levels > part[top], 0.0, np.abs(right - left)))
    above = np.asarray(widths)
    below = np.concatenate([np.full((above.shape[0], 1), np.inf), above[:, :-1]], axis=1)
    return np.diff(levels, prepend=0.0), above, below


def layer_bound(height: Array, above: Array, below: Array, y: Array) -> Array:
    """Return log of the smaller of the two bounds on |φ|, for all that lies beyond each y.

    Examples
    --------
    >>> x = np.linspace(-6.0, 6.0, 49)
    >>> normal = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    >>> layer_bound(*layers(normal, x), np.array([0.1, 4.0])).round(3).tolist()
    [-0.004, -1.522]
    """
    gone, far = np.zeros(y.size), np.zeros(y.size)
    for upper, lower in zip(above, below, strict=True):
        theta = 0.5 * np.multiply.outer(y, upper)
        share = np.sin(np.minimum(theta, 0.5 * math.pi)) / np.maximum(theta, 1e-300)
        gone += np.where(upper > 0.0, 1.0 - share, 0.0) @ (height * upper)
        lower_theta = np.minimum(0.5 * np.multiply.outer(y, lower), 0.5 * math.pi)
        far += np.sin(lower_theta) @ np.where(lower > 0.0, height, 0.0)
    near = 1.0 - np.maximum(gone, 0.0) / _BETWEEN
    return np.asarray(np.log(np.minimum(near, 2.0 * _BETWEEN * far / y + _BEYOND_NODES)))
