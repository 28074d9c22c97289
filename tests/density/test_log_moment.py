"""K at complex z: the branch that is real between the ends of K's domain, by mpmath."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

from symdp.density.log_moment import continued
from symdp.errors import InputError

Z = sp.Symbol("z")
HALF = sp.Rational(1, 2)
PLACES = (0.3 + 0.2j, -0.4 + 9j, 0.9 - 41j, 2000j)


@pytest.mark.parametrize("power", [HALF, -sp.Rational(5, 3), sp.Integer(2)])
@pytest.mark.parametrize("roots", [(-1, 3), (-2, -2), (-1, 2, 5), (-3, -3, 4)])
def test_a_logarithm_of_linear_factors_keeps_its_branch(roots, power):
    """c Σ log(1 − z/r) with roots outside of (−1, 1), where no factor is negative."""
    product = sp.expand(sp.Mul(*(1 - Z / root for root in roots)))
    formula = sp.lambdify(Z, continued(power * sp.log(7 * product) + Z, Z), "mpmath")
    with mpmath.workdps(30):
        for place in PLACES:
            z = mpmath.mpmathify(place)
            logs = mpmath.log(7) + sum(mpmath.log(1 - z / root) for root in roots)
            truth = mpmath.mpf(power.p) / power.q * logs + z
            assert abs(formula(z) - truth) < 1e-25 * abs(truth)


def test_a_branch_that_is_not_known_is_refused():
    """√(1 + z²) has its cut in the strip where K is asked, beyond ±i."""
    with pytest.raises(InputError, match="has a cut"):
        continued(sp.log(1 + Z**2) / 2, Z)
    with pytest.raises(InputError, match="is not known"):
        continued(sp.sqrt(2 + sp.cos(Z)), Z)
