"""Cumulants of a loss whose K has no closed form, as integrals that are written out."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

from symdp.derive import derive
from symdp.derive.series import cumulant
from symdp.model.mechanism import Mechanism

X = sp.Symbol("x", real=True)
AT = sp.Rational(1, 4)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_cumulants_are_those_of_the_tilted_loss(order):
    """ℓ = log((x + 2)/3) under e^{−x}(x + 2)^{1+t} on a ray, t = ¼, by mpmath."""
    law = Mechanism.from_pair((X + 2) * sp.exp(-X) / 3, sp.exp(-X), X, (0, sp.oo), name="lines")
    d = derive(law)
    assert d.cgf.expression is None
    written = cumulant(d, order).subs(d.cgf.tilt, AT)
    with mpmath.workdps(20):
        places = [0, 1, 4, 12, 30, 80]

        def integral(function):
            return mpmath.quad(function, places)

        values = {
            node: sp.Float(integral(sp.lambdify(X, node.function, "mpmath")), 20)
            for node in written.atoms(sp.Integral)
        }
        found = mpmath.mpf(str(written.xreplace(values).evalf(20)))

        def moment(power, centre):
            return integral(
                lambda x: (
                    mpmath.exp(-x)
                    * (x + 2) ** mpmath.mpf("1.25")
                    * (mpmath.log((x + 2) / 3) - centre) ** power
                )
            )

        mean = moment(1, 0) / moment(0, 0)
        truth = mean if order == 1 else moment(order, mean) / moment(0, 0)
        assert abs(found - truth) < 1e-14
