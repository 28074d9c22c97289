"""OpenDP: profiles and measurements of symdp's compositions, in OpenDP's own combinators."""

import math

import mpmath
import pytest

pytest.importorskip("opendp")

import opendp.prelude as dp

from symdp import compose, mechanisms
from symdp.adapters.opendp import measurement, profile
from symdp.errors import InputError

dp.enable_features("contrib", "honest-but-curious")

STEP = mechanisms.gaussian(sigma=10).subsample("poisson", "1/10")
STEPS = compose(STEP, 200)
DATA = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()


def released(steps=STEPS, distance=1):
    return measurement(lambda data: float(len(data)), steps, *DATA, distance, TO=float)


@pytest.mark.parametrize(
    "steps",
    [
        STEPS,
        compose([(mechanisms.laplace(b=3), 4), (mechanisms.discrete_laplace(b=3), 2)]),
        compose(mechanisms.approximate_dp(epsilon_0="1/5", delta_0="1/10000"), 9),
    ],
    ids=["sampled", "two kinds", "infinite loss"],
)
def test_a_profile_is_never_below_the_exact_one(steps):
    theirs = profile(steps)
    for epsilon in (0.0, 0.25, 1.0):
        exact = steps.delta(epsilon)
        assert exact.delta <= theirs.delta(epsilon) <= math.nextafter(exact.upper, math.inf)
    found = theirs.epsilon(1e-2)
    assert steps.delta(found).delta <= 1e-2 < steps.delta(found * (1 - 1e-9)).delta


def test_a_profile_holds_the_truth():
    """Fifty Gaussian steps of σ = 4 are one of σ = 4/√50, whose δ has a closed form."""
    theirs = profile(compose(mechanisms.gaussian(sigma=4), 50))
    with mpmath.workdps(40):
        mu = mpmath.sqrt(50) / 4
        for epsilon in (0, 1, 8):
            near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
            truth = mpmath.ncdf(near) - mpmath.exp(epsilon) * mpmath.ncdf(far)
            # The interval estimates rounding; here it is a few 1e-15 wide.
            assert truth <= theirs.delta(float(epsilon)) <= truth * (1 + mpmath.mpf("1e-12"))


def test_no_finite_epsilon_below_the_infinite_loss():
    leaky = compose(mechanisms.approximate_dp(epsilon_0="1/5", delta_0="1/10000"), 9)
    assert profile(leaky).epsilon(8e-4) == math.inf


def test_a_measurement_costs_what_the_composition_does():
    counts = released()
    assert counts([1.0, 2.0]) == 2.0
    for _ in range(3):  # OpenDP frees each profile that it was given
        assert counts.map(1).epsilon(1e-5) == profile(STEPS).epsilon(1e-5)


def test_a_greater_distance_is_refused():
    assert released(distance=2).map(2).epsilon(1e-5) == profile(STEPS).epsilon(1e-5)
    for further in (2, 5):
        with pytest.raises(dp.OpenDPException, match="data sets 1 apart"):
            released().map(further)


def test_composed_by_opendp_two_cost_more_than_by_symdp():
    fixed = dp.c.make_fix_delta(released(), 5e-6)
    two = dp.c.make_composition([fixed, fixed])
    epsilon, delta = two.map(1)
    assert delta == pytest.approx(1e-5, rel=1e-15)  # a sum of two doubles, rounded up
    assert epsilon > 1.4 * compose(STEP, 400).epsilon(1e-5).epsilon


def test_wrong_arguments_are_refused():
    with pytest.raises(InputError, match="Composition"):
        profile(STEP)
    with pytest.raises(InputError, match="Composition"):
        released(STEP)
    with pytest.raises(InputError, match="distance"):
        released(distance=0)
    with pytest.raises(InputError, match="distance"):
        released(distance=math.nan)
