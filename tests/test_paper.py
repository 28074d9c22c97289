"""The draft in paper/: its references, its formulas, and tables that the package answers."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import paper

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "paper" / "paper.md").read_text("utf-8")
ENTRIES = re.findall(r"^@\w+\{([\w]+),$", (ROOT / "paper" / "paper.bib").read_text("utf-8"), re.M)


def test_every_reference_is_there_and_each_source_is_used():
    cited = re.findall(r"(?<![\w`])@(\w+)", TEXT)
    assert set(cited) == set(ENTRIES)
    assert len(ENTRIES) == len(set(ENTRIES))


def test_every_table_that_is_named_is_there():
    labels = re.findall(r"\\label\{(\w+)\}", TEXT)
    assert sorted(labels) == sorted(set(re.findall(r"\\ref\{(\w+)\}", TEXT)))
    assert sorted(labels) == sorted(paper.TABLES)
    theorems = re.findall(r"^\*\*Theorem (\d)\*\*", TEXT, re.M)
    assert theorems == [str(number) for number in range(1, len(theorems) + 1)]
    assert set(re.findall(r"\(Theorem (\d)\)", TEXT)) <= set(theorems)


def test_fences_dollars_and_brackets_are_closed():
    assert len(re.findall(r"^```", TEXT, re.M)) % 2 == 0
    prose = re.sub(r"^```.*?^```$", "", TEXT, flags=re.M | re.S)
    for block in prose.split("\n\n"):
        for formula in re.findall(r"\$\$?([^$]+)\$\$?", block):
            opened = re.sub(r"\\[{}]", "", formula)
            assert opened.count("{") == opened.count("}"), formula
        assert block.count("$") % 2 == 0, block
        assert block.replace("**", "").count("*") % 2 == 0, block
    begun, ended = (Counter(re.findall(rf"\\{w}\{{(\w+)", prose)) for w in ("begin", "end"))
    assert begun == ended


def test_the_tables_have_rows_that_are_computed_here():
    methods = dict(re.findall(r"^\| `([\w:-]+)` \| ([\d.]+) \|", TEXT, re.M))
    assert tuple(methods) == paper.METHODS
    noise = paper.symdp.mechanisms.gaussian(sigma="1.12").subsample("poisson", "256/60000")
    steps = paper.symdp.compose(noise, 14063)
    for method in ("contour", "moments-plain", "msd:1"):
        assert methods[method] == f"{steps.epsilon(1e-5, method).epsilon:.6f}"


def test_the_table_of_programs_is_what_was_measured():
    """Of one row: its error is the answer over the middle of what is proved, less one."""
    measured = json.loads(paper.MEASURED.read_text("utf-8"))["rows"]
    row = next(r for r in measured if r["setting"] == "0.0001" and "dots" in r["program"])
    low, high = (float(row["truth"][end]) for end in ("lower", "upper"))
    mantissa, power = re.search(
        r"^\| Google PLD, connect the dots 0.0001 \| \$([-+.\d]+) \\cdot 10\^\{(-?\d+)\}\$",
        TEXT,
        re.M,
    ).groups()
    error = row["answer"] / ((low + high) / 2) - 1
    assert float(f"{mantissa}e{power}") == pytest.approx(error, rel=0.06)
    assert paper.by_program() in TEXT
