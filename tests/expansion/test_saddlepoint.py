"""The steepest-descent series against printed terms, other derivations and a known function."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp.expansion import F, complete_bell, saddlepoint_corrections, saddlepoint_series

ORDER = 4


def test_printed_corrections():
    """The two corrections printed in the literature."""
    first, second = saddlepoint_corrections(2)
    assert sp.expand(first - F(4) / (8 * F(2) ** 2) + 5 * F(3) ** 2 / (24 * F(2) ** 3)) == 0
    printed = (
        -F(6) / (48 * F(2) ** 3)
        + 35 * F(4) ** 2 / (384 * F(2) ** 4)
        + 7 * F(3) * F(5) / (48 * F(2) ** 4)
        - 35 * F(3) ** 2 * F(4) / (64 * F(2) ** 5)
        + 385 * F(3) ** 4 / (1152 * F(2) ** 6)
    )
    assert sp.expand(second - printed) == 0
    assert sp.expand(saddlepoint_series(2) - 1 - first - second) == 0


def test_sum_over_bell_polynomials_sorted_by_order():
    """Σ_m (−1)^m (2m−1)!! B_{2m}(0, 0, F₃, …)/((2m)! F₂^m), its terms collected by m − j."""
    n, orders = sp.Symbol("n", positive=True), 3
    total = sp.Integer(0)
    for m in range(2, 3 * orders + 1):
        arguments = (0, 0, *(n * F(j) for j in range(3, 2 * m + 1)))
        bell = complete_bell(2 * m, tuple(sp.sympify(a) for a in arguments))
        total += (-1) ** m * sp.factorial2(2 * m - 1) * bell / sp.factorial(2 * m) / (n * F(2)) ** m
    total = sp.expand(total)
    for k, correction in enumerate(saddlepoint_corrections(orders), start=1):
        assert sp.expand(total.coeff(n, -k) - correction) == 0


@pytest.mark.slow
def test_taylor_expansion_and_gaussian_moments():
    """Brute force: e^{ΣF_j s^{j−2}(iy)^j/j!} multiplied out and integrated against e^{−F₂y²/2}."""
    s, y = sp.symbols("s y")
    exponent = sp.Poly(
        sum(
            F(j) * s ** (j - 2) * (sp.I * y) ** j / sp.factorial(j) for j in range(3, 2 * ORDER + 3)
        ),
        s,
    )
    factor, series = sp.Poly(1, s), sp.Poly(1, s)
    for k in range(1, 2 * ORDER + 1):
        product = factor * exponent
        factor = sp.Poly({p: sp.expand(c / k) for p, c in product.terms() if p[0] <= 2 * ORDER}, s)
        series += factor
    for k, correction in enumerate(saddlepoint_corrections(ORDER), start=1):
        moments = sp.Poly(sp.expand(series.coeff_monomial(s ** (2 * k))), y)
        gaussian = sum(
            coefficient * sp.factorial2(degree - 1) / F(2) ** (degree // 2)
            for (degree,), coefficient in moments.terms()
        )
        assert sp.expand(gaussian - correction) == 0


@pytest.mark.slow
def test_reciprocal_stirling_series():
    """1/Γ(z) = (1/2πi)∫ e^t t^{−z} dt has F_j = (−1)^j (j−1)! z^{1−j}: Stirling's series."""
    order, z = 6, sp.Symbol("z", positive=True)
    values = {F(j): (-1) ** j * sp.factorial(j - 1) * z ** (1 - j) for j in range(2, 2 * order + 3)}
    ours = [
        sp.simplify(c.subs(values) * z**k) for k, c in enumerate(saddlepoint_corrections(order), 1)
    ]
    x = sp.Symbol("x")
    logarithm = -sum(
        sp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) * x ** (2 * k - 1) for k in range(1, order)
    )
    series = sp.series(sp.exp(logarithm), x, 0, order + 1).removeO()
    assert ours == [series.coeff(x, k) for k in range(1, order + 1)]


@pytest.mark.parametrize("order", [0, 3])
def test_one_correction_an_order(order):
    corrections = saddlepoint_corrections(order)
    assert len(corrections) == order
    highest = {s.name for c in corrections for s in c.free_symbols}
    assert (f"F_{2 * order + 2}" in highest) == (order > 0)
