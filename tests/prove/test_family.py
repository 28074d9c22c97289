"""Proofs from K alone: the ends hold truths that share nothing with K."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms
from symdp.errors import SymdpError

a, b, k, t = sp.symbols("a b k t")


def dirichlet():
    """One count more of three cells, 2, 2 and 4: the loss is that of a Beta variable."""
    formula = sp.loggamma(a) + sp.loggamma(b) - sp.loggamma(a + b)
    return Mechanism.family(formula, {a: 3, b: 6}, {a: 2, b: 6}, "beta")


def poisson(p, q):
    return Mechanism.family(sp.exp(t), {t: sp.log(p)}, {t: sp.log(q)}, "poisson", counts=True)


@pytest.mark.slow
def test_one_draw_in_closed_form():
    epsilon = mpmath.mpf("0.5")
    cut = mpmath.beta(3, 6) / mpmath.beta(2, 6) * mpmath.e**epsilon
    p, q = (mpmath.betainc(n, 6, cut, 1, regularized=True) for n in (3, 2))
    truth = float(p - mpmath.e**epsilon * q)
    proved = compose(dirichlet(), 1).certify(0.5, 5, "remove")
    assert proved.lower <= truth <= proved.upper
    assert proved.upper - proved.lower < 1e-5 * truth


@pytest.mark.slow_cases("400-40-4-3", "400-40-3-4")
@pytest.mark.parametrize(("p", "q"), [(4, 3), (3, 4)])
@pytest.mark.parametrize(("n", "epsilon"), [(1, 0.25), (20, 1), (20, -3), (400, 40)])
def test_counts_are_proved_to_all_digits(p, q, n, epsilon):
    """n Poisson counts are one of n times the mean: a sum over counts in 40 digits."""
    with mpmath.workdps(40):
        gains = []
        for j in range(40 + 12 * n):
            shared = j * mpmath.log(n) - mpmath.loggamma(j + 1)
            own, other = (mpmath.exp(shared + j * mpmath.log(m) - n * m) for m in (p, q))
            gains.append(max(mpmath.mpf(0), own - mpmath.e**epsilon * other))
        truth = mpmath.fsum(gains)
        proved = compose(poisson(p, q), n).certify(epsilon, 15, "remove")
        assert mpmath.mpf(proved.lower_decimal) <= truth <= mpmath.mpf(proved.upper_decimal)
        assert proved.digits == 15


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(2, 1), (20, 1), (20, 30), (300, 100)])
def test_directions_are_proved_as_the_pair_in_one_variable_has_them(n, epsilon):
    formula = sp.log(sp.besseli(3, k) / k**3)
    theta = [3 * sp.sqrt(3) / 2, sp.Rational(3, 2)]
    step = Mechanism.family(formula, theta, [theta[0], -theta[1]], length=k)
    pair = mechanisms.von_mises_fisher(kappa=3, h="1/2", m=7)
    truth = compose(pair, n).delta(epsilon).delta
    proved = compose(step, n).certify(epsilon, 5, "remove")
    assert proved.lower <= truth <= proved.upper
    assert proved.upper - proved.lower < 1e-4 * truth


@pytest.mark.slow
def test_an_epsilon_is_proved():
    steps = compose(dirichlet(), 10)
    proved = steps.certify_epsilon(1e-2, 4)
    assert proved.epsilon_lower <= steps.epsilon(1e-2).epsilon <= proved.epsilon_upper


def test_what_is_not_proved_is_refused():
    with pytest.raises(SymdpError, match="by themselves"):
        compose([(dirichlet(), 2), (mechanisms.gaussian(sigma=2), 1)]).certify(1)
    with pytest.raises(SymdpError, match="largest loss is not proved"):
        compose(dirichlet(), 1).certify(20, 5, "remove")
