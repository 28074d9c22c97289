"""The mesh against every sum listed in exact arithmetic, at ε of every kind."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from scipy.special import erfc

from symdp.numeric.answer import margin
from symdp.numeric.beyond.kinks import (
    CENTRE,
    FAR_ABOVE,
    FEJER,
    GAUSSIANS,
    STEEPNESS,
    majorant_transform,
)
from symdp.numeric.cut_off import mesh_answer
from symdp.numeric.loss import LossLaw
from symdp.numeric.step import Step
from symdp.numeric.total import SumLaw


def law_of(loss, mass):
    from flint import arb

    balls = tuple((arb(m), arb(v)) for v, m in zip(loss.tolist(), mass.tolist(), strict=True))
    step = Step("test", point_loss=loss, point_log_p=np.log(mass), point_balls=balls)
    return LossLaw(step, (float(loss.min()), float(loss.max())))


def random_step(random, values):
    """Return losses off any lattice, rising, and masses, some of them small."""
    loss = np.sort(random.normal(size=values)) * random.choice([0.01, 0.3, 2.0])
    mass = np.exp(-random.choice([0.5, 3.0, 8.0]) * random.random(values))
    return loss, mass / mass.sum()


def truth(steps, epsilon):
    """Return log δ from every sum, in 40 digits."""
    with mpmath.workdps(40):
        sums = {Fraction(0): mpmath.mpf(1)}
        for (loss, mass), count in steps:
            for _ in range(count):
                grown: dict = {}
                for total, weight in sums.items():
                    for v, m in zip(loss.tolist(), mass.tolist(), strict=True):
                        key = total + Fraction(v)
                        grown[key] = grown.get(key, mpmath.mpf(0)) + weight * mpmath.mpf(m)
                sums = grown
        whole = mpmath.fsum(sums.values())
        gains = [
            weight * -mpmath.expm1(-mpmath.mpf(t.numerator) / t.denominator)
            for total, weight in sums.items()
            if (t := total - Fraction(epsilon)) > 0
        ]
        return (float(mpmath.log(mpmath.fsum(gains) / whole)) if gains else -math.inf), sorted(sums)


def places(sums, random):
    """Return ε below the mean, between sums, at a sum exactly and far out."""
    some = [float(x) for x in sums]
    low, high = some[0], some[-1]
    at = some[int(len(some) * 0.6)]
    return [
        low + (high - low) * 0.2,
        low + (high - low) * random.random(),
        at,
        high - (high - low) * 0.05 * random.random(),
    ]


@pytest.mark.slow_cases("4")
@pytest.mark.parametrize(
    "seed", [1, 4, *(pytest.param(k, marks=pytest.mark.slow) for k in (0, 2, 3, 5, 6, 7, 8, 9))]
)
def test_bounds_hold_what_every_sum_adds_up_to(seed):
    random = np.random.default_rng(seed)
    values, count = int(random.integers(2, 5)), int(random.integers(2, 5))
    steps = [(random_step(random, values), count)]
    if seed % 3 == 0:
        steps.append((random_step(random, 2), 2))
    law = SumLaw([(law_of(*step), n) for step, n in steps])
    _, sums = truth(steps, 0.0)
    for epsilon in places(sums, random):
        if not law.loss_bounds[0] < epsilon < law.loss_bounds[1]:
            continue
        found = mesh_answer(law, epsilon)
        exact, _ = truth(steps, epsilon)
        assert found.log_lower <= exact <= found.log_upper, (epsilon, found, exact)
        if epsilon != places(sums, random)[2]:
            assert margin(found) < 1e-3


def test_the_majorant_lies_above_what_the_cut_off_changes_at_every_tilt():
    """The three facts that the proof in `smoothed` rests on, at steps with the slope between."""
    step, far, spread = 1e-3, 105.0, 2.0 * STEEPNESS**2
    u = np.arange(0.0, 240.0, step)
    transform = np.sinc(CENTRE * u / np.pi) * CENTRE / np.pi * np.exp(-(u**2) / (2.0 * spread))
    integrals = [transform]
    for _ in range(7):
        integrals.append(cumulative_simpson(integrals[-1][::-1], dx=step, initial=0.0)[::-1])
    orders = range(6)  # D₀ … D₅
    share = [(m + 1.0) / FAR_ABOVE**m for m in orders]
    changed = sum(c * abs(integrals[m + 2]) for m, c in zip(orders, share, strict=True))
    slope = sum(c * abs(integrals[m + 1]) for m, c in zip(orders, share, strict=True))
    bound = FEJER * np.sinc(u / (2.0 * np.pi)) ** 2
    bound += sum(height * np.exp(-((u / width) ** 2)) for height, width in GAUSSIANS)
    # Orders from 6 on: Σ (m+1) xᵐ with x = 1/(Rw) under the integral, the first fact for large u.
    w = np.geomspace(2.0 / FAR_ABOVE, 50.0, 20_001)
    lacking = 0.5 * (erfc(STEEPNESS * (CENTRE - w)) + erfc(STEEPNESS * (CENTRE + w)))
    x = 1.0 / (FAR_ABOVE * w)
    rest = lacking / w**2 * x**6 * (7.0 - 6.0 * x) / (1.0 - x) ** 2
    small = np.full(u.size, np.trapezoid(rest, w) / np.pi)
    large = u > 10.0
    ratio = spread / (u[large] * FAR_ABOVE)
    gauss = spread**2 * np.exp(-(u[large] ** 2) / (2.0 * spread)) / (np.pi * u[large] ** 3)
    small[large] = np.minimum(small[large], 7.0 * ratio**6 / (1.0 - ratio) ** 2 * gauss)
    assert (changed + small + step * slope <= bound)[u < far].all()
    assert ((changed + small) <= 0.9931 * bound)[u < far].all()
    beyond = u[large] >= far
    assert (gauss[beyond] / (1.0 - ratio[beyond]) ** 2 <= 0.8 * bound[large][beyond]).all()
    assert (np.abs(integrals[2][large]) <= gauss).all()
    frequency = np.linspace(0.0, 1.0, 11)
    direct = 2.0 * step * np.cos(np.outer(frequency, u)) @ (bound * np.where(u > 0, 1.0, 0.5))
    assert np.allclose(majorant_transform(frequency), direct, atol=0.02)


@pytest.mark.parametrize("deviations", [-1.0, 2.0, 6.0])
@pytest.mark.parametrize(
    ("loss", "mass", "count"),
    [
        ([-0.00113, 0.0007, 0.0021], [0.5, 0.3, 0.2], 1500),  # one value bounds a cell of nodes
        ([-0.2, 0.1000013, 0.4000007], [0.5, 0.3, 0.2], 40),  # |φ| comes near 1 again and again
    ],
)
def test_what_lines_leave_out_is_counted(loss, mass, count, deviations):
    """Against the sum over all counts of two of three losses, in extended precision."""
    losses, masses = np.asarray(loss), np.asarray(mass)
    mean = float(losses @ masses)
    variance = float(masses @ (losses - mean) ** 2)
    epsilon = count * mean + deviations * math.sqrt(count * variance)
    first, second = np.indices((count + 1, count + 1)).reshape(2, -1)
    third = count - first - second
    possible = third >= 0
    counts = np.stack([first, second, third])[:, possible]
    logs = np.log(np.arange(1, count + 1, dtype=np.longdouble))
    log_factorial = np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(logs)])
    log_p = log_factorial[count] - log_factorial[counts].sum(axis=0)
    log_p = log_p + np.log(np.asarray(mass, dtype=np.longdouble)) @ counts
    gap = np.asarray(loss, dtype=np.longdouble) @ counts - epsilon
    passing = gap > 0
    terms = np.exp(log_p[passing]) * -np.expm1(-gap[passing])
    truth_of_all = float(np.log(np.sort(terms).sum()))
    answer = mesh_answer(SumLaw([(law_of(losses, masses), count)]), epsilon)
    assert answer.log_lower <= truth_of_all <= answer.log_upper
    assert margin(answer) < 2e-8
