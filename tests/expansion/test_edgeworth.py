"""Edgeworth series against the sum over partitions, exact moments and sums of exponentials."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
import sympy as sp
from sympy.utilities.iterables import partitions

from symdp.expansion import (
    complete_bell,
    edgeworth_density_polynomials,
    edgeworth_polynomials,
    hermite,
    standardised_cumulant,
)
from symdp.expansion.edgeworth import X


@pytest.mark.parametrize("grade", range(1, 7))
def test_sum_over_partitions(grade):
    """p_j = Σ He_{j+2r−1} Π (λ_{m+2}/(m+2)!)^{k_m}/k_m! over k₁ + 2k₂ + … + jk_j = j."""
    expected = sp.Integer(0)
    for partition in partitions(grade):
        term = hermite(grade + 2 * sum(partition.values()) - 1, X)
        for m, k in partition.items():
            term *= (standardised_cumulant(m + 2) / sp.factorial(m + 2)) ** k / sp.factorial(k)
        expected += term
    assert sp.expand(edgeworth_polynomials(grade)[-1] - expected) == 0


def test_density_is_the_derivative():
    """d/dx [Φ − φ p] = φ (1 + x p − p′)."""
    for p, r in zip(edgeworth_polynomials(5), edgeworth_density_polynomials(5), strict=True):
        assert sp.expand(X * p - sp.diff(p, X) - r) == 0


def test_density_has_the_moments_of_its_cumulants():
    """∫ x^m φ r_j is the part of order n^{−j/2} of the m-th moment, a complete Bell polynomial."""
    s, order = sp.Symbol("s"), 4
    cumulants = (0, 1, *(standardised_cumulant(j) * s ** (j - 2) for j in range(3, 9)))
    for m in range(1, 9):
        moment = sp.expand(complete_bell(m, tuple(sp.sympify(c) for c in cumulants[:m])))
        for j, r in enumerate(edgeworth_density_polynomials(order), start=1):
            terms = sp.Poly(sp.expand(X**m * r), X).terms()
            integral = sum(c * sp.factorial2(d - 1) for (d,), c in terms if d % 2 == 0)
            assert sp.expand(integral - moment.coeff(s, j)) == 0


@pytest.mark.parametrize("order", range(6))
def test_measured_order_for_sums_of_exponentials(order):
    """Gamma(n) has cumulants (j−1)! n: |F − E_k| falls like n^{−(k+1)/2}."""
    polynomials = edgeworth_polynomials(order)

    def error(n: int, x: mp.mpf) -> mp.mpf:
        values = {standardised_cumulant(j): math.factorial(j - 1) for j in range(3, order + 3)}
        correction = mp.mpf(0)
        for p in polynomials:  # λ_j = (j−1)! n^{1−j/2}; exact rational in √n below
            powers = {k: v * mp.mpf(n) ** (1 - mp.mpf(k_index(k)) / 2) for k, v in values.items()}
            correction += sp.lambdify((X, *powers), p, "mpmath")(x, *powers.values())
        series = mp.ncdf(x) - mp.npdf(x) * correction
        return abs(mp.gammainc(n, 0, n + x * mp.sqrt(n), regularized=True) - series)

    def k_index(symbol: sp.Symbol) -> int:
        return int(symbol.name.split("_")[1])

    with mp.workdps(40):
        x = mp.mpf("1.3")
        measured = mp.log(error(400, x) / error(6400, x), 16)
    assert float(measured) == pytest.approx((order + 1) / 2, abs=0.1)
