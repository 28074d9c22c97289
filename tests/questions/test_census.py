"""A census-like job in one file, against a contour integral made of sums over whole numbers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import symdp

FILE = Path(__file__).parents[2] / "examples" / "census.toml"
QUERIES = [(339 - 5 * i, 42 - i, 2 if i < 32 else 1) for i in range(33)]  # σ² = p/q, and how many


def transform(z):
    """K(z) of all steps: log Σ P^{1+z} Q^{−z} from the masses, two steps for each query."""
    total = np.zeros_like(z)
    x = np.arange(-400, 401)
    for p, q, queries in QUERIES:
        variance = p / q
        mass = np.exp(-(x**2) / (2 * variance))
        mass /= mass.sum()
        loss = (2 * x + 1) / (2 * variance)  # of the outcome x + 1 under P, x + 1 under Q
        own = np.exp(np.outer(z, loss)) @ mass
        total += 2 * queries * np.log(own)
    return total


def delta(epsilon):
    """δ(ε) by the trapezoidal rule on a line near the saddle point."""
    tilt, step = 1.2 * epsilon / 25, 0.02
    z = tilt + 1j * step * np.arange(0, 400)
    # Counts are whole, so that e^K has no branches.
    kernel = np.exp(transform(z) - epsilon * z) / (z * (1 + z))
    return step / math.pi * (kernel.real.sum() - kernel.real[0] / 2)


@pytest.mark.slow
def test_the_file_is_answered_as_the_contour_says():
    steps = symdp.load_composition(FILE)
    assert steps.n == 130
    found = steps.epsilon(1e-10).epsilon
    assert delta(found) == pytest.approx(1e-10, rel=1e-8)
    # What concentrated privacy alone gives: ρ = Σ 1/σ² of queries that move two cells.
    rho = sum(q / p * queries for p, q, queries in QUERIES)
    known = symdp.compose(symdp.mechanisms.zcdp(rho=rho)).epsilon(1e-10).epsilon
    assert rho == pytest.approx(6.332910331466519)
    assert 1.03 < known / found < 1.05
