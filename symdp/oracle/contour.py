"""The contour integral for δ(ε) of a composition, in arbitrary precision.

    I(t) = (1/2πi) ∫_{Re z = t} M(z) exp(−εz) / (z(1+z)) dz                           [SPA (28)]

is δ for t > 0, δ − M(0) for −1 < t < 0 and δ − M(0) + e^ε M(−1) for t < −1.  The trapezoidal
rule converges geometrically; its error terms are of one sign, so halving the step shows them.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

from flint import acb, acb_mat, arb, ctx

from symdp.errors import AccuracyError
from symdp.oracle.law import Nodes
from symdp.oracle.panels import Budget, WorkLimitError, as_float
from symdp.oracle.saddle import Saddle, Steps

MOST_WORK = 3e8
_LADDER = 3.0  # each set of nodes does for so many times the frequencies of the one before
_LN10 = math.log(10)
_FINER = 0.75


@dataclass(frozen=True)
class Line:
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
    like: Line | None = None,
    work: float = MOST_WORK,
) -> Line:
    """Integrate over Re z = saddle.tilt with relative error about 10^(−digits).

    Parameters
    ----------
    steps : sequence of (StepLaw, count)
    epsilon : arb
        Exact, or at a precision beyond `digits`.
    saddle : Saddle
        Its tilt places the line, its curvature the first guess of the step.
    digits : float
    order : int
        Nodes a panel; another order gives independent nodes.
    like : Line, optional
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
    frequency = 1.5 * math.sqrt(2 * _LN10 * digits / saddle.curvature)
    with ctx.workprec(int(3.33 * (node_digits + scale)) + 40):
        ladder = _Ladder(steps, arb(saddle.tilt), node_digits, order, frequency)
        sampler = _Sampler(ladder, epsilon, digits, Budget(work))
        line = _refine(sampler, saddle, None if like is None else _FINER * like.step)
        if ladder.is_discrete:
            sampler.check_revival()
        return line


def _refine(sampler: _Sampler, saddle: Saddle, step: float | None) -> Line:
    if step is not None:
        return Line(sampler.trapezoid(arb(step), arb(0)), step)
    depth = _LN10 * sampler.digits / 2
    pole = min(abs(saddle.tilt), abs(1 + saddle.tilt))
    step = min(2 * math.pi / math.sqrt(2 * depth * saddle.curvature), 2 * math.pi * pole / depth)
    value = sampler.trapezoid(arb(step), arb(0))
    for _ in range(40):
        half = arb(step) / 2
        finer = (value + sampler.trapezoid(arb(step), half)) / 2
        change = abs(finer - value)
        value, step = finer, step / 2
        if change < abs(value) * arb(10) ** -arb(sampler.digits / 2 + 4):
            return Line(value, step)
    raise AccuracyError("the trapezoidal rule did not settle; ask for fewer digits")


_Set = tuple[tuple[Nodes, int], ...]


class _Ladder:
    """Sets of nodes for growing frequencies, made when they are first asked for."""

    def __init__(
        self, steps: Steps, tilt: arb, digits: float, order: int, frequency: float
    ) -> None:
        self._steps, self._digits, self._order = steps, digits, order
        self.tilt = tilt
        # Atoms are exact at every frequency.
        self.is_discrete = all(law.is_discrete for law, _ in steps)
        # Beside others, atoms only lift the characteristic function again after it had fallen.
        self.is_counted = [self.is_discrete or not law.is_discrete for law, _ in steps]
        self._sets: list[tuple[float, _Set]] = []
        self.first = self._add(math.inf if self.is_discrete else frequency)

    def _add(self, frequency: float) -> _Set:
        made = tuple(
            (law.nodes(self.tilt, self._digits, arb(frequency), self._order), count)
            for law, count in self._steps
        )
        self._sets.append((frequency, made))
        return made

    def at(self, frequency: float) -> tuple[float, _Set]:
        """The first set that does for a frequency, and how far it does."""
        while self._sets[-1][0] < frequency:
            self._add(self._sets[-1][0] * _LADDER)
        return next(entry for entry in self._sets if entry[0] >= frequency)


