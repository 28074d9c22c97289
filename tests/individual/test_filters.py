"""Filters and odometers: what is proved, what is refused, and that no crash under-charges."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import mpmath
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
from symdp.individual.individual_filter import _next_up

BAD = [math.nan, math.inf, -0.1, "x", None, True]


def test_the_sum_of_squares_decides_exactly():
    filter = GaussianFilter(budget=0.5)
    for _ in range(24):
        filter.commit(0.1)  # 0.1 means 1/10, not the double above it
    assert filter.left() == 0.1
    with pytest.raises(InputError, match=r"at most 0\.1 is left"):
        filter.commit(0.10000000000000002)
    filter.commit(0.1)
    with pytest.raises(InputError, match="would exceed the budget"):
        filter.commit(1e-7)
    assert filter.left() == 0.0
    assert filter.commit(0.0).allowed


def test_what_is_left_is_the_largest_double_that_fits():
    filter = GaussianFilter(budget="1/3")
    filter.commit("1/7", n=3)
    rest = Fraction(1, 9) - 3 * Fraction(1, 49)
    assert Fraction(repr(filter.left())) ** 2 <= rest
    assert Fraction(repr(math.nextafter(filter.left(), 1.0))) ** 2 > rest
    filter.commit(filter.left())


@pytest.mark.parametrize("word", ["0.1", "1/10", 0.1, Fraction(1, 10)])
def test_tenths_fill_a_budget_of_one(word, tmp_path):
    path = tmp_path / "state.json"
    filter = create(path, GaussianFilter(budget=1))
    assert filter.commit(word, n=99).left == 0.1
    assert not filter.ask(word, n=2)
    assert load_filter(path).commit(word).left == 0.0
    assert load_filter(path).n == 100
    renyi = RenyiFilter(2, epsilon=20, delta=1e-5)
    renyi.budgets = [1.0]
    for _ in range(10):
        renyi.commit(word)
    assert not renyi.ask(1e-300)


def test_many_steps_at_once_are_all_or_none():
    filter = GaussianFilter(budget=1.0)
    with pytest.raises(InputError, match="101 steps from step 1"):
        filter.commit(0.1, n=101)
    assert filter.n == 0
    odometers = [Odometer(["1/2", 1, "1/10", 2]) for _ in range(2)]
    odometers[0].commit("3/10", n=30)  # 2 in the first round, 11 in the second, then skipped
    for _ in range(30):
        odometers[1].commit("3/10")
    assert odometers[0].to_json() == odometers[1].to_json()
    assert odometers[0].left() == odometers[1].left()
    for count in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="positive integer"):
            filter.commit(0.1, n=count)


def test_a_file_of_an_earlier_version_goes_on():
    """Doubles in base 16 keep their exact value."""
    state = {"filter": "gdp", "budget": (1.0).hex(), "steps": 99, "runs": [[(0.1).hex(), 99]]}
    filter = GaussianFilter(1)
    filter._replay(state, "old")
    assert filter.left() == pytest.approx(0.1, abs=1e-14)


def test_status_repeats_what_was_asked(tmp_path):
    path = tmp_path / "state.json"
    create(path, GaussianFilter(epsilon=2, delta="1/100000"))
    status = load_filter(path).status()
    assert status["proved"].endswith("and (2, 1/100000)-DP")
    assert status["left"] == pytest.approx(status["budget"], rel=1e-12)
    assert "mu" in status["unit"]


def test_numbers_may_be_written_as_ratios():
    expected = from_counts([1, 4], [[100, 0], [0, 100]], 0.01).epsilon(1e-5).epsilon
    found = from_counts(["1", "8/2"], [[100, 0], [0, 100]], rate="1/100").epsilon("1/100000")
    assert found.epsilon.tolist() == expected.tolist()
    steps = symdp.compose(symdp.mechanisms.gaussian(sigma="3/2"), "1e1")
    assert steps.delta("1/2").delta == steps.delta(0.5).delta
    assert steps.epsilon(["1/10", "0.01"]).epsilon.tolist() == [
        steps.epsilon(one).epsilon for one in (0.1, 0.01)
    ]


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
    assert load_filter(path).n == filter.n == 1


def test_steps_out_of_order_or_repeated_are_refused():
    filter = GaussianFilter(budget=1.0)
    filter.commit(0.1, step=1)
    for step in (1, 3, 0):
        with pytest.raises(InputError, match="the next step is 2"):
            filter.commit(0.1, step=step)
    assert filter.n == 1


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
    assert load_filter(path).n == filter.n == 0


def test_a_step_is_on_disk_before_commit_returns(tmp_path, monkeypatch):
    from symdp.durable import Kept

    path = tmp_path / "state.json"
    filter = create(path, GaussianFilter(budget=1.0))

    def fails(kind, path, values):
        raise InputError("no space left")

    monkeypatch.setattr(Kept, "write", fails)
    with pytest.raises(InputError, match="no space"):
        filter.commit(0.5)
    assert filter.n == 0
    assert filter.left() == 1.0
    monkeypatch.undo()
    filter.commit(0.5)
    assert load_filter(path).n == 1


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
    steps = symdp.compose(symdp.mechanisms.gaussian(sigma=1 / mu), filter.n)
    assert steps.delta(2.0).delta <= 1e-5


@pytest.mark.slow
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
    assert filter.n == 0


def test_a_pure_steps_mu_dominates_it():
    for epsilon in (0.1, 1.0, 3.0):
        mu = pure_mu(epsilon)
        for at in np.linspace(0.0, epsilon, 40):
            # randomised response, the worst ε₀-DP step
            p = math.exp(epsilon) / (1.0 + math.exp(epsilon))
            delta = p - math.exp(at) * (1.0 - p)
            bound = float(np.exp(log_profile(np.array([mu]), np.array([at])))[0])
            assert bound >= delta * (1 - 1e-12)


def test_step_mu_of_averages_is_not_that_of_sums():
    """Whoever sees the average sees the batch's size: μ = 1/4 would give δ(1) = 2.9e-6."""
    step = symdp.mechanisms.gaussian(sigma=4).subsample(
        "poisson", "9/10", records=5, released="average"
    )
    assert symdp.compose(step, 1).delta(1.0).delta > 0.0016
    with pytest.raises(InputError, match="neither Gaussian nor bounded"):
        step_mu(step)


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


