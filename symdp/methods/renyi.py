r"""The Rényi accountant: the divergence curve, converted to δ at the best real order.

Of steps that are known by their Rényi curves alone only a bound on K(t), t > 0, is known:

.. math:: K(t) \le \sum_i n_i\, t\, D^{(i)}_{1+t} + \sum_j n_j K_j(t)

Nothing else is known of the loss: whatever asks for more is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from symdp.decimal_text import rounded
from symdp.errors import AccuracyError, InputError
from symdp.model.sampling import RenyiCurve
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.saddle_point import (
    Strip,
    golden_section,
    log_add_exp,
    log_bound,
    log_integral_bound,
    log_one_minus_exp,
)
from symdp.numeric.total import SumLaw
from symdp.tolerances import ABOVE_ROUNDING

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.step import Array
    from symdp.numeric.total import SumLaw

METHODS = ("contour", "renyi", "moments")  # the default, and the names that mean this bound
_FARTHEST = 20.0  # of log t from 0: orders from 1 + 2e-9 to 5e8
_SMALL = 1e-3  # of the tilt at which KL is bounded: K there keeps 12 digits
_SHOWN = 8  # digits of the ends of a divergence
_LAST = 1.0 - 2.0**-6  # of the end of a table: the tilt from which K is continued
_REFINEMENTS = 40  # of a golden section: log t to 1e-8, where the bound is flat
# tilts at which mean and spread of the loss are judged, to start from
_AT_ZERO = 1e-6
_ONE = 1.0


def divergence_ends(law: SumLaw, order: float) -> tuple[float, float]:
    """Return between which numbers D_α(P‖Q) lies at an order α ≥ 0, inf where it diverges.

    Both are K(α − 1)/(α − 1), but where a table ends before that tilt: K is convex and grows by the
    largest loss at most, for each unit of the tilt.
    """
    tilt = order - 1.0
    if order < 1.0:
        value = float(law.cgf(tilt)) / tilt
    elif law.diverges_at(0.0 if order == math.inf else tilt):
        value = math.inf
    elif order == math.inf:
        value = law.loss_bounds[1]
        if goes_on(law):
            return value, math.inf
    elif not law.is_resolved_at(tilt):
        return _beyond_table(law, tilt)
    elif order == 1.0:
        value = float(law.cumulants(0.0, 1)[0])
    elif tilt >= law.domain[1]:
        value = math.inf
    else:
        value = float(law.cgf(tilt)) / tilt
    _check_order_of_divergences(law, order, value)
    return value, value


def goes_on(law: SumLaw) -> bool:
    """Whether losses of some step go on beyond those that are listed."""
    return any(part.goes_on for part, _ in law.terms)


def _beyond_table(law: SumLaw, tilt: float) -> tuple[float, float]:
    """Return ends of D_α from the last tilt that every table resolves."""
    check_resolved(law)
    if goes_on(law):
        return float(law.cgf(tilt)) / tilt, math.inf
    last = _LAST * law.domain[1]
    cgf = float(law.cgf(last))
    slope = float(law.cumulants(last, 1)[0])
    low = (cgf + slope * (tilt - last)) / tilt
    top = law.loss_bounds[1]
    return low, min((cgf + top * (tilt - last)) / tilt, top)


def _check_order_of_divergences(law: SumLaw, order: float, value: float) -> None:
    """Raise AccuracyError unless D_α ≤ D_1 for α < 1, and D_1 ≤ D_α ≤ D_∞ for α > 1."""
    if isinstance(law, RenyiBoundLaw) or law.mass_at_infinity > 0.0 or value == math.inf:
        return
    mean = float(law.cumulants(0.0, 1)[0])
    low, high = (0.0, mean) if order < 1.0 else (mean, law.loss_bounds[1])
    slack = ABOVE_ROUNDING * (abs(mean) + abs(value))
    if not low - slack <= value <= high + slack:
        raise AccuracyError(
            f"D_{order:.6g} = {value:.12g} does not lie between {low:.12g} and {high:.12g}, as "
            "divergences rise with their order; a bug in symdp, please report it"
        )


def renyi_curve(law: SumLaw, orders: Sequence[float]) -> list[float]:
    """Return D_α(P‖Q) = K(α − 1)/(α − 1) of a composition at orders, inf where it diverges."""
    for order in orders:
        _check_order(order)
    return [one_value(divergence_ends(law, order), order) for order in orders]


def one_value(ends: tuple[float, float], order: float) -> float:
    """Return the upper end; AccuracyError where the lower one is not next to it."""
    low, high = ends
    if low == high or high - low <= ABOVE_ROUNDING * low:
        return high
    least, most = rounded(low, _SHOWN, "down"), rounded(high, _SHOWN, "up")
    between = f"is at least {least}" if high == math.inf else f"lies between {least} and {most}"
    raise AccuracyError(
        f"order {order:.6g} is beyond the table of a loss, of which all that is known there is "
        f"that D_α {between}; ask a smaller order"
    )


def check_resolved(law: SumLaw) -> None:
    """Refuse a law whose largest losses are not resolved: they may make all of D_α."""
    if not law.is_resolved_at(0.0):
        raise AccuracyError(
            f"losses of a probability of {law.uncertain_mass:.0e} are not resolved, as of random "
            "allocation, and no Rényi divergence is known; ask delta or epsilon"
        )


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
            _check_order(order)

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


def _check_order(order: float) -> None:
    if not 1.0 < order < math.inf:
        raise InputError(f"Rényi order {order!r}: a finite number above 1 is needed")


@dataclass(frozen=True)
class RenyiBound:
    """δ ≤ min_t e^{K(t) − εt} t^t/(1+t)^{1+t} [SPA (43)], [IND (C.3)] with a bound on K(t), ε ≥ 0.

    Also δ(ε) ≤ δ(0), which is the total variation: at most √(KL/2) by Pinsker's inequality and
    √(1 − e^{−KL}) by that of Bretagnolle and Huber, where KL ≤ K(t)/t for every t > 0. At ε < 0,
    δ(ε) = 1 − e^ε + e^ε δ′(−ε) with δ′ of the other direction.
    """

    name: str = "renyi"
    citations: tuple[str, ...] = ("IND (C.3)",)
    is_exact: bool = False
    least_log_delta: float = -math.inf

    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the bound at one ε, of kind "bound"; it never exceeds δ = 1."""
        assert isinstance(law, RenyiBoundLaw)
        if epsilon < 0.0:
            other = self.log_delta(law.reversed, -epsilon).log_delta
            # The other direction is never smaller than what any pair has.
            log_ratio = epsilon + log_one_minus_exp(other)
            value = log_one_minus_exp(log_ratio) if log_ratio < 0.0 else 0.0
            return Answer(value, None, value, "bound")
        tilt, value = _least(lambda t: log_bound(law.cgf(t), epsilon, t, t, plain=False))
        variation = _log_variation(law)
        if variation < value:
            return Answer(variation, None, variation, "bound")
        return Answer(value, None, value, "bound", slope=-tilt)

    def log_deltas(self, law: SumLaw, epsilons: Sequence[float]) -> list[Answer]:
        """Return log δ at several ε in the direction of the law."""
        return [self.log_delta(law, epsilon) for epsilon in epsilons]


