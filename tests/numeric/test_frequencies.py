"""Atoms off any lattice, whose |φ| recurs at high frequencies: sampled integer noise above all."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import sympy as sp
from certified_values import assert_certified, epsilon_at

from symdp import compose, mechanisms
from symdp.model.mechanism import Mechanism
from symdp.numeric.cut_off import mesh_line
from symdp.numeric.total import find_lattice
from symdp.prove.enclosure import enclose_delta

HALF = mechanisms.discrete_gaussian(sigma=2).subsample("poisson", "1/2")
RARE = mechanisms.discrete_gaussian(sigma=2).subsample("poisson", "1/100")
RESPONSES = [
    (mechanisms.randomized_response(epsilon_0="1/2"), 3),
    (mechanisms.randomized_response(epsilon_0="1/3"), 4),
]


QUESTIONS = {
    "between two recurrences": ([(HALF, 5)], 4.0, "remove"),
    "six": ([(HALF, 6)], 2.0, "remove"),
    "in the head": ([(HALF, 6)], -1.0, "add"),
    "rare": ([(RARE, 4)], 2.0, "remove"),
    "two kinds": ([(HALF, 2), (RARE, 2)], 1.0, "remove"),
    "responses": (RESPONSES, 1.0, "remove"),
}


@pytest.mark.quick_cases("responses")
@pytest.mark.parametrize("name", QUESTIONS)
def test_few_steps_agree_with_proofs(name):
    steps, deviations, direction = QUESTIONS[name]
    epsilon = epsilon_at(steps, deviations, direction)
    assert_certified(steps, epsilon, direction, accuracy=1e-7, width=1e-6)


@pytest.mark.slow
def test_losses_far_out_do_not_round_those_about_zero():
    k = sp.Symbol("k", integer=True, nonnegative=True)
    masses = [(1 - r) * r**k for r in (sp.Rational(7, 10), sp.Rational(1, 3))]
    geometric = Mechanism.from_pair(*masses, k, support="naturals", name="geometric")
    steps = [(geometric.subsample("poisson", "1/100"), 3)]
    epsilon = 0.14333290521473654
    found = compose(steps).delta(epsilon, direction="remove")
    ball = enclose_delta([(m.pair("remove"), n) for m, n in steps], epsilon, 15)
    assert found.log_upper - found.log_lower < 2e-6
    assert found.log_lower < float(ball.log()) < found.log_upper


def test_the_proof_and_the_answer_are_the_sum_over_all_tuples():
    """Both against every tuple of losses."""
    mechanism = mechanisms.discrete_laplace(b="1/2").subsample("poisson", "1/3")
    epsilon, q = 0.7, 1 / 3
    reach = range(-25, 26)
    p = np.asarray([math.exp(-abs(2 * (k - 1))) for k in reach])
    base = np.asarray([math.exp(-abs(2 * k)) for k in reach])
    p, base = p / p.sum(), base / base.sum()
    mixed = (1 - q) * base + q * p
    loss = np.log(mixed / base)
    total = 0.0
    for chosen in itertools.product(range(len(loss)), repeat=3):
        gap = epsilon - sum(loss[list(chosen)])
        if gap < 0:
            total += math.prod(mixed[list(chosen)]) * -math.expm1(gap)
    ball = enclose_delta([(mechanism.pair("remove"), 3)], epsilon, 12)
    assert float(ball.mid()) == pytest.approx(total, rel=1e-11)
    assert compose(mechanism, 3).delta(epsilon, direction="remove").delta == pytest.approx(
        total, rel=1e-11
    )


@pytest.mark.slow_cases("mechanism0-1000-2.0")
@pytest.mark.slow_cases("mechanism1-10000-4.0")
@pytest.mark.parametrize(
    ("mechanism", "count", "deviations"), [(RARE, 1000, 2.0), (RARE, 10**4, 4.0)]
)
def test_endless_recurrences_have_narrow_bounds(mechanism, count, deviations):
    steps = [(mechanism, count)]
    epsilon = epsilon_at(steps, deviations, "remove")
    assert_certified(steps, epsilon, "remove", accuracy=1e-8, width=5e-8)


@pytest.mark.slow_cases("100", "100000000")
@pytest.mark.parametrize("count", [100, 10**6, 10**8])
def test_rare_recurrences_leave_narrow_bounds(count):
    composition = compose(RARE, count)
    mean, variance = (float(v) for v in composition.law("remove").cumulants(0.0, 2))
    for deviations in (0.5, 2.0, 3.0):
        found = composition.delta(mean + deviations * math.sqrt(variance), direction="remove")
        assert found.log_upper - found.log_lower < 1e-6


FEW_LARGE = {"ten": (RARE, 10, 8.0), "thirty": (RARE, 30, 8.0), "a hundred": (RARE, 100, 3.0)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["ten", pytest.param("thirty", marks=pytest.mark.slow), "a hundred"]
)
def test_a_rare_large_loss_on_single_values(name):
    """Kept lines and a line of its own agree within narrow bounds where tilts cost the most."""
    step, count, deviations = FEW_LARGE[name]
    epsilon = epsilon_at([(step, count)], deviations, "remove")
    composition = compose(step, count)
    answer = composition.delta(epsilon, direction="remove")
    assert answer.log_upper - answer.log_lower < 1e-5
    law = compose(step, count).law("remove")
    found = mesh_line(law, epsilon, 25.0, 0.0).value(epsilon)
    width = found.relative_error + answer.log_upper - answer.log_lower
    assert abs(found.log_value - answer.log_delta) < width
    assert found.relative_error < 1e-2


def test_what_lies_on_a_lattice_is_found_to():
    for mechanism in (
        mechanisms.discrete_laplace(b=2),
        mechanisms.randomized_response(epsilon_0=1),
    ):
        assert find_lattice(compose(mechanism, 5).law("remove")) is not None


def test_sums_wider_than_a_mesh_reaches_are_bounded_rather_than_guessed():
    law = compose(RARE, 10**13)
    answer = law.delta(law.law("remove").mean, direction="remove")
    assert (answer.kind, answer.lower, answer.route) == ("bound", 0.0, "prv")
    assert answer.upper > 0.4  # about half of the losses exceed their mean
    assert "tilted-prv" in answer.advice


def test_a_million_million_steps_agree_with_a_berry_esseen_interval():
    law = compose(RARE, 10**12)
    total = law.law("remove")
    epsilon = total.mean + 2.0 * float(total.cumulants(0.0, 2)[1]) ** 0.5
    found = law.delta(epsilon, direction="remove")
    proved = law.delta(epsilon, "spa-bounds", "remove")
    assert found.route == "mesh"
    assert proved.log_lower <= found.log_lower < found.log_upper <= proved.log_upper
    assert found.log_upper - found.log_lower < 1e-6
