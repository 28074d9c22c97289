"""Mechanisms: exact binding, supports, shifted densities, equality."""

# ruff: noqa: SIM300 (it takes the laws P and Q for constants)

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from symdp import mechanisms
from symdp.emit.mass import MassIntegral, MassSum
from symdp.errors import InputError
from symdp.model.mechanism import Mechanism, Pair, Support, declare, exact

X = sp.Symbol("x", real=True)
B = sp.Symbol("b", positive=True)
ZERO, ONE = sp.Integer(0), sp.Integer(1)
LINE = (-sp.oo, sp.oo)


def gaussian() -> Mechanism:
    return mechanisms.gaussian


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, sp.Rational(1, 10)),
        (1e-300, sp.Rational(1, 10**300)),
        ("1/3", sp.Rational(1, 3)),
        ("2.50", sp.Rational(5, 2)),
        (7, sp.Integer(7)),
        (Fraction(2, 6), sp.Rational(1, 3)),
        (Decimal("0.10"), sp.Rational(1, 10)),
        (np.float64(0.1), sp.Rational(1, 10)),
        (np.float32(0.1), sp.Rational(1, 10)),
        (np.int64(3), sp.Integer(3)),
        (sp.Float(0.1), sp.Rational(1, 10)),
        (sp.Rational(2, 3), sp.Rational(2, 3)),
        (sp.sqrt(2), sp.sqrt(2)),
    ],
)
def test_values_are_bound_exactly(value: object, expected: sp.Expr) -> None:
    assert exact(value) == expected
    bound = gaussian()(sigma=value)
    assert bound.values == {"sigma": expected}
    assert bound.parameters == {}
    assert bound.is_concrete
    assert not bound.pair().P.atoms(sp.Float)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(derandomize=True, deadline=None)
def test_a_float_is_the_decimal_that_it_prints(value: float) -> None:
    assert exact(value) == sp.Rational(repr(value))
    assert float(exact(value)) == value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, "sigma must be above 0, not -1"),
        (0, "sigma must be above 0, not 0"),
        (math.nan, "sigma must be a finite number"),
        (math.inf, "sigma must be a finite number"),
        (Decimal("NaN"), "sigma must be a finite number"),
        (Decimal("sNaN"), "sigma must be a finite number"),
        ("nan", "sigma: 'nan' is not a finite number"),
        ("abc", "sigma: 'abc' is not a number"),
        ("1/0", "divides by zero"),
        ("1e-5000", "over 1000 digits"),
        (10**5000, "over 4000 bits"),
        (Decimal("1e999999"), "over 1000 digits"),
        (True, "sigma must be a number, not True"),
        (np.True_, "sigma must be a number"),
        (None, "sigma must be a number, not None"),
        ([1], "sigma must be a number"),
        (1j, "sigma must be a number"),
        (sp.I, "sigma must be a finite real number"),
        (sp.oo, "sigma must be a finite real number"),
        (sp.nan, "sigma must be a finite real number"),
        (sp.Symbol("z"), "sigma must be a number, not z"),
    ],
    ids=lambda _: "",  # pytest cannot print 10**5000
)
def test_a_bad_value_names_the_parameter(value: object, message: str) -> None:
    with refused(message):
        gaussian()(sigma=value)


def test_binding_names_what_is_wrong() -> None:
    with refused("gaussian has no parameter 'sigm'", "did you mean 'sigma'?"):
        gaussian()(sigm=1)
    with refused("'zzz'", "it has sigma"):
        gaussian()(zzz=1)
    with refused("sigma is already bound to 3/2"):
        gaussian()(sigma=1.5)(sigma=2)
    with refused("gaussian needs a value for sigma (above 0)", "sigma=VALUE"):
        gaussian().require_concrete()
    with refused("student_t with nu=1000000", "too large to build exactly"):
        mechanisms.student_t(nu=10**6)
    with refused("mechanism with b=1", "divides by zero"):
        Mechanism.additive(sp.exp(-(X**2) / (B - 1)), X)(b=1)


