"""Every method that claims a bound holds the proved value: mechanisms, counts, directions, ε.

The truth is a ball that certainly holds δ(ε), to as many digits as could be proved; where those are
few, the contour's value is the sharper truth, and is itself compared with the ball.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest
from flint import arb, ctx
from proved_bounds import COUNTS, MECHANISMS, assert_contains, assert_meets, composition, rounding

from symdp.errors import AccuracyError
from symdp.methods import accountant
from symdp.methods.prv import Prv
from symdp.methods.route import Contour
from symdp.numeric.answer import outside_range
from symdp.prove.enclosure import enclose_delta

QUICK = ("moments", "moments-plain", "moments-variance", "renyi", "spa-bounds", "eeai")
# The mesh of a PRV interval may be coarse: it is wider then, and no less a bound.
METHODS = {name: accountant(name) for name in QUICK} | {
    "prv": Prv(points=1 << 16),
    "tilted-prv": Prv(tilted=True, points=1 << 16),
}
DEVIATIONS = (-6.0, -2.0, 0.0, 1.0, 4.0, 9.0)
NEARLY = 0.999  # of the range
# Every mechanism and every count in either direction, each with two of the others.
SPREAD = [
    (name, count, ("remove", "add")[(i + j // 2) % 2])
    for i, name in enumerate(MECHANISMS)
    for j, count in enumerate(COUNTS)
    if i % 2 == j % 2
]
DIGITS = (12, 4, 2)
FEW_STEPS, FEW_DIGITS = 10, (4, 2)  # whose proof is by far the longest


@cache
def points(name, count, direction):
    """ε over the range of the loss: bulk, both tails, both ends, zero."""
    law = composition(name, count).law(direction)
    mean, variance = (float(c) for c in law.cumulants(0.0, 2))
    low, high = law.loss_bounds
    places = {mean + k * math.sqrt(variance) for k in DEVIATIONS} | {0.0, -0.5}
    places |= {NEARLY * end for end in (low, high) if math.isfinite(end) and count <= 10}
    places |= {2 * end + 1e-3 for end in (high,) if math.isfinite(end) and count == 1}
    return law, sorted(places)


@cache
def proved(name, count, direction, epsilon):
    """A ball that holds δ(ε), as narrow as could be proved; it is an error if there is none."""
    pairs = [(step.pair(direction), n) for step, n in composition(name, count).steps]
    refusal = None
    for digits in FEW_DIGITS if count == FEW_STEPS else DIGITS:
        try:
            return enclose_delta(pairs, epsilon, digits)
        except AccuracyError as error:
            refusal = error
    raise refusal


@cache
def truths(name, count, direction):
    """(ε, the contour's answer, the ball) of every ε, shared by all methods."""
    law, places = points(name, count, direction)
    found = []
    for epsilon in places:
        ball = proved(name, count, direction, epsilon)
        exact = Contour().log_delta(law, epsilon)
        assert_meets(exact, ball, rounding(exact.log_delta))
        found.append((epsilon, exact, ball))
    return law, found


def check(method, name, count, direction):
    law, found = truths(name, count, direction)
    for epsilon, exact, ball in found:
        answer = method.log_delta(law, epsilon)
        assert_meets(answer, ball)
        assert_contains(answer, exact)
        inside = outside_range(law, epsilon) is None
        assert answer.kind == ("bound" if inside else "exact")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count", "direction"), SPREAD)
def test_every_bound_holds_the_proved_value(name, count, direction):
    for method in METHODS.values():
        check(method, name, count, direction)


@pytest.mark.quick_cases("normal noise-1000-remove")
@pytest.mark.parametrize(
    ("name", "count", "direction"),
    [
        ("substitution", 1, "add"),
        ("one-sided", 10, "add"),
        ("normal noise", 1000, "remove"),
        ("randomized response", 10**6, "add"),
    ],
)
def test_a_thin_slice(name, count, direction):
    for label in (*QUICK, "tilted-prv") if name == "one-sided" else QUICK:
        check(METHODS[label], name, count, direction)


def test_a_bound_that_misses_the_ball_by_a_little_is_seen():
    epsilon = points("randomized response", 10**6, "add")[1][-2]
    law = points("randomized response", 10**6, "add")[0]
    ball = proved("randomized response", 10**6, "add", epsilon)
    answer = METHODS["spa-bounds"].log_delta(law, epsilon)
    assert_meets(answer, ball)
    with ctx.workprec(128):
        value = float(ball.log())
        assert ball.rad() < ball * arb(10) ** -12
    for wrong in ({"log_upper": value - 1e-9}, {"log_lower": value + 1e-9}):
        with pytest.raises(AssertionError):
            assert_meets(replace(answer, **wrong), ball)
