"""Trees of many steps: every pattern of small ones, and the dense matrix of larger ones."""

from __future__ import annotations

import itertools

import pytest
from refusals import refused

from symdp.matrix import sensitivity, tree
from symdp.tree_strategy import _by_levels, _of_even_gaps, tree_sensitivity


def largest(steps, times, apart):
    """Return the largest Σ |π ∩ ν|² by listing every pattern."""
    best = 0
    for many in range(1, times + 1):
        for pattern in itertools.combinations(range(steps), many):
            if all(b - a >= apart for a, b in itertools.pairwise(pattern)):
                total = 0
                for level in range(steps.bit_length()):
                    nodes = [place >> level for place in pattern if place >> level < steps >> level]
                    total += sum(nodes.count(node) ** 2 for node in set(nodes))
                best = max(best, total)
    return best


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 11, 13])
def test_every_pattern_of_small_trees(steps):
    for apart, times in itertools.product(range(1, 5), range(1, 5)):
        found, true = tree_sensitivity(steps, times, apart), largest(steps, times, apart)
        assert found.lower**2 == pytest.approx(true, rel=1e-12)
        assert found.lower**2 <= true <= found.upper**2
        many = min(times, -(-steps // apart))
        assert _of_even_gaps(steps, many, apart) <= true <= _by_levels(steps, many, apart)


def test_it_lies_in_the_interval_of_the_matrix():
    dense = sensitivity(tree(200), participations=4, separation=30)
    found = tree_sensitivity(200, 4, 30)
    assert dense.lower - 1e-9 <= found.lower
    assert found.upper <= dense.upper + 1e-9


def test_thousands_of_steps():
    assert float(tree_sensitivity(2000, 6, 314)) ** 2 == pytest.approx(79, rel=1e-12)
    assert float(tree_sensitivity(10_000)) ** 2 == pytest.approx((10_000).bit_length(), rel=1e-12)
    assert tree_sensitivity(10_000, 12, 800).is_exact
    every = tree_sensitivity(1024, 1024)
    assert every.is_exact
    assert every.upper**2 == pytest.approx(sum(1024 * 2**k for k in range(11)))
    many = tree_sensitivity(10_000, 1000, 10)
    assert 0.5 * many.upper < many.lower <= many.upper


def test_what_is_no_tree():
    with refused("steps must be 1, 2, 3 or more"):
        tree_sensitivity(0)
    with refused("at most 1000000"):
        tree_sensitivity(10**7)
