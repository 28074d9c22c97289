"""Inputs of an interval where the density turns more than once: floors, beside a sum of its own."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from refusals import refused

from symdp import Mechanism, compose
from symdp.errors import AccuracyError
from symdp.questions.shuffled.outputs import least_law, randomizer

X, Y = sp.symbols("x y", real=True)
LINE = (-sp.oo, sp.oo)
SQUARE = sp.Piecewise((sp.Rational(7, 16), sp.Abs(Y - X) <= 1), (sp.Rational(1, 8), True))
CASES = {
    "two modes": ((sp.exp(-sp.Abs(Y - X)) + sp.exp(-sp.Abs(Y - X - 3))) / 4, LINE, (-40, 43)),
    "square wave": (SQUARE, (-1, 2), (-1, 2)),
    "cosine": (1 + sp.cos(2 * sp.pi * (Y - X)) / 2, (0, 1), (0, 1)),
}


def least_of(density, outputs, inputs=801):
    """The least density over a fine grid of inputs: no less than over all."""
    f = sp.lambdify((Y, X), density, "numpy")
    least = np.full(outputs.shape, np.inf)
    for value in np.linspace(0.0, 1.0, inputs):
        least = np.minimum(least, np.broadcast_to(f(outputs, value), outputs.shape))
    return least


def own_bound(density, ends, pair, people, epsilon, cells=200_000):
    """E[(Σ X)₊]/n for a pair of inputs, X on a lattice that keeps its mean, by FFT."""
    width = (ends[1] - ends[0]) / cells
    outputs = ends[0] + (np.arange(cells) + 0.5) * width
    f = sp.lambdify((Y, X), density, "numpy")
    least = least_of(density, outputs, 401)
    P, Q = (np.broadcast_to(f(outputs, value), outputs.shape) for value in pair)
    parts = (P - math.exp(epsilon) * Q) / least
    step = 2e-3
    size = 1 << 17
    numbers = np.floor(parts / step).astype(int)
    shares = parts / step - numbers
    law = np.bincount(numbers % size, least * width * (1 - shares), minlength=size)
    law += np.bincount((numbers + 1) % size, least * width * shares, minlength=size)
    law[0] += 1.0 - least.sum() * width
    total = np.fft.irfft(np.fft.rfft(law) ** people)
    sums = step * ((np.arange(size) + size // 2) % size - size // 2)
    return float(np.maximum(sums, 0.0) @ total) / people


@pytest.mark.slow_cases("two modes")
@pytest.mark.parametrize("name", CASES)
def test_floors_lie_below_every_law_and_touch_the_least(name):
    density, support, _ = CASES[name]
    laws = randomizer(Mechanism.local(density, Y, X, (0, 1), support).shuffled(9))
    outputs = laws.outputs
    assert laws.least
    middles = outputs.low + 0.5 * (outputs.high - outputs.low)
    near = np.abs(middles) < 30
    middles = middles[near]
    truth = least_of(density, middles)
    assert outputs.function is not None
    values = outputs.function(middles, range(outputs.densities.shape[0])).min(axis=0)
    assert (values <= truth * (1 + 1e-12)).all()
    # the grid of inputs misses the least by its own step alone
    assert (values >= truth * (1 - 4e-3)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_that_of_a_sum_with_the_least_of_many_inputs(name):
    density, support, ends = CASES[name]
    crowd = compose(Mechanism.local(density, Y, X, (0, 1), support).shuffled(12))
    answer = crowd.delta(0.2)
    pairs = [(0.0, 1.0), (1.0, 0.0), (0.0, 0.5), (0.5, 0.0)]
    truth = max(own_bound(density, ends, pair, 12, 0.2) for pair in pairs)
    assert answer.delta >= truth * (1 - 1e-4)
    assert answer.delta <= truth * (1 + 2e-3)
    assert "was not proved" in answer.advice


def test_a_period_of_the_length_of_the_inputs_is_no_privacy_for_free():
    """The laws of both ends are one, and those between them are not."""
    density, support, _ = CASES["cosine"]
    ends = Mechanism.local(density, Y, X, {"values": [0, 1]}, support).shuffled(20)
    assert compose(ends).delta(0.3).delta == 0.0
    assert (
        compose(Mechanism.local(density, Y, X, (0, 1), support).shuffled(20)).delta(0.3).delta
        > 0.01
    )


def test_a_law_that_leaves_the_doubles_is_counted_apart():
    """Gumbel noise, skewed: the ratio of two laws grows like exp(exp(-y))."""
    gumbel = sp.exp(-(Y - X) - sp.exp(-(Y - X)))
    answer = compose(Mechanism.local(gumbel, Y, X, (0, 1)).shuffled(200)).delta(0.2)
    # 0.0401 by a sum of its own, with the best of seven places to count apart
    assert 0.0395 < answer.delta < 0.0425


def test_what_is_not_known_of_an_interval_is_refused():
    waves = sp.exp(-sp.Abs(Y - X)) * (1 + sp.cos(4 * (Y - X)) / 2) / (2 + sp.Rational(1, 17))
    with refused("nor where it turns"):
        least_law(Mechanism.local(waves, Y, X, (0, 1)).shuffled(9))
    with refused("densities f(y - x)"):
        least_law(Mechanism.local(sp.exp(-sp.Abs(Y - X**2)) / 2, Y, X, (0, 1)).shuffled(9))
    density, support, _ = CASES["square wave"]
    crowd = compose(Mechanism.local(density, Y, X, (0, 1), support).shuffled(9))
    with pytest.raises(AccuracyError, match="list the inputs"):
        crowd.certify(0.2)


SEEN = "that none is worse was not proved"
SKEWED = 2 * sp.exp(-(Y - X)) / (1 + sp.exp(-(Y - X))) ** 3


@pytest.mark.slow
def test_certificates_and_rounds_say_of_which_changes_of_input_they_speak():
    crowd = Mechanism.local(SKEWED, Y, X, (0, 1)).shuffled(200)
    for answer in (compose(crowd).certify(0.3, 3), compose(crowd, 2).epsilon(1e-3)):
        assert SEEN in answer.to_json()["protects"]


@pytest.mark.slow
def test_every_answer_says_of_which_changes_of_input_it_speaks():
    crowd = Mechanism.local(SKEWED, Y, X, (0, 1)).shuffled(200)
    assert SEEN in compose(crowd).delta(0.3).to_json()["protects"]
    assert SEEN in compose(crowd, 2).protection.sentence
    laplace = Mechanism.local(sp.exp(-sp.Abs(Y - X)) / 2, Y, X, (0, 1)).shuffled(200)
    assert "not proved" not in compose(laplace, 2).protection.sentence
    coin = Mechanism.local([["3/4", "1/4"], ["1/4", "3/4"]]).shuffled(200)
    assert "not proved" not in compose(coin, 2).delta(0.3).protection.sentence