def _log_variation(law: SumLaw) -> float:
    """Return a bound on the logarithm of the total variation distance, at most 0."""
    divergence = law.cgf(_SMALL) / _SMALL * (1.0 + ABOVE_ROUNDING)
    if not math.isfinite(divergence):
        return 0.0
    if not divergence > 0.0:
        if divergence == 0.0:
            return -math.inf
        return 0.0
    return 0.5 * min(math.log(0.5 * divergence), math.log(-math.expm1(-divergence)), 0.0)


def _least(bound: Callable[[float], float]) -> tuple[float, float]:
    """Return a tilt and the least value found on a way downhill: every tilt gives a bound."""
    position = 0.0
    least = bound(1.0)
    for way in (-math.log(2.0), math.log(2.0)):
        while abs(position) < _FARTHEST:
            value = bound(math.exp(position + way))
            if value > least or (value == least < math.inf) or (value == math.inf and way > 0):
                break
            position = position + way
            least = value
    if not math.isfinite(least):
        return 1.0, math.inf
    low, high = position - math.log(2.0), position + math.log(2.0)
    closest, value = golden_section(lambda u: bound(math.exp(u)), low, high, _REFINEMENTS)
    if value < least:
        least = value
        position = closest
    return math.exp(position), least


@lru_cache(maxsize=4096)
def _curve_transform(mechanism: Mechanism) -> Callable[[float], float]:
    """Return t ↦ t D_{1+t} of a step's Rényi curve, inf where it gives no bound."""
    source = mechanism.require_concrete().source
    assert isinstance(source, RenyiCurve)
    if isinstance(source.divergence, tuple):
        tilts = np.array([0.0, *(float(order - 1) for order in source.divergence[::2])])
        values = tilts * np.array([0.0, *(float(bound) for bound in source.divergence[1::2])])
        return lambda t: float(np.interp(t, tilts, values)) if t <= tilts[-1] else math.inf
    from symdp.emit.numpy import compile_numpy

    divergence = compile_numpy(source.divergence, [mechanism.variable])

    def transform(t: float) -> float:
        value = float(divergence(1.0 + t))
        if value >= 0.0:
            return t * value
        return math.inf

    return transform


