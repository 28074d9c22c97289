"""Formulas where parameters coincide, as a file allows: no pole, and the values of the limit."""

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.derive.series import moment_at_zero

X = sp.Symbol("x", real=True)
A, B = sp.symbols("a b", positive=True)
BELOW, ABOVE = sp.exp(-(X**2) / (2 * A**2)), sp.exp(-(X**2) / (2 * B**2))
HALVES = sp.sqrt(2 / sp.pi) / (A + B) * sp.Piecewise((BELOW, X < 0), (ABOVE, True))


@pytest.fixture(scope="module")
def derived():
    return symdp.derive(symdp.Mechanism.additive(HALVES, X, name="two halves"))


def test_a_quadratic_loss_has_no_pole_where_its_leading_term_vanishes(derived):
    """At a = b it is (2x − 1)/(2a²), the loss of normal noise."""
    for place in (-2, sp.Rational(1, 3), 2):
        value = derived.loss.subs({A: 2, B: 2}).subs(X, place)
        assert value == sp.Rational(2 * place - 1) / 8


@pytest.mark.slow
def test_nor_have_its_inverse_and_its_density(derived):
    law = derived.pld_density
    value = law.expression.subs({A: 2, B: 2}).subs(law.loss, sp.Rational(1, 16))
    # The loss of normal noise is normal with mean 1/(2σ²) and variance 1/σ².
    mean, variance = sp.Rational(1, 8), sp.Rational(1, 4)
    normal = sp.exp(-((sp.Rational(1, 16) - mean) ** 2) / (2 * variance)) / sp.sqrt(
        2 * sp.pi * variance
    )
    assert float(value) == pytest.approx(float(normal), rel=1e-14)


@pytest.mark.slow_cases("3-1-3", "2-1-3", "3-2-2", "2-2-2")
@pytest.mark.parametrize(("a", "b"), [(1, 3), (2, 2), (5, 1)])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_moments_of_the_loss_are_formulas(derived, order, a, b):
    moment = moment_at_zero(derived.pair, order)
    density = sp.lambdify(X, HALVES.subs({A: a, B: b}), "mpmath")
    with mpmath.workdps(25):
        truth = mpmath.quad(
            lambda x: density(x - 1) * mpmath.log(density(x - 1) / density(x)) ** order,
            [-80, -20, 0, 1, 20, 80],
        )
    assert float(moment.subs({A: a, B: b})) == pytest.approx(float(truth), rel=1e-12)


def test_a_lattice_or_an_infinite_loss_has_none_in_that_way():
    assert moment_at_zero(symdp.derive(symdp.mechanisms.discrete_laplace).pair, 1) is None
    one_sided = symdp.Mechanism.additive(sp.exp(-X), X, support=(0, sp.oo), name="one-sided")
    assert moment_at_zero(symdp.derive(one_sided, direction="add").pair, 1) is None
    assert moment_at_zero(symdp.derive(one_sided).pair, 1) == 1  # where P is, Q is e times less
