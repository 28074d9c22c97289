"""Noise on vectors of drawn densities, dimensions, rates and numbers of steps."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms

R = sp.Rational
r = sp.Symbol("r")
FORMS = [
    lambda s, d: sp.exp(-(r**2) / (2 * s**2)),
    lambda s, d: sp.exp(-sp.sqrt(1 + (r / s) ** 2)),
    lambda s, d: sp.exp(-r / s) + sp.exp(-((r / s) ** 2)),
    lambda s, d: 1 / sp.cosh(r / s),
    lambda s, d: (1 + (r / s) ** 2) ** (-R(d + 4, 2)),
    lambda s, d: sp.exp(-((r / s) ** R(5, 4))),
]


def ratios(density, dimension):
    """Nodes of the law without the record: likelihood ratios, and their weights.

    Lengths evenly in their logarithm, angles from the shift by Gauss's rule.
    """
    g = sp.lambdify(r, density)
    size = np.exp(np.linspace(-9.0, 6.0, 500))
    node, weight = np.polynomial.legendre.leggauss(160)
    angle = 0.5 * math.pi * (1.0 + node)
    share = weight * np.sin(angle) ** (dimension - 2)
    with np.errstate(all="ignore"):
        mass = size**dimension * g(size)
        seen = mass > 1e-22 * mass.max()
        size, mass = size[seen], mass[seen]
        other = np.sqrt(size[:, None] ** 2 - 2.0 * size[:, None] * np.cos(angle) + 1.0)
        ratio = g(other) / g(size)[:, None]
    law = mass[:, None] * share
    return ratio.ravel(), (law / law.sum()).ravel()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_drawn_noise_agrees_with_a_line_of_plain_nodes(seed):
    """The tolerance is what lies beyond the end of that line, relative to a δ of a tenth or so."""
    random = np.random.default_rng(100 + seed)
    dimension, scale = int(random.integers(3, 15)), R(int(random.integers(8, 40)), 10)
    count, rate = int(random.choice([2, 5, 30, 200])), [R(1), R(1, 3), R(1, 20)][seed % 3]
    density = FORMS[seed % len(FORMS)](scale, dimension)
    ratio, weight = ratios(density, dimension)
    loss = np.log1p(float(rate) * (ratio - 1.0))
    with_record = weight * np.exp(loss)
    mean = float(with_record @ loss)
    deviation = math.sqrt(count * float(with_record @ (loss - mean) ** 2))
    epsilon = round(count * mean + deviation, 3)
    # Along Re z = t up to where the power of |M| is negligible: so far the nodes resolve it.
    tilt, step, total = 0.7 / deviation, 0.15 / deviation, 0.0
    for k in range(1000):
        z = complex(tilt, k * step)
        power = complex(with_record @ np.exp(z * loss)) ** count
        term = (power * np.exp(-epsilon * z) / (z * (1 + z))).real
        total += 0.5 * term if k == 0 else term
        if abs(power) < 1e-9:
            break
    truth = total * step / math.pi
    made = Mechanism.radial(density, r, dimension)
    made = made if rate == 1 else made.subsample("poisson", rate)
    found = compose(made, count).delta(epsilon, direction="remove")
    assert found.kind == "exact"
    assert abs(found.delta - truth) <= 1e-6 * truth


@pytest.mark.slow_cases("10")
@pytest.mark.parametrize("epsilon", [10, 45])
def test_little_spherical_laplace_noise(epsilon):
    """Of s = 1/50 and d = 3 the law of r₂ − r₁ is e^{aη} times a parabola, a = 25."""
    with mpmath.workdps(30):
        a, cut = mpmath.mpf(25), mpmath.mpf(epsilon) / 50

        def law(x):
            return mpmath.exp(a * x) * (1 / a + 2 / a**2 + 2 / a**3 - x * x / a)

        gain = mpmath.quad(lambda x: law(x) * -mpmath.expm1(epsilon - 50 * x), [cut, 0.95, 1])
        truth = float(gain / mpmath.quad(law, [-1, 0, 0.8, 0.95, 1]))
    pair = mechanisms.l2_laplace(s="1/50", d=3)
    for made in (pair, Mechanism.radial(sp.exp(-50 * r), r, 3)):
        found = compose(made, 1).delta(epsilon)
        assert found.lower <= truth <= found.upper
        assert abs(found.delta / truth - 1) < 1e-12
