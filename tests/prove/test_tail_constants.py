"""Proved bounds of tails of randomized response, whose total loss is that of a binomial law."""

from __future__ import annotations

import math
from functools import cache

import pytest

import symdp

COUNT = 12
NAMES = ("chernoff", "hoeffding", "sub_gaussian_tail")


@cache
def constants():
    return {
        c.name: c for c in symdp.derive(symdp.mechanisms.randomized_response(epsilon_0=1)).tails
    }


def log_tail(epsilon, law):
    """log Pr[S ≥ ε] of COUNT losses of ±1, +1 with e/(1 + e) under P and 1/(1 + e) under Q."""
    up = 1 / (1 + math.exp(-1)) if law == "p" else 1 / (1 + math.e)
    least = math.ceil((COUNT + epsilon) / 2)
    terms = (math.comb(COUNT, k) * up**k * (1 - up) ** (COUNT - k) for k in range(least, COUNT + 1))
    return math.log(math.fsum(terms))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("law", ["p", "q"])
@pytest.mark.parametrize("epsilon", [1, 6, 8, 10])
def test_a_bound_is_no_less_than_the_tail(name, law, epsilon):
    bound = constants()[f"{name}_{law}"].value(n=COUNT, epsilon=epsilon)
    assert log_tail(epsilon, law) <= float(bound.upper()) <= 1e-12


@pytest.mark.parametrize("epsilon", [6, 8, 10])
def test_hoeffdings_bound_is_his(epsilon):
    """−2(ε − nm)²/(n(b − a)²) with m = tanh ½ and b − a = 2, and 0 below the mean."""
    hoeffding = constants()["hoeffding_p"]
    excess = epsilon - COUNT * math.tanh(0.5)
    bound = float(hoeffding.value(n=COUNT, epsilon=epsilon))
    assert bound == pytest.approx(-(excess**2) / (2 * COUNT), rel=1e-12)
    assert float(hoeffding.value(n=COUNT, epsilon=5)) == pytest.approx(0.0, abs=1e-12)
