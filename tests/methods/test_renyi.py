"""The Rényi curve and its conversion: never below δ, and equal to the tightened moments bound."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from proved_bounds import COUNTS, MECHANISMS, QUICK, assert_contains, composition, exact_points

from symdp import compose, mechanisms
from symdp.errors import InputError
from symdp.methods.moments import Moments
from symdp.methods.renyi import Renyi, renyi_curve

# Where the loss turns, ten steps take the contour half a minute.
LONG = {("mixture noise", 10), ("student", 10)}


@pytest.mark.quick_cases(*QUICK)
@pytest.mark.slow_cases(
    "with replacement-10",
    "logistic-10",
    "two variances-10",
    "substitution-10",
    "subsampled normal-10",
    "mixture noise-1000",
)
@pytest.mark.parametrize(
    ("name", "count"),
    [
        pytest.param(name, count, marks=[pytest.mark.slow] if (name, count) in LONG else [])
        for name in MECHANISMS
        for count in COUNTS
    ],
)
def test_never_below_the_contour_and_equal_to_moments(name, count):
    direction = "add" if count == 10 else "remove"
    law = composition(name, count).law(direction)
    for epsilon, exact in exact_points(name, count, direction):
        answer = Renyi().log_delta(law, epsilon)
        assert_contains(answer, exact)
        moments = Moments().log_delta(law, epsilon).log_delta
        if epsilon >= 0:
            assert answer.log_delta == pytest.approx(moments, rel=1e-8, abs=1e-8)
        else:  # the moments accountant also has the other tail there
            assert answer.log_delta >= moments - 1e-8


@pytest.mark.slow
def test_curve_against_integrals():
    """D_α of subsampled normal noise, remove direction, by quadrature at 30 digits."""
    law = compose(MECHANISMS["subsampled normal"], 7).law("remove")
    orders = [1.25, 2.0, 8.0, 31.5]
    with mp.workdps(30):
        sigma, q = mp.mpf(3) / 2, mp.mpf(1) / 100
        for order, found in zip(orders, renyi_curve(law, orders), strict=True):
            moment = mp.quad(
                lambda x, order=order: (
                    mp.npdf(x, 0, sigma) * (1 + q * mp.expm1((2 * x - 1) / (2 * sigma**2))) ** order
                ),
                [-30, -10, -5, 0, 5, 10, 20, 30, 40, 60],
            )
            assert found == pytest.approx(float(7 * mp.log(moment) / (order - 1)), rel=1e-11)


def test_real_orders_beat_a_list():
    law = compose(mechanisms.gaussian(sigma=5), 40).law("remove")
    listed = Renyi(tuple(float(k) for k in range(2, 64)))
    for epsilon in (0.5, 2.0, 7.0):
        fixed, free = (m.log_delta(law, epsilon).log_delta for m in (listed, Renyi()))
        assert free <= fixed
        divergences = renyi_curve(law, listed.orders)
        by_hand = min(
            (a - 1) * (d - epsilon) + (a - 1) * math.log1p(-1 / a) - math.log(a)
            for d, a in zip(divergences, listed.orders, strict=True)
        )
        assert fixed == pytest.approx(min(by_hand, 0.0), rel=1e-10)


def test_escaping_outputs():
    law = composition("one-sided", 10).law("remove")
    back = composition("one-sided", 10).law("add")
    assert max(law.mass_at_infinity, back.mass_at_infinity) == pytest.approx(
        -math.expm1(-10 / 20), rel=1e-12
    )
    escaping = law if law.mass_at_infinity > 0 else back
    assert renyi_curve(escaping, [2.0]) == [math.inf]
    assert Renyi().log_delta(escaping, 3.0).log_delta >= math.log(escaping.mass_at_infinity)


@pytest.mark.parametrize("order", [1.0, 0.5, math.inf, math.nan])
def test_orders_are_checked(order):
    with pytest.raises(InputError, match="order"):
        Renyi((order,))
    with pytest.raises(InputError, match="order"):
        renyi_curve(composition("laplace", 1).law("remove"), [order])


@pytest.mark.parametrize("rho", [1e-6, 1e-2, 0.5, 2.0, 8.0])
def test_a_curve_of_divergences_bounds_the_total_variation(rho):
    """At most √(KL/2) and √(1 − e^{−KL}), KL ≤ ρ, and at least that of normal noise of this ρ."""
    steps = compose(mechanisms.zcdp(rho=rho), 1)
    normal = math.erf(math.sqrt(rho) / 2)
    known = min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
    for epsilon in (0.0, 1e-9):
        assert normal * (1 - 1e-6) <= steps.delta(epsilon).delta <= known * (1 + 1e-3)
