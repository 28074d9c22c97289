"""The dominating law on a mesh and the bound of its distance, against enumeration and proofs."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import pytest
import sympy as sp
from catalogue import ALL
from flint import acb, arb, ctx, fmpq
from proved_bounds import assert_meets

from symdp import compose, mechanisms
from symdp.certify import enclose_delta
from symdp.certify.mesh import bracket, cells, mesh
from symdp.certify.mesh.bracket import bracket_delta
from symdp.certify.parts import parts_of
from symdp.errors import AccuracyError
from symdp.exact.route import Contour
from symdp.model.mechanism import Mechanism

RATE, SIGMA = mp.mpf("0.01"), mp.mpf("1.5")
SUBSAMPLED = mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100")
LAPLACE, NORMAL = mechanisms.laplace(b=2), mechanisms.gaussian(sigma=2)
LOGISTIC, STUDENT = mechanisms.logistic(s=1), mechanisms.student_t(nu=3, s=1)
SAMPLED = LOGISTIC.subsample("poisson", "1/10")
INTEGERS = mechanisms.discrete_gaussian(sigma=2).subsample("poisson", "1/10")
X = sp.Symbol("x", real=True)
TWO_VARIANCES = Mechanism.from_pair(
    sp.exp(-(X**2) / 8) / sp.sqrt(8 * sp.pi), sp.exp(-(X**2) / 2) / sp.sqrt(2 * sp.pi), X
)


@pytest.fixture(autouse=True)
def fresh():
    """Nothing is kept from a test that breaks a bound."""
    for function in (cells.outcomes_of, mesh._window, mesh._composed):
        function.cache_clear()
    with ctx.workprec(192):
        yield
    for function in (cells.outcomes_of, mesh._window, mesh._composed):
        function.cache_clear()


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


def brackets(steps, epsilon, digits, direction="remove", tilt=2.0, log_size=-5.0):
    """The bracket itself: `enclose_delta` may have a better way."""
    pairs = [(mechanism.pair(direction), count) for mechanism, count in steps]
    exact = Fraction(epsilon)
    at = arb(fmpq(exact.numerator, exact.denominator))
    return bracket_delta(pairs, at, tilt, log_size, digits)


def width(ball):
    return float(2 * ball.rad() / ball.lower())


# Every law on a few points, in rationals.


def finite_law(draw, size):
    """Masses of P and Q on points, in tenths or so, none of them 0."""
    masses = []
    for _ in range(2):
        parts = [draw.randint(1, 9) for _ in range(size)]
        masses.append([Fraction(part, sum(parts)) for part in parts])
    return masses


def exact_delta(laws, epsilon):
    """Σ (p − e^ε q)⁺ over all outcomes of all steps, p and q in rationals."""
    factor = arb(fmpq(epsilon.numerator, epsilon.denominator)).exp()
    total = arb(0)
    for outcome in itertools.product(*(zip(*law, strict=True) for law in laws)):
        p, q = (math.prod(masses, start=Fraction(1)) for masses in zip(*outcome, strict=True))
        own = arb(fmpq(p.numerator, p.denominator))
        own -= factor * arb(fmpq(q.numerator, q.denominator))
        total += own.max(arb(0))
    return total


@pytest.mark.parametrize("seed", range(12))
def test_small_laws_lie_in_every_bracket(seed):
    draw = random.Random(seed)
    law, other = finite_law(draw, draw.randint(2, 4)), finite_law(draw, 2)
    counts = draw.randint(1, 4), draw.randint(0, 2)
    steps = []
    for (p, q), count in zip((law, other), counts, strict=True):
        made = Mechanism.from_pair(
            [sp.Rational(str(m)) for m in p], [sp.Rational(str(m)) for m in q], X,
            {"points": list(range(len(p)))},
        )  # fmt: skip
        steps += [(made, count)] if count else []
    laws = [law] * counts[0] + [other] * counts[1]
    for epsilon in (Fraction(-1, 3), Fraction(1, 7), Fraction(3, 5)):
        truth = exact_delta(laws, epsilon)
        for digits, tilt in ((1, 0.5), (3, 2.0), (5, 1.0)):
            ball = brackets(steps, epsilon, digits, tilt=tilt, log_size=-1.0)
            assert ball.overlaps(truth)


@pytest.mark.parametrize("seed", range(6))
def test_the_distance_is_never_more_than_its_bound(seed):
    """Two-valued factors of mean 1: what Jensen's inequality lacks, against E V."""
    draw = random.Random(seed)
    count, step = draw.randint(1, 6), draw.choice((0.01, 0.1, 0.3))
    spread = math.sqrt(count) * step / 2
    b = spread / 2
    front = spread * (math.sqrt(1 + b * b) + b) / 2 * math.exp((1 + b * b) / 4)
    factors = []
    for _ in range(count):
        down = draw.uniform(0, step)
        up = step - down
        share = -math.expm1(-down) / -math.expm1(-step)  # of e^{−ξ} the mean is 1
        factors.append(((up, share), (-down, 1 - share)))
    sums = [
        (sum(xi for xi, _ in chosen), math.prod(share for _, share in chosen))
        for chosen in itertools.product(*factors)
    ]
    assert sum(share * math.exp(-xi) for xi, share in sums) == pytest.approx(1, abs=1e-12)
    for away in [draw.uniform(-3, 3) * spread for _ in range(200)] + [0.0]:
        lack = sum(share * max(-math.expm1(-away - xi), 0.0) for xi, share in sums)
        lack -= max(-math.expm1(-away), 0.0)
        bound = sum(
            share * front * math.exp(-(((away + xi) / (2 * spread)) ** 2)) for xi, share in sums
        )
        assert -1e-15 < lack <= bound


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


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), slow(Fraction(1, 10))])
def test_two_steps_against_quadrature(epsilon):
    with mp.workdps(20):
        exact = two_subsampled(mp.mpf(epsilon.numerator) / epsilon.denominator)
        ball = brackets([(SUBSAMPLED, 2)], epsilon, 5, tilt=10.0, log_size=float(mp.log(exact)))
        assert ball.overlaps(arb(mp.nstr(exact, 18)) * (1 + arb(0, 1) * arb(10) ** -11))


