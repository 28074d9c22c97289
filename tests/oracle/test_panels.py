"""The survey of an integrand: every peak that counts, in few evaluations."""

import pytest
import sympy as sp
from catalogue import ALL
from flint import arb, ctx

from symdp import compose
from symdp.emit import compile_arb
from symdp.errors import AccuracyError
from symdp.oracle.panels import Interval, make_panels, survey

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


UNIT = Interval(arb(0), arb(1))
INTEGRALS = {
    "normal": (-(x**2) / 2, WHOLE, sp.sqrt(2 * sp.pi)),
    "narrow": (-((x - R(1, 3)) ** 2) * 10**12, UNIT, sp.sqrt(sp.pi) / 10**6),
    "two peaks": (
        sp.log(sp.exp(-((x - 5) ** 2) * 500) + sp.exp(-((x + 5) ** 2) / 2) / 9),
        WHOLE,
        sp.sqrt(sp.pi / 500) + sp.sqrt(2 * sp.pi) / 9,
    ),
    "heavy tails": (-2 * sp.log(1 + sp.Abs(x)), WHOLE, sp.S(2)),
    "infinite at one end": (-R(9, 10) * sp.log(x), UNIT, sp.S(10)),
    "infinite at both ends": (
        -R(4, 5) * (sp.log(x) + sp.log(1 - x)),
        UNIT,
        sp.beta(R(1, 5), R(1, 5)),
    ),
    "0 at an end": (3 * sp.log(x), UNIT, R(1, 4)),
}


def _integral(log_density, interval, digits):
    function = compile_arb(log_density, [x])
    with ctx.workprec(128):
        found = survey(function, interval, [arb(5), arb(1) / 3], 2.31 * (digits + 2))
        panels = make_panels(lambda place: (function(place), place), found, digits, arb(0), 12)
        total = sum((w for panel in panels for w in panel.weights), arb(0))
        return float(total * arb(found.height).exp())


@pytest.mark.parametrize("digits", [8, 14])
@pytest.mark.parametrize("name", INTEGRALS)
def test_panels_give_an_integral(name, digits):
    log_density, interval, exact = INTEGRALS[name]
    # What is cut off at a singular end is a share of the largest panel, not of the whole.
    accuracy = 10.0**-digits if "infinite" not in name else 10.0 ** -(digits / 2)
    assert _integral(log_density, interval, digits) == pytest.approx(float(exact), rel=accuracy)


@pytest.mark.slow_cases("-1")
@pytest.mark.parametrize("power", [-1, R(-3, 2)])
def test_what_is_infinite_is_refused(power):
    with pytest.raises(AccuracyError):
        _integral(power * sp.log(x), UNIT, 8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values", "epsilon", "direction"),
    [
        ("inverse gamma", {"a": "3/2", "b": 1, "c": 5}, 3.96423, "remove"),
        ("gompertz", {"a": 5, "c": 1}, 54.2307, "add"),
    ],
)
def test_where_the_exponent_cancels_there_is_only_rounding(name, values, epsilon, direction):
    """At t = 1/4 the tilted density is as heavy as can be, and huge terms cancel towards an end."""
    steps = compose(ALL[name].mechanism("noise")(**values), 10)
    proved = steps.certify(epsilon, digits=8, direction=direction)
    found = steps.delta(epsilon, direction=direction)
    assert found.log_lower <= proved.log_upper
    assert proved.log_lower <= found.log_upper
