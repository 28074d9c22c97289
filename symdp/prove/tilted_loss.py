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
from symdp.balls.cuts import cut_tail
from symdp.density.records import DISTANCE
from symdp.emit.arb import UNKNOWN
from symdp.emit.enclose import find_cut
from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError
from symdp.model.pair import Pair
from symdp.numeric.total import SumLaw
from symdp.prove.kind import Kind, Stretch, kind_of
from symdp.prove.measure import Asked, Panels, measure
from symdp.prove.plan import panels_of
from symdp.tolerances import BITS

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
            moments = []
            for tilt in dict.fromkeys((low, high)):
                scale = log_moment(kind, tilt)
                moments.append(Asked(real_ball(tilt), scale, -bits * LOG2, reach))
            self.asked = tuple(moments)
            self.panels, self.tails = covered(kind, self.asked, bits)
            single = []
            self._spread = []
            for stretch_panels in self.panels:
                if kind.stretches[stretch_panels.stretch].has_density:
                    self._spread.append(stretch_panels)
                else:
                    single.append(stretch_panels)
            self._single = measure(kind, single, self.asked)
            self._smooth = measure(_without_points(kind), self._spread, self.asked)
        self._weights = self._single.weights + self._smooth.weights
        self._losses = self._single.losses + self._smooth.losses
        self._kept_weights: dict[sp.Rational, tuple[list[arb], arb]] = {}

    def cgf(self, tilt: sp.Rational, turn: sp.Rational = sp.S.Zero) -> Any:
        """Enclose K(t) = log ∫ P^{1+t} Q^{−t}, or K(t + iy)."""
        with ctx.workprec(self.precision):
            if turn != 0:
                return self._moment_at(tilt, turn).log()
            return self._moment_ball(tilt, self._mean_about(tilt), 0).log()

    def mean(self, tilt: sp.Rational) -> arb:
        """Enclose K′(t)."""
        with ctx.workprec(self.precision):
            about = self._mean_about(tilt)
            return about + self._moment_ratio(tilt, about, 1)

    def variance(self, tilt: sp.Rational) -> arb:
        """Enclose K″(t)."""
        with ctx.workprec(self.precision):
            about = self._mean_about(tilt)
            first = self._moment_ratio(tilt, about, 1)
            return self._moment_ratio(tilt, about, 2) - first * first

    def square_about(self, tilt: sp.Rational, centre: arb) -> arb:
        """Enclose E_t(ℓ − c)²."""
        with ctx.workprec(self.precision):
            about = self._mean_about(tilt)
            first = self._moment_ratio(tilt, about, 1)
            distance = about - centre
            second = self._moment_ratio(tilt, about, 2)
            return second + (2 * first + distance) * distance

    def third(self, tilt: sp.Rational) -> arb:
        """Enclose P_t = E_t|ℓ − K′(t)|³."""
        with ctx.workprec(self.precision):
            centre = self.mean(tilt)
            t = real_ball(tilt)
            scale = log_moment(self.kind, tilt)
            variance = self.variance(tilt)
            if variance > 0:
                scale += 1.5 * float(variance.log().mid())
            moment = Asked(t, scale, self.asked[0].log_error)
            cubed = _without_points(self.kind)
            stretches = [_Cubed(stretch, centre) for stretch in self.kind.stretches]
            cubed.stretches = tuple(stretches)
            nodes = measure(cubed, self._spread, [moment])
            total = nodes.total(moment, 0) * arb(moment.scale).exp()
            for weight, loss in zip(self._single.weights, self._single.losses, strict=True):
                distance = abs(loss - centre)
                tilted_weight = weight * (t * loss).exp()
                total += tilted_weight * distance * distance * distance
            lacking = self._moment_error(tilt, centre, 3, self.tails)
            total += arb(0, 2 * lacking)
            return total / self._moment_ball(tilt, self._mean_about(tilt), 0)

    def smooth_part(self, tilt: sp.Rational) -> arb:
        """Bound what the part of the loss that has a density adds to M(t)."""
        with ctx.workprec(self.precision):
            about = self._mean_about(tilt)
            lacking = self._moment_error(tilt, about, 0, self._smooth.errors, self.tails)
            t = real_ball(tilt)
            total = arb(0)
            for weight, loss in zip(self._smooth.weights, self._smooth.losses, strict=True):
                total = total + weight * (t * loss).exp()
            return arb((total + lacking).upper())

    def _weights_and_mean(self, tilt: sp.Rational) -> tuple[list[arb], arb]:
        """Return the weights of e^{tℓ}dP, and about the mean as an exact number."""
        if tilt not in self._kept_weights:
            t = real_ball(tilt)
            pairs = list(zip(self._weights, self._losses, strict=True))
            weights = [weight * (t * loss).exp() for weight, loss in pairs]
            total = sum(weights, arb(0))
            if not total > 0:
                raise AccuracyError("the loss is infinite everywhere: there is nothing to tilt")
            first = arb(0)
            for weight, loss in zip(weights, self._losses, strict=True):
                first = first + weight * loss
            self._kept_weights[tilt] = (weights, arb((first / total).mid()))
        return self._kept_weights[tilt]

    def _mean_about(self, tilt: sp.Rational) -> arb:
        _, mean = self._weights_and_mean(tilt)
        return mean

    def _moment_ratio(self, tilt: sp.Rational, centre: arb, power: int) -> arb:
        whole = self._moment_ball(tilt, self._mean_about(tilt), 0)
        return self._moment_ball(tilt, centre, power) / whole

    def _moment_ball(self, tilt: sp.Rational, centre: arb, power: int) -> arb:
        """Enclose ∫ (ℓ − c)^k e^{tℓ} dP."""
        error = self._moment_error(tilt, centre, power, *self._errors())
        weights, _ = self._weights_and_mean(tilt)
        total = arb(0, error)
        for weight, loss in zip(weights, self._losses, strict=True):
            distance = loss - centre
            total = total + math.prod([distance] * power, start=weight)
        return total

    def _errors(self) -> tuple[Sequence[arb], ...]:
        return self._single.errors, self._smooth.errors, self.tails

    def _moment_error(
        self, tilt: sp.Rational, centre: arb, power: int, *errors: Sequence[arb]
    ) -> arb:
        """Bound what a moment lacks for errors of e^{−scale}M at both ends."""
        t = real_ball(tilt)
        total = arb(0)
        for number, moment in enumerate(self.asked):
            error = sum((bounds[number] for bounds in errors), arb(0))
            log_size = moment.scale + (t - moment.tilt) * centre
            total += error * log_size.exp()
        if power and total != 0:
            distances = [abs(moment.tilt - t) for moment in self.asked]
            radius = min(distances, key=float)
            total *= math.factorial(power) / radius**power
        return arb(total.upper())

    def _moment_at(self, tilt: sp.Rational, turn: sp.Rational) -> acb:
        z = acb(real_ball(tilt), real_ball(turn))
        about = self._mean_about(tilt)
        error = self._moment_error(tilt, about, 0, *self._errors())
        total = acb(arb(0, error), arb(0, error))
        for weight, loss in zip(self._weights, self._losses, strict=True):
            total = total + weight * (z * loss).exp()
        return total


