"""Records of equal histories are asked once, and get what each would get by itself."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from symdp import individual, mechanisms
from symdp.individual import methods
from symdp.numeric.many import rows

NOISE = [1.0, 2.0, 5.0]


def records(many, histories, seed=1):
    random = np.random.default_rng(seed)
    base = random.integers(0, 300, (histories, len(NOISE)))
    return base[random.integers(0, histories, many)]


def each(monkeypatch):
    """Take every record for a history of its own."""

    def alone(counts, _):
        return np.arange(counts.shape[0]), np.arange(counts.shape[0])

    monkeypatch.setattr(methods, "distinct_rows", alone)


@pytest.mark.parametrize("method", ["contour", "renyi"])
def test_an_epsilon_is_that_of_the_history(method, monkeypatch):
    made = individual.from_counts(NOISE, records(200, 7), 0.02)
    found = made.epsilon(1e-6, method=method)
    each(monkeypatch)
    other = made.epsilon(1e-6, method=method)
    # Lines are shared by whoever is asked: the numbers agree to what they say of themselves.
    np.testing.assert_allclose(found.epsilon, other.epsilon, rtol=1e-11)
    assert found.paths == other.paths
    assert len(found) == 200
    np.testing.assert_array_equal(found.steps, other.steps)


def test_a_delta_at_an_epsilon_of_each_record(monkeypatch):
    counts = records(60, 3)
    epsilon = np.random.default_rng(2).choice([0.3, 0.8], 60)
    made = individual.from_counts(NOISE, counts, 0.02)
    found = made.delta(epsilon)
    each(monkeypatch)
    np.testing.assert_allclose(found.log_delta, made.delta(epsilon).log_delta, rtol=1e-11)
    np.testing.assert_array_equal(found.epsilon, epsilon)


def test_single_records_are_counted_as_often_as_they_stand():
    kinds = [mechanisms.randomized_response(epsilon_0=1), mechanisms.laplace(b=2)]
    found = individual.from_mechanisms(kinds, [[3, 0], [3, 0], [2, 0], [3, 0]]).epsilon(1e-3)
    assert "4 records were asked one by one" in found.note
    assert found.epsilon[0] == found.epsilon[1] == found.epsilon[3] > found.epsilon[2]


@pytest.mark.parametrize(
    ("method", "has_table", "note"),
    [
        ("contour", True, "2 records have the Rényi bound only"),
        ("renyi", True, ""),  # which was asked for
        ("renyi", False, "2 records have the Rényi bound only"),
    ],
)
def test_a_bound_that_nobody_asked_for_is_noted(method, has_table, note):
    bounds = individual.from_counts(NOISE, [[3, 0, 0], [0, 4, 1]], 0.02).epsilon(
        1e-6, method="renyi"
    )
    work = SimpleNamespace(method=method, has_table=has_table)
    assert methods._noted(work, bounds).note == note


def test_what_a_line_answers_has_no_note():
    made = individual.from_counts(NOISE, [[300, 0, 0], [0, 400, 1]], 0.02)
    assert made.epsilon(1e-6).note == ""


def test_as_many_rows_are_solved_as_there_are_histories(monkeypatch):
    asked = []
    solve = rows.solve_rows

    def counted(table, counts, *others):
        asked.append(counts.shape[0])
        return solve(table, counts, *others)

    monkeypatch.setattr(methods, "solve_rows", counted)
    individual.from_counts(NOISE, records(5_000, 9), 0.02).epsilon(1e-6)
    assert max(asked) == 9


def test_histories_of_one_sum_are_told_apart(monkeypatch):
    """Weights of 0 stand for histories whose sums are equal by chance."""

    class Zero:
        def integers(self, *_, **__):
            return np.zeros(len(NOISE) + 1, dtype=np.uint64)

    counts = records(50, 5)
    expected = individual.from_counts(NOISE, counts, 0.02).epsilon(1e-6)
    monkeypatch.setattr(methods.np.random, "default_rng", lambda _: Zero())
    first, which = methods.distinct_rows(counts, None)
    assert first.size == which.size == 50
    found = individual.from_counts(NOISE, counts, 0.02).epsilon(1e-6)
    np.testing.assert_allclose(found.epsilon, expected.epsilon, rtol=1e-11)
