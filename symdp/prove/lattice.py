"""δ(ε) where every loss lies on one lattice: M repeats, so that one period is summed.

Over losses b + kΔ the integrand of the line has the period 2π/Δ once its kernel is summed over the
lattice; with s the first point above ε, N points and Λ = NΔ,

    δ(ε) + aliases = (1/N) Σ_{k<N} M(z_k) e^{−z_k s} [A(z_k) − e^{ε−s} A(1 + z_k)]

with A(z) = 1/(1 − e^{−zΔ}), the aliases being those of the line.  That losses lie on the
lattice is not believed: each is moved there, and by no more than a ball says.

**What is not summed.**  Over w neighbouring points |Σ e^{iykΔ}| = |sin wθ/sin θ|, θ = yΔ/2, which
on θ ≤ π/2 falls on the first arch, is at most w/3 beyond it for w ≥ 3, and 1/sin θ everywhere.
Layers of neighbouring points below the tilted masses bound |M| as layers of a density do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, islice

import numpy as np
from flint import acb, arb, ctx

from symdp.emit.exact import LN10, fraction_ball
from symdp.errors import AccuracyError
from symdp.numeric.total import find_lattice
from symdp.prove.falling import layers
from symdp.prove.kind import Kinds, sum_law
from symdp.prove.line import SPARE_BITS, SPARE_DIGITS, log_payoff, masses
from symdp.prove.measure import Asked, Nodes, measure, up, walk
from symdp.prove.plan import Plan

_MOST_POINTS = 60_000  # that are summed: about a second
_SAFE = 1e-9  # relative: sums in doubles are off by far less
# What is said where more would be needed.
_TOO_FINE = "the lattice of the losses is too fine to certify so many steps"


# Weights and what they may err by, losses, points, count.
_Step = tuple[list[arb], arb, list[arb], list[int], int]


@dataclass(frozen=True)
class Lattice:
    """About the lattice of the total loss."""

    offset: Fraction
    spacing: Fraction


def lattice_of(kinds: Kinds) -> Lattice | None:
    """Return about the lattice of all sums of losses, None where there seems to be none."""
    if not all(kind.is_discrete for kind, _ in kinds):
        return None
    lattice = find_lattice(sum_law(kinds))
    if lattice is not None:
        return Lattice(lattice.offset, lattice.spacing)
    constant = all(kind.law.loss_bounds[0] == kind.law.loss_bounds[1] for kind, _ in kinds)
    return Lattice(Fraction(0), Fraction(1)) if constant else None


class LatticeLine:
    """The sum of a plan over one period, which serves every ε."""

    def __init__(self, kinds: Kinds, plan: Plan, lattice: Lattice, digits: float) -> None:
        self.kinds, self.plan, self.digits = kinds, plan, digits
        self._about = lattice
        self.points = round(plan.period / float(lattice.spacing))
        count = sum(n for _, n in kinds)
        self._log_each = -(digits + SPARE_DIGITS) * LN10 - math.log(count)
        size = max(-plan.log_size, 0.0)
        self.bits = int((size - self._log_each) / math.log(2)) + SPARE_BITS
        self.masses = masses(kinds, plan.panels, min(plan.log_size, 0.0) - digits * LN10 - 1.0)
        with ctx.workprec(self.bits):
            self._evaluate()

    def _evaluate(self) -> None:
        plan = self.plan
        about = self._about
        moments = [
            Asked(arb(plan.tilt), 0.0, self._log_each),
            Asked(arb(plan.below), 0.0, -3 * LN10),
            Asked(arb(plan.above), 0.0, -3 * LN10),
        ]
        step_nodes = [
            measure(kind, panels, moments)
            for (kind, _), panels in zip(self.kinds, plan.panels, strict=True)
        ]
        # The spacing is that of the two losses that lie farthest apart.
        places = [_places(nodes, about.spacing) for nodes in step_nodes]
        ends = [
            (max(indices) - min(indices), nodes, indices)
            for nodes, indices in zip(step_nodes, places, strict=True)
        ]
        width, nodes, indices = max(ends, key=lambda end: end[0])
        first, last = indices.index(min(indices)), indices.index(max(indices))
        self.spacing = (nodes.losses[last] - nodes.losses[first]) / width if width else arb(1)
        self.offset = arb(0)
        moved = arb(0)
        self.sides = [arb(0), arb(0)]
        self.scale = arb(0)
        self._turn = 2 * arb.pi() / (self.points * self.spacing)
        values = [acb(1)] * (self.points // 2 + 1)
        steps = []
        for (_, count), nodes, indices in zip(self.kinds, step_nodes, places, strict=True):
            start = nodes.losses[0]
            snapped = [k * self.spacing for k in indices]
            gaps = [abs(x - start - s).upper() for x, s in zip(nodes.losses, snapped, strict=True)]
            moved += count * max(gaps, key=float)
            self.offset += count * start
            weights = nodes.weighted(moments[0])
            middle = sum(weights, arb(0)).mid()
            error = arb((nodes.errors[0] / middle).upper())
            self.scale += count * middle.log()
            steps.append(([w / middle for w in weights], error, snapped, indices, count))
            for side in (0, 1):
                self.sides[side] += (
                    count * arb(nodes.total(moments[side + 1], side + 1).upper()).log()
                )
        self.moved = arb(moved.upper())
        self.terms, self.rest = self._walk(steps, values)
        self.values = values[: self.terms]
        self.log_height = sum((n * sum(w, e).log() for w, e, _, _, n in steps), arb(0)).upper()

    def _walk(self, steps: Sequence[_Step], values: list[acb]) -> tuple[int, arb]:
        """Fill in the values; return how many, and a bound of each of the others."""
        last = self.points // 2
        layers = [_layers(weights, error, indices) for weights, error, _, indices, _ in steps]
        terms = last + 1
        others_bound = arb(0)
        h = float(self._turn.mid()) * float(self.spacing.mid()) / 2 * (1 - 1e-12)

        def log_bound(k: int) -> float:
            return math.fsum(
                n * math.log(max(_modulus(layer, h * k), 1e-300))
                for layer, (*_, n) in zip(layers, steps, strict=True)
            )

        # Each of them counts up to `points` times as much as the kernel at the real axis.
        wanted = (
            -(self.digits + 1) * LN10
            - math.log(self.points)
            - math.log(1 + 1 / abs(self.plan.tilt))
        )
        wanted -= math.log(2 + math.sqrt(self.plan.curvature))
        low, high = 1, last
        if log_bound(high) <= wanted:
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if log_bound(middle) <= wanted else (middle + 1, high)
            terms = high
            others_bound = arb(log_bound(high) + 1e-9).exp() if terms <= last else arb(0)
        if terms > _MOST_POINTS:
            raise AccuracyError(_TOO_FINE)
        for weights, error, snapped, _, count in steps:
            line = walk(weights, snapped, error, self._turn)
            for k, value in enumerate(islice(line, terms)):
                values[k] *= value**count
        return terms, others_bound

    def delta(self, epsilon: arb) -> arb:
        """Enclose δ(ε)."""
        plan, tilt, spacing = self.plan, arb(self.plan.tilt), self.spacing
        with ctx.workprec(self.bits):
            start, unsure = self._first_above(epsilon)
            last = self.points // 2
            front = (self.scale - tilt * start).exp() / self.points
            total = arb(0)
            for k, value in enumerate(self.values):
                angle = k * self._turn
                z = acb(tilt, angle)
                kernel = 1 / -(-z * spacing).expm1()
                kernel -= (epsilon - start).exp() / -(-(1 + z) * spacing).expm1()
                term = (value * kernel * acb(0, angle * (self.offset - start)).exp()).real
                total += term if k in (0, self.points - k) else 2 * term
            if len(self.values) <= last:
                # |1 − e^{−zΔ}| is smallest at the real axis.
                largest = 1 / -(-tilt * spacing).expm1() + 1 / -(-(1 + tilt) * spacing).expm1()
                others = 2 * (last - len(self.values) + 1) * largest * self.rest
                total += arb(0, others.upper())
            height = (self.scale + self.log_height + tilt * (self.moved - epsilon)).exp()
            slack = height * (unsure + self.moved)
            added = arb(0)
            for b, log_moment in zip((plan.below, plan.above), self.sides, strict=True):
                log_fall = -abs(tilt - arb(b)) * self.points * spacing
                log_bound = log_moment - arb(b) * epsilon + log_fall + log_payoff(arb(b))
                log_bound += arb(b) * self.moved
                added += log_bound.exp() / -log_fall.expm1()
            ball = front * total + arb(0, slack.upper()) - arb(0).union(arb(added.upper()))
            ball = ball.max(arb(0)) + self.masses.infinity
            return ball + arb(0).union(self.masses.outside)

    def _first_above(self, epsilon: arb) -> tuple[arb, arb]:
        """Return the first point proved to lie above ε, and what one at ε can count for."""
        whole = ((epsilon - self.offset) / self.spacing).mid().floor().unique_fmpz()
        if whole is None:
            raise AccuracyError("ε lies too far out on the lattice of the losses")
        index = int(whole) - 1
        unsure = arb(0)
        while True:
            point = self.offset + index * self.spacing
            if point > epsilon:
                return point, unsure
            if not point <= epsilon:
                unsure += abs((epsilon - point).expm1()).upper()
            index += 1


def _places(nodes: Nodes, spacing: Fraction) -> list[int]:
    """Return the point that each loss is next to, counted from the first one."""
    unit, first = fraction_ball(spacing), nodes.losses[0]
    indices = [((x - first) / unit + arb(0.5)).mid().floor().unique_fmpz() for x in nodes.losses]
    if None in indices:
        raise AccuracyError(_TOO_FINE)
    return [int(str(k)) for k in indices]


def _layers(
    weights: list[arb], error: arb, places: list[int]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the total, and heights and lengths of layers of neighbouring points."""
    masses: dict[int, float] = {}
    total = up(error)
    for weight, index in zip(weights, places, strict=True):
        masses[index] = masses.get(index, 0.0) + float(weight.lower()) * (1 - _SAFE)
        total += float(weight.upper()) * (1 + _SAFE)
    runs = groupby(enumerate(sorted(masses)), lambda pair: pair[1] - pair[0])
    rectangles = []
    for _, run in runs:
        row = [masses[index] for _, index in run]
        rectangles += [(height, float(j - i)) for i, j, height in layers(row)]
    both = np.asarray(rectangles or [(0.0, 1.0)])
    return total, both[:, 0], both[:, 1]


def _modulus(rectangles: tuple[float, np.ndarray, np.ndarray], theta: float) -> float:
    """Bound |M| for all angles from one on up to π/2."""
    total, heights, lengths = rectangles
    angles = lengths * theta
    scaled_sines = lengths * math.sin(theta)
    envelope = 1 / scaled_sines
    arch = np.abs(np.sin(np.minimum(angles, math.pi)) / scaled_sines)
    beyond = np.where(lengths > 2, 1 / 3, 0.0)
    share = np.minimum(np.maximum(arch, beyond), envelope)
    share = np.where(angles < math.pi, share, envelope)
    share = np.minimum(share * (1 + _SAFE), 1.0)
    fall = np.maximum(1 - share, 0.0)
    return float(total - (1 - _SAFE) * (heights @ (lengths * fall)))
