"""Privacy Buckets and the untilted Berry-Esseen interval: they hold the truth, and their rates."""

from __future__ import annotations

import math

import mpmath as mp
import pytest

from symdp import compose, mechanisms
from symdp.methods.prv import Buckets
from symdp.methods.spa_bounds import normal_payoff

SAMPLED = mechanisms.gaussian(sigma=2).subsample("poisson", "1/100")
CASES = [
    (SAMPLED, 1000, (0.1, 0.5, 2.0)),
    (mechanisms.laplace(b=2), 5, (-0.5, 0.3, 2.0)),
    (mechanisms.randomized_response(epsilon_0="1/4"), 50, (0.5, 3.0)),
    (mechanisms.discrete_laplace(b=3), 20, (1.0, 4.0)),
]


@pytest.mark.slow_cases("gaussian-buckets", "laplace-buckets", "gaussian-berry-esseen")
@pytest.mark.parametrize("method", ["buckets", "berry-esseen"])
@pytest.mark.parametrize(("mechanism", "count", "epsilons"), CASES, ids=[c[0].name for c in CASES])
def test_the_truth_lies_inside(mechanism, count, epsilons, method):
    steps = compose(mechanism, count)
    for epsilon in epsilons:
        few = {"points": 1 << 16} if method == "buckets" else {}
        exact, found = steps.delta(epsilon), steps.delta(epsilon, method=method, **few)
        assert found.kind in {"bound", "exact"}
        assert found.lower * (1 - 1e-12) <= exact.delta <= found.upper * (1 + 1e-12)


@pytest.mark.slow
def test_buckets_move_by_n_where_prv_moves_by_the_root_of_n():
    law = compose(SAMPLED, 10_000).law("remove")
    answer = Buckets(points=1 << 18).log_delta(law, 1.0)
    prv = compose(SAMPLED, 10_000).delta(1.0, method="prv", points=1 << 18, direction="remove")
    width = math.exp(answer.log_upper) - math.exp(answer.log_lower)
    assert 3 * (prv.upper - prv.lower) < width < 100 * (prv.upper - prv.lower)
    finer = Buckets(points=1 << 20).log_delta(law, 1.0)
    fine = math.exp(finer.log_upper) - math.exp(finer.log_lower)
    assert width / fine == pytest.approx(4.0, rel=0.15)


def test_the_payoff_of_a_normal_loss():
    for gap, variance in ((0.5, 1.0), (-3.0, 0.25), (700.0, 1400.0), (-20.0, 1.0)):
        with mp.workdps(40):
            g, v = mp.mpf(gap), mp.mpf(variance)
            root = mp.sqrt(v)
            exact = mp.ncdf(g / root) - mp.exp(v / 2 - g) * mp.ncdf((g - v) / root)
        assert normal_payoff(gap, variance) == pytest.approx(float(exact), rel=1e-9, abs=1e-16)
