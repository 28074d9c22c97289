"""A narrow terminal cuts no number and no word, in whatever table it stands."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from symdp.page.text import table_lines

NUMBER = re.compile(r"\d[\d.]*(?:e[+-]?\d+)?")
STEPS = "gaussian sigma=2 -n 5"
COMMANDS = {
    "list": "list",
    "curve": f"curve {STEPS} --points 4",
    "curve of wide bounds": f"curve {STEPS} --points 4 --method spa-bounds",
    "tradeoff": f"tradeoff {STEPS} --alpha 0.1,0.123456789012345",
    "delta": f"delta {STEPS} --epsilon 1 --explain",
    "delta of a bound": f"delta {STEPS} --epsilon 0.30000000000000004 --method moments",
    "epsilon": f"epsilon {STEPS} --delta 1e-5 --method gdp-e",
    "train": "train --examples 100 --batch 1 --epochs 5 --delta 1e-5 --noise 2",
    "verify": f"verify {STEPS} --digits 15",
    "certify": f"certify {STEPS} --epsilon 1",
    "calibrate": "calibrate gaussian --parameter sigma -n 5 --epsilon 1 --delta 1e-5",
    "ledger": "ledger show {}/budget.json",
    "individual": "individual {}/norms.npy --multiplier 1 --clip 1 --rate 0.01 --delta 1e-5 "
    "--layout steps-records --grid norm:4 --method renyi --groups {}/labels.txt",
    "filter": "filter status {}/filter.json",
}


@pytest.mark.slow_cases("curve of wide bounds", "verify", "certify", "calibrate")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_number_of_a_wide_terminal_is_on_a_narrow_one(name, tmp_path, shell, monkeypatch):
    np.save(tmp_path / "norms.npy", np.linspace(0.1, 1.0, 60).reshape(20, 3))
    (tmp_path / "labels.txt").write_text("a_long_label b b")
    shell(f"ledger add {tmp_path}/budget.json gaussian sigma=1.2345678901 -n 5 --sampling poisson "
          "--rate 0.0123456789")  # fmt: skip
    shell(f"filter new {tmp_path}/filter.json --epsilon 1.1 --delta 1e-5")
    line = COMMANDS[name].replace("{}", str(tmp_path))
    found = {}
    monkeypatch.setenv("TERM", "dumb")
    for columns in ("200", "80", "60"):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        ran = shell(line)
        assert ran.code == 0, ran.err
        assert "…" not in ran.out
        words = set(
            re.sub(r"\d[\d.e-]* s\b|\b\d+\.\d{4}(?= *(advice)?$)", "", ran.out, flags=re.M).split()
        )
        found[columns] = words
        broken = [row for row in ran.out.splitlines() if len(row) > int(columns)]
        assert not [row for row in broken if " " in row.strip()], broken
    for columns in ("80", "60"):
        missing = {word.strip("[],;:") for word in found["200"]} - {
            word.strip("[],;:") for word in found[columns]
        }
        assert not [word for word in missing if NUMBER.search(word)]
        assert not missing


def test_a_table_wraps_its_words_and_stacks_its_numbers():
    head = ("sampling", "ε", "protects")
    rows = [("without_replacement", "4.0260487", "one record's value changed; an upper bound")]
    assert table_lines(head, rows, (1,), 60) == [
        "sampling                     ε  protects",
        "without_replacement  4.0260487  one record's value changed;",
        "                                an upper bound",
    ]
    assert table_lines(head, rows, (1,), 30) == [
        "sampling: without_replacement",
        "ε: 4.0260487",
        "protects: one record's value",
        "changed; an upper bound",
    ]
    for width in range(1, 90):
        joined = " ".join(table_lines(head, rows, (1,), width)).split()
        assert {word for row in rows for cell in row for word in cell.split()} <= set(joined)
    assert table_lines(head, [], (), 80) == ["sampling  ε  protects"]
