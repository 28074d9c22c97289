"""Many steps of one formula as one loss: its K, moments and log φ are sums over their parameters.

The sum of independent losses is a loss, and what adds up over the steps is an integral over their
parameters: a few nodes of its Gauss rule stand for all steps. More nodes are taken until the
last coefficients of what is summed say that it is known to rounding, and all steps where none do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from symdp.law.characteristic_function import log_characteristic, log_characteristic_grid
from symdp.law.decay import DERIVATIVES, log_bound_near, log_decay
from symdp.law.elementary import Complex
from symdp.law.loss import LossLaw
from symdp.law.parameter_rule import FEW, Rule, StepFamily
from symdp.law.step import Array
from symdp.law.tilted import Tilted, tilted_cumulants
from symdp.law.total import SumLaw, square_length

_CLOSE = 1e-7  # share of the last coefficients, whose square is about what is lacking
_ROUGH = 0.1  # the same where a digit or two will do
_MOST_TILTED = 8  # tilted laws that are kept
_ROUNDED = 4e-16  # relative: of a sum over the nodes
_OUTWARD = 3e-14  # relative: of an end of the range, so that no loss lies beyond


@dataclass(frozen=True)
class SumNodes:
    """What the nodes say of a whole sum of steps."""

    mean: float
    beyond: tuple[float, float]
    error: float


class ManySteps:
    """The privacy loss of many steps of one formula in one direction, added up.

    Parameters
    ----------
    family
        The steps.
    direction
        "remove" or "add".
    close
        The largest share of the last coefficients of what is summed.
    """

    uncertain_mass = 0.0
    mass_at_infinity = 0.0

    def __init__(self, family: StepFamily, direction: str, close: float = _CLOSE) -> None:
        self._family, self._reverse, self._close = family, direction == "add", close
        ends = [self._turned(law) for law in family.ends]
        self.domain = max(law.domain[0] for law in ends), min(law.domain[1] for law in ends)
        self.has_atoms = ends[0].has_atoms
        self.is_spread = ends[0].is_spread
        self.counts = family.counts
        self._laws: dict[int, list[LossLaw]] = {}
        self._tilted: dict[tuple[float, float], ManyTilted] = {}

    def _turned(self, law: LossLaw) -> LossLaw:
        return law.reversed() if self._reverse else law

    def laws(self, level: int) -> list[LossLaw]:
        """Return the laws of a level."""
        if level not in self._laws:
            self._laws[level] = [self._turned(law) for law in self._family.rule(level)[1]]
        return self._laws[level]

    def rule(self, level: int) -> Rule:
        """Return the rule of a level."""
        return self._family.rule(level)[0]

    def total(
        self,
        of: Callable[[LossLaw], Any],
        close: float | None = None,
        first: int = 0,
        is_log: bool = False,
    ) -> tuple[Any, int, float]:
        """Return Σ nᵢ f(Lᵢ), the level that was enough, and the share of its last coefficients.

        Parameters
        ----------
        of
            f: returns numbers of one law.
        close, is_log
            As for `Rule.is_settled`.
        first
            The first level that is tried.
        """
        level = first
        while True:
            rule, values = self.rule(level), np.asarray([of(law) for law in self.laws(level)])
            wanted, share = rule.wanted(values, close or self._close, is_log)
            if wanted <= len(values):
                return rule.total(values), level, share
            level = self._family.level(level + 1, wanted)

    @cached_property
    def rough(self) -> ManySteps:
        """The same to a digit or two, from fewer nodes where a rule stands for the steps."""
        if not self._family.has_rule:
            return self
        found = ManySteps(self._family, "add" if self._reverse else "remove", _ROUGH)
        found._laws = self._laws
        return found

    @cached_property
    def thinned(self) -> ManySteps:
        """The same, or fewer steps whose characteristic function is hardly smaller far out."""
        if self._family.has_rule or self.counts.size < 2 * FEW:
            return self.rough
        variances = [law.tilted(0.0).variance for law in self.laws(0)]
        side = "add" if self._reverse else "remove"
        return ManySteps(self._family.thinned(np.argsort(variances)), side)

    @cached_property
    def loss_bounds(self) -> tuple[float, float]:
        """The range of the sum's loss, or a little more."""
        known = np.asarray([law.loss_bounds for law in self.laws(0)])
        finite = np.isfinite(known).all(axis=0)
        found, *_ = self.total(lambda law: np.where(finite, law.loss_bounds, 0.0))
        size, *_ = self.total(lambda law: np.where(finite, np.abs(law.loss_bounds), 0.0), _ROUGH)
        low, high = (found + _OUTWARD * np.asarray([-1.0, 1.0]) * size).tolist()
        return low if finite[0] else -math.inf, high if finite[1] else math.inf

    @cached_property
    def square_length(self) -> float:
        """Σ nᵢτᵢ², as for every total."""
        if not all(map(math.isfinite, self.loss_bounds)):
            return math.inf
        return float(self.total(lambda law: float(np.diff(law.loss_bounds)[0]) ** 2)[0])

    @cached_property
    def base(self) -> SumNodes:
        """What the nodes around tilts −1 and 0 say of the sum."""
        return self.tilted(0.0).nodes

    @cached_property
    def atom_gap(self) -> float:
        """The smallest distance of two atoms of one step, inf where there are none."""
        return min(law.atom_gap for law in self.laws(0))

    def window(self, tilt: float) -> tuple[float, float]:
        """Return between which tilts the nodes around a tilt serve at no further cost."""
        windows = [law.window(tilt) for law in self.laws(0)]
        return max(low for low, _ in windows), min(high for _, high in windows)

    def transform(self, tilts: Array) -> Array:
        """Return K(t) − t·E L for several tilts."""
        found, *_ = self.total(lambda law: law.transform(tilts))
        return np.asarray(found)

    def rough_cumulants(self, tilts: Array) -> Array:
        """Return K(t) − t E L, K′(t) − E L and K″(t) for several tilts."""
        _, level, _ = self.total(lambda law: np.stack(law.rough_cumulants(tilts)[:2]))
        found = [np.stack(law.rough_cumulants(tilts)) for law in self.laws(level)]
        return np.asarray(self.rule(level).total(np.asarray(found)))

    def tilted(self, tilt: float, frequency: float = 0.0) -> ManyTilted:
        """Return the steps tilted by `tilt`, from nodes that resolve |y| ≤ frequency."""
        key = tilt, frequency
        if key not in self._tilted:
            if len(self._tilted) >= _MOST_TILTED:
                self._tilted.clear()
            still = self.tilted(tilt) if frequency > 0.0 else None
            self._tilted[key] = ManyTilted.of(self, tilt, frequency, still)
        return self._tilted[key]


