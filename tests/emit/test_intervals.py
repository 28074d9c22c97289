"""Wide intervals: powers are enclosed by their ends, and tails in few shells."""

import math

import mpmath
import pytest
import sympy as sp
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from symdp.emit import compile_arb
from symdp.emit.enclose import between, shell_tail

x = sp.Symbol("x", real=True)
R = sp.Rational

POWERS = [x**2, x**3, x**7, x**-1, x**-2, sp.Pow(x, R(3, 2)), sp.Pow(x, R(-1, 3)), x**sp.pi]


@pytest.mark.parametrize("power", POWERS, ids=str)
@settings(deadline=None, max_examples=60)
@given(
    lower=st.floats(1e-3, 1e3),
    ratio=st.floats(1.0, 1e6),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    negative=st.booleans(),
)
def test_powers_of_intervals_hold_every_value_and_little_else(
    power, lower, ratio, shares, negative
):
    function = compile_arb(power, [x])
    sign = -1 if negative and power.exp.is_integer else 1
    wide = between(sign * arb(lower), sign * arb(lower) * ratio)
    found = function(wide)
    places = [min(max(lower * ratio**share, lower), lower * ratio) for share in shares]
    with ctx.workprec(200):
        values = [function(sign * arb(place)) for place in places]
    assert all(found.overlaps(value) for value in values)
    if ratio > 2:
        ends = [function(sign * arb(lower)), function(sign * arb(lower) * ratio)]
        # Thirty bits of the larger end are what a ball has for its smaller one.
        slack = arb(2) ** -25 * (1 + ratio) * max(abs(end) for end in ends)
        assert found.lower() > min(ends) - slack
        assert found.upper() < max(ends) + slack


MIXTURES = [sp.log(R(99, 100) + sp.exp(u) / 100) for u in (x, -3 * x, 40 * x)]
MIXTURES += [sp.log(sp.exp(x) + sp.exp(-2 * x) * 3), sp.log(1 + sp.exp(x) + sp.exp(3 * x) / 7)]


@pytest.mark.parametrize("mixture", MIXTURES, ids=str)
@settings(deadline=None, max_examples=40)
@given(
    lower=st.floats(-300, 300),
    width=st.floats(0, 500),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=5),
)
def test_logs_of_sums_over_intervals_are_as_finite_as_their_ends(mixture, lower, width, shares):
    """Balls around exponentials of wide intervals hold 0, and the sum would have no logarithm."""
    function = compile_arb(mixture, [x])
    found = function(between(arb(lower), arb(lower) + width))
    with ctx.workprec(2000):
        values = [function(arb(lower) + arb(width) * share) for share in shares]
    assert found.is_finite()
    assert all(found.overlaps(value) for value in values)
    # One that rises has its ends at those of an interval wide enough to go by them.
    if mixture == MIXTURES[0] and width > 1.01:
        top = function(arb(lower) + width)
        assert found.upper() < top + 1e-6 * (1 + abs(top))


@pytest.mark.parametrize("exponent", [2, 3, 4])
def test_powers_of_intervals_that_hold_zero(exponent):
    found = compile_arb(x**exponent, [x])(between(arb(-2), arb(3)))
    for place in (-2, -1, 0, 1, 3):
        assert found.contains(arb(place) ** exponent)
    least = 0 if exponent % 2 == 0 else (-2) ** exponent
    assert abs(found.lower() - least) < 1e-6
    assert abs(found.upper() - 3**exponent) < 1e-6


@pytest.mark.parametrize("exponent", [R(1, 5), R(3, 2), R(7, 3), sp.pi])
def test_fractional_powers_of_balls_that_hold_zero(exponent):
    power = compile_arb(x**exponent, [x])
    found = power(between(arb(0), arb(3)))
    for place in (0, 1e-30, 1, 3):
        assert found.overlaps(arb(place) ** arb(float(exponent)))
    assert found.lower() > -(1e-8 ** float(exponent)) - 1e-6
    assert found.upper() < 3 ** float(exponent) + 1e-6
    square = acb(arb(0, 1), arb(0, 1))
    for corner in (acb(1, 1), acb(-1, 1), acb(-1, -1), acb(0, 1), acb(-1, 0), acb(0)):
        assert power(square).overlaps(power(corner))
    assert not power(square, analytic=True).is_finite()


