"""One set of nodes for K at many tilts, against integration that knows no nodes."""

from __future__ import annotations

import pytest
import sympy as sp
from catalogue import ALL
from flint import arb, ctx

from symdp import mechanisms
from symdp.balls.enclosure import cgf_ball
from symdp.certify.parts import Parts
from symdp.model.mechanism import Mechanism

HALF_NORMAL = ALL["half-normal noise"].mechanism("half-normal")
STEPS = {
    "sampled": mechanisms.gaussian(sigma=1.5).subsample("poisson", sp.Rational(1, 100)),
    "atoms": mechanisms.laplace(b=2),
    "tiny losses": mechanisms.gumbel(b=10**6),
    "large losses": mechanisms.gaussian(sigma=sp.Rational(1, 2)),
    "integers": mechanisms.discrete_gaussian(sigma=3),
    "singular at an end": HALF_NORMAL.subsample("poisson", "1/9"),
}
TILT, LOW, HIGH = sp.Rational(3, 4), sp.Rational(1, 16), sp.Rational(5, 4)


@pytest.mark.parametrize("name", STEPS)
def test_shared_nodes_give_the_cgf_at_every_tilt(name):
    pair = STEPS[name].pair()
    parts = Parts(pair)
    parts.share(TILT, LOW, HIGH)
    (family,) = parts._families
    with ctx.workprec(128):
        for tilt in (LOW, sp.Rational(1, 3), TILT, sp.Rational(9, 8), HIGH):
            found = family.cgf(tilt)
            assert found is not None
            assert found.overlaps(cgf_ball(pair, tilt).real)
            assert found.rad() < 1e-13
            assert parts.cgf(tilt).overlaps(found)
        assert family.cgf(LOW / 2) is None
        assert family.cgf(HIGH * 2) is None


def test_a_tilt_beyond_the_domain_is_not_shared():
    """E e^{tL} of this step is infinite from a tilt between the two ends on."""
    parts = Parts(ALL["gamma noise"].mechanism("gamma").pair("add"))
    parts.share(sp.Rational(1, 8), sp.S.Zero, sp.Integer(40))
    found = parts.cgf(sp.Rational(1, 8))
    assert found.is_finite()
    assert all(family.highest < 40 or family.cgf(sp.Integer(40)) for family in parts._families)


@pytest.mark.parametrize("name", STEPS)
def test_the_deviation_is_about_a_difference_of_the_cgf(name):
    """It decides about cost alone."""
    pair = STEPS[name].pair()
    with ctx.workprec(600):
        step = sp.Rational(1, 2**20)
        low, middle, high = (cgf_ball(pair, TILT + k * step, 100).real for k in (-1, 0, 1))
        variance = float((low + high - 2 * middle) * arb(2) ** 40)
    assert abs(Parts(pair).deviation(TILT) / variance**0.5 - 1) < 1e-6


def test_slopes_at_a_turning_point_of_ten_digits_are_told_from_zero():
    """Where the loss of this noise turns, exponentials are powers that no integer may have."""
    x = sp.Symbol("x", real=True)

    def normal(scale):
        return sp.exp(-(x**2) / (2 * scale**2)) / (scale * sp.sqrt(2 * sp.pi))

    pair = Mechanism.additive(normal(1) / 2 + normal(3) / 2, x).pair()
    parts = Parts(pair)
    assert len(parts.stretches) == 5
    with ctx.workprec(128):
        assert parts.cgf(TILT).overlaps(cgf_ball(pair, TILT).real)
