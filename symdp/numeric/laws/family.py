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
from typing import Any, cast

import numpy as np
from flint import acb, arb, ctx

from symdp.errors import AccuracyError
from symdp.numeric.answer import NEGLIGIBLE, ROUNDING, TOLERABLE
from symdp.numeric.elementary import Complex
from symdp.numeric.loss import LossLaw
from symdp.numeric.nodes import ALL, Expansion, NodeSet, Tilted
from symdp.numeric.step import Array, Step

BallFunction = Callable[..., Any]

_BITS = 200  # of K near the axis: 140 are left of a difference of 1e-18
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


class _Known:
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
        points = law.points(error if error <= TOLERABLE else ROUNDING)
        with ctx.workprec(_BITS):
            shift = float(first[1] - law.precise_mean)
        self.__dict__.update(
            law=law, tilt=tilt, excess=excess, shift=shift, variance=variance, nodes=points,
            atomic=0.0, is_precise=True, first=first, in_balls_alone=not error <= TOLERABLE,
        )  # fmt: skip

    def __getattr__(self, missing: str) -> Any:
        return getattr(self.__dict__["nodes"], missing)

    def farther(self, error: float) -> ClosedTilted:
        """Return the same with the error of doubles."""
        return ClosedTilted(self.law, self.tilt, self.excess, self.variance, self.first, error)

    def log_characteristic(self, y: Array) -> Complex:
        """Return log φ_t(y) − iym."""
        flat = y.ravel()
        near = (np.abs(flat) * self.widest <= _NEAR) | self.in_balls_alone
        values = np.empty(flat.size, dtype=np.complex128)
        values[~near] = self.in_doubles(flat[~near])
        near |= ~np.isfinite(values)
        if np.count_nonzero(near) > _MOST_BALLS:
            raise AccuracyError(f"doubles do not tell the transform of {self.law.step.name} here")
        values[near] = self.in_balls(flat[near])
        return values.reshape(y.shape)

    def in_balls(self, y: Array) -> Complex:
        """Return the same from balls, relative to itself."""
        (height, slope), law = self.first, self.law
        with ctx.workprec(_BITS):
            values = (law.at(acb(self.tilt, v)) - height - acb(0, v) * slope for v in y.tolist())
            return np.asarray([complex(value.mid()) for value in values], dtype=np.complex128)

    def in_doubles(self, y: Array) -> Complex:
        """Return the same from doubles."""
        height, slope = (float(ball) for ball in self.first)
        return np.asarray(self.law.in_doubles(self.tilt + 1j * y) - height - 1j * y * slope)

    def cumulants(self, order: int) -> Array:
        """Return cumulants, the first as E_t L − E L."""
        derivatives = self.law.derivatives(self.tilt, order)
        return np.asarray([self.shift, *(float(ball) for ball in derivatives[2:])][:order])

    def log_bound(self, y: Array) -> Array:
        """Return log |φ| at most between neighbours of rising y, and beyond the last."""
        bounds = np.zeros(y.size)
        if self.law.recurs:
            return bounds
        near = self.near_bound(y)
        with ctx.workprec(_BITS):
            bounds[-1] = self._most_beyond(float(y[-1]))
            if bounds[-1] == 0.0:  # no line has an end, whatever bounds its nearer parts
                return bounds
            for k in range(y.size - 1):
                bounds[k] = self._most_between(float(y[k]), float(y[k + 1]), float(near[k]))
        return bounds

    def expansion(self, y: float) -> Expansion:
        """Return no exponentials, and all of φ as the rest: `log_bound` alone bounds it."""
        return Expansion(np.empty(0), np.zeros((1, 0)), np.ones(1))

    def _most_beyond(self, y: float) -> float:
        """Return log |φ| at most on many octaves from y on, 0 once one of them is not bounded.

        Beyond them |φ| ≤ 1 adds 2^−number of what it would add from y on: less than anything.
        """
        bound = -math.inf
        for k in range(_BITS):
            bound = max(bound, self._most_between(math.ldexp(y, k), math.ldexp(y, k + 1), 0.0))
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
        fall = square * (variance - square * (fourth + 6.0 * variance**2) / 12.0)
        # It rises to one maximum and falls, so that between two places it is least at one of them.
        least = np.minimum(fall[:-1], fall[1:])
        return np.asarray(0.5 * np.log1p(-np.clip(least, 0.0, ALL)))

    def _most_between(self, low: float, high: float, bound: float) -> float:
        """Return log |φ| at most between two y, no more than a bound that is known, from balls.

        The interval whose ball reaches highest is halved until it is near a value that was taken,
        or until balls have told nothing of any part of it for long.
        """
        taken = self._height(low, low)
        intervals = [(-min(self._height(low, high), bound), low, high)]
        for number in range(_MOST_HALVED):
            top, first, last = intervals[0]
            if number > _MOST_HALVED // 8 and top == 0.0:
                break
            if -top <= max(_SEEN * taken, -2.0 * NEGLIGIBLE) or not last > first:
                break
            middle = 0.5 * (first + last)
            taken = max(taken, self._height(middle, middle))
            heapreplace(intervals, (-min(self._height(first, middle), bound), first, middle))
            heappush(intervals, (-min(self._height(middle, last), bound), middle, last))
        return -intervals[0][0]

    def _height(self, low: float, high: float) -> float:
        """Return log |φ| at most between two y by one ball, 0 where that tells nothing."""
        middle = arb(0.5 * (low + high), 0.5 * (high - low))
        height = float((self.law.at(acb(self.tilt, middle)).real - self.first[0]).upper())
        return min(height, 0.0) if math.isfinite(height) or height == -math.inf else 0.0


