"""The constants of the cut-off, by quadrature and in balls."""

import math

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from symdp.certify.mollifier import (
    _HEIGHT,
    _MIDDLE,
    _NEXT,
    _OUTER,
    _WIDTH,
    LARGEST,
    ROUNDED,
    Mollifier,
)

WEIGHTS = {-2: _OUTER, -1: _NEXT, 0: _MIDDLE, 1: _NEXT, 2: _OUTER}


def cut_off(w):
    s = min(max(2 - 2 * mpmath.mpf(w), 0), 1)
    return s**4 * (35 - 84 * s + 70 * s**2 - 20 * s**3)


def test_the_constants_bound_what_the_cut_off_changes():
    def term(j, power):
        inside = mpmath.quad(
            lambda w: abs(mpmath.diff(lambda v: 1 - cut_off(v), w, j)) * w**-power,
            mpmath.linspace(0.5001, 0.9999, 40),
        )
        return inside + (mpmath.mpf(1) / (power - 1) if j == 0 else 0)

    height = term(0, 2) / mpmath.pi
    fourth = sum(math.comb(4, j) * math.factorial(5 - j) * term(j, 6 - j) for j in range(5))
    assert height < _HEIGHT < 1.1 * height
    assert fourth / mpmath.pi * 1.01 < _HEIGHT * _WIDTH**4


@pytest.mark.slow_cases("0.3-1.7", "0.3--0.4")
@pytest.mark.parametrize("x", [0.0, 0.05, -0.4, 1.7])
@pytest.mark.parametrize("tilt", [0.3, 4.0, -0.4])
def test_what_the_cut_off_changes_by_quadrature(tilt, x):
    reach = 40.0

    def change(y):
        z = mpmath.mpc(tilt, y)
        turn = mpmath.exp(mpmath.mpc(0, -x * y))
        return (turn * (cut_off(y / reach) - 1) / (z * (1 + z))).real

    inside = mpmath.quad(change, mpmath.linspace(reach / 2, reach, 9))
    if x:
        outside = mpmath.quadosc(change, [reach, mpmath.inf], period=2 * mpmath.pi / abs(x))
    else:
        outside = mpmath.quad(change, [reach, 2 * reach, 8 * reach, 64 * reach, mpmath.inf])
    bound = _HEIGHT / reach * min(1.0, (_WIDTH / (reach * abs(x))) ** 4 if x else 1.0)
    assert abs(inside + outside) / mpmath.pi < bound


def kernel(u):
    total = arb(0)
    for j, weight in WEIGHTS.items():
        total += arb(weight) * (u - j * arb.pi() / 3).sinc() ** 4
    return total


def test_the_window_is_above_what_it_bounds():
    """In balls up to u = 2π/3; farther out the means of convex functions say so."""
    with ctx.workprec(80):
        parts = 4000
        for k in range(parts):
            u = arb(2.2) * (2 * k + 1) / (2 * parts) + arb(0, 2.2 / (2 * parts))
            least = 1 if k < parts / 2.2 else 1 / u**4
            assert kernel(u).lower() > arb(least).min(arb(1)).lower() * arb(0.9999)
            assert kernel(arb(u.mid())) >= arb(1).min(1 / arb(u.mid()) ** 4)
    assert 9 / 8 * _MIDDLE > 1
    assert pytest.approx(_MIDDLE) == _NEXT + _OUTER
    assert pytest.approx(2 * _OUTER) == _NEXT


def test_the_window_is_the_transform():
    for v in (0.0, 0.7, 1.9, 2.5, 3.9):
        mollifier = Mollifier(_WIDTH)  # so that by/T is y
        cut, found = mollifier.weights(np.asarray([v]))
        total = mpmath.quad(
            lambda u, v=v: float(kernel(arb(float(u))).mid()) * mpmath.cos(v * u),
            mpmath.linspace(-60, 60, 121),
        )
        assert found[0] == pytest.approx(float(total), abs=2e-5)
        assert cut[0] == pytest.approx(float(cut_off(v / _WIDTH)), abs=1e-14)
    assert Mollifier(1.0).weights(np.zeros(1))[1][0] < LARGEST


def test_doubles_agree_with_balls():
    mollifier = Mollifier(37.25)
    y = np.linspace(0.0, 40.0, 997)
    cut, window = mollifier.weights(y)
    with ctx.workprec(100):
        for k, place in enumerate(y.tolist()):
            exact = mollifier.weights_at(arb(place))
            assert abs(exact[0] - cut[k]) < ROUNDED / 4
            assert abs(exact[1] - window[k]) < ROUNDED / 4
            assert exact[0].rad() < 1e-20
