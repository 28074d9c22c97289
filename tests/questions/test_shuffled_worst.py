"""The worst pair of inputs by a rule: stop-loss transforms on a grid, and what the rule leaves."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from refusals import refused

import symdp
from symdp import Mechanism, compose
from symdp.questions.shuffled.worst import worst_ends

X, Y = sp.symbols("x y", real=True)
U = Y - X
GUMBEL = sp.exp(-U - sp.exp(-U))
TWO_MODES = (sp.exp(-sp.Abs(U)) + sp.exp(-sp.Abs(U - 3))) / 4
STAIRS = sp.Piecewise(
    (sp.Rational(1, 4), sp.Abs(U) <= sp.Rational(3, 4)),
    (sp.Rational(3, 16), sp.Abs(U) <= sp.Rational(3, 2)),
    (sp.Rational(11, 64) * sp.exp(sp.Rational(3, 2) - sp.Abs(U)), True),
)
EVEN = {
    "Cauchy": 1 / (sp.pi * (1 + U**2)),
    "Laplace, moved": sp.exp(-sp.Abs(U - 2)) / 2,
    "stairs": STAIRS,
    "normal": sp.exp(-(U**2) / 2) / sp.sqrt(2 * sp.pi),
    "a peak upon a hill": sp.exp(-sp.Abs(U)) / 4 + sp.exp(-(U**2) / 18) / (6 * sp.sqrt(2 * sp.pi)),
}


def stop_losses(density, epsilon, levels):
    """E(X − c)₊ at levels c, of all ordered pairs of five inputs, by midpoints of the output."""
    y = np.linspace(-400, 400, 1_600_001)
    y = (y[1:] + y[:-1]) / 2
    f = sp.lambdify((Y, X), density, "numpy")
    laws = [np.broadcast_to(f(y, x), y.shape) * 5e-4 for x in np.linspace(0, 1, 5)]
    least = np.minimum(laws[0], laws[-1])
    assert all((law >= least * (1 - 1e-12)).all() for law in laws)
    table = {}
    for a, P in enumerate(laws):
        for b, Q in enumerate(laws):
            if a != b:
                difference = P - math.exp(epsilon) * Q
                sums = [float(np.maximum(difference - c * least, 0.0).sum()) for c in levels]
                table[a, b] = np.array(sums)
    return table


@pytest.mark.slow_cases("Cauchy", "normal", "a peak upon a hill", "Laplace, moved")
@pytest.mark.parametrize("name", EVEN)
def test_the_ends_are_farthest_apart_in_convex_order(name):
    """As E[(Σ X)₊] rises with every E(X − c)₊, of any number of people."""
    assert worst_ends(Mechanism.local(EVEN[name], Y, X, (0, 1)).shuffled(9))
    for epsilon in (0.0, 0.4):
        levels = [-6.0, -2.5, -1.2, -0.9, -0.5, -0.2, 0.0, 0.1, 0.4, 0.8, 1.3, 2.5]
        table = stop_losses(EVEN[name], epsilon, levels)
        for pair, sums in table.items():
            assert (sums <= table[0, 4] * (1 + 1e-9) + 1e-9).all(), (pair, epsilon)


def test_skewed_noise_and_two_modes_are_left_open():
    """Of Gumbel's noise neither order of the ends is above all pairs at every level."""
    for density in (GUMBEL, TWO_MODES):
        crowd = Mechanism.local(density, Y, X, (0, 1)).shuffled(20)
        assert not worst_ends(crowd)
        assert "was not proved" in compose(crowd).protection.sentence


def test_one_pair_is_asked_where_it_is_the_worst():
    whole = Mechanism.local(EVEN["stairs"], Y, X, (0, 1)).shuffled(50)
    answer = compose(whole).delta(0.2)
    assert "not proved" not in answer.protection.sentence
    assert answer.advice == ""
    three = Mechanism.local(EVEN["stairs"], Y, X, {"values": [sp.Rational(1, 2), 0, 1]}).shuffled(
        50
    )
    assert compose(three).delta(0.2).delta == answer.delta


