"""The odometer: Gaussian filters in a chain, with a proved bound at every time [IND C.5]."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from symdp.arguments import listed
from symdp.decimal_text import rounded
from symdp.errors import InputError
from symdp.individual.filters import CONDITIONS, Filter, GaussianFilter, gaussian_epsilon
from symdp.individual.state import exactly, largest_that_fits, root_up, written


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
        given = listed(increments, "increments: give a list of numbers above 0")
        self._exact_increments = [exactly(x, "increment", positive=True) for x in given]
        if not self._exact_increments:
            raise InputError("increments: give at least one")
        self.increments = [float(x) for x in self._exact_increments]
        self.round = 0
        self._sum = Fraction(0)
        self.budget = root_up(sum((x**2 for x in self._exact_increments), Fraction(0)))

    def _parameters(self) -> dict[str, Any]:
        return {"increments": [written(x) for x in self._exact_increments]}

    def _room(self, bound: Fraction, count: int) -> tuple[int, Fraction] | None:
        """Return the round that so many steps end in, and what is spent of it."""
        square, left = bound**2, count
        place, spent = self.round, self._sum
        while left:
            room = self._exact_increments[place] ** 2 - spent
            taken = left if square == 0 else min(left, room // square)
            spent, left = spent + taken * square, left - taken
            if left:
                later = range(place + 1, len(self._exact_increments))
                fitting = (m for m in later if square <= self._exact_increments[m] ** 2)
                place, spent = next(fitting, -1), Fraction(0)
                if place < 0:
                    return None
        return place, spent

    def _fits(self, bound: Fraction, count: int = 1) -> bool:
        return self._room(bound, count) is not None

    def _charge(self, bound: Fraction, count: int = 1) -> None:
        found = self._room(bound, count)
        if found is None:
            raise InputError("the journal exceeds the odometer's increments")
        self.round, self._sum = found

    def _spent(self) -> Any:
        return self.round, self._sum

    def _restore(self, spent: Any) -> None:
        self.round, self._sum = spent

    def left(self) -> float:
        """Return the largest μ that still fits."""
        rest = self._exact_increments[self.round] ** 2 - self._sum
        later = max(self._exact_increments[self.round + 1 :], default=Fraction(0))
        root = max(root_up(rest) if rest > 0 else 0.0, float(later))
        return largest_that_fits(root, self._fits) if root > 0.0 else 0.0

    @property
    def bound(self) -> float:
        """The μ that is proved for all released outputs: every round begun counts in full."""
        begun = self._exact_increments[: self.round + 1]
        return root_up(sum((x**2 for x in begun), Fraction(0)))

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
