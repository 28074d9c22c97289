"""Values and figures of noise on the command line."""

from __future__ import annotations

import json
import statistics

import pytest
from shell import Shell

from symdp import mechanisms


def test_values_are_those_of_the_library(shell: Shell):
    ran = shell("sample laplace b=2 --size 5 --seed 3 --json").json
    assert ran["values"] == mechanisms.laplace(b=2).sample(5, 3).tolist()
    assert "no release" in ran["for"]


def test_values_of_the_integers_are_written_as_such(shell: Shell):
    lines = shell("sample discrete_gaussian sigma=3 --size 400 --seed 1").out.split()
    values = [int(line) for line in lines]
    assert len(values) == 400
    assert abs(statistics.mean(values)) < 0.6
    assert 2.5 < statistics.stdev(values) < 3.5


def test_two_calls_differ_without_a_seed(shell: Shell):
    assert shell("sample laplace b=2").out != shell("sample laplace b=2").out


@pytest.mark.quick_cases("pdf")
@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_figure_is_drawn(shell: Shell, tmp_path, ending):
    file = tmp_path / f"noise.{ending}"
    assert shell(f"plot laplace b=2 -o {file}").out == f"drawn: {file}\n"
    assert file.stat().st_size > 4_000


def test_noise_on_vectors_is_drawn(shell: Shell, tmp_path):
    values = shell("sample multivariate_t nu=3 s=1 d=3 --size 2 --seed 5").out.splitlines()
    assert [len(json.loads(value)) for value in values] == [3, 3]
    file = tmp_path / "t.png"
    assert shell(f"plot multivariate_t nu=3 s=1 d=3 -o {file}").out == f"drawn: {file}\n"
    assert file.stat().st_size > 4_000


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sample laplace", "needs a value for b"),
        ("sample laplace b=2 --size 0", "from 1 to 1000000"),
        ("sample laplace b=2 --seed x", "--seed"),
        ("sample l2_laplace s=1 d=3", "no additive noise"),
        ("sample randomized_response epsilon_0=1", "randomized_response"),
        ("plot laplace b=2 -o noise.txt", ".svg"),
        ("plot laplace b=2", "-o"),
        ("sample laplace b=2 --rate 0.1", "--rate"),
    ],
)
def test_what_is_wrong_is_said(shell: Shell, line, told):
    ran = shell(line)
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1
