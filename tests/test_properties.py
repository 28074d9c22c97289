"""What must hold for every mechanism, tried on random ones; examples are the same at every run."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import sympy as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symdp import compose, mechanisms
from symdp.errors import SymdpError
from symdp.model.mechanism import Mechanism
from symdp.questions.ledger import Ledger

x = sp.Symbol("x", real=True)

FEW = settings(
    derandomize=True, database=None, deadline=None, max_examples=4,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
LAWS = {
    "subsampled": mechanisms.gaussian(sigma="3/2").subsample("poisson", "1/100"),
    "gaussian": mechanisms.gaussian(sigma=5),
    "laplace": mechanisms.laplace(b=2),
    "gumbel": mechanisms.gumbel(b=3),
    "response": mechanisms.randomized_response(epsilon_0="1/2"),
    "geometric": mechanisms.discrete_laplace(b=2),
}
COUNTS = (50, 10**4)

names = st.sampled_from(sorted(LAWS))
counts = st.sampled_from(COUNTS)
directions = st.sampled_from(("remove", "add"))
deviations = st.floats(-3.0, 12.0)


def usual_epsilon(composition, direction, deviation):
    """Return the ε some standard deviations from the mean of the loss, inside its range."""
    law = composition.law(direction)
    mean, variance = (float(value) for value in law.cumulants(0.0, 2))
    bottom, top = law.loss_bounds
    epsilon = mean + deviation * math.sqrt(variance)
    if epsilon >= top:
        epsilon = mean + 0.9 * (top - mean)
    return mean - 0.9 * (mean - bottom) if epsilon <= bottom else epsilon


@FEW
@given(names, counts, directions, deviations, st.floats(0.01, 2.0))
def test_delta_falls_and_is_convex_in_exp_epsilon(name, count, direction, deviation, gap):
    composition = compose(LAWS[name], count)
    width = math.sqrt(float(composition.law(direction).cumulants(0.0, 2)[1]))
    first = usual_epsilon(composition, direction, deviation)
    at = [first, first + gap * width / 2, first + gap * width]
    low, middle, high = (composition.delta(e, direction=direction) for e in at)
    assert low.upper >= middle.lower
    assert middle.upper >= high.lower
    # e^ε may overflow where ε is large: what is convex in e^ε is so in e^{ε − ε₀}.
    if at[2] - first < 12:
        places = [math.expm1(e - first) for e in at]
        share = (places[2] - places[1]) / places[2]
        assert middle.lower <= share * low.upper + (1 - share) * high.upper


@FEW
@given(names, counts, directions, st.floats(0.0, 6.0), st.integers(1, 20))
def test_more_steps_never_lower_delta(name, count, direction, deviation, more):
    composition = compose(LAWS[name], count)
    epsilon = usual_epsilon(composition, direction, deviation)
    longer = compose(LAWS[name], count + more)
    shorter = composition.delta(epsilon, direction=direction)
    assert longer.delta(epsilon, direction=direction).upper >= shorter.lower


@FEW
@given(names, counts, deviations)
def test_both_directions_are_one_identity(name, count, deviation):
    """δ_{QP}(−ε) = 1 − e^{−ε}(1 − δ_{PQ}(ε)), from the definition by (−u)⁺ = u⁺ − u."""
    composition = compose(LAWS[name], count)
    epsilon = usual_epsilon(composition, "remove", deviation)
    if abs(epsilon) > 20:
        return
    forward = composition.delta(epsilon, direction="remove")
    backward = composition.delta(-epsilon, direction="add")
    ends = [1 - math.exp(-epsilon) * (1 - d) for d in (forward.lower, forward.upper)]
    rounding = 4e-16 * (1 + math.exp(-epsilon))
    assert backward.lower <= ends[1] + rounding
    assert backward.upper >= ends[0] - rounding


@pytest.mark.slow
@FEW
@given(names, directions, deviations, st.integers(30, 200), st.integers(1, 200))
def test_counts_of_equal_steps_add_up(name, direction, deviation, first, second):
    parts = compose([(LAWS[name], first), (LAWS[name], second)])
    whole = compose(LAWS[name], first + second)
    epsilon = usual_epsilon(whole, direction, deviation)
    split = parts.delta(epsilon, direction=direction).log_delta
    assert split == whole.delta(epsilon, direction=direction).log_delta


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_sampling_rate_near_one_changes_little(name, direction):
    """The two laws of a step move by 1 − q in all, so δ moves by less than n(1 + e^ε)(1 − q)."""
    count, rest = 20, 1e-9
    plain = compose(LAWS[name], count)
    epsilon = usual_epsilon(plain, direction, 1.0)
    sampled = compose(LAWS[name].subsample("poisson", str(1 - sp.Rational(1, 10**9))), count)
    change = abs(
        sampled.delta(epsilon, direction=direction).delta
        - plain.delta(epsilon, direction=direction).delta
    )
    assert change <= count * (1 + math.exp(epsilon)) * rest


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("places", [1, 4, 9])
def test_a_small_sampling_rate_scales_the_distance(name, direction, places):
    """δ(0) is the total variation distance, of which sampling leaves the share q."""
    rate = sp.Rational(1, 10**places)
    sampled = compose(LAWS[name].subsample("poisson", str(rate)), 1).delta(0.0, direction=direction)
    single = compose(LAWS[name], 1).delta(0.0, direction=direction)
    assert sampled.delta == pytest.approx(float(rate) * single.delta, rel=1e-12)


def random_mechanism(seed):
    """Return a density that nobody has seen: a mixture, or a log-density in polynomial pieces."""
    chance = random.Random(seed)
    kind = chance.choice(("mixture", "pieces", "pair"))

    def ratio(low, high):
        return sp.Rational(chance.randint(int(10 * low), int(10 * high)), 10)

    def normal(mean, sigma):
        return sp.exp(-((x - mean) ** 2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))

    if kind == "mixture":
        weight = sp.Rational(chance.randint(1, 9), 10)
        first, second = normal(0, ratio(0.5, 3)), normal(ratio(-2, 2), ratio(0.5, 3))
        return Mechanism.additive(weight * first + (1 - weight) * second, x, name=f"mixture {seed}")
    if kind == "pair":
        p, q = normal(ratio(-1, 1), ratio(0.8, 1.5)), normal(0, ratio(1.0, 2.0))
        return Mechanism.from_pair(p, q, x, name=f"pair {seed}")
    # exp(−a|x|) inside, joined continuously to exp(−b|x|) outside.
    inner, outer, edge = ratio(0.2, 2), ratio(0.5, 3), ratio(0.3, 2)
    shape = sp.Piecewise(
        (sp.exp(-inner * sp.Abs(x)), sp.Abs(x) < edge),
        (sp.exp(-inner * edge - outer * (sp.Abs(x) - edge)), True),
    )
    mass = 2 * ((1 - sp.exp(-inner * edge)) / inner + sp.exp(-inner * edge) / outer)
    return Mechanism.additive(shape / mass, x, name=f"pieces {seed}")


def try_one(seed):
    """Ask a random mechanism a few questions; return how many it answered."""
    chance = random.Random(-seed - 1)
    mechanism = random_mechanism(seed)
    if chance.random() < 0.4:
        mechanism = mechanism.subsample("poisson", chance.choice(("1/3", "1/50")))
    answered, words = 0, []
    for count in (1, chance.choice((2, 40, 3000))):
        composition = compose(mechanism, count)
        direction = chance.choice(("remove", "add"))
        epsilon = usual_epsilon(composition, direction, chance.uniform(-2, 6))
        before = math.inf
        for move in (0.0, 0.3):
            try:
                answer = composition.delta(epsilon + move, direction=direction)
            except SymdpError as error:
                words.append(str(error))
                continue
            assert 0.0 <= answer.lower <= answer.delta <= answer.upper <= 1.0
            assert answer.lower <= before
            assert np.isfinite(answer.log_delta) or answer.delta == 0.0
            before, answered = answer.upper, answered + 1
    assert not any("\n" in line for line in words)
    return answered


@pytest.mark.quick_cases("0")
@pytest.mark.parametrize("seed", range(2))
def test_random_densities_give_numbers_or_one_line(seed):
    assert try_one(seed) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 17))
def test_more_random_densities(seed):
    assert try_one(seed) >= 3


@pytest.mark.slow
def test_a_ledger_of_a_million_steps_stays_small_and_right():
    """A million steps, ten kinds of them in any order, with an ε every hundred thousand."""
    chance = random.Random(0)
    kinds = [
        mechanisms.gaussian(sigma=sp.Rational(10 + k, 10)).subsample("poisson", "1/1000")
        for k in range(10)
    ]
    ledger, totals, last = Ledger(), [0] * len(kinds), 0.0
    for step in range(1, 10**6 + 1):
        index = chance.randrange(len(kinds))
        ledger.add(kinds[index])
        totals[index] += 1
        if step % 10**5 == 0:
            now = ledger.epsilon(1e-6).epsilon
            assert now > last
            last = now
    assert len(ledger) == len(kinds)
    assert ledger.n == 10**6
    whole = compose(list(zip(kinds, totals, strict=True)))
    assert whole.epsilon(1e-6).epsilon == pytest.approx(last, rel=1e-12)
