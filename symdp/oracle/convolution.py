"""δ(ε) of few steps by convolving one step at a time, where the contour converges too slowly.

With h(e) = (1 − e^e)⁺ or one of its complements, the integral I of a strip is E h(ε − ΣL).  In
measure tilted by t it is exp(−εt) M(t) (μ * … * μ * g₀)(ε) with g₀(e) = exp(te) h(e).  Each
convolution is a piecewise polynomial with breaks where kinks can lie: sums of ends and flat
values of the losses.  All weights are positive and sum to 1, so errors never grow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flint import arb, ctx

from symdp.errors import AccuracyError
from symdp.oracle.law import StepLaw, Stretch, look, tilted
from symdp.oracle.panels import Budget, as_float, make_panels
from symdp.oracle.piecewise import Piecewise, integrate_between, interpolate
from symdp.oracle.saddle import Saddle, Steps, coarse

_MOST_BREAKS = 200
_LN10 = math.log(10)
_MOST_EVALUATIONS = 40_000_000
_RESOLVED = 10.0  # frequencies that nodes must resolve, in units of 1/deviation

Function = Callable[[arb], arb]


@dataclass(frozen=True)
class _Segment:
    """A panel of one piece, its nodes, and what it takes to place nodes anew."""

    left: arb
    right: arb
    low: arb
    high: arb
    weights: list[arb]
    losses: list[arb]
    mass: arb
    both: Callable[[arb], tuple[arb, arb]]
    loss: Function

    def place_of(self, value: arb) -> arb:
        """Where the monotone loss takes a value between `low` and `high`: Illinois' rule."""
        a, b = self.left, self.right
        at_a, at_b = (self.loss(a) - value).mid(), (self.loss(b) - value).mid()
        small = (1 + abs(value)) * arb(2) ** (16 - ctx.prec)
        for _ in range(200):
            x = ((a * at_b - b * at_a) / (at_b - at_a)).mid()
            # Once rounding decides, the last point is as good as any.
            if not min(a, b) < x < max(a, b):
                return b
            at_x = (self.loss(x) - value).mid()
            if abs(at_x) < small:
                return x
            if (at_x > 0) == (at_b > 0):
                at_a = at_a / 2
            else:
                a, at_a = b, at_b
            b, at_b = x, at_x
        return b


@dataclass(frozen=True)
class _Measure:
    """The tilted law of one step's loss: atoms and segments of total mass 1."""

    log_moment: arb
    atoms: tuple[tuple[arb, arb], ...]
    segments: tuple[_Segment, ...]
    ends: tuple[arb, ...]
    mean: arb
    deviation: arb
    lower: arb
    upper: arb

    def log_growth(self, s: float) -> float:
        """log E exp(s·L), in doubles."""
        terms = [float(mass.log()) + s * float(loss) for mass, loss in self.atoms]
        for segment in self.segments:
            terms += [
                as_float(weight.log()) + s * float(loss)
                for weight, loss in zip(segment.weights, segment.losses, strict=True)
            ]
        top = max(terms)
        return top + math.log(math.fsum(math.exp(term - top) for term in terms))


def convolve(steps: Steps, epsilon: arb, saddle: Saddle, digits: float, order: int) -> arb:
    """Return the integral of the strip in which the saddle's tilt lies.

    Parameters
    ----------
    steps : sequence of (StepLaw, count)
        Continuous laws, few steps in all.
    epsilon : arb
    saddle : Saddle
    digits : float
        Relative decimal digits wanted.
    order : int
        Nodes a panel in the variable; polynomials have as many coefficients.

    Raises
    ------
    AccuracyError
        If the work limit is reached.
    """
    scale = math.log10(10 + abs(saddle.log_height) + abs(saddle.tilt * float(epsilon)))
    # A polynomial of that many coefficients on [−1, 1] loses 1.3 bits for each.
    with ctx.workprec(int(3.33 * (digits + scale + 8) + 1.3 * order) + 40):
        tilt = arb(saddle.tilt)
        measures = [
            measure
            for law, count in steps
            for measure in [_measure(law, tilt, digits + 4, order)] * count
        ]
        # The integral in tilted measure is about this, so errors beside it are relative ones.
        size = arb(saddle.log_height) + epsilon * tilt
        size = (size - sum((m.log_moment for m in measures), arb(0))).exp()
        tolerance = size * arb(10) ** -arb(digits + 2)
        budget = Budget(_MOST_EVALUATIONS)
        current = Piecewise([arb(0)], (), _payoff(tilt))
        for index, measure in enumerate(measures[:-1]):
            demand = _Demand(epsilon, measures[index + 1 :], tolerance)
            breaks = _sums(current.breaks, measure.ends, demand.low, demand.high)
            current = interpolate(
                _Convolved(measure, current, tolerance, digits, budget),
                (demand.low, demand.high),
                breaks,
                demand.tolerance,
                order=order,
                unit=_unit(measures),
            )
        value = _Convolved(measures[-1], current, tolerance, digits, budget)(epsilon)
        exponent = sum((m.log_moment for m in measures), arb(0)) - epsilon * tilt
        return value * exponent.exp()


