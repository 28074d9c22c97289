"""Half-line Gaussian integrals, SP-CLT and the tilted Edgeworth accountant."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
import sympy as sp
from closed_form_law import (
    SubsampledGaussianLaw,
    contour_log_delta,
    exponential,
    gaussian,
    logistic,
)
from proved_bounds import log_central_limit
from tilted_integrals import END_POINT, MILLS_RATIO, SCALED_TILT, hermite_integral

from symdp.errors import InputError
from symdp.expansion import graded_terms, hermite
from symdp.methods.series import (
    CentralLimit,
    TiltedEdgeworth,
    mills_differences,
    mills_moments,
    payoff_integrals,
)
from symdp.numeric.saddle_point import Strip

PUBLISHED = 0.049601410315  # rate 0.01, σ = 1.5, 10⁴ steps, ε = 1, remove
ARGUMENTS = [-300.0, -40.0, -9.0, -1.0, -0.1, 0.0, 0.01, 0.3, 1.0, 3.0, 7.0, 20.0, 1e4]


def mills_moment(j, a):
    """∫₀^∞ w^j e^{−aw−w²/2} dw by the parabolic cylinder function."""
    return mp.gamma(j + 1) * mp.exp(a * a / 4) * mp.pcfu(j + mp.mpf(1) / 2, a)


@pytest.mark.parametrize("a", ARGUMENTS)
def test_mills_moments(a):
    values = mills_moments(a, 30)
    with mp.workdps(40):
        scale = mp.exp(-(mp.mpf(a) ** 2) / 2) if a < 0 else 1
        for j in (0, 1, 2, 5, 11, 29):
            assert values[j] == pytest.approx(float(scale * mills_moment(j, mp.mpf(a))), rel=4e-15)


@pytest.mark.parametrize("a", ARGUMENTS)
@pytest.mark.parametrize("width", [1e-12, 1e-4, 0.05, 0.5, 3.0])
def test_mills_differences_do_not_cancel(a, width):
    values = mills_differences(a, width, 20)
    with mp.workdps(60):
        left, right = mp.mpf(a), mp.mpf(a) + mp.mpf(width)
        scale = mp.exp(-(left**2) / 2) if a < 0 else 1
        for j in (0, 1, 6, 19):
            exact = scale * (mills_moment(j, left) - mills_moment(j, right))
            # the sum of a Taylor series of positive and negative terms costs two digits at most
            assert values[j] == pytest.approx(float(exact), rel=3e-13 if a < -50 else 5e-14)


@pytest.mark.slow
@pytest.mark.parametrize("tilt", [2.5, 0.3, -0.2, -0.7, -1.4, -6.0])
@pytest.mark.parametrize("gap", [-1.7, 0.0, 0.9])
def test_payoff_integrals(tilt, gap):
    """Each strip's payoff against φ·He_m, by quadrature."""
    strip = Strip.RIGHT if tilt > 0 else (Strip.LEFT if tilt < -1 else Strip.MIDDLE)
    variance, x = 0.49, sp.Symbol("x")
    log_factor, values = payoff_integrals(
        strip, tilt, 1.0 + tilt, gap=gap, variance=variance, count=8
    )
    with mp.workdps(30):
        root, t, c = mp.sqrt(mp.mpf(variance)), mp.mpf(tilt), mp.mpf(gap)
        for m, value in enumerate(values):
            polynomial = sp.lambdify(x, hermite(m, x), "mpmath")

            def integrand(y, polynomial=polynomial):
                u = (y - c) / root
                payoff = {
                    Strip.RIGHT: max(0, -mp.expm1(-y)),
                    Strip.MIDDLE: min(1, mp.exp(-y)),
                    Strip.LEFT: max(0, mp.expm1(-y)),
                }[strip]
                return payoff * mp.exp(-t * y) * mp.npdf(u) * polynomial(u) / root

            # payoff and tilt move the peak by at most (1 + |t|)v
            reach = (1 + abs(t)) * root**2 + 12 * root
            cuts = sorted({mp.mpf(0), *(c + reach * k / 12 for k in range(-12, 13))})
            expected = mp.quad(integrand, cuts)
            # far from ε, powers of u₀ as large as 1e3 cancel to a full-range integral near zero
            assert math.exp(log_factor) * value == pytest.approx(
                float(expected), rel=1e-11, abs=3e-12
            )


