"""δ(ε) of few steps to many digits: steps added one at a time, or a line whose end is seen."""

from fractions import Fraction

import mpmath
import pytest

from symdp import mechanisms
from symdp.prove.truth import _convolved, _on_seen_line


@pytest.mark.parametrize("way", [_convolved, _on_seen_line])
def test_two_gaussian_steps_are_their_closed_form(way):
    # δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), μ² = 2, by mpmath's complementary error function.
    found = way([(mechanisms.gaussian(sigma=1).pair(), 2)], Fraction(1), 15.0, 0)
    with mpmath.workdps(40):
        mu = mpmath.sqrt(2)
        upper = mpmath.erfc((1 / mu - mu / 2) / mpmath.sqrt(2)) / 2
        closed = upper - mpmath.e * mpmath.erfc((1 / mu + mu / 2) / mpmath.sqrt(2)) / 2
        assert abs(mpmath.mpf(found.str(30, radius=False)) / closed - 1) < 1e-15
