"""Sums of many losses of few values each: all that count, with their probabilities."""

import math

import mpmath
import numpy as np
import pytest
from catalogue import ALL

from symdp import compose
from symdp.certify import enclose_delta
from symdp.exact.finite_sum import atoms_of, log_total, power
from symdp.exact.halves import halved_sum
from symdp.exact.multinomial import _log_multinomial, log_typical_sums, multiple

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


@pytest.mark.parametrize("count", [1, 2, 9, 33])
@pytest.mark.parametrize("name", SHARES)
def test_all_sums_are_found(name, count):
    lost = []
    loss, log_weight = multiple(step_of(name), count, 0.0, 1e3, lost)
    expected, log_expected = power(step_of(name), count)
    assert loss.size == math.comb(count + len(SHARES[name]) - 1, count)
    np.testing.assert_allclose(loss, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(log_weight, log_expected, rtol=0, atol=2e-13 * (1 + count))
    assert lost == [0.0]


@pytest.mark.parametrize("tilt", [0.0, -0.5, 2.0])
@pytest.mark.parametrize("name", SHARES)
def test_no_more_is_lost_than_said(name, tilt):
    step, count = step_of(name), 400
    lost = []
    loss, log_weight = multiple(step, count, tilt, 44.0, lost)
    whole = count * log_total(step[1] + tilt * step[0])
    assert abs(math.expm1(log_total(log_weight + tilt * loss) - whole)) < 2e-13
    for depth, most in ((8.0, 0.3), (16.0, 1e-3)):
        lost = []
        loss, log_weight = multiple(step, count, tilt, depth, lost)
        missing = -math.expm1(log_total(log_weight + tilt * loss) - whole)
        assert 0.0 < missing <= sum(lost) * (1 + 1e-9)
        assert missing < most


def test_probabilities_are_rounded_as_little_as_their_logarithms():
    rng = np.random.default_rng(3)
    chances = np.asarray([0.31, 0.23, 0.46])
    with mpmath.workdps(40):
        for count in (7, 50, 1200, 10**6):
            counts = rng.multinomial(count, chances, size=6).T
            found = _log_multinomial(counts, np.full(6, count), chances)
            missing = mpmath.fsum(map(mpmath.mpf, chances)) - 1
            for column, value in zip(counts.T, found, strict=True):
                exact = mpmath.loggamma(count + 1)
                for k, p in zip(column, chances, strict=True):
                    exact += int(k) * mpmath.log(mpmath.mpf(p)) - mpmath.loggamma(int(k) + 1)
                assert abs(exact - value - count * missing) < 3e-14 * (1 + count**0.5)


def test_how_many_sums_there_are_is_told_before_they_are_listed():
    for name, shares in SHARES.items():
        for count in (20, 100, 300):
            expected = math.log(multiple(step_of(name), count, 0.0, 44.0, [])[0].size)
            told = log_typical_sums(np.asarray(shares), count, 44.0)
            assert expected - 0.7 < told < expected + 4.0  # more of what is rare


def test_too_many_are_not_listed():
    loss = np.sqrt(np.arange(2.0, 12.0))
    assert multiple((loss, np.full(10, -math.log(10.0))), 1000, 0.0, 44.0, []) is None


RARE = {
    "response": (ALL["randomised response of 4"].mechanism("response")(e="4/5"), 1000),
    "noise": (ALL["discrete laplace, sensitivity 3"].mechanism("noise")(b=2), 300),
}


@pytest.mark.slow_cases("noise-0.5")
@pytest.mark.parametrize("deviations", [0.5, 2.0])
@pytest.mark.parametrize("name", RARE)
def test_a_thousand_sampled_steps_agree_with_certified_values(name, deviations):
    """Their characteristic function comes back too often for any line."""
    step, count = RARE[name][0].subsample("poisson", "1/100"), RARE[name][1]
    composition = compose(step, count)
    law = composition.law("remove")
    mean, variance = (float(v) for v in law.cumulants(0.0, 2))
    epsilon = round(mean + deviations * math.sqrt(variance), 6)
    assert halved_sum(law, epsilon, 1.0) is not None
    found = composition.delta(epsilon, direction="remove")
    proved = enclose_delta([(step.pair("remove"), count)], epsilon, 11)
    assert found.log_lower <= float(proved.log().upper())
    assert float(proved.log().lower()) <= found.log_upper
    assert found.log_upper - found.log_lower < 1e-11


def test_atoms_at_one_loss_are_one_atom():
    """Two of four answers tell nothing."""
    step = ALL["randomised response of 4"].mechanism("response")(e="4/5")
    part = compose(step, 10).law("remove").parts[0][0]
    loss, log_weight = atoms_of(part, 0.0)
    assert loss.size == 3
    assert abs(log_total(log_weight)) < 1e-15
