"""Stretches on which a density with kinks is one smooth expression."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp.density.breakpoints import smooth_stretches


def test_the_least_of_two_is_taken_on_every_stretch():
    """A trapezium, whose sides are the lesser ones beyond ±1."""
    x = sp.Symbol("x", real=True)
    trapezium = sp.Min(1, 2 - sp.Abs(x))
    stretches = list(smooth_stretches((trapezium,), x, sp.S(-2), sp.S(2)))
    for stretch in stretches:
        (expression,) = stretch.expressions
        middle = (stretch.lower + stretch.upper) / 2
        assert expression.subs(x, middle) == trapezium.subs(x, middle)
    assert {expression for stretch in stretches for expression in stretch.expressions} == {
        sp.S.One, 2 - x, 2 + x,
    }  # fmt: skip


@pytest.mark.parametrize("at_zero", [0, 1, sp.Rational(1, 2), sp.Rational(1, 3)])
def test_a_step_has_its_own_value_where_it_steps(at_zero):
    """Of masses on the integers: at 0 that of the second argument, else 0 and 1."""
    k = sp.Symbol("k", integer=True)
    stretches = smooth_stretches((sp.Heaviside(k, at_zero),), k, -sp.oo, sp.oo)
    values = {(s.lower, s.upper): s.expressions[0] for s in stretches}
    assert values == {(-sp.oo, 0): 0, (0, 0): at_zero, (0, sp.oo): 1}


def test_signs_and_sizes_on_either_side_of_a_zero():
    """At every integer the stretch around it has the value of |k|, sign k, Max and Min."""
    k = sp.Symbol("k", integer=True)
    masses = (sp.Abs(k), sp.sign(k), sp.Max(k, 3 - k), sp.Min(k, 3 - k, 1))
    stretches = smooth_stretches(masses, k, -sp.oo, sp.oo)
    for at in range(-4, 6):
        inside = [s for s in stretches if s.lower < at < s.upper or s.lower == at == s.upper]
        assert inside
        for stretch in inside:
            assert [e.subs(k, at) for e in stretch.expressions] == [e.subs(k, at) for e in masses]
