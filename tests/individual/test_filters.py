"""Filters and odometers: what is proved, what is refused, and that no crash under-charges."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import symdp
from symdp.errors import InputError
from symdp.individual import (
    GaussianFilter,
    IndividualFilter,
    Odometer,
    RenyiFilter,
    create,
    from_counts,
    load_filter,
    pure_mu,
    step_mu,
)
from symdp.individual.gaussian import log_profile
from symdp.individual.state import exact_square

BAD = [math.nan, math.inf, -0.1, "x", None, True]


def test_the_sum_of_squares_decides_exactly():
    filter = GaussianFilter(budget=0.5)
    for _ in range(25):
        filter.commit(0.1)  # 25 × 0.1² in doubles: 0.1 is a little more than 1/10
        if not filter.ask(0.1):
            break
    assert filter.count == 24
    spent = 24 * exact_square(0.1)
    assert exact_square(filter.left()) <= Fraction(1, 4) - spent
    assert exact_square(math.nextafter(filter.left(), 1.0)) > Fraction(1, 4) - spent
    filter.commit(filter.left())
    with pytest.raises(InputError, match="would exceed the budget"):
        filter.commit(1e-7)
    assert filter.commit(0.0).allowed


@pytest.mark.parametrize(
    ("epsilon", "delta", "budget"),
    [(0.5, 1e-5, 0.14221056), (10.0, 1e-5, 2.00044562), (2.75, 1e-5, 0.66594240)],
)
def test_the_papers_mimic_budgets(epsilon, delta, budget):
    assert GaussianFilter(epsilon=epsilon, delta=delta).budget == pytest.approx(budget, abs=2e-6)


def test_the_budgets_guarantee_is_tight():
    filter = GaussianFilter(epsilon=2.0, delta=1e-6)
    assert filter.epsilon(1e-6) == pytest.approx(2.0, rel=1e-9)
    assert float(np.exp(log_profile(np.array([filter.budget]), np.array([2.0])))[0]) <= 1e-6


@pytest.mark.parametrize("bound", BAD)
def test_bad_steps_change_nothing(tmp_path, bound):
    path = tmp_path / "state.json"
    filter = create(path, GaussianFilter(budget=1.0))
    filter.commit(0.5)
    before = path.read_bytes()
    with pytest.raises(InputError) as refusal:
        filter.commit(bound)
    assert "\n" not in str(refusal.value)
    assert path.read_bytes() == before
    assert load_filter(path).count == filter.count == 1


def test_steps_out_of_order_or_repeated_are_refused():
    filter = GaussianFilter(budget=1.0)
    filter.commit(0.1, step=1)
    for step in (1, 3, 0):
        with pytest.raises(InputError, match="the next step is 2"):
            filter.commit(0.1, step=step)
    assert filter.count == 1


def test_state_is_resumed_exactly(tmp_path):
    path = tmp_path / "state.json"
    filter = create(path, GaussianFilter(budget=1.0))
    for mu in (0.1, 0.1, 0.3, 1 / 3):
        filter.commit(mu)
    again = load_filter(path)
    assert again.to_json() == filter.to_json()
    assert again.left() == filter.left()
    with pytest.raises(InputError, match="not overwritten"):
        create(path, GaussianFilter(budget=9.0))


@pytest.mark.parametrize(
    "made",
    [
        Odometer([0.5, 1.0]),
        RenyiFilter([8.0, 16.0], epsilon=3.0, delta=1e-5),
        IndividualFilter(3, budget=1.0),
    ],
    ids=lambda made: type(made).__name__,
)
def test_every_kind_is_resumed(tmp_path, made):
    path = tmp_path / "state.json"
    filter = create(path, made)
    bound = {"Odometer": 0.4, "RenyiFilter": [0.1, 0.2], "IndividualFilter": [0.1, 0.2, 0.9]}
    for _ in range(2):
        filter.commit(bound[type(made).__name__])
    again = load_filter(path)
    assert again.to_json() == filter.to_json()
    again.commit(bound[type(made).__name__])
    with pytest.raises(InputError, match="another writer"):
        filter.commit(bound[type(made).__name__])


def test_a_damaged_state_is_one_line(tmp_path):
    path = tmp_path / "state.json"
    create(path, GaussianFilter(budget=1.0)).commit(0.5)
    whole = path.read_text()
    edited = json.loads(whole)
    edited["budget"] = (2.0).hex()
    for text in (whole[:-30], json.dumps(edited), "", "[]", "{}", "\x00"):
        path.write_text(text)
        with pytest.raises(InputError) as refusal:
            load_filter(path)
        assert "\n" not in str(refusal.value)
        assert path.read_text() == text


def test_a_second_writer_is_refused(tmp_path):
    from symdp.durable import locked

    path = tmp_path / "state.json"
    filter = create(path, GaussianFilter(budget=1.0))
    with locked(path), pytest.raises(InputError, match="another writer holds the lock"):
        filter.commit(0.1)
    assert load_filter(path).count == filter.count == 0


def test_a_step_is_on_disk_before_commit_returns(tmp_path, monkeypatch):
    from symdp.durable import Kept

    path = tmp_path / "state.json"
    filter = create(path, GaussianFilter(budget=1.0))

    def fails(kind, path, values):
        raise InputError("no space left")

    monkeypatch.setattr(Kept, "write", fails)
    with pytest.raises(InputError, match="no space"):
        filter.commit(0.5)
    assert filter.count == 0
    assert filter.left() == 1.0
    monkeypatch.undo()
    filter.commit(0.5)
    assert load_filter(path).count == 1


def test_the_odometer_pays_whole_increments():
    odometer = Odometer([0.5, 0.5, 1.0])
    odometer.commit(0.3)
    assert odometer.bound == 0.5
    odometer.commit(0.45)
    assert odometer.bound == pytest.approx(math.sqrt(0.5), rel=1e-15)
    odometer.commit(0.9)
    with pytest.raises(InputError, match="exceed"):
        odometer.commit(0.9)
    assert odometer.bound == pytest.approx(math.sqrt(1.5), rel=1e-15)
    # the running √Σμ² lies below what is proved, and is not offered as a bound
    assert odometer.bound > math.sqrt(0.3**2 + 0.45**2 + 0.9**2)


def test_running_root_of_squares_is_no_bound():
    filter = GaussianFilter(budget=1.0)
    filter.commit(0.3)
    status = filter.status()
    assert status["kind"] == "bound"
    assert "1-GDP" in status["proved"]  # the budget, not the 0.3 that were spent
    assert "no guarantee" in status["spent_is"]
    assert (
        filter.epsilon(1e-5)
        > symdp.compose(symdp.mechanisms.gaussian(sigma=1 / 0.3), 1).epsilon(1e-5).epsilon
    )
    assert not hasattr(filter, "bound")


def test_several_renyi_orders_split_delta():
    orders = [4.0, 8.0, 16.0, 32.0]
    alone = [RenyiFilter(order, epsilon=2.0, delta=1e-5).budgets[0] for order in orders[2:]]
    split = RenyiFilter(orders, epsilon=2.0, delta=1e-5)
    assert (np.asarray(split.budgets[2:]) < np.asarray(alone)).all()
    assert split.budgets[2:] == [
        RenyiFilter(order, epsilon=2.0, delta=1e-5 / 4).budgets[0] for order in orders[2:]
    ]
    # a planted filter without the split would run these steps; this one stops before
    count, rho = 0, [0.01 * order for order in orders]
    while split.ask(rho):
        split.commit(rho)
        count += 1
    unsplit = max(int(b / (0.01 * o)) for b, o in zip(alone, orders[2:], strict=True))
    assert count < unsplit
    assert "split over 4 orders" in split.status()["proved"]


def test_one_order_needs_no_split_and_is_sound():
    filter = RenyiFilter(16.0, epsilon=2.0, delta=1e-5)
    mu = 0.05
    while filter.ask(16.0 * mu * mu / 2.0):
        filter.commit(16.0 * mu * mu / 2.0)
    steps = symdp.compose(symdp.mechanisms.gaussian(sigma=1 / mu), filter.count)
    assert steps.delta(2.0).delta <= 1e-5


def test_natural_filters_are_not_offered_as_proved():
    # composed realised losses of an adaptive run: an estimate, by whatever method
    run = from_counts([2.0, 4.0], [[100, 50]], 0.01, adaptive=True)
    for method in ("contour", "renyi", "plancherel"):
        found = run.epsilon(1e-5, method=method)
        assert set(found.kind) == {"estimate"}
        assert "a filter gives a proved bound" in found.note


def test_individual_filter_spends_the_budget_exactly():
    filter = IndividualFilter(4, budget=1.0)
    mu = np.array([0.4, 0.0, 1.5, 0.01])
    total = np.zeros(4)
    for _ in range(9):
        taken = filter.commit(mu)
        total += (taken.scale * mu) ** 2
    assert total[[0, 2]] == pytest.approx([1.0, 1.0], rel=1e-14)
    assert (total <= 1.0).all()
    assert taken.active.tolist() == [False, True, False, True]
    assert taken.scale[1] == 1.0


def test_individual_filter_may_come_back_for_a_cheaper_step():
    filter = IndividualFilter(1, budget=1.0, last="drop")
    filter.commit([0.9])
    assert not filter.commit([0.9]).active[0]
    assert filter.commit([0.2]).active[0]
    assert filter.spent[0] == pytest.approx(0.81 + 0.04, rel=1e-14)


@pytest.mark.parametrize("mu", [[0.1], [0.1, math.nan], [0.1, -1.0], [math.inf, 0.0]])
def test_individual_filter_names_the_record(mu):
    filter = IndividualFilter(2, budget=1.0)
    with pytest.raises(InputError) as refusal:
        filter.commit(mu)
    assert "record" in str(refusal.value)
    assert filter.count == 0


def test_a_pure_steps_mu_dominates_it():
    for epsilon in (0.1, 1.0, 3.0):
        mu = pure_mu(epsilon)
        for at in np.linspace(0.0, epsilon, 40):
            # randomised response, the worst ε₀-DP step
            p = math.exp(epsilon) / (1.0 + math.exp(epsilon))
            delta = p - math.exp(at) * (1.0 - p)
            bound = float(np.exp(log_profile(np.array([mu]), np.array([at])))[0])
            assert bound >= delta * (1 - 1e-12)


@pytest.mark.slow
def test_step_mu_dominates_the_step():
    found = step_mu(symdp.mechanisms.logistic(s=2))
    one = symdp.compose(symdp.mechanisms.logistic(s=2), 1)
    for at in np.linspace(0.0, 0.5, 33)[:-1]:
        bound = float(np.exp(log_profile(np.array([found.mu]), np.array([at])))[0])
        assert bound >= one.delta(float(at)).delta
    assert found.mu < pure_mu(0.5)
    with pytest.raises(InputError, match="neither Gaussian nor bounded"):
        step_mu(symdp.mechanisms.gumbel(b=1))


def test_nothing_but_the_command_line_imports_the_room():
    from pathlib import Path

    package = Path(symdp.__file__).parent
    for file in package.rglob("*.py"):
        place = file.relative_to(package).as_posix()
        if place.startswith(("individual/", "cli/")) or place == "__init__.py":
            continue
        assert "symdp.individual" not in file.read_text(encoding="utf-8"), place


def test_another_filter_s_state_is_never_overwritten(tmp_path):
    """Neither by a larger budget on a file without steps, nor by save."""
    path = tmp_path / "state.json"
    create(path, GaussianFilter(budget=1.0))
    before = path.read_bytes()
    for work in (
        lambda: GaussianFilter(budget=9.0, path=path).commit(2.0),
        lambda: GaussianFilter(budget=9.0, path=path).save(),
        lambda: IndividualFilter(2, budget=9.0, path=path).commit([1.0, 1.0]),
        lambda: IndividualFilter(2, budget=9.0).save(path),
    ):
        with pytest.raises(InputError, match="another filter's"):
            work()
    assert path.read_bytes() == before
    load_filter(path).save()
    assert path.read_bytes() == before
