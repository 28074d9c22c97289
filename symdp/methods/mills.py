"""Gaussian half-line integrals: moments of Mills' ratio and their differences, in floating point.

M_j(a) = ∫₀^∞ w^j e^{−aw − w²/2} dw; M₀ is Mills' ratio (1 − Φ(a))/φ(a) = √(π/2) erfcx(a/√2). They
obey M_{j+1} = j M_{j−1} − a M_j, a recursion that is stable upwards for a < 0 (all its terms are
positive) and downwards for a ≥ 0, where it starts from the ratio of two high moments: their
integrand vanishes to high order at both ends, so that the trapezoidal rule gives it to rounding.
"""

from __future__ import annotations

import math

import numpy as np

_NEARBY = 0.1  # below this relative distance a difference is summed as a Taylor series
_TAYLOR_TERMS = 20  # 0.1^20/20! and its like are far below rounding
_LEAST_TOP = 24  # moments this high vanish fast enough at zero for the trapezoidal rule
_WIDTHS = np.linspace(-14.0, 10.0, 97)


def mills_moments(a: float, count: int) -> list[float]:
    """Return M₀(a), …, M_{count−1}(a), each times e^{−a²/2} where a < 0.

    The factor keeps them in range: for a < 0 they grow like e^{a²/2}.
    """
    if a < 0:
        front = math.exp(-0.5 * a * a)
        moments = [math.sqrt(0.5 * math.pi) * math.erfc(a / math.sqrt(2.0))]
        moments.append(front - a * moments[0])
        for j in range(1, count - 1):
            moments.append(j * moments[j - 1] - a * moments[j])
        return moments[:count]
    top = max(count, _LEAST_TOP)
    ratios = [_moment_ratio(a, top)]
    for j in range(top - 1, 0, -1):
        ratios.append(j / (a + ratios[-1]))
    ratios.reverse()
    moments = [1.0 / (a + ratios[0])]
    for ratio in ratios[: count - 1]:
        moments.append(moments[-1] * ratio)
    return moments


def _moment_ratio(a: float, j: int) -> float:
    """Return M_j(a)/M_{j−1}(a) for a ≥ 0 by the trapezoidal rule in log w around the mode."""
    mode = 2.0 * j / (a + math.sqrt(a * a + 4.0 * j))
    y = _WIDTHS / math.sqrt(j + mode * mode)
    growth = np.expm1(y)
    # j·y − a·mode·(e^y − 1) − mode²(e^{2y} − 1)/2 with j = a·mode + mode² at the mode
    weight = np.exp(j * (y - growth) - 0.5 * (mode * growth) ** 2)
    return float(mode * (1.0 + (weight @ growth) / weight.sum()))


def mills_differences(a: float, width: float, count: int) -> list[float]:
    """Return M_j(a) − M_j(a + width) for j below `count`, each times e^{−a²/2} where a < 0.

    Every difference is positive. Close arguments use M_j(a + d) = Σ_i (−d)^i M_{j+i}(a)/i!, so that
    nothing cancels.
    """
    if width <= _NEARBY * max(1.0, abs(a)) and width * max(1.0, -a) <= _NEARBY * max(1.0, a):
        terms = _TAYLOR_TERMS + count
        moments = mills_moments(a, count + terms)
        factor, factors = 1.0, []
        for i in range(1, terms + 1):
            factor *= -width / i
            factors.append(-factor)
        return [
            math.fsum(factor * moments[j + i] for i, factor in enumerate(factors, start=1))
            for j in range(count)
        ]
    near, far = mills_moments(a, count), mills_moments(a + width, count)
    if a < 0:
        step = min(width, -a)  # the factors differ up to a + width, or to zero if that is nearer
        shift = math.exp(step * (a + 0.5 * step))
        return [x - shift * y for x, y in zip(near, far, strict=True)]
    return [x - y for x, y in zip(near, far, strict=True)]
