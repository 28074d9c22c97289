"""Where to ask a composition, and whether it answers what is certified."""

from __future__ import annotations

import math

from flint import arb, ctx

from symdp import compose
from symdp.prove.enclosure import enclose_delta


def epsilon_at(steps, deviations, direction):
    """ε so many standard deviations of the loss above its mean."""
    mean, variance = (float(v) for v in compose(steps).law(direction).cumulants(0.0, 2))
    return float(f"{mean + deviations * math.sqrt(variance):.9g}")


def assert_certified(steps, epsilon, direction, *, accuracy, width):
    """The bounds of log δ hold the certified value and are narrow, and log δ is close to it."""
    answer = compose(steps).delta(epsilon, direction=direction)
    ball = enclose_delta([(m.pair(direction), n) for m, n in steps], epsilon, 12)
    with ctx.workprec(100):
        assert answer.log_lower <= ball.log().upper()
        assert ball.log().lower() <= answer.log_upper
        # A proof of few steps has six digits: it tells no more than that.
        assert abs(ball.log() - answer.log_delta).lower() < accuracy
    assert answer.log_upper - answer.log_lower < width


def transform(step, y, bits=60):
    """Enclose e^{−scale} M(t + iy) of a tilted step to about so many bits."""
    return step.nodes(float(abs(arb(y)).upper()), bits).at(arb(y))