class FamilyLaw(LossLaw):
    """The privacy loss of one step, from K in balls and in doubles."""

    is_spread, has_atoms, mass_at_infinity, precise_top = True, False, 0.0, None

    def __init__(self, name: str, ball: BallFunction, doubles: Any, direction: str) -> None:
        super().__init__(Step(name), None)
        self.lattice: tuple[arb, arb] | None = None  # start and step of the losses, if on one
        self._ball, self._doubles, self._adds = ball, doubles, direction == "add"
        self._known: dict[float, ClosedTilted] = {}

    def at(self, z: acb) -> acb:
        """Enclose K(z)."""
        return acb(self._ball(-1 - z if self._adds else z))

    def in_doubles(self, z: Complex) -> Complex:
        """Return about K(z)."""
        return np.asarray(self._doubles(-1.0 - z if self._adds else z))

    @cached_property
    def domain(self) -> tuple[float, float]:
        """The tilts between which K is seen to be real and to rise ever faster."""
        return -1.0 - self._reach(-1.0, -1.0), self._reach(0.0, 1.0)

    def _reach(self, start: float, way: float) -> float:
        """Return how far K goes on from −1 or 0."""

        def height(reach: float) -> arb:
            value = self.at(start + acb(way) * reach)
            return value.real if abs(value.imag) < 1e-9 else arb.nan()

        with ctx.workprec(2 * _BITS):
            near, last, slope, far = 0.0, arb(0), arb.neg_inf(), 2.0**-6
            while (rise := (height(far) - last) / (far - near)).is_finite() and not rise < slope:
                near, last, slope, far = far, height(far), rise, 2.0 * far
                if far > _FARTHEST:
                    return math.inf
            inner = near
            for _ in range(60):
                middle = 0.5 * (inner + far)
                rise = (height(middle) - last) / (middle - near)
                holds = rise.is_finite() and not rise < slope
                inner, far = (middle, far) if holds else (inner, middle)
        return inner

    @cached_property
    def loss_bounds(self) -> tuple[float, float]:
        """The range of the loss, where the mean at far tilts is seen to end."""
        ends = []
        for way, end in zip((-1.0, 1.0), self.domain, strict=True):
            bound = way * math.inf
            if math.isinf(end):
                with ctx.workprec(2 * _BITS):
                    near, far = (
                        self.derivatives(way * t, 1)[1] for t in (_FARTHEST / 2, _FARTHEST)
                    )
                    if abs(far - near) <= TOLERABLE * abs(far):
                        bound = float(2 * far - near)  # what is missing falls like 1/t
            ends.append(bound)
        return ends[0], ends[1]

    def derivatives(self, tilt: float, order: int) -> list[arb]:
        """Return about K(t), K′(t), …, K^(order)(t)."""
        number = order + 7
        with ctx.workprec(_BITS + _DERIVED * (order + 1)):
            radius = arb(2) ** -_DERIVED
            turns = [acb(0, 2 * arb.pi() * k / number).exp() for k in range(number)]
            values = [self.at(tilt + radius * turn) for turn in turns]
            balls = []
            for j in range(order + 1):
                total = sum(
                    (v * turn ** (-j) for v, turn in zip(values, turns, strict=True)), acb(0)
                )
                balls.append((total.real / number * arb(j).fac() / radius**j).mid())
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
        fields = {"mean": float(self.precise_mean), "error": error, "beyond": (0.0, 0.0)}
        return cast(NodeSet, _Known(self.step.name, **fields, mass_at_infinity=0.0))

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
        if tilt not in self._known:
            height, slope, variance = self.derivatives(tilt, 2)
            if variance < 0:
                raise AccuracyError(
                    f"log_partition of {self.step.name} is not convex at tilt {tilt:.6g}, or has a "
                    "logarithm of a negative number there; write it as that of a positive one"
                )
            with ctx.workprec(_BITS):
                excess = float(height - tilt * self.precise_mean)
            first = height, slope
            self._known[tilt] = ClosedTilted(self, tilt, excess, float(variance), first)
        part = self._known[tilt]
        return part if frequency * part.widest <= _NEAR else part.farther(self.gap(tilt))

    def transform(self, tilts: Array) -> Array:
        """Return K(t) − t·E L for several tilts."""
        return np.asarray([self.tilted(t).excess for t in np.asarray(tilts, float).tolist()])

    def rough_cumulants(self, tilts: Array) -> tuple[Array, Array, Array]:
        """Return K(t) − t E L, K′(t) − E L and K″(t) for several tilts."""
        laws = [self.tilted(t) for t in tilts.tolist()]
        rows = np.asarray([(law.excess, law.shift, law.variance) for law in laws])
        return rows[:, 0], rows[:, 1], rows[:, 2]

    @cached_property
    def recurs(self) -> bool:
        """Whether |φ| is seen to return to 1, as that of single values does, whatever was said.

        From places far out it is followed uphill, by steps that grow as long as they lead there.
        """
        part = self.tilted(0.0)
        start = np.geomspace(1e3, 1e9, 400) / part.widest
        y, step = start, np.full(start.size, 0.25 / part.widest)
        height = part.in_doubles(y).real
        for _ in range(30):
            before = height
            for way in (1.0, -1.0):
                other = y + way * step
                seen = np.nan_to_num(part.in_doubles(other).real, nan=-np.inf)
                better = seen > height
                y, height = np.where(better, other, y), np.where(better, seen, height)
            step = np.where(height > before, 2.0 * step, 0.5 * step)
        far = y > 0.5 * start
        return bool(height[far].max(initial=-math.inf) > _RETURNED)

    def gap(self, tilt: float) -> float:
        """Return how far doubles are from balls, relative to what the loss turns; at least 2⁻⁵²."""
        part = self.tilted(tilt)
        y = _CHECKED / part.widest
        doubles, other = part.in_doubles(y), part.in_balls(y)
        gap = np.abs(np.expm1(doubles - other)) / (1.0 + part.widest * y)
        return max(float(np.nan_to_num(gap, nan=math.inf).max()), ROUNDING)


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
        below = ends_below or float(heights[0]) < least
        return below and (ends_above or float(heights[-1]) < least)


