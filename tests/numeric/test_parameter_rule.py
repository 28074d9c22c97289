"""The Gauss rule of values of a parameter: it sums over all of them by a few of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from symdp.numeric.many.schedule import ParameterLine

EVEN = [1 + Fraction(k, 200) for k in range(400)]
UNEVEN = [Fraction(1, 1000) + Fraction(199 * k, 59_000) for k in range(60)]


def line(values, counts=None):
    return ParameterLine.through(
        [(value, Fraction(3)) for value in values],
        np.ones(len(values)) if counts is None else np.asarray(counts, dtype=float),
    )


@pytest.mark.parametrize("values", [EVEN, UNEVEN])
def test_sums_over_all_values(values):
    counts = [1 + k % 5 for k in range(len(values))]
    rule = line(values, counts).rule(20)
    assert (rule.weights > 0).all()
    assert float(rule.weights.sum()) == pytest.approx(sum(counts), rel=1e-15)
    for power in (-1, 1):
        true = sum(n * value**power for n, value in zip(counts, values, strict=True))
        found = rule.weights @ np.asarray([float(value) ** power for value, _ in rule.values])
        assert found == pytest.approx(float(true), rel=1e-14)


def test_nodes_lie_on_the_line_of_all_parameters():
    vectors = [(1 + Fraction(k, 50), Fraction(1, 10) - Fraction(k, 1000)) for k in range(50)]
    rule = ParameterLine.through(vectors, np.ones(50)).rule(12)
    for sigma, rate in rule.values:
        assert rate == Fraction(1, 10) - (sigma - 1) / 20
    bent = [(sigma, rate**2) for sigma, rate in vectors]
    assert ParameterLine.through(bent, np.ones(50)) is None


def test_a_kink_is_not_known_from_the_nodes():
    rule = line(EVEN).rule(20)
    nodes = np.asarray([float(value) for value, _ in rule.values])
    assert rule.knows(np.exp(-nodes), 1e-5)
    assert not rule.knows(np.maximum(nodes, 1.7), 1e-5)
    assert not rule.knows(np.where(nodes < 1.7, 0.0, 1.0), 1e-5)


def powers(vectors):
    """Values of functions of σ at many values, a column for each."""
    sigma = np.asarray([float(value) for value, _ in vectors])
    return np.column_stack([sigma**-2, np.log(sigma), np.full(sigma.size, 3.0)])


SPIKES = {
    "one step": lambda sigma: (sigma == 2.0) * 1.0,
    "the last step": lambda sigma: (sigma == sigma.max()) * 1.0,
    "a jump": lambda sigma: (sigma > 1.7) * 1.0,
    "two that cancel": lambda sigma: (sigma == 2.0) * 1.0 - (sigma == 2.5),
    "every other step": lambda sigma: np.cos(200 * np.pi * sigma),
    "noise": lambda sigma: np.random.default_rng(3).normal(size=sigma.size),
}


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-8, 1e-11])
@pytest.mark.parametrize("name", SPIKES)
def test_what_the_nodes_do_not_meet_is_seen_at_the_steps(name, size):
    rule = line(EVEN).rule(28)
    at_steps = powers([(value, 3) for value in EVEN])
    assert rule.meets(powers(rule.values), at_steps)
    at_steps[:, 0] += size * SPIKES[name](np.asarray([float(value) for value in EVEN]))
    assert not rule.meets(powers(rule.values), at_steps)


def test_no_rule_where_rounding_takes_its_polynomials():
    assert line(UNEVEN).rule(20) is not None
    assert line(UNEVEN).rule(44) is None
