"""Stretches on which a density with kinks is one smooth expression."""

from __future__ import annotations

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