@pytest.mark.slow_cases("add--0.5", "remove-2.0", "add-2.0", "add-0.3", "remove--0.5")
@pytest.mark.parametrize("epsilon", [-0.5, 0.3, 2.0])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_two_gaussian_steps_are_one(epsilon, direction):
    first, second = mechanisms.gaussian(sigma=2), mechanisms.gaussian(sigma=1)
    ball = enclose_delta([(first.pair(direction), 1), (second.pair(direction), 1)], epsilon, 6)
    with mp.workdps(45):
        mu = mp.sqrt(mp.mpf(1) / 4 + 1)
        e = mp.mpf(epsilon)
        truth = mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)
        assert ball.overlaps(arb(mp.nstr(truth, 42), 1e-40))
    assert width(ball) < 1e-6


@pytest.mark.slow_cases("integers", "normal", "sampled laplace")
@pytest.mark.parametrize(
    ("steps", "epsilon", "direction"),
    [
        ([(NORMAL, 3)], 1.5, "remove"),
        ([(LAPLACE, 3)], 0.5, "add"),
        ([(LOGISTIC, 2)], 0.5, "add"),
        slow([(STUDENT, 3)], 1.0, "remove"),
        slow([(TWO_VARIANCES, 2)], -0.5, "add"),
        slow([(NORMAL, 1), (LAPLACE, 1), (LOGISTIC, 2)], 0.75, "remove"),
        ([(mechanisms.randomized_response(epsilon_0=1), 2), (NORMAL, 1)], 1.0, "remove"),
        ([(INTEGERS, 10)], 1.0, "remove"),
        slow([(INTEGERS, 100)], 1.0, "add"),
        ([(mechanisms.laplace(b=1).subsample("poisson", "1/10"), 4)], 0.2, "add"),
    ],
    ids=[
        "normal", "laplace on a sum of atoms", "logistic", "student", "two variances", "mixed",
        "with atoms", "integers", "many integers", "sampled laplace",
    ],
)  # fmt: skip
def test_few_steps_against_the_contour(steps, epsilon, direction):
    answer = Contour().log_delta(compose(steps).law(direction), epsilon)
    ball = enclose_delta([(m.pair(direction), n) for m, n in steps], epsilon, 6)
    assert_meets(answer, ball)
    assert width(ball) < 1e-6


@pytest.mark.slow_cases("mechanism1")
@pytest.mark.parametrize("mechanism", [NORMAL, STUDENT, TWO_VARIANCES])
def test_one_step_on_a_coarse_mesh_against_its_own_proof(mechanism):
    """Between the points of the mesh and at every width, both sides hold."""
    pair = mechanism.pair()
    for epsilon in (-0.3, 0.11):
        truth = enclose_delta([(pair, 1)], epsilon, 15)
        for digits in (0.7, 2, 4):
            assert brackets([(mechanism, 1)], epsilon, digits, tilt=0.25).contains(truth)


def gamma_delta(shape, rate, count, epsilon):
    """Return δ of n steps with |x|^r gamma distributed, of rate 1 under P and another under Q.

    The loss is −a log(rate) − (1 − rate)|x|^r for the shape a, and sums of |x|^r have the shape na.
    """
    with mp.workdps(40):
        rate, shape = mp.mpf(rate), mp.mpf(shape) * count
        most = (-shape * mp.log(rate) - mp.mpf(epsilon)) / (1 - rate)
        p = mp.gammainc(shape, 0, most, regularized=True)
        q = mp.gammainc(shape, 0, rate * most, regularized=True)
        return p - mp.exp(mp.mpf(epsilon)) * q


