"""Reports and comparisons of shuffled answers, and the page with sliders that is not there."""

from __future__ import annotations

import pytest
from shell import Shell

FILE = """
name = "answers"
variable = "y"
[parameters]
b = "positive"
[local]
input = "x"
inputs = [0, 1]
density = "exp(-abs(y - x)/b)/(2*b)"
"""


@pytest.fixture
def shell(capsys):
    return Shell(capsys)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "answers.toml"
    file.write_text(FILE, encoding="utf-8")
    return file


@pytest.mark.slow
def test_a_report_has_the_bound_its_proof_attacks_and_formulas(shell, path, tmp_path):
    page = tmp_path / "report.md"
    ran = shell(f"report {path} b=1 --people 1000 --delta 1e-6 -o {page} --json")
    assert ran.code == 0, ran.err
    answers = {row["method"]: row["epsilon"] for row in ran.json["answers"]}
    assert answers["contour"] == pytest.approx(0.13019775, rel=1e-6)
    assert answers["contour"] < answers["clones"]
    text = page.read_text(encoding="utf-8")
    proved = next(line for line in text.splitlines() if line.endswith("| proved |"))
    assert 0.1302 <= float(proved.split("|")[2]) <= 0.1304
    for words in ("attack, 1 % false alarms", "gamma", "Balle"):
        assert words in text
    assert "Not evaluated: nothing" in text


def test_a_comparison_has_no_size_of_a_list(shell, path, tmp_path):
    coin = tmp_path / "coin.toml"
    laws = '[["3/4", "1/4"], ["1/4", "3/4"]]'
    coin.write_text(f'name = "coin"\n[local]\nlaws = {laws}\n', encoding="utf-8")
    ran = shell(f"compare {path} b=1 {coin} --people 200 --delta 1e-5")
    assert ran.code == 0, ran.err
    assert any(line.startswith("coin") and "–" in line for line in ran.out.splitlines())
    ran = shell(f"compare {path} {coin} --people 200 --delta 1e-5")
    assert ran.code == 2
    assert "--std S or --mean-abs A" in ran.err


@pytest.mark.slow
def test_a_certificate_says_of_which_laws_it_is(shell, path, tmp_path):
    proof = tmp_path / "proof.json"
    ran = shell(f"certify {path} b=1 --people 100 --epsilon 3/10 --certificate {proof}")
    assert ran.code == 0, ran.err
    assert "proved of the laws in the file; of all inputs from 0 to 1" in ran.out
    assert shell(f"check {proof}").code == 0


def test_sliders_are_refused_and_what_to_write_is_said(shell, path, tmp_path):
    ran = shell(f"explore {path} b=1 --people 200 -o {tmp_path / 'page.html'}")
    assert ran.code == 2
    assert "symdp report" in ran.err
