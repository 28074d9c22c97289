"""Gaussian limits: the composition as one Gaussian mechanism, and the first correction to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from symdp.methods.moments import proved_instead
from symdp.methods.series import (
    FEW_STEPS,
    LARGEST_ERROR,
    REMEDY,
    far_line,
    largest_error,
    mills_differences,
    out_of_regime,
)
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.saddle_point import log_add_exp

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_THRESHOLDS = 241  # places of the threshold, in a first look and in a closer one
_REACH = 8.0  # standard deviations around both means
_NORMAL = 1e-3  # of skewness and excess kurtosis, which one Gaussian step has none of
_LEAST = 1e-14  # a difference of probabilities less than this is rounding


def log_gaussian_delta(mu: float, epsilon: float) -> float:
    """Return log δ(ε) of μ-GDP: δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2), free of cancellation."""
    a = epsilon / mu - 0.5 * mu
    # φ(a + μ) = φ(a) e^{−ε}, so that both terms carry φ(a); mills_* hide e^{a²/2} where a < 0
    difference = mills_differences(a, mu, 1)[0]
    log_front = -0.5 * a * a if a >= 0 else 0.0
    if not difference > 0:  # so far out it is no double, nor is δ
        return -math.inf
    return log_front - _LOG_ROOT_TWO_PI + math.log(difference)


def central_limit_mu(law: SumLaw) -> float:
    """Return μ = (E_P L − E_Q L)/√v, v the mean of Var_P L and Var_Q L, exact if L is Gaussian.

    For n subsampled Gaussian steps with rate q → 0 it tends to q√(n(e^{1/σ²} − 1)).
    """
    (mean_p, variance_p), (mean_q, variance_q) = (law.cumulants(t, 2) for t in (0.0, -1.0))
    variance = 0.5 * float(variance_p + variance_q)
    if variance > 0:
        return float(mean_p - mean_q) / math.sqrt(variance)
    return 0.0


def _shifted(law: SumLaw, epsilon: float) -> float:
    """Return ε as it stands to P and Q each confined to where both are positive."""
    return epsilon + law.cgf(-1.0) - law.log_finite_mass


@dataclass(frozen=True)
class Gaussian(FloatAccountant):
    """The central limit theorem: δ of μ-GDP at μ = (E_P L − E_Q L)/√v.

    An estimate that may lie below δ. Its yardstick is the first Edgeworth correction
    (`GaussianEdgeworth`), whose size it gives where that is more than a tenth of δ.

    Examples
    --------
    >>> Gaussian().name
    'gaussian'
    """

    # The method has a name of its own, that of this file, which no mechanism's file decides.
    name: str = __name__.rpartition(".")[2]
    citations: tuple[str, ...] = ("IND 3.2",)

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the estimate at one ε."""
        mu = central_limit_mu(law)
        if not mu > 0:
            return proved_instead(law, epsilon, f"the privacy loss has no variance; {REMEDY}")
        limit = log_gaussian_delta(mu, _shifted(law, epsilon))
        refined = _refined(law, _shifted(law, epsilon), order=1)
        share = abs(math.expm1(min(math.log(refined) - limit, 700.0))) if refined > _LEAST else 1.0
        return _estimate(law, epsilon, limit, share, self.name)


