"""How large a characteristic function can be far out: what no sample of it could show.

Where the loss has a density g on a stretch, k integrations by parts bound that stretch's share of
|φ(y)| by V_k/|y|^k and what is left at its ends, V_k the total variation of g^(k−1) there; its mass
bounds the share as well. Stretches on which the loss hardly changes, and single values, keep their
mass: |φ(y)| may recur to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from symdp.law.probe import DERIVATIVE, NODES, ORDER, WEIGHTS
from symdp.law.step import Array
from symdp.law.tilted import Tilted

DERIVATIVES = 4  # the most integrations by parts
_ORDERS = (1, 2, DERIVATIVES)  # of a variation; a higher one serves farther out
_ANGLES = np.asarray([0.5, 1.0, 2.0, 3.0])  # a, how far two losses may turn apart
_ALL = 1.0 - 1e-15  # of |φ|², that a bound may leave
_ENDS = np.linalg.solve(
    np.polynomial.legendre.legvander(NODES, ORDER - 1).T,
    np.polynomial.legendre.legvander(np.asarray([-1.0, 1.0]), ORDER - 1).T,
)  # values at the nodes of a panel to values at its ends


@dataclass(frozen=True)
class Decay:
    """The tilted loss density on the panels of its quadrature, as far as it bounds |φ|.

    Of many steps at once, all arrays have an axis for the steps before that of the panels.

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

    rest: Array
    mass: Array
    variation: tuple[Array, ...]
    left: Array
    right: Array
    joined: NDArray[np.bool_]

    @property
    def _jumps(self) -> Array:
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.right[..., :-1] - self.left[..., 1:]))

    def log_bound(self, y: Array) -> Array:
        """Return an estimated bound on log |φ(y')| for every |y'| ≥ |y|, the y in rising order.

        What lies beyond the last y is bounded as if it were of the last one's size.
        """
        best = np.ones((y.size, *np.shape(self.rest)))
        for order, variation in zip(_ORDERS, self.variation, strict=False):
            powers = np.power.outer(1.0 / np.abs(y), np.arange(1.0, order + 1.0))
            with np.errstate(over="ignore", invalid="ignore"):
                share = np.multiply.outer(powers[:, -1], variation)
                left, right, jump = (
                    np.abs(np.tensordot(powers, ends[:order], 1))
                    for ends in (self.left, self.right, self._jumps)
                )
                # By parts or not, any choice bounds: what a panel's own mass is not worth, the
                # ends of its neighbours may be.
                for good in (share < self.mass, share < self.mass + left + right):
                    total = np.where(good, share, self.mass).sum(axis=-1) + self.rest
                    inner = self.joined & good[..., :-1] & good[..., 1:]
                    alone_right, alone_left = good.copy(), good.copy()
                    alone_right[..., :-1] &= ~inner
                    alone_left[..., 1:] &= ~inner
                    total += np.where(alone_right, right, 0.0).sum(axis=-1)
                    total += np.where(alone_left, left, 0.0).sum(axis=-1)
                    total += np.where(inner, jump, 0.0).sum(axis=-1)
                    best = np.fmin(best, total)
        return np.asarray(np.log(np.maximum.accumulate(best[::-1])[::-1]))


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
    panels = tilted.nodes.whole_panels
    return panel_decay(tilted.weight[panels.index], panels.slope, panels.joined, most)


def decays(parts: Sequence[Tilted], most: int = DERIVATIVES) -> Decay:
    """Return the same of several steps at once, each with panels of no mass at its end."""
    panels = [part.nodes.whole_panels for part in parts]
    length = max(1, *(len(some.index) for some in panels))
    weight = np.zeros((len(parts), length, ORDER))
    slope, joined = np.ones_like(weight), np.zeros((len(parts), length - 1), dtype=np.bool_)
    for k, (part, some) in enumerate(zip(parts, panels, strict=True)):
        weight[k, : len(some.index)] = part.weight[some.index]
        slope[k, : len(some.index)] = some.slope
        joined[k, : some.joined.size] = some.joined
    return panel_decay(weight, slope, joined, most)


def panel_decay(
    weight: Array, slope: Array, joined: NDArray[np.bool_], most: int = DERIVATIVES
) -> Decay:
    """Return the decay of one step, or of many, from weights and ℓ′ on whole panels.

    Parameters
    ----------
    weight, slope
        The last two axes are panels and their nodes; ℓ′ is per half a panel's width.
    joined
        Whether a panel ends where the next one begins.
    most
        How many integrations by parts at most.
    """
    with np.errstate(all="ignore"):
        # A node stands for its weight times |ℓ′|, both per half a panel's width.
        derivatives = [weight / (np.abs(slope) * WEIGHTS)]
        for _ in range(most - 1):
            derivatives.append((derivatives[-1] @ DERIVATIVE.T) / slope)
        ends = [_finite(d @ _ENDS) for d in derivatives]
        variation = []
        for k in (order for order in _ORDERS if order <= most):
            low, high = ends[k - 1][..., :1], ends[k - 1][..., 1:]
            path = np.concatenate([low, derivatives[k - 1], high], axis=-1)
            variation.append(_finite(np.abs(path[..., 1:] - path[..., :-1]).sum(axis=-1)))
    mass = weight.sum(axis=-1)
    return Decay(
        np.maximum(0.0, 1.0 - mass.sum(axis=-1)),
        mass,
        tuple(variation),
        np.stack([e[..., 0] for e in ends]),
        np.stack([e[..., 1] for e in ends]),
        joined,
    )


def _finite(values: Array) -> Array:
    """Return the values with +inf where there are none."""
    return np.where(np.isnan(values), np.inf, values)


@singledispatch
def log_decay(tilted: Tilted, y: Array, most: int = DERIVATIVES) -> Array:
    """Return an estimated bound on log |φ_t(y')| for every |y'| ≥ |y|, the y in rising order."""
    return decay(tilted, most).log_bound(y)


@singledispatch
def log_bound_near(tilted: Tilted, y: Array) -> Array:
    """Return a bound on log |φ(y')| between every two neighbours of rising y.

    With two independent losses L and L', as 1 − cos u ≥ c u² for |u| ≤ a,

        1 − |φ(y)|² = E(1 − cos y(L − L')) ≥ c y² E[(L − L')²; L, L' ∈ I],

    I of length a/y around the median of L. That shows how |φ|ⁿ of many steps falls.
    """
    return near_bound(tilted.weight, tilted.deviation, y)


def near_bound(weight: Array, deviation: Array, y: Array) -> Array:
    """Return the same from weights and rising deviations of one step."""
    below = np.zeros((3, deviation.size + 1))
    below[0, 1:], below[1, 1:] = weight, weight * deviation
    below[2, 1:] = below[1, 1:] * deviation
    np.cumsum(below, axis=1, out=below)
    median = deviation[min(int(below[0, 1:].searchsorted(0.5)), deviation.size - 1)]
    half = np.divide.outer(0.5 * _ANGLES, y[1:])
    low = deviation.searchsorted(median - half)
    high = deviation.searchsorted(median + half, side="right")
    mass, first, second = below[:, high] - below[:, low]
    curved = (1.0 - np.cos(_ANGLES)) / _ANGLES**2
    lost = 2.0 * y[:-1] ** 2 * (curved[:, None] * (mass * second - first * first)).max(axis=0)
    return np.asarray(0.5 * np.log1p(-np.clip(lost, 0.0, _ALL)))
