"""log(erf(m + h) − erf(m − h)) in doubles and in balls, against many digits."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import acb, arb, ctx

from symdp.emit import compile_arb, compile_numpy
from symdp.emit.erf_difference import log_erf_difference, log_erf_difference_ball

MIDDLES = (0.0, 1e-3, -0.4, 1.5, -3.0, 5.9, 27.0, -300.0)
HALVES = (1e-9, 1e-3, 0.2, 1.4999, 1.5001, 4.0, 40.0)


def exact(middle, half):
    with mpmath.workdps(60 + int(2 * (abs(middle) + half) ** 2 / 2.3)):
        m, h = abs(mpmath.mpf(middle)), mpmath.mpf(half)
        return mpmath.log(mpmath.erfc(m - h) - mpmath.erfc(m + h))


@pytest.mark.parametrize("middle", MIDDLES[:-1])
@pytest.mark.parametrize("half", HALVES)
def test_doubles_and_balls(middle, half):
    known = exact(middle, half)
    found = float(log_erf_difference(middle, half))
    assert found == pytest.approx(float(known), rel=4e-15, abs=4e-15)
    with ctx.workprec(200):
        ball = log_erf_difference_ball(None, False, acb(middle), acb(half))
        gap = abs(ball.real - arb(mpmath.nstr(known, 55)))
        assert gap < 2 * ball.real.rad() + arb(10) ** -50


def test_far_out_nothing_overflows():
    values = log_erf_difference(np.asarray([-300.0, 300.0, 1e5]), 1e-3)
    assert np.isfinite(values).all()
    assert values[0] == values[1]
    assert np.isnan(log_erf_difference(1.0, -1e-3))


def test_masses_of_rounded_noise_are_recognised():
    k = sp.Symbol("k", integer=True)
    upper, lower = ((2 * k + sign) / sp.sqrt(18) / 2 for sign in (1, -1))
    mass = sp.log((sp.erf(upper) - sp.erf(lower)) / 2)
    place = np.asarray([-90.0, 0.0, 90.0])
    values = compile_numpy(mass, [k])(place)
    with ctx.workprec(3000):
        ball = compile_arb(sp.erf(upper) - sp.erf(lower), [k])
        for x, value in zip(place.tolist(), values.tolist(), strict=True):
            assert value == pytest.approx(float((ball(arb(x)) / 2).log()), rel=1e-13)
