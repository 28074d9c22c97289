"""Terms of a density add up to it, and moments of a list of points are its sums."""

from __future__ import annotations

import math

import pytest
import sympy as sp

from symdp import mechanisms
from symdp.density.integrate import tabulated_moment
from symdp.density.mixture import additive_terms
from symdp.density.normal_form import tidy_base
from symdp.model.mechanism import Mechanism

X = sp.Symbol("x", real=True)
E = sp.exp
SPLIT = [  # a density on (0, ∞), and in how many terms it is told
    (E(-X) + 3 * E(-3 * X), 2),
    (X * E(-X) + E(-3 * X), 2),
    (X * E(-X) + X**2 * E(-3 * X) + E(-(X**2)), 3),
    (E(-X) * (1 + X), 1),  # one exponential times a polynomial
    (E(-X) * (1 + E(-X)) * X, 2),
    (E(-X) * (2 - E(-X)), 1),  # no sum of positive terms
    (1 + X, 1),
]


@pytest.mark.parametrize(("density", "count"), SPLIT, ids=str)
def test_positive_terms_are_told_apart(density, count):
    terms = additive_terms(density, X, sp.S.Zero, sp.oo)
    assert len(terms) == count
    at = sp.Rational(9, 7)
    total = sum(sp.exp(term.log()).subs(X, at) for term in terms)
    assert abs(sp.N(total - density.subs(X, at), 30)) < 1e-25


@pytest.mark.parametrize("at", [-2.5, -1.0, 0.0, 0.5, 3.0])
def test_moments_of_points_are_sums(at):
    """Σ P^{1+t} Q^{−t} where both have mass."""
    p, q = [sp.Rational(k, 10) for k in (1, 4, 2, 3)], [sp.Rational(k, 10) for k in (3, 1, 6, 0)]
    pair = Mechanism.from_pair(p, q, X, {"points": [0, 1, 2, 3]}, name="points").pair()
    tilt, moment = tabulated_moment(pair)
    truth = math.fsum(
        float(a) ** (1 + at) * float(b) ** -at for a, b in zip(p, q, strict=True) if b
    )
    assert float(moment.subs(tilt, at)) == pytest.approx(truth, rel=1e-12)


def test_moments_of_randomized_response():
    tilt, moment = tabulated_moment(mechanisms.randomized_response(epsilon_0=1).pair())
    for at in (-1.0, 0.0, 2.0):
        truth = (math.exp(1 + at) + math.exp(-at)) / (1 + math.e)
        assert float(moment.subs(tilt, at)) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize(
    "base",
    [
        E(-(X**2) + 2 * X) + 3 * E(4 * X**2 - X),
        E(-(X**2) + 2 * X) + E(1 / X),
        E(sp.sqrt(X)) + E(X**2 + X),
        X**2 + 2 * X + 5,
        2 + E(3 * X - 1),
        sp.sin(X) + E(X**2 + X),
    ],
    ids=str,
)
def test_a_base_with_fewer_variables_has_the_same_values(base):
    for at in (sp.Rational(1, 3), sp.Rational(7, 4)):
        gap = (tidy_base(base, X) - base).subs(X, at)
        assert abs(sp.N(gap, 30, maxn=200)) < 1e-24
