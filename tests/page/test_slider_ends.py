"""Sliders end where the program of a page has answers."""

from __future__ import annotations

import symdp
from symdp import mechanisms
from symdp.page.panel import Panel, Trial, _data, least_count, narrowed, running

FIELD = {
    "name": "s", "domain": "positive", "low": 0.01, "high": 100.0, "log": True, "least": 0.0,
    "open": True,
}  # fmt: skip


def program(least_steps: int, low: float, high: float):
    """Return a program that answers between two values and from some steps on."""

    def ask(question):
        count, values, direction, _, _ = question
        assert direction == "both"
        if count < least_steps:
            return "too few steps"
        return "" if low <= values["s"] <= high else "s is out of reach"

    return ask


def trial(least_steps: int, low: float, high: float) -> Trial:
    return Trial(program(least_steps, low, high), 1.0, 10.0, {"s": 2.0})


def test_a_slider_ends_where_the_program_answers():
    asked = trial(1, 0.02, 1000.0)
    moved = narrowed(asked, 10.0, FIELD)
    assert 0.02 <= moved["low"] < 2.0
    assert moved["high"] == 100.0
    assert not moved["fixed"]
    assert asked.refusal(10.0, s=moved["low"]) == ""
    assert asked.refusal(10.0, s=0.01) == "s is out of reach"


def test_a_slider_that_cannot_move_is_fixed():
    assert narrowed(trial(1, 1.99, 2.01), 10.0, FIELD)["fixed"]


def test_the_least_count_has_an_answer_and_so_have_all_above():
    assert least_count(trial(1, 0, 10)) == (1, "")
    assert least_count(trial(7, 0, 10)) == (10, "too few steps")
    assert least_count(trial(10**6, 0, 10)) == (None, "too few steps")


def test_a_program_is_asked_beside_the_package():
    text = symdp.derive(mechanisms.randomized_response).to_program("python")
    with running(text) as ask:
        assert ask((3, {"epsilon_0": 0.5}, "both", (0.0, 1.0), 0.1)) == ""
        assert ask((3, {"epsilon_0": -1.0}, "both", (0.0,), 0.1)).startswith("epsilon_0 must be")


def test_a_slider_stays_where_its_parameter_is_assumed_to_lie():
    panel = Panel(
        "laplace", mechanisms.laplace.assuming({"b": ">= 1, < 50"}), {}, "", "", with_formulas=False
    )
    field = next(field for field in _data(panel, 0)["fields"] if field["name"] == "b")
    assert (field["low"], field["high"]) == (1.0, 50.0)
