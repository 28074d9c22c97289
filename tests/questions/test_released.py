"""The recipes of docs/releases.md hold for laws that are worked out here, by sums over grids."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from symdp import compose, mechanisms

EPSILONS = (0.0, 0.1, 0.25, 0.4)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def sparse_vector(answers, noise):
    """The chances of stopping at each of some queries, or never, by the midpoint rule."""
    threshold, query = noise
    z = np.linspace(-60, 60, 12_001)
    weight = stats.laplace.pdf(z, scale=threshold) * (z[1] - z[0])
    below = [stats.laplace.cdf(z - answer, scale=query) for answer in answers]
    chances = []
    for stop in range(len(answers)):
        before = np.prod(below[:stop], axis=0)
        chances.append(np.sum(weight * before * (1 - below[stop])))
    return np.array([*chances, np.sum(weight * np.prod(below, axis=0))])


def test_sparse_vector_is_below_its_pure_epsilon():
    """With ε₁ = ε₂ = 1/4: noise of scale 4 on the threshold, 8 on three queries, moved by 1."""
    bound = compose(mechanisms.randomized_response(epsilon_0="1/2"))
    answers = np.array([-1.0, 0.0, 2.0])
    law = sparse_vector(answers, (4.0, 8.0))
    assert law.sum() == pytest.approx(1, abs=1e-5)
    laws = [sparse_vector(answers + move, (4.0, 8.0)) for move in product((-1, 1), repeat=3)]
    for epsilon in EPSILONS:
        worst = max(hockey_stick(other, law, epsilon) for other in laws)
        assert worst <= bound.delta(epsilon).upper
    assert max(hockey_stick(other, law, 0.0) for other in laws) > 0.02


def noisy_maximum(scores, noise):
    """The chances that each score is the largest under noise of a law, by the midpoint rule."""
    z = np.arange(-40, 400, 0.01) + 0.005
    chances = []
    for winner, score in enumerate(scores):
        others = np.prod([noise.cdf(z - s) for i, s in enumerate(scores) if i != winner], axis=0)
        chances.append(np.sum(noise.pdf(z - score) * others) * 0.01)
    return np.array(chances)


@pytest.mark.parametrize(
    ("name", "noise"),
    [
        ("exponential", stats.gumbel_r(scale=4)),
        ("permute_and_flip", stats.expon(scale=4)),
        ("randomized_response", stats.laplace(scale=4)),
    ],
)
def test_noisy_maxima_of_four_candidates_are_below_their_bound(name, noise):
    """At ε₀ = 1/2 the noise on scores that move by 1 has scale 2/ε₀."""
    bound = compose(getattr(mechanisms, name)(epsilon_0="1/2"))
    scores = np.array([0.0, 0.0, 1.0, 4.0])
    law = noisy_maximum(scores, noise)
    assert law.sum() == pytest.approx(1, abs=1e-4)
    laws = [noisy_maximum(scores + move, noise) for move in product((-1, 1), repeat=4)]
    for epsilon in EPSILONS:
        worst = max(hockey_stick(other, law, epsilon) for other in laws)
        assert worst <= bound.delta(epsilon).upper + 1e-6
    assert max(hockey_stick(other, law, 0.0) for other in laws) > 0.08


def test_noise_in_the_norm_of_largest_coordinates_is_below_its_pure_epsilon():
    """Density e^{−max(|x|, |y|)/2}/16 on the plane, moved by (1, 1), (1, 0) and (1, −1)."""
    side = np.linspace(-30, 31, 611)
    x, y = np.meshgrid(side, side)

    def law(a, b):
        values = np.exp(-np.maximum(abs(x - a), abs(y - b)) / 2)
        return values / values.sum()

    bound = compose(mechanisms.randomized_response(epsilon_0="1/2"))
    for move in ((1, 1), (1, 0), (1, -1)):
        for epsilon in EPSILONS:
            assert hockey_stick(law(*move), law(0, 0), epsilon) <= bound.delta(epsilon).upper
    assert hockey_stick(law(1, 0), law(0, 0), 0.0) > 0.1


def last_iterate(steps, moved):
    """The law of x ← clip(0.9 x, −2, 2) + z after a first step that the record moves by 1."""
    x = np.linspace(-14, 14, 1401)
    cell = x[1] - x[0]
    centres = np.array([0.5 + moved])
    law = stats.norm.pdf(x[:, None], centres[None, :], 1.5).sum(axis=1) * cell
    for _ in range(steps - 1):
        centres = np.clip(0.9 * x, -2, 2)
        law = stats.norm.pdf(x[:, None], centres[None, :], 1.5) @ law * cell
    return law


@pytest.mark.parametrize("steps", [1, 4])
def test_the_last_iterate_of_contractions_is_below_its_bound(steps):
    """A record that moves the first of so many iterates by 1; a projection after each step."""
    bound = compose(mechanisms.gaussian(sigma=1.5 * math.sqrt(steps)))
    laws = [last_iterate(steps, moved) for moved in (1.0, 0.0)]
    for epsilon in EPSILONS:
        for p, q in (laws, laws[::-1]):
            assert hockey_stick(p, q, epsilon) <= bound.delta(epsilon).upper * (
                1 + 1e-4
            )  # of the grid
    assert hockey_stick(*laws, 0.0) > 0.2 * bound.delta(0).delta


def test_noise_of_a_covariance_is_that_of_the_longest_move():
    """Normal noise of covariance [[4, 1], [1, 9]], each coordinate moved by 1 at most."""
    covariance = np.array([[4.0, 1.0], [1.0, 9.0]])
    x, y = np.linspace(-17, 17, 801), np.linspace(-25, 25, 801)
    grid = np.dstack(np.meshgrid(x, y))
    cell = (x[1] - x[0]) * (y[1] - y[0])
    without = stats.multivariate_normal((0, 0), covariance).pdf(grid) * cell
    answer = compose(mechanisms.gaussian(sigma=math.sqrt(7 / 3)))
    deltas = {}
    for move in ((1, 1), (1, -1), (0.3, 1), (1, 0)):
        law = stats.multivariate_normal(move, covariance).pdf(grid) * cell
        deltas[move] = hockey_stick(law, without, 0.2)
    assert deltas[1, -1] == max(deltas.values())
    assert deltas[1, -1] == pytest.approx(answer.delta(0.2).delta, rel=1e-3)
