"""What is decided of random densities agrees with their values on a grid; much may be left open."""

import random

import numpy as np
import pytest
import sympy as sp

from symdp import mechanisms
from symdp.balls.modes import _is_decided, _sign_of_jump, _with_visible_limits, one_mode
from symdp.interrupt import attempt
from symdp.model.pair import Support

X = sp.Symbol("x", real=True)
LINE = Support("interval", -sp.oo, sp.oo)


def term(rng: random.Random) -> sp.Expr:
    y = 10 * (X - sp.Rational(rng.randint(-40, 40), 10)) / rng.randint(1, 30)
    ripple = 1 + sp.sin(2 * X) / rng.choice([2, 8, 30])
    return rng.choice(
        [
            sp.exp(-(y**2) / 2),
            1 / (1 + y**2),
            1 / sp.cosh(y),
            sp.exp(-sp.Abs(y)),
            sp.exp(-(y**2) / 2) * (1 + sp.erf(3 * y)),
            ripple / sp.sqrt(1 + y**2) ** 3,
            sp.exp(-(y**4) + y**2),
            sp.exp(-sp.sqrt(1 + y**2)) * (2 + sp.tanh(y)),
        ]
    )


def rises_again(density: sp.Expr) -> bool:
    """Whether values fall and rise again, those so small that they are rounded left out."""
    far = np.geomspace(60.0, 1e5, 4000)
    places = np.unique(np.concatenate([np.linspace(-60.0, 60.0, 240_001), far, -far]))
    with np.errstate(all="ignore"):
        values = np.asarray(sp.lambdify(X, density, "scipy")(places))
    change = np.diff(np.log(values[values > 1e-200]))
    signs = np.sign(change[np.abs(change) > 1e-11])
    return bool(((signs[:-1] < 0) & (signs[1:] > 0)).any())


@pytest.mark.quick_cases("5")
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(s, marks=pytest.mark.slow)
                                               for s in range(6, 40))])  # fmt: skip
def test_no_decision_is_wrong(seed):
    rng = random.Random(seed)
    density = term(rng)
    if rng.random() < 0.5:
        density += term(rng) / rng.choice([1, 10, 1000])
    found = attempt(lambda: _is_decided(density, X, LINE), None, 2.0)
    assert found is None or found is not rises_again(density), density


@pytest.mark.slow_cases("4-3-False")
@pytest.mark.parametrize(
    ("power", "order", "falls"), [(3, 3, True), (5, 5, True), (1, 1, True), (4, 3, False)]
)
def test_bessel_functions_of_half_a_whole_order(power, order, falls):
    """(z^ν K_ν)′ = −z^ν K_{ν−1}: such noise falls on either side, and z^{ν+1/2} K_ν has a hole."""
    z = abs(X) / 3
    density = z ** sp.Rational(power, 2) * sp.besselk(sp.Rational(order, 2), z)
    assert (_is_decided(density, X, LINE) is True) is falls


@pytest.mark.quick_cases("density4-True")
@pytest.mark.parametrize(
    ("density", "has_one"),
    [
        ((sp.tanh(2 * X + 1) + 2) * sp.exp(-sp.sqrt((2 * X + 1) ** 2 + 1)), True),
        ((sp.erf(15 * X - 3) + 1) * sp.exp(-((5 * X - 1) ** 2) / 2), True),
        ((1 - sp.erf(30 * X + 9)) * sp.exp(-((10 * X) ** 2) / 2), True),
        (sp.exp(-abs(X)) / 40 + 1 / sp.cosh(X / 9 + 1) ** 2, True),
        (sp.exp(-(X**2)) + 1 / (1 + X**2 / 100), True),
        (sp.exp(-(((X - 2) * 5 / 2) ** 4) + ((X - 2) * 5 / 2) ** 2), False),
        (sp.exp(-(X**2)) + sp.exp(-abs(X - 40)) / 50, False),
        ((2 + sp.sin(2 * X)) / (1 + X**2) ** sp.Rational(3, 2), False),
    ],
)
def test_kinds_of_densities_are_decided(density, has_one):
    assert _is_decided(density, X, LINE) is has_one
    assert rises_again(density.rewrite(sp.erfc)) is not has_one  # 1 − erf is rounded in doubles


@pytest.mark.parametrize(
    "slope",
    [
        -7 * (3 * X - 2) / sp.sqrt((X - sp.Rational(2, 3)) ** 2 * 5 + 1) + sp.sinh(X),
        (2 * X + 1) / sp.sqrt(4 * X**2 + 4 * X + 2) / (1 + sp.erf(X)),
        (1 - sp.erf(2 * X)) * (sp.pi / 2 + sp.atan(X)) / sp.sqrt(1 + X),
        X / sp.sqrt(X**2 + 2) + (X + 1) / sp.sqrt(1 + X**2) - 1 / sp.sqrt(2 + X),
    ],
)
def test_a_form_with_limits_has_the_same_values(slope):
    for place in (sp.Rational(-1, 7), sp.Rational(3, 5), sp.Rational(9, 4)):
        values = [sp.N(form.subs(X, place), 30) for form in (slope, _with_visible_limits(slope))]
        assert abs(values[0] - values[1]) < sp.Float(10) ** -25


