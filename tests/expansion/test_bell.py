"""Bell and Hermite polynomials against SymPy's own constructions."""

from __future__ import annotations

import math

import pytest
import sympy as sp
from sympy.polys.orthopolys import hermite_prob_poly
from sympy.polys.ring_series import rs_exp

from symdp.expansion import complete_bell, graded_terms, graded_value, hermite, hermite_values
from symdp.expansion.graded import _bell_coefficients


@pytest.mark.parametrize("order", [1, 2, 5, 9])
def test_complete_bell_is_the_exponential_series(order):
    """SymPy's power-series exponential, an algorithm of its own, gives the same coefficients."""
    ring, s, *x = sp.ring(["s", *(f"x_{j}" for j in range(1, order + 1))], sp.QQ)
    exponent = sum((x[j - 1] * s**j / math.factorial(j) for j in range(1, order + 1)), ring.zero)
    expected = {
        tuple(powers): coefficient * math.factorial(order)
        for (degree, *powers), coefficient in rs_exp(exponent, s, order + 1).terms()
        if degree == order
    }
    assert _bell_coefficients(order) == expected


def test_complete_bell_is_the_sum_of_the_incomplete_ones():
    x = sp.symbols("x_1:7")
    for n in range(1, 7):
        incomplete = sum(sp.bell(n, k, x[: n - k + 1]) for k in range(1, n + 1))
        assert sp.expand(complete_bell(n) - incomplete) == 0


def test_complete_bell_at_one_counts_partitions():
    assert [complete_bell(n, (sp.Integer(1),) * n) for n in range(7)] == [1, 1, 2, 5, 15, 52, 203]


@pytest.mark.parametrize("degree", range(9))
def test_hermite(degree):
    x = sp.Symbol("x")
    assert sp.expand(hermite(degree, x) - hermite_prob_poly(degree, x)) == 0
    assert hermite_values(9, 0.75)[degree] == pytest.approx(
        float(hermite_prob_poly(degree, sp.Rational(3, 4))), rel=1e-13, abs=1e-13
    )


def test_grades_hold_terms_of_one_size():
    """With κ_j of order n^{−(j−2)/2} every term of T_g is of order n^{−g/2}, at degree g + 2r."""
    for grade in range(1, 7):
        for term in graded_terms(grade):
            assert sum((j - 2) * power for j, power in term.factors) == grade
            assert term.degree == grade + 2 * sum(power for _, power in term.factors)


def test_graded_value_is_the_expression():
    cumulants = [0.0, 0.0, 1.0, 0.3, -0.7, 1.1, 0.2, -0.4, 0.6]
    images = [float(k % 5 - 2) for k in range(19)]
    for grade in range(1, 7):
        exact = sum(
            sp.Rational(t.coefficient)
            * sp.prod([sp.Rational(str(cumulants[j])) ** p for j, p in t.factors])
            * int(images[t.degree])
            for t in graded_terms(grade)
        )
        assert graded_value(grade, cumulants, images) == pytest.approx(float(exact), rel=1e-13)
