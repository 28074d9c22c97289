"""Privacy filters and odometers that are proved under full adaptivity, with resumable state.

A filter is told a bound on each step before the step is run, and refuses the step that would
exceed the budget fixed at the start.  Bounds may depend on all outputs so far.

Numbers are exact. A commit writes the charged state to a neighbour, flushes it to the disk and
renames it over the file; only then does it return.  A crash before that leaves the step unreleased,
a crash after it leaves it charged: it may be charged in vain, never released in vain.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Self

from symdp.arguments import a_path, checked_count, listed
from symdp.decimal_text import given, rounded
from symdp.durable import Kept, locked
from symdp.errors import InputError, at
from symdp.exact_number import exact_number
from symdp.individual.result import check_delta

CONDITIONS = (
    "proved for every adaptive choice of steps, if each step's bound is known before the step is "
    "run and holds whatever the outputs so far, and the budget was fixed before the first step"
)
FILTER = Kept("symdp-filter", 1, "the filter's state", "make one with 'symdp filter new'")
_ORDERS = "orders: give a number above 1, or a list of them"
_RULE = {True: "above 0", False: "0 or more"}


def replace_state(path: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Put a filter's state in the place of the one before, which the file must still hold."""
    with locked(path):
        stored = FILTER.read(path) if path.exists() else before
        if any(stored.get(name) != value for name, value in before.items()):
            raise InputError(
                f"{path}: another writer has committed steps meanwhile, or it is another filter's; "
                "load the filter again"
            )
        FILTER.write(path, after)


def read(text: str) -> Fraction:
    """Return the exact number of a state file; earlier versions wrote doubles in base 16."""
    if "0x" in text:
        return Fraction(float.fromhex(text))
    return exact_number(text)


def root_up(value: Fraction) -> float:
    """Return a double that is no smaller than the square root, and next to it."""
    guess = math.sqrt(float(value))
    while Fraction(guess) ** 2 < value:
        guess = math.nextafter(guess, math.inf)
    while guess > 0 and Fraction(math.nextafter(guess, 0.0)) ** 2 >= value:
        guess = math.nextafter(guess, 0.0)
    return guess


def double_up(value: Fraction) -> float:
    """Return the smallest double that is no smaller."""
    double = float(value)
    if Fraction(double) >= value:
        return double
    return math.nextafter(double, math.inf)


def largest_that_fits(guess: float, fits: Callable[[Fraction], bool]) -> float:
    """Return the largest double near a guess whose decimal, as it prints, still fits; 0 if none."""
    value = math.nextafter(math.nextafter(guess, math.inf), math.inf)
    while value > 0.0 and not fits(exactly(value, "the bound")):
        value = math.nextafter(value, 0.0)
    return value


def exactly(value: object, name: str, positive: bool = False) -> Fraction:
    """Return a number ≥ 0 (or > 0) exactly, or refuse it by name.

    A double means the decimal that it prints, text a number or a ratio, as everywhere.
    """
    if isinstance(value, Fraction):
        exact = value
    elif isinstance(value, str):
        with at(name):
            exact = exact_number(value)
    else:
        exact = exact_number(repr(number(value, name, positive)))
    if exact < 0 or (positive and exact == 0):
        raise InputError(f"{name} = {value!r}: it must be {_RULE[positive]}")
    return exact


def number(value: object, name: str, positive: bool = False) -> float:
    """Return a finite number ≥ 0 (or > 0) as a double, or refuse it by name."""
    if isinstance(value, str):
        return float(exactly(value, name, positive))
    try:
        double = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: it must be a number") from None
    if (
        isinstance(value, bool)
        or not math.isfinite(double)
        or double < 0
        or (positive and double == 0)
    ):
        raise InputError(f"{name} = {value!r}: it must be a finite number, {_RULE[positive]}")
    return double


@dataclass(frozen=True)
class Decision:
    """What a filter says of a step: whether it fits, and what would be left."""

    allowed: bool  # whether the step may be run
    step: int  # the number that it would have, from 1
    left: float  # the largest bound that would still fit after it, or before it if it is refused

    def __bool__(self) -> bool:
        return self.allowed