def test_binding_may_be_partial_and_leaves_the_original_alone() -> None:
    student = mechanisms.student_t
    half = student(nu=3)
    assert list(student.parameters) == ["nu", "s"]
    assert list(half.parameters) == ["s"]
    assert not half.is_concrete
    assert student() is student
    whole = half(s=1)
    assert whole.require_concrete() is whole
    assert whole.pair().Q == 2 * sp.sqrt(3) / (3 * sp.pi * (1 + X**2 / 3) ** 2)


@pytest.mark.parametrize(
    ("word", "good", "bad"),
    [
        ("positive", [1e-9, 3], [0, -1]),
        ("nonnegative", [0, 2], [-1e-9]),
        ("real", [-3, 0.5], []),
        ("probability", [0, 1, 0.5], [-0.1, 1.1]),
        ("open probability", ["1/3"], [0, 1]),
        ("integer", [-2, 0, 5], [0.5]),
        ("positive integer", [1, 5], [0, -1, 1.5]),
        ("natural", [0, 7], [-1, 0.5]),
    ],
)
def test_domains(word: str, good: list[float], bad: list[float]) -> None:
    density = sp.exp(-(X**2)) + sp.Symbol("a")
    mechanism = Mechanism.additive(density, X, parameters={"a": word})
    for value in good:
        assert mechanism(a=value).is_concrete
    for value in bad:
        with refused("a must be"):
            mechanism(a=value)


def test_an_unknown_domain_or_name_is_refused() -> None:
    with refused("unknown domain 'positiv'", "did you mean 'positive'?"):
        declare("a", "positiv")
    with refused("'pi' is reserved"):
        declare("pi", "real")
    with refused("'lambda' is reserved"):
        declare("lambda", "real")
    with refused("must be a letter followed by"):
        declare("2a", "real")


def test_symbols_of_user_code() -> None:
    bare = Mechanism.additive(sp.exp(-(sp.Symbol("x") ** 2) * sp.Symbol("a")), sp.Symbol("x"))
    assert bare.variable == X
    assert bare.parameters["a"].is_real
    kept = Mechanism.additive(sp.exp(sp.Symbol("c", negative=True) * X**2), X)
    assert kept(c=-3).pair().Q == sp.exp(-3 * X**2)
    with refused("3 breaks an assumption that the symbol c carries"):
        kept(c=3)
    floats = Mechanism.additive(0.1 * sp.exp(-0.25 * X), X, support=(0, math.inf))
    assert floats.pair().Q.atoms(sp.Float) == set()
    assert floats.source.density == sp.exp(-X / 4) / 10
    with refused("two symbols are called 's'"):
        Mechanism.additive(X * sp.Symbol("s", positive=True) * sp.Symbol("s", integer=True), X)
    with refused("'sigm' is not declared", "did you mean 'sigma'?"):
        Mechanism.additive(X * sp.Symbol("sigm"), X, parameters={"sigma": "positive"})
    with refused("the density is text"):
        Mechanism.additive("exp(-x)", X)
    with refused("ordinary real function"):
        Mechanism.additive(sp.Function("f")(X), X)
    with refused("ordinary real function"):
        Mechanism.additive(sp.I * X, X)
    with refused("over the variable x itself", "normalize=True"):
        Mechanism.additive(X / sp.Integral(X, (X, 0, 1)), X)
    with refused("holds (-1)**k", "no logarithm"):
        k = sp.Symbol("k", integer=True)
        Mechanism.additive(3 + (-1) ** k, k, 1, support="integers", normalize=True)
    with refused("the variable must be a SymPy symbol"):
        Mechanism.additive(X, 3)
    with refused("the variable k is an integer", "pass support='integers'"):
        k = sp.Symbol("k", integer=True)
        Mechanism.additive(sp.exp(-sp.Abs(k)) / 2, k)
    with refused("both the variable and a parameter"):
        Mechanism.additive(X, X, parameters={"x": "real"})


