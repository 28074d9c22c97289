"""δ of a mixture of total losses is the mixture of δ, and so is its slope in ε."""

from __future__ import annotations

import math

import pytest

from symdp import compose, mechanisms
from symdp.numeric.cut_off import _sum_of_terms


@pytest.mark.parametrize("epsilon", [0.4, 1.5])
@pytest.mark.parametrize("share", [0.7, 0.05])
def test_value_and_slope_of_a_mixture(share, epsilon):
    steps = [compose(mechanisms.gaussian(sigma=4), 8), compose(mechanisms.logistic(s=2), 6)]
    laws = [each.law("remove") for each in steps]
    terms = [(math.log(share), laws[0]), (math.log1p(-share), laws[1])]

    def mixed(at):
        deltas = [each.delta(at, direction="remove").delta for each in steps]
        return share * deltas[0] + (1.0 - share) * deltas[1]

    answer = _sum_of_terms(terms, epsilon, 2, [40])
    assert math.exp(answer.log_delta) == pytest.approx(mixed(epsilon), rel=1e-9)
    assert answer.log_lower <= math.log(mixed(epsilon)) <= answer.log_upper
    slope = (mixed(epsilon + 1e-5) - mixed(epsilon - 1e-5)) / 2e-5
    assert answer.slope == pytest.approx(slope / mixed(epsilon), rel=1e-5)