def log_moment(kind: Kind, tilt: sp.Rational) -> float:
    """Return about K(t)."""
    law = SumLaw([(kind.law, 1)])
    height = law.cgf(float(tilt))
    return float(f"{height:.12g}")


def _without_points(kind: Kind) -> Kind:
    smooth_kind = copy.copy(kind)
    smooth_kind.points = ()
    return smooth_kind


class _Cubed(Stretch):
    """A stretch with |ℓ − c|³ in its density."""

    def __init__(self, stretch: Stretch, centre: arb) -> None:
        super().__init__(stretch.exact, stretch.piece, stretch.variable)
        self._own = stretch
        self._centre = centre

    def values(self, x: Any, *, analytic: bool = False) -> tuple[Any, Any]:
        """Return log P with the cube, and ℓ; where the cube may be 0, a bound of it."""
        log_p, loss = self._own.values(x, analytic=analytic)
        distance = loss - self._centre
        if analytic and distance.real.contains(0):
            return UNKNOWN, loss
        size = abs(distance)
        if size.contains(0):
            size = size.upper()
        return log_p + 3 * size.log(), loss


def covered(
    kind: Kind, moments: Sequence[Asked], bits: int
) -> tuple[list[Panels], tuple[arb, ...]]:
    """Return panels of all stretches, and bounds of e^{−scale} ∫ e^{tℓ} dP beyond them.

    Cuts are where about 2^{−bits} is left at each of the tilts.
    """
    panels = []
    tails = [arb(0) for _ in moments]
    tolerance = arb(2) ** -(bits + 2)
    tilts = (0.0, *(float(moment.tilt) for moment in moments))
    for number, stretch in enumerate(kind.stretches):
        if stretch.is_infinite:
            continue
        edges = set[float]()
        for tilt in tilts:
            stretch_panels = panels_of(kind, tilt, 0.0, -bits * LOG2)[number]
            edges |= set(stretch_panels.edges)
        ordered = sorted(edges)
        if ordered:
            for side in (0, -1):
                more, masses = _edges_and_tail(stretch, side, ordered, moments, tolerance)
                ordered = sorted({*ordered, *more})
                tails = [tail + mass for tail, mass in zip(tails, masses, strict=True)]
        panels.append(Panels(number, tuple(ordered)))
    return panels, tuple(arb(tail.upper()) for tail in tails)


