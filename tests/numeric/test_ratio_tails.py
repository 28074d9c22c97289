"""Bounds on tails of sums of likelihood ratios, against sums over every outcome."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from symdp import compose, mechanisms
from symdp.methods.route import Contour
from symdp.numeric.laws import allocation_density
from symdp.numeric.laws.allocation_density import Ratios, log_tail

RATIO = np.asarray([0.2, 0.9, 1.5, 11.0])
LOG_Q = np.log(np.asarray([0.3, 0.5, 0.18, 0.02]))


@pytest.mark.parametrize("with_record", [False, True])
@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("place", [0.7, 1.3, 3.0, 6.5, 14.0, 23.0])
def test_the_tail_of_four_steps_is_bounded(place, side, with_record):
    exact = 0.0
    for chosen in itertools.product(range(4), repeat=4):
        total = sum(RATIO[i] for i in chosen)
        if side * (total - place) > 0:
            first = RATIO[chosen[0]] if with_record else 1.0
            exact += first * math.exp(sum(LOG_Q[i] for i in chosen))
    bound = log_tail(Ratios(RATIO, LOG_Q), 4, place, side, with_record=with_record)
    assert bound <= 0.0
    if exact > 0:
        assert bound >= math.log(exact) - 1e-12
    if 0 < exact < 0.01:
        assert bound < math.log(exact) + 5.0


def test_what_is_not_resolved_widens_the_interval_and_says_so(monkeypatch):
    law = compose(mechanisms.gaussian(sigma=2), 10).law("remove")
    known = Contour().log_delta(law, 3.0)
    one = compose(mechanisms.gaussian(sigma=2), 10).law("remove")
    mass = 1e-6
    monkeypatch.setattr(one.parts[0][0], "uncertain_mass", 0.1 * mass)
    answer = Contour().log_delta(one, 3.0)
    assert answer.kind == "bound"
    assert answer.log_upper == known.log_upper
    gap = math.exp(known.log_lower) - math.exp(answer.log_lower)
    assert gap == pytest.approx(mass, rel=1e-6)
    assert "not resolved" in answer.advice


@pytest.mark.slow
def test_a_table_that_ends_early_widens_the_interval_and_says_so(monkeypatch):
    exact = drawn("2").delta(0.6, direction="remove")
    # A table that ends early; another way to write σ makes a law of its own.
    monkeypatch.setattr(allocation_density, "FLOOR", 22.0)
    early = drawn("2000000001/1000000000")
    answer = early.delta(0.6, direction="remove")
    mass = early.law("remove").uncertain_mass
    assert 1e-13 < mass < 1e-8
    assert answer.upper - answer.lower >= mass
    assert answer.lower < exact.delta * (1.0 + 1e-7)
    assert answer.upper > exact.delta * (1.0 - 1e-7)


def drawn(sigma):
    return compose(mechanisms.gaussian(sigma=sigma).subsample("random_allocation", steps=100), 10)
