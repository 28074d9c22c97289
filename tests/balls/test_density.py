"""The load-time check of densities, and enclosures of the CGF."""

import math

import mpmath
import pytest
import sympy as sp
from catalogue import ALL
from certified_values import assert_certified, epsilon_at
from flint import acb, arb, ctx

from symdp import compose, mechanisms
from symdp.balls import density as densities
from symdp.balls.density import (
    _agree,
    _negative_place,
    _normaliser,
    check_densities,
    checked_masses,
)
from symdp.emit.mass import MassIntegral
from symdp.errors import AccuracyError, InputError
from symdp.model.mechanism import Mechanism
from symdp.prove.tilted_loss import cgf_ball

x = sp.Symbol("x", real=True)
y = sp.Symbol("y", positive=True)
R = sp.Rational


def normal(mean, sigma):
    return sp.exp(-((x - mean) ** 2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))


GOOD = [
    mechanisms.gaussian(sigma="1/1000"),
    mechanisms.gaussian(sigma=1000),
    mechanisms.laplace(b=2),
    mechanisms.logistic(s=1),
    mechanisms.gumbel(b=1),
    mechanisms.student_t(nu=1, s=1),
    mechanisms.randomized_response(epsilon_0=1),
    mechanisms.discrete_laplace(b=2),
    mechanisms.discrete_gaussian(sigma=3),
    mechanisms.skellam(mu=3),
    mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"),
    Mechanism.additive(normal(0, 1) / 2 + normal(300, R(1, 100)) / 2, x, name="far peaks"),
    Mechanism.from_pair(
        normal(0, R(1, 10)) / 2 + normal(10, R(1, 10)) / 3 + normal(20, R(1, 10)) / 6,
        normal(0, R(1, 10)) / 6 + normal(10, R(1, 10)) / 3 + normal(20, R(1, 10)) / 2,
        x,
        name="three narrow peaks",
    ),
    Mechanism.additive(sp.sech(x), x, normalize=True, name="hyperbolic secant"),
    Mechanism.additive(sp.exp(-(x**4)), x, normalize=True, name="quartic"),
    Mechanism.additive(sp.exp(-x), x, support=(0, sp.oo), name="exponential"),
    Mechanism.additive(R(1, 4), x, support=(-2, 2), name="uniform"),
    Mechanism.additive(x**2 * normal(0, 1), x, name="with a zero"),
    Mechanism.additive(
        R(9, 5) * sp.sqrt(x) * (1 - x ** R(3, 2)) ** R(1, 5),
        x,
        support=(0, 1),
        name="fractional powers that vanish at both ends",
    ),
]


@pytest.mark.slow_cases("three narrow peaks")
@pytest.mark.parametrize("mechanism", GOOD, ids=lambda m: m.name)
def test_densities_pass(mechanism):
    assert check_densities(mechanism)


BAD = [
    (Mechanism.additive(sp.exp(-(x**2)), x, name="m"), r"integrates to 1.77245, not 1"),
    (Mechanism.additive(normal(0, 1) * (1 + 2 * sp.sin(5 * x)), x, name="m"), "negative at x"),
    (Mechanism.additive(sp.exp(x**2), x, name="m"), "could not be shown"),
    (Mechanism.additive(1 / (1 + sp.Abs(x)), x, name="m"), "could not be shown"),
    (
        Mechanism.from_pair([R(1, 2)] * 2, [R(1, 2), R(1, 3)], x, {"points": [0, 1]}, name="m"),
        "Q of m sums to 0.833333",
    ),
    (
        Mechanism.from_pair([R(3, 2), -R(1, 2)], [R(1, 2)] * 2, x, {"points": [0, 1]}, name="m"),
        "negative probability",
    ),
    (Mechanism.additive(R("0.39894228") * sp.exp(-(x**2) / 2), x), r"to 0\.99999999899\d, not 1"),
    (Mechanism.from_pair(normal(0, 1), normal(0, 2) * R(9, 10), x, name="m"), "Q of m .* 0.9,"),
]


@pytest.mark.parametrize(("mechanism", "message"), BAD)
def test_wrong_densities_are_named(mechanism, message):
    with pytest.raises(InputError, match=message):
        check_densities(mechanism)


@pytest.mark.parametrize("z", [R(1, 2), R(-1, 3), R(3), R(1, 4) + 3 * sp.I])
def test_cgf_balls_contain_closed_forms(z):
    with ctx.workprec(150):
        t = acb(arb(sp.re(z).p) / int(sp.re(z).q), arb(sp.im(z).p) / int(sp.im(z).q))
        gaussian = cgf_ball(mechanisms.gaussian(sigma=2).pair(), z, 25)
        assert gaussian.contains(t * (t + 1) / 8)
        laplace = cgf_ball(mechanisms.laplace(b=1).pair(), z, 25).exp()
        closed = ((t + 1) * t.exp() + t * (-t - 1).exp()) / (2 * t + 1)
        assert laplace.contains(closed)
        logistic = cgf_ball(mechanisms.logistic(s=1).pair(), z, 25).exp()
        half = acb(1) / 2
        assert logistic.contains((t + half).sinh() / ((2 * t + 1) * half.sinh()))
        assert gaussian.rad() < 1e-20
        assert logistic.rad() < 1e-20


