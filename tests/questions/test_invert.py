"""Roots in a bracket: where they are known, where the function jumps, and what is refused."""

from __future__ import annotations

import math
import random

import pytest

from symdp import compose, mechanisms
from symdp.errors import AccuracyError
from symdp.methods import route
from symdp.questions.invert import bracketed_root

SHAPES = {
    "steep or flat": lambda x, scale: math.copysign(abs(x) ** 3, x) * scale,
    "saturated": lambda x, scale: math.atan(x * scale),
    "exponential": lambda x, scale: math.expm1(min(x * scale, 300.0)),
    "with a kink": lambda x, scale: x * (scale if x < 0.0 else 1.0 / scale),
    "with a jump": lambda x, scale: -scale if x < 0.0 else 2.0,
    "cut off": lambda x, scale: max(-x * scale, -0.5) if x < 1.0 else -1e6,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_roots_are_found_where_the_function_was_computed(shape):
    numbers = random.Random(5)
    evaluations = 0
    for _ in range(200):
        root, scale = numbers.uniform(-3.0, 3.0), 10.0 ** numbers.uniform(-3.0, 2.0)
        ends = [root - numbers.uniform(0.01, 5.0), root + numbers.uniform(0.01, 5.0)]
        numbers.shuffle(ends)
        seen = {}

        def function(x, root=root, scale=scale, seen=seen):
            seen[x] = SHAPES[shape](x - root, scale)
            return seen[x]

        found = bracketed_root(function, *ends, absolute=1e-300)
        assert found in seen
        assert found == pytest.approx(root, rel=1e-14, abs=1e-14)
        evaluations += len(seen)
    # Halving takes about 53; a triple root and a jump spoil what secants promise.
    assert evaluations < 200 * {"steep or flat": 150, "with a jump": 80}.get(shape, 20)


def test_a_tolerance_is_met():
    seen = []
    found = bracketed_root(lambda x: seen.append(x) or x - math.pi, 0.0, 4096.0, absolute=1.5)
    assert abs(found - math.pi) <= 1.5
    assert len(seen) < 16


def test_a_root_at_an_end_is_that_end():
    assert bracketed_root(lambda x: x - 1.0, 1.0, 2.0) == 1.0
    assert bracketed_root(lambda x: x - 2.0, 1.0, 2.0) == 2.0


def test_no_number_is_given_where_there_is_no_bracket():
    with pytest.raises(AccuracyError, match="signs do not differ"):
        bracketed_root(lambda x: x * x + 1.0, -1.0, 1.0)
    with pytest.raises(AccuracyError, match="no number at"):
        bracketed_root(lambda x: x if abs(x) > 0.4 else math.nan, -1.0, 1.5)


def test_the_last_step_along_a_tangent_lacks_nothing():
    """ε is found at a δ that was not asked for exactly; δ(ε) there is the target to rounding."""
    for step, n, delta in (
        (mechanisms.gaussian(sigma=1).subsample("poisson", "1/100"), 200, 1e-6),
        (mechanisms.logistic(s=1), 5, 1e-7),  # next to the largest loss
        (mechanisms.gumbel(b=4), 20, 1e-6),
        (mechanisms.student_t(nu=3, s=2), 5, 1e-4),
    ):
        steps = compose(step, n)
        answer = steps.epsilon(delta)
        there = steps.delta(answer.epsilon)
        assert there.lower <= delta * (1 + 1e-13)
        assert there.upper >= delta * (1 - 1e-13)
        assert answer.epsilon_lower <= answer.epsilon <= answer.epsilon_upper


def test_a_direction_far_below_the_other_one_is_not_computed(monkeypatch):
    """At ε = 9 one direction has e^−66 and the other e^−2078, which takes balls."""
    steps = compose(mechanisms.gaussian(sigma=1).subsample("poisson", "1/100"), 1000)
    computed: list[str] = []
    first = route._first_answer
    monkeypatch.setattr(
        route, "_first_answer", lambda law, *a: computed.append(law.direction) or first(law, *a)
    )
    both = steps.delta([8.5, 9.0])
    assert computed == ["remove", "remove"]
    assert list(both.delta) == [steps.delta(e, direction="remove").delta for e in (8.5, 9.0)]


def test_epsilon_asks_balls_only_where_they_narrow_it(monkeypatch):
    """δ at 8e-11 by doubles is ε at 3e-12: nothing is asked in balls, and the interval holds ε."""
    asked = []
    monkeypatch.setattr(route, "_sharpened", lambda *answer: asked.append(answer))
    noise = mechanisms.gaussian(sigma=4)
    steps = compose(noise.subsample("with_replacement", "1/1000", batch=10), 1000)
    answer = steps.epsilon(1e-5)
    assert not asked
    assert answer.lower <= 0.7362275581833 <= answer.upper  # by a certificate of δ to 10 digits
    assert answer.upper - answer.lower < 1e-11 * answer.upper
