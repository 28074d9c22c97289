"""Waves under a power tail: thousands of outputs with the same losses again."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import symdp
from symdp.numeric.beyond.waves import condensed
from symdp.numeric.elementary import lightest
from symdp.numeric.panels import PieceNodes

LAW = """
name = "waves"
variable = "x"
support = ["-oo", "oo"]
[noise]
density = "(2 + cos(x))/(1 + x**2)**2"
sensitivity = "{sensitivity}"
shift = "exactly"
normalize = true
"""


def waves(x: np.ndarray) -> np.ndarray:
    """Return the density by hand."""
    return (2 + np.cos(x)) / (1 + x * x) ** 2 / (np.pi + np.pi / np.e)


def wave_nodes(count: int = 200_000) -> PieceNodes:
    """Return nodes of losses that go up and down, with masses like x⁻³."""
    x = np.arange(1.0, count + 1.0)
    loss = np.log((2 + np.cos(0.37 * x)) / (2 + np.cos(0.37 * x + 1))) + 3 / x
    log_weight = -3 * np.log(x)
    log_weight -= np.log(np.exp(log_weight).sum())
    return PieceNodes(loss, log_weight, np.arange(count), np.zeros(count), 0.0, x=x)


@pytest.mark.parametrize("frequency", [0.0, 4.0, 64.0, 256.0])
def test_few_nodes_have_the_same_sums(frequency: float) -> None:
    nodes = wave_nodes()
    few = condensed(nodes, {-1.0: 0.0, 0.0: 0.0, 3.0: 0.0}, frequency)
    z = np.asarray([0, 1, 2.9, -1 + 1j * frequency, 3 + 1j * frequency, 0.5j * frequency])
    sums = [
        np.exp(np.multiply.outer(z, which.loss) + which.log_weight).sum(axis=1)
        for which in (nodes, few)
    ]
    assert few.loss.size < 2_000
    assert np.abs(sums[0] - sums[1]).max() < 1e-15 * np.abs(sums[0]).max()
    panels, counts = np.unique(few.number // 16, return_counts=True)
    new = panels > nodes.number.max() // 16
    assert (counts[new] == 1).all()  # none of them is a whole panel, of which |φ| is bounded


def test_what_is_left_out_is_light_and_no_more_than_it_must_be() -> None:
    share = np.asarray([0.5, 0.5 - 3e-13, 1e-14, 2e-14, 2e-13])[None]
    ones = np.ones(5)
    assert not lightest(share, ones, 5.0).any()
    assert lightest(share, ones, 3.0).tolist() == [False, False, True, True, False]
    assert lightest(share, ones, 2.0).tolist() == [False, False, True, True, True]
    assert lightest(share, ones, 0.0).sum() == 3  # the others are no rounding


@pytest.mark.slow
@pytest.mark.parametrize("sensitivity", ["1"])
def test_delta_is_that_of_a_grid(sensitivity: str) -> None:
    law = symdp.Mechanism.from_toml(LAW.format(sensitivity=sensitivity))
    nodes, weights = np.polynomial.legendre.leggauss(3)
    half = 1 / 600
    middles = half * (2 * np.arange(-600_000, 600_000) + 1)
    x = (middles[:, None] + half * nodes).ravel()
    density = waves(x)
    mass = density * np.tile(half * weights, middles.size)
    loss = np.log(density / waves(x - float(Fraction(sensitivity))))
    order = np.argsort(loss)
    above = np.append(np.cumsum(mass[order][::-1])[::-1], 0.0)
    q_above = np.append(np.cumsum((mass * np.exp(-loss))[order][::-1])[::-1], 0.0)

    def of_one(epsilon: np.ndarray) -> np.ndarray:
        first = np.searchsorted(loss[order], epsilon, side="right")
        return np.asarray(above[first] - np.exp(epsilon) * q_above[first])

    one = symdp.compose(law, 1).delta(1)
    two = symdp.compose(law, 2).delta(1)
    assert one.upper - one.lower < 1e-10
    assert two.upper - two.lower < 2e-8
    # Where the grid's payoff has a kink it is off by its cells.
    assert abs(one.value - float(of_one(np.asarray([1.0]))[0])) < 1e-6
    assert abs(two.value - float(mass @ of_one(1.0 - loss))) < 1e-7