@pytest.mark.parametrize("power", [x**-1, x**-2], ids=str)
def test_poles_inside_an_interval_are_never_finite(power):
    assert not compile_arb(power, [x])(between(arb(-2), arb(3))).is_finite()


def test_complex_balls_take_complex_powers():
    place = acb(arb(1, 0.5), arb(2, 0.5))
    assert compile_arb(x**2, [x])(place).contains(acb(1, 2) ** 2)


@pytest.mark.parametrize("power", [1, 2, 3, 4])
def test_tails_that_fall_fast_take_few_shells(power):
    calls = []
    magnitude = compile_arb(sp.exp(-(x**power)), [x])

    def counted(place):
        calls.append(place)
        return magnitude(place)

    bound = shell_tail(counted, arb(40), 1, arb(10) ** -9)
    assert bound is not None
    exact = math.gamma(1 / power) / power  # of the whole half-line
    assert arb(0) <= bound < exact
    assert len(calls) < 600


@pytest.mark.parametrize("radius", [0.1, 3.0, 17.5])
def test_balls_of_log_gamma_are_no_wider_than_its_values(radius):
    y = sp.Symbol("y", positive=True)
    ball = compile_arb(sp.loggamma(y), [y])(arb(20, radius))
    ends = [mpmath.loggamma(20 + side * radius) for side in (-1, 1)]
    assert float(ball.lower()) <= ends[0]
    assert ends[1] <= float(ball.upper())
    assert float(ball.rad()) < (ends[1] - ends[0]) * (0.51 if radius > 1 else 5)


def _log_bessel_i(v, u):
    return mpmath.log(mpmath.besseli(v, u))


OF_AN_ORDER = {
    "besseli": (sp.besseli, mpmath.besseli),
    "log_besseli": (lambda v, u: sp.log(sp.besseli(v, u)), _log_bessel_i),
    "lowergamma": (sp.lowergamma, lambda v, u: mpmath.gammainc(v, 0, u)),
    "uppergamma": (sp.uppergamma, mpmath.gammainc),
}
WIDE_PLACES = [(0.5, 0.06), (10.2, 0.055), (70.0, 5.0), (2.3, 0.05)]


@pytest.mark.parametrize("name", OF_AN_ORDER)
@pytest.mark.parametrize("order", [R(1), R(2), R(5, 2), R(7, 3)], ids=str)
@pytest.mark.parametrize(("middle", "radius"), WIDE_PLACES)
def test_wide_places_of_functions_of_an_order_are_quick_and_enclosed(name, order, middle, radius):
    """Arb's series of such a ball take two seconds at so many bits, and its digits are few."""
    of_symbols, of_numbers = OF_AN_ORDER[name]
    v = sp.Symbol("v", real=True)
    function = compile_arb(of_symbols(v, x), [v, x])
    with ctx.workprec(386):
        enclosure = function(arb(int(order.p)) / int(order.q), arb(middle, radius))
        ends = enclosure.lower().str(40, radius=False), enclosure.upper().str(40, radius=False)
    with mpmath.workdps(30):
        order_number = mpmath.mpf(order.p) / order.q
        places = [middle + share * radius for share in (-1, -0.3, 0, 0.7, 1)]
        values = [of_numbers(order_number, mpmath.mpf(place)) for place in places]
        low, high = map(mpmath.mpf, ends)
        room = max(abs(value) for value in values) * mpmath.mpf(10) ** -20
        assert low <= min(values) + room
        assert high >= max(values) - room
        assert high - low <= 2 * (max(values) - min(values))
