"""The Rényi filter: one order fixed in advance, or several with δ split over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from symdp.arguments import listed
from symdp.decimal_text import given
from symdp.errors import InputError
from symdp.individual.filters import CONDITIONS, Filter
from symdp.individual.result import check_delta
from symdp.individual.state import exactly, largest_that_fits, number, read, written

_ORDERS = "orders: give a number above 1, or a list of them"


def budget_at(order: float, epsilon: float, delta: float) -> float:
    """Return the largest R such that (α, R)-RDP gives (ε, δ) [IND C.3], rounded down.

    R = ε − log(1/δ)/(α − 1) − log(1 − 1/α) + log(α)/(α − 1); negative where α is too small.

    Examples
    --------
    >>> round(budget_at(21.0, 0.81562999, 1e-5), 6)
    0.441
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

    Raises
    ------
    InputError
        If an order is no number above 1, or no order leaves any budget.

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
        given = [orders] if isinstance(orders, str | float | int) else listed(orders, _ORDERS)
        self.orders = [number(order, "order") for order in given]
        if not self.orders or any(order <= 1.0 for order in self.orders):
            raise InputError(f"orders {given!r}: numbers above 1 are needed, at least one")
        if len(set(self.orders)) != len(self.orders):
            raise InputError(f"orders {given!r}: every order once")
        self.total_epsilon, self.delta = number(epsilon, "epsilon"), number(delta, "delta")
        check_delta(delta)
        share = self.delta / len(self.orders)
        self.budgets = [budget_at(order, self.total_epsilon, share) for order in self.orders]
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

    def _checked(self, bound: Any) -> tuple[Fraction, ...]:
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

    def _spent(self) -> list[Fraction]:
        return self._sums

    def _restore(self, spent: list[Fraction]) -> None:
        self._sums = spent

    def _text(self, bound: tuple[Fraction, ...]) -> Any:
        return [written(value) for value in bound]

    def _bound(self, text: Any) -> tuple[Fraction, ...]:
        return tuple(read(value) for value in text)

    def left(self) -> float:
        """Return the largest ρ that still fits at some order."""
        rest = max(Fraction(b) - s for b, s in zip(self.budgets, self._sums, strict=True))
        return largest_that_fits(float(rest), lambda x: x <= rest) if rest > 0 else 0.0

    def status(self) -> dict[str, Any]:
        """Return orders, budgets and the proved guarantee."""
        split = "" if len(self.orders) == 1 else f", δ split over {len(self.orders)} orders"
        both = f"({given(self.total_epsilon)}, {given(self.delta)})"
        return {
            "filter": self.type_name,
            "proved": f"the released outputs are {both}-DP in whole{split}",
            "kind": "bound",
            "conditions": CONDITIONS,
            "unit": "Rényi divergence at each order, in nats",
            "orders": self.orders,
            "budgets": self.budgets,
            "spent_so_far": [float(s) for s in self._sums],
            "left": self.left(),
            "steps": self.count,
        }
