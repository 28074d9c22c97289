"""Losses on single values off any lattice: sampled integer noise, above all."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import sympy as sp
from certified_values import assert_certified, epsilon_at
from scipy.special import erf

from symdp import compose, mechanisms
from symdp.certify import enclose_delta
from symdp.exact.halves import _running, halved_sum
from symdp.exact.lattice import find_lattice
from symdp.exact.line import continuous_kernel, first_line, tilted_laws
from symdp.exact.returns import _BLUR, sparing_tilt, with_returns
from symdp.model.mechanism import Mechanism

HALF = mechanisms.discrete_gaussian(sigma=2).subsample("poisson", "1/2")
RARE = mechanisms.discrete_gaussian(sigma=2).subsample("poisson", "1/100")
RESPONSES = [
    (mechanisms.randomized_response(epsilon_0="1/2"), 3),
    (mechanisms.randomized_response(epsilon_0="1/3"), 4),
]


QUESTIONS = {
    "between two lulls": ([(HALF, 5)], 4.0, "remove"),
    "six": ([(HALF, 6)], 2.0, "remove"),
    "in the head": ([(HALF, 6)], -1.0, "add"),
    "rare": ([(RARE, 4)], 2.0, "remove"),
    "two kinds": ([(HALF, 2), (RARE, 2)], 1.0, "remove"),
    "responses": (RESPONSES, 1.0, "remove"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_few_steps_agree_with_every_sum_in_balls(name):
    steps, deviations, direction = QUESTIONS[name]
    epsilon = epsilon_at(steps, deviations, direction)
    assert_certified(steps, epsilon, direction, accuracy=1e-11, width=1e-8)


def test_losses_far_out_do_not_round_those_about_zero():
    k = sp.Symbol("k", integer=True, nonnegative=True)
    masses = [(1 - r) * r**k for r in (sp.Rational(7, 10), sp.Rational(1, 3))]
    geometric = Mechanism.from_pair(*masses, k, support="naturals", name="geometric")
    steps = [(geometric.subsample("poisson", "1/100"), 3)]
    epsilon = 0.14333290521473654
    found = compose(steps).delta(epsilon, direction="remove")
    ball = enclose_delta([(m.pair("remove"), n) for m, n in steps], epsilon, 15)
    assert found.log_upper - found.log_lower < 2e-13
    assert found.log_lower < float(ball.log()) < found.log_upper


def test_every_sum_in_balls_is_the_sum_over_all_tuples():
    """The two halves of the proof, and of the accountant, against no halves at all."""
    mechanism = mechanisms.discrete_laplace(b="1/2").subsample("poisson", "1/3")
    epsilon, q = 0.7, 1 / 3
    reach = range(-25, 26)
    p = np.asarray([math.exp(-abs(2 * (k - 1))) for k in reach])
    base = np.asarray([math.exp(-abs(2 * k)) for k in reach])
    p, base = p / p.sum(), base / base.sum()
    mixed = (1 - q) * base + q * p
    loss = np.log(mixed / base)
    total = 0.0
    for chosen in itertools.product(range(len(loss)), repeat=3):
        gap = epsilon - sum(loss[list(chosen)])
        if gap < 0:
            total += math.prod(mixed[list(chosen)]) * -math.expm1(gap)
    ball = enclose_delta([(mechanism.pair("remove"), 3)], epsilon, 12)
    assert float(ball.mid()) == pytest.approx(total, rel=1e-11)
    assert compose(mechanism, 3).delta(epsilon, direction="remove").delta == pytest.approx(
        total, rel=1e-11
    )


@pytest.mark.slow_cases("mechanism1-12")
@pytest.mark.parametrize(("mechanism", "count"), [(HALF, 10), (HALF, 12), (RARE, 9)])
def test_two_halves_and_the_integral_agree(mechanism, count):
    """Each counts what the other cannot: the bounds of both hold."""
    epsilon = epsilon_at([(mechanism, count)], 2.0, "remove")
    law = compose(mechanism, count).law("remove")
    assert find_lattice(law) is None
    halves = halved_sum(law, epsilon, 1.0 if mechanism is HALF else 20.0)
    assert halves is not None
    line, tail = integral(law, epsilon, 1.0 if mechanism is HALF else 12.0)
    assert abs(math.exp(line - halves.log_delta) - 1.0) < tail + 1e-9
    assert tail < 1e-3


def integral(law, epsilon, tilt):
    """Return log δ by the integral, and what its bound says may be missing."""
    tilted = tilted_laws(law, tilt)
    line, _ = first_line(law, tilted, epsilon, tilt, continuous_kernel, math.inf, 0.0)
    gap = line.distance(epsilon) + line.shift
    line = with_returns(line, tilted, [n for _, n in law.terms], gap)
    found = line.value(epsilon)
    return found.log_value, found.relative_error


@pytest.mark.parametrize(
    ("mechanism", "count", "deviations"), [(RARE, 1000, 2.0), (RARE, 10**4, 4.0)]
)
def test_lulls_without_end_cost_no_digits(mechanism, count, deviations):
    steps = [(mechanism, count)]
    epsilon = epsilon_at(steps, deviations, "remove")
    assert_certified(steps, epsilon, "remove", accuracy=1e-12, width=4e-12)


@pytest.mark.slow_cases("100")
@pytest.mark.parametrize("count", [100, 10**6, 10**12])
def test_what_comes_back_rarely_leaves_narrow_bounds(count):
    composition = compose(RARE, count)
    mean, variance = (float(v) for v in composition.law("remove").cumulants(0.0, 2))
    for deviations in (0.5, 2.0, 3.0):
        found = composition.delta(mean + deviations * math.sqrt(variance), direction="remove")
        assert found.log_upper - found.log_lower < 1e-11


def test_what_comes_back_is_covered_by_the_bound_of_a_shorter_line():
    """Of the first nodes alone the bound must cover what the next million bring."""
    law = compose(HALF, 12).law("remove")
    epsilon = epsilon_at([(HALF, 12)], 2.0, "remove")
    tilted = tilted_laws(law, 1.0)
    line, _ = first_line(law, tilted, epsilon, 1.0, continuous_kernel, math.inf, 0.0)
    gap = line.distance(epsilon) + line.shift
    near = float((line.values * np.exp(1j * gap * line.places)).real.sum())
    whole = with_returns(line, tilted, [n for _, n in law.terms], gap)
    far = float((whole.values * np.exp(1j * gap * whole.places)).real.sum())
    assert abs(far - near) > 1e-7 * abs(near)  # it died out, and came back
    total, _, blur = whole.sums(gap)
    assert blur + whole.left_out < 1e-6 * total
    for nodes in (1 << 17, 1 << 19):
        here = whole.places < nodes * whole.step
        uncut = np.where(whole.places > 0.9 * whole.reach, 0.0, whole.values)
        short = replace(
            whole,
            places=whole.places[here],
            values=uncut[here] * cut_off(whole.places[here] / (nodes * whole.step)),
            reach=nodes * whole.step,
        )
        cut, _, bound = short.sums(gap)
        assert abs(cut - total) < bound + blur
        assert bound < 1e-2 * total


def cut_off(w):
    """Return the cut-off, by its definition."""
    return 0.5 * (erf(12.0 * (w + 0.5)) - erf(12.0 * (w - 0.5)))


def kernel(v):
    """Return the transform of the cut-off: that of an interval, times that of a Gaussian."""
    slow = mpmath.sin(v / 2) / (mpmath.pi * v) if v else 1 / (2 * mpmath.pi)
    return slow * mpmath.exp(-((v / 24) ** 2))


def payoff(x, tilt):
    """Return what the loss beyond ε is worth, tilted: of δ, and between the poles of δ − 1."""
    if tilt > 0:
        return mpmath.exp(-tilt * x) - mpmath.exp(-(tilt + 1) * x) if x > 0 else mpmath.mpf(0)
    return -mpmath.exp(-(tilt + 1) * x) if x > 0 else -mpmath.exp(-tilt * x)


@pytest.mark.parametrize("tilt", [0.01, 1.0, 30.0, -0.5, -0.99])
def test_blurring_changes_the_payoff_next_to_epsilon_only(tilt):
    """The inequality that the bound rests on, at the smallest reach at which it is used."""
    reach = mpmath.mpf(100) * (1 + abs(tilt))
    ends = [-200, *(2 * mpmath.pi * k for k in range(-31, 32)), 200]
    shares = []
    for u in (-100, -60, -24, -8, -3, -1, 0, 0.5, 2, 4, 6, 12, 18, 36, 80):
        x = u / reach
        blurred = mpmath.quad(
            lambda v, x=x: payoff(x - v / reach, tilt) * kernel(v), sorted([*ends, u])
        )
        bound = mpmath.mpf("0.65") / reach * mpmath.exp(-((mpmath.mpf(u) / 24) ** 2))
        shares.append(float(abs(blurred - payoff(x, tilt)) / bound))
    assert 0.9 < max(shares) < 1.1
    assert pytest.approx(1.1 * 0.65 * 24 * math.sqrt(math.pi)) == _BLUR


FEW_LARGE = {"ten": (RARE, 10, 8.0), "thirty": (RARE, 30, 8.0), "a hundred": (RARE, 100, 3.0)}


@pytest.mark.slow_cases("a hundred")
@pytest.mark.parametrize(
    "name", ["ten", pytest.param("thirty", marks=pytest.mark.slow), "a hundred"]
)
def test_a_rare_large_loss_on_single_values(name):
    """Kept lines and a line of its own agree within narrow bounds where tilts cost the most."""
    step, count, deviations = FEW_LARGE[name]
    epsilon = epsilon_at([(step, count)], deviations, "remove")
    composition = compose(step, count)
    answer = composition.delta(epsilon, direction="remove")
    assert answer.log_upper - answer.log_lower < 1e-5
    law = compose(step, count).law("remove")
    tilt = 0.8 * sparing_tilt(law, epsilon, 35.0)
    log_delta, error = integral(law, epsilon, tilt)
    assert abs(log_delta - answer.log_delta) < error + answer.log_upper - answer.log_lower
    assert error < 1e-5


def test_running_sums():
    values = np.random.default_rng(1).random(70_000)
    found = _running(values)
    assert found[-1] == pytest.approx(math.fsum(values), rel=1e-14)
    assert found[12_345] == pytest.approx(math.fsum(values[:12_346]), rel=1e-14)


def test_what_lies_on_a_lattice_is_seen_to():
    for mechanism in (
        mechanisms.discrete_laplace(b=2),
        mechanisms.randomized_response(epsilon_0=1),
    ):
        assert find_lattice(compose(mechanism, 5).law("remove")) is not None