class Stateful(ABC):
    """What commits steps in order, and may keep its state in a file."""

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else a_path(path, "the filter's file")
        self.n = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n} steps committed>"

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values."""

    def save(self, path: str | Path | None = None) -> None:
        """Write the state, complete or not at all; another filter's is never overwritten."""
        target = self.path if path is None else Path(path)
        if target is None:
            raise InputError("this filter has no file; give save a path")
        replace_state(target, self.to_json(), self.to_json())

    def _check_order(self, step: int | None) -> None:
        if step is not None and step != self.n + 1:
            raise InputError(
                f"step {step}: the next step is {self.n + 1}; steps are committed once each, "
                "in order"
            )


class Filter(Stateful):
    """What all filters share: steps in order, exact sums, and a state that is written first.

    `ask` changes nothing.  `commit` charges a step and writes the state; when it has returned, the
    step may be released.  A refused step raises and changes nothing.
    """

    type_name: ClassVar[str]

    def __init__(self, path: str | Path | None) -> None:
        super().__init__(path)
        self.runs: list[list[Any]] = []  # the journal: [exact bound, how often]

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # two that charge one journal would both count wrongly

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """What was fixed at the start, as JSON values that read back exactly."""

    @abstractmethod
    def _checked_bound(self, bound: Any) -> Any:
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
    def _privacy_so_far(self) -> tuple[str, dict[str, Any]]:
        """Return of what privacy the released outputs are, and the numbers of the status."""

    def status(self) -> dict[str, Any]:
        """Return the state in words and numbers, with what is proved."""
        proved, numbers = self._privacy_so_far()
        return {
            "filter": self.type_name,
            "proved": f"the released outputs are {proved}",
            "kind": "bound",
            "conditions": CONDITIONS,
            **numbers,
            "left": self.left(),
            "steps": self.n,
        }

    def _text(self, bound: Any) -> Any:
        return str(bound)

    def _bound_of(self, text: Any) -> Any:
        return read(text)

    def ask(self, bound: Any, n: int = 1) -> Decision:
        """Return whether `n` steps of this bound fit; nothing changes."""
        fits = self._fits(self._checked_bound(bound), checked_count(n))
        return Decision(fits, self.n + 1, self.left())

    def commit(self, bound: Any, step: int | None = None, n: int = 1) -> Decision:
        """Charge a step, write the state, and return; then the step may be released.

        Parameters
        ----------
        bound
            The step's bound: μ, or ρ. A double means the decimal that it prints; "1/10" is exact.
        step
            The number that the step is expected to have; a repeated or skipped one is refused.
        n
            How many such steps are charged at once; all of them or none.

        Raises
        ------
        InputError
            If the step does not fit or the state cannot be written; then nothing has changed.
        """
        checked = self._checked_bound(bound)
        many = checked_count(n)
        self._check_order(step)
        if not self._fits(checked, many):
            what = "step" if many == 1 else f"{many} steps from step"
            raise InputError(
                f"{what} {self.n + 1} of bound {bound!r} would exceed the budget: at most "
                f"{given(self.left())} is left; do not release it"
            )
        if self.path is None:
            self._apply(checked, many)
        else:
            before = self.to_json()
            attributes = copy.deepcopy(vars(self))
            saved = False
            self._apply(checked, many)
            try:
                replace_state(self.path, before, self.to_json())
                saved = True
            finally:
                if not saved:
                    vars(self).update(attributes)
        return Decision(True, self.n, self.left())

    def _apply(self, bound: Any, count: int) -> None:
        self._charge(bound, count)
        self.n += count
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
            "steps": self.n,
            "runs": [list(run) for run in self.runs],
        }

    def _replay(self, state: dict[str, Any], where: str) -> None:
        """Charge again every step of a journal, so that no sum is taken on trust."""
        for text, many in state.get("runs", []):
            if not isinstance(many, int) or many < 1:
                raise InputError(f"{where}: the journal of steps is damaged")
            self._charge(self._bound_of(text), many)
            self.n += many
        self.runs = [list(run) for run in state.get("runs", [])]
        if self.n != state.get("steps"):
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
    >>> GaussianFilter(budget=1).commit("1/10", n=100).left
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
        return {"budget": str(self._exact), **names}

    def _checked_bound(self, bound: Any) -> Fraction:
        return exactly(bound, "mu")

    def _fits(self, bound: Fraction, count: int = 1) -> bool:
        return self._sum + count * bound**2 <= self._exact**2

    def _charge(self, bound: Fraction, count: int = 1) -> None:
        self._sum += count * bound**2

    def left(self) -> float:
        """Return the largest μ that still fits."""
        unspent = self._exact**2 - self._sum
        if unspent > 0:
            return largest_that_fits(root_up(unspent), self._fits)
        return 0.0

    def epsilon(self, delta: float) -> float:
        """Return ε(δ) of the whole budget B: what is proved, whatever part of it was spent."""
        return gaussian_epsilon(self.budget, delta)

    def _privacy_so_far(self) -> tuple[str, dict[str, Any]]:
        both = "" if self._target is None else f", and ({', '.join(self._target)})-DP"
        return f"{rounded(self.budget, 12, 'up')}-GDP in whole{both}", {
            "unit": "mu of Gaussian differential privacy: sensitivity over sigma of a Gaussian",
            "budget": self.budget,
            "spent_so_far": root_up(self._sum),
            "spent_is": "no guarantee: √Σμ² so far, of the budget fixed at the start",
        }


