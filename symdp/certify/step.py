"""One step at one tilt: enclosures of its transform, and proved bounds of its modulus."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp
from flint import acb, arb, ctx

from symdp.certify.moments import Stretch, stretch, top_tilt
from symdp.derive.pieces import pieces, points
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError
from symdp.truth.variation import Bound, LossDensity

if TYPE_CHECKING:
    from symdp.derive.records import Point
    from symdp.pair import Pair

_CUBIC = arb("0.0991620")  # cos u ≤ 1 − u²/2 + χ|u|³ holds from χ = 0.09916191… on
_COARSE = 96  # bits of what only bounds
_COARSE_GOAL = arb(2) ** -50
_ORDERS = (2, 3, 4, 6, 8)
_CUT_BITS = 128
_CLOSEST = 8


class Parts:
    """What one step's finite loss consists of: single points, or stretches of the support."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.points: tuple[Point, ...] = tuple(
            point for point in points(pair) if not point.loss.is_infinite and point.p != 0
        )
        self.stretches: tuple[Stretch, ...] = tuple(
            stretch(piece, pair.variable)
            for piece in pieces(pair)
            if piece.log_p is not None and piece.log_q is not None
        )
        if not self.points and not self.stretches:
            raise AccuracyError("the loss is infinite everywhere: there is nothing to tilt")
        self._reached: dict[sp.Rational, sp.Rational] = {}
        self._refused: sp.Expr = sp.oo

    def reach(self, tilt: sp.Rational) -> sp.Rational:
        """Return a tilt above the given one at which the tails are bounded, and so K finite.

        Raises
        ------
        AccuracyError
            If there is none, as at the end of the domain of K.
        """
        if tilt not in self._reached:
            closer = [tilt + sp.Rational(1, 2**k) for k in range(_CLOSEST)]
            for top in (top_tilt(tilt), *closer):
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
                raise AccuracyError(
                    f"no bound of the tails of the loss is proved beyond the tilt {float(tilt):g}"
                )
        return self._reached[tilt]

    def transform(self, tilt: sp.Rational, y: arb, scale: arb, tolerance: arb) -> acb:
        """Enclose e^{−scale} M(t + iy) to about an absolute tolerance."""
        z = acb(constant_ball(tilt, ctx.prec).real, y)
        total = acb(0)
        for point in self.points:
            mass, loss = (constant_ball(e, ctx.prec).real for e in (point.p, point.loss))
            total += (z * loss + mass.log() - scale).exp()
        bits = max(int(-float(tolerance.log().mid()) / math.log(2)), 40) + 10
        bits = 128 * math.ceil(bits / 128)  # few cuts serve all
        factor = (-scale).exp()
        for part in self.stretches:
            cut = part.cut(self.reach(tilt), bits)
            beyond = arb(0, (cut.beyond * factor).upper())
            total += part.integral(z, scale, cut, tolerance) + acb(beyond, beyond)
        return total

    def moment(self, tilt: sp.Rational, power: int, centre: arb, scale: arb) -> arb:
        """Enclose e^{−scale} E|L − c|^d e^{tL}, signed for the first power."""
        z = acb(constant_ball(tilt, ctx.prec).real)
        total = arb(0)
        for point in self.points:
            mass, loss = (constant_ball(e, ctx.prec).real for e in (point.p, point.loss))
            distance = loss - centre
            shape = distance if power == 1 else abs(distance) ** power
            total += (z.real * loss - scale).exp() * mass * shape
        room = constant_ball(min(self.reach(tilt) - tilt, sp.S.One), ctx.prec).real
        turned = (room * centre).exp() + (-room * centre).exp()
        spread = math.factorial(power) / room**power * turned * (-scale).exp()
        for part in self.stretches:
            cut = part.cut(self.reach(tilt), _CUT_BITS)
            own = part.integral(z, scale, cut, _COARSE_GOAL, power, centre)
            total += own.real + arb(0, (cut.beyond * spread).upper())
        return total

    @lru_cache(maxsize=256)  # noqa: B019  (parts are few and live as long as their numbers)
    def cgf(self, tilt: sp.Rational) -> arb:
        """Enclose K(t), t ≥ −1, to about fifteen digits.

        Raises
        ------
        AccuracyError
            If K is infinite there, or no bound of a tail is found.
        """
        with ctx.workprec(_COARSE):
            scale = arb(0)
            while True:
                total = self.transform(tilt, arb(0), scale, _COARSE_GOAL).real
                if not total > 0:
                    raise AccuracyError("a tilted moment could not be enclosed")
                found = scale + total.log()
                # Far from 1, the absolute tolerance is not what is wanted: scale and repeat.
                if abs(found - scale) < 20:
                    return found
                scale = found.mid()


