"""The cheapest parameters: normal noise has a closed form, and a grid is the truth elsewhere."""

from __future__ import annotations

import math

import pytest
from shell import Shell

import symdp
from symdp import InputError, mechanisms
from symdp.questions.design.plan import plan


def normal_mu(epsilon, delta):
    def upper(x):
        return math.erfc(x / math.sqrt(2)) / 2

    low, high = 1e-6, 50.0
    for _ in range(200):
        mu = 0.5 * (low + high)
        gap = upper(epsilon / mu - mu / 2) - math.exp(epsilon) * upper(epsilon / mu + mu / 2)
        low, high = (mu, high) if gap < delta else (low, mu)
    return low


@pytest.mark.slow
def test_normal_noise_and_its_count():
    """σ = √n/μ, so that σ² + c/n = n/μ² + c/n is least at n = μ√c."""
    best = plan(
        mechanisms.gaussian, "sigma**2 + 90000/n", {"sigma": (1, 200), "n": (5, 4000)},
        epsilon=1, delta=1e-5,
    )  # fmt: skip
    mu = normal_mu(1, 1e-5)
    least = min(n / mu**2 + 90000 / n for n in range(5, 400))
    assert best.values["n"] == pytest.approx(mu * 300, rel=0.05)
    assert least * (1 - 1e-9) <= best.cost <= least * (1 + 1e-3)
    assert best.guarantee.upper <= 1e-5
    assert not best.at_ends


@pytest.mark.slow
def test_a_rate_against_a_grid():
    step = mechanisms.gaussian.subsample("poisson", "q")
    ranges = {"sigma": (1, 20), "q": (0.01, 0.2)}
    best = plan(step, "sigma/q + 800*q", ranges, epsilon=2, delta=1e-5, n=200)
    costs = []
    for k in range(20):
        q = 0.01 * 20 ** (k / 19)
        answer = symdp.calibrate(step(q=q), "sigma", 200, epsilon=2, delta=1e-5, digits=5)
        costs.append(float(answer.value) / q + 800 * q)
    assert best.cost <= min(costs) * (1 + 1e-6)
    assert best.cost >= min(costs) * 0.97


@pytest.mark.slow
def test_a_rate_at_its_end():
    step = mechanisms.gaussian.subsample("poisson", "q")
    ranges = {"sigma": (0.1, 30), "q": ("1/100", "1/10")}
    best = plan(step, "sigma", ranges, epsilon=1, delta=1e-5, n=20)
    assert best.values["q"] == pytest.approx(0.01, rel=1e-6)  # sampling less needs less noise
    assert best.at_ends == ("q",)


@pytest.mark.slow
def test_no_value_leaves_its_range():
    step = mechanisms.gaussian.subsample("poisson", "q")
    ranges = {"sigma": (1, 30), "q": ("1/100", "1/10")}
    best = plan(step, "sigma", ranges, epsilon=1, delta=1e-5, n=20)
    assert best.values["sigma"] == 1
    assert best.guarantee.upper <= 1e-5
    assert "sigma" in best.at_ends


@pytest.mark.slow_cases("sigma-ranges0-give wider ranges")
@pytest.mark.parametrize(
    ("cost", "ranges", "told"),
    [
        ("sigma", {"sigma": (1, 2)}, "give wider ranges"),
        ("tau", {"sigma": (1, 200)}, "unknown name"),
        ("sigma", {"tau": (1, 200)}, "nothing that is open"),
        ("sigma", {"sigma": (5, 2)}, "rising"),
        ("-sigma", {"sigma": (1, 200)}, "must be positive"),
        ("n", {"n": (1, 9)}, "sigma has neither"),
    ],
)
def test_what_is_no_plan_is_said(cost, ranges, told):
    count = None if "n" in ranges else 50
    with pytest.raises(InputError, match=told):
        plan(mechanisms.gaussian, cost, ranges, epsilon=1, delta=1e-5, n=count)


@pytest.mark.slow
def test_on_the_command_line(shell: Shell):
    line = "plan gaussian --minimize sigma --range sigma=1:200 -n 50 --epsilon 1 --delta 1e-5"
    told = shell(f"{line} --json").json
    alone = symdp.calibrate(mechanisms.gaussian, "sigma", 50, epsilon=1, delta=1e-5)
    assert told["values"]["sigma"] == float(alone.value)
    assert "a local optimum" in shell(line).out
    wrong = shell(line.replace("sigma=1:200", "sigma=1"))
    assert wrong.code == 2
    assert "NAME=A:B" in wrong.err
