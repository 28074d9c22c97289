"""Pairs whose laws agree on a stretch, each divided by a constant that a quadrature finds.

The loss there is the difference of two constants: 0 to as many digits as they have.
"""

import math
from itertools import pairwise

import mpmath
import pytest
import sympy as sp

import symdp

STEPS = """
name = "steps"
variable = "x"
support = [-2, 2]
[pair]
normalize = true
P = "Piecewise(({high}, x >= 1), ({low}, True))"
Q = "Piecewise(({high}, x <= -1), ({low}, True))"
"""
BUMPS = """
name = "bumps"
variable = "x"
support = ["-6/5", "6/5"]
[pair]
normalize = true
P = "1/4 + Piecewise(({0}, (x >= 1/5) & (x < 6/5)), (0, True))"
Q = "1/4 + Piecewise(({1}, (x >= -1/5) & (x < 4/5)), (0, True))"
"""
SHAPES = {
    "sine": ("2*sin(pi*{0})/5", lambda u: 0.4 * mpmath.sin(mpmath.pi * u)),
    "power": ("{0}**2*(1 - {0})", lambda u: u**2 * (1 - u)),
    "exponential": ("exp(-{0})/3", lambda u: mpmath.exp(-u) / 3),
}


@pytest.mark.parametrize(("high", "low"), [("2", "sqrt(2)"), ("pi", "exp(1/5)"), ("3", "1")])
def test_two_heights(high, low):
    pair = symdp.Mechanism.from_toml(STEPS.format(high=high, low=low))
    tall, short = (float(sp.sympify(text)) for text in (high, low))
    truth = (tall - short * math.exp(0.2)) / (tall + 3 * short)
    answer = symdp.compose(pair).delta(0.2)
    assert answer.kind == "exact"
    assert answer.lower <= truth * (1 + 1e-15)
    assert answer.upper >= truth * (1 - 1e-15)


@pytest.mark.quick_cases("exponential")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_bump_that_moves_on_a_flat_base(shape):
    text, bump = SHAPES[shape]
    moved = [text.format(f"(x {offset})") for offset in ("- 1/5", "+ 1/5")]
    answer = symdp.compose(symdp.Mechanism.from_toml(BUMPS.format(*moved))).delta(
        "1/2", direction="remove"
    )

    def gap(x: mpmath.mpf) -> mpmath.mpf:
        p, q = (
            bump(x - c) if c <= x < c + 1 else mpmath.mpf(0)
            for c in (mpmath.mpf("0.2"), mpmath.mpf("-0.2"))
        )
        return (0.25 + p) - mpmath.exp(0.5) * (0.25 + q)

    with mpmath.workdps(25):
        ends = [mpmath.mpf(text) for text in ("-1.2", "-0.2", "0.2", "0.8", "1.2")]
        mass = mpmath.quad(lambda x: 0.25 + (bump(x - 0.2) if x >= 0.2 else 0), ends)
        inner = []
        for low, high in pairwise(GRID):
            has_jump = any(low <= end <= high for end in ends)
            if gap(low) * gap(high) < 0 and not has_jump:
                inner.append(mpmath.findroot(gap, (low, high), solver="anderson"))
        places = sorted([*ends, *inner])
        parts = [mpmath.quad(lambda x: max(gap(x), 0), piece) for piece in pairwise(places)]
        truth = sum(parts) / mass
    assert abs(answer.value - truth) < 1e-12


GRID = [mpmath.mpf(k) / 100 + mpmath.mpf("0.003") for k in range(-120, 120)]


LOCAL = """
name = "local"
variable = "x"
support = ["-(exp(e/2) + 1)/(exp(e/2) - 1)", "(exp(e/2) + 1)/(exp(e/2) - 1)"]
[parameters]
e = "positive"
[pair]
P = "(exp(e) - exp(e/2))/(2*exp(e/2) + 2)*Piecewise((1, x >= 1), (exp(-e), True))"
Q = "(exp(e) - exp(e/2))/(2*exp(e/2) + 2)*Piecewise((1, x <= -1), (exp(-e), True))"
"""


@pytest.mark.slow_cases("0.25")
@pytest.mark.parametrize("level", [0.25, 1, 4])
def test_ends_that_hold_a_parameter_may_be_finite(level):
    """The higher of two heights h, he^{−e} stands on [1, end]: δ(ε) = h(end − 1)(1 − e^{ε − e})."""
    randomizer = symdp.Mechanism.from_toml(LOCAL)(e=level)
    root = math.exp(level / 2)
    height = (root**2 - root) / (2 * root + 2)
    truth = height * ((root + 1) / (root - 1) - 1) * -math.expm1(level / 2 - level)
    answer = symdp.compose(randomizer).delta(level / 2)
    assert answer.lower <= truth * (1 + 1e-14)
    assert answer.upper >= truth * (1 - 1e-14)