def _edges_and_tail(
    stretch: Stretch, side: int, edges: Sequence[float], moments: Sequence[Asked], tolerance: arb
) -> tuple[list[float], list[arb]]:
    """Return edges up to a cut on one side, and what is beyond it at each tilt."""
    last = edges[side]
    direction = 1 if side else -1
    exact = (stretch.exact.lower, stretch.exact.upper)[side]
    piece = stretch.piece
    if piece is not None and last == (piece.lower, piece.upper)[side]:
        return [], [arb(0) for _ in moments]
    farthest = arb(direction * last)
    masses = []
    for moment in moments:
        cut, mass = _place_of_cut(stretch, exact, direction, last, moment, tolerance)
        farthest = farthest.max(direction * cut)
        masses.append(mass)
    end = direction * float(farthest.mid())
    if exact.is_finite and not stretch.is_moved:
        anchor = float(exact)
        first = last - anchor
        steps = _steps_between(first, end - anchor)
        marks = [anchor + first * (1 / _GROWTH) ** k for k in range(1, steps)]
    else:
        first = max(abs(last), 1.0)
        steps = _steps_between(abs(end), first)
        marks = [direction * first * _GROWTH**k for k in range(1, steps)]
    inner = [m for m in marks if direction * last < direction * m < direction * end]
    if stretch.is_integer:
        inner = list(map(round, inner))
    return [*inner, end], masses


def _steps_between(larger: float, smaller: float) -> int:
    """Return how many steps lead from one distance to another."""
    log_ratio = abs(math.log(abs(larger / smaller)))
    return 2 + math.ceil(log_ratio / math.log(_GROWTH))


def _place_of_cut(
    stretch: Stretch, exact: sp.Expr, direction: int, last: float, moment: Asked, tolerance: arb
) -> tuple[arb, arb]:
    """Return a place in the coordinate of panels, and a bound of what is beyond it."""

    def height(point: arb) -> arb:
        log_p, loss = stretch.values(point)
        return arb((log_p + moment.tilt * loss - moment.scale).exp())

    if stretch.is_moved:
        away = arb(abs(last)).max(arb(1))
        return find_cut(height, away, direction, tolerance)
    formula = stretch.exact
    x = stretch.variable
    scale = sp.Rational(*moment.scale.as_integer_ratio())
    exponent = formula.log_p + _exact_tilt(moment.tilt) * formula.loss - scale
    if exact.is_infinite:
        lower, upper = stretch.ends()
        other = lower if direction > 0 else upper
        far = exponent.xreplace({x: direction * DISTANCE})
        return cut_tail([far], height, direction, other, tolerance, whole=stretch.is_integer)
    near = exact - direction * sp.exp(-DISTANCE)
    end = real_ball(exact)

    def height_beside(y: arb) -> arb:
        distance = (-y).exp()
        return height(end - direction * distance) * distance

    distance = abs(last - float(exact))
    begin = arb(-math.log(distance)).upper()
    far = exponent.subs(x, near) - DISTANCE
    start = begin if begin > 0 else None
    cut, mass = cut_tail([far], height_beside, 1, start, tolerance)
    cut_distance = (-cut).exp()
    return arb((end - direction * cut_distance).mid()), mass


def _exact_tilt(tilt: arb) -> sp.Rational:
    if tilt.is_exact():
        return sp.Rational(str(tilt.mid().fmpq()))
    return sp.Rational(float(tilt))


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
    t = sp.re(z)
    y = sp.im(z)
    bits = math.ceil((digits + 2) / math.log10(2))
    loss = TiltedLoss(kind_of(pair), t, t, abs(float(y)), bits)
    return acb(loss.cgf(t, y))


@lru_cache(maxsize=64)
def tilted_loss(pair: Pair, low: sp.Rational, high: sp.Rational) -> TiltedLoss:
    """Return the tilted loss of a pair between two tilts, whose nodes are kept."""
    return TiltedLoss(kind_of(pair), low, high)
