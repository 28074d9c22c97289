"""The numbers that [IND] prints, with the corrections that recomputing them needs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "individual" / "reproduction.py"


@pytest.fixture(scope="module")
def pages():
    spec = importlib.util.spec_from_file_location("individual_reproduction", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_printed_numbers(pages):
    found = {what: computed for what, _, computed in pages.rows()}
    assert found["ε of 420 steps, Rényi, σ = 100"] == "0.81562342"
    assert found["the same by Gaussian DP"] == "0.74513824"
    assert found["how much smaller"] == "8.64%"
    assert found["steps at ε = 0.8156, Gaussian DP"] == "495"
    assert found["steps at ε = 0.8 exactly, Rényi"] == "405"
    assert found["steps at ε = 0.8 exactly, Gaussian DP"] == "478"
    assert found["MIMIC-III budget at ε = 2.75"] == "0.66594240"
    assert found["MIMIC-III budget at ε = 0.5"] == "0.14221056"
    assert found["MIMIC-III budget at ε = 10"] == "2.00044562"


def test_figures(pages):
    for _, bound, exact in pages.figures().values():
        assert (bound > exact).all()
        assert (np.diff(exact) < 0).all() or (np.diff(exact) > 0).all()
