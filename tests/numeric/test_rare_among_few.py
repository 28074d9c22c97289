"""Few sampled steps with rare large losses: the sum over how many of them there are.

The ends of δ are proofs by `certify(ε, digits=6)`. Other truths are the sums of lines that are cut
off smoothly (`cut_off`), which share no sum with these.
"""

import math

import numpy as np
import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms
from symdp.numeric.cut_off import given_large_losses
from symdp.numeric.few.large import gauss_rule, large_losses_answer, power_rule

# σ, q, n, ε and the ends of δ(ε) when a record is removed
PROVED = [
    ("1.21", "1/100", 3, "1.5", 4.08710546e-14, 4.0871070000000003e-14),
    ("1.11", "1/1000", 10, "0.5", 9.1422232e-15, 9.1423091e-15),
]


@pytest.mark.parametrize(("sigma", "rate", "count", "epsilon", "low", "high"), PROVED)
def test_the_sum_lies_where_a_proof_has_it(sigma, rate, count, epsilon, low, high):
    step = mechanisms.gaussian(sigma=sigma).subsample("poisson", rate)
    answer = compose(step, count).delta(epsilon, direction="remove")
    assert answer.kind == "exact"
    assert answer.route == "mesh"
    assert low <= answer.lower <= answer.upper <= high
    assert answer.upper - answer.lower < 1e-11 * answer.delta


def _quartic(scale):
    x = sp.Symbol("x", real=True)
    density = sp.exp(-(x**4) / 16) / (4 * sp.gamma(sp.Rational(5, 4)))
    return Mechanism.additive(density, x, sensitivity=scale)


def _of_two_widths(scale):
    x = sp.Symbol("x", real=True)
    narrow = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
    wide = sp.exp(-((x - 1) ** 2) / 8) / (2 * sp.sqrt(2 * sp.pi))
    return Mechanism.additive(sp.Rational(3, 4) * narrow + wide / 4, x, sensitivity=scale)


OTHERS = [
    (_quartic, "1/2000", 40, 1.2),
    (_quartic, "1/50", 5, 0.4),
    (_of_two_widths, "1/2000", 40, 1.2),
    (lambda _: mechanisms.gaussian(sigma="0.7"), "1/3000", 40, 0.7),
    (lambda _: mechanisms.gaussian(sigma="0.9"), "1/700", 7, 3.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "rate", "count", "epsilon"), OTHERS)
def test_it_agrees_with_lines_that_are_cut_off(noise, rate, count, epsilon):
    step = noise(1).subsample("poisson", rate)
    by_rules = large_losses_answer(compose(step, count).law("remove"), epsilon)
    by_lines = given_large_losses(compose(step, count).law("remove"), epsilon)
    assert by_rules.log_upper - by_rules.log_lower < 1e-10
    assert by_rules.log_lower <= by_lines.log_upper
    assert by_rules.log_upper >= by_lines.log_lower


def test_what_the_tilt_does_not_see_is_counted():
    # Under one tilt losses near ε are e^-190 beside others: a sum of what is seen is no δ.
    step = mechanisms.gaussian(sigma=3).subsample("poisson", "1/3000")
    law = compose(step, 200).law("remove")
    answer = large_losses_answer(law, 3.0)
    alone = math.log(200 / 3000) - 0.5 * (99 / 3) ** 2  # about one loss that passes ε
    assert answer is None or answer.log_upper > alone


@pytest.mark.parametrize("count", [3, 10, 1000])
def test_rules_of_sums_keep_the_moments(count):
    losses = np.linspace(-0.01, 0.3, 400)
    masses = np.exp(-40.0 * losses)
    masses /= masses.sum()
    order = 12
    places, weights = power_rule(gauss_rule(losses, masses, order), count, order)
    assert weights.sum() == pytest.approx(1.0, abs=1e-13)
    for rate in (-0.5, 0.5):
        moment = count * math.log(float(masses @ np.exp(rate * losses)))
        assert math.log(float(weights @ np.exp(rate * places))) == pytest.approx(moment, abs=1e-9)
