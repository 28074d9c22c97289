"""Two steps over the outcomes of one, against closed forms and at every accuracy."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import pytest
from catalogue import ALL
from flint import arb, ctx

from symdp import compose, mechanisms
from symdp.certify import two
from symdp.certify.parts import parts_of
from symdp.certify.two import enclose_two
from symdp.errors import AccuracyError

CATALOGUE = {
    "its loss turns twice": (ALL["cauchy"].mechanism("cauchy")(), 1.5),
    "bounded, its ends never reached": (ALL["hyperbolic secant"].mechanism("sech")(), 1.2),
    "one end": (ALL["weibull scales"].mechanism("weibull")(k="3/2", a=2, c="3/2"), 0.7),
    "an atom": (mechanisms.laplace(b=2).subsample("poisson", "1/10"), 0.05),
}


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(192):
        yield


@pytest.mark.parametrize("epsilon", [-0.5, 0.3, 2.0])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_two_gaussian_steps_are_one(epsilon, direction):
    first, second = mechanisms.gaussian(sigma=2), mechanisms.gaussian(sigma=1)
    ball = enclose_two([first.pair(direction), second.pair(direction)], arb(epsilon), 25)
    with mpmath.workdps(45):
        mu = mpmath.sqrt(mpmath.mpf(1) / 4 + 1)
        e = mpmath.mpf(epsilon)
        truth = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
        assert ball.overlaps(arb(mpmath.nstr(truth, 42), 1e-40))
    assert 2 * ball.rad() < ball * arb(10) ** -25


@pytest.mark.slow_cases("its loss turns twice")
@pytest.mark.parametrize(("mechanism", "epsilon"), CATALOGUE.values(), ids=CATALOGUE)
def test_every_accuracy_contains_the_next(mechanism, epsilon):
    pairs = [mechanism.pair("remove")] * 2
    exact = enclose_two(pairs, arb(epsilon), 15)
    assert 2 * exact.rad() < exact * arb(10) ** -15
    for bits in (8, 30):
        ball = two._enclosed(pairs, arb(epsilon), bits)
        assert ball.contains(exact)
        assert float(ball.rad()) < 200 * 2.0**-bits
    found = compose(mechanism, 2).delta(epsilon, direction="remove")
    assert found.log_lower <= float(exact.log()) <= found.log_upper


def test_without_remainders_the_truth_is_lost(monkeypatch):
    """The bounds that a coarse enclosure adds are no idle ones."""
    pairs = [mechanisms.logistic(s=3).pair("remove")] * 2
    exact = enclose_two(pairs, arb(0.25), 15)
    monkeypatch.setattr(two, "farther", lambda *_: arb(0))
    assert not two._enclosed(pairs, arb(0.25), 40).contains(exact)


def test_beyond_the_range_there_is_nothing(monkeypatch):
    pairs = [mechanisms.logistic(s=2).pair("remove")] * 2
    near = enclose_two(pairs, arb(0.99), 10)
    assert 0 < near < 1e-4
    monkeypatch.setattr(two, "_MOST_BITS", 60)
    with pytest.raises(AccuracyError, match="too small"):
        enclose_two(pairs, arb(1.5), 5)


def test_the_public_command_takes_this_way():
    proved = compose(mechanisms.logistic(s=3), 2).certify(0.4, digits=15, direction="remove")
    assert proved.log_upper - proved.log_lower < 1e-14
    assert math.isfinite(proved.log_delta)


def test_losses_that_are_not_known_to_be_monotone_are_refused(monkeypatch):
    pair = mechanisms.logistic(s=7).pair("remove")
    for part in parts_of(pair).stretches:
        monkeypatch.setattr(part, "piece", replace(part.piece, slope="unknown"))
    with pytest.raises(AccuracyError, match="monotone"):
        enclose_two([pair] * 2, arb(0.1), 5)


def test_two_steps_of_raised_cosines():
    pair = ALL["raised cosine noise"].mechanism("cosine")().pair("remove")
    found = enclose_two([pair] * 2, arb(0.1), 10)
    answer = compose(ALL["raised cosine noise"].mechanism("cosine")(), 2).delta(0.1)
    # Half of P lies where Q is 0, which a finite loss leaves out.
    assert abs(found + arb("0.75") - answer.delta) < 1e-12
    assert found.rad() < 1e-10
