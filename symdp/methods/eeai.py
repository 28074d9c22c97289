"""The exact Edgeworth accountant interval: first-order Edgeworth with a proved error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symdp.methods.edgeworth_error import edgeworth_error
from symdp.methods.interval import log_tail, proved_answer
from symdp.methods.smoothing_error import smoothing_error
from symdp.methods.standard_moments import Summands, summands
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.saddle_point import complement_rounding, log_one_minus_exp

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_ROUNDING = 1e-15  # of a sum of probabilities


@dataclass(frozen=True, slots=True)
class _Tail:
    """Proved bounds on the probability that the loss exceeds ε; the upper one also as a logarithm,
    which goes on where doubles end."""

    least: float
    most: float
    log_most: float


@dataclass(frozen=True)
class EdgeworthInterval(FloatAccountant):
    """δ± = 1 − E_Y ± Δ_Y − e^ε(1 − E_X ∓ Δ_X) [EA Def 4.2] with proved Δ ≥ |F − E₁|.

    Y is the loss under P, X the loss under Q, each expanded to first order; steps may differ, at a
    cost that grows with the number of distinct ones. Δ is the least of three: of moments alone
    [EA Lemma 4.3], O(n^{−1/2}); of Berry and Esseen; and of the characteristic function, O(1/n) for
    continuous losses [EA App. H]. It is uniform in ε, while e^ε multiplies it, so each tail
    probability is also held within its Chernoff and Hoeffding bounds; that is never wider than
    Δ(ε) = min(Δ, tail(ε) + |1 − E₁(ε)|) [EA Thm 1]. The interval is cut to that of the moments
    bound, which it is never wider than, and its value is its upper end.

    Examples
    --------
    >>> EdgeworthInterval().name
    'eeai'
    """

    name: str = "eeai"
    citations: tuple[str, ...] = (
        "EA Def 4.2",
        "EA Lemma 4.3",
        "Derumigny Thm A.2",
        "Prawitz",
        "Shevtsova2010",
        "SPA (43)",
    )

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the proved interval at one ε; its value is the upper end."""
        under_p, under_q = _tail(law, epsilon, 0.0), _tail(law, epsilon, -1.0)
        escaped, mass = law.mass_at_infinity, math.exp(law.log_finite_mass)
        log_factor = epsilon + min(law.cgf(-1.0), 0.0)
        unsure = complement_rounding(law)  # of K(−1)
        # e^ε Q{L > ε} never exceeds P{L > ε}, hence 1
        gone = math.exp(min(log_factor - unsure + _log(under_q.least), 0.0))
        taken = math.exp(min(log_factor + unsure + under_q.log_most, 0.0))
        low = escaped + mass * under_p.least - taken - _ROUNDING
        high = escaped + mass * under_p.most - gone
        log_high = _log(high + _ROUNDING)
        if escaped == 0.0:
            log_high = min(log_high, under_p.log_most)
        return proved_answer(law, epsilon, _log(low), log_high, self.name)


def edgeworth_tail(steps: Summands, x: float) -> float:
    """Return 1 − E₁(x) = 1 − Φ(x) + λ₃(x² − 1)φ(x)/6.

    Parameters
    ----------
    steps
        moments of the summands.
    x
        a distance from the mean in standard deviations.
    """
    normal = 0.5 * math.erfc(x / math.sqrt(2.0))
    density = math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    return normal + steps.skewness * (x * x - 1.0) * density / 6.0


def _tail(law: SumLaw, epsilon: float, origin: float) -> _Tail:
    steps = summands(law, origin)
    # the other tail, being a probability too, bounds this one from below
    log_most = log_tail(law, epsilon, origin, upper=True)
    least = math.exp(log_one_minus_exp(log_tail(law, epsilon, origin, upper=False)))
    if not steps.is_spread:
        return _Tail(least, math.exp(log_most), log_most)
    deviation = math.sqrt(steps.variance)
    drift = law.drift(epsilon)
    x = -(drift + steps.shift) / deviation
    # x is known up to rounding only, and E₁ changes by at most about one unit a deviation
    rounding = steps.uncertainty + 1e-15 * (abs(drift) + abs(steps.shift))
    error = min(edgeworth_error(steps), smoothing_error(law, origin, steps))
    error += _ROUNDING + (1.0 + abs(steps.skewness)) * rounding / deviation
    centre = edgeworth_tail(steps, x)
    most = min(centre + error, 1.0)
    least = max(least - _ROUNDING, centre - error, 0.0)
    if most < math.exp(log_most):
        return _Tail(least, most, _log(most))
    return _Tail(least, math.exp(log_most), log_most)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