def test_a_density_that_is_affine_in_the_input():
    """A mixture of two laws, and one bit that is 1 with a probability that rises with x."""
    hill = sp.exp(-sp.Abs(Y)) / 2
    other = sp.exp(-sp.Abs(Y - 1) / 2) / 4
    mixture = Mechanism.local((1 - X) * hill + X * other, Y, X, (0, 1))
    ends = Mechanism.local((1 - X) * hill + X * other, Y, X, {"values": [0, 1]})
    crowd = compose(mixture.shuffled(30))
    assert crowd.delta(0.1).delta == compose(ends.shuffled(30)).delta(0.1).delta
    assert "not proved" not in crowd.protection.sentence
    assert compose(mixture).delta(0.1).delta == pytest.approx(compose(ends).delta(0.1).delta)
    bit = Mechanism.local(Y * (1 + X) / 4 + (1 - Y) * (3 - X) / 4, Y, X, (0, 1), {"points": [0, 1]})
    listed = Mechanism.local([["3/4", "1/4"], ["1/2", "1/2"]])
    answer = compose(bit.shuffled(12)).delta(0.1)
    assert answer.delta == pytest.approx(compose(listed.shuffled(12)).delta(0.1).delta, rel=1e-12)
    assert compose(bit).delta(0.1).delta == pytest.approx(compose(listed).delta(0.1).delta)


@pytest.mark.parametrize(
    ("inputs", "distance"),
    [({"values": [2, -1, sp.Rational(1, 2)]}, 3), ({"values": [3, 4]}, 1), ((-2, 3), 5)],
)
def test_noise_on_inputs_moves_by_the_distance_of_the_farthest_two(inputs, distance):
    """δ of Laplace's noise of scale 4 on a distance d is 1 − e^((ε − d/4)/2)."""
    seen = Mechanism.local(sp.exp(-sp.Abs(U) / 4) / 8, Y, X, inputs)
    epsilon = 0.1
    truth = -math.expm1((epsilon - distance / 4) / 2)
    assert compose(seen).delta(epsilon).delta == pytest.approx(truth, rel=1e-12)


def test_outcomes_of_inputs_between_the_ends_count():
    """Both ends have one law, and the input 1/2 another one."""
    mass = sp.Rational(1, 2) + (1 - 2 * Y) * X * (1 - X)
    hidden = Mechanism.local(mass, Y, X, (0, 1), {"points": [0, 1]})
    for steps in (hidden.shuffled(10), hidden):
        with refused("affine in"):
            compose(steps).delta(0.1)
    listed = Mechanism.local(mass, Y, X, {"values": [0, sp.Rational(1, 2), 1]}, {"points": [0, 1]})
    assert compose(listed.shuffled(10)).delta(0.1).delta > 0.01


def test_a_small_delta_far_out_is_found():
    """The first trial lies below the root: the search ended there with an infinite bracket."""
    normal = sp.exp(-2 * U**2) * sp.sqrt(2 / sp.pi)
    crowd = compose(Mechanism.local(normal, Y, X, (0, 1)).shuffled(100_000))
    answer = crowd.epsilon(1e-8)
    assert crowd.delta(answer.epsilon).delta <= 1e-8
    assert 1.5 < answer.epsilon < 1.7


def test_what_is_counted_apart_costs_less_than_a_fifth():
    """Normal noise of σ = 1/2: what no cut at all has, and cuts of which each is a bound."""
    sigma, people, epsilon = 0.5, 1000, 0.5
    y = np.linspace(-7, 8, 300_001)
    y = (y[1:] + y[:-1]) / 2
    P, Q = (
        np.exp(-((y - x) ** 2) / (2 * sigma**2)) / math.sqrt(2 * math.pi) / sigma * 5e-5
        for x in (0, 1)
    )
    least = np.minimum(P, Q)
    parts = (P - math.exp(epsilon) * Q) / least
    bounds = []
    for highest in np.geomspace(100.0, 30_000.0, 16):
        kept = parts <= highest
        apart = float(np.maximum(P - math.exp(epsilon) * Q, 0.0)[~kept].sum())
        step = 0.2
        size = 1 << 19
        values = np.maximum(parts[kept], -200.0)  # what is below ends nearly every sum
        numbers = np.floor(values / step).astype(int)
        shares = values / step - numbers
        law = np.bincount(numbers % size, least[kept] * (1 - shares), minlength=size)
        law += np.bincount((numbers + 1) % size, least[kept] * shares, minlength=size)
        law[0] += 1.0 - least[kept].sum()
        total = np.fft.irfft(np.fft.rfft(law) ** people)
        sums = step * ((np.arange(size) + size // 2) % size - size // 2)
        bounds.append(float(np.maximum(sums, 0.0) @ total) / people + apart)
    normal = sp.exp(-2 * U**2) * sp.sqrt(2 / sp.pi)
    answer = compose(Mechanism.local(normal, Y, X, (0, 1)).shuffled(people)).delta(epsilon)
    assert min(bounds) <= answer.delta <= min(bounds) * 1.2


def test_with_little_noise_nothing_is_hidden():
    density = sp.exp(-1000 * sp.Abs(U)) * 500
    crowd = Mechanism.local(density, Y, X, (0, 1)).shuffled(100)
    assert symdp.compose(crowd).delta(0.3).delta == pytest.approx(1.0, abs=1e-9)
