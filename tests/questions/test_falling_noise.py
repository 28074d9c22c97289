"""Noise that only its values show to fall away from its centre: pairs that move either way."""

import math

import numpy as np
import pytest
import sympy as sp
from scipy.special import ive

from symdp import Mechanism, compose, mechanisms
from symdp.model.sampling import Noise
from symdp.questions.steps.accounted import answered

PLACES = np.arange(-24, 25)


def skellam(k, mean):
    """e^{−2μ} I_|k|(2μ)."""
    return ive(np.abs(k), 2.0 * mean)


def delta(p, q, epsilon):
    """Σ (P³ − e^ε Q³)⁺ over all outcomes of three steps."""
    three = [np.einsum("i,j,k->ijk", law, law, law) for law in (p, q)]
    return float(np.maximum(three[0] - math.exp(epsilon) * three[1], 0.0).sum())


@pytest.mark.parametrize("mean", [1, pytest.param("5/2", marks=pytest.mark.slow)])
def test_skellam_noise_of_a_changed_record(mean):
    """Of the differences of two Poisson numbers no algebra was found to show that they fall."""
    asked = compose(mechanisms.skellam(mu=mean).under("substitution"), 3)
    size = 2.5 if mean == "5/2" else 1.0
    exact = delta(skellam(PLACES - 2, size), skellam(PLACES, size), 2.0)
    assert asked.delta(2.0).delta == pytest.approx(exact, rel=1e-10)  # the places leave out 1e-13


def test_skellam_noise_of_a_fixed_batch():
    """One step: the mixture (1 − q)f + q f(x − 2) against f; the symmetric pair has its losses."""
    rate, epsilon = 0.1, 0.5
    step = mechanisms.skellam(mu=1).subsample("without_replacement", "1/10")
    f, moved = skellam(PLACES, 1.0), skellam(PLACES - 2, 1.0)
    mixed = (1.0 - rate) * f + rate * moved
    exact = float(np.maximum(mixed - math.exp(epsilon) * f, 0.0).sum())
    assert compose(step, 1).delta(epsilon).delta == pytest.approx(exact, rel=1e-10)


def test_what_falls_by_its_values_is_told():
    x = sp.Symbol("x", real=True)
    bent = sp.exp(-(x**2) / 8) * (2 + sp.cos(x / 100))  # no rule decides it
    step = Mechanism.additive(bent, x, 1, normalize=True).under("substitution")
    source = answered(step).step.source
    assert isinstance(source, Noise)
    assert source.falls
    alike = mechanisms.gaussian(sigma=2).under("substitution")
    assert answered(alike).step is alike  # algebra shows it for all values
