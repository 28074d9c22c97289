"""Answers agree with those of an earlier version, and with what was proved of them then.

The questions stand in frozen/questions.json, one to a line, with the recipe beside them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from decimal import Decimal

import pytest
from frozen.comparison import WIDEST, contradictions
from frozen.recipe import EACH, FROZEN, ask, asked, contradicted, steps_of

HELD = json.loads(FROZEN.read_text(encoding="utf-8"))
ENTRIES = HELD["questions"]
LAWS: dict[str, list[dict]] = {}  # the questions about each law
for entry in ENTRIES:
    LAWS.setdefault(f"{entry['question'] // EACH} {entry['label'].split(' x ')[0]}", []).append(
        entry
    )
CHEAP_LAWS, CHEAP_QUESTIONS = 2, 2  # of a family, and of such a law, in every run


def quick():
    """Yield the questions of every run: of each family the cheapest, as they were answered."""
    families: dict[str, list[list[dict]]] = {}
    for entries in LAWS.values():
        families.setdefault(entries[0]["family"], []).append(entries)
    for laws in families.values():
        laws.sort(key=lambda entries: max(e["seconds"] for e in entries))
        for entries in laws[:CHEAP_LAWS]:
            yield from sorted(entries, key=lambda e: e["seconds"])[:CHEAP_QUESTIONS]


def disagreement(entry):
    answer = ask(entry)
    return contradictions(entry, answer.log_delta, answer.log_lower, answer.log_upper)


@pytest.mark.slow_cases(
    "discrete_gaussian(sigma=1) poisson 1/100 x 3, top, both",
    "logistic(s=4) without_replacement 1/5 x 3, 6 deviations, both",
    "logistic(s=4) without_replacement 1/5 x 1000000, mean, add",
    "gaussian(sigma=2) without_replacement 1/50 x 1000000, negative, remove",
    "gaussian(sigma=2) without_replacement 1/50 x 1000, 1e-100, remove",
    "laplace(b=3) poisson 1/4 substitution x 2, 1e-100, remove",
    "laplace(b=3) poisson 1/4 substitution x 3, top, add",
    "gaussian(sigma=4) poisson 1/100 3 x 1000000, 1e-30, remove",
    "gaussian(sigma=4) poisson 1/100 3 x 3, negative, remove",
    "gaussian(sigma=5) without_replacement 1/50 1000 2 x 2, negative, add",
    "gaussian(sigma=5) without_replacement 1/50 1000 2 x 1, top, remove",
    "asymmetric laplace(a=2, c=3) poisson 1/10 x 2, mean, add",
    "asymmetric laplace(a=2, c=3) poisson 1/10 x 1, negative, remove",
    "laplace scales(a=1, c=3/2) poisson 1/10 x 100, negative, remove",
)
@pytest.mark.parametrize("entry", list(quick()), ids=lambda entry: entry["label"])
def test_cheap_answers_agree(entry):
    assert not disagreement(entry)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_all_answers_agree(law):
    found = {entry["label"]: disagreement(entry) for entry in LAWS[law]}
    assert not {label: wrong for label, wrong in found.items() if wrong}


def test_the_file_holds_the_questions_of_the_recipe():
    recipe = {k: (steps_of(law, count), direction) for k, law, count, _, direction in asked()}
    assert len(ENTRIES) == len({entry["question"] for entry in ENTRIES}) > 350
    for entry in ENTRIES:
        assert (entry["steps"], entry["direction"]) == recipe[entry["question"]]
        assert Decimal(float(entry["epsilon"])) == Decimal(entry["epsilon"])
    assert len(ENTRIES) + sum(HELD["skipped"].values()) == HELD["questions asked"] == len(recipe)
    assert sum("certified" in entry for entry in ENTRIES) == HELD["certified"] >= 100


def test_every_kind_of_law_and_place_is_there():
    families = Counter(entry["family"] for entry in ENTRIES)
    assert families.keys() == {law.family for _, law, *_ in asked()}
    assert min(families.values()) >= 5
    assert {entry["answer"]["kind"] for entry in ENTRIES} >= {"exact"}
    logs = [float(entry["answer"]["log_delta"]) for entry in ENTRIES]
    assert min(log for log in logs if math.isfinite(log)) < math.log(1e-100)
    assert -math.inf in logs  # ε beyond the largest loss
    assert any(float(entry["epsilon"]) < 0 for entry in ENTRIES)


def test_what_is_frozen_agrees_with_itself():
    assert not {entry["label"]: wrong for entry in ENTRIES if (wrong := contradicted(entry))}


def bounds(entry):
    found = (entry["answer"][name] for name in ("log_delta", "log_lower", "log_upper"))
    return [float(value) for value in found]


@pytest.mark.parametrize("side", [-1, 1])
def test_an_answer_beside_any_frozen_interval_is_told(side):
    for entry in ENTRIES:
        value, low, high = bounds(entry)
        if not math.isfinite(low):
            continue
        shift = side * (high - low + 1e-9 * max(1.0, abs(value)))
        wrong = contradictions(entry, value + shift, low + shift, high + shift)
        assert "misses the earlier" in wrong[0], entry["label"]
        if "certified" in entry:
            assert "misses the proved" in wrong[1], entry["label"]


PLANTED = {
    "answer": {"log_delta": -10.0, "log_lower": -10.5, "log_upper": -9.5},
    "certified": {"lower": "4.539992976e-5", "upper": "4.539992977e-5"},  # e^-10
}


def test_an_answer_that_holds_what_is_proved_agrees():
    assert contradictions(PLANTED, -10.0, -10.0 - 1e-8, -10.0 + 1e-8) == []
    assert contradictions(PLANTED, -9.9, -10.1, -9.9) == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((-9.9, -9.95, -9.85), "misses the proved"),  # within the earlier bounds
        ((-10.2, -10.2, -10.1), "misses the proved"),
        ((-9.0, -9.1, -8.9), "misses the earlier"),
        ((-10.0, -9.9, -9.8), "does not lie in its own"),
        ((math.nan, -11.0, -9.0), "does not lie in its own"),
        ((-10.0, math.nan, -9.0), "does not lie in its own"),
        ((-10.0, math.nan, math.nan), "misses the proved"),
        ((-math.inf, -math.inf, -math.inf), "misses the proved"),
        ((-10.0, -11.5, -9.5), "wider"),
        ((-10.0, None, -9.0), "wider"),
        ((-10.0, None, None), "wider"),
    ],
)
def test_a_planted_wrong_answer_is_told(answer, words):
    assert words in " ".join(contradictions(PLANTED, *answer))


def test_no_mass_at_all_is_its_own_answer():
    nothing = {"log_delta": "-inf", "log_lower": "-inf", "log_upper": "-inf"}
    entry = {"answer": nothing, "certified": {"lower": "0", "upper": "0"}}
    assert contradictions(entry, -math.inf, -math.inf, -math.inf) == []
    assert len(contradictions(entry, -700.0, -700.0 - WIDEST / 4, -700.0)) == 2
