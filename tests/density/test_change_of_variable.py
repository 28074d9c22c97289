"""Another name for every output changes no δ: what a density is in y = g⁻¹(x) is answered alike."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp import Mechanism, compose
from symdp.model import tidy

X = sp.Symbol("x", real=True)
Y = sp.Symbol("y", real=True)
NORMAL = sp.exp(-(X**2) / 2) / sp.sqrt(2 * sp.pi)
SECH = 1 / (sp.pi * sp.cosh(X))
LOGISTIC = sp.exp(-X) / (1 + sp.exp(-X)) ** 2
LINE = (-sp.oo, sp.oo)
HALF_TURN = (-sp.pi / 2, sp.pi / 2)


def steps(density, shift, place=X, slope=1, support=LINE, n=1):
    p, q = (density.subs(X, place - moved) * slope for moved in (shift, 0))
    variable = X if place == X else Y
    return compose(Mechanism.from_pair(p, q, variable, support), n)


@pytest.mark.slow_cases("hyperbolic secant", "logistic, 2 steps")
@pytest.mark.parametrize(
    ("density", "shift", "n"),
    [
        (NORMAL, sp.Rational(3, 2), 1),
        (NORMAL, sp.Rational(1, 2), 4),
        (SECH, 1, 1),
        (LOGISTIC, 1, 2),
    ],
    ids=["normal", "normal, 4 steps", "hyperbolic secant", "logistic, 2 steps"],
)
def test_an_interval_that_is_mapped_from_the_line(density, shift, n):
    line = steps(density, shift, n=n).delta(0.5)
    mapped = steps(density, shift, sp.tan(Y), 1 / sp.cos(Y) ** 2, HALF_TURN, n).delta(0.5)
    assert mapped.lower <= line.upper * (1 + 1e-13)
    assert line.lower <= mapped.upper * (1 + 1e-13)
    assert mapped.upper - mapped.lower < 1e-12


@pytest.mark.slow
def test_a_loss_that_settles_as_fast_as_an_exponential_of_one():
    """ℓ of 1/cosh (sinh y − s) is at most s, which no ball shows at 2⁶⁰."""
    shift = sp.Rational(1, 4)
    made = steps(SECH, shift, sp.sinh(Y), sp.cosh(Y))
    assert made.law("remove").loss_bounds == (-0.25, 0.25)
    assert made.delta(0.26).upper == 0.0


def test_what_cosh_is_a_function_of_stays():
    inner = sp.cos(X)
    assert tidy.without_hyperbolics(sp.cosh(inner)) == (sp.exp(inner) + sp.exp(-inner)) / 2
    assert tidy.without_hyperbolics(sp.cosh(Y), X) == sp.cosh(Y)
