"""Derivatives of ε and δ: closed forms of normal noise, and differences of answers of many laws."""

from __future__ import annotations

import math

import mpmath
import pytest
import sympy as sp
from shell import Shell

import symdp
from symdp import InputError, Mechanism, mechanisms
from symdp.questions.design.gradient import gradient

X = sp.Symbol("x", real=True)
A, B = sp.symbols("a b", positive=True)
NORMAL = sp.exp(-(X**2) / (2 * A**2)) / (A * sp.sqrt(2 * sp.pi))


def additive(density, name, **values):
    return Mechanism.additive(density, X, name=name)(**values)


LAWS = {
    "normal": (mechanisms.gaussian(sigma=2), 100, 1e-5),
    "logistic": (mechanisms.logistic(s=3), 20, 1e-5),
    "discrete Laplace": (mechanisms.discrete_laplace(b=4), 20, 1e-5),
    "coin": (mechanisms.randomized_response(epsilon_0="1/5"), 20, 1e-5),
    "two humps": (
        additive(NORMAL * (1 + B * X**2 / A**2) / (1 + B), "humps", a=3, b="1/3"), 20, 1e-4,
    ),
    "two variances": (
        Mechanism.from_pair(NORMAL.subs(X, X - 1), NORMAL.subs(A, B), X, name="two")(a=3, b="3.2"),
        10, 1e-3,
    ),
    "gumbel": (mechanisms.gumbel(b=3), 20, 1e-5),
    "student": (mechanisms.student_t(nu=5, s=3), 20, 1e-5),
    "sech": (additive(sp.sech(X / A) / (sp.pi * A), "sech", a=2), 20, 1e-5),
    "vectors": (mechanisms.l2_laplace(s=4, d=3), 10, 1e-3),
    "sampled": (mechanisms.gaussian(sigma=2).subsample("poisson", "1/50"), 200, 1e-5),
    "few rare samples": (mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 20, 1e-5),
    "sampled, more noise": (mechanisms.gaussian(sigma=8).subsample("poisson", "1/5"), 50, 1e-4),
    "fixed batches": (
        mechanisms.gaussian(sigma=2).subsample("without_replacement", "1/10"), 50, 1e-3,
    ),
    "Laplace": (mechanisms.laplace(b=4), 20, 1e-5),
    "sampled Laplace": (mechanisms.laplace(b=2).subsample("poisson", "1/5"), 30, 1e-4),
    "discrete normal": (mechanisms.discrete_gaussian(sigma=4), 20, 1e-5),
    "skellam": (mechanisms.skellam(mu=40), 20, 1e-4),
    "one Laplace step": (mechanisms.laplace(b="1/2"), 1, 0.1),
    "exponential family": (mechanisms.von_mises_fisher(kappa=3, h="1/2", m=4), 10, 1e-3),
    "lowered": (mechanisms.gumbel(b=3).shifted("down"), 10, 1e-4),
}  # fmt: skip
QUICK = ("normal", "discrete Laplace", "coin")


def differences(law, count, direction, name, value, ask):
    """The derivative of answers by a five-point rule, at steps of its own."""
    # Of noise on integers ε has kinks in its parameters: the nearer, the fewer between.
    step = sp.Rational(1, 700 if law.support.kind == "interval" else 20000) * value
    answers = []
    for by in (-2, -1, 1, 2):
        moved = value + by * step
        if name == "sensitivity":
            other = law.moved_by(moved)
        elif name == "rate":
            sampling = law.sampling
            other = law.template(**dict(law.bound)).subsample(sampling.scheme, moved)
        else:
            values = {**dict(law.bound), name: moved}
            other = (
                law.template(**values).shifted(law.shift)
                if law.shift != "at most"
                else (law.template(**values))
            )
            if law.sampling is not None:
                other = other.subsample(law.sampling.scheme, law.sampling.rate)
        answers.append(ask(symdp.compose(other, count), direction))
    return (answers[0] - 8 * answers[1] + 8 * answers[2] - answers[3]) / (12 * float(step))


@pytest.mark.quick_cases("coin")
@pytest.mark.parametrize("name", LAWS)
def test_slopes_are_those_of_differences(name):
    law, count, delta = LAWS[name]
    steps = symdp.compose(law, count)
    for direction in ("remove", "add"):
        if direction == "add" and name not in ("gumbel", "two variances", "sampled"):
            continue
        slopes = gradient(steps, delta=delta, direction=direction).slopes

        def epsilon(other, side):
            return other.epsilon(delta, direction=side).epsilon

        for slope in slopes:
            if slope.parameter == "n":
                continue
            value = sp.nsimplify(sp.Rational(str(slope.value)))
            seen = differences(law, count, direction, slope.parameter, value, epsilon)
            allowed = 1e-6 * abs(seen) + 2 * slope.error
            assert abs(slope.derivative - seen) <= allowed, (slope, seen)


def normal_epsilon(mu, delta):
    def gap(epsilon):
        first = mpmath.ncdf(mu / 2 - epsilon / mu)
        return mpmath.log((first - mpmath.e**epsilon * mpmath.ncdf(-mu / 2 - epsilon / mu)) / delta)

    return mpmath.findroot(gap, mu * mu / 2 + 4 * mu)