@dataclass(frozen=True)
class _Sampler:
    """The integrand along one line."""

    ladder: _Ladder
    epsilon: arb
    digits: float
    budget: Budget

    def trapezoid(self, step: arb, offset: arb) -> arb:
        """(step/2π) Σ over y = offset + k·step of both signs of k of the integrand."""
        total, largest, index, size = arb(0), arb(0), 0, 6
        small = arb(10) ** -arb(self.digits + 3)
        quiet, trail = 0, [(1, math.inf)]
        peak = arb(0)
        while True:
            for value, loudest in self._block(offset + index * step, step, size):
                modulus = abs(loudest).upper()
                total += value.real if index == 0 and offset.is_zero() else 2 * value.real
                largest, peak = largest.max(modulus), peak.max(modulus)
                # A slow decay leaves a tail about as many terms long as are summed already.
                quiet = quiet + 1 if modulus * (index + 10) < largest * small else 0
                index += 1
                if quiet > 10 + index // 4:
                    return total * step / (2 * arb.pi()) * self._size()
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
        if needed * sum(len(nodes.weights) for nodes, _ in self.ladder.first) > self.budget.left:
            raise WorkLimitError

    def check_revival(self) -> None:
        """Look far out: with atoms alone the characteristic function comes back now and then.

        A search on some thousand frequencies, not a proof.

        Raises
        ------
        AccuracyError
            If what was found there would count.
        """
        sets = [
            (
                [float(w / nodes.total) for w in nodes.weights],
                [float(x) for x in nodes.losses],
                count,
            )
            for nodes, count in self.ladder.first
        ]
        variance = sum(count * float(nodes.cumulants()[2]) for nodes, count in self.ladder.first)
        start = math.sqrt(2 * _LN10 * self.digits / (variance + 1e-300))
        for k in range(4000):
            y = 2 * start * 10 ** (k / 1000)
            fall = 0.0
            for weights, losses, count in sets:
                turned = (w * cmath.exp(1j * y * x) for w, x in zip(weights, losses, strict=True))
                fall += count * math.log(abs(sum(turned)) + 1e-300)
            if fall > -_LN10 * self.digits:
                raise AccuracyError(
                    "the atoms of the losses are almost periodic, and sums of them too many "
                    "to enumerate; ask for fewer digits"
                )

    def _size(self) -> arb:
        """exp(K(t) − εt)."""
        exponent = -self.epsilon * self.ladder.tilt
        for nodes, count in self.ladder.first:
            exponent += count * (nodes.height + nodes.total.log())
        return exponent.exp()

    def _block(self, first: arb, step: arb, size: int) -> list[tuple[acb, acb]]:
        """The integrand at y = first + k·step for at most size² values of k.

        With each comes what it would be, in size, if all atoms of discrete steps were one.
        """
        reach, nodes_set = self.ladder.at(float(first))
        if math.isfinite(reach):
            # No further than these nodes do; the next block takes the next set.
            size = max(1, min(size, math.isqrt(1 + int((reach - float(first)) / float(step)))))
        values = []
        for k in range(size * size):
            z = acb(self.ladder.tilt, first + k * step)
            values.append((-self.epsilon * acb(0, 1) * z.imag).exp() / (z * (1 + z)))
        loudest = values
        for (nodes, count), is_counted in zip(nodes_set, self.ladder.is_counted, strict=True):
            self.budget.spend(len(nodes.weights) * (size * size + 16 * size))
            total = nodes.total
            moments = power_sums(nodes, first, step, size)
            factors = [(moment / total) ** count for moment in moments]
            same = loudest is values
            values = [value * factor for value, factor in zip(values, factors, strict=True)]
            if is_counted:
                loudest = (
                    values
                    if same
                    else [value * factor for value, factor in zip(loudest, factors, strict=True)]
                )
        return list(zip(values, loudest, strict=True))


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
