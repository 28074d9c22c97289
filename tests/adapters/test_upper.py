"""What adapters return lies above the truth, and at the ends of the range it is what it must be."""

import math

import pytest
import sympy as sp

from symdp import Ledger, Mechanism, mechanisms
from symdp.adapters.upper import delta_upper, epsilon_upper
from symdp.errors import InputError

STEP = mechanisms.gaussian(sigma=2).subsample("poisson", "1/100")


@pytest.mark.slow
def test_epsilon_lies_above_a_proof_and_close_to_it():
    ledger = Ledger([(STEP, 100)])
    proved = ledger.composition().certify_epsilon(1e-4, digits=8)
    assert float(proved.lower_decimal) < epsilon_upper(ledger, 1e-4)
    # Eight digits of the proof, and the width of the floating-point interval.
    assert epsilon_upper(ledger, 1e-4) < float(proved.upper_decimal) * (1 + 1e-9)


def test_delta_lies_above_a_proof_and_close_to_it():
    ledger = Ledger([(mechanisms.laplace(b=2), 30)])
    proved = ledger.composition().certify(0.5, digits=8)
    assert float(proved.lower_decimal) < delta_upper(ledger, 0.5)
    assert delta_upper(ledger, 0.5) < float(proved.upper_decimal) * (1 + 1e-9)


def test_pure_privacy_is_the_largest_loss():
    ledger = Ledger([(mechanisms.laplace(b="1/3"), 7)])
    assert 21.0 <= epsilon_upper(ledger, 0.0) < 21.0 * (1 + 1e-13)
    assert delta_upper(ledger, 21.5) == 0.0


def test_what_is_infinite():
    P, Q = [0.1, 0.9, 0], [0, 0.9, 0.1]
    lost = Mechanism.from_pair(P, Q, sp.Symbol("x"), {"points": [0, 1, 2]})
    ledger = Ledger([(lost, 1)])
    assert epsilon_upper(ledger, 0.0) == epsilon_upper(ledger, 0.05) == math.inf
    assert epsilon_upper(ledger, 0.2) == 0.0
    assert 0.1 <= delta_upper(ledger, math.inf) < 0.1 + 3e-15


def test_an_empty_ledger_costs_nothing():
    assert epsilon_upper(Ledger(), 0.0) == delta_upper(Ledger(), math.inf) == 0.0


@pytest.mark.parametrize("delta", [-0.1, 1.5, math.nan])
def test_no_probability(delta):
    with pytest.raises(InputError, match="delta"):
        epsilon_upper(Ledger(), delta)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan])
def test_no_epsilon(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        delta_upper(Ledger(), epsilon)
