"""Which M are sums of rational functions times exponentials, read off the expression alone."""

from __future__ import annotations

import sys

import pytest
import sympy as sp

from symdp import mechanisms
from symdp.density.exponential_sum import exponential_sum, read_exponential_sum, same_number

t = sp.Symbol("t", real=True)
R = sp.Rational

SUMS = {
    "sinh over a line": sp.sinh((2 * t + 1) / 4) / (2 * t + 1),
    "a product of hyperbolic functions": sp.sinh(t / 3) * sp.cosh(t / 3 + 1) / (t + R(1, 3)) ** 2,
    "powers of numbers": 2 ** (t + 1) * 3 ** (-t) / (t + 2),
    "a square of a sum": (sp.exp(t) / 2 + R(1, 2)) ** 2,
    "a quotient with exponentials below": (1 + sp.exp(2 * t)) / (sp.exp(t) * (3 - t)),
    "numbers with e in them": sp.exp(t) / (-t + sp.E * t + sp.E),
    "several poles": t / ((t + 1) * (t + 2)) - sp.exp(-t) / (t**2 + 3 * t + 2),
}


@pytest.mark.parametrize("name", SUMS)
def test_the_sum_is_the_expression(name):
    found = read_exponential_sum(SUMS[name], t)
    assert found is not None
    below = sp.prod((t - pole) ** order for pole, order in found.poles)
    total = sum(
        sum(c * t**k for k, c in enumerate(term.polynomial)) * sp.exp(term.rate * t) / below
        for term in found.terms
    )
    for place in (R(2, 7), -R(11, 13) + sp.I * R(3, 2)):
        assert abs(sp.N((total - SUMS[name]).subs(t, place), 30)) < 1e-25


@pytest.mark.parametrize(
    "expression",
    [
        sp.exp(t**2),
        sp.exp(t) / (t**2 + 1),  # poles off the axis
        t**2 * sp.exp(t) / (t + 1),  # grows along a line
        1 / (1 + sp.exp(t)),
        sp.gamma(1 - t),
        sp.sqrt(1 + t),
        (1 + t) ** t,
        sp.log(2 + t),
    ],
    ids=str,
)
def test_other_expressions_are_refused(expression):
    assert read_exponential_sum(expression, t) is None


def test_terms_that_cancel_are_left_out():
    found = read_exponential_sum((sp.exp(t) - sp.exp(t) * sp.exp(sp.log(2)) / 2) + 1 / (t + 2), t)
    assert [term.rate for term in found.terms] == [0]


def test_equal_numbers_of_other_forms_are_one_pole():
    found = read_exponential_sum(1 / (t + sp.sqrt(8)) + 1 / (t / 2 + sp.sqrt(2)), t)
    assert [order for _, order in found.poles] == [1]
    assert same_number(sp.log(4), [sp.S.One, 2 * sp.log(2)]) == 2 * sp.log(2)


def test_a_closed_form_that_disagrees_with_an_integral_is_not_used(monkeypatch):
    half = (sp.exp(t / 2) + sp.exp(-t / 2)) / 2
    module = sys.modules[exponential_sum.__module__]
    monkeypatch.setattr(module, "tabulated_moment", lambda _: (t, half))
    assert exponential_sum.__wrapped__(mechanisms.laplace(b=2).pair()) is None
