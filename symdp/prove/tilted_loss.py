"""E e^{zℓ} of one step's finite loss and what follows from it, for all tilts between two, in balls.

One set of nodes serves them all.  What panels, their rule and the tails lack of M(z) is bounded at
the two ends by e_a and e_b, and between them, |Im z| ≤ (b − a)/2, by Σ_{s = a, b} e^{(x − s)c} e_s
for x = Re z and any c, as e^{xu} ≤ e^{au} + e^{bu} if a ≤ x ≤ b.  Moments about c are those of
e^{−zc}M(z) by derivatives, so that by Cauchy on a circle of radius r they lack at most

    |∫ (ℓ − c)^k e^{tℓ} dP − Σ w (ℓ − c)^k e^{tℓ}| ≤ (k!/r^k) Σ_{s = a, b} e^{(t − s)c} e_s.

|ℓ − c|³ has a kink: it is a part of the density instead, and panels are halved towards its zero.

Beyond the last panel e^{aℓ}P and e^{bℓ}P are bounded by one slope each (see `cuts`); next to a
finite end at which there is no value, x = end ± e^{−y} puts that end at infinity.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sympy as sp
from flint import acb, arb, ctx

from symdp.arguments import instance
from symdp.balls.cuts import DISTANCE, cut_tail
from symdp.emit.arb import UNKNOWN
from symdp.emit.enclose import find_cut
from symdp.emit.exact import BITS, real_ball
from symdp.errors import AccuracyError
from symdp.model.pair import Pair
from symdp.numeric.total import SumLaw
from symdp.prove.kind import Kind, Stretch, kind_of
from symdp.prove.measure import Asked, Panels, measure
from symdp.prove.plan import panels_of

ACCURACY = 88  # bits of M at both ends of a range of tilts
_GROWTH = 4.0  # of the distance from the last panel, up to a cut
LOG2 = math.log(2.0)  # e-folds of a bit


class TiltedLoss:
    """The finite loss of one step under dP_t ∝ e^{tℓ}dP."""

    def __init__(
        self,
        kind: Kind,
        low: sp.Rational,
        high: sp.Rational,
        reach: float = 0.0,
        bits: int = ACCURACY,
    ) -> None:
        self.kind = kind
        self.precision = max(BITS, bits + 40)
        reach += float(high - low) / 2
        with ctx.workprec(self.precision):
            self.asked = tuple(
                Asked(real_ball(tilt), log_moment(kind, tilt), -bits * LOG2, reach)
                for tilt in dict.fromkeys((low, high))
            )
            self.panels, self.tails = covered(kind, self.asked, bits)
            single = [
                stretch_panels
                for stretch_panels in self.panels
                if not kind.stretches[stretch_panels.stretch].has_density
            ]
            self._spread = [
                stretch_panels for stretch_panels in self.panels if stretch_panels not in single
            ]
            self._single = measure(kind, single, self.asked)
            self._smooth = measure(_without_points(kind), self._spread, self.asked)
        self._weights = self._single.weights + self._smooth.weights
        self._losses = self._single.losses + self._smooth.losses
        self._known: dict[sp.Rational, tuple[list[arb], arb]] = {}

    def cgf(self, tilt: sp.Rational, turn: sp.Rational = sp.S.Zero) -> Any:
        """Enclose K(t) = log ∫ P^{1+t} Q^{−t}, or K(t + iy)."""
        with ctx.workprec(self.precision):
            if turn != 0:
                return self._turned(tilt, turn).log()
            return self._moment(tilt, self._about(tilt), 0).log()

    def mean(self, tilt: sp.Rational) -> arb:
        """Enclose K′(t)."""
        with ctx.workprec(self.precision):
            about = self._about(tilt)
            return about + self._ratio(tilt, about, 1)

    def variance(self, tilt: sp.Rational) -> arb:
        """Enclose K″(t)."""
        with ctx.workprec(self.precision):
            about = self._about(tilt)
            away = self._ratio(tilt, about, 1)
            return self._ratio(tilt, about, 2) - away * away

    def square_about(self, tilt: sp.Rational, centre: arb) -> arb:
        """Enclose E_t(ℓ − c)²."""
        with ctx.workprec(self.precision):
            about = self._about(tilt)
            away = self._ratio(tilt, about, 1)
            distance = about - centre
            return self._ratio(tilt, about, 2) + (2 * away + distance) * distance

    def third(self, tilt: sp.Rational) -> arb:
        """Enclose P_t = E_t|ℓ − K′(t)|³."""
        with ctx.workprec(self.precision):
            centre = self.mean(tilt)
            t = real_ball(tilt)
            scale = log_moment(self.kind, tilt)
            square = self.variance(tilt)
            size = 1.5 * float(square.log().mid()) if square > 0 else 0.0
            moment = Asked(t, scale + size, self.asked[0].log_error)
            cubed = _without_points(self.kind)
            cubed.stretches = tuple(_Cubed(stretch, centre) for stretch in self.kind.stretches)
            nodes = measure(cubed, self._spread, [moment])
            total = nodes.total(moment, 0) * arb(moment.scale).exp()
            for weight, loss in zip(self._single.weights, self._single.losses, strict=True):
                away = abs(loss - centre)
                total += weight * (t * loss).exp() * away * away * away
            total += arb(0, 2 * self._lacking(tilt, centre, 3, self.tails))
            return total / self._moment(tilt, self._about(tilt), 0)

    def smooth_part(self, tilt: sp.Rational) -> arb:
        """Bound what the part of the loss that has a density adds to M(t)."""
        with ctx.workprec(self.precision):
            lacking = self._lacking(tilt, self._about(tilt), 0, self._smooth.errors, self.tails)
            t = real_ball(tilt)
            nodes = zip(self._smooth.weights, self._smooth.losses, strict=True)
            return arb((sum((w * (t * x).exp() for w, x in nodes), arb(0)) + lacking).upper())

    def _tilted(self, tilt: sp.Rational) -> tuple[list[arb], arb]:
        """Return the weights of e^{tℓ}dP, and about the mean as an exact number."""
        if tilt not in self._known:
            t = real_ball(tilt)
            weights = [w * (t * x).exp() for w, x in zip(self._weights, self._losses, strict=True)]
            total = sum(weights, arb(0))
            if not total > 0:
                raise AccuracyError("the loss is infinite everywhere: there is nothing to tilt")
            sums = sum((w * x for w, x in zip(weights, self._losses, strict=True)), arb(0))
            self._known[tilt] = weights, arb((sums / total).mid())
        return self._known[tilt]

    def _about(self, tilt: sp.Rational) -> arb:
        return self._tilted(tilt)[1]

    def _ratio(self, tilt: sp.Rational, centre: arb, power: int) -> arb:
        return self._moment(tilt, centre, power) / self._moment(tilt, self._about(tilt), 0)

    def _moment(self, tilt: sp.Rational, centre: arb, power: int) -> arb:
        """Enclose ∫ (ℓ − c)^k e^{tℓ} dP."""
        lacking = self._lacking(tilt, centre, power, *self._errors())
        weights, _ = self._tilted(tilt)
        terms = (
            math.prod([x - centre] * power, start=w)
            for w, x in zip(weights, self._losses, strict=True)
        )
        return sum(terms, arb(0, lacking))

    def _errors(self) -> tuple[Sequence[arb], ...]:
        return self._single.errors, self._smooth.errors, self.tails

    def _lacking(self, tilt: sp.Rational, centre: arb, power: int, *errors: Sequence[arb]) -> arb:
        """Bound what a moment lacks for errors of e^{−scale}M at both ends."""
        t = real_ball(tilt)
        total = arb(0)
        radius = min((abs(moment.tilt - t) for moment in self.asked), key=float)
        for number, moment in enumerate(self.asked):
            error = sum((bounds[number] for bounds in errors), arb(0))
            total += error * (moment.scale + (t - moment.tilt) * centre).exp()
        if power and total != 0:
            total *= math.factorial(power) / radius**power
        return arb(total.upper())

    def _turned(self, tilt: sp.Rational, turn: sp.Rational) -> acb:
        z = acb(real_ball(tilt), real_ball(turn))
        lacking = self._lacking(tilt, self._about(tilt), 0, *self._errors())
        terms = (w * (z * x).exp() for w, x in zip(self._weights, self._losses, strict=True))
        return sum(terms, acb(arb(0, lacking), arb(0, lacking)))


def log_moment(kind: Kind, tilt: sp.Rational) -> float:
    """Return about K(t)."""
    return float(f"{SumLaw([(kind.law, 1)]).cgf(float(tilt)):.12g}")


def _without_points(kind: Kind) -> Kind:
    smooth_kind = copy.copy(kind)
    smooth_kind.points = ()
    return smooth_kind


class _Cubed(Stretch):
    """A stretch with |ℓ − c|³ in its density."""

    def __init__(self, stretch: Stretch, centre: arb) -> None:
        super().__init__(stretch.exact, stretch.piece, stretch.variable)
        self._own, self._centre = stretch, centre

    def values(self, x: Any, *, analytic: bool = False) -> tuple[Any, Any]:
        """Return the same with the cube; where that may be 0, a bound of it."""
        log_p, loss = self._own.values(x, analytic=analytic)
        away = loss - self._centre
        if analytic and away.real.contains(0):
            return UNKNOWN, loss
        size = abs(away)
        return log_p + 3 * (size.upper() if size.contains(0) else size).log(), loss


def covered(
    kind: Kind, moments: Sequence[Asked], bits: int
) -> tuple[list[Panels], tuple[arb, ...]]:
    """Return panels of all stretches, and bounds of e^{−scale} ∫ e^{tℓ} dP beyond them.

    Cuts are where about 2^{−bits} is left at each of the tilts.
    """
    panels = []
    tails = [arb(0) for _ in moments]
    tolerance = arb(2) ** -(bits + 2)
    for number, stretch in enumerate(kind.stretches):
        if stretch.is_infinite:
            continue
        edges = set[float]()
        for tilt in (0.0, *(float(moment.tilt) for moment in moments)):
            stretch_panels = panels_of(kind, tilt, 0.0, -bits * LOG2)[number]
            edges |= set(stretch_panels.edges)
        ordered = sorted(edges)
        if ordered:
            for side in (0, -1):
                more, masses = _tail(stretch, side, ordered, moments, tolerance)
                ordered = sorted({*ordered, *more})
                tails = [a + b for a, b in zip(tails, masses, strict=True)]
        panels.append(Panels(number, tuple(ordered)))
    return panels, tuple(arb(tail.upper()) for tail in tails)


def _tail(
    stretch: Stretch, side: int, edges: Sequence[float], moments: Sequence[Asked], tolerance: arb
) -> tuple[list[float], list[arb]]:
    """Return edges up to a cut on one side, and what is beyond it at each tilt."""
    last = edges[side]
    direction = 1 if side else -1
    exact = (stretch.exact.lower, stretch.exact.upper)[side]
    if stretch.piece is not None and last == (stretch.piece.lower, stretch.piece.upper)[side]:
        return [], [arb(0) for _ in moments]
    farthest = arb(direction * last)
    masses = []
    for moment in moments:
        cut, mass = _cut(stretch, exact, direction, last, moment, tolerance)
        farthest = farthest.max(direction * cut)
        masses.append(mass)
    end = direction * float(farthest.mid())
    if exact.is_finite and not stretch.is_moved:
        anchor = float(exact)
        steps, far = (last - anchor, end - anchor), 1 / _GROWTH
        marks = [anchor + steps[0] * far**k for k in range(1, _reach(*steps))]
    else:
        first = max(abs(last), 1.0)
        marks = [direction * first * _GROWTH**k for k in range(1, _reach(abs(end), first))]
    inner = [m for m in marks if direction * last < direction * m < direction * end]
    if stretch.is_integer:
        return [*map(round, inner), end], masses
    return [*inner, end], masses


def _reach(larger: float, smaller: float) -> int:
    """Return how many steps lead from one distance to another."""
    return 2 + math.ceil(abs(math.log(abs(larger / smaller)) / math.log(_GROWTH)))


def _cut(
    stretch: Stretch, exact: sp.Expr, direction: int, last: float, moment: Asked, tolerance: arb
) -> tuple[arb, arb]:
    """Return a place in the coordinate of panels, and a bound of what is beyond it."""
    scale = sp.Rational(*moment.scale.as_integer_ratio())

    def height(point: arb) -> arb:
        log_p, loss = stretch.values(point)
        return arb((log_p + moment.tilt * loss - moment.scale).exp())

    if stretch.is_moved:
        return find_cut(height, arb(abs(last)).max(arb(1)), direction, tolerance)
    formula = stretch.exact
    x = stretch.variable
    exponent = formula.log_p + _exact(moment.tilt) * formula.loss - scale
    if exact.is_infinite:
        other = stretch.ends()[0 if direction > 0 else 1]
        far = exponent.xreplace({x: direction * DISTANCE})
        return cut_tail([far], height, direction, other, tolerance, whole=stretch.is_integer)
    near = exact - direction * sp.exp(-DISTANCE)
    end = real_ball(exact)

    def beside(y: arb) -> arb:
        point = end - direction * (-y).exp()
        return height(point) * (-y).exp()

    begin = arb(-math.log(abs(last - float(exact)))).upper()
    far = exponent.subs(x, near) - DISTANCE
    cut, mass = cut_tail([far], beside, 1, begin if begin > 0 else None, tolerance)
    return arb((end - direction * (-cut).exp()).mid()), mass


def _exact(tilt: arb) -> sp.Rational:
    return sp.Rational(str(tilt.mid().fmpq())) if tilt.is_exact() else sp.Rational(float(tilt))


def cgf_ball(pair: Pair, z: sp.Expr, digits: int = 30) -> acb:
    """Enclose K(z) = log ∫ P^{1+z} Q^{−z} of one step, floating point included.

    Parameters
    ----------
    pair
        With all parameters bound.
    z
        A complex number with rational parts; its real part in the domain of K.
    digits
        Absolute accuracy aimed at, in decimal digits.

    Returns
    -------
    acb
        A ball that contains K(z), on the principal branch.

    Raises
    ------
    AccuracyError
        If no tail bound is found, as outside the domain of K.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> ball = cgf_ball(mechanisms.gaussian(sigma=2).pair(), sp.Rational(1, 2), 20)
    >>> ball.real.contains(arb(3) / 32)
    True
    """
    instance(pair, Pair, "it is no pair: give mechanism.pair()")
    t, y = sp.re(z), sp.im(z)
    bits = math.ceil((digits + 2) / math.log10(2))
    return acb(TiltedLoss(kind_of(pair), t, t, abs(float(y)), bits).cgf(t, y))


@lru_cache(maxsize=64)
def tilted_loss(pair: Pair, low: sp.Rational, high: sp.Rational) -> TiltedLoss:
    """Return the tilted loss of a pair between two tilts, whose nodes are kept."""
    return TiltedLoss(kind_of(pair), low, high)
