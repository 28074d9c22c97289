"""Sums of many losses of few values each: all that count, with their probabilities."""

import math

import numpy as np
import pytest
from catalogue import ALL

from symdp import compose
from symdp.numeric.elementary import log_sum
from symdp.numeric.sums import atoms_of
from symdp.prove.enclosure import enclose_delta

# Losses whose sums are all different.
LOSSES = np.asarray([-1.0, math.sqrt(2.0) - 1.0, math.e - 2.0, math.pi])
SHARES = {
    "alike": (0.3, 0.25, 0.25, 0.2),
    "rare": (0.9, 0.09, 0.01, 1e-9),
    "three": (0.5, 0.3, 0.2),
    "infinite": (0.5, 0.3, 0.1),  # a tenth escapes
}


def step_of(name):
    shares = np.asarray(SHARES[name])
    return LOSSES[: shares.size], np.log(shares)


RARE = {
    "response": (ALL["randomised response of 4"].mechanism("response")(e="4/5"), 1000),
    "noise": (ALL["discrete laplace, sensitivity 3"].mechanism("noise")(b=2), 300),
}


@pytest.mark.slow
@pytest.mark.parametrize("deviations", [0.5, 2.0])
@pytest.mark.parametrize("name", RARE)
def test_a_thousand_sampled_steps_agree_with_certified_values(name, deviations):
    """Their characteristic function recurs too often for any line."""
    step, count = RARE[name][0].subsample("poisson", "1/100"), RARE[name][1]
    composition = compose(step, count)
    law = composition.law("remove")
    mean, variance = (float(v) for v in law.cumulants(0.0, 2))
    epsilon = round(mean + deviations * math.sqrt(variance), 6)
    found = composition.delta(epsilon, direction="remove")
    proved = enclose_delta([(step.pair("remove"), count)], epsilon, 11)
    assert found.log_lower <= float(proved.log().upper())
    assert float(proved.log().lower()) <= found.log_upper
    assert found.log_upper - found.log_lower < 1e-7


def test_atoms_at_one_loss_are_one_atom():
    """Two of four answers tell nothing."""
    step = ALL["randomised response of 4"].mechanism("response")(e="4/5")
    part = compose(step, 10).law("remove").parts[0][0]
    loss, log_weight = atoms_of(part, 0.0)
    assert loss.size == 3
    assert abs(log_sum(log_weight)) < 1e-15