def test_normal_noise_in_all_its_parameters():
    """ε depends on μ = D√n/σ alone."""
    found = symdp.compose(mechanisms.gaussian(sigma=2), 100).gradient(delta=1e-5)
    with mpmath.workdps(30):
        slope = mpmath.diff(lambda mu: normal_epsilon(mu, mpmath.mpf("1e-5")), mpmath.mpf(5))
    by_mu = float(slope)
    truth = {"sigma": -by_mu * 5 / 2, "sensitivity": by_mu * 5, "n": by_mu * 5 / 200}
    for name, derivative in truth.items():
        assert found[name].derivative == pytest.approx(derivative, rel=1e-9)
        assert found[name].by == "line"
        assert abs(found[name].derivative - derivative) <= found[name].error + 1e-12


def test_delta_of_normal_noise():
    found = symdp.compose(mechanisms.gaussian(sigma=5), 9).gradient(epsilon=1)

    def delta(sigma):
        mu = 3 / sigma
        upper = mpmath.ncdf(mu / 2 - 1 / mu)
        return upper - mpmath.e * mpmath.ncdf(-mu / 2 - 1 / mu)

    with mpmath.workdps(30):
        truth = float(mpmath.diff(delta, mpmath.mpf(5)))
    assert found.quantity == "delta"
    assert found["sigma"].derivative == pytest.approx(truth, rel=1e-9)


def test_steps_of_several_kinds_have_slopes_of_their_own():
    steps = symdp.compose([(mechanisms.gaussian(sigma=2), 4), (mechanisms.gaussian(sigma=3), 9)])
    slopes = steps.gradient(delta=1e-5).slopes
    by_step = {(one.step, one.parameter): one.derivative for one in slopes}
    # μ² = 4/σ₁² + 9/σ₂², so that the slopes are as 4/σ₁³ to 9/σ₂³.
    first, second = by_step["gaussian(sigma=2)", "sigma"], by_step["gaussian(sigma=3)", "sigma"]
    assert first / second == pytest.approx((4 / 8) / (9 / 27), rel=1e-9)


def test_what_moves_a_jump_is_not_summed():
    """Noise on [0, w] that is cut: the mass at infinity moves with w, which no line sees."""
    box = Mechanism.additive(1 / A, X, 1, (0, A), "box")(a=50)
    steps_to_come = []
    slopes = symdp.compose(box, 2).gradient(epsilon=0.0, progress=steps_to_come.append).slopes
    assert "six answers for the derivative in a" in steps_to_come
    slope = next(one for one in slopes if one.parameter == "a")
    assert slope.by == "differences"
    truth = -2 * (1 - 1 / 50) / 50**2  # δ(0) = 1 − (1 − 1/a)²
    assert slope.derivative == pytest.approx(truth, rel=1e-6)


def test_two_directions_that_cross_have_two_sides():
    """Where the larger of two directions changes with a parameter, each side is said."""
    pair = Mechanism.from_pair(NORMAL.subs(X, X - 1), NORMAL.subs(A, B), X, name="two")
    found = symdp.compose(pair(a=3, b=3), 10).gradient(delta=1e-3)
    assert found.other
    first = {one.parameter: one.derivative for one in found.slopes}
    second = {one.parameter: one.derivative for one in found.other}
    # One law has the variance a² and the other b²: exchanged, so are their slopes.
    assert first["a"] == pytest.approx(second["b"], rel=1e-8)
    assert not math.isclose(first["a"], second["a"], rel_tol=1e-3)


def test_nothing_moves_an_epsilon_of_zero():
    with pytest.raises(InputError, match="epsilon is 0"):
        symdp.compose(mechanisms.gaussian(sigma=100), 1).gradient(delta=0.5)
    with pytest.raises(InputError, match="give epsilon"):
        symdp.compose(mechanisms.gaussian(sigma=100), 1).gradient()


def test_on_the_command_line(shell: Shell):
    told = shell("sensitivities gaussian sigma=2 -n 100 --delta 1e-5 --json").json
    slopes = {one["parameter"]: one["derivative"] for one in told["slopes"]}
    assert slopes["sigma"] == pytest.approx(-23.06974104702, rel=1e-10)
    ran = shell("sensitivities gaussian sigma=2 -n 100 --epsilon 30")
    assert "∂δ/∂parameter" in ran.out
    assert "a sum on the contour" in ran.out
    refused = shell("sensitivities gaussian sigma=2 -n 100")
    assert refused.code == 2
    assert "--delta D" in refused.err


def test_slopes_beside_a_kink_are_taken_nearer():
    """The largest loss of three answers is 3ε₀: δ has kinks at 3ε₀ and at ε₀."""
    epsilon_0, epsilon = 1.0, 2.997
    coin = symdp.compose(mechanisms.randomized_response(epsilon_0=1), 3)
    slope = coin.gradient(epsilon=epsilon)["epsilon_0"]
    with mpmath.workdps(30):

        def delta(value):
            truth = 1 / (1 + mpmath.exp(-value))
            return truth**3 - mpmath.exp(epsilon) * (1 - truth) ** 3

        rise = float(mpmath.diff(delta, epsilon_0))
    assert slope.derivative == pytest.approx(rise, rel=1e-8)


@pytest.mark.slow
def test_delta_in_the_number_of_few_steps():
    """δ of few steps grows by factors with each: differences are those of log δ."""
    epsilon = 1.5
    noise = mechanisms.gaussian(sigma=3).subsample("poisson", "1/100")
    answers = [symdp.compose(noise, n).delta(epsilon, direction="remove").delta for n in (3, 4, 5)]
    slope = symdp.compose(noise, 4).gradient(epsilon=epsilon, direction="remove")["n"]
    assert answers[1] - answers[0] < slope.derivative < answers[2] - answers[1]
