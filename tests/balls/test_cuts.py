"""One slope bounds a tail as far as infinity; what has no slope is bounded on shells."""

from __future__ import annotations

import math

import mpmath
import pytest
import sympy as sp
from flint import arb
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import symdp
from symdp import mechanisms
from symdp.balls.cuts import _far_out, cut_tails
from symdp.density.pieces import pieces
from symdp.density.records import DISTANCE
from symdp.emit import compile_arb
from symdp.errors import AccuracyError, InputError

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
    "logistic": (-x - 2 * sp.log(1 + sp.exp(-x)), -1),
    "power of a sum": (3 * sp.log(sp.exp(x) / 2 + R(1, 2)) - x**2, 1),
    "root of a sum": (sp.log(sp.exp(x) + x**2) / 2 - x**2, 1),
    "error function": (x + sp.log(sp.erfc(x - 3)), 1),
}
LATE = {"real power", "irrational"}  # whose leading term leads only far out


def _bound(exponent, direction, tolerance=TOLERANCE):
    """Cut a tail; the other end is at 0."""
    compiled = compile_arb(exponent, [x])
    ends = [arb(0), None] if direction > 0 else [None, arb(0)]
    places, bound = cut_tails(exponent, lambda y: arb(compiled(y).exp()), x, ends, tolerance)
    return abs(places[1 if direction > 0 else 0]), bound


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


@pytest.mark.slow_cases(
    "cosh", "cosh, left", "stretched", "power", "product", "power of a sum", "error function"
)
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
def test_infinite_tails_have_no_cut(exponent):
    with pytest.raises(AccuracyError, match="no proved bound"):
        _bound(exponent, -1 if exponent.has(sp.cosh) else 1)


@pytest.mark.parametrize("power", [R(3), R(2), R(1), R(1, 2), R(1, 3)], ids=str)
def test_powers_of_sums_are_bounded_by_powers_of_their_summands(power):
    """(a + b)^c ≤ 2^{max(c−1, 0)} (a^c + b^c) ≤ 2^{|c−1|} (a + b)^c."""
    log = power * sp.log(sp.exp(DISTANCE) + sp.E)
    exponents = [slope._height for slope, _ in _far_out(log)]
    assert len(exponents) == 2
    for at in (1.0, 1.5, 3.0, 20.0):
        size = (math.exp(at) + math.e) ** float(power)
        bound = sum(math.exp(float(height(arb(at)))) for height in exponents)
        assert 1.0 - 1e-12 <= bound / size <= 2 ** float(abs(power - 1)) + 1e-12


@pytest.mark.parametrize("power", [R(-2), R(-1, 2)], ids=str)
def test_a_negative_power_of_a_sum_is_bounded_by_that_of_its_largest_summand(power):
    """(a + b)^c ≤ a^c ≤ 2^{−c} (a + b)^c for c < 0 and a ≥ b."""
    ((slope, _),) = _far_out(power * sp.log(sp.exp(DISTANCE) + sp.E))
    for at in (1.0, 1.5, 3.0, 20.0):
        size = (math.exp(at) + math.e) ** float(power)
        bound = math.exp(float(slope._height(arb(at))))
        assert 1.0 - 1e-12 <= bound / size <= 2 ** float(-power) + 1e-12


@pytest.mark.parametrize("power", [R(-2), R(1, 2)], ids=str)
def test_a_difference_is_not_bounded_by_its_parts(power):
    """(a − b)^c > a^c for c < 0 < b < a."""
    exponents = [
        slope._height for slope, _ in _far_out(power * sp.log(sp.exp(DISTANCE) - DISTANCE))
    ]
    for at in (1.0, 1.5, 3.0):
        size = (math.exp(at) - at) ** float(power)
        bound = sum(math.exp(float(height(arb(at)))) for height in exponents)
        assert bound >= size * (1.0 - 1e-12)


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
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
    try:
        place, bound = _bound(exponent, 1, arb(2) ** -30)
    except AccuracyError:  # as of −x e^{x/2} − x² e^{−x/2}: intervals see 0·∞ in its last term
        reject()
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


@pytest.mark.slow_cases("gumbel-remove-0", "gumbel-remove-5")
@pytest.mark.parametrize("weight", [0, 5, R(-1, 2)])
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", ["logistic", "gumbel"])
def test_tails_of_sampled_noise_are_bounded_closely(name, direction, weight):
    scale = {"logistic": "s", "gumbel": "b"}[name]
    sampled = getattr(mechanisms, name)(**{scale: 2}).subsample("poisson", "1/100")
    pair = sampled.pair(direction)
    (piece,) = pieces(pair)
    exponent = (piece.log_p + weight * piece.loss).xreplace({pair.variable: x})
    compiled = compile_arb(exponent, [x])
    (low, high), beyond = cut_tails(
        exponent, lambda at: arb(compiled(at).exp()), x, [None, None], TOLERANCE
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("density", "delta"),
    [
        # n = 10, ε = 2, of sums on grids; the other one's mass is 2·3·2/sin 2.
        ("sin(2)/(12*(cosh(x/3) + cos(2)))", 0.00758881),
        ("1/(cosh(x/3) + cos(2))", 0.00758881),
    ],
)
def test_constants_beside_hyperbolic_functions_are_numbers(density, delta):
    """SymPy takes cos 2 for an algebraic generator, and expands without end."""
    noise = symdp.Mechanism.from_toml(
        f'name = "c"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\ndensity = "{density}"\n'
        "normalize = true\nsensitivity = 1\n"
    )
    assert symdp.compose(noise, 10).delta(2).value == pytest.approx(delta, rel=1e-6)


def test_factorials_of_large_integers_are_not_multiplied_out():
    """Γ grows without end, which takes SymPy as long at an integer far out."""
    noise = symdp.Mechanism.from_toml(
        'name = "c"\nvariable = "x"\nsupport = [0, "oo"]\n[noise]\ndensity = "gamma(x)"\n'
        "normalize = true\nsensitivity = 1\n"
    )
    with pytest.raises(InputError, match="cannot be normalized"):
        symdp.compose(noise, 1)
