"""The Rényi accountant: the divergence curve, converted to δ at the best real order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.errors import InputError
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.saddle_point import Strip, log_add_exp, log_bound, log_integral_bound

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw


def renyi_curve(law: SumLaw, orders: Sequence[float]) -> list[float]:
    """Return D_α(P‖Q) = K(α − 1)/(α − 1) of the composition at each order, inf where it diverges.

    Parameters
    ----------
    law
        the total privacy loss.
    orders
        real numbers α > 1.

    Raises
    ------
    InputError
        If an order is not a finite number above 1.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> law = compose(mechanisms.gaussian(sigma=2), 8).law("remove")
    >>> [round(d, 12) for d in renyi_curve(law, [1.5, 2.0, 32.0])]
    [1.5, 2.0, 32.0]
    """
    curve = []
    for order in orders:
        _check(order)
        diverges = law.mass_at_infinity > 0 or order - 1.0 >= law.domain[1]
        curve.append(math.inf if diverges else law.cgf(order - 1.0) / (order - 1.0))
    return curve


@dataclass(frozen=True)
class Renyi(FloatAccountant):
    """δ ≤ min_α e^{(α−1)(D_α − ε)} (1 − 1/α)^{α−1}/α over all real orders α > 1 [IND (C.3)].

    With t = α − 1 this is the tightened moments bound [SPA (43)], which restates it through the
    CGF. An output that Q never has makes every divergence infinite: its probability is counted on
    its own, and the curve is that of the rest.

    Parameters
    ----------
    orders
        the orders to choose from, as accountants with a fixed list have it; empty for all.

    Raises
    ------
    InputError
        If an order is not a finite number above 1.

    Examples
    --------
    >>> Renyi().name, Renyi((2.0, 4.0)).orders
    ('renyi', (2.0, 4.0))
    """

    orders: tuple[float, ...] = ()
    name: str = "renyi"
    citations: tuple[str, ...] = ("IND (C.3)",)

    def __post_init__(self) -> None:
        for order in self.orders:
            _check(order)

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the bound at one ε, of kind "bound"; it never exceeds δ = 1."""
        tilts = [order - 1.0 for order in self.orders if order - 1.0 < law.domain[1]]
        if self.orders:
            bounds = (log_bound(law.cgf(t), epsilon, t, t, plain=False) for t in tilts)
            best = min(bounds, default=math.inf)
        else:
            best = log_integral_bound(law, epsilon, Strip.RIGHT, plain=False)
        value = min(log_add_exp(law.log_mass_at_infinity, best), 0.0)
        return Answer(value, None, value, "bound")


def _check(order: float) -> None:
    if not 1.0 < order < math.inf:
        raise InputError(f"Rényi order {order!r}: a finite number above 1 is needed")
