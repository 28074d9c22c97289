r"""Steps that are known by a Rényi curve alone, beside mechanisms that are known in full.

Such a step has no dominating pair. What adds up over the steps is the bound on the transform,

.. math:: K(t) \le \sum_i n_i\, t\, D^{(i)}_{1+t}, \qquad
   \log\delta(\varepsilon) \le K(t) - \varepsilon t - t \log(1 + 1/t) - \log(1 + t)

for every t > 0 [SPA (43)], [IND (C.3)]. Every method that needs the law of the loss is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from symdp.arguments import checked_count, real, sides
from symdp.errors import InputError
from symdp.model.mechanism import Mechanism
from symdp.model.sampling import Number, exact
from symdp.questions.composition import Composition
from symdp.questions.guarantee import Guarantee

__all__ = ["CurveStep", "RenyiComposition", "compose_curves", "rdp", "zcdp"]

_METHODS = ("renyi", "moments")
_FARTHEST = 20.0  # of log t from 0: orders from 1 + 2e-9 to 5e8
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_REFINEMENTS = 30
_SLACK = 1e-12  # of the terms, for their rounding


@dataclass(frozen=True)
class CurveStep:
    """A step whose Rényi divergence has a bound at every order, in both directions.

    Attributes
    ----------
    name
        Used in messages.
    transform
        t ↦ an upper bound on K(t) = t D_{1+t} for t > 0, inf where there is none.
    """

    name: str
    transform: Callable[[float], float]


def zcdp(rho: Number, xi: Number = 0) -> CurveStep:
    """Return a step of zero-concentrated privacy: D_α ≤ ξ + ρα [Bun, Steinke 2016].

    Raises
    ------
    InputError : ρ is not above 0, or ξ is below 0.

    Examples
    --------
    >>> zcdp("1/8").transform(1.0)
    0.25
    """
    slope, start = float(exact(rho, "rho")), float(exact(xi, "xi"))
    if slope <= 0 or start < 0:
        raise InputError(f"rho must be above 0 and xi 0 or more, not {rho} and {xi}")
    return CurveStep(f"zcdp(rho={rho})", lambda t: t * (start + slope * (1.0 + t)))


def rdp(curve: Mapping[float, float] | Sequence[tuple[float, float]]) -> CurveStep:
    """Return a step of Rényi privacy at some orders.

    K is convex and 0 at t = 0, so that it lies below the chords between the orders.

    Parameters
    ----------
    curve : order α > 1 -> D_α, or pairs of them, orders rising

    Raises
    ------
    InputError : no orders, an order not above 1 or out of turn, a divergence that is negative or
        not finite, or falls.

    Examples
    --------
    >>> rdp({2: 0.25, 4: 0.5}).transform(2.0)
    0.875
    """
    try:
        pairs = [(a, d) for a, d in (curve.items() if isinstance(curve, Mapping) else curve)]
    except (TypeError, ValueError):
        raise InputError("a Rényi curve must be a table of orders and divergences") from None
    if not pairs:
        raise InputError("a Rényi curve needs one order or more")
    points = [(0.0, 0.0)]
    last = 0.0
    for order, divergence in pairs:
        alpha, bound = real(order, "order"), real(divergence, f"the divergence of order {order}")
        if alpha - 1.0 <= points[-1][0]:
            raise InputError(f"order {alpha!r} must lie above 1 and above the order before it")
        if bound < last:
            raise InputError(f"the divergence {bound!r} of order {alpha!r} falls; it must not")
        points.append((alpha - 1.0, (alpha - 1.0) * bound))
        last = bound

    def transform(t: float) -> float:
        for (a, low), (b, high) in pairwise(points):
            if t <= b:
                return low + (high - low) * (t - a) / (b - a)
        return math.inf

    return CurveStep("rdp", transform)


class RenyiComposition:
    """Steps of which some are known by a Rényi curve alone; `compose_curves` makes one."""

    def __init__(self, steps: Sequence[tuple[Mechanism | CurveStep, int]]) -> None:
        counted = [(step, checked_count(count)) for step, count in steps]
        known = [(step, n) for step, n in counted if isinstance(step, Mechanism)]
        self.curves = [(step, n) for step, n in counted if isinstance(step, CurveStep)]
        if not self.curves or len(known) + len(self.curves) != len(counted):
            raise InputError("a list of mechanisms and one curve or more is needed")
        self._known = Composition(known) if known else None
        self.count = sum(n for _, n in counted)

    def transform(self, tilt: float, direction: str) -> float:
        """Return the bound on K(t) of all steps, inf where one has none."""
        total = math.fsum(n * step.transform(tilt) for step, n in self.curves)
        if self._known is None:
            return total
        law = self._known.law(direction)
        if law.mass_at_infinity > 0 or tilt >= law.domain[1]:
            return math.inf
        return total + float(law.cgf(tilt))

    def delta(self, epsilon: float, method: str = "renyi", direction: str = "both") -> Guarantee:
        """Return a proved bound on δ(ε).

        Raises
        ------
        InputError : ε is not finite, or a method that needs the law of the loss.
        """
        self._require(method)
        at = real(epsilon, "epsilon")

        def bound(side: str, tilt: float) -> float:
            terms = (self.transform(tilt, side), -at * tilt, *_factor(tilt))
            return math.fsum(terms) + _SLACK * math.fsum(map(abs, terms))

        found = {s: _least(partial(bound, s)) for s in sides(direction)}
        side = max(found, key=lambda s: found[s])
        value = min(found[side], 0.0)
        label = direction if direction != "both" else side
        return Guarantee(at, value, "bound", method, label, self.count, "delta", None, value)

    def epsilon(self, delta: float, method: str = "renyi", direction: str = "both") -> Guarantee:
        """Return a proved bound on the smallest ε ≥ 0 with δ(ε) ≤ `delta`.

        Raises
        ------
        InputError : δ outside (0, 1), a method that needs the law, or no order with a bound.
        """
        self._require(method)
        given = real(delta, "delta")
        if not 0.0 < given < 1.0:
            raise InputError(f"delta = {given!r}: it must lie strictly between 0 and 1")

        def bound(side: str, tilt: float) -> float:
            terms = (self.transform(tilt, side), -math.log(given), *_factor(tilt))
            return (math.fsum(terms) + _SLACK * math.fsum(map(abs, terms))) / tilt

        found = {s: _least(partial(bound, s)) for s in sides(direction)}
        side = max(found, key=lambda s: found[s])
        if not math.isfinite(found[side]):
            raise InputError("no order has a finite divergence of all steps: there is no bound")
        value = max(found[side], 0.0)
        label = direction if direction != "both" else side
        return Guarantee(
            value, math.log(given), "bound", method, label, self.count, "epsilon",
            epsilon_upper=value, given_delta=given,
        )  # fmt: skip

    def _require(self, method: str) -> None:
        if method not in _METHODS:
            raise InputError(
                f"{self.curves[0][0].name} is known by its Rényi curve alone: {method} needs the "
                f"law of the loss; ask {' or '.join(_METHODS)}"
            )


def compose_curves(
    steps: CurveStep | Sequence[CurveStep | Mechanism | tuple[CurveStep | Mechanism, int]],
    count: int = 1,
) -> RenyiComposition:
    """Return the composition of steps of which some are known by a Rényi curve alone.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = compose_curves([(zcdp("1/200"), 10), mechanisms.gaussian(sigma=10)])
    >>> print(f"{steps.delta(1.5).delta:.3g}")
    1.99e-06
    """
    if isinstance(steps, CurveStep):
        return RenyiComposition([(steps, count)])
    listed = [step if isinstance(step, tuple) else (step, 1) for step in steps]
    return RenyiComposition([(step, n * count) for step, n in listed])


def _factor(tilt: float) -> tuple[float, float]:
    return -tilt * math.log1p(1.0 / tilt), -math.log1p(tilt)


def _least(bound: Callable[[float], float]) -> float:
    """Return the least value found on a way downhill: every tilt gives a bound, inf where none.

    The bounds are quasi-convex in t, so that the way leads to the least of all.
    """
    place, least = 0.0, bound(1.0)
    for way in (-math.log(2.0), math.log(2.0)):
        while abs(place) < _FARTHEST:
            value = bound(math.exp(place + way))
            if value > least or (value == least < math.inf) or (value == math.inf and way > 0):
                break
            place, least = place + way, value
    if not math.isfinite(least):
        return math.inf
    low, high = place - math.log(2.0), place + math.log(2.0)
    for _ in range(_REFINEMENTS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        here, there = bound(math.exp(left)), bound(math.exp(right))
        least = min(least, here, there)
        low, high = (low, right) if here <= there else (left, high)
    return least
