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
from symdp.tolerances import ABOVE_ROUNDING

_MOST_POINTS = 60_000  # that are summed: about a second
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
    bounds = [kind.law.loss_bounds for kind, _ in kinds]
    if all(low == high for low, high in bounds):
        return Lattice(Fraction(0), Fraction(1))
    return None


class LatticeLine:
    """The sum of a plan over one period, which serves every ε."""

    def __init__(self, kinds: Kinds, plan: Plan, lattice: Lattice, digits: float) -> None:
        self.kinds = kinds
        self.plan = plan
        self.digits = digits
        self._about = lattice
        self.points = round(plan.period / float(lattice.spacing))
        count = sum(n for _, n in kinds)
        self._log_each = -(digits + SPARE_DIGITS) * LN10 - math.log(count)
        size = max(-plan.log_size, 0.0)
        log_bits = (size - self._log_each) / math.log(2)
        self.bits = int(log_bits) + SPARE_BITS
        log_mass_error = min(plan.log_size, 0.0) - digits * LN10 - 1.0
        self.masses = masses(kinds, plan.panels, log_mass_error)
        with ctx.workprec(self.bits):
            self._set_values()

    def _set_values(self) -> None:
        plan = self.plan
        at_tilt = Asked(arb(plan.tilt), 0.0, self._log_each)
        at_below = Asked(arb(plan.below), 0.0, -3 * LN10)
        at_above = Asked(arb(plan.above), 0.0, -3 * LN10)
        step_nodes = []
        for (kind, _), panels in zip(self.kinds, plan.panels, strict=True):
            step_nodes.append(measure(kind, panels, [at_tilt, at_below, at_above]))
        indices_of_steps = [_indices_on_lattice(nodes, self._about.spacing) for nodes in step_nodes]
        self.spacing = _widest_spacing(step_nodes, indices_of_steps)
        self._angle = 2 * arb.pi() / (self.points * self.spacing)
        self.offset = arb(0)
        self.scale = arb(0)
        moved = arb(0)
        log_below = arb(0)
        log_above = arb(0)
        steps = []
        for (_, count), nodes, indices in zip(
            self.kinds, step_nodes, indices_of_steps, strict=True
        ):
            start = nodes.losses[0]
            snapped = [index * self.spacing for index in indices]
            pairs = zip(nodes.losses, snapped, strict=True)
            gaps = [abs(loss - start - point).upper() for loss, point in pairs]
            moved += count * max(gaps, key=float)
            self.offset += count * start
            weights = nodes.weighted(at_tilt)
            middle = sum(weights, arb(0)).mid()
            self.scale += count * middle.log()
            error = arb((nodes.errors[0] / middle).upper())
            shares = [weight / middle for weight in weights]
            steps.append((shares, error, snapped, indices, count))
            most_below = arb(nodes.total(at_below, 1).upper())
            most_above = arb(nodes.total(at_above, 2).upper())
            log_below += count * most_below.log()
            log_above += count * most_above.log()
        self.moved = arb(moved.upper())
        self.sides = [log_below, log_above]
        values = [acb(1)] * (self.points // 2 + 1)
        self.terms, self.left_out = self._filled_terms(steps, values)
        self.values = values[: self.terms]
        log_height = arb(0)
        for weights, error, _, _, count in steps:
            log_height = log_height + count * sum(weights, error).log()
        self.log_height = log_height.upper()

    def _filled_terms(self, steps: Sequence[_Step], values: list[acb]) -> tuple[int, arb]:
        """Fill in the values; return how many, and a bound of each of the others."""
        last = self.points // 2
        layers = []
        for weights, error, _, indices, _ in steps:
            layers.append(_total_and_layers(weights, error, indices))
        angle = float(self._angle.mid())
        h = angle * float(self.spacing.mid()) / 2 * (1 - 1e-12)

        def log_bound(k: int) -> float:
            logs = []
            for layer, (*_, count) in zip(layers, steps, strict=True):
                modulus = max(_modulus_bound(layer, h * k), 1e-300)
                logs.append(count * math.log(modulus))
            return math.fsum(logs)

        # Each of them counts up to `points` times as much as the kernel at the real axis.
        log_kernel = math.log(1 + 1 / abs(self.plan.tilt))
        log_digits = (self.digits + 1) * LN10
        wanted = -log_digits - math.log(self.points) - log_kernel
        wanted -= math.log(2 + math.sqrt(self.plan.curvature))
        terms = last + 1
        others_bound = arb(0)
        low = 1
        high = last
        if log_bound(high) <= wanted:
            while low < high:
                middle = (low + high) // 2
                if log_bound(middle) <= wanted:
                    high = middle
                else:
                    low = middle + 1
            terms = high
            if terms <= last:
                others_bound = arb(log_bound(high) + 1e-9).exp()
        if terms > _MOST_POINTS:
            raise AccuracyError(_TOO_FINE)
        for weights, error, snapped, _, count in steps:
            line = walk(weights, snapped, error, self._angle)
            for k, value in enumerate(islice(line, terms)):
                values[k] *= value**count
        return terms, others_bound

    def delta(self, epsilon: arb) -> arb:
        """Enclose δ(ε)."""
        plan = self.plan
        tilt = arb(plan.tilt)
        spacing = self.spacing
        with ctx.workprec(self.bits):
            start, unsure = self._first_above(epsilon)
            front = (self.scale - tilt * start).exp() / self.points
            total = arb(0)
            for k, value in enumerate(self.values):
                angle = k * self._angle
                z = acb(tilt, angle)
                at_z = -(-z * spacing).expm1()
                at_next = -(-(1 + z) * spacing).expm1()
                kernel = 1 / at_z
                kernel -= (epsilon - start).exp() / at_next
                shift = acb(0, angle * (self.offset - start)).exp()
                term = (value * kernel * shift).real
                if k not in (0, self.points - k):
                    term = 2 * term
                total += term
            others = self.points // 2 + 1 - len(self.values)
            if others > 0:
                # |1 − e^{−zΔ}| is smallest at the real axis.
                largest = 1 / -(-tilt * spacing).expm1()
                largest += 1 / -(-(1 + tilt) * spacing).expm1()
                left_out = 2 * others * largest * self.left_out
                total += arb(0, left_out.upper())
            tilted_distance = tilt * (self.moved - epsilon)
            height = (self.scale + self.log_height + tilted_distance).exp()
            slack = height * (unsure + self.moved)
            added = arb(0)
            for b, log_moment in zip((plan.below, plan.above), self.sides, strict=True):
                side = arb(b)
                log_fall = -abs(tilt - side) * self.points * spacing
                log_bound = log_moment - side * epsilon + log_fall + log_payoff(side)
                log_bound += side * self.moved
                added += log_bound.exp() / -log_fall.expm1()
            rounding = arb(0, slack.upper())
            alias = arb(0).union(arb(added.upper()))
            ball = front * total + rounding - alias
            ball = ball.max(arb(0)) + self.masses.infinity
            return ball + arb(0).union(self.masses.outside)

    def _first_above(self, epsilon: arb) -> tuple[arb, arb]:
        """Return the first point proved to lie above ε, and what one at ε can count for."""
        points_below = (epsilon - self.offset) / self.spacing
        whole = points_below.mid().floor().unique_fmpz()
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


def _indices_on_lattice(nodes: Nodes, spacing: Fraction) -> list[int]:
    """Return the point that each loss is next to, counted from the first one."""
    unit = fraction_ball(spacing)
    first = nodes.losses[0]
    indices = []
    for loss in nodes.losses:
        distance = (loss - first) / unit
        index = (distance + arb(0.5)).mid().floor().unique_fmpz()
        if index is None:
            raise AccuracyError(_TOO_FINE)
        indices.append(int(str(index)))
    return indices


def _widest_spacing(step_nodes: Sequence[Nodes], indices_of_steps: Sequence[list[int]]) -> arb:
    """Return the spacing that the two losses of a step tell that lie farthest apart."""
    widest = 0
    spacing = arb(1)
    for nodes, indices in zip(step_nodes, indices_of_steps, strict=True):
        lowest = min(indices)
        highest = max(indices)
        if highest - lowest > widest:
            widest = highest - lowest
            first = nodes.losses[indices.index(lowest)]
            last = nodes.losses[indices.index(highest)]
            spacing = (last - first) / widest
    return spacing


def _total_and_layers(
    weights: list[arb], error: arb, places: list[int]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the total, and heights and lengths of layers of neighbouring points."""
    masses: dict[int, float] = {}
    total = up(error)
    for weight, index in zip(weights, places, strict=True):
        mass = float(weight.lower()) * (1 - ABOVE_ROUNDING)
        masses[index] = masses.get(index, 0.0) + mass
        total += float(weight.upper()) * (1 + ABOVE_ROUNDING)
    runs = groupby(enumerate(sorted(masses)), lambda pair: pair[1] - pair[0])
    rectangles = []
    for _, run in runs:
        row = [masses[index] for _, index in run]
        for i, j, height in layers(row):
            rectangles.append((height, float(j - i)))
    both = np.asarray(rectangles or [(0.0, 1.0)])
    return total, both[:, 0], both[:, 1]


def _modulus_bound(rectangles: tuple[float, np.ndarray, np.ndarray], theta: float) -> float:
    """Bound |M| for all angles from one on up to π/2."""
    total, heights, lengths = rectangles
    angles = lengths * theta
    scaled_sines = lengths * math.sin(theta)
    envelope = 1 / scaled_sines
    sines = np.sin(np.minimum(angles, math.pi))
    arch = np.abs(sines / scaled_sines)
    beyond = np.where(lengths > 2, 1 / 3, 0.0)
    share = np.minimum(np.maximum(arch, beyond), envelope)
    share = np.where(angles < math.pi, share, envelope)
    share = np.minimum(share * (1 + ABOVE_ROUNDING), 1.0)
    fall = np.maximum(1 - share, 0.0)
    return float(total - (1 - ABOVE_ROUNDING) * (heights @ (lengths * fall)))
