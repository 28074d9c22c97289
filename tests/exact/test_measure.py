"""Adding densities: against truth where the contour cancels, else against the contour."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from catalogue import ALL
from certified_values import assert_certified

from symdp import compose, mechanisms
from symdp.errors import AccuracyError
from symdp.exact.contour import on_own_lines
from symdp.exact.measure.convolution import convolved
from symdp.methods import accountant
from symdp.oracle.evaluation import privacy_profile


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
    law = compose(mechanisms.gaussian(sigma=5), count).law("remove")
    mu = math.sqrt(count) / 5
    epsilon = mu * mu / 2 + deviations * mu
    with mpmath.workdps(40):
        m, e = mpmath.sqrt(count) / 5, mpmath.mpf(epsilon)
        delta = mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
        error = float(mpmath.mpf(convolved(law, epsilon).log_delta) - mpmath.log(delta))
    assert abs(error) < 1e-14 * (count + abs(float(mpmath.log(delta))))
    assert abs(error) < 4 * convolved(law, epsilon).error


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_where_the_contour_answers_both_agree(epsilon):
    law = compose(rare("1/5", 5), 20).law("remove")
    direct, (contour, _) = convolved(law, epsilon), on_own_lines(law, epsilon)
    assert direct.log_delta == pytest.approx(contour.log_delta, abs=1e-12)


def test_ball_arithmetic_agrees_in_the_valley():
    # Forty digits of the contour integral in ball arithmetic, fifteen minutes long.
    found = accountant("contour").log_delta(
        compose(rare("1/1000", "3/2"), 1000).law("remove"), 0.638
    )
    assert found.kind == "exact"
    assert found.log_delta == pytest.approx(-54.288581793188680717, abs=1e-12)


def test_different_steps_and_their_order():
    a, b = rare("1/100", 5), mechanisms.laplace(b=3)
    one = convolved(compose([(a, 3), (b, 2)]).law("remove"), 0.4)
    other = convolved(compose([(b, 2), (a, 3)]).law("remove"), 0.4)
    assert one.log_delta == pytest.approx(other.log_delta, abs=1e-13)
    assert math.exp(one.log_delta) + math.exp(one.log_complement) == pytest.approx(1, abs=1e-13)


@pytest.mark.slow
def test_profile_decreases_and_is_kept():
    law = compose(rare("1/1000", 5), 30).law("remove")
    values = [convolved(law, float(e)).log_delta for e in np.linspace(0.5, 0.02, 25)]
    assert (np.diff(values) > 0).all()


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


def test_no_answer_depends_on_what_was_asked_before():
    law = compose(mechanisms.gaussian(sigma=2), 3).law("remove")
    for epsilon in (-1.0, 1.5, 12.0, 4.0, 15.0, 0.0):
        fresh = compose(mechanisms.gaussian(sigma=2), 3).law("remove")
        assert convolved(law, epsilon).log_delta == pytest.approx(
            convolved(fresh, epsilon).log_delta, rel=1e-13
        )


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
    assert convolved(law, float(epsilon)).log_delta == pytest.approx(log_truth, abs=1e-13)


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
    "two steps next to the top": (2, 0.0195098, 1e-11),
    "five": (5, 0.0488, 1e-11),
    "ten": (10, 0.0976, 1e-11),
}


@pytest.mark.slow_cases("five")
@pytest.mark.parametrize("name", [*list(GAPS)[:2], pytest.param("ten", marks=pytest.mark.slow)])
def test_where_nothing_lies_between_single_values(name):
    """From the sums of the largest loss down to the next there is no density at all."""
    count, epsilon, width = GAPS[name]
    step = TRUNCATED.subsample("poisson", "1/100")
    assert_certified([(step, count)], epsilon, "add", accuracy=width, width=width)


@pytest.mark.slow
def test_densities_that_take_too_long_are_left_alone():
    law = compose(TRUNCATED, 100).law("remove")
    with pytest.raises(AccuracyError, match="takes too long"):
        convolved(law, 12.2222)
    assert_certified([(TRUNCATED, 100)], 12.2222, "remove", accuracy=1e-13, width=1e-13)
