"""Several releases on one sample: the product of their pairs, by enumeration and by quadrature."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import sympy as sp
from refusals import refused
from scipy import optimize, stats

import symdp
from symdp import compose, mechanisms

RATE = Fraction(1, 7)
# Masses of P and of Q, in sixtieths; one of the lists has an outcome that P has not.
LISTS = tuple(
    tuple(tuple(Fraction(mass, 60) for mass in law) for law in pair)
    for pair in (((30, 20, 10), (15, 15, 30)), ((54, 6, 0), (36, 18, 6)))
)
NORMAL = mechanisms.gaussian(sigma=2)
FILE = """
[[step]]
together = [
  { mechanism = "gaussian", parameters = { sigma = 3 } },
  { mechanism = "gaussian", parameters = { sigma = 8 }, count = 2 },
]
sampling = { scheme = "poisson", rate = "1/100" }
count = 50
"""


def a_list(masses, name):
    points = {"points": [0, 1, 2]}
    P, Q = (list(map(sp.Rational, law)) for law in masses)
    return symdp.Mechanism.from_pair(P, Q, sp.Symbol("x"), points, name)


def one_sample(lists, rate):
    """Every outcome of all releases, by its chances with the record and without."""
    outcomes = []
    for chosen in product(range(3), repeat=len(lists)):
        p = math.prod(masses[0][i] for masses, i in zip(lists, chosen, strict=True))
        q = math.prod(masses[1][i] for masses, i in zip(lists, chosen, strict=True))
        outcomes.append(((1 - rate) * q + rate * p, q))
    return outcomes


def hockey_stick(pairs, alpha):
    return float(sum(max(p - alpha * q, 0) for p, q in pairs))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3])
def test_lists_are_those_of_all_outcomes_of_two_steps(epsilon):
    step = a_list(LISTS[0], "one").together(a_list(LISTS[1], "two")).subsample("poisson", "1/7")
    steps = compose(step, 2)
    single = one_sample(LISTS, RATE)
    double = [(a * c, b * d) for (a, b), (c, d) in product(single, single)]
    alpha = Fraction(math.exp(epsilon))
    for direction, pairs in (("remove", double), ("add", [(q, p) for p, q in double])):
        answer = steps.delta(epsilon, direction=direction)
        assert answer.delta == pytest.approx(hockey_stick(pairs, alpha), rel=1e-11)
        assert answer.kind == "exact"


def test_a_sample_for_each_release_is_something_else():
    """Of what the sampled pairs would say one by one, the product says more."""
    single = one_sample(LISTS, RATE)
    apart = [
        (a * c, b * d)
        for (a, b), (c, d) in product(one_sample(LISTS[:1], RATE), one_sample(LISTS[1:], RATE))
    ]
    assert hockey_stick(single, 1) > hockey_stick(apart, 1) * 1.01
    step = a_list(LISTS[0], "one").together(a_list(LISTS[1], "two")).subsample("poisson", "1/7")
    assert compose(step).delta(0).delta == pytest.approx(hockey_stick(single, 1), rel=1e-12)


def plane(shift, sigmas):
    """The density of normal noise on a grid of the plane, times a cell."""
    x, y = (
        np.linspace(-9, 9, 1201) * sigma + move / 2
        for sigma, move in zip(sigmas, (1, 1), strict=True)
    )
    cell = (x[1] - x[0]) * (y[1] - y[0])
    first = stats.norm.pdf(x, shift[0], sigmas[0])
    second = stats.norm.pdf(y, shift[1], sigmas[1])
    return np.outer(first, second) * cell


def test_normal_noise_on_two_numbers_is_that_of_the_plane():
    sigmas = (1.5, 2.0)
    without, moved = plane((0, 0), sigmas), plane((1, 1), sigmas)
    drawn = 0.9 * without + 0.1 * moved
    once = mechanisms.gaussian(sigma="3/2").together(NORMAL).subsample("poisson", "1/10")
    for epsilon in (0.0, 0.1):
        alpha = math.exp(epsilon)
        for direction, p, q in (("remove", drawn, without), ("add", without, drawn)):
            truth = np.maximum(p - alpha * q, 0).sum()
            answer = compose(once).delta(epsilon, direction=direction)
            assert answer.delta == pytest.approx(truth, rel=2e-5)
            assert answer.kind == "exact"


def test_under_substitution_no_two_moves_on_the_plane_are_farther_apart():
    sigmas = (1.5, 2.0)
    steps = [mechanisms.gaussian(sigma=s).under("substitution") for s in ("3/2", 2)]
    once = compose(steps[0].together(steps[1]).subsample("poisson", "1/10"))
    without = plane((0, 0), sigmas)
    moves = [(1, 1), (-1, -1), (1, -1), (1, 0), (0.5, -1)]
    with_moves = [0.9 * without + 0.1 * plane(move, sigmas) for move in moves]
    answer = once.delta(0.05).delta
    worst = [np.maximum(p - math.exp(0.05) * q, 0).sum() for p in with_moves for q in with_moves]
    assert max(worst) == pytest.approx(answer, rel=2e-5)
    assert once.protection.relation == "substitution"


def coin_and_laplace(side, b, epsilon_0):
    """The distribution function of the loss of a coin and Laplace noise under P or Q."""
    c = 1 / b
    truth = math.exp(epsilon_0) / (1 + math.exp(epsilon_0))
    coin = truth if side == "P" else 1 - truth

    def laplace(t):
        inside = np.clip(t, -c, c)
        # Where x lies between 0 and 1, ℓ = (2x − 1)/b.
        x = (b * inside + 1) / 2
        under_q = np.where(t < -c, 0.0, np.where(t >= c, 1.0, 1 - np.exp(-x / b) / 2))
        under_p = np.where(t < -c, 0.0, np.where(t >= c, 1.0, np.exp(-(1 - x) / b) / 2))
        return under_p if side == "P" else under_q

    return lambda t: coin * laplace(t - epsilon_0) + (1 - coin) * laplace(t + epsilon_0)


def convolved_epsilon(b, epsilon_0, rate, n, delta):
    """ε of n sampled steps: the law of their loss on a fine grid, rounded to the middle."""
    h, size = 2.0**-14, 1 << 18
    k = np.arange(-int(0.1 / h), int(1.0 / h))
    ratio = (np.exp((k + 0.5) * h) - (1 - rate)) / rate
    losses = np.log(np.maximum(ratio, 1e-300))
    P, Q = (np.where(ratio > 0, coin_and_laplace(side, b, epsilon_0)(losses), 0.0) for side in "PQ")
    masses = np.diff(rate * P + (1 - rate) * Q, prepend=0.0)
    table = np.zeros(size)
    table[k % size] = masses
    total = np.maximum(np.fft.irfft(np.fft.rfft(table) ** n, size), 0.0)
    loss = np.arange(size) * h
    loss[3 * size // 4 :] -= size * h

    def excess(epsilon):
        above = loss > epsilon
        return np.sum(total[above] * -np.expm1(epsilon - loss[above])) - delta

    return optimize.brentq(excess, 0.0, 4.0)


def test_other_noise_is_bounded_closely():
    """A coin and Laplace noise: from above, within 1e-4 of a convolution in this file."""
    coin = mechanisms.randomized_response(epsilon_0="1/2")
    once = mechanisms.laplace(b=3).together(coin).subsample("poisson", "1/10")
    answer = compose(once, 40).epsilon(1e-4)
    truth = convolved_epsilon(3.0, 0.5, 0.1, 40, 1e-4)
    assert truth * (1 - 1e-5) < answer.upper < truth * (1 + 1e-4)
    assert answer.kind == "bound"
    assert "a dominating pair: an upper bound" in answer.protection.sentence


@pytest.mark.slow
def test_noise_of_one_side_is_bounded_in_both_directions():
    """Exponential noise that a record raises, and normal noise: by quadrature of the plane."""
    x = sp.Symbol("x")
    half_line = (0, sp.oo)
    late = symdp.Mechanism.additive(sp.exp(-x / 2) / 2, x, 1, half_line, "late", shift="up")
    once = compose(NORMAL.together(late).subsample("poisson", "1/20"))
    z = np.linspace(-18, 19, 3001)
    # The ratio of the half-line takes two values: 0 below 1, and e^{1/2} from there on.
    masses_q = -np.expm1(-0.5), math.exp(-0.5)
    normal_q, normal_p = stats.norm.pdf(z, 0, 2), stats.norm.pdf(z, 1, 2)
    cell = z[1] - z[0]
    q = np.concatenate([normal_q * cell * mass for mass in masses_q])
    p = np.concatenate([0 * normal_p, normal_p * cell])
    assert p.sum() == pytest.approx(1, abs=1e-9) == q.sum()
    drawn = 0.95 * q + 0.05 * p
    for epsilon in (0.01, 0.05):
        for direction, above, below in (("remove", drawn, q), ("add", q, drawn)):
            truth = np.maximum(above - math.exp(epsilon) * below, 0).sum()
            bound = once.delta(epsilon, direction=direction).upper
            assert truth * (1 - 1e-6) <= bound <= truth * (1 + 1e-3)


def test_what_has_no_common_sample_is_refused():
    with refused("the sampling to all of them"):
        NORMAL.together(NORMAL.subsample("poisson", "1/9"))
    with refused("a record may raise one output and lower another"):
        NORMAL.together(mechanisms.gumbel(b=2))
    with refused("where a pair of laws is known"):
        NORMAL.together(mechanisms.zcdp(rho="1/2"))
    with refused("needs a value for b"):
        NORMAL.together(mechanisms.laplace)
    with refused("one composition has one neighbouring relation"):
        NORMAL.together(NORMAL.under("substitution"))
    both = mechanisms.laplace(b=2).together(mechanisms.laplace(b=5))
    with refused("say substitution of each of them, before they are put together"):
        both.under("substitution")


def test_a_step_of_a_file_has_several_releases(tmp_path, shell):
    path = tmp_path / "job.toml"
    path.write_text(FILE)
    done = shell(f"epsilon --composition {path} --delta 1e-5")
    sigma = 1 / math.sqrt(1 / 9 + 2 / 64)
    alone = compose(mechanisms.gaussian(sigma=sigma).subsample("poisson", "1/100"), 50)
    printed = float(done.out.split("= ")[2].split()[0])
    assert printed == pytest.approx(alone.epsilon(1e-5).epsilon, rel=1e-11)
    path.write_text(FILE.replace("together", 'mechanism = "gaussian"\ntogether'))
    asked = f"delta --composition {path} --epsilon 1"
    assert "[[step]] 1: unknown key 'mechanism'" in shell(asked).err
    path.write_text(FILE.replace("sigma = 8", "sigmas = 8"))
    assert "[[step]] 1: together 2: parameters: " in shell(asked).err
