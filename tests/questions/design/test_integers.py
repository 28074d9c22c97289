"""The noise of least ε: its file, its masses, and what no better noise of a family has."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import sympy as sp
from shell import Shell

import symdp
from symdp import InputError
from symdp.questions.design.grid import grid
from symdp.questions.design.integers import design
from symdp.questions.design.loss_sum import epsilon_slope
from symdp.questions.noise import compare


def convolved(masses, shift, count, epsilon):
    """δ(ε) by sums of losses, each kept apart: a dictionary of all of them, rounded to 1e-9."""
    noise = {k: float(masses[abs(k)]) for k in range(1 - len(masses), len(masses))}
    step = {}
    for k, mass in noise.items():
        other = noise.get(k - shift)
        if other is not None:
            loss = round(math.log(other / mass), 9)
            step[loss] = step.get(loss, 0.0) + other
    finite = sum(step.values())
    total = {0.0: 1.0}
    for _ in range(count):
        sums: dict[float, float] = {}
        for a, p in total.items():
            for b, q in step.items():
                key = round(a + b, 9)
                sums[key] = sums.get(key, 0.0) + p * q
        total = sums
    beyond = 1.0 - finite**count
    return beyond + sum(p * -math.expm1(epsilon - s) for s, p in total.items() if s > epsilon)


@pytest.fixture(scope="module")
def best():
    return design(3, delta=1e-3, std=1)


@pytest.mark.parametrize("rate", [1, "1/4"])
def test_slopes_in_masses_are_those_of_differences(rate):
    """Two masses are moved against each other, both of ±k at once; the larger direction answers."""
    question = grid(3, 1e-3, 1.5, "x**2", 1, rate, 8, "integers")
    masses = question.normalized(-(question.values**2) / 4.0)
    epsilon, slopes = question.slopes(masses)
    assert epsilon == pytest.approx(question.epsilon(masses))
    for first, second in ((0, 1), (1, 3), (2, 4)):
        move = np.zeros(masses.size)
        move[first] = 1e-6 / question.twice[first]
        move[second] = -1e-6 / question.twice[second]
        difference = question.epsilon(masses + move) - question.epsilon(masses - move)
        # The losses of a sample lie off the lattice on which they are added.
        assert slopes @ move == pytest.approx(0.5 * difference, rel=1e-5 if rate == 1 else 2e-3)


def test_masses_are_exact_even_and_fall(best):
    masses = best.mechanism.source.masses
    assert masses[0] + 2 * (sum(masses[1:]) + best.mechanism.source.tail) == 1
    assert all(inner >= outer > 0 for inner, outer in itertools.pairwise(masses))
    assert all((10**40 * mass).is_Integer for mass in masses)
    variance = 2 * sum(k * k * mass for k, mass in enumerate(masses))
    assert float(variance) <= best.most * (1 + 1e-9)


def test_epsilon_is_that_of_the_masses(best):
    masses = best.mechanism.source.masses
    delta = convolved(masses, 1, 3, 1.5)
    answer = symdp.compose(best.mechanism, 3).delta(1.5)
    assert answer.delta == pytest.approx(delta, rel=1e-6)
    assert best.rows[0].name == "designed"
    assert best.guarantee.epsilon < min(row.guarantee.epsilon for row in best.rows[1:])


def test_the_file_is_an_ordinary_mechanism(best):
    noise = symdp.Mechanism.from_toml(best.to_toml())
    assert noise.source == best.mechanism.source
    assert symdp.compose(noise, 3).epsilon(1e-3).epsilon == best.guarantee.epsilon
    proved = symdp.compose(noise, 3).certify_epsilon(1e-3, 3)
    assert float(proved.lower_decimal) <= best.guarantee.epsilon * (1 + 1e-7)
    assert best.guarantee.epsilon <= float(proved.upper_decimal) * (1 + 1e-7)
    others = [symdp.mechanisms.discrete_gaussian, symdp.mechanisms.discrete_laplace]
    rows = compare([noise, *others], 3, delta=1e-3, std=noise.std)
    assert rows[0].mechanism.name == "designed"


def test_no_neighbour_of_it_is_better(best):
    """A local optimum: moves of masses that keep mass, cost and evenness gain nothing."""
    source = best.mechanism.source
    masses = np.array([float(mass) for mass in source.masses])
    tail = masses[-1] * float(source.ratio) ** np.arange(1, 20)
    masses = np.concatenate([masses, tail])

    def epsilon_of(law):
        noise = np.concatenate([law[:0:-1], law])
        q = np.concatenate([noise, [0.0]])
        p = np.concatenate([[0.0], noise])
        return epsilon_slope(p, q, 3, 1e-3).epsilon

    least = epsilon_of(masses)
    for i, j, k in ((0, 1, 2), (0, 2, 5), (1, 3, 6), (2, 4, 9), (0, 5, 8)):
        rows = np.array(
            [[2.0 - (place == 0) for place in (i, j, k)], [2.0 * place**2 for place in (i, j, k)]]
        )
        direction = np.linalg.svd(rows)[2][-1]
        for size in (-1e-3, 1e-3):
            moved = masses.copy()
            moved[[i, j, k]] += size * direction * masses[k]
            # The search stops where kinks of δ hide what is left to gain.
            assert epsilon_of(moved) > least * (1.0 - 5e-5)


def test_the_slope_is_that_of_differences():
    k = np.arange(-30, 31)
    noise = np.exp(-(np.abs(k) ** 1.4) / 5.0)
    noise /= noise.sum()
    rng = np.random.default_rng(3)
    for count, delta in ((3, 1e-4), (20, 1e-9)):
        direction = noise * rng.normal(size=noise.size)
        direction -= noise * direction.sum()
        ends = []
        for size in (-1e-4, 1e-4):
            law = noise + size * direction
            answer = epsilon_slope(
                np.concatenate([[0.0], law]), np.concatenate([law, [0.0]]), count, delta
            )
            ends.append(answer.epsilon)
        slope = epsilon_slope(
            np.concatenate([[0.0], noise]), np.concatenate([noise, [0.0]]), count, delta
        )
        told = (slope.by_p[1:] + slope.by_q[:-1]) @ direction
        assert (ends[1] - ends[0]) / 2e-4 == pytest.approx(told, rel=0.02)


def test_epsilon_in_doubles_is_that_of_the_package():
    noise = symdp.mechanisms.discrete_gaussian(sigma=3)
    k = np.arange(-60, 61)
    masses = np.exp(-(k**2) / 18.0)
    masses /= masses.sum()
    p, q = np.concatenate([[0.0], masses]), np.concatenate([masses, [0.0]])
    for count, delta in ((1, 1e-5), (7, 1e-6), (100, 1e-11)):
        exact = symdp.compose(noise, count).epsilon(delta).epsilon
        assert epsilon_slope(p, q, count, delta).epsilon == pytest.approx(exact, rel=1e-5)


def test_one_step_is_the_linear_program_and_beats_every_staircase():
    """Among the competitors: geometric noise, and staircases of widths 2 to 4."""
    delta, std = 1e-3, 4.0
    best = design(1, delta=delta, std=std)
    assert best.is_global
    for width in (1, 2, 3, 4):
        for offset in range(width):
            least = _staircase(width, offset, std, delta)
            assert best.guarantee.epsilon <= least + 1e-9, (width, offset)


def _staircase(width, offset, std, delta):
    k = np.arange(0, 160)
    low, high = 1e-3, 20.0
    for _ in range(80):
        fall = 0.5 * (low + high)
        masses = np.exp(-fall * ((k + offset) // width))
        masses /= masses[0] + 2 * masses[1:].sum()
        low, high = (fall, high) if 2 * (masses * k**2).sum() > std**2 else (low, fall)
    noise = np.concatenate([masses[:0:-1], masses])
    q, p = np.concatenate([noise, [0.0]]), np.concatenate([[0.0], noise])
    ends = [0.0, 50.0]
    for _ in range(80):
        middle = sum(ends) / 2
        is_above = np.maximum(p - math.exp(middle) * q, 0.0).sum() > delta
        ends = [middle, ends[1]] if is_above else [ends[0], middle]
    return ends[1]


def least_pure(epsilon):
    """E|X| of the best noise of sensitivity 1 at δ = 0 [Geng and Viswanath 2016, Theorem 3]."""
    return math.exp(epsilon / 2) / math.expm1(epsilon)


@pytest.mark.parametrize("stairs", [2, 5])
def test_one_step_on_the_reals_is_the_staircase(stairs):
    """Its first stair ends at 1/(1 + e^{ε/2}), chosen to be an edge between two of 16 cells."""
    first = (stairs + 0.5) / 16
    epsilon = 2 * math.log(1 / first - 1)
    std = least_pure(epsilon) * math.sqrt(math.pi / 2)  # of normal noise of this E|X|
    best = design(1, delta=1e-12, std=std, cost="abs(x)", support="reals")
    assert best.mechanism.source.cells == 16
    assert best.guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert best.guarantee.epsilon > epsilon * (1 - 1e-7)
    assert best.mechanism.mean_abs <= least_pure(epsilon) * (1 + 1e-9)
    masses = [float(mass) for mass in best.mechanism.source.masses]
    falls = [k for k in range(40) if masses[k + 1] < 0.999 * masses[k]]
    assert falls == [stairs, stairs + 16, stairs + 32]


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("count", [1, 2], ids=str)
def test_on_the_reals_the_file_is_an_ordinary_mechanism(count):
    best = design(count, delta=1e-3, std="1/3", sensitivity="1/3", support="reals")
    assert best.rows[0].name == "designed"
    noise = symdp.Mechanism.from_toml(best.to_toml())
    assert noise.source == best.mechanism.source
    assert noise.source.sensitivity == sp.Rational(1, 3)
    assert noise.std <= 1 / 3
    assert f"cells of {best.cell}" in best.sentence
    assert symdp.compose(noise, count).epsilon(1e-3).epsilon == best.guarantee.epsilon
    proved = symdp.compose(noise, count).certify_epsilon(1e-3, 4)
    assert float(proved.upper_decimal) < best.rows[1].guarantee.epsilon * 0.99
    normal = next(row for row in best.rows if row.name == "Gaussian").mechanism
    assert normal.std == pytest.approx(1 / 3, rel=1e-7)
    assert delta_on_a_grid(noise.source, count, best.guarantee.epsilon) == pytest.approx(1e-3, 1e-5)


def delta_on_a_grid(source, count, epsilon):
    """δ of one or two steps by sums over pairs of places of a fine grid, which knows no cells."""
    places = (np.arange(-9216, 9216) + 0.5) / 1536
    half = np.array([float(mass) for mass in source.masses])
    half = np.concatenate([half, half[-1] * float(source.ratio) ** np.arange(1, 900)])

    def mass(x):
        index = np.floor(np.abs(x) / float(source.cell) + 0.5).astype(int)
        return half[index] / float(source.cell) / 1536

    q = mass(places)
    p = mass(places - float(source.sensitivity))
    assert q.sum() == pytest.approx(1.0, abs=1e-9)
    if count == 1:
        return np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
    kept = p + q > 1e-30
    p, q = p[kept], q[kept]
    loss = np.log(p / q)
    order = np.argsort(loss)
    loss, p, q = loss[order], p[order], q[order]
    upper_p = np.append(np.cumsum(p[::-1])[::-1], 0.0)
    upper_q = np.append(np.cumsum(q[::-1])[::-1], 0.0)
    index = np.searchsorted(loss, epsilon - loss)
    return p @ upper_p[index] - math.exp(epsilon) * (q @ upper_q[index])


def test_a_design_is_best_at_its_own_steps():
    best = design(2, delta=1e-2, std=1)
    gains = best.gains()
    assert gains[2] == pytest.approx(best.gain, rel=1e-12)
    steps = [symdp.compose(row.mechanism, 4).epsilon(1e-2).epsilon for row in best.rows]
    assert gains[4] == pytest.approx(100 * (1 - steps[0] / min(steps[1:])), rel=1e-12)
    # That of one step ends where δ allows it, and has no finite ε of two.
    cut = design(1, delta=1e-2, std=1, support="reals")
    assert list(cut.gains()) == [1]
    with pytest.raises(InputError, match="no finite epsilon"):
        symdp.compose(cut.mechanism, 2).epsilon(1e-2)


def test_on_the_reals_ends_are_kept():
    best = design(1, delta=1e-2, std=1, reach="7/2", support="reals")
    source = best.mechanism.source
    assert source.tail == 0
    assert (source.reach + sp.Rational(1, 2)) * source.cell <= sp.Rational(7, 2)
    assert best.mechanism.std <= 1


@pytest.mark.slow
def test_far_masses_are_a_tail():
    """Values up to ±3700 count; the file lists some, and the rest falls by one ratio."""
    best = design(1, delta=1e-6, std=170)
    source = best.mechanism.source
    noise = symdp.Mechanism.from_toml(best.to_toml())
    assert noise.source == source
    assert best.mechanism.std <= 170 * (1 + 1e-9)
    assert best.guarantee.epsilon <= best.rows[-1].guarantee.epsilon
    assert source.tail >= 0


def test_two_steps_are_summed_in_pairs():
    """ε of two steps is that of all pairs of losses, at once."""
    k = np.arange(-30, 31)
    noise = np.exp(-(np.abs(k) ** 1.4) / 5.0)
    noise /= noise.sum()
    q, p = np.concatenate([noise, [0.0]]), np.concatenate([[0.0], noise])
    found = epsilon_slope(p, q, 2, 1e-4)
    losses = {j: math.log(p[j] / q[j]) for j in range(p.size) if p[j] > 0 and q[j] > 0}
    infinite = 1 - (1 - p[-1]) ** 2
    delta = infinite
    for i, a in losses.items():
        for j, b in losses.items():
            delta += max(p[i] * p[j] - math.exp(found.epsilon) * q[i] * q[j], 0.0) * (a + b > 0)
    assert delta == pytest.approx(1e-4, rel=1e-9)


@pytest.mark.slow
def test_where_normal_noise_is_best_it_says_so():
    answer = design(300, delta=1e-5, std=4)
    assert answer.rows[0].name in ("Gaussian", "designed")
    assert answer.gain < 0.2
    known = symdp.compose(symdp.Mechanism.from_toml(answer.to_toml()), 300).epsilon(1e-5).epsilon
    assert known == answer.guarantee.epsilon


@pytest.mark.slow
def test_a_bounded_support_a_larger_shift_and_a_cost():
    narrow = design(2, delta=1e-2, std=1, reach=5)
    assert narrow.mechanism.source.reach <= 5
    far = design(2, delta=1e-2, std=2, sensitivity=2)
    assert far.mechanism.source.sensitivity == 2
    spread = design(2, delta=1e-2, std=1, cost="abs(x)")
    assert spread.mechanism.mean_abs <= spread.most * (1 + 1e-9)
    assert spread.guarantee.epsilon <= min(row.guarantee.epsilon for row in spread.rows)


@pytest.mark.slow
def test_a_sampled_design_is_answered_sampled():
    answer = design(20, delta=1e-3, std=1, rate="1/4")
    sampled = symdp.Mechanism.from_toml(answer.to_toml()).subsample("poisson", "1/4")
    assert symdp.compose(sampled, 20).epsilon(1e-3).epsilon == answer.guarantee.epsilon


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"delta": 0.0, "std": 2}, "delta"),
        ({"delta": 1e-5, "std": -2}, "positive"),
        ({"delta": 1e-5, "std": 2, "cost": "x"}, "not even"),
        ({"delta": 1e-5, "std": 2, "cost": "-x**2"}, "falls"),
        ({"delta": 1e-5, "std": 2, "cost": "y**2"}, "cost: unknown name"),
        ({"delta": 1e-5, "std": 2, "cost": "3"}, "does not hold"),
        ({"delta": 1e-5, "std": 2, "reach": 2}, "wider support"),
        ({"delta": 1e-5, "std": 2, "rate": 2}, "rate"),
        ({"delta": 1e-5, "std": 1000}, "a standard deviation up to"),
        ({"delta": 1e-5, "std": 4000, "sensitivity": 4}, "common factor"),
        ({"delta": 1e-5, "std": 2, "support": "naturals"}, "integers or reals"),
        ({"delta": 1e-5, "std": 2, "support": "reals", "sensitivity": 0}, "above 0"),
        ({"delta": 1e-5, "std": 2, "support": "reals", "cost": "x**2 - x"}, "not even"),
        ({"delta": 1e-5, "std": 900, "reach": 8000}, "a narrower one"),
        ({"delta": 1e-5, "std": 2, "sensitivity": 0}, "whole number"),
    ],
)
def test_what_cannot_be_designed_is_said(asked, told):
    with pytest.raises(InputError, match=told):
        design(2, **asked)


@pytest.mark.slow
def test_the_command_writes_file_and_figure(shell: Shell, tmp_path):
    file, figure = tmp_path / "best.toml", tmp_path / "best.svg"
    ran = shell(f"design --std 1 --delta 1e-2 -o {file} --plot {figure}")
    assert "less ε than the better of the others; the best of all" in ran.out
    assert figure.stat().st_size > 4_000
    noise = symdp.load(file)
    assert sp.Add(*noise.source.Q) == 1
    known = shell(f"epsilon {file} --delta 1e-2 --json").json
    told = shell("design --std 1 --delta 1e-2 --json").json
    assert told["noises"][0]["epsilon"] == known["epsilon"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("design --std 2 --delta 1e-3 --support naturals", "integers, reals, or those between"),
        ("design --std 2 --delta 1e-3 --support [-3,4]", "integers, reals, or those between"),
        ("design --std 2 --delta 1e-3 --support reals[3,4]", "integers, reals, or those between"),
        ("design --std 2 --delta 1e-3 --support [-9.5,9.5]", "--support"),
        ("design --std 2 --delta 1e-3 --sampling poisson", "--rate Q"),
        ("design --std 2 --delta 1e-3 -o best.txt", ".toml"),
        ("design --std 2", "--delta"),
        ("design --std 2 --delta 1e-3 --cost x", "cost"),
    ],
)
def test_what_is_wrong_is_said(shell: Shell, line, told):
    ran = shell(line)
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1