def _payoff(tilt: arb) -> Function:
    """g₀(e) = exp(te) h(e) with the h of the strip that holds t."""

    def right(e: arb) -> arb:
        return -(tilt * e).exp() * e.expm1() if e < 0 else arb(0)

    def middle(e: arb) -> arb:
        return -((tilt + 1) * e).exp() if e < 0 else -(tilt * e).exp()

    def left(e: arb) -> arb:
        return (tilt * e).exp() * e.expm1() if e > 0 else arb(0)

    return right if tilt > 0 else (left if tilt < -1 else middle)


@dataclass(frozen=True)
class _Convolved:
    """e ↦ ∫ g(e − ℓ) dμ(ℓ)."""

    measure: _Measure
    function: Piecewise
    tolerance: arb
    digits: float
    budget: Budget

    def __call__(self, e: arb) -> arb:
        total = arb(0)
        self.budget.spend(sum(len(segment.weights) for segment in self.measure.segments))
        for mass, loss in self.measure.atoms:
            total += mass * self.function(e - loss)
        for segment in self.measure.segments:
            total += self._over(segment, e)
        return total.mid()

    def _weighted(self, segment: _Segment, x: arb, e: arb) -> arb:
        self.budget.spend(4)
        density, loss = segment.both(x)
        return density * self.function(e - loss)

    def _over(self, segment: _Segment, e: arb) -> arb:
        low, high = e - segment.high, e - segment.low
        if segment.mass < self.tolerance / 1000:
            return arb(0)
        if self.function.is_smooth(low, high):
            return sum(
                (
                    weight * self.function(e - loss)
                    for weight, loss in zip(segment.weights, segment.losses, strict=True)
                ),
                arb(0),
            )
        cuts = [segment.place_of(e - cut) for cut in self.function.breaks_between(low, high)]
        places = sorted([segment.left, *cuts, segment.right], key=arb.fmpq)
        return sum(
            (
                integrate_between(
                    lambda x: self._weighted(segment, x, e),
                    (a, b),
                    len(segment.weights),
                    self.digits,
                    self.tolerance,
                )
                for a, b in itertools.pairwise(places)
                if a < b
            ),
            arb(0),
        )


def _measure(law: StepLaw, tilt: arb, digits: float, order: int) -> _Measure:
    spread = coarse([(law, 1)], float(tilt)).cumulants(float(tilt))[3]
    frequency = 1 + abs(tilt) + _RESOLVED / (spread + 1e-300)
    surveyed = []
    for part in law.both:
        log_density = tilted(part, tilt)
        surveyed.append((part, log_density, look(part, log_density, digits)))
    highest = max(found.log_mass for _, _, found in surveyed)
    raw = []
    for part, log_density, found in surveyed:
        if found.log_mass > highest - _LN10 * (digits + 20):
            assert part.loss is not None
            loss = part.loss
            panels = make_panels(_both(log_density, loss), found, digits, frequency, order)
            mass = sum((w for panel in panels for w in panel.weights), arb(0))
            raw.append((part, loss, panels, found.height, mass))
    top = arb(max(height for *_, height, _ in raw))
    log_moment = top + sum(((h - top).exp() * m for *_, h, m in raw), arb(0)).log()
    atoms, segments = [], []
    for part, loss, panels, height, mass in raw:
        scale = (height - log_moment).exp()
        if part.is_flat:
            atoms.append((mass * scale, panels[0].losses[0]))
            continue
        for panel in panels:
            values = [loss(panel.left), loss(panel.right)]
            # At the end of a support the loss may be infinite: then the outermost node serves.
            outer = panel.losses[0], panel.losses[-1]
            values = [v if v.is_finite() else o for v, o in zip(values, outer, strict=True)]
            segments.append(
                _Segment(
                    panel.left,
                    panel.right,
                    min(values).mid(),
                    max(values).mid(),
                    [w * scale for w in panel.weights],
                    panel.losses,
                    sum(panel.weights, arb(0)) * scale,
                    _density_and_loss(part, tilt, log_moment),
                    loss,
                )
            )
    ends = [value for part in law.both for value in law.end_values(part)]
    places = [*atoms]
    for segment in segments:
        places += zip(segment.weights, segment.losses, strict=True)
    mean = sum((m * x for m, x in places), arb(0))
    deviation = sum((m * (x - mean) ** 2 for m, x in places), arb(0)).sqrt()
    values = [x for _, x in atoms] + [v for part in segments for v in (part.low, part.high)]
    return _Measure(
        log_moment,
        tuple(atoms),
        tuple(segments),
        tuple(ends),
        mean,
        deviation,
        min(values),
        max(values),
    )


