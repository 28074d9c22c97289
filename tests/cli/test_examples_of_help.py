"""The examples that end every command's help are run, in a folder of their own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
import typer
from pages import ROOT

from symdp.cli.app import app, epilog
from symdp.cli.table import EXAMPLES

IN_ORDER = ("filter", "ledger", "card", "check")  # whose examples go on with a file made before
SLOW = (
    "symdp calibrate",
    "symdp report",
    "symdp train",
    "symdp card",
    "symdp derive examples",
    "symdp verify",
)
LINES = [
    pytest.param(line, id=line, marks=[pytest.mark.slow] * line.startswith(SLOW))
    for command, lines in EXAMPLES.items()
    for line in lines
    if command.split()[0] not in IN_ORDER
]
SERIES = {
    "filter": [EXAMPLES[f"filter {name}"][0] for name in ("new", "ask", "commit", "status")],
    "ledger": [EXAMPLES[f"ledger {name}"][0] for name in ("add", "epsilon", "show")],
    "card": EXAMPLES["card"],
    "check": (EXAMPLES["certify"][1], *EXAMPLES["check"]),
}


def help_of(command, path):
    """Yield (path, help) of a command and of all below it."""
    context = typer.main.get_command(app).make_context("symdp", [], resilient_parsing=True)
    with context:
        yield path, command.get_help(context)
    for name, one in getattr(command, "commands", {}).items():
        yield from help_of(one, f"{path} {name}".strip())


def test_every_help_ends_with_an_example():
    found = dict(help_of(typer.main.get_command(app), ""))
    found.pop("")
    assert set(EXAMPLES) == set(found) - {"filter", "ledger"}
    for path, text in found.items():
        examples = [line.strip() for line in epilog(path).splitlines()[2:]]
        assert examples
        for example in examples:
            assert example.startswith(f"symdp {path}")
            assert f"  {example}\n" in text + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    np.save(tmp_path / "norms.npy", np.full((4, 3), 0.5))
    monkeypatch.chdir(tmp_path)


@pytest.mark.quick_cases(
    "symdp list",
    "symdp methods",
    "symdp derive gaussian --format javascript",
    "symdp delta laplace b=2 -n 1 --epsilon 0.4",
    "symdp delta laplace b=20 -n 50 --epsilon 1 --method prv --eps-error 1e-3",
    "symdp epsilon gaussian sigma=1.12 --sampling poisson --rate 256/60000 -n 14063 --delta 1e-5",
    "symdp curve gaussian sigma=2 -n 10 --epsilon-range 0 5 --plot curve.svg",
    "symdp certify gaussian sigma=2 -n 10 --epsilon 3 --digits 8",
    'symdp check-claim "\\u03b5 = 17 at \\u03b4 = 1e-5" gaussian sigma=2 -n 30',
    "symdp renyi laplace b=2 -n 10 --order 2,8",
    "symdp audit --tp 90/100 --fp 5/100 --delta 1e-5",
    "symdp audit gaussian sigma=5 -n 1 --tp 200/400 --fp 40/400",
)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("line", LINES)
def test_examples_run(shell, line):
    ran = shell("", *shlex.split(line)[1:])
    assert (ran.code, ran.err) == (0, "")
    assert ran.out


@pytest.mark.quick_cases("filter", "ledger")
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", IN_ORDER)
def test_examples_run_one_after_another(shell, name):
    for line in SERIES[name]:
        ran = shell("", *shlex.split(line)[1:])
        assert (ran.code, ran.err) == (0, ""), line


@pytest.mark.quick_cases("symdp delta ga-gaussian")
@pytest.mark.parametrize(
    ("words", "offered"),
    [("symdp cer", "certify"), ("symdp delta ga", "gaussian"), ("symdp delta --epsi", "--epsilon")],
)
def test_a_shell_is_told_what_may_follow(words, offered):
    asking = {"_SYMDP_COMPLETE": "complete_bash", "COMP_WORDS": words}
    asking["COMP_CWORD"] = str(len(words.split()) - 1)
    ran = subprocess.run(
        [sys.executable, "-m", "symdp"],
        env={**os.environ, **asking}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert ran.stdout.split() == [offered]
