"""The line between the poles: where K is infinite at every t > 0, and wherever it is not."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from catalogue import ALL
from flint import ctx

from symdp import compose, mechanisms
from symdp.certify import enclose_delta
from symdp.certify.enclosure import WAYS, _Question
from symdp.certify.parts import parts_of

GAUSSIAN = mechanisms.gaussian(sigma=5)
HEAVY = ALL["laplace against gaussian"].mechanism("heavy")
INFINITE = ALL["gamma noise"].mechanism("noise").subsample("poisson", "1/100")

BOTH = {
    "plain": (GAUSSIAN, 50, 2.0, "remove"),
    "sampled": (mechanisms.laplace(b=1).subsample("poisson", "1/10"), 300, 0.9, "remove"),
    "the other direction": (mechanisms.gumbel(b=3).subsample("poisson", "1/10"), 200, 0.4, "add"),
    "a small delta": (GAUSSIAN, 40, 7.5, "remove"),
    "next to one": (GAUSSIAN, 100, -3.0, "remove"),
    "mass at infinity": (INFINITE, 200, 0.2, "remove"),
}


@pytest.mark.slow_cases("mass at infinity")
@pytest.mark.parametrize("name", BOTH)
def test_both_lines_agree(name):
    """They share nodes' code alone: other tilts, other cuts, another pole on the other side."""
    mechanism, count, epsilon, direction = BOTH[name]
    steps = [(m.pair(direction), n) for m, n in compose(mechanism, count).steps]
    strip = next(way for way in WAYS if way.name == "strip")
    middle = strip.enclose(_Question(tuple(steps), Fraction(epsilon)), 12)
    right = enclose_delta(steps, epsilon, 12)
    assert middle.overlaps(right)
    for ball in (middle, right):
        assert ball.rad() < ball * 1e-12


@pytest.mark.parametrize("count", [100, 10**4])
def test_no_tilt_to_the_right(count):
    """From the other direction it took as many digits as e^ε has."""
    steps = compose(HEAVY, count)
    law = steps.law("remove")
    mean, variance = law.cumulants(0.0, 2)
    epsilon = float(mean + 2 * variance**0.5)
    ball = enclose_delta([(m.pair("remove"), n) for m, n in steps.steps], epsilon, 15)
    answer = steps.delta(epsilon, direction="remove")
    with ctx.workprec(128):
        assert ball.rad() < ball * 1e-15
        assert answer.log_lower <= ball.log().upper()
        assert ball.log().lower() <= answer.log_upper


def test_tails_are_cut_for_the_sign_of_a_tilt():
    """What is cut off for tilts above 0 says nothing about those below."""
    parts = parts_of.__wrapped__(mechanisms.gumbel(b=1).pair("remove"))
    assert parts.reach(sp.Rational(-1, 3)) == -1
    assert parts.reach(sp.S.Zero) > 0
    parts.share(sp.Rational(-1, 4), sp.Rational(-1, 2), sp.S.Zero)
    assert not parts._families
    parts.share(sp.Rational(-1, 4), sp.Rational(-1, 2), sp.Rational(-1, 8))
    assert len(parts._families) == 1
    for tilt in (sp.Rational(-1, 2), sp.Rational(-3, 16)):
        shared = parts.cgf(tilt)
        alone = parts_of.__wrapped__(mechanisms.gumbel(b=1).pair("remove")).cgf(tilt)
        assert shared.overlaps(alone)
