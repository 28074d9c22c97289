"""The facts of a noise on its page: what is known, how, and why; in every format."""

from __future__ import annotations

import json

import pytest
import sympy as sp

import symdp
from symdp import Mechanism, mechanisms
from symdp.errors import InputError
from symdp.page.derivation import blocks
from symdp.page.html import html_blocks
from symdp.page.markdown import markdown_blocks
from symdp.questions.steps.smaller_shifts import of_smaller_shifts

X = sp.Symbol("x", real=True)
WAVES = sp.exp(-(X**2) / 8) * (2 + sp.cos(2 * sp.pi * X))
# One mode, which nothing shows: the second factor is too flat to undo the fall of the first.
BENT = sp.exp(-sp.Abs(X)) * (1 + sp.exp(-(X**2)) * sp.cos(X) / 10)
CAUCHY = 1 / (sp.pi * (1 + X**2))
# density, then for each fact its value and how it is known
LAWS = {
    "laplace": (sp.exp(-sp.Abs(X)) / 2, (("0", "rule"), (True, "rule"), (True, "rule"))),
    "cauchy": (CAUCHY, (("0", "rule"), (None, "open"), (True, "rule"))),
    "waves": (WAVES, (("0", "rule"), (None, "open"), (False, "values"))),
    "bent": (BENT, (("0", "rule"), (None, "open"), (None, "open"))),
    "wavering": (
        sp.exp(-(X**2) / 8) * (2 + sp.cos(X / 100)),
        (("0", "rule"), (None, "open"), (True, "balls")),
    ),
}


def derived(density, **options):
    return symdp.derive(Mechanism.additive(density, X, 1, normalize=True, **options))


@pytest.mark.quick_cases("laplace")
@pytest.mark.parametrize("law", ["laplace", "cauchy", "bent"])
def test_each_fact_has_its_value_and_how_it_is_known(law):
    density, wanted = LAWS[law]
    d = derived(density)
    facts = dict(d.to_json(order=1)["facts"])
    assert tuple((facts[name]["value"], facts[name]["by"]) for name in facts) == wanted
    assert list(facts) == ["even", "log-concave", "one mode"]
    assert all(fact["reason"] for fact in facts.values())
    text = d.to_text(order=1, only=("facts",))
    for fact in facts.values():
        assert fact["reason"].split(":")[0] in " ".join(text.split())


@pytest.mark.quick_cases("laplace")
@pytest.mark.parametrize("law", ["laplace", "cauchy", "bent", "waves", "wavering"])
def test_the_sentence_of_smaller_shifts_follows_from_the_fact(law):
    density, (*_, (value, _)) = LAWS[law]
    text = " ".join(derived(density).to_text(order=1, only=("mechanism",)).split())
    assert ("this noise has one mode, so that it dominates every smaller shift" in text) == bool(
        value
    )
    assert ("a smaller shift may lose more" in text) == (not value)


@pytest.mark.slow
def test_the_author_is_named():
    d = derived(BENT, modes=1)
    assert "by its author's word" in d.to_text(order=1, only=("facts",))
    assert d.to_json(order=1)["facts"]["one mode"]["by"] == "author"


def test_one_shift_of_whole_numbers():
    k = sp.Symbol("k", integer=True)
    density = 2 ** (-sp.Abs(k)) * (2 + sp.cos(2 * k))
    holes = Mechanism.additive(density, k, 1, "integers", normalize=True)
    assert "there is no smaller shift" in of_smaller_shifts(holes)
    assert "a smaller shift may lose more" in of_smaller_shifts(holes.moved_by(2))


@pytest.mark.slow
def test_every_format_has_the_section():
    d = symdp.derive(mechanisms.laplace)
    reason = "its logarithm is a sum of concave terms"
    for page in (
        d.to_text(order=1),
        d.to_latex(order=1),
        html_blocks(blocks(d, 1, ("facts",))),
        markdown_blocks(blocks(d, 1, ("facts",))),
        json.dumps(d.to_json(order=1)),
    ):
        assert reason in " ".join(page.split())


def test_laws_that_were_given_have_no_facts():
    d = symdp.derive(mechanisms.randomized_response)
    assert d.to_json(order=1)["facts"] == {}
    with pytest.raises(InputError, match="no section or formula is called 'facts'"):
        d.to_text(order=1, only=("facts",))