def listed(law: FamilyLaw, lattice: tuple[arb, arb], direction: str) -> LossLaw:
    """Return the law of losses start + step·ℤ, from K of the remove direction."""
    start, step = lattice
    ends: list[bool] = []  # whether the law ends there, of the numbers' lower and upper end
    atoms: dict[int, tuple[float, float]] = {}  # by number: how far from a mean, and log P
    for way in (-1.0, 1.0):
        tilt = 0.0
        while True:
            part = law.tilted(tilt)
            mean, width = float((part.first[1] - start) / step), part.widest / abs(float(step))
            size = 1 << math.ceil(math.log2(2.0 * _PERIOD * width + 32.0))
            if max(size, len(atoms)) > _MOST_LISTED:
                raise AccuracyError(f"the losses of {law.step.name} are too many to be listed")
            first, reach = round(mean) - size // 2, max(_BAND * width, 1.0)
            with ctx.workprec(_BITS):
                front = part.first[0] - tilt * start
            masses = _masses(part, mean, size, first, float(step))
            last = -math.inf  # of either law, at the outer end
            for j in range(math.floor(mean - reach), math.ceil(mean + reach) + 1)[:: int(way)]:
                if masses[j - first] > _LEAST_MASS:
                    with ctx.workprec(_BITS):
                        log_p = float(front - tilt * j * step) + math.log(masses[j - first])
                    atoms[j] = min(atoms.get(j, (math.inf, 0.0)), (abs(j - mean), log_p))
                    if way * (j - mean) > 0:
                        last = max(log_p, log_p - float(start + j * step))
            if masses.max() > _ALONE or -math.inf < last < -_ENDED:
                ends.append(bool(masses.max() > _ALONE))
                break
            move = way * _BAND / (max(width, 1e-3) * abs(float(step)))
            while abs(move) > 1e-12 * abs(tilt) and not _adjoins(
                law, tilt + move, mean, step, start
            ):
                move *= 0.5
            if not abs(move) > 1e-12 * abs(tilt):
                ends.append(False)
                break
            tilt += move
    numbers = sorted(atoms)
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise AccuracyError(f"some losses of {law.step.name} were not seen")
    logs = np.asarray([atoms[j][1] for j in numbers])
    if not abs(float(np.exp(logs).sum()) - 1.0) < TOLERABLE:
        raise AccuracyError(f"the masses of {law.step.name} do not add up to 1: does its T count?")
    with ctx.workprec(_BITS):
        balls = [start + j * step for j in numbers]
        loss = np.asarray([float(ball) for ball in balls])
        if direction == "add":
            balls, loss, logs = [-ball for ball in balls], -loss, logs - loss
        order = np.argsort(loss)
        pairs = tuple((arb(float(logs[k])).exp(), balls[k]) for k in order.tolist())
    below, above = ends if loss[0] < loss[-1] else ends[::-1]
    return ListedLaw(Step(law.step.name, (), loss[order], logs[order], pairs), (below, above))


def _adjoins(law: FamilyLaw, tilt: float, mean: float, step: arb, start: arb) -> bool:
    """Return whether the values that a tilt tells lie next to those around a mean."""
    if not law.domain[0] < tilt < law.domain[1]:
        return False
    part = law.tilted(tilt)
    reach = max(_BAND * part.widest / abs(float(step)), 1.0)
    return abs(float((part.first[1] - start) / step) - mean) <= reach + 1.0


def _masses(part: ClosedTilted, mean: float, size: int, first: int, step: float) -> Array:
    """Return the tilted probabilities of so many numbers from a first one on."""
    turn = 2.0 * math.pi / size
    k = np.arange(size // 2 + 1)
    logs = part.log_characteristic(np.asarray(turn / step * k, dtype=np.float64))
    values = np.exp(logs + 1j * turn * (mean - first) * k)
    return np.asarray(np.fft.irfft(np.conj(values), size))
