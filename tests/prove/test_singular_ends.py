"""Densities that are infinite at an end of their support, and losses that turn beside it."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from catalogue import ALL
from certified_values import assert_certified
from flint import arb, ctx

from symdp import compose
from symdp.derive.limits import monotone_pieces
from symdp.prove.enclosure import enclose_delta

R = sp.Rational
ARCSINE = ALL["arcsine and uniform"].mechanism("arcsine").subsample("poisson", "1/100")
BETA = ALL["beta shapes"].mechanism("beta")(a="4/5", c="7/5", d="9/10")
BETA = BETA.subsample("poisson", "1/100")
STUDENT = ALL["student"].mechanism("student")(nu="4/5")


CERTIFIED = {
    "arcsine": (ARCSINE, 15),
    "beta": (BETA, 15),
    **{
        name: (ALL[name].mechanism("entry")(**values).subsample("poisson", "1/100"), 12)
        for name, values in {
            "triangles": {},
            "cos**2 and uniform": {},
            "chi-square": {"a": "4/5", "c": "7/5"},
        }.items()
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["arcsine", *(pytest.param(n, marks=pytest.mark.slow) for n in list(CERTIFIED)[1:])]
)
def test_many_steps_are_certified(name):
    mechanism, digits = CERTIFIED[name]
    steps = compose(mechanism, 10**4)
    answer = steps.delta(1.2, direction="remove")
    ball = enclose_delta([(m.pair("remove"), n) for m, n in steps.steps], 1.2, digits)
    with ctx.workprec(128):
        assert ball.rad() < ball * 10.0**-digits
        assert answer.log_lower <= ball.log().upper()
        assert ball.log().lower() <= answer.log_upper


@pytest.mark.parametrize("rate", [None, "1/100"])
def test_an_algebraic_turning_point_is_found_at_once(rate):
    """ℓ′ holds fractional powers of surds there, whose finiteness SymPy ponders for minutes."""
    mechanism = STUDENT if rate is None else STUDENT.subsample("poisson", rate)
    pair = mechanism.pair("remove")
    turning = [p.lower for p in monotone_pieces(pair) if p.lower.is_finite]
    assert [sp.expand(10 * place - 5) for place in turning] == [-sp.sqrt(105), sp.sqrt(105)]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["-0.005", "0", "0.005"])
def test_one_step_is_integrated_up_to_an_end_that_is_not_zero(epsilon):
    """Next to 1, what is cut off is too near for the bits that place it next to 0."""
    with mpmath.workdps(40):
        rate = mpmath.mpf("0.01")
        factor = mpmath.exp(mpmath.mpf(float(epsilon))) - 1 + rate
        low = (1 - mpmath.sqrt(1 - (2 * factor / (mpmath.pi * rate)) ** 2)) / 2
        inside = 1 - 4 / mpmath.pi * mpmath.asin(mpmath.sqrt(low))
        exact = rate * (1 - 2 * low) - factor * inside
        found = enclose_delta([(ARCSINE.pair("remove"), 1)], float(epsilon), 15)
        assert found.overlaps(arb(mpmath.nstr(exact, 30)))
        assert found.rad() < found * arb(10) ** -15


@pytest.mark.slow_cases("0.2", "0.05")
@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_a_loss_made_of_squares_of_sines_is_known_to_rise(epsilon):
    step = ALL["raised cosine noise"].mechanism("raised cosine").subsample("poisson", "1/100")
    # Few rare steps whose density is infinite at an end are estimated to eight digits.
    assert_certified([(step, 2)], epsilon, "remove", accuracy=1e-8, width=1e-8)