@pytest.mark.parametrize(
    ("support", "parts"),
    [
        ((1, 0), ["the support [1, 0] is empty"]),
        ((0, 0), ["is empty"]),
        ((sp.oo, sp.oo), ["is empty"]),
        ((0, X), ["must not depend on the variable"]),
        ("integer", ["did you mean 'integers'?"]),
        ((1,), ["must be [lower, upper]"]),
        (None, ["must be [lower, upper]"]),
        ([0, 1, 2], ["additive noise needs an interval, integers or naturals"]),
    ],
)
def test_bad_supports(support: object, parts: list[str]) -> None:
    with refused(*parts):
        Mechanism.additive(sp.exp(-(X**2)), X, support=support)


def test_sets_of_sympy_are_supports() -> None:
    decay = sp.exp(-X)
    half_line = Mechanism.additive(decay, X, 1, support=sp.Interval(0, sp.oo))
    assert half_line.support == Mechanism.additive(decay, X, 1, support=(0, sp.oo)).support
    whole = Mechanism.additive(sp.exp(-abs(X)) / 2, X, 1, support=sp.S.Reals)
    assert (whole.support.lower, whole.support.upper) == LINE
    masses = [sp.Rational(1, 3), sp.Rational(2, 3)]
    coin = Mechanism.from_pair(masses, masses[::-1], X, support=sp.FiniteSet(0, 1))
    assert coin.support.points == (0, 1)
    with pytest.raises(InputError, match="must be"):
        Mechanism.additive(decay, X, 1, support=sp.Union(sp.Interval(0, 1), sp.FiniteSet(3)))


def test_a_support_is_checked_again_when_it_becomes_concrete() -> None:
    mechanism = Mechanism.additive(1 / (2 - B), X, support=(B, 2))
    assert mechanism(b=1).support == Support("interval", ONE, sp.Integer(2))
    with refused("mechanism with b=3", "the support [3, 2] is empty"):
        mechanism(b=3)
    points = Mechanism.from_pair([B, 1 - B], [1 - B, B], X, {"points": [0, B]})
    assert points(b=0.5).support.points == (0, sp.Rational(1, 2))


def test_plain_pair_and_its_reverse() -> None:
    f = sp.exp(-sp.Abs(X) / B) / (2 * B)
    pair = Mechanism.additive(f, X, 2).pair()
    shifted = f.subs(X, X - 2)
    assert pair == Pair(
        X, Support("interval", -sp.oo, sp.oo), (f, shifted), (ZERO, ONE), (ONE, ZERO)
    )
    assert (pair.P, pair.Q) == (shifted, f)
    assert Mechanism.additive(f, X, 2).pair("add") == pair.reversed()
    assert (pair.reversed().P, pair.reversed().Q) == (f, shifted)
    assert not pair.is_discrete
    with refused("must be remove or add, not 'ad'", "did you mean 'add'?"):
        gaussian().pair("ad")


def at(law: sp.Expr, variable: sp.Symbol, value: object) -> sp.Expr:
    return law.subs(variable, value)


def test_noise_on_an_interval_is_zero_outside_and_the_supports_unite() -> None:
    pair = Mechanism.additive(1 + 0 * X, X, sp.Rational(1, 3), support=(0, 1)).pair()
    assert pair.support == Support("interval", ZERO, sp.Rational(4, 3))
    for place in (0, sp.Rational(1, 6), sp.Rational(1, 2), 1, sp.Rational(7, 6)):
        assert at(pair.Q, X, place) == (1 if 0 <= place <= 1 else 0)
        assert at(pair.P, X, place) == (1 if sp.Rational(1, 3) <= place else 0)


