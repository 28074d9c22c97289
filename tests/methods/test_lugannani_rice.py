"""The Lugannani–Rice accountant: exactness, removable singularities, order and regime."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from closed_form_law import (
    ClosedFormLaw,
    SubsampledGaussianLaw,
    contour_log_delta,
    exponential,
    gaussian,
    logistic,
)

from symdp.methods.lugannani_rice import LugannaniRice

METHOD = LugannaniRice()


def reference(law, epsilon, start, digits=50):
    """The printed formula in mpmath, without any care for cancellation."""
    with mp.workdps(digits):
        e = mp.mpf(epsilon)
        t = mp.findroot(lambda s: law.exact_cumulants(s, 1)[0] - e, start)
        k, v = mp.re(law.exact_cgf(t)), law.exact_cumulants(t, 2)[1]
        w, u = mp.sign(t) * mp.sqrt(2 * (t * e - k)), t * mp.sqrt(v)
        s = t + 1
        wq, uq = mp.sign(s) * mp.sqrt(2 * (s * e - k)), s * mp.sqrt(v)
        tails = mp.ncdf(-w) - mp.exp(e) * mp.ncdf(-wq)
        return tails + mp.npdf(w) * (1 / u - 1 / w - 1 / uq + 1 / wq)


@pytest.mark.parametrize("count", [1, 7, 10**4])
@pytest.mark.parametrize("mu", [0.01, 0.7, 3.0])
def test_exact_for_gaussian_losses(mu, count):
    """At every n and ε, δ from 1 − 1e-300 to 1e-300, through both singular points."""
    law, total = gaussian(mu, count), mu * math.sqrt(count)
    for x in (-37.0, -6.0, -total / 2, -1e-3, 0.0, 1e-3, total / 2, 1.0, 6.0, 37.0):
        epsilon = x * total
        with mp.workdps(60):
            m, e = mp.mpf(mu) * mp.sqrt(count), mp.mpf(epsilon)
            above, under = mp.ncdf(m / 2 - e / m), mp.exp(e) * mp.ncdf(-m / 2 - e / m)
            delta, complement = above - under, mp.ncdf(e / m - m / 2) + under
            log_delta, log_complement = float(mp.log(delta)), float(mp.log(complement))
        answer = METHOD.log_delta(law, epsilon)
        assert not answer.advice
        assert answer.log_delta == pytest.approx(log_delta, rel=3e-12, abs=3e-12)
        if answer.log_complement is not None:
            assert answer.log_complement == pytest.approx(log_complement, rel=3e-12, abs=3e-12)


@pytest.mark.parametrize("tilt", [3.0, 0.4, -0.2, -0.5, -0.9, -1.3, -4.0])
@pytest.mark.parametrize("law", [exponential(1.2, 50), logistic(1.0, 40)], ids=["skewed", "even"])
def test_printed_formula(law, tilt):
    epsilon = float(law.cumulants(tilt, 1)[0])
    expected = reference(law, epsilon, tilt)
    answer = METHOD.log_delta(law, epsilon)
    assert answer.log_delta == pytest.approx(float(mp.log(expected)), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("pole", [0.0, -1.0])
def test_removable_singularities(pole):
    """On both sides of t̂ = 0 and t̂ = −1, and on them, the value follows the printed formula."""
    law = exponential(1.5, 60)
    deviation = math.sqrt(law.cumulants(pole, 2)[1])
    for offset in (0.3, 0.05, 1e-3, 1e-6, 1e-12, 0.0, -1e-12, -1e-6, -1e-3, -0.05, -0.3):
        tilt = pole + offset
        epsilon = float(law.cumulants(pole, 1)[0]) + offset * deviation**2
        near = tilt if abs(offset) > 1e-9 else pole + 1e-8  # the formula's own limit is smooth
        start = epsilon if abs(offset) > 1e-9 else float(law.cumulants(near, 1)[0])
        expected = reference(law, start, near, digits=80)
        answer = METHOD.log_delta(law, epsilon)
        tolerance = 1e-11 if abs(offset) > 1e-9 else 1e-6
        assert answer.log_delta == pytest.approx(float(mp.log(expected)), rel=tolerance)


def test_measured_order_in_the_bulk():
    """At a fixed number of deviations, fixed total variance: relative error n^{−3/2} or better."""
    errors = []
    for count in (100, 1600):
        # a skewed loss whose total has a mean and a variance that settle as n grows
        law = exponential(1 + 1.5 / math.sqrt(count), count)
        epsilon = float(law.cumulants(0.0, 1)[0] + 1.2 * math.sqrt(law.cumulants(0.0, 2)[1]))
        truth = contour_log_delta(law, epsilon, 1.0)
        errors.append(abs(float(mp.expm1(METHOD.log_delta(law, epsilon).log_delta - truth))))
    assert math.log(errors[0] / errors[1], 16) > 1.3


def test_measured_order_at_a_fixed_tilt():
    """In the large-deviation regime the relative error falls like 1/n."""
    errors = []
    for count in (400, 6400):
        law = exponential(2.0, count)
        epsilon = float(law.cumulants(1.5, 1)[0])
        truth = contour_log_delta(law, epsilon, 1.5)
        errors.append(abs(float(mp.expm1(METHOD.log_delta(law, epsilon).log_delta - truth))))
    assert math.log(errors[0] / errors[1], 16) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_one_large_loss_is_noticed(epsilon):
    law = SubsampledGaussianLaw(0.01, 2.0, 2000, nodes=2000)
    assert "contour" in METHOD.log_delta(law, epsilon).advice


def test_heavy_loss_near_the_mean_is_noticed():
    """With rare large losses the formula is wrong by 44 % even near the mean, and says so."""
    answer = METHOD.log_delta(SubsampledGaussianLaw(0.001, 0.7, 100, nodes=2000), 0.0)
    assert "contour" in answer.advice


def test_no_tilt_that_moves_the_mean_to_epsilon():
    whole = logistic(2.0, 30)
    law = ClosedFormLaw(whole.moment, 30, domain=(-2.0, 0.25))
    answer = METHOD.log_delta(law, 50.0)
    assert answer.kind == "bound"
    assert answer.log_lower == -math.inf
    assert "no tilt" in answer.advice
    truth = contour_log_delta(whole, 50.0, 3.0)
    assert float(truth) < answer.log_delta < 0


def test_mass_at_infinity_adds_to_the_finite_part():
    plain, stay = logistic(1.0, 60), mp.mpf("0.9999")
    escaping = ClosedFormLaw(
        lambda z: stay * plain.moment(z),
        60,
        bounds=(-1.0, 1.0),
        mass_at_infinity=float(1 - stay**60),
    )
    escaped = float(1 - stay**60)
    for epsilon in (-6.0, 0.0, 4.0, 15.0):
        finite = math.exp(METHOD.log_delta(plain, epsilon).log_delta)
        found = math.exp(METHOD.log_delta(escaping, epsilon).log_delta)
        assert found == pytest.approx(escaped + (1 - escaped) * finite, rel=1e-10)
