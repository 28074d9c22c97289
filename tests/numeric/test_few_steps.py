"""Few steps, rare large losses and atoms beside densities, against truths that need no line."""

from __future__ import annotations

import math

import mpmath
import pytest
import sympy as sp
from catalogue import ALL
from certified_values import assert_certified, epsilon_at

from symdp import compose, mechanisms
from symdp.methods import accountant
from symdp.prove.truth import privacy_profile


def rare(rate, sigma):
    return mechanisms.gaussian(sigma=sigma).subsample("poisson", rate)


FEW = [
    ("a sum of atoms", mechanisms.laplace(b=2), 3, "1/2"),
    ("between atoms", mechanisms.laplace(b=2), 3, "3/10"),
    ("below the mean", mechanisms.laplace(b=2), 3, "-1/2"),
    ("subsampled atoms", mechanisms.laplace(b=2).subsample("poisson", "1/10"), 4, "1/10"),
    ("bounded", mechanisms.logistic(s=2), 3, "7/10"),
    ("one-sided bound", mechanisms.gumbel(b=2), 2, "7/10"),
]


@pytest.mark.parametrize(("name", "mechanism", "count", "epsilon"), FEW, ids=[c[0] for c in FEW])
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.slow
def test_few_steps_against_truth(name, mechanism, count, epsilon, direction):
    exact = sp.Rational(epsilon)
    law = compose(mechanism, count).law(direction)
    found = accountant("contour").log_delta(law, float(exact))
    truth = privacy_profile([(mechanism.pair(direction), count)], float(exact), digits=14)
    if truth == 0:
        assert found.log_delta == -math.inf
        return
    error = float(mpmath.expm1(mpmath.mpf(found.log_delta) - mpmath.log(truth)))
    assert abs(error) < 1e-10  # next to a kink a line is cut off smoothly, at ten digits
    assert found.log_lower < float(mpmath.log(truth)) < found.log_upper


@pytest.mark.parametrize("count", [2, 7, 40, 300])
@pytest.mark.parametrize("deviations", [1.0, 6.0, 14.0])
def test_gaussian_sums_are_gaussian(count, deviations):
    steps = compose(mechanisms.gaussian(sigma=5), count)
    mu = math.sqrt(count) / 5
    epsilon = mu * mu / 2 + deviations * mu
    answer = steps.delta(epsilon)
    with mpmath.workdps(40):
        m, e = mpmath.sqrt(count) / 5, mpmath.mpf(epsilon)
        truth = mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
        assert answer.log_lower <= mpmath.log(truth) <= answer.log_upper
    assert answer.log_upper - answer.log_lower < 1e-14 * (8 + 2 * abs(answer.log_delta))


@pytest.mark.slow
def test_ball_arithmetic_agrees_in_the_valley():
    # Forty digits of the contour integral in ball arithmetic, fifteen minutes long.
    found = accountant("contour").log_delta(
        compose(rare("1/1000", "3/2"), 1000).law("remove"), 0.638
    )
    assert found.kind == "exact"
    assert found.log_delta == pytest.approx(-54.288581793188680717, abs=1e-12)


@pytest.mark.slow_cases(
    "2-1e-06",
    "2-0.1",
    "2-1e-09",
    "3-0.001",
    "3-0.1",
    "3-1e-06",
    "3-1e-13",
    "7-0.001",
    "7-1e-09",
    "7-1e-13",
)
@pytest.mark.parametrize("gap", [0.1, 1e-3, 1e-6, 1e-9, 1e-13])
@pytest.mark.parametrize("b", [2, 3, 7])
def test_next_to_the_largest_loss_of_two_steps(b, gap):
    """Laplace noise: atoms of 1/2 at 1/b, beside which the density is e^{−u/2}/4."""
    epsilon = 2 / b - gap
    found = compose(mechanisms.laplace(b=b), 2).delta(epsilon, direction="remove")
    with mpmath.workdps(40):
        left = mpmath.mpf(2) / b - mpmath.mpf(epsilon)

        def gain(u):
            return -mpmath.expm1(u - left) * mpmath.exp(-u / 2) * (mpmath.mpf(1) / 4 + u / 16)

        truth = mpmath.log(-mpmath.expm1(-left) / 4 + mpmath.quad(gain, [0, left]))
        assert found.log_lower <= truth <= found.log_upper
        # Of many nodes of the loss, each is rounded like the largest one, beside what is left.
        assert abs(found.log_delta - truth) < 1e-13 + 1e-20 / gap
    assert found.log_upper - found.log_lower < 1e-13 + 4e-15 / gap


@pytest.mark.parametrize("b", [2, 3])
def test_nothing_is_lost_at_the_largest_loss(b):
    found = compose(mechanisms.laplace(b=b), 2 * b).delta(2.0, direction="remove")
    assert found.log_delta == -math.inf
    assert found.log_upper < math.log(1e-20)


