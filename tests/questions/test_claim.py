"""A stated (ε, δ) is proved or refuted, and what refutes it is an attack that exists."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import mpmath
import pytest
from refusals import refused

import symdp
from symdp import compose, mechanisms
from symdp.questions.claim import check_claim, read_claim

VECTOR = """
name = "vector"
variable = "r"
support = [0, "oo"]
[noise]
density = "exp(-(r/2)**1.5)"
sensitivity = 1
norm = "l2"
dimension = 3
"""
ONE_SIDED = """
name = "one_sided"
variable = "x"
support = [0, "oo"]
[noise]
density = "exp(-x/2)/2"
sensitivity = 1
"""


def gaussian_delta(mu, epsilon):
    """δ of μ-GDP in closed form [Balle, Wang 2018]."""
    with mpmath.workdps(40):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        last = mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)
        return mpmath.ncdf(-epsilon / mu + mu / 2) - last


def gaussian_miss(mu, alpha):
    """The least miss rate at a false alarm rate of μ-GDP, Φ(Φ⁻¹(1 − α) − μ)."""
    with mpmath.workdps(40):
        quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(alpha))
        return mpmath.ncdf(quantile - mu)


@pytest.mark.parametrize(
    "text",
    [
        "ε = 1/3 at δ = 1e-5", "eps=1/3, delta=1e-5", "epsilon 1/3 delta 1e-5", "(1/3, 1e-5)-DP",
        "(ε, δ) = (1/3, 1e-5)", "δ ≤ 10^{-5} and ε ≤ 1/3", "EPSILON: 1 / 3; DELTA: 0.1 x 10**-4.",
    ],
)  # fmt: skip
def test_one_claim_in_many_spellings(text):
    assert read_claim(text) == (Fraction(1, 3), Fraction(1, 100_000))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no claim"),
        ("eps=1", "is no claim"),
        ("rho = 1 at delta = 1e-5", "is no claim"),
        ("eps=1, eps=2, delta=1e-5", "is no claim"),
        ("eps=1, delta=1e-5 on Sundays", "is no claim"),
        ("eps=inf, delta=1e-5", "not a finite number"),
        ("eps=1e400, delta=1e-5", "beyond the range"),
        ("eps=-1, delta=1e-5", "0 or more"),
        ("eps=1, delta=1", "below 1"),
        ("eps=1, delta=-1e-5", "from 0"),
        ("eps=1/0, delta=1e-5", "divides by zero"),
        ("eps=one, delta=1e-5", "is not a number"),
    ],
)
def test_what_is_no_claim_is_one_line(shell, text, said):
    ran = shell("check-claim", text, "gaussian", "sigma=2")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_numbers_that_are_none_are_refused():
    steps = compose(mechanisms.laplace(b=1))
    for wrong in (None, "x", float("nan"), [1]):
        with refused("epsilon"):
            steps.check_claim(wrong, 0)
    with refused("'up'"):
        steps.check_claim(1, 0, "up")


@pytest.mark.quick_cases("1-1-1/3")
@pytest.mark.parametrize(("sigma", "count", "epsilon"), [(2, 30, 10), (1, 1, "1/3"), (7, 1, 1)])
def test_claims_next_to_the_truth(sigma, count, epsilon):
    """At digits on which doubles could not decide."""
    with mpmath.workdps(40):
        mu = mpmath.sqrt(count) / sigma
        truth = gaussian_delta(
            mu, mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator
        )
        near = [mpmath.nstr(truth * (1 + side * mpmath.mpf("1e-20")), 30) for side in (-1, 1)]
    steps = compose(mechanisms.gaussian(sigma=sigma), count)
    below, above = (steps.check_claim(epsilon, one) for one in near)
    assert (below.verdict, above.verdict) == ("refuted", "proved")
    assert below.is_proved
    assert not above.is_loose


@pytest.mark.quick_cases("computed")
@pytest.mark.parametrize("method", ["proved", "computed"])
def test_the_attack_exists_and_the_claim_forbids_it(method, monkeypatch):
    if method == "computed":
        monkeypatch.setattr("symdp.questions.claim._PROVED_DIGITS", ())
    mu = 2.0
    for epsilon, delta in ((1, 1e-5), (4, 1e-3), (5, 0.02), (0, 0)):
        found = compose(mechanisms.gaussian(sigma=1), 4).check_claim(epsilon, delta)
        assert found.verdict == "refuted"
        assert found.is_proved is (method == "proved")
        alpha, power = found.attack.false_positive_rate, found.attack.true_positive_rate
        least = gaussian_miss(mu, mpmath.mpf(alpha.numerator) / alpha.denominator)
        assert 1 - power >= Fraction(mpmath.nstr(least, 30))
        assert power > found.attack.allowed
        assert float(found.attack.allowed) >= delta + math.exp(epsilon) * float(alpha)
        # The attack is next to the best one at its rate, which the line at ε touches.
        gain = float(power - found.attack.allowed)
        assert gain == pytest.approx(float(gaussian_delta(mu, epsilon)) - delta, rel=0.05)


@pytest.mark.slow
def test_a_pure_claim_at_its_boundary():
    steps = compose(mechanisms.laplace(b=3), 10)
    assert steps.check_claim("10/3", 0).verdict == "proved"
    assert steps.check_claim("3.3333", 0).verdict == "refuted"
    loose = steps.check_claim(10, 0)
    assert (loose.verdict, loose.is_loose, loose.would_do) == ("proved", True, Fraction("3.34"))
    assert compose(mechanisms.gaussian(sigma=2)).check_claim(4, 0).verdict == "refuted"


def test_a_loose_claim_says_what_would_do():
    """ε(1e-5) = 14.8299 of μ = √30/2: the root of the closed form."""
    found = compose(mechanisms.gaussian(sigma=2), 30).check_claim(17, "1e-5")
    with mpmath.workdps(30):
        mu = mpmath.sqrt(30) / 2
        least = mpmath.findroot(lambda e: mpmath.log(gaussian_delta(mu, e) * 10**5), (14, 16))
    assert found.is_loose
    assert least <= float(found.would_do) < least + 0.1


def masses(draw):
    """Two laws on four points, each a ratio of small integers, one of them perhaps 0."""
    while True:
        law = [draw.randrange(0, 9) for _ in range(4)]
        if sum(map(bool, law)) >= 2:
            return [Fraction(one, sum(law)) for one in law]


@pytest.mark.quick_cases("10", "6")
@pytest.mark.parametrize("seed", range(12))
def test_no_wrong_verdict_about_lists(seed):
    """δ(ε) = Σ (P − e^ε Q)⁺ over all pairs of outcomes, both directions, to 40 digits."""
    draw = random.Random(seed)
    laws = masses(draw), masses(draw)
    text = (
        f'name = "list"\nsupport = {{ points = [0, 1, 2, 3] }}\n[pair]\n'
        f"P = {[str(one) for one in laws[0]]}\nQ = {[str(one) for one in laws[1]]}\n"
    )
    epsilon = Fraction(draw.randrange(0, 9), 4)

    def delta(first, second):
        with mpmath.workdps(40):
            y = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
            outcomes = itertools.product(range(4), repeat=2)
            gains = ((first[i] * first[j], second[i] * second[j]) for i, j in outcomes)
            exact = [
                mpmath.mpf(p.numerator) / p.denominator - y * q.numerator / q.denominator
                for p, q in gains
            ]
            return mpmath.fsum(one for one in exact if one > 0)

    truth = max(delta(*laws), delta(*laws[::-1]))
    steps = compose(symdp.Mechanism.from_toml(text), 2)
    for factor in ("0.999999", "1.000001"):
        claimed = Fraction(mpmath.nstr(truth * mpmath.mpf(factor), 30))
        if claimed < 1:
            found = check_claim(steps, epsilon, claimed)
            right = (
                ("proved", "exact") if claimed >= Fraction(mpmath.nstr(truth, 35)) else ("refuted",)
            )
            assert found.verdict in right, (text, epsilon, claimed)


@pytest.mark.slow
def test_what_only_dominates_refutes_nothing():
    batches = mechanisms.gaussian(sigma=1).subsample("without_replacement", "1/100")
    found = compose(batches, 100).check_claim("0.5", "1e-5")
    assert (found.verdict, found.attack) == ("open", None)
    assert not found.holds


@pytest.mark.slow
def test_what_has_no_proof_is_told_by_the_exact_formula():
    vector = compose(symdp.Mechanism.from_toml(VECTOR))
    assert vector.check_claim(2, "1e-1").verdict == "exact"
    found = vector.check_claim(1, "1e-3")
    assert (found.verdict, found.is_proved) == ("refuted", False)
    assert found.attack.true_positive_rate > found.attack.allowed


def test_a_step_known_by_a_curve_is_a_bound(shell):
    known = shell("check-claim", "eps=3, delta=1e-5", "zcdp", "rho=0.1")
    assert known.code == 0
    assert known.out.startswith("true, by an upper bound, but loose: ε = 1.92 would do")
    assert shell("check-claim", "eps=3, delta=1e-12", "zcdp", "rho=0.1").out.startswith("open")


def test_an_output_that_only_one_law_has_is_the_attack():
    """Exponential noise, shift 1: mass 1 − e^{−1/2} where the other law has none."""
    found = compose(symdp.Mechanism.from_toml(ONE_SIDED)).check_claim(5, "0.39")
    assert found.verdict == "refuted"
    assert float(found.attack.false_positive_rate) < 1e-6
    assert float(found.attack.true_positive_rate) <= 1 - math.exp(-0.5)


def test_equal_to_all_digits_is_open():
    """δ(0) = 1/2 of a biased coin: an enclosure never decides equality."""
    laws = 'P = ["3/4", "1/4"]\nQ = ["1/4", "3/4"]\n'
    coin = symdp.Mechanism.from_toml(
        f'name = "coin"\nsupport = {{ points = [0, 1] }}\n[pair]\n{laws}'
    )
    assert compose(coin).check_claim(0, "1/2").verdict == "open"


def test_on_the_command_line(shell):
    job = ("gaussian", "sigma=2", "-n", "30")
    true = shell("check-claim", "eps=17, delta=1e-5", *job)
    assert true.code == 0
    assert true.out.startswith("proved, but loose: ε = 14.9 would do\n")
    wrong = shell("check-claim", "eps=14, delta=1e-5", *job)
    assert wrong.code == 1
    assert wrong.out.startswith("refuted\n")
    assert "an attack has false positive rate" in wrong.out
    told = shell("check-claim", "eps=14.9, delta=1e-5", *job, "--json").json
    assert (told["verdict"], told["proved"], told["loose"], told["attack"]) == (
        "proved",
        True,
        False,
        None,
    )
    assert told["claim"] == {"epsilon": "149/10", "delta": "1/100000"}
    assert float(told["lower"]) <= told["delta"] <= float(told["upper"])
