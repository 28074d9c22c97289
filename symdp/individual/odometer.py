"""The odometer: Gaussian filters in a chain, with a proved bound at every time [IND C.5]."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

from symdp.decimal_text import rounded
from symdp.errors import InputError
from symdp.individual.filters import CONDITIONS, Filter, GaussianFilter, gaussian_epsilon
from symdp.individual.state import exact_square, number, root_up


class Odometer(GaussianFilter):
    """Gaussian filters in a chain of increments: a valid bound at the end of each [IND C.5].

    A step that would exceed the present increment Δ_m begins the next one; what is left of Δ_m is
    lost.  After round m the outputs are √(Δ₁² + … + Δ_m²)-GDP.

    Parameters
    ----------
    increments
        Δ₁, Δ₂, … > 0, fixed at the start.
    path
        Where the state is kept.

    Examples
    --------
    >>> odometer = Odometer([1.0, 1.0, 2.0])
    >>> for mu in (0.8, 0.5, 0.9):
    ...     _ = odometer.commit(mu)
    >>> odometer.round, round(odometer.bound, 9)
    (1, 1.414213562)
    """

    type_name = "odometer"

    def __init__(self, increments: Any, *, path: str | Path | None = None) -> None:
        Filter.__init__(self, path)
        self.increments = [number(x, "increment", positive=True) for x in increments]
        if not self.increments:
            raise InputError("increments: give at least one")
        self.round = 0
        self._sum = Fraction(0)
        whole = sum((exact_square(x) for x in self.increments), Fraction(0))
        self.budget = root_up(whole)

    def _parameters(self) -> dict[str, Any]:
        return {"increments": [x.hex() for x in self.increments]}

    def _room(self, bound: float) -> int | None:
        """Return the round that a step would fall in."""
        square = exact_square(bound)
        if self._sum + square <= exact_square(self.increments[self.round]):
            return self.round
        for later in range(self.round + 1, len(self.increments)):
            if square <= exact_square(self.increments[later]):
                return later
        return None

    def _fits(self, bound: float) -> bool:
        return self._room(bound) is not None

    def _charge(self, bound: float) -> None:
        place = self._room(bound)
        if place is None:
            raise InputError("the journal exceeds the odometer's increments")
        if place != self.round:
            self.round, self._sum = place, Fraction(0)
        self._sum += exact_square(bound)

    def _spent(self) -> Any:
        return self.round, self._sum

    def _restore(self, spent: Any) -> None:
        self.round, self._sum = spent

    def left(self) -> float:
        """Return the largest μ that still fits."""
        rest = exact_square(self.increments[self.round]) - self._sum
        root = root_up(rest) if rest > 0 else 0.0
        if exact_square(root) > rest:
            root = math.nextafter(root, 0.0)
        return max([root, *self.increments[self.round + 1 :]])

    @property
    def bound(self) -> float:
        """The μ that is proved for all released outputs: every round begun counts in full."""
        begun = self.increments[: self.round + 1]
        return root_up(sum((exact_square(x) for x in begun), Fraction(0)))

    def epsilon(self, delta: float) -> float:
        """Return ε(δ) of the bound at this time."""
        return gaussian_epsilon(self.bound, delta)

    def status(self) -> dict[str, Any]:
        """Return the rounds and the proved bound."""
        return {
            "filter": self.type_name,
            "proved": f"the released outputs are {rounded(self.bound, 12, 'up')}-GDP",
            "kind": "bound",
            "conditions": CONDITIONS,
            "bound": self.bound,
            "round": self.round + 1,
            "increments": self.increments,
            "left": self.left(),
            "steps": self.count,
        }
