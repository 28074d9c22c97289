"""Brackets of few steps on a mesh: both sides hold, by quadrature, by the contour and by proof."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
import sympy as sp
from flint import arb, ctx, fmpq
from proved_bounds import assert_meets

from symdp import compose, mechanisms
from symdp.certify import bracket, cells, enclose_delta
from symdp.certify.bracket import bracket_delta
from symdp.exact.route import Contour
from symdp.model.mechanism import Mechanism

RATE, SIGMA = mp.mpf("0.01"), mp.mpf("1.5")
SUBSAMPLED = mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100")
LAPLACE, NORMAL = mechanisms.laplace(b=2), mechanisms.gaussian(sigma=2)
LOGISTIC, STUDENT = mechanisms.logistic(s=1), mechanisms.student_t(nu=3, s=1)
NUMBER = sp.Symbol("x", real=True)
TWO_VARIANCES = Mechanism.from_pair(
    sp.exp(-(NUMBER**2) / 8) / sp.sqrt(8 * sp.pi), sp.exp(-(NUMBER**2) / 2) / sp.sqrt(2 * sp.pi),
    NUMBER,
)  # fmt: skip


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


def brackets(steps, epsilon, digits, direction="remove", tilt=2.0, log_size=-5.0):
    """The bracket itself: `enclose_delta` may have a better way."""
    pairs = [(mechanism.pair(direction), count) for mechanism, count in steps]
    exact = Fraction(epsilon)
    with ctx.workprec(192):
        at = arb(fmpq(exact.numerator, exact.denominator))
        return bracket_delta(pairs, at, tilt, log_size, digits)


def holds(ball, value):
    """Whether a ball holds a value known to a dozen digits or more."""
    with ctx.workprec(192):
        return bool(ball.overlaps(arb(mp.nstr(value, 18)) * (1 + arb(0, 1) * arb(10) ** -11)))


def two_subsampled(epsilon):
    """∫ P(x) δ₁(ε − ℓ(x)) dx, δ₁ from normal tails."""

    def tail(x, mean):
        return mp.erfc((x - mean) / (SIGMA * mp.sqrt(2))) / 2

    def root(level):
        return SIGMA**2 * mp.log((mp.exp(level) - 1 + RATE) / RATE) + mp.mpf(1) / 2

    def one(level):
        if level <= mp.log(1 - RATE):
            return -mp.expm1(level)
        x = root(level)
        return (1 - RATE) * tail(x, 0) + RATE * tail(x, 1) - mp.exp(level) * tail(x, 0)

    def integrand(x):
        ratio = mp.exp((2 * x - 1) / (2 * SIGMA**2))
        weight = 1 - RATE + RATE * ratio
        return mp.npdf(x, 0, SIGMA) * weight * one(epsilon - mp.log(weight))

    kink = root(epsilon - mp.log(1 - RATE))
    return mp.quad(integrand, sorted({-15, -5, 0, 4, kink, 9, 15}))


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 1000), pytest.param(Fraction(1, 10), marks=pytest.mark.slow)]
)
def test_two_steps_against_quadrature(epsilon):
    with mp.workdps(20):
        exact = two_subsampled(mp.mpf(epsilon.numerator) / epsilon.denominator)
        ball = brackets([(SUBSAMPLED, 2)], epsilon, 3, tilt=10.0, log_size=float(mp.log(exact)))
    assert holds(ball, exact)


@pytest.mark.parametrize(
    ("steps", "epsilon", "direction"),
    [
        ([(NORMAL, 3)], 1.5, "remove"),
        ([(LAPLACE, 3)], 0.5, "add"),
        slow([(LOGISTIC, 2)], 0.5, "add"),
        slow([(STUDENT, 3)], 1.0, "remove"),
        slow([(TWO_VARIANCES, 2)], -0.5, "add"),
        slow([(NORMAL, 1), (LAPLACE, 1), (LOGISTIC, 2)], 0.75, "remove"),
        ([(mechanisms.randomized_response(epsilon_0=1), 2), (NORMAL, 1)], 1.0, "remove"),
    ],
    ids=["normal", "laplace", "logistic", "student", "two variances", "mixed", "with atoms"],
)
def test_few_steps_against_the_contour(steps, epsilon, direction):
    exact = Contour().log_delta(compose(steps).law(direction), epsilon)
    ball = brackets(steps, epsilon, 3, direction)
    assert_meets(exact, ball)
    assert 2 * ball.rad() < ball.lower() * arb(10) ** -3


@pytest.mark.parametrize("mechanism", [NORMAL, STUDENT, TWO_VARIANCES])
def test_one_step_on_a_coarse_mesh_against_its_own_proof(mechanism):
    """Between the points of the mesh and on cells of every width, both sides hold."""
    pair = mechanism.pair()
    for epsilon in (-0.3, 0.11):
        truth = enclose_delta([(pair, 1)], epsilon, 15)
        for digits in (0.7,):
            ball = brackets([(mechanism, 1)], epsilon, digits, tilt=0.25)
            with ctx.workprec(192):
                assert ball.contains(truth)


def test_any_share_of_the_cells_proves_the_same(monkeypatch):
    truth = enclose_delta([(LAPLACE.pair(), 2)], 0.5, 15)
    for share in ("0", "0.3", "1"):
        monkeypatch.setattr(
            bracket,
            "_shares_upwards",
            lambda sharp, _, share=share: [arb(0) if s is None else arb(share) for s in sharp],
        )
        ball = brackets([(LAPLACE, 2)], 0.5, 1)
        with ctx.workprec(192):
            assert ball.contains(truth)


def test_what_is_cut_off_is_counted(monkeypatch):
    truth = enclose_delta([(LAPLACE.pair(), 2), (NORMAL.pair(), 1)], 0.5, 15)
    aim = bracket._Aim(1.0, math.log(0.5), 3e-3, 6)
    pairs = [(LAPLACE.pair(), 2), (NORMAL.pair(), 1)]
    with ctx.workprec(192):
        assert bracket._bracket(pairs, arb(0.5), aim).contains(truth)
        monkeypatch.setattr(bracket, "_trimmed", lambda *_: arb(0))
        monkeypatch.setattr(cells, "_ends", without_what_is_beyond(cells._ends))
        assert not bracket._bracket(pairs, arb(0.5), aim).contains(truth)


def without_what_is_beyond(ends):
    return lambda part, bits: (*ends(part, bits)[:2], arb(0))


def test_a_mass_slightly_wrong_loses_the_truth(monkeypatch):
    truth = enclose_delta([(LAPLACE.pair(), 3)], 0.5, 15)
    assert brackets([(LAPLACE, 3)], 0.5, 3).contains(truth)
    real = cells._mass
    monkeypatch.setattr(cells, "_mass", lambda *given: real(*given) * arb("0.998"))
    assert not brackets([(LAPLACE, 3)], 0.5, 3).contains(truth)


def test_where_the_line_refuses_the_mesh_answers():
    """Near the top of the range no tilt within reach tells much; far below, 1 − δ is small."""
    steps = compose(SUBSAMPLED, 10)
    pairs = [(SUBSAMPLED.pair("add"), 10)]
    epsilon = 0.0999
    ball = enclose_delta(pairs, epsilon, 2)
    assert_meets(Contour().log_delta(steps.law("add"), epsilon), ball)
    response = mechanisms.randomized_response(epsilon_0=1).pair()
    near_one = enclose_delta([(response, 10**6)], 0.0, 12)
    assert 1 - arb(10) ** -12 < near_one
    assert not near_one > 1
