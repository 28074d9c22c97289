"""Pages of local randomizers, and which compositions have a page of their own."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp

import symdp
from symdp.page.independent import judged
from symdp.page.shuffled import is_one_round


def k_ary(outcomes, inputs):
    """Laws that favour an outcome by 3 to 1."""
    whole = outcomes + 2
    return [
        [Fraction(3 if i % outcomes == j else 1, whole) for j in range(outcomes)]
        for i in range(inputs)
    ]


@pytest.mark.parametrize(("outcomes", "inputs"), [(9, 2), (2, 9), (9, 9)])
def test_many_laws_or_outcomes_are_counted_and_not_written(outcomes, inputs):
    page = symdp.derive(symdp.Mechanism.local(k_ary(outcomes, inputs))).to_text()
    assert f"{inputs} laws on {outcomes} outcomes, given as a list" in page
    assert "R₀" not in page


def test_few_laws_are_written():
    page = symdp.derive(symdp.Mechanism.local(k_ary(8, 8))).to_text()
    assert "given as a list" not in page
    assert "R₀ = (3/10, 1/10, 1/10" in page
    assert "R₇ = (1/10, 1/10, 1/10" in page


def test_one_round_is_shuffled_and_alone():
    answer = symdp.Mechanism.local(k_ary(2, 2))
    crowd = answer.shuffled(10)
    assert is_one_round(symdp.compose(crowd))
    assert not is_one_round(symdp.compose(answer))
    assert not is_one_round(symdp.compose([crowd, answer.shuffled(20)]))


def test_a_loss_is_judged_at_outputs_inside_the_support_alone():
    x = sp.Symbol("x", real=True)
    pair = symdp.Mechanism.from_pair(x / 2, sp.S.Half, x, (0, 2))
    places = [row.at for row in judged(symdp.derive(pair), {}) if row.name == "ℓ"]
    assert places == ["x = 1/3"]
