"""The sign of a sum of exponentials of one symbol, against its values."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp.density.signs import is_nearly_zero, sign_of

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


LOGARITHMS = {  # r + Σ cᵢ log aᵢ and its sign, whatever s > 0
    2 * sp.log(1 + S) - sp.log(S**2 + 2 * S + 1): 0,
    2 * sp.log(1 + S) - sp.log(S**2 + S + 1): 1,
    sp.log(S**2 + S + 1) - 2 * sp.log(1 + S): -1,
    sp.log(S + 3) - sp.log(S + 2): 1,
    sp.log(1 + S) - sp.log(2 + S) - 1: -1,
    sp.log(1 + S) - sp.log(2): None,
    sp.log(S**2 + 1) - sp.log(2 * S): None,  # 0 at 1 and positive elsewhere
}


@pytest.mark.parametrize(("expression", "sign"), LOGARITHMS.items(), ids=map(str, LOGARITHMS))
def test_signs_of_sums_of_logarithms(expression, sign):
    assert sign_of(expression) == sign
    values = [float(sp.N(expression.subs(S, at), 30)) for at in (0.125, 0.75, 2.0, 9.0)]
    assert sign is None or all(sign * value > 0 or value == sign == 0 for value in values)


@pytest.mark.parametrize(
    ("number", "vanishes"),
    [
        (sp.sqrt(2) * sp.sqrt(3) - sp.sqrt(6), True),
        (sp.log(2) - sp.Rational(str(sp.log(2).evalf(60))), True),  # an end that was rounded
        (sp.log(2) - sp.Rational(str(sp.log(2).evalf(40))), False),
        (sp.Rational(1, 10**50), True),
        (-sp.Rational(1, 10**40), False),
        (sp.E - 3, False),
        (sp.S.One, False),
        (S, False),
    ],
    ids=str,
)
def test_what_vanishes_is_zero_to_forty_digits(number, vanishes):
    assert is_nearly_zero(number) is vanishes
