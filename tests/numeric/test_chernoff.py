"""Chernoff's bounds, against δ itself."""

from __future__ import annotations

import pytest

from symdp import compose, mechanisms
from symdp.numeric.saddle_point import log_bound_below, log_moments_bound, log_usual_bound

STEPS = {
    "normal": (mechanisms.gaussian(sigma=2).subsample("poisson", "1/9"), 40),
    "lopsided": (mechanisms.gumbel(b=3), 12),
    "integers": (mechanisms.discrete_gaussian(sigma=2), 4),
    "infinite": (mechanisms.approximate_dp(epsilon_0="1/5", delta_0="1/900"), 6),
    "lists": (mechanisms.randomized_response(epsilon_0="1/2"), 9),
}


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", STEPS)
def test_tilts_at_hand_bound_delta_as_the_best_one_does(name, direction):
    steps = compose(*STEPS[name])
    law = steps.law(direction)
    bounds = []
    for epsilon in (0.1, 0.7, 1.9, 3.3):
        bound = log_usual_bound(law, epsilon)
        assert bound >= steps.delta(epsilon, direction=direction).log_delta
        assert bound >= log_moments_bound(law, epsilon) - 1e-9
        bounds.append(bound)
    assert min(bounds) < -1.0


def test_a_bound_of_few_tilts_ends_at_the_largest_loss():
    """Where ε is the largest loss the best tilt is infinite, and δ is 0."""
    law = compose(mechanisms.laplace(b=10), 10).law("remove")
    assert -50.0 < log_bound_below(law, 1.0, -400.0) < 0.0


@pytest.mark.parametrize("wanted", [-5.0, -60.0])
def test_a_bound_of_few_tilts_is_above_delta(wanted):
    for noise, epsilon in ((mechanisms.gaussian(sigma=2), 5.0), (mechanisms.logistic(s=2), 2.0)):
        steps = compose(noise, 4)
        log_delta = steps.delta(epsilon, direction="remove").log_delta
        assert log_delta <= log_bound_below(steps.law("remove"), epsilon, wanted) <= 0.0
