"""Derivatives of ε in the parameters, against closed forms and differences in mpmath."""

from __future__ import annotations

import mpmath
import pytest

import symdp
from symdp.errors import InputError
from symdp.questions.sweep import sensitivities


def gaussian_epsilon(mu, delta):
    """ε of a Gaussian pair a distance μ apart, from its closed form."""

    def gap(epsilon):
        first = mpmath.ncdf(mu / 2 - epsilon / mu)
        return mpmath.log((first - mpmath.e**epsilon * mpmath.ncdf(-mu / 2 - epsilon / mu)) / delta)

    return mpmath.findroot(gap, mu * mu / 2 + 4 * mu)


def test_a_gaussian_in_its_deviation():
    found = sensitivities(symdp.mechanisms.gaussian(sigma=2), 100, 1e-5)["sigma"]
    with mpmath.workdps(40):
        delta = mpmath.mpf("1e-5")
        exact = mpmath.diff(lambda s: gaussian_epsilon(10 / s, delta), mpmath.mpf(2))
    assert abs(found.derivative - float(exact)) <= found.error
    assert found.error < 1e-8 * abs(found.derivative)


@pytest.mark.slow
def test_one_laplace_step_in_its_scale():
    """δ(ε) = 1 − e^{(ε − 1/b)/2} for 0 ≤ ε ≤ 1/b, so that ε = 1/b + 2 log(1 − δ)."""
    found = sensitivities(symdp.mechanisms.laplace(b=0.5), 1, 0.1)["b"]
    assert abs(found.derivative + 4.0) <= found.error
    assert found.error < 1e-8


@pytest.mark.slow
def test_a_rate_raises_epsilon_and_more_noise_lowers_it():
    step = symdp.mechanisms.gaussian(sigma=1.5).subsample("poisson", "1/100")
    found = sensitivities(step, 1000, 1e-5)
    assert set(found) == {"sigma", "rate", "n"}
    assert found["sigma"].derivative < 0 < found["n"].derivative
    above = symdp.mechanisms.gaussian(sigma=1.5).subsample("poisson", "1001/100000")
    more = symdp.compose(above, 1000).epsilon(1e-5).epsilon
    less = symdp.compose(step, 1000).epsilon(1e-5).epsilon
    assert (more - less) / 1e-5 == pytest.approx(found["rate"].derivative, rel=1e-3)


def test_nothing_moves_an_epsilon_of_zero():
    with pytest.raises(InputError, match="epsilon is 0"):
        sensitivities(symdp.mechanisms.gaussian(sigma=100), 1, 0.5)
