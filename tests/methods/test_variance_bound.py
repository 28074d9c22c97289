"""The moments bound that knows the variance: a majorant, never above the one it tightens."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from proved_bounds import (
    MECHANISMS,
    assert_contains,
    assert_within_moments,
    composition,
    exact_points,
)

from symdp import compose, mechanisms
from symdp.methods.moments import Moments, VarianceBound, _log_parabola_bound

METHOD = VarianceBound()


@pytest.mark.parametrize("name", MECHANISMS)
def test_between_the_contour_and_the_moments_bound(name):
    law = composition(name, 1000).law("remove")
    for epsilon, exact in exact_points(name, 1000, "remove"):
        answer = METHOD.log_delta(law, epsilon)
        assert_contains(answer, exact)
        assert_within_moments(answer, law, epsilon)


@pytest.mark.parametrize("tilt", [0.01, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.99])
def test_the_parabola_lies_above_the_payoff(tilt, share):
    """Touching at x with 1/(eˣ − 1) = t + 2/(x + a), it is above (1 − e^{−y})⁺e^{−ty} for all y."""
    with mp.workdps(30):
        t = mp.mpf(tilt)
        x = share * mp.log1p(1 / t)
        a = 2 / (1 / mp.expm1(x) - t) - x
        assert a > 0
        c = -mp.expm1(-x) * mp.exp(-t * x) / (x + a) ** 2
        for j in range(1, 400):
            y = x * mp.mpf(j) / 40
            assert -mp.expm1(-y) * mp.exp(-t * y) <= c * (y + a) ** 2 * (1 + mp.mpf(10) ** -25)


@pytest.mark.slow
def test_formula_at_one_tilt():
    """Against a search over a and x in mpmath, for a Gaussian loss of μ = 2."""
    law = compose(mechanisms.gaussian(sigma=2), 16).law("remove")
    epsilon, t = 6.0, mp.mpf("0.9")
    with mp.workdps(20):
        mean, variance = 2 + 4 * t - epsilon, mp.mpf(4)
        front = 2 * t + 2 * t**2 - epsilon * t

        def bound(a):
            largest = max(
                -mp.expm1(-x) * mp.exp(-t * x) / (x + a) ** 2
                for x in (mp.mpf(j) / 2000 for j in range(1, 4000))
            )
            return front + mp.log(largest * (variance + (mean + a) ** 2))

        least = min(bound(mp.mpf(j) / 10) for j in range(5, 60, 5))
    found = _log_parabola_bound(law, epsilon, 0.9)
    assert found <= float(least)
    assert found == pytest.approx(float(least), abs=5e-3)


def test_gain_in_a_far_tail():
    """There the payoff is a step, and the best parabola gains √e/2 = 0.824 (Cantelli)."""
    law = compose(mechanisms.gaussian(sigma=5), 3).law("remove")
    gain = METHOD.log_delta(law, 10.0).log_delta - Moments().log_delta(law, 10.0).log_delta
    assert math.exp(gain) == pytest.approx(0.5 * math.sqrt(math.e), abs=2e-3)
