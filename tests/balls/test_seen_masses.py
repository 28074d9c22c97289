"""Masses that no proof reaches: found by two quadratures, said to be seen, refused as proofs."""

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.balls.normalizer import enclose_normalizer, is_proved
from symdp.balls.numeric_mass import two_masses
from symdp.emit.mass import MassIntegral
from symdp.errors import InputError

X = sp.Symbol("x", real=True)
BUMP = sp.exp(-1 / (1 - X**2))
HEAVY = (1 + X / sp.sqrt(3 + X**2)) ** 2 * (1 - X / sp.sqrt(3 + X**2)) ** 3


@pytest.mark.parametrize(
    ("density", "ends"), [(BUMP, (-1, 1)), (HEAVY, (-sp.oo, sp.oo))], ids=["bump", "heavy"]
)
def test_masses_are_found_with_and_without_a_proof(density, ends):
    mass = enclose_normalizer(MassIntegral(density, (X, *ends)))
    value = sp.lambdify(X, density, "mpmath")
    low, high = (mpmath.mpf(str(end).replace("oo", "inf")) for end in ends)
    with mpmath.workdps(40):
        truth = mpmath.quad(value, [low, -0.5, 0, 0.5, high])
    assert is_proved(mass) is (density is HEAVY)  # which needs roots that do not cancel
    assert abs(float(mass.mid()) / float(truth) - 1) < 1e-14


def test_a_removable_singularity_is_left_out_by_a_hair():
    slash = (1 - sp.exp(-(X**2) / 2)) / (X**2 * sp.sqrt(2 * sp.pi))
    assert max(abs(mass - 1) for mass in two_masses(slash, X, -sp.oo, sp.oo)) < 1e-14


def test_what_was_only_seen_is_answered_and_never_proved():
    noise = symdp.Mechanism.additive(
        BUMP, X, sp.Rational(1, 20), support=(-1, 1), normalize=True, name="bump"
    )
    step = symdp.compose(noise, 1)
    assert 0 < step.delta(1.0).delta < 1
    with pytest.raises(InputError, match="could not be shown to have mass 1"):
        step.certify(1.0)
