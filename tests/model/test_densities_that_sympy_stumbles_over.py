"""Normalised densities of which SymPy tries 0 for a positive scale, where they have no value."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symdp import Mechanism, compose

X, S = sp.Symbol("x", real=True), sp.Symbol("s", positive=True)
DENSITIES = {
    "log cosh squared": (
        sp.exp(-(sp.log(sp.cosh(X / S)) ** 2)), lambda x: np.exp(-np.log(np.cosh(x / 2)) ** 2)),
    "log of cosh and 1": (
        sp.exp(-(sp.log(1 + sp.cosh(X / S)) ** 2)),
        lambda x: np.exp(-np.log1p(np.cosh(x / 2)) ** 2)),
    "cosh squared": (sp.exp(-(sp.cosh(X / S) ** 2)), lambda x: np.exp(-np.cosh(x / 2) ** 2)),
    "sinh squared": (sp.exp(-(sp.sinh(X / S) ** 2)), lambda x: np.exp(-np.sinh(x / 2) ** 2)),
    "log of sinh": (
        sp.exp(-sp.log(1 + sp.sinh(X / S) ** 2) ** 2),
        lambda x: np.exp(-np.log1p(np.sinh(x / 2) ** 2) ** 2)),
}  # fmt: skip


@pytest.mark.quick_cases("sinh squared")
@pytest.mark.parametrize("name", DENSITIES)
def test_a_scale_is_bound_and_delta_is_the_sum_of_differences(name: str) -> None:
    density, in_doubles = DENSITIES[name]
    steps = compose(Mechanism.additive(density, X, normalize=True)(s=2).shifted("exactly"), 1)
    x, width = np.linspace(-60.0, 60.0, 2_400_001, retstep=True)
    with np.errstate(over="ignore"):
        p, q = in_doubles(x - 1), in_doubles(x)
    truth = np.maximum(p - np.exp(0.1) * q, 0.0).sum() / q.sum()
    assert steps.delta(0.1).delta == pytest.approx(float(truth), rel=1e-6)
    assert width < 1e-4