def test_noise_on_an_interval_with_free_ends() -> None:
    width = sp.Symbol("w", positive=True)
    pair = Mechanism.additive(1 / width, X, support=(-width / 2, width / 2)).pair()
    assert pair.support == Support("interval", -width / 2, width / 2 + 1)
    assert pair.Q == sp.Piecewise((1 / width, X <= width / 2), (0, True))
    assert pair.P == sp.Piecewise((1 / width, X >= 1 - width / 2), (0, True))


def test_noise_on_a_half_line() -> None:
    right = Mechanism.additive(sp.exp(-X), X, support=(0, sp.oo)).pair()
    assert right.support == Support("interval", ZERO, sp.oo)
    assert right.Q == sp.exp(-X)
    assert right.P == sp.Piecewise((sp.exp(1 - X), X >= 1), (0, True))
    left = Mechanism.additive(sp.exp(X), X, support=(-sp.oo, 0)).pair()
    assert left.support == Support("interval", -sp.oo, ONE)
    assert left.Q == sp.Piecewise((sp.exp(X), X <= 0), (0, True))
    assert left.P == sp.exp(X - 1)


def test_noise_on_integers() -> None:
    mechanism = mechanisms.discrete_laplace(b=1)
    k = mechanism.variable
    assert k.is_integer
    assert k.is_nonnegative is None
    assert mechanism.pair().P == sp.exp(-sp.Abs(k - 1)) * sp.tanh(sp.Rational(1, 2))
    assert mechanism.pair().is_discrete
    shift = sp.Symbol("D", positive=True)
    free = Mechanism.additive(sp.exp(-sp.Abs(k)), k, shift, support="integers")
    assert free(D=2).pair().P == sp.exp(-sp.Abs(k - 2))
    with refused("with D=1/2", "on integers the sensitivity must be a whole number, not 1/2"):
        free(D=0.5)


def test_noise_on_naturals() -> None:
    half = sp.Rational(1, 2)
    mechanism = Mechanism.additive(half ** (X + 1), X, 2, support="naturals")
    k = mechanism.variable
    assert k.is_nonnegative
    assert k.is_integer
    pair = mechanism.pair()
    assert pair.support == Support("naturals", ZERO, sp.oo)
    assert [at(pair.Q, k, n) for n in range(4)] == [half, half**2, half**3, half**4]
    assert [at(pair.P, k, n) for n in range(4)] == [0, 0, half, half**2]
    with refused("was not shown to be symmetric about a centre"):
        mechanism.subsample("without_replacement", half).pair()
    with refused("on naturals the sensitivity must be a whole number, not 1/2"):
        Mechanism.additive(sp.exp(-X), X, half, support="naturals")


@pytest.mark.parametrize("size", [0, -1, sp.oo, math.nan])
def test_bad_sensitivities(size: object) -> None:
    with refused("sensitivity must be"):
        Mechanism.additive(sp.exp(-(X**2)), X, size)


def test_a_sensitivity_may_be_a_parameter() -> None:
    mechanism = Mechanism.additive(sp.exp(-(X**2)), X, B)
    assert mechanism(b=3).pair().P == sp.exp(-((X - 3) ** 2))
    with refused("must not depend on the variable"):
        Mechanism.additive(sp.exp(-(X**2)), X, X)


