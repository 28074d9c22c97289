"""Densities kept as series on panels, and the moments of laws made of them."""

import numpy as np
import pytest
from catalogue import ALL
from certified_values import assert_certified, epsilon_at

from symdp import compose, mechanisms
from symdp.errors import AccuracyError
from symdp.exact.measure.branch import Branch
from symdp.exact.measure.convolution import convolved, densities
from symdp.exact.measure.density import interpolate


def no_panel(lower, upper, log_mass):
    return np.zeros(lower.size, dtype=bool)


def test_an_end_within_a_panel_is_found():
    """Nothing lies below an end that no edge knows of: what lies above is fitted all the same."""
    end = 0.1234567

    def log_density(s):
        with np.errstate(invalid="ignore"):
            return np.where(s > end, np.cos(s), -np.inf)

    found = interpolate(log_density, np.asarray([-1.0, 0.0, 1.0, 2.0]), no_panel)
    s = np.linspace(-1.0, 2.0, 1001)
    inside = s > end
    assert np.allclose(found(s[inside]), np.cos(s[inside]), atol=1e-13)
    assert np.all(found(s[~inside]) < -1e8)
    exact = np.trapezoid(np.exp(np.cos(np.linspace(end, 2.0, 200_001))), dx=(2.0 - end) / 200_000)
    assert found.mass_and_mean()[0] == pytest.approx(exact, rel=1e-10)


def test_noise_ends_the_search_for_panels():
    chance = np.random.default_rng(1)
    calls = []

    def noisy(s):
        calls.append(s.size)
        return np.sin(s) + 1e-6 * chance.uniform(-1, 1, s.size)

    with pytest.raises(AccuracyError, match="too rough"):
        interpolate(noisy, np.asarray([0.0, 1.0]), no_panel)
    assert sum(calls) < 16 * 2 * 1500


def test_a_density_that_grows_without_bound_is_refused():
    """Where the loss turns its density is like 1/√u, which no series fits."""
    mechanism = ALL["gumbel scales"].mechanism("gumbel scales").subsample("poisson", "1/100")
    law = compose(mechanism, 2).law("remove").parts[0][0]
    outline = law.outlines[0]
    with pytest.raises(AccuracyError, match="infinite at its end"):
        Branch(outline, 1e-6)


@pytest.mark.slow_cases("exp(-|x|**3) noise-2.0")
@pytest.mark.slow_cases("laplace against gaussian-5.0")
@pytest.mark.parametrize(
    ("name", "deviations"), [("exp(-|x|**3) noise", 2.0), ("laplace against gaussian", 5.0)]
)
def test_ten_sampled_steps_are_added_as_certified(name, deviations):
    step = ALL[name].mechanism(name).subsample("poisson", "1/100")
    epsilon = epsilon_at([(step, 10)], deviations, "remove")
    assert_certified([(step, 10)], epsilon, "remove", accuracy=1e-10, width=1e-9)


def test_a_further_epsilon_is_read_off_the_same_density():
    law = compose(mechanisms.gaussian(sigma=1).subsample("poisson", "1/100"), 5).law("remove")
    first, second = convolved(law, 0.5), convolved(law, 0.51)
    assert len(densities(law)) == 1
    assert first.slope < 0.0
    assert second.log_delta == pytest.approx(first.log_delta + 0.01 * first.slope, abs=1e-3)


@pytest.mark.parametrize(("b", "top"), [("1/2", 2.0), ("2", 0.5)])
def test_the_largest_loss_is_a_double_where_it_is_one(b, top):
    law = compose(mechanisms.laplace(b=b), 1).law("remove")
    assert law.loss_bounds == (-top, top)


def test_nothing_is_rounded_at_a_largest_loss_of_zero():
    mechanism = ALL["uniform noise"].mechanism("uniform noise")(w="4/5")
    answer = compose(mechanism, 1).delta(0.0, direction="remove")
    assert answer.delta == pytest.approx(5 / 9, rel=1e-15)
    assert answer.log_upper - answer.log_lower < 1e-13