@lru_cache(maxsize=64)
def parts_of(pair: Pair) -> Parts:
    """Return the parts of a pair, whose cuts and moments are kept."""
    return Parts(pair)


class TiltedStep:
    """The finite loss of one step under dP_t ∝ e^{tℓ}dP, in balls.

    Parameters
    ----------
    pair : Pair
        All parameters bound.
    tilt : sympy.Rational
        t > 0, inside the domain of the CGF.
    """

    def __init__(self, pair: Pair, tilt: sp.Rational) -> None:
        self.pair, self.tilt = pair, tilt
        self.parts = parts_of(pair)
        self.scale = self.parts.cgf(tilt).mid()  # near K(t), and from here on an exact number
        self._decay: LossDensity | None = None
        self._known: dict[int, Bound] = {}
        self._flat = arb(0)
        self._moments: tuple[arb, arb] | None = None

    @property
    def is_discrete(self) -> bool:
        """Whether the loss has atoms only, so that the modulus need not decay."""
        return bool(self.pair.is_discrete)

    def transform(self, y: arb, tolerance: arb) -> acb:
        """Enclose e^{−scale} M(t + iy) to about an absolute tolerance."""
        return self.parts.transform(self.tilt, y, self.scale, tolerance)

    def log_excess(self) -> arb:
        """Return a bound of |K(t) − scale|."""
        return arb(abs(self.parts.cgf(self.tilt) - self.scale).upper())

    def _variance_and_third(self) -> tuple[arb, arb]:
        if self._moments is None:
            with ctx.workprec(_COARSE):
                parts, t, scale = self.parts, self.tilt, self.scale
                total = (parts.cgf(t) - scale).exp()
                mean = parts.moment(t, 1, arb(0), scale) / total
                variance = parts.moment(t, 2, mean, scale) / total
                self._moments = variance, parts.moment(t, 3, mean, scale) / total
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

    def decay(self, frequency: arb, small: bool) -> arb:
        """Return a bound of |φ(y)| for all y ≥ frequency: the atoms and V_k/y^k of what moves.

        Parameters
        ----------
        small : bool
            Whether a modulus far below 1 is wanted, for which orders above the first are tried.

        Raises
        ------
        AccuracyError
            If no such bound is proved.
        """
        if self.is_discrete:
            return arb(1)
        if self._decay is None:
            self._decay = LossDensity(self.pair, self.tilt, self.parts.cgf(self.tilt))
            self._flat = self._flat_mass()
            try:
                self._known[1] = self._decay.bound(1)
            except AccuracyError:  # the loss turns: its constants depend on the frequency
                self._known.clear()
        if 1 not in self._known:
            key = -max(int(math.log2(float(frequency))) // 2 * 2, 0)
            if key not in self._known:
                self._known[key] = self._decay.bound(1, arb(2) ** -key)
            moving = self._known[key].at(frequency)
        else:
            moving = self._known[1].at(frequency)
            for order in _ORDERS if small and not self._flat > 0 else ():
                if order not in self._known:
                    self._known[order] = self._decay.bound(order)
                own = self._known[order].at(frequency)
                if not own < moving:
                    break
                moving = own
        return arb((self._flat + moving).min(arb(1)).upper())

    def _flat_mass(self) -> arb:
        """Bound the tilted mass of flat pieces, where the loss has atoms."""
        total = arb(0)
        z = acb(constant_ball(self.tilt, ctx.prec).real)
        for part in self.parts.stretches:
            if part.piece.slope == "constant":
                cut = part.cut(self.parts.reach(self.tilt), _CUT_BITS)
                own = part.integral(z, self.scale, cut, _COARSE_GOAL).real
                total += own + cut.beyond * (-self.scale).exp()
        return arb((total * self.log_excess().exp()).upper())