@dataclass(frozen=True, eq=False)
class ManyTilted:
    """Many steps under P_t: what `Tilted` says of one step, of their sum.

    Attributes
    ----------
    steps, tilt, frequency
        Of what, where, and up to which |y|.
    level
        Of the rule that moments are known by.
    excess, shift, variance
        K(t) − t·E L, E_t L − E L and Var_t L of the sum.
    lacking
        What the rule may lack, relative.
    """

    steps: ManySteps
    tilt: float
    frequency: float
    level: int
    excess: float
    shift: float
    variance: float
    lacking: float

    @classmethod
    def of(
        cls, steps: ManySteps, tilt: float, frequency: float, still: ManyTilted | None
    ) -> ManyTilted:
        """Return the steps under a tilt; moments are those of the same without frequencies."""
        if still is not None:
            return replace(still, frequency=frequency)

        def moments(law: LossLaw) -> list[float]:
            part = law.tilted(tilt)
            return [part.excess, part.shift, part.variance]

        found, level, share = steps.total(moments)
        excess, shift, variance = found.tolist()
        return cls(steps, tilt, frequency, level, excess, shift, variance, share * share)

    @cached_property
    def parts(self) -> list[tuple[Tilted, float]]:
        """The tilted laws that stand for the steps, and how many steps each stands for."""
        laws = self.steps.laws(self.level)
        weights = self.steps.rule(self.level).weights.astype(np.float64).tolist()
        return [
            (x.tilted(self.tilt, self.frequency), n) for x, n in zip(laws, weights, strict=True)
        ]

    def _sum(self, values: Iterable[Any]) -> Any:
        return sum(n * value for value, (_, n) in zip(values, self.parts, strict=True))

    @cached_property
    def nodes(self) -> SumNodes:
        """Sums over the steps that no tilt changes."""
        first, second = (self._sum(x.nodes.beyond[k] for x, _ in self.parts) for k in (0, 1))
        mean = self._sum(x.nodes.mean for x, _ in self.parts)
        return SumNodes(mean, (first, second), self.error)

    @cached_property
    def error(self) -> float:
        """The quadratures' estimate of their relative error, and the rule's."""
        return max(x.error for x, _ in self.parts) + _ROUNDED + self.lacking

    @cached_property
    def widest(self) -> float:
        """The largest standard deviation of a single step."""
        return max(x.widest for x, _ in self.parts)

    @cached_property
    def size(self) -> float:
        """Σ nᵢ (σᵢ + |E_t Lᵢ − μᵢ| + |μᵢ|), of which rounding takes its share."""
        return float(self._sum(x.size for x, _ in self.parts))

    @cached_property
    def imprecise(self) -> float:
        """How many steps have a K that is no sum of growths."""
        return float(self._sum(x.imprecise for x, _ in self.parts))

    @cached_property
    def atomic(self) -> float:
        """Π aᵢ^nᵢ, aᵢ the weight of a step's atoms."""
        return math.exp(self._sum(math.log(max(x.atomic, 1e-300)) for x, _ in self.parts))

    def log_sum(self, of: Callable[[Tilted], Complex]) -> Complex:
        """Return Σ nᵢ log φᵢ from the logarithms of one step."""
        found, *_ = self.steps.total(
            lambda law: of(law.tilted(self.tilt, self.frequency)), first=self.level, is_log=True
        )
        return np.asarray(found)


