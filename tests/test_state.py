"""An answer, its ends and its route are those of its question: nothing asked before counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def told(*options: str) -> str:
    command = [sys.executable, "-m", "benchmarks.frozen", "state", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("case", ["built-in: 3 gaussian sigma=4"])
def test_order_threads_and_other_questions_change_nothing(case):
    assert told("--only", case) == "1 cases asked, 0 answers depend on what was asked before\n"


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(1, 6))
def test_so_it_is_of_every_kind_of_case(part):
    said = told("--part", f"{part}/25")
    assert said.endswith(" cases asked, 0 answers depend on what was asked before\n"), said
    assert int(said.split()[0]) > 10
