"""Which values a parameter may have, and what a mechanism says that has no such name."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp import mechanisms
from symdp.model.assumption import End


@pytest.mark.parametrize(
    ("is_lower", "is_open", "held"),
    [
        (True, True, [False, False, True]),
        (True, False, [False, True, True]),
        (False, True, [True, False, False]),
        (False, False, [True, True, False]),
    ],
    ids=[">", ">=", "<", "<="],
)
@pytest.mark.parametrize("at", [sp.Rational(3, 2), sp.sqrt(2), -sp.pi], ids=str)
def test_an_end_holds_on_one_side(is_lower, is_open, held, at):
    end = End(at, is_lower, is_open)
    step = sp.Rational(1, 10**9)
    assert [end.holds(value) for value in (at - step, at, at + step)] == held
    assert str(end).startswith(end.operator)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("delta", "symdp.compose"),
        ("derive", "it is a function"),
        ("sensitivty", "no 'sensitivty'"),
        ("cdf", "quantile"),
    ],
)
def test_a_name_that_a_mechanism_lacks_is_told(name, told):
    with pytest.raises(AttributeError, match=told):
        getattr(mechanisms.laplace, name)
