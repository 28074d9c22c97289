"""Proofs that ε lies beyond every finite loss, of losses that turn."""

import math

from symdp import compose, mechanisms


def test_beyond_the_largest_loss_where_a_loss_turns():
    """Student-t noise with ν = 3, s = 2: (1 + x²/12)/(1 + (x − 1)²/12) is largest at x = 4, 4/3."""
    steps = compose(mechanisms.student_t(nu=3, s=2), 3)
    top = 6.0 * math.log(4.0 / 3.0)  # three times 2 log 4/3
    proved = steps.certify(1.0001 * top)
    assert (proved.lower, proved.upper) == (0.0, 0.0)
    assert steps.delta(1.0001 * top).delta == 0.0
