"""Losses on single values off any lattice: sampled integer noise, above all."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from certified_values import assert_certified, epsilon_at

from symdp import compose, mechanisms
from symdp.accountant.halves import _running, halved_sum
from symdp.accountant.lattice import find_lattice
from symdp.accountant.line import continuous_kernel, first_line, tilted_laws
from symdp.accountant.returns import _halves, with_returns
from symdp.certify import enclose_delta

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


def test_the_bound_of_what_comes_back_is_not_idle():
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
    assert 2.0 * whole.places.size * whole.last < 1e-5 * abs(near)


def test_exponents_of_halves_are_even_and_add_up():
    for counts in ([4.0, 6.0], [3.0], [1.0, 1.0, 1.0], [5.0, 2.0, 1.0]):
        one, other = _halves(counts)
        assert all(value % 2.0 == 0.0 and value >= 0.0 for value in [*one, *other])
        assert [(a + b) / 2.0 for a, b in zip(one, other, strict=True)] == counts


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
