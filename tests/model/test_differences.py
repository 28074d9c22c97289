"""A mass function that is a difference of two quotients of exponentials is read as a product."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symdp import Mechanism, compose
from symdp.model.tidy import without_difference

K = sp.Symbol("k", integer=True)
HALF = sp.Rational(1, 2)
BEFORE, AFTER = 1 / (1 + sp.exp(-(K - HALF) / 3)), 1 / (1 + sp.exp(-(K + HALF) / 3))


@pytest.mark.parametrize(
    "density",
    [
        sp.exp(-K) - sp.exp(-2 * K),
        1 / (1 + sp.exp(K)) + 1 / (1 + sp.exp(-K)),
        sp.exp(-sp.Abs(K)) - 1 / (4 + K**2),
        K * (AFTER - BEFORE),
    ],
)
def test_what_is_no_such_difference_stays(density):
    assert without_difference(density, K) == density


def test_the_product_is_the_difference():
    product = without_difference(AFTER - BEFORE, K)
    assert isinstance(product, sp.Mul)
    for place in (-7, 0, 40):
        truth = (AFTER - BEFORE).subs(K, place).evalf(30)
        assert abs(product.subs(K, place).evalf(30) / truth - 1) < 1e-13


def test_rounded_logistic_noise_is_answered():
    """Its mass could not be enclosed: far out two ones were subtracted. δ of a plain sum."""
    noise = Mechanism.additive(
        AFTER - BEFORE, K, 1, support="integers", normalize=True, shift="exactly"
    )
    k = np.arange(-1500, 1501)
    mass = (
        np.exp(-abs(k) / 3) / (1 + np.exp(-(abs(k) + 0.5) / 3)) / (1 + np.exp(-(abs(k) - 0.5) / 3))
    )
    mass /= mass.sum()
    p, q = mass[:-1], mass[1:]
    loss = np.log(p / q)
    truth = float(p @ np.maximum(-np.expm1(0.2 - loss), 0))
    assert compose(noise).delta(0.2).delta == pytest.approx(truth, rel=1e-9)
