"""Sampled Gaussian noise once through the data: about one large loss among many small ones.

The truths are sums of the contour formula in 80-bit numbers, at another tilt, on Gauss-Legendre
panels of 32 nodes (400 of them, |x| < 14σ + 21), with 2πt/h = 70 and 90; both agree within 1e-13.
"""

import math

import pytest

from symdp import compose, mechanisms
from symdp.numeric.contour import SlowNodes, _lines_of_strip
from symdp.numeric.saddle_point import Strip

# σ, q, n, ε, log δ(ε) when a record is removed
EPOCHS = [
    ("0.8", "1/1000", 1000, 0.4676830583881967, -13.8155105579641),
    ("1.07", "1/500", 500, 0.24711690129790298, -13.8155105579649),
    ("2.0", "1/1000", 1000, 0.0611390899613444, -13.8155105579642),
]


@pytest.mark.parametrize(("sigma", "rate", "count", "epsilon", "log_delta"), EPOCHS)
def test_a_line_next_to_where_large_losses_take_over_is_short_and_counts_its_rounding(
    sigma, rate, count, epsilon, log_delta
):
    step = mechanisms.gaussian(sigma=sigma).subsample("poisson", rate)
    steps = compose(step, count)
    answer = steps.delta(epsilon, direction="remove")
    assert (answer.kind, answer.route) == ("exact", "contour")
    assert answer.lower <= math.exp(log_delta) * (1 + 1e-12)
    assert answer.upper >= math.exp(log_delta) * (1 - 1e-12)
    assert answer.upper - answer.lower < 3e-11 * answer.delta


def test_one_line_before_the_rise_serves_many_epsilon():
    step = mechanisms.gaussian(sigma=2).subsample("poisson", "1/10000")
    steps = compose(step, 1000)
    law = steps.law("remove")
    lines = set()
    for epsilon in (law.mean, 0.002, 0.004):
        line = _lines_of_strip(law, Strip.RIGHT).line_before_rise(epsilon)
        lines.add(id(line))
        value = line.value(epsilon)
        # Beyond this tilt K rises, and lines have 80 000 nodes and more.
        assert line.places.size < 10_000
        assert value.relative_error < 1e-11
        # At another tilt, whose sum cancels elsewhere.
        other = SlowNodes(law, epsilon, 0.6 * line.tilt, 0.0).plain.value(epsilon)
        errors = value.relative_error + other.relative_error
        assert abs(value.log_value - other.log_value) < 4.0 * errors
    assert len(lines) == 1


def test_a_rare_large_loss_is_counted_where_a_line_cancels_too_far():
    step = mechanisms.gaussian(sigma="2.4").subsample("poisson", "1/1000")
    answer = compose(step, 1000).delta(0.0783454373607259, direction="remove")
    assert answer.kind == "exact"
    # By balls on the line of its saddle point.
    assert answer.lower <= 5.93e-11 * (1 + 2e-13)
    assert answer.upper >= 5.93e-11 * (1 - 2e-13)


@pytest.mark.parametrize("tilt", [6.0, 7.5, 9.0])
def test_the_step_follows_the_tilts_before_the_rise(tilt):
    step = mechanisms.gaussian(sigma="1.07").subsample("poisson", "1/500")
    law = compose(step, 500).law("remove")
    line = SlowNodes(law, 0.24711690129790298, tilt, 0.0).plain
    assert line.places.size < 3000  # 50 000 and more where K is asked beyond its rise alone
    value = line.value(0.24711690129790298)
    assert abs(value.log_value + 13.8155105579649) < 4.0 * value.relative_error
