"""Files of benchmark results: what the schema says is refused in one line, the rest is shown."""

from __future__ import annotations

import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # benchmarks/ is no part of what is installed

from benchmarks import results  # noqa: E402
from benchmarks.peers.answers import Answer, Outcome  # noqa: E402
from symdp.errors import InputError  # noqa: E402

README = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
SHOWN = json.loads(re.search(r"```json\n(.*?)```", README, re.S)[1])
HALF = (Fraction(1, 2), Fraction(1, 2))


def changed(**row):
    """Return the README's file as text, its row changed; a key is left out for an Ellipsis."""
    made = {**SHOWN["rows"][0], **row}
    return json.dumps({**SHOWN, "rows": [{k: v for k, v in made.items() if v is not ...}]})


def test_the_schema_is_that_of_the_table():
    assert json.loads(results.SCHEMA.read_text("utf-8")) == results.schema()
    assert set(results.schema()["$defs"]["row"]["required"]) >= {
        "question", "truth", "program", "version", "answer", "seconds", "memory",
    }  # fmt: skip


def test_the_file_of_the_readme_is_read_and_shown():
    shown = results.tables(results.read(json.dumps(SHOWN)))
    assert "## densities/files/moyal.toml, s = 2, n = 5: δ at ε = 6.4\n" in shown
    assert "| mine 1.0 |  | 0.000111 | +8.4e-03 | 20 ms | 5 MB |  |" in shown
    wrong = results.tables(results.read(changed(answer=1.09e-4)))
    assert "| 0.000109 | -9.8e-03 | 20 ms | 5 MB | **below the truth** although an upper" in wrong
    none = results.tables(results.read(changed(answer=None, kind=None, failure="hangs")))
    assert "| mine 1.0 |  |  |  | 20 ms | 5 MB | hangs |" in none


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1", "no JSON"),
        ("[]", "the file must be an object of format"),
        ("{}", "the file lacks format"),
        ('{"format": NaN}', "NaN is no number"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ("[" * 100_000, "no JSON"),
        (json.dumps({**SHOWN, "format": "x"}), "format: 'x' must be one of symdp benchmark"),
        (json.dumps({**SHOWN, "measured": "today"}), "must be a day YYYY-MM-DD"),
        (json.dumps({**SHOWN, "rows": 3}), "rows: 3 must be of type array"),
        (json.dumps({**SHOWN, "rows": [3]}), "row 1 must be an object"),
        (changed(answers=1), "no key 'answers'; did you mean 'answer'?"),
        (changed(seconds=...), "row 1 lacks seconds: for one answer"),
        (changed(seconds=-1), "row 1, seconds: -1 must be at least 0"),
        (changed(memory=True), "memory: True must be of type number or null"),
        (changed(asks="sigma"), "asks: 'sigma' must be one of delta, epsilon"),
        (changed(asks=[]), "asks: [] must be one of"),
        (changed(kind="proof"), "kind: 'proof' must be one of exact, upper"),
        (changed(answer="1/0"), "answer: '1/0' must be a decimal"),
        (changed(answer="1e99999"), "must be a decimal"),
        (changed(answer=None), "give answer, or null and failure"),
        (changed(failure="none"), "give answer, or null and failure"),
        (changed(answer=None, failure="hangs"), "kind: null where there is no answer"),
        (changed(lower=0.3, upper=0.2), "row 1: lower must not be above upper"),
        (changed(truth={}), "row 1, truth lacks lower"),
        (changed(truth=[]), "row 1, truth must be an object"),
        (changed(truth={"lower": 0.2, "upper": 0.1, "proof": ""}), "lower must not be above"),
        (changed(truth={"lower": None, "upper": 0.1, "proof": ""}), "both ends must be numbers"),
        (changed(question="x" * 501), "is longer than 500 letters"),
        (changed().replace("0.000111", "1e400"), "is beyond every double"),
    ],
)
def test_what_is_wrong_is_one_line(text, said):
    with pytest.raises(InputError, match=re.escape(said)) as raised:
        results.read(text)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_deltas_below_every_double_are_compared():
    truth = {"lower": "1.0e-400", "upper": "1.1e-400", "proof": "certify"}
    shown = results.tables(results.read(changed(answer="2.1e-400", truth=truth)))
    assert "| 2.1e-400 | +1.0e+00 |" in shown
    shown = results.tables(results.read(changed(answer="1e-401", truth=truth, kind="estimate")))
    assert "| 1e-401 | -9.0e-01 |" in shown
    assert "below the truth" in shown


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_answer_that_is_no_number_is_a_failure(value):
    outcome = Outcome(Answer(value, "exact"))
    row = results.row(("q", "delta", 1.0), HALF, ("p", "", "1"), outcome, 0.1)
    assert row["answer"] is None
    assert row["failure"] == f"returns {value}"
    results.read(results.file_of([row]))


def test_ends_of_a_row_are_rounded_outwards():
    third = Fraction(1, 3)
    outcome = Outcome(Answer(0.3, "exact", lower=third, upper=third))
    row = results.row(("q", "delta", 1.0), (third, third), ("p", "", "1"), outcome, None)
    for held in (row, row["truth"]):
        assert Fraction(held["lower"]) < third < Fraction(held["upper"])


@pytest.mark.parametrize("name", ["peers", "days", "densities"])
def test_measured_results_are_read_and_keep_what_they_claim(name, capsys):
    path = ROOT / "benchmarks" / "measured" / f"{name}.json"
    assert results.main(["check", str(path)]) == 0
    shown = capsys.readouterr().out
    rows = results.read(path.read_text("utf-8"))["rows"]
    assert shown.count("\n| symdp ") == sum(row["program"] == "symdp" for row in rows) > 5
    wrong = r"^\| symdp .*\*\*(below|above|returns|its)"  # on the wrong side of a proof
    assert not re.search(wrong, shown, re.M)


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    path = tmp_path / "sent.json"
    path.write_text(changed(seconds=-1))
    assert results.main(["check", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"{path}: row 1, seconds: -1 must be at least 0\n"
    assert results.main(["check", str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert results.main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == results.schema()
    assert results.main([]) == 2
