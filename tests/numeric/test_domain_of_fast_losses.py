"""The domain of a loss that grows faster than the logarithm of the distance to an end."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from scipy import optimize

import symdp


@pytest.mark.slow
def test_lognormal_noise_has_no_moments_above_and_is_answered() -> None:
    """Next to 1/2 the loss is log²(x − 1/2)/2: the integral of its exponential has no tilt at all.

    The truth substitutes x = e^u, and adds up trapezoids on either side of where the loss is ε.
    """
    x = sp.Symbol("x", positive=True)
    density = sp.exp(-(sp.log(x) ** 2) / 2) / (x * sp.sqrt(2 * sp.pi))
    noise = symdp.Mechanism.additive(density, x, sp.Rational(1, 2), (0, sp.oo), shift="exactly")
    assert symdp.compose(noise, 1).law("add").domain == (-math.inf, 0.0)
    assert symdp.compose(noise, 1).law("remove").domain == (-1.0, math.inf)
    u = np.linspace(-9.0, 9.0, 4_000_001)
    y, p = np.exp(u), np.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    moved = np.log(np.where(y > 0.5, y - 0.5, 1.0))
    q = np.where(y > 0.5, np.exp(-moved * moved / 2 - moved + u) / math.sqrt(2 * math.pi), 0.0)
    truth = float(np.trapezoid(np.maximum(p - math.e * q, 0.0), u))
    found = symdp.compose(noise, 1).delta(1, direction="add").delta
    assert found == pytest.approx(truth, rel=1e-6)
    five = symdp.compose(noise, 5)
    mesh = five.delta(1, method="prv", direction="add", points=1 << 16)
    assert mesh.log_lower <= five.delta(1, direction="add").log_delta <= mesh.log_upper


def test_losses_beyond_doubles_are_no_error_of_what_is_seen() -> None:
    """Fréchet noise: next to its end the loss is −16/u², which e^{−16/u²} hides.

    δ of three steps next to the largest loss is a mean of that of two, and that of one a difference
    of distribution functions e^{−16/u²}, all by Gauss's rule in the root of the distance to an end.
    """
    x = sp.Symbol("x", positive=True)
    frechet = x**-3 * sp.exp(-16 / x**2)
    noise = symdp.Mechanism.additive(
        frechet, x, 1, support=(0, sp.oo), normalize=True, shift="exactly"
    )
    answer = symdp.compose(noise, 3).delta(1.0, direction="remove")
    assert answer.kind == "exact"
    assert answer.log_upper - answer.log_lower < 1e-9

    def log_density(u):
        return np.log(32.0) - 3.0 * np.log(u) - 16.0 / u**2

    def loss(u):
        return log_density(u - 1.0) - log_density(u)

    def below(u):
        return math.exp(-16.0 / u**2)

    peak = optimize.minimize_scalar(lambda u: -loss(u), bounds=(2, 60), method="bounded").x
    largest = loss(peak)

    def ends(least):
        return [
            optimize.brentq(lambda u: loss(u) - least, outer, peak, xtol=1e-14)
            for outer in (1.2, 1e4)
        ]

    def one(epsilon):
        if epsilon >= largest:
            return 0.0
        low, high = ends(epsilon)
        gap = below(high) - below(low)
        return below(high - 1.0) - below(low - 1.0) - math.exp(epsilon) * gap

    places, weights = np.polynomial.legendre.leggauss(24)
    shares = 0.5 * (places + 1.0)

    def one_more(before, epsilon, steps):
        total = 0.0
        for end in ends(epsilon - steps * largest):
            u = end + (peak - end) * shares**2
            masses = np.exp(log_density(u - 1.0)) * weights * shares * abs(peak - end)
            values = [before(epsilon - other) for other in loss(u)]
            total += float(masses @ values)
        return total

    true = one_more(lambda epsilon: one_more(one, epsilon, 1), 1.0, 2)
    assert answer.delta == pytest.approx(true, rel=1e-11)
