"""Random allocation where likelihood ratios have atoms: bounds that contain the exact answer."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from symdp import AccuracyError, compose, mechanisms
from symdp.numeric.laws import allocation
from symdp.numeric.laws.allocation import _most_within, recurs
from symdp.numeric.laws.allocation_density import RatioLaw
from symdp.numeric.laws.of_mechanism import loss_law


def drawn(noise, steps, count=1):
    return compose(noise.subsample("random_allocation", steps=steps), count)


def laplace_excess(k):
    """E (W − k)⁺ under Q for Laplace noise of scale 1: 1 − √(k/e) between 1/e and e."""
    return 1.0 - k if k < math.exp(-1.0) else max(1.0 - math.sqrt(k / math.e), 0.0)


def laplace_twice(epsilon):
    """δ of one of two Laplace steps, removing a record: the inner integral in closed form."""
    both = 2.0 * math.exp(epsilon)

    def inner(x):  # W at a place x between 0 and 1, the record's shift
        return laplace_excess(both - math.exp(2.0 * x - 1.0))

    # The other output's ratio reaches 1/e or e there, and the integrand has a kink.
    kinks = [0.5 + 0.5 * math.log(both - end) for end in (math.exp(-1.0), math.e) if both > end]
    points = sorted({0.0, 1.0, *(x for x in kinks if 0.0 < x < 1.0)})
    middle = sum(
        quad(lambda x: 0.5 * math.exp(-x) * inner(x), a, b, epsabs=1e-13)[0]
        for a, b in itertools.pairwise(points)
    )
    return 0.5 * (0.5 * inner(0.0) + 0.5 * math.exp(-1.0) * inner(1.0) + middle)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.6])
def test_two_laplace_steps_are_a_double_integral(epsilon):
    answer = drawn(mechanisms.laplace(b=1), 2).delta(epsilon, direction="remove")
    exact = laplace_twice(epsilon)
    assert answer.lower <= exact + 1e-11
    assert answer.upper >= exact - 1e-11
    assert answer.upper - answer.lower < 1e-9


@pytest.mark.quick_cases("3-remove")
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("steps", [2, 3])
def test_integer_noise_is_the_sum_over_all_outputs(steps, direction):
    epsilon = 0.4
    k = np.arange(-24, 26)
    q = np.exp(-0.125 * k**2)
    q /= q.sum()
    ratio = np.exp(0.25 * (k - 0.5))
    total, mass = np.zeros(1), np.ones(1)
    for _ in range(steps):
        total, mass = np.add.outer(total, ratio).ravel(), np.multiply.outer(mass, q).ravel()
    mean = total / steps
    gain = mean - math.exp(epsilon) if direction == "remove" else 1.0 - math.exp(epsilon) * mean
    exact = float(mass @ np.maximum(gain, 0.0))
    answer = drawn(mechanisms.discrete_gaussian(sigma=2), steps).delta(epsilon, direction=direction)
    assert answer.lower <= exact <= answer.upper
    assert answer.upper - answer.lower < 5e-6


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_between_points_of_the_lattice_delta_bends_as_its_slope_says(direction, monkeypatch):
    """E_Q(y/t − α)⁺ has slope 1 in y/t; E_Q(1 − αy/t)⁺ has α, which is t/y where it bends."""
    weights = []

    def watch(law, steps, weight):
        weights.append(np.broadcast_to(weight, law.shape))
        return _most_within(law, steps, weight)

    monkeypatch.setattr(allocation, "_most_within", watch)
    noise = mechanisms.discrete_gaussian(sigma="17/8")  # asked nowhere else: no law is kept
    drawn(noise, 2).delta(0.4, direction=direction)
    (weight,) = weights
    if direction == "remove":
        assert (weight == 1.0).all()
    else:
        y = 2.0 / weight
        steps = np.diff(y)
        assert steps.max() == pytest.approx(y.min())  # places below the first count as the first
        assert ((steps < 1e-9 * y.max()) | (steps > 0.999 * steps.max())).all()


@pytest.mark.slow
def test_ten_laplace_steps_agree_with_a_simulation():
    chance = np.random.default_rng(5)
    x = chance.laplace(size=(400_000, 10))
    mean = np.exp(np.abs(x) - np.abs(x - 1.0)).mean(axis=1)
    steps = drawn(mechanisms.laplace(b=1), 10)
    excess = {"remove": mean - math.exp(0.3), "add": 1.0 - math.exp(0.3) * mean}
    for direction, one in excess.items():
        gain = np.maximum(one, 0.0)
        error = gain.std() / math.sqrt(gain.size)
        answer = steps.delta(0.3, direction=direction)
        assert abs(gain.mean() - answer.delta) < 5.0 * error


@pytest.mark.slow
def test_where_atoms_fade_the_table_lies_between_the_bounds(monkeypatch):
    exact = drawn(mechanisms.laplace(b=1), 100).delta(0.1, direction="remove")
    monkeypatch.setattr("symdp.numeric.laws.allocation.recurs", lambda *_: True)
    wide = drawn(mechanisms.laplace(b="1000000001/1000000000"), 100).delta(0.1, direction="remove")
    assert wide.lower * (1.0 - 1e-8) <= exact.delta <= wide.upper * (1.0 + 1e-8)


def test_atoms_count_where_few_steps_do_not_smooth_them():
    laplace = RatioLaw(loss_law(mechanisms.laplace(b=1), "remove"))
    assert recurs(laplace, 10)
    assert not recurs(laplace, 100)
    assert not recurs(RatioLaw(loss_law(mechanisms.gaussian(sigma=1), "remove")), 2)
    assert recurs(RatioLaw(loss_law(mechanisms.discrete_gaussian(sigma=1), "remove")), 10)


def test_too_wide_a_bound_is_refused_with_what_helps():
    noise = mechanisms.discrete_gaussian(sigma="1/3")
    with pytest.raises(AccuracyError, match=r"random allocation of discrete_gaussian.*more noise"):
        drawn(noise, 12).delta(0.5)


def test_many_atoms_on_a_long_line_take_little_memory():
    part = loss_law(drawn(mechanisms.laplace(b=1), 2).steps[0][0], "remove").tilted(0.25)
    step = 0.1
    on_grid = part.atoms_characteristic(step, 0, 2001)  # 4 GB, were all exponentials held at once
    for k in (300, 900, 2000):
        exact = np.exp(1j * step * k * part.deviation) @ part.weight
        assert abs(on_grid[k] - exact) < 1e-12
