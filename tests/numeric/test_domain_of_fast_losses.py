"""The domain of a loss that grows faster than the logarithm of the distance to an end."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

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
