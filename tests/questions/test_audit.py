"""Attack counts: exact binomial ends, and a claim that is refuted as often as the level says."""

from __future__ import annotations

import json
import math

import mpmath
import numpy as np
import pytest
from refusals import refused

from symdp import audit, compose, mechanisms
from symdp.cli import main


def tail(count, whole, rate):
    """Return Pr[Bin(whole, rate) ≥ count] term by term."""
    with mpmath.workdps(40):
        p = mpmath.mpf(rate)
        return sum(
            mpmath.binomial(whole, k) * p**k * (1 - p) ** (whole - k)
            for k in range(count, whole + 1)
        )


@pytest.mark.parametrize(("hits", "alarms"), [(90, 5), (100, 0), (60, 40), (1, 99)])
def test_the_ends_are_those_of_the_binomial(hits, alarms):
    found = audit(hits, alarms, 100, 100)
    assert tail(hits, 100, found.true_positive_rate) == pytest.approx(0.025, rel=1e-6)
    if alarms < 100:
        quiet = tail(100 - alarms, 100, 1 - found.false_positive_rate)
        assert quiet == pytest.approx(0.025, rel=1e-6)


def test_a_perfect_attack_of_few_records():
    """No false alarm of 100 leaves 1 − 0.025^(1/100), all hits as much of a miss rate."""
    found = audit(100, 0, 100, 100)
    rest = -math.expm1(math.log(0.025) / 100)
    assert found.epsilon == pytest.approx(math.log((1 - rest) / rest), rel=1e-7)
    assert audit(50, 50, 100, 100).epsilon == 0.0
    assert audit(100, 0, 100, 100, delta=0.1).epsilon < found.epsilon


@pytest.mark.slow
def test_a_true_claim_is_seldom_refuted():
    """The Gaussian of μ = 1 has its best attack at any threshold; 5 % at most may be unlucky."""
    rng, steps = np.random.default_rng(7), compose(mechanisms.gaussian(sigma=1), 1)
    epsilon = steps.epsilon(1e-2).epsilon
    refuted = above = 0
    for _ in range(60):
        hits = int((rng.normal(1, 1, 400) > 1.2).sum())
        alarms = int((rng.normal(0, 1, 400) > 1.2).sum())
        found = audit(hits, alarms, 400, 400, delta=1e-2)
        above += found.epsilon > epsilon
        allowed = 1 - steps.trade_off(found.false_positive_rate)
        refuted += found.true_positive_rate > allowed
    assert refuted <= 4
    assert above == 0


def test_a_wrong_claim_is_refuted():
    claim = compose(mechanisms.gaussian(sigma=5), 1)
    found = audit(200, 40, 400, 400, composition=claim)
    assert found.is_refuted
    assert found.p_value < 1e-6
    assert found.true_positive_rate > found.allowed
    fair = audit(66, 60, 400, 400, composition=claim)
    assert not fair.is_refuted
    assert fair.p_value > 0.05


def test_on_the_command_line(capsys):
    assert main(["audit", "--tp", "90", "--fp", "5", "--members", "100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["epsilon"] == audit(90, 5, 100, 100).epsilon
    words = ["audit", "gaussian", "sigma=5", "-n", "1", "--tp", "200/400", "--fp", "40/400"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("ε ≥ ")
    assert "refutes gaussian sigma=5 -n 1: p-value" in out
    assert main(["audit", "--tp", "90", "--fp", "5/100"]) == 2
    assert "out of how many?" in capsys.readouterr().err


def test_counts_that_are_none():
    with refused("from 0 to the number"):
        audit(101, 5, 100, 100)
    with refused("whole numbers"):
        audit(1.5, 5, 100, 100)
    with refused("confidence"):
        audit(1, 5, 100, 100, confidence=1)