def scaled(density, c, support):
    """Return a density against the same one c times as wide."""
    return Mechanism.from_pair(
        density, density.subs(X, X / c) / c, X, support=support, name="scaled"
    )


LINE, HALF = (-sp.oo, sp.oo), sp.Rational(1, 2)
CUBIC = sp.exp(-(sp.Abs(X) ** 3)) / (2 * sp.gamma(sp.Rational(4, 3)))
QUARTIC = sp.exp(-(X**4)) / (2 * sp.gamma(sp.Rational(5, 4)))
RAYLEIGH = X * sp.exp(-(X**2) / 2)
# With |x|^r a gamma variable of shape a, Q has rate c^{−r}.
TURNING = {
    "normal": (scaled(sp.exp(-(X**2) / 2) / sp.sqrt(2 * sp.pi), 2, LINE), HALF, HALF**2),
    "flat": (scaled(CUBIC, 2, LINE), sp.Rational(1, 3), sp.Rational(1, 8)),
    "flatter": (scaled(QUARTIC, 2, LINE), sp.Rational(1, 4), sp.Rational(1, 16)),
    "rayleigh": (scaled(RAYLEIGH, 3, (sp.S.Zero, sp.oo)), sp.S.One, sp.Rational(1, 9)),
}


@pytest.mark.slow_cases("normal-3", "rayleigh-3", "flat-3", "flatter-3")
@pytest.mark.parametrize("count", [3, slow(4), slow(7)])
@pytest.mark.parametrize("name", TURNING)
def test_few_steps_of_turning_losses_against_gamma_distributions(name, count):
    mechanism, shape, rate = TURNING[name]
    epsilon = float(0.6 * count * float(-shape * sp.log(rate)))
    ball = enclose_delta([(mechanism.pair("remove"), count)], epsilon, 6)
    truth = gamma_delta(str(shape.evalf(50)), str(rate.evalf(50)), count, epsilon)
    assert ball.overlaps(arb(mp.nstr(truth, 36), 1e-34))
    assert width(ball) < 1e-6


GAMMA = ALL["gamma noise"].mechanism("noise")
THREE_HALVES = sp.Rational(3, 2)
FEW = {
    "two subsampled": (mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 2, 0.0151),
    "five bounded": (mechanisms.logistic(s=2), 5, 1.49),
    "three of gamma noise": (GAMMA, 3, 1.0),
    "ten subsampled laplace": (LAPLACE.subsample("poisson", "1/100"), 10, 0.03),
    "a long walk": (mechanisms.gaussian(sigma=1).subsample("poisson", "1/100"), 3, 0.0456),
    "sampled tails": (mechanisms.logistic(s=2).subsample("poisson", "1/100"), 100, 0.05),
    "its loss turns twice": (ALL["cauchy"].mechanism("cauchy")(), 2, 1.5),
    "its ends never reached": (ALL["hyperbolic secant"].mechanism("sech")(), 2, 1.2),
    "one end": (ALL["weibull scales"].mechanism("w")(k="3/2", a=2, c="3/2"), 2, 0.7),
    "two sampled laplace": (LAPLACE.subsample("poisson", "1/10"), 2, 0.05),
    "raised cosines": (ALL["raised cosine noise"].mechanism("cosine")(), 2, 0.1),
    **{
        f"sampled {name}": (ALL[name].mechanism("m")(**values).subsample("poisson", "1/100"), 3, e)
        for name, values, e in (
            ("rayleigh scales", {"a": THREE_HALVES, "c": 1}, 0.05),
            ("gamma shapes", {"a": THREE_HALVES, "c": 1}, 0.009),
            ("weibull noise", {}, 0.066),
            ("exp(-|x|**3) noise", {}, 0.05),
            ("cauchy", {}, 0.012),
        )
        if name not in {"weibull noise", "exp(-|x|**3) noise", "cauchy"}
    },
}
QUICK = {"two subsampled", "five bounded", "two sampled laplace", "one end", "raised cosines"}


@pytest.mark.slow_cases("five bounded", "two subsampled", "one end", "raised cosines")
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FEW]
)
def test_few_steps_are_certified(name):
    mechanism, count, epsilon = FEW[name]
    ball = enclose_delta([(mechanism.pair("remove"), count)], epsilon, 15)
    answer = compose(mechanism, count).delta(epsilon, direction="remove")
    log = ball.log()
    assert answer.log_lower <= log.upper()
    assert log.lower() <= answer.log_upper
    assert width(ball) < 2e-5


# What holds the proof together.


