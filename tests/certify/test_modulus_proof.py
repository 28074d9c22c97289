"""Bounds of the modulus of φ along the line, each against enclosed values of it."""

from __future__ import annotations

import pytest
import sympy as sp
from catalogue import ALL
from certified_values import transform
from flint import arb, ctx

from symdp import mechanisms
from symdp.certify.line.modulus_proof import March
from symdp.certify.line.step import TiltedStep

SUBSAMPLED = mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100")
R = sp.Rational


@pytest.mark.parametrize("start", [2, 30, 100])
def test_the_march_proves_no_level_that_is_not_true(start):
    """Some way beyond each start the modulus lies above half of what it is there."""
    step, count = TiltedStep(SUBSAMPLED.pair(), sp.Rational(5, 2)), 50
    march = March([(step, count)])
    with ctx.workprec(128):
        value = (abs(transform(step, 1.2 * start)) ** count).lower()
        assert march.failure(arb(start), value / 2) is not None
        peak = abs(transform(step, start)) ** count
        assert march.failure(arb(start), (peak * 2).upper()) is None


def test_bounds_of_the_modulus_hold():
    """Far out, against enclosed values of φ along the line."""
    step = TiltedStep(SUBSAMPLED.pair(), sp.Rational(5, 2))
    for y in (5, 20, 60, 150, 400, 1500):
        with ctx.workprec(128):
            value = abs(transform(step, y))
            for each in (0.9, 0.1, 1e-3, 1e-9):
                assert value < step.decay(arb(y), each)


def test_integration_by_parts_as_often_as_serves_bounds_the_modulus(monkeypatch):
    """|φ_t(y)| = e^{−y²/8} of a Gaussian loss of variance 1/4; once by parts never gets so low."""
    steps = [(mechanisms.gaussian(sigma=2).pair(), R(3))]
    steps.append((mechanisms.gaussian(sigma=1).subsample("poisson", "1/10").pair("remove"), R(5)))
    for pair, tilt in steps:
        step, places = TiltedStep(pair, tilt), (2, 8, 25, 90, 400)
        for each in (1e-2, 1e-5, 1e-9):
            bounds = [step.decay(arb(y), each) for y in places]
            for y, bound in zip(places[:3], bounds, strict=False):
                with ctx.workprec(128):
                    assert abs(transform(step, y)) < bound
            assert bounds[-1] < each or tilt == 5
    gaussian = TiltedStep(*steps[0])
    assert gaussian.decay(arb(60), 1e-9) < 1e-9
    monkeypatch.setattr("symdp.certify.line.decay._ORDERS", (1,))
    assert not TiltedStep(*steps[0]).decay(arb(10**6), 1e-9) < 1e-9


# Most of the mass of a sampled loss lies where it hardly moves, so that φ falls late.
LATE = {
    "cubes": (ALL["exp(-|x|**3) noise"].mechanism("cubes")(), R(5, 32)),
    "two variances": (ALL["gaussian, two variances"].mechanism("scales")(a=1, c=2, m=5), R(5, 16)),
    "gaussian": (mechanisms.gaussian(sigma=1), R(1, 2)),
}


@pytest.mark.slow_cases("two variances")
@pytest.mark.parametrize("name", LATE)
def test_what_is_left_out_where_the_loss_is_dense_bounds_the_modulus(monkeypatch, name):
    mechanism, tilt = LATE[name]
    step = TiltedStep(mechanism.subsample("poisson", "1/100").pair("remove"), tilt)
    closest = 0.0
    for y in (2, 7, 40, 300, 2000):
        value = transform(step, min(y, 40))  # far out the cubes take too many nodes to tell
        for each in (0.93, 0.99, 0.9958, 0.9999):
            bound = step.decay(arb(y), each)
            assert y > 40 or abs(value) < bound
            closest = max(closest, float(bound < each))
    assert closest == 1.0  # or nothing was proved
    assert step.decay(arb(300), 0.9999) < 0.9999
    if name != "gaussian":
        monkeypatch.setattr("symdp.certify.line.decay._SHARES", ())
        assert not step.decay(arb(300), 0.9999) < 0.9999


@pytest.mark.parametrize("name", LATE)
@pytest.mark.parametrize("y", [0.5, 3, 20, 150])
def test_taylor_bounds_hold_around_a_place(name, y):
    mechanism, tilt = LATE[name]
    step = TiltedStep(mechanism.subsample("poisson", "1/100").pair("remove"), tilt)
    with ctx.workprec(96):
        local = step.around(arb(y), arb(4), arb(2) ** -40)
        assert local.room > 0
        for share in (0.0, 0.01, 0.1, 0.5, 1.0):
            distance = share * local.room
            bound = local.bound(arb(distance))
            for side in (-1, -0.6, 0, 0.6, 1):
                assert abs(transform(step, y + side * distance)) < bound + arb(2) ** -50
        assert local.bound(arb(0)) < abs(transform(step, y)) + arb(2) ** -20


@pytest.mark.slow_cases("cubes")
@pytest.mark.parametrize("name", ["cubes", "two variances"])
def test_few_places_prove_that_ten_thousand_sampled_steps_stay_small(name):
    mechanism, tilt = LATE[name]
    step = TiltedStep(mechanism.subsample("poisson", "1/100").pair("remove"), tilt)
    march = March([(step, 10_000)])
    level = arb("-41").exp()
    assert march.failure(arb(2), level) is None
    for y in (2.1, 5, 17, 90, 150):
        assert abs(transform(step, y)) ** 10_000 < level
