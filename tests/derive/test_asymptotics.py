"""Asymptotics of t₀ and log δ: the error that is left falls at the order that is stated."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.derive import Derivation, derive
from symdp.derive.asymptotics import DEVIATION, LEVEL, PLACE, expansions, kappa
from symdp.derive.records import COUNT, EPSILON
from symdp.errors import InputError

R = sp.Rational
BUILT = symdp.mechanisms
CASES = {
    "gaussian": BUILT.gaussian(sigma=2),
    "gumbel": BUILT.gumbel(b=2),
    "logistic": BUILT.logistic(s=1),
    "laplace": BUILT.laplace(b=2),
}
COUNTS = (400, 1600, 6400)


@cache
def derivation(name: str) -> Derivation:
    return derive(CASES[name])


def cgf_of(name: str) -> Callable[[mpmath.mpf], mpmath.mpf]:
    """K by mpmath."""
    d = derivation(name)
    return sp.lambdify(d.cgf.tilt, d.cgf.expression, "mpmath")


@cache
def saddle(name: str, epsilon: mpmath.mpf, count: int) -> mpmath.mpf:
    """Solve nK′(t) = ε + 1/t + 1/(1+t) on t > 0 at 30 digits."""
    cgf = cgf_of(name)

    def equation(t: mpmath.mpf) -> mpmath.mpf:
        return count * mpmath.diff(cgf, t) - epsilon - 1 / t - 1 / (1 + t)

    low, high = mpmath.mpf(10) ** -9, mpmath.mpf(1)
    while equation(high) < 0:
        high *= 2
    return mpmath.findroot(equation, (low, high), solver="anderson", tol=1e-40, maxsteps=500)


def order_of(errors: list[float]) -> float:
    """The power of n at which errors fall, from the last two."""
    return math.log(abs(errors[-1] / errors[-2])) / math.log(COUNTS[-1] / COUNTS[-2])


def number(expression: sp.Expr, **values: object) -> mpmath.mpf:
    names = {"n": COUNT, "xi": DEVIATION, "epsilon": EPSILON, "level": LEVEL, "place": PLACE}
    bound = expression.subs({names[key]: value for key, value in values.items()})
    return mpmath.mpmathify(bound.evalf(30))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "gumbel", "laplace"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_saddle_point_in_the_central_regime(name, order):
    central = derivation(name).asymptotics(order, substitute=True)[0]
    with mpmath.workdps(30):
        for xi in (R(-1), R(3, 2)):
            errors = []
            for n in COUNTS:
                epsilon = number(central.epsilon, n=n, xi=xi)
                errors.append(saddle(name, epsilon, n) - number(central.tilt, n=n, xi=xi))
            assert order_of(errors) == pytest.approx(float(central.tilt_order), abs=0.2)


@pytest.mark.quick_cases("0-gaussian")
@pytest.mark.parametrize("name", ["gaussian", "gumbel"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_saddle_point_at_fixed_epsilon(name, order):
    fixed = derivation(name).asymptotics(order, substitute=True)[1]
    with mpmath.workdps(30):
        errors = [
            saddle(name, mpmath.mpf(2), n) - number(fixed.tilt, n=n, epsilon=2) for n in COUNTS
        ]
    assert order_of(errors) == pytest.approx(float(fixed.tilt_order), abs=0.2)


@pytest.mark.slow_cases("1-gumbel", "0-gumbel")
@pytest.mark.parametrize("name", ["gaussian", "gumbel"])
@pytest.mark.parametrize("order", [0, 1])
def test_the_saddle_point_of_large_deviations(name, order):
    large = derivation(name).asymptotics(order, substitute=True)[2]
    level = R(1, 4) if name == "gumbel" else R(1, 2)
    with mpmath.workdps(30):
        errors = [
            saddle(name, mpmath.mpf(n) * level.p / level.q, n)
            - number(large.tilt, n=n, level=level)
            for n in COUNTS
        ]
    assert order_of(errors) == pytest.approx(float(large.tilt_order), abs=0.2)


def gaussian_delta(epsilon: mpmath.mpf, count: int, complement: bool = False) -> mpmath.mpf:
    mu = mpmath.sqrt(count) / 2  # sigma = 2
    first, second = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if complement:
        return mpmath.ncdf(first) + mpmath.exp(epsilon) * mpmath.ncdf(-second)
    return mpmath.ncdf(-first) - mpmath.exp(epsilon) * mpmath.ncdf(-second)


@pytest.mark.quick_cases("0")
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_log_delta_of_a_gaussian_in_the_central_regime(order):
    central = derivation("gaussian").asymptotics(order, substitute=True)[0]
    with mpmath.workdps(40):
        for xi in (R(-1, 2), R(2)):
            errors = []
            for n in COUNTS:
                exact = mpmath.log(gaussian_delta(number(central.epsilon, n=n, xi=xi), n))
                errors.append(exact - number(central.log_delta, n=n, xi=xi))
            assert order_of(errors) == pytest.approx(float(central.log_order), abs=0.2)


@pytest.mark.parametrize("order", [0, 1])
def test_log_delta_of_a_gaussian_far_out_and_at_fixed_epsilon(order):
    _, fixed, large = derivation("gaussian").asymptotics(order, substitute=True)
    with mpmath.workdps(400):
        far, near = [], []
        for n in COUNTS:
            exact = mpmath.log(gaussian_delta(mpmath.mpf(n) / 2, n))
            far.append(exact - number(large.log_delta, n=n, level=R(1, 2)))
            rest = mpmath.log(gaussian_delta(mpmath.mpf(2), n, complement=True))
            near.append(rest - number(fixed.log_delta, n=n, epsilon=2))
    assert order_of(far) == pytest.approx(float(large.log_order), abs=0.2)
    assert order_of(near) == pytest.approx(float(fixed.log_order), abs=0.2)


@pytest.mark.slow_cases("gumbel-2", "laplace-1", "gumbel-0", "gumbel-1")
@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("gumbel", 0),
        ("gumbel", 1),
        ("gumbel", 2),
        ("laplace", 1),
        pytest.param("laplace", 2, marks=pytest.mark.slow),
        pytest.param("logistic", 1, marks=pytest.mark.slow),
        pytest.param("logistic", 2, marks=pytest.mark.slow),
    ],
)
def test_log_delta_of_other_mechanisms_against_the_contour(name, order):
    d = derivation(name)
    central = d.asymptotics(order, substitute=True)[0]
    errors = []
    for n in COUNTS:
        epsilon = number(central.epsilon, n=n, xi=R(-1, 2))
        answer = symdp.compose(CASES[name], n).delta(float(epsilon), direction="remove")
        shift = float(number(central.log_delta, n=n, xi=R(-1, 2)))
        errors.append(math.log(float(answer)) - shift)
    assert order_of(errors) == pytest.approx(float(central.log_order), abs=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("order", [0, 1])
def test_log_delta_of_large_deviations_against_the_contour(order):
    level = R(1, 4)
    large = derivation("gumbel").asymptotics(order, substitute=True)[2]
    errors = []
    for n in COUNTS:
        answer = symdp.compose(CASES["gumbel"], n).delta(n * float(level), direction="remove")
        assert answer.log_delta is not None
        errors.append(answer.log_delta - float(number(large.log_delta, n=n, level=level)))
    assert order_of(errors) == pytest.approx(float(large.log_order), abs=0.2)


def test_delta_tends_to_the_normal_tail():
    central = expansions(0)[0]
    assert central.log_delta == sp.log(sp.erfc(DEVIATION / sp.sqrt(2)) / 2)
    assert central.epsilon == COUNT * kappa(1) + DEVIATION * sp.sqrt(COUNT * kappa(2))


def test_a_lattice_loss_has_the_leading_term_alone():
    central, fixed, large = derive(BUILT.discrete_laplace).asymptotics(2)
    assert central.log_order == R(-1, 2)
    assert "oscillating" in central.reason
    assert fixed.log_delta is None
    assert large.log_delta is None
    assert "oscillating" in large.reason


def test_without_a_closed_form_the_cumulants_stay_symbols():
    d = derive(BUILT.gaussian.subsample("poisson", R(1, 100)))
    assert kappa(3) in d.asymptotics(1)[0].tilt.free_symbols
    with pytest.raises(InputError, match="no closed form of the CGF"):
        d.asymptotics(1, substitute=True)
    with pytest.raises(InputError, match="order"):
        d.asymptotics(-1)


def test_series_of_a_gaussian_collapse():
    d = derive(BUILT.gaussian)
    x = sp.Symbol("x", real=True)
    for order in range(4):
        for at in (0, -1):
            normal = (1 + sp.erf(x / sp.sqrt(2))) / 2
            assert sp.expand(d.edgeworth(order, substitute=True, at=at) - normal) == 0
    # K has degree 2: the derivatives of F from the third on are those of −log z − log(1+z) alone.
    one = d.msd(1, substitute=True) / d.msd(0, substitute=True)
    t, n, sigma = (next(s for s in one.free_symbols if s.name == k) for k in ("t", "n", "sigma"))
    second = n / sigma**2 + 1 / t**2 + 1 / (1 + t) ** 2
    third = -2 / t**3 - 2 / (1 + t) ** 3
    fourth = 6 / t**4 + 6 / (1 + t) ** 4
    textbook = 1 + fourth / (8 * second**2) - 5 * third**2 / (24 * second**3)
    assert sp.simplify(one - textbook) == 0
