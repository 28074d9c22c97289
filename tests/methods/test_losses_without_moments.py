"""examples/dp_sgd_jl.toml, whose loss has no moments, against truths that know no density of it."""

from __future__ import annotations

from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from symdp import compose, load

JL = load(Path(__file__).parents[2] / "examples" / "dp_sgd_jl.toml")
PROJECTIONS = 4


def truth(sigma, steps, epsilon):
    """δ = 1 − E min(1, e^{ε−L}) on the line Re z = −1/2, where E e^{zL} = (E e^{−sV})^n.

    Given V = r/(σ²χ²_r) the loss is N(V/2, V), so that E e^{zL} = E e^{z(z+1)V/2}, and V is an
    inverse gamma variable: E e^{−sV} = 2 (sb)^{a/2} K_a(2√(sb))/Γ(a), a = r/2, b = r/(2σ²).
    """
    a = mp.mpf(PROJECTIONS) / 2
    b = a / mp.mpf(sigma) ** 2

    def moment(w):
        root = mp.sqrt((w * w + mp.mpf(1) / 4) / 2 * b)
        return (2 * root**a * mp.besselk(a, 2 * root) / mp.gamma(a)) ** steps

    end = mp.mpf(1)
    while moment(end) > mp.mpf(10) ** -22:
        end *= 1.5
    line = mp.quad(
        lambda w: mp.cos(w * epsilon) / (w * w + mp.mpf(1) / 4) * moment(w), mp.linspace(0, end, 40)
    )
    return 1 - mp.exp(mp.mpf(epsilon) / 2) / mp.pi * line


@pytest.mark.slow_cases("10-1000-10", "1-5-4", "1-1-1", "2-50-3")
@pytest.mark.parametrize(
    ("sigma", "steps", "epsilon"), [("1", 1, 1), ("1", 5, 4), ("2", 50, 3), ("10", 1000, 10)]
)
def test_the_interval_holds_the_truth_and_is_narrow(sigma, steps, epsilon):
    job = compose(JL(sigma=sigma), steps)
    exact = truth(sigma, steps, epsilon)
    assert job.law("remove").domain[1] == 0.0
    assert job.delta(epsilon, method="moments", direction="remove").delta == 1.0
    found = job.delta(epsilon, method="prv", direction="remove")
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower < 5e-3 * found.upper
    found = job.delta(epsilon, direction="remove")
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower < (5e-3 if steps == 5 else 1e-9) * found.upper


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "epsilon"), [(20, 0.5), (1000, 1.0)])
def test_sampled_steps_against_simulated_ones(steps, epsilon):
    """The projections are drawn, then whether the record takes part, then the noise."""
    rng = np.random.default_rng(7)
    rate, runs = 0.01, 20_000_000 // max(steps, 20)
    total = np.zeros(runs)
    for _ in range(steps):
        spread = PROJECTIONS / rng.chisquare(PROJECTIONS, runs)
        side = np.where(rng.random(runs) < rate, 0.5, -0.5)
        loss = side * spread + np.sqrt(spread) * rng.standard_normal(runs)
        total += np.log1p(rate * np.expm1(np.minimum(loss, 700.0)))
    payoff = -np.expm1(np.minimum(epsilon - total, 0.0))
    error = 5 * payoff.std() / np.sqrt(runs)
    assert 0 < error < 0.1 * payoff.mean()
    job = compose(JL(sigma=1).subsample("poisson", rate), steps)
    found = job.delta(epsilon, method="prv", direction="remove")
    assert found.lower - error < payoff.mean() < found.upper + error
    assert found.upper - found.lower < 0.02 * found.upper
