"""The Rényi accountant: the divergence curve, converted to δ at the best real order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.errors import InputError
from symdp.exact.answer import Answer
from symdp.exact.base import FloatAccountant
from symdp.law.tilts import Probe, increasing_root, log_add_exp

if TYPE_CHECKING:
    from symdp.law.total import SumLaw

_SLACK = 1e-12  # relative: the bound is raised by more than its sums are rounded
_CLOSE = 1e-6  # of a standard deviation: any order gives a bound


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
        if not 1.0 < order < math.inf:
            raise InputError(f"Rényi order {order!r}: a finite number above 1 is needed")
        diverges = law.mass_at_infinity > 0 or order - 1.0 >= law.domain[1]
        curve.append(math.inf if diverges else law.cgf(order - 1.0) / (order - 1.0))
    return curve


@dataclass(frozen=True)
class Renyi(FloatAccountant):
    """δ ≤ min_α e^{(α−1)(D_α − ε)} (1 − 1/α)^{α−1}/α over all real orders α > 1 [IND (C.3)].

    With t = α − 1 this is the tightened moments bound [SPA (43)], which restates it through the
    CGF; the two are computed apart. An output that Q never has makes every divergence infinite: its
    probability is counted on its own, and the curve is that of the rest.

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

    def __post_init__(self) -> None:
        for order in self.orders:
            if not 1.0 < order < math.inf:
                raise InputError(f"Rényi order {order!r}: a finite number above 1 is needed")

    @property
    def name(self) -> str:
        """The method's name."""
        return "renyi"

    @property
    def citations(self) -> tuple[str, ...]:
        """What the method rests on."""
        return ("IND (C.3)",)

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the bound at one ε, of kind "bound"; it never exceeds δ = 1."""
        tilts = [order - 1.0 for order in self.orders if order - 1.0 < law.domain[1]]
        if self.orders:
            best = min((_log_bound(law, epsilon, t) for t in tilts), default=math.inf)
        else:
            best = _least(law, epsilon)
        value = min(log_add_exp(law.log_mass_at_infinity, best), 0.0)
        return Answer(value, None, value, "bound")


def _terms(transform: float, tilt: float, epsilon: float) -> list[float]:
    # (1 − 1/α)^{α−1}/α at α = 1 + t, written so that a large order does not cancel
    return [transform, -tilt * epsilon, -tilt * math.log1p(1.0 / tilt), -math.log1p(tilt)]


def _log_bound(law: SumLaw, epsilon: float, tilt: float) -> float:
    terms = _terms(law.cgf(tilt), tilt, epsilon)
    return math.fsum(terms) + _SLACK * math.fsum(abs(term) for term in terms)


def _least(law: SumLaw, epsilon: float) -> float:
    """Return the least bound over t = α − 1 in the domain; it is convex in t."""
    end = law.domain[1]
    if not end > 0:
        return math.inf
    best = math.inf

    def probe(t: float) -> Probe:
        nonlocal best
        best = min(best, _log_bound(law, epsilon, t))
        first, second = (float(x) for x in law.cumulants(t, 2))
        value = first - epsilon - math.log1p(1.0 / t)
        slope = second + 1.0 / (t * (1.0 + t))
        return Probe(value, _CLOSE * math.sqrt(slope), t - value / slope)

    increasing_root(probe, end, min(1.0, 0.5 * end))
    return best
