"""Privacy filters and odometers that are proved under full adaptivity, with resumable state.

A filter is told a bound on each step before the step is run, and refuses the step that would
exceed the budget fixed at the start.  Bounds may depend on all outputs so far.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Self

from symdp.arguments import a_path, checked_count
from symdp.decimal_text import given, rounded
from symdp.errors import InputError
from symdp.individual.state import (
    double_up,
    exactly,
    largest_that_fits,
    number,
    read,
    replace_state,
    root_up,
    written,
)

CONDITIONS = (
    "proved for every adaptive choice of steps, if each step's bound is known before the step is "
    "run and holds whatever the outputs so far, and the budget was fixed before the first step"
)


@dataclass(frozen=True)
class Decision:
    """What a filter says of a step: whether it fits, and what would be left.

    Attributes
    ----------
    allowed
        Whether the step may be run.
    step
        The number that the step would have, from 1.
    left
        The largest bound that would still fit after it (before it, where it is refused).
    """

    allowed: bool
    step: int
    left: float

    def __bool__(self) -> bool:
        return self.allowed


class Filter(ABC):
    """What all filters share: steps in order, exact sums, and a state that is written first.

    `ask` changes nothing.  `commit` charges a step and writes the state; when it has returned, the
    step may be released.  A refused step raises and changes nothing.
    """

    type_name: ClassVar[str]

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else a_path(path, "the filter's file")
        self.count = 0
        self.runs: list[list[Any]] = []  # the journal: [exact bound, how often]

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # two that charge one journal would both count wrongly

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """What was fixed at the start, as JSON values that read back exactly."""

    @abstractmethod
    def _checked(self, bound: Any) -> Any:
        """Return a step's bound, or refuse what is none."""

    @abstractmethod
    def _fits(self, bound: Any, count: int = 1) -> bool:
        """Return whether so many steps may still be run."""

    @abstractmethod
    def _charge(self, bound: Any, count: int = 1) -> None:
        """Add so many steps to what is spent."""

    @abstractmethod
    def left(self) -> float:
        """Return the largest bound of a step that still fits."""

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """Return the state in words and numbers, with what is proved."""

    def _text(self, bound: Any) -> Any:
        return written(bound)

    def _bound(self, text: Any) -> Any:
        return read(text)

    def ask(self, bound: Any, count: int = 1) -> Decision:
        """Return whether `count` steps of this bound fit; nothing changes."""
        fits = self._fits(self._checked(bound), checked_count(count))
        return Decision(fits, self.count + 1, self.left())

    def commit(self, bound: Any, step: int | None = None, count: int = 1) -> Decision:
        """Charge a step, write the state, and return; then the step may be released.

        Parameters
        ----------
        bound
            The step's bound: μ, or ρ. A double means the decimal that it prints; "1/10" is exact.
        step
            The number that the step is expected to have; a repeated or skipped one is refused.
        count
            How many such steps are charged at once; all of them or none.

        Raises
        ------
        InputError
            If the step does not fit, is out of order, or the state cannot be written; then
            nothing has changed.
        """
        checked, many = self._checked(bound), checked_count(count)
        if step is not None and step != self.count + 1:
            raise InputError(
                f"step {step}: the next step is {self.count + 1}; steps are committed once each, "
                "in order"
            )
        if not self._fits(checked, many):
            what = "step" if many == 1 else f"{many} steps from step"
            raise InputError(
                f"{what} {self.count + 1} of bound {bound!r} would exceed the budget: at most "
                f"{given(self.left())} is left; do not release it"
            )
        if self.path is None:
            self._apply(checked, many)
        else:
            before, spent, saved = self.to_json(), self._spent(), False
            self._apply(checked, many)
            try:
                replace_state(self.path, before, self.to_json())
                saved = True
            finally:
                if not saved:
                    self.count, self.runs = before["steps"], before["runs"]
                    self._restore(spent)
        return Decision(True, self.count, self.left())

    @abstractmethod
    def _spent(self) -> Any: ...

    @abstractmethod
    def _restore(self, spent: Any) -> None: ...

    def _apply(self, bound: Any, count: int) -> None:
        self._charge(bound, count)
        self.count += count
        text = self._text(bound)
        if self.runs and self.runs[-1][0] == text:
            self.runs[-1][1] += count
        else:
            self.runs.append([text, count])

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {
            "filter": self.type_name,
            **self._parameters(),
            "steps": self.count,
            "runs": [list(run) for run in self.runs],
        }

    def save(self, path: str | Path | None = None) -> None:
        """Write the state, complete or not at all; another filter's is never overwritten."""
        target = self.path if path is None else Path(path)
        if target is None:
            raise InputError("this filter has no file; give save a path")
        replace_state(target, self.to_json(), self.to_json())

    def _replay(self, state: dict[str, Any], where: str) -> None:
        """Charge again every step of a journal, so that no sum is taken on trust."""
        for text, many in state.get("runs", []):
            if not isinstance(many, int) or many < 1:
                raise InputError(f"{where}: the journal of steps is damaged")
            self._charge(self._bound(text), many)
            self.count += many
        self.runs = [list(run) for run in state.get("runs", [])]
        if self.count != state.get("steps"):
            raise InputError(f"{where}: the journal does not have the {state.get('steps')} steps")


