"""Discrete losses off any lattice along the line, against all their sums and the contour."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
import sympy as sp
from catalogue import ALL
from flint import arb, ctx

from symdp import compose, mechanisms
from symdp.certify import enclose_delta, enclosure, scattered
from symdp.certify.mollifier import Mollifier
from symdp.certify.step import tilted_step
from symdp.errors import AccuracyError

RESPONSE = ALL["randomised response of 4"].mechanism("response")(e=5)
CELLS = ALL["staircase, cells"].mechanism("cells")(e=2)


def without_sums(monkeypatch):
    def refuse(*_):
        raise AccuracyError("too many sums")

    monkeypatch.setattr(enclosure, "enumerate_sums", refuse)


@pytest.mark.parametrize("epsilon", [-0.5, 0.4, 2.5])
@pytest.mark.parametrize(
    ("mechanism", "rate", "count"),
    [(RESPONSE, "1/100", 2000), (CELLS, "1/20", 300), (CELLS, "1/100", 2000)],
)
def test_the_line_agrees_with_every_sum(monkeypatch, mechanism, rate, count, epsilon):
    steps = [(mechanism.subsample("poisson", rate).pair("remove"), count)]
    exact = enclose_delta(steps, epsilon, 15)
    without_sums(monkeypatch)
    found = enclose_delta(steps, epsilon, 4)
    assert found.overlaps(exact)
    assert exact.rad() < found.rad() < found * 1e-4


def test_steps_of_two_kinds_agree_with_every_sum(monkeypatch):
    steps = [
        (RESPONSE.subsample("poisson", "1/100").pair("remove"), 301),
        (CELLS.subsample("poisson", "1/20").pair("add"), 40),
    ]
    exact = enclose_delta(steps, 0.3, 15)
    without_sums(monkeypatch)
    assert enclose_delta(steps, 0.3, 4).overlaps(exact)


@pytest.mark.parametrize(
    ("count", "digits"),
    [pytest.param(100, 6, marks=pytest.mark.slow), (10_000, 8), (10**9, 15), (10**12, 15)],
)
def test_many_steps_of_integers_are_proved(count, digits):
    steps = compose(mechanisms.discrete_gaussian(sigma=3).subsample("poisson", "1/100"), count)
    law = steps.law("remove")
    epsilon = law.mean + math.sqrt(float(law.cumulants(0.0, 2)[1]))
    proved = steps.certify(epsilon, digits=digits, direction="remove")
    found = steps.delta(epsilon, direction="remove")
    assert proved.log_upper - proved.log_lower < 10**-digits
    assert found.log_lower <= proved.log_upper
    assert proved.log_lower <= found.log_upper


def cut_early(monkeypatch):
    """Return δ where the line is cut off far before its digits ask for it, and the truth."""
    steps = [(CELLS.subsample("poisson", "1/20").pair("remove"), 300)]
    exact = enclose_delta(steps, 0.4, 20)
    without_sums(monkeypatch)
    enough = scattered.enough
    monkeypatch.setattr(scattered, "enough", lambda *known: enough(*known) / 300)
    with ctx.workprec(200):
        return enclosure._finite(steps, Fraction(0.4), arb(0.4), 9.0), exact


def test_what_an_early_cut_off_changes_is_bounded(monkeypatch):
    found, exact = cut_early(monkeypatch)
    assert found.overlaps(exact)
    assert 1e-9 * exact < found.rad() < 1e-3 * exact


def test_without_the_bound_of_the_cut_off_the_truth_is_lost(monkeypatch):
    monkeypatch.setattr(Mollifier, "bound", lambda *_: arb(0))
    found, exact = cut_early(monkeypatch)
    assert not found.overlaps(exact)


def test_a_bound_between_places_holds_between_them():
    pair = mechanisms.discrete_gaussian(sigma=2).subsample("poisson", "1/5").pair("remove")
    step = tilted_step(pair, sp.Integer(3))
    with ctx.workprec(100):
        nodes = scattered._likely(step.nodes(1e7, 0.0, 64), scattered._RARE)
        whole = step.nodes(1e7, 0.0, 64)
        assert len(nodes.losses) < len(whole.losses)
        draw = random.Random(3)
        for _ in range(50):
            left, length = draw.uniform(1, 1e6), draw.uniform(0.1, 4)
            ends = [abs(nodes.at(arb(y))).upper() for y in (left, left + length)]
            bound = max(ends) + arb(length) ** 2 / 8 * nodes.spread[1] + nodes.error
            for share in (0.2, 0.5, 0.7):
                assert abs(whole.at(arb(left + share * length))) <= bound


def test_too_many_digits_are_refused_with_how_many_fewer():
    steps = compose(mechanisms.discrete_gaussian(sigma=3).subsample("poisson", "1/100"), 100)
    with pytest.raises(AccuracyError, match=r"ask for \d digits fewer"):
        steps.certify(0.05, digits=15, direction="remove")
