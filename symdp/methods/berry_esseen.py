"""The untilted Gaussian approximation between its Berry-Esseen errors: a baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.errors import AccuracyError
from symdp.methods.interval import proved_answer
from symdp.methods.standard_moments import summands
from symdp.numeric.answer import Answer, FloatAccountant

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_ROUNDING = 1e-12  # absolute: more than a difference of two probabilities is rounded


@dataclass(frozen=True)
class BerryEsseen(FloatAccountant):
    """|δ − E(1 − e^{ε−Z})⁺| ≤ C P/v^{3/2}, Z ~ N(m, v), m and v of the loss [SPA (88), (89)].

    P = Σ E|Lᵢ − E Lᵢ|³; C = 0.4690 for identical steps, 0.56 for others. The payoff rises from 0 to
    1, so that the distance of the distribution functions bounds what replacing L by Z changes. The
    error is the same at every ε: what `spa-bounds` gains by its tilt shows beside this one.

    Examples
    --------
    >>> BerryEsseen().name
    'berry-esseen'
    """

    name: str = "berry-esseen"
    citations: tuple[str, ...] = ("SPA (88)", "Shevtsova2010")

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the proved interval at one ε; its value is the upper end."""
        try:
            steps = summands(law, 0.0)
        except AccuracyError:
            steps = None
        if steps is None or not steps.is_spread or not math.isfinite(steps.berry_esseen):
            return proved_answer(law, epsilon, -math.inf, math.inf, self.name)
        centre = normal_payoff(law.drift(epsilon) + steps.shift, steps.variance)
        error = steps.berry_esseen + _ROUNDING
        escaped, mass = law.mass_at_infinity, math.exp(law.log_finite_mass)
        ends = (escaped + mass * (centre + sign * error) for sign in (-1.0, 1.0))
        low, high = (math.log(end) if end > 0 else -math.inf for end in ends)
        return proved_answer(law, epsilon, low, high, self.name)


def normal_payoff(gap: float, variance: float) -> float:
    """Return E(1 − e^{−X})⁺ of X ~ N(gap, variance).

    Φ(g/√v) − e^{v/2 − g} Φ((g − v)/√v).

    Parameters
    ----------
    gap
        The mean less ε.
    variance
        Positive.

    Examples
    --------
    >>> print(f"{normal_payoff(0.5, 1.0):.6f}")  # μ-GDP at ε = 0, μ = 1: 2Φ(1/2) − 1
    0.382925
    """
    from scipy.special import log_ndtr

    root = math.sqrt(variance)
    first = float(log_ndtr(gap / root))
    second = 0.5 * variance - gap + float(log_ndtr((gap - variance) / root))
    return max(math.exp(first) - math.exp(min(second, first)), 0.0)
