"""δ(ε) of few steps by convolving one step at a time, where the contour converges too slowly.

With h(e) = (1 − e^e)⁺ or one of its complements, the integral I of a strip is E h(ε − ΣL).  Under
the measure μ tilted by t and of mass 1 it is e^{−εt} Π M(t) (μ * … * μ * g₀)(ε) with
g₀(e) = e^{te} h(e).  All weights are positive and sum to 1, so errors never grow.

Each convolution but the last is a polynomial between neighbouring kinks, which lie at sums of ends
and flat values of the losses, and on halves of those intervals where its last two Chebyshev
coefficients exceed the tolerance.  Each integral is split where it meets a kink; Gauss's rule there
is compared with the same rule on both halves.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flint import arb, arb_poly, ctx

from symdp.errors import AccuracyError
from symdp.oracle.contour import SPARE_BITS, Saddle, Steps, cumulants
from symdp.oracle.law import LogDensity, StepLaw, look, panels_of, tilted
from symdp.oracle.panels import GaussPanel, WorkLimitError, gauss_rule

_MOST_KINKS = 60  # between pieces of a density
_MOST_VALUES = 3_000_000  # of densities, and of polynomials
_MOST_HALVINGS = 60  # of an interval
_RESOLVED = 10.0  # frequencies that nodes must resolve, in units of 1/deviation
_BITS_A_COEFFICIENT = 1.3  # that interpolation at Chebyshev points of [−1, 1] loses

Function = Callable[[arb], arb]


@dataclass(frozen=True)
class _Segment:
    """A panel of one piece, with its tilted density and its monotone loss."""

    panel: GaussPanel
    low: arb
    high: arb
    weights: list[arb]
    density: Function
    loss: Function

    def place_of(self, value: arb) -> arb:
        """Where the loss takes a value between `low` and `high`, by bisection and secants."""
        a, b = self.panel.left, self.panel.right
        at_a, at_b = (self.loss(a) - value).mid(), (self.loss(b) - value).mid()
        small = (1 + abs(value)) * arb(2) ** (16 - ctx.prec)
        for _ in range(2 * ctx.prec):
            x = ((a * at_b - b * at_a) / (at_b - at_a)).mid()
            if not min(a, b) < x < max(a, b):  # rounding decides: the last point is as good as any
                return b
            at_x = (self.loss(x) - value).mid()
            if abs(at_x) < small:
                return x
            if (at_x > 0) == (at_b > 0):
                at_a = at_a / 2  # the Illinois rule
            else:
                a, at_a = b, at_b
            b, at_b = x, at_x
        return b


@dataclass(frozen=True)
class _Measure:
    """The tilted law of one step's loss: atoms and segments of total mass 1."""

    log_moment: arb
    atoms: list[tuple[arb, arb]]
    segments: list[_Segment]
    kinks: list[arb]

    @property
    def ends(self) -> tuple[arb, arb]:
        """The least and the greatest loss that counts."""
        values = [x for _, x in self.atoms] + [x for s in self.segments for x in (s.low, s.high)]
        return min(values), max(values)


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
    bits = 3.33 * (digits + scale + 8) + _BITS_A_COEFFICIENT * order
    with ctx.workprec(int(bits) + SPARE_BITS):
        tilt = arb(saddle.tilt)
        one_each = [(law, _measure(law, tilt, digits + 4, order), n) for law, n in steps]
        measures = [measure for _, measure, count in one_each for _ in range(count)]
        exponent = sum((m.log_moment for m in measures), arb(0)) - epsilon * tilt
        # The integral in tilted measure is about e^{log_height − exponent}.
        tolerance = (arb(saddle.log_height) - exponent).exp() * arb(10) ** -arb(digits + 2)
        work = _Work(tolerance, order)
        current = _Piecewise([arb(0)], [], _payoff(tilt))
        for index, measure in enumerate(measures[:-1]):
            rest = [m.ends for m in measures[index + 1 :]]
            low = epsilon - sum((high for _, high in rest), arb(0))
            high = epsilon - sum((low for low, _ in rest), arb(0))
            current = work.interpolate(measure, current, low.mid(), high.mid())
        return work.convolved(measures[-1], current, epsilon) * exponent.exp()


def _payoff(tilt: arb) -> Function:
    """g₀(e) = exp(te) h(e) with the h of the strip that holds t."""

    def right(e: arb) -> arb:
        return -(tilt * e).exp() * e.expm1() if e < 0 else arb(0)

    def middle(e: arb) -> arb:
        return -((tilt + 1) * e).exp() if e < 0 else -(tilt * e).exp()

    def left(e: arb) -> arb:
        return (tilt * e).exp() * e.expm1() if e > 0 else arb(0)

    return right if tilt > 0 else (left if tilt < -1 else middle)


class _Piecewise:
    """A function with kinks: polynomials in (x − centre)/half on intervals, or a formula."""

    def __init__(
        self,
        kinks: Sequence[arb],
        parts: list[tuple[arb, arb, arb_poly]],
        formula: Function | None = None,
    ) -> None:
        self._kinks = list(kinks)
        self._parts = sorted(parts, key=lambda part: part[0].fmpq())
        self._ends = [float(right) for _, right, _ in self._parts[:-1]]
        self._formula = formula

    def __call__(self, x: arb) -> arb:
        if self._formula is not None:
            return self._formula(x)
        left, right, polynomial = self._parts[bisect.bisect_left(self._ends, float(x))]
        return polynomial((2 * x - left - right) / (right - left))

    def between(self, low: arb, high: arb) -> list[arb]:
        """The kinks strictly inside."""
        return [kink for kink in self._kinks if low < kink < high]

    def sums(self, ends: Sequence[arb], low: arb, high: arb) -> list[arb]:
        """All sums of a kink and an end strictly inside, equal ones once."""
        same = arb(2) ** (20 - ctx.prec)
        found: list[arb] = []
        for value in sorted(((b + end).mid() for b in self._kinks for end in ends), key=arb.fmpq):
            if low < value < high and not (found and value - found[-1] < same * (1 + abs(value))):
                found.append(value)
        if len(found) > _MOST_KINKS:
            raise AccuracyError("a convolution has too many kinks; compose fewer steps")
        return found


