"""`make run`: it says at once what it does, a line a stage, and ends quietly when it is stopped."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "run.py"


@pytest.fixture
def example(monkeypatch, tmp_path):
    """Import the script as a module; its figure goes to a folder of the test."""
    spec = importlib.util.spec_from_file_location("first_run", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FIGURE", tmp_path / "out" / "profile.svg")
    return module


@pytest.mark.usefixtures("interrupts_are_heeded")
def test_it_stops_in_one_line_and_with_the_shell_s_code():
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    first = process.stdout.readline()
    assert "two jobs" in first
    seen = ""
    while "K(t) = " not in seen:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        seen += line
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    rest, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (130, "interrupted\n"), rest
    assert re.search(r"read the density \.\.\. [\d.]+ s$", seen, re.MULTILINE)
    assert re.search(r"loss and its CGF \.\.\. [\d.]+ s$", seen, re.MULTILINE)


def test_the_training_job_is_below_its_bounds(example, capsys):
    assert example.training()
    shown = capsys.readouterr().out
    assert "2.31018413454" in shown  # 2.310184134531…, rounded up
    assert "2.922290" in shown


@pytest.mark.slow
def test_what_the_contour_gives_is_compared_with_what_is_proved(example, capsys, monkeypatch):
    from symdp.questions.composition import Composition

    class Proof:
        lower_decimal, upper_decimal = "4.5e0", "4.6e0"

    monkeypatch.setattr(Composition, "certify_epsilon", lambda *_: Proof)
    monkeypatch.setattr(example, "POINTS", 3)
    assert not example.density()
    assert "NOT CHECKED" in capsys.readouterr().out
    assert example.FIGURE.read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.slow
def test_both_jobs_check(example, capsys):
    assert example.main() == 0
    shown = capsys.readouterr().out
    stages = re.findall(r" \.\.\. [\d.]+ s$", shown, re.MULTILINE)
    assert len(stages) == 7
    assert "4.38481079" in shown
    assert "NOT CHECKED" not in shown
