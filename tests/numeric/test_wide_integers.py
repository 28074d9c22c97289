"""Noise on very many integers, against sums that share no code with it."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy import fft, special

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


def on_a_grid(losses, masses, count, epsilon, spacing):
    """Return δ with each loss moved down to a grid, and up."""
    found = []
    for rounded in (np.floor, np.ceil):
        place = rounded(losses / spacing).astype(int)
        first = place.min()
        law = np.zeros(place.max() - first + 1)
        np.add.at(law, place - first, masses)
        size = fft.next_fast_len(count * (law.size - 1) + 1, real=True)
        total = np.maximum(np.fft.irfft(np.fft.rfft(law, size) ** count, size), 0.0)
        found.append(payoff(spacing * (count * first + np.arange(size)), total, epsilon))
    return found


def skellam(mu):
    k = np.arange(-600, 601)
    logs = [np.log(special.ive(np.abs(j), 2 * mu)) for j in (k - 1, k)]
    return mechanisms.skellam(mu=mu), 3, logs, 2e-6


def negative_binomial(r, p):
    k = np.arange(400, 1800)  # less than 1e-20 lies beyond

    def log_mass(j):
        ways = special.gammaln(j + r) - special.gammaln(r) - special.gammaln(j + 1)
        return ways + r * math.log1p(-p) + j * math.log(p)

    return mechanisms.negative_binomial(r=r, p="1/2"), 10, [log_mass(k), log_mass(k - 1)], 1e-5


def rounded_normal(s):
    k = np.arange(-11 * s, 11 * s + 1)
    x = sp.Symbol("k", integer=True)
    upper, lower = ((2 * x + sign) / (2 * sp.sqrt(2) * s) for sign in (1, -1))
    noise = Mechanism.additive((sp.erf(upper) - sp.erf(lower)) / 2, x, support="integers")

    def log_mass(j):
        near, far = (special.erfc((np.abs(j) + sign) / (math.sqrt(2) * s)) for sign in (-0.5, 0.5))
        return np.log((near - far) / 2)

    return noise, 30, [log_mass(k - 1), log_mass(k)], 1e-4 if s < 10 else 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "epsilon"),
    [
        (skellam(600), 0.189122011332),
        (negative_binomial(1000, 0.5), 0.282598518681),
        (rounded_normal(3), 9.79755959071),
        (rounded_normal(200), 0.0993837282725),
    ],
)
def test_masses_that_are_no_doubles(case, epsilon):
    noise, count, (log_p, log_q), spacing = case
    low, high = on_a_grid(log_p - log_q, np.exp(log_p), count, epsilon, spacing)
    found = compose(noise, count).delta(epsilon)
    assert found.kind == "exact"
    assert low <= found.upper
    assert found.lower <= high
    assert high < 1.02 * low


@pytest.mark.slow
def test_one_step_far_out_of_rounded_noise():
    """Where both values of erf are 1 in doubles."""
    noise, *_ = rounded_normal(3)
    with mpmath.workdps(130):

        def mass(k):
            edges = [mpmath.erf((k + half) / (3 * mpmath.sqrt(2))) for half in (0.5, -0.5)]
            return (edges[0] - edges[1]) / 2

        gains = [mass(k - 1) - mpmath.exp(5) * mass(k) for k in range(120)]
        truth = float(sum(gain for gain in gains if gain > 0))
    found = compose(noise, 1).delta(5.0)
    assert found.delta == pytest.approx(truth, rel=1e-11)
