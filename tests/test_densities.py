"""benchmarks/densities: files are those of the tests' strangers, and answers keep the truths."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # benchmarks/ is no part of what is installed

from benchmarks.densities import suite  # noqa: E402
from symdp.errors import SymdpError  # noqa: E402
from symdp.interrupt import time_limit  # noqa: E402

ROWS = {row["file"]: row for row in suite.truths()}
QUICK = ("uniform-with-laplace-tails", "rounded-laplace", "asymmetric-laplace")  # a second or so
REFUSED = ("even-ones-favoured",)  # its (−1)^k has no logarithm that the parser knows
PATIENCE = 60.0  # processor seconds of an answer: what takes longer is no wrong number


def test_every_file_is_there_as_the_tests_have_it():
    assert {path.stem for path in suite.FILES.glob("*.toml")} == set(ROWS) == set(suite.strangers())
    for own, stranger in suite.strangers().items():
        text = (suite.FILES / f"{own}.toml").read_text("utf-8")
        assert text == suite.file_of(stranger, own)
        assert ROWS[own]["values"] == dict(stranger.values)


def test_every_question_has_a_truth():
    for row in ROWS.values():
        assert [question["steps"] for question in row["questions"]] == list(suite.COUNTS)
        for question in row["questions"]:
            assert set(question) == {"steps", "epsilon", "lower", "upper", "proof"}
            assert question["proof"] in {suite.CERTIFY, suite.GRID}
            assert 0 <= float(question["lower"]) <= float(question["upper"]) <= 1
            assert float(question["epsilon"]) > 0


def test_the_page_is_that_of_the_truths():
    assert (suite.HERE / "README.md").read_text("utf-8") == suite.page()


def agrees(own: str) -> int:
    """Ask all questions of a file; return how many had an answer."""
    answered = 0
    for question in ROWS[own]["questions"]:
        try:  # a refusal is no wrong number
            with time_limit(PATIENCE):
                found = suite.composed(ROWS[own], question["steps"]).delta(question["epsilon"])
        except SymdpError:
            continue
        answered += 1
        low, high = math.exp(found.log_lower), math.exp(found.log_upper)
        assert high >= float(question["lower"])
        if found.kind != "bound":
            assert low <= float(question["upper"])
    return answered


@pytest.mark.quick_cases("rounded-laplace")
@pytest.mark.parametrize("own", QUICK)
def test_answers_agree_with_truths(own):
    assert agrees(own) == len(suite.COUNTS)


@pytest.mark.slow
@pytest.mark.parametrize("own", [*(own for own in ROWS if own not in QUICK)][::2])
def test_all_answers_agree_with_truths(own):
    assert (agrees(own) > 0) != (own in REFUSED)


@pytest.mark.slow
@pytest.mark.parametrize("own", QUICK)
def test_the_grid_gives_its_truths_again(own):
    for old, new in zip(
        ROWS[own]["questions"], suite.questions(suite.strangers()[own]), strict=True
    ):
        assert old["epsilon"] == new["epsilon"]
        assert float(old["lower"]) <= float(new["upper"])
        assert float(new["lower"]) <= float(old["upper"])
