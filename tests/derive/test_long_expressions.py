"""The limit of a loss at an end where the two laws are one law moved: seen before it is proved."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symdp


@pytest.mark.slow
def test_a_sampled_sum_of_two_hyperbolic_secants_is_not_expanded() -> None:
    """Its loss is no difference of moved logarithms, and to expand that takes minutes."""
    x = sp.Symbol("x", real=True)
    density = 1 / sp.cosh(x) ** 3 + 1 / (3 * sp.cosh(2 * (x - 3)))
    noise = symdp.Mechanism.additive(
        density, x, sp.Rational(1, 2), (-sp.oo, sp.oo), shift="exactly", normalize=True
    )
    found = symdp.compose(noise.subsample("poisson", "1/10"), 1).delta(0.1, direction="remove")
    grid = np.linspace(-25.0, 25.0, 1_000_001)
    up, down, q = (
        1 / np.cosh(y) ** 3 + 1 / (3 * np.cosh(2 * (y - 3))) for y in (grid - 0.5, grid + 0.5, grid)
    )
    truths = []
    for moved in (up, down):
        gain = np.maximum(0.9 * q + 0.1 * moved - np.exp(0.1) * q, 0.0)
        truths.append(float(np.trapezoid(gain, grid) / np.trapezoid(q, grid)))
    # Sampled noise that is not symmetric has another δ for each sign: the larger one answers.
    assert found.delta == pytest.approx(max(truths), rel=1e-8)


@pytest.mark.slow
def test_a_wave_of_the_logarithm_is_seen_and_not_cut_at_each_of_its_turns() -> None:
    """Its terms turn 170 times: between any two a search for zeros took a second."""
    x = sp.Symbol("x", real=True)
    density = sp.exp(-2 * sp.sqrt(1 + x**2)) * (3 + sp.sin(5 * sp.log(1 + x**2)))
    noise = symdp.Mechanism.additive(
        density, x, sp.Rational(4, 5), (-sp.oo, sp.oo), shift="exactly", normalize=True
    )
    found = symdp.compose(noise, 1).delta(0.1, direction="remove")
    grid = np.linspace(-25.0, 25.0, 4_000_001)
    p, q = (
        np.exp(-2 * np.sqrt(1 + y**2)) * (3 + np.sin(5 * np.log1p(y**2)))
        for y in (grid - 0.8, grid)
    )
    truth = float(np.trapezoid(np.maximum(p - np.exp(0.1) * q, 0.0), grid) / np.trapezoid(q, grid))
    assert found.delta == pytest.approx(truth, rel=1e-8)
