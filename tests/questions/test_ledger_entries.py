"""Date, note and user of a ledger's entries: kept, grouped, drawn, and never obeyed."""

import copy
import json
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from symdp import Ledger, compose, mechanisms
from symdp.errors import InputError
from symdp.questions import ledger as module

STEP = mechanisms.gaussian(sigma=9).subsample("poisson", "1/9")
NOISE = mechanisms.laplace(b=30)


class Clock:
    """A clock that a test sets."""

    time = datetime(2026, 3, 1, 23, 59, 58, tzinfo=timezone(timedelta(hours=13)))


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "_now", lambda: f"{clock.time.isoformat()}")
    return clock


@pytest.fixture
def spending(clock):
    ledger = Ledger([(NOISE, 2)])
    ledger.add(NOISE, 3, note="histogram", user="ada")
    ledger.add(STEP, 40, note="mean")
    ledger.add(NOISE, note="histogram", user="ada")
    clock.time += timedelta(seconds=5)
    ledger.add(NOISE, 7, note="histogram", user="bob")
    ledger.add(NOISE, 8, note="histogram", user="ada")
    return ledger


def test_equal_steps_of_a_day_are_one_entry(spending):
    told = [(e.mechanism, e.n, e.date, e.note, e.user) for e in spending.entries]
    assert told == [
        (NOISE, 2, "", "", ""),
        (NOISE, 4, "2026-03-01T23:59:58+13:00", "histogram", "ada"),
        (STEP, 40, "2026-03-01T23:59:58+13:00", "mean", ""),
        (NOISE, 7, "2026-03-02T00:00:03+13:00", "histogram", "bob"),
        (NOISE, 8, "2026-03-02T00:00:03+13:00", "histogram", "ada"),
    ]
    assert spending.steps == ((NOISE, 21), (STEP, 40))
    assert (len(spending), spending.n) == (2, 61)


def test_the_date_is_the_present_one_with_a_time_zone():
    before = datetime.now(UTC).replace(microsecond=0)
    ledger = Ledger()
    ledger.add(NOISE)
    date = datetime.fromisoformat(ledger.entries[0].date)
    assert before <= date <= datetime.now(UTC)


def test_entries_survive_their_file_and_are_not_joined(spending, clock, tmp_path):
    spending.save(tmp_path / "budget.json")
    with Ledger.open(tmp_path / "budget.json") as again:
        assert again.entries == spending.entries
        again.add(NOISE, note="histogram", user="ada")
    assert len(Ledger.load(tmp_path / "budget.json").entries) == len(spending.entries) + 1
    for other in (copy.deepcopy(spending), Ledger.from_state_dict(spending.state_dict())):
        assert other.entries == spending.entries


def test_a_mechanism_is_written_once(spending):
    steps = spending.state_dict()["steps"]
    assert [type(step["mechanism"]) for step in steps] == [dict, int, dict, int, int]
    assert [step["mechanism"] for step in (steps[1], *steps[3:])] == [1, 1, 1]
    assert set(steps[0]) == {"mechanism", "count"}


def test_files_of_version_four_read_as_they_were(spending):
    state = spending.state_dict()
    old = {
        **state,
        "version": 4,
        "steps": [{k: step[k] for k in ("mechanism", "count")} for step in state["steps"][::2][:2]],
    }
    read = Ledger.from_state_dict(json.loads(json.dumps(old)))
    assert read.steps == ((NOISE, 2), (STEP, 40))
    assert {(e.date, e.note, e.user) for e in read.entries} == {("", "", "")}


@pytest.mark.parametrize(
    ("what", "counts"),
    [
        ("note", {"": 2, "histogram": 19, "mean": 40}),
        ("user", {"": 42, "ada": 12, "bob": 7}),
        ("date", {"": 2, "2026-03-01": 44, "2026-03-02": 15}),
    ],
)
def test_groups_have_their_own_epsilon(spending, what, counts):
    groups = spending.by(what)
    assert {name: group.n for name, group in groups.items()} == counts
    assert groups[""].epsilon(1e-5) == compose(groups[""].steps).epsilon(1e-5)
    assert (
        max(group.epsilon(1e-5).epsilon for group in groups.values())
        < spending.epsilon(1e-5).epsilon
    )