def exact_budget(
    budget: float | str | Fraction | None, epsilon: float | str | None, delta: float | str | None
) -> Fraction:
    """Return B as given, exactly, or the largest B with G_B(ε) ≤ δ, rounded down."""
    if budget is not None:
        if epsilon is not None or delta is not None:
            raise InputError("give budget, or epsilon and delta, not both")
        return exactly(budget, "budget", positive=True)
    if epsilon is None or delta is None:
        raise InputError("give budget, or epsilon and delta")
    from symdp.questions.tradeoff import gaussian_mu

    log_delta = check_delta(delta)
    return Fraction(gaussian_mu(number(epsilon, "epsilon"), log_delta) * (1.0 - 1e-12))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return ε(δ) of μ-GDP, rounded up."""
    import numpy as np

    from symdp.individual.gaussian import epsilon_of

    return float(epsilon_of(np.asarray([mu]), check_delta(delta))[0]) * (1.0 + 1e-11)


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
        entries = listed(increments, "increments: give a list of numbers above 0")
        self._exact_increments = [exactly(x, "increment", positive=True) for x in entries]
        if not self._exact_increments:
            raise InputError("increments: give at least one")
        self.increments = [float(x) for x in self._exact_increments]
        self.round = 0
        self._sum = Fraction(0)
        self.budget = root_up(sum((x**2 for x in self._exact_increments), Fraction(0)))

    def _parameters(self) -> dict[str, Any]:
        return {"increments": [str(x) for x in self._exact_increments]}

    def _room(self, bound: Fraction, count: int) -> tuple[int, Fraction] | None:
        """Return the round that so many steps end in, and what is spent of it."""
        square = bound**2
        left = count
        round_index = self.round
        spent = self._sum
        while left:
            room = self._exact_increments[round_index] ** 2 - spent
            taken = left if square == 0 else min(left, room // square)
            spent += taken * square
            left -= taken
            if left:
                later = range(round_index + 1, len(self._exact_increments))
                fitting = (m for m in later if square <= self._exact_increments[m] ** 2)
                round_index = next(fitting, -1)
                spent = Fraction(0)
                if round_index < 0:
                    return None
        return round_index, spent

    def _fits(self, bound: Fraction, count: int = 1) -> bool:
        return self._room(bound, count) is not None

    def _charge(self, bound: Fraction, count: int = 1) -> None:
        room = self._room(bound, count)
        if room is None:
            raise InputError("the journal exceeds the odometer's increments")
        self.round, self._sum = room

    def left(self) -> float:
        """Return the largest μ that still fits."""
        unspent = self._exact_increments[self.round] ** 2 - self._sum
        later = max(self._exact_increments[self.round + 1 :], default=Fraction(0))
        root = max(root_up(unspent) if unspent > 0 else 0.0, float(later))
        if root > 0.0:
            return largest_that_fits(root, self._fits)
        return 0.0

    @property
    def bound(self) -> float:
        """The μ that is proved for all released outputs: every round begun counts in full."""
        begun = self._exact_increments[: self.round + 1]
        return root_up(sum((x**2 for x in begun), Fraction(0)))

    def epsilon(self, delta: float) -> float:
        """Return ε(δ) of the bound at this time."""
        return gaussian_epsilon(self.bound, delta)

    def _privacy_so_far(self) -> tuple[str, dict[str, Any]]:
        numbers = {"bound": self.bound, "round": self.round + 1, "increments": self.increments}
        return f"{rounded(self.bound, 12, 'up')}-GDP", numbers


def _budget_at(order: float, epsilon: float, delta: float) -> float:
    """Return the largest R such that (α, R)-RDP gives (ε, δ) [IND C.3], rounded down.

    R = ε − log(1/δ)/(α − 1) − log(1 − 1/α) + log(α)/(α − 1); negative where α is too small.
    """
    log_delta = check_delta(delta)
    terms = (
        epsilon,
        log_delta / (order - 1.0),
        -math.log1p(-1.0 / order),
        math.log(order) / (order - 1.0),
    )
    return math.fsum(terms) - 1e-14 * math.fsum(abs(term) for term in terms)


class RenyiFilter(Filter):
    """Steps of Rényi divergence ρ_j(α) may go on while Σ ρ_j ≤ R at some order [IND App. A].

    With one order the whole is (α, R)-RDP and so (ε, δ).  With several the filter goes on while
    some order has budget left: by Markov's inequality and a union that is proved only with a δ for
    each order, so that each budget R_α is converted at δ/m, m the number of orders.  Without the
    split it is not proved, and is not offered.

    Parameters
    ----------
    orders
        α > 1, a number or several, fixed in advance.
    epsilon, delta
        The guarantee.
    path
        Where the state is kept.

    Examples
    --------
    >>> filter = RenyiFilter(16.0, epsilon=2.0, delta=1e-5)
    >>> round(filter.budgets[0], 6), filter.commit([1.0]).allowed, bool(filter.ask([0.6]))
    (1.481849, True, False)
    """

    type_name = "rdp"

    def __init__(
        self,
        orders: float | str | Sequence[float | str],
        *,
        epsilon: float | str,
        delta: float | str,
        path: str | Path | None = None,
    ) -> None:
        super().__init__(path)
        is_single = isinstance(orders, str | float | int)
        wanted_orders = [orders] if is_single else listed(orders, _ORDERS)
        self.orders = [number(order, "order") for order in wanted_orders]
        if not self.orders or any(order <= 1.0 for order in self.orders):
            raise InputError(f"orders {wanted_orders!r}: numbers above 1 are needed, at least one")
        if len(set(self.orders)) != len(self.orders):
            raise InputError(f"orders {wanted_orders!r}: every order once")
        self.total_epsilon = number(epsilon, "epsilon")
        self.delta = number(delta, "delta")
        check_delta(delta)
        share = self.delta / len(self.orders)
        self.budgets = [_budget_at(order, self.total_epsilon, share) for order in self.orders]
        if max(self.budgets) <= 0.0:
            raise InputError(
                f"no order leaves any budget for epsilon {epsilon!r} at delta {delta!r}; take "
                "larger orders"
            )
        self._sums = [Fraction(0)] * len(self.orders)

    def _parameters(self) -> dict[str, Any]:
        return {
            "orders": [x.hex() for x in self.orders],
            "epsilon": self.total_epsilon.hex(),
            "delta": self.delta.hex(),
        }

    def _checked_bound(self, bound: Any) -> tuple[Fraction, ...]:
        listed = isinstance(bound, Sequence) and not isinstance(bound, str)
        values = list(bound) if listed else [bound]
        if len(values) != len(self.orders):
            raise InputError(f"rho: {len(values)} values for {len(self.orders)} orders")
        return tuple(exactly(value, "rho") for value in values)

    def _fits(self, bound: tuple[Fraction, ...], count: int = 1) -> bool:
        triples = zip(self._sums, bound, self.budgets, strict=True)
        return any(s + count * x <= Fraction(most) for s, x, most in triples if most > 0)

    def _charge(self, bound: tuple[Fraction, ...], count: int = 1) -> None:
        self._sums = [s + count * x for s, x in zip(self._sums, bound, strict=True)]

    def _text(self, bound: tuple[Fraction, ...]) -> Any:
        return [str(value) for value in bound]

    def _bound_of(self, text: Any) -> tuple[Fraction, ...]:
        return tuple(read(value) for value in text)

    def left(self) -> float:
        """Return the largest ρ that still fits at some order."""
        unspent = max(Fraction(b) - s for b, s in zip(self.budgets, self._sums, strict=True))
        if unspent > 0:
            return largest_that_fits(float(unspent), lambda x: x <= unspent)
        return 0.0

    def _privacy_so_far(self) -> tuple[str, dict[str, Any]]:
        split = "" if len(self.orders) == 1 else f", δ split over {len(self.orders)} orders"
        both = f"({given(self.total_epsilon)}, {given(self.delta)})"
        return f"{both}-DP in whole{split}", {
            "unit": "Rényi divergence at each order, in nats",
            "orders": self.orders,
            "budgets": self.budgets,
            "spent_so_far": [float(s) for s in self._sums],
        }
