"""How large a characteristic function can be far out: what no sample of it could show.

Where the loss has a density g on a stretch, k integrations by parts bound that stretch's share of
|φ(y)| by V_k/|y|^k and what is left at its ends, V_k the total variation of g^(k−1) there; its mass
bounds the share as well. Stretches on which the loss hardly changes, and single values, keep their
mass: |φ(y)| may recur to that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symdp.law.panels import DERIVATIVE, NODES, ORDER
from symdp.law.step import Array
from symdp.law.tilted import Tilted

DERIVATIVES = 4  # the most integrations by parts
_ORDERS = (1, 2, DERIVATIVES)
_ANGLES = np.asarray([0.5, 1.0, 2.0, 3.0])  # a, how far two losses may turn apart
_ALL = 1.0 - 1e-15  # of |φ|², that a bound may leave
_ENDS = np.linalg.solve(
    np.polynomial.legendre.legvander(NODES, ORDER - 1).T,
    np.polynomial.legendre.legvander(np.asarray([-1.0, 1.0]), ORDER - 1).T,
)  # values at the nodes of a panel to values at its ends


@dataclass(frozen=True)
class Decay:
    """The tilted loss density on the panels of its quadrature, as far as it bounds |φ|.

    Attributes
    ----------
    rest
        The mass of what has no density: single values, and panels cut short.
    mass
        The mass of each panel.
    variation
        V_k of each panel: an array for each of the orders.
    left, right
        g, g′, … at the ends of each panel, one row for each derivative.
    joined
        Whether a panel's right end is the next one's left end.
    """

    rest: float
    mass: Array
    variation: tuple[Array, ...]
    left: Array
    right: Array
    joined: NDArray[np.bool_]

    def log_bound(self, y: Array) -> Array:
        """Return an estimated bound on log |φ(y')| for every |y'| ≥ |y|, the y in rising order.

        What lies beyond the last y is bounded as if it were of the last one's size.
        """
        best = np.ones(y.size)
        for order, variation in zip(_ORDERS, self.variation, strict=False):
            powers = np.power.outer(1.0 / np.abs(y), np.arange(1.0, order + 1.0))
            with np.errstate(over="ignore", invalid="ignore"):
                share = np.multiply.outer(powers[:, -1], variation)
                good = share < self.mass
                total = np.where(good, share, self.mass).sum(axis=1) + self.rest
                left, right = powers @ self.left[:order], powers @ self.right[:order]
                jump = powers @ np.abs(self.right[:order, :-1] - self.left[:order, 1:])
            inner = self.joined & good[:, :-1] & good[:, 1:]
            alone_right, alone_left = good.copy(), good.copy()
            alone_right[:, :-1] &= ~inner
            alone_left[:, 1:] &= ~inner
            for where, size in ((alone_right, np.abs(right)), (alone_left, np.abs(left))):
                total += np.where(where, size, 0.0).sum(axis=1)
            total += np.where(inner, jump, 0.0).sum(axis=1)
            best = np.minimum(best, total)
        return np.asarray(np.log(np.maximum.accumulate(best[::-1])[::-1]))


def log_bound_near(tilted: Tilted, y: Array) -> Array:
    """Return a bound on log |φ(y')| between every two neighbours of rising y.

    With two independent losses L and L', as 1 − cos u ≥ c u² for |u| ≤ a,

        1 − |φ(y)|² = E(1 − cos y(L − L')) ≥ c y² E[(L − L')²; L, L' ∈ I],

    I of length a/y around the median of L. That shows how |φ|ⁿ of many steps falls.
    """
    below = [np.cumsum(tilted.weight * tilted.deviation**k) for k in range(3)]
    median = tilted.deviation[min(int(below[0].searchsorted(0.5)), below[0].size - 1)]
    half = np.divide.outer(0.5 * _ANGLES, y[1:])
    low = tilted.deviation.searchsorted(median - half)
    high = tilted.deviation.searchsorted(median + half, side="right")
    mass, first, second = (np.append(0.0, s)[high] - np.append(0.0, s)[low] for s in below)
    curved = (1.0 - np.cos(_ANGLES)) / _ANGLES**2
    lost = 2.0 * y[:-1] ** 2 * (curved[:, None] * (mass * second - first * first)).max(axis=0)
    return np.asarray(0.5 * np.log1p(-np.clip(lost, 0.0, _ALL)))


def decay(tilted: Tilted, most: int = DERIVATIVES) -> Decay:
    """Return how the characteristic function of one step's tilted loss is bounded far out.

    Parameters
    ----------
    tilted
        The law of the step's loss.
    most
        How many integrations by parts at most: 1, 2 or 4.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> law = compose(mechanisms.gaussian(sigma=2), 1).law("remove")
    >>> bound = decay(law.tilted(0.0)[0])
    >>> near, far = bound.log_bound(np.asarray([100.0, 200.0]))
    >>> bool(near > -0.5 * (100 / 2) ** 2), bool(abs(near - far - 4 * np.log(2)) < 0.1)
    (True, True)
    """
    nodes = tilted.nodes
    order = np.argsort(nodes.number)
    order = order[np.searchsorted(nodes.number[order], 0) :]
    panel = nodes.number[order] // ORDER
    whole = np.flatnonzero(panel[ORDER - 1 :] == panel[: panel.size - ORDER + 1])
    index = order[whole[:, None] + np.arange(ORDER)]
    weight, loss = tilted.weight[index], nodes.loss[index]
    slope = loss @ DERIVATIVE.T
    with np.errstate(all="ignore"):
        density = weight / np.exp(nodes.log_spread[index])
        derivatives = [density]
        for _ in range(most - 1):
            derivatives.append((derivatives[-1] @ DERIVATIVE.T) / slope)
        ends = [np.nan_to_num(d @ _ENDS, nan=np.inf) for d in derivatives]
        variation = []
        for k in (order for order in _ORDERS if order <= most):
            low, high = ends[k - 1][:, :1], ends[k - 1][:, 1:]
            path = np.concatenate([low, derivatives[k - 1], high], axis=1)
            variation.append(np.nan_to_num(np.abs(np.diff(path)).sum(axis=1), nan=np.inf))
    mass = weight.sum(axis=1)
    return Decay(
        max(0.0, 1.0 - float(mass.sum())),
        mass,
        tuple(variation),
        np.stack([e[:, 0] for e in ends]),
        np.stack([e[:, 1] for e in ends]),
        np.diff(panel[whole]) == 1,
    )
