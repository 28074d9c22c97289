"""Two steps of waves under power tails, whose far turns are summed by Gauss's rules of the losses.

The truth is a sum over two million places: of each the other step's profile by cumulated masses.
"""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symdp
from symdp.numeric.beyond.waves import rules_of_losses

x = sp.Symbol("x", real=True)
WAVES = {  # the density, as it is in NumPy, what it is moved by, and an ε
    "even": (
        (2 + sp.cos(x)) / (1 + x**2) ** 2,
        lambda u: (2 + np.cos(u)) / (1 + u * u) ** 2,
        sp.S.One,
        0.7,
    ),
    "skewed": (
        (3 + sp.cos(2 * x) + sp.sin(x)) / (1 + x**2) ** sp.Rational(5, 2),
        lambda u: (3 + np.cos(2 * u) + np.sin(u)) / (1 + u * u) ** 2.5,
        sp.S.Half,
        1.3,
    ),
}


def masses(same, moved):
    half = np.concatenate(
        [np.arange(0, 60, 0.01), np.arange(60, 600, 0.05), np.arange(600, 3e4, 0.5)]
    )
    return on_panels(same, moved, np.unique(np.concatenate([-half, half])))


def on_panels(same, moved, edges):
    nodes, weights = np.polynomial.legendre.leggauss(16)
    width = np.diff(edges)[:, None] / 2
    middle = edges[:-1, None] + width
    places = (middle + width * nodes).ravel()
    weight = (width * weights).ravel()
    q = same(places) * weight
    p = same(places - moved) * weight
    return p / q.sum(), q / q.sum()


def two_steps(p, q, epsilon):
    loss = np.log(p / q)
    order = np.argsort(loss)
    loss, p, q = loss[order], p[order], q[order]
    above_p = np.append(np.cumsum(p[::-1])[::-1], 0.0)
    above_q = np.append(np.cumsum(q[::-1])[::-1], 0.0)
    first = np.searchsorted(loss, epsilon - loss)
    return float(p @ above_p[first] - np.exp(epsilon) * (q @ above_q[first]))


@pytest.mark.slow
@pytest.mark.parametrize("name", WAVES)
def test_two_steps_of_far_waves(name):
    density, same, moved, epsilon = WAVES[name]
    noise = symdp.Mechanism.additive(density, x, moved, normalize=True).shifted("exactly")
    answer = symdp.compose(noise, 2).delta(epsilon, direction="remove")
    assert answer.route == "two_steps"
    assert answer.upper - answer.lower < 1e-11 * answer.delta
    truth = two_steps(*masses(same, float(moved)), epsilon)
    assert answer.delta == pytest.approx(truth, rel=3e-8)  # what kinks cost such a sum


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_two_sampled_steps_of_waves_under_a_root(direction):
    """e^{−3√|x|}(2 + cos x) moved by 3/10, a tenth of the records: none in 150 s before."""
    density = sp.exp(-3 * sp.sqrt(sp.Abs(x))) * (2 + sp.cos(x))
    noise = symdp.Mechanism.additive(density, x, sp.Rational(3, 10), normalize=True)
    sampled = noise.shifted("exactly").subsample("poisson", "1/10")
    answer = symdp.compose(sampled, 2).delta(0.124, direction=direction)

    def same(u):
        return np.exp(-3 * np.sqrt(abs(u))) * (2 + np.cos(u))

    near = 2.0 ** np.arange(-60, -7, 0.25)  # next to both kinks densities are roots
    half = np.concatenate([[0], near, np.arange(0.01, 3, 0.0025), np.arange(3, 300, 0.0125)])
    beside = half[half < 0.15]
    edges = np.unique(np.concatenate([-half, half, 0.3 + beside, 0.3 - beside]))
    p, q = on_panels(same, 0.3, edges)
    p = 0.9 * q + 0.1 * p
    laws = (p, q) if direction == "remove" else (q, p)
    assert answer.delta == pytest.approx(two_steps(*laws, 0.124), abs=3e-11)
    assert answer.upper - answer.lower < 1e-11 * answer.delta


def test_few_losses_have_the_same_sums():
    rng = np.random.default_rng(5)
    loss = rng.uniform(-0.4, 0.4, 20_000)
    weight = rng.uniform(0.0, 1e-9, loss.size)
    weight[::3] = 0.0
    few, of_few = rules_of_losses(loss, weight, 0.01)
    assert few.size < 1_000
    assert (of_few > 0.0).all()
    for function in (np.ones_like, np.exp, lambda u: np.exp(-7 * u), lambda u: np.cos(50 * u)):
        assert of_few @ function(few) == pytest.approx(weight @ function(loss), rel=1e-12)