@pytest.mark.parametrize("name", ["gumbel", "laplace", "gaussian"])
def test_noise_without_values_has_one_mode_where_algebra_shows_it(name):
    """A page of all values is refused where it is not shown."""
    mechanism = getattr(mechanisms, name)
    assert not mechanism.is_concrete
    assert one_mode(mechanism)


@pytest.mark.parametrize(
    ("low", "high", "sign"),
    [(2, 3, 1), (3, 2, -1), (2, 2, 0), (0, 1, 1), (1, 0, -1), (0, 0, 0), (1, sp.oo, 1),
     (sp.oo, 1, -1), (sp.oo, sp.oo, 0), (sp.zoo, 0, -1), (sp.sqrt(2) * sp.sqrt(3), sp.sqrt(6), 0)],
)  # fmt: skip
def test_a_jump_has_the_sign_of_its_heights(low, high, sign):
    """Also where f has a pole on one side, or is 0 there."""
    assert _sign_of_jump(sp.sympify(low), sp.sympify(high)) == sign


RAY, LEFT_RAY = Support("interval", sp.S.Zero, sp.oo), Support("interval", -sp.oo, sp.S.Zero)
BETWEEN = Support("interval", sp.S.One, sp.S(4))
MIRRORED = [  # a density, where, and whether it has one mode
    (X**2 * sp.exp(-X), BETWEEN, True),
    ((X - 2) ** 2 + 1, BETWEEN, False),
    (X**2 * sp.exp(-X), RAY, True),
    ((X - 2) ** 2 * sp.exp(-X), RAY, False),
    ((3 + X**2 + 2 * X) / (1 + X**2) ** 2, LINE, True),
    ((sp.pi / 2 + sp.atan(X)) / sp.sqrt(1 + X**2) ** 3, LINE, True),
    (sp.exp(-sp.sqrt(1 + X**2) + X / 2) * (2 + sp.tanh(X)), LINE, True),
    (sp.sqrt(X) * sp.exp(-X), RAY, True),  # whose log has a steep end
    (sp.cbrt(X) * sp.sqrt(1 - X), Support("interval", sp.S.Zero, sp.S.One), True),
    (sp.besseli(X, sp.Rational(3, 2)), RAY, True),  # which falls in its order
    (sp.besseli(X - 1, sp.Rational(3, 2)), BETWEEN, True),
]


@pytest.mark.parametrize(("density", "support", "has_one"), MIRRORED)
def test_a_mirror_image_has_as_many_modes(density, support, has_one):
    mirrored = Support("interval", -support.upper, -support.lower)
    verdicts = [
        _is_decided(density, X, support),
        _is_decided(density.subs(X, -X), X, mirrored),
    ]
    assert [verdict is True for verdict in verdicts] == [has_one, has_one]


@pytest.mark.parametrize("side", [1, -1], ids=["as it is", "mirrored"])
def test_bessel_functions_of_negative_order_do_not_fall(side):
    """I_ν(3/2) at ν = −3, −5/2, −2, 0, 2 is .08, .80, .34, 1.65, .34: not as from 0 on."""
    at = sp.Rational(3, 2)
    values = [float(sp.besseli(order, at).evalf(20)) for order in (-3, -2.5, -2, 0, 2)]
    assert values[0] < values[1] > values[2] < values[3] > values[4] > 0
    ends = (sp.S(-3), sp.S(2)) if side > 0 else (sp.S(-2), sp.S(3))
    assert _is_decided(sp.besseli(side * X, at), X, Support("interval", *ends)) is not True


JUMPING = [
    2 + sp.atan(1 / X),
    3 + sp.erf(1 / X),
    2 - sp.atan(1 / X),
    3 + sp.tanh(1 / (X - sp.Rational(1, 3))),
    sp.exp(sp.atan(1 / (X - sp.Rational(1, 3)))),
    3 + sp.atan(X + 1 / X),
]


@pytest.mark.parametrize("density", JUMPING, ids=str)
def test_a_density_that_jumps_away_from_its_slope_has_two_modes(density):
    """The slope of 2 + atan(1/x), which is −1/(1 + x²), does not tell of the jump at 0."""
    places = np.linspace(-0.999, 0.999, 10_000)
    rises = np.diff(sp.lambdify(X, density, "scipy")(places)) > 0
    assert np.count_nonzero(rises[1:] != rises[:-1]) > 0
    assert _is_decided(density, X, Support("interval", sp.S(-1), sp.S(1))) is not True
