"""The Rényi accountant of steps that are known by their Rényi curves alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from symdp.exact.answer import Answer
from symdp.law.chernoff import log_bound
from symdp.law.renyi_bound import RenyiBoundLaw
from symdp.law.tilts import golden_section, log_one_minus_exp
from symdp.law.total import SumLaw

METHODS = ("contour", "renyi", "moments")  # the default, and the names that mean this bound
_FARTHEST = 20.0  # of log t from 0: orders from 1 + 2e-9 to 5e8
_SMALL = 1e-3  # of the tilt at which KL is bounded: K there keeps 12 digits
_SLACK = 1e-9  # of KL, for the rounding of K at that tilt
_REFINEMENTS = 40  # of a golden section: log t to 1e-8, where the bound is flat


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
            rest = epsilon + log_one_minus_exp(other)
            value = log_one_minus_exp(rest) if rest < 0.0 else 0.0
            return Answer(value, None, value, "bound")
        place, value = _least(lambda t: log_bound(law.cgf(t), epsilon, t, t, plain=False))
        variation = _log_variation(law)
        if variation < value:
            return Answer(variation, None, variation, "bound")
        return Answer(value, None, value, "bound", slope=-place)

    def log_deltas(self, law: SumLaw, epsilons: Sequence[float]) -> list[Answer]:
        """Return log δ at several ε in the direction of the law."""
        return [self.log_delta(law, epsilon) for epsilon in epsilons]


def _log_variation(law: SumLaw) -> float:
    """Return a bound on the logarithm of the total variation distance, at most 0."""
    divergence = law.cgf(_SMALL) / _SMALL * (1.0 + _SLACK)
    if not math.isfinite(divergence):
        return 0.0
    if not divergence > 0.0:
        return -math.inf if divergence == 0.0 else 0.0
    return 0.5 * min(math.log(0.5 * divergence), math.log(-math.expm1(-divergence)), 0.0)


def _least(bound: Callable[[float], float]) -> tuple[float, float]:
    """Return a tilt and the least value found on a way downhill: every tilt gives a bound."""
    place, least = 0.0, bound(1.0)
    for way in (-math.log(2.0), math.log(2.0)):
        while abs(place) < _FARTHEST:
            value = bound(math.exp(place + way))
            if value > least or (value == least < math.inf) or (value == math.inf and way > 0):
                break
            place, least = place + way, value
    if not math.isfinite(least):
        return 1.0, math.inf
    low, high = place - math.log(2.0), place + math.log(2.0)
    closest, value = golden_section(lambda u: bound(math.exp(u)), low, high, _REFINEMENTS)
    if value < least:
        least, place = value, closest
    return math.exp(place), least
