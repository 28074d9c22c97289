"""Many steps of one formula as one loss: the sum of independent losses, its K the sum of theirs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from symdp.law.loss import LossLaw
from symdp.law.many_steps_tilted import StackTilted, SumNodes, excess_of_rows
from symdp.law.panels import ORDER
from symdp.law.shared_nodes import StepRows, Window
from symdp.law.step import Array
from symdp.law.total import SumLaw, square_length

_MOST_TILTED = 4  # tilted laws that are kept, with two arrays of all nodes each
_FEW_STEPS = 48  # that stand for all where a bound is wanted


class Stack:
    """The privacy loss of many steps of one formula in one direction, added up.

    Parameters
    ----------
    table
        Their nodes.
    direction
        "remove" or "add".
    """

    uncertain_mass = 0.0
    mass_at_infinity = 0.0
    is_spread = True

    def __init__(self, table: StepRows, direction: str) -> None:
        self._table, self._reverse = table, direction == "add"
        self._direction = direction
        low, high = table.domain
        self.domain = (-1.0 - high, -1.0 - low) if self._reverse else (low, high)
        self.has_atoms = table.has_atoms
        low_sum, high_sum = (float(table.counts @ table.loss_bounds[:, k]) for k in (0, 1))
        self.loss_bounds = (-high_sum, -low_sum) if self._reverse else (low_sum, high_sum)
        self.square_length = float(table.counts @ np.diff(table.loss_bounds)[:, 0] ** 2)
        self._tilted: dict[float, StackTilted] = {}

    @property
    def counts(self) -> Array:
        """How often each step is taken."""
        return self._table.counts

    @cached_property
    def base(self) -> SumNodes:
        """What the nodes around tilts −1 and 0 say of the sum."""
        return self.tilted(0.0).nodes

    @cached_property
    def extended_mean(self) -> Fraction:
        """Σ nᵢ E Lᵢ, to 18 digits of Σ nᵢ E|Lᵢ|."""
        rows = self.tilted(0.0).rows
        total = Fraction(0)
        for k, (count, mean) in enumerate(zip(self.counts.tolist(), rows.exact_mean, strict=True)):
            first = float(mean)
            if math.isnan(first):
                total += Fraction(count) * self.member(k).extended_mean
            else:
                rest = float(mean - np.longdouble(first))
                total += Fraction(count) * (Fraction(first) + Fraction(rest))
        return total

    @cached_property
    def precise_mean(self) -> Fraction:
        """Σ nᵢ E Lᵢ beyond that, one step after the other."""
        counts = enumerate(self.counts.tolist())
        return sum((Fraction(n) * self.member(k).precise_mean for k, n in counts), Fraction(0))

    def thinned(self) -> Stack:
        """Return fewer steps whose characteristic function is hardly smaller far out.

        In the order of their variances, some stand for those between them and the next.
        """
        if self.counts.size < 2 * _FEW_STEPS:
            return self
        order = np.argsort(self.tilted(0.0).variances)
        place = np.arange(_FEW_STEPS) * order.size // _FEW_STEPS
        counts = np.add.reduceat(self.counts[order], place)
        return Stack(self._table.of_steps(order[place], counts), self._direction)

    def some(self, most: int) -> Stack:
        """Return at most so many of the steps, with their own counts, of all sizes of variance."""
        order = np.argsort(self.tilted(0.0).variances)
        place = order[np.arange(min(most, order.size)) * order.size // min(most, order.size)]
        return Stack(self._table.of_steps(place, self.counts[place]), self._direction)

    def member(self, index: int) -> LossLaw:
        """Return the law of one step."""
        law = self._table.member(index)
        return law.reversed() if self._reverse else law

    @cached_property
    def atom_gap(self) -> float:
        """The smallest distance of two atoms of one step, inf where there are none."""
        rows = self.tilted(0.0).rows
        atoms = np.sort(rows.loss[:, ORDER * (rows.joined.size + 1) :], axis=1)
        gaps = np.diff(atoms, axis=1)
        return float(gaps[gaps > 0].min(initial=math.inf))

    def window(self, tilt: float) -> tuple[float, float]:
        """Return between which tilts the nodes around a tilt serve at no further cost."""
        low, high = self._table.edges(self._window(tilt))
        return (-1.0 - high, -1.0 - low) if self._reverse else (low, high)

    def _window(self, tilt: float) -> Window:
        return self._table.window(-1.0 - tilt if self._reverse else tilt)

    def transform(self, tilts: Array) -> Array:
        """Return K(t) − t·E L for several tilts."""
        tilts = np.asarray(tilts, dtype=np.float64)
        found = []
        for tilt in tilts.tolist():
            rows = self._table.at(self._window(tilt), 0.0, self._reverse)
            found.append(float(self.counts @ excess_of_rows(rows, tilt)))
        return np.asarray(found)

    def rough_cumulants(self, tilts: Array) -> tuple[Array, Array, Array]:
        """Return K(t) − t E L, K′(t) − E L and K″(t) for several tilts."""
        found = [self.tilted(tilt) for tilt in tilts.tolist()]
        excess, shift, variance = (
            np.asarray([getattr(x, name) for x in found])
            for name in ("excess", "shift", "variance")
        )
        return excess, shift, variance

    def tilted(self, tilt: float, frequency: float = 0.0) -> StackTilted:
        """Return the steps tilted by `tilt`, from nodes that resolve |y| ≤ frequency.

        Raises
        ------
        AccuracyError
            If no nodes serve a tilt so far out.
        """
        rows = self._table.at(self._window(tilt), frequency, self._reverse)
        found = self._tilted.get(tilt)
        if found is None or found.rows is not rows:
            if len(self._tilted) >= _MOST_TILTED:
                self._tilted.clear()
            found = self._tilted[tilt] = StackTilted.at(rows, self.counts, tilt)
        return found


class StackedLaw(SumLaw):
    """The total privacy loss of very many distinct steps, those of one formula taken together.

    Parameters
    ----------
    stacks
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
        stacks: Sequence[Stack],
        others: Sequence[tuple[LossLaw, int]],
        parts: Callable[[], Sequence[tuple[LossLaw, int]]],
        direction: str = "",
    ) -> None:
        self._terms: list[tuple[Any, int]] = [*((stack, 1) for stack in stacks), *others]
        self._stacks, self._others, self._all = tuple(stacks), tuple(others), parts
        self.kept, self.direction = {}, direction
        self.count = sum(n for _, n in others) + int(sum(s.counts.sum() for s in stacks))

    @property
    def terms(self) -> Sequence[tuple[Any, int]]:
        """The stacks, and the laws of the other steps with their counts."""
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
        return square_length(self._others) + sum(stack.square_length for stack in self._stacks)

    def some(self, most: int) -> StackedLaw:
        """Return the law of at most so many distinct steps, whose |φ| bounds that of all."""
        stacks = [stack.some(most) for stack in self._stacks]
        return StackedLaw(stacks, self._others, self._all)

    def epsilon_of_top(self, log_delta: float) -> float | None:
        """Return None: to begin a search there is not worth the law of every step."""
        return None

    @cached_property
    def thinned(self) -> SumLaw:
        """A law of fewer steps whose characteristic function is hardly smaller far out."""
        return StackedLaw([stack.thinned() for stack in self._stacks], self._others, self._all)

    @cached_property
    def apart(self) -> tuple[SumLaw, SumLaw]:
        """Their steps with losses of single values, and the others, stacks among them."""
        sides = [[x for x in self._others if x[0].is_spread is spread] for spread in (False, True)]
        own = StackedLaw(self._stacks, sides[1], lambda: [x for x in self.parts if x[0].is_spread])
        return SumLaw(sides[0]), own
