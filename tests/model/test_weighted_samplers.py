"""Samplers with weights are refused with the reason and the remedy, however they are called."""

from __future__ import annotations

import pytest
from refusals import refused

from symdp import compose, mechanisms


@pytest.mark.parametrize("name", ["weighted", "weighted_random", "weighted_sampling"])
def test_weights_have_no_rate_of_their_own(name, shell):
    with refused("depends on the weights of all others"):
        mechanisms.gaussian(sigma=1).subsample(name, "1/100")
    ran = shell(
        f"epsilon gaussian sigma=1 --sampling {name.replace('_', '-')} --rate 1/9 --delta 0.1"
    )
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "ask poisson at the largest" in ran.err


@pytest.mark.slow
def test_the_largest_rate_of_coins_is_the_worst():
    """What the remedy rests on: δ(ε) of Poisson samples rises with the rate, at every ε."""
    steps = [
        compose(mechanisms.laplace(b=2).subsample("poisson", rate), 20)
        for rate in ("1/200", "1/50", "1/10", "1/2")
    ]
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        for side in ("remove", "add"):
            found = [one.delta(epsilon, direction=side).log_delta for one in steps]
            assert found == sorted(found)
