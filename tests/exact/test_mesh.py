"""The mesh against every sum listed in exact arithmetic, at ε of every kind."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from symdp.exact.error_bars import margin
from symdp.exact.mesh.mesh import mesh_answer
from symdp.exact.mesh.smoothed import CENTRE, STEEPNESS, majorant_transform
from symdp.law.loss import LossLaw
from symdp.law.step import Step
from symdp.law.total import SumLaw


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


def test_the_majorant_lies_above_what_the_cut_off_changes():
    from scipy.special import erfc, sici

    u = np.linspace(0.0, 80.0, 641)
    w = np.linspace(1e-6, 1.0, 8001)
    c = 0.5 * (erfc(STEEPNESS * (w - CENTRE)) - erfc(STEEPNESS * (w + CENTRE)))
    inner = np.trapezoid(np.cos(np.outer(u, w)) * ((1.0 - c) / w**2), w, axis=1)
    beyond = np.cos(u) - u * (0.5 * np.pi - sici(u)[0])
    changed = np.abs(inner + beyond) / np.pi
    majorant = np.trapezoid(np.cos(np.outer(u, w)) * majorant_transform(w), w, axis=1) / np.pi
    assert (changed <= majorant / 1.05 + 1e-6).all(), (changed / majorant).max()
