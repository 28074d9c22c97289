"""Trade-offs where ε is in the hundreds and 1 − δ is all that there is to know.

Truths are Neyman–Pearson tests, written down from the densities: they share no code with symdp.
"""

import itertools
import math
import random

import mpmath
import numpy as np
import pytest

from symdp import Mechanism, calibrate, compose, mechanisms
from symdp.errors import AccuracyError
from symdp.methods.route import Contour
from symdp.numeric.answer import Answer
from symdp.numeric.saddle_point import log_one_minus_exp
from symdp.page.card import _attack
from symdp.questions.tradeoff import _Complement, bayes_error, trade_off

RATES = (1e-6, 0.5, 0.9)
# log(1 − δ) is rounded relatively to its size, some hundreds here, and near α = 1 two numbers that
# are 1/(1 − α) times and more as large as f cancel to it.
CLOSE = 1e-8


def normal(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def gaussian_miss(sigma, count, alpha):
    """Φ(Φ⁻¹(1 − α) − √n/σ)."""
    quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(alpha))
    return normal(quantile - mpmath.sqrt(count) / sigma)


def laplace_miss(scale, alpha):
    """The test x > t of Lap(0, b) against Lap(1, b), t from 0 to 1 and beyond, by cases."""
    alpha, shrink = mpmath.mpf(alpha), mpmath.exp(-1 / scale)
    if alpha >= 0.5:
        return shrink * (1 - alpha)
    return shrink / (4 * alpha) if alpha >= shrink / 2 else 1 - alpha / shrink


def listed_miss(pairs, alpha):
    """The most powerful test between two lists of masses, randomised at one loss."""
    spent, alpha = mpmath.mpf(0), mpmath.mpf(alpha)
    ordered = sorted(pairs, key=lambda pair: pair[1] / pair[0])
    for place, (p, q) in enumerate(ordered):
        if spent + q >= alpha:
            rest = mpmath.fsum(p for p, _ in ordered[place + 1 :])
            return rest + (1 - (alpha - spent) / q) * p
        spent += q
    return mpmath.mpf(0)


def response_pairs(epsilon, count):
    p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
    q = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
    return [
        (
            mpmath.binomial(count, k) * p**k * q ** (count - k),
            mpmath.binomial(count, k) * q**k * p ** (count - k),
        )
        for k in range(count + 1)
    ]


def discrete_gaussian_pairs(sigma, count):
    """All sums of one step's losses are (2k − n)/(2σ²): the sum of integers is sufficient."""
    reach = range(-40, 41)
    single = {k: mpmath.exp(-mpmath.mpf(k * k) / (2 * sigma * sigma)) for k in reach}
    total = mpmath.fsum(single.values())
    law = {0: mpmath.mpf(1)}
    for _ in range(count):
        grown: dict[int, mpmath.mpf] = {}
        for (a, v), (b, w) in itertools.product(law.items(), single.items()):
            if abs(a + b) < 40:
                grown[a + b] = grown.get(a + b, mpmath.mpf(0)) + v * w / total
        law = grown
    # Under P every integer is one higher.
    return [(law.get(k - count, mpmath.mpf(0)), v) for k, v in law.items() if k - count in law]


def holds(found, exact):
    """At most the truth, and next to it; what is below the double range may be 0."""
    exact = float(exact)
    assert found <= exact * (1.0 + 1e-15)
    assert found >= exact * (1.0 - CLOSE)


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(80):
        yield


@pytest.mark.quick_cases("1/4-100")
@pytest.mark.parametrize(("sigma", "count"), [("1/10", 1), ("1/20", 1), ("1/10", 5), ("1/4", 100)])
def test_gaussian(sigma, count):
    found = trade_off(compose(mechanisms.gaussian(sigma=sigma), count), RATES)
    for alpha, miss in zip(RATES, found, strict=True):
        holds(miss, gaussian_miss(mpmath.mpf(1) / int(sigma[2:]), count, alpha))


def test_the_miss_rate_that_was_printed_as_one():
    found = trade_off(compose(mechanisms.gaussian(sigma="1/10"), 1), 0.5)
    assert found == pytest.approx(7.619853024160527e-24, rel=1e-10)


@pytest.mark.quick_cases("1/100")
@pytest.mark.parametrize("scale", ["1/1000", "1/100", "1/2"])
def test_laplace(scale):
    found = trade_off(compose(mechanisms.laplace(b=scale), 1), RATES)
    for alpha, miss in zip(RATES, found, strict=True):
        holds(miss, laplace_miss(mpmath.mpf(1) / int(scale[2:]), alpha))


