"""Calibration to what an attack may reach."""

import math
from statistics import NormalDist

import pytest

from symdp import calibrate, compose, mechanisms
from symdp.errors import InputError

NORMAL = NormalDist()


def test_the_advantage_of_normal_noise_is_that_of_its_mean():
    """2 Φ(μ/2) − 1 with μ = √n/σ, inverted by hand."""
    found = calibrate(mechanisms.gaussian, "sigma", 4, advantage=0.1)
    exact = 2 / (2 * NORMAL.inv_cdf(0.55))
    assert float(found.neighbour) < exact <= float(found.value)
    assert found.rate <= 0.1 < found.missed
    assert found.to_json()["value"] == float(found)


def test_hits_of_normal_noise_at_a_false_alarm_rate():
    """Φ(Φ⁻¹(α) + μ), inverted by hand."""
    found = calibrate(mechanisms.gaussian, "sigma", 4, tpr=0.2, fpr=0.05, digits=4)
    exact = 2 / (NORMAL.inv_cdf(0.2) - NORMAL.inv_cdf(0.05))
    assert float(found.neighbour) < exact * (1 + 1e-9)
    assert exact <= float(found.value) * (1 + 1e-9)
    miss = compose(mechanisms.gaussian(sigma=found.value), 4).trade_off(0.05)
    assert 1 - miss <= found.rate <= 0.2 < found.missed


def test_how_many_steps_an_advantage_allows():
    found = calibrate(mechanisms.gaussian(sigma=20), "n", advantage=0.1)
    assert (found.value, found.neighbour) == (25, 26)
    assert calibrate(mechanisms.gaussian(sigma=20), "n", epsilon=0, delta=0.1).value == 25


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "one of the three"),
        ({"advantage": 0.1, "tpr": 0.2, "fpr": 0.1}, "one of the three"),
        ({"tpr": 0.2}, "one of the three"),
        ({"advantage": 1.0}, "advantage = 1.0"),
        ({"advantage": math.nan}, "advantage"),
        ({"tpr": 0.1, "fpr": 0.2}, "guessing alone"),
        ({"advantage": 0.1, "digits": 40}, "digits = 40"),
    ],
)
def test_what_breaks_a_rule_is_named(words, message):
    with pytest.raises(InputError, match=message):
        calibrate(mechanisms.gaussian, "sigma", 1, **words)
