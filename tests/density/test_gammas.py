"""Quotients of gamma functions become rational functions at every power, and stay what they are."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

from symdp.density.gammas import reduced, with_ends

K = sp.Symbol("k", integer=True, nonnegative=True)
J = sp.Symbol("j", integer=True)
WHOLE = {  # what loses all its gamma functions
    "a quotient": sp.gamma(K + 4) / sp.gamma(K + 1),
    "its inverse": sp.gamma(K + 1) / sp.gamma(K + 4),
    "squares": sp.gamma(K + 4) ** 2 / sp.gamma(K + 1) ** 2,
    "inverse squares": sp.gamma(K + 1) ** 2 / sp.gamma(K + 3) ** 2,
    "cubes": (sp.factorial(K + 2) / sp.gamma(K + 1)) ** 3,
    "a square over two": sp.gamma(K + 3) ** 2 / (sp.gamma(K + 1) * sp.gamma(K + 5)),
    "halves": sp.gamma(K + sp.Rational(7, 2)) ** 2 / sp.gamma(K + sp.Rational(3, 2)) ** 2,
    "a coefficient": sp.binomial(K + 3, K) ** 2,
    "factorials": sp.rf(K + 1, 3) ** 2 * sp.factorial(K) ** 2 / sp.factorial(K + 3) ** 2,
}
LEFT = {  # and what keeps some, with how many
    "one is left": (sp.gamma(K + 3) ** 3 / sp.gamma(K + 1) ** 2, 1),
    "no partner": (sp.gamma(K + 3) ** 2 / sp.gamma(K + sp.Rational(1, 2)) ** 2, 2),
    "two under one": (sp.gamma(K + 2) / sp.gamma(K + 4) ** 3, 1),
}
CASES = {name: (product, 0) for name, product in WHOLE.items()} | LEFT


@pytest.mark.parametrize("name", CASES)
def test_a_quotient_at_any_power_is_the_same_function_with_fewer_gammas(name: str) -> None:
    product, most = CASES[name]
    short = reduced(product, K)
    left = {node for node in short.atoms(sp.Function) if node.has(K)}
    assert len(left) == most, short
    truth, value = (sp.lambdify(K, form, "mpmath") for form in (product, short))
    with mpmath.workdps(30):
        for at in (0, 1, 2, 7, 40):
            assert mpmath.almosteq(truth(mpmath.mpf(at)), value(mpmath.mpf(at)), 1e-25), (name, at)


@pytest.mark.parametrize(
    "masses",
    [
        sp.binomial(7, J) / 128,
        1 / sp.factorial(J),
        1 / sp.gamma(J + 4),
        sp.binomial(9, J + 2) * sp.exp(-J),
        1 / sp.factorial(6 - J),
        3**J / sp.factorial(J) + sp.binomial(4, J),
    ],
    ids=str,
)
@pytest.mark.parametrize("support", [(-sp.oo, sp.oo), (-5, 12), (-sp.oo, 20), (0, sp.oo)], ids=str)
def test_masses_say_where_they_end(masses, support):
    """At every integer of the support they are what they were: 0 where a coefficient or 1/Γ is."""
    lower, upper = map(sp.sympify, support)
    ended = with_ends(masses, J, lower, upper)
    if lower < 0:
        assert ended.has(sp.Piecewise)
    for at in range(-9, 15):
        if lower <= at <= upper:
            assert ended.subs(J, at) == masses.subs(J, at)
