"""log(erf(m + h) − erf(m − h)) in doubles and in balls, against many digits."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import acb, arb, ctx

from symdp.emit import compile_arb, compile_numpy
from symdp.emit.arb import log_erf_difference_ball, log_erfc_ball
from symdp.emit.numpy import log_erf_difference, log_erfc

MIDDLES = (0.0, 1e-3, -0.4, 1.5, -3.0, 5.9, 27.0, -300.0)
HALVES = (1e-9, 1e-3, 0.2, 1.4999, 1.5001, 4.0, 40.0)


def exact(middle, half):
    with mpmath.workdps(60 + int(2 * (abs(middle) + half) ** 2 / 2.3)):
        m, h = abs(mpmath.mpf(middle)), mpmath.mpf(half)
        return mpmath.log(mpmath.erfc(m - h) - mpmath.erfc(m + h))


@pytest.mark.slow_cases("40.0-5.9", "40.0-27.0")
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


@pytest.mark.parametrize("place", [-30.0, -1.0, 0.0, 0.4, 0.6, 5.0, 40.0, 1e4])
def test_log_erfc_is_accurate_where_erfc_is_no_double(place):
    with mpmath.workdps(40):
        # log Γ(1/2, z²)/√π is it for z > 0: another special function of mpmath
        value = mpmath.log(mpmath.gammainc(0.5, mpmath.mpf(place) ** 2) / mpmath.sqrt(mpmath.pi))
        if place < 0:
            value = mpmath.log(2 - mpmath.exp(value))
    assert float(log_erfc(place)) == pytest.approx(float(value), rel=2e-15, abs=1e-15)
    with ctx.workprec(128):
        ball = log_erfc_ball(None, False, acb(place))
    assert abs(float(ball.real.mid()) - float(value)) <= 1e-14 * abs(float(value)) + 1e-30


def test_one_plus_erf_is_erfc_of_the_other_side():
    x = sp.Symbol("x", real=True)
    compiled = compile_numpy(sp.log(sp.Rational(3, 2) + 3 * sp.erf(2 * x) / 2), [x])
    for place in (-20.0, -3.0, 1.0):
        with mpmath.workdps(40):
            value = mpmath.log(1.5) + mpmath.log(mpmath.erfc(-2 * mpmath.mpf(place)))
        assert float(compiled([place])[0]) == pytest.approx(float(value), rel=1e-14)


@pytest.mark.parametrize("place", ["2000", "7e6", "1e12"])
def test_log_erfc_of_a_ball_far_out_is_its_series(place):
    """erfc of a ball holds 0 there, or is no number of Arb: −z² − log(z√π) − 1/2z² is its log."""
    with mpmath.workdps(40):
        z = mpmath.mpf(place)
        value = -(z**2) - mpmath.log(z * mpmath.sqrt(mpmath.pi)) - 1 / (2 * z * z)
        ball = log_erfc_ball(None, False, acb(arb(place, float(place) * 1e-15)))
        assert ball.imag == 0
        assert ball.real.contains(arb(mpmath.nstr(value, 40)))
        assert ball.real.rel_accuracy_bits() > 40
    beside = log_erfc_ball(None, True, acb(arb(2000), arb(900)))
    assert not beside.is_finite() or abs(beside.imag) < arb.pi()


@pytest.mark.parametrize("place", [-60.0, -9.0, 0.3, 11.0, 70.0])
def test_a_share_of_a_ratio_of_two_differences_keeps_its_digits(place):
    """Both are 0 in doubles far out, where their ratio is not: a sampled plateau had no loss."""
    x = sp.Symbol("x", real=True)
    boxes = [sp.erf(x + 10 - moved) - sp.erf(x - 10 - moved) for moved in (1, 0)]
    log_ratio = compile_numpy(sp.log(boxes[0] / boxes[1] / 10 + sp.Rational(9, 10)), [x])
    with mpmath.workdps(60), np.errstate(all="ignore"):
        a = mpmath.mpf(place)
        truth = [mpmath.erfc(a - 10 - m) - mpmath.erfc(a + 10 - m) for m in (1, 0)]
        if place < 0:
            truth = [mpmath.erfc(-a - 10 + m) - mpmath.erfc(-a + 10 + m) for m in (1, 0)]
        expected = float(mpmath.log(truth[0] / truth[1] / 10 + mpmath.mpf("0.9")))
        assert float(log_ratio(place)) == pytest.approx(expected, rel=1e-12, abs=1e-15)
