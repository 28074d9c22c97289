"""Noise on very many integers, against sums that share no code with it."""

import math

import numpy as np
import pytest
import sympy as sp

from symdp import Mechanism, compose, mechanisms

k = sp.Symbol("k", integer=True)


def payoff(losses, masses, epsilon):
    gain = losses > epsilon
    return math.fsum(masses[gain] * -np.expm1(epsilon - losses[gain]))


def test_discrete_laplace_noise_is_two_answers():
    """At shift 1 the loss is ±1/b, so that n steps are a binomial number of them."""
    b, n, epsilon = 4000, 5, 0.0003
    r = math.exp(-1 / b)
    counts = np.arange(n + 1)
    up = 1 / (1 + r)  # P of the half-line on which the loss is 1/b
    masses = np.asarray([math.comb(n, j) * up**j * (1 - up) ** (n - j) for j in counts])
    truth = payoff((2 * counts - n) / b, masses, epsilon)
    found = compose(mechanisms.discrete_laplace(b=b), n).delta(epsilon)
    assert found.lower <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-12) <= found.upper
    assert found.delta == pytest.approx(truth, rel=1e-11)


def test_as_many_losses_as_a_wide_shift_has():
    """P of each loss and an FFT; the noise falls so slowly that each integer counts."""
    b = 30_000
    noise = Mechanism.additive(
        sp.exp(-sp.Abs(k) / b) * sp.tanh(sp.Rational(1, 2 * b)),
        k,
        support="integers",
        sensitivity=b,
    )
    place = np.arange(b + 1)  # the loss is (2·place − b)/b
    masses = np.exp(-(b - place) / b) * math.tanh(0.5 / b)
    masses[-1] = 1 / (1 + math.exp(-1 / b))
    masses[0] = math.exp(-1) / (1 + math.exp(-1 / b))
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    size = 3 * b + 1
    total = np.fft.irfft(np.fft.rfft(masses, size) ** 3, size)
    truth = payoff(2 * np.arange(size) / b - 3, total, 1.0)
    found = compose(noise, 3).delta(1.0)
    assert found.kind == "exact"
    assert found.delta == pytest.approx(truth, rel=1e-11)
    assert found.delta == pytest.approx(compose(mechanisms.laplace(b=1), 3).delta(1.0).delta, 1e-8)


def test_wide_discrete_gaussian_noise():
    """Sums of it are it, to e^{−2π²σ²}, and the total loss of n steps is (2S − n)/2σ²."""
    sigma, n, epsilon = 5000, 3, 0.0002
    s = np.arange(-14 * sigma, 14 * sigma)
    masses = np.exp(-((s - n) ** 2) / (2 * n * sigma**2)) / math.sqrt(2 * math.pi * n * sigma**2)
    truth = payoff((2 * s - n) / (2 * sigma**2), masses, epsilon)
    found = compose(mechanisms.discrete_gaussian(sigma=sigma), n).delta(epsilon)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower < 1e-7 * truth
