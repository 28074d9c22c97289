"""Sums over integers: one by one, or as an integral and what the ends add."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import acb, arb, ctx

import symdp
from symdp.emit import compile_numpy
from symdp.emit.arb import constant
from symdp.emit.enclose import enclose_sum, smooth_sum
from symdp.errors import AccuracyError, InputError

k = sp.Symbol("k", integer=True)


def enclosed(term, lower, upper, bits=128):
    with ctx.workprec(bits):
        return constant(sp.Sum(term, (k, lower, upper))).real


def holds(ball, value, bits=128):
    """Whether a ball is narrow and holds a number of many more digits."""
    with ctx.workprec(4 * bits):
        known = arb(mpmath.nstr(value, 110))
        return bool(abs(ball - known) <= abs(ball) * arb(2) ** (20 - bits)) and ball.overlaps(known)


@pytest.mark.parametrize("bits", [128, 330])
@pytest.mark.parametrize("sigma", [30, 1000, 10**5, 10**9])
def test_the_sum_of_a_wide_normal_density_is_its_integral(sigma, bits):
    # By Poisson's formula the terms that are left out are e^{−2π²σ²}, below 10^−7000.
    with mpmath.workdps(120):
        whole = mpmath.sqrt(2 * mpmath.pi) * sigma
    found = enclosed(sp.exp(-(k**2) / sp.Integer(2 * sigma**2)), -sp.oo, sp.oo, bits)
    assert holds(found, whole, bits)


@pytest.mark.parametrize(("lower", "upper"), [(-sp.oo, sp.oo), (-3, sp.oo), (5, 10**6), (-4000, 7)])
def test_geometric_sums(lower, upper):
    scale = sp.Integer(10**4)
    with mpmath.workdps(120):
        r = mpmath.exp(-mpmath.mpf(1) / 10**4)

        def from_zero(n):  # Σ r^k, k = 0 … n
            return (1 - (0 if n == sp.oo else r ** (int(n) + 1))) / (1 - r)

        whole = from_zero(upper) - (from_zero(lower - 1) if lower > 0 else 0)
        if lower < 0:
            whole += from_zero(-lower) - 1
    assert holds(enclosed(sp.exp(-abs(k) / scale), lower, upper), whole)


@pytest.mark.slow
def test_a_kink_beside_the_end_and_one_far_away():
    scale = sp.Integer(1000)
    with mpmath.workdps(120):
        whole = 1 / mpmath.tanh(mpmath.mpf(1) / 2000)
    for place in (3, -20, 5000):
        assert holds(enclosed(sp.exp(-abs(k - place) / scale), -sp.oo, sp.oo), whole)


def test_heavy_tails():
    with mpmath.workdps(120):
        a = mpmath.mpf(2000)
        x = mpmath.pi * a  # Σ (k² + a²)^−2 is minus the derivative of (π/a) coth πa over 2a
        whole = mpmath.pi / (2 * a**3) * mpmath.coth(x)
        whole += (mpmath.pi / (a * mpmath.sinh(x))) ** 2 / 2
    assert holds(enclosed((k**2 + 2000**2) ** -2, -sp.oo, sp.oo), whole)


def test_waves_between_the_integers_are_no_part_of_a_sum():
    """cos² 2πk is 1 on integers, and ½ on average elsewhere."""
    wave = sp.cos(2 * sp.pi * sp.Symbol("x", real=True)) ** 2
    term = wave.xreplace({sp.Symbol("x", real=True): k}) * sp.exp(-(k**2) / sp.Integer(20000))
    with mpmath.workdps(120):
        whole = mpmath.sqrt(2 * mpmath.pi) * 100
    assert holds(enclosed(term, -sp.oo, sp.oo), whole)


@pytest.mark.slow
def test_narrow_peaks_are_summed_one_by_one():
    """A peak of width ½ at 700, where the sum of the others is smooth."""
    peak = sp.exp(-2 * (k - 700) ** 2)
    found = enclosed(peak, 0, 10_000)
    with mpmath.workdps(120):
        assert holds(found, mpmath.jtheta(3, 0, mpmath.exp(-2)))


def test_poles_inside_the_strip_are_seen():
    def pole(z, analytic=False):
        return 1 / ((z - 100) ** 2 + 4)

    assert smooth_sum(pole, 0, 199) is None
    assert smooth_sum(lambda z, analytic=False: 1 / (z * z + 10**6), 0, 199) is not None


def test_many_terms_that_are_not_smooth_are_refused():
    def term(z, analytic=False):
        return z * 0 + 1 if not analytic else acb(arb.nan())

    with pytest.raises(AccuracyError, match="400000 terms"):
        enclose_sum(term, arb(0), arb(10**6))


@pytest.mark.slow
def test_a_sum_next_to_a_pole_is_added_term_by_term():
    """Negative binomial masses have gamma functions of k + 47, with poles left of the first k."""
    steps = symdp.compose(symdp.mechanisms.negative_binomial(r=47, p="0.963"), 500)
    answer = steps.epsilon(4.86e-7, direction="add")
    back = steps.delta(answer.epsilon, direction="add")
    assert back.lower <= 4.86e-7 * (1 + 1e-9)
    assert back.upper >= 4.86e-7 * (1 - 1e-9)


@pytest.mark.parametrize("limits", [(sp.Rational(1, 2), 5), (0, sp.Rational(7, 2)), (0, sp.oo)])
def test_only_short_sums_over_whole_numbers_are_written_out(limits):
    """Of terms that hold the variable; another sum is none of these terms, and is refused."""
    j = sp.Symbol("j", integer=True)
    x = sp.Symbol("x", real=True)
    terms = sp.exp(-x * j) / (1 + j)
    value = compile_numpy(sp.Sum(terms, (j, 0, 5)), [x])(np.array([0.3]))
    assert value[0] == pytest.approx(sum(math.exp(-0.3 * k) / (1 + k) for k in range(6)))
    with pytest.raises(InputError, match="closed form"):
        compile_numpy(sp.Sum(terms, (j, *limits)), [x])