def test_masses_of_cells_are_integrals():
    pair = SUBSAMPLED.pair()
    panels = cells.outcomes_of(pair, 96).panels
    (part,) = parts_of(pair).stretches
    total_p, total_q = arb(0), arb(0)
    for panel in panels:
        for cell in cells.cells(panel, arb("0.01"), arb("0.03")):
            assert cell.overshoot < 1e-12
            low, high = (arb("0.01") + (cell.level + k) * arb("0.03") for k in (0, 1))
            assert cell.p.upper() >= (low - arb(1e-12)).exp() * cell.q.lower()
            assert cell.p.lower() <= (high + arb(1e-12)).exp() * cell.q.upper()
            total_p, total_q = total_p + cell.p, total_q + cell.q

    def density(x, analytic=False):
        base, loss = part.logarithms(x, analytic=analytic)
        return (base + part.shift * loss).exp()

    cut = part.cut(sp.S.Zero, 96)
    whole = acb.integral(density, acb(cut.lower.mid()), acb(cut.upper.mid())).real
    assert abs(total_p - whole) < 1e-20
    assert abs(total_q - 1) < 1e-9


def broken(monkeypatch, digits=3):
    """Return the bracket with one bound left out, and the truth."""
    truth = enclose_delta([(LAPLACE.pair(), 30), (NORMAL.pair(), 20)], 4.0, 15)
    return brackets([(LAPLACE, 30), (NORMAL, 20)], 4.0, digits, tilt=1.0, log_size=-2.0), truth


def test_nothing_broken_contains_the_truth(monkeypatch):
    ball, truth = broken(monkeypatch)
    assert ball.contains(truth)


def test_without_the_bound_of_the_distance_the_truth_is_lost(monkeypatch):
    monkeypatch.setattr(bracket._Sum, "distance", lambda *_: arb(0))
    ball, truth = broken(monkeypatch)
    assert ball > truth


@pytest.mark.slow
def test_without_what_is_left_out_the_truth_is_lost(monkeypatch):
    """A coarse share, on a mesh so fine that the distance would not hide it."""
    monkeypatch.setattr(mesh, "_SHARE", 2.0**12)
    real = bracket.compose_on_mesh

    def forgetful(*arguments):
        return replace(real(*arguments), lacking=arb(0), missed=arb(0))

    monkeypatch.setattr(bracket, "compose_on_mesh", forgetful)
    ball, truth = broken(monkeypatch, 6)
    assert ball < truth


def test_a_mass_slightly_wrong_loses_the_truth(monkeypatch):
    real = mesh.cells

    def wrong(*arguments):
        for cell in real(*arguments):
            yield replace(cell, p=cell.p * arb("0.9999"), q=cell.q * arb("0.9999"))

    monkeypatch.setattr(mesh, "cells", wrong)
    ball, truth = broken(monkeypatch, 4)
    assert not ball.overlaps(truth)


def test_losses_that_are_not_known_to_be_monotone_are_refused(monkeypatch):
    pair = mechanisms.logistic(s=7).pair("remove")
    for part in parts_of(pair).stretches:
        monkeypatch.setattr(part, "piece", replace(part.piece, slope="unknown"))
    with pytest.raises(AccuracyError, match="monotone"):
        bracket_delta([(pair, 2)], arb(0.1), 1.0, -2.0, 5)


def test_a_discrete_law_without_a_lattice_agrees_with_every_sum():
    response = ALL["randomised response of 4"].mechanism("response")(e=5)
    steps = [(response.subsample("poisson", "1/100").pair("remove"), 100)]
    exact = enclose_delta(steps, 0.4, 15)
    with ctx.workprec(192):
        ball = bracket_delta(steps, arb(0.4), 2.0, -3.0, 5)
    assert ball.contains(exact)
    assert exact.rad() < ball.rad()
    assert width(ball) < 1e-5


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


def test_fewer_digits_than_asked_are_said():
    proved = compose(SAMPLED, 3).certify(0.4, 15, "remove")
    assert 6 <= proved.digits < proved.digits_asked == 15
    low, high = Fraction(proved.lower_decimal), Fraction(proved.upper_decimal)
    assert 0 < high - low < low / 10**6
    assert proved.to_json()["digits"] == proved.digits
    many = compose(LOGISTIC, 60).certify(8.0, 12, "remove")
    assert many.digits == many.digits_asked == 12


def test_epsilon_has_as_many_digits_as_delta_allows():
    proved = compose(SAMPLED, 3).certify_epsilon(1e-2, 12, "remove")
    low, high = Fraction(proved.lower_decimal), Fraction(proved.upper_decimal)
    assert 5 <= proved.digits < 12
    assert enclose_delta([(SAMPLED.pair("remove"), 3)], low, 6) > 1e-2
    assert enclose_delta([(SAMPLED.pair("remove"), 3)], high, 6) < 1e-2
