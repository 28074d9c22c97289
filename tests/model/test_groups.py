"""Groups of many records, against a bracketing sum of losses on a grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from refusals import refused
from scipy.integrate import simpson
from scipy.special import ndtr
from scipy.stats import binom

from symdp import Mechanism, compose, mechanisms
from symdp.model.dominating import is_attained


def enclosed(sigma, rate, group, count, epsilon, step=1e-4, size=1 << 20):
    """Return δ(ε) with every loss rounded down, and rounded up, to a grid; by FFT."""
    j = np.arange(min(group, 40) + 1)  # more hits have a probability below 1e-45
    weights = binom.pmf(j, group, rate)
    x = np.linspace(-9 * sigma, 40 + 9 * sigma, 100_001)
    with np.errstate(divide="ignore"):
        exponents = (2 * np.outer(x, j) - j**2) / (2 * sigma**2) + np.log(weights)
    top = exponents.max(axis=1)
    loss = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
    cdf = np.concatenate([[0.0], ndtr((x[:, None] - j) / sigma) @ weights, [1.0]])
    mass = np.diff(cdf)  # below x₀, between neighbours, above the last
    deltas = []
    for rounded in (np.floor(np.concatenate([[loss[0]], loss]) / step),
                    np.ceil(np.concatenate([loss, [loss[-1]]]) / step)):  # fmt: skip
        law = np.bincount(rounded.astype(int) % size, mass, minlength=size)
        total = np.fft.irfft(np.fft.rfft(law) ** count, size)
        # A sum of losses beyond 52 nats either way comes back on the other side: too rare to count.
        losses = np.fft.fftfreq(size, 1 / size) * step
        kept = -np.expm1(np.minimum(epsilon - losses, 0))
        deltas.append(float((np.maximum(total, 0) * kept).sum()))
    return deltas


@pytest.mark.quick_cases("16-0.01-5.9754")
@pytest.mark.parametrize(
    ("group", "rate", "given"),
    [(16, "0.01", 5.9754), (50, "0.01", 25.0385), (200, "0.001", 7.8043)],
)
def test_the_epsilon_of_large_groups(group, rate, given):
    steps = compose(mechanisms.gaussian(sigma=4).subsample("poisson", rate, group=group), 1000)
    found = steps.epsilon(1e-5)
    assert found.epsilon == pytest.approx(given, abs=5e-4)  # another accountant's, an upper bound
    assert found.epsilon <= given + 1e-4
    low, high = enclosed(4.0, float(rate), group, 1000, found.epsilon)
    assert low <= 1e-5 <= high
    assert high < 2 * low  # 1000 steps rounded by up to 1e-4 each
    assert found.kind == ("exact" if group <= 48 else "bound")


@pytest.mark.slow
def test_what_is_left_out_of_a_group_is_an_upper_bound():
    """A group of 49 is the first that leaves something out; of 48 next to it nothing is."""
    kinds = [
        mechanisms.gaussian(sigma=30).subsample("poisson", "1/50", group=k) for k in (48, 49, 50)
    ]
    deltas = [
        compose(kind, 20).delta(0.3, direction=side).delta
        for kind in kinds
        for side in ("remove", "add")
    ]
    assert [is_attained(kind) for kind in kinds] == [True, False, False]
    assert deltas[0] < deltas[2] < deltas[4]
    assert deltas[1] < deltas[3] < deltas[5]
    assert deltas[2] / deltas[0] == pytest.approx(deltas[4] / deltas[2], rel=0.02)


def test_every_record_of_a_group_in_every_batch_is_a_shift():
    certain = mechanisms.gaussian(sigma=4).subsample("poisson", 1, group=100)
    moved = mechanisms.gaussian(sigma=4).moved_by(100)
    assert compose(certain, 3).delta(900).delta == pytest.approx(
        compose(moved, 3).delta(900).delta, rel=1e-9
    )


@pytest.mark.slow
def test_groups_that_are_too_large():
    noise = mechanisms.gaussian(sigma=4)
    with refused("from 1 to 100000"):
        noise.subsample("poisson", "0.1", group=10**6)
    with refused("likely numbers"):
        noise.subsample("poisson", "0.5", group=10_000).pair()


@pytest.mark.slow
def test_a_large_group_of_rare_records_is_answered():
    noise = mechanisms.gaussian(sigma=4)
    assert math.isfinite(
        compose(noise.subsample("poisson", "1e-5", group=5000), 10).epsilon(1e-6).epsilon
    )


GUMBEL = """
name = "skewed"
variable = "x"
support = ["-oo", "oo"]
[noise]
density = "exp(-x - exp(-x))"
sensitivity = "1/50"
"""


@pytest.mark.slow_cases("48", "64", "120", "49")
@pytest.mark.parametrize("group", [48, 49, 64, 120])
def test_skewed_noise_has_groups_of_any_size_too(group):
    """One step against the whole mixture on a fine grid, by Simpson's rule."""
    step = Mechanism.from_toml(GUMBEL).subsample("poisson", "1/10", group=group)
    x = np.linspace(-8, 60, 400_001)
    raised, lowered = (
        sum(
            binom.pmf(j, group, 0.1) * np.exp(-(x - s * j / 50) - np.exp(-(x - s * j / 50)))
            for j in range(group + 1)
        )
        for s in (1, -1)
    )
    rest = np.exp(-x - np.exp(-x))
    for epsilon in (0.02, 0.1):
        truth = max(
            float(simpson(np.maximum(p - math.exp(epsilon) * q, 0), x=x))
            for law in (raised, lowered)
            for p, q in ((law, rest), (rest, law))
        )
        found = compose(step).delta(epsilon)
        assert found.delta == pytest.approx(truth, rel=1e-5)  # the grid's, where the sign turns
        assert found.kind == ("exact" if group <= 48 else "bound")