class _Work:
    """Convolutions to a tolerance, as long as not too many values are needed."""

    def __init__(self, tolerance: arb, order: int) -> None:
        self._tolerance, self._order, self._left = tolerance, order, _MOST_VALUES

    def _spend(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise WorkLimitError

    def interpolate(
        self, measure: _Measure, function: _Piecewise, low: arb, high: arb
    ) -> _Piecewise:
        """Return the convolution between two points as polynomials."""
        order = self._order
        points = [arb.cos_pi(arb(2 * k + 1) / (2 * order)).mid() for k in range(order)]
        kinks = function.sums(measure.kinks, low, high)
        waiting = [(*ends, 0) for ends in itertools.pairwise([low, *kinks, high])]
        parts = []
        while waiting:
            left, right, depth = waiting.pop()
            centre, half = (left + right) / 2, (right - left) / 2
            values = [self.convolved(measure, function, (centre + half * x).mid()) for x in points]
            found = arb_poly.interpolate(points, values, algorithm="barycentric")
            # Chebyshev coefficients of the two highest orders.
            tail = (2 * abs(found[order - 1]) + 4 * abs(found[order - 2])) * arb(2) ** -order
            if 8 * tail < self._tolerance or depth == _MOST_HALVINGS:
                parts.append((left, right, arb_poly([found[k].mid() for k in range(order)])))
            else:
                middle = centre.mid()
                waiting += [(left, middle, depth + 1), (middle, right, depth + 1)]
        return _Piecewise(kinks, parts)

    def convolved(self, measure: _Measure, function: _Piecewise, e: arb) -> arb:
        """∫ g(e − ℓ) dμ(ℓ)."""
        total = arb(0)
        for mass, loss in measure.atoms:
            total += mass * function(e - loss)
        for segment in measure.segments:
            kinks = function.between(e - segment.high, e - segment.low)
            places = [segment.place_of(e - kink) for kink in kinks]
            ends = sorted([segment.panel.left, *places, segment.panel.right], key=arb.fmpq)
            if not places:
                self._spend(len(segment.weights))
                pairs = zip(segment.weights, segment.panel.losses, strict=True)
                total += sum((w * function(e - loss) for w, loss in pairs), arb(0))
                continue

            def integrand(x: arb, segment: _Segment = segment) -> arb:
                return segment.density(x) * function(e - segment.loss(x))

            for a, b in itertools.pairwise(ends):
                if a < b:
                    total += self._integral(integrand, a, b, self._gauss(integrand, a, b), 0)
        return total.mid()

    def _integral(self, function: Function, a: arb, b: arb, whole: arb, depth: int) -> arb:
        middle = ((a + b) / 2).mid()
        left, right = self._gauss(function, a, middle), self._gauss(function, middle, b)
        if abs(left + right - whole) < self._tolerance or depth == _MOST_HALVINGS:
            return left + right
        return self._integral(function, a, middle, left, depth + 1) + self._integral(
            function, middle, b, right, depth + 1
        )

    def _gauss(self, function: Function, a: arb, b: arb) -> arb:
        self._spend(self._order)
        centre, half = (a + b) / 2, (b - a) / 2
        rule = gauss_rule(self._order, ctx.prec)
        return half * sum((w * function((centre + half * x).mid()) for x, w in rule), arb(0))


def _measure(law: StepLaw, tilt: arb, digits: float, order: int) -> _Measure:
    deviation = math.sqrt(cumulants([(law, 1)], float(tilt))[2])
    frequency = arb(1 + abs(float(tilt)) + _RESOLVED / (deviation + 1e-300))
    raw = []
    for part in law.both:
        log_density = tilted(part, tilt)
        found = look(part, log_density, digits)
        assert part.loss is not None
        own = arb(0) if part.is_flat else frequency
        panels = panels_of(log_density, part.loss, found, digits, own, order)
        mass = sum((w for panel in panels for w in panel.weights), arb(0))
        raw.append((part, log_density, part.loss, panels, arb(found.height), mass))
    top = max(height for *_, height, _ in raw)
    log_moment = top + sum(((h - top).exp() * m for *_, h, m in raw), arb(0)).log()
    atoms, segments = [], []
    for part, log_density, loss, panels, height, mass in raw:
        scale = (height - log_moment).exp()
        if part.is_flat:
            atoms.append((mass * scale, panels[0].losses[0]))
            continue
        density = _normalised(log_density, log_moment)
        for panel in panels:
            values = [loss(panel.left), loss(panel.right)]
            # At the end of a support the loss may be infinite: then the outermost node serves.
            outer = panel.losses[0], panel.losses[-1]
            ends = [v.mid() if v.is_finite() else o for v, o in zip(values, outer, strict=True)]
            weights = [w * scale for w in panel.weights]
            segments.append(_Segment(panel, min(ends), max(ends), weights, density, loss))
    kinks = [value for part in law.both for value in law.end_values(part)]
    return _Measure(log_moment, atoms, segments, kinks)


def _normalised(log_density: LogDensity, log_moment: arb) -> Function:
    return lambda x: (log_density(x) - log_moment).exp()
