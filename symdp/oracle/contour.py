"""The contour integral for δ(ε) of a composition, in arbitrary precision.

    I(t) = (1/2πi) ∫_{Re z = t} M(z) exp(−εz) / (z(1+z)) dz                           [SPA (28)]

is δ for t > 0, δ − M(0) for −1 < t < 0 and δ − M(0) + e^ε M(−1) for t < −1.  With a step h the
trapezoidal rule adds Σ_j e^{±2πjt/h} δ(ε ± 2πj/h), terms of one sign that fall geometrically, so
halving the step shows them.  The sum ends where the modulus of the transform without its atoms,
times the terms summed so far, is negligible: atoms can lift it again, to that modulus at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import acb, acb_mat, arb, ctx

from symdp.emit.exact import LN10
from symdp.errors import AccuracyError
from symdp.oracle.law import Nodes, StepLaw
from symdp.oracle.panels import DivergentError, WorkLimitError, as_float

MOST_WORK = 3e8  # products of a node and a frequency
_LADDER = 3.0  # each set of nodes does for so many times the frequencies of the one before
_FINER = 0.75  # of the step of an evaluation that is repeated
_MOST_HALVINGS = 40  # of the step
_BY_THE_POLES = 10.0  # digits by which 1/(z(1+z)) may fall within the work limit
SPARE_BITS = 40  # carried beside the digits wanted

Set = Sequence[tuple[Nodes, int]]
Steps = Sequence[tuple[StepLaw, int]]

_DIGITS, _OF_SUM = 8.0, 4.0  # digits of K of one step, and of the sum of many
_BITS, _ORDER = 128, 12  # carried, and nodes of a panel: the saddle point decides about costs alone
_SETTLED = 0.2  # of the saddle point's own width
_MOST_TILTS = 200  # tried
_NEAR_END = 1e-4  # of the end of K's domain, relative: closer is not tried


@dataclass(frozen=True)
class LineIntegral:
    """The integral over one vertical line, and the step that sufficed."""

    value: arb
    step: float


def integrate_line(
    steps: Steps,
    epsilon: arb,
    saddle: Saddle,
    digits: float,
    order: int,
    *,
    like: LineIntegral | None = None,
    work: float = MOST_WORK,
) -> LineIntegral:
    """Integrate over Re z = saddle.tilt with relative error about 10^(−digits).

    Parameters
    ----------
    steps : sequence of (StepLaw, count)
        Not all of them with atoms alone.
    epsilon : arb
        Exact, or at a precision beyond `digits`.
    saddle : Saddle
        Its tilt places the line, its curvature the first guess of the step.
    digits : float
    order : int
        Nodes a panel; another order gives independent nodes.
    like : LineIntegral, optional
        Use three quarters of this line's step; otherwise halve until two steps agree to more than
        half the digits, which the next halving squares.
    work : float
        Products of a node and a frequency that may be made.

    Raises
    ------
    WorkLimitError
        If the characteristic function falls off too slowly.
    """
    largest = max(count for _, count in steps)
    node_digits = digits + math.log10(largest) + 4
    scale = math.log10(10 + abs(saddle.log_height) + abs(saddle.tilt * float(epsilon)))
    with ctx.workprec(int(3.33 * (node_digits + scale)) + SPARE_BITS):
        frequency = 1.5 * math.sqrt(2 * LN10 * digits / saddle.curvature)
        ladder = _Ladder(steps, arb(saddle.tilt), node_digits, order, frequency)
        rule = _Trapezoid(ladder, epsilon, digits, work)
        return _refine(rule, saddle, None if like is None else _FINER * like.step)


def _refine(rule: _Trapezoid, saddle: Saddle, step: float | None) -> LineIntegral:
    if step is not None:
        return LineIntegral(rule.sum(arb(step), arb(0)), step)
    depth = LN10 * rule.digits / 2
    pole = min(abs(saddle.tilt), abs(1 + saddle.tilt))
    step = min(2 * math.pi / math.sqrt(2 * depth * saddle.curvature), 2 * math.pi * pole / depth)
    value = rule.sum(arb(step), arb(0))
    for _ in range(_MOST_HALVINGS):
        finer = (value + rule.sum(arb(step), arb(step) / 2)) / 2
        change = abs(finer - value)
        value, step = finer, step / 2
        if change < abs(value) * arb(10) ** -arb(rule.digits / 2 + 4):
            return LineIntegral(value, step)
    raise AccuracyError("the trapezoidal rule did not settle; ask for fewer digits")


class _Ladder:
    """Sets of nodes for growing frequencies, made when they are first asked for."""

    def __init__(
        self, steps: Steps, tilt: arb, digits: float, order: int, frequency: float
    ) -> None:
        self._steps, self._digits, self._order = steps, digits, order
        self.tilt = tilt
        self.with_density = [not law.is_discrete for law, _ in steps]
        self._sets: list[tuple[float, Set]] = []
        self.first = self._add(frequency)
        # Atoms hold up the modulus at every frequency: together they must be nearly negligible.
        shares = sum(
            (n * (nodes.atoms / nodes.total).log() for nodes, n in self.first if nodes.atoms > 0),
            arb(0),
        )
        if all(nodes.atoms > 0 for nodes, _ in self.first) and shares > -LN10 * (
            digits - _BY_THE_POLES
        ):
            raise WorkLimitError

    def _add(self, frequency: float) -> Set:
        made = tuple(
            (law.nodes(self.tilt, self._digits, arb(frequency), self._order), count)
            for law, count in self._steps
        )
        self._sets.append((frequency, made))
        return made

    def at(self, frequency: float) -> tuple[float, Set]:
        """The first set that does for a frequency, and how far it does."""
        while self._sets[-1][0] < frequency:
            self._add(self._sets[-1][0] * _LADDER)
        return next(entry for entry in self._sets if entry[0] >= frequency)


class _Trapezoid:
    """The trapezoidal rule along one line, until its terms are negligible."""

    def __init__(self, ladder: _Ladder, epsilon: arb, digits: float, work: float) -> None:
        self.ladder, self.epsilon, self.digits = ladder, epsilon, digits
        self._work = work  # that is left
        exponent = -epsilon * ladder.tilt
        for nodes, count in ladder.first:
            exponent += count * (nodes.height + nodes.total.log())
        self._scale = exponent.exp()  # exp(K(t) − εt)

    def sum(self, step: arb, offset: arb) -> arb:
        """(step/2π) Σ over y = offset + k·step of both signs of k of the integrand."""
        total, largest, peak = arb(0), arb(0), arb(0)
        small = arb(10) ** -arb(self.digits + 3)
        index, size, negligible = 0, 6, 0
        trail = [(1, math.inf)]
        while True:
            for value, bound in self._block(offset + index * step, step, size):
                modulus = abs(bound).upper()
                total += value.real if index == 0 and offset.is_zero() else 2 * value.real
                largest, peak = largest.max(modulus), peak.max(modulus)
                # A slow decay leaves a tail about as many terms long as are summed already.
                negligible = negligible + 1 if modulus * (index + 10) < largest * small else 0
                index += 1
                if negligible > 10 + index // 4:
                    return total * step / (2 * arb.pi()) * self._scale
            size += 4
            if index >= 1.6 * trail[-1][0]:
                trail.append((index, as_float((peak / (largest * small)).log())))
                peak = arb(0)
                self._foresee(trail)

    def _foresee(self, trail: list[tuple[int, float]]) -> None:
        """Give up at once where an algebraic decay would need far more terms than allowed."""
        if len(trail) < 4 or trail[-3][0] < 150:
            return
        (a, at_a), (b, at_b), (c, at_c) = trail[-3:]
        before, now = (at_a - at_b) / math.log(b / a), (at_b - at_c) / math.log(c / b)
        # A power that still grows belongs to a decay faster than any power.
        if at_c <= 0 or now > 1.1 * before or now <= 0:
            return
        needed = c * math.exp(min(at_c / now, 300.0))
        if needed * sum(len(nodes.weights) for nodes, _ in self.ladder.first) > self._work:
            raise WorkLimitError

    def _block(self, first: arb, step: arb, size: int) -> list[tuple[acb, acb]]:
        """The integrand at y = first + k·step for at most size² values of k.

        With each comes what it would be, in size, if all atoms of discrete steps were one.
        """
        reach, nodes_set = self.ladder.at(float(first))
        # No further than these nodes do; the next block takes the next set.
        size = max(1, min(size, math.isqrt(1 + int((reach - float(first)) / float(step)))))
        values = []
        for k in range(size * size):
            z = acb(self.ladder.tilt, first + k * step)
            values.append((-self.epsilon * acb(0, 1) * z.imag).exp() / (z * (1 + z)))
        bounds = values
        for (nodes, count), has_density in zip(nodes_set, self.ladder.with_density, strict=True):
            self._work -= len(nodes.weights) * (size * size + 16 * size)
            if self._work < 0:
                raise WorkLimitError
            total = nodes.total
            factors = [(m / total) ** count for m in power_sums(nodes, first, step, size)]
            values = [value * factor for value, factor in zip(values, factors, strict=True)]
            if has_density:
                bounds = [bound * factor for bound, factor in zip(bounds, factors, strict=True)]
        return list(zip(values, bounds, strict=True))


def power_sums(nodes: Nodes, first: arb, step: arb, size: int) -> list[acb]:
    """Σ weight·exp(iy·loss) at y = first + k·step, k < size²."""
    turns = [acb(0, step * loss).exp() for loss in nodes.losses]
    baby = [
        weight * acb(0, first * loss).exp()
        for weight, loss in zip(nodes.weights, nodes.losses, strict=True)
    ]
    babies = [baby]
    for _ in range(size - 1):
        babies.append([a * b for a, b in zip(babies[-1], turns, strict=True)])
    leaps = [turn**size for turn in turns]
    giants = [[acb(1)] * len(turns)]
    for _ in range(size - 1):
        giants.append([a * b for a, b in zip(giants[-1], leaps, strict=True)])
    table = acb_mat(giants) * acb_mat(babies).transpose()
    return [table[row, column] for row in range(size) for column in range(size)]


@dataclass(frozen=True)
class Saddle:
    """F near its minimum between two poles."""

    tilt: float
    log_height: float
    curvature: float

    @property
    def log_size(self) -> float:
        """Logarithm of the integral by the first term of its expansion  [SPA (60)]."""
        return self.log_height - math.log(2 * math.pi * self.curvature) / 2


def cumulants(steps: Steps, tilt: float) -> tuple[float, float, float]:
    """K, K′ and K″ of the composition to a few digits."""
    total = [arb(0), arb(0), arb(0)]
    with ctx.workprec(_BITS):
        for law, count in steps:
            digits = max(_DIGITS, math.log10(count) + _OF_SUM)
            own = law.nodes(arb(tilt), digits, arb(0), _ORDER).cumulants()
            total = [sum_so_far + count * k for sum_so_far, k in zip(total, own, strict=True)]
    value, mean, variance = (float(k) for k in total)
    return value, mean, variance


def find_saddle(steps: Steps, epsilon: float, lower: float, upper: float) -> Saddle:
    """Minimise F(t) = K(t) − εt − log|t(1+t)| on (lower, upper): (−∞, −1), (−1, 0) or (0, ∞).

    F is convex there, so Newton's method within a bracket finds its minimum.  Its place changes the
    cost of an integral, never the value.

    Raises
    ------
    DivergentError
        If K is infinite on the whole interval.
    """
    low, high = lower, upper
    tilt = {0.0: 1.0, -1.0: -0.5}.get(lower, -2.0)
    best: Saddle | None = None
    for _ in range(_MOST_TILTS):
        try:
            value, mean, variance = cumulants(steps, tilt)
        except AccuracyError:  # outside the domain of K, which contains [−1, 0], or at its end
            low, high = (low, tilt) if tilt > 0 else (tilt, high)
            if high - low < _NEAR_END * max(abs(low), abs(high)):
                break
            tilt = _between(low, high)
            continue
        slope = mean - epsilon - 1 / tilt - 1 / (1 + tilt)
        curvature = variance + tilt**-2 + (1 + tilt) ** -2
        height = value - epsilon * tilt - math.log(abs(tilt * (1 + tilt)))
        best = Saddle(tilt, height, curvature)
        low, high = (low, tilt) if slope > 0 else (tilt, high)
        is_narrow = high - low < _NEAR_END * max(abs(low), abs(high))
        if is_narrow or abs(slope) < _SETTLED * math.sqrt(curvature):
            return best
        tilt -= slope / curvature
        if not low < tilt < high:
            tilt = _between(low, high)
    if best is None:
        raise DivergentError("the cumulant generating function is infinite at every tilt tried")
    return best


def _between(low: float, high: float) -> float:
    """A tilt inside a bracket, on the scale of the distance from the pole that it touches."""
    if low == 0.0:
        return high / 16
    if high == -1.0:
        return -1.0 + (low + 1.0) / 16
    return (low + high) / 2