class GaussianFilter(Filter):
    """Steps that are μ_j-GDP may go on while Σ μ_j² ≤ B²: the whole is B-GDP [IND Thm 3.2].

    Sums are exact: ten steps of "0.1" in square are a budget of "0.1", and nothing is left.

    Parameters
    ----------
    budget
        B > 0, in units of μ.  Left out, the largest B with G_B(ε) ≤ δ.
    epsilon, delta
        The guarantee that B is to give, instead of B.
    path
        Where the state is kept; None for none.

    Examples
    --------
    >>> filter = GaussianFilter(budget=1.0)
    >>> [filter.commit(0.6).allowed, bool(filter.ask(0.9)), bool(filter.ask(0.8))]
    [True, False, True]
    >>> GaussianFilter(budget=1).commit("1/10", count=100).left
    0.0
    >>> round(GaussianFilter(epsilon=2.75, delta=1e-5).budget, 8)
    0.6659424
    """

    type_name = "gdp"

    def __init__(
        self,
        budget: float | str | Fraction | None = None,
        *,
        epsilon: float | str | None = None,
        delta: float | str | None = None,
        path: str | Path | None = None,
    ) -> None:
        super().__init__(path)
        self._exact = exact_budget(budget, epsilon, delta)
        self._target = None if budget is not None else (str(epsilon), str(delta))
        self.budget = double_up(self._exact)
        self._sum = Fraction(0)

    def _parameters(self) -> dict[str, Any]:
        names = dict(zip(("epsilon", "delta"), self._target or (), strict=False))
        return {"budget": written(self._exact), **names}

    def _checked(self, bound: Any) -> Fraction:
        return exactly(bound, "mu")

    def _fits(self, bound: Fraction, count: int = 1) -> bool:
        return self._sum + count * bound**2 <= self._exact**2

    def _charge(self, bound: Fraction, count: int = 1) -> None:
        self._sum += count * bound**2

    def _spent(self) -> Fraction:
        return self._sum

    def _restore(self, spent: Fraction) -> None:
        self._sum = spent

    def left(self) -> float:
        """Return the largest μ that still fits."""
        rest = self._exact**2 - self._sum
        return largest_that_fits(root_up(rest), self._fits) if rest > 0 else 0.0

    def epsilon(self, delta: float) -> float:
        """Return ε(δ) of the whole budget B: what is proved, whatever part of it was spent."""
        return gaussian_epsilon(self.budget, delta)

    def status(self) -> dict[str, Any]:
        """Return budget, what is spent of it, and the proved guarantee."""
        both = "" if self._target is None else f", and ({', '.join(self._target)})-DP"
        proved = f"the released outputs are {rounded(self.budget, 12, 'up')}-GDP in whole{both}"
        return {
            "filter": self.type_name,
            "proved": proved,
            "kind": "bound",
            "conditions": CONDITIONS,
            "unit": "mu of Gaussian differential privacy: sensitivity over sigma of a Gaussian",
            "budget": self.budget,
            "spent_so_far": root_up(self._sum),
            "spent_is": "no guarantee: √Σμ² so far, of the budget fixed at the start",
            "left": self.left(),
            "steps": self.count,
        }


def exact_budget(
    budget: float | str | Fraction | None, epsilon: float | str | None, delta: float | str | None
) -> Fraction:
    """Return B as given, exactly, or the largest B with G_B(ε) ≤ δ, rounded down.

    >>> exact_budget(0.1, None, None)
    Fraction(1, 10)
    """
    if budget is not None:
        if epsilon is not None or delta is not None:
            raise InputError("give budget, or epsilon and delta, not both")
        return exactly(budget, "budget", positive=True)
    if epsilon is None or delta is None:
        raise InputError("give budget, or epsilon and delta")
    from symdp.individual.result import check_delta
    from symdp.questions.tradeoff import gaussian_mu

    log_delta = check_delta(delta)
    return Fraction(gaussian_mu(number(epsilon, "epsilon"), log_delta) * (1.0 - 1e-12))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return ε(δ) of μ-GDP, rounded up.

    Examples
    --------
    >>> round(gaussian_epsilon(0.5, 1e-5), 6)
    1.993091
    """
    import numpy as np

    from symdp.individual.gaussian import epsilon_of
    from symdp.individual.result import check_delta

    return float(epsilon_of(np.asarray([mu]), check_delta(delta))[0]) * (1.0 + 1e-11)
