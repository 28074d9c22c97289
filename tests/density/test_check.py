"""Integrals that a closed form is compared with, of laws whose integrals are known."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

from symdp.density.check import moment
from symdp.density.records import Piece

X = sp.Symbol("x", real=True)
R = sp.Rational
RAY, LINE = (sp.S.Zero, sp.oo), (-sp.oo, sp.oo)
MASSES = {  # log f, where, and ∫f
    "a root at the end": (-sp.sqrt(X), RAY, sp.S(2)),
    "a small power": (-500 * X ** R(1, 100), RAY, 100 * sp.factorial(99) / sp.Integer(500) ** 100),
    "a root that ends": (sp.log(2 + sp.sqrt(1 - X)), (sp.S.Zero, sp.S.One), R(8, 3)),
    "no derivative is nought": (-X - 1 / X, RAY, 2 * sp.besselk(1, 2)),
    "a pole at the end": (-sp.log(X) / 2 - X, RAY, sp.sqrt(sp.pi)),
    "Cauchy": (-sp.log(1 + X**2), LINE, sp.pi),
    "a heavy right tail": (-R(6, 5) * sp.log(X), (sp.S.One, sp.oo), sp.S(5)),
    "a heavy left tail": (-R(6, 5) * sp.log(-X), (-sp.oo, -sp.S.One), sp.S(5)),
    "normal, far off": (-((X - 10**6) ** 2), LINE, sp.sqrt(sp.pi)),
}


@pytest.mark.parametrize("name", MASSES)
def test_a_mass_is_that_of_its_closed_form(name):
    """To the eighteen digits that forms are compared to."""
    log_density, (lower, upper), mass = MASSES[name]
    piece = Piece(lower, upper, log_density, None, sp.S.Zero, "constant")
    ball = moment(sp.S.One, [piece], [], X).real
    with mpmath.workdps(40):
        value = mpmath.mpf(ball.mid().str(40, radius=False))
        truth = mpmath.mpf(str(sp.N(mass, 40)))
        assert mpmath.almosteq(value, truth, rel_eps=mpmath.mpf(10) ** -18)
        assert float(ball.rad()) < 1e-18 * truth
