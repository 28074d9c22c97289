"""The leading term of a slope bounds tails as far as infinity, or shows that they are infinite."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from symdp.balls.cuts import cut_tails
from symdp.balls.leading import outward_slope
from symdp.emit import compile_arb
from symdp.errors import AccuracyError

x = sp.Symbol("x", real=True)
R = sp.Rational
TOLERANCE = arb(2) ** -60

FALLING = {
    "normal": (-(x**2) / 2 + 3 * x, 1),
    "normal, left": (-(x**2) / 2 + 3 * x, -1),
    "exponential": (-x / 7, 1),
    "cosh": (-sp.cosh(x) + R(1, 2) * sp.cosh(x - 1), 1),
    "cosh, left": (-sp.cosh(x) + R(1, 3) * sp.cosh(x - 1), -1),
    "double exponential": (-17 * sp.exp(-x) + 16 * sp.exp(-x / 2) - 9 * x, -1),
    "gumbel": (-x - sp.exp(-x), 1),
    "stretched": (5 * sp.log(x) - 2 * sp.sqrt(x), 1),
    "real power": (-(x ** R(7, 3)) + 40 * x**2, 1),
    "power": (-4 * sp.log(x) + 91 / x**2, 1),
    "product": (-x * sp.exp(x) + 12 * sp.exp(x), 1),
    "irrational": (-sp.exp(sp.sqrt(2) * x) + 10 * sp.exp(R(7, 5) * x), 1),
}
LATE = {"real power", "irrational"}  # whose leading term leads only far out


def _bound(exponent, direction, tolerance=TOLERANCE):
    compiled = compile_arb(exponent, [x])
    slope = outward_slope(exponent, x, direction)
    assert slope is not None
    found = slope.cut(lambda y: arb(compiled(direction * y).exp()), arb(1), tolerance)
    assert found is not None
    return found


def _tail(exponent, direction, place):
    """Integrate e^g from a place on, in 30 digits."""
    size = sp.lambdify(x, exponent, "mpmath")
    rise = sp.lambdify(x, sp.diff(exponent, x), "mpmath")
    with mpmath.workdps(40):
        y = mpmath.mpf(float(place))
        top, length = size(direction * y), 1 / abs(rise(direction * y))
        ends = [y]
        while len(ends) < 300 and size(direction * ends[-1]) > top - 80:
            ends.append(y + length * 2 ** (len(ends) - 1))
        whole = mpmath.quad(lambda at: mpmath.exp(size(direction * at) - top), ends)
        return whole * mpmath.exp(top)


def _mpf(ball):
    return mpmath.mpf(ball.str(20, radius=False)) * (1 + mpmath.mpf(10) ** -12)


@pytest.mark.parametrize("name", FALLING)
def test_bounds_hold_and_are_close(name):
    exponent, direction = FALLING[name]
    place, bound = _bound(exponent, direction)
    tail = _tail(exponent, direction, place)
    assert tail <= _mpf(bound)
    assert bound < TOLERANCE
    if name not in LATE and place > 2:  # half as far the tail itself is too large, or nearly
        assert 64 * _tail(exponent, direction, place / 2) > float(TOLERANCE)


@pytest.mark.parametrize(
    "exponent",
    [
        x**2 - 10**6 * x,
        -sp.log(x),
        -R(1, 2) * sp.log(x),
        -sp.exp(-x),
        1 / x - 40,
        sp.exp(x / 100) - x**5,
        -sp.cosh(x) + 2 * sp.cosh(x - 1) + R(1, 2) * sp.cosh(x - 1),
    ],
    ids=str,
)
def test_infinite_tails_are_known_to_be(exponent):
    slope = outward_slope(exponent, x, -1 if exponent.has(sp.cosh) else 1)
    assert slope is not None
    assert slope.diverges
    compiled = compile_arb(exponent, [x])
    ends = [None, arb(0)] if exponent.has(sp.cosh) else [arb(0), None]
    with pytest.raises(AccuracyError, match="infinite"):
        cut_tails(exponent, lambda at: arb(compiled(at).exp()), x, ends, TOLERANCE)


@pytest.mark.parametrize(
    "exponent",
    [
        sp.log(1 + sp.exp(x)) - x**2,
        -sp.exp(x**2) + x,
        -sp.atan(x) - x,
        sp.loggamma(x) - x**2,
        -sp.log(1 + x**2),
        sp.Abs(x - 3) - x**2,
        sp.S.Zero * x + 3,
        -(x**2) * sp.log(x),
        # Which of the two is faster, or whether the first is there, is beyond any fixed precision.
        -sp.exp(sp.pi * x) + sp.exp((sp.pi + R(1, 10**60)) * x),
    ],
    ids=str,
)
def test_what_has_another_form_is_left_to_other_ways(exponent):
    assert outward_slope(exponent, x, 1) is None


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    lead=st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(1, 5)),
    others=st.lists(
        st.tuples(st.integers(-40, 40), st.integers(-3, 3), st.integers(-4, 8)), max_size=4
    ),
    logs=st.integers(-9, 9),
)
def test_random_sums(lead, others, logs):
    size, rate, power = lead
    terms = [-size * x**power * sp.exp(R(rate, 2) * x)]
    terms += [
        c * x**p * sp.exp(R(k, 2) * x)
        for c, k, p in others
        if k < rate or (k == rate and p < power)
    ]
    exponent = sp.Add(*terms) + logs * sp.log(x)
    place, bound = _bound(exponent, 1, arb(2) ** -30)
    tail = _tail(exponent, 1, place)
    assert tail <= _mpf(bound)


def test_sums_over_the_integers():
    exponent = -(x**2) / 50 + x / 3
    compiled = compile_arb(exponent, [x])
    (low, high), beyond = cut_tails(
        exponent, lambda at: arb(compiled(at).exp()), x, [None, None], TOLERANCE, whole=True
    )
    first, last = int(float(low)), int(float(high))
    assert (first, last) == (float(low), float(high))
    size = sp.lambdify(x, exponent, "mpmath")
    far = [*range(first - 500, first + 1), *range(last, last + 500)]
    with mpmath.workdps(30):
        assert mpmath.fsum(mpmath.exp(size(mpmath.mpf(k))) for k in far) <= _mpf(beyond)
    assert beyond < 2 * TOLERANCE
