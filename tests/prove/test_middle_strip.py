"""The line between the poles: where K is infinite at every t > 0, and wherever it is not."""

from __future__ import annotations

import pytest
from catalogue import ALL
from flint import arb, ctx

from symdp import compose, mechanisms
from symdp.numeric.saddle_point import Strip
from symdp.prove.enclosure import enclose_delta
from symdp.prove.kind import kind_of
from symdp.prove.line import Line
from symdp.prove.plan import find_plan

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


@pytest.mark.quick_cases("sampled")
@pytest.mark.parametrize("name", BOTH)
def test_both_lines_agree(name):
    """They share nodes' code alone: other tilts, other cuts, another pole on the other side."""
    mechanism, count, epsilon, direction = BOTH[name]
    steps = [(m.pair(direction), n) for m, n in compose(mechanism, count).steps]
    kinds = tuple((kind_of(pair), n) for pair, n in steps)
    digits = 16 if name == "mass at infinity" else 20  # more nodes than that are too many
    middle, right = (
        Line(kinds, find_plan(kinds, epsilon, digits, strip), epsilon, digits).delta(arb(epsilon))
        for strip in (Strip.MIDDLE, Strip.RIGHT)
    )
    assert middle.overlaps(right)
    for ball in (middle, right):
        assert ball.rad() < ball * 1e-12


@pytest.mark.slow
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
