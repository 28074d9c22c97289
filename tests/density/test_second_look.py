"""Shapes that are proved of random densities agree with values on a grid that shares no code."""

import random
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp

from symdp.balls.modes import _is_decided, one_mode
from symdp.density.second_look import SecondLook, _quantiles
from symdp.interrupt import attempt
from symdp.model.mechanism import Mechanism
from symdp.model.pair import Support

X, K = sp.Symbol("x", real=True), sp.Symbol("k", integer=True)
HALF = sp.Rational(1, 2)
LINE = Support("interval", -sp.oo, sp.oo)
MANY = [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 100))]


def between(low: object, high: object) -> Support:
    return Support("interval", sp.sympify(low), sp.sympify(high))


def signed(rng: random.Random) -> tuple[sp.Expr, Support]:
    """A density of negative factors, logs below 1, differences and powers of negative bases."""
    reach = sp.Rational(rng.randint(10, 30), 10)
    centre = sp.Rational(rng.randint(-5, 5), 10) * rng.choice([0, 1])
    y = X - centre
    inside = 1 - y**2 / (reach + 1) ** 2  # in (0, 1) on the support
    wave = 2 + sp.cos(rng.choice([1, 2, 3]) * y)
    kinds = [
        -sp.log(inside),
        -sp.log(inside) * wave,
        -((-(y**2) - 1) ** 3),
        (inside - 1) ** 3 * (y - 9) ** 5,
        sp.cosh(reach + 1) - sp.cosh(y),
        wave - HALF - y**2 / (reach + 1) ** 2 / 3,
        -sp.log(sp.exp(-(y**2)) / 3 + HALF),
        (inside - 2) * (-sp.exp(-(y**2) * rng.randint(0, 2)) - sp.Rational(1, 5)),
        sp.log(inside / 2) ** rng.choice([2, 3]) * rng.choice([-1, 1]),
        (1 / (1 + y**2) - 2) ** 3,
        sp.atan(-1 - y**2) + sp.Rational(rng.randint(-3, 3)),
        sp.Abs(y) - sp.Rational(7, 2) + y**2 / 20,
    ]
    f = rng.choice(kinds)
    if rng.random() < 0.4:
        f = f * rng.choice(kinds)
    places = np.linspace(float(-reach), float(reach), 501)
    values = np.real(np.asarray(sp.lambdify(X, f, "numpy")(places)) + 0 * places)
    if np.all(values < 0):
        return sp.Mul(-1, f, evaluate=rng.random() < 0.5), between(-reach, reach)
    return (f if np.all(values > 0) else sp.exp(sp.tanh(f))), between(-reach, reach)


def rises_again(density: sp.Expr, support: Support) -> bool:
    """Whether values fall and rise again by more than rounding."""
    low, high = float(support.lower), float(support.upper)
    places = np.linspace(low, high, 40_003)[1:-1]
    values = np.real(np.asarray(sp.lambdify(X, density, "numpy")(places)) + 0 * places)
    change = np.diff(values)
    signs = np.sign(change[np.abs(change) > 1e-12 * np.max(values)])
    return bool(((signs[:-1] < 0) & (signs[1:] > 0)).any())


@pytest.mark.quick_cases("0", "5", "6")
@pytest.mark.parametrize("seed", MANY)
def test_no_sign_is_dropped(seed):
    """The proof, the second look and a grid agree; without the look the proof must do so too."""
    density, support = signed(random.Random(seed))
    verdict = attempt(lambda: _is_decided(density, X, support), None, 3.0)
    has_valley = rises_again(density, support)
    assert verdict is None or verdict is not has_valley, (density, support)
    contradiction = SecondLook(density, X, support).against_one_mode()
    assert (contradiction is not None) is has_valley, (density, support)


@pytest.mark.slow_cases("density0-support0-size0")
@pytest.mark.parametrize(
    ("density", "support", "size"),
    [
        (-sp.log(1 - X**2 / 4), between("-19/10", "19/10"), sp.Rational(76, 25)),
        (-((-(X**2) - 1) ** 3), between(-2, 2), sp.Rational(19, 5)),
        (X**2 + 1, between(-2, 2), 1),
        (sp.cosh(X), between(-1, 1), 1),
    ],
)
def test_a_valley_is_no_mode(density, support, size):
    noise = Mechanism.additive(density, X, size, (support.lower, support.upper), normalize=True)
    assert not one_mode(noise)
    assert SecondLook(density, X, support).against_one_mode() is not None


def test_a_valley_of_integers_is_no_mode():
    masses = sp.Piecewise((-sp.log(1 - (K - 6) ** 2 / sp.Integer(49)), K <= 12), (0, True))
    assert not one_mode(Mechanism.additive(masses, K, 9, "naturals", normalize=True))


@pytest.mark.parametrize(
    ("density", "is_even", "is_log_concave"),
    [
        (sp.exp(-(X**2)), True, True),
        (sp.exp(-sp.Abs(X)), True, True),
        (1 / (1 + X**2), True, False),
        (sp.exp(-(X**2)) * (1 + sp.erf(X)), False, True),
        (sp.exp(-((X - 1000) ** 2)), False, True),  # about 0
        (sp.exp(-sp.sqrt(sp.Abs(X))), True, False),
        (sp.exp(-X - sp.exp(-X)), False, True),
        (sp.exp(-sp.Abs(X) - 2 * sp.Abs(X - 1)), False, True),
        (sp.exp(-sp.Abs(X)) + sp.exp(-sp.Abs(X - 1)), False, False),
    ],
)
def test_values_tell_what_is_even_and_what_is_log_concave(density, is_even, is_log_concave):
    assert (SecondLook(density, X, LINE).against_even(sp.S.Zero) is None) is is_even
    assert (SecondLook(density, X, LINE).against_log_concave() is None) is is_log_concave


def test_points_are_spread_as_the_mass_is():
    """Of a triangle 1 − x on [0, 1], known at uneven places, (1 − a)² − (1 − b)² lies in [a, b]."""
    places = [0.0, 0.001, 0.01, 0.1, 0.3, 0.9, 1.0]
    points = np.array(_quantiles({place: 1.0 - place for place in places}))
    for low, high in pairwise(places):
        share = (1.0 - low) ** 2 - (1.0 - high) ** 2
        between_both = ((points > low) & (points < high)).sum()
        assert abs(between_both - 200 * share) <= 1.01


def test_rounding_is_no_valley():
    """1 − erf is a staircase in doubles, far out."""
    assert SecondLook(1 - sp.erf(X), X, between(0, sp.oo)).against_one_mode() is None
    assert SecondLook(sp.erf(X + 8) - sp.erf(X - 8), X, LINE).against_one_mode() is None


@pytest.mark.parametrize(
    "masses",
    [
        sp.exp(-((K + 4) ** 2) / 18) + sp.exp(-((K - 3) ** 2) / 8),
        (K**2 + 1) * sp.exp(-abs(K) / 3),
        (1 - sp.exp(-abs(K) / 2 - HALF)) * sp.exp(-abs(K) / 5),
    ],
)
def test_masses_whose_constant_is_a_sum_are_looked_at(masses):
    noise = Mechanism.additive(masses, K, 2, "integers", normalize=True)
    assert one_mode(noise).value is False
