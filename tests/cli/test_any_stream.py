"""Answers survive any encoding, and a stream that cannot be written is one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from symdp import Ledger, compose, mechanisms
from symdp.cli import main
from symdp.page.node import transliterated

ASK = ("epsilon", "gaussian", "sigma=4", "-n", "3", "--delta", "1e-5")


def run(*words, encoding="utf-8", **streams):
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "symdp", *words]
    return subprocess.run(command, check=False, env=environment, timeout=100, **streams)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_every_encoding_has_an_answer(encoding):
    ran = run(*ASK, encoding=encoding, capture_output=True)
    assert ran.returncode == 0
    assert ran.stdout.decode("ascii").startswith("epsilon(delta = 1e-05) = 1.69803520477\n")
    wrong = run(*ASK[:-1], "2", encoding=encoding, capture_output=True)
    assert wrong.returncode == 2
    assert wrong.stderr == b"symdp: --delta 2: delta must lie strictly between 0 and 1\n"


@pytest.mark.quick_cases("words1")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("words", [ASK, ("list",)])
def test_a_full_disk_is_one_sentence(words):
    with open("/dev/full", "wb") as full:
        ran = run(*words, stdout=full, stderr=subprocess.PIPE)
    assert ran.returncode == 1
    assert b"standard output cannot be written" in ran.stderr
    assert ran.stderr.count(b"\n") == 1


def test_a_closed_output_is_one_sentence():
    words = " ".join(ASK)
    ran = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m symdp {words} >&-"],
        check=False, stderr=subprocess.PIPE, timeout=100,
    )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stderr.startswith(b"symdp: the standard output is closed")
    assert ran.stderr.count(b"\n") == 1


def test_words_for_letters():
    assert transliterated("Σ μ² ≤ ρ·∞ → λ₁ café „x“") == 'Sigma mu^2 <= rho*oo -> lambda_1 cafe ?x"'
    assert transliterated("plain") == "plain"


def test_norms_and_results_as_csv(tmp_path, capsys):
    norms, found = tmp_path / "norms.csv", tmp_path / "out.csv"
    norms.write_text("first,second\n0.5,1.5\n1,0\n", encoding="utf-8")
    words = ["--multiplier", "2", "--clip", "1", "--rate", "1", "--delta", "1e-5"]
    words += ["--layout", "records-steps", "--grid", "norm:4", "--fixed"]
    assert main(["individual", str(norms), *words, "-o", str(found)]) == 0
    assert "1 of 4 norms lie above the clip" in capsys.readouterr().err
    head, *rows = found.read_text(encoding="utf-8").splitlines()
    assert head.split(",")[0] in ("record", "id", "value", "epsilon")
    assert len(rows) == 2
    np.save(tmp_path / "one.npy", np.array([0.5, 1.0, 0.0]))
    assert main(["individual", str(tmp_path / "one.npy"), *words]) == 0
    assert "ε of 3 records" in capsys.readouterr().out
    norms.write_text("1,2\n3,x\n", encoding="utf-8")
    assert main(["individual", str(norms), *words]) == 2
    assert "row 2 holds what is no number" in capsys.readouterr().err


def test_what_is_printed_is_what_was_asked(tmp_path, capsys):
    assert (
        main(["certify", "gaussian", "sigma=2", "-n", "10", "--delta", "1e-5", "--digits", "6"])
        == 0
    )
    head, low, high, *_ = capsys.readouterr().out.splitlines()
    assert head == "ε(δ = 1e-05) lies between"
    assert [len(end.strip().split("e")[0].replace(".", "")) for end in (low, high)] == [6, 6]
    assert float(low) < float(high)
    assert main(["list", "laplace", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mechanisms"]["laplace"]["noise"]["density"]
    assert repr(Ledger([(mechanisms.laplace(b=1), 3)])) == "Ledger(1 distinct step, 3 in all)"
    one = compose(mechanisms.zcdp(rho=1), 1).epsilon(1e-5)
    assert str(one).endswith("bound by renyi, both directions, 1 step")


def test_a_drawn_curve_overlays_methods_and_prints_no_table(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    words = [
        "curve",
        "gaussian",
        "sigma=2",
        "-n",
        "10",
        "--points",
        "5",
        "--epsilon-range",
        "0",
        "5",
    ]
    both = ["--method", "contour", "--method", "clt"]
    assert main([*words, *both, "--plot", str(tmp_path / "two.svg")]) == 0
    out = capsys.readouterr().out
    assert "drawn: " in out
    assert "0.785994694714" not in out
    assert "clt" in (tmp_path / "two.svg").read_text(encoding="utf-8")
    assert main([*words, *both]) == 2
    assert "give --plot FILE too" in capsys.readouterr().err