def test_cgf_ball_of_a_subsampled_gaussian_against_binomial_sum():
    """At t = 2, M = Σ C(3,k) (1−q)^{3−k} q^k e^{k(k−1)/(2σ²)} exactly [order 3 Rényi]."""
    ball = cgf_ball(
        mechanisms.gaussian(sigma=2).subsample("poisson", "1/10").pair(), sp.Integer(2), 30
    )
    with mpmath.workdps(45):
        q = mpmath.mpf(1) / 10
        terms = [
            mpmath.binomial(3, k)
            * (1 - q) ** (3 - k)
            * q**k
            * mpmath.exp(mpmath.mpf(k * (k - 1)) / 8)
            for k in range(4)
        ]
        exact = mpmath.nstr(mpmath.log(mpmath.fsum(terms)), 40)
    with ctx.workprec(150):
        assert ball.real.overlaps(arb(exact + " +/- 1e-38"))
        assert ball.rad() < 1e-25


ESSENTIAL = {
    "inverse gamma": {"a": 2, "b": 1, "c": 3},
    "frechet scales": {"k": 2, "a": 1, "c": 3},
    "levy scales": {"a": 2, "c": 1},
    "inverse gaussian means": {"a": 1, "c": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ESSENTIAL)
def test_densities_with_an_essential_singularity_pass(name):
    """e^{−1/x} has no value on any ball around 0, and its mass is one all the same."""
    mechanism = ALL[name].mechanism(name)(**ESSENTIAL[name])
    check_densities(mechanism)
    steps, epsilon = [(mechanism, 1)], 0.2
    if name == "inverse gaussian means":
        steps = [(mechanism.subsample("poisson", "1/100"), 1000)]
        epsilon = epsilon_at(steps, 1.5, "remove")
    assert_certified(steps, epsilon, "remove", accuracy=1e-12, width=1e-11)


def test_a_mass_that_is_off_next_to_an_essential_singularity_is_found():
    wrong = Mechanism.from_pair(
        sp.exp(-1 / (2 * y)) * y ** sp.Rational(-3, 2) / 2,
        sp.exp(-1 / y) * y ** sp.Rational(-3, 2) / sp.sqrt(sp.pi),
        y,
        support=(0, sp.oo),
        name="off",
    )
    with pytest.raises(InputError, match=r"P of off integrates to 1\.25331, not 1"):
        check_densities(wrong)


ROUNDED = {
    "noise": Mechanism.additive(R("0.1994711402") * sp.exp(-(x**2) / 8), x, name="noise"),
    "integers": Mechanism.additive(
        sp.exp(-(x**2) / 8) / R("5.0132565493"), x, support="integers", name="integers"
    ),
    "of unequal masses": Mechanism.from_pair(
        R("0.1994711402") * sp.exp(-((x - 1) ** 2) / 8),
        R("0.1994711403") * sp.exp(-(x**2) / 8),
        x,
        name="of unequal masses",
    ),
    "points": Mechanism.from_pair(
        [0.7310585786, 0.2689414214], [0.2689414213, 0.7310585786], x, {"points": [0, 1]}
    ),
}


@pytest.mark.slow_cases("noise-False")
@pytest.mark.parametrize(
    ("name", "is_sampled"),
    [
        ("noise", False),
        pytest.param("noise", True, marks=pytest.mark.slow),
        ("integers", False),  # whose sums are too many when they are sampled
        pytest.param("of unequal masses", False, marks=pytest.mark.slow),
        pytest.param("of unequal masses", True, marks=pytest.mark.slow),
        ("points", False),
        ("points", True),
    ],
)
def test_a_rounded_constant_is_made_up_for(name, is_sampled):
    """Else δ of many steps depends on who reads the density, far beyond the bounds."""
    rounded = ROUNDED[name]
    assert not check_densities(rounded)
    assert check_densities(rounded.normalized())
    steps = compose(rounded.subsample("poisson", "1/10") if is_sampled else rounded, 2000)
    law = steps.law("remove")
    epsilon = law.mean + math.sqrt(float(law.cumulants(0.0, 2)[1]))
    proved = steps.certify(epsilon, digits=12, direction="remove")
    found = steps.delta(epsilon, direction="remove")
    assert found.log_lower <= proved.log_upper
    assert proved.log_lower <= found.log_upper
    assert found.log_upper - found.log_lower < 1e-10


@pytest.mark.slow
def test_families_of_rounded_constants_are_made_up_for():
    sigma = sp.Symbol("sigma", positive=True)
    density = R("0.3989422804") * sp.exp(-(x**2) / (2 * sigma**2)) / sigma
    rounded = Mechanism.additive(density, x, name="rounded")
    sizes = [2 + R(k, 16) for k in range(8)]
    found = compose([(rounded(sigma=s), 3) for s in sizes]).delta(4.0)
    exact = compose([(mechanisms.gaussian(sigma=s), 3) for s in sizes]).delta(4.0)
    assert found.log_delta == pytest.approx(exact.log_delta, abs=1e-12)


K = sp.Symbol("k", integer=True)


@pytest.mark.parametrize(
    ("masses", "low", "high", "negative"),
    [
        (K**2 - 3, -math.inf, math.inf, {-1.0, 0.0, 1.0}),
        ((K - 40) ** 2 - 1, 0.0, math.inf, {40.0}),
        (sp.cos(sp.pi * K) + R(1, 2), 0.0, 9.0, {1.0, 3.0, 5.0, 7.0, 9.0}),
        (7 - K, 0.0, 8.0, {8.0}),  # at the last of them
        (K - R(1, 2), 0.0, 8.0, {0.0}),
        ((K - 1024) ** 2 - 1, 0.0, math.inf, {1024.0}),
        ((K + 777) ** 2 - 1, -math.inf, math.inf, {-777.0}),
        ((K - 333) ** 2 - 1, 0.0, 1000.0, {333.0}),
        (K**2 - R(1, 9), 1.0, 40.0, {None}),  # below 0 only between whole numbers, and at 0
        (sp.exp(-(K**2)) * (2 + sp.cos(K)), -math.inf, math.inf, {None}),
    ],
)
def test_a_negative_mass_is_found_at_a_whole_number(masses, low, high, negative):
    assert _negative_place(masses, K, low, high) in negative


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-1.0, 1.0), (-math.inf, math.inf)])
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("centre", [R(21, 2000), R(1, 7), R(1, 10**6)])
def test_a_narrow_negative_stretch_is_found(centre, side, ends):
    """(x − c)² is less than c²/10⁶ on a stretch that no grid of hundreds of points may meet."""
    if side < 0:
        ends = (-ends[1], -ends[0])
    width = centre / 1000
    dip = (x - side * centre) ** 2 - width**2
    found = _negative_place(dip, x, *ends)
    assert abs(R(found) - side * centre) < width
    assert _negative_place(dip + width**2, x, *ends) is None