class ManyStepsLaw(SumLaw):
    """The total privacy loss of very many distinct steps, those of one formula taken together.

    Parameters
    ----------
    families
        Steps of one formula each.
    others
        All other steps.
    parts
        Returns every distinct step's law with its count, for what does not add up over the steps.
    direction
        "remove" or "add", empty for a part of a law.
    """

    def __init__(
        self,
        families: Sequence[ManySteps],
        others: Sequence[tuple[LossLaw, int]],
        parts: Callable[[], Sequence[tuple[LossLaw, int]]],
        direction: str = "",
    ) -> None:
        self._terms: list[tuple[Any, int]] = [*((family, 1) for family in families), *others]
        self._families, self._others, self._all = tuple(families), tuple(others), parts
        self.kept, self.direction = {}, direction
        self.count = sum(n for _, n in others) + int(sum(f.counts.sum() for f in families))

    @property
    def terms(self) -> Sequence[tuple[Any, int]]:
        """The families, and the laws of the other steps with their counts."""
        return self._terms

    @cached_property
    def parts(self) -> tuple[tuple[LossLaw, int], ...]:
        """Every distinct step's law, with its count."""
        return tuple(self._all())

    def singly(self) -> SumLaw:
        """Return the same total with every step by itself."""
        return self._singly

    @cached_property
    def _singly(self) -> SumLaw:
        return SumLaw(self.parts)

    @cached_property
    def square_length(self) -> float:
        """Σ nᵢτᵢ², as for every total."""
        return square_length(self._others) + sum(f.square_length for f in self._families)

    def epsilon_of_top(self, log_delta: float) -> float | None:
        """Return None: to begin a search there is not worth the law of every step."""
        return None

    @cached_property
    def rough(self) -> SumLaw:
        """The same total to a digit or two, from fewer nodes."""
        return ManyStepsLaw([f.rough for f in self._families], self._others, self._all)

    @cached_property
    def thinned(self) -> SumLaw:
        """A law of fewer steps whose characteristic function is hardly smaller far out."""
        return ManyStepsLaw([f.thinned for f in self._families], self._others, self._all)

    @cached_property
    def apart(self) -> tuple[SumLaw, SumLaw]:
        """Their steps with losses of single values, and the others, families among them."""
        sides = [[x for x in self._others if x[0].is_spread is spread] for spread in (False, True)]
        spread = lambda: [x for x in self.parts if x[0].is_spread]  # noqa: E731
        return SumLaw(sides[0]), ManyStepsLaw(self._families, sides[1], spread)

    def tilted_terms(self, tilt: float, frequency: float = 0.0) -> list[tuple[Tilted, float]]:
        """Return single steps' laws tilted by `tilt`, those of families standing for several."""
        found: list[tuple[Tilted, float]] = []
        for x, (_, count) in zip(self.tilted(tilt, frequency), self.terms, strict=True):
            found += x.parts if isinstance(x, ManyTilted) else [(x, float(count))]
        return found


@log_characteristic.register
def _(tilted: ManyTilted, y: Array) -> Complex:  # type: ignore[misc]
    return tilted.log_sum(lambda x: log_characteristic(x, y))


@log_characteristic_grid.register
def _(tilted: ManyTilted, step: float, first: int, last: int) -> Complex:  # type: ignore[misc]
    return tilted.log_sum(lambda x: log_characteristic_grid(x, step, first, last))


@tilted_cumulants.register
def _(tilted: ManyTilted, order: int) -> Array:  # type: ignore[misc]
    found, *_ = tilted.steps.total(lambda law: tilted_cumulants(law.tilted(tilted.tilt), order))
    return np.asarray(found)


@log_decay.register
def _(tilted: ManyTilted, y: Array, most: int = DERIVATIVES) -> Array:  # type: ignore[misc]
    return np.asarray(sum(n * log_decay(x, y, most) for x, n in tilted.parts))


@log_bound_near.register
def _(tilted: ManyTilted, y: Array) -> Array:  # type: ignore[misc]
    return np.asarray(sum(n * log_bound_near(x, y) for x, n in tilted.parts))
