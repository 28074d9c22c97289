"""δ where the loss has no exponential moments: the other direction's has."""

from __future__ import annotations

import mpmath as mp
import pytest
from catalogue import ALL

from symdp import compose

HEAVY = ALL["laplace against gaussian"].mechanism("heavy")
RARE = HEAVY.subsample("poisson", "1/100")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "asked", "width"),
    [(HEAVY, 4, 5e-9), (RARE, 10, 2e-6)],  # the sampled one comes from the mesh
    ids=["plain", "sampled"],
)
def test_a_heavy_tail_over_a_light_one_is_certified(mechanism, asked, width):
    """All t > 0 lie outside the domain of K; the proof needs no line."""
    answer = compose(mechanism, 3).delta(0.7, direction="remove")
    proved = compose(mechanism, 3).certify(0.7, asked, "remove")
    assert proved.digits >= 4  # the losses reach a thousand, and cells are all of one width
    assert answer.lower <= proved.upper
    assert proved.lower <= answer.upper
    assert answer.upper - answer.lower < width * answer.delta


@pytest.mark.quick_cases("0.4", "1.5")
@pytest.mark.parametrize("epsilon", [-0.01, 0.0, 0.4, 1.5])
def test_the_contour_of_a_rare_heavy_tail_is_an_integral(epsilon):
    """A log-density of which nothing would be left far out, were the light tail pulled out."""
    answer = compose(RARE, 1).delta(epsilon, direction="remove")
    with mp.workdps(30):
        rate, price = mp.mpf(1) / 100, mp.exp(mp.mpf(epsilon))

        def excess(x):
            normal = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
            return max(rate * mp.exp(-abs(x)) / 2 + (1 - rate - price) * normal, mp.mpf(0))

        level = (price - 1 + rate) / rate  # of the ratio of the two densities
        ends = [mp.mpf(0), mp.mpf(60)]
        # e^{x²/2 − x} √(π/2) = level at 1 ± √(2 log(level √(2/π)) + 1)
        inside = 2 * mp.log(level * mp.sqrt(2 / mp.pi)) + 1 if level > 0 else mp.mpf(-1)
        if inside > 0:
            ends += [1 - mp.sqrt(inside), 1 + mp.sqrt(inside)]
        truth = 2 * mp.quad(excess, sorted(end for end in ends if end >= 0))
    assert answer.lower <= truth <= answer.upper
    assert answer.upper - answer.lower < 5e-9 * answer.delta  # a sampled one comes from the mesh
