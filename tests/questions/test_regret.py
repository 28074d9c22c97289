"""μ with its regret, against the profiles on a finer grid than the search had."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from scipy.special import ndtr

from symdp import compose, mechanisms


def gaussian(mu, epsilon):
    return ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * ndtr(-epsilon / mu - mu / 2)


@pytest.mark.quick_cases("sampled-0.01")
@pytest.mark.parametrize("regret", [1e-2, 1e-5])
@pytest.mark.parametrize("name", ["sampled", "box"])
def test_no_epsilon_has_a_larger_regret(name, regret):
    steps = {
        "sampled": compose(mechanisms.gaussian(sigma=1).subsample("poisson", "1/50"), 500),
        "box": compose(mechanisms.randomized_response(epsilon_0="1/2"), 6),
    }[name]
    found = steps.gaussian_privacy(regret=regret)
    grid = np.linspace(0, 1.2 * found.epsilon, 701)
    gap = steps.delta(grid).delta - gaussian(found.mu, grid)
    assert gap.max() <= regret
    smaller = steps.delta(grid).delta - gaussian(0.97 * found.mu, grid)
    assert smaller.max() > regret


def test_a_gaussian_is_next_to_itself():
    steps = compose(mechanisms.gaussian(sigma=4), 16)
    assert steps.gaussian_privacy(regret=1e-7).mu == pytest.approx(1, rel=2e-3)
    assert steps.gaussian_privacy(regret=0.5).mu == 0.0
    with refused("strictly between 0 and 1"):
        steps.gaussian_privacy(regret=0)


@pytest.mark.slow
def test_little_noise_is_answered_though_its_losses_exceed_all_exponents():
    """Three normal steps are the Gaussian curve of μ = √3/σ itself: no smaller one has the regret.

    δ_μ(ε) falls by less than 0.4 Δμ where it is steepest: a μ so much smaller leaves more than Δ.
    """
    found = compose(mechanisms.gaussian(sigma="1/50"), 3).gaussian_privacy(regret=1e-2)
    mu = np.sqrt(3) * 50
    assert mu - 0.1 < found.mu < 1.1 * mu
    assert found.epsilon > 710
