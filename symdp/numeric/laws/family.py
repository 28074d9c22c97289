"""The law of a loss that is known by K alone, as of an exponential family.

Near the axis log φ_t(y) = K(t + iy) − K(t) − iyK′(t) is read off balls, accurate relative to
itself; farther out, where it is no longer small, off doubles, which balls show to be right at some
places. Derivatives are Cauchy's sums over a circle, in balls of many digits.

**Far out** |φ| is bounded between any two y by K in balls on the interval between them, which is
halved where the ball reaches high: peaks of |φ|, as of a count beside a little of something smooth,
lie within the bound, however narrow they are. Near the axis four moments bound it. Where balls tell
nothing, or |φ| is followed uphill to 1 again, it is not bounded, and a line has no end.

**Losses on a lattice** start + step·ℤ are listed. K at 2πk/(N·step) on a line tells the masses of
the N values around its mean, each relative to the largest; as many lines are drawn as it takes to
tell all of them down to the smallest double.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from heapq import heappush, heapreplace
from itertools import pairwise
from typing import Any, cast

import numpy as np
from flint import acb, arb, ctx

from symdp.errors import AccuracyError
from symdp.numeric.answer import ROUNDING, TOLERABLE
from symdp.numeric.elementary import Complex
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import ALL, Expansion, NodeSet, Tilted
from symdp.numeric.step import Array, Step
from symdp.tolerances import LONG_BITS, NEGLIGIBLE

BallFunction = Callable[..., Any]

_DERIVED = 60  # bits more for each derivative, and −log₂ of the radius of the circle
_NEAR = 2.0  # standard deviations⁻¹: where |log φ| is no longer small
_CHECKED = np.geomspace(0.5, 1e3, 12)  # standard deviations⁻¹ at which doubles are compared
_MOST_BALLS = 20_000  # places of one line: a second
_SEEN = 0.9  # of the highest log |φ| that was taken: a bound so near to it is not narrowed
_MOST_HALVED = 250  # intervals of one bound: some milliseconds
_RETURNED = -1.0  # log |φ| far out, above which that of a density does not lie
_FARTHEST = 2.0**60  # a tilt
_ENDED = 720.0  # e-folds of the mass of a value that is left out
_MOST_LISTED, _PERIOD = 200_000, 14.0  # values of a lattice; half a period in standard deviations
_BAND = 2.0  # standard deviations of values that one line tells
_ALONE, _LEAST_MASS = 0.999, 1e-9  # of a tilted law, that is one value; that is told from rounding


class _OnlyMoments:
    """What is known of a law without its density; everything else is refused in one sentence."""

    def __init__(self, name: str, **values: Any) -> None:
        self._name = name
        self.__dict__.update(values)

    def __getattr__(self, missing: str) -> Any:
        if missing.startswith("__"):
            raise AttributeError(missing)
        raise AccuracyError(
            f"{self._name} is known by its log-partition function alone, and this needs the "
            "density of its loss; ask for ε or δ without a method"
        )


class ClosedTilted(Tilted):
    """A law known by K under one tilt; it has no points."""

    points = 0

    def __init__(
        self,
        law: FamilyLaw,
        tilt: float,
        excess: float,
        variance: float,
        first: tuple[arb, arb],  # K(t) and K′(t)
        error: float = ROUNDING,
    ) -> None:
        is_told_by_doubles = error <= TOLERABLE
        _, slope = first
        with ctx.workprec(LONG_BITS):
            shift = float(slope - law.precise_mean)
        node_error = error if is_told_by_doubles else ROUNDING
        self.__dict__.update(
            law=law,
            tilt=tilt,
            excess=excess,
            shift=shift,
            variance=variance,
            nodes=law.points(node_error),
            atomic=0.0,
            is_precise=True,
            first=first,
            in_balls_alone=not is_told_by_doubles,
        )

    def __getattr__(self, missing: str) -> Any:
        return getattr(self.__dict__["nodes"], missing)

    def farther(self, error: float) -> ClosedTilted:
        """Return the same with the error of doubles."""
        return ClosedTilted(self.law, self.tilt, self.excess, self.variance, self.first, error)

    @property
    def turning(self) -> float:
        """A bound of E_t|L − m|: the standard deviation."""
        return self.widest

    def log_characteristic(self, y: Array) -> Complex:
        """Return log φ_t(y) − iym."""
        flat = y.ravel()
        in_balls = (np.abs(flat) * self.widest <= _NEAR) | self.in_balls_alone
        in_doubles = ~in_balls
        values = np.empty(flat.size, dtype=np.complex128)
        values[in_doubles] = self.in_doubles(flat[in_doubles])
        in_balls |= ~np.isfinite(values)
        if np.count_nonzero(in_balls) > _MOST_BALLS:
            raise AccuracyError(f"doubles do not tell the transform of {self.law.step.name} here")
        values[in_balls] = self.in_balls(flat[in_balls])
        return values.reshape(y.shape)

    def in_balls(self, y: Array) -> Complex:
        """Return log φ_t(y) − iym from balls, relative to itself."""
        height, slope = self.first
        values = []
        with ctx.workprec(LONG_BITS):
            for frequency in y.tolist():
                transform = self.law.at(acb(self.tilt, frequency))
                value = transform - height - acb(0, frequency) * slope
                values.append(complex(value.mid()))
        return np.asarray(values, dtype=np.complex128)

    def in_doubles(self, y: Array) -> Complex:
        """Return log φ_t(y) − iym from doubles."""
        height, slope = (float(ball) for ball in self.first)
        value = self.law.in_doubles(self.tilt + 1j * y)
        return np.asarray(value - height - 1j * y * slope)

    def cumulants(self, order: int) -> Array:
        """Return cumulants, the first as E_t L − E L."""
        derivatives = self.law.derivatives(self.tilt, order)
        higher = [float(ball) for ball in derivatives[2:]]
        return np.asarray([self.shift, *higher][:order])

    def log_bound(self, y: Array) -> Array:
        """Return log |φ| at most between neighbours of rising y, and beyond the last."""
        bounds = np.zeros(y.size)
        if self.law.recurs:
            return bounds
        near = self.near_bound(y)
        with ctx.workprec(LONG_BITS):
            bounds[-1] = self._most_beyond(float(y[-1]))
            if bounds[-1] == 0.0:  # no line has an end, whatever bounds its nearer parts
                return bounds
            ends = pairwise(y.tolist())
            for k, (low, high) in enumerate(ends):
                bounds[k] = self._most_between(low, high, float(near[k]))
        return bounds

    def expansion(self, y: float) -> Expansion:
        """Return no exponentials, and all of φ as the rest: `log_bound` alone bounds it."""
        no_losses = np.empty(0)
        no_sizes = np.zeros((1, 0))
        return Expansion(no_losses, no_sizes, np.ones(1))

    def _most_beyond(self, y: float) -> float:
        """Return log |φ| at most on many octaves from y on, 0 once one of them is not bounded.

        Beyond them |φ| ≤ 1 adds 2^−number of what it would add from y on: less than anything.
        """
        bound = -math.inf
        for octave in range(LONG_BITS):
            low = math.ldexp(y, octave)
            high = math.ldexp(y, octave + 1)
            bound = max(bound, self._most_between(low, high, 0.0))
            if bound == 0.0:
                break
        return bound

    def near_bound(self, y: Array) -> Array:
        """Return log |φ| at most between neighbours of rising y, by four moments.

        With D the difference of two such losses |φ(y)|² = E cos yD ≤ 1 − y² E D²/2 + y⁴ E D⁴/24,
        E D² = 2κ₂ and E D⁴ = 2κ₄ + 12κ₂².
        """
        _, variance, _, fourth = self.cumulants(4).tolist()
        square = y * y
        fourth_moment = fourth + 6.0 * variance**2
        fall = square * (variance - square * fourth_moment / 12.0)
        # It rises to one maximum and falls, so that between two places it is least at one of them.
        least = np.minimum(fall[:-1], fall[1:])
        fall_between = np.clip(least, 0.0, ALL)
        return np.asarray(0.5 * np.log1p(-fall_between))

    def _most_between(self, low: float, high: float, bound: float) -> float:
        """Return log |φ| at most between two y, no more than a bound that is known, from balls.

        The interval whose ball reaches highest is halved until it is near a value that was taken,
        or until balls have told nothing of any part of it for long.
        """
        highest_value = self._log_modulus_between(low, low)
        whole = min(self._log_modulus_between(low, high), bound)
        intervals = [(-whole, low, high)]
        for number in range(_MOST_HALVED):
            top, first, last = intervals[0]
            if number > _MOST_HALVED // 8 and top == 0.0:
                break
            near_enough = max(_SEEN * highest_value, -2.0 * NEGLIGIBLE)
            if -top <= near_enough or not last > first:
                break
            middle = 0.5 * (first + last)
            highest_value = max(highest_value, self._log_modulus_between(middle, middle))
            left = min(self._log_modulus_between(first, middle), bound)
            right = min(self._log_modulus_between(middle, last), bound)
            heapreplace(intervals, (-left, first, middle))
            heappush(intervals, (-right, middle, last))
        return -intervals[0][0]

    def _log_modulus_between(self, low: float, high: float) -> float:
        """Return log |φ| at most between two y by one ball, 0 where that tells nothing."""
        y = arb(0.5 * (low + high), 0.5 * (high - low))
        height, _ = self.first
        log_modulus = self.law.at(acb(self.tilt, y)).real
        bound = float((log_modulus - height).upper())
        if math.isfinite(bound) or bound == -math.inf:
            return min(bound, 0.0)
        return 0.0


class FamilyLaw(LossLaw):
    """The privacy loss of one step, from K in balls and in doubles."""

    is_spread, has_atoms, mass_at_infinity, precise_top = True, False, 0.0, None

    def __init__(self, name: str, ball: BallFunction, doubles: Any, direction: str) -> None:
        super().__init__(Step(name), None)
        self.lattice: tuple[arb, arb] | None = None  # start and step of the losses, if on one
        self._ball = ball
        self._doubles = doubles
        self._adds = direction == "add"
        self._tilted_laws: dict[float, ClosedTilted] = {}

    def at(self, z: acb) -> acb:
        """Enclose K(z)."""
        if self._adds:
            z = -1 - z
        return acb(self._ball(z))

    def in_doubles(self, z: Complex) -> Complex:
        """Return about K(z)."""
        if self._adds:
            z = -1.0 - z
        return np.asarray(self._doubles(z))

    @cached_property
    def domain(self) -> tuple[float, float]:
        """The tilts between which K is seen to be real and to rise ever faster."""
        below = self._reach_of_domain(-1.0, -1.0)
        above = self._reach_of_domain(0.0, 1.0)
        return -1.0 - below, above

    def _reach_of_domain(self, start: float, way: float) -> float:
        """Return how far K goes on from −1 or 0."""

        def height(reach: float) -> arb:
            value = self.at(start + acb(way) * reach)
            return value.real if abs(value.imag) < 1e-9 else arb.nan()

        with ctx.workprec(2 * LONG_BITS):
            near = 0.0
            near_height = arb(0)
            slope = arb.neg_inf()
            far = 2.0**-6
            while True:
                far_height = height(far)
                rise = (far_height - near_height) / (far - near)
                if not rise.is_finite() or rise < slope:
                    break
                near = far
                near_height = far_height
                slope = rise
                far = 2.0 * far
                if far > _FARTHEST:
                    return math.inf
            inner = near
            for _ in range(60):
                middle = 0.5 * (inner + far)
                rise = (height(middle) - near_height) / (middle - near)
                if rise.is_finite() and not rise < slope:
                    inner = middle
                else:
                    far = middle
        return inner

    @cached_property
    def loss_bounds(self) -> tuple[float, float]:
        """The range of the loss, where the mean at far tilts is seen to end."""
        ends = []
        for way, end in zip((-1.0, 1.0), self.domain, strict=True):
            bound = way * math.inf
            if math.isinf(end):
                with ctx.workprec(2 * LONG_BITS):
                    near = self.derivatives(way * _FARTHEST / 2, 1)[1]
                    far = self.derivatives(way * _FARTHEST, 1)[1]
                    if abs(far - near) <= TOLERABLE * abs(far):
                        bound = float(2 * far - near)  # what is missing falls like 1/t
            ends.append(bound)
        return ends[0], ends[1]

    def derivatives(self, tilt: float, order: int) -> list[arb]:
        """Return about K(t), K′(t), …, K^(order)(t)."""
        number = order + 7
        with ctx.workprec(LONG_BITS + _DERIVED * (order + 1)):
            radius = arb(2) ** -_DERIVED
            angles = [2 * arb.pi() * k / number for k in range(number)]
            turns = [acb(0, angle).exp() for angle in angles]
            values = [self.at(tilt + radius * turn) for turn in turns]
            balls = []
            for j in range(order + 1):
                total = acb(0)
                for value, turn in zip(values, turns, strict=True):
                    total += value * turn ** (-j)
                mean = total.real / number
                derivative = mean * arb(j).fac() / radius**j
                balls.append(derivative.mid())
        if not all(ball.is_finite() for ball in balls):
            raise AccuracyError(f"the transform of {self.step.name} is not known at {tilt:.6g}")
        return balls

    @cached_property
    def precise_mean(self) -> arb:
        """E L."""
        return self.derivatives(0.0, 1)[1]

    @cached_property
    def base(self) -> NodeSet:
        """The mean, and no points."""
        return self.points(ROUNDING)

    def points(self, error: float) -> NodeSet:
        """Return the mean and an error, and no points."""
        moments = _OnlyMoments(
            self.step.name,
            mean=float(self.precise_mean),
            error=error,
            rounded=0.0,
            beyond=(0.0, 0.0),
            mass_at_infinity=0.0,
        )
        return cast(NodeSet, moments)

    @property
    def outlines(self) -> Any:
        """Refused: there is no density."""
        return self.base.panels

    _outlines = outlines

    def nodes(self, tilt: float, frequency: float) -> NodeSet:
        """Refused: there is no density."""
        return cast(NodeSet, self.base.panels)

    def window(self, tilt: float) -> tuple[float, float]:
        """Return between which tilts K can be had at no further cost: all of them."""
        return self.domain

    def tilted(self, tilt: float, frequency: float = 0.0) -> ClosedTilted:
        """Return the law tilted by `tilt`."""
        low, high = self.domain
        if not (low < tilt < high or -1.0 <= tilt <= 0.0):
            raise AccuracyError(
                f"tilt {tilt:.6g} lies outside ({low:.6g}, {high:.6g}), where the moment "
                f"generating function of {self.step.name} is finite"
            )
        if tilt not in self._tilted_laws:
            height, slope, variance = self.derivatives(tilt, 2)
            if variance < 0:
                raise AccuracyError(
                    f"log_partition of {self.step.name} is not convex at tilt {tilt:.6g}, or has a "
                    "logarithm of a negative number there; write it as that of a positive one"
                )
            with ctx.workprec(LONG_BITS):
                excess = float(height - tilt * self.precise_mean)
            first = (height, slope)
            self._tilted_laws[tilt] = ClosedTilted(self, tilt, excess, float(variance), first)
        part = self._tilted_laws[tilt]
        if frequency * part.widest <= _NEAR:
            return part
        return part.farther(self.gap(tilt))

    def transform(self, tilts: Array) -> Array:
        """Return K(t) − t·E L for several tilts."""
        several = np.asarray(tilts, float).tolist()
        return np.asarray([self.tilted(tilt).excess for tilt in several])

    def rough_cumulants(self, tilts: Array) -> tuple[Array, Array, Array]:
        """Return K(t) − t E L, K′(t) − E L and K″(t) for several tilts."""
        moments = []
        for tilt in tilts.tolist():
            law = self.tilted(tilt)
            moments.append((law.excess, law.shift, law.variance))
        excess, shift, variance = np.asarray(moments).T
        return excess, shift, variance

    @cached_property
    def recurs(self) -> bool:
        """Whether |φ| is seen to return to 1, as that of single values does, whatever was said.

        From places far out it is followed uphill, by steps that grow as long as they lead there.
        """
        part = self.tilted(0.0)
        start = np.geomspace(1e3, 1e9, 400) / part.widest
        y = start
        step = np.full(start.size, 0.25 / part.widest)
        height = part.in_doubles(y).real
        for _ in range(30):
            before = height
            for way in (1.0, -1.0):
                other = y + way * step
                other_height = np.nan_to_num(part.in_doubles(other).real, nan=-np.inf)
                is_higher = other_height > height
                y = np.where(is_higher, other, y)
                height = np.where(is_higher, other_height, height)
            step = np.where(height > before, 2.0 * step, 0.5 * step)
        is_far = y > 0.5 * start
        return bool(height[is_far].max(initial=-math.inf) > _RETURNED)

    def gap(self, tilt: float) -> float:
        """Return how far doubles are from balls, relative to what the loss turns; at least 2⁻⁵²."""
        part = self.tilted(tilt)
        y = _CHECKED / part.widest
        difference = part.in_doubles(y) - part.in_balls(y)
        gaps = np.abs(np.expm1(difference)) / (1.0 + part.widest * y)
        largest = float(np.nan_to_num(gaps, nan=math.inf).max())
        return max(largest, ROUNDING)


class ListedLaw(LossLaw):
    """Losses on a lattice, listed up to values that no δ shows; K may go on beyond."""

    def __init__(self, step: Step, pairs_end: tuple[bool, bool]) -> None:
        super().__init__(step, None)
        self._pairs_end = pairs_end  # whether the law ends where its list does: below, above
        self.goes_on = not pairs_end[1]

    def is_resolved_at(self, tilt: float) -> bool:
        """Whether the law tilted by so much ends inside the list."""
        ends_below, ends_above = self._pairs_end
        heights = self.step.point_log_p + tilt * self.step.point_loss
        least = float(heights.max()) - NEGLIGIBLE
        if not (ends_below or float(heights[0]) < least):
            return False
        return ends_above or float(heights[-1]) < least


def listed(law: FamilyLaw, lattice: tuple[arb, arb], direction: str) -> LossLaw:
    """Return the law of losses start + step·ℤ, from K of the remove direction."""
    start, step = lattice
    atoms: dict[int, tuple[float, float]] = {}  # by number: how far from a mean, and log P
    ends = [_list_towards(law, lattice, way, atoms) for way in (-1.0, 1.0)]
    numbers = sorted(atoms)
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise AccuracyError(f"some losses of {law.step.name} were not seen")
    logs = np.asarray([atoms[number][1] for number in numbers])
    total = float(np.exp(logs).sum())
    if not abs(total - 1.0) < TOLERABLE:
        raise AccuracyError(f"the masses of {law.step.name} do not add up to 1: does its T count?")
    with ctx.workprec(LONG_BITS):
        balls = [start + number * step for number in numbers]
        loss = np.asarray([float(ball) for ball in balls])
        if direction == "add":
            balls = [-ball for ball in balls]
            logs = logs - loss
            loss = -loss
        order = np.argsort(loss)
        pairs = []
        for k in order.tolist():
            mass = arb(float(logs[k])).exp()
            pairs.append((mass, balls[k]))
    if not loss[0] < loss[-1]:
        ends.reverse()
    points = Step(
        law.step.name,
        point_loss=loss[order],
        point_log_p=logs[order],
        point_balls=tuple(pairs),
    )
    return ListedLaw(points, (ends[0], ends[1]))


def _list_towards(
    law: FamilyLaw,
    lattice: tuple[arb, arb],
    way: float,
    atoms: dict[int, tuple[float, float]],
) -> bool:
    """List numbers downwards or upwards from the mean, and return whether the law ends there."""
    start, step = lattice
    spacing = float(step)
    tilt = 0.0
    while True:
        part = law.tilted(tilt)
        height, slope = part.first
        mean = float((slope - start) / step)
        width = part.widest / abs(spacing)
        least_size = 2.0 * _PERIOD * width + 32.0
        size = 1 << math.ceil(math.log2(least_size))
        if max(size, len(atoms)) > _MOST_LISTED:
            raise AccuracyError(f"the losses of {law.step.name} are too many to be listed")
        first = round(mean) - size // 2
        reach = max(_BAND * width, 1.0)
        with ctx.workprec(LONG_BITS):
            front = height - tilt * start
        masses = _tilted_masses(part, mean, size, first, spacing)
        last = -math.inf  # of either law, at the outer end
        lower = math.floor(mean - reach)
        upper = math.ceil(mean + reach)
        band = range(lower, upper + 1)
        for number in band[:: int(way)]:
            mass = masses[number - first]
            if not mass > _LEAST_MASS:
                continue
            with ctx.workprec(LONG_BITS):
                log_p = float(front - tilt * number * step) + math.log(mass)
            distance = abs(number - mean)
            nearest = atoms.get(number, (math.inf, 0.0))
            atoms[number] = min(nearest, (distance, log_p))
            if way * (number - mean) > 0:
                last = max(log_p, log_p - float(start + number * step))
        is_alone = bool(masses.max() > _ALONE)
        if is_alone or -math.inf < last < -_ENDED:
            return is_alone
        move = way * _BAND / (max(width, 1e-3) * abs(spacing))
        least_move = 1e-12 * abs(tilt)
        while abs(move) > least_move and not _adjoins(law, tilt + move, mean, step, start):
            move *= 0.5
        if not abs(move) > least_move:
            return False
        tilt += move


def _adjoins(law: FamilyLaw, tilt: float, mean: float, step: arb, start: arb) -> bool:
    """Return whether the values that a tilt tells lie next to those around a mean."""
    low, high = law.domain
    if not low < tilt < high:
        return False
    part = law.tilted(tilt)
    _, slope = part.first
    reach = max(_BAND * part.widest / abs(float(step)), 1.0)
    new_mean = float((slope - start) / step)
    return abs(new_mean - mean) <= reach + 1.0


def _tilted_masses(part: ClosedTilted, mean: float, size: int, first: int, step: float) -> Array:
    """Return the tilted probabilities of so many numbers from a first one on."""
    turn = 2.0 * math.pi / size
    k = np.arange(size // 2 + 1)
    y = np.asarray(turn / step * k, dtype=np.float64)
    phase = turn * (mean - first) * k
    values = np.exp(part.log_characteristic(y) + 1j * phase)
    return np.asarray(np.fft.irfft(np.conj(values), size))