@pytest.mark.parametrize("first", [1.0, 1.0 - 1e-13, 1.0 + 1e-9, 0.5, 2.0, math.nan, math.inf])
@pytest.mark.parametrize("second", [1.0, 1.0 + 1e-13, 1.0 - 1e-9, 0.5, 2.0, math.nan])
def test_two_quadratures_stand_for_a_mass_of_one_where_both_find_it(first, second):
    if abs(first - 1.0) < 1e-12 and abs(second - 1.0) < 1e-12:
        _agree("f", first, second)
        return
    with pytest.raises(InputError, match="could not be shown to have mass 1"):
        _agree("f", first, second)


LIVES = (x > 0) & (x < 2)


@pytest.mark.parametrize(
    ("where", "over", "is_its_mass"),
    [
        (LIVES, (0, 2), True),
        (LIVES, (0, 1), False),  # the mass of a part
        (LIVES, (-1, 3), False),
        ((x > 0) & (x < 1), (0, 2), False),
    ],
)
def test_a_density_divided_by_its_own_mass_has_mass_one(where, over, is_its_mass):
    """On the stretch on which it is not 0, and by no other integral of the same function."""
    bell = sp.exp(-(x**2))
    density = sp.Piecewise((bell / MassIntegral(bell, (x, *over)), where), (0, True))
    value = _normaliser(density, x, sp.S(-1), sp.S(3))
    if not is_its_mass:
        assert value is None
    else:
        assert float(value) == pytest.approx(math.sqrt(math.pi) / 2 * math.erf(2), rel=1e-13)


def test_a_density_of_two_stretches_is_not_divided_by_the_mass_of_one():
    bell = sp.exp(-(x**2))
    own = bell / MassIntegral(bell, (x, 0, 2))
    density = sp.Piecewise((own, LIVES), (bell, (x > 2) & (x < 3)), (0, True))
    assert _normaliser(density, x, sp.S(-1), sp.S(3)) is None


BELL = sp.exp(-(x**2))
WHOLE = BELL / MassIntegral(BELL, (x, -sp.oo, sp.oo))
TENTH = {0: (R(1, 10), R(1, 10))}
NOT_PROVED = [  # a density, its atoms, and its mass
    (normal(0, 2), {}, 1.0),
    (R(9, 10) * normal(0, 2), {}, 0.9),
    (WHOLE, {}, 1.0),
    (WHOLE, TENTH, 1.1),
    (R(9, 10) * WHOLE, TENTH, 1.0),
]


@pytest.mark.parametrize(("law", "atoms", "mass"), NOT_PROVED)
def test_two_quadratures_count_what_no_proof_did(law, atoms, mass, monkeypatch):
    """Atoms stand beside a density that was divided by its own mass."""

    def refused(*_):
        raise AccuracyError("no bound")

    monkeypatch.setattr(densities, "enclose_mass", refused)
    monkeypatch.setattr(densities, "is_proved", lambda _: False)
    pair = Mechanism.from_pair(law, law, x, atoms=atoms)
    if mass == 1.0:
        assert checked_masses(pair) == densities.MassCheck(is_one=True, is_proved=False)
    else:
        with pytest.raises(InputError, match=f"one quadrature found {mass}, another {mass}"):
            checked_masses(pair)
