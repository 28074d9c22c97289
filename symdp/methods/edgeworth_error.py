"""A proved bound on the distance of a standardised sum's law from its first-order Edgeworth series.

The bound of Derumigny, Girard and Guyonvarch for independent summands with four moments. Every term
is a part of an integral of the distance between characteristic functions, taken against a
smoothing kernel of modulus at most c/(2π|u|) on |u| ≤ 2π√n/K̃₃: the Edgeworth series is compared
with the sum near u = 0, up to √(2η)(n/K₄)^{1/4}, and both are bounded by Gaussians beyond. η is
free between 0 and 1/3, and the least bound over it is taken.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from symdp.methods.standard_moments import Summands

Array = NDArray[np.float64]

_KERNEL = 1.0253  # c
_COSINE = 0.09916191  # χ: cos x ≤ 1 − x²/2 + χ|x|³ for every x
_ETA = np.linspace(0.002, 0.32, 160)
_SKEWNESS = 1.0 / (6.0 * math.sqrt(2.0 * math.pi))  # the largest (x² − 1)φ(x)/6 is at x = 0


def edgeworth_error(steps: Summands) -> float:
    """Return Δ ≥ sup|F − E₁|, E₁(x) = Φ(x) − λ₃(x² − 1)φ(x)/6, never more than 1.

    The smaller of two proved bounds: `uniform_error`, and that of Berry and Esseen with the largest
    value of the skewness term added, which is the better one for few steps.

    Parameters
    ----------
    steps
        moments of the summands.
    """
    if not steps.is_spread:
        return 1.0
    plain = steps.berry_esseen + _SKEWNESS * abs(steps.skewness)
    return min(plain, uniform_error(steps), 1.0)


def uniform_error(steps: Summands) -> float:
    """Return the bound of first order on sup|F − E₁| (Derumigny, Thm A.2) [EA Lemma 4.3].

    Parameters
    ----------
    steps
        moments of the summands, of positive variance.
    """
    n, root = float(steps.count), math.sqrt(steps.count)
    deviation = math.sqrt(steps.variance / n)  # root mean variance of one step
    k3 = steps.absolute_third / (n * deviation**3)
    k4 = steps.fourth / (n * deviation**4)
    k3_tilde = k3 + steps.absolute_mixed / (n * deviation**3)
    skew = abs(steps.third) / (n * deviation**3)
    eta, ratio = _ETA, k4 / n
    narrow = (1.0 - 3.0 * eta) ** 2
    polynomial = 144.0 + 80.0 * eta + 4.0 * eta**2
    polynomial = (polynomial + 96.0 * np.sqrt(2.0 * eta) + 16.0 * math.sqrt(2.0) * eta**1.5) / 576.0
    growth = np.exp(eta**2 * (1.0 / 6.0 + 2.0 * polynomial / narrow))
    second_order = 0.031 * k3_tilde**2 + 0.054 * skew * k3_tilde + 0.037 * growth * skew**2
    second_order = second_order + 0.327 * k4 * (1.0 / 12.0 + 0.25 / narrow)
    near = _near_zero(eta, ratio, skew / root, narrow, polynomial, growth)
    end = 2.0 * root / k3_tilde
    start = np.minimum(np.sqrt(2.0 * eta) / ratio**0.25, end)
    beyond = skew / root * (_upper_gamma(start) - _upper_gamma(np.asarray(end)))
    decay = 0.5 * (1.0 - 4.0 * _COSINE - math.sqrt(ratio))
    beyond = beyond + _KERNEL * k3 / (6.0 * math.pi * root) * _gaussian_second(start, end, decay)
    far = (14.1961 + 67.0415) * k3_tilde**4 / (16.0 * math.pi**4 * n * n)
    far += 4.3394 * skew * k3_tilde**3 / (8.0 * math.pi**3 * n * n)
    total = 0.1995 * k3_tilde / root + second_order / n + near + beyond + far
    return float(total.min())


def _near_zero(
    eta: Array, ratio: float, skew: float, narrow: Array, polynomial: Array, growth: Array
) -> Array:
    """Return the part of higher orders near u = 0, `ratio` = K₄/n and `skew` = |λ₃|/√n.

    Terms are (power of K₄/n, factor, moment ∫₀^∞ u^m e^{−u²/2} du) of the squared first logarithm,
    and of the second term of the exponential.
    """
    products = (
        (1.5, 1.0 / 48.0, 7),
        (2.0, 1.0 / 1152.0, 9),
        (1.25, 1.0 / 12.0, 6),
        (1.5, 1.0 / 72.0, 7),
        (1.75, 1.0 / 144.0, 8),
    )
    squares = sum(factor * ratio**power * _half_moment(m) for power, factor, m in products)
    fourth = 1.0 / 24.0 + 0.5 * polynomial / narrow
    exponential = 0.5 * fourth**2 * ratio**2 + skew * fourth * ratio / 6.0
    total = squares / narrow + growth * exponential * _half_moment(9)
    return np.asarray(_KERNEL / math.pi * total)


def _half_moment(m: int) -> float:
    """Return ∫₀^∞ u^m e^{−u²/2} du = 2^{(m−1)/2} Γ((m+1)/2)."""
    return float(2.0 ** (0.5 * (m - 1)) * math.gamma(0.5 * (m + 1)))


def _upper_gamma(x: Array) -> Array:
    """Return Γ(3/2, x)."""
    from scipy.special import gammaincc

    return np.asarray(math.gamma(1.5) * gammaincc(1.5, x))


def _gaussian_second(start: Array, end: float, decay: float) -> Array:
    """Return ∫ u² e^{−decay·u²} du from start to end, or more where decay ≤ 0."""
    from scipy.special import gammainc

    if decay > 0:
        front = 0.5 * math.gamma(1.5) / decay**1.5
        difference = gammainc(1.5, decay * end * end) - gammainc(1.5, decay * start * start)
        return np.asarray(front * difference)
    largest = math.exp(min(-decay * end * end, 700.0))
    return np.asarray(largest * (end**3 - start**3) / 3.0)
