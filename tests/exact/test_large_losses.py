"""Rare large losses on single values: against proofs, and against sums in many digits."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest

from symdp import compose, mechanisms

SIGMA = 3


def sampled(rate):
    return mechanisms.discrete_gaussian(sigma=SIGMA).subsample("poisson", rate)


def atoms(rate):
    """Masses under P and losses, in the digits of the context."""
    q = mpmath.mpf(rate)
    places = range(-60, 140)
    sizes = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * SIGMA**2)) for k in places]
    whole = mpmath.fsum(sizes)
    found = []
    for k, size in zip(places, sizes, strict=True):
        ratio = 1 - q + q * mpmath.exp(mpmath.mpf(2 * k - 1) / (2 * SIGMA**2))
        found.append((size / whole * ratio, mpmath.log(ratio)))
    return found


@pytest.mark.slow_cases("0.001-1.0", "0.01-0.6")
@pytest.mark.parametrize(("rate", "epsilon"), [("0.001", 0.3), ("0.001", 1.0), ("0.01", 0.6)])
def test_two_steps_are_held_by_the_bounds(rate, epsilon):
    found = compose(sampled(rate), 2).delta(epsilon, direction="remove")
    with mpmath.workdps(30):
        law = atoms(rate)
        delta = mpmath.fsum(
            p * r * -mpmath.expm1(epsilon - a - b)
            for p, a in law
            for r, b in law
            if a + b > epsilon
        )
        exact = float(mpmath.log(delta))
    assert found.log_lower <= exact <= found.log_upper
    assert found.log_upper - found.log_lower < 1e-6


@pytest.mark.slow_cases("1/1000-4-0.5")
@pytest.mark.parametrize(("rate", "count", "epsilon"), [("1/1000", 4, 0.5), ("1/100", 3, 1.0)])
def test_few_steps_against_proofs(rate, count, epsilon):
    """Of three or four steps all may have large losses."""
    steps = compose(sampled(rate), count)
    found = steps.delta(epsilon, direction="remove")
    proved = steps.certify(epsilon, digits=12, direction="remove")
    assert found.log_lower <= proved.log_upper
    assert proved.log_lower <= found.log_upper
    assert found.log_upper - found.log_lower < 1e-6


@pytest.mark.slow_cases("100")
@pytest.mark.parametrize("count", [20, 100])
def test_many_steps_against_one_large_loss(count):
    """Far out one loss alone makes δ: n P(L > ε) and what the others add to it, about n E L²."""
    steps = compose(sampled("1/1000"), count)
    epsilon = 2.0
    found = steps.delta(epsilon, direction="remove")
    with mpmath.workdps(30):
        law = atoms("0.001")
        mean, spread = (mpmath.fsum(p * b**k for p, b in law) for k in (1, 2))
        shift = (count - 1) * mean
        first = mpmath.log(
            count
            * mpmath.fsum(
                p * -mpmath.expm1(epsilon - shift - b) for p, b in law if b > epsilon - shift
            )
        )
    assert found.log_upper - found.log_lower < 1e-6
    assert abs(found.log_delta - float(first)) < 200 * count * float(spread)
    assert found.log_delta != pytest.approx(float(first), abs=1e-9)  # others do count


@pytest.mark.slow
def test_delta_falls_between_one_and_two_large_losses():
    steps = compose(sampled("1/1000"), 10)
    values = [steps.delta(e, direction="remove") for e in (0.3, 0.5, 0.8, 1.3)]
    for near, far in itertools.pairwise(values):
        assert far.log_upper < near.log_lower
        assert math.isfinite(far.log_lower)
