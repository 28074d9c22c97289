"""Averages over the records that were drawn: masses, published figures, words, files."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from refusals import refused
from scipy.stats import binom

from symdp import Ledger, Mechanism, compose, mechanisms
from symdp.model.average import sizes

GAUSSIAN = mechanisms.gaussian(sigma="3/2")


@pytest.mark.parametrize(
    ("records", "rate"), [(1, "1/3"), (7, "1/3"), (1000, "1/100"), (5000, "1/50")]
)
def test_no_mass_gets_lost(records, rate):
    q = Fraction(rate)
    found = sizes(records, q)
    assert 0 <= found.lost_without < 1e-18
    edge = q**records if records < 50 else 0  # all records drawn: a size that needs the record
    assert edge <= found.lost_with < edge + Fraction(1, 10**18)
    total = sum(m * (1 - q + q * r) for m, r in zip(found.masses, found.ratios, strict=True))
    assert total + found.lost_with == 1


def estimate(records, rate, sigma, count, reverse, epsilons):
    """δ of the labelled pair on a grid of losses that keeps means: good to about 1e-4 of ε."""
    y, width, size = np.linspace(-9 * sigma, 2 + 9 * sigma, 8001), 2e-4, 1 << 18
    f0, f1 = (np.exp(-((y - s) ** 2) / (2 * sigma**2)) for s in (0, 2))
    scale = (y[1] - y[0]) / (sigma * math.sqrt(2 * math.pi))
    law = np.zeros(size)
    for b in range(records):
        w, v = binom.pmf(b, records - 1, rate), binom.pmf(b - 1, records - 1, rate)
        if w < 1e-19:
            continue
        p, q = scale * (w * (1 - rate) * f0 + rate * v * f1), scale * w * f0
        loss = np.log1p(rate * (v / w * np.exp((2 * y - 2) / sigma**2) - 1))
        mass, loss = (q, -loss) if reverse else (p, loss)
        cell = np.floor(loss / width)
        for shift, share in ((0, 1 - loss / width + cell), (1, loss / width - cell)):
            law += np.bincount(np.mod(cell.astype(int) + shift, size), mass * share, size)
    total = np.fft.irfft(np.fft.rfft(law) ** count, size)
    place = np.arange(size)
    losses = np.where(place > size * 3 // 4, place - size, place) * width
    return [float((total * np.maximum(-np.expm1(np.minimum(e - losses, 0)), 0)).sum())
            for e in epsilons]  # fmt: skip


@pytest.mark.slow
def test_a_thousand_records_in_both_directions():
    steps = compose(GAUSSIAN.subsample("poisson", "1/100", records=1000, released="average"), 10**4)
    for reverse, side in ((False, "remove"), (True, "add")):
        epsilons = (8.0, 12.0)
        deltas = estimate(1000, 0.01, 1.5, 10**4, reverse, epsilons)
        for epsilon, delta in zip(epsilons, deltas, strict=True):
            own = steps.delta(epsilon, direction=side).delta
            assert own == pytest.approx(delta, rel=5e-3)


@pytest.mark.slow
def test_the_sizes_of_many_records_are_merged_to_an_upper_bound():
    averaged = GAUSSIAN.subsample("poisson", "1/100", records=10**4, released="average")
    steps = compose(averaged, 10**4)
    found = steps.epsilon(1e-5).epsilon
    assert 11.9445 < found < 11.96  # a grid without merging gives 11.9449
    plain = compose(GAUSSIAN.subsample("poisson", "1/100"), 10**4).epsilon(1e-5).epsilon
    assert plain == pytest.approx(3.1856, abs=1e-4)


def test_averages_over_all_records_tell_how_many_there_are():
    steps = compose(GAUSSIAN.subsample("poisson", 1, records=9, released="average"))
    assert steps.delta(5.0).delta == pytest.approx(1.0)
    nothing = compose(GAUSSIAN.subsample("poisson", 0, records=9, released="average"))
    assert nothing.delta(0.0).delta < 1e-300


def test_an_answer_says_averages():
    averaged = GAUSSIAN.subsample("poisson", "1/10", records=5, released="average")
    assert averaged.summary.endswith("poisson sampling at rate 1/10, 5 records, averages released")
    assert averaged != GAUSSIAN.subsample("poisson", "1/10")
    protection = compose(averaged).protection
    assert "averages over the records drawn: an upper bound" in protection.sentence
    assert protection.to_json()["released"] == "average"
    ledger = Ledger()
    ledger.add(averaged, 3)
    assert Ledger.from_state_dict(ledger.state_dict()).steps == ledger.steps


def test_a_file_says_averages():
    text = """
name = "noise"
variable = "x"
support = ["-oo", "oo"]
[noise]
density = "exp(-x**2/8)/(2*sqrt(2*pi))"
[sampling]
scheme = "poisson"
rate = "1/10"
records = 30
released = "average"
"""
    assert Mechanism.from_toml(text).sampling.released == "average"
    with refused("did you mean 'average'"):
        Mechanism.from_toml(text.replace('"average"', '"averages"'))


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: GAUSSIAN.subsample("poisson", 0.1, released="average"), "needs records"),
        (lambda: GAUSSIAN.subsample("poisson", 0.1, released="rate_average"), "len(data)"),
        (
            lambda: GAUSSIAN.subsample("poisson", 0.1, records=9, released="average", group=2),
            "a group of 2",
        ),
        (
            lambda: GAUSSIAN.subsample("without_replacement", 0.1, records=9, released="average"),
            "not for without_replacement",
        ),
        (
            lambda: GAUSSIAN.subsample("poisson", 0.1, records=9, released="average").under(
                "zero_out"
            ),
            "not for zero_out",
        ),
        (
            lambda: (
                mechanisms.gumbel(b=1)
                .subsample("poisson", 0.1, records=9, released="average")
                .pair()
            ),
            "exchanging a record of a batch",
        ),
    ],
)
def test_what_is_not_proved_is_refused(make, part):
    with refused(part):
        make()
