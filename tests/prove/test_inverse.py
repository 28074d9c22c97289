"""Proved ends of ε(δ) beside the largest loss, at ε = 0, and above the mass at infinity."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from catalogue import ALL
from flint import arb, fmpq

from symdp import compose, mechanisms
from symdp.prove import inverse
from symdp.prove.enclosure import enclose_delta, mass_at_infinity
from symdp.prove.inverse import enclose_epsilon

LAPLACE = mechanisms.laplace(b=1)
SAMPLED = LAPLACE.subsample("poisson", "1/10")
STAIRCASE = mechanisms.staircase(epsilon_0=1, gamma_0="1/3")
RESPONSE = mechanisms.randomized_response(epsilon_0=2)
TRUNCATED = ALL["truncated laplace"].mechanism("truncated laplace")(b=1)
TRIANGLES = ALL["triangles"].mechanism("triangles")()


def laplace_delta(count, epsilon, s=1):
    """δ(ε) of one to three Laplace steps: one step's, on average over the losses of the others.

    A loss is s with probability 1/2, −s with e^{−s}/2, and has the density e^{−(s − ℓ)/2}/4.
    """
    if epsilon >= count * s:
        return mp.mpf(0)
    if count == 1:
        return -mp.expm1((epsilon - s) / 2) if epsilon >= -s else -mp.expm1(epsilon)

    def rest(loss):
        return laplace_delta(count - 1, epsilon - loss, s)

    kinks = {-s, s, *(epsilon - k * s for k in range(1 - count, count))}
    places = sorted(place for place in kinks if -s <= place <= s)
    between = mp.quad(lambda loss: mp.exp((loss - s) / 2) / 4 * rest(loss), places)
    return rest(mp.mpf(s)) / 2 + mp.exp(-s) / 2 * rest(mp.mpf(-s)) + between


def rational(value):
    return mp.mpf(value.numerator) / value.denominator


@pytest.mark.quick_cases(
    "True-2-delta6-12",
    "True-1-delta5-10",
    "True-2-0.001-6",
    "False-2-0.001-6",
    "False-2-delta6-12",
    "False-2-1e-10-15",
)
@pytest.mark.parametrize(
    ("count", "delta", "digits"),
    [
        (1, 1e-10, 10),
        (2, 1e-10, 10),
        (2, 1e-10, 15),
        (2, 1e-3, 6),
        (3, 1e-10, 10),
        (1, Fraction(1, 10**400), 10),
        (2, Fraction(1, 10**60), 12),
    ],
)
@pytest.mark.parametrize("is_given", [True, False])
def test_an_end_may_lie_beyond_the_largest_loss(count, delta, digits, is_given):
    target = Fraction(delta)
    steps = [(LAPLACE.pair(), count)]
    start = None
    if is_given:
        start = float(count) if target < Fraction(1, 10**20) else None
        start = start or compose(LAPLACE, count).epsilon(float(delta), direction="remove").epsilon
    low, high = enclose_epsilon(steps, delta, digits, start)
    assert 0 < high - low <= high / 10**digits
    with mp.workdps(80):
        assert laplace_delta(count, rational(low)) > rational(target)
        assert laplace_delta(count, rational(high)) <= rational(target)


@pytest.mark.slow_cases("distance0-3", "distance1-3", "distance2-3", "distance3-3")
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("distance", [Fraction(1, 10**k) for k in (2, 5, 9, 14)])
def test_few_steps_are_proved_next_to_the_largest_loss(count, distance):
    epsilon = count - distance
    ball = enclose_delta([(LAPLACE.pair(), count)], epsilon, 6)
    assert 2 * ball.rad() < ball.lower() * arb(10) ** -5
    with mp.workdps(60):
        truth = laplace_delta(count, rational(epsilon))
        lower, upper = (mp.mpf(end.str(50, radius=False)) for end in (ball.lower(), ball.upper()))
        assert lower * (1 - mp.mpf(10) ** -40) <= truth <= upper * (1 + mp.mpf(10) ** -40)


SHARP = {
    "staircase": (STAIRCASE, 4, 1e-6, "remove"),
    "staircase, all losses at their largest": (STAIRCASE, 4, 1e-30, "remove"),
    "randomized response": (RESPONSE, 3, 1e-12, "remove"),
    "triangles": (TRIANGLES, 1, 1e-3, "remove"),
    "laplace b=2": (mechanisms.laplace(b=2), 5, 1e-10, "remove"),
    "sampled laplace": (SAMPLED, 3, 1e-8, "remove"),
    "sampled laplace, add": (SAMPLED, 3, 1e-8, "add"),
    "many sampled": (mechanisms.gaussian(sigma=2).subsample("poisson", "1/10"), 100, 1e-5, "add"),
}


@pytest.mark.quick_cases(
    "staircase, all losses at their largest", "staircase", "randomized response"
)
@pytest.mark.parametrize("name", SHARP)
def test_so_many_digits_are_proved(name):
    mechanism, count, delta, side = SHARP[name]
    found = compose(mechanism, count).certify_epsilon(delta, 8, side)
    low, high = Fraction(found.lower_decimal), Fraction(found.upper_decimal)
    assert 0 < high - low <= high / 10**8
    steps = [(mechanism.pair(side), count)]
    assert enclose_delta(steps, high, 12) <= exactly(delta)
    assert enclose_delta(steps, low, 12) > exactly(delta)


def truncated_delta(epsilon):
    """p = c e^{−|x|} on [−4, 4] less e^ε times q(x) = p(x − 1), from where q begins.

    The loss |x − 1| − |x| falls through ε at (1 − ε)/2, and below −3 only p is left.
    """
    place = min(max((1 - epsilon) / 2, mp.mpf(0)), mp.mpf(1)) if epsilon < 1 else mp.mpf(-3)
    p = 2 - mp.exp(-4) - mp.exp(-place) if place >= 0 else mp.exp(-3) - mp.exp(-4)
    q = mp.exp(place - 1) - mp.exp(-4)
    return (p - mp.exp(epsilon) * q) / (2 - 2 * mp.exp(-4))


def exactly(delta):
    target = Fraction(delta)
    return arb(fmpq(target.numerator, target.denominator))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("excess", [1e-1, 1e-4, 1e-6])
def test_delta_just_above_the_mass_at_infinity(count, excess):
    infinite = float(mass_at_infinity([(TRUNCATED.pair(), count)], -60.0).mid())
    delta = infinite * (1 + excess)
    low, high = enclose_epsilon([(TRUNCATED.pair(), count)], delta, 8)
    assert 0 < high - low <= high / 10**7
    if count == 1:
        with mp.workdps(40):
            assert truncated_delta(rational(low)) > delta >= truncated_delta(rational(high))


def test_delta_next_to_the_mass_at_infinity_has_the_largest_finite_loss_between_its_ends():
    """From ε = 3 on δ(ε) is that mass; just below it is δ(ε) above any δ that exceeds it a bit."""
    steps = [(TRUNCATED.pair(), 3)]
    infinite = mass_at_infinity(steps, -60.0).mid()
    mantissa, exponent = infinite.man_exp()
    delta = Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (1 + Fraction(1, 10**12))
    low, high = enclose_epsilon(steps, delta, 8, 3.0)
    assert 3 - Fraction(1, 10**5) < low < high < 3 + Fraction(1, 10**5)


@pytest.mark.slow_cases("mechanism0-5")
@pytest.mark.parametrize(
    ("mechanism", "count"), [(mechanisms.gaussian(sigma=2), 5), (LAPLACE, 3), (RESPONSE, 3)]
)
def test_delta_close_to_what_it_is_at_epsilon_zero(mechanism, count):
    steps = [(mechanism.pair(), count)]
    at_zero = enclose_delta(steps, 0, 8)
    top, digits = float(at_zero.mid()), -math.log10(float(2 * at_zero.rad() / at_zero.mid()))
    for below in (1e-3, 1e-5):
        delta = top * (1 - below)
        low, high = enclose_epsilon(steps, delta, 8, below)
        assert 0 < low < high
        assert high - low <= high * Fraction(20 * 10 ** -min(digits, 8) / below)
        fine = 8 if mechanism is LAPLACE else 16
        assert enclose_delta(steps, high, fine) <= delta < enclose_delta(steps, low, fine)
    # What digits of δ do not tell from ε = 0 is between it and a small number.
    low, high = enclose_epsilon(steps, top * (1 + 1e-13), 8, 1e-9)
    assert low == 0 <= high < Fraction(1, 10**4)
    assert enclose_epsilon(steps, top * 1.01, 8) == (0, 0)
    assert enclose_epsilon(steps, top * 1.01, 8, 0.5) == (0, 0)


@pytest.mark.slow
def test_an_estimate_that_is_far_off_costs_time_only():
    steps = [(mechanisms.gaussian(sigma=5).pair(), 25)]
    truth = enclose_epsilon(steps, 1e-5, 10)
    for start in (1e-6, 40.0):
        low, high = enclose_epsilon(steps, 1e-5, 10, start)
        assert max(low, truth[0]) <= min(high, truth[1])
        assert high - low <= high / 10**10


@pytest.mark.slow
def test_a_wrong_sign_is_never_taken_for_a_proof(monkeypatch):
    """Balls so wide that they tell nothing beside the root leave wide ends, or none."""
    steps = [(mechanisms.gaussian(sigma=5).pair(), 25)]
    low, high = enclose_epsilon(steps, 1e-5, 10)

    def blurred(pairs, epsilon, digits):
        ball = enclose_delta(pairs, epsilon, digits)
        return ball * arb(1, 1e-3)

    monkeypatch.setattr(inverse, "enclose_delta", blurred)
    wide = enclose_epsilon(steps, 1e-5, 10)
    assert wide[0] < low < high < wide[1]
    assert wide[1] - wide[0] < Fraction(1, 100)
