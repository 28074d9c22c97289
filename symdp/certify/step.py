"""One step at one tilt: enclosures of its transform, and proved bounds of its modulus."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.certify.changes import compactified, straightened
from symdp.certify.decay import Decay
from symdp.certify.lifted import Lifted
from symdp.certify.moments import Stretch, stretch, top_tilt
from symdp.certify.nodes import Local, Nodes, path_nodes
from symdp.certify.walk import Need, Walk
from symdp.certify.work import OutOfWorkError
from symdp.derive.pieces import pieces, points
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.certify.lifted import Segment
    from symdp.derive.records import Point
    from symdp.pair import Pair

_CUBIC = arb("0.0991620")  # cos u ≤ 1 − u²/2 + χ|u|³ holds from χ = 0.09916191… on
_COARSE = 96  # bits of what only bounds
_COARSE_GOAL = arb(2) ** -50
_CUT_BITS = 128
_CLOSEST = 8
_MOST_SCALES = 50
_GROWTH = 1.5  # nodes are made for frequencies so much further than asked
_MOST_WALKS = 4
_MANY = 600
_HIGH = 3.0  # deviations per unit of y from which on a path beside the axis serves


class Parts:
    """What one step's finite loss consists of: single points, or stretches of the support."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.points: tuple[Point, ...] = tuple(
            point for point in points(pair) if not point.loss.is_infinite and point.p != 0
        )
        self.stretches: tuple[Stretch, ...] = tuple(
            compactified(straightened(stretch(piece, pair.variable)))
            for piece in pieces(pair)
            if piece.log_p is not None and piece.log_q is not None
        )
        if not self.points and not self.stretches:
            raise AccuracyError("the loss is infinite everywhere: there is nothing to tilt")
        self._reached: dict[sp.Rational, sp.Rational] = {}
        self._refused: sp.Expr = sp.oo
        self._lifted: dict[tuple[Stretch, int, sp.Rational], Lifted] = {}

    @property
    def has_atoms(self) -> bool:
        """Whether a value of the loss has a mass of its own."""
        return bool(self.points) or any(part.is_flat for part in self.stretches)

    @property
    def is_discrete(self) -> bool:
        """Whether the loss has atoms only."""
        return all(part.x.is_integer or part.is_flat for part in self.stretches)

    def reach(self, tilt: sp.Rational) -> sp.Rational:
        """Return a tilt above the given one at which the tails are bounded, and so K finite.

        Raises
        ------
        AccuracyError
            If there is none, as at the end of the domain of K.
        """
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
                except OutOfWorkError:
                    raise
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

    def nodes(
        self, tilt: sp.Rational, scale: arb, reach: float, tolerance: arb, start: float = 0.0
    ) -> Nodes:
        """Return nodes of e^{−scale} M(t + iy) for start ≤ y ≤ reach, to about a tolerance."""
        t = constant_ball(tilt, ctx.prec).real
        weights: list[arb] = []
        losses: list[arb] = []
        for point in self.points:
            mass, loss = (constant_ball(e, ctx.prec).real for e in (point.p, point.loss))
            weights.append((t * loss + mass.log() - scale).exp())
            losses.append(loss)
        bits = max(int(-float(tolerance.log().mid()) / math.log(2)), 40) + 10
        bits = 128 * math.ceil(bits / 128)  # few cuts serve all
        error = arb(0)
        ends = list(losses)
        for part in self.stretches:
            cut = part.cut(self.reach(tilt), bits)
            error += cut.beyond * (-scale).exp()
            path = None if start == 0.0 else self._path(part, bits, tilt, scale, start)
            if path is None:
                found = part.nodes(cut, t, scale, reach=reach, tolerance=tolerance)
            else:
                found = path_nodes(
                    part, path, t, scale,
                    frequencies=(start, reach), tolerance=tolerance, spare=part.spare(cut),
                )  # fmt: skip
            weights += found.weights
            losses += found.losses
            error += found.error
            with ctx.workprec(ctx.prec + part.spare(cut)):
                ends += [part.loss(end.mid()) for end in (cut.lower, cut.upper)]
        error = arb(error.upper())
        return Nodes(tuple(weights), tuple(losses), error, reach, (), start, tuple(ends))

    def _path(
        self, part: Stretch, bits: int, tilt: sp.Rational, scale: arb, frequency: float
    ) -> tuple[Segment, ...] | None:
        """Return a path beside the axis from a frequency on, None where there is none."""
        if part.x.is_integer or part.piece.slope not in ("increasing", "decreasing"):
            return None
        key = part, bits, tilt
        if key not in self._lifted:
            cut = part.cut(self.reach(tilt), bits)
            t = constant_ball(tilt, ctx.prec).real
            self._lifted[key] = Lifted(part, cut.lower.mid(), cut.upper.mid(), t, scale)
        return self._lifted[key].segments(frequency)

    def moment(self, tilt: sp.Rational, power: int, centre: arb, scale: arb) -> arb:
        """Enclose e^{−scale} E (L − c)^d e^{tL}, d even or 1."""
        t = constant_ball(tilt, ctx.prec).real
        total = arb(0)
        for point in self.points:
            mass, loss = (constant_ball(e, ctx.prec).real for e in (point.p, point.loss))
            total += (t * loss - scale).exp() * mass * (loss - centre) ** power
        room = constant_ball(min(self.reach(tilt) - tilt, tilt, sp.S.One), ctx.prec).real
        turned = (room * centre).exp() + (-room * centre).exp()
        spread = math.factorial(power) / room**power * turned * (-scale).exp()
        for part in self.stretches:
            cut = part.cut(self.reach(tilt), _CUT_BITS)
            found = part.nodes(cut, t, scale, tolerance=_COARSE_GOAL, power=power, centre=centre)
            total += found.total() + arb(0, (cut.beyond * spread).upper())
        return total

    @lru_cache(maxsize=256)  # noqa: B019  (parts are few and live as long as their numbers)
    def cgf(self, tilt: sp.Rational) -> arb:
        """Enclose K(t), t ≥ 0, to about fifteen digits.

        Raises
        ------
        AccuracyError
            If K is infinite there, or no bound of a tail is found.
        """
        with ctx.workprec(_COARSE):
            scale = self._height(tilt)
            for _ in range(_MOST_SCALES):
                total = self.nodes(tilt, scale, 0.0, _COARSE_GOAL).total()
                if not total > 0:
                    raise AccuracyError("a tilted moment could not be enclosed")
                found = scale + total.log()
                # Far from 1, the absolute tolerance is not what is wanted: scale and repeat.
                if abs(found - scale) < 20:
                    return found
                scale = found.mid()
            raise AccuracyError("a tilted moment could not be enclosed")

    def _height(self, tilt: sp.Rational) -> arb:
        """Return about the largest logarithm of the tilted density, to begin with."""
        t = constant_ball(tilt, ctx.prec).real
        heights = [
            part.peak(part.cut(self.reach(tilt), _CUT_BITS), t)
            for part in self.stretches
            if not part.x.is_integer
        ]
        return arb(max(heights, default=0.0))


