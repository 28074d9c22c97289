"""One step at one tilt: enclosures of its transform, and proved bounds of its modulus.

Under dP_t = e^{tℓ − K(t)} dP the loss has the characteristic function

    φ_t(y) = M(t + iy)/M(t),    M(z) = ∫ e^{zℓ} dP over finite losses.

Nodes enclose e^{−scale} M(t + iy), with an exact number near K(t) in place of K(t): the error of a
node set counts for every y up to its reach.  Beyond, |φ_t(y)| is bounded by parts (see `decay`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.certify.line.characteristic_function import Need, Walk
from symdp.certify.line.decay import Decay
from symdp.certify.nodes import Local, Nodes, Scope
from symdp.certify.parts import parts_of

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_GROWTH = 1.5  # nodes are made for frequencies so much further than asked
_MOST_WALKS = 4  # kept; close ε share one


def _bits(tolerance: arb) -> int:
    """Return −log₂ of a tolerance, rounded up to a multiple of 16 so that few nodes serve all."""
    return 16 * math.ceil(max(-float(tolerance.log().mid()) / math.log(2), 8.0) / 16)


class TiltedStep:
    """The finite loss of one step under dP_t ∝ e^{tℓ}dP, in balls.

    Parameters
    ----------
    pair : Pair
        All parameters bound.
    tilt : sympy.Rational
        Inside the domain of the CGF, but neither 0 nor −1.
    """

    def __init__(self, pair: Pair, tilt: sp.Rational) -> None:
        self.pair, self.tilt = pair, tilt
        self.parts = parts_of(pair)
        self.scale = self.parts.cgf(tilt).mid()  # near K(t), and from here on an exact number
        self._decay: Decay | None = None
        self._nodes: list[tuple[int, int, Nodes]] = []
        self._walks: dict[tuple[str, Need, int], Walk] = {}

    @property
    def is_discrete(self) -> bool:
        """Whether the loss has atoms only, so that the modulus need not decay."""
        return self.parts.is_discrete

    def around(self, y: arb, distance: arb, tolerance: arb) -> Local:
        """Return what bounds |e^{−scale} M(t + iy)| around a y, as far as a distance if it may."""
        reach = float(y.upper()) + min(float(distance), float(y) / 2)
        return self.nodes(reach, _bits(tolerance)).around(y)

    def nodes(self, reach: float, bits: int) -> Nodes:
        """Return the fewest nodes that serve 0 ≤ y ≤ reach, to about 2^(−bits).

        All are kept: a walk that starts again at y = 0 would pay for the widest at every step.
        """
        serving = [
            nodes
            for precision, fine, nodes in self._nodes
            if precision >= ctx.prec and fine >= bits and reach <= nodes.reach
        ]
        if serving:
            return min(serving, key=lambda nodes: len(nodes.losses))
        scope = Scope(_GROWTH * reach)
        found = self.parts.nodes(self.tilt, self.scale, arb(2) ** -bits, scope)
        self._nodes.append((ctx.prec, bits, found))
        return found

    def walk(self, spacing: arb, tolerance: arb, count: int, *, falls: bool) -> Walk:
        """Return e^{−scale} M(t + iy) at y = 0, h, 2h, …, kept for whoever asks again.

        Parameters
        ----------
        count, falls
            Of the power that is summed, and whether its weights fall like 1/y².
        """
        need = Need(_bits(tolerance), count, falls)
        key = (spacing.str(30), need, ctx.prec)
        if key not in self._walks:
            if len(self._walks) >= _MOST_WALKS:
                self._walks.clear()
            self._walks[key] = Walk(self.nodes, spacing, need)
        return self._walks[key]

    def log_excess(self) -> arb:
        """Return a bound of |K(t) − scale|."""
        return arb(abs(self.parts.cgf(self.tilt) - self.scale).upper())

    def deviation(self) -> float:
        """Return about the deviation of the loss, which chooses places and proves nothing."""
        return self.parts.deviation(self.tilt)

    def decay(self, frequency: arb, each: float) -> arb:
        """Return a bound of |φ(y)| for all y ≥ frequency: the atoms and V_k/y^k of what moves.

        Parameters
        ----------
        each : float
            The modulus that is wanted.

        Raises
        ------
        AccuracyError
            If no such bound is proved.
        """
        if self.is_discrete:
            return arb(1)
        if self._decay is None:
            self._decay = Decay(self.parts, self.tilt)
        return self._decay.at(frequency, each)


@lru_cache(maxsize=64)
def tilted_step(pair: Pair, tilt: sp.Rational) -> TiltedStep:
    """Return a step at a tilt, whose nodes and bounds are kept."""
    return TiltedStep(pair, tilt)
