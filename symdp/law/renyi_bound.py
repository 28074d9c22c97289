r"""The total of steps of which some are known by a Rényi curve alone: a bound on K(t), t > 0.

.. math:: K(t) \le \sum_i n_i\, t\, D^{(i)}_{1+t} + \sum_j n_j K_j(t)

Nothing else is known of the loss: whatever asks for more is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from symdp.errors import InputError
from symdp.law.total import SumLaw
from symdp.model.renyi_curve import RenyiCurve

if TYPE_CHECKING:
    from symdp.law.step import Array
    from symdp.model.mechanism import Mechanism

_SMALL, _ONE = 1e-6, 1.0  # tilts at which mean and spread of the loss are judged, to start from


@lru_cache(maxsize=4096)
def curve_transform(mechanism: Mechanism) -> Callable[[float], float]:
    """Return t ↦ t D_{1+t} of a step's Rényi curve, inf where it gives no bound.

    >>> from symdp import mechanisms
    >>> curve_transform(mechanisms.zcdp(rho="1/8"))(1.0)
    0.25
    """
    source = mechanism.require_concrete().source
    assert isinstance(source, RenyiCurve)
    if isinstance(source.divergence, tuple):
        tilts = np.array([0.0, *(float(order - 1) for order in source.divergence[::2])])
        values = tilts * np.array([0.0, *(float(bound) for bound in source.divergence[1::2])])
        return lambda t: float(np.interp(t, tilts, values)) if t <= tilts[-1] else math.inf
    from symdp.emit.numpy import compile_numpy

    divergence = compile_numpy(source.divergence, [mechanism.variable])

    def transform(t: float) -> float:
        found = float(divergence(1.0 + t))
        return t * found if found >= 0.0 else math.inf

    return transform


class RenyiBoundLaw(SumLaw):
    """The bound on K of all steps.

    Parameters
    ----------
    curves
        The steps that are known by their curves, with their counts.
    known
        The law of those that are known in full, or None.
    reverse
        Makes the same of the other direction.
    """

    def __init__(
        self,
        curves: Sequence[tuple[Mechanism, int]],
        known: SumLaw | None,
        reverse: Callable[[], SumLaw],
    ) -> None:
        self._name, self._reverse = curves[0][0].summary, reverse
        self._terms = [(curve_transform(step), count) for step, count in curves]
        self._known = known
        self.kept = {}
        self.count = sum(n for _, n in curves) + (0 if known is None else known.count)

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
        mean = self.cgf(_SMALL) / _SMALL
        spread = self.cgf(_ONE) - mean
        wide = spread if 0.0 < spread < math.inf else 1.0
        return np.array([mean if math.isfinite(mean) else 1.0, 2.0 * wide])
