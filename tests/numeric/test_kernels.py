"""What is integrated against the law of a few steps, and its slope."""

from __future__ import annotations

import numpy as np
import pytest

from symdp.numeric.few.kernels import Payoff

PLACES = np.array([-30.0, -4.0, -1.0, -0.2, -1e-3, 1e-3, 0.3, 5.0, 40.0])


@pytest.mark.parametrize("tilt", [-2.5, -0.9, -0.3, 0.0, 0.4, 3.0])
def test_a_payoff_is_tilted_and_its_slope_is_its_derivative(tilt):
    """With u = ε − s: e^{tu} (1 − e^u)⁺, and where t < 0 e^{tu} min(1, e^u) of 1 − δ."""
    payoff = Payoff(tilt)
    taken = np.minimum(np.exp(PLACES), 1.0)
    plain = taken if tilt < 0.0 else 1.0 - taken
    assert payoff(PLACES) == pytest.approx(np.exp(tilt * PLACES) * plain, rel=1e-12)
    step = 1e-6 * np.abs(PLACES)
    differences = (payoff(PLACES + step) - payoff(PLACES - step)) / (2.0 * step)
    largest = np.abs(payoff(PLACES)) / np.minimum(np.abs(PLACES), 1.0)
    assert (np.abs(payoff.slope(PLACES) - differences) <= 1e-7 * largest).all()
