"""Densities of erfc: the logarithm of 2c − c erfc z is that of erfc(−z), on either side of 0."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import sympy as sp

from symdp import Mechanism, compose
from symdp.emit.log_sum_exp import LogErfc, _log_of_erf_tail

X = sp.Symbol("x", real=True)
NOISE = Mechanism.additive(
    sp.erfc(sp.Abs(X) / 2), X, sensitivity=1, normalize=True, shift="exactly"
)


@pytest.mark.parametrize("scale", [1, sp.Rational(3, 2)])
def test_sympy_writes_erfc_of_a_negative_argument_as_a_difference(scale):
    assert _log_of_erf_tail(scale * sp.erfc(-X / 2)) == LogErfc(-X / 2) + sp.log(scale)
    assert _log_of_erf_tail(3 - sp.erfc(X)) is None
    assert _log_of_erf_tail(2 + sp.erfc(X)) is None


@pytest.mark.parametrize("place", [-4.0, -20.0, -60.0])
def test_both_tails_of_a_distance_are_known(place):
    """Where 1 + erf has no digits left and where it is 0 in doubles."""
    (law, _), *_ = compose(NOISE).law("remove").terms
    (piece,) = [o.piece for o in law.outlines if o.piece.lower < place < o.piece.upper]
    _, log_q, loss = (float(part[0]) for part in piece.values(np.asarray([place])))
    with mp.workdps(40):
        log_size = mp.log(mp.erfc(mp.mpf(-place) / 2))
        log_shifted = mp.log(mp.erfc((1 - mp.mpf(place)) / 2))
        mass = 4 / mp.sqrt(mp.pi)
        assert log_q == pytest.approx(float(log_size - mp.log(mass)), rel=1e-13)
        assert loss == pytest.approx(float(log_shifted - log_size), rel=1e-12)


def test_steps_of_a_distance_have_all_tilts():
    """δ of five steps on two lattices of losses, by a transform of NumPy (tests/strangers)."""
    law = compose(NOISE, 5).law("remove")
    assert law.domain == (-math.inf, math.inf)
    assert compose(NOISE, 5).delta(1).delta == pytest.approx(0.5133461648, rel=1e-9)
