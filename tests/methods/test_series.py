"""The series against truth: published figures, measured orders, proved bounds."""

import math

import pytest

from symdp import compose, mechanisms
from symdp.prove.truth import privacy_profile

MECHANISM = mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100")
STEPS = compose(MECHANISM, 10**4)


@pytest.fixture(scope="module")
def truth():
    return float(privacy_profile([(MECHANISM.pair("remove"), 10**4)], 1.0, digits=20))


@pytest.mark.parametrize(
    ("method", "relative"),
    [
        ("msd:0", -2.2e-2),
        ("msd:1", 4.08e-3),
        ("msd:2", -8.19e-4),
        ("edgeworth:1", -2.1e-4),
        ("edgeworth:2", -1.1e-5),
        ("edgeworth:3", -1.2e-7),
        ("edgeworth:4", 1.5e-8),
    ],
)
def test_relative_errors_are_the_known_ones(method, relative, truth):
    got = STEPS.delta(1.0, method=method, direction="remove")
    assert got.kind == "estimate"
    assert got.delta / truth - 1 == pytest.approx(relative, rel=0.05)


@pytest.mark.parametrize("method", ["moments", "moments-plain"])
@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 1.0, 4.0, 8.0])
def test_moments_are_upper_bounds(method, epsilon):
    bound = STEPS.delta(epsilon, method=method, direction="remove")
    exact = STEPS.delta(epsilon, direction="remove")
    assert bound.kind == "bound"
    assert bound.log_upper >= exact.log_upper
    assert bound.log_delta - exact.log_delta < 8


@pytest.mark.parametrize("count", [1, 7, 1000])
@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.3, 2.0])
def test_lugannani_rice_is_exact_for_gaussian_noise(count, epsilon):
    steps = compose(mechanisms.gaussian(sigma=6), count)
    got = steps.delta(epsilon, method="lugannani-rice", direction="remove")
    assert got.log_delta == pytest.approx(steps.delta(epsilon).log_delta, abs=1e-9)


def slope(errors):
    """Return the exponent with which errors fall when the number of steps grows fourfold."""
    return math.log(abs(errors[1] / errors[0])) / math.log(4.0)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_steepest_descent_has_its_order(order):
    """At a fixed tilt the relative error of MSD_k falls like n^{−(k+1)}, or faster.

    The poles at 0 and −1 add terms of higher order, which at these n still make it steeper.
    """
    errors = []
    for count in (100, 400):
        steps = compose(mechanisms.gumbel(b=1), count)
        epsilon = float(steps.law("remove").cumulants(2.0, 1)[0])
        got = steps.delta(epsilon, method=f"msd:{order}", direction="remove").log_delta
        errors.append(math.expm1(got - steps.delta(epsilon, direction="remove").log_delta))
    assert slope(errors) < -(order + 1) + 0.15
    if order == 0:
        assert slope(errors) == pytest.approx(-1, abs=0.15)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_edgeworth_has_its_order(order):
    """With noise growing like √n the total stays of one size, and AEA_k errs like n^{−(k+1)/2}."""
    errors = []
    for count in (256, 1024):
        steps = compose(mechanisms.gumbel(b=math.isqrt(count)), count)
        got = steps.delta(1.0, method=f"edgeworth:{order}", direction="remove").delta
        errors.append(got / steps.delta(1.0, direction="remove").delta - 1)
    assert slope(errors) == pytest.approx(-(order + 1) / 2, abs=0.35)


@pytest.mark.slow
def test_series_says_when_it_fails():
    """One large loss carries this tail: MSD₁ is wrong by a large factor and must not look right."""
    steps = compose(mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 2000)
    got = steps.delta(4.0, method="msd:1", direction="remove")
    exact = steps.delta(4.0, direction="remove")
    assert abs(got.log_delta - exact.log_delta) > 1
    assert "contour" in got.advice
