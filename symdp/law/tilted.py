"""One step's loss under P_t ∝ e^{tL}P: its moments, and K(t) accurate relative to itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, singledispatch

import numpy as np

from symdp.capacity import BLOCK
from symdp.law.elementary import exponential_remainder
from symdp.law.nodes import NodeSet
from symdp.law.step import Array

OVERFLOW = 600.0  # beyond this, e^x overflows and the sum is taken logarithmically
LARGE = 30.0  # from which on 1 + x is rounding beside e^x


@dataclass(frozen=True)
class Tilted:
    """One step's loss under P_t ∝ e^{tL}P: weights, distances from the tilted mean, moments.

    `shift` is E_t L − μ with μ = E L: n steps multiply every rounding error by n, so the large
    common part t·nμ − tε is formed once, exactly, for the whole sum. `atomic` is the part of
    the weight on single values. A precise shift is accurate relative to itself, not only to the
    losses.
    """

    tilt: float
    nodes: NodeSet
    shift: float
    variance: float
    weight: Array
    deviation: Array
    atomic: float
    is_precise: bool

    @property
    def error(self) -> float:
        """The quadrature's estimate of its relative error."""
        return self.nodes.error

    @property
    def widest(self) -> float:
        """The largest standard deviation of a single step, here the only one's."""
        return math.sqrt(self.variance)

    @property
    def size(self) -> float:
        """σ + |E_t L − μ| + |μ|, of which rounding takes its share."""
        return self.widest + abs(self.shift) + abs(self.nodes.mean)

    @property
    def imprecise(self) -> float:
        """How many steps have a K that is no sum of growths."""
        return float(not self.is_precise)

    @cached_property
    def excess(self) -> float:
        """K(t) − t·μ, accurate relative to itself."""
        return float(excess(self.nodes, np.asarray([self.tilt]))[0])


def excess(nodes: NodeSet, tilts: Array) -> Array:
    """Return K(t) − t·μ for several tilts: log E e^{t(L−μ)}, built from e^x − 1 − x near zero."""
    rows = max(1, BLOCK // max(nodes.centred.size, 1))
    if tilts.size > rows:
        return np.concatenate(
            [excess(nodes, tilts[i : i + rows]) for i in range(0, tilts.size, rows)]
        )
    scaled = np.multiply.outer(tilts, nodes.centred)
    if not nodes.partial and (scaled + nodes.log_weight).max(initial=0.0) < OVERFLOW:
        near = np.minimum(scaled, LARGE)
        ratio = exponential_remainder(near) @ nodes.weight
        if scaled.max(initial=0.0) > LARGE:
            # Beside e^x there, 1 + x is all that counts; the weight may be tiny where e^x is huge.
            grown = np.exp(scaled + nodes.log_weight) - nodes.weight * (1.0 + scaled)
            ratio += np.where(
                scaled > LARGE, grown - nodes.weight * exponential_remainder(near), 0.0
            ).sum(axis=1)
        escaped = nodes.mass_at_infinity
        return np.asarray(np.log1p(ratio / (1.0 - escaped)) + math.log1p(-escaped))
    exponent = nodes.log_weight + scaled
    top = exponent.max(axis=1)
    total = np.exp(exponent - top[:, None]).sum(axis=1)
    return np.asarray(top + np.log(total))


@singledispatch
def tilted_cumulants(tilted: Tilted, order: int) -> Array:
    """Return a tilted law's cumulants, the first one as E_t L − E L, from its central moments.

    κⱼ = mⱼ − Σ_{i=2}^{j−2} C(j−1, i−1) κᵢ m_{j−i}, the recursion for central moments.
    """
    moments = [1.0, 0.0]
    power = tilted.weight * tilted.deviation
    for _ in range(2, order + 1):
        power = power * tilted.deviation
        moments.append(float(power.sum()))
    cumulants = [0.0, tilted.shift]
    for j in range(2, order + 1):
        lower = math.fsum(
            math.comb(j - 1, i - 1) * cumulants[i] * moments[j - i] for i in range(2, j - 1)
        )
        cumulants.append(moments[j] - lower)
    return np.asarray(cumulants[1 : order + 1])
