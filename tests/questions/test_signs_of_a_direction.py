"""An answer in one direction says which sign of a shift it covers, sampled or not."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms

X = sp.Symbol("x", real=True)
RISING = {"remove": "removed that raises the output", "add": "added that raises the output"}
SKEWED = {
    "Gumbel": (
        mechanisms.gumbel(b=2), lambda x: np.exp(-x / 2 - np.exp(-x / 2)) / 2),
    "split": (
        Mechanism.additive(
            sp.Piecewise((sp.exp(-(X**2) / 18), X < 0), (sp.exp(-(X**2) / 50), True)), X,
            normalize=True),
        lambda x: np.exp(-(x**2) / np.where(x < 0, 18, 50))),
    "heavy to the right": (
        Mechanism.additive(
            sp.Piecewise((sp.exp(X / 2), X < 0), ((1 + X / 4) ** -3, True)), X, normalize=True),
        lambda x: np.where(x < 0, np.exp(np.minimum(x, 0) / 2), (1 + np.maximum(x, 0) / 4) ** -3)),
}  # fmt: skip


@pytest.mark.quick_cases("add-Gumbel")
@pytest.mark.parametrize("name", SKEWED)
@pytest.mark.parametrize("direction", RISING)
def test_the_sign_that_is_told_is_the_one_that_is_answered(name: str, direction: str) -> None:
    """δ of the definition, for a record that raises the output, on a grid."""
    noise, density = SKEWED[name]
    x = np.linspace(-400.0, 4000.0, 4_400_001)
    with np.errstate(over="ignore"):
        moved, still = density(x - 1), density(x)
    p, q = (moved, still) if direction == "remove" else (still, moved)
    truth = float(np.maximum(p - np.exp(0.1) * q, 0.0).sum() / still.sum())
    answer = compose(noise, 1).delta(0.1, direction=direction)
    assert answer.delta == pytest.approx(truth, rel=1e-3, abs=1e-9)
    assert RISING[direction] in answer.protection.sentence
    assert RISING[direction] in compose(noise, 3).epsilon(
        1e-2, direction=direction).protection.sentence  # fmt: skip


def test_of_samples_and_of_both_directions_every_sign_is_covered() -> None:
    noise = SKEWED["Gumbel"][0]
    sampled = compose(noise.subsample("poisson", "999/1000"), 1).delta(0.5, direction="remove")
    assert "whichever way the record moves" in sampled.protection.sentence
    assert sampled.delta > 0.08
    assert "direction" not in compose(noise, 1).delta(0.5).protection.sentence
    even = compose(mechanisms.laplace(b=2), 1).delta(0.1, direction="add")
    assert "direction" not in even.protection.sentence
