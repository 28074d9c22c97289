"""Modes far narrower than their distance from 0: places are rounded there, and terms cancel."""

import math

import mpmath
import pytest
import sympy as sp

from symdp import Mechanism, compose

x = sp.Symbol("x", real=True)


def normal(mean: sp.Expr, deviation: sp.Expr) -> sp.Expr:
    scaled = (x - mean) / deviation
    return sp.exp(-(scaled**2) / 2) / (sp.sqrt(2 * sp.pi) * deviation)


def delta_of_normals(mu: float, epsilon: float) -> mpmath.mpf:
    """Return δ(ε) between two normal laws of deviation 1 whose means are mu apart."""
    distance = mpmath.mpf(epsilon) / mu
    upper = mpmath.ncdf(mu / 2 - distance)
    return upper - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(-mu / 2 - distance)


@pytest.mark.parametrize("count", [1, 4])
def test_weights_make_up_for_places_that_are_rounded(count):
    mean, deviation = -12345, sp.Rational(1, 77)
    law = Mechanism.additive(
        normal(mean, deviation), x, sensitivity=deviation / 10, shift="exactly"
    )
    with mpmath.workdps(40):
        truth = delta_of_normals(mpmath.sqrt(count) / 10, 0.1)
        answer = compose(law, count).delta(0.1)
        assert answer.lower <= truth <= answer.upper
        assert answer.upper < truth * (1 + 3e-13)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_narrow_mode_far_from_a_wide_one(count):
    """Of n steps the number that fall on the narrow mode is binomial, as the modes are apart."""
    width = sp.Rational(1, 1000)
    both = normal(sp.S.Zero, sp.S.One) / 2 + normal(sp.Integer(300), width) / 2
    law = Mechanism.additive(both, x, sensitivity=width / 10, shift="exactly")
    with mpmath.workdps(40):
        squares = [narrow * mpmath.mpf("0.01") + (count - narrow) * mpmath.mpf("1e-8")
                   for narrow in range(count + 1)]  # fmt: skip
        truth = mpmath.fsum(
            math.comb(count, narrow) * delta_of_normals(mpmath.sqrt(square), 0.1)
            for narrow, square in enumerate(squares)
        ) / 2**count  # fmt: skip
        answer = compose(law, count).delta(0.1)
        assert answer.lower <= truth <= answer.upper
        # Of several steps values at frequencies of 10⁵ count, whose own rounding is counted, too.
        assert answer.upper < truth * (1 + (3e-13 if count == 1 else 3e-11))


@pytest.mark.slow
def test_a_rare_narrow_mode_far_away():
    """Frequencies at which the wide mode counts need more nodes than balls can be asked of."""
    width, share, epsilon = sp.Rational(1, 1000), sp.Rational(1, 50), 0.01
    both = (1 - share) * normal(sp.S.Zero, sp.S.One) + share * normal(sp.Integer(300), width)
    law = Mechanism.additive(both, x, sensitivity=width / 10, shift="exactly")
    with mpmath.workdps(40):
        chances = [math.comb(4, narrow) * 49 ** (4 - narrow) for narrow in range(5)]
        squares = [narrow * mpmath.mpf("0.01") + (4 - narrow) * mpmath.mpf("1e-8")
                   for narrow in range(5)]  # fmt: skip
        truth = mpmath.fsum(
            chance * delta_of_normals(mpmath.sqrt(square), epsilon)
            for chance, square in zip(chances, squares, strict=True)
        ) / 50**4  # fmt: skip
        answer = compose(law, 4).delta(epsilon)
        assert answer.lower <= truth <= answer.upper
        assert answer.upper < truth * (1 + 1e-10)


def test_a_plateau_that_ends_between_two_octaves():
    """All loss is beside ±75, where no power of two is: a grid of two million places and an FFT."""
    plateau = sp.erf((x + 75) / (2 * sp.sqrt(2))) - sp.erf((x - 75) / (2 * sp.sqrt(2)))
    noise = Mechanism.additive(plateau / 300, x, 1, shift="exactly")
    assert compose(noise, 10).delta(2).delta == pytest.approx(1.9207647533e-5, rel=3e-7)
