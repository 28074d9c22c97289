"""The Edgeworth accountant: published errors, measured order, and honesty far out."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from closed_form_law import ClosedFormLaw, SubsampledGaussianLaw, gaussian, logistic

from symdp.errors import InputError
from symdp.expansion import edgeworth_polynomials, standardised_cumulant
from symdp.expansion.edgeworth import X
from symdp.methods.series import Edgeworth
from symdp.numeric.saddle_point import best_saddle

PUBLISHED = 0.049601410315  # rate 0.01, σ = 1.5, 10⁴ steps, ε = 1, remove


def contour_delta(law, epsilon):
    """δ by the trapezoidal rule on Re z = t₀ in double precision, with steps far below need."""
    saddle = best_saddle(law, epsilon)
    assert saddle.tilt > 0
    y = 0.1 / math.sqrt(saddle.curvature) * np.arange(4000)
    z = saddle.tilt + 1j * y
    terms = np.exp(law.cgf_line(saddle.tilt, y) - 1j * epsilon * y) / (z * (1 + z))
    terms[0] /= 2
    front = saddle.cgf - epsilon * saddle.tilt + math.log(y[1] / math.pi)
    return math.exp(front) * float(terms.real.sum())


@pytest.mark.parametrize(
    ("order", "error"), [(0, 4.3e-2), (1, -2.1e-4), (2, -1.1e-5), (3, -1.2e-7), (4, 1.5e-8)]
)
def test_published_errors(order, error):
    law = SubsampledGaussianLaw(0.01, 1.5, 10**4)
    answer = Edgeworth(order).log_delta(law, 1.0)
    assert answer.kind == "estimate"
    assert bool(answer.advice) is (abs(error) > 0.01)  # a percent is warned of
    assert math.exp(answer.log_delta) / PUBLISHED - 1 == pytest.approx(error, rel=0.05)


@pytest.mark.quick_cases("1")
@pytest.mark.parametrize("order", range(3))
def test_measured_order(order):
    """With q = 1/√n the total loss settles, and the error of AEA_k falls like n^{−(k+1)/2}."""
    errors = []
    for count in (6400, 102400):
        law = SubsampledGaussianLaw(1 / math.sqrt(count), 1.5, count)
        truth = contour_delta(law, 1.0)
        errors.append(abs(math.exp(Edgeworth(order).log_delta(law, 1.0).log_delta) / truth - 1))
    assert math.log(errors[0] / errors[1], 16) == pytest.approx((order + 1) / 2, abs=0.15)


@pytest.mark.parametrize("order", [0, 1, 3, 6])
@pytest.mark.parametrize("epsilon", [-1.5, -0.2, 0.0, 0.4, 1.5])
def test_printed_formula(order, epsilon):
    """1 − E_Y(ε) − e^ε(1 − E_X(ε)) at 40 digits from the symbolic polynomials, in each strip."""
    law = SubsampledGaussianLaw(0.05, 1.2, 400)
    with mp.workdps(40):
        tails = []
        for tilt in (0.0, -1.0):
            cumulants = [mp.mpf(float(c)) for c in law.cumulants(tilt, order + 2)]
            root = mp.sqrt(cumulants[1])
            x = (mp.mpf(epsilon) - cumulants[0]) / root
            values = {X: x}
            values |= {
                standardised_cumulant(j): cumulants[j - 1] / root**j for j in range(3, order + 3)
            }
            correction = mp.fsum(
                sp.lambdify(list(values), p, "mpmath")(*values.values())
                for p in edgeworth_polynomials(order)
            )
            tails.append(mp.ncdf(-x) + mp.npdf(x) * correction)
        expected = tails[0] - mp.exp(mp.mpf(epsilon)) * tails[1]
    answer = Edgeworth(order).log_delta(law, epsilon)
    # K(−1) = 0 only to the rounding of the law's own grid
    assert answer.log_delta == pytest.approx(float(mp.log(expected)), rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("mu", [0.05, 1.0, 4.0])
def test_exact_for_gaussian_losses(mu):
    law = gaussian(mu)
    for x in (-9.0, -1.0, 0.0, mu / 2, 1.0, 5.0, 9.0):
        with mp.workdps(60):
            m, e = mp.mpf(mu), mp.mpf(mu * x)
            delta = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
            expected = float(mp.log(delta))
        for order in (0, 4):
            answer = Edgeworth(order).log_delta(law, mu * x)
            # the two tails nearly cancel for small μ, as they do in the formula
            assert answer.log_delta == pytest.approx(expected, rel=1e-9, abs=1e-13)
            assert not answer.advice


@pytest.mark.slow
@pytest.mark.parametrize("order", range(7))
def test_advice_follows_the_error(order):
    """Further and further out every order fails, the higher the later, and each says when."""
    law = SubsampledGaussianLaw(0.01, 1.5, 10**4)
    advised = []
    for epsilon in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0):
        answer = Edgeworth(order).log_delta(law, epsilon)
        error = abs(math.expm1(min(answer.log_delta - math.log(contour_delta(law, epsilon)), 9.0)))
        assert answer.kind == "estimate"
        if error > 0.01:
            assert "contour" in answer.advice
        elif error < 0.001:
            assert not answer.advice
        advised.append(bool(answer.advice))
    assert advised == sorted(advised)
    assert advised[-1]


@pytest.mark.slow
def test_negative_sum_becomes_a_bound():
    """A negative δ is answered by the interval up to the moments bound, which holds."""
    negative = 0
    for law in (SubsampledGaussianLaw(0.1, 0.7, 10), SubsampledGaussianLaw(0.01, 1.0, 100)):
        for epsilon in (0.3, 0.7, 1.0, 2.0, 4.0):
            for order in range(1, 7):
                answer = Edgeworth(order).log_delta(law, epsilon)
                if answer.kind == "bound":
                    negative += 1
                    assert answer.log_lower == -math.inf
                    assert "negative" in answer.advice
                    assert "contour" in answer.advice
                    assert math.log(contour_delta(law, epsilon)) <= answer.log_upper
    assert negative


def test_lattice_is_noticed():
    from closed_form_law import randomized_response

    assert "beyond" in Edgeworth(3).log_delta(randomized_response(2.0, 50), 80.3).advice


def test_huge_epsilon_and_no_variance():
    assert Edgeworth(12).log_delta(gaussian(1.0), 1e30).advice
    constant = ClosedFormLaw(lambda z: mp.mpf(1), 5)
    assert "no variance" in Edgeworth(1).log_delta(constant, 0.3).advice


def test_mass_at_infinity_adds_to_the_finite_part():
    plain, stay = logistic(1.0, 60), mp.mpf("0.9999")
    escaping = ClosedFormLaw(
        lambda z: stay * plain.moment(z),
        60,
        bounds=(-1.0, 1.0),
        mass_at_infinity=float(1 - stay**60),
    )
    escaped = float(1 - stay**60)
    for epsilon in (-6.0, 0.0, 4.0, 9.0):
        finite = math.exp(Edgeworth(3).log_delta(plain, epsilon).log_delta)
        found = math.exp(Edgeworth(3).log_delta(escaping, epsilon).log_delta)
        assert found == pytest.approx(escaped + (1 - escaped) * finite, rel=1e-9)


@pytest.mark.parametrize("order", [-1, 13, 1.5, None])
def test_orders_are_checked(order):
    with pytest.raises(InputError, match="edgeworth"):
        Edgeworth(order)
