"""Noise of practice, against sums and integrals written out from the definition."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest

from symdp import compose, mechanisms


def summed(p, q, epsilon):
    """Σ (p − e^ε q)⁺."""
    factor = mpmath.exp(epsilon)
    return mpmath.fsum(max(a - factor * b, 0) for a, b in zip(p, q, strict=True))


def skellam_mass(k, mu):
    """Pr[A − B = k] for Poisson A and B of mean mu, from their own masses."""
    with mpmath.workdps(25):
        return mpmath.fsum(
            mpmath.exp(-2 * mu) * mu ** (2 * b + abs(k)) / (mpmath.fac(b) * mpmath.fac(b + abs(k)))
            for b in range(70)
        )


@pytest.mark.slow_cases("0.0")
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_skellam_noise(epsilon):
    reach, mu = 45, 4
    f = {k: skellam_mass(k, mu) for k in range(-reach - 1, reach + 1)}
    places = range(-reach, reach + 1)
    one = summed([f[k - 1] for k in places], [f[k] for k in places], epsilon)
    steps = mechanisms.skellam(mu=mu)
    assert compose(steps).delta(epsilon).delta == pytest.approx(float(one), rel=1e-12)


def test_two_steps_of_skellam_noise():
    reach, mu, epsilon = 30, 4, 0.5
    f = {k: float(skellam_mass(k, mu)) for k in range(-reach - 1, reach + 1)}
    places = range(-reach, reach + 1)
    two = math.fsum(
        max(f[i - 1] * f[j - 1] - math.exp(epsilon) * f[i] * f[j], 0.0)
        for i in places
        for j in places
    )
    found = compose(mechanisms.skellam(mu=mu), 2).delta(epsilon).delta
    assert found == pytest.approx(two, rel=1e-10)


@pytest.mark.slow_cases("remove--0.5")
@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.05, 0.4])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_negative_binomial_noise(epsilon, direction):
    """One step with the masses from the recurrence f(k + 1) = f(k) p (k + r)/(k + 1)."""
    r, p = 3, mpmath.mpf("0.8")
    f = [(1 - p) ** r]
    for k in range(400):
        f.append(f[-1] * p * (k + r) / (k + 1))
    moved, still = [mpmath.mpf(0), *f[:-1]], f
    laws = (moved, still) if direction == "remove" else (still, moved)
    steps = compose(mechanisms.negative_binomial(r=3, p="4/5"))
    found = steps.delta(epsilon, direction=direction).delta
    assert found == pytest.approx(float(summed(*laws, epsilon)), rel=1e-12, abs=1e-30)


@pytest.mark.slow
def test_epsilon_of_many_failures_is_near_in_both_directions():
    # Losses log(k/((k + r − 1)p)) rounded down and up to a mesh of 10⁻⁵, added by FFT in NumPy.
    steps = compose(mechanisms.negative_binomial(r=800, p="1/2"), 10)
    found = steps.epsilon(1e-6, direction="remove")
    assert 0.299167 < found.lower <= found.epsilon <= found.upper < 0.299264


@pytest.mark.slow
def test_shape_one_is_geometric_noise_that_betrays_an_absence():
    """Added, a record that is not there shows itself with the mass (1 − p)^r at the count."""
    steps = compose(mechanisms.negative_binomial(r=1, p="9/10"), 3)
    assert steps.delta(50.0, direction="add").delta == pytest.approx(1 - 0.9**3, rel=1e-12)
    # log P/Q = −log p wherever both are above 0
    assert steps.delta(3 * -math.log(0.9) + 1e-9, direction="remove").delta == 0.0


def staircase_density(x, size, gamma):
    fall, steps = math.exp(-size), math.floor(abs(x))
    height = (1 - fall) / (2 * (gamma + fall * (1 - gamma)))
    return height * fall ** (steps + (abs(x) - steps >= gamma))


def staircase_delta(shift, size, gamma, epsilon):
    """The integral over the pieces between all jumps of either density, exact up to rounding."""
    edges = {k + sign * gamma + move for k in range(-30, 31) for sign in (-1, 0, 1)
             for move in (0.0, shift)}  # fmt: skip
    edges = sorted(edges)
    total = 0.0
    for a, b in itertools.pairwise(edges):
        middle = (a + b) / 2
        p = staircase_density(middle - shift, size, gamma)
        q = staircase_density(middle, size, gamma)
        total += max(p - math.exp(epsilon) * q, 0.0) * (b - a)
    return total


@pytest.mark.parametrize("gamma", ["0.2", "0.5", "0.7"])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, -0.3])
def test_the_staircase_at_its_largest_shift_dominates_all_others(gamma, epsilon):
    found = compose(mechanisms.staircase(epsilon_0=1, gamma_0=gamma)).delta(epsilon).delta
    assert found == pytest.approx(staircase_delta(1.0, 1.0, float(gamma), epsilon), rel=1e-9)
    for shift in (-1.0, -0.6, 0.05, 0.37, 0.9):
        assert staircase_delta(shift, 1.0, float(gamma), epsilon) <= found * (1 + 1e-9)


def gaussian_delta(mu, epsilon):
    if mu == 0:
        return max(1 - mpmath.exp(epsilon), mpmath.mpf(0))
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
        -mu / 2 - epsilon / mu
    )


@pytest.mark.slow_cases("1-0-3", "1-4-0", "1-1-2", "7-0-3", "7-1-2")
@pytest.mark.parametrize(("j", "m"), [(0, 3), (1, 2), (4, 0)])
@pytest.mark.parametrize("count", [1, 7])
def test_sparse_histograms(j, m, count):
    """p N(√j, σ²) and the rest revealed, n times: δ = 1 − pⁿ + pⁿ δ_G(ε − n log p)."""
    sigma, tau, epsilon = 2, 5, 0.6
    kept = mpmath.ncdf(mpmath.mpf(tau) / sigma) ** m
    whole = kept**count
    expected = (
        1
        - whole
        + whole * gaussian_delta(mpmath.sqrt(j * count) / sigma, epsilon - mpmath.log(whole))
    )
    steps = compose(mechanisms.sparse_histogram(sigma=sigma, tau=tau, j=j, m=m), count)
    assert steps.delta(epsilon, direction="remove").delta == pytest.approx(
        float(expected), rel=1e-11
    )


@pytest.mark.slow_cases("0.0")
@pytest.mark.parametrize("epsilon", [0.0, 0.8])
def test_a_histogram_written_out(epsilon):
    """One shared and one own cell: the mass of what is released, integrated cell by cell."""
    sigma, tau = 1.5, 2.0
    hidden = mpmath.ncdf(tau / sigma)

    def density(x, mean):
        return mpmath.npdf(x, mean, sigma)

    def gap(x):
        return max(hidden * density(x, 1) - mpmath.exp(epsilon) * density(x, 0), mpmath.mpf(0))

    # the loss x/σ² − 1/(2σ²) + log(hidden) crosses ε here
    root = (epsilon - mpmath.log(hidden)) * sigma**2 + mpmath.mpf(1) / 2
    expected = 1 - hidden + mpmath.quad(gap, [root, root + 3, root + 10, root + 40])
    step = mechanisms.sparse_histogram(sigma="3/2", tau=2, j=1, m=1)
    assert compose(step).delta(epsilon, direction="remove").delta == pytest.approx(
        float(expected), rel=1e-11
    )


def test_a_count_beside_the_gradients_is_one_gaussian():
    """A sum that moves by z⁻¹ and a count that moves by (2σ_b)⁻¹, both in standard deviations."""
    z, sigma_b, n = 1.1, 5.0, 12
    mu = math.hypot(1 / z, 1 / (2 * sigma_b)) * math.sqrt(n)
    steps = compose(mechanisms.adaptive_clipping(z="1.1", sigma_b=5), n)
    assert steps.delta(1.0).delta == pytest.approx(float(gaussian_delta(mu, 1.0)), rel=1e-12)
    # what is left for the gradients where the whole is to be a Gaussian of multiplier z₀
    z_0 = 1.3
    left = (z_0**-2 - (2 * sigma_b) ** -2) ** -0.5
    whole = compose(mechanisms.gaussian(sigma=str(z_0)), n).delta(1.0).delta
    again = compose(mechanisms.adaptive_clipping(z=repr(left), sigma_b=5), n).delta(1.0).delta
    assert again == pytest.approx(whole, rel=1e-12)
