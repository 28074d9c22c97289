"""Shared contour lines against one record at a time, against Arb, and their labels."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

import symdp
from symdp.errors import InputError
from symdp.individual import from_counts, from_mechanisms
from symdp.individual.methods import record_composition
from symdp.numeric.many.kinds import sampled_normals

NOISE = np.array([1.0, 2.5, 6.0, 15.0])
RATE = 0.01
DELTA = 1e-6


def rows(seed, many):
    """Records of every sort: many steps, few steps, spiky ones, one single step."""
    random = np.random.default_rng(seed)
    table = np.zeros((many, NOISE.size), dtype=np.uint16)
    for i in range(many):
        kind = i % 4
        if kind == 0:
            table[i] = random.multinomial(5000, random.dirichlet(np.ones(NOISE.size)))
        elif kind == 1:  # spiky: a few large losses among many small ones
            table[i, -1] = 4000
            table[i, 0] = random.integers(1, 6)
        elif kind == 2:
            table[i] = random.multinomial(random.integers(3, 60), np.ones(NOISE.size) / NOISE.size)
        else:
            table[i, random.integers(0, 4)] = random.integers(200, 900)
    return table


def one_by_one(table, i, direction):
    work = SimpleNamespace(
        counts=table, noise=NOISE, rate=np.full(NOISE.size, RATE), mechanisms=None
    )
    return record_composition(work, i)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_shared_lines_agree_with_one_record_at_a_time(direction):
    table = rows(5, 4)
    found = from_counts(NOISE, table, RATE, direction).epsilon(DELTA)
    assert set(found.kind) == {"exact"}
    assert found.paths["shared line"] >= 3
    for i in range(len(found)):
        alone = one_by_one(table, i, direction).epsilon(DELTA, direction=direction).epsilon
        assert found.epsilon[i] == pytest.approx(alone, rel=1e-10, abs=1e-15)
        assert found.lower[i] <= found.epsilon[i] <= found.upper[i]


@pytest.mark.slow
def test_delta_agrees_with_one_record_at_a_time_far_down():
    table = rows(6, 4)[[0, 3]]
    for epsilon in (0.4, 6.0):
        found = from_counts(NOISE, table, RATE, "remove").delta(epsilon)
        for i in range(len(found)):
            alone = one_by_one(table, i, "remove").delta(epsilon, direction="remove").log_delta
            assert found.log_delta[i] == pytest.approx(alone, rel=1e-11, abs=1e-10)


@pytest.mark.slow
def test_arb_proves_the_digits():
    """Few steps are proved by joining dots, to six digits or seven; more of them to eleven."""
    table = rows(8, 12)
    found = from_counts(NOISE, table, RATE, "remove").epsilon(DELTA)
    digits = []
    for i in range(0, len(found), 3):
        proved = one_by_one(table, i, "remove").certify(found.epsilon[i], 11, "remove")
        assert proved.lower * (1 - 1e-10) < DELTA < proved.upper * (1 + 1e-10)  # found: 1e-11
        digits.append(-np.log10((proved.upper - proved.lower) / DELTA))
    assert min(digits) > 6
    assert max(digits) > 10


def test_the_tables_agree_with_the_derived_law():
    for direction in ("remove", "add"):
        table = sampled_normals(np.array([0.8, 5.0]), np.array([0.02, 0.2]), direction)
        tilts = np.array([0.1, 1.0, 7.5])
        values = table.transform(tilts, table.has_loss)
        for b, (sigma, q) in enumerate([("4/5", "1/50"), (5, "1/5")]):
            step = symdp.mechanisms.gaussian(sigma=sigma).subsample("poisson", q)
            law = symdp.compose(step, 1).law(direction)
            for g, tilt in enumerate(tilts):
                assert values[g, b] == pytest.approx(law.cgf(float(tilt)), rel=1e-12, abs=1e-16)
            line = table.line(1.0, 0.7, 9, np.array([True, True]))[b] - values[1, b]
            known = law.cgf_line(1.0, 0.7 * np.arange(9))
            assert np.abs(np.exp(line) - np.exp(known)).max() < 1e-13


def test_unsampled_steps_are_gaussian_at_any_size():
    # one step of ratio 1/μ: the closed form, over ten decades of μ
    mu = np.array([1e-3, 0.1, 1.0, 9.0])
    found = from_counts(1.0 / mu, np.eye(4, dtype=int), 1.0, "remove").epsilon(1e-9)
    for value, m in zip(found.epsilon, mu, strict=True):
        exact = symdp.compose(symdp.mechanisms.gaussian(sigma=1.0 / m), 1).epsilon(1e-9).epsilon
        assert value == pytest.approx(exact, rel=1e-11)


def test_records_without_steps_have_no_loss():
    found = from_counts([1.0, math.inf], [[0, 0], [0, 7], [1, 7]], 0.5).epsilon(1e-5)
    assert found.epsilon[:2].tolist() == [0.0, 0.0]
    assert found.epsilon[2] > 0
    below = from_counts([1.0], [[0]]).delta(np.array([-1.0]))
    assert below.delta[0] == pytest.approx(-math.expm1(-1.0), rel=1e-14)


def test_a_densitys_records_take_the_same_lines():
    kinds = [symdp.mechanisms.logistic(s=s).subsample("poisson", "1/50") for s in (1, 2)] + [None]
    table = [[300, 0, 4], [100, 400, 0], [0, 0, 9]]
    found = from_mechanisms(kinds, table).epsilon(1e-6)
    assert found.epsilon[2] == 0.0
    for i in range(2):
        alone = symdp.compose([(m, n) for m, n in zip(kinds, table[i], strict=True) if m and n])
        assert found.epsilon[i] == pytest.approx(alone.epsilon(1e-6).epsilon, rel=1e-10)


def test_what_no_line_serves_is_counted():
    # losses of two values: |φ| never dies out, and each record takes a sum of its own
    coin = symdp.mechanisms.randomized_response(epsilon_0=1)
    found = from_mechanisms([coin], [[3]], "remove").epsilon(1e-3)
    assert found.paths == {"single record": 1}
    assert found.epsilon[0] == pytest.approx(symdp.compose(coin, 3).epsilon(1e-3).epsilon, rel=1e-9)


@pytest.mark.slow
def test_methods_and_their_labels():
    table = rows(9, 4)[:2]
    records = from_counts(NOISE, table, RATE, "remove")
    exact = records.epsilon(DELTA)
    bound = records.epsilon(DELTA, method="renyi")
    fourier = records.epsilon(DELTA, method="plancherel")
    limit = records.epsilon(DELTA, method="gaussian")
    assert set(bound.kind) == {"bound"}
    assert (bound.epsilon > exact.epsilon).all()
    assert set(fourier.kind) == set(limit.kind) == {"estimate"}
    assert fourier.epsilon[0] == pytest.approx(exact.epsilon[0], rel=1e-4)
    assert (limit.epsilon < exact.epsilon).all()
    alone = one_by_one(table, 0, "remove").epsilon(DELTA, "renyi", "remove").epsilon
    assert bound.epsilon[0] == pytest.approx(alone, rel=1e-6)
    assert bound.epsilon[0] >= alone * (1 - 1e-12)


def test_noise_rounded_both_ways_encloses():
    table = rows(10, 4)[[0, 1, 3]]
    fine = from_counts(NOISE * 1.03, table, RATE).epsilon(DELTA)
    both = from_counts(NOISE, table, RATE, noise_above=NOISE * 1.06).epsilon(DELTA)
    assert (both.lower <= fine.epsilon).all()
    assert (fine.epsilon <= both.epsilon).all()
    assert (both.lower < both.epsilon).all()
    delta = from_counts(NOISE, table, RATE, noise_above=NOISE * 1.06).delta(0.3)
    middle = from_counts(NOISE * 1.03, table, RATE).delta(0.3)
    assert (delta.lower <= middle.log_delta).all()
    assert (middle.log_delta <= delta.upper).all()


def test_an_adaptive_run_is_an_estimate():
    found = from_counts(NOISE, rows(3, 4), RATE, adaptive=True).epsilon(DELTA)
    assert set(found.kind) == {"estimate"}
    assert "adaptive" in found.note
    bound = from_counts(NOISE, rows(3, 4), RATE, adaptive=True).epsilon(DELTA, method="renyi")
    assert set(bound.kind) == {"estimate"}


def test_rates_and_noise_per_record():
    table = [[300, 0], [300, 0], [0, 300]]
    found = from_counts([2.0, 4.0], table, rate=[[0.01], [0.02], [0.02]]).epsilon(1e-6)
    first = from_counts([2.0, 4.0], table, rate=0.01).epsilon(1e-6)
    second = from_counts([2.0, 4.0], table, rate=0.02).epsilon(1e-6)
    known = [first.epsilon[0], *second.epsilon[1:]]
    np.testing.assert_allclose(found.epsilon, known, rtol=1e-12)


def test_mu_needs_its_floor():
    records = from_counts([2.0], [[10_000]], rate=0.005, direction="remove")
    values = [float(records.mu(floor)[0]) for floor in (1e-3, 1e-5, 9e-15)]
    # the paper's MNIST setting: μ grows with every ε that is asked for, to 50 at last
    assert values == sorted(values)
    assert values[1] == pytest.approx(0.26904, abs=1e-4)
    assert values[2] == pytest.approx(0.27192, abs=2e-4)


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"noise": [0.0], "counts": [[1]]}, "noise: 0.0"),
        ({"noise": [math.nan], "counts": [[1]]}, "noise: nan"),
        ({"noise": [1.0], "counts": [[-1]]}, "record 0, kind 0"),
        ({"noise": [1.0], "counts": [[0.5]]}, "record 0, kind 0"),
        ({"noise": [1.0], "counts": [[math.nan]]}, "record 0, kind 0"),
        ({"noise": [1.0], "counts": []}, "records × kinds"),
        ({"noise": [1.0, 2.0, 3.0], "counts": [[1, 2]]}, "noise of shape (3,)"),
        ({"noise": [1.0], "counts": [[1]], "rate": 1.5}, "rate: 1.5"),
        ({"noise": [1.0], "counts": [[1], [2]], "ids": ["a", "a"]}, "'a' occurs twice"),
        ({"noise": [1.0], "counts": [[1]], "direction": "up"}, "direction 'up'"),
        ({"noise": [2.0], "counts": [[1]], "noise_above": [1.0]}, "noise_above"),
    ],
)
def test_bad_counts_are_one_line(keywords, said):
    with pytest.raises(InputError) as refusal:
        from_counts(**keywords)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan, "x"])
def test_bad_delta_is_one_line(delta):
    with pytest.raises(InputError, match="delta"):
        from_counts([1.0], [[1]]).epsilon(delta)


def test_a_summary_tells_the_widest_interval():
    """Of four Gaussian releases ε of each is known to a rounding, far less than ε itself."""
    found = from_counts([1.0, 2.0, 4.0, 8.0], np.eye(4, dtype=int), 1.0, "remove").epsilon(1e-9)
    widths = [float(high - low) for low, high in zip(found.lower, found.upper, strict=True)]
    summary = found.summary()
    assert summary["widest_interval"] == max(widths)
    assert 0.0 <= max(widths) < 1e-9
    assert summary["mean"] == pytest.approx(sum(found.epsilon) / 4)
    assert summary["records"] == sum(summary["kinds"].values()) == 4