def test_groups_are_those_that_there_are(spending):
    with pytest.raises(InputError, match="it is 'note', 'user', 'date'"):
        spending.by("hour")
    with pytest.raises(InputError, match=r"by \[\]"):
        spending.by([])


def test_spent_grows_to_what_all_have_spent(spending):
    curve = spending.spent(1e-5)
    epsilons = curve.epsilon.tolist()
    assert epsilons == sorted(epsilons)
    assert len(curve) == len(spending.entries)
    assert curve[-1] == spending.epsilon(1e-5)
    assert curve[0] == compose(NOISE, 2).epsilon(1e-5)
    with pytest.raises(InputError, match="empty"):
        Ledger().spent(1e-5)


@pytest.mark.slow
def test_a_long_ledger_is_asked_at_a_hundred_places(clock):
    ledger = Ledger()
    for day in range(250):
        clock.time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
        ledger.add(mechanisms.gaussian(sigma=9))
    curve = ledger.spent(1e-5)
    assert len(curve) == 100
    assert (curve[0].n, curve[-1].n) == (3, 250)


def test_a_figure_has_both_lines(spending):
    pytest.importorskip("matplotlib")
    (spent, budget), texts = _drawn(spending)
    assert texts == ["ε spent at δ = 1e-05, exact", "budget ε = 2"]
    assert spent.get_xdata().tolist() == [0, 1, 2, 3, 4, 5]
    assert spent.get_ydata()[-1] == spending.epsilon(1e-5).at_most
    assert set(budget.get_ydata()) == {2.0}
    with pytest.raises(InputError, match="entry 1 has no date"):
        spending.plot(1e-5, by="date")
    dated = spending.by("user")["ada"]
    (spent, _), _ = _drawn(dated, by="date")
    assert math.isclose((spent.get_xdata()[-1] - spent.get_xdata()[0]).total_seconds(), 5.0)
    with pytest.raises(InputError, match="by 'hour'"):
        spending.plot(1e-5, by="hour")
    for budget in (math.nan, -1, "much"):
        with pytest.raises(InputError, match="budget"):
            spending.plot(1e-5, budget)


def _drawn(ledger, **given):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert ledger.plot(1e-5, 2, axes, **given) is axes
    return axes.lines, [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_history_has_its_note():
    ledger = Ledger()
    ledger.add_history(mechanisms.gaussian, [(2.0, 0.01, 600)], "poisson", note="pretraining")
    assert [(e.n, e.note) for e in ledger.entries] == [(600, "pretraining")]


@pytest.mark.parametrize(
    "text", ["a\nb", "\x1b[31m", "\x00", "\u2028", "\ud800", "x" * 1001, 3, None]
)
def test_a_label_is_a_line_of_text(spending, text):
    with pytest.raises(InputError, match="note") as refused:
        spending.add(NOISE, note=text)
    assert len(str(refused.value).splitlines()) == 1
    state = spending.state_dict()
    state["steps"][1]["user"] = text
    with pytest.raises(InputError, match="user"):
        Ledger.from_state_dict(state)
    assert spending.n == 61


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"date": "2026-03-01T10:00:00"}, "time zone"),
        ({"date": "yesterday"}, "time zone"),
        ({"date": 5}, "date"),
        ({"mechanism": 2}, "none before it"),
        ({"mechanism": 0}, "none before it"),
        ({"mechanism": True}, "a mechanism is an object"),
        ({"place": "x"}, "an object of"),
    ],
)
def test_what_no_ledger_writes_is_refused(spending, change, words):
    state = spending.state_dict()
    state["steps"][1] |= change
    with pytest.raises(InputError, match=words):
        Ledger.from_state_dict(state)


def test_a_notebook_shows_labels_as_text():
    ledger = Ledger()
    ledger.add(NOISE, note="<script>", user="a & b")
    shown = ledger._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "a &amp; b" in shown
    assert "<script>" not in shown
