"""The numbers that [IND] prints, with the corrections that recomputing them needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from symdp import compose, mechanisms
from symdp.individual import GaussianFilter

PAGE = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")
PART = PAGE[PAGE.index("## Individual accounting") : PAGE.index("## Figures")]
ROWS = {
    what: (says, gets)
    for what, says, gets in re.findall(
        r"^\| (\w[^|]+?) \| ([^|]*?) *\| (\S+) \|$", PART, re.MULTILINE
    )
}


def test_the_column_of_what_is_said_holds_what_the_paper_prints():
    assert sorted(says for says, _ in ROWS.values() if says) == [
        "0.8", "495", "roughly 10 percent", "≈ 10.61",
    ]  # fmt: skip


def test_what_the_page_says_is_what_is_computed():
    steps = compose(mechanisms.gaussian(sigma=100), 420)
    renyi, exact = (
        steps.epsilon(1e-5, method=method, direction="remove").epsilon
        for method in ("renyi", "contour")
    )
    found = {what: gets for what, (_, gets) in ROWS.items()}
    assert found["ε of 420 steps by the Rényi curve (`renyi`)"] == f"{renyi:.6f}" == "0.815623"
    assert found["the same by Gaussian DP (exact: `contour`)"] == f"{exact:.6f}" == "0.745138"
    assert found["how much smaller"] == "8.64%"
    assert found["steps at that ε by Gaussian DP"] == "495"
    assert found["steps at ε = 0.8 exactly, Rényi"] == "405"
    assert found["steps at ε = 0.8 exactly, Gaussian DP"] == "478"


@pytest.mark.parametrize("target", [2.75, 0.5, 10])
def test_budgets(target):
    budget = GaussianFilter(epsilon=target, delta=1e-5).budget
    assert ROWS[f"budget B of ε = {target:g}"] == ("", f"{budget:.8f}")