@pytest.mark.slow
def test_two_heavy_steps_against_an_integral_over_one():
    """Noise of two scales: the loss has no upper end, and its density a step at the lower one."""
    rate, wide, narrow, epsilon = (mpmath.mpf(v) for v in ("0.01", "5", "2", "1.39616"))
    noise = ALL["laplace scales"].mechanism("scales")(a=5, c=2).subsample("poisson", "1/100")
    law = compose(noise, 2).law("remove")
    with mpmath.workdps(25):
        growth = 1 / narrow - 1 / wide

        def ratio(t):
            return 1 - rate + rate * narrow / wide * mpmath.exp(growth * t)

        def place(loss):
            return mpmath.log((mpmath.exp(loss) - 1 + rate) * wide / (rate * narrow)) / growth

        def gain(t):
            rest = epsilon - mpmath.log(ratio(t))
            u = place(rest) if rest > mpmath.log(ratio(0)) else mpmath.mpf(0)
            under_q = mpmath.exp(-u / narrow)
            under_p = (1 - rate) * under_q + rate * mpmath.exp(-u / wide)
            density = mpmath.exp(-t / narrow) / narrow
            return density * (ratio(t) * under_p - mpmath.exp(epsilon) * under_q)

        end = place(epsilon - mpmath.log(ratio(0)))
        cuts = [0, 1, 3, 6, 10, 15, 20, end / 2, 3 * end / 4, 9 * end / 10, end]
        truth = mpmath.quad(gain, sorted(cuts))
        truth += mpmath.quad(gain, [end, end + 5, end + 20, end + 60, end + 200, mpmath.inf])
        log_truth = float(mpmath.log(truth))
    answer = accountant("contour").log_delta(law, float(epsilon))
    assert answer.log_lower <= log_truth <= answer.log_upper
    assert answer.log_delta == pytest.approx(log_truth, abs=1e-10)


@pytest.mark.slow_cases("0.5", "3")
@pytest.mark.parametrize("epsilon", ["0.5", "3", "10.519", "40"])
def test_tails_too_heavy_for_the_saddle_point(epsilon):
    """Lomax tails of indices 1 and 2: the loss is log(1 + x) − log 2, a shifted exponential."""
    noise = ALL["lomax shapes"].mechanism("shapes")(a=2, c=1)
    law = compose(noise, 3).law("add")
    with mpmath.workdps(40):
        price, start = mpmath.mpf(epsilon), mpmath.mpf(epsilon) + 3 * mpmath.log(2)
        under_p = mpmath.gammainc(3, start) / 2
        delta = under_p - mpmath.exp(price) * mpmath.gammainc(3, 2 * start) / 2
        log_truth = float(mpmath.log(delta))
    answer = accountant("contour").log_delta(law, float(epsilon))
    assert answer.log_lower <= log_truth <= answer.log_upper
    assert answer.log_delta == pytest.approx(log_truth, abs=1e-12)


TRUNCATED = ALL["truncated laplace"].mechanism("truncated")(b=1)
GAPS = {
    "two steps next to the top": (2, 0.0195098, 1e-10),
    "five": (5, 0.0488, 1e-8),
    "ten": (10, 0.0976, 1e-8),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*list(GAPS)[:2], pytest.param("ten", marks=pytest.mark.slow)])
def test_where_nothing_lies_between_single_values(name):
    """From the sums of the largest loss down to the next there is no density at all."""
    count, epsilon, width = GAPS[name]
    step = TRUNCATED.subsample("poisson", "1/100")
    assert_certified([(step, count)], epsilon, "add", accuracy=width, width=width)


@pytest.mark.slow_cases("exp(-|x|**3) noise-2.0")
@pytest.mark.slow_cases("laplace against gaussian-5.0")
@pytest.mark.parametrize(
    ("name", "deviations"), [("exp(-|x|**3) noise", 2.0), ("laplace against gaussian", 5.0)]
)
def test_ten_sampled_steps_as_certified(name, deviations):
    step = ALL[name].mechanism(name).subsample("poisson", "1/100")
    epsilon = epsilon_at([(step, 10)], deviations, "remove")
    assert_certified([(step, 10)], epsilon, "remove", accuracy=1e-10, width=1e-9)


@pytest.mark.parametrize(("b", "top"), [("1/2", 2.0), ("2", 0.5)])
def test_the_largest_loss_is_a_double_where_it_is_one(b, top):
    law = compose(mechanisms.laplace(b=b), 1).law("remove")
    assert law.loss_bounds == (-top, top)


def test_nothing_is_rounded_at_a_largest_loss_of_zero():
    mechanism = ALL["uniform noise"].mechanism("uniform noise")(w="4/5")
    answer = compose(mechanism, 1).delta(0.0, direction="remove")
    assert answer.delta == pytest.approx(5 / 9, rel=1e-15)
    assert answer.log_upper - answer.log_lower < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "sigma", "count", "epsilon"),
    [
        ("1/1000", "3/2", 1000, 0.3),
        ("1/1000", "3/2", 1000, 0.8),
        ("1/1000", "1", 100, 0.4),
        ("1/500", "1", 12, 2.0),
    ],
)
def test_one_rare_large_loss_against_an_integral_over_it(rate, sigma, count, epsilon):
    """δ is a sum over the number of large losses: its label is exact, and a proof agrees."""
    step = rare(rate, sigma)
    answer = compose(step, count).delta(epsilon, direction="remove")
    proved = compose(step, count).certify(epsilon, 8, "remove")
    assert answer.kind == "exact"
    assert answer.log_lower <= proved.log_upper
    assert proved.log_lower <= answer.log_upper
    assert answer.log_upper - answer.log_lower < 1e-8
