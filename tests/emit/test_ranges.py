"""Ranges of functions hold their values, whatever few bits are carried."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from flint import arb, ctx

from symdp.emit.ranges import Ranges, Seen

X = sp.Symbol("x", real=True)
FUNCTIONS = {
    "exp": (sp.exp(X), mpmath.exp),
    "log": (sp.log(X), mpmath.log),
    "sqrt": (sp.sqrt(X), mpmath.sqrt),
    "erf": (sp.erf(X), mpmath.erf),
    "erfc": (sp.erfc(X), mpmath.erfc),
    "erfi": (sp.erfi(X), mpmath.erfi),
    "tanh": (sp.tanh(X), mpmath.tanh),
    "atan": (sp.atan(X), mpmath.atan),
    "sinh": (sp.sinh(X), mpmath.sinh),
    "asinh": (sp.asinh(X), mpmath.asinh),
    "log1p": (sp.log(1 + X), mpmath.log1p),
    "quotient": (1 / (2 + X), lambda x: 1 / (2 + x)),
    "power": ((2 + X) ** sp.Rational(-3, 2), lambda x: (2 + x) ** mpmath.mpf(-1.5)),
    "product": (sp.exp(X) * sp.sqrt(2 + X), lambda x: mpmath.exp(x) * mpmath.sqrt(2 + x)),
    "sum": (sp.atan(X) + sp.tanh(X) - sp.exp(-X),
            lambda x: mpmath.atan(x) + mpmath.tanh(x) - mpmath.exp(-x)),
}  # fmt: skip
INTERVALS = [(0.3, 0.7), (1.1, 1.1), (0.01, 5.0), (2.0, 9.0)]


def exact(ball):
    """A number without radius, as mpmath has it."""
    mantissa, exponent = ball.man_exp()
    return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("bits", [12, 20, 64])
def test_ends_are_rounded_outwards(name, bits):
    """Of functions that rise or fall; by no more than some of the bits."""
    expression, function = FUNCTIONS[name]
    with ctx.workprec(bits), mpmath.workdps(60):
        ranges = Ranges(expression, X)
        for low, high in INTERVALS:
            least, most = map(exact, ranges(arb(low), arb(high), Seen()))
            values = sorted([function(mpmath.mpf(low)), function(mpmath.mpf(high))])
            assert least <= values[0]
            assert values[1] <= most
            spare = (abs(values[0]) + abs(values[1]) + 4) * 2.0 ** (8 - bits)
            assert most - least <= values[1] - values[0] + spare


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("exp", 0, mpmath.inf), ("erf", -1, 1), ("erfc", 0, 2), ("tanh", -1, 1), ("sinh", None, None),
     ("atan", -mpmath.pi / 2, mpmath.pi / 2), ("asinh", None, None)],
)  # fmt: skip
def test_on_the_whole_line_ends_are_limits(name, least, most):
    infinite = arb.pos_inf()
    low, high = Ranges(FUNCTIONS[name][0], X)(-infinite, infinite, Seen())
    if least is None:
        assert (low, high) == (-infinite, infinite)
        return
    with mpmath.workdps(40):
        assert exact(low) <= least <= exact(low) + 1e-15
        assert high == infinite if most == mpmath.inf else most <= exact(high) <= most + 1e-15
