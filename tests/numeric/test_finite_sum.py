"""Sums of many losses of few values each: all that count, with their probabilities."""

import math

import numpy as np
import pytest
import sympy as sp
from catalogue import ALL

from symdp import Mechanism, compose
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


@pytest.mark.slow
def test_below_the_largest_loss_the_bulk_is_summed_where_most_is_infinite():
    """Outputs of one law alone have probability 0.64: a list for the far tilt lacked what 1 − δ is.

    The interval was [0.59, 0.84].
    """
    k = sp.Symbol("k", integer=True)
    one, other = sp.Abs(k + 2) < 2, k > -1
    bump = sp.Piecewise((1 - sp.Abs(k + 2) / 2, one), (0, True))
    tail = sp.Piecewise(((k + 1) ** 2 * sp.exp(-k - 1), other), (0, True))
    density = (1 + sp.sin(3 * k) / 5) * (2 * bump + sp.Rational(9, 5) * tail)
    noise = Mechanism.additive(density, k, 2, "integers", shift="exactly", normalize=True)
    at = np.arange(-8.0, 400.0)
    mass = 2 * np.maximum(1 - np.abs(at + 2) / 2, 0.0)
    mass += np.where(at > -1, 1.8 * (at + 1) ** 2 * np.exp(-np.maximum(at, -1.0) - 1), 0.0)
    mass *= 1 + np.sin(3 * at) / 5
    mass /= mass.sum()
    p, q = mass, np.append(np.zeros(2), mass[:-2])
    outer = [np.multiply.outer(own, own) for own in (p, q)]
    truth = max(
        float(np.maximum(a - math.exp(0.247) * b, 0.0).sum()) for a, b in (outer, outer[::-1])
    )
    found = compose(noise, 2).delta("0.247")
    assert found.kind == "exact"
    assert found.delta == pytest.approx(truth, rel=1e-12)
    assert found.upper - found.lower < 1e-12


def test_atoms_at_one_loss_are_one_atom():
    """Two of four answers tell nothing."""
    step = ALL["randomised response of 4"].mechanism("response")(e="4/5")
    part = compose(step, 10).law("remove").parts[0][0]
    loss, log_weight = atoms_of(part, 0.0)
    assert loss.size == 3
    assert abs(log_sum(log_weight)) < 1e-15
