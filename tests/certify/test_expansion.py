"""What ends of the loss add far out, against integrals, and few steps of losses that turn."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from catalogue import ALL
from certified_values import transform
from flint import acb, arb, ctx

from symdp import mechanisms
from symdp.balls.enclosure import cgf_ball
from symdp.certify import enclose_delta
from symdp.certify.expansion import Reach, expand
from symdp.certify.parts import parts_of
from symdp.certify.step import tilted_step
from symdp.errors import AccuracyError
from symdp.model.mechanism import Mechanism

HALF = sp.Rational(1, 2)
ORDER = 12
X = sp.Symbol("x", real=True)


def catalogued(name: str, **values: object) -> Mechanism:
    made = ALL[name].mechanism(name)
    return made(**values) if values else made


STEPS = {
    "edges and atoms": (mechanisms.laplace(b=1), 40.0),
    "edges": (catalogued("truncated laplace", b=1), 40.0),
    "an infinite end that hardly counts": (
        catalogued("half-normal noise").subsample("poisson", "1/100"),
        4000.0,
    ),
}


def value(expansion, y: arb) -> acb:
    """Return the expansion with its bound at a frequency."""
    u = 1 / acb(0, y)
    total = acb(0)
    for place, row in expansion.terms:
        turn = acb(0, y * place).exp()
        total += sum((turn * size * u**power for power, size in enumerate(row)), acb(0))
    error = expansion.remainder / y**ORDER + expansion.removed
    return total + acb(arb(0, error), arb(0, error))


@pytest.mark.parametrize("name", STEPS)
def test_the_expansion_holds_the_transform_within_its_bound(name):
    mechanism, first = STEPS[name]
    with ctx.workprec(160):
        step = tilted_step(mechanism.pair("remove"), HALF)
        expansion = expand(step, Reach(ORDER, arb(first), arb(2) ** -60))
        for y in (first, 1.37 * first, 2.5 * first):
            found = value(expansion, arb(y))
            assert found.overlaps(transform(step, y, 50))
        assert float(found.rad()) < 1e-6


@pytest.mark.parametrize(
    "mechanism",
    [
        catalogued("cauchy"),
        catalogued("cauchy scales", a=1, c=2),
        catalogued("student", nu=1).subsample("poisson", "1/10"),
    ],
    ids=str,
)
def test_a_half_line_in_another_variable_has_the_same_moments(mechanism):
    pair = mechanism.pair("remove")
    with ctx.workprec(160):
        parts = parts_of(pair)
        assert any(part.x != pair.variable for part in parts.stretches)
        for tilt in (HALF, sp.Rational(7, 3)):
            found, truth = parts.cgf(tilt), cgf_ball(pair, tilt).real
            assert found.overlaps(truth)
            assert float(found.rad() + truth.rad()) < 1e-13


def test_a_loss_without_ends_has_no_expansion():
    with ctx.workprec(160):
        step = tilted_step(mechanisms.gaussian(sigma=1).pair("remove"), HALF)
        assert expand(step, Reach(ORDER, arb(20), arb(2) ** -60)) is None


def test_an_end_that_is_not_regular_is_refused():
    with ctx.workprec(160):
        step = tilted_step(catalogued("cauchy").pair("remove"), HALF)
        with pytest.raises(AccuracyError, match="not shown to be regular at its ends"):
            expand(step, Reach(ORDER, arb(20), arb(2) ** -60))


def gamma_delta(shape, rate, count, epsilon):
    """Return δ of n steps with |x|^r gamma distributed, of rate 1 under P and another under Q.

    The loss is −a log(rate) − (1 − rate)|x|^r for the shape a, and sums of |x|^r have the shape na.
    """
    with mpmath.workdps(40):
        rate, shape = mpmath.mpf(rate), mpmath.mpf(shape) * count
        most = (-shape * mpmath.log(rate) - mpmath.mpf(epsilon)) / (1 - rate)
        p = mpmath.gammainc(shape, 0, most, regularized=True)
        q = mpmath.gammainc(shape, 0, rate * most, regularized=True)
        return p - mpmath.exp(mpmath.mpf(epsilon)) * q


def scaled(density: sp.Expr, c: int, support: tuple[sp.Expr, sp.Expr]) -> Mechanism:
    """Return a density against the same one c times as wide."""
    return Mechanism.from_pair(
        density, density.subs(X, X / c) / c, X, support=support, name="scaled"
    )


LINE = (-sp.oo, sp.oo)
NORMAL = sp.exp(-(X**2) / 2) / sp.sqrt(2 * sp.pi)
CUBIC = sp.exp(-(sp.Abs(X) ** 3)) / (2 * sp.gamma(sp.Rational(4, 3)))
QUARTIC = sp.exp(-(X**4)) / (2 * sp.gamma(sp.Rational(5, 4)))
RAYLEIGH = X * sp.exp(-(X**2) / 2)
# With |x|^r a gamma variable of shape a, Q has rate c^{−r}.
CLOSED = {
    "normal": (scaled(NORMAL, 2, LINE), HALF, sp.Rational(1, 4)),
    "flat": (scaled(CUBIC, 2, LINE), sp.Rational(1, 3), sp.Rational(1, 8)),
    "flatter": (scaled(QUARTIC, 2, LINE), sp.Rational(1, 4), sp.Rational(1, 16)),
    "rayleigh": (scaled(RAYLEIGH, 3, (sp.S.Zero, sp.oo)), sp.S.One, sp.Rational(1, 9)),
}


@pytest.mark.parametrize("count", [3, 4, 7])
@pytest.mark.parametrize("name", CLOSED)
def test_few_steps_of_turning_losses_against_gamma_distributions(name, count):
    mechanism, shape, rate = CLOSED[name]
    epsilon = float(0.6 * count * float(-shape * sp.log(rate)))
    ball = enclose_delta([(mechanism.pair("remove"), count)], epsilon, 15)
    truth = gamma_delta(str(shape.evalf(50)), str(rate.evalf(50)), count, epsilon)
    assert ball.overlaps(arb(mpmath.nstr(truth, 36), 1e-34))
    assert float(ball.rad() / ball.mid()) < 1e-15
