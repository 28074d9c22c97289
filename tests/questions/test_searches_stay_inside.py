"""Searches try values that are allowed, step over refused ones, and end with what is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from symdp import calibrate, mechanisms
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import limit
from symdp.model.mechanism import Mechanism
from symdp.questions import calibrate as room
from symdp.questions.noise import compare

X, B = sp.Symbol("x", real=True), sp.Symbol("b", positive=True)
LAPLACE = sp.exp(-sp.Abs(X) / B) / (2 * B)


def laplace(assume=None, word="positive"):
    return Mechanism.additive(LAPLACE, X, 1, name="laplace", parameters={"b": word}, assume=assume)


def scale_of(epsilon, delta):
    """The scale at which one step of Laplace noise has δ(ε): δ = 1 − e^{(ε − 1/b)/2}."""
    return 1 / (epsilon - 2 * math.log1p(-delta))


@pytest.mark.quick_cases("assume3")
@pytest.mark.parametrize(
    "assume",
    [{"b": "> 3/2"}, {"b": ">= 1.7"}, {"b": "> 1.55, < 1.8"}, {"b": "< 2"}, {"b": "> 1/10"}],
)
def test_the_answer_is_that_of_no_assumption_where_that_is_allowed(assume):
    epsilon, delta = 0.5, 0.03
    truth = scale_of(epsilon, delta)
    assert 1.7 < truth < 1.8
    visited = []
    found = calibrate(
        laplace(assume), "b", 1, epsilon=epsilon, delta=delta, digits=8,
        progress=lambda value, *_: visited.append(value),
    )  # fmt: skip
    assert 0 <= float(found.value) - truth <= float(found.step)
    low = {"> 3/2": 1.5, ">= 1.7": 1.7, "> 1.55, < 1.8": 1.55}.get(assume["b"], 0)
    assert all(value >= low for value in visited)


@pytest.mark.slow
def test_what_no_allowed_value_meets_is_told_without_another_to_give():
    with pytest.raises(InputError, match="every value that can be reached meets") as error:
        calibrate(laplace({"b": ">= 3"}), "b", 1, epsilon=0.5, delta=0.1)
    assert "breaks the assumption" not in str(error.value)
    with pytest.raises(InputError, match="no value that can be reached meets"):
        calibrate(laplace({"b": "< 1"}), "b", 1, epsilon=0.5, delta=0.1)


@pytest.mark.slow
def test_an_end_that_another_parameter_sets():
    a = sp.Symbol("a", positive=True)
    both = Mechanism.additive(
        sp.exp(-sp.Abs(X) / (B + a)) / (2 * (B + a)), X, 1, name="sum",
        parameters={"b": "positive", "a": "positive"}, assume={"b": "> a"},
    )  # fmt: skip
    epsilon, delta = 0.5, 0.03
    truth = scale_of(epsilon, delta)
    found = calibrate(both(b="3/2"), "a", 1, epsilon=epsilon, delta=delta, digits=6)
    assert 0 <= float(found.value) - (truth - 1.5) <= float(found.step)
    found = calibrate(both(a="1/7"), "b", 1, epsilon=epsilon, delta=delta, digits=6)
    assert 0 <= float(found.value) - (truth - 1 / 7) <= float(found.step)


@pytest.mark.quick_cases("natural-1")
@pytest.mark.parametrize(
    ("word", "least"), [("integer above 1", 2), ("positive integer", 1), ("natural", 1)]
)
def test_whole_parameters_start_in_their_domain(word, least):
    text = (
        'name = "m"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[parameters]\n'
        f'k = "{word}"\n[noise]\ndensity = "exp(-abs(x)/(k + 1))/(2*(k + 1))"\n'
    )
    for delta in (0.003, 0.1, 0.001):
        truth = scale_of(0.1, delta) - 1
        found = calibrate(Mechanism.from_toml(text), "k", 1, epsilon=0.1, delta=delta)
        assert found.value == max(math.ceil(truth), least)


def test_refused_values_are_stepped_over_and_told(monkeypatch):
    def holes(value):
        """Values without an answer, beside the root and far from it."""
        return 1.8 < float(value) < 2.0 or float(value) == 3.7

    truth = scale_of(0.5, 0.03)
    plain = room.Composition.delta

    def delta(self, *arguments, **options):
        ((step, _),) = self.given_steps()
        if holes(step.values["b"]):
            raise AccuracyError(f"nothing is known at {step.values['b']}")
        return plain(self, *arguments, **options)

    monkeypatch.setattr(room.Composition, "delta", delta)
    monkeypatch.setattr(room, "rounded_upper", lambda *_: ("", math.nan))
    found = calibrate(laplace(), "b", 1, epsilon=0.5, delta=0.03, digits=6)
    assert 0 <= float(found.value) - truth <= float(found.step)
    assert "stepped over 1.9, 3.7" in found.note
    assert "not narrowed" not in found.note


def test_a_hole_around_the_root_leaves_the_safe_end(monkeypatch):
    truth = scale_of(0.5, 0.03)
    plain = room.Composition.delta

    def delta(self, *arguments, **options):
        ((step, _),) = self.given_steps()
        if abs(float(step.values["b"]) - truth) < 0.01:
            raise AccuracyError("nothing is known there")
        return plain(self, *arguments, **options)

    monkeypatch.setattr(room.Composition, "delta", delta)
    monkeypatch.setattr(room, "rounded_upper", lambda *_: ("", math.nan))
    found = calibrate(laplace(), "b", 1, epsilon=0.5, delta=0.03, digits=6)
    assert found.guarantee.upper <= 0.03 < found.missed.upper
    assert float(found.neighbour) < truth < float(found.value) < 2
    assert "not narrowed further" in found.note
    assert "what lies between is refused" in found.note


def test_what_is_refused_at_every_value_is_the_callers(monkeypatch):
    def delta(self, *_, **__):
        raise InputError("the same everywhere")

    monkeypatch.setattr(room.Composition, "delta", delta)
    monkeypatch.setattr(room, "rounded_upper", lambda *_: ("", math.nan))
    with pytest.raises(InputError, match=r"^the same everywhere$"):
        calibrate(laplace(), "b", 1, epsilon=0.5, delta=0.03)


def test_time_leaves_the_best_that_is_known(monkeypatch):
    """An answer that takes a while: after four within the bracket the time is up."""
    from symdp.interrupt import charge

    plain = room.ValueSearch._log_upper

    def slow(self, value):
        if value not in self._known:
            charge(0.5)
        return plain(self, value)

    monkeypatch.setattr(room.ValueSearch, "_log_upper", slow)
    with limit(60.0, of_work=True) as outcome:
        charge(44.0)
        found = calibrate(mechanisms.gaussian, "sigma", 10, epsilon=1, delta=1e-5, digits=12)
    assert not outcome.late
    assert found.guarantee.upper <= 1e-5 < found.missed.upper


@pytest.mark.slow
def test_noises_are_compared_inside_their_assumptions():
    reasons = []
    at_most = laplace({"b": "< 2"})
    rows = compare([mechanisms.gaussian, at_most], 1, delta=1e-5, std=4, left_out=reasons.append)
    assert [row.mechanism.name for row in rows] == ["gaussian"]
    assert len(reasons) == 1
    assert "b < 2" in reasons[0]
    assert "2.82843 at b = 2" in reasons[0] or "2.82843 at b = 1.99" in reasons[0]
    with pytest.raises(InputError, match="no b, b < 2 was found"):
        compare([at_most], 1, delta=1e-5, std=4)
    (row,) = compare([laplace({"b": "> 5/2"})], 1, delta=1e-5, std=4)
    assert row.size.std == pytest.approx(4, rel=1e-11)
    (row,) = compare([laplace({"b": ">= 2"})], 1, delta=1e-5, std=np.sqrt(8.0))
    assert float(row.mechanism.values["b"]) == pytest.approx(2, rel=1e-11)


@pytest.mark.slow
def test_whole_parameters_of_noise_are_told_beside_each_other():
    text = (
        'name = "m"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[parameters]\n'
        'k = "integer above 1"\n[noise]\ndensity = "exp(-abs(x)/k)/(2*k)"\n'
    )
    with pytest.raises(InputError, match="between k = 7 and 8; give one of them"):
        compare([Mechanism.from_toml(text)], 1, delta=1e-5, mean_abs=7.5)