@pytest.mark.quick_cases("2.0-1.0")
@pytest.mark.parametrize("mu", [1e-3, 0.3, 1.0, 8.0])
@pytest.mark.parametrize("tilt", [40.0, 2.0, 0.1, 1e-6, -0.3, -0.9, -1.1, -5.0])
def test_gaussian_loss_is_exact_at_every_tilt(mu, tilt):
    law = gaussian(mu)
    for x in (-9.0, -1.0, 0.0, 2.0, 9.0, 37.0):
        epsilon = mu * x
        value = log_central_limit(law, epsilon, tilt)
        with mp.workdps(60 + int(x * x)):
            m, e = mp.mpf(mu), mp.mpf(epsilon)
            above = mp.ncdf(m / 2 - e / m), mp.ncdf(e / m - m / 2)
            under = mp.exp(e) * mp.ncdf(-m / 2 - e / m), mp.exp(e) * mp.ncdf(m / 2 + e / m)
            if tilt > 0:
                exact = above[0] - under[0]
            elif tilt < -1:
                exact = under[1] - above[1]
            else:
                exact = above[1] + under[0]
            # K(t) − εt, up to 5e4 here, is rounded before anything else
            rounding = 1e-15 * (abs(law.cgf(tilt)) + abs(epsilon * tilt))
            assert value == pytest.approx(float(mp.log(exact)), rel=2e-13, abs=2e-13 + rounding)


def test_published_formula():
    """½ e^{K − εt − (m−ε)²/(2v)} [erfcx(a_t/√2) − erfcx(a_{t+1}/√2)], a_s = (sv + ε − m)/√v."""
    law, epsilon = SubsampledGaussianLaw(0.01, 1.5, 10**4), 1.0
    for tilt in (0.5, 2.0, 7.0):
        mean, variance = (mp.mpf(float(c)) for c in law.cumulants(tilt, 2))
        with mp.workdps(50):
            front = law.cgf(tilt) - epsilon * tilt - (mean - epsilon) ** 2 / (2 * variance)
            ends = [
                (s * variance + epsilon - mean) / mp.sqrt(2 * variance) for s in (tilt, tilt + 1)
            ]
            scaled = [mp.exp(a * a) * mp.erfc(a) for a in ends]
            expected = front + mp.log((scaled[0] - scaled[1]) / 2)
        assert log_central_limit(law, epsilon, tilt) == pytest.approx(float(expected), rel=1e-13)


def test_accuracy_of_the_orders():
    """Each order of the tilted series is more accurate here, down to 1e-8."""
    law = SubsampledGaussianLaw(0.01, 1.5, 10**4)
    errors = []
    for order in range(5):
        answer = TiltedEdgeworth(order).log_delta(law, 1.0)
        assert answer.kind == "estimate"
        assert not answer.advice
        errors.append(abs(math.expm1(answer.log_delta - math.log(PUBLISHED))))
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 2e-3
    assert errors[4] < 1e-8
    assert CentralLimit().log_delta(law, 1.0).log_delta == pytest.approx(
        TiltedEdgeworth(0).log_delta(law, 1.0).log_delta, rel=1e-15
    )


@pytest.mark.quick_cases("0-1")
@pytest.mark.parametrize(("order", "slope"), [(0, 1), (2, 2), (4, 3), (6, 4)])
def test_measured_order(order, slope):
    """At a fixed tilt the error of even order k falls like n^{−(k/2+1)}.

    The mean of the tilted sum then lies at ε up to 1/t, where odd Hermite functions vanish, so
    that odd orders come with a further n^{−1/2}. Evaluated in mpmath from the graded terms and the
    closed-form integrals; the accountant itself is compared with it below.
    """
    with mp.workdps(400):  # the closed forms cancel like b^19, b = t√v about 1e6
        errors = []
        for count in (10**12, 4 * 10**12):
            law = exponential(2.0, count)
            epsilon = law.exact_cumulants(1.5, 1)[0]
            truth = contour_log_delta(law, epsilon, 1.5, digits=100)
            errors.append(abs(mp.expm1(exact_tilted_series(law, epsilon, 1.5, order) - truth)))
        measured = float(mp.log(errors[0] / errors[1], 4))
    assert measured == pytest.approx(slope, abs=0.05)


