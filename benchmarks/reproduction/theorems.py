"""What [FA] proves of its error for the Poisson-sampled Gaussian mechanism, remove.

The loss of one step is log(1 − q + q e^{(2t−1)/(2σ²)}); α(λ) = K(λ) is its log moment, and the sum
of k steps is beyond L with probability at most e^{kα(λ) − λL} for every λ > 0.
"""

from __future__ import annotations

import math

import numpy as np

from symdp.errors import InputError

_WIDTH = 40.0  # deviations of the noise: what lies beyond is below e^−800
_PLACES = 1 << 14  # of the trapezoidal rule, whose error falls faster than any power
_TERMS = 200  # of a series that falls geometrically or diverges
_VALUES = 1 << 16  # of the loss, where the largest curvature is looked for


def log_moment(rate: float, sigma: float, tilt: float) -> float:
    """Return α(λ) = log E e^{λℓ} of one step, by the trapezoidal rule [FA (7.2)]."""
    _check(rate, sigma, largest=1.0, theorem="α(λ)")
    if not tilt > 0:
        raise InputError(f"α(λ): λ = {tilt:g} must be positive")
    t = np.linspace(-_WIDTH * sigma, tilt + 1.0 + _WIDTH * sigma, _PLACES)
    loss = np.logaddexp(math.log1p(-rate), math.log(rate) + (2.0 * t - 1.0) / (2.0 * sigma**2))
    growth, exponent = (1.0 + tilt) * loss, -0.5 * (t / sigma) ** 2
    front = (t[1] - t[0]) / (sigma * math.sqrt(2.0 * math.pi))
    top = float((growth + exponent).max())
    if top < 1.0:  # M(λ) − 1, which may be small
        return math.log1p(front * float(np.exp(exponent) @ np.expm1(growth)))
    return top + math.log(front * float(np.exp(growth + exponent - top).sum()))


def chernoff_tail(rate: float, sigma: float, steps: int, reach: float, tilt: float = 0.0) -> float:
    """Return e^{kα(λ) − λL} ≥ P(S_k ≥ L) [FA 7.2], at λ = L/2 if no tilt is given."""
    tilt = tilt or 0.5 * reach
    return _exp(steps * log_moment(rate, sigma, tilt) - tilt * reach)


def periodisation_bound(rate: float, sigma: float, steps: int, reach: float) -> float:
    """Return the bound on what truncation and periodisation change in an integral [FA Lemma 7].

    L k σ e^{−(σ²L + C)²/(2σ²)} + e^{α(L/2) − L²/2} + 2 Σₙ e^{kα(nL) − 2(nL)²} with
    C = σ² log(1/(2q)) − ½. As α(λ) grows like λ²/(2σ²), the sum diverges where k ≥ 4σ²: the printed
    bound is infinite there.
    """
    _check(rate, sigma, largest=0.5, theorem="Lemma 7")
    if not reach >= 1:
        raise InputError(f"Lemma 7: L = {reach:g} must be at least 1")
    first = reach * steps * sigma * math.exp(-_depth(rate, sigma, reach))
    second = _exp(log_moment(rate, sigma, 0.5 * reach) - 0.5 * reach**2)
    if steps >= 4.0 * sigma**2:
        return math.inf
    third = 0.0
    for n in range(1, _TERMS):
        term = _exp(steps * log_moment(rate, sigma, n * reach) - 2.0 * (n * reach) ** 2)
        third += term
        if term <= 1e-17 * third:
            return first + second + 2.0 * third
    return math.inf


def tail_bound(rate: float, sigma: float, steps: int, reach: float) -> float:
    """Return (1 + 2q²(L/2 + 1)(L/2)/σ²)^k e^{−L²/2} ≥ P(S_k ≥ L) [FA Thm 8]."""
    _check(rate, sigma, largest=0.2, theorem="Theorem 8")
    if not sigma >= 4:
        raise InputError(f"Theorem 8: σ = {sigma:g} must be at least 4")
    tilt = 0.5 * reach
    if not tilt > 1:
        raise InputError(f"Theorem 8: L/2 = {tilt:g} must be above 1")
    c = math.log1p(1.0 / (rate * (tilt - 1.0)))
    half = 0.5 * sigma**2 * c
    first = half - 2.0 * math.log(sigma)
    if not tilt <= first:
        raise InputError(f"Theorem 8: L/2 = {tilt:g} must be at most σ²c/2 − 2 log σ = {first:.4g}")
    below = c + math.log(rate * tilt) + 0.5 / sigma**2
    second = (half - math.log(5.0) - 2.0 * math.log(sigma)) / below
    if not (below > 0 and tilt <= second):
        raise InputError(
            f"Theorem 8: L/2 = {tilt:g} must be at most (σ²c/2 − log 5 − 2 log σ)/(c + log(qL/2) + "
            f"1/(2σ²)) = {second:.4g}"
        )
    growth = math.log1p(2.0 * rate**2 * (tilt + 1.0) * tilt / sigma**2)
    return _exp(steps * growth - 0.5 * reach**2)


