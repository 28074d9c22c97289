"""Sampled densities that end, at small rates: an infinite loss, or one large loss, carries δ."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from symdp import Mechanism, compose

TEXT = """
name = "noise"
variable = "x"
support = {support}
[noise]
density = "{density}"
normalize = true
sensitivity = "{sensitivity}"
"""

# density, the same in NumPy, support, sensitivity, where NumPy ends it
LAWS = {
    "Kumaraswamy": ("x*(1 - x**2)**3", lambda x: x * (1 - x**2) ** 3, "[0, 1]", "1/10", 1.0),
    "Rayleigh": ("x*exp(-x**2/2)", lambda x: x * np.exp(-(x**2) / 2), '[0, "oo"]', "1/50", 9.0),
}


def ends_of_delta(density, high, shift, rate, count, epsilon):
    """Return δ(ε) from losses at midpoints, rounded down and up to a lattice, by FFT.

    Ends of both densities are edges of cells, so that the mass of infinite losses is exact.
    """
    graded = np.geomspace(1e-12, high, 400_000)  # losses are large next to 0
    edges = np.concatenate([np.linspace(-shift, 0.0, 20_000), graded])
    width = np.diff(edges)
    x = 0.5 * (edges[1:] + edges[:-1])

    def mass(y):
        inside = (y > 0) & (y < high)
        with np.errstate(all="ignore"):
            return np.where(inside, density(y), 0.0)

    q = mass(x) * width
    p = mass(x + shift) * width
    q = q / q.sum()
    p = p / p.sum()
    mixed = (1 - rate) * q + rate * p
    infinite = float(mixed[q == 0].sum())
    finite = mixed[q > 0]
    loss = np.log1p(rate * (p[q > 0] / q[q > 0] - 1))
    ends = []
    for rounded in (np.floor, np.ceil):
        step = 2e-4
        index = rounded(np.minimum(loss, 40.0) / step).astype(int)
        least = int(index.min())
        size = 1 << 20
        law = np.bincount(index - least, weights=finite, minlength=size)
        spectrum = np.fft.rfft(law) ** count
        total = np.fft.irfft(spectrum, size)
        losses = step * (np.arange(size) + count * least)
        above = losses > epsilon
        tail = float(total[above] @ -np.expm1(epsilon - losses[above]))
        ends.append(-math.expm1(count * math.log1p(-infinite)) + tail)
    return ends


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["0.00001", "0.0007"])
@pytest.mark.parametrize("name", LAWS)
def test_one_infinite_or_large_loss_among_thirty(name, rate):
    text, density, support, sensitivity, high = LAWS[name]
    noise = Mechanism.from_toml(TEXT.format(support=support, density=text, sensitivity=sensitivity))
    answer = compose(noise.subsample("poisson", rate), 30).delta(1)
    shift = float(Fraction(sensitivity))
    low, up = ends_of_delta(density, high, shift, float(rate), 30, 1.0)
    assert low * (1 - 1e-6) <= math.exp(answer.log_upper)
    assert math.exp(answer.log_lower) <= up * (1 + 1e-6)
    assert answer.kind == "exact"
    assert answer.log_upper - answer.log_lower < 1e-8
