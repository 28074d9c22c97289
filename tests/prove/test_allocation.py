"""Certificates of random allocation: they contain what quadrature, formulas and the tables say."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
import sympy as sp
from flint import arb, ctx

from symdp import AccuracyError, compose, mechanisms
from symdp.model.allocation import AllocatedPair
from symdp.model.mechanism import Mechanism
from symdp.prove.enclosure import enclose_delta

SCHEME = "random_allocation"


def ball_of(noise, steps, direction, epsilon, digits):
    return enclose_delta(
        [(AllocatedPair(noise.pair("remove"), steps, direction), 1)], epsilon, digits
    )


def contains(ball, value):
    """Whether a ball may contain a number of which mpmath has thirty digits."""
    with ctx.workprec(200):
        known = arb(mpmath.nstr(value, 34))
        return bool(ball.overlaps(known + arb(0, abs(known) * arb(10) ** -30)))


def gaussian_shortfall(level, sigma):
    """E (a − W)⁺ for W = exp(x/σ − 1/2σ²): the price of a put option."""
    if level <= 0:
        return mpmath.mpf(0)
    s = 1 / sigma
    d = mpmath.log(level) / s + s / 2
    return level * mpmath.ncdf(d) - mpmath.ncdf(d - s)


def two_gaussian_steps(sigma, epsilon, direction):
    """δ of one of two steps: one quadrature, the other step in closed form."""
    sigma, e = mpmath.mpf(sigma), mpmath.exp(epsilon if direction == "remove" else -epsilon)
    s, level = 1 / sigma, 2 * e
    last = mpmath.log(level) / s + s / 2  # from where on the first ratio alone exceeds the level

    def integrand(x):
        rest = level - mpmath.exp(s * x - s * s / 2)
        return mpmath.npdf(x) * gaussian_shortfall(rest, sigma)

    places = [last - d for d in (60, 20, 12, 8, 5, 3, 2, 1, 0.5, 0.1, 0.01, 0)]
    total = mpmath.quad(integrand, places) / 2
    return total + 1 - e if direction == "remove" else total / e


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "epsilon"), [(2, 0.5), (1, 1)])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_two_steps_are_a_double_integral(sigma, epsilon, direction):
    ball = ball_of(mechanisms.gaussian(sigma=sigma), 2, direction, epsilon, 8)
    with mpmath.workdps(40):
        assert contains(ball, two_gaussian_steps(sigma, epsilon, direction))
    assert 2 * ball.rad() < 1e-8 * ball


@pytest.mark.quick_cases("add-4-200-0.05")
@pytest.mark.parametrize(
    ("sigma", "steps", "epsilon"), [(1, 10, 1.0), (1, 1000, 0.1), (2, 10, 1.0), (4, 200, 0.05)]
)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_certificates_and_tables_overlap(sigma, steps, epsilon, direction):
    noise = mechanisms.gaussian(sigma=sigma)
    ball = ball_of(noise, steps, direction, epsilon, 8)
    assert 2 * ball.rad() < 1e-8 * ball
    answer = compose(noise.subsample(SCHEME, steps=steps), 1).delta(epsilon, direction=direction)
    assert bool(ball.overlaps(arb(answer.delta, answer.upper - answer.lower)))


@pytest.mark.slow
def test_a_certificate_names_the_larger_direction():
    steps = compose(mechanisms.gaussian(sigma=1).subsample(SCHEME, steps=10), 1)
    proved = steps.certify(1, digits=8)
    assert proved.direction == "remove"
    assert proved.digits == 8
    assert proved.lower_decimal.startswith("2.78286899")


@pytest.mark.slow
def test_one_step_is_the_step_itself():
    noise = mechanisms.gaussian(sigma=2)
    drawn = compose(noise.subsample(SCHEME, steps=1), 3)
    one, other = drawn.certify(1.5, digits=8), compose(noise, 3).certify(1.5, digits=8)
    assert one.lower <= other.upper
    assert other.lower <= one.upper
    assert one.upper - one.lower < 1e-6 * one.upper  # the other direction is proved to fewer digits


def test_beyond_every_ratio_nothing_is_left():
    noise = mechanisms.laplace(b=1)
    assert ball_of(noise, 5, "remove", 1, 8).is_zero()
    assert ball_of(noise, 5, "add", Fraction(3, 2), 8).is_zero()


def hit_or_miss():
    """An output on [0, 1] that is uniform without the record, and 2/3 + 2x/3 with it."""
    x = sp.Symbol("x", real=True)
    return Mechanism.from_pair(sp.Rational(2, 3) * (1 + x), sp.Integer(1) + 0 * x, x, (0, 1))


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_three_uniform_ratios_are_a_spline(direction):
    """W = 2/3 + 2X/3, so that E (K − Y)⁺ is Σ_j (−1)^j C(3, j) (s − j)₊⁴/4! · 2/3, s = 3K/2 − 3."""
    steps, epsilon = 3, Fraction(1, 10)
    noise = hit_or_miss()
    ball = enclose_delta([(AllocatedPair(noise.pair("remove"), steps, direction), 1)], epsilon, 6)
    with mpmath.workdps(40):
        e = mpmath.exp(mpmath.mpf(1) / 10 * (1 if direction == "remove" else -1))
        s = (steps * e - 2) * 3 / 2
        places = [max(s - j, 0) ** 4 * (-1) ** j * math.comb(3, j) for j in range(4)]
        shortfall = sum(places) / 24 * mpmath.mpf(2) / 3
        truth = shortfall / 3 + 1 - e if direction == "remove" else shortfall / (3 * e)
        assert contains(ball, truth)
    assert 2 * ball.rad() < 1e-6 * ball


@pytest.mark.slow
def test_far_tails_are_relative_to_themselves():
    ball = ball_of(mechanisms.gaussian(sigma=2), 10, "add", 3, 6)
    assert 0 < ball < 1e-60
    assert 2 * ball.rad() < 1e-6 * ball


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_long_list_is_its_binomial_sum(direction):
    response, steps = mechanisms.randomized_response(epsilon_0=1), 200
    ball = ball_of(response, steps, direction, 0.1, 12)
    with mpmath.workdps(40):
        q = 1 / (1 + mpmath.e)
        bound, total = mpmath.exp(0.1), mpmath.mpf(0)
        for k in range(steps + 1):
            mass = mpmath.binomial(steps, k) * q**k * (1 - q) ** (steps - k)
            mean = (k * mpmath.e + (steps - k) / mpmath.e) / steps
            gain = mean - bound if direction == "remove" else 1 - bound * mean
            total += mass * max(gain, 0)
        assert contains(ball, total)
    assert 2 * ball.rad() < 1e-12 * ball


def test_several_epochs_are_refused_by_name():
    steps = compose(mechanisms.gaussian(sigma=1).subsample(SCHEME, steps=10), 2)
    with pytest.raises(AccuracyError, match="one epoch of random allocation is proved on its own"):
        steps.certify(1, digits=6)


@pytest.mark.slow
def test_epsilon_is_between_proved_ends():
    steps = compose(mechanisms.gaussian(sigma=2).subsample(SCHEME, steps=50), 1)
    proved = steps.certify_epsilon(1e-5, digits=8)
    answer = steps.epsilon(1e-5)
    assert float(proved.lower_decimal) <= answer.epsilon * (1 + 1e-9)
    assert float(proved.upper_decimal) >= answer.epsilon * (1 - 1e-9)
    assert math.isclose(proved.epsilon, answer.epsilon, rel_tol=1e-9)
