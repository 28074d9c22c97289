"""Rare large losses on single values: against proofs, and against sums in many digits."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest
import sympy

from symdp import Mechanism, compose, mechanisms

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_very_little_noise_is_told_by_whether_a_record_was_drawn():
    # A drawn record's loss is 1250 ± 50, and of none −2.004: δ(1) is the chance that one was drawn
    # but for e^-100.
    little = mechanisms.gaussian(sigma="1/50").subsample("poisson", "250/60000")
    found = compose(little, 480).delta(1.0)
    truth = 1 - (239 / 240) ** 480
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower < 1e-5 * truth
    assert found.kind != "estimate"


@pytest.mark.slow
def test_sampled_noise_of_bounded_support_has_an_answer():
    # Masses of cells from the distribution function, losses of a step rounded down and up to a mesh
    # of 2·10⁻⁵, added by FFT in NumPy; one in 12 000 outputs of a run is an infinite loss.
    x = sympy.Symbol("x", real=True)
    wave = Mechanism.additive(
        sympy.cos(sympy.pi * x / 20) ** 4, x, support=(-10, 10), normalize=True
    )
    found = compose(wave.subsample("poisson", "1/20"), 100).delta(1.0)
    assert 0.00068490 < found.lower <= found.upper < 0.00068653
    assert found.kind != "estimate"
