"""Sums taken apart bound the exponentials they stand for, and tails follow from them."""

from __future__ import annotations

import math

import mpmath
import pytest
import sympy as sp
from flint import arb

from symdp import mechanisms
from symdp.balls.cuts import cut_tails
from symdp.balls.majorants import majorants
from symdp.derive.pieces import pieces

x = sp.Symbol("x", real=True)
HALF = sp.Rational(1, 2)
LOGISTIC = -x - 2 * sp.log(1 + sp.exp(-x))


def sampled(name, direction, weight, **free):
    """Return the exponent log P + wℓ of a sampled mechanism."""
    mechanism = getattr(mechanisms, name)(**free).subsample("poisson", "1/100")
    pair = mechanism.pair(direction)
    (piece,) = pieces(pair)
    return (piece.log_p + weight * piece.loss).xreplace({pair.variable: x})


EXPONENTS = {
    "a power": 3 * sp.log(sp.exp(x) / 2 + HALF) - x**2,
    "a root": HALF * sp.log(sp.exp(x) + x**2) - x**2,
    "a quotient": LOGISTIC,
    "logistic, remove": sampled("logistic", "remove", 5, s=2),
    "logistic, add": sampled("logistic", "add", 5, s=2),
    "gumbel, remove": sampled("gumbel", "remove", sp.Rational(7, 2), b=2),
    "gaussian, add": sampled("gaussian", "add", 2, sigma=1),
}


@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize("name", EXPONENTS)
def test_the_sum_is_never_less(name, direction):
    exponent = EXPONENTS[name]
    parts = majorants(exponent, x, direction)
    assert parts is not None
    for place in (-40, -7, -1, HALF, 3, 12, 60):
        with mpmath.workdps(30):
            values = [mpmath.mpf(part.subs(x, place).evalf(30)) for part in [exponent, *parts]]
            whole, total = mpmath.exp(values[0]), mpmath.fsum(map(mpmath.exp, values[1:]))
            assert total >= whole * (1 - mpmath.mpf(10) ** -20)


def test_what_has_no_sum_is_left_alone():
    assert majorants(-(x**2) / 2 + x, x, 1) is None
    assert majorants(sp.log(1 - sp.exp(-(x**2))), x, 1) is None  # a difference


@pytest.mark.parametrize("weight", [0, 5])
@pytest.mark.parametrize("name", ["logistic", "gumbel"])
def test_tails_of_sampled_noise_are_bounded_closely(name, weight):
    from symdp.emit import compile_arb

    exponent = sampled(name, "remove", weight, **{"s" if name == "logistic" else "b": 2})
    compiled = compile_arb(exponent, [x])
    (low, high), beyond = cut_tails(
        exponent, lambda at: arb(compiled(at).exp()), x, [None, None], arb(2) ** -60
    )
    size = sp.lambdify(x, exponent, "mpmath")
    with mpmath.workdps(30):
        ends = [mpmath.mpf(float(low)), mpmath.mpf(float(high))]
        tails = [
            mpmath.quad(lambda at: mpmath.exp(size(at)), [end, end + side * 40])
            for end, side in zip(ends, (-1, 1), strict=True)
        ]
        assert math.fsum(map(float, tails)) <= float(beyond.upper())
    assert float(high - low) < 1000
