"""Noise of one mode whose mode is not decided, against single shifts in doubles of one's own."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from one_mode_laws import LAWS

from symdp import Mechanism, compose, mechanisms
from symdp.model.curve_tables import profile_pair
from symdp.model.fact import OPEN, Fact
from symdp.questions.steps.accounted import answered

RATE = 0.1
SHARES = (-1.0, -0.6, -0.2, 0.2, 0.6, 1.0)  # of the sensitivity


@pytest.fixture
def undecided(monkeypatch):
    """No rule and no ball decides whether noise has one mode."""
    fact = Fact(None, OPEN, "nobody asks")
    monkeypatch.setattr("symdp.balls.modes.one_mode", lambda _mechanism: fact)


def places(law):
    """Places and weights of a sum for ∫, of cells that grow away from 0, cut at kinks."""
    if law.is_whole:
        x = np.arange(math.floor(law.span[0]), math.ceil(law.span[1]) + 1.0)
        return x, np.ones(x.size)
    size = law.sensitivity
    ends = np.sinh(np.linspace(*np.arcsinh(law.span), 60_001))
    moved = [kink + share * size for kink in law.kinks for share in (0.0, *SHARES)]
    ends = np.unique([*ends, *moved])
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half, middle = np.diff(ends) / 2, (ends[1:] + ends[:-1]) / 2
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


def largest(law, epsilon, rate=1.0):
    """The largest δ(ε) of one step over a grid of shifts, in either order."""
    x, weights = places(law)
    f = law.values(x)
    mass = float(np.sum(weights * f))
    deltas = []
    for share in SHARES:
        distance = share * law.sensitivity
        if law.is_whole and distance != round(distance):
            continue
        moved = (1 - rate) * f + rate * law.values(x - distance)
        for p, q in ((moved, f), (f, moved)):
            gain = np.maximum(p - math.exp(epsilon) * q, 0.0)
            deltas.append(float(np.sum(weights * gain)) / mass)
    return max(deltas)


@pytest.mark.quick_cases("normal")
@pytest.mark.parametrize("name", LAWS)
def test_the_bound_for_all_shifts_is_the_largest_of_them(name, undecided):
    """One step against sums over a grid; many against the pair of the largest shift."""
    law = LAWS[name]
    noise = law.mechanism()
    for rate in (1.0, RATE):
        open_noise = noise if rate == 1.0 else noise.subsample("poisson", "1/10")
        own = answered(open_noise)
        assert own.is_of_all_shifts
        assert own.beside is not None
        for epsilon in (0.01, 0.05):
            truth = largest(law, epsilon, rate)
            bound = compose(open_noise, 1).delta(epsilon)
            assert bound.kind == "bound"
            assert truth * (1 - 1e-6) <= bound.delta <= truth * (1 + 1e-6) + 1e-8
        sides = [open_noise.shifted("exactly")]
        for count in (10, 100):
            epsilon = compose(sides[0], count).epsilon(1e-5).epsilon
            bound = compose(open_noise, count).epsilon(1e-5)
            assert bound.kind == "bound"
            assert epsilon * (1 - 1e-12) <= bound.epsilon
            if not own.is_one_sided or rate == 1.0:
                assert bound.epsilon <= epsilon * 1.0001


def test_an_answer_says_that_one_mode_was_not_shown(undecided):
    x = sp.Symbol("x", real=True)
    noise = Mechanism.additive(sp.exp(-(x**2) / 8) / sp.sqrt(8 * sp.pi), x)
    answer = compose(noise, 10).epsilon(1e-5)
    assert answer.n == 10
    assert "was not shown to have one mode" in answer.protection.sentence
    assert answer.to_json()["shift"] == "at most"
    assert answer.protection.pair == "dominating"
    certified = compose(noise, 10).certify(1.0)
    assert certified.lower <= compose(noise, 10).delta(1.0).delta
    assert certified.upper == pytest.approx(certified.lower, rel=1e-9)


def test_a_step_beside_another_that_is_seen_through_with_a_chance():
    """η + (1 − η)δ of a step beside one that tells all with the chance η, and else nothing."""
    noise = mechanisms.laplace(b=2)
    for chance in (1e-3, 1e-24):
        beside = profile_pair([(Fraction(1), Fraction(chance))], "seen through")
        both = compose([(noise, 3), (beside, 2)])
        for epsilon in (0.2, 0.7, 4.0):
            alone = compose(noise, 3).delta(epsilon).delta
            escaped = -math.expm1(2 * math.log1p(-chance))
            truth = escaped + (1 - escaped) * alone
            assert both.delta(epsilon).delta == pytest.approx(truth, rel=1e-12)
    # Two finite losses of one value each have no moments but those of their atoms.
    assert compose([(noise, 1), (beside, 1)]).epsilon(1e-5).epsilon == pytest.approx(
        compose(noise, 1).epsilon(1e-5).epsilon, rel=1e-12
    )
