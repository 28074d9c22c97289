"""Compositions of very many distinct steps, as sums over few steps of the same families.

K(z) of a step depends smoothly on its parameters, and all that adds up over the steps is linear in
it: what ten thousand steps add up to is a weighted sum over Chebyshev points of the box that their
parameters span. How far off that is shows in the last coefficients, and where it is more than
rounding the points are doubled, along the axis that needs it, or all steps are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from symdp.law.chebyshev import Grid
from symdp.law.elementary import Complex
from symdp.law.loss import LossLaw
from symdp.law.step import Array
from symdp.law.tilted import Tilted, excess
from symdp.law.total import ACCURATE, CoarseError, SumLaw

_FIRST_DEGREE = 8
_MOST_DEGREE = 256
_WORTHWHILE = 0.5  # nodes for each of the steps that they replace
_ABSOLUTE = 2e-13  # how far off an exponent may be
_ROUNDING = 4e-16
_SUMMED = 1.5e-14  # what rounding leaves of terms that add up, relative to their sizes
_SLACK = 1e4  # more may be missing, and is reported, where more nodes cost as much as all steps
_PROBES = 2
_ROOM = 1e-9  # around the range of the loss
_REMEMBERED = (
    "domain",
    "is_spread",
    "has_atoms",
    "atom_cycle",
    "loss_bounds",
    "log_finite_mass",
    "_exact_mean",
    "mean",
)

Result = TypeVar("Result")


@dataclass(eq=False)
class Family:
    """Steps that differ in the values of some parameters alone.

    Parameters
    ----------
    places
        The parameters of every step, one row each, mapped to [−1, 1].
    counts
        How often each step is taken.
    law_at
        Returns the law of the step at a place of the box.
    member
        Returns the law of one of the steps.
    """

    places: Array
    counts: Array
    law_at: Callable[[tuple[float, ...]], LossLaw]
    member: Callable[[int], LossLaw]
    _laws: dict[tuple[float, ...], LossLaw] = field(default_factory=dict)
    _grid: Grid | None = None

    @property
    def grid(self) -> Grid:
        """The nodes that stand for the steps."""
        if self._grid is None:
            degrees = (_FIRST_DEGREE,) * self.places.shape[1]
            self._grid = Grid(self.places, self.counts, degrees)
        return self._grid

    @property
    def is_worthwhile(self) -> bool:
        """Whether the nodes are few beside the steps."""
        size = math.prod(self.grid.shape)
        return size <= _WORTHWHILE * self.counts.size and max(self.grid.degrees) <= _MOST_DEGREE

    def refine(self, axis: int) -> bool:
        """Double the nodes along an axis, and return whether they were still few."""
        coarse, degrees = self.grid, list(self.grid.degrees)
        degrees[axis] *= 2
        self._grid = Grid(self.places, self.counts, tuple(degrees))
        if self.is_worthwhile:
            return True
        self._grid = coarse
        return False

    def laws(self) -> list[LossLaw]:
        """Return the laws at the nodes; those of coarser grids are among them."""
        found = []
        for place in map(tuple, self.grid.nodes.tolist()):
            if place not in self._laws:
                self._laws[place] = self.law_at(place)
            found.append(self._laws[place])
        return found

    def probes(self) -> list[int]:
        """Return the steps that lie farthest from the nodes."""
        gaps = np.zeros(self.counts.size)
        for axis in range(self.places.shape[1]):
            points = np.unique(self.grid.nodes[:, axis])
            gaps += np.abs(self.places[:, axis][:, None] - points).min(axis=1)
        return [int(k) for k in np.argsort(-gaps)[:_PROBES]]


class CondensedLaw(SumLaw):
    """The total privacy loss of many distinct steps, its sums taken over few of their kind.

    Parameters
    ----------
    families
        Steps that few others can stand for.
    others
        All other steps.
    parts
        Returns every distinct step's law with its count, for what does not add up over the steps.
    """

    def __init__(
        self,
        families: Sequence[Family],
        others: Sequence[tuple[LossLaw, int]],
        parts: Callable[[], Sequence[tuple[LossLaw, int]]],
    ) -> None:
        self._families = list(families)
        self._others = tuple(others)
        self._all = parts
        self.kept = {}
        self.count = sum(n for _, n in others) + sum(int(f.counts.sum()) for f in families)
        self._worst: tuple[Family, int] | None = None
        self._is_final = False
        while self._families:
            try:
                self._check_moments()
                break
            except CoarseError:
                self.refine()

    @property
    def is_condensed(self) -> bool:
        """Whether some of the terms stand for others."""
        return bool(self._families)

    @property
    def parts(self) -> tuple[tuple[LossLaw, int], ...]:
        """Every distinct step's law, with its count."""
        return self._every_part

    @cached_property
    def _every_part(self) -> tuple[tuple[LossLaw, int], ...]:
        return tuple(self._all())

    @property
    def terms(self) -> Sequence[tuple[LossLaw, float]]:
        """The laws and weights that sums over the steps are taken with."""
        return self._terms if self._families else self.parts

    @cached_property
    def _terms(self) -> Sequence[tuple[LossLaw, float]]:
        found: list[tuple[LossLaw, float]] = list(self._others)
        for family in self._families:
            found += zip(family.laws(), family.grid.weights.tolist(), strict=True)
        return found

    def refine(self) -> None:
        """Double the nodes that were too few, or take all steps."""
        if self._worst is None or not self._worst[0].refine(self._worst[1]):
            if self._worst is not None and not self._is_final:
                self._is_final = True
                return
            self._families = []
        self._forget()

    def resolve(self, tilt: float) -> bool:
        """Double the nodes that are too few at a tilt, and return whether that was worth it."""
        try:
            self._cumulants(tilt, 2, ACCURATE)
        except CoarseError:
            if self._worst is not None and self._worst[0].refine(self._worst[1]):
                self._forget()
                return True
        return False

    def _forget(self) -> None:
        self._worst = None
        self.kept.clear()
        for name in ("_terms", *_REMEMBERED):
            self.__dict__.pop(name, None)

    def _taken_apart(self) -> tuple[SumLaw, SumLaw]:
        if not self._families:
            return super()._taken_apart()
        sides = [[x for x in self._others if x[0].is_spread is spread] for spread in (False, True)]
        # Their own grids, as a family's grid belongs to one total alone.
        families = [replace(family, _grid=None) for family in self._families]
        rest = CondensedLaw(families, sides[1], lambda: [x for x in self.parts if x[0].is_spread])
        return SumLaw(sides[0]), rest

    def _slices(self) -> Iterator[tuple[Family, slice]]:
        """Yield every family with the place of its nodes among the terms."""
        start = len(self._others)
        for family in self._families:
            stop = start + len(family.grid.nodes)
            yield family, slice(start, stop)
            start = stop

    def _missing(
        self, values: Sequence[Array] | Sequence[Complex], share: Array, allowed: Array
    ) -> Array:
        """Return how far off the sum of the terms may be.

        Raises
        ------
        CoarseError
            If that, times a share, is more than allowed.
        """
        total = np.zeros(np.shape(values[0]))
        worst = 0.0
        for family, where in self._slices():
            for axis, error in enumerate(family.grid.missing(values[where])):
                total = total + error
                excess = float((error * share / allowed).max(initial=0.0))
                if not excess <= worst:
                    worst, self._worst = excess, (family, axis)
        if not (total * share <= allowed).all():
            raise CoarseError
        self._worst = None
        return total

    def _check_moments(self) -> None:
        """Raise `CoarseError` unless the untilted moments are those of the steps."""
        for family, where in self._slices():
            laws = [law for law, _ in self._terms[where]]
            if len({_kind(law) for law in laws}) > 1 or not laws[0].is_spread:
                raise CoarseError
            values = np.asarray([_moments(law) for law in laws])
            grid = family.grid
            for index in family.probes():
                one = Grid(grid.places[index : index + 1], np.ones(1), grid.degrees)
                true = _moments(family.member(index))
                if not (np.abs(one.weights @ values - true) <= ACCURATE * np.abs(true)).all():
                    self._worst = family, int(np.argmin(grid.degrees))
                    raise CoarseError

    @cached_property
    def loss_bounds(self) -> tuple[float, float]:
        """About the essential range of the finite total loss, not less than it."""
        if not self._families:
            return super().loss_bounds
        low, high = (
            float(sum(weight * law.loss_bounds[side] for law, weight in self.terms))
            for side in (0, 1)
        )
        for family, where in self._slices():
            laws = [law for law, _ in self._terms[where]]
            for side in (0, 1):
                ends = np.asarray([law.loss_bounds[side] for law in laws])
                if not np.isfinite(ends).all():
                    low, high = (-math.inf, high) if side == 0 else (low, math.inf)
                    continue
                room = sum(float(error) for error in family.grid.missing(list(ends)))
                room += _ROOM * float(np.abs(ends).max() * family.counts.sum())
                low, high = (low - room, high) if side == 0 else (low, high + room)
        return low, high

    def require(self, values: Sequence[Array], floor: Array | float, accuracy: float) -> None:
        """Raise `CoarseError` if the terms are too few for `combine` to be so accurate."""
        if self._families:
            size = np.full(np.shape(values[0]), 1e-300)
            for value, (_, weight) in zip(values, self.terms, strict=True):
                size = size + abs(weight) * np.abs(value)
            self._missing(values, np.ones(size.shape), accuracy * np.maximum(size, floor))

    def upper_sum(self, values: Sequence[Array]) -> Array:
        """Return at least Σ nᵢ vᵢ over the steps, taking vᵢ to lie between the nodes around it."""
        if not self._families:
            return super().upper_sum(values)
        total = np.zeros(np.shape(values[0]))
        for value, (_, count) in zip(values, self._others, strict=False):
            total = total + count * value
        for family, where in self._slices():
            total = total + family.grid.upper_sum(values[where])
        return total

    def assure(
        self, tilted: Sequence[Tilted], y: Array, logs: Sequence[Complex], share: Array
    ) -> float:
        """Return how far off the terms may give K(t + iy), where it has a share in a sum.

        Raises
        ------
        CoarseError
            If that is far more than rounding.
        """
        if not self._families:
            return 0.0
        nodes = [part.nodes for part in tilted]
        starts = [one.mean if one.origin is None else one.origin for one in nodes]
        exponents = [
            (part.tilt + 1j * y) * start + part.excess + 1j * y * part.shift + log
            for part, start, log in zip(tilted, starts, logs, strict=True)
        ]
        size = math.fsum(abs(w * m) for m, (_, w) in zip(starts, self.terms, strict=True))
        allowed = _ABSOLUTE + _ROUNDING * (abs(tilted[0].tilt) + np.abs(y)) * size
        for exponent, (_, weight) in zip(exponents, self.terms, strict=True):
            allowed = allowed + _SUMMED * abs(weight) * np.abs(exponent)
        # Where more nodes are not worth it, more may be missing.
        missing = self._missing(exponents, share, allowed * (_SLACK if self._is_final else 1.0))
        return float((missing * share).max(initial=0.0))

    def log_transform(self, tilts: Array, epsilon: float) -> Array:
        """Return K(s) − s·ε for several tilts, without cancellation between K and ε."""
        return self._refined(lambda: super(CondensedLaw, self).log_transform(tilts, epsilon))

    def transform_bound(self, tilts: Array, epsilon: float) -> Array:
        """Return about K(s) − s·ε for several tilts, or more where the terms are too few."""
        values = [law.transform(tilts) for law, _ in self.terms]
        total = tilts * self.drift(epsilon) + self._summed(values)
        for family, where in self._slices():
            for error in family.grid.missing(values[where]):
                total = total + error
        return total

    def cgf(self, tilt: float) -> float:
        """Return K(t) = Σ nᵢ Kᵢ(t)."""
        return self._refined(lambda: super(CondensedLaw, self).cgf(tilt))

    def cumulants(self, tilt: float, order: int) -> Array:
        """Return K′(t), …, K^(order)(t): cumulants of the tilted total loss."""
        return self._refined(lambda: super(CondensedLaw, self).cumulants(tilt, order))

    def cgf_line(self, tilt: float, y: Array) -> np.ndarray:
        """Return K(t + iy) − K(t) for an array of y."""
        return self._refined(lambda: super(CondensedLaw, self).cgf_line(tilt, y))

    def _refined(self, ask: Callable[[], Result]) -> Result:
        while True:
            try:
                return ask()
            except CoarseError:
                self.refine()


def _kind(law: LossLaw) -> tuple[bool, ...]:
    """Return what must be alike in steps that stand for one another."""
    low, high = law.loss_bounds
    return law.is_spread, law.has_atoms, math.isfinite(low), math.isfinite(high)


def _moments(law: LossLaw) -> Array:
    """Return E L, Var L, K(−1/2) and P(Q = 0)."""
    base = law.base
    variance = float(base.weight @ base.centred**2)
    half = float(excess(base, np.asarray([-0.5]))[0])
    return np.asarray([base.mean, variance, half, base.mass_at_infinity])