def _bits(tolerance: arb) -> int:
    """Return −log₂ of a tolerance, rounded up to a multiple of 16 so that few nodes serve all."""
    return 16 * math.ceil(max(-float(tolerance.log().mid()) / math.log(2), 8.0) / 16)


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
        self._decay: Decay | None = None
        self._moments: tuple[arb, arb] | None = None
        self._nodes: list[tuple[int, int, Nodes]] = []
        self._walks: dict[tuple[str, Need, int], Walk] = {}
        self._crowded = False  # whether low frequencies need many nodes on the real axis

    @property
    def is_discrete(self) -> bool:
        """Whether the loss has atoms only, so that the modulus need not decay."""
        return self.parts.is_discrete

    def around(self, y: arb, distance: arb, tolerance: arb) -> Local:
        """Return what bounds |e^{−scale} M(t + iy)| around a y, as far as a distance if it may."""
        reach = float(y.upper()) + min(float(distance), float(y) / 2)
        return self.nodes(
            reach, max(float(y) - float(distance), float(y) / 2), _bits(tolerance)
        ).around(y)

    def nodes(self, reach: float, start: float, bits: int) -> Nodes:
        """Return the fewest nodes that serve start ≤ y ≤ reach, to about 2^(−bits).

        All are kept: a walk that starts again at y = 0 would pay for the widest at every step.
        """
        serving = [
            nodes
            for precision, fine, nodes in self._nodes
            if precision >= ctx.prec and fine >= bits
            if nodes.start <= start and reach <= nodes.reach
        ]
        if serving:
            return min(serving, key=lambda nodes: len(nodes.losses))
        tolerance = arb(2) ** -bits
        made = partial(self.parts.nodes, self.tilt, self.scale, _GROWTH * reach, tolerance)
        # Few nodes serve low frequencies on the real axis, and all from 0 on.
        is_low = start * float(self.deviation()) < _HIGH
        ways = [0.0] if start == 0.0 else [0.0, start] if is_low else [start]
        if self._crowded:
            ways.reverse()
        found = made(ways.pop(0))
        if len(found.losses) > _MANY and is_low:
            self._crowded = True
            found = min([found, *map(made, ways)], key=lambda nodes: len(nodes.losses))
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

    def flat(self, part: Stretch) -> arb:
        """Enclose e^{−scale} E e^{tL} over a piece on which the loss is constant."""
        t = constant_ball(self.tilt, ctx.prec).real
        bits = _bits(arb(2) ** -ctx.prec)
        cut = part.cut(self.parts.reach(self.tilt), bits)
        found = part.nodes(cut, t, self.scale, tolerance=arb(2) ** -bits)
        return arb(found.total() + arb(0, (cut.beyond * (-self.scale).exp()).upper()))

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
                fourth = parts.moment(t, 4, mean, scale) / total
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

    def decay(self, frequency: arb, each: float, *, patient: bool = True) -> arb:
        """Return a bound of |φ(y)| for all y ≥ frequency: the atoms and V_k/y^k of what moves.

        Parameters
        ----------
        each : float
            The modulus that is wanted.
        patient : bool
            Whether to look for it in ways that cost more.

        Raises
        ------
        AccuracyError
            If no such bound is proved.
        """
        if self.is_discrete:
            return arb(1)
        if self._decay is None:
            self._decay = Decay(self.parts, self.tilt)
        return self._decay.at(frequency, each, patient=patient)


@lru_cache(maxsize=64)
def tilted_step(pair: Pair, tilt: sp.Rational) -> TiltedStep:
    """Return a step at a tilt, whose nodes and bounds are kept."""
    return TiltedStep(pair, tilt)
