"""Sensitivities of matrices, against every pattern and every sign written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from refusals import refused

from symdp import compose, mechanisms
from symdp.matrix import cyclic_poisson, sensitivity, tree


def patterns(steps, times, apart):
    for size in range(1, times + 1):
        for pattern in itertools.combinations(range(steps), size):
            if all(b - a >= apart for a, b in itertools.pairwise(pattern)):
                yield pattern


def attained(matrix, times, apart):
    """The largest ‖C u‖ over all patterns and all signs, contributions along one line."""
    best = 0.0
    for pattern in patterns(matrix.shape[1], times, apart):
        for signs in itertools.product((-1.0, 1.0), repeat=len(pattern)):
            best = max(best, float(np.linalg.norm(matrix[:, list(pattern)] @ np.array(signs))))
    return best


def banded(steps, bands, seed):
    rng = np.random.default_rng(seed)
    return np.tril(np.triu(rng.uniform(-1, 1, (steps, steps)), 1 - bands)) + 2 * np.eye(steps)


@pytest.mark.parametrize("bands", [1, 2, 3])
@pytest.mark.parametrize("times", [1, 2, 4])
def test_banded_matrices_are_exact(bands, times):
    for seed in range(4):
        matrix = banded(9, bands, seed)
        found = sensitivity(matrix, bands=bands, participations=times)
        assert found.lower <= attained(matrix, times, bands) <= found.upper
        assert found.is_exact
        norms = np.linalg.norm(matrix, axis=0)
        assert found.upper == pytest.approx(math.hypot(*norms[list(found.pattern)]), rel=1e-12)


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("apart", [1, 2, 4])
def test_other_matrices_lie_within_their_interval(times, apart):
    rng = np.random.default_rng(times + 10 * apart)
    for matrix in (
        np.tril(rng.uniform(0.1, 1, (8, 8))),
        np.tril(rng.uniform(-1, 1, (8, 8))) + np.eye(8),
    ):
        found = sensitivity(matrix, separation=apart, participations=times)
        truth = attained(matrix, times, apart)
        assert found.lower <= truth * (1 + 1e-12)
        assert truth <= found.upper
        assert found.upper < 2 * truth


@pytest.mark.parametrize("height", [0, 1, 3, 6])
def test_a_tree_is_as_sensitive_as_it_is_high(height):
    found = sensitivity(tree(2**height))
    assert found.is_exact
    assert found.upper == pytest.approx(math.sqrt(height + 1), rel=1e-12)
    sums = tree(2**height).sum(axis=1)
    assert sorted(set(sums)) == [2.0**k for k in range(height + 1)]


def test_a_tree_of_any_length():
    """Five steps: the first four are in a node of width 1, 2 and 4."""
    assert tree(5).shape == (8, 5)
    assert sensitivity(tree(5)).upper == pytest.approx(math.sqrt(3), rel=1e-12)
    twice = sensitivity(tree(8), participations=2, separation=4)
    truth = attained(tree(8), 2, 4)
    assert twice.lower <= truth * (1 + 1e-12)
    assert truth <= twice.upper


def test_prefix_sums_of_one_participation():
    """The first step is in every prefix sum."""
    assert sensitivity(np.tril(np.ones((16, 16)))).upper == pytest.approx(4.0, rel=1e-12)


def test_cyclic_sampling_of_a_banded_matrix():
    matrix = banded(10, 3, 1)
    found = cyclic_poisson(matrix, 3, 0.05)
    assert (found.rate, found.steps) == (pytest.approx(0.15), 4)
    assert found.sensitivity == pytest.approx(np.linalg.norm(matrix, axis=0).max(), rel=1e-12)
    noise = mechanisms.gaussian(sigma=repr(8 / found.sensitivity))
    sampled = compose(noise.subsample("poisson", "0.15"), found.steps).delta(0.5).delta
    whole = compose(mechanisms.gaussian(sigma=repr(8 / sensitivity(
        matrix, bands=3, participations=4).upper))).delta(0.5).delta  # fmt: skip
    assert 0 < sampled < whole


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e200, 1e307])
def test_sensitivities_scale_with_the_matrix(scale):
    """Squares of these entries leave the range of doubles; the norm √5 does not."""
    found = sensitivity(np.array([[2.0, 0.0], [1.0, 1.0]]) * scale)
    assert found.lower <= math.sqrt(5) * scale * (1 + 1e-3 * (scale < 1e-300))
    assert found.upper == pytest.approx(math.sqrt(5) * scale, rel=1e-12 if scale > 1e-300 else 1e-3)
    assert found.pattern == (0,)


def test_a_triangular_matrix_is_singular_by_its_diagonal_alone():
    tiny = np.array([[1.0, 0.0], [1.0, 1e-30]])
    assert sensitivity(tiny).upper == pytest.approx(math.sqrt(2), rel=1e-12)
    with refused("C is singular: rank 1"):
        sensitivity(tiny.T)


SQUARE = np.eye(3)
WRONG = [
    (lambda: sensitivity([[1, 0], [1, 0]]), "C is singular: rank 1 with 2 columns"),
    (lambda: sensitivity(np.ones((2, 3))), "C is singular"),
    (lambda: sensitivity([[1, math.nan], [0, 1]]), "C[0, 1] = nan is not a finite number"),
    (lambda: sensitivity([1, 2]), "must be a matrix"),
    (lambda: sensitivity([[1, 2], [1]]), "must be a matrix of numbers"),
    (lambda: sensitivity([["a"]]), "must be a matrix of numbers"),
    (lambda: sensitivity([[]]), "must be a matrix"),
    (lambda: sensitivity(np.tril(np.ones((3, 3))), bands=2), "C[2, 0] is not 0: with bands = 2"),
    (lambda: sensitivity([[1, 1], [0, 1]], bands=2), "C[0, 1] is not 0"),
    (lambda: sensitivity(SQUARE, participations=2), "need bands=, or separation="),
    (lambda: sensitivity(SQUARE, participations=0), "participations must be 1, 2, 3 or more"),
    (lambda: sensitivity(SQUARE, separation=1.5), "separation must be 1, 2, 3 or more"),
    (lambda: sensitivity(SQUARE, bands=True), "bands must be 1, 2, 3 or more"),
    (lambda: tree(0), "steps must be 1, 2, 3 or more"),
    (lambda: cyclic_poisson(SQUARE, 2, 0.6), "bands times rate"),
    (lambda: cyclic_poisson(SQUARE, 2, math.nan), "rate = nan: it must be a finite number"),
    (lambda: cyclic_poisson(SQUARE, 2, "many"), "rate: 'many' is not a number"),
    (lambda: tree(10**7), "needs no matrix"),
    (lambda: sensitivity([[1, 0], [1, 0]], bands=2), "C is singular"),
]


@pytest.mark.parametrize(("make", "words"), WRONG)
def test_refusals(make, words):
    with refused(words):
        make()
