"""Steps known by their guarantee alone, against sums over all outcomes in plain arithmetic."""

from __future__ import annotations

import itertools
import math

import pytest

from symdp import compose, mechanisms


def listed(p: list[float], q: list[float], count: int, epsilon: float) -> float:
    """δ(ε) of `count` steps: the sum over every sequence of outcomes."""
    places = itertools.product(range(len(p)), repeat=count)
    terms = (
        math.prod(p[i] for i in place) - math.exp(epsilon) * math.prod(q[i] for i in place)
        for place in places
    )
    return math.fsum(max(term, 0.0) for term in terms)


@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 0.7, 2.5])
def test_black_boxes_compose_as_kairouz_oh_and_viswanath_say(epsilon):
    """Their Theorem 3.3, written with the binomial sum over the boxes that did not fail."""
    size, failure, count = 0.5, 0.01, 6
    z = 1 + math.exp(size)
    told = [
        math.comb(count, j)
        * max(math.exp(size * (count - j)) - math.exp(epsilon + size * j), 0.0)
        / z**count
        for j in range(count + 1)
    ]
    sound = (1 - failure) ** count
    expected = 1 - sound + sound * math.fsum(told)
    box = mechanisms.approximate_dp(epsilon_0="1/2", delta_0="1/100")
    for direction in ("remove", "add"):
        assert compose(box, count).delta(epsilon, direction=direction).delta == pytest.approx(
            expected, rel=1e-12
        )


def test_a_black_box_has_its_own_guarantee():
    box = compose(mechanisms.approximate_dp(epsilon_0=1, delta_0="1e-6"))
    assert box.delta(1.0).delta == pytest.approx(1e-6, rel=1e-12)
    assert box.delta(5.0).delta == pytest.approx(1e-6, rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [-0.4, 0.3, 1.5])
def test_k_ary_randomized_response(k, epsilon):
    """All k values written out one by one, three rounds."""
    size = 0.8
    z = k - 1 + math.exp(size)
    p = [math.exp(size) / z] + [1 / z] * (k - 1)
    q = [1 / z, math.exp(size) / z] + [1 / z] * (k - 2)
    steps = compose(mechanisms.k_ary_randomized_response(epsilon_0="4/5", k=k), 3)
    assert steps.delta(epsilon).delta == pytest.approx(listed(p, q, 3, epsilon), rel=1e-11)


def test_two_values_are_one_bit():
    ours = compose(mechanisms.k_ary_randomized_response(epsilon_0=1, k=2), 5).delta(0.5)
    bit = compose(mechanisms.randomized_response(epsilon_0=1), 5).delta(0.5)
    assert ours.delta == pytest.approx(bit.delta, rel=1e-13)


@pytest.mark.parametrize(("k", "words"), [(1, "2, 3, 4 or more"), ("5/2", "2, 3, 4 or more")])
def test_k_is_a_whole_number_above_one(k, words):
    with pytest.raises(ValueError, match=words):
        mechanisms.k_ary_randomized_response(epsilon_0=1, k=k)


def test_a_box_of_delta_alone():
    """Ten steps of (0, 1/100) lose 1 − 0.99^10 at every ε ≥ 0, beside what other steps lose."""
    box = mechanisms.approximate_dp(epsilon_0=0, delta_0="1/100")
    lost = 1 - 0.99**10
    for epsilon in (0.0, 0.5, 2.0):
        assert compose(box, 10).delta(epsilon).delta == pytest.approx(lost, rel=1e-12)
    noise = mechanisms.gaussian(sigma=4)
    mixed = compose([(box, 10), (noise, 10)]).delta(1).delta
    alone = compose(noise, 10).delta(1).delta
    assert mixed == pytest.approx(1 - (1 - lost) * (1 - alone), rel=1e-12)
