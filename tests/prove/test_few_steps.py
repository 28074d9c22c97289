"""Few steps, by whichever row of the table serves: against closed forms and the contour."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest
import sympy as sp
from catalogue import ALL
from flint import arb, ctx
from proved_bounds import assert_meets

from symdp import compose, mechanisms
from symdp.methods.route import Contour
from symdp.model.mechanism import Mechanism
from symdp.prove.enclosure import enclose_delta

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
def precise():
    """Balls of tests are as fine as those of the proofs."""
    with ctx.workprec(192):
        yield


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


def width(ball):
    return float(2 * ball.rad() / ball.lower())


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


@pytest.mark.quick_cases("laplace on a sum of atoms")
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_fewer_digits_than_asked_are_said():
    proved = compose(SAMPLED, 3).certify(0.4, 15, "remove")
    assert 6 <= proved.digits < proved.digits_asked == 15
    low, high = Fraction(proved.lower_decimal), Fraction(proved.upper_decimal)
    assert 0 < high - low < low / 10**6
    assert proved.to_json()["digits"] == proved.digits
    many = compose(LOGISTIC, 60).certify(8.0, 12, "remove")
    assert many.digits == many.digits_asked == 12


@pytest.mark.slow
def test_epsilon_has_as_many_digits_as_delta_allows():
    proved = compose(SAMPLED, 3).certify_epsilon(1e-2, 12, "remove")
    low, high = Fraction(proved.lower_decimal), Fraction(proved.upper_decimal)
    assert 5 <= proved.digits < 12
    assert enclose_delta([(SAMPLED.pair("remove"), 3)], low, 6) > 1e-2
    assert enclose_delta([(SAMPLED.pair("remove"), 3)], high, 6) < 1e-2
