"""Taylor coefficients in balls, as many as are asked for."""

from __future__ import annotations

import math

import mpmath
import pytest
import sympy as sp
from flint import arb, ctx

from symdp.balls.jets import Jet

x = sp.Symbol("x", real=True)


@pytest.mark.parametrize("length", [3, 11, 40])
@pytest.mark.parametrize(
    ("expression", "coefficient"),
    [
        (sp.exp(-x), lambda k: mpmath.exp(-2) * (-1) ** k / mpmath.factorial(k)),
        (1 / x, lambda k: mpmath.mpf(-1) ** k / mpmath.mpf(2) ** (k + 1)),
        (x**12, lambda k: mpmath.binomial(12, k) * mpmath.mpf(2) ** (12 - k)),
        (
            sp.hyper((), (sp.Rational(3, 2),), -(x**2) / 4),
            lambda k: mpmath.taylor(mpmath.sinc, 2, k)[k],
        ),
    ],
    ids=["exponential", "inverse", "power", "sine over its argument"],
)
def test_every_coefficient_is_enclosed_and_none_is_dropped(expression, coefficient, length):
    with ctx.workprec(128), mpmath.workdps(30):
        found = Jet(expression, x)(arb(2), length)
        assert len(found) == length
        for k, ball in enumerate(found):
            assert ball.overlaps(arb(mpmath.nstr(coefficient(k), 28), 1e-20))
            assert float(ball.rad()) < 1e-20


def test_the_length_of_other_series_is_left_alone():
    before = ctx.cap
    assert Jet(sp.exp(x), x)(arb(0), before + 7)[before + 3].overlaps(
        arb(1) / math.factorial(before + 3)
    )
    assert ctx.cap == before