@pytest.mark.quick_cases("50-1")
@pytest.mark.parametrize(("epsilon", "count"), [(50, 1), (50, 5), (5, 100), (50, 100)])
def test_randomised_response(epsilon, count):
    found = trade_off(compose(mechanisms.randomized_response(epsilon_0=epsilon), count), RATES)
    for alpha, miss in zip(RATES, found, strict=True):
        holds(miss, listed_miss(response_pairs(epsilon, count), alpha))


@pytest.mark.quick_cases("1/4-3")
@pytest.mark.parametrize(("sigma", "count"), [("1/4", 1), ("1/4", 3)])
def test_discrete_gaussian(sigma, count):
    found = trade_off(compose(mechanisms.discrete_gaussian(sigma=sigma), count), RATES)
    pairs = discrete_gaussian_pairs(mpmath.mpf(1) / 4, count)
    for alpha, miss in zip(RATES, found, strict=True):
        holds(miss, listed_miss(pairs, alpha))


@pytest.mark.slow
@pytest.mark.parametrize(("direction", "alpha"), [("remove", 0.001), ("add", 0.001), ("add", 0.7)])
def test_a_sampled_gaussian_in_each_direction(direction, alpha):
    """N(0, σ²) against (1 − q) N(0, σ²) + q N(1, σ²), whose likelihood ratio rises in x."""
    sigma, q = mpmath.mpf(1) / 20, mpmath.mpf(1) / 2
    steps = compose(mechanisms.gaussian(sigma="1/20").subsample("poisson", "1/2"), 1)

    def above(x):
        return (1 - q) * normal(-x / sigma) + q * normal((1 - x) / sigma)

    def find(tail, level):
        low, high = mpmath.mpf(-2), mpmath.mpf(3)  # tails fall in x
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle) > level else (low, middle)
        return low

    if direction == "remove":  # the null hypothesis is Q: x > t
        exact = 1 - above(find(lambda x: normal(-x / sigma), alpha))
    else:  # it is the mixture: x < t
        exact = normal(-find(above, 1 - mpmath.mpf(alpha)) / sigma)
    holds(trade_off(steps, alpha, direction), exact)
    if direction == "add":  # the worst of both is never better for privacy
        assert trade_off(steps, alpha) <= exact * (1 + mpmath.mpf(10) ** -12)


@pytest.mark.slow_cases("student")
@pytest.mark.parametrize(
    "mechanism",
    [mechanisms.logistic(s="1/50"), mechanisms.student_t(nu=3, s="1/1000")],
    ids=["logistic", "student"],
)
def test_others_are_their_own_inverse(mechanism):
    """Of symmetric noise f(f(α)) = α; little of it is left of f, so that the inverse is steep."""
    steps = compose(mechanism, 1)
    miss = trade_off(steps, 0.3)
    assert 0.0 < miss < 1e-6
    assert trade_off(steps, miss) == pytest.approx(0.3, rel=1e-7)


def test_every_reader_says_the_same():
    steps = compose(mechanisms.gaussian(sigma="1/20"), 1)
    attack = _attack(steps)  # of a card
    assert [row["true_positive_rate"] for row in attack["trade_off"]] == [1.0, 1.0, 1.0]
    assert attack["advantage"] == steps.membership_advantage() == 1.0
    assert bayes_error(steps) == pytest.approx(float(normal(mpmath.mpf(-10))), rel=1e-10)


@pytest.mark.parametrize("prior", [1e-6, 0.3, 0.9])
def test_bayes_error_of_little_noise(prior):
    mu = mpmath.mpf(20)
    threshold = mu / 2 + mpmath.log((1 - mpmath.mpf(prior)) / prior) / mu
    exact = (1 - mpmath.mpf(prior)) * normal(-threshold) + prior * normal(threshold - mu)
    holds(bayes_error(compose(mechanisms.gaussian(sigma="1/20"), 1), prior), exact)


@pytest.mark.slow
def test_calibration_to_an_attack_that_nearly_always_hits():
    found = calibrate(mechanisms.gaussian, "sigma", 1, tpr=1 - 1e-9, fpr=0.01, digits=4)
    for value, allowed in ((found.value, True), (found.neighbour, False)):
        sigma = mpmath.mpf(int(value.p)) / int(value.q)
        assert (gaussian_miss(sigma, 1, 0.01) >= mpmath.mpf("1e-9")) is allowed


