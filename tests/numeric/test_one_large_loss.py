"""Sampled noise at tiny rates, ε between the typical sum and one large loss: no tilt reaches it.

The truth shares no code with symdp. Losses of one step are moved to a lattice of spacing h, each
to its two neighbours so that its mean stays; the power of the generating function is that of the
sum, in whole numbers of so many digits that nothing cancels. What moving changes is a series in
h², whose limit three spacings tell.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import fmpz_poly

from symdp import Mechanism, compose, mechanisms

BITS = 420  # of units: δ down to e^−200 keeps 40 digits beside 1
BEYOND = 60  # e-folds by which the density of the sum falls from ε to the end of the lattice


def lattice_masses(sigma, rate, spacing, first, top):
    """Masses at k·h, each a double right to a few roundings, from Gauss's rule between values."""
    places = np.arange(first + 1, top + 1)
    ends = sigma**2 * np.log((np.expm1(places * spacing) + rate) / rate) + 0.5
    edges = np.unique(np.append(ends, np.arange(-30.0 * sigma, ends[-1], 0.25 * sigma)))
    left, right = edges[:-1], edges[1:]
    cell = first + np.searchsorted(ends, left, side="right")
    nodes, weights = np.polynomial.legendre.leggauss(8)
    x = 0.5 * (left + right)[:, None] + 0.5 * (right - left)[:, None] * nodes
    growth = rate * np.expm1((2.0 * x - 1.0) / (2.0 * sigma**2))
    density = np.exp(-0.5 * (x / sigma) ** 2) / (sigma * np.sqrt(2.0 * np.pi)) * (1.0 + growth)
    mass = 0.5 * (right - left)[:, None] * weights * density
    share = np.log1p(growth) / spacing - cell[:, None]
    masses = np.zeros(top - first + 1)
    np.add.at(masses, cell - first, (mass * (1.0 - share)).sum(axis=1))
    np.add.at(masses, cell - first + 1, (mass * share).sum(axis=1))
    return masses


def fixed_point_power(masses, count, size):
    """Coefficients of Σ mₖ xᵏ to a power, less those from a size on, in units of 2^−BITS."""
    base = fmpz_poly([int(Fraction(m) * 2**BITS) for m in masses.tolist()])
    power = None
    while count:
        if count % 2:
            power = base if power is None else rounded(power * base, size)
        base = rounded(base * base, size)
        count //= 2
    return power.coeffs()


def rounded(product, size):
    return fmpz_poly([c >> BITS for c in product.coeffs()[:size]])


def lattice_delta(count, sigma, rate, epsilon, spacing, slope):
    """log δ(ε) to remove, from losses on a lattice; `slope` is about −d log δ/dε."""
    first = int(np.floor(np.log1p(-rate) / spacing))
    top = int((epsilon + BEYOND / slope) / spacing) + 2
    masses = lattice_masses(sigma, rate, spacing, first, top)
    power = fixed_point_power(masses, count, top - count * first)
    delta = mpmath.mpf(0)
    for k in range(int(epsilon / spacing) + 1, top):
        share = -mpmath.expm1(mpmath.mpf(epsilon) - k * mpmath.mpf(spacing))
        delta += mpmath.ldexp(int(power[k - count * first]), -BITS) * share
    return float(mpmath.log(delta))


def truth(count, sigma, rate, epsilon, spacing, slope):
    """log δ in the limit of no spacing, and how far the last two guesses lie apart."""
    logs = [lattice_delta(count, sigma, rate, epsilon, spacing / 2**j, slope) for j in range(3)]
    once = [(4 * b - a) / 3 for a, b in itertools.pairwise(logs)]
    return (16 * once[1] - once[0]) / 15, abs(once[1] - once[0])


def sampled(count, sigma, rate):
    return compose(mechanisms.gaussian(sigma=sigma).subsample("poisson", rate), count)


@pytest.mark.slow
def test_an_answer_that_no_tilt_reaches():
    """Known by adding the densities of 1 000 steps, and by this file's truth to 7e-6."""
    answer = sampled(1000, 2, "1/10000").delta(0.1909012794494629, direction="remove")
    assert answer.kind == "exact"
    assert answer.log_lower <= -122.643348191561 <= answer.log_upper


