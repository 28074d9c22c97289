"""Bounds of |M| hold at every frequency beyond, on laws that nobody tuned them for."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import sympy as sp
from flint import arb, ctx

from symdp import mechanisms
from symdp.model.mechanism import Mechanism
from symdp.prove.falling import Falling
from symdp.prove.kind import kind_of
from symdp.prove.lattice import _modulus_bound
from symdp.prove.measure import Asked, measure, single_losses, walk
from symdp.prove.plan import panels_of

x = sp.Symbol("x", real=True)
R = sp.Rational


def turning():
    """A loss that falls and rises again within a stretch, its density infinite where it turns."""
    p = (sp.exp(-((x - 1) ** 2) / 2) + sp.exp(-((x + 1) ** 2) / 2)) / 2 / sp.sqrt(2 * sp.pi)
    return Mechanism.from_pair(p, sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi), x, name="two modes")


def waving():
    """An oscillating density on an interval."""
    p = 1 + sp.sin(6 * sp.pi * x) / 2
    return Mechanism.from_pair(p, sp.Integer(1) + 0 * x, x, (0, 1), name="waves")


LAWS = {
    "gaussian": mechanisms.gaussian(sigma=1),
    "sampled": mechanisms.gaussian(sigma=2).subsample("poisson", "1/20"),
    "logistic": mechanisms.logistic(s=2),
    "heavy": mechanisms.student_t(nu=3, s=2),
    "atoms beside": mechanisms.laplace(b=1).subsample("poisson", "1/3"),
    "two modes": turning(),
    "waves": waving(),
}


SLOW = ("heavy", "two modes", "waves")
CASES = [
    pytest.param(name, orders, marks=pytest.mark.slow if name in SLOW or orders > 3 else ())
    for name in LAWS
    for orders in (0, 3, 8)
]


@pytest.mark.quick_cases("atoms beside-3")
@pytest.mark.parametrize(("name", "orders"), CASES)
def test_no_value_beyond_a_frequency_exceeds_its_bound(name, orders):
    kind, tilt = kind_of(LAWS[name].pair()), 1.5
    scale = float(kind.law.transform(np.asarray([tilt]))[0]) + tilt * kind.law.base.mean
    reach = 60.0
    panels = panels_of(kind, tilt, reach, -30.0)
    asked = Asked(arb(tilt), scale, -25.0, reach)
    with ctx.workprec(100):
        nodes = measure(kind, panels, [asked])
        single = single_losses(kind, panels, asked)
        share = 1e-4 if orders else 0.02
        total = nodes.total(asked, 0)
        fall = Falling(kind, panels, tilt, scale, total, single, share, orders)
        values = walk(nodes.weighted(asked), nodes.losses, nodes.errors[0], arb(1) / 8)
        sizes = [float(abs(v).lower()) for v in itertools.islice(values, int(8 * reach))]
    assert fall.at(1e-9) == pytest.approx(sizes[0], rel=1e-6)
    largest = np.maximum.accumulate(sizes[::-1])[::-1]
    for k, most in enumerate(largest.tolist()):
        if k:
            assert most <= fall.at(k / 8)
    if name not in ("atoms beside", "waves"):  # and far out it says something
        assert fall.at(reach) < 0.75


def test_without_the_slope_of_the_loss_a_bound_is_broken(monkeypatch):
    """Layers twice as high as the density hold no longer."""
    real = Falling.at

    def bold(self, y):
        heights, widths = self._layer_sizes
        self._layer_sizes = 2 * heights, widths
        found = real(self, y)
        self._layer_sizes = heights, widths
        return found

    monkeypatch.setattr(Falling, "at", bold)
    with pytest.raises(AssertionError):
        test_no_value_beyond_a_frequency_exceeds_its_bound("gaussian", 0)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 9, 40, 1001])
def test_neighbouring_points_of_a_lattice_never_add_up_to_more(length):
    angles = np.linspace(1e-6, math.pi / 2, 20_011)
    sums = np.abs(np.sin(length * angles) / (length * np.sin(angles)))
    largest = np.maximum.accumulate(sums[::-1])[::-1]
    layers = 1.0, np.asarray([1.0 / length]), np.asarray([float(length)])
    for k in range(0, angles.size, 371):
        assert largest[k] <= _modulus_bound(layers, float(angles[k])) * (1 + 1e-8)
