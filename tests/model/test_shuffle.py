"""Shuffled answers, against the laws of all outcomes written out."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import sympy as sp
from refusals import refused

from symdp import Mechanism, compose


def clones(people, size, rate):
    """Both laws of (A + D, C − A + 1 − D), from the definition."""
    lie = 1 / (1 + math.exp(size))
    P, Q = Counter(), Counter()
    for c, a in itertools.product(range(people), repeat=2):
        if a > c:
            continue
        chance = math.comb(people - 1, c) * rate**c * (1 - rate) ** (people - 1 - c)
        chance *= math.comb(c, a) / 2**c
        for d, p, q in ((1, 1 - lie, lie), (0, lie, 1 - lie)):
            P[a + d, c - a + 1 - d] += chance * p
            Q[a + d, c - a + 1 - d] += chance * q
    return P, Q


def hockey_stick(P, Q, epsilon):
    return math.fsum(max(P[k] - math.exp(epsilon) * Q[k], 0.0) for k in P)


def shuffled(laws):
    """The law of how often each message comes, from the laws of independent messages."""
    found = Counter({(0,) * len(laws[0]): 1.0})
    for law in laws:
        grown = Counter()
        for counts, chance in found.items():
            for message, p in enumerate(law):
                one = (*counts[:message], counts[message] + 1, *counts[message + 1 :])
                grown[one] += chance * p
        found = grown
    return found


@pytest.mark.quick_cases("1-2", "2-30")
@pytest.mark.parametrize(("size", "people"), [(1, 2), (1, 30), (2, 30), (sp.log(3), 20)])
def test_the_profile_is_that_of_the_clones(size, people):
    steps = compose(Mechanism.from_shuffled(size, people))
    laws = clones(people, float(size), math.exp(-float(size)))
    for share in (0.0, 0.1, 0.35, 0.7, 0.95):
        truth = hockey_stick(*laws, share * float(size))
        found = steps.delta(share * float(size)).delta
        assert truth * (1 - 1e-12) <= found <= truth * 1.002
        assert steps.delta(share * float(size), direction="add").delta == pytest.approx(found)
    assert steps.delta(float(size) * 1.0001).delta == 0.0


def test_rounds_of_a_crowd_compose():
    """Three rounds of 12 people, the product of all outcomes written out."""
    P, Q = clones(12, 1.0, math.exp(-1.0))
    keys = list(P)
    p, q = (np.array([law[k] for k in keys]) for law in (P, Q))
    joint = [np.multiply.outer(np.multiply.outer(v, v), v) for v in (p, q)]
    steps = compose(Mechanism.from_shuffled(1, 12), 3)
    for epsilon in (0.0, 0.5, 1.5):
        truth = np.maximum(joint[0] - math.exp(epsilon) * joint[1], 0.0).sum()
        assert truth * (1 - 1e-11) <= steps.delta(epsilon).delta <= truth * 1.01


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("people", [2, 5])
def test_no_randomizer_is_further_than_the_pair(people, epsilon):
    """Randomizers of four messages whose laws differ by the factor e at most, drawn at random."""
    rng = np.random.default_rng(people)
    allowed = compose(Mechanism.from_shuffled(1, people)).delta(epsilon).delta
    tried = [np.array([[math.e, 1, 0, 0], [1, math.e, 0, 0], [1, math.e, 0, 0]]) / (1 + math.e)]
    for _ in range(30):
        raw = np.exp(rng.choice([0.0, 1.0], (3, 4))) * rng.choice([0.1, 1.0], 4)
        tried.append(raw / raw.sum(axis=1, keepdims=True))
    worst = 0.0
    for laws in tried:
        used = laws[:, laws.min(axis=0) > 0]
        if np.abs(np.log(used[:, None] / used[None])).max() > 1 + 1e-12:
            continue
        others = [laws[2]] * (people - 1)
        P, Q = (shuffled([laws[own], *others]) for own in (0, 1))
        worst = max(worst, hockey_stick(P, Q, epsilon), hockey_stick(Q, P, epsilon))
    assert 0.05 * allowed < worst <= allowed * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.6])
def test_one_bit_has_more_clones(epsilon):
    """Randomized response of one bit, nine others who all hold a zero."""
    told = math.e / (1 + math.e)
    zero, one = (told, 1 - told), (1 - told, told)
    P, Q = shuffled([zero] * 10), shuffled([one, *[zero] * 9])
    truth = max(hockey_stick(P, Q, epsilon), hockey_stick(Q, P, epsilon))
    found = (
        compose(Mechanism.from_shuffled(1, 10, 2 / (1 + math.e) * (1 - 1e-15))).delta(epsilon).delta
    )
    assert truth <= found * (1 + 1e-12)
    assert found < compose(Mechanism.from_shuffled(1, 10)).delta(epsilon).delta


@pytest.mark.slow
def test_epsilon_falls_like_one_over_the_root_of_the_crowd():
    small, large = (
        compose(Mechanism.from_shuffled(2, n)).epsilon(1e-8).epsilon for n in (10**4, 10**6)
    )
    assert small / large == pytest.approx(10, rel=0.3)


def test_a_file_says_it():
    held = Mechanism.from_toml("name = 'survey'\n[shuffled]\nepsilon_0 = 1\npeople = 30\n")
    assert held.pair() == Mechanism.from_shuffled(1, 30).pair()


WRONG = [
    (lambda: Mechanism.from_shuffled(0, 10), "epsilon_0 must lie above 0 and up to 20, not 0"),
    (lambda: Mechanism.from_shuffled(21, 10), "up to 20"),
    (lambda: Mechanism.from_shuffled(math.nan, 10), "epsilon_0 must be a finite number"),
    (lambda: Mechanism.from_shuffled(1, 1), "people must be a whole number from 2"),
    (lambda: Mechanism.from_shuffled(1, 2.5), "people must be a whole number"),
    (lambda: Mechanism.from_shuffled(1, 10**9), "to 100000000"),
    (
        lambda: Mechanism.from_shuffled(1, 10, 0.6),
        "clones must lie above 0 and up to 2/(1 + e^ε₀) = 0.537883",
    ),
    (lambda: Mechanism.from_shuffled(1, 10, 0), "clones must lie above 0"),
    (
        lambda: Mechanism.from_toml("name = 'a'\n[shuffled]\npeople = 3"),
        "the key 'epsilon_0' is missing",
    ),
    (
        lambda: Mechanism.from_toml("name = 'a'\n[shuffled]\nepsilon_0 = 1\npeople = 'x'"),
        "a whole number",
    ),
    (
        lambda: Mechanism.from_toml("name = 'a'\n[shuffled]\nepsilon_0 = 1\nusers = 3"),
        "unknown key 'users'",
    ),
    (
        lambda: Mechanism.from_toml(
            "name = 'a'\n[parameters]\nb = 'positive'\n[shuffled]\nepsilon_0 = 1"
        ),
        "leave [parameters] out",
    ),
]


@pytest.mark.parametrize(("make", "words"), WRONG)
def test_refusals(make, words):
    with refused(words):
        make()
