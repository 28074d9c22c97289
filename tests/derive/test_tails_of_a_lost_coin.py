"""Printed bounds on the tail of a coin whose loss may be infinite, against a binomial."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb

import pytest
import sympy as sp

from symdp.derive import Derivation, derive
from symdp.derive.records import COUNT, EPSILON
from symdp.model.mechanism import Mechanism

X = sp.Symbol("x", real=True)
BOUNDS = ("chernoff_p", "hoeffding_p", "sub_gaussian_tail_p")
LOST = (Fraction(1, 50), Fraction(1, 3))  # P of an output that Q does not give
COUNTS = (1, 5, 12)


def coin(lost: Fraction) -> tuple[Derivation, Fraction]:
    """The loss is log 2 with probability a, −log 2 with b, and infinite else."""
    high = 2 * (1 - lost) / 3
    low = (1 - lost) / 3
    q = [high / 2, low * 2, 0, 1 - high / 2 - low * 2]
    pair = Mechanism.from_pair(
        [high, low, lost, 0], q, X, support={"points": [0, 1, 2, 3]}, name="a lost coin"
    )
    return derive(pair), high


def tail(high: Fraction, lost: Fraction, count: int, heads: int) -> Fraction:
    """P(at least so many of n losses are log 2, or one is infinite)."""
    low = 1 - lost - high
    finite = sum(comb(count, k) * high**k * low ** (count - k) for k in range(heads, count + 1))
    return 1 - (1 - lost) ** count + finite


@pytest.mark.slow_cases("chernoff_p-1/50", "hoeffding_p-1/50", "chernoff_p-1/3")
@pytest.mark.parametrize("lost", LOST, ids=str)
@pytest.mark.parametrize("bound", BOUNDS)
def test_a_bound_lies_between_the_binomial_tail_and_one(bound: str, lost: Fraction) -> None:
    found, high = coin(lost)
    constant = found.tails[bound]
    assert constant.expression is not None, constant.reason
    for count in COUNTS:
        mean = count * (2 * high / (1 - lost) - 1)
        for heads in range(count + 1):
            total = 2 * heads - count
            if total <= mean or total == count:  # a bound speaks of ε above the mean
                continue
            at = {COUNT: count, EPSILON: total * sp.log(2)}
            value = float(sp.re(sp.N(constant.expression.subs(at), 30)))
            true = math.log(tail(high, lost, count, heads))
            assert true - 1e-12 <= value <= 1e-12, (count, heads)


@pytest.mark.slow_cases("chernoff_p-1/50", "chernoff_p-1/3")
@pytest.mark.parametrize("lost", LOST, ids=str)
@pytest.mark.parametrize("bound", BOUNDS)
def test_far_out_a_bound_is_the_mass_at_infinity(bound: str, lost: Fraction) -> None:
    found, _ = coin(lost)
    formula = found.tails[bound].expression
    assert formula is not None
    for count in COUNTS:
        reach = count * math.log(2) * (1 - 1e-9) if bound == "chernoff_p" else 400 * count
        finite = (2 / 3) ** count if bound == "chernoff_p" else 0.0  # all losses are log 2
        value = float(sp.re(sp.N(formula.subs({COUNT: count, EPSILON: reach}), 30)))
        kept = float((1 - lost) ** count)
        assert math.exp(value) == pytest.approx(1 - kept + kept * finite, rel=1e-6)


@pytest.mark.parametrize("lost", LOST, ids=str)
@pytest.mark.parametrize("bound", BOUNDS[1:])
def test_the_mass_of_finite_losses_is_a_factor_and_no_logarithm(bound: str, lost: Fraction) -> None:
    found, _ = coin(lost)
    expression = found.tails[bound].expression
    assert expression is not None
    kept = 1 - sp.Rational(lost.numerator, lost.denominator)
    assert expression.has(kept**COUNT)
    assert not expression.has(sp.log(kept))
