"""The three numeric targets agree with each other, and with SymPy, within their precision."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath_target import compile_mpmath

from symdp.emit import compile_arb, compile_numpy
from symdp.emit.log_sum_exp import LogGamma, LogSumExp, hyperu, recognise_log_sum_exp
from symdp.errors import InputError

x = sp.Symbol("x", real=True)
y = sp.Symbol("y", positive=True)
k = sp.Symbol("k", integer=True)
R = sp.Rational

_SIGMA, _RATE = R(3, 2), R(1, 100)
_STUDENT = sp.gamma(R(23, 10)) / (sp.sqrt(sp.pi * R(18, 5)) * sp.gamma(R(9, 5)))


def _student(location: int) -> sp.Expr:
    return _STUDENT * (1 + (x - location) ** 2 / R(18, 5)) ** R(-23, 10)


EXPRESSIONS = {
    "gaussian loss": (2 * x - 1) / (2 * _SIGMA**2),
    "subsampled gaussian": sp.log(1 - _RATE + _RATE * sp.exp((2 * x - 1) / (2 * _SIGMA**2))),
    "substitution": sp.log(1 - _RATE + _RATE * sp.exp(x - R(1, 2)))
    - sp.log(1 - _RATE + _RATE * sp.exp(-x - R(1, 2))),
    "laplace": (sp.Abs(x) - sp.Abs(x - 1)) / R(7, 5),
    "logistic": R(1, 2) + 2 * sp.log(1 + sp.exp(-x)) - 2 * sp.log(1 + sp.exp(-x + R(1, 2))),
    "gumbel": R(1, 3) + sp.exp(-x) - sp.exp(-x + R(1, 3)),
    "student": R(23, 10) * (sp.log(1 + x**2 / R(18, 5)) - sp.log(1 + (x - 1) ** 2 / R(18, 5))),
    "student mixture": sp.log(R(9, 10) + _student(1) / _student(0) / 10),
    "student log density": sp.log(_student(0)),
    "two variances": -(x**2) / 8 + (x - 1) ** 2 / 18 + sp.log(R(3, 2)),
    "quartic": x**4 - (x - 1) ** 4 - sp.log(2 * sp.gamma(R(5, 4))),
    "sech": sp.log(sp.cosh(x)) - sp.log(sp.cosh(x - 1)),
    "bessel": x * sp.cos(R(1, 3)) - sp.log(2 * sp.pi * sp.besseli(0, 3)),
    "bessel k": sp.log(sp.besselk(R(1, 3), y) * y ** R(1, 3)),
    "far bessel k": sp.log(sp.besselk(R(1, 3), 300 * y) * sp.sqrt(y) / 3),
    "far bessel i": sp.log(2 * sp.besseli(R(5, 2), 300 * y) * sp.exp(-300 * y)),
    "gamma": R(3, 2) * sp.log(y) - y - sp.loggamma(R(5, 2)),
    "log factorial": sp.loggamma(y + 1) + y * sp.log(R(3, 7)),
    "kummer and gauss": sp.log(
        sp.hyper((y, R(3, 2)), (y + 1,), R(-4, 3)) * sp.hyper((2,), (y + 2,), -y)
    ),
    "clausen": sp.hyper((-y, R(1, 2), y + 1), (R(5, 4), R(7, 4)), R(-3, 5)),
    "tricomi": sp.log(sp.gamma(y) * hyperu(y, R(5, 2), R(1, 3))),
    "legendre": sp.log(sp.legendre(y, R(8, 5))),
    "erf": sp.erf(x / sp.sqrt(2)) * sp.erfc(x / 3),
    "hyperbolic": sp.tanh(x) + sp.sech(x) * sp.sin(x) - sp.atan(x) + sp.asinh(x),
    "piecewise": sp.Piecewise((x**2, x < 0), (sp.sqrt(x + 1), True)),
    "roots": sp.sqrt(1 + x**2) + (2 + x**2) ** R(1, 3) + sp.Max(x, R(1, 5)) * sp.Min(x, 2),
    "normaliser": sp.exp(-(x**2) / 4)
    / sp.Sum(sp.exp(-(k**2) / 4), (k, -sp.oo, sp.oo))
    / sp.Integral(sp.exp(-(x**4)), (x, -sp.oo, sp.oo)),
}


def _points(expression: sp.Expr) -> tuple[sp.Symbol, list[float]]:
    generator = np.random.default_rng(20240229)
    if y in expression.free_symbols:
        return y, [float(v) for v in generator.gamma(2.0, 2.0, 12) + 0.1]
    return x, [float(v) for v in generator.normal(0.2, 4.0, 12)]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_targets_agree(name: str) -> None:
    expression = EXPRESSIONS[name]
    variable, points = _points(expression)
    doubles = compile_numpy(expression, [variable])(np.array(points))
    in_mpmath, in_arb = (
        compile_mpmath(expression, [variable]),
        compile_arb(expression, [variable]),
    )
    assert doubles.dtype == np.float64
    for point, double in zip(points, doubles, strict=True):
        with mpmath.workdps(50), ctx.workdps(40):
            many = in_mpmath(mpmath.mpf(point))
            ball = in_arb(arb(point))
            # The 50 digit value must lie in the 40 digit ball.
            assert ball.rel_accuracy_bits() > 100
            assert ball.overlaps(arb(mpmath.nstr(many, 48)))
            scale = {"quartic": abs(point) ** 3, "far bessel": 300.0}.get(name[:10], 1.0)
            scale *= 1 + abs(point)
            # Differences of terms of size |x| (x⁴) lose that much; relative 1e-14 otherwise,
            # except that SciPy's own K_ν is good to 3e-14.
            relative = 3e-14 if name == "bessel k" else 1e-14
            assert abs(mpmath.mpf(double) - many) <= relative * max(abs(many), 0.03 * scale)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_mpmath_follows_sympy(name: str) -> None:
    expression = EXPRESSIONS[name]
    variable, points = _points(expression)
    if expression.has(sp.Sum):
        pytest.skip("SymPy evaluates infinite sums numerically only by extrapolation")
    function = compile_mpmath(expression, [variable])
    for point in points[:3]:
        truth = expression.subs(variable, sp.Rational(point)).evalf(45)
        with mpmath.workdps(40):
            ours, theirs = function(mpmath.mpf(point)), mpmath.mpf(str(truth))
            assert abs(ours - theirs) <= mpmath.mpf(10) ** -36 * (1 + abs(theirs))


@pytest.mark.slow_cases("clausen")
@pytest.mark.parametrize("name", sorted(set(EXPRESSIONS) - {"laplace", "piecewise", "roots"}))
def test_complex_arguments_agree(name: str) -> None:
    expression = EXPRESSIONS[name]
    variable, points = _points(expression)
    arguments = [complex(point, 0.3 * (-1) ** i) for i, point in enumerate(points)]
    doubles = compile_numpy(expression, [variable])(np.array(arguments))
    in_mpmath, in_arb = (
        compile_mpmath(expression, [variable]),
        compile_arb(expression, [variable]),
    )
    assert np.iscomplexobj(doubles)
    for argument, double in zip(arguments, doubles, strict=True):
        with mpmath.workdps(30), ctx.workdps(30):
            many = in_mpmath(mpmath.mpc(argument))
            ball = in_arb(acb(argument), analytic=True)
            assert abs(complex(many) - complex(ball)) <= 1e-14 * (1 + abs(many))
            assert abs(double - complex(many)) <= 2e-13 * (1 + abs(argument) ** 4)


@given(a=st.floats(-1e4, 1e4), log_rate=st.floats(-12, -0.01))
@settings(max_examples=60, deadline=None)
def test_unit_log_sum_exp_is_relatively_accurate(a: float, log_rate: float) -> None:
    rate = sp.Rational(Fraction(10**log_rate))
    double = float(compile_numpy(sp.log(1 - rate + rate * sp.exp(x)), [x])(a))
    with mpmath.workdps(60):
        q = mpmath.mpf(rate.p) / rate.q
        truth = mpmath.log1p(q * mpmath.expm1(mpmath.mpf(a)))
        # exp turns a's own rounding into |a| ulps; that is the conditioning, not the code.
        condition = abs(mpmath.mpf(a) * q * mpmath.exp(a) / (1 + q * mpmath.expm1(a)))
        assert abs(double - truth) <= 1e-15 * (abs(truth) + condition) + 1e-320


@pytest.mark.parametrize("a", [1e-9, -1e-9, 3.7e-9, 1e-5, 1e4, -1e4, 709.5, 750.0, 31.0])
def test_tiny_rate(a: float) -> None:
    rate = R(1, 10**12)
    double = float(compile_numpy(sp.log(1 - rate + rate * sp.exp(x)), [x])(a))
    with mpmath.workdps(50):
        truth = mpmath.log1p(mpmath.expm1(mpmath.mpf(a)) / 10**12)
        assert abs(double - truth) <= 1e-15 * abs(truth)


def test_negative_coefficients_and_far_exponents() -> None:
    expression = sp.log(3 * sp.exp(x) - 2 * sp.exp(x - 1) + sp.exp(-x))
    values = compile_numpy(expression, [x])(np.array([1e4, -1e4, 0.0]))
    constant = math.log(3 - 2 * math.exp(-1))
    assert values[:2] == pytest.approx([1e4 + constant, 1e4], rel=1e-15)
    assert values[2] == pytest.approx(math.log(4 - 2 * math.exp(-1)), rel=1e-15)
    one = compile_numpy(sp.log(1 + sp.exp(-x)), [x])(np.array([50.0, -np.inf, np.inf]))
    assert one[0] == pytest.approx(math.exp(-50), rel=1e-14)
    assert one[1] == np.inf
    assert one[2] == 0.0


def test_ratio_keeps_relative_accuracy_far_out() -> None:
    ratio = ((x - 1) ** 2 + R(18, 5)) / (x**2 + R(18, 5))
    for expression in (sp.log(ratio), sp.log(R(9, 10) + ratio ** R(-23, 10) / 10)):
        doubles = compile_numpy(expression, [x])(np.array([1e9, -3e7, 0.5000001, 4.0]))
        function = compile_mpmath(expression, [x])
        with mpmath.workdps(50):
            for point, double in zip((1e9, -3e7, 0.5000001, 4.0), doubles, strict=True):
                truth = function(mpmath.mpf(point))
                # Next to x = 1/2 the loss vanishes: one rounding of 1 − 2x is left.
                assert abs(double - truth) <= 2e-15 * abs(truth) + (point < 1) * 1e-16


def test_recognition() -> None:
    q = sp.Symbol("q", positive=True)
    node = recognise_log_sum_exp(sp.log(1 - q + q * sp.exp(x)))
    assert isinstance(node, LogSumExp)
    assert node.is_unit
    assert node.rewrite(sp.log).equals(sp.log(1 - q + q * sp.exp(x)))
    assert isinstance(recognise_log_sum_exp(sp.log(sp.cosh(x))), LogSumExp)
    ratio = (1 + (x - 1) ** 2) ** -2 * (1 + x**2) ** 2
    mixture = recognise_log_sum_exp(sp.log(R(1, 2) + ratio / 2))
    assert isinstance(mixture, LogSumExp)
    assert mixture.is_unit
    assert not recognise_log_sum_exp(sp.log(1 + x**2)).has(LogSumExp)
    for assumptions in ({"nonnegative": True}, {"integer": True, "nonnegative": True}):
        factorial = sp.factorial(sp.Symbol("n", **assumptions))
        assert recognise_log_sum_exp(sp.log(factorial)).has(LogGamma)


@pytest.mark.slow
def test_huge_rationals() -> None:
    batch, rate = 600, R(1, 7)
    weights = [math.comb(batch, j) * rate**j * (1 - rate) ** (batch - j) for j in range(0, 601, 3)]
    assert min(weights) < R(1, 10**320)
    expression = sp.log(sp.Add(*(w * sp.exp(j * x) for j, w in enumerate(weights))))
    values = compile_numpy(expression, [x])(np.array([0.0, 5.0, 30.0]))
    function = compile_mpmath(expression, [x])
    with mpmath.workdps(40):
        for point, value in zip((0, 5, 30), values, strict=True):
            assert abs(value - function(point)) <= 4e-15 * abs(function(point))
    assert float(compile_numpy(sp.Integer(10) ** 400 * R(1, 10**399) * x, [x])(1.0)) == 10.0
    with pytest.raises(InputError, match="double range"):
        compile_numpy(sp.Integer(10) ** 400 * x, [x])


def test_rationals_stay_exact() -> None:
    third = compile_mpmath(x / 3, [x])
    with mpmath.workdps(80):
        assert abs(third(1) * 3 - 1) < mpmath.mpf(10) ** -79
    with mpmath.workdps(15):
        assert third(1) == mpmath.mpf(1) / 3
    ball = compile_arb(R(1, 3) * x, [x])
    with ctx.workprec(2000):
        assert ball(arb(1)).rel_accuracy_bits() > 1980


def test_constants_follow_the_precision() -> None:
    total = sp.Sum(sp.exp(-(k**2) / 9), (k, -sp.oo, sp.oo))
    function = compile_mpmath(total + 0 * x, [x])
    for digits in (15, 60, 30):
        with mpmath.workdps(digits):
            theta = mpmath.jtheta(3, 0, mpmath.exp(-mpmath.mpf(1) / 9))
            assert abs(function(0) / theta - 1) < mpmath.mpf(10) ** (1 - digits)
    half = sp.Sum(sp.Rational(1, 3) ** k * (k + 1), (k, 0, sp.oo))
    with mpmath.workdps(40):
        assert abs(compile_mpmath(half, [])() - mpmath.mpf(9) / 4) < mpmath.mpf(10) ** -38


@pytest.mark.slow
def test_slow_sums_are_refused() -> None:
    from symdp.errors import AccuracyError

    slow = sp.Sum(1 / (1 + sp.Abs(k) ** R(3, 2)), (k, -sp.oo, sp.oo))
    with pytest.raises(AccuracyError, match="closed form"):
        compile_numpy(slow * x, [x])


def test_shapes_and_pickling() -> None:
    function = compile_numpy(sp.Integer(2) + 0 * x, [x])
    assert function(np.zeros((2, 3))).shape == (2, 3)
    both = compile_numpy(sp.log(1 - y + y * sp.exp(x)), [x, y])
    grid = both(np.linspace(-1, 1, 4)[:, None], np.array([0.1, 0.2]))
    assert grid.shape == (4, 2)
    for compiled in (both, compile_mpmath(x * y, [x, y]), compile_arb(x * y, [x, y])):
        again = pickle.loads(pickle.dumps(compiled))
        assert float(again(0.5, 0.25)) == float(compiled(0.5, 0.25))


@pytest.mark.parametrize("expression", [sp.Abs(x), sp.Piecewise((-x, x < 0), (x, True))])
def test_analytic_flag_is_forwarded(expression: sp.Expr) -> None:
    """The integral of |x| needs the flag: without it Arb returns tight, wrong balls."""
    function = compile_arb(expression, [x])
    ball = acb.integral(lambda z, a: function(z, analytic=a), -1, 2)
    assert ball.real.contains(arb(5) / 2)
    assert ball.real.rad() < 1e-10


def test_branch_cut_widens_instead_of_lying() -> None:
    function = compile_arb(sp.sqrt((x - 1) ** 2 + 2 * x - 1), [x])
    assert acb.integral(lambda z, a: function(z, analytic=a), -1, 2).real.contains(arb(5) / 2)


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="'sigma' has no value"):
        compile_numpy(x / sp.Symbol("sigma"), [x])
    with pytest.raises(InputError, match="'mystery'"):
        compile_arb(sp.Function("mystery")(x), [x])
    with pytest.raises(InputError, match="LambertW"):
        compile_numpy(sp.LambertW(x), [x])
    with pytest.raises(TypeError, match="expected the arguments"):
        compile_numpy(x, [x])(1.0, 2.0)


def test_constants_are_sharp_or_refused() -> None:
    from symdp.emit.exact import constant_value
    from symdp.errors import AccuracyError

    tiny = sp.exp(R(1, 10**60)) - 1
    with mpmath.workdps(40):
        assert abs(constant_value(tiny, 130) * mpmath.mpf(10) ** 60 - 1) < mpmath.mpf(10) ** -39
    assert constant_value(sp.gamma(R(1, 3)) - sp.gamma(R(4, 3)) * 3, 130) == 0
    assert constant_value(-sp.oo, 130) == -mpmath.inf
    assert constant_value(sp.pi > 3, 130) is True
    with pytest.raises(AccuracyError, match="enclosed"):
        constant_value(1 / (sp.gamma(R(1, 3)) - sp.gamma(R(4, 3)) * 3), 130)
