"""Logarithms of sums off the real axis: one holomorphic function, whichever form is taken."""

from __future__ import annotations

import itertools
import math

import pytest
import sympy as sp
from flint import acb, arb

from symdp.emit.arb import compile_arb
from symdp.emit.enclose import between

x = sp.Symbol("x", real=True)
SAMPLED = sp.log(sp.Rational(99, 100) + sp.exp(x) / 100)
MIXED = sp.log(sp.exp(2 * x) + 3 * sp.exp(x) + sp.exp(-x) / 5)
LESS = sp.log(sp.exp(x) + 2 - sp.exp(-2 * x))


def followed(expression, start, end, steps=2000):
    """Continue log of an expression from a real place to another, step by small step."""
    inner = sp.lambdify(x, expression.args[0], "mpmath")
    places = [start + (end - start) * k / steps for k in range(steps + 1)]
    values = [complex(inner(place)) for place in places]
    angle = 0.0
    for one, other in itertools.pairwise(values):
        ratio = other / one
        angle += math.atan2(ratio.imag, ratio.real)
    return complex(math.log(abs(values[-1])), angle)


@pytest.mark.slow_cases("expression5-(12+7j)", "expression6-(-15-11j)")
@pytest.mark.parametrize(
    ("expression", "end"),
    [
        (SAMPLED, 20 + 5j),
        (SAMPLED, 59 + 5j),
        (SAMPLED, 61 + 5j),
        (SAMPLED, -3 + 40j),
        (SAMPLED, 4.6 + 2j),
        (MIXED, 12 + 7j),
        (MIXED, -15 - 11j),
        (MIXED, 0.3 + 0.9j),
        (LESS, 9 - 6j),
    ],
)
def test_a_value_is_that_of_the_continuation_from_below(expression, end):
    function = compile_arb(expression, [x])
    value = function(acb(end.real, end.imag), analytic=True)
    assert value.is_finite()
    expected = followed(expression, end.real, end)
    assert abs(complex(value) - expected) < 1e-9


@pytest.mark.parametrize(
    ("expression", "place"),
    [(SAMPLED, complex(math.log(99), math.pi)), (MIXED, complex(math.log(3), math.pi))],
)
def test_a_ball_around_a_zero_of_the_sum_is_not_analytic(expression, place):
    ball = acb(
        between(arb(place.real - 0.1), arb(place.real + 0.1)),
        between(arb(place.imag - 0.1), arb(place.imag + 0.1)),
    )
    assert not compile_arb(expression, [x])(ball, analytic=True).is_finite()


def test_nothing_is_said_above_a_zero():
    """Left and right of a zero the continuations differ: no ball that lies above one counts."""
    function = compile_arb(SAMPLED, [x])
    for height in (4.0, 9.0, 12.0):
        ball = acb(between(arb("4.5"), arb("4.7")), arb(height))
        assert not function(ball, analytic=True).is_finite()


def test_a_ratio_of_polynomials_is_not_continued_past_its_cut():
    function = compile_arb(sp.log((x**2 - 2 * x + 2) / (x**2 + 2 * x + 2)), [x])
    inside = function(acb("0.3", "0.4"), analytic=True)
    expected = followed(sp.log((x**2 - 2 * x + 2) / (x**2 + 2 * x + 2)), 0.3, 0.3 + 0.4j)
    assert abs(complex(inside) - expected) < 1e-9
    # Around the zero at 1 + i the ratio is negative somewhere.
    assert not function(
        acb(between(arb("0.9"), arb("1.1")), between(arb("0.9"), arb("1.1"))), analytic=True
    ).is_finite()