def _both(log_density: Function, loss: Function) -> Callable[[arb], tuple[arb, arb]]:
    return lambda x: (log_density(x), loss(x))


def _density_and_loss(
    part: Stretch, tilt: arb, log_moment: arb
) -> Callable[[arb], tuple[arb, arb]]:
    log_p, loss = part.log_p, part.loss
    assert log_p is not None
    assert loss is not None

    def both(x: arb) -> tuple[arb, arb]:
        value = loss(x)
        return (log_p(x) + tilt * value - log_moment).exp(), value

    return both


def _unit(measures: Sequence[_Measure]) -> float:
    return 4 * max(float(measure.deviation) for measure in measures)


class _Demand:
    """How much the value of a convolution at e weighs: the chance that the rest adds up to ε − e.

    Chernoff: beyond the mean the chance is at most E exp(s(ΣL − S)) for every s of that sign.
    """

    def __init__(self, epsilon: arb, rest: Sequence[_Measure], tolerance: arb) -> None:
        self._centre = float(epsilon) - math.fsum(float(measure.mean) for measure in rest)
        variance = math.fsum(float(measure.deviation) ** 2 for measure in rest)
        rates = [2 ** (k / 2) / (math.sqrt(variance) + 1e-300) for k in range(-6, 14)]
        middle = math.fsum(float(measure.mean) for measure in rest)
        self._bounds = {
            sign: [
                (s, math.fsum(measure.log_growth(sign * s) for measure in rest) - sign * s * middle)
                for s in rates
            ]
            for sign in (1, -1)
        }
        depth = -as_float(tolerance.log()) + 5
        reach = {
            sign: min((growth + depth) / s for s, growth in bounds)
            for sign, bounds in self._bounds.items()
        }
        lower = sum((measure.lower for measure in rest), arb(0))
        upper = sum((measure.upper for measure in rest), arb(0))
        self.low = (epsilon - upper).max(arb(self._centre - reach[1])).mid()
        self.high = (epsilon - lower).min(arb(self._centre + reach[-1])).mid()
        self._tolerance = tolerance

    def tolerance(self, left: arb, right: arb) -> arb:
        """The absolute error that a panel may have."""
        nearest = min(max(self._centre, float(left)), float(right))
        # A larger sum of the rest means a smaller e.
        sign = 1 if nearest < self._centre else -1
        distance = abs(nearest - self._centre)
        weight = min(0.0, *(growth - s * distance for s, growth in self._bounds[sign]))
        return self._tolerance * arb(-weight).exp()


def _sums(breaks: Sequence[arb], ends: Sequence[arb], low: arb, high: arb) -> list[arb]:
    """All sums of a break and an end strictly inside, equal ones once."""
    same = arb(2) ** (20 - ctx.prec)
    found: list[arb] = []
    for value in sorted(((b + end).mid() for b in breaks for end in ends), key=arb.fmpq):
        if low < value < high and not (found and value - found[-1] < same * (1 + abs(value))):
            found.append(value)
    if len(found) > _MOST_BREAKS:
        raise AccuracyError("a convolution has too many kinks; compose fewer steps")
    return found
