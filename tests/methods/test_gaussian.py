"""Gaussian limits: exact for a Gaussian loss, the published μ as a limit, their measured orders."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from proved_bounds import COUNTS, MECHANISMS, composition, exact_points
from scipy.special import gammaincc

from symdp import compose, mechanisms
from symdp.methods import accountant
from symdp.methods.gaussian import (
    Gaussian,
    GaussianEdgeworth,
    _edgeworth_tail,
    central_limit_mu,
    log_gaussian_delta,
)
from symdp.methods.route import Contour

BOTH = [Gaussian(), GaussianEdgeworth()]


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 8.0, 40.0])
@pytest.mark.parametrize("deviations", [-30.0, -3.0, 0.0, 1.0, 9.0, 35.0])
def test_gaussian_profile(mu, deviations):
    epsilon = mu * deviations
    with mp.workdps(900):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        exact = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
        truth = float(mp.log(exact))
    assert log_gaussian_delta(mu, epsilon) == pytest.approx(truth, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("method", BOTH, ids=lambda m: m.name)
@pytest.mark.parametrize("count", [1, 30, 10**6])
def test_exact_for_normal_noise(method, count):
    law = compose(mechanisms.gaussian(sigma=2 * math.isqrt(count)), count).law("remove")
    for epsilon in (-0.5, 0.0, 0.3, 1.2):
        answer = method.log_delta(law, epsilon)
        assert answer.kind == "estimate"
        assert not answer.advice
        exact = Contour().log_delta(law, epsilon).log_delta
        # the threshold is found on a grid, at the top of a parabola
        assert answer.log_delta == pytest.approx(exact, abs=1e-9 if method == BOTH[0] else 1e-6)


def test_published_mu_is_a_limit():
    """μ = q√(n(e^{1/σ²} − 1)) as q → 0 at fixed q√n; the gap falls like q."""
    gaps = []
    for inverse in (100, 1000, 10000):
        step = mechanisms.gaussian(sigma=1).subsample("poisson", f"1/{inverse}")
        law = compose(step, inverse**2).law("remove")
        gaps.append(central_limit_mu(law) / math.sqrt(math.e - 1) - 1)
    assert abs(gaps[2]) < 1e-3
    assert math.log10(abs(gaps[2] / gaps[1])) == pytest.approx(-1, abs=0.1)


def test_measured_orders():
    """At a fixed size of the loss: the limit errs like n^{−1/2}, its refinement like n^{−1}."""
    errors = {method.name: [] for method in BOTH}
    for count in (256, 4096):
        law = compose(mechanisms.gumbel(b=math.isqrt(count)), count).law("remove")
        exact = Contour().log_delta(law, 1.0).log_delta
        for method in BOTH:
            errors[method.name].append(abs(method.log_delta(law, 1.0).log_delta - exact))
    limit, refined = errors.values()
    assert math.log(limit[1] / limit[0], 16) == pytest.approx(-0.5, abs=0.1)
    assert math.log(refined[1] / refined[0], 16) == pytest.approx(-1.0, abs=0.25)
    assert refined[1] < 0.1 * limit[1]


@pytest.mark.quick_cases(
    "one-sided-1000",
    "one-sided-1",
    "one-sided-1000000",
    "discrete laplace-1000",
    "laplace-1000",
    "discrete laplace-1",
    "randomized response-1",
    "subsampled laplace-1000",
    "normal noise-1000",
    "randomized response-10",
    "discrete laplace-10",
    "randomized response-1000",
    "laplace-1",
    "subsampled laplace-1000000",
    "subsampled normal-1000000",
    "normal noise-10",
    "discrete laplace-1000000",
    "normal noise-1000000",
    "gumbel-1000000",
    "logistic-1000",
    "substitution-1000000",
)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_always_a_number_and_advice_where_it_is_wrong(name, count):
    direction = "add" if count == 10 else "remove"
    law = composition(name, count).law(direction)
    for epsilon, exact in exact_points(name, count, direction):
        for method in BOTH:
            answer = method.log_delta(law, epsilon)
            assert answer.log_delta <= 0.0
            far = not abs(answer.log_delta - exact.log_delta) < math.log(2)
            if answer.kind == "estimate" and far:
                assert "contour" in answer.advice


def test_known_regime_failure():
    """One large loss carries this tail; the limit is wrong by many orders and says so."""
    law = compose(mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 2000).law("remove")
    for method in BOTH:
        assert "contour" in method.log_delta(law, 4.0).advice


def test_names():
    assert accountant("gaussian") == Gaussian()
    assert accountant("gdp-e") == GaussianEdgeworth()


def _sums_of_uniforms(count, h):
    """Pr[U₁ + … + Uₙ > h], by Irwin's and Hall's sum."""
    below = sum(
        (-1) ** k * math.comb(count, k) * (h - k) ** count for k in range(math.floor(h) + 1)
    )
    return 1.0 - below / math.factorial(count)


def test_tails_of_known_sums_by_four_cumulants():
    """Even and flat: twelve uniform laws. Skewed: forty exponential ones, whose sum is gamma."""
    h = np.array([4.5, 5.5, 6.0, 7.0, 8.0, 9.5])
    exact = [_sums_of_uniforms(12, point) for point in h]
    assert _edgeworth_tail(h, [6.0, 1.0, 0.0, -0.1]) == pytest.approx(exact, abs=2e-4)
    h = np.array([28.0, 35.0, 40.0, 44.0, 52.0])
    found = _edgeworth_tail(h, [40.0, 40.0, 80.0, 240.0])
    assert found == pytest.approx(gammaincc(40.0, h), abs=5e-4)