# Of 10,000 steps at rates 1e-6 and 1e-5 the lattice is too coarse to be a truth: 1e-3 and 0.1.
CASES = (
    (100, 4, "1/1000", 0.0508, 1511.0),
    (100, 2, "1/1000000", 4.26e-5, 723934.0),
    (1000, 2, "1/1000", 0.337, 87.6),
    (1000, 4, "1/1000000", 1.6e-4, 1984453.0),
    (100_000, 1, "1/100000", 0.0332, 284.0),
    (1000, 2, "1/10000", 0.1909012794494629, 175.0),
)


@pytest.mark.parametrize(
    ("count", "sigma", "rate", "epsilon", "slope"),
    [pytest.param(*case, marks=pytest.mark.slow if k else ()) for k, case in enumerate(CASES)],
)
def test_between_the_typical_sum_and_one_large_loss(count, sigma, rate, epsilon, slope):
    answer = sampled(count, sigma, rate).delta(epsilon, direction="remove")
    assert answer.kind == "exact"
    value = float(Fraction(rate))
    true, gap = truth(count, float(sigma), value, epsilon, min(0.4 * value, 0.03 / slope), slope)
    assert abs(answer.log_delta - true) < 4.0 * gap < 1e-3


def test_the_other_direction_has_no_large_losses():
    """To add, no loss exceeds −log(1 − q), so that δ is 0 where ε exceeds n times that."""
    answer = sampled(1000, 2, "1/10000").delta(0.1909012794494629, direction="add")
    assert answer.log_delta == -np.inf
    assert answer.kind == "exact"


@pytest.mark.slow
def test_small_losses_that_a_tilt_does_not_see_are_no_error_of_arithmetic():
    """A plateau with steep ends: the sum over large losses declines, and another row answers."""
    x = sp.Symbol("x", real=True)
    plateau = (1 + sp.tanh(x + 90)) * (1 + sp.tanh(70 - x))
    noise = Mechanism.additive(plateau, x, 1, normalize=True, shift="exactly")
    answer = compose(noise, 6).delta(2.0, direction="remove")
    assert answer.lower <= 2.41997984395e-4 <= answer.upper


@pytest.mark.slow
def test_a_loss_that_turns_is_parted_as_well():
    """What two and more large losses leave has kinks where turns of the loss add up.

    The truth: masses of a grid of 1.6 million places, each loss split between its two neighbours on
    a lattice, and their power by a fast Fourier transform; the limit of two spacings.
    """
    x = sp.Symbol("x", real=True)
    humps = sp.exp(-(x**2) / 8) * (1 - x**2 / 6) ** 2
    noise = Mechanism.additive(humps, x, 1, normalize=True, shift="exactly")
    answer = compose(noise.subsample("poisson", "1/1000"), 30).delta(1.0, direction="remove")
    assert answer.route == "mesh"
    assert answer.log_upper - answer.log_lower < 1e-11

    def density(places):
        return np.exp(-(places**2) / 8) * (1 - places**2 / 6) ** 2

    nodes, weights = np.polynomial.legendre.leggauss(8)
    edges = np.linspace(-30.0, 31.0, 200_001)
    half = 0.5 * np.diff(edges)[:, None]
    places = (edges[:-1, None] + half + half * nodes).ravel()
    q = density(places) * (half * weights).ravel()
    q /= q.sum()
    p = q * (0.999 + 0.001 * density(places - 1.0) / density(places))
    p /= p.sum()
    loss = np.log(p / q)
    deltas = []
    for spacing in (2e-4, 1e-4):
        number = np.floor(loss / spacing).astype(int)
        share = loss / spacing - number
        size = 1 << int(np.ceil(np.log2(100.0 / spacing)))
        masses = np.bincount(number % size, p * (1.0 - share), size)
        masses += np.bincount((number + 1) % size, p * share, size)
        total = np.fft.irfft(np.fft.rfft(masses) ** 30, size)
        above = np.arange(int(1.0 / spacing) + 1, size - 1000) * spacing
        number_above = np.rint(above / spacing).astype(int)
        deltas.append(-total[number_above] @ np.expm1(1.0 - above))
    true = (4.0 * deltas[1] - deltas[0]) / 3.0
    assert abs(np.exp(answer.log_delta) / true - 1.0) < 1e-7
