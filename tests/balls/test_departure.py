"""How far noise is from one mode, against sums in doubles."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from symdp.balls.departure import _far_out, departure_from_one_mode
from symdp.density.records import DISTANCE
from symdp.model.pair import Support

X, K = sp.Symbol("x", real=True), sp.Symbol("k", integer=True)
LINE = Support("interval", -sp.oo, sp.oo)
NORMAL = sp.exp(-(X**2) / 8) / sp.sqrt(8 * sp.pi)
ROUNDED = 1e-12


def excess(density, support=LINE, sensitivity=1, x=X):
    departure = departure_from_one_mode(density, x, support, sp.Integer(sensitivity))
    return None if departure is None else float(departure.excess)


def profile(p, q, alpha, width):
    return float(np.maximum(p - alpha * q, 0.0).sum()) * width


@pytest.mark.slow_cases("0.001")
@pytest.mark.parametrize("height", [1e-3, 1e-6])
def test_a_second_mode_counts(height):
    """What small bumps far out add to smaller shifts is no more than counted."""
    bumps = sp.exp(-32 * (X - 14) ** 2) + sp.exp(-32 * (X - 15) ** 2)
    part = sp.Rational(height)
    f = (1 - part) * NORMAL + part * bumps * sp.sqrt(32 / sp.pi) / 2
    counted = excess(f)
    x, width = np.linspace(-30, 30, 600_001, retstep=True)
    values = sp.lambdify(X, f, "numpy")
    gap = 0.0
    for alpha in (100.0, 1e4):
        full = profile(values(x - 1), values(x), alpha, width)
        for shift in (0.2, 0.5, 0.8):
            gap = max(gap, profile(values(x - shift), values(x), alpha, width) - full)
    assert gap > 0.05 * float(part)
    assert counted is None or counted >= gap


@pytest.mark.slow_cases("density3")
@pytest.mark.parametrize(
    "density",
    [
        NORMAL,
        sp.exp(-abs(X)) / 2,
        (1 + X**2) ** -1 / sp.pi,
        (1 + sp.sin(X) ** 2) * sp.exp(-abs(X)) * 5 / 14,
        sp.erf(X + 6) / 24 - sp.erf(X - 6) / 24,
    ],
)
def test_one_mode_departs_by_nothing(density):
    assert excess(density) < 1e-15


@pytest.mark.parametrize("centre", [sp.Integer(6), 1 + sp.sqrt(2)], ids=str)
@pytest.mark.parametrize("rate", [1, -1, sp.sqrt(3), -sp.sqrt(3) / 2], ids=str)
def test_error_functions_are_written_by_their_tails(centre, rate):
    """SymPy writes erf(6 − x) as −erf(x − 6), and leaves erf(1 + √2 − x) as it is."""
    f = sp.erf(rate * (DISTANCE + centre)) - sp.erf(rate * (DISTANCE - centre))
    by_tails = _far_out(f)
    assert not by_tails.has(sp.erf)
    for at in (1, 3, 8):
        before, after = (form.subs(DISTANCE, at).evalf(20) for form in (f, by_tails))
        assert abs(after / before - 1) < sp.Float(10) ** -15


@pytest.mark.slow
def test_several_modes_are_told():
    waves = (2 + sp.cos(6 * X)) * NORMAL / 2
    assert excess(waves) is None or excess(waves) > 0.01


def test_whole_numbers():
    geometric = (1 - sp.exp(-1)) / (1 + sp.exp(-1)) * sp.exp(-abs(K))
    integers = Support("integers", -sp.oo, sp.oo)
    assert excess(geometric, integers, 3, K) < 1e-15
    outer = (sp.Rational(7, 16), abs(K) <= 1)
    dip = sp.Piecewise((sp.Rational(1, 8), sp.Eq(K, 0)), outer, (0, True))
    points = Support("integers", sp.S(-1), sp.S(1))
    assert excess(dip, points, 2, K) is None or excess(dip, points, 2, K) > 0.1


def test_the_overlap_is_below_the_truth():
    departure = departure_from_one_mode(NORMAL, X, LINE, sp.Integer(1))
    truth = math.erfc(1 / 4 / math.sqrt(2))
    assert 0.9 * truth <= float(departure.overlap) <= truth + ROUNDED


@pytest.mark.parametrize(
    ("density", "low", "high"),
    [
        (X**2 * sp.exp(-X) / 2, 0, sp.oo),
        (3 * (1 - X**2) / 4, -1, 1),
        (sp.Rational(1, 4) + 0 * X, -2, 2),
        (sp.exp(X) / (1 - sp.exp(-5)), -5, 0),
    ],
)
def test_what_is_written_beyond_the_support_is_no_overlap(density, low, high):
    """The formula of a law on a half line may be as large as it likes on the other half."""
    support = Support("interval", sp.sympify(low), sp.sympify(high))
    size = sp.Rational(1, 2)
    departure = departure_from_one_mode(density, X, support, size)
    ends = max(float(low), -60.0), min(float(high), 60.0)
    x, width = np.linspace(ends[0] + 0.5, ends[1], 2_000_001, retstep=True)
    values = sp.lambdify(X, density, "numpy")
    least = np.minimum(values(x - 0.5), values(x)) + 0.0 * x
    truth = float(np.sum(least[1:] + least[:-1]) * width / 2)
    assert 0.5 * truth <= float(departure.overlap) <= min(truth, 1.0) + 1e-6
