"""`symdp compare`: noises of one size side by side."""

import pytest
from shell import Shell

from symdp import compare, mechanisms


@pytest.fixture
def shell(capsys):
    return Shell(capsys)


@pytest.mark.slow
def test_json_is_what_the_library_says(shell):
    rows = shell("compare laplace gaussian sigma=2 --std 5 --delta 1e-5 --json").json["noises"]
    known = compare([mechanisms.laplace, mechanisms.gaussian(sigma=2)], delta=1e-5, std=5)
    for row, one in zip(rows, known, strict=True):
        assert row["mechanism"] == one.mechanism.name
        assert row["epsilon"] == one.guarantee.epsilon
        assert row["std"] == one.size.std
        assert row["miss_rate"] == one.miss_rate
        assert row["protects"] == "one record added to or removed from the data"
    assert [row["count"] for row in rows] == [1, 1]


@pytest.mark.slow
def test_a_table_and_a_figure(shell, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "noises.svg"
    ran = shell("compare gaussian --mean-abs 3 -n 2 --delta 1e-5 --plot", str(path))
    assert ran.code == 0, ran.err
    assert "gaussian sigma=3.7599424119" in ran.out
    assert path.read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("gaussian --delta 1e-5", "--std S or --mean-abs A, one of them"),
        ("--std 3 --delta 1e-5", "MECHANISM is missing"),
        ("student_t --std 3 --delta 1e-5", "values for all but one of nu, s"),
        ("gaussian sigma=1 sigma=2 --std 3 --delta 1e-5", "given twice"),
        ("gaussian --std=-1 --delta 1e-5", "must be positive"),
        ("gaussian --std 1 --delta 2", "strictly between 0 and 1"),
        ("randomized_response epsilon_0=1 --std 1 --delta 1e-5", "no additive noise"),
        ("gaussian --std 1 --delta 1e-5 --plot here.gif", ".svg, .pdf or .png"),
    ],
)
def test_wrong_words_are_one_line(shell, words, told):
    ran = shell(f"compare {words}")
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1
