"""The half-line integrals of the tilted Edgeworth series, against quadrature and each other."""

from __future__ import annotations

import mpmath as mp
import pytest
import sympy as sp
from tilted_integrals import END_POINT, MILLS_RATIO, SCALED_TILT, hermite_integral, mills_moment

from symdp.expansion import hermite, hermite_integrals_from_moments

DEGREES = range(0, 13, 3)


def mills(a):
    return mp.sqrt(mp.pi / 2) * mp.exp(a * a / 2) * mp.erfc(a / mp.sqrt(2))


@pytest.mark.parametrize("degree", range(8))
def test_parts_and_taylor_give_the_same(degree):
    """Integration by parts and the Taylor expansion of He_m agree as polynomials in b, u and R."""
    moments = [mills_moment(j) for j in range(degree + 1)]
    taylor = hermite_integrals_from_moments(END_POINT, moments)[degree]
    assert sp.expand(taylor - hermite_integral(degree)) == 0


@pytest.mark.quick_cases(
    "0-0-3", "3-5/4-1/7", "3--2/3--2/5", "12--2/3-1/7", "12-0--2/5", "12-5/4-3"
)
@pytest.mark.parametrize("tilt", ["1/7", "3", "-2/5"])
@pytest.mark.parametrize("gap", ["-2/3", "0", "5/4"])
@pytest.mark.parametrize("degree", DEGREES)
def test_closed_form_is_the_integral(tilt, gap, degree):
    """∫₀^∞ e^{−sx} φ(u) He_m(u) dx/√v, u = (x − c)/√v, by quadrature at 30 digits."""
    with mp.workdps(30):
        s, c, root = (mp.mpf(sp.Rational(v).p) / sp.Rational(v).q for v in (tilt, gap, "3/2"))
        x = sp.Symbol("x")
        polynomial = sp.lambdify(x, hermite(degree, x), "mpmath")

        def integrand(value):
            u = (value - c) / root
            return mp.exp(-s * value) * mp.npdf(u) * polynomial(u) / root

        peak = max(mp.mpf(0), c - s * root**2)
        cuts = sorted({mp.mpf(0), *(peak + k * root for k in (2, 4, 6, 9, 14, 20))})
        expected = mp.quad(integrand, cuts)
        b, u = s * root, -c / root
        closed = sp.lambdify(
            (SCALED_TILT, END_POINT, MILLS_RATIO), hermite_integral(degree), "mpmath"
        )
        assert mp.almosteq(mp.npdf(u) * closed(b, u, mills(b + u)), expected, 1e-20, 1e-20)


def test_mills_moments_are_integrals():
    with mp.workdps(30):
        for index in range(7):
            closed = sp.lambdify(
                (SCALED_TILT, END_POINT, MILLS_RATIO), mills_moment(index), "mpmath"
            )
            for a in (mp.mpf(-1), mp.mpf("0.3"), mp.mpf(4)):
                expected = mp.quad(
                    lambda w, k=index, a=a: w**k * mp.exp(-a * w - w * w / 2), range(0, 22, 2)
                )
                assert mp.almosteq(closed(a, 0, mills(a)), expected, 1e-20)
