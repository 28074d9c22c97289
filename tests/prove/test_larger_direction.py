"""The larger of two directions, however few digits the other was computed to."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp import compose, mechanisms
from symdp.prove import inverse

SAMPLED = compose(mechanisms.gaussian(sigma=2).subsample("poisson", sp.Rational(1, 20)), 300)
SYMMETRIC = compose(mechanisms.laplace(b=4), 30)
CASES = {
    "sampled": SAMPLED,
    "symmetric": SYMMETRIC,
    "gumbel": compose(mechanisms.gumbel(b=3), 20),
    "one step": compose(mechanisms.gumbel(b=1), 1),
    "unlike steps": compose([(mechanisms.gumbel(b=3), 4), (mechanisms.laplace(b=5), 9)]),
}


@pytest.fixture
def asked(monkeypatch):
    """The digits of every enclosure."""
    digits = []
    real = inverse.enclose_delta

    def seen(pairs, epsilon, count=15, *below):
        digits.append(count)
        return real(pairs, epsilon, count, *below)

    monkeypatch.setattr(inverse, "enclose_delta", seen)
    return digits


@pytest.mark.quick_cases("one step-0.25")
@pytest.mark.parametrize("epsilon", [-0.5, 0.25, 2.0])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "unlike steps")) for name in CASES],
)
def test_both_directions_give_the_larger_of_the_two(name, epsilon):
    steps = CASES[name]
    both = steps.certify(epsilon, 12)
    sides = {side: steps.certify(epsilon, 12, side) for side in ("remove", "add")}
    assert both.lower_decimal == max(sides.values(), key=lambda c: c.delta).lower_decimal
    other = "add" if both.direction == "remove" else "remove"
    assert sides[other].lower <= both.upper


def test_the_smaller_direction_is_computed_to_few_digits(asked):
    found = SAMPLED.certify(1.0, 30)
    assert found.direction == "remove"
    assert sorted(asked)[0] < 6
    assert sorted(asked)[1:] == [30]


def test_of_equal_directions_one_is_computed(asked):
    assert SYMMETRIC.certify(1.0, 12).direction == "remove"
    assert asked == [12]


@pytest.mark.slow
def test_a_direction_with_nothing_above_epsilon_need_only_be_proved_below():
    """Its largest loss, log(1/(1 − q)), is a limit that symbols do not find."""
    step = mechanisms.skellam(mu=4).subsample("poisson", 0.02)
    steps = compose(step, 1)
    found = steps.certify(0.028, 3)
    assert found.direction == "remove"
    assert found.lower_decimal == steps.certify(0.028, 3, "remove").lower_decimal


@pytest.mark.slow_cases("0.0", "-0.001")
@pytest.mark.parametrize("wrong", [0.0, -1e-3, 1e-3, -50.0, None])
def test_a_wrong_estimate_costs_time_only(monkeypatch, wrong):
    """Whichever comes first, and however clear the gap seems."""
    right = {side: SAMPLED.certify(1.0, 12, side) for side in ("remove", "add")}
    known = iter([-1.0, wrong, -1.0, wrong])
    monkeypatch.setattr(inverse, "estimate_log_delta", lambda *_: next(known))
    found = SAMPLED.certify(1.0, 12)
    assert (found.direction, found.lower_decimal) == ("remove", right["remove"].lower_decimal)
    assert right["add"].delta < right["remove"].delta


@pytest.mark.quick_cases("one step")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "unlike steps")) for name in CASES],
)
def test_epsilon_is_the_larger_of_both_directions(name):
    steps, delta = CASES[name], 1e-3
    both = steps.certify_epsilon(delta, 10)
    sides = [steps.certify_epsilon(delta, 10, side) for side in ("remove", "add")]
    low = max(side.epsilon_lower for side in sides)
    high = max(side.epsilon_upper for side in sides)
    assert low <= both.epsilon_upper
    assert both.epsilon_lower <= high
    assert both.epsilon == pytest.approx((low + high) / 2, rel=1e-9)


def test_epsilon_in_the_smaller_direction_is_bounded_by_few_digits(asked):
    single = SAMPLED.certify_epsilon(1e-4, 14, "remove")
    count = len(asked)
    assert SAMPLED.certify_epsilon(1e-4, 14).lower_decimal == single.lower_decimal
    further = asked[count:]
    assert len(further) == count + 1
    assert further[-1] < 6
