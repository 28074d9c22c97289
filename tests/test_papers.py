"""docs/papers.md: every call and every test that it names is there; its counterexample holds."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from symdp.methods import accountant

ROOT = Path(__file__).parents[1]
ROWS = re.findall(
    r"^\| (.+?) \| (.+?) \| `(.+?)` \|$",
    (ROOT / "docs" / "papers.md").read_text("utf-8"),
    re.MULTILINE,
)


def test_all_five_papers_are_there():
    text = (ROOT / "docs" / "papers.md").read_text("utf-8")
    assert re.findall(r"^## .*\((\w+)\)$", text, re.MULTILINE) == ["SPA", "EA", "FA", "PRV", "IND"]
    assert len(ROWS) > 40


@pytest.mark.parametrize(("statement", "call", "test"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_the_call_and_the_test_exist(statement, call, test):
    name = call.strip("`")
    if name.startswith("method:"):
        assert accountant(name.removeprefix("method:")).name == name.removeprefix("method:")
    elif not name.startswith("not offered"):
        module, _, own = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), own))
    file, _, function = test.partition("::")
    source = (ROOT / file).read_text("utf-8")
    assert not function or f"def {function}(" in source


def test_a_filter_by_a_curve_promises_too_much():
    """Both fixed orders lie below a Gaussian curve that the adaptive choice of them exceeds."""
    grid = np.linspace(-6, 6, 601)

    def response(loss):
        return [(loss, 1 / (1 + np.exp(-loss))), (-loss, 1 / (1 + np.exp(loss)))]

    rare = [(2.8, 0.36), (-2.8, 0.36 * np.exp(-2.8)), (0.0, 0.64 - 0.36 * np.exp(-2.8))]

    def profile(second):
        pairs = [(a + b, p * q) for a, p in response(1.0) for b, q in second(a)]
        return sum(p * np.maximum(1 - np.exp(grid - loss), 0) for loss, p in pairs)

    def gaussian(mu):
        tail = np.exp(grid + norm.logcdf(-grid / mu - mu / 2))
        return norm.cdf(-grid / mu + mu / 2) - tail

    def least(delta):
        return brentq(lambda mu: (gaussian(mu) - delta).min(), 0.5, 5.0)

    fixed = max(least(profile(lambda _: response(1.4))), least(profile(lambda _: rare)))
    adaptive = profile(lambda a: response(1.4) if a > 0 else rare)
    assert least(adaptive) > 1.03 * fixed
    assert (adaptive - gaussian(fixed)).max() > 0.02