def exact_tilted_series(law, epsilon, start, order):
    """Return log δ of the tilted Edgeworth series in mpmath, for the strip t > 0."""
    t = mp.findroot(lambda s: law.exact_cumulants(s, 1)[0] - epsilon - 1 / s - 1 / (1 + s), start)
    cumulants = [mp.mpf(0), *law.exact_cumulants(t, order + 2)]
    root = mp.sqrt(cumulants[2])
    end = (epsilon - cumulants[1]) / root
    total = mp.mpf(0)
    for tilt, sign in ((t, 1), (t + 1, -1)):
        a = tilt * root + end
        ratio = mp.exp(a * a / 2) * mp.erfc(a / mp.sqrt(2)) * mp.sqrt(mp.pi / 2)
        for grade in range(order + 1):
            for term in graded_terms(grade):
                closed = sp.lambdify(
                    (SCALED_TILT, END_POINT, MILLS_RATIO), hermite_integral(term.degree), "mpmath"
                )
                product = mp.mpf(term.coefficient.numerator) / term.coefficient.denominator
                for j, power in term.factors:
                    product *= (cumulants[j] / root**j) ** power
                total += sign * product * closed(tilt * root, end, ratio)
    return mp.re(law.exact_cgf(t)) - epsilon * t + mp.log(total * mp.npdf(end))


@pytest.mark.slow_cases("20-5", "4000-5")
@pytest.mark.parametrize("order", [0, 1, 3, 5])
@pytest.mark.parametrize("count", [20, 4000])
def test_numbers_follow_the_symbols(order, count):
    """The accountant's doubles against the closed forms at 60 digits, where these cancel."""
    law = logistic(2.0, count)
    epsilon = float(law.cumulants(1.2, 1)[0])
    with mp.workdps(60):
        expected = float(exact_tilted_series(law, mp.mpf(epsilon), 1.2, order))
    found = TiltedEdgeworth(order).log_delta(law, epsilon).log_delta
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_between_and_left_of_the_poles():
    """The same accuracy for 1 − δ, and δ(−ε) = 1 − e^{−ε} + e^{−ε}δ(ε) for a symmetric pair."""
    law = logistic(2.0, 200)
    for tilt in (-0.3, -0.5, -0.8):
        epsilon = float(law.cumulants(tilt, 1)[0])
        truth = contour_log_delta(law, epsilon, tilt)
        answer = TiltedEdgeworth(4).log_delta(law, epsilon)
        assert answer.log_complement == pytest.approx(float(truth), rel=1e-8)
    law = logistic(1.0, 50)
    for epsilon in (1.0, 5.0, 12.0):
        for order in range(4):
            right = TiltedEdgeworth(order).log_delta(law, epsilon).log_delta
            left = TiltedEdgeworth(order).log_delta(law, -epsilon).log_delta
            expected = math.log(-math.expm1(-epsilon) + math.exp(right - epsilon))
            if right < -0.7:  # in the middle strip the two are one and the same
                assert left == pytest.approx(expected, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("accountant", [CentralLimit(), TiltedEdgeworth(2), TiltedEdgeworth(4)])
@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_one_large_loss_is_noticed(accountant, epsilon):
    law = SubsampledGaussianLaw(0.01, 2.0, 2000, nodes=2000)
    assert "contour" in accountant.log_delta(law, epsilon).advice


def test_nearly_deterministic_tilted_loss():
    """Just below the largest loss the tilted law is all but a point: still a number."""
    from closed_form_law import randomized_response

    law = randomized_response(1.0, 3)
    answer = CentralLimit().log_delta(law, 3.0 - 1e-9)
    exact = 3 * (1 - math.log1p(math.e)) + math.log(1e-9)  # only (+, +, +) exceeds ε
    assert answer.log_delta == pytest.approx(exact, abs=0.2)


@pytest.mark.parametrize("order", [-1, 13, 2.0])
def test_orders_are_checked(order):
    with pytest.raises(InputError, match="tilted-edgeworth"):
        TiltedEdgeworth(order)