@pytest.mark.slow_cases("5", "6", "9", "10", "11", "15", "17")
@pytest.mark.parametrize("seed", range(18))
def test_every_trade_off_is_convex_falls_and_lies_below_guessing(seed):
    """Random noise of every built-in kind, little and much of it, in every direction."""
    draw = random.Random(seed)
    size = 10.0 ** draw.uniform(-1.7, 1.0)
    kinds = (
        lambda: mechanisms.gaussian(sigma=size),
        lambda: mechanisms.laplace(b=size),
        lambda: mechanisms.gumbel(b=max(size, 0.2)),
        lambda: mechanisms.randomized_response(epsilon_0=1 / size),
        lambda: mechanisms.discrete_laplace(b=size),
        lambda: mechanisms.gaussian(sigma=max(size, 0.5)).subsample("poisson", "1/10"),
    )
    mechanism = kinds[seed % len(kinds)]()
    slow = mechanism.name in ("laplace", "gumbel") or mechanism.sampling is not None
    steps = compose(mechanism, 1 if slow else draw.choice([1, 2, 10]))
    direction = draw.choice(["both", "remove", "add"])
    alpha = np.asarray([0.0, *sorted(draw.random() for _ in range(3)), 1.0])
    beta = trade_off(steps, alpha, direction)
    slack = 1e-12
    assert (beta >= 0.0).all()
    assert (beta <= 1.0 - alpha + slack).all()
    assert (np.diff(beta) <= slack).all()
    slopes = np.diff(beta) / np.diff(alpha)
    assert (np.diff(slopes) * np.minimum(*(np.diff(alpha)[k:][:3] for k in (0, 1))) >= -slack).all()


class _Wrong(Contour):
    """A profile whose 1 − δ is too large at some ε."""

    def __init__(self, change):
        super().__init__()
        object.__setattr__(self, "change", change)

    def log_delta(self, law, epsilon):
        answer = super().log_delta(law, epsilon)
        log_complement = min(answer.log_complement + self.change(epsilon), 0.0)
        log_delta = log_one_minus_exp(log_complement)
        return Answer(log_delta, log_delta, log_delta, "exact", log_complement=log_complement)


@pytest.mark.quick_cases("<lambda>0")
@pytest.mark.parametrize(
    "change",
    [
        lambda epsilon: 1.0 if epsilon < -60 else 0.0,  # above e^ε
        lambda epsilon: -3.0 if epsilon > 10.0 else 0.0,  # it falls
    ],
)
def test_what_is_no_profile_is_refused(change):
    steps = compose(mechanisms.gaussian(sigma="1/10"), 1)
    lines = _Complement(steps, "both")
    lines._accountant = _Wrong(change)
    with pytest.raises(AccuracyError, match="none of a privacy profile"):
        lines.miss_rates([1e-12, 1e-6, 0.5, 1 - 1e-9])


def test_values_that_are_not_concave_in_exp_epsilon_are_refused():
    lines = _Complement(compose(mechanisms.gaussian(sigma="1/10"), 1), "both")
    for epsilon, share in ((0.0, 0.5), (1.0, 0.6), (2.0, 0.9)):
        lines._known[epsilon] = math.log(share), math.log(share)
    # 0.5 + 0.4 (e − 1)/(e² − 1) = 0.6076 is the least that may stand in the middle.
    with pytest.raises(AccuracyError, match="epsilon = 1 "):
        lines._check()
    lines._known[1.0] = math.log(0.6077), math.log(0.6077)
    lines._check()


def test_a_line_that_cannot_be_computed_lowers_the_miss_rate_only():
    steps = compose(mechanisms.gaussian(sigma="1/2"), 1)
    lines = _Complement(steps, "both")

    class Gaps(Contour):
        def log_delta(self, law, epsilon):
            if -1.5 < epsilon < 0.5:
                raise AccuracyError("not here")
            return super().log_delta(law, epsilon)

    lines._accountant = Gaps()
    exact = float(gaussian_miss(mpmath.mpf(1) / 2, 1, 0.05))
    assert 0.0 <= lines.miss_rates([0.05])[0] <= exact
    assert math.isfinite(exact)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sensitivity", ["1e308", "1e20"])
def test_noise_that_vanishes_beside_its_sensitivity_is_refused_in_one_line(sensitivity):
    noise = Mechanism.from_toml(
        'name = "noise"\nvariable = "x"\nsupport = ["-oo", "oo"]\n'
        f'[noise]\ndensity = "exp(-abs(x))/2"\nsensitivity = "{sensitivity}"\n'
    )
    with pytest.raises(AccuracyError):
        compose(noise.subsample("poisson", "1/10"), 3).delta(1.0)