@dataclass(frozen=True)
class GaussianEdgeworth(FloatAccountant):
    """GDP-E: the Gaussian limit with the first Edgeworth correction.

    The trade-off between the two errors of a test at the threshold h, 1 − E_Y(h) against
    1 − E_X(h) with first-order Edgeworth series of the loss under P and Q, gives
    δ(ε) = max_h [1 − E_Y(h) − e^ε(1 − E_X(h))]. For the true distribution functions the largest
    value is at h = ε. An estimate; its yardstick is the second order.

    Examples
    --------
    >>> GaussianEdgeworth().name
    'gdp-e'
    """

    name: str = "gdp-e"
    citations: tuple[str, ...] = ("EA 4.1",)

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the estimate at one ε."""
        shifted = _shifted(law, epsilon)
        value = _refined(law, shifted, order=1)
        if not _LEAST < value < 1.0:
            reason = f"{self.name} gives no delta between 0 and 1 here; {REMEDY}"
            return proved_instead(law, epsilon, reason)
        share = abs(_refined(law, shifted, order=2) / value - 1.0)
        return _estimate(law, epsilon, math.log(value), share, self.name)


def _estimate(law: SumLaw, epsilon: float, log_finite: float, share: float, name: str) -> Answer:
    """Return the answer for δ of the finite part, and what its next term says of it."""
    log_escaped = law.log_mass_at_infinity
    value = min(log_add_exp(log_escaped, log_finite + law.log_finite_mass), 0.0)
    # δ never exceeds P{L > ε}; both limits may, as they give up the true mean under P
    cumulants = [float(c) for c in law.cumulants(0.0, 3)]
    deviation = math.sqrt(cumulants[1])
    # φ beyond the reach of an expansion, as losses with atoms lift it
    far = far_line(law, 0.0, cumulants[1], width=1.0 / deviation, pole=0.0, first=6.0)
    unseen = math.exp(min(math.log(far) - log_finite, 700.0)) / (2.0 * math.pi) if far > 0 else 0.0
    tail = float(_edgeworth_tail(np.asarray([epsilon]), cumulants)[0])
    largest = largest_error(law.count)
    advice = _not_normal(law, name) if law.count <= FEW_STEPS else ""
    if not share <= largest:
        advice = out_of_regime(name, "its next term is", share, law.count)
    elif not unseen <= largest:
        what = "what lies beyond the reach of its terms is about"
        advice = out_of_regime(name, what, unseen, law.count)
    elif not math.exp(log_finite) <= (1.0 + LARGEST_ERROR) * tail:
        advice = (
            f"{name} is out of its regime: it gives more than the probability, about {tail:.2g}, "
            f"of a loss above epsilon; {REMEDY}"
        )
    return Answer(value, None, None, "estimate", advice)


def _not_normal(law: SumLaw, name: str) -> str:
    """Return advice for few steps, empty where their loss is nearly normal as it is."""
    _, variance, third, fourth = (float(c) for c in law.cumulants(0.0, 4))
    skewness = third / variance**1.5
    excess = fourth / variance**2
    if abs(skewness) + abs(excess) <= _NORMAL:
        return ""
    steps = "one step is" if law.count == 1 else f"{law.count} steps is"
    return (
        f"{name} is out of its regime: the loss of {steps} not normal (skewness {skewness:.2g}, "
        f"excess kurtosis {excess:.2g}); {REMEDY}"
    )


def _refined(law: SumLaw, epsilon: float, order: int) -> float:
    """Return max_h [1 − E_Y(h) − e^ε(1 − E_X(h))], the expansions of a given order, 1 or 2."""
    under_p = [float(c) for c in law.cumulants(0.0, order + 2)]
    under_q = [float(c) for c in law.cumulants(-1.0, order + 2)]
    (mean_p, variance_p) = under_p[:2]
    (mean_q, variance_q) = under_q[:2]
    if not min(variance_p, variance_q) > 0:
        return 0.0
    shift = law.cgf(-1.0) - law.log_finite_mass
    reach = _REACH * math.sqrt(max(variance_p, variance_q))
    centre = epsilon - shift  # the total loss itself, where the true optimum lies
    (least_loss, largest_loss) = law.loss_bounds
    low = max(min(mean_q, centre) - reach, least_loss)
    high = min(max(mean_p, centre) + reach, largest_loss)
    best = -math.inf
    for _ in range(2):
        h = np.linspace(low, high, _THRESHOLDS)
        above_p = _edgeworth_tail(h, under_p)
        above_q = _edgeworth_tail(h, under_q)
        log_taken = epsilon + np.log(np.maximum(above_q, 1e-300))
        value = above_p - np.exp(np.minimum(log_taken, 700.0))
        index = int(value.argmax())
        best = max(best, float(value[index]))
        low = float(h[max(index - 1, 0)])
        high = float(h[min(index + 1, h.size - 1)])
    return best


def _edgeworth_tail(h: np.ndarray, cumulants: list[float]) -> np.ndarray:
    """Return the Edgeworth series of P{L > h}, cut to probabilities."""
    from scipy.special import ndtr

    mean, variance, third, *further = cumulants
    root = math.sqrt(variance)
    x = (h - mean) / root
    skew = third / root**3
    polynomial = skew / 6.0 * (x * x - 1.0)
    if further:
        excess = further[0] / root**4
        third_hermite = x**3 - 3.0 * x
        fifth_hermite = x**5 - 10.0 * x**3 + 15.0 * x
        polynomial = polynomial + excess / 24.0 * third_hermite
        polynomial = polynomial + skew * skew / 72.0 * fifth_hermite
    density = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    probability = ndtr(-x) + density * polynomial
    return np.asarray(np.clip(probability, 0.0, 1.0))
