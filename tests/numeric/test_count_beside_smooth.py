"""Families that are a count plus a little of something smooth: |φ| returns to nearly 1 in peaks.

The truth is a sum over the count of normal tails in 40 digits, and shares no code with symdp.
"""

from __future__ import annotations

import random

import mpmath
import pytest
import sympy as sp

from symdp import Mechanism, compose

THETA = sp.Symbol("theta")


def truth(rate, width, first, second, count, epsilon):
    """log δ to remove, of T = N + X, N Poisson of mean a e^θ, X normal of mean 2bθ, variance 2b."""
    with mpmath.workdps(40):
        a, b, epsilon = mpmath.mpf(rate), mpmath.mpf(str(width)), mpmath.mpf(epsilon)
        own, other = count * a * mpmath.exp(first), count * a * mpmath.exp(second)
        gap = own - other + count * b * (mpmath.mpf(first) ** 2 - mpmath.mpf(second) ** 2)
        edge = (epsilon + gap) / (first - second)
        side = 1 if first > second else -1
        deviation = mpmath.sqrt(2 * b * count)
        reach = 14 * mpmath.sqrt(max(own, other)) + 40
        low, high = int(max(0, min(own, other) - reach)), int(max(own, other) + reach)
        delta = mpmath.mpf(0)
        for number in range(low, high + 1):
            masses = []
            for mean, theta in ((own, first), (other, second)):
                log_mass = number * mpmath.log(mean) - mean - mpmath.loggamma(number + 1)
                middle = number + 2 * b * theta * count
                tail = mpmath.ncdf(side * (middle - edge) / deviation)
                masses.append((log_mass, tail))
            (log_p, above), (log_q, falling) = masses
            delta += mpmath.exp(log_p) * above - mpmath.exp(epsilon + log_q) * falling
        return float(mpmath.log(delta))


def question(seed):
    """A random family, a number of steps, and ε some standard deviations from the mean loss."""
    chance = random.Random(seed)
    rate = chance.choice((2, 20, 100))
    width = sp.Rational(chance.choice((1, 3, 7)), 10 ** chance.choice((1, 2, 3)))
    first = sp.Rational(chance.randint(-4, 8), 4)
    second = first - sp.Rational(chance.choice((-6, -3, -1, 1, 2, 5)), 4)
    count = chance.choice((1, 3, 10))
    apart, mean = float(first - second), rate * float(sp.exp(first))
    spread = abs(apart) * (count * (mean + 2 * float(width))) ** 0.5
    loss = apart * mean - rate * (float(sp.exp(first)) - float(sp.exp(second)))
    loss = count * (loss + float(width) * apart**2)
    return rate, width, first, second, count, loss + chance.choice((-0.7, 0.4, 1.5, 3.0)) * spread


def asked(rate, width, first, second, count, epsilon):
    formula = rate * sp.exp(THETA) + width * THETA**2
    family = Mechanism.family(formula, {THETA: first}, {THETA: second})
    return compose(family, count).delta(epsilon, direction="remove")


@pytest.mark.slow
def test_a_count_beside_a_little_normal_noise():
    answer = asked(100, sp.Rational(1, 100), 4, 0, 3, 50573.4)
    assert answer.kind == "exact"
    true = truth(100, "0.01", 4, 0, 3, 50573.4)
    assert abs(answer.log_delta - true) < 1e-10


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=pytest.mark.slow if k > 3 else ()) for k in range(24)]
)
def test_random_counts_beside_smooth_noise(seed):
    rate, width, first, second, count, epsilon = question(seed)
    answer = asked(rate, width, first, second, count, epsilon)
    true = truth(rate, sp.Float(width, 40), float(first), float(second), count, epsilon)
    rounding = 1e-14 * (1.0 + abs(epsilon))  # of ε and of the losses, as it stands in doubles
    assert answer.log_lower - rounding <= true <= answer.log_upper + rounding
    assert answer.kind == "exact" or answer.log_upper - answer.log_lower > 1e-6


def test_the_intervals_between_which_balls_bound_a_transform_leave_a_narrow_answer():
    family = Mechanism.family(100 * sp.exp(THETA) + THETA**2 / 100, {THETA: 4}, {THETA: 0})
    answer = compose(family, 3).delta(50573.4, direction="remove")
    assert (answer.kind, answer.route) == ("exact", "contour")
    assert answer.lower < 0.01342882795739 < answer.upper * (1 + 1e-12)
    assert answer.upper - answer.lower < 1e-11
