"""The best of a random number of trials, against sums over all outcomes, and known bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from refusals import refused

from symdp import Mechanism, compose, mechanisms

X = sp.Symbol("x")


def generating_function(shape, gamma, mean):
    """f(x) = E x^K itself, from which the law of the best result follows by differences."""
    if shape == math.inf:
        return lambda x: np.exp(mean * (x - 1))
    if shape == 0:
        return lambda x: np.log1p(-(1 - gamma) * x) / math.log(gamma)
    return lambda x: ((1 - (1 - gamma) * x) ** -shape - 1) / (gamma**-shape - 1)


def mean_of(shape, gamma):
    """The mean of K as a sum over its law, term by term."""
    if shape == 0:
        terms = [(1 - gamma) ** k / math.log(1 / gamma) for k in range(1, 4000)]
        return math.fsum(terms)
    total, product = 0.0, 1.0
    for k in range(1, 4000):
        product *= (k - 1 + shape) / k * (1 - gamma)
        total += k * product / (gamma**-shape - 1)
    return total


def best(law, generating):
    """The law of the outcome of highest rank among K, ranks as listed."""
    below = np.concatenate([[0.0], np.cumsum(law)])
    below[-1] = 1.0
    return np.diff(generating(below))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0, 1, 0.5, -0.5, 3, math.inf])
@pytest.mark.parametrize("seed", range(4))
def test_both_bounds_lie_above_the_sum_over_outcomes(shape, seed):
    generator = np.random.default_rng(seed)
    spread = (0.3, 1.0, 2.0, 0.1)[seed]
    p, q = generator.random((2, 6)) ** 2
    p, q = (np.round(one / one.sum(), 9) for one in (p + 0.02, q * spread + p + 0.02))
    p[-1], q[-1] = 1 - p[:-1].sum(), 1 - q[:-1].sum()
    if seed == 3:  # outcomes that one of the two never gives
        p, q = np.array([0.001, 0.5, 0.499, 0]), np.array([0, 0.499, 0.5, 0.001])
    gamma = (0.3, 0.05, 0.7, 0.2)[seed]
    mean = (2.5, 8.0, 0.7, 30.0)[seed] if shape == math.inf else mean_of(shape, gamma)
    generating = generating_function(shape, gamma, mean)
    points = {"points": list(range(len(p)))}
    pair = Mechanism.from_pair([sp.Rational(str(round(v, 12))) for v in p],
                               [sp.Rational(str(round(v, 12))) for v in q], X, points)  # fmt: skip
    trial = compose(pair)
    bounds = {by: compose(trial.selection(mean, shape, by))
              for by in ("profile", "renyi") if by == "profile" or seed < 3}  # fmt: skip
    for _ in range(3):
        order = generator.permutation(len(p))
        with_record, without = best(p[order], generating), best(q[order], generating)
        for epsilon in (0.0, 0.2, 0.7, 1.5, 3.0):
            for a, b in ((with_record, without), (without, with_record)):
                delta = np.maximum(a - math.exp(epsilon) * b, 0).sum()
                for bound in bounds.values():
                    assert bound.delta(epsilon).upper >= delta * (1 - 1e-9)
    assert bounds["profile"].delta(0.0).kind == "bound"


# RdpAccountant of dp-accounting 0.6, its default orders, after RepeatAndSelectDpEvent(
# SelfComposedDpEvent(GaussianDpEvent(5.0), 10), 10, shape), ε at 1e-6.
THEIRS = {0: 4.920190061879646, 1: 5.733965735352702}


@pytest.mark.parametrize("shape", THEIRS)
def test_renyi_bounds_of_a_gaussian_are_those_of_the_theorems(shape):
    trial = compose(mechanisms.gaussian(sigma=5), 10)
    mine = compose(trial.selection(10, shape, "renyi")).epsilon(1e-6).epsilon
    assert mine == pytest.approx(THEIRS[shape], rel=1e-3)  # other orders


@pytest.mark.slow
def test_one_trial_is_one_trial():
    trial = compose(mechanisms.laplace(b=2), 3)
    once = compose(trial.selection(1, 0.5))
    for epsilon in (0.0, 0.5, 1.0):
        assert trial.delta(epsilon).delta <= once.delta(epsilon).delta
        assert once.delta(epsilon).delta == pytest.approx(trial.delta(epsilon).delta, rel=2e-3)
    assert once.protection.relation == "add_remove"


def test_refusals():
    trial = compose(mechanisms.gaussian(sigma=2))
    with refused("expected number of trials"):
        trial.selection(0.5)
    with refused("1 is geometric"):
        trial.selection(2, -1)
    with refused("'profile' or 'renyi'"):
        trial.selection(2, by="profil")
    with refused("too large a δ"):
        compose(mechanisms.approximate_dp(epsilon_0=1, delta_0="1/2")).selection(10)
