"""The moments accountant: never below δ, at its optimum, in every regime."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from closed_form_law import (
    ClosedFormLaw,
    contour_log_delta,
    exponential,
    gaussian,
    laplace,
    logistic,
    randomized_response,
)

from symdp.methods.moments import Moments, proved_instead

BOTH = [Moments(), Moments(plain=True)]


@pytest.mark.quick_cases("0.5-moments")
@pytest.mark.parametrize("method", BOTH, ids=lambda m: m.name)
@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0, 30.0])
def test_never_below_gaussian_delta(method, mu):
    law = gaussian(mu)
    for x in (-40.0, -9.0, -2.0, -mu / 2, 0.0, 1e-6, mu / 2, 1.0, 5.0, 20.0, 40.0):
        with mp.workdps(1200):  # δ and 1 − δ go down to 1e-600
            m, e = mp.mpf(mu), mp.mpf(mu * x)
            delta = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
            truth = mp.log(delta)
        answer = method.log_delta(law, mu * x)
        assert answer.kind == "bound"
        assert answer.log_lower is None
        assert answer.log_upper == answer.log_delta
        assert truth <= answer.log_delta <= 0


@pytest.mark.quick_cases("laplace-moments", "laplace-moments-plain")
@pytest.mark.parametrize("method", BOTH, ids=lambda m: m.name)
@pytest.mark.parametrize(
    ("law", "tilts"),
    [
        (logistic(2.0, 40), (3.0, 0.5, -0.5, -2.0)),
        (exponential(1.5, 60), (3.0, 0.5, -0.5, -2.0)),
        (laplace(1.0, 300), (1.0, 0.5)),
    ],
    ids=["logistic", "exponential", "laplace"],
)
def test_never_below_the_contour(method, law, tilts):
    for tilt in tilts:
        epsilon = float(law.cumulants(tilt, 1)[0])
        with mp.workdps(40):
            integral = mp.exp(contour_log_delta(law, epsilon, tilt, digits=30))
            if tilt > 0:
                delta = integral
            elif tilt > -1:
                delta = 1 - integral
            else:
                delta = 1 - mp.exp(mp.mpf(epsilon)) + integral
            assert mp.log(delta) <= method.log_delta(law, epsilon).log_delta


def test_plain_gaussian_optimum():
    """min_t e^{K(t)−εt} = e^{−(ε−μ²/2)²/(2μ²)} above the mean."""
    for mu, epsilon in ((0.5, 2.0), (1.0, 30.0), (20.0, 900.0)):
        found = Moments(plain=True).log_delta(gaussian(mu), epsilon).log_delta
        assert found == pytest.approx(-((epsilon - mu * mu / 2) ** 2) / (2 * mu * mu), rel=1e-11)
    assert Moments(plain=True).log_delta(gaussian(2.0), 1.9).log_delta == 0.0


@pytest.mark.parametrize(("mu", "epsilon"), [(0.1, 0.3), (1.0, 1.0), (1.0, 20.0), (5.0, 3.0)])
def test_tightened_optimum_and_renyi_conversion(mu, epsilon):
    """The least K − εt + t log t − (1+t) log(1+t) is Rényi's conversion at α = 1 + t."""
    law = gaussian(mu)
    with mp.workdps(30):

        def exponent(t):
            return mu * mu * t * (t + 1) / 2 - epsilon * t + t * mp.log(t) - (1 + t) * mp.log(1 + t)

        slope = lambda t: mu * mu * (t + 0.5) - epsilon - mp.log1p(1 / t)  # noqa: E731
        best = exponent(mp.findroot(slope, (1e-9, 10 / mu + epsilon / mu**2), solver="anderson"))
        renyi = []
        for k in range(1, 4000):
            alpha = 1 + mp.mpf(k) / 100
            divergence = alpha * mu * mu / 2
            renyi.append(
                (alpha - 1) * (divergence - epsilon)
                + (alpha - 1) * mp.log(1 - 1 / alpha)
                - mp.log(alpha)
            )
    found = Moments().log_delta(law, epsilon).log_delta
    assert found == pytest.approx(float(min(best, 0)), rel=1e-10)
    assert float(best) <= found
    assert found <= float(min(renyi)) + 1e-11 * abs(found)


def test_negative_epsilon_is_bounded_as_tightly():
    """δ(ε) = 1 − e^ε + e^ε δ(−ε) for a symmetric pair, and so are the bounds."""
    law = logistic(1.0, 50)
    for method in BOTH:
        for epsilon in (3.0, 10.0, 30.0):
            right = method.log_delta(law, epsilon).log_delta
            left = method.log_delta(law, -epsilon).log_delta
            expected = -math.expm1(-epsilon) + math.exp(right - epsilon)
            assert left == pytest.approx(math.log(expected), rel=1e-9)


def test_finite_domain():
    """Where the moment generating function ends before the optimum, its end still bounds δ."""
    whole = logistic(2.0, 30)
    truth = contour_log_delta(whole, 50.0, 3.0)
    bounds = [
        Moments().log_delta(ClosedFormLaw(whole.moment, 30, domain=(-2.0, end)), 50.0).log_delta
        for end in (0.0, 0.5, 1.0, math.inf)
    ]
    assert bounds[0] == 0.0
    assert bounds == sorted(bounds, reverse=True)
    assert float(truth) < bounds[-1] < bounds[1]


@pytest.mark.parametrize("method", BOTH, ids=lambda m: m.name)
def test_mass_at_infinity_and_range(method):
    law = randomized_response(0.5, 10, escape=0.01)
    escaped = 1 - 0.99**10
    assert method.log_delta(law, 5.0).log_delta == pytest.approx(math.log(escaped), rel=1e-13)
    inside = method.log_delta(law, 3.0).log_delta
    p = math.exp(0.5) / (1 + math.exp(0.5))
    finite = math.fsum(
        math.comb(10, k) * p**k * (1 - p) ** (10 - k) * -math.expm1(3.0 - 0.5 * (2 * k - 10))
        for k in range(9, 11)
    )
    assert math.log(escaped + 0.99**10 * finite) <= inside <= 0


def test_proved_instead_is_the_bound():
    law = gaussian(1.0)
    answer = proved_instead(law, 3.0, "reason; use the method contour")
    assert answer.log_delta == Moments().log_delta(law, 3.0).log_delta
    assert (answer.kind, answer.log_lower) == ("bound", -math.inf)
    assert answer.advice == "reason; use the method contour; this is the moments bound"
    assert proved_instead(randomized_response(1.0, 3), 3.0, "reason").kind == "exact"
