"""Lists of many outcomes: their cost grows like their length, and their losses are log p/q."""

import math

import numpy as np
import pytest
import sympy as sp

from symdp import InputError, Mechanism, compose

X = sp.Symbol("x")


def excess(p, q, epsilon):
    return math.fsum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(p, q, strict=True))


def test_two_thousand_outcomes_are_answered_as_their_sum():
    weights = [1 + (7 * k) % 11 + k % 3 for k in range(2000)]
    p = [sp.Rational(w, sum(weights)) for w in weights]
    q = [p[(k + 1) % 2000] for k in range(2000)]
    listed = Mechanism.from_pair(p, q, X, support=list(range(2000)))
    first, second = [float(m) for m in p], [float(m) for m in q]
    truth = max(excess(first, second, 0.5), excess(second, first, 0.5))
    assert compose(listed).delta(0.5).delta == pytest.approx(truth, rel=1e-12)


def test_a_point_that_is_there_twice_is_named_however_far_apart():
    places = [*range(500), 3]
    masses = np.full(501, 1.0).tolist()
    with pytest.raises(InputError, match="the point 3 of the support is there twice"):
        Mechanism.from_pair(masses, masses, X, support=places, normalize=True)
