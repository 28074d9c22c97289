"""One step at one tilt: enclosures of its transform, and proved bounds of its modulus."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.certify.characteristic_function import Need, Walk
from symdp.certify.decay import Decay
from symdp.certify.nodes import Local, Nodes
from symdp.certify.parts import parts_of
from symdp.certify.scope import Scope

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_CUBIC = arb("0.0991620")  # cos u ≤ 1 − u²/2 + χ|u|³ holds from χ = 0.09916191… on
_COARSE = 96  # bits of what only bounds
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
        self._moments: tuple[arb, arb] | None = None
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
        scope = Scope((0.0, _GROWTH * reach))
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

    def _variance_and_third(self) -> tuple[arb, arb]:
        if self._moments is None:
            with ctx.workprec(_COARSE):
                variance, fourth = self.parts.central_moments(self.tilt)
                # By Cauchy's inequality (E|u|³)² ≤ E u² E u⁴.
                self._moments = variance, (variance * fourth).sqrt()
        return self._moments

    def deviation(self) -> arb:
        """Return σ ≥ E_t|L − E_t L|, for which ||φ(y)| − |φ(y′)|| ≤ σ|y − y′|."""
        return arb(self._variance_and_third()[0].upper().sqrt().upper())

    def cubic(self) -> tuple[arb, arb]:
        """Return (v, c) with |φ(y)|² ≤ 1 − vy² + cy³ for all y ≥ 0.

        With U the difference of two independent copies, |φ(y)|² = E cos(yU), E U² = 2σ² and
        E|U|³ ≤ 2E|L − EL|³ + 2σ³.
        """
        variance, third = self._variance_and_third()
        cube = _CUBIC * (2 * third + 2 * variance ** arb("1.5"))
        return arb(variance.lower()), arb(cube.upper())

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