class RenyiBoundLaw(SumLaw):
    """The bound on K of all steps: of those known by their curves, with counts, and of others."""

    def __init__(
        self,
        curves: Sequence[tuple[Mechanism, int]],
        base_law: SumLaw | None,
        reverse: Callable[[], SumLaw],
    ) -> None:
        self._name = curves[0][0].summary
        self._reverse = reverse
        self._terms = [(_curve_transform(step), count) for step, count in curves]
        self._known = base_law
        self.kept = {}
        self.count = sum(n for _, n in curves) + (0 if base_law is None else base_law.count)

    @property
    def parts(self) -> Any:
        """Refused: no step's law is known."""
        raise InputError(
            f"{self._name} is known by its Rényi curve alone: this needs the law of the loss; "
            "ask for ε or δ by the method renyi, or for the trade-off function"
        )

    @property
    def terms(self) -> Any:
        """Refused, as `parts`."""
        return self.parts

    @cached_property
    def reversed(self) -> SumLaw:
        """The bound in the other direction."""
        return self._reverse()

    @property
    def mass_at_infinity(self) -> float:
        """None: a finite curve leaves none; where it is infinite there is no bound."""
        return 0.0

    @property
    def domain(self) -> tuple[float, float]:
        """Every tilt may be asked for: where a curve is infinite, the bound tells nothing."""
        return -math.inf, math.inf

    @cached_property
    def log_finite_mass(self) -> float:
        """The logarithm of 1."""
        return 0.0

    @cached_property
    def uncertain_mass(self) -> float:
        """None that is counted apart."""
        return 0.0

    def is_resolved_at(self, tilt: float) -> bool:
        """The bound is known at every tilt."""
        return True

    def diverges_at(self, tilt: float) -> bool:
        """Only the bound itself tells where it is infinite."""
        return False

    @property
    def is_spread(self) -> bool:
        """Nothing tells that it takes single values."""
        return True

    @property
    def loss_bounds(self) -> tuple[float, float]:
        """No bounds are known."""
        return -math.inf, math.inf

    def cgf(self, tilt: float) -> float:
        """Return the bound on K(t) for t > 0, inf where there is none; 0 at −1 and 0."""
        if tilt in (-1.0, 0.0):
            return 0.0
        if not tilt > 0.0:
            return float(self.parts)
        total = math.fsum(count * transform(tilt) for transform, count in self._terms)
        if self._known is None:
            return total
        if self._known.mass_at_infinity > 0 or tilt >= self._known.domain[1]:
            return math.inf
        return total + float(self._known.cgf(tilt))

    def cumulants(self, tilt: float, order: int) -> Array:
        """Return about what mean and variance the bound has at t = 0: where to start."""
        mean = self.cgf(_AT_ZERO) / _AT_ZERO
        spread = self.cgf(_ONE) - mean
        wide = spread if 0.0 < spread < math.inf else 1.0
        return np.array([mean if math.isfinite(mean) else 1.0, 2.0 * wide])