def log_moment_estimate(rate: float, sigma: float, tilt: float) -> float:
    """Return q²λ(λ + 1)/((1 − q)σ²), which is α(λ) up to terms of order (qλ/σ)³ [FA Lemma 9]."""
    _check(rate, sigma, largest=1.0, theorem="Lemma 9")
    if not sigma >= 1:
        raise InputError(f"Lemma 9: σ = {sigma:g} must be at least 1")
    if not rate < 1.0 / (16.0 * sigma):
        raise InputError(f"Lemma 9: q = {rate:g} must be below 1/(16σ) = {1 / (16 * sigma):.4g}")
    most = sigma**2 * math.log(1.0 / (rate * sigma))
    if not 0 < tilt <= most:
        raise InputError(f"Lemma 9: λ = {tilt:g} must be positive and at most {most:.4g}")
    return rate**2 * tilt * (tilt + 1.0) / ((1.0 - rate) * sigma**2)


def tail_estimate(rate: float, sigma: float, steps: int, reach: float) -> float:
    """Return the estimate exp(k q²(L/2 + 1)(L/2)/((1 − q)σ²) − L²/2) of the tail [FA (7.3)].

    It is Chernoff's bound at λ = L/2 with Lemma 9 in place of α(λ), no bound: the terms of third
    order are left out, and it may lie below the truth.
    """
    return _exp(steps * log_moment_estimate(rate, sigma, 0.5 * reach) - 0.5 * reach**2)


def discretisation_bound(rate: float, sigma: float, reach: float, points: int) -> float:
    """Return Δx σ e^{−(σ²L + C)²/(2σ²)} + Δx² · 2L · max|ω″|/12 on the sum of one step's density.

    It bounds |∫ω − Δx Σ ω(−L + lΔx)| over [−L, L) [FA 7.3]. The printed bound lacks the factor 2L,
    the length that the trapezoidal rule's error is proportional to. The largest |ω″| is looked for
    at many values of the loss.
    """
    _check(rate, sigma, largest=0.5, theorem="discretisation")
    if not (reach >= 1 and points >= 2):
        raise InputError("discretisation: L must be at least 1 and n at least 2")
    spacing = 2.0 * reach / points
    # ω(s) = f(x) dx/ds at x = σ² log((e^s − 1 + q)/q) + ½; by x, which resolves its peak
    x = np.linspace(-_WIDTH * sigma, 1.0 + _WIDTH * sigma, _VALUES)
    s = np.logaddexp(math.log1p(-rate), math.log(rate) + (2.0 * x - 1.0) / (2.0 * sigma**2))
    gaussians = np.exp(-0.5 * (x / sigma) ** 2) * (1.0 - rate)
    gaussians += np.exp(-0.5 * ((x - 1.0) / sigma) ** 2) * rate
    slope = np.exp(math.log(rate) + (2.0 * x - 1.0) / (2.0 * sigma**2) - s) / sigma**2
    density = gaussians / (sigma * math.sqrt(2.0 * math.pi)) / slope
    first = np.gradient(density, x) / slope
    second = np.gradient(first, x) / slope
    inside = np.abs(s) <= reach
    largest = float(np.abs(second[inside]).max())
    end = spacing * sigma * math.exp(-_depth(rate, sigma, reach))
    return end + spacing**2 / 12.0 * 2.0 * reach * largest


def _depth(rate: float, sigma: float, reach: float) -> float:
    """Return (σ²L + C)²/(2σ²), C = σ² log(1/(2q)) − ½."""
    c = sigma**2 * math.log(1.0 / (2.0 * rate)) - 0.5
    return (sigma**2 * reach + c) ** 2 / (2.0 * sigma**2)


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700.0 else math.inf


def _check(rate: float, sigma: float, *, largest: float, theorem: str) -> None:
    closed = theorem == "Theorem 8"
    if not (rate > 0 and (rate <= largest if closed else rate < largest)):
        rule = "above 0 and at most" if closed else "above 0 and below"
        raise InputError(f"{theorem}: q = {rate:g} must be {rule} {largest:g}")
    if not 0 < sigma < math.inf:
        raise InputError(f"{theorem}: σ = {sigma:g} must be positive and finite")
