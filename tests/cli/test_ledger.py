"""`symdp ledger`: add, epsilon, show and plot, on a file."""

import json

import pytest
from shell import Shell

import symdp
from symdp import Ledger, mechanisms


@pytest.fixture
def shell(capsys):
    return Shell(capsys)


@pytest.fixture
def file(tmp_path):
    return str(tmp_path / "budget.json")


def test_steps_are_added_and_asked(shell, file):
    assert shell("ledger add", file, "gaussian", "sigma=2", "-n", "600").code == 0
    shown = shell("ledger add", file, "gaussian", "sigma=2", "-n", "400", "--json").json
    assert shown["count"] == 1000
    assert shown["steps"] == [
        {"step": "gaussian(sigma=2)", "title": "Gaussian mechanism", "count": 1000}
    ]
    assert shown["relation"] == "add_remove"
    answer = shell("ledger epsilon", file, "--delta", "1e-5", "--json").json
    exact = symdp.compose(mechanisms.gaussian(sigma=2), 1000).epsilon(1e-5)
    assert answer["epsilon"] == exact.epsilon
    text = shell("ledger show", file).out
    assert "1000" in text
    assert "protects one record added to or removed from the data" in text


def test_other_neighbours_are_refused_and_nothing_is_added(shell, file):
    shell("ledger add", file, "gaussian", "sigma=2")
    ran = shell("ledger add", file, "gaussian", "sigma=2", "--relation", "substitution")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "one composition has one neighbouring relation" in ran.err
    assert Ledger.load(file).n == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ledger show {}", "cannot be read"),
        ("ledger epsilon {} --delta 2", "--delta 2"),
        ("ledger add {}", "MECHANISM is missing"),
        ("ledger add {} gaussian", "sigma"),
    ],
)
def test_one_line_and_code_two(shell, file, line, words):
    ran = shell(line.format(file))
    assert (ran.code, ran.err.count("\n"), ran.out) == (2, 1, "")
    assert words in ran.err


def test_an_edited_file_is_refused(shell, file):
    shell("ledger add", file, "laplace", "b=2")
    with open(file, encoding="utf-8") as held:
        edited = json.load(held)
    edited["ledger"]["steps"][0]["count"] = 2
    with open(file, "w", encoding="utf-8") as held:
        json.dump(edited, held)
    ran = shell("ledger show", file)
    assert ran.code == 2
    assert "edited or damaged" in ran.err


@pytest.fixture
def spent(shell, file):
    shell("ledger add", file, "laplace", "b=30", "-n", "20", "--note", "weekly \u202ecounts")
    shell("ledger add", file, "gaussian", "sigma=9", "--note", "mean", "--user", "ada")
    return file


def test_groups_stand_beside_all(shell, spent):
    text = shell("ledger show", spent, "--by", "note", "--delta", "1e-5").out.splitlines()
    exact = Ledger.load(spent).epsilon(1e-5)
    assert text[0].split() == ["note", "steps", "ε", "at", "δ", "=", "1e-05", "kind"]
    assert text[1].startswith("weekly counts")
    assert text[3].split() == ["all", "21", exact.epsilon_text(), "exact"]
    assert "do not add up" in text[4]
    told = shell("ledger show", spent, "--by", "user", "--delta", "1e-5", "--json").json
    assert [(row["user"], row["count"]) for row in told["groups"]] == [("", 20), ("ada", 1)]
    assert told["all"]["epsilon"] == exact.epsilon
    entries = shell("ledger show", spent, "--json").json["entries"]
    assert [(e["note"], e["user"]) for e in entries] == [
        ("weekly \u202ecounts", ""),
        ("mean", "ada"),
    ]
    shown = shell("ledger show", spent).out
    assert shown.splitlines()[0].split() == ["date", "steps", "mechanism", "title", "note", "user"]
    assert "\u202e" not in shown


def test_a_group_without_epsilon_keeps_the_others(shell, file, tmp_path):
    leak = tmp_path / "leak.toml"
    leak.write_text(
        'name = "leak"\nvariable = "x"\nsupport = [0, 1, 2]\n[pair]\n'
        'P = ["1/4", "1/4", "1/2"]\nQ = ["1/2", "1/2", "0"]\n',
        encoding="utf-8",
    )
    shell("ledger add", file, str(leak), "--note", "leak")
    shell("ledger add", file, "laplace", "b=3", "--note", "counts")
    told = shell("ledger show", file, "--by", "note", "--delta", "1e-5")
    assert [line.split()[2] for line in told.out.splitlines()[1:4]] == [
        "none",
        "0.333313333234",
        "none",
    ]
    assert "none: delta = 1e-05 is not above the probability 0.5" in told.out
    told = shell("ledger show", file, "--by", "note", "--delta", "1e-5", "--json").json
    assert [row["epsilon"] is None for row in (*told["groups"], told["all"])] == [True, False, True]


@pytest.mark.slow
def test_a_figure_is_drawn(shell, spent, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("spent.svg", "spent.png", "spent.pdf"):
        where = tmp_path / name
        ran = shell("ledger plot", spent, "--delta", "1e-5", "--epsilon", "2", "-o", str(where))
        assert (ran.code, where.stat().st_size > 1000) == (0, True)
        assert f"drawn: {where}" in ran.out
    by_date = shell(
        "ledger plot", spent, *["--delta", "1e-5", "--by", "date", "-o"], str(tmp_path / "d.svg")
    )
    assert by_date.code == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ledger show {} --by note", "give both"),
        ("ledger show {} --delta 1e-5", "give both"),
        ("ledger show {} --by hour --delta 1e-5", "it is 'note', 'user', 'date'"),
        ("ledger plot {} --delta 1e-5 -o x.gif", ".svg, .pdf or .png"),
        ("ledger plot {} --delta 1e-5 --by hour -o x.svg", "it is 'entry' or 'date'"),
        ("ledger add {} laplace b=2 --user \x1b[31m", "user: character 1"),
    ],
)
def test_wrong_options_are_one_line(shell, spent, line, words):
    ran = shell(line.format(spent))
    assert (ran.code, ran.err.count("\n"), ran.out) == (2, 1, "")
    assert words in ran.err
