"""The sign of a sum of exponentials of one symbol, against its values."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp.density.signs import sign_of

S = sp.Symbol("s", positive=True)
E = sp.exp
DECIDED = (
    E(3 * S) - 3 * E(S) + 2,
    E(S) + E(-S) - 2,
    1 - 2 * E(-S) + E(-2 * S),
    2 - E(S / 2) - E(-S / 2),
    E(S / 3) - E(S / 2),
    3 - 2 * E(-S) - E(-3 * S),
    1 - E(-S) * 2 + E(-4 * S) + E(S),
)
OPEN = (E(2 * S) - 3 * E(S) + 2, E(S) - 2, 1 - 2 * E(-S))  # of both signs


@pytest.mark.parametrize("expression", DECIDED, ids=str)
def test_a_sign_that_does_not_change_is_found(expression):
    values = [float(expression.subs(S, at)) for at in (0.1, 0.7, 2.0, 9.0)]
    signs = {(value > 0) - (value < 0) for value in values}
    assert {sign_of(expression)} == signs


@pytest.mark.parametrize("expression", OPEN, ids=str)
def test_a_sign_that_changes_is_open(expression):
    values = [float(expression.subs(S, at)) for at in (0.1, 5.0)]
    assert values[0] * values[1] < 0
    assert sign_of(expression) is None
