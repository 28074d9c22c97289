"""Random parameters by the thousand: always a number, in order, below the moments bound."""

from __future__ import annotations

import math
import random

import pytest
import sympy as sp

from symdp import compose, mechanisms
from symdp.methods import accountant

FAMILIES = {
    "gaussian": "sigma",
    "laplace": "b",
    "logistic": "s",
    "gumbel": "b",
    "student_t": "s",
    "discrete_laplace": "b",
    "randomized_response": "epsilon_0",
}
NAMES = ("gaussian", "gaussian", *FAMILIES)
LAWS, POINTS = 10, 100


def exactly(value):
    return sp.Rational(f"{value:.4g}")


def random_law(seed):
    """Return what generated it, a law in words, and the law."""
    chance = random.Random(f"points {seed}")

    def spread(low, high):
        return math.exp(chance.uniform(math.log(low), math.log(high)))

    name = chance.choice(NAMES)
    size = spread(0.01, 3) if name == "randomized_response" else spread(0.3, 30)
    free = {FAMILIES[name]: exactly(size)}
    if name == "student_t":
        free["nu"] = exactly(spread(1, 20))
    mechanism = getattr(mechanisms, name)(**free)
    words = f"{name} {free}"
    if chance.random() < 0.6:
        rate = exactly(spread(1e-4, 0.9))
        mechanism = mechanism.subsample("poisson", rate)
        words += f" at rate {rate}"
    count = round(spread(1, 1e9)) if chance.random() < 0.8 else chance.choice((1, 2, 3))
    direction = chance.choice(("remove", "add"))
    return chance, f"{words} x {count}, {direction}", compose(mechanism, count).law(direction)


def check(seed, points):
    chance, words, law = random_law(seed)
    mean, variance = (float(value) for value in law.cumulants(0.0, 2))
    reach = (-6.0, 12.0, 40.0)
    places = sorted(
        mean + math.sqrt(variance) * chance.uniform(reach[0], chance.choice(reach[1:]))
        for _ in range(points)
    )
    before = math.inf
    for epsilon in places:
        where = f"seed {seed}: {words}, epsilon={epsilon!r}"
        answer = accountant("contour").log_delta(law, epsilon)
        assert answer.log_lower <= answer.log_delta <= answer.log_upper <= 0.0, where
        assert answer.log_lower <= before, where
        assert answer.log_lower <= accountant("moments").log_delta(law, epsilon).log_delta, where
        before = min(before, answer.log_upper)


@pytest.mark.quick_cases("5")
@pytest.mark.parametrize(
    "seed",
    [0, pytest.param(1, marks=pytest.mark.slow), 2, 5, pytest.param(8, marks=pytest.mark.slow), 11],
)
def test_a_few_laws(seed):
    check(seed, 40)


@pytest.mark.sweep
@pytest.mark.parametrize("start", range(0, 30, LAWS))
def test_many_points(start):
    for seed in range(start, start + LAWS):
        check(seed, POINTS)
