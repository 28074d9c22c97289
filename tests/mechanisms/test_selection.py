"""Selections: every neighbour on a grid of scores stays below the pair, and some attain it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from symdp import compose, mechanisms

EPSILONS = (-0.6, 0.0, 0.25, 0.7)
SIZE = 1.0


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def exponential_choice(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(SIZE * (scores - scores.max()) / 2)
    return weights / weights.sum()


def permuted_choice(scores: np.ndarray) -> np.ndarray:
    """Permute and flip, over every order of the candidates."""
    chance = np.exp(SIZE * (scores - scores.max()) / 2)
    found = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for candidate in order:
            found[candidate] += reached * chance[candidate] / len(orders)
            reached *= 1.0 - chance[candidate]
    return found


def neighbours():
    """Scores of four candidates and every way to move each of them by 1 or not at all."""
    rng = np.random.default_rng(5)
    tables = [np.zeros(4), np.array([0.0, 0.0, -1.0, -2.0]), *rng.uniform(-4, 4, (6, 4))]
    for scores in tables:
        for moves in itertools.product((-1.0, 0.0, 1.0), repeat=4):
            yield scores, scores + np.array(moves)


@pytest.mark.slow_cases("permute_and_flip-permuted_choice--0.6")
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    ("name", "choice"),
    [("exponential", exponential_choice), ("permute_and_flip", permuted_choice)],
)
def test_no_neighbour_is_further_than_the_pair(name, choice, epsilon):
    allowed = compose(getattr(mechanisms, name)(epsilon_0=1)).delta(epsilon).delta
    worst = max(hockey_stick(choice(a), choice(b), epsilon) for a, b in neighbours())
    assert worst <= allowed * (1 + 1e-12)
    assert worst > 0.5 * allowed


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_pair_of_bounded_range_is_attained_at_every_epsilon(epsilon):
    """The largest δ over the places t is (1 − e^{(ε−ε₀)/2})²/(1 − e^{−ε₀}), at t = (ε + ε₀)/2."""
    own = compose(mechanisms.exponential(epsilon_0=1)).delta(epsilon).delta
    closed = (1 - math.exp((epsilon - 1) / 2)) ** 2 / (1 - math.exp(-1))
    assert own == pytest.approx(closed, rel=1e-12)
    places = np.linspace(0.01, 0.99, 99)
    share = (1 - np.exp(places - 1)) / (1 - np.exp(-1.0))
    p, q = np.stack([share, 1 - share]), np.stack([np.exp(-places) * share] * 2)
    q[1] = 1 - q[0]
    largest = np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=0)
    assert largest.max() <= own * (1 + 1e-12)
    assert places[largest.argmax()] == pytest.approx((epsilon + 1) / 2, abs=0.011)


def non_adaptive(size: float, count: int, epsilon: float, place: float) -> float:
    """The binomial sum of Dong, Durfee and Rogers at one place."""
    share = (1 - math.exp(place - size)) / (1 - math.exp(-size))
    return math.fsum(
        math.comb(count, i)
        * share ** (count - i)
        * (1 - share) ** i
        * max(1 - math.exp(epsilon - count * place + i * size), 0.0)
        for i in range(count + 1)
    )


def test_steps_fixed_beforehand_cost_less():
    """n = 20, ε₀ = 1/2, ε = 2: the largest of the binomial sums is at t = (ε + 8 ε₀)/21."""
    places = np.linspace(0.0005, 0.4995, 999)
    values = [non_adaptive(0.5, 20, 2.0, place) for place in places]
    best = Fraction(2 + 8 * Fraction(1, 2), 21)
    largest = non_adaptive(0.5, 20, 2.0, float(best))
    assert largest * (1 - 1e-4) < max(values) <= largest
    assert largest == pytest.approx(0.0410683, abs=5e-8)
    at = compose(mechanisms.bounded_range(epsilon_0="1/2", u=2 * best), 20)
    assert at.delta(2.0, direction="remove").delta == pytest.approx(largest, rel=1e-11)
    adaptive = compose(mechanisms.exponential(epsilon_0="1/2"), 20).delta(2.0).delta
    assert largest < adaptive < 0.1


@pytest.mark.slow_cases("0.0")
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.2])
def test_an_adaptive_adversary_stays_below_the_pair(epsilon):
    """Two steps, the second's place chosen by the first outcome, on a grid of places."""
    size, places = 1.0, np.linspace(0.02, 0.98, 49)
    share = (1 - np.exp(places - size)) / (1 - math.exp(-size))

    def inner(loss):
        """The largest second step after a loss, given how much is left of ε."""
        left = np.exp(epsilon - loss)
        return max(
            s * max(1 - left * math.exp(-t), 0.0)
            + (1 - s) * max(1 - left * math.exp(size - t), 0.0)
            for s, t in zip(share, places, strict=True)
        )

    worst = max(
        s * inner(t) + (1 - s) * inner(t - size) for s, t in zip(share, places, strict=True)
    )
    own = compose(mechanisms.exponential(epsilon_0=1), 2).delta(epsilon).delta
    assert worst <= own * (1 + 1e-12)
    assert worst > 0.8 * own


def gaussian_delta(mu: float, epsilon: float) -> float:
    with ctx.workprec(120):
        root = arb(2).sqrt()
        upper = (arb(epsilon) / mu - arb(mu) / 2) / root
        lower = (arb(epsilon) / mu + arb(mu) / 2) / root
        return float((upper.erfc() - arb(epsilon).exp() * lower.erfc()) / 2)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0])
def test_a_plurality_vote_is_one_gaussian(epsilon):
    """Thirty votes: a Gaussian whose mean moves by √2 each, in standard deviations √60/4."""
    steps = compose(mechanisms.gnmax(sigma=4), 30)
    assert steps.delta(epsilon).delta == pytest.approx(
        gaussian_delta(math.sqrt(60) / 4, epsilon), rel=1e-12
    )
