"""The moments of a loss that turns many times, under tilts that see only where it turns."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

import symdp
from symdp.methods import accountant
from symdp.model.reading.parser import parse
from symdp.numeric.total import SumLaw


def _density(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-1.27 * x) * (1.74 + np.cos(1.3 * x)))


def _loss(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(_density(x)) - np.log(_density(x + 0.26)))


@pytest.fixture(scope="module")
def law() -> SumLaw:
    x = sp.Symbol("x", real=True)
    mechanism = symdp.Mechanism.additive(
        parse("exp(-1.27*x)*(1.74+cos(1.3*x))", {"x": x}),
        x,
        sp.Rational("0.26"),
        (0, sp.oo),
        shift="exactly",
        normalize=True,
    )
    return symdp.compose(mechanism, 2).law("remove")


@pytest.mark.slow_cases("-1000000.0", "-10000.0")
@pytest.mark.parametrize("tilt", [-1e6, -1e4, -3000.0, 300.0, 3000.0, 1e6])
def test_cgf_counts_every_turn_of_the_loss(law: SumLaw, tilt: float) -> None:
    """Laplace's trapezoids around each turn: they shrink with the tilt, and none may be missed."""
    grid = np.linspace(0.0, 60.0, 600_001)
    sign = math.copysign(1.0, tilt)
    seen = sign * _loss(grid)
    inner = (seen[1:-1] > seen[:-2]) & (seen[1:-1] >= seen[2:])
    peaks = grid[1:-1][inner]
    width = min(60.0 / math.sqrt(abs(tilt)), 1.4)
    around = np.linspace(-width, width, 20_001)
    top = max(float(tilt * _loss(np.asarray([x]))[0]) for x in peaks)
    total = 0.0
    for peak in peaks:
        x = peak + around
        x = x[x >= 0.0]
        total += float(np.trapezoid(_density(x) * np.exp(tilt * _loss(x) - top), x))
    whole = np.linspace(0.0, 60.0, 2_000_001)
    mass = float(np.trapezoid(_density(whole), whole))
    assert law.cgf(tilt) == pytest.approx(2.0 * (top + math.log(total / mass)), rel=1e-12, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_bounds_on_a_mesh_hold_where_the_loss_turns(epsilon: float, law: SumLaw) -> None:
    """One end of the mesh follows from far tilts: a mass that they miss is put in the wrong place.

    The truth is a sum of the two steps' losses on cells of 2e-4, of which P jumps at no inner one.
    """
    x = (np.arange(300_000) + 0.5) * 2e-4
    mass = _density(x) / _density(x).sum()
    spacing, size = 2e-6, 1 << 21
    place = np.rint(_loss(x) / spacing).astype(np.int64) % size
    total = np.fft.irfft(np.fft.rfft(np.bincount(place, mass, size)) ** 2, size)
    losses = np.where(np.arange(size) < size // 2, np.arange(size), np.arange(size) - size)
    truth = float(total @ -np.expm1(np.minimum(epsilon - losses * spacing, 0.0)))
    for method in ("prv", "tilted-prv"):
        found = accountant(method, points=1 << 15).log_delta(law, epsilon)
        assert math.exp(found.log_lower) <= truth * (1 + 1e-6), method
        assert truth * (1 - 1e-6) <= math.exp(found.log_upper), method


@pytest.mark.slow
def test_a_density_that_touches_zero_is_resolved_around_it() -> None:
    """There P has no mass while Q has: the loss is infinite at a place that no tilt weighs."""
    x = sp.Symbol("x", real=True)
    mechanism = symdp.Mechanism.additive(
        x**2 * sp.exp(-(x**2)),
        x,
        sp.Rational(3, 10),
        (-sp.oo, sp.oo),
        shift="exactly",
        normalize=True,
    )
    grid = np.linspace(-9.0, 9.0, 3_600_001)  # of which 0 and 0.3 are places
    p, q = ((grid - shift) ** 2 * np.exp(-((grid - shift) ** 2)) for shift in (0.3, 0.0))
    mass = float(np.trapezoid(q, grid))
    found = symdp.compose(mechanism, 1)
    overlap = float(np.trapezoid(np.sqrt(p * q), grid)) / mass
    assert found.law("remove").cgf(-0.5) == pytest.approx(math.log(overlap), rel=1e-9)
    truth = float(np.trapezoid(np.maximum(p - math.exp(0.1) * q, 0.0), grid)) / mass
    assert found.delta(0.1, direction="remove").delta == pytest.approx(truth, rel=1e-9)
    assert symdp.compose(mechanism, 30).delta(0.1).kind == "exact"
