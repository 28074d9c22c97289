"""Balls stand in for a wide answer where they are narrower, and contain the truth."""

from __future__ import annotations

import math

import mpmath
import pytest

from symdp import compose, mechanisms
from symdp.methods.in_balls import in_balls
from symdp.numeric.answer import Answer


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_a_wide_answer_is_replaced_and_a_narrow_one_is_kept(epsilon):
    """Of 25 steps of normal noise of σ = 5 δ is Φ(½ − ε) − e^ε Φ(−½ − ε)."""
    law = compose(mechanisms.gaussian(sigma=5), 25).law("remove")
    with mpmath.workdps(30):
        taken = mpmath.exp(epsilon) * mpmath.ncdf(-0.5 - epsilon)
        truth = float(mpmath.log(mpmath.ncdf(0.5 - epsilon) - taken))
    wide = Answer(-1.0, -math.inf, 0.0, "bound")
    ball = in_balls(law, epsilon, wide)
    assert ball.log_lower <= truth <= ball.log_upper
    assert ball.log_upper - ball.log_lower < 1e-9
    sure = Answer(ball.log_delta, ball.log_delta, ball.log_delta, "exact")
    assert in_balls(law, epsilon, sure) == sure