@pytest.mark.parametrize("budget", ["1", "0.1", "1/3", "2.5e-7", "7/12", "123456.5", 0.7, "1/1001"])
def test_individual_sums_are_those_of_fractions(budget):
    generator = np.random.default_rng(5)
    exact = Fraction(budget) if isinstance(budget, str) else Fraction(str(budget))
    shares = generator.integers(1, 400, (60, 5)) / 1000
    for mode in ("drop", "scale"):
        filter, sums = IndividualFilter(5, budget, last=mode), [Fraction(0)] * 5
        for row in shares:
            mus = [Fraction(repr(float(f"{share * float(exact):.6g}"))) for share in row]
            taken = filter.commit([float(mu) for mu in mus])
            for record, mu in enumerate(mus):
                if sums[record] + mu**2 <= exact**2:
                    assert taken.scale[record] == 1.0
                    sums[record] += mu**2
                elif mode == "drop" or sums[record] == exact**2:
                    assert taken.scale[record] == 0.0
                else:
                    spent = (Fraction(float(taken.scale[record])) * mu) ** 2
                    # What is no whole number of units, of B/1001 say, is rounded up to one.
                    assert exact**2 * (1 - Fraction(1, 10**9)) < sums[record] + spent <= exact**2
                    sums[record] = exact**2


def test_individual_ratios_and_any_doubles():
    thirds = IndividualFilter(2, "1", last="drop")
    allowed = [thirds.commit(["1/3", Fraction(1, 4)]).active.tolist() for _ in range(17)]
    assert [sum(column) for column in zip(*allowed, strict=True)] == [9, 16]
    odd = IndividualFilter(1, 1, last="drop")  # 1/11 is rounded up: one of 121 does not fit
    assert [bool(odd.commit(["1/11"]).active[0]) for _ in range(121)].count(True) == 120
    exact = IndividualFilter(1, "1/3", last="drop")
    assert [bool(exact.commit(["1/9"]).active[0]) for _ in range(10)].count(True) == 9
    values = np.random.default_rng(6).random((2000, 3)) * 0.05
    filter, sums = IndividualFilter(3, 1, last="drop"), [Fraction(0)] * 3
    for row in values:
        for record, active in enumerate(filter.commit(row).active):
            sums[record] += Fraction(float(row[record])) ** 2 * int(active)
    assert all(1 - Fraction(1, 400) < total <= 1 for total in sums)
    assert all(float(total) <= spent for total, spent in zip(sums, filter.spent, strict=True))


@pytest.mark.parametrize("mu", [1e-3, 0.01, 0.5, 3.0, 45.0, 90.0])
@pytest.mark.parametrize("place", [-60.0, -25.0, -20.5, -19.5, -3.0, 0.0, 4.0])
def test_profiles_of_normal_noise_far_to_either_side(mu, place):
    """δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) at ε/μ − μ/2 = `place`, where it is nearly 1 too."""
    epsilon = mu * (place + mu / 2)
    with mpmath.workdps(400):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        taken = mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        truth = float(mpmath.log(mpmath.ncdf(m / 2 - e / m) - taken))
    found = float(log_profile(np.array([mu]), np.array([epsilon]))[0])
    assert found == pytest.approx(truth, rel=1e-9, abs=1e-13)


def test_what_is_added_up_is_rounded_up():
    values = np.array([0.0, 5e-324, 1e-9, 0.1, 1.0, 3e40])
    rounded = _next_up(values)
    assert rounded[0] == 0.0
    assert (rounded[1:] > values[1:]).all()
    assert (rounded[2:] <= values[2:] * (1 + 1e-15)).all()


@pytest.mark.parametrize(
    ("spent", "largest"),
    [
        ([], 3.0),
        ([0.5, 0.5], 3.0),
        ([0.9, 0.9], math.sqrt(9 - 0.81)),
        ([2.5], 2.0),
        ([2.0], 5**0.5),
    ],
)
def test_an_odometer_says_the_largest_step_that_still_fits(spent, largest):
    """In this round or in a later one, of increments 1, 3 and 2."""
    odometer = Odometer([1, 3, 2])
    for mu in spent:
        odometer.commit(mu)
    left = odometer.left()
    assert left == pytest.approx(largest, rel=1e-12)
    with pytest.raises(InputError):
        odometer.commit(math.nextafter(left, 9.0))
    odometer.commit(left)
