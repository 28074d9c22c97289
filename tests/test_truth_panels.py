"""The survey of an integrand: every peak that counts, in few evaluations."""

import pytest
import sympy as sp
from flint import arb

from symdp.emit import compile_arb
from symdp.truth.panels import Interval, survey

x = sp.Symbol("x", real=True)
R = sp.Rational
WHOLE = Interval(None, None)


def _surveyed(log_density, hints=()):
    calls = []
    function = compile_arb(log_density, [x])

    def counted(place):
        calls.append(place)
        return function(place)

    return survey(counted, WHOLE, [arb(h) for h in hints], 40.0), len(calls)


@pytest.mark.parametrize("centre", [0, R(1, 1000), R(-7, 3), 40])
def test_one_peak_is_climbed_once(centre):
    found, count = _surveyed(-((x - centre) ** 2) / 2, hints=[0.0, 0.25, -0.25])
    assert len(found.peaks) == 1
    assert abs(float(found.peaks[0].place) - centre) < 0.5
    assert count < 1000


@pytest.mark.parametrize("height", [2, 10])
@pytest.mark.parametrize("place", [R(1, 3), R(1, 50)])
def test_a_narrow_spike_on_a_broad_peak_is_found(height, place):
    # The spike rises by log(1 + height) above the peak beside it, over a thousandth of its width.
    spike = sp.log(1 + height * sp.exp(-((x - place) ** 2) * 10**6))
    found, _ = _surveyed(-(x**2) / 2 + spike, hints=[float(place)])
    highest = max(found.peaks, key=lambda peak: peak.height)
    assert abs(highest.place - float(place)) < 1e-3
    assert highest.height > float(sp.log(1 + height)) - 0.2
