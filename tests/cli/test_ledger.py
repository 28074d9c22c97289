"""`symdp ledger`: add, epsilon and show, on a file."""

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
    assert Ledger.load(file).count == 1


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
