"""One step's finite loss: its single points, its stretches, and what they give at each tilt.

    M(z) = Σ p_k e^{zℓ_k} + Σ ∫ e^{zℓ} dP,

over points and over stretches of the support on which the loss is monotone.  Stretches are cut
where the masses under e^{sℓ}dP beyond are below 2^(−bits) at s = 0 and at a tilt above t: as e^{sℓ}
≤ 1 + e^{lℓ} for 0 ≤ s ≤ l, one cut serves all tilts between.  Below 0 the upper one is −1.

The error of M is what lies beyond the cuts and what the quadrature lacks (see `nodes`); K(t) is
its logarithm, divided by e^{scale} before so that nothing overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.certify.endpoint_map import lengthened
from symdp.certify.nodes import PLAIN, Nodes, Scope, nodes_between
from symdp.certify.piece_integrand import Part, stretch, top_tilt
from symdp.derive.pieces import pieces, points
from symdp.emit.arb import constant_ball
from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.derive.records import Point
    from symdp.model.pair import Pair

_COARSE = 96  # bits of what only bounds
_COARSE_GOAL = arb(2) ** -50  # error of nodes that choose tilts and scales
_CUT_BITS = 128  # left out at the cuts of a step
_CLOSEST = 8  # halvings of the distance to a tilt where K is finite still
_MOST_SCALES = 50  # corrections of a scale by the logarithm of what was found
_MOST_FAMILIES = 4  # kept; a question uses one or two
_FAR = 20  # in logarithms, from which on an absolute tolerance is not what is wanted


@dataclass(frozen=True)
class _Family:
    """Nodes at the highest of some tilts that give the CGF at all of them."""

    lowest: sp.Rational
    highest: sp.Rational
    scale: arb
    nodes: Nodes

    def cgf(self, tilt: sp.Rational) -> arb | None:
        """Enclose K(s), None where these nodes do not serve."""
        if not self.lowest <= tilt <= self.highest:
            return None
        shift = real_ball(tilt - self.highest)
        total = arb(0, self.nodes.error)
        for weight, loss in zip(self.nodes.weights, self.nodes.losses, strict=True):
            total += weight * (shift * loss).exp()
        log_total = total.log()
        return self.scale + log_total if abs(log_total) < _FAR else None


class Parts:
    """What one step's finite loss consists of: single points, or stretches of the support."""

    def __init__(self, pair: Pair) -> None:
        self._of(
            pair,
            tuple(point for point in points(pair) if not point.loss.is_infinite and point.p != 0),
            tuple(
                lengthened(stretch(piece, pair.variable))
                for piece in pieces(pair)
                if piece.log_p is not None and piece.log_q is not None
            ),
        )

    def _of(self, pair: Pair, single: tuple[Point, ...], stretches: tuple[Part, ...]) -> None:
        self.pair, self.points, self.stretches = pair, single, stretches
        if not self.points and not self.stretches:
            raise AccuracyError("the loss is infinite everywhere: there is nothing to tilt")
        self._reached: dict[sp.Rational, sp.Rational] = {}
        self._refused: sp.Expr = sp.oo
        self._families: list[_Family] = []

    @property
    def is_discrete(self) -> bool:
        """Whether the loss has atoms only."""
        return all(part.x.is_integer or part.is_flat for part in self.stretches)

    def reach(self, tilt: sp.Rational) -> sp.Rational:
        """Return a tilt above the given one at which the tails are bounded, and so K finite.

        For tilts below 0 that is −1, as e^{tL} ≤ 1 + e^{−L} there, and for 0 if none is above.

        Raises
        ------
        AccuracyError
            If there is none, as at the end of the domain of K.
        """
        if tilt < 0:
            return sp.S.NegativeOne
        room = sp.Rational(1, 2 ** (_CLOSEST - 1))
        known = [top for top in self._reached.values() if top >= tilt + room]
        if known:  # a cut may take long
            self._reached.setdefault(tilt, min(known))
        if tilt not in self._reached:
            tops = [top_tilt(tilt), *(tilt + sp.Rational(1, 2**k) for k in range(_CLOSEST))]
            for top in tops:
                if top >= self._refused:
                    continue
                try:
                    for part in self.stretches:
                        part.cut(top, _CUT_BITS)
                except AccuracyError:
                    self._refused = top
                    continue
                self._reached[tilt] = top
                break
            else:
                if tilt == 0:
                    return sp.S.NegativeOne
                raise AccuracyError(
                    f"no bound of the tails of the loss is proved beyond the tilt {float(tilt):g}"
                )
        return self._reached[tilt]

    def nodes(self, tilt: sp.Rational, scale: arb, tolerance: arb, scope: Scope = PLAIN) -> Nodes:
        """Return nodes of e^{−scale} M(t + iy), to about a tolerance, for what a scope says."""
        t = real_ball(tilt)
        weights: list[arb] = []
        losses: list[arb] = []
        for point in self.points:
            mass, loss = (real_ball(e) for e in (point.p, point.loss))
            weights.append((t * loss + mass.log() - scale).exp())
            losses.append(loss)
        bits = max(int(-float(tolerance.log().mid()) / math.log(2)), 40) + 10
        bits = 128 * math.ceil(bits / 128)  # few cuts serve all
        error, front = arb(0), (-scale).exp()
        for part in self.stretches:
            cut = part.cut(self.reach(tilt), bits)
            error += cut.beyond * front
            found = nodes_between(part, cut, t, scale, tolerance=tolerance, scope=scope)
            weights += found.weights
            losses += found.losses
            error += found.error
        return Nodes(tuple(weights), tuple(losses), arb(error.upper()), scope.reach)

    def cgf(self, tilt: sp.Rational) -> arb:
        """Enclose K(t), t ≥ −1, to about fifteen digits.

        Raises
        ------
        AccuracyError
            If K is infinite there, or no bound of a tail is found.
        """
        with ctx.workprec(_COARSE):
            for family in self._families:
                if (shared := family.cgf(tilt)) is not None:
                    return shared
            scale, nodes = self._coarse(tilt)
            return scale + nodes.total().log()

    @lru_cache(maxsize=64)  # noqa: B019  (parts are few and live as long as their numbers)
    def _coarse(self, tilt: sp.Rational) -> tuple[arb, Nodes]:
        """Return a scale near K(t), and nodes of e^{−scale} M(t)."""
        with ctx.workprec(_COARSE):
            scale = self._height(tilt)
            for _ in range(_MOST_SCALES):
                nodes = self.nodes(tilt, scale, _COARSE_GOAL)
                total = nodes.total()
                if total > 0 and abs(total.log()) < _FAR:
                    return scale, nodes
                if not total.upper() > 0:
                    break
                # Next to a density that is infinite at an end all the mass may be too little.
                scale = (scale + total.upper().log()).mid()
            raise AccuracyError("a tilted moment could not be enclosed")

    def share(self, tilt: sp.Rational, lowest: sp.Rational, highest: sp.Rational) -> None:
        """Let one set of nodes give K at every tilt between two ends, where it can."""
        if any(f.lowest <= lowest and highest <= f.highest for f in self._families):
            return
        if lowest < 0 <= highest:  # whose tails are not cut at the same places
            return
        with ctx.workprec(_COARSE):
            scope = Scope(shift=constant_ball(lowest - highest, _COARSE).real)
            try:
                scale = self.cgf(tilt).mid()
                nodes = self.nodes(highest, scale, _COARSE_GOAL, scope)
            except AccuracyError:  # as beyond the domain of K
                return
        family = _Family(lowest, highest, scale, nodes)
        self._families = [*self._families[1 - _MOST_FAMILIES :], family]

    def deviation(self, tilt: sp.Rational) -> float:
        """Return about the deviation of the loss under dP_t; it proves nothing."""
        return float(self._coarse(tilt)[1].middle()[1])

    def _height(self, tilt: sp.Rational) -> arb:
        """Return about the largest logarithm of the tilted density, to begin with."""
        t = real_ball(tilt)
        heights = [
            part.peak(part.cut(self.reach(tilt), _CUT_BITS), t)
            for part in self.stretches
            if not part.x.is_integer
        ]
        return arb(max(heights, default=0.0))


@lru_cache(maxsize=64)
def parts_of(pair: Pair) -> Parts:
    """Return the parts of a pair, whose cuts and moments are kept."""
    return Parts(pair)