def test_points() -> None:
    third = sp.Rational(1, 3)
    listed = Mechanism.from_pair([third] * 3, [0.5, 0.25, 0.25], X, [0, 1, 5])
    assert listed.pair().P == (third, third, third)
    assert listed.pair().Q == (sp.Rational(1, 2), sp.Rational(1, 4), sp.Rational(1, 4))
    assert listed.pair().is_discrete
    assert listed.support.points == (0, 1, 5)
    formula = Mechanism.from_pair(X / 3, (2 - X) / 3, X, {"points": [0, 1, 2]})
    assert formula.pair().P == (0, third, 2 * third)
    assert formula.pair("add").P == (2 * third, third, 0)
    scaled = Mechanism.from_pair([1, 3], [3, 1], X, {"points": [0, 1]}, normalize=True)
    assert scaled.pair().P == (sp.Rational(1, 4), sp.Rational(3, 4))
    with refused("P has 2 masses but the support has 3 points"):
        Mechanism.from_pair([1, 2], [1, 2, 3], X, [0, 1, 2])
    with refused("Q is a list, but the support is no list of points"):
        Mechanism.from_pair(X, [1, 2], X)
    with refused("the point 1 of the support is there twice"):
        Mechanism.from_pair([1, 2, 3], [1, 2, 3], X, [0, 1, 1])
    with refused("two points or more"):
        Mechanism.from_pair([1], [1], X, {"points": [0]})
    with refused("a point of the support must be finite"):
        Mechanism.from_pair([1, 2], [1, 2], X, {"points": [0, sp.oo]})
    with refused("must be a list"):
        Mechanism.from_pair([1, 2], [1, 2], X, {"points": 3})
    with refused("a mass of P must not depend on the variable x"):
        Mechanism.from_pair([X, 2], [1, 2], X, {"points": [0, 1]})
    with refused("add up to 0"):
        Mechanism.from_pair([0, 0], [1, 2], X, {"points": [0, 1]}, normalize=True)


def test_normalizer_is_an_exact_unevaluated_sum_or_integral() -> None:
    k_ = sp.Symbol("k_", integer=True)
    pair = mechanisms.discrete_gaussian(sigma=1.5).pair()
    k = pair.variable
    total = MassSum(sp.exp(-2 * k_**2 / 9), (k_, -sp.oo, sp.oo))
    assert pair.Q == sp.exp(-2 * k**2 / 9) / total
    assert pair.P == sp.exp(-2 * (k - 1) ** 2 / 9) / total
    quartic = Mechanism.additive(sp.exp(-(X**4)), X, normalize=True)
    x_ = sp.Symbol("x_", real=True)
    total = MassIntegral(sp.exp(-(x_**4)), (x_, -sp.oo, sp.oo))
    assert quartic.pair().Q == sp.exp(-(X**4)) / total
    assert abs(sp.N(quartic.pair().Q.subs(X, 0)) - 1 / (2 * math.gamma(1.25))) < 1e-12
    taken = Mechanism.additive(sp.exp(-(X**4) * sp.Symbol("x_")), X, normalize=True)
    assert taken.source.density.atoms(MassIntegral).pop().limits[0][0].name == "x__"


def test_equality_hash_pickle_and_text() -> None:
    mechanism = gaussian()(sigma="3/2").subsample("poisson", 0.01)
    again = mechanisms.gaussian.subsample("poisson", Fraction(1, 100))(sigma=1.5)
    assert mechanism == again
    assert hash(mechanism) == hash(again)
    assert mechanism != gaussian()(sigma=1.5)
    assert mechanism != 3
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert repr(mechanism) == "<Mechanism gaussian(sigma=3/2), poisson sampling at rate 1/100>"
    assert repr(mechanisms.student_t(nu=3)) == "<Mechanism student_t(nu=3, s)>"
    assert r"\text{poisson sampling}" in mechanism._repr_latex_()
    assert "P(x)" in mechanisms.randomized_response._repr_latex_()
    with pytest.raises(AttributeError):
        mechanism.name = "other"


@pytest.mark.parametrize("support", [(-sp.oo, sp.oo), (0, sp.oo), "integers"])
def test_a_density_without_its_variable_is_refused(support) -> None:
    x, y = sp.symbols("x y")
    with pytest.raises(InputError, match=r"does not hold its variable x.*is y the variable"):
        Mechanism.additive(sp.exp(-sp.Abs(y)) / 2, x, support=support)
    with pytest.raises(InputError, match="P does not hold its variable x"):
        Mechanism.from_pair(sp.exp(-y), sp.exp(-x), x, (0, sp.oo))


def test_uniform_noise_needs_no_variable() -> None:
    w = sp.Symbol("w", positive=True)
    assert list(Mechanism.additive(1 / w, sp.Symbol("x"), support=(0, w)).parameters) == ["w"]
